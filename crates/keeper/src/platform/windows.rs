//! Windows: there are no leases, and nobody says who has a file open, so the guarantee is `quiet`. An open file is not
//! replaced, but steps aside. A folder that is held open cannot be renamed, so files in it are reached by their path.

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
#[allow(unsafe_code, reason = "the room of a disk is in no safe wrapper")]
pub(crate) mod metadata;
pub(crate) mod name;
pub(crate) mod network;
mod open;
pub(crate) mod own_folder;
pub(crate) mod owner;
#[allow(unsafe_code, reason = "lists of processes are filled in buffers of ours")]
pub(crate) mod process;
pub mod program;
pub(crate) mod writing;

pub(crate) use super::nothing::{acting, holes, memory, mounts};
pub(crate) use open::{FileExt, OFlags};

use super::system::System;
use std::fs::File;
use std::io;

/// This system. Names cannot be exchanged atomically here.
pub(crate) struct This;

impl System for This {
    fn gives_second_names() -> bool {
        false
    }

    fn sync(file: &File) -> io::Result<()> {
        writing::sync(file)
    }
}
