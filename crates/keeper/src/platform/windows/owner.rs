//! Whose a file is: users have no numbers, so only ours and others' are told apart.

use super::facts::Facts;
use super::security;
use crate::refusal::Refusal;
use std::fs::File;
use std::io;
use std::path::Path;

/// A user; who it is cannot be told.
#[derive(Clone, Copy)]
pub(crate) struct User;

pub(crate) fn user(_: &Facts) -> User {
    User
}

/// Whether we may do everything. An administrator may not see more than others here.
pub(crate) fn may_all() -> bool {
    false
}

/// Whether a file is ours. On a file system without owners none is.
pub(crate) fn is_ours(file: &File, _: &Facts) -> bool {
    security::is_ours(file).unwrap_or(false)
}

/// Whether a file is ours, and nobody else may read or write it.
pub(crate) fn is_private(file: &File, facts: &Facts) -> bool {
    is_ours(file, facts) && security::is_private(file).unwrap_or(false)
}

/// Whether more users than the owner may write to a file: access lists are not asked for that, so they may.
pub(crate) fn others_may_write(_: &Facts) -> bool {
    true
}

/// Whether a file is ours or of the owner of another one.
pub(crate) fn is_ours_or_of(file: &File, facts: &Facts, _: Option<&Facts>) -> bool {
    is_ours(file, facts)
}

/// Why a file in this folder is not ours to replace.
pub(crate) fn refusal(file: &File, facts: &Facts, _: &Path) -> Option<Refusal> {
    (!is_ours(file, facts)).then_some(Refusal::AnothersFile)
}

/// What we make is made by its owner.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn give_to_owner(_: &File, _: &Facts) -> io::Result<()> {
    Ok(())
}
