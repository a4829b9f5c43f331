//! The file of a run: its bytes, and how each of them is checked when it is read. What they mean is in [`super::record`].
//!
//! ```text
//! at 0       magic with the format's version (8 bytes), where the index begins (8) and ends (8), BLAKE3 hash of the
//!            index (32), checksum of these (8)
//! at 512     ledger slot: sequence number, known, upto, at, current (8 bytes each), checksum of these and the run (8)
//! at 1024    ledger slot
//! at 1536    a zstd frame for each text, then one for the other bytes that the run removed, then one for the rows of a store that
//!            it changed, then one for the index
//! ```
//!
//! Numbers are little-endian; a checksum is the first 8 bytes of a BLAKE3 hash. The index holds the hash of every other
//! frame. After the file got its name only the ledger is written to, and texts that are forgotten are overwritten with zeros.

use super::ledger::{BLOCK_BYTES, block, read_block};
use super::record::{Record, StoredFrame};
use crate::platform::FileExt;
use blake3::{Hash, Hasher};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use transcript::{Fault, Span};
use zstd::bulk::Compressor;
use zstd::stream::{read, write};
use zstd::zstd_safe::compress_bound;

/// Compression level. A fix waits for it: higher levels take longer, and lower ones save no time that can be measured
/// (level −1 keeps a fifth more bytes of real transcripts).
const LEVEL: i32 = 1;

/// First bytes of the file of a run, without the version.
const MAGIC: [u8; 7] = *b"tailorv";

/// Version of the format, the only one that is written and read.
const VERSION: u8 = b'1';

/// Where the frames begin.
const FRAMES: u64 = 1536;

/// Longest index that is read.
const INDEX_BYTES_MAX: u64 = 1 << 30;

/// The header of a file with this index.
fn header(index: &StoredFrame) -> [u8; BLOCK_BYTES] {
    let (start, end) = index.frame;
    let magic = [&MAGIC[..], &[VERSION]].concat();
    block("", &[&magic, &start.to_le_bytes()[..], &end.to_le_bytes(), index.hash.as_bytes()].concat())
}

/// Why originals could not be kept.
#[derive(Debug)]
pub(super) enum KeepFailure {
    /// The vault could not be written.
    Disk(io::Error),
    /// The original could not be read.
    Source(Fault),
}

impl From<io::Error> for KeepFailure {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<Fault> for KeepFailure {
    fn from(fault: Fault) -> Self {
        Self::Source(fault)
    }
}

pub(super) fn broken(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Reads the index of the file of a run.
pub(super) fn read_index(file: &Arc<File>, run: &str) -> io::Result<Record> {
    let found = read_block(file, 0).map_err(|cause| match cause.kind() {
        ErrorKind::UnexpectedEof => broken("its beginning is missing"),
        _ => cause,
    })?;
    let numbers = |at: usize| found[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let hash = found[24..].first_chunk::<32>().ok_or_else(|| broken("its beginning is missing"))?;
    let index = StoredFrame { hash: Hash::from_bytes(*hash), frame: (numbers(8), numbers(16)) };
    if found.starts_with(&MAGIC) && found[MAGIC.len()] != VERSION {
        let why = "its format is not known to this version of Tailor";
        return Err(io::Error::new(ErrorKind::Unsupported, why));
    }
    if found != header(&index) {
        return Err(broken("its beginning is damaged"));
    }
    let mut json = Vec::new();
    OriginalText::open(file, &index)?.take(INDEX_BYTES_MAX).read_to_end(&mut json)?;
    let found: Record = serde_json::from_slice(&json).map_err(|error| broken(&error.to_string()))?;
    if found.run != run {
        return Err(broken("it is about another run"));
    }
    if found.is_sound(Span::new(FRAMES, index.frame.0)) {
        Ok(found)
    } else {
        Err(broken("its index contradicts itself"))
    }
}

/// The file of a run that is being written.
pub(super) struct RunWriter {
    file: Arc<File>,
    at: u64,
    pub(super) texts: Vec<StoredFrame>,
    hashes: HashSet<Hash>,
}

impl RunWriter {
    pub(super) fn begin(file: &Arc<File>) -> io::Result<Self> {
        let mut out = &**file;
        out.write_all(&[0; FRAMES as usize])?;
        Ok(Self { file: file.clone(), at: FRAMES, texts: Vec::new(), hashes: HashSet::new() })
    }

    /// Whether a text is in the file already.
    pub(super) fn has(&self, hash: &Hash) -> bool {
        self.hashes.contains(hash)
    }

    /// Adds a text that is compressed already, unless it is there.
    pub(super) fn put(&mut self, hash: Hash, frame: &[u8]) -> io::Result<()> {
        if self.hashes.insert(hash) {
            (&*self.file).write_all(frame)?;
            let end = self.at + frame.len() as u64;
            self.texts.push(StoredFrame { hash, frame: (self.at, end) });
            self.at = end;
        }
        Ok(())
    }

    /// Adds the text that `fill` writes, unless it is there, and gives its hash.
    pub(super) fn put_long(
        &mut self,
        bytes: u64,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), KeepFailure>,
    ) -> Result<Hash, KeepFailure> {
        let start = self.at;
        let stored = self.stream(Some(bytes), fill)?;
        if self.hashes.insert(stored.hash) {
            self.texts.push(stored);
        } else {
            (&*self.file).seek(SeekFrom::Start(start))?;
            self.at = start;
        }
        Ok(stored.hash)
    }

    /// Adds the bytes that `fill` writes as a frame.
    pub(super) fn stream(
        &mut self,
        bytes: Option<u64>,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), KeepFailure>,
    ) -> Result<StoredFrame, KeepFailure> {
        let mut encoder = write::Encoder::new(&*self.file, LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(bytes)?;
        let mut out = Hashing { encoder, hasher: Hasher::new() };
        fill(&mut out)?;
        let end = out.encoder.finish()?.stream_position()?;
        let start = std::mem::replace(&mut self.at, end);
        Ok(StoredFrame { hash: out.hasher.finalize(), frame: (start, self.at) })
    }

    /// Writes the index and the header.
    pub(super) fn finish(mut self, record: &mut Record) -> Result<(), KeepFailure> {
        record.texts = std::mem::take(&mut self.texts);
        let json = serde_json::to_vec(record).map_err(io::Error::from)?;
        let stored = self.stream(Some(json.len() as u64), |out| Ok(out.write_all(&json)?))?;
        // A longer text that was here before may have left bytes after this one.
        self.file.set_len(self.at)?;
        Ok(self.file.write_all_at(&header(&stored), 0)?)
    }
}

/// Compresses what is written to it, and hashes it.
struct Hashing<'f> {
    encoder: write::Encoder<'static, &'f File>,
    hasher: Hasher,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.encoder.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

/// Compresses texts in memory that is used again.
pub(super) struct Packer {
    compressor: Compressor<'static>,
    frame: Vec<u8>,
}

impl Packer {
    pub(super) fn new() -> io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Self { compressor, frame: Vec::new() })
    }

