//! Texts that are cut, on their way into the file of a run: compressed on all cores, each under the hash of its bytes as
//! they were written, without quotes.

use super::file::{KeepFailure, Packer, RunWriter};
use crate::base::step::{Step, before};
use crate::disk::folder::Folder;
use crate::platform::{System, This};
use blake3::Hash;
use jiff::Timestamp;
use rayon::prelude::*;
use spans::literal::Decoder;
use spans::marker::{self, TextId};
use std::io::{self, Write};
use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use transcript::plan::Piece;
use transcript::{Fault, Source, Span};

/// Bytes that are compressed at once: small enough to stay in the processor's cache.
const BATCH_BYTES: u64 = 4 << 20;

/// Longest text that is read into memory to be compressed there; longer ones are streamed.
const PACKED_BYTES_MAX: u64 = 1 << 20;

/// Bytes of compressed texts that are held in memory.
const AHEAD_BYTES_MAX: usize = 16 << 20;

/// Gives the bytes of a text to `each`, in order.
fn for_each(
    source: &dyn Source,
    text: &[Piece],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), KeepFailure> {
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
) -> Result<(), KeepFailure> {
    let mut done = Ok(());
    source.pieces(span, &mut |bytes| {
        done = each(bytes);
        done.is_ok()
    })?;
    Ok(done?)
}

/// A compressed text and the hash of it before that.
type Frame = (Hash, Vec<u8>);

/// Texts that were compressed while the plan was still being checked.
#[derive(Default)]
pub(crate) struct PackedTexts {
    texts: Vec<Vec<Piece>>,
    /// Those of the first of these texts, in order.
    frames: Vec<Frame>,
}

impl PackedTexts {
    /// Whether the texts are long enough to be worth a thread.
    pub(crate) fn is_worth_it(texts: &[Vec<Piece>]) -> bool {
        texts.iter().map(|text| length(text)).sum::<u64>() > PACKED_BYTES_MAX
    }

    /// Compresses texts one by one until `stop` is set or they take too much memory. After an error it only stops: the
    /// error comes again when the rest is written.
    pub(crate) fn ahead(source: &dyn Source, texts: Vec<Vec<Piece>>, stop: &AtomicBool) -> Self {
        let mut frames = Vec::new();
        let mut pack = || -> Result<(), KeepFailure> {
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

    /// The frames of the first of these texts, if they are the same ones.
    fn frames_of<'p>(&'p self, texts: &[Vec<Piece>]) -> impl Iterator<Item = &'p Frame> {
        let same = self.texts.iter().zip(texts).take_while(|(one, other)| one == other).count();
        self.frames.iter().take(same)
    }
}

/// Writes texts into the file of a run, and gives their hashes.
pub(super) fn write(
    out: &mut RunWriter,
    source: &dyn Source,
    texts: &[Vec<Piece>],
    packed: &PackedTexts,
) -> Result<Vec<Hash>, KeepFailure> {
    let mut hashes = Vec::with_capacity(texts.len());
    for (hash, frame) in packed.frames_of(texts) {
        before(Step::WriteOriginal)?;
        out.put(*hash, frame)?;
        hashes.push(*hash);
    }
    let packers = Mutex::new(Vec::new());
    let (mut raw, mut ahead) = (Raw::default(), Raw::default());
    let mut batches = batches(&texts[hashes.len()..]);
    let mut batch: &[Vec<Piece>] = &[];
    loop {
        let next = batches.next();
        next.into_iter().flatten().try_for_each(|_| before(Step::WriteOriginal))?;
        // One batch is compressed while the next is read.
        let mut frames = Ok(Vec::new());
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| frames = raw.pack(&packers, out));
            next.map_or(Ok(()), |next| ahead.read(source, next))
        })?;
        for (text, frame) in batch.iter().zip(frames?) {
            hashes.push(match frame {
                Some((hash, frame)) => out.put(hash, &frame).map(|()| hash)?,
                None => out.put_long(length(text), |out| {
                    for_each(source, text, &mut |bytes| out.write_all(bytes))
                })?,
            });
        }
        let Some(next) = next else { return Ok(hashes) };
        batch = next;
        std::mem::swap(&mut raw, &mut ahead);
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
    fn read(&mut self, source: &dyn Source, batch: &[Vec<Piece>]) -> Result<(), KeepFailure> {
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

    /// Compresses the texts on all cores: the hash and the frame of each, an empty one if `out` has the text; `None` for
    /// one that is too long for memory.
    fn pack(&self, packers: &Mutex<Vec<Packer>>, out: &RunWriter) -> io::Result<Vec<Option<Frame>>> {
        let idle = || packers.lock().unwrap_or_else(PoisonError::into_inner);
        let pack = |place: &Option<Range<usize>>| {
            let Some(bytes) = place.clone().and_then(|place| self.bytes.get(place)) else { return Ok(None) };
            let hash = blake3::hash(bytes);
            if out.has(&hash) {
                return Ok(Some((hash, Vec::new())));
            }
            let packer = idle().pop();
            let mut packer = packer.map_or_else(Packer::new, Ok)?;
            let frame = packer.pack(bytes)?.to_vec();
            idle().push(packer);
            Ok(Some((hash, frame)))
        };
        self.places.par_iter().map(pack).collect()
    }

    fn read_span(&mut self, source: &dyn Source, span: Span) -> Result<(), Fault> {
        let start = self.bytes.len();
        self.bytes.resize(start + span.len() as usize, 0);
        let got = source.read(span.start, &mut self.bytes[start..])? as u64;
        if got == span.len() { Ok(()) } else { Err(Fault { at: span.start + got }) }
    }
}

