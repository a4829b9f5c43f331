//! Puts back what a run removed: finds each place that the run changed in the text as it is now, and makes the new text.
//!
//! 1. [`Runs::choose`] picks the run, and tells which later ones landed.
//! 2. [`History`] maps the places of the run through the later runs, by offsets alone.
//! 3. `standing` verifies by its hash that a place still holds what the run wrote. If another program has moved a cut, the marker
//!    that the run left there shows where.
//! 4. [`RestoredText`] is the new text as a list of parts, and [`Restored`] writes it, with the originals from the vault.

mod history;
mod standing;

pub(crate) use history::History;

use crate::ask::error::Error;
use crate::ask::stop::{Halt, Stop};
use crate::base::refusal::Refusal;
use crate::disk::new_text::{NewText, copy_span};
use crate::platform::files::temporary;
use crate::swap::content::FileContent;
use crate::swap::snapshot::Snapshot;
use crate::vault::{Purpose, Record, RecordedChange, RemovedBytes, RunState, Vault};
use blake3::Hash;
use spans::marker::TextId;
use standing::{Standing, is_all_whole, standing};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use transcript::entry::Link;
use transcript::{Fault, Source, Span};

/// How much of a run goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// All but a compaction from which the conversation went on, texts that were forgotten, and what another program
    /// has changed since.
    Possible,
}

/// A run, and those that came after it over the same file.
pub(crate) struct Runs {
    pub(crate) target: Record,
    pub(crate) later: Vec<Record>,
}

/// Whether it merged late lines. Undoing it puts back what it could not merge, and leaves the lines that it merged.
fn is_merge(record: &Record) -> bool {
    record.purpose == Some(Purpose::Merge)
}

/// Whether the file was replaced in this run. If the run died before it could record that, the text shows it: it holds what
/// the run wrote or, if the run undid another one, no longer holds what that one wrote.
fn landed(
    record: &Record,
    earlier: &[Result<Record, Error>],
    later: &[Record],
    source: &dyn Source,
) -> Result<bool, Fault> {
    if record.state != RunState::Kept {
        return Ok(true);
    }
    let Some(undone) = &record.undoes else {
        return is_all_whole(record, &History::through(later), source);
    };
    let mut since = earlier.iter().flatten().skip_while(|other| other.run != *undone);
    let Some(target) = since.next() else { return Ok(false) };
    let between = since.filter(|other| other.state != RunState::Kept);
    Ok(!is_all_whole(target, &History::through(between.chain(later)), source)?)
}

/// Part of the restored text.
pub(crate) enum RestoredPart {
    /// Bytes of the file as it is.
    Kept(Span),
    /// What was removed from the place with this number.
    Old(usize),
    /// Nothing: what was removed from the place with this number does not come back.
    Skipped(usize),
    /// A line break.
    Break,
}

/// The restored text, as parts, and what is recorded about it.
pub(crate) struct RestoredText {
    pub(crate) parts: Vec<RestoredPart>,
    pub(crate) length: u64,
    /// Where the text that the run left behind ends now.
    pub(crate) left_to: u64,
    /// How many places are restored.
    pub(crate) restored: usize,
    /// What this changes, for the record of the undo.
    pub(crate) changes: Vec<RecordedChange>,
}

impl RestoredText {
    pub(crate) fn back(
        runs: &Runs,
        extent: Extent,
        forgotten: &HashSet<Hash>,
        source: &dyn Source,
    ) -> Result<Self, Halt> {
        let target = &runs.target;
        let history = History::through(&runs.later);
        let (mut places, is_moved) = runs.places(&history, extent, forgotten, source)?;
        if let Some(last) = places.last_mut().filter(|last| last.is_some())
            && let Some(line) = built_upon(target, &history, source)?
        {
            *last = None;
            let alone = places.iter().flatten().next().is_none();
            if alone || extent == Extent::Whole {
                return Err(Refusal::BuiltUpon { line, alone }.into());
            }
        }
        let is_lost = |change: &&RecordedChange| change.texts().any(|text| forgotten.contains(text));
        let texts = target.edits.iter().filter(is_lost).count();
        for (place, _) in places.iter_mut().zip(&target.edits).filter(|(_, change)| is_lost(change)) {
            *place = None;
        }
        let alone = places.iter().flatten().next().is_none();
        if texts > 0 && (alone || extent == Extent::Whole) {
            return Err(Refusal::Forgotten { texts, alone }.into());
        }
        let mut way = Self::with(target, &places, source);
        if !is_moved {
            way.left_to = history.place(target.bytes_after);
        }
        Ok(way)
    }

    /// Restores all places of a run over rows, which go back row by row: their records may stand anywhere in the text of
    /// `bytes` now, because a record also shows what other rows say.
    pub(crate) fn by_rows(target: &Record, bytes: u64) -> Self {
        let places = target.edits.iter();
        let length = places
            .clone()
            .fold(bytes, |length, change| (length + change.length_before()).saturating_sub(change.length));
        let changes = places.map(|_| RecordedChange::nothing(0)).collect();
        let parts = vec![RestoredPart::Kept(Span::new(0, bytes))];
        Self { parts, length, left_to: target.bytes_after.min(bytes), restored: target.edits(), changes }
    }

