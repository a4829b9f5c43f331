//! How files are made, filled and made to last.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use transcript::Span;

/// How the file of a new text is opened before it is [`append`](to_its_end)ed to.
pub(crate) const NEW_TEXT: OFlags = OFlags::RDWR;

/// Makes a file that nobody else may read; not through a link.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Opens a file for reading: never through a link, and without waiting for the other end of a pipe.
pub(crate) fn open_note(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

/// From now on every write goes to the end of the file, wherever that is then.
pub(crate) fn to_its_end(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::APPEND)?)
}

/// Makes what others have written to a file last, which is open for reading.
pub(crate) fn sync_others(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Copies bytes of one file to where another one stands; gives how many there were. The kernel does it, without our
/// memory.
pub(crate) fn copy_span(mut from: &File, span: Span, mut out: &File) -> io::Result<u64> {
    from.seek(SeekFrom::Start(span.start))?;
    io::copy(&mut from.take(span.len()), &mut out)
}
