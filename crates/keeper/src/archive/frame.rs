//! One entry of a file of the archive: a header, which zstd skips, and a frame of zstd. So `zstd -dc FILE` prints what is in it.
//!
//! ```text
//! 0x184d2a5e, 48     a skippable frame of 48 bytes (4 bytes each)
//! "tailor1" and c    a chunk, or g: a state of a generation, as a line of JSON (8)
//! BLAKE3             hash of what is in the frame (32)
//! packed, plain      how long the frame is, and what is in it (4 each)
//! ```
//!
//! Numbers are little-endian.

use crate::platform::FileExt;
use blake3::Hash;
use std::fs::File;
use std::io::{self, ErrorKind};

/// How long a header is.
pub(super) const HEADER_BYTES: usize = 56;
/// How each header begins.
const BEGINS: [u8; 15] = *b"\x5e\x2a\x4d\x18\x30\0\0\0tailor1";
/// How much is searched at a time for the next header, behind damage.
const SEARCHED_BYTES: usize = 1 << 20;
/// No frame holds more.
const PLAIN_BYTES_MAX: u32 = 256 << 20;

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Chunk,
    Generation,
}

/// A frame, and where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) hash: Hash,
    pub(super) at: u64,
    pub(super) packed: u32,
    pub(super) plain: u32,
}

impl Frame {
    pub(super) fn header(&self) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Chunk => b'c',
            Kind::Generation => b'g',
        };
        let (packed, plain) = (self.packed.to_le_bytes(), self.plain.to_le_bytes());
        [&BEGINS[..], &[kind], self.hash.as_bytes(), &packed, &plain].concat()
    }

    fn from_header(header: &[u8; HEADER_BYTES], at: u64) -> Option<Self> {
        let kind = match (header.starts_with(&BEGINS), header[BEGINS.len()]) {
            (true, b'c') => Kind::Chunk,
            (true, b'g') => Kind::Generation,
            _ => return None,
        };
        let number =
            |at: usize| header[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let hash = Hash::from_bytes(*header[16..].first_chunk::<32>()?);
        let frame = Self { kind, hash, at, packed: number(48), plain: number(52) };
        (frame.plain <= PLAIN_BYTES_MAX).then_some(frame)
    }

    /// Where the next one begins.
    pub(super) fn end(&self) -> u64 {
        self.at + HEADER_BYTES as u64 + u64::from(self.packed)
    }

    /// The frame with its header, as it lies in the file.
    pub(super) fn whole(&self, file: &File) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (self.end() - self.at) as usize];
        file.read_exact_at(&mut bytes, self.at)?;
        Ok(bytes)
    }

    /// What is in it.
    pub(super) fn read(&self, file: &File) -> io::Result<Vec<u8>> {
        let packed = self.whole(file)?;
        let plain = zstd::bulk::decompress(&packed[HEADER_BYTES..], self.plain as usize).ok();
        let own = plain.filter(|plain| blake3::hash(plain) == self.hash);
        own.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it is not what was put there"))
    }
}

/// The frames of a file, as their headers say.
#[derive(Default)]
pub(super) struct Frames {
    pub(super) all: Vec<Frame>,
    /// How many bytes between them are no frames. A frame that was cut off at the end counts.
    pub(super) damaged_bytes: u64,
}

/// Finds the frames of a file, also behind damage.
pub(super) fn frames(file: &File) -> io::Result<Frames> {
    let (mut found, mut at, end) = (Frames::default(), 0, file.metadata()?.len());
    let mut header = [0; HEADER_BYTES];
    while at < end {
        let is_whole = at + HEADER_BYTES as u64 <= end;
        if is_whole {
            file.read_exact_at(&mut header, at)?;
        }
        let frame = Frame::from_header(&header, at).filter(|frame| is_whole && frame.end() <= end);
        if let Some(frame) = frame {
            at = frame.end();
            found.all.push(frame);
        } else {
            let next = next_header(file, at + 1, end)?;
            found.damaged_bytes += next - at;
            at = next;
        }
    }
    Ok(found)
}

/// Where the next header may begin, or the end.
fn next_header(file: &File, from: u64, end: u64) -> io::Result<u64> {
    let mut at = from;
    while at < end {
        let mut bytes = vec![0; (end - at).min(SEARCHED_BYTES as u64) as usize];
        file.read_exact_at(&mut bytes, at)?;
        if let Some(found) = memchr::memmem::find(&bytes, &BEGINS) {
            return Ok(at + found as u64);
        }
        if bytes.len() < SEARCHED_BYTES {
            return Ok(end);
        }
        at += (SEARCHED_BYTES - BEGINS.len()) as u64;
    }
    Ok(end)
}