    /// Restores these places. What was removed from the others (`None`) does not come back.
    fn with(target: &Record, places: &[Option<u64>], source: &dyn Source) -> Self {
        let mut way = Self { parts: Vec::new(), length: 0, left_to: 0, restored: 0, changes: Vec::new() };
        let mut from = 0;
        for (number, (change, place)) in target.edits.iter().zip(places).enumerate() {
            let Some(at) = *place else {
                way.parts.push(RestoredPart::Skipped(number));
                way.changes.push(RecordedChange::nothing(from));
                continue;
            };
            let end = at + change.length;
            let goes = if is_merge(target) { Span::new(end, end) } else { Span::new(at, end) };
            way.parts.extend([RestoredPart::Kept(Span::new(from, goes.start)), RestoredPart::Old(number)]);
            from = end;
            let mut length = change.length_before();
            // If the old text ended inside a line, lines that were appended since must not continue that line.
            let is_end = change.at + change.length == target.bytes_after;
            if is_end && !target.ends_line && from < source.len() {
                way.parts.push(RestoredPart::Break);
                length += 1;
            }
            let old = vec![RemovedBytes::Gone { gone: goes.len() }];
            way.changes.push(RecordedChange { length, old, ..RecordedChange::nothing(goes.start) });
            way.restored += 1;
            way.left_to = at + (target.bytes_after - change.at);
        }
        way.parts.push(RestoredPart::Kept(Span::new(from, source.len())));
        way.place_changes(source.len());
        way
    }

    /// Computes the offset of each change in the restored text, and the length of that text.
    fn place_changes(&mut self, length: u64) {
        let (mut gone, mut come) = (0, 0);
        for change in &mut self.changes {
            change.at = change.at + come - gone;
            gone += change.length_before();
            come += change.length;
        }
        self.length = length + come - gone;
    }
}

impl Runs {
    /// Picks the run to undo, and finds out which of the later ones landed.
    pub(crate) fn choose(vault: &Vault, now: &FileContent, run: Option<&str>) -> Result<Self, Stop> {
        let mut records = vault.runs(&now.path)?;
        if let Some(run) = run
            && !records.iter().flatten().any(|record| record.run == run)
        {
            // The file may have had another path then.
            let record = vault.run(run)?.ok_or_else(|| Refusal::NoSuchRun(run.to_string()))?;
            let older = |other: &Result<Record, Error>| other.as_ref().is_ok_and(|other| *other.run < *run);
            records.insert(records.iter().rposition(older).map_or(0, |at| at + 1), Ok(record));
        }
        let mut later: Vec<Record> = Vec::new();
        while let Some(record) = records.pop() {
            let record = record?;
            let wanted = match run {
                Some(run) => record.run == run,
                None => record.can_be_undone(&later),
            };
            let landed = now.read(|source| landed(&record, &records, &later, source))?;
            if wanted && (landed || run.is_some()) {
                if record.undoes.is_some() || record.is_undone(&later) {
                    return Err(Refusal::AlreadyUndone(record.run).into());
                }
                let restores = !is_merge(&record) || record.removes();
                return if restores {
                    Ok(Self { target: record, later })
                } else {
                    Err(Refusal::NothingToUndo.into())
                };
            }
            if landed {
                later.insert(0, record);
            }
        }
        Err(Refusal::NothingToUndo.into())
    }

    /// Where each place of the target is now, `None` if it cannot be restored; and whether another program has changed or
    /// moved any.
    fn places(
        &self,
        history: &History<'_>,
        extent: Extent,
        forgotten: &HashSet<Hash>,
        source: &dyn Source,
    ) -> Result<(Vec<Option<u64>>, bool), Halt> {
        let edits = &self.target.edits;
        let standing = standing(&self.target, history, source)?;
        let mut places: Vec<Option<u64>> = standing.iter().map(|place| place.whole()).collect();
        let is_moved = places != history.places(edits);
        let at = match standing.iter().find(|place| place.whole().is_none()) {
            None => return Ok((places, is_moved)),
            Some(Standing::Touched) => self.who_touched().map_or(Ok(0), Err)?,
            Some(Standing::Whole(at) | Standing::Other(at)) => *at,
        };
        // A cut can be restored by itself. Other edits belong together: undoing half of a repair would break the session.
        let is_cut = |change: &RecordedChange| change.texts().next().is_some();
        if edits.iter().zip(&places).any(|(change, place)| place.is_none() && !is_cut(change)) {
            let others = places.iter_mut().zip(edits).filter(|(_, change)| !is_cut(change));
            others.for_each(|(place, _)| *place = None);
        }
        let back = places.iter().flatten().count();
        if back > 0 && extent == Extent::Possible {
            return Ok((places, is_moved));
        }
        let lost = edits.iter().zip(&places).filter(|(_, place)| place.is_none());
        let texts = lost.flat_map(|(change, _)| change.texts()).filter(|text| !forgotten.contains(text));
        let mut texts: Vec<String> = texts.map(|text| TextId::new(text).to_string()).collect();
        texts.dedup();
        Err(Refusal::ChangedSince { line: line_of(source, at)?, edits: edits.len(), back, texts }.into())
    }

