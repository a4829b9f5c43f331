//! Linux: file leases, `/proc`, atomic exchange of names, files without a name, `inotify`.

pub(crate) mod acting;
pub(crate) mod exits;
pub(crate) mod files;
pub(crate) mod holes;
#[allow(unsafe_code, reason = "three system calls on descriptors and numbers, no pointers")]
pub(crate) mod lease;
#[allow(unsafe_code, reason = "a call on two numbers, of a C library that only has this switch")]
pub(crate) mod memory;
pub(crate) mod mounts;
pub(crate) mod network;
pub(crate) mod process;

use super::handle::Handle;
use super::seen::Holder;
use super::system::{LeaseKind, System};
use super::{unix, writing};
use crate::platform::identity::FileId;
use rustix::fs::FallocateFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// This system.
pub(crate) struct This;

impl System for This {
    const TRIED: bool = true;

    fn lease(file: &File, kind: LeaseKind) -> io::Result<()> {
        lease::set(file, kind)
    }

    fn has_lease(file: &File) -> bool {
        lease::is_whole(file)
    }

    fn exchange(folder: &Handle, one: &OsStr, other: &OsStr) -> io::Result<bool> {
        unix::exchange(folder, one, other)
    }

    fn holders(_: &File, file: FileId) -> Vec<Holder> {
        process::holders(file)
    }

    fn holders_at(_: &Path, file: FileId) -> Vec<Holder> {
        process::holders(file)
    }

    fn sync(file: &File) -> io::Result<()> {
        writing::sync(file)
    }

    fn reserve_space(file: &File, at: u64, bytes: u64) {
        let _ = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, at, bytes);
    }

    fn clone_file(from: &File, folder: &Handle, name: &OsStr) -> io::Result<File> {
        files::clone(from, folder, name)
    }

    fn watch(file: &File) -> Option<impl Fn(Duration)> {
        files::watch(file)
    }
}
