//! Linux: file leases, `/proc`, atomic exchange of names, files without a name.

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
use super::writing;
use crate::platform::identity::FileId;
use rustix::fs::FallocateFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::OnceLock;

/// For tests: this system is to have no more than others, by which code for them runs here. With this value files have one name
/// only.
const PLAIN: &str = "TAILOR_PLAIN_SYSTEM";
const ONE_NAME: &str = "one-name";

fn plain() -> Option<&'static str> {
    static SAID: OnceLock<Option<String>> = OnceLock::new();
    SAID.get_or_init(|| std::env::var(PLAIN).ok()).as_deref()
}

/// This system.
pub(crate) struct This;

impl System for This {
    fn lease(file: &File, kind: LeaseKind) -> io::Result<()> {
        if plain().is_some() { Err(ErrorKind::Unsupported.into()) } else { lease::set(file, kind) }
    }

    fn shows_files() -> bool {
        plain().is_none()
    }

    fn gives_second_names() -> bool {
        plain() != Some(ONE_NAME)
    }

    fn has_lease(file: &File) -> bool {
        lease::is_whole(file)
    }

    fn exchange(folder: &Handle, one: &OsStr, other: &OsStr) -> io::Result<bool> {
        if plain().is_some() { Ok(false) } else { files::exchange(folder, one, other) }
    }

    fn holders(_: &File, file: FileId) -> Vec<Holder> {
        if plain().is_some() { Vec::new() } else { process::holders(file) }
    }

    fn holders_at(_: &Path, file: FileId) -> Vec<Holder> {
        if plain().is_some() { Vec::new() } else { process::holders(file) }
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
}
