//! Windows: there are no leases, and not all programs that have a file open are visible, so the guarantee is `quiet`. A
//! folder that is held open cannot be renamed, so files in it are reached by their path. Access lists make our files
//! readable only by their owner.

pub(crate) mod around;
pub(crate) mod attributes;
pub(crate) mod copying;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod handle;
#[allow(unsafe_code, reason = "jobs are in no safe wrapper")]
pub(crate) mod limits;
#[allow(unsafe_code, reason = "locks of a range of bytes are in no safe wrapper")]
pub(crate) mod lock;
#[allow(unsafe_code, reason = "the standard library gives neither the number of a file nor its last change")]
pub(crate) mod metadata;
pub(crate) mod name;
pub(crate) mod network;
mod open;
pub(crate) mod own_folder;
pub(crate) mod owner;
#[allow(unsafe_code, reason = "lists of processes are filled in buffers of ours")]
pub(crate) mod process;
pub mod program;
#[allow(unsafe_code, reason = "the standard library makes no file with an access list")]
mod security;
pub(crate) mod writing;

pub(crate) use super::nothing::{acting, exits, holes, memory, mounts};
pub(crate) use open::{FileExt, OFlags};

use super::seen::Holder;
use super::system::System;
use crate::platform::identity::FileId;
use std::fs::File;
use std::io;
use std::path::Path;

/// This system. Names cannot be exchanged atomically here.
pub(crate) struct This;

impl System for This {
    fn holders(file: &File, _: FileId) -> Vec<Holder> {
        metadata::path_of(file).map(|path| process::holders(&path)).unwrap_or_default()
    }

    fn holders_at(path: &Path, _: FileId) -> Vec<Holder> {
        process::holders(path)
    }

    fn sync(file: &File) -> io::Result<()> {
        writing::sync(file)
    }
}
