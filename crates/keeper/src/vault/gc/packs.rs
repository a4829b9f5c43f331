//! Packs, when it is known which texts stay: one of which nothing stays goes, one of which something goes is written anew,
//! and many small ones become few, so that a text is found quickly. Which texts stay is decided elsewhere.

use super::super::catalogue::{Catalogue, Pack};
use super::super::pack::{Entry, Writer};
use super::{Freed, note, remove};
use blake3::Hash;
use std::io;

/// Packs below this size are small.
const SMALL_BYTES: u64 = 8 << 20;

/// How many small packs may stay as they are.
pub(super) const SMALL_MAX: usize = 32;

/// What becomes of a pack.
struct Part<'c> {
    number: usize,
    pack: &'c Pack,
    /// What stays of it.
    stays: Vec<Entry>,
    /// How many texts go, and how many bytes.
    goes: (u64, u64),
}

impl Part<'_> {
    fn is_small(&self) -> bool {
        self.pack.bytes < SMALL_BYTES
    }

    /// When the oldest text that stays was kept.
    fn since(&self) -> Option<u64> {
        self.stays.iter().map(|entry| entry.kept).min()
    }
}

/// Removes all other texts, or with `dry_run` only says what that would be.
pub(super) fn clear(catalogue: &Catalogue, stays: &dyn Fn(&Hash) -> bool, dry_run: bool, freed: &mut Freed) {
    let (gone, mut rest): (Vec<_>, Vec<_>) =
        parts(catalogue, stays).into_iter().partition(|part| part.stays.is_empty());
    // First: it makes room for what is written anew.
    for part in gone {
        clear_group(catalogue, &[part], dry_run, freed);
    }
    let many = rest.iter().filter(|part| part.is_small()).count() > SMALL_MAX;
    rest.sort_by_key(Part::since);
    let (anew, same): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|part| part.stays.len() < part.pack.texts || (many && part.is_small()));
    for part in same {
        count(&part, false, freed);
    }
    let mut group = Vec::new();
    for part in anew {
        group.push(part);
        let bytes: u64 = group.iter().flat_map(|part: &Part<'_>| &part.stays).map(Entry::bytes).sum();
        if bytes >= SMALL_BYTES {
            clear_group(catalogue, &std::mem::take(&mut group), dry_run, freed);
        }
    }
    clear_group(catalogue, &group, dry_run, freed);
}

fn parts<'c>(catalogue: &'c Catalogue, stays: &dyn Fn(&Hash) -> bool) -> Vec<Part<'c>> {
    let part = |(number, pack)| Part { number, pack, stays: Vec::new(), goes: (0, 0) };
    let mut parts: Vec<Part<'_>> = catalogue.packs.iter().enumerate().map(part).collect();
    for place in catalogue.places() {
        let Some(part) = parts.get_mut(place.pack) else { continue };
        if stays(&place.entry.hash) {
            part.stays.push(place.entry);
        } else {
            part.goes.0 += 1;
            part.goes.1 += place.entry.bytes();
        }
    }
    parts
}

/// Makes one pack of what stays of these, and removes them.
fn clear_group(catalogue: &Catalogue, group: &[Part<'_>], dry_run: bool, freed: &mut Freed) {
    let written = if dry_run { Ok(()) } else { write(catalogue, group) };
    let written = note(freed, &catalogue.folder.path_of(""), written);
    for part in group {
        let remove = || remove(&catalogue.folder, &part.pack.name, dry_run);
        let removed = written && note(freed, &catalogue.folder.path_of(&part.pack.name), remove());
        count(part, removed, freed);
    }
}

fn write(catalogue: &Catalogue, group: &[Part<'_>]) -> io::Result<()> {
    if group.iter().all(|part| part.stays.is_empty()) {
        return Ok(());
    }
    let mut pack = Writer::begin(&catalogue.folder)?;
    for part in group {
        let file = catalogue.file(part.number)?;
        let mut stays = part.stays.clone();
        stays.sort_by_key(|entry| entry.frame.start);
        stays.iter().try_for_each(|entry| pack.copy(&file, entry))?;
    }
    pack.finish()
}

fn count(part: &Part<'_>, removed: bool, freed: &mut Freed) {
    let (texts, bytes) = part.goes;
    freed.texts_kept += part.stays.len() as u64;
    freed.bytes_kept += part.stays.iter().map(Entry::bytes).sum::<u64>();
    let (all_texts, all_bytes) = if removed {
        (&mut freed.texts, &mut freed.bytes)
    } else {
        (&mut freed.texts_kept, &mut freed.bytes_kept)
    };
    *all_texts += texts;
    *all_bytes += bytes;
}
