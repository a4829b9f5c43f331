//! What all Unix systems share: folders held open by a descriptor, user ids, `flock`, attributes.

pub(crate) mod around;
pub(crate) mod attributes;
pub(crate) mod copying;
pub(crate) mod folder;
pub(crate) mod handle;
pub(crate) mod limits;
pub(crate) mod lock;
pub(crate) mod metadata;
pub(crate) mod name;
pub(crate) mod own_folder;
pub(crate) mod owner;
pub mod program;
pub(crate) mod ps;
pub(crate) mod writing;

pub(crate) use rustix::fs::OFlags;
pub(crate) use std::os::unix::fs::FileExt;

use rustix::io::Errno;

/// Whether a system or a file system says that it does not have something. Apple has two numbers for that.
fn is_lacking(errno: Errno) -> bool {
    [Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&errno)
}
