//! Texts that were cut: each under the hash of its bytes, as they were written, without quotes. Where they stood
//! is not known here.

use super::Failure;
use super::folder::{Folder, Unfinished};
use crate::step::{Step, before};
use blake3::{Hash, Hasher};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use transcript::literal::Decoder;
use transcript::marker::{self, Id};
use transcript::plan::Piece;
use transcript::{Source, Span};
use zstd::bulk::Compressor;

/// How many files are written before they are made to last together: a commit of the file system's journal serves
/// many of them.
const SYNC_TEXTS: usize = 128;

/// How many texts, and how many bytes of them, are compressed at once. Small enough to stay in the processor's cache.
const BATCH_TEXTS: usize = 128;
const BATCH_BYTES: u64 = 4 << 20;

/// Longest text that is read into memory to be compressed there; longer ones are streamed.
const PACKED_BYTES_MAX: u64 = 1 << 20;

/// How many files are made to last at the same time. Each waits for the disk, and the disk serves all at once.
const SYNCS: usize = 16;

/// How hard texts are compressed: half the time of zstd's default for a tenth more bytes.
const LEVEL: i32 = 1;

/// How many digits of its hash name the folder of a text. Each folder that gets one has to be synced.
const SHARD_DIGITS: usize = 1;

/// How the name of a text ends.
const ENDING: &str = ".zst";

/// Folder and name of a text.
pub(super) fn place(hash: &Hash) -> (String, String) {
    let hex = hash.to_hex();
    (hex[..SHARD_DIGITS].to_string(), format!("{}{ENDING}", &hex[SHARD_DIGITS..]))
}

/// The hash that a folder and a name in it stand for.
pub(super) fn hash_at(folder: &str, name: &str) -> Option<Hash> {
    let hex = format!("{folder}{}", name.strip_suffix(ENDING)?);
    Hash::from_hex(hex).ok().filter(|_| folder.len() == SHARD_DIGITS)
}

/// Gives the bytes of a text to `each`, in order.
fn for_each(
    source: &dyn Source,
    text: &[Piece],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Failure> {
    for piece in text {
        match piece {
            Piece::New(bytes) => each(bytes)?,
            Piece::Kept(span) | Piece::Moved(span) => copy(source, *span, each)?,
        }
    }
    Ok(())
}

/// Gives the bytes of a span to `each`, in order.
pub(super) fn copy(
    source: &dyn Source,
    span: Span,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut done = Ok(());
    source.pieces(span, &mut |bytes| {
        done = each(bytes);
        done.is_ok()
    })?;
    Ok(done?)
}

/// Puts texts into the folder `texts`, so that they last, and gives their hashes. One that is there and whole is
/// not written again. While one batch goes to the disk, the next is compressed.
pub(super) fn keep(folder: &Folder, source: &dyn Source, texts: &[Vec<Piece>]) -> Result<Vec<Hash>, Failure> {
    let mut keeping =
        Keeping { folder, source, hashes: Vec::with_capacity(texts.len()), written: Vec::new() };
    let mut batches = batches(texts);
    let mut ready = match batches.next() {
        Some(batch) => Some((batch, pack(read(source, batch, Vec::new())?)?)),
        None => None,
    };
    let mut spare = Vec::new();
    while let Some((batch, (packed, used))) = ready {
        let next = match batches.next() {
            Some(batch) => Some((batch, read(source, batch, std::mem::replace(&mut spare, used))?)),
            None => None,
        };
        ready = std::thread::scope(|scope| {
            let packing = next.map(|(batch, raw)| (batch, scope.spawn(move || pack(raw))));
            keeping.put_batch(batch, packed)?;
            let packed = packing.map(|(batch, thread)| Ok((batch, ended(thread)?)));
            packed.transpose().map_err(Failure::Disk)
        })?;
    }
    keeping.settle()?;
    let shards: BTreeSet<String> = keeping.hashes.iter().map(|hash| place(hash).0).collect();
    for shard in shards {
        before(Step::SyncOriginal)?;
        folder.make_child(&shard)?.sync()?;
    }
    Ok(keeping.hashes)
}

/// Texts on their way into the vault.
struct Keeping<'a> {
    folder: &'a Folder,
    source: &'a dyn Source,
    hashes: Vec<Hash>,
    /// Those that have yet to be made to last and to get their names.
    written: Vec<(Hash, Unfinished<'a>)>,
}

impl Keeping<'_> {
    fn put_batch(&mut self, batch: &[Vec<Piece>], packed: Vec<Option<Packed>>) -> Result<(), Failure> {
        for (text, packed) in batch.iter().zip(packed) {
            let hash = packed.as_ref().map_or_else(|| hash_of(self.source, text), |(hash, _)| Ok(*hash))?;
            self.hashes.push(hash);
            if self.written.iter().any(|(other, _)| *other == hash) || is_whole(self.folder, &hash) {
                continue;
            }
            let file = match packed {
                Some((_, bytes)) => put(self.folder, &bytes, &hash)?,
                None => write(self.folder, self.source, text, &hash)?,
            };
            self.written.push((hash, file));
            if self.written.len() >= SYNC_TEXTS {
                self.settle()?;
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        for (hash, file) in settle(std::mem::take(&mut self.written))? {
            let (shard, name) = place(&hash);
            file.place(&self.folder.make_child(&shard)?, &name)?;
        }
        Ok(())
    }
}

fn ended<T>(thread: std::thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early")))
}

fn length(text: &[Piece]) -> u64 {
    text.iter().map(Piece::len).sum()
}

/// Parts of a list that are small enough to be in memory at once, as far as they are packed there.
fn batches(texts: &[Vec<Piece>]) -> impl Iterator<Item = &[Vec<Piece>]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |text: &&Vec<Piece>| {
            bytes += length(text).min(PACKED_BYTES_MAX);
            bytes <= BATCH_BYTES
        };
        let count = rest.iter().take(BATCH_TEXTS).take_while(fits).count();
        let (batch, later) = rest.split_at_checked(count.max(1))?;
        rest = later;
        Some(batch)
    })
}

