//! How files are created, written and synced.

use super::is_lacking;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Flags to open the new file with. It is switched to [append mode](to_its_end) once the new text is written.
pub(crate) const NEW_TEXT: OFlags = OFlags::RDWR;

/// Creates a file that only its owner can read. Never follows a link.
///
/// # Errors
///
/// Those of the system.
pub fn create_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Opens another program's lock file for reading. Never follows a link, and does not wait for the other end of a pipe.
pub(crate) fn open_note(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

/// Opens a lock of another program, which may be a link. Does not wait for the other end of a pipe.
pub(crate) fn open_lock(path: &Path, writes: bool) -> io::Result<File> {
    File::options().read(true).write(writes).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// Switches a file to append mode.
pub(crate) fn to_its_end(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::APPEND)?)
}

/// Syncs what other programs have written to a file that we have open for reading.
pub(crate) fn sync_others(file: &File) -> io::Result<()> {
    sync_data(file)
}

/// Makes a file durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    or_plainly(file, file.sync_all())
}

/// Makes the data of a file durable, without times and other metadata that reading it back does not need.
pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    or_plainly(file, file.sync_data())
}

/// On macOS the standard library asks the disk itself to write (`F_FULLFSYNC`). Network file systems, such as SMB, do not know
/// that, and do with `fsync` what they can.
fn or_plainly(file: &File, done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(cause) if Errno::from_io_error(&cause).is_some_and(is_lacking) => Ok(rustix::fs::fsync(file)?),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_cannot_be_asked_itself_is_synced_plainly() {
        let file = tempfile::tempfile().unwrap();
        for errno in [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS] {
            assert!(or_plainly(&file, Err(errno.into())).is_ok(), "{errno}");
        }
        assert!(or_plainly(&file, Err(Errno::IO.into())).is_err());
    }
}
