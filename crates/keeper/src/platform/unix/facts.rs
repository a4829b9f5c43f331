//! Metadata of files.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use std::fs::Metadata;
pub(crate) use std::os::unix::fs::MetadataExt;

/// Of an open file or folder.
pub(crate) fn of(file: &File) -> io::Result<Metadata> {
    file.metadata()
}

/// Of what a path leads to.
pub(crate) fn at(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(path)
}

/// Of what stands at a path; a link is not followed.
pub(crate) fn of_link(path: &Path) -> io::Result<Metadata> {
    std::fs::symlink_metadata(path)
}

/// The path without links.
///
/// # Errors
///
/// When there is nothing, or it cannot be reached.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Whether something lies in a folder, both without links.
pub(crate) fn lies_in(real: &Path, folder: &Path) -> bool {
    real.starts_with(folder)
}

/// Of the program that runs: on Linux this very one, also when another has taken its place.
pub(crate) fn of_program() -> io::Result<Metadata> {
    at(Path::new("/proc/self/exe")).or_else(|_| std::env::current_exe().and_then(|path| at(&path)))
}

/// Whether a cause has to do with what other programs have open, and not with the file.
pub(crate) fn will_pass(cause: &io::Error) -> bool {
    use rustix::io::Errno;
    let number = cause.raw_os_error().map(Errno::from_raw_os_error);
    matches!(number, Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a file was not opened because its name is that of a link.
pub(crate) fn is_link(cause: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(cause) == Some(rustix::io::Errno::LOOP)
}
