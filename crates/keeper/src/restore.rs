//! The text as it was before a run: where each place that the run changed is by now, and what stood there.

mod history;

pub(crate) use history::History;

use crate::error::Error;
use crate::new_text::{NewText, copy_span};
use crate::platform::files::temporary;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::stop::{Halt, Stop};
use crate::vault::{Change, Old, Purpose, Record, State, Vault, check};
use blake3::Hash;
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
    /// All but a compaction from which the conversation went on, and texts that were forgotten.
    AllButCompaction,
}

/// A run, and those that came after it over the same file.
pub(crate) struct Runs {
    pub(crate) target: Record,
    pub(crate) later: Vec<Record>,
}

/// Whether it brought over lines of an interrupted run. Undoing it puts back what it dropped, and leaves these lines.
fn is_merge(record: &Record) -> bool {
    record.purpose == Some(Purpose::Merge)
}

/// Whether the file was replaced in this run. If nobody lived to write that down, the file tells: it holds what the
/// run wrote, or, for a run that took another back, no longer what that one wrote.
fn landed(
    record: &Record,
    earlier: &[Result<Record, Error>],
    later: &[Record],
    source: &dyn Source,
) -> Result<bool, Fault> {
    if record.state != State::Kept {
        return Ok(true);
    }
    let Some(undone) = &record.undoes else {
        return Ok(first_wrong(record, &History::through(later), source)?.is_none());
    };
    let mut since = earlier.iter().flatten().skip_while(|other| other.run != *undone);
    let Some(target) = since.next() else { return Ok(false) };
    let between = since.filter(|other| other.state != State::Kept);
    Ok(first_wrong(target, &History::through(between.chain(later)), source)?.is_some())
}

/// Why a place is not what the run left behind.
enum Wrong {
    /// A later run touched it.
    Touched,
    /// Other bytes stand there now.
    Other(u64),
}

/// The first place that is not what the run left behind.
fn first_wrong(record: &Record, history: &History<'_>, source: &dyn Source) -> Result<Option<Wrong>, Fault> {
    for (change, place) in record.edits.iter().zip(history.places(&record.edits)) {
        let Some(at) = place else { return Ok(Some(Wrong::Touched)) };
        let (front, behind) = change.context(record.bytes_after);
        let there = at.checked_add(change.length + behind).is_some_and(|end| end <= source.len());
        if !there || check(source, Span::new(at, at + change.length), front, behind)? != change.check {
            return Ok(Some(Wrong::Other(at)));
        }
    }
    Ok(None)
}

/// Part of the text as it is to be.
pub(crate) enum Part {
    /// Bytes of the file as it is.
    Kept(Span),
    /// What stood at the place with this number.
    Old(usize),
    /// Nothing of what stood at the place with this number.
    Skipped(usize),
    /// A line break.
    Break,
}

/// How to get back.
pub(crate) struct Way {
    pub(crate) parts: Vec<Part>,
    pub(crate) length: u64,
    /// The same, to be kept.
    pub(crate) changes: Vec<Change>,
}

impl Way {
    pub(crate) fn back(
        runs: &Runs,
        extent: Extent,
        forgotten: &HashSet<Hash>,
        source: &dyn Source,
    ) -> Result<Self, Halt> {
        let history = History::through(&runs.later);
        match first_wrong(&runs.target, &history, source)? {
            Some(Wrong::Touched) => return Err(runs.who_touched().into()),
            Some(Wrong::Other(at)) => return Err(Refusal::ChangedSince { line: line_of(source, at)? }.into()),
            None => {}
        }
        let target = &runs.target;
        let mut going = target.edits.len();
        if let Some(line) = built_upon(target, &history, source)? {
            going -= 1;
            let alone = going == 0;
            if alone || extent == Extent::Whole {
                return Err(Refusal::BuiltUpon { line, alone }.into());
            }
        }
        let is_forgotten = |old: &Old| matches!(old, Old::Text { text, .. } if forgotten.contains(text));
        let lost = |change: &&Change| change.old.iter().any(is_forgotten);
        let texts = target.edits.iter().filter(lost).count();
        let alone = texts == target.edits.len();
        if texts > 0 && (alone || extent == Extent::Whole) {
            return Err(Refusal::Forgotten { texts, alone }.into());
        }
        let mut way = Self { parts: Vec::new(), length: 0, changes: Vec::new() };
        let mut from = 0;
        let places = history.places(&target.edits);
        for (number, (change, place)) in target.edits.iter().zip(places).enumerate().take(going) {
            if lost(&change) {
                way.parts.push(Part::Skipped(number));
                continue;
            }
            let at = place.ok_or_else(|| runs.who_touched())?;
            let end = at + change.length;
            let goes = if is_merge(target) { Span::new(end, end) } else { Span::new(at, end) };
            way.parts.extend([Part::Kept(Span::new(from, goes.start)), Part::Old(number)]);
            from = end;
            let mut length = change.length_before();
            // What was appended to a whole line must not end up on the same line as half a one.
            let is_end = change.at + change.length == target.bytes_after;
            if is_end && !target.ends_line && from < source.len() {
                way.parts.push(Part::Break);
                length += 1;
            }
            let old = vec![Old::Gone { gone: goes.len() }];
            way.changes.push(Change { at: goes.start, length, check: String::new(), old });
        }
        way.parts.push(Part::Kept(Span::new(from, source.len())));
        way.settle(source.len());
        Ok(way)
    }

