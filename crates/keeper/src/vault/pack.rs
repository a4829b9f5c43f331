//! A pack: texts that were kept together, in one file. What a text means and where it stood is not known here.
//!
//! ```text
//! for each text    a zstd frame with a checksum
//! for each text    BLAKE3 hash of the text (32 bytes), when it was kept (8), where its frame begins (8) and ends (8)
//! at the end       how many texts there are (8), `tailorp1`
//! ```
//!
//! Numbers are little-endian, times are milliseconds since 1970. A pack gets its name when all of it lasts, so that one
//! with a name is whole.

use super::Failure;
use super::folder::{Folder, Unfinished};
use crate::new_text::copy_span;
use crate::step::{Step, before};
use blake3::{Hash, Hasher};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use transcript::Span;
use zstd::bulk::Compressor;
use zstd::stream::{read, write};
use zstd::zstd_safe::compress_bound;

/// How hard texts are compressed. A fix waits for that: harder levels take longer, and easier ones save no time that can be
/// measured (−1 keeps a fifth more bytes of real transcripts).
const LEVEL: i32 = 1;

/// How the name of a pack ends.
const ENDING: &str = ".pack";

/// The last bytes of a pack, and the version of the format.
const MAGIC: [u8; 8] = *b"tailorp1";

/// How many bytes tell where a text is.
pub(super) const ENTRY_BYTES: usize = 32 + 3 * 8;

/// How many bytes stand behind that.
pub(super) const END_BYTES: usize = 8 + MAGIC.len();

/// How much of the end of a pack is read at once: most packs hold few texts.
const READ_BYTES: u64 = 4096;

/// A text in a pack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) hash: Hash,
    /// When it was kept, in milliseconds since 1970.
    pub(super) kept: u64,
    /// Where its frame is.
    pub(super) frame: Span,
}

impl Entry {
    /// How many bytes of the pack are its own.
    pub(super) fn bytes(&self) -> u64 {
        self.frame.len() + ENTRY_BYTES as u64
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.hash.as_bytes());
        for number in [self.kept, self.frame.start, self.frame.end] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// `None` if its frame is not within the first `limit` bytes.
    fn read(bytes: &[u8; ENTRY_BYTES], limit: u64) -> Option<Self> {
        let (hash, numbers) = bytes.split_first_chunk::<32>()?;
        let [kept, start, end] = *numbers.as_chunks::<8>().0 else { return None };
        let [kept, start, end] = [kept, start, end].map(u64::from_le_bytes);
        let sound = start <= end && end <= limit;
        sound.then(|| Self { hash: Hash::from_bytes(*hash), kept, frame: Span::new(start, end) })
    }
}

/// Whether this is the name of a pack.
pub(super) fn is_pack(name: &str) -> bool {
    name.ends_with(ENDING) && !Folder::is_unfinished(name)
}

/// What is in a pack. An entry that leads nowhere is left out, as the others may still be good.
pub(super) fn entries(pack: &File) -> io::Result<Vec<Entry>> {
    let broken = || io::Error::new(ErrorKind::InvalidData, "its end is missing");
    let length = pack.metadata()?.len();
    let end = length.min(READ_BYTES);
    let mut tail = vec![0; end as usize];
    pack.read_exact_at(&mut tail, length - end)?;
    let (rest, magic) = tail.split_last_chunk::<{ MAGIC.len() }>().ok_or_else(broken)?;
    let (_, count) = rest.split_last_chunk::<8>().ok_or_else(broken)?;
    let index = u64::from_le_bytes(*count).checked_mul(ENTRY_BYTES as u64);
    let room = length - END_BYTES as u64;
    let index = index.filter(|&index| *magic == MAGIC && index <= room).ok_or_else(broken)? as usize;
    let start = room - index as u64;
    if tail.len() < index + END_BYTES {
        tail = vec![0; index + END_BYTES];
        pack.read_exact_at(&mut tail, start)?;
    }
    let index = &tail[tail.len() - END_BYTES - index..][..index];
    Ok(index.as_chunks().0.iter().filter_map(|bytes| Entry::read(bytes, start)).collect())
}

/// Compresses texts in memory that it uses again.
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

/// A stream that compresses into a file.
pub(super) fn compressor(file: &File, length: Option<u64>) -> io::Result<write::Encoder<'static, File>> {
    let mut encoder = write::Encoder::new(file.try_clone()?, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(length)?;
    Ok(encoder)
}

/// A pack that is being written. It goes if it is not finished.
pub(super) struct Writer<'f> {
    folder: &'f Folder,
    unfinished: Unfinished<'f>,
    name: String,
    at: u64,
    entries: Vec<Entry>,
}

impl<'f> Writer<'f> {
    pub(super) fn begin(folder: &'f Folder) -> io::Result<Self> {
        let name = super::fresh("texts") + ENDING;
        let unfinished = folder.begin(&name)?;
        Ok(Self { folder, unfinished, name, at: 0, entries: Vec::new() })
    }

    /// Puts in a text that is compressed already.
    pub(super) fn put(&mut self, hash: Hash, kept: u64, frame: &[u8]) -> io::Result<()> {
        self.unfinished.file.write_all(frame)?;
        self.placed(hash, kept)
    }

    /// Puts in a text from another pack.
    pub(super) fn copy(&mut self, from: &File, entry: &Entry) -> io::Result<()> {
        copy_span(from, entry.frame, &self.unfinished.file)?;
        self.placed(entry.hash, entry.kept)
    }

    /// Puts in a text of this many bytes, which `write` writes.
    pub(super) fn stream(
        &mut self,
        (hash, kept): (Hash, u64),
        bytes: u64,
        write: impl FnOnce(&mut write::Encoder<'static, File>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut out = compressor(&self.unfinished.file, Some(bytes))?;
        write(&mut out)?;
        out.finish()?;
        Ok(self.placed(hash, kept)?)
    }

    fn placed(&mut self, hash: Hash, kept: u64) -> io::Result<()> {
        let end = self.unfinished.file.stream_position()?;
        self.entries.push(Entry { hash, kept, frame: Span::new(self.at, end) });
        self.at = end;
        Ok(())
    }

    /// Makes all of it last, and its name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let mut end = Vec::with_capacity(self.entries.len() * ENTRY_BYTES + END_BYTES);
        self.entries.iter().for_each(|entry| entry.write(&mut end));
        end.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        end.extend_from_slice(&MAGIC);
        self.unfinished.file.write_all(&end)?;
        before(Step::SyncOriginal)?;
        self.unfinished.file.sync_all()?;
        self.unfinished.place(self.folder, &self.name)?;
        before(Step::SyncOriginal)?;
        self.folder.sync()
    }
}

/// A text from the vault, as it was written. Reading all of it fails if it is not what was put there.
pub struct Text {
    decoder: read::Decoder<'static, BufReader<io::Take<File>>>,
    hasher: Hasher,
    hash: Hash,
}

impl Text {
    /// The text of an entry of this pack.
    pub(super) fn open(mut pack: File, entry: &Entry) -> io::Result<Self> {
        pack.seek(SeekFrom::Start(entry.frame.start))?;
        let decoder = read::Decoder::new(pack.take(entry.frame.len()))?;
        Ok(Self { decoder, hasher: Hasher::new(), hash: entry.hash })
    }

    /// The hash of all of it, in hex.
    pub fn hash(&self) -> String {
        self.hash.to_hex().to_string()
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.decoder.read(buffer)?;
        self.hasher.update(&buffer[..got]);
        if got == 0 && !buffer.is_empty() && self.hasher.finalize() != self.hash {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is not what was put there"));
        }
        Ok(got)
    }
}
