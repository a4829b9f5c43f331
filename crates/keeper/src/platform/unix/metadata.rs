//! Metadata of files.

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

/// The path without links.
///
/// # Errors
///
/// When there is no file, or it cannot be reached.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Whether a path is in a folder; neither has links.
pub(crate) fn lies_in(real: &Path, folder: &Path) -> bool {
    real.starts_with(folder)
}

/// Of the running program: on Linux even if its file was replaced.
pub(crate) fn of_program() -> io::Result<Metadata> {
    at(Path::new("/proc/self/exe")).or_else(|_| std::env::current_exe().and_then(|path| at(&path)))
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
