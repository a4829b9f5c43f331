//! The end of a file that other programs append to: what was appended after a known offset, and how to copy it to another
//! file.

use crate::disk::lease::{Lease, Refused};
use crate::platform::FileExt;
use blake3::Hash;
use spans::source::ends_line;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};

/// How much is read at a time when searching for a line end.
const PIECE_BYTES: usize = 1024 * 1024;

/// How much is appended in one piece while other programs may be writing. A longer line stays where it is until its
/// program has closed the file.
const LINES_BYTES_MAX: usize = 16 * PIECE_BYTES;

/// What a look at a file that is being drained has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainState {
    /// No program has it open for writing, and everything appended to it was copied.
    Empty,
    /// A program may be writing to it; all complete lines were copied.
    Busy,
    /// It has lines that must not go to the end of the new file, because other programs have appended there since.
    Late,
    /// It was truncated or rewritten.
    Rewritten,
}

/// What was appended to a file after a known offset.
pub(crate) enum Appended<'f> {
    /// Everything up to this offset. No program has the file open for writing as long as the lease is held.
    All(u64, Lease<'f>),
    /// Complete lines up to this offset. A program may still be writing.
    Lines(u64),
    /// The bytes before the known offset have changed.
    Rewritten,
}

/// Hash of the last bytes of a text.
pub(crate) fn end_hash(end: &[u8]) -> Hash {
    blake3::hash(end)
}

/// Up to which offset a file was read or copied, and the bytes right before that. A program that rewrites a file in place
/// changes those bytes too, so comparing them again shows it.
pub(crate) struct KnownEnd {
    at: Cell<u64>,
    end: RefCell<Vec<u8>>,
}

/// How many bytes before the offset are compared.
pub(crate) const END_BYTES: u64 = 4096;

impl KnownEnd {
    /// `end` holds the last bytes before `at`.
    pub(crate) fn new(at: u64, end: &[u8]) -> Self {
        Self { at: Cell::new(at), end: RefCell::new(end.to_vec()) }
    }

    /// Reads the end of what a file has before `at`.
    pub(crate) fn read(file: &File, at: u64) -> io::Result<Self> {
        let length = at.min(END_BYTES);
        Ok(Self::new(at, &read(file, at - length, length as usize)?))
    }

    /// The offset.
    pub(crate) fn at(&self) -> u64 {
        self.at.get()
    }

    /// The bytes right before the offset.
    pub(crate) fn end(&self) -> Vec<u8> {
        self.end.borrow().clone()
    }

    /// Whether the file still has the same bytes right before the offset.
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

    /// What was appended after the offset: all of it if no program has the file open for writing, else the complete lines.
    pub(crate) fn came<'f>(&self, from: &'f File) -> io::Result<Appended<'f>> {
        if !self.holds(from)? {
            return Ok(Appended::Rewritten);
        }
        match Lease::read(from) {
            // It may have been rewritten just before we got the lease.
            Ok(_) if !self.holds(from)? => Ok(Appended::Rewritten),
            Ok(lease) => Ok(Appended::All(from.metadata()?.len(), lease)),
            Err(Refused::Busy | Refused::Unavailable) => self.lines(from),
            Err(Refused::Failed(cause)) => Err(cause),
        }
    }

    fn lines(&self, from: &File) -> io::Result<Appended<'static>> {
        let end = from.metadata()?.len();
        if end < self.at() {
            return Ok(Appended::Rewritten);
        }
        let length = (end - self.at()).min(LINES_BYTES_MAX as u64) as usize;
        let bytes = read(from, self.at(), length)?;
        let lines = memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1);
        Ok(Appended::Lines(self.at() + lines as u64))
    }

    /// Copies the bytes between the offset and `end` to another file, which is open for appending. Unless they are too
    /// many, it does so with one write, so that no other program's line ends up in the middle of one.
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

/// Whether the first `bytes` of a file end with a whole line.
pub(crate) fn ends_line_at(file: &File, bytes: u64) -> io::Result<bool> {
    Ok(ends_line(&read(file, bytes.saturating_sub(1), bytes.min(1) as usize)?))
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
