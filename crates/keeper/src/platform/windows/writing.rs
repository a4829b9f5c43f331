//! How files are created, written and synced.

use super::open::open;
use crate::platform::OFlags;
use std::fs::File;
use std::io;
use std::path::Path;

/// Flags to open the new file with, which cannot change later.
pub(crate) const NEW_TEXT: OFlags = OFlags::RDWR_AT_END;

/// Makes a file with the rights of its folder. Never follows a link.
///
/// # Errors
///
/// Those of the system.
pub fn create_private(path: &Path) -> io::Result<File> {
    open(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
}

/// Opens a file for reading: never through a link.
pub(crate) fn open_note(path: &Path) -> io::Result<File> {
    open(path, OFlags::RDONLY)
}

/// Opens a lock of another program, which may be a link.
pub(crate) fn open_lock(path: &Path, writes: bool) -> io::Result<File> {
    File::options().read(true).write(writes).open(path)
}

/// [`NEW_TEXT`] has done that.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn to_its_end(_: &File) -> io::Result<()> {
    Ok(())
}

/// Makes a file durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Makes the data of a file durable, on Windows with all of it.
pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// What other programs have written to a file that we have open for reading can be synced by them alone.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn sync_others(_: &File) -> io::Result<()> {
    Ok(())
}
