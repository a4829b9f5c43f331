//! Looks at sessions, and keeps what they have become.

use super::chunks::{Part, Rack};
use super::generation::{End, Generation};
use super::growth::{Growth, has_more_holes};
use super::{Kept, Writing};
use crate::disk::folder::Place;
use crate::disk::new_text::hash_of;
use crate::platform::OFlags;
use crate::platform::acting::{self, Acting};
use crate::platform::attributes::Attributes;
use crate::platform::identity::Stamp;
use crate::platform::metadata::{self, Metadata};
use jiff::Timestamp;
use spans::source::Span;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that was written to so recently may be written to again without its times showing it.
const UNSURE_MILLIS: i64 = 20;
/// A session that has not grown for so long rests: it is read once more, and stays as it is.
const REST_MILLIS: i64 = 60_000;
/// How long it is remembered how a session goes on.
const REMEMBERED_MILLIS: i64 = 60 * 60 * 1000;
/// How many sessions that is remembered of.
const GROWING_MAX: usize = 8_192;
/// Recent pieces become whole chunks when there is so much of them.
const RECENT_BYTES_MAX: u64 = 32 << 20;
/// A file with more of holes, in which nothing was ever written, is not kept: a terabyte of them takes no room on the disk, and
/// hours to read.
const HOLES_BYTES_MAX: u64 = 64 << 20;

/// What a look at a session has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing new.
    None,
    /// It is a new session, or one that has grown.
    Grown(u64),
    /// What was there is there no more.
    Ended(End),
}

/// A look at a session.
#[derive(Debug)]
pub(crate) enum Look {
    /// What it has shown.
    Seen(Change),
    /// It could not be opened, and what was kept stays as it is.
    Unreadable(io::Error),
}

/// Since when something may have ended a generation, and whether that was Tailor.
pub(crate) type MendedSince<'a> = &'a dyn Fn(&Path, i64) -> bool;

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Acts as the owner of a file or a folder, if we are root. A link of somebody else on the path is an error.
pub(crate) fn acting_as_owner(path: &Path) -> io::Result<Acting> {
    acting::as_owner(path, false)?.map_err(|refusal| io::Error::other(refusal.to_string()))
}

