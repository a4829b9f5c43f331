//! Files always have a name.

use super::handle::Handle;
use crate::platform::OFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::windows::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use windows_sys::Win32::Storage::FileSystem::{FILE_ATTRIBUTE_TEMPORARY, FILE_FLAG_DELETE_ON_CLOSE};

/// How a file or folder is opened to find out what it is, even if it may not be read.
pub(crate) const LOOK: OFlags = OFlags::LOOK;

pub(crate) fn create_unnamed(_: &Handle) -> io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

pub(crate) fn name_it(_: &File, _: &Handle, _: &OsStr) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

pub(crate) fn temporary_folder() -> std::path::PathBuf {
    std::env::temp_dir()
}

/// A temporary file that no other program can open. It is deleted when it is closed.
pub(crate) fn temporary() -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(format!(".tailor-{pid}-{count}"));
    let mut options = File::options();
    options.read(true).write(true).create_new(true).share_mode(0);
    options.attributes(FILE_ATTRIBUTE_TEMPORARY).custom_flags(FILE_FLAG_DELETE_ON_CLOSE).open(path)
}

pub(crate) fn give_back_memory(_: &File) {}
