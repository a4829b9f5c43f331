//! What the new file takes over from the old one besides the text: its times. It has the rights of its folder, as the old one
//! had when its agent made it; alternate streams are not copied.

use super::metadata::Metadata;
use serde::{Deserialize, Serialize};
use std::fs::{File, FileTimes};
use std::io;

/// What is taken over. Whether somebody changes it meanwhile is not asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes;

#[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "elsewhere there is something to give")]
impl Attributes {
    pub(crate) fn of(_: &File) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn are_of_the_owner_of(&self, _: &File) -> io::Result<bool> {
        Ok(true)
    }

    pub(crate) fn give(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// Takes over nothing.
pub(crate) fn take_over(_: &File, new: &File) -> io::Result<Attributes> {
    Attributes::of(new)
}

/// Gives `new` these times: session pickers sort by them, and retention deletes by them.
pub(crate) fn set_times(new: &File, like: &Metadata) -> io::Result<()> {
    new.set_times(FileTimes::new().set_modified(like.modified()?))
}