/// Whether there is nothing at a path, by the error of looking there.
pub(crate) fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A file, and its stamp; `None` if there is no file at the path.
fn open(path: &Path) -> io::Result<Option<(File, Stamp)>> {
    match open_as_owner(path) {
        Ok((file, found)) => Ok(found.is_file().then(|| (file, Stamp::from_metadata(&found)))),
        Err(cause) if is_absent(&cause) || metadata::is_link(&cause) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Whether nothing is at a path any more, as far as the owner of what is there can see.
fn is_gone(path: &Path) -> bool {
    let found = acting_as_owner(path).and_then(|_acting| metadata::of_link(path));
    found.is_err_and(|cause| is_absent(&cause))
}

fn open_as_owner(path: &Path) -> io::Result<(File, Metadata)> {
    let _acting = acting_as_owner(path)?;
    let place = Place::hold(path)?;
    let file = place.open(place.name(), OFlags::RDONLY | OFlags::NONBLOCK)?;
    let found = metadata::of_file(&file)?;
    if !acting::may_open(&found) {
        return Err(io::Error::other("another file has come there meanwhile"));
    }
    if has_more_holes(&file, found.len(), HOLES_BYTES_MAX) {
        let most = HOLES_BYTES_MAX >> 20;
        return Err(io::Error::other(format!(
            "it is not kept: more than {most} MiB of it are holes, in which nothing was written"
        )));
    }
    Ok((file, found))
}

impl Writing<'_> {
    /// Keeps what a session has become. `path` has no links in it.
    pub(crate) fn look(&mut self, path: &Path, is_mended: MendedSince<'_>) -> io::Result<Look> {
        let (file, stamp) = match open(path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.kept.gone(path).map(Look::Seen),
            Err(cause) => return Ok(Look::Unreadable(cause)),
        };
        if self.kept.at(path).is_some_and(|current| current.stamp == Some(stamp)) {
            return Ok(Look::Seen(Change::None));
        }
        let goes_on = match self.kept.growing.get(path) {
            Some(growth) => growth.goes_on_in(&file, &stamp)?,
            None => false,
        };
        let change = if goes_on {
            self.kept.append(path, &file, &stamp)
        } else {
            self.kept.read(path, &file, &stamp, is_mended)
        };
        match change {
            // What is short can still be kept.
            Err(cause) if cause.kind() == ErrorKind::Interrupted => Ok(Look::Unreadable(cause)),
            change => change.map(Look::Seen),
        }
    }

    /// Notes which sessions are gone, and returns how many.
    pub(crate) fn look_for_gone(&mut self) -> io::Result<u64> {
        let gone: Vec<PathBuf> = self.kept.current.keys().filter(|path| is_gone(path)).cloned().collect();
        for path in &gone {
            self.kept.gone(path)?;
        }
        Ok(gone.len() as u64)
    }

    /// Compares what has grown with what was read before, as far as these many bytes go: a program may have changed the middle of a
    /// file in the same moment in which it, or another one, appended to it.
    pub(crate) fn verify(&mut self, bytes_max: u64, is_mended: MendedSince<'_>) -> io::Result<()> {
        let grown = self.kept.growing.iter().filter(|(_, growth)| !growth.is_verified);
        let mut grown: Vec<(i64, u64, PathBuf)> =
            grown.map(|(path, growth)| (growth.looked, growth.bytes, path.clone())).collect();
        grown.sort();
        let mut left = bytes_max;
        for (_, bytes, path) in grown {
            let Some(rest) = left.checked_sub(bytes) else { continue };
            left = rest;
            self.verify_one(&path, is_mended)?;
        }
        Ok(())
    }

    fn verify_one(&mut self, path: &Path, is_mended: MendedSince<'_>) -> io::Result<()> {
        let (Ok(Some((file, stamp))), Some(growth)) = (open(path), self.kept.growing.get_mut(path)) else {
            return Ok(());
        };
        let span = Span::new(0, growth.bytes);
        let is_there = stamp.bytes >= growth.bytes;
        let hash = if is_there { hash_of(&file, &[span], &|| false)? } else { None };
        if hash.is_some_and(|hash| hash.to_hex().to_string() == growth.hash()) {
            (growth.is_verified, growth.looked) = (true, now());
            return Ok(());
        }
        self.kept.read(path, &file, &stamp, is_mended).map(drop)
    }

    /// Reads once more what has stopped growing, and makes whole chunks of what is in pieces if there is too much of it.
    pub(crate) fn rest(&mut self, is_mended: MendedSince<'_>) -> io::Result<()> {
        let now = now();
        let rests = |growth: &Growth| !growth.is_settled && now - growth.grew >= REST_MILLIS;
        let paths: Vec<PathBuf> = self
            .kept
            .growing
            .iter()
            .filter(|(_, growth)| rests(growth))
            .map(|(path, _)| path.clone())
            .collect();
        for path in paths {
            self.kept.growing.remove(&path);
            if let Ok(Some((file, stamp))) = open(&path) {
                self.kept.read(&path, &file, &stamp, is_mended)?;
            }
        }
        self.kept.growing.retain(|_, growth| now - growth.grew < REMEMBERED_MILLIS);
        if self.kept.chunks.open_bytes(Rack::Recent) >= RECENT_BYTES_MAX {
            self.settle_all()?;
        }
        Ok(())
    }

    /// Makes whole chunks of all pieces.
    pub(crate) fn settle_all(&mut self) -> io::Result<()> {
        let recent = self.kept.chunks.on(Rack::Recent);
        if recent.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = self.kept.generations.keys().cloned().collect();
        for id in ids {
            self.kept.settle(&id)?;
        }
        self.kept.growing.clear();
        self.kept.chunks.sync()?;
        recent.into_iter().try_for_each(|number| self.kept.chunks.delete(number))
    }

    /// Makes durable what was kept.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.kept.chunks.sync()
    }
}