/// The texts of a batch in one piece of memory, and where in it each is; `None` for one that is too long for that.
struct Raw {
    bytes: Vec<u8>,
    places: Vec<Option<Range<usize>>>,
}

/// Reads a batch into memory that was used before: fresh memory costs as much as compressing what is put there.
fn read(source: &dyn Source, batch: &[Vec<Piece>], mut used: Vec<u8>) -> Result<Raw, Failure> {
    used.clear();
    let short = |text: &Vec<Piece>| length(text) <= PACKED_BYTES_MAX;
    let mut raw = Raw { bytes: used, places: Vec::with_capacity(batch.len()) };
    for text in batch {
        let start = raw.bytes.len();
        if short(text) {
            for_each(source, text, &mut |piece| {
                raw.bytes.extend_from_slice(piece);
                Ok(())
            })?;
        }
        raw.places.push(short(text).then_some(start..raw.bytes.len()));
    }
    Ok(raw)
}

/// A text's hash, and the text compressed.
type Packed = (Hash, Vec<u8>);

/// Hashes and compresses texts, on all processors, and gives the memory back.
fn pack(raw: Raw) -> io::Result<(Vec<Option<Packed>>, Vec<u8>)> {
    let one = |packer: &mut io::Result<Compressor<'static>>, place: &Option<Range<usize>>| {
        let packer = packer.as_mut().map_err(|error| io::Error::from(error.kind()))?;
        let bytes = place.clone().and_then(|place| raw.bytes.get(place));
        bytes.map(|bytes| Ok((blake3::hash(bytes), packer.compress(bytes)?))).transpose()
    };
    let packed: io::Result<_> = raw.places.par_iter().map_init(packer, one).collect();
    Ok((packed?, raw.bytes))
}

fn packer() -> io::Result<Compressor<'static>> {
    let mut packer = Compressor::new(LEVEL)?;
    packer.include_checksum(true)?;
    Ok(packer)
}

fn put<'f>(folder: &'f Folder, packed: &[u8], hash: &Hash) -> Result<Unfinished<'f>, Failure> {
    before(Step::WriteOriginal)?;
    let mut unfinished = folder.begin(&super::fresh(hash.to_hex().as_str()))?;
    unfinished.file.write_all(packed)?;
    Ok(unfinished)
}

fn hash_of(source: &dyn Source, text: &[Piece]) -> Result<Hash, Failure> {
    let mut hasher = Hasher::new();
    for_each(source, text, &mut |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(hasher.finalize())
}

fn write<'f>(
    folder: &'f Folder,
    source: &dyn Source,
    text: &[Piece],
    hash: &Hash,
) -> Result<Unfinished<'f>, Failure> {
    before(Step::WriteOriginal)?;
    let unfinished = folder.begin(&super::fresh(hash.to_hex().as_str()))?;
    let mut out = compressor(&unfinished.file, Some(text.iter().map(Piece::len).sum()))?;
    let mut hasher = Hasher::new();
    for_each(source, text, &mut |bytes| {
        hasher.update(bytes);
        out.write_all(bytes)
    })?;
    out.finish()?;
    if hasher.finalize() == *hash {
        Ok(unfinished)
    } else {
        Err(io::Error::other("the file changed while it was read").into())
    }
}

