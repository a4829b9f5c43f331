//! Owners of files: users have no numbers, so only our files and others' are distinguished.

use super::metadata::Metadata;
use super::security;
use crate::base::refusal::Refusal;
use std::fs::File;
use std::path::Path;

/// A user of unknown identity.
#[derive(Clone, Copy)]
pub(crate) struct User;

pub(crate) fn user(_: &Metadata) -> User {
    User
}

/// Users have no numbers.
#[cfg_attr(
    not(feature = "stores"),
    expect(dead_code, reason = "only an owner of stores puts it into a name")
)]
#[allow(clippy::unnecessary_wraps, reason = "users of other systems have none, or all have one")]
pub(crate) fn number(_: &Metadata) -> Option<u32> {
    None
}

/// Whether we may do everything. An administrator may not see more than others here.
pub(crate) fn may_all() -> bool {
    false
}

/// Whether a file is ours. On a file system without owners none is.
pub(crate) fn is_ours(file: &File, _: &Metadata) -> bool {
    security::is_ours(file).unwrap_or(false)
}

/// Whether a file is ours, and nobody else may read or write it.
pub(crate) fn is_private(file: &File, metadata: &Metadata) -> bool {
    is_ours(file, metadata) && security::is_private(file).unwrap_or(false)
}

/// Whether other users than the owner may write to a file. Access lists are not examined, so they may.
pub(crate) fn others_may_write(_: &Metadata) -> bool {
    true
}

/// Whether a file is ours or of the owner of another one.
pub(crate) fn is_ours_or_of(file: &File, metadata: &Metadata, _: Option<&Metadata>) -> bool {
    is_ours(file, metadata)
}

/// Why a file in this folder is not ours to replace.
pub(crate) fn refusal(file: &File, metadata: &Metadata, _: &Path) -> Option<Refusal> {
    match metadata.is_read_only() {
        _ if !is_ours(file, metadata) => Some(Refusal::AnothersFile),
        // It could get a second name, and then neither be replaced nor lose that name.
        true => Some(Refusal::ReadOnly),
        false => None,
    }
}