impl Kept {
    /// The generation that lies at a path.
    pub(super) fn at(&self, path: &Path) -> Option<&Generation> {
        self.generations.get(self.current.get(path)?)
    }

    /// Reads what was appended.
    fn append(&mut self, path: &Path, file: &File, stamp: &Stamp) -> io::Result<Change> {
        let Some(mut growth) = self.growing.remove(path) else { return Ok(Change::None) };
        let before = growth.bytes;
        growth.read(file, stamp.bytes, &mut self.chunks)?;
        growth.pause(&mut self.chunks)?;
        growth.grew = now();
        (growth.is_verified, growth.is_settled) = (false, false);
        let Some(current) = self.at(path).cloned() else { return Ok(Change::None) };
        let next = of_growth(current, &growth, file, stamp)?;
        self.note(&next, &mut growth)?;
        let grown = growth.bytes - before;
        self.remember(next, growth);
        Ok(Change::Grown(grown))
    }

    /// Notes the state of a session that is growing: what has changed since the last one that was noted.
    fn note(&mut self, next: &Generation, growth: &mut Growth) -> io::Result<()> {
        let known = next.parts_to(growth.noted).unwrap_or(0);
        let from = if known == 0 { 0 } else { growth.noted };
        let grown = if known == 0 { next.grown.clone() } else { Vec::new() };
        let step = Generation { from, grown, parts: next.parts[known..].to_vec(), ..next.clone() };
        self.chunks.put_state(Rack::Recent, &line(&step)?)?;
        growth.noted = growth.bytes;
        Ok(())
    }

    fn remember(&mut self, next: Generation, growth: Growth) {
        self.current.insert(next.path.clone(), next.id.clone());
        if now() - growth.grew < REMEMBERED_MILLIS && self.growing.len() < GROWING_MAX {
            self.growing.insert(next.path.clone(), growth);
        }
        self.generations.insert(next.id.clone(), next);
    }

    /// Reads all of a file.
    fn read(
        &mut self,
        path: &Path,
        file: &File,
        stamp: &Stamp,
        is_mended: MendedSince<'_>,
    ) -> io::Result<Change> {
        self.growing.remove(path);
        let before = self.at(path).cloned();
        let mut growth = Growth::new(stamp.file);
        let known = before.as_ref().map_or(0, |before| before.bytes);
        growth.read(file, known.min(stamp.bytes), &mut self.chunks)?;
        let goes_on = before.as_ref().is_some_and(|before| before.hash == growth.hash());
        growth.read(file, stamp.bytes, &mut self.chunks)?;
        growth.rest(&mut self.chunks)?;
        growth.grew = now() - age_millis(stamp);
        let (change, current) = match before {
            Some(before) if goes_on => (Change::Grown(growth.bytes - before.bytes), before),
            Some(before) => {
                let end = self.end_of(&before, &growth, is_mended)?;
                self.end(&before.id, end)?;
                (Change::Ended(end), begun(path, file)?)
            }
            None => (Change::Grown(growth.bytes), begun(path, file)?),
        };
        let next = of_growth(current, &growth, file, stamp)?;
        self.chunks.put_state(Rack::Sessions, &line(&next)?)?;
        self.remember(next, growth);
        Ok(change)
    }

    fn end_of(&mut self, before: &Generation, now: &Growth, is_mended: MendedSince<'_>) -> io::Result<End> {
        if now.bytes == 0 {
            return Ok(End::Emptied);
        }
        if is_mended(&before.path, before.at) {
            return Ok(End::Mended);
        }
        let is_truncated = now.bytes < before.bytes && self.begins_with(before, now)?;
        Ok(if is_truncated { End::Truncated } else { End::Rewritten })
    }

    /// Whether a generation begins with a text.
    fn begins_with(&mut self, generation: &Generation, text: &Growth) -> io::Result<bool> {
        let mut beginning = Hash(blake3::Hasher::new());
        self.copy(generation, text.bytes, &mut beginning)?;
        Ok(beginning.0.finalize().to_hex().to_string() == text.hash())
    }

