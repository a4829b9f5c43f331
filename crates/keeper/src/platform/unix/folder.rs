//! A folder, held by its descriptor. Everything in it is reached by a single name relative to that.

pub(crate) use super::handle::Handle;
use super::is_lacking;
use crate::platform::files::{self, LOOK};
use crate::platform::writing;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Mode of our own files.
const FILE: Mode = Mode::RUSR.union(Mode::WUSR);

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a folder by its path.
pub(crate) fn at(path: &Path) -> io::Result<Handle> {
    open_at(CWD, path.as_os_str(), FOLDER)
}

/// Opens a folder by a path without links in it.
pub(crate) fn without_links(path: &Path) -> io::Result<Handle> {
    Ok(match files::open_folder(path, FOLDER) {
        // Files in a folder that may not be listed can be read all the same.
        Err(Errno::ACCESS) => files::open_folder(path, FOLDER | LOOK)?,
        other => other?,
    }
    .into())
}

/// The folder itself.
pub(crate) fn file(folder: &Handle) -> &File {
    folder
}

/// Opens a folder in another one.
pub(crate) fn child(folder: &Handle, name: &OsStr) -> io::Result<Handle> {
    open_at(folder, name, FOLDER | OFlags::NOFOLLOW)
}

/// Makes a folder for its owner alone.
pub(crate) fn make(folder: &Handle, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::mkdirat(folder, name, Mode::RWXU)?)
}

/// Opens a file of this name; never a link. One that is made is for its owner alone.
pub(crate) fn open(folder: &Handle, name: &OsStr, flags: OFlags) -> io::Result<File> {
    open_at(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC)
}

fn open_at(at: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<File> {
    Ok(rustix::fs::openat(at, name, flags, FILE)?.into())
}

/// All names in the folder that are UTF-8.
pub(crate) fn names(folder: &Handle) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        if let Ok(name) = entry?.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push(name.to_string());
        }
    }
    Ok(names)
}

pub(crate) fn rename(folder: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    move_to(folder, from, folder, to)
}

/// Renames a file from one folder to another.
pub(crate) fn move_to(folder: &Handle, from: &OsStr, other: &Handle, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat(folder, from, other, to)?)
}

pub(crate) fn link(folder: &Handle, name: &OsStr, new: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::linkat(folder, name, folder, new, AtFlags::empty())?)
}

/// Whether a file system gives no file a second name, by the error of [`link`].
pub(crate) fn has_no_links(cause: &io::Error) -> bool {
    Errno::from_io_error(cause).is_some_and(|errno| errno == Errno::PERM || is_lacking(errno))
}

pub(crate) fn remove(folder: &Handle, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
}

pub(crate) fn remove_child(folder: &Handle, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Makes the names in the folder durable.
pub(crate) fn sync(folder: &Handle) -> io::Result<()> {
    writing::sync(folder)
}