/// A stream that compresses into a file.
pub(super) fn compressor(
    file: &File,
    length: Option<u64>,
) -> io::Result<zstd::stream::write::Encoder<'static, File>> {
    let mut encoder = zstd::stream::write::Encoder::new(file.try_clone()?, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(length)?;
    Ok(encoder)
}

/// Makes the bytes of all these files last.
fn settle(written: Vec<(Hash, Unfinished<'_>)>) -> io::Result<Vec<(Hash, Unfinished<'_>)>> {
    for _ in &written {
        before(Step::SyncOriginal)?;
    }
    let files: Vec<&File> = written.iter().map(|(_, unfinished)| &unfinished.file).collect();
    let share = files.len().div_ceil(SYNCS).max(1);
    let sync = |files: &[&File]| files.iter().try_for_each(|file| file.sync_all());
    std::thread::scope(|scope| {
        let threads: Vec<_> = files.chunks(share).map(|files| scope.spawn(move || sync(files))).collect();
        threads.into_iter().map(ended).fold(Ok(()), io::Result::and)
    })?;
    Ok(written)
}

/// Whether a text is there and is what was put there.
fn is_whole(folder: &Folder, hash: &Hash) -> bool {
    let text = open(folder, hash);
    text.is_ok_and(|text| text.is_some_and(|mut text| io::copy(&mut text, &mut io::sink()).is_ok()))
}

/// A text from the vault, as it was written. Reading all of it fails if it is not what was put there.
pub struct Text {
    decoder: zstd::stream::read::Decoder<'static, io::BufReader<File>>,
    hasher: Hasher,
    hash: Hash,
}

impl Text {
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

/// Opens a text; `None` if it is not there.
pub(super) fn open(folder: &Folder, hash: &Hash) -> io::Result<Option<Text>> {
    let (shard, name) = place(hash);
    let Some(shard) = folder.child(&shard)? else { return Ok(None) };
    let Some(file) = shard.read(&name)? else { return Ok(None) };
    let decoder = zstd::stream::read::Decoder::new(file)?;
    Ok(Some(Text { decoder, hasher: Hasher::new(), hash: *hash }))
}

/// The hashes that begin with these hex digits, of which there is one at least.
pub(super) fn beginning_with(folder: &Folder, digits: &str) -> io::Result<Vec<Hash>> {
    let Some(shard) = folder.child(&digits[..SHARD_DIGITS])? else { return Ok(Vec::new()) };
    let names = shard.names()?;
    let hashes = names.iter().filter(|name| name.starts_with(&digits[SHARD_DIGITS..]));
    Ok(hashes.filter_map(|name| hash_at(&digits[..SHARD_DIGITS], name)).collect())
}

/// Writes each text as a plain file, decoded, under the name that its marker gives.
pub(super) fn spill(
    to: &marker::Folder,
    source: &dyn Source,
    texts: &[Vec<Piece>],
    hashes: &[Hash],
) -> Result<(), Failure> {
    let mut folder = None;
    for (text, hash) in texts.iter().zip(hashes) {
        let Some(id) = Id::of_hex(&hash.to_hex()) else { continue };
        let path = std::path::PathBuf::from(to.file(&id));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let folder = match &mut folder {
            Some(folder) => folder,
            none => none.insert(Folder::make(parent)?),
        };
        before(Step::WriteOriginal)?;
        let mut unfinished = folder.begin(&super::fresh(&id.to_string()))?;
        let (mut decoder, mut plain) = (Decoder::default(), Vec::new());
        for_each(source, text, &mut |bytes| {
            plain.clear();
            decoder.feed(bytes, &mut plain);
            unfinished.file.write_all(&plain)
        })?;
        plain.clear();
        decoder.finish(&mut plain);
        unfinished.file.write_all(&plain)?;
        before(Step::SyncOriginal)?;
        unfinished.file.sync_all()?;
        unfinished.place(folder, &name.to_string_lossy())?;
    }
    if let Some(folder) = folder {
        before(Step::SyncOriginal)?;
        folder.sync()?;
    }
    Ok(())
}
