//! Clears the archive: which generations go, and the files that nothing in them is needed of.

use super::chunks::Rack;
use super::generation::Generation;
use super::growth::Growth;
use super::{Kept, Writing};
use crate::platform::identity::FileId;
use blake3::Hash;
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::time::Duration;

/// So many files that are shorter than this are put together.
const SMALL_BYTES: u64 = 4 << 20;
const SMALL_FILES_MAX: usize = 16;

/// Which generations to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    /// How long ago a generation may have ended.
    pub age: Duration,
    /// How many bytes the chunks of all may have.
    pub bytes: u64,
}

impl Default for KeepLimits {
    /// 90 days, 20 GiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(90 * 24 * 60 * 60), bytes: 20 << 30 }
    }
}

/// Which texts are to be forgotten, of what a generation holds.
pub type TextsIn<'a> = &'a dyn Fn(&[u8]) -> Vec<Vec<u8>>;

/// What was dropped, and what is left.
#[derive(Debug, Default)]
pub struct Dropped {
    /// The generations that were dropped.
    pub generations: Vec<Generation>,
    /// How many bytes that freed.
    pub bytes: u64,
    /// How many bytes the archive has now.
    pub bytes_kept: u64,
}

/// How often each chunk is needed, and how long they all are.
struct Needed {
    counts: HashMap<Hash, u64>,
    bytes: u64,
}

impl Needed {
    fn of(kept: &Kept) -> Self {
        let mut needed = Self { counts: HashMap::new(), bytes: 0 };
        for part in kept.generations.values().flat_map(|generation| &generation.parts) {
            let count = needed.counts.entry(part.hash).or_default();
            *count += 1;
            if *count == 1 {
                needed.bytes += kept.chunks.place(&part.hash).map_or(0, |(_, frame)| u64::from(frame.packed));
            }
        }
        needed
    }

    fn drop(&mut self, generation: &Generation, kept: &Kept) {
        for part in &generation.parts {
            let Some(count) = self.counts.get_mut(&part.hash) else { continue };
            *count -= 1;
            if *count == 0 {
                self.bytes -= kept.chunks.place(&part.hash).map_or(0, |(_, frame)| u64::from(frame.packed));
            }
        }
    }
}

impl Writing<'_> {
    /// Drops generations that ended too long ago, then others until the rest fits: the oldest of sessions that have a later one
    /// first, the last ones of sessions that are gone last. What lies on the disk now is never dropped.
    pub(crate) fn bound(&mut self, limits: KeepLimits) -> io::Result<Dropped> {
        self.settle_all()?;
        let before = self.kept.bytes();
        let generations = self.kept.drop_beyond(limits);
        let is_changed = !generations.is_empty();
        self.kept.sweep(is_changed, false)?;
        let bytes_kept = self.kept.bytes();
        Ok(Dropped { generations, bytes: before.saturating_sub(bytes_kept), bytes_kept })
    }

    /// Puts asterisks in the place of texts in every generation, and removes the chunks that held them. Returns in how many
    /// generations they were; with `is_dry` nothing changes.
    pub(crate) fn forget(&mut self, texts_in: TextsIn<'_>, is_dry: bool) -> io::Result<u64> {
        if !is_dry {
            self.settle_all()?;
        }
        let ids: Vec<String> = self.kept.generations.keys().cloned().collect();
        let mut changed = 0;
        for id in ids {
            changed += u64::from(self.kept.blank(&id, texts_in, is_dry)?);
        }
        if changed > 0 && !is_dry {
            self.kept.growing.clear();
            self.kept.sweep(true, true)?;
        }
        Ok(changed)
    }
}

