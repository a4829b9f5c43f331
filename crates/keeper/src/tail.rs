//! The end of a file that others append to: what came after a known place, and how it gets into another file.

use crate::lease::{Lease, Refused};
use crate::platform::FileExt;
use blake3::Hash;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};

/// How much is copied at a time.
const PIECE_BYTES: usize = 1024 * 1024;

/// How much is appended at once while others may be writing. A longer line stays where it is until its program is
/// done.
const LINES_BYTES_MAX: usize = 16 * PIECE_BYTES;

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

/// What there is to be brought over.
pub(crate) enum Came<'f> {
    /// All up to this place; nobody has the file open for writing as long as the lease is held.
    All(u64, Lease<'f>),
    /// The complete lines up to this place. Somebody may be writing.
    Lines(u64),
    /// What was known is not there any more.
    Rewritten,
}

/// Tells the end of one text from that of another.
pub(crate) fn end_hash(end: &[u8]) -> Hash {
    blake3::hash(end)
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

    /// What came after the known place: all of it when nobody has the file open for writing, else the complete lines.
    pub(crate) fn came<'f>(&self, from: &'f File) -> io::Result<Came<'f>> {
        if !self.holds(from)? {
            return Ok(Came::Rewritten);
        }
        match Lease::read(from) {
            // It may have been rewritten just before the lease.
            Ok(_) if !self.holds(from)? => Ok(Came::Rewritten),
            Ok(lease) => Ok(Came::All(from.metadata()?.len(), lease)),
            Err(Refused::Busy | Refused::Unavailable) => self.lines(from),
            Err(Refused::Failed(cause)) => Err(cause),
        }
    }

    fn lines(&self, from: &File) -> io::Result<Came<'static>> {
        let end = from.metadata()?.len();
        if end < self.at() {
            return Ok(Came::Rewritten);
        }
        let length = (end - self.at()).min(LINES_BYTES_MAX as u64) as usize;
        let bytes = read(from, self.at(), length)?;
        let lines = memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1);
        Ok(Came::Lines(self.at() + lines as u64))
    }

    /// Appends what stands between the known place and `end` to another file, which is open for appending. In one piece
    /// if it is not too long, so that no other program's line comes into the middle of one.
    pub(crate) fn copy(&self, from: &File, mut to: &File, end: u64) -> io::Result<()> {
        while self.at() < end {
            let piece = read(from, self.at(), (end - self.at()).min(LINES_BYTES_MAX as u64) as usize)?;
            to.write_all(&piece)?;
            self.advance(&piece);
        }
        Ok(())
    }
}

fn read(from: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// Whether a line ends at `end`, or nothing stands before it.
pub(crate) fn ends_line(file: &File, end: u64) -> io::Result<bool> {
    Ok(end == 0 || read(file, end - 1, 1)? == b"\n")
}

/// Where the last complete line before `end` ends.
pub(crate) fn lines_end(file: &File, end: u64) -> io::Result<u64> {
    let mut at = end;
    while at > 0 {
        let start = at.saturating_sub(PIECE_BYTES as u64);
        let piece = read(file, start, (at - start) as usize)?;
        if let Some(found) = memchr::memrchr(b'\n', &piece) {
            return Ok(start + found as u64 + 1);
        }
        at = start;
    }
    Ok(0)
}
