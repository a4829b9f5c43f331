//! macOS: no leases, atomic exchange of names, processes through `libproc`, clones of files, `kqueue`.

#[allow(unsafe_code, reason = "`kevent` is told of no descriptor, and asked to keep no pointer")]
pub(crate) mod exits;
pub(crate) mod files;
#[allow(unsafe_code, reason = "`kevent` is given a descriptor that the watch borrows, and no pointer")]
mod late;
pub(crate) mod network;
#[allow(
    unsafe_code,
    reason = "libproc fills buffers of ours; no well-kept crate wraps it without Apple's headers"
)]
pub(crate) mod process;

pub(crate) use super::nothing::{acting, holes, memory, mounts};

use super::handle::Handle;
use super::seen::Holder;
use super::system::System;
use super::{unix, writing};
use crate::platform::identity::FileId;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// This system.
pub(crate) struct This;

impl System for This {
    fn exchange(folder: &Handle, one: &OsStr, other: &OsStr) -> io::Result<bool> {
        unix::exchange(folder, one, other)
    }

    fn holders(file: &File, id: FileId) -> Vec<Holder> {
        process::holders(id, || rustix::fs::getpath(file).ok())
    }

    fn holders_at(path: &Path, id: FileId) -> Vec<Holder> {
        process::holders(id, || CString::new(path.as_os_str().as_bytes()).ok())
    }

    fn sync(file: &File) -> io::Result<()> {
        writing::sync(file)
    }

    fn clone_file(from: &File, folder: &Handle, name: &OsStr) -> io::Result<File> {
        files::clone(from, folder, name)
    }

    fn watch(file: &File) -> Option<impl Fn(Duration)> {
        late::watch(file)
    }
}

/// A text in a buffer that is longer.
fn text(buffer: &[libc::c_char]) -> Vec<u8> {
    buffer.iter().map(|byte| byte.cast_unsigned()).take_while(|&byte| byte != 0).collect()
}
