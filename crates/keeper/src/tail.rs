//! The end of a file that others append to: what came behind a known place, and carrying it to another file.

use crate::lease::{Lease, Refused};
use rustix::fs::{Mode, OFlags};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much is copied at a time.
const PIECE_BYTES: usize = 1024 * 1024;

/// How much is appended at once while others may be writing. A longer line stays where it is until its program is
/// done.
const LINES_BYTES_MAX: usize = 16 * PIECE_BYTES;

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
    /// Lines came that cannot go to the end of the new file any more, because others have appended to that.
    Late,
    /// It was emptied or written anew.
    Rewritten,
}

/// Up to where a file is known, and what stands right before that place: who rewrites a file in place rewrites its
/// end.
pub(crate) struct Known {
    at: Cell<u64>,
    end: RefCell<Vec<u8>>,
}

/// How many bytes before the place are looked at.
pub(crate) const END_BYTES: u64 = 4096;

impl Known {
    /// `end` are the last bytes before `at`.
    pub(crate) fn new(at: u64, end: &[u8]) -> Self {
        Self { at: Cell::new(at), end: RefCell::new(end.to_vec()) }
    }

    /// A file is known up to this place.
    pub(crate) fn of(file: &File, at: u64) -> io::Result<Self> {
        let length = at.min(END_BYTES);
        Ok(Self::new(at, &read(file, at - length, length as usize)?))
    }

    /// The place: an offset in bytes.
    pub(crate) fn at(&self) -> u64 {
        self.at.get()
    }

    /// What stands right before the place.
    pub(crate) fn end(&self) -> Vec<u8> {
        self.end.borrow().clone()
    }

    /// Whether the file still has at its known end what it had.
    pub(crate) fn holds(&self, file: &File) -> io::Result<bool> {
        let end = self.end.borrow();
        if file.metadata()?.len() < self.at() {
            return Ok(false);
        }
        Ok(read(file, self.at() - end.len() as u64, end.len())? == *end)
    }

    fn advance(&self, bytes: &[u8]) {
        let mut end = self.end.borrow_mut();
        end.extend_from_slice(bytes);
        let surplus = end.len().saturating_sub(END_BYTES as usize);
        end.drain(..surplus);
        self.at.set(self.at() + bytes.len() as u64);
    }

    /// Appends all that stands behind to another file, a torn last line as well.
    pub(crate) fn copy(&self, from: &File, mut to: &File) -> io::Result<Copied> {
        let end = from.metadata()?.len();
        if end < self.at() {
            return Ok(Copied::Shrunk);
        }
        let bytes = end - self.at();
        while self.at() < end {
            let piece = read(from, self.at(), (end - self.at()).min(PIECE_BYTES as u64) as usize)?;
            to.write_all(&piece)?;
            self.advance(&piece);
        }
        Ok(Copied::Bytes(bytes))
    }

    /// Brings over what came behind: all of it when nobody has the file open for writing, else the complete lines.
    /// `to` is open for appending.
    pub(crate) fn drain(&self, from: &File, to: &File) -> io::Result<State> {
        if !self.holds(from)? {
            return Ok(State::Rewritten);
        }
        match Lease::read(from) {
            // It may have been rewritten just before the lease.
            Ok(_lease) if !self.holds(from)? => Ok(State::Rewritten),
            Ok(_lease) => self.copy(from, to).map(|_| State::Empty),
            Err(Refused::Busy | Refused::Unavailable) => self.copy_lines(from, to),
            Err(Refused::Failed(cause)) => Err(cause),
        }
    }

    /// Appends the complete lines behind, so that no other program's line comes into the middle of one.
    fn copy_lines(&self, from: &File, mut to: &File) -> io::Result<State> {
        let end = from.metadata()?.len();
        if end < self.at() {
            return Ok(State::Rewritten);
        }
        let length = (end - self.at()).min(LINES_BYTES_MAX as u64) as usize;
        let bytes = read(from, self.at(), length)?;
        if let Some(last) = memchr::memrchr(b'\n', &bytes) {
            // One write: the kernel puts it at the end in one piece.
            to.write_all(&bytes[..=last])?;
            self.advance(&bytes[..=last]);
        }
        Ok(State::Busy)
    }
}

fn read(from: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// Whether a file ends with a line break: nobody has written a part of a line only.
pub(crate) fn ends_line(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    Ok(length == 0 || read(file, length - 1, 1)? == b"\n")
}

/// Opens a file to append to it as the agents do; never makes one.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}
