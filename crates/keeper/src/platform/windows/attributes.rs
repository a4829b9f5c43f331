//! What a new file takes over from the old one besides its text: access list and times. Its owner is whoever made it, and
//! only an owner's files are replaced; streams beside its text are not copied.

use super::facts::Facts;
use super::security;
use std::fs::{File, FileTimes};
use std::io;

/// Gives `new` the access list of `old`.
pub(crate) fn take_over(old: &File, new: &File) -> io::Result<()> {
    security::copy_list(old, new)
}

/// Gives `new` these times: pickers sort by them, retention deletes by them.
pub(crate) fn set_times(new: &File, like: &Facts) -> io::Result<()> {
    new.set_times(FileTimes::new().set_accessed(like.accessed()).set_modified(like.modified()?))
}
