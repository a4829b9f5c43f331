//! The file of a run: its bytes, and how each of them is checked when it is read. What they mean is in [`super::record`].
//!
//! ```text
//! at 0       magic with the format's version (8 bytes), where the index begins (8) and ends (8), BLAKE3 hash of the
//!            index (32), checksum of these (8)
//! at 512     ledger slot: sequence number, known, upto, at, current (8 bytes each), checksum of these and the run (8)
//! at 1024    ledger slot
//! at 1536    a zstd frame for each text, then one for the other bytes that the run removed, then one for the index
//! ```
//!
//! Numbers are little-endian; a checksum is the first 8 bytes of a BLAKE3 hash. The index holds the hash of every other
//! frame. Only the ledger is ever written to after the file got its name.

use super::Failure;
use super::record::{Record, Stored};
use blake3::{Hash, Hasher};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use transcript::Span;
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

/// Length of the header, and of a ledger slot.
const BLOCK_BYTES: usize = 64;

/// Where the ledger slots are. Each has a disk sector to itself, so that a torn write damages one of them.
const SLOTS: [u64; 2] = [512, 1024];

/// Where the frames begin.
const FRAMES: u64 = 1536;

/// Longest index that is read.
const INDEX_BYTES_MAX: u64 = 1 << 30;

/// How far the old file is accounted for in the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// How many bytes of the old file are in the new one.
    pub(crate) known: u64,
    /// Where an append that has begun ends in the old file; equal to `known` if none has.
    pub(crate) upto: u64,
    /// Where in the file at the path the next late bytes go.
    pub(crate) at: u64,
    /// Inode of the file that `at` is about.
    pub(crate) current: u64,
}

impl Ledger {
    /// The old file is gone. No file has the inode 0.
    pub(crate) const CLOSED: Self = Self { known: 0, upto: 0, at: 0, current: 0 };

    /// The bytes of a slot.
    fn encode(&self, sequence: u64, run: &str) -> [u8; BLOCK_BYTES] {
        block(run, &[sequence, self.known, self.upto, self.at, self.current].map(u64::to_le_bytes).concat())
    }

    /// The sequence number and the ledger in a slot; `None` if it is not whole, or was never written.
    fn decode(slot: [u8; BLOCK_BYTES], run: &str) -> Option<(u64, Self)> {
        let (numbers, _) = slot.as_chunks::<8>();
        let [sequence, known, upto, at, current] = *numbers.first_chunk::<5>()?;
        let [sequence, known, upto, at, current] =
            [sequence, known, upto, at, current].map(u64::from_le_bytes);
        let ledger = Self { known, upto, at, current };
        (slot == ledger.encode(sequence, run)).then_some((sequence, ledger))
    }
}

/// Some bytes and a checksum of them and of what they belong to, filled up with zeros.
fn block(of: &str, bytes: &[u8]) -> [u8; BLOCK_BYTES] {
    let checksum = Hasher::new().update(of.as_bytes()).update(bytes).finalize();
    let mut block = [0; BLOCK_BYTES];
    let whole = bytes.iter().chain(&checksum.as_bytes()[..8]);
    block.iter_mut().zip(whole).for_each(|(to, byte)| *to = *byte);
    block
}

/// The header of a file with this index.
fn header(index: &Stored) -> [u8; BLOCK_BYTES] {
    let (start, end) = index.frame;
    let magic = [&MAGIC[..], &[VERSION]].concat();
    block("", &[&magic, &start.to_le_bytes()[..], &end.to_le_bytes(), index.hash.as_bytes()].concat())
}

/// Writes a ledger over the older one of a file. Sequence numbers begin at 1.
pub(super) fn note(file: &File, run: &str, sequence: u64, ledger: &Ledger) -> io::Result<()> {
    file.write_all_at(&ledger.encode(sequence, run), SLOTS[(sequence % 2) as usize])
}

/// The newest whole ledger of a file and its sequence number.
pub(super) fn ledger(file: &File, run: &str) -> io::Result<Option<(u64, Ledger)>> {
    let [one, other] = SLOTS.map(|slot| read_block(file, slot));
    let whole = [one?, other?].into_iter().filter_map(|slot| Ledger::decode(slot, run));
    Ok(whole.max_by_key(|(sequence, _)| *sequence))
}

fn read_block(file: &File, at: u64) -> io::Result<[u8; BLOCK_BYTES]> {
    let mut block = [0; BLOCK_BYTES];
    file.read_exact_at(&mut block, at)?;
    Ok(block)
}

pub(super) fn broken(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Reads the index of the file of a run.
pub(super) fn read_index(file: &Arc<File>, run: &str) -> io::Result<Record> {
    let found = read_block(file, 0).map_err(|_| broken("its beginning is missing"))?;
    let numbers = |at: usize| found[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let hash = found[24..].first_chunk::<32>().ok_or_else(|| broken("its beginning is missing"))?;
    let index = Stored { hash: Hash::from_bytes(*hash), frame: (numbers(8), numbers(16)) };
    if found.starts_with(&MAGIC) && found[MAGIC.len()] != VERSION {
        let why = "its format is not known to this version of Tailor";
        return Err(io::Error::new(ErrorKind::Unsupported, why));
    }
    if found != header(&index) {
        return Err(broken("its beginning is damaged"));
    }
    let mut json = Vec::new();
    Text::open(file, &index)?.take(INDEX_BYTES_MAX).read_to_end(&mut json)?;
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
pub(super) struct Writer {
    file: Arc<File>,
    at: u64,
    pub(super) texts: Vec<Stored>,
    hashes: HashSet<Hash>,
}

impl Writer {
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
            self.texts.push(Stored { hash, frame: (self.at, end) });
            self.at = end;
        }
        Ok(())
    }

    /// Adds the text that `fill` writes, unless it is there, and gives its hash.
    pub(super) fn put_long(
        &mut self,
        bytes: u64,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<Hash, Failure> {
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
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<Stored, Failure> {
        let mut encoder = write::Encoder::new(&*self.file, LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(bytes)?;
        let mut out = Hashing { encoder, hasher: Hasher::new() };
        fill(&mut out)?;
        let end = out.encoder.finish()?.stream_position()?;
        let start = std::mem::replace(&mut self.at, end);
        Ok(Stored { hash: out.hasher.finalize(), frame: (start, self.at) })
    }

    /// Writes the index and the header.
    pub(super) fn finish(mut self, record: &mut Record) -> Result<(), Failure> {
        record.texts = std::mem::take(&mut self.texts);
        let json = serde_json::to_vec(record).map_err(io::Error::from)?;
        let stored = self.stream(Some(json.len() as u64), |out| Ok(out.write_all(&json)?))?;
        // A long text that was there already may have left bytes behind this.
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
pub struct Text {
    decoder: read::Decoder<'static, BufReader<Section<Arc<File>>>>,
    hasher: Hasher,
    hash: Hash,
}

impl Text {
    pub(super) fn open(file: &Arc<File>, stored: &Stored) -> io::Result<Self> {
        let decoder = read::Decoder::new(Section::new(file.clone(), stored.frame))?;
        Ok(Self { decoder, hasher: Hasher::new(), hash: stored.hash })
    }

    /// Reads the rest of it, to see whether all of it is what was put there.
    pub(super) fn check(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }
}

impl Read for Text {
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