    /// The frame of a text.
    pub(super) fn pack(&mut self, text: &[u8]) -> io::Result<&[u8]> {
        self.frame.clear();
        self.frame.reserve(compress_bound(text.len()));
        self.compressor.compress_to_buffer(text, &mut self.frame)?;
        Ok(&self.frame)
    }
}

/// An original from the vault, as it was written. Reading to the end fails if it is not what was put there.
pub struct OriginalText {
    decoder: read::Decoder<'static, BufReader<Section<Arc<File>>>>,
    hasher: Hasher,
    hash: Hash,
}

/// Whether somebody had a text forgotten: no frame begins with a zero.
pub(super) fn is_wiped(file: &File, stored: &StoredFrame) -> io::Result<bool> {
    let (at, end) = stored.frame;
    let mut first = [1];
    file.read_at(&mut first, at)?;
    Ok(at < end && first == [0])
}

impl OriginalText {
    /// Its id in full.
    pub fn id(&self) -> String {
        self.hash.to_string()
    }

    pub(super) fn open(file: &Arc<File>, stored: &StoredFrame) -> io::Result<Self> {
        if is_wiped(file, stored)? {
            return Err(io::Error::other("tailor forget removed it"));
        }
        let decoder = read::Decoder::new(Section::new(file.clone(), stored.frame))?;
        Ok(Self { decoder, hasher: Hasher::new(), hash: stored.hash })
    }

    /// Reads the rest of it, to see whether all of it is what was put there.
    pub(super) fn check(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }
}

impl Read for OriginalText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.decoder.read(buffer)?;
        self.hasher.update(&buffer[..got]);
        if got == 0 && !buffer.is_empty() && self.hasher.finalize() != self.hash {
            return Err(broken("it is not what was put there"));
        }
        Ok(got)
    }
}

/// Part of a file, read without moving the file's own position.
pub(super) struct Section<F> {
    file: F,
    at: u64,
    end: u64,
}

impl<F> Section<F> {
    pub(super) fn new(file: F, (at, end): (u64, u64)) -> Self {
        Self { file, at, end }
    }
}

impl<F: Borrow<File>> Read for Section<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = self.end.saturating_sub(self.at).min(buffer.len() as u64) as usize;
        let got = self.file.borrow().read_at(&mut buffer[..wanted], self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}