    /// Works out where each change stands in the text as it is to be, and how long that is.
    fn settle(&mut self, length: u64) {
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
    /// Picks the run to be taken back and finds out which of the later ones landed.
    pub(crate) fn choose(vault: &Vault, snapshot: &Snapshot, run: Option<&str>) -> Result<Self, Stop> {
        let mut records = vault.runs(&snapshot.path)?;
        if let Some(run) = run
            && !records.iter().flatten().any(|record| record.run == run)
        {
            // The file may have had another name then.
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
            let landed = snapshot.read(|source| landed(&record, &records, &later, source))?;
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

    /// The first of the later runs that is still in effect and behind which a place of the target is not to be
    /// found any more.
    fn who_touched(&self) -> Refusal {
        let lost =
            |upto: usize| History::through(&self.later[..upto]).places(&self.target.edits).contains(&None);
        let found = (0..self.later.len()).rev().find(|&upto| !lost(upto)).unwrap_or(0);
        let mut culprits = self.later[found..].iter().filter(|run| run.undoes.is_none());
        let culprit = culprits.find(|run| !run.is_undone(&self.later));
        culprit.map_or(Refusal::ChangedSince { line: 1 }, |run| Refusal::LaterRun(run.run.clone()))
    }
}

/// The line of an entry that hangs on the compaction with which the run ended the file, if there is one. Whatever else a
/// run writes stands in front of entries that are hung back when it is undone.
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
    let hangs = later.find(|entry| matches!(entry.parent, Link::To(id) if ours(id)));
    Ok(hangs.map(|entry| entry.line))
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

/// The text with what a run took out.
pub(crate) struct Restored<'a> {
    pub(crate) vault: &'a Vault,
    pub(crate) record: &'a Record,
    pub(crate) parts: Vec<Part>,
}

impl Restored<'_> {
    /// What stood at the place with this number.
    fn old(&self, index: usize) -> &[Old] {
        self.record.edits.get(index).map_or(&[][..], |change| &change.old)
    }
}

impl NewText for Restored<'_> {
    fn parts(&self) -> Vec<(u64, Option<Span>)> {
        let part = |part: &Part| match part {
            Part::Kept(span) => (span.len(), Some(*span)),
            Part::Skipped(_) => (0, None),
            Part::Break => (1, None),
            Part::Old(index) => (self.record.edits.get(*index).map_or(0, Change::length_before), None),
        };
        self.parts.iter().map(part).collect()
    }

    fn write(&self, original: &File, mut out: &File) -> io::Result<()> {
        let mut originals = self.vault.originals(self.record)?;
        for part in &self.parts {
            match part {
                Part::Kept(span) => copy_span(original, *span, out)?,
                Part::Break => out.write_all(b"\n")?,
                Part::Old(index) => {
                    self.old(*index).iter().try_for_each(|old| originals.write(old, &mut out))?;
                }
                Part::Skipped(index) => self.old(*index).iter().try_for_each(|old| originals.skip(old))?,
            }
        }
        originals.finish()
    }
}

/// The text that a run replaced, in a file without a name; `None` if it cannot be told any more. Undoing the run need not
/// give this text: that leaves lines which the run brought over, and puts back what was never in the transcript.
pub(crate) fn text_before(vault: &Vault, record: &Record, now: &Snapshot) -> io::Result<Option<File>> {
    let length = record.edits.iter().fold(record.bytes_after, |length, change| {
        (length + change.length_before()).saturating_sub(change.length)
    });
    if record.swap.as_ref().is_none_or(|swap| swap.before != length) {
        return Ok(None);
    }
    let wrong = |source: &dyn Source| first_wrong(record, &History::through(&[]), source);
    if !matches!(now.read_first(record.bytes_after, wrong), Ok(None)) {
        return Ok(None);
    }
    let (mut parts, mut from) = (Vec::new(), 0);
    for (number, change) in record.edits.iter().enumerate() {
        parts.extend([Part::Kept(Span::new(from, change.at)), Part::Old(number)]);
        from = change.at + change.length;
    }
    parts.push(Part::Kept(Span::new(from, record.bytes_after)));
    let text = Restored { vault, record, parts };
    let file = temporary()?;
    // A run that took another back has not kept what it removed.
    Ok(text.write(&now.file, &file).ok().map(|()| file))
}
