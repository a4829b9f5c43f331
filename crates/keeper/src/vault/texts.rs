//! Texts that are cut, on their way into the vault: each under the hash of its bytes, as they were written, without
//! quotes. Those of a run become one pack: a file of its own for each costs more than all the rest. Where they stood is
//! not known here.

use super::Failure;
use super::catalogue::Catalogue;
use super::folder::Folder;
use super::pack::{Packer, Writer};
use crate::step::{Step, before};
use blake3::{Hash, Hasher};
use rayon::prelude::*;
use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use transcript::literal::Decoder;
use transcript::marker::{self, Id};
use transcript::plan::Piece;
use transcript::{Fault, Source, Span};

/// How many bytes are compressed at once. Small enough to stay in the processor's cache.
const BATCH_BYTES: u64 = 4 << 20;

/// Longest text that is read into memory to be compressed there; longer ones are streamed.
const PACKED_BYTES_MAX: u64 = 1 << 20;

/// How many bytes of compressed texts are held in memory.
const AHEAD_BYTES_MAX: usize = 16 << 20;

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

/// Texts that were compressed before it is known whether they have to be kept.
#[derive(Default)]
pub(crate) struct Packed {
    texts: Vec<Vec<Piece>>,
    /// Of the first of these texts, in their order.
    frames: Vec<(Hash, Vec<u8>)>,
}

impl Packed {
    /// Whether the texts are so long that a thread for them pays.
    pub(crate) fn is_worth_it(texts: &[Vec<Piece>]) -> bool {
        texts.iter().map(|text| length(text)).sum::<u64>() > PACKED_BYTES_MAX
    }

    /// Compresses texts one by one until it is told to stop, or they would take too much memory. What goes wrong is told
    /// when they are kept.
    pub(crate) fn ahead(source: &dyn Source, texts: Vec<Vec<Piece>>, stop: &AtomicBool) -> Self {
        let mut frames = Vec::new();
        let mut pack = || -> Result<(), Failure> {
            let (mut packer, mut raw, mut held) = (Packer::new()?, Raw::default(), 0);
            for text in &texts {
                raw.read(source, slice::from_ref(text))?;
                let long = raw.places.iter().any(Option::is_none);
                if long || held > AHEAD_BYTES_MAX || stop.load(Ordering::Relaxed) {
                    break;
                }
                let frame = packer.pack(&raw.bytes)?;
                held += frame.len();
                frames.push((blake3::hash(&raw.bytes), frame.to_vec()));
            }
            Ok(())
        };
        let _ = pack();
        Self { texts, frames }
    }

    /// Those of the first of these texts.
    fn of<'p>(&'p self, texts: &[Vec<Piece>]) -> impl Iterator<Item = &'p (Hash, Vec<u8>)> {
        let same = self.texts.iter().zip(texts).take_while(|(one, other)| one == other).count();
        self.frames.iter().take(same)
    }
}

/// Keeps texts so that they last, and gives their hashes. One that is there and whole is not written again.
pub(super) fn keep(
    catalogue: &Catalogue,
    source: &dyn Source,
    texts: &[Vec<Piece>],
    packed: &Packed,
) -> Result<Vec<Hash>, Failure> {
    let kept = super::now().max(catalogue.newest().map_or(0, |newest| newest + 1));
    let new = Mutex::new(New { hashes: HashSet::new(), pack: None, packers: Vec::new() });
    let keeping = Keeping { catalogue, kept, new };
    let mut hashes = Vec::with_capacity(texts.len());
    for (hash, frame) in packed.of(texts) {
        before(Step::WriteOriginal)?;
        keeping.put_packed(*hash, frame)?;
        hashes.push(*hash);
    }
    let texts = &texts[hashes.len()..];
    let (mut raw, mut ahead) = (Raw::default(), Raw::default());
    let mut batches = batches(texts);
    let mut batch: &[Vec<Piece>] = &[];
    loop {
        let next = batches.next();
        next.into_iter().flatten().try_for_each(|_| before(Step::WriteOriginal))?;
        // One is packed while the next is read.
        let mut put = Ok(Vec::new());
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| put = keeping.put_all(&raw));
            next.map_or(Ok(()), |next| ahead.read(source, next))
        })?;
        for (text, hash) in batch.iter().zip(put?) {
            hashes.push(hash.map_or_else(|| keeping.stream(source, text), Ok)?);
        }
        let Some(next) = next else { break };
        batch = next;
        std::mem::swap(&mut raw, &mut ahead);
    }
    keeping.finish()?;
    Ok(hashes)
}

/// Texts on their way into a pack.
struct Keeping<'a> {
    catalogue: &'a Catalogue,
    kept: u64,
    new: Mutex<New<'a>>,
}

struct New<'a> {
    hashes: HashSet<Hash>,
    /// Made when the first text comes.
    pack: Option<Writer<'a>>,
    packers: Vec<Packer>,
}

impl<'a> Keeping<'a> {
    fn so_far(&self) -> MutexGuard<'_, New<'a>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a text has to be written. The first who asks has to do it.
    fn wants(&self, hash: &Hash) -> bool {
        self.so_far().hashes.insert(*hash) && !self.catalogue.has_whole(hash)
    }

    /// Puts in the texts that are in memory, on all processors, in no order.
    fn put_all(&self, raw: &Raw) -> io::Result<Vec<Option<Hash>>> {
        let put = |place: &Option<Range<usize>>| {
            let bytes = place.clone().and_then(|place| raw.bytes.get(place));
            bytes.map(|bytes| self.put(bytes)).transpose()
        };
        raw.places.par_iter().map(put).collect()
    }