impl Kept {
    fn drop_beyond(&mut self, limits: KeepLimits) -> Vec<Generation> {
        let mut last: HashMap<&Path, i64> = HashMap::new();
        for generation in self.generations.values() {
            let newest = last.entry(&generation.path).or_default();
            *newest = generation.began.max(*newest);
        }
        let is_last = |one: &Generation| last.get(one.path.as_path()) == Some(&one.began);
        let ended = self.generations.values().filter_map(|one| Some((one.ended?.0, one)));
        let mut ended: Vec<(bool, i64, &Generation)> =
            ended.map(|(ended, one)| (is_last(one), ended, one)).collect();
        ended.sort_by_key(|(is_last, ended, _)| (*is_last, *ended));
        let age = i64::try_from(limits.age.as_millis()).unwrap_or(i64::MAX);
        let oldest = Timestamp::now().as_millisecond().saturating_sub(age);
        let mut needed = Needed::of(self);
        let (too_old, young): (Vec<_>, Vec<_>) = ended.into_iter().partition(|(_, ended, _)| *ended < oldest);
        let mut dropped = Vec::new();
        for (n, (_, _, one)) in too_old.iter().chain(&young).enumerate() {
            if n >= too_old.len() && needed.bytes <= limits.bytes {
                break;
            }
            needed.drop(one, self);
            dropped.push((*one).clone());
        }
        for one in &dropped {
            self.generations.remove(&one.id);
        }
        dropped
    }

    /// Writes what is needed of files that hold much that is not, and deletes them. With `all`, of every file that holds
    /// anything that is not needed.
    fn sweep(&mut self, states: bool, all: bool) -> io::Result<()> {
        let needed: HashSet<Hash> =
            self.generations.values().flat_map(|one| &one.parts).map(|part| part.hash).collect();
        let mut live: HashMap<usize, u64> = HashMap::new();
        for (number, frame) in self.chunks.all().filter(|(_, frame)| needed.contains(&frame.hash)) {
            *live.entry(number).or_default() += frame.end() - frame.at;
        }
        let packs = self.chunks.on(Rack::Packs);
        let bytes = |number: usize| self.chunks.files[number].as_ref().map_or(0, |stored| stored.bytes);
        let small = packs.iter().filter(|number| bytes(**number) < SMALL_BYTES).count();
        let goes = |number: &usize| {
            let (bytes, live) = (bytes(*number), live.get(number).copied().unwrap_or(0));
            live * 2 < bytes || (all && live < bytes) || (small > SMALL_FILES_MAX && bytes < SMALL_BYTES)
        };
        let goes: Vec<usize> = packs.iter().copied().filter(goes).collect();
        self.chunks.close(Rack::Packs)?;
        for number in &goes {
            self.chunks.copy_needed(*number, &needed)?;
        }
        self.chunks.close(Rack::Packs)?;
        if states || self.chunks.on(Rack::Sessions).len() > SMALL_FILES_MAX {
            self.write_states()?;
        }
        goes.into_iter().try_for_each(|number| self.chunks.delete(number))
    }

    /// Writes the states of all generations anew, and deletes the others.
    fn write_states(&mut self) -> io::Result<()> {
        let old = self.chunks.on(Rack::Sessions);
        self.chunks.close(Rack::Sessions)?;
        for generation in self.generations.values() {
            self.chunks.put_state(Rack::Sessions, &super::keep::line(generation)?)?;
        }
        self.chunks.close(Rack::Sessions)?;
        old.into_iter().try_for_each(|number| self.chunks.delete(number))
    }

    /// Puts asterisks in the place of texts; whether there were any.
    fn blank(&mut self, id: &str, texts_in: TextsIn<'_>, is_dry: bool) -> io::Result<bool> {
        let Some(generation) = self.generations.get(id).cloned() else { return Ok(false) };
        let mut whole = Vec::new();
        self.copy(&generation, generation.bytes, &mut whole)?;
        let places: Vec<_> = texts_in(&whole)
            .iter()
            .filter(|text| !text.is_empty())
            .flat_map(|text| {
                memchr::memmem::find_iter(&whole, text).map(|at| at..at + text.len()).collect::<Vec<_>>()
            })
            .collect();
        if places.is_empty() || is_dry {
            return Ok(!places.is_empty());
        }
        for place in places {
            whole[place].fill(b'*');
        }
        let mut growth = Growth::new(FileId { device: 0, inode: 0 });
        growth.take(&whole, &mut self.chunks)?;
        growth.rest(&mut self.chunks)?;
        if let Some(generation) = self.generations.get_mut(id) {
            (generation.hash, generation.bytes) = (growth.hash(), growth.bytes);
            generation.parts = growth.parts;
        }
        Ok(true)
    }
}