    /// Adds what was gathered as one chunk.
    fn put_piece(&mut self, text: &mut Vec<u8>, parts: &mut Vec<Part>) -> io::Result<()> {
        if !text.is_empty() {
            parts.push(self.chunks.put(Rack::Packs, text)?);
            text.clear();
        }
        Ok(())
    }

    /// Ends the generation of a session that is gone.
    fn gone(&mut self, path: &Path) -> io::Result<Change> {
        self.growing.remove(path);
        let Some(id) = self.current.get(path).cloned() else { return Ok(Change::None) };
        self.end(&id, End::Deleted)?;
        Ok(Change::Ended(End::Deleted))
    }

    fn end(&mut self, id: &str, end: End) -> io::Result<()> {
        self.join_pieces(id)?;
        let Some(generation) = self.generations.get_mut(id) else { return Ok(()) };
        generation.ended = Some((now(), end));
        generation.at = generation.at.max(generation.began);
        let (text, path) = (line(generation)?, generation.path.clone());
        self.current.remove(&path);
        self.chunks.put_state(Rack::Sessions, &text)
    }

    /// Makes chunks that may stay of the pieces of a generation, and notes that.
    fn settle(&mut self, id: &str) -> io::Result<()> {
        if self.join_pieces(id)?
            && let Some(generation) = self.generations.get(id)
        {
            let text = line(generation)?;
            self.chunks.put_state(Rack::Sessions, &text)?;
        }
        Ok(())
    }

    /// Makes one chunk of the pieces at the end of a generation, but for damaged ones; whether there were any.
    fn join_pieces(&mut self, id: &str) -> io::Result<bool> {
        let Some(generation) = self.generations.get(id) else { return Ok(false) };
        let mut parts = generation.parts.clone();
        let whole =
            parts.iter().rposition(|part| !self.chunks.is_on(Rack::Recent, part)).map_or(0, |n| n + 1);
        if parts.len() == whole {
            return Ok(false);
        }
        let mut last = Vec::new();
        for part in parts.split_off(whole) {
            if let Ok(text) = self.chunks.get(&part) {
                last.extend(text);
            } else {
                // It stays as it is, lost or not, and the others do not wait for it.
                self.put_piece(&mut last, &mut parts)?;
                parts.push(part);
            }
        }
        self.put_piece(&mut last, &mut parts)?;
        if let Some(generation) = self.generations.get_mut(id) {
            generation.parts = parts;
        }
        Ok(true)
    }
}

/// Hashes what is written to it.
struct Hash(blake3::Hasher);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long ago a file was written to.
fn age_millis(stamp: &Stamp) -> i64 {
    let (seconds, nanos) = stamp.modified;
    now().saturating_sub(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)).max(0)
}

/// A generation that begins now.
fn begun(path: &Path, file: &File) -> io::Result<Generation> {
    let began = now();
    let seed = format!("{} {began} {}", path.display(), std::process::id());
    let id = format!("{began:x}-{}", &blake3::hash(seed.as_bytes()).to_hex()[..12]);
    Ok(Generation {
        path: path.to_path_buf(),
        id,
        began,
        at: began,
        bytes: 0,
        ended: None,
        hash: String::new(),
        attributes: Attributes::of(file)?,
        stamp: None,
        grown: Vec::new(),
        from: 0,
        parts: Vec::new(),
    })
}

/// The generation as it has become. Its file may have other rights by now, too.
fn of_growth(before: Generation, growth: &Growth, file: &File, stamp: &Stamp) -> io::Result<Generation> {
    let is_sure = age_millis(stamp) >= UNSURE_MILLIS && stamp.bytes == growth.bytes;
    let mut next = Generation {
        at: now().max(before.at),
        bytes: growth.bytes,
        hash: growth.hash(),
        attributes: Attributes::of(file)?,
        stamp: is_sure.then_some(*stamp),
        parts: growth.parts.clone(),
        ..before
    };
    next.mark();
    Ok(next)
}

pub(super) fn line(generation: &Generation) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(generation)?;
    text.push(b'\n');
    Ok(text)
}

/// How often the archive should be looked after.
pub const REST_EVERY: Duration = Duration::from_secs(30);