    /// The first later run, not undone itself, after which a place of the target cannot be found any more.
    fn who_touched(&self) -> Option<Refusal> {
        let lost =
            |upto: usize| History::through(&self.later[..upto]).places(&self.target.edits).contains(&None);
        let found = (0..self.later.len()).rev().find(|&upto| !lost(upto)).unwrap_or(0);
        let mut culprits = self.later[found..].iter().filter(|run| run.undoes.is_none());
        let culprit = culprits.find(|run| !run.is_undone(&self.later))?;
        Some(Refusal::LaterRun(culprit.run.clone()))
    }
}

/// The line of an entry whose parent is the compaction that the run appended, if there is one: it would lose its parent. All
/// other entries that a run writes come before existing ones, whose links are restored with them.
fn built_upon(record: &Record, history: &History<'_>, source: &dyn Source) -> Result<Option<u64>, Fault> {
    let compacts = |purpose| purpose != Purpose::Merge;
    let last = record.edits.last().filter(|_| record.purpose.is_some_and(compacts));
    let Some(change) = last.filter(|last| last.at + last.length == record.bytes_after) else {
        return Ok(None);
    };
    let Some(&Some(at)) = history.places(&record.edits).last() else { return Ok(None) };
    let written = Span::new(at, at + change.length);
    let found = transcript::scan::scan(source)?.transcript;
    let ours = |id| found.entries.iter().any(|entry| entry.id == Some(id) && written.contains(entry.span));
    let mut later = found.entries.iter().filter(|entry| entry.span.start >= written.end);
    let child = later.find(|entry| matches!(entry.parent, Link::To(id) if ours(id)));
    Ok(child.map(|entry| entry.line))
}

/// The line in which a place is, from 1.
fn line_of(source: &dyn Source, at: u64) -> Result<u64, Fault> {
    let mut line = 1;
    source.pieces(Span::new(0, at.min(source.len())), &mut |bytes| {
        line += bytes.split(|&byte| byte == b'\n').count() as u64 - 1;
        true
    })?;
    Ok(line)
}

/// The restored text, to be written.
pub(crate) struct Restored<'a> {
    pub(crate) vault: &'a Vault,
    pub(crate) record: &'a Record,
    pub(crate) parts: Vec<RestoredPart>,
}

impl Restored<'_> {
    /// What was removed from the place with this number.
    fn old(&self, index: usize) -> &[RemovedBytes] {
        self.record.edits.get(index).map_or(&[][..], |change| &change.old)
    }
}

impl NewText for Restored<'_> {
    fn parts(&self) -> Vec<(u64, Option<Span>)> {
        let part = |part: &RestoredPart| match part {
            RestoredPart::Kept(span) => (span.len(), Some(*span)),
            RestoredPart::Skipped(_) => (0, None),
            RestoredPart::Break => (1, None),
            RestoredPart::Old(index) => {
                (self.record.edits.get(*index).map_or(0, RecordedChange::length_before), None)
            }
        };
        self.parts.iter().map(part).collect()
    }

    fn write(&self, original: &File, mut out: &File) -> io::Result<()> {
        let mut originals = self.vault.originals(self.record)?;
        for part in &self.parts {
            match part {
                RestoredPart::Kept(span) => copy_span(original, *span, out)?,
                RestoredPart::Break => out.write_all(b"\n")?,
                RestoredPart::Old(index) => {
                    self.old(*index).iter().try_for_each(|old| originals.write(old, &mut out))?;
                }
                RestoredPart::Skipped(index) => {
                    self.old(*index).iter().try_for_each(|old| originals.skip(old))?;
                }
            }
        }
        originals.finish()
    }
}

/// The text that a run replaced, in a file without a name; `None` if it cannot be restored any more. This is not what undoing
/// the run gives: for a merge, an undo leaves the lines that it merged, and puts back bytes that were never in the transcript.
pub(crate) fn text_before(vault: &Vault, record: &Record, now: &Snapshot) -> io::Result<Option<File>> {
    let length = record.edits.iter().fold(record.bytes_after, |length, change| {
        (length + change.length_before()).saturating_sub(change.length)
    });
    if record.swap.as_ref().is_none_or(|swap| swap.before != length) {
        return Ok(None);
    }
    let is_whole = |source: &dyn Source| is_all_whole(record, &History::through(&[]), source);
    if !matches!(now.read_first(record.bytes_after, is_whole), Ok(true)) {
        return Ok(None);
    }
    let (mut parts, mut from) = (Vec::new(), 0);
    for (number, change) in record.edits.iter().enumerate() {
        parts.extend([RestoredPart::Kept(Span::new(from, change.at)), RestoredPart::Old(number)]);
        from = change.at + change.length;
    }
    parts.push(RestoredPart::Kept(Span::new(from, record.bytes_after)));
    let text = Restored { vault, record, parts };
    let file = temporary()?;
    // An undo does not store what it removes, so its old text cannot be written.
    Ok(text.write(&now.file, &file).ok().map(|()| file))
}
