//! Windows: no leases, and not all who have a file open are seen, so what is promised is `quiet`. A folder that is held
//! open cannot be renamed, so what is in it is reached by its path. What we write is for its owner alone by its access
//! list.

pub(crate) mod around;
pub(crate) mod attributes;
#[allow(unsafe_code, reason = "the standard library gives neither the number of a file nor its last change")]
pub(crate) mod facts;
pub(crate) mod files;
pub(crate) mod folder;
#[allow(unsafe_code, reason = "jobs are in no safe wrapper")]
pub(crate) mod limits;
#[allow(unsafe_code, reason = "locks of a range of bytes are in no safe wrapper")]
pub(crate) mod lock;
pub(crate) mod name;
pub(crate) mod network;
mod open;
pub(crate) mod own_folder;
pub(crate) mod owner;
#[allow(unsafe_code, reason = "lists of processes are filled in buffers of ours")]
pub(crate) mod process;
#[allow(unsafe_code, reason = "the standard library makes no file with an access list")]
mod security;
pub(crate) mod writing;

pub(crate) use super::nothing::{exits, lease, mounts};
pub(crate) use open::{FileExt, OFlags};
