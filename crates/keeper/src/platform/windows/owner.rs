//! Owners of files: the rights of a folder decide who may do what in it. Our own folder is in the user's profile, which is for
//! that user alone.

use super::metadata::Metadata;
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

/// Whether a file is ours.
pub(crate) fn is_ours(_: &File, _: &Metadata) -> bool {
    true
}

/// Whether a file is ours, and nobody else may read or write it.
pub(crate) fn is_private(_: &File, _: &Metadata) -> bool {
    true
}

/// Whether other users than the owner may write to a file. Access lists are not examined, so they may.
pub(crate) fn others_may_write(_: &Metadata) -> bool {
    true
}

/// Whether a file is ours or of the owner of another one.
pub(crate) fn is_ours_or_of(_: &File, _: &Metadata, _: Option<&Metadata>) -> bool {
    true
}

/// Why a file in this folder is not ours to replace: its agent could not write to it either.
pub(crate) fn refusal(_: &File, metadata: &Metadata, _: &Path) -> Option<Refusal> {
    metadata.is_read_only().then_some(Refusal::ReadOnly)
}
