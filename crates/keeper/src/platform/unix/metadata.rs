//! Metadata of files.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use std::fs::Metadata;
pub(crate) use std::os::unix::fs::MetadataExt;

/// Of an open file or folder.
pub(crate) fn of_file(file: &File) -> io::Result<Metadata> {
    file.metadata()
}

/// Of the target of a path.
pub(crate) fn at(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(path)
}

/// Of what is at a path; a link is not followed.
pub(crate) fn of_link(path: &Path) -> io::Result<Metadata> {
    std::fs::symlink_metadata(path)
}

/// The path without links, with the names that the folders list: a disk that ignores case has a file also under others.
///
/// # Errors
///
/// When there is no file, or it cannot be reached.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    // macOS answers with these names itself.
    if cfg!(target_os = "linux") { Ok(as_listed(&real)) } else { Ok(real) }
}

/// A path without links, with the names that the folders list. Only a folder in which another spelling of the name leads to the
/// same file is listed.
fn as_listed(real: &Path) -> PathBuf {
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else { return real.to_path_buf() };
    let folder = as_listed(folder);
    let typed = folder.join(name);
    let listed = other_case(name).filter(|other| is_same(&folder.join(other), &typed)).and_then(|_| {
        let names = std::fs::read_dir(&folder).ok()?.filter_map(|entry| Some(entry.ok()?.file_name()));
        let mut alike: Vec<_> = names.filter(|listed| is_alike(listed, name)).collect();
        // Where there are two, the disk tells them apart: one links to the other.
        if alike.len() == 1 { alike.pop() } else { None }
    });
    listed.map_or(typed, |listed| folder.join(listed))
}

/// The name in another case; `None` if it has no letters.
fn other_case(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    let (upper, lower) = (name.to_uppercase(), name.to_lowercase());
    [upper, lower].into_iter().find(|other| other != name)
}

fn is_alike(one: &OsStr, other: &OsStr) -> bool {
    let folded = |name: &OsStr| Some(name.to_str()?.to_lowercase());
    folded(one).is_some_and(|one| folded(other) == Some(one))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| of_link(path).map(|found| (found.dev(), found.ino())).ok();
    id(one).is_some_and(|one| id(other) == Some(one))
}

/// How many bytes may still be written to the file system of a folder.
#[cfg(feature = "stores")]
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(folder)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

/// Whether a path is in a folder; neither has links.
pub(crate) fn lies_in(real: &Path, folder: &Path) -> bool {
    real.starts_with(folder)
}

/// The path of the running program: on Linux one that leads to it even if its file was replaced.
///
/// # Errors
///
/// When the system does not tell.
pub fn own_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_path_buf()) } else { std::env::current_exe() }
}

/// Of the running program.
pub(crate) fn of_program() -> io::Result<Metadata> {
    at(&own_program()?)
}

/// Whether an error is due to files that other programs have open, and not to the file itself.
pub(crate) fn will_pass(cause: &io::Error) -> bool {
    use rustix::io::Errno;
    let number = cause.raw_os_error().map(Errno::from_raw_os_error);
    matches!(number, Some(Errno::MFILE | Errno::NFILE))
}

/// Whether another program keeps a file from being opened or replaced, until it closes it.
pub(crate) fn is_withheld(cause: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(cause) == Some(rustix::io::Errno::BUSY)
}

/// Whether a file was not opened because its name is a link.
pub(crate) fn is_link(cause: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(cause) == Some(rustix::io::Errno::LOOP)
}
