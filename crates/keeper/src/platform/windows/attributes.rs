//! What the new file takes over from the old one besides the text: access list and times. Its owner is the user who
//! created it, and only that owner's files are replaced; alternate streams are not copied.

use super::metadata::Metadata;
use super::security;
use serde::{Deserialize, Serialize};
use std::fs::{File, FileTimes};
use std::io;

/// What is taken over. Whether somebody changes it meanwhile is not asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes;

impl Attributes {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn of(_: &File) -> io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "elsewhere there is something to give")]
    pub(crate) fn give(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// Gives `new` the access list of `old`.
pub(crate) fn take_over(old: &File, new: &File) -> io::Result<Attributes> {
    security::copy_list(old, new).map(|()| Attributes)
}

/// Gives `new` these times: session pickers sort by them, and retention deletes by them.
pub(crate) fn set_times(new: &File, like: &Metadata) -> io::Result<()> {
    new.set_times(FileTimes::new().set_accessed(like.accessed()).set_modified(like.modified()?))
}
