//! A folder held open such that neither it nor a folder above can be renamed meanwhile: files in it are reached by
//! their path. Other programs can do anything with these files.

pub(crate) use super::handle::Handle;
use super::{metadata, open};
use crate::platform::OFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use windows_sys::Win32::Foundation::{ERROR_STOPPED_ON_SYMLINK, GENERIC_READ};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_READ, FILE_SHARE_WRITE,
};

/// Opens a folder by its path.
pub(crate) fn at(path: &Path) -> io::Result<Handle> {
    hold(path.canonicalize()?)
}

/// Opens a folder by a path without links in it.
pub(crate) fn without_links(path: &Path) -> io::Result<Handle> {
    hold(metadata::verbatim(path))
}

/// Opens a folder in another one.
pub(crate) fn child(folder: &Handle, name: &OsStr) -> io::Result<Handle> {
    hold(folder.path.join(name))
}

fn hold(path: PathBuf) -> io::Result<Handle> {
    let how = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
    let mut options = File::options();
    options.access_mode(GENERIC_READ).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE).custom_flags(how);
    let file = options.open(&path)?;
    if !file.metadata()?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    // From now on no folder on the path can become a link.
    if path.canonicalize()? != path {
        return Err(io::Error::from_raw_os_error(ERROR_STOPPED_ON_SYMLINK.cast_signed()));
    }
    Ok(Handle { file, path })
}

/// The folder itself.
pub(crate) fn file(folder: &Handle) -> &File {
    &folder.file
}

/// Makes a folder with the rights of the one that it is in.
pub(crate) fn make(folder: &Handle, name: &OsStr) -> io::Result<()> {
    std::fs::create_dir(folder.path.join(name))
}

/// Opens a file with this name; never a link.
pub(crate) fn open(folder: &Handle, name: &OsStr, flags: OFlags) -> io::Result<File> {
    open::open(&folder.path.join(name), flags)
}

/// All names in the folder that are text.
pub(crate) fn names(folder: &Handle) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in folder.path.read_dir()? {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Where the file system has them (NTFS does), the standard library asks for POSIX semantics, so that a file that others have
/// open can be replaced. Elsewhere, and under Wine 8, it falls back to a rename that such a file withstands.
pub(crate) fn rename(folder: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    move_to(folder, from, folder, to)
}

/// Renames a file from one folder to another.
pub(crate) fn move_to(folder: &Handle, from: &OsStr, other: &Handle, to: &OsStr) -> io::Result<()> {
    std::fs::rename(folder.path.join(from), other.path.join(to))
}

pub(crate) fn link(folder: &Handle, name: &OsStr, new: &OsStr) -> io::Result<()> {
    std::fs::hard_link(folder.path.join(name), folder.path.join(new))
}

/// No link is asked for here.
pub(crate) fn has_no_links(_: &io::Error) -> bool {
    false
}

pub(crate) fn remove(folder: &Handle, name: &OsStr) -> io::Result<()> {
    std::fs::remove_file(folder.path.join(name))
}

pub(crate) fn remove_child(folder: &Handle, name: &OsStr) -> io::Result<()> {
    std::fs::remove_dir(folder.path.join(name))
}

/// NTFS keeps a journal of names. Only an administrator can wait for it.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn sync(_: &Handle) -> io::Result<()> {
    Ok(())
}