    fn put(&self, bytes: &[u8]) -> io::Result<Hash> {
        let hash = blake3::hash(bytes);
        if self.wants(&hash) {
            let packer = self.so_far().packers.pop();
            let mut packer = packer.map_or_else(Packer::new, Ok)?;
            let frame = packer.pack(bytes)?;
            let mut new = self.so_far();
            new.pack(&self.catalogue.folder)?.put(hash, self.kept, frame)?;
            new.packers.push(packer);
        }
        Ok(hash)
    }

    fn put_packed(&self, hash: Hash, frame: &[u8]) -> io::Result<()> {
        if self.wants(&hash) {
            self.so_far().pack(&self.catalogue.folder)?.put(hash, self.kept, frame)?;
        }
        Ok(())
    }

    /// Puts in a text that is too long for memory.
    fn stream(&self, source: &dyn Source, text: &[Piece]) -> Result<Hash, Failure> {
        let hash = hash_of(source, text)?;
        if self.wants(&hash) {
            let mut new = self.so_far();
            let pack = new.pack(&self.catalogue.folder)?;
            pack.stream((hash, self.kept), length(text), |out| {
                let mut hasher = Hasher::new();
                for_each(source, text, &mut |bytes| {
                    hasher.update(bytes);
                    out.write_all(bytes)
                })?;
                let changed = || io::Error::other("the file changed while it was read").into();
                if hasher.finalize() == hash { Ok(()) } else { Err(changed()) }
            })?;
        }
        Ok(hash)
    }

    fn finish(self) -> io::Result<()> {
        let new = self.new.into_inner().unwrap_or_else(PoisonError::into_inner);
        new.pack.map_or(Ok(()), Writer::finish)
    }
}

impl<'a> New<'a> {
    fn pack(&mut self, folder: &'a Folder) -> io::Result<&mut Writer<'a>> {
        match &mut self.pack {
            Some(pack) => Ok(pack),
            none => Ok(none.insert(Writer::begin(folder)?)),
        }
    }
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
        let count = rest.iter().take_while(fits).count();
        let (batch, later) = rest.split_at_checked(count.max(1))?;
        rest = later;
        Some(batch)
    })
}

/// The texts of a batch in one piece of memory, and where in it each is; `None` for one that is too long for that.
#[derive(Default)]
struct Raw {
    bytes: Vec<u8>,
    places: Vec<Option<Range<usize>>>,
}

impl Raw {
    /// Reads a batch into memory that was used before: fresh memory costs as much as compressing what is put there.
    fn read(&mut self, source: &dyn Source, batch: &[Vec<Piece>]) -> Result<(), Failure> {
        self.bytes.clear();
        self.places.clear();
        for text in batch {
            let start = self.bytes.len();
            let short = length(text) <= PACKED_BYTES_MAX;
            for piece in text.iter().filter(|_| short) {
                match piece {
                    Piece::New(bytes) => self.bytes.extend_from_slice(bytes),
                    Piece::Kept(span) | Piece::Moved(span) => self.read_span(source, *span)?,
                }
            }
            self.places.push(short.then_some(start..self.bytes.len()));
        }
        Ok(())
    }

    fn read_span(&mut self, source: &dyn Source, span: Span) -> Result<(), Fault> {
        let start = self.bytes.len();
        self.bytes.resize(start + span.len() as usize, 0);
        let got = source.read(span.start, &mut self.bytes[start..])? as u64;
        if got == span.len() { Ok(()) } else { Err(Fault { at: span.start + got }) }
    }
}

fn hash_of(source: &dyn Source, text: &[Piece]) -> Result<Hash, Failure> {
    let mut hasher = Hasher::new();
    for_each(source, text, &mut |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(hasher.finalize())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Three texts one after the other, the last too long for memory.
    fn source() -> (Vec<u8>, Vec<Vec<Piece>>) {
        let lengths = [900_000, 200_000, PACKED_BYTES_MAX + 1];
        let (mut bytes, mut texts) = (Vec::new(), Vec::new());
        for (n, length) in lengths.into_iter().enumerate() {
            let start = bytes.len() as u64;
            bytes.extend((0..length).map(|at| b'a' + ((at * at + n as u64) % 23) as u8));
            texts.push(vec![Piece::Kept(Span::new(start, start + length))]);
        }
        (bytes, texts)
    }

    /// What is packed before is kept like the rest, and what is packed in vain is not.
    #[test]
    fn texts_that_are_packed_ahead_are_kept_like_the_others() {
        let (bytes, texts) = source();
        let (go, stop) = (AtomicBool::new(false), AtomicBool::new(true));
        assert!(Packed::is_worth_it(&texts) && !Packed::is_worth_it(&texts[1..2]));
        let others = Packed::ahead(&bytes.as_slice(), texts[1..].to_vec(), &go);
        let all = Packed::ahead(&bytes.as_slice(), texts.clone(), &go);
        let none = Packed::ahead(&bytes.as_slice(), texts.clone(), &stop);
        let counts = [&others, &all, &none].map(|packed| packed.of(&texts).count());
        assert_eq!((counts, others.frames.len()), ([0, 2, 0], 1));
        for packed in [others, all, none] {
            let folder = tempfile::tempdir().unwrap();
            let open = || Catalogue::load(Folder::make(folder.path()).unwrap()).unwrap();
            let hashes = keep(&open(), &bytes.as_slice(), &texts, &packed).unwrap();
            for (text, hash) in texts.iter().zip(&hashes) {
                let [Piece::Kept(span)] = text[..] else { panic!("{text:?}") };
                let mut kept = Vec::new();
                open().open(hash).unwrap().unwrap().read_to_end(&mut kept).unwrap();
                assert!(kept == bytes[span.start as usize..span.end as usize]);
            }
            assert_eq!(hashes.len(), texts.len());
        }
    }
}
