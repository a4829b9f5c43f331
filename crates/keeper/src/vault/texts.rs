//! Texts that were cut: each under the hash of its bytes, as they were written, without quotes. Where they stood
//! is not known here.

use super::Failure;
use super::folder::{Folder, Unfinished};
use crate::step::{Step, before};
use blake3::{Hash, Hasher};
use rustix::fs::Advice;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use transcript::literal::Decoder;
use transcript::marker::{self, Id};
use transcript::plan::Piece;
use transcript::{Source, Span};

/// How many files are written before they are made to last together: a commit of the file system's journal serves
/// them all.
const BATCH_TEXTS: usize = 16;

/// How the name of a text ends.
const ENDING: &str = ".zst";

/// Folder and name of a text.
pub(super) fn place(hash: &Hash) -> (String, String) {
    let hex = hash.to_hex();
    (hex[..2].to_string(), format!("{}{ENDING}", &hex[2..]))
}

/// The hash that a folder and a name in it stand for.
pub(super) fn hash_at(folder: &str, name: &str) -> Option<Hash> {
    let hex = format!("{folder}{}", name.strip_suffix(ENDING)?);
    Hash::from_hex(hex).ok().filter(|_| folder.len() == 2)
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
/// not written again.
pub(super) fn keep(folder: &Folder, source: &dyn Source, texts: &[Vec<Piece>]) -> Result<Vec<Hash>, Failure> {
    let mut hashes = Vec::with_capacity(texts.len());
    let mut shards = BTreeSet::new();
    for batch in texts.chunks(BATCH_TEXTS) {
        let mut written: Vec<(Hash, Unfinished<'_>)> = Vec::new();
        for text in batch {
            let hash = hash_of(source, text)?;
            hashes.push(hash);
            shards.insert(place(&hash).0);
            if written.iter().all(|(other, _)| *other != hash) && !is_whole(folder, &hash) {
                written.push((hash, write(folder, source, text, &hash)?));
            }
        }
        for (hash, file) in settle(written)? {
            let (shard, name) = place(&hash);
            file.place(&folder.make_child(&shard)?, &name)?;
        }
    }
    for shard in shards {
        before(Step::SyncOriginal)?;
        folder.make_child(&shard)?.sync()?;
    }
    Ok(hashes)
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
    let mut encoder = zstd::stream::write::Encoder::new(file.try_clone()?, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(length)?;
    Ok(encoder)
}

/// Makes the bytes of all these files last.
fn settle(written: Vec<(Hash, Unfinished<'_>)>) -> io::Result<Vec<(Hash, Unfinished<'_>)>> {
    for (_, unfinished) in &written {
        // Writing begins, and nobody waits for it yet. Where that is not known it begins below.
        let _ = rustix::fs::fadvise(&unfinished.file, 0, None, Advice::DontNeed);
    }
    for (_, unfinished) in &written {
        before(Step::SyncOriginal)?;
        unfinished.file.sync_all()?;
    }
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

/// The hashes that begin with these hex digits, of which there are two at least.
pub(super) fn beginning_with(folder: &Folder, digits: &str) -> io::Result<Vec<Hash>> {
    let Some(shard) = folder.child(&digits[..2])? else { return Ok(Vec::new()) };
    let names = shard.names()?;
    let hashes = names.iter().filter(|name| name.starts_with(&digits[2..]));
    Ok(hashes.filter_map(|name| hash_at(&digits[..2], name)).collect())
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
