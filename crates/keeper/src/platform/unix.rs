//! What all Unix systems share: folders held open by a descriptor, user ids, `flock`, attributes.

pub(crate) mod around;
pub(crate) mod attributes;
pub(crate) mod folder;
pub(crate) mod limits;
pub(crate) mod lock;
pub(crate) mod metadata;
pub(crate) mod name;
pub(crate) mod own_folder;
pub(crate) mod owner;
pub(crate) mod writing;

pub(crate) use rustix::fs::OFlags;
pub(crate) use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use std::io;

/// What came of a call that a system or a file system may not have: `false` if it does not.
pub(super) fn unless_lacking(done: rustix::io::Result<()>) -> io::Result<bool> {
    match done {
        Err(errno) if errno == Errno::INVAL || is_lacking(errno) => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

/// Whether a system or a file system says that it does not have something. Apple has two numbers for that.
fn is_lacking(errno: Errno) -> bool {
    [Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&errno)
}