/// Writes each text as a plain file, decoded, under the name that its marker gives.
pub(super) fn spill(
    to: &marker::TextFolder,
    source: &dyn Source,
    texts: &[Vec<Piece>],
    hashes: &[Hash],
) -> Result<(), KeepFailure> {
    let mut folder = None;
    for (text, hash) in texts.iter().zip(hashes) {
        let Some(id) = TextId::of_hex(&hash.to_hex()) else { continue };
        let path = std::path::PathBuf::from(to.file(&id));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let folder = match &mut folder {
            Some(folder) => folder,
            none => none.insert(Folder::make(parent)?),
        };
        before(Step::WriteOriginal)?;
        let unfinished = folder.begin(&fresh(&id.to_string()))?;
        let mut file = &*unfinished.file;
        let (mut decoder, mut plain) = (Decoder::default(), Vec::new());
        for_each(source, text, &mut |bytes| {
            plain.clear();
            decoder.feed(bytes, &mut plain);
            file.write_all(&plain)
        })?;
        plain.clear();
        decoder.finish(&mut plain);
        file.write_all(&plain)?;
        before(Step::SyncOriginal)?;
        This::sync(file)?;
        unfinished.place(&name.to_string_lossy())?;
    }
    if let Some(folder) = folder {
        before(Step::SyncOriginal)?;
        folder.sync()?;
    }
    Ok(())
}

/// A name that nobody else uses.
pub(super) fn fresh(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{count}-{}", std::process::id(), Timestamp::now().as_nanosecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::OriginalText;
    use std::io::Read;
    use std::sync::Arc;

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

    /// Texts packed ahead are kept like the others, and those packed in vain are not.
    #[test]
    fn texts_that_are_packed_ahead_are_kept_like_the_others() {
        let (bytes, texts) = source();
        let (go, stop) = (AtomicBool::new(false), AtomicBool::new(true));
        assert!(PackedTexts::is_worth_it(&texts) && !PackedTexts::is_worth_it(&texts[1..2]));
        let others = PackedTexts::ahead(&bytes.as_slice(), texts[1..].to_vec(), &go);
        let all = PackedTexts::ahead(&bytes.as_slice(), texts.clone(), &go);
        let none = PackedTexts::ahead(&bytes.as_slice(), texts.clone(), &stop);
        let counts = [&others, &all, &none].map(|packed| packed.frames_of(&texts).count());
        assert_eq!((counts, others.frames.len()), ([0, 2, 0], 1));
        for packed in [others, all, none] {
            let file = Arc::new(tempfile::tempfile().unwrap());
            let mut out = RunWriter::begin(&file).unwrap();
            // Each of them twice.
            let twice = [&texts[..], &texts[..]].concat();
            let hashes = write(&mut out, &bytes.as_slice(), &twice, &packed).unwrap();
            let stored = out.texts;
            assert_eq!((hashes.len(), stored.len()), (6, 3), "a text is kept once");
            for ((text, hash), stored) in texts.iter().zip(&hashes).zip(&stored) {
                let [Piece::Kept(span)] = text[..] else { panic!("{text:?}") };
                let mut text = OriginalText::open(&file, stored).unwrap();
                let mut kept = Vec::new();
                text.read_to_end(&mut kept).unwrap();
                assert!(kept == bytes[span.start as usize..span.end as usize] && stored.hash == *hash);
            }
            assert_eq!(hashes[..3], hashes[3..]);
        }
    }
}
