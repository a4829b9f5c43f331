//! How a text becomes parts while it grows: whole chunks, and behind them the pieces in which the last one came so far.

use super::chunks::{Chunks, Part, Rack};
use super::cut::Cutter;
use crate::base::interruption::stop_if_told;
use crate::disk::appends::{END_BYTES, KnownEnd};
use crate::disk::new_text::read_up_to;
use crate::platform::holes;
use crate::platform::identity::{FileId, Stamp};
use blake3::Hasher;
use std::fs::File;
use std::io;

/// How much is read at a time.
const READ_BYTES: u64 = 1 << 20;

/// A text that was read up to some place.
pub(super) struct Growth {
    pub(super) file: FileId,
    pub(super) bytes: u64,
    pub(super) parts: Vec<Part>,
    /// How many parts are whole chunks.
    whole: usize,
    /// How many bytes of the parts have stayed as they were since the last state was noted.
    pub(super) noted: u64,
    /// When it last grew, in milliseconds since 1970.
    pub(super) grew: i64,
    /// Whether all of it was compared since then, and when that was done last.
    pub(super) is_verified: bool,
    pub(super) looked: i64,
    /// Whether it has no pieces that are to be joined.
    pub(super) is_settled: bool,
    /// Bytes that are in no part yet.
    pending: Vec<u8>,
    cutter: Cutter,
    hasher: Hasher,
    end: Vec<u8>,
}

impl Growth {
    pub(super) fn new(file: FileId) -> Self {
        Self {
            file,
            bytes: 0,
            parts: Vec::new(),
            whole: 0,
            noted: 0,
            grew: 0,
            is_verified: true,
            looked: 0,
            is_settled: true,
            pending: Vec::new(),
            cutter: Cutter::default(),
            hasher: Hasher::new(),
            end: Vec::new(),
        }
    }

    pub(super) fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    /// Whether a file that has become longer still has what was read of it, as far as its end shows.
    pub(super) fn goes_on_in(&self, file: &File, stamp: &Stamp) -> io::Result<bool> {
        let is_longer = stamp.file == self.file && stamp.bytes > self.bytes;
        Ok(is_longer && KnownEnd::new(self.bytes, &self.end).holds(file)?)
    }

    /// Reads on up to an offset, or the end of the file if that comes first. What is short is read also when this process is to
    /// end.
    pub(super) fn read(&mut self, file: &File, to: u64, chunks: &mut Chunks) -> io::Result<()> {
        let mut buffer = vec![0; (to.saturating_sub(self.bytes)).min(READ_BYTES) as usize];
        while self.bytes < to {
            let room = (to - self.bytes).min(READ_BYTES) as usize;
            let got = read_up_to(file, &mut buffer[..room], self.bytes)?;
            if got == 0 {
                break;
            }
            self.take(&buffer[..got], chunks)?;
            if self.bytes < to {
                stop_if_told()?;
            }
        }
        Ok(())
    }

    pub(super) fn take(&mut self, mut bytes: &[u8], chunks: &mut Chunks) -> io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.end.extend_from_slice(&bytes[bytes.len().saturating_sub(END_BYTES as usize)..]);
        self.end.drain(..self.end.len().saturating_sub(END_BYTES as usize));
        while let Some(length) = self.cutter.cut(bytes) {
            self.pending.extend_from_slice(&bytes[..length]);
            self.join(chunks, Rack::Packs)?;
            self.whole = self.parts.len();
            bytes = &bytes[length..];
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// Makes one part of what is behind the last whole chunk.
    fn join(&mut self, chunks: &mut Chunks, rack: Rack) -> io::Result<()> {
        let mut last = Vec::new();
        for part in &self.parts[self.whole..] {
            last.extend(chunks.get(part)?);
        }
        last.append(&mut self.pending);
        self.parts.truncate(self.whole);
        self.noted = self.noted.min(self.parts.iter().map(|part| part.bytes).sum());
        if !last.is_empty() {
            self.parts.push(chunks.put(rack, &last)?);
        }
        Ok(())
    }

    /// Stores what is in no part yet as a piece.
    pub(super) fn pause(&mut self, chunks: &mut Chunks) -> io::Result<()> {
        if !self.pending.is_empty() {
            let piece = std::mem::take(&mut self.pending);
            self.parts.push(chunks.put(Rack::Recent, &piece)?);
        }
        Ok(())
    }

    /// Stores what is behind the last whole chunk as one that may stay.
    pub(super) fn rest(&mut self, chunks: &mut Chunks) -> io::Result<()> {
        self.join(chunks, Rack::Packs)
    }
}

/// Whether more than these bytes of a file's beginning are in holes, as far as the system tells.
pub(super) fn has_more_holes(file: &File, bytes: u64, holes_bytes_max: u64) -> bool {
    let (mut at, mut hole_bytes) = (0, 0);
    while bytes - at > holes_bytes_max - hole_bytes {
        let Some(hole) = holes::hole_from(file, at).map(|hole| hole.clamp(at, bytes)) else { return false };
        let Some(data) = holes::data_from(file, hole) else { return false };
        at = data.clamp(hole, bytes);
        hole_bytes += at - hole;
        if hole_bytes > holes_bytes_max {
            return true;
        }
    }
    false
}
