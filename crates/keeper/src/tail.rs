//! The end of a file that others append to: what came behind a known place, and carrying it to another file.

use crate::lease::{Lease, Refused};
use rustix::fs::{Mode, OFlags};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much is copied at a time.
const PIECE_BYTES: usize = 1024 * 1024;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// So much came.
    Bytes(u64),
    /// The file is shorter than it was.
    Shrunk,
}

/// How a file stands that is being drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody has it open for writing, and all that came is over.
    Empty,
    /// Somebody may be writing; all complete lines that came are over.
    Busy,
    /// It was emptied or written anew.
    Rewritten,
}

/// Appends all that stands behind `known` to another file, a torn last line as well.
pub(crate) fn copy(from: &File, known: &Cell<u64>, mut to: &File) -> io::Result<Copied> {
    let end = from.metadata()?.len();
    if end < known.get() {
        return Ok(Copied::Shrunk);
    }
    let bytes = end - known.get();
    while known.get() < end {
        let piece = read(from, known.get(), (end - known.get()).min(PIECE_BYTES as u64) as usize)?;
        to.write_all(&piece)?;
        known.set(known.get() + piece.len() as u64);
    }
    Ok(Copied::Bytes(bytes))
}

/// Brings over what came behind `known`: all of it when nobody has the file open for writing, else the complete
/// lines. `to` is open for appending.
pub(crate) fn drain(from: &File, known: &Cell<u64>, to: &File) -> io::Result<State> {
    match Lease::read(from) {
        Ok(_lease) => Ok(match copy(from, known, to)? {
            Copied::Bytes(_) => State::Empty,
            Copied::Shrunk => State::Rewritten,
        }),
        Err(Refused::Busy | Refused::Unavailable) => copy_lines(from, known, to),
        Err(Refused::Failed(cause)) => Err(cause),
    }
}

/// Appends the complete lines behind `known`, so that no other program's line comes into the middle of one.
fn copy_lines(from: &File, known: &Cell<u64>, mut to: &File) -> io::Result<State> {
    let end = from.metadata()?.len();
    if end < known.get() {
        return Ok(State::Rewritten);
    }
    let bytes = read(from, known.get(), (end - known.get()) as usize)?;
    if let Some(last) = memchr::memrchr(b'\n', &bytes) {
        // One write: the kernel puts it at the end in one piece.
        to.write_all(&bytes[..=last])?;
        known.set(known.get() + last as u64 + 1);
    }
    Ok(State::Busy)
}

fn read(from: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// Opens a file to append to it as the agents do; never makes one.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}
