//! What a run did to a transcript: the places that it changed, and where in the run's file the bytes are that it removed from
//! each.
//!
//! A [`RecordedChange`] holds no new bytes, only their place, their length and a hash (`check`) of them and the bytes around them. By
//! these, `restore` finds the place again and verifies that nothing else has changed it. The removed bytes are in one of two
//! stores: each text that a rule cut is a *text* of its own, found by its hash, which the marker in the transcript names; all
//! other bytes follow one another in one frame, *inline*.

use super::hex;
use super::ledger::Ledger;
use crate::disk::path;
use crate::platform::identity::FileId;
use blake3::{Hash, Hasher};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;
use transcript::plan::{Edit, Piece, Plan};
use transcript::{Fault, Rendered, Source, Span};

/// How many bytes before and after a place are covered by its check.
pub(crate) const CONTEXT_BYTES: u64 = 32;

/// Number of hex digits of a check.
const CHECK_DIGITS: usize = 16;

/// How far a run got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// Its originals are stored. Only the transcript shows whether it was replaced.
    #[default]
    Kept,
    /// The transcript was replaced.
    Landed,
    /// It was undone.
    Undone,
}

impl RunState {
    pub(super) const ALL: [Self; 3] = [Self::Kept, Self::Landed, Self::Undone];

    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Kept => ".kept",
            Self::Landed => ".undo",
            Self::Undone => ".undone",
        }
    }
}

/// A run over a transcript, as its file describes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Which file it changed.
    #[serde(with = "path")]
    pub path: PathBuf,
    /// Its name, which sorts by time.
    pub run: String,
    /// When it was, as in `2026-11-21T16:01:02.123Z`.
    pub time: String,
    /// Length of the file before.
    pub bytes_before: u64,
    /// Length of the file afterwards.
    pub bytes_after: u64,
    /// Whether the old text ended with a line break, or was empty.
    pub(crate) ends_line: bool,
    /// The run that this one undid, if it did nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// What it was for; `None` for a repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
    /// How the transcript was replaced; `None` for a copy or a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) swap: Option<Swap>,
    /// How far the old files of other runs are accounted for once this run has landed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) accounts: Vec<Account>,
    pub(crate) edits: Vec<RecordedChange>,
    /// The texts that were cut.
    pub(crate) texts: Vec<StoredFrame>,
    /// The other bytes that were removed, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inline: Option<StoredFrame>,
    /// Rows of a store as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<RecordedRows>,
    /// How far it got, which is part of the file's name and not of its index.
    #[serde(skip)]
    pub state: RunState,
    /// The newest ledger, which has its own place in the file; `None` if none was written.
    #[serde(skip)]
    pub(crate) ledger: Option<Ledger>,
}

/// What a run was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A recovery of this level, from 1 to 3; 0 for one that aimed at a number of tokens.
    Recover(u8),
    /// A recovery after a request of so many tokens was refused.
    RecoverFrom(u64),
    /// A compaction.
    Compact,
    /// Finishing an interrupted run: late lines were merged into the transcript.
    Merge,
    /// Secrets were taken out, and nothing of them was kept.
    Secrets,
    /// Superseded rows were taken out of a database beside the session, which did not change.
    Prune,
}

impl Purpose {
    pub(crate) fn is_recovery(self) -> bool {
        matches!(self, Self::Recover(_) | Self::RecoverFrom(_))
    }
}

/// The two files of a replacement: what a later run needs to finish it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Swap {
    pub(crate) old: FileId,
    pub(crate) new: FileId,
    /// Length of the old text that was read.
    pub(crate) before: u64,
    /// Hash of its last bytes.
    #[serde(with = "hex")]
    pub(crate) end: Hash,
    /// Length of the new text, without lines that were appended to it.
    pub(crate) after: u64,
}

/// How far the old file of another run is accounted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) run: String,
    pub(crate) ledger: Ledger,
}

/// A frame in the file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFrame {
    /// Hash of the bytes that are compressed in it.
    #[serde(with = "hex")]
    pub(super) hash: Hash,
    /// Where it begins and ends.
    pub(super) frame: (u64, u64),
}

/// Rows of a store as they were before the run, one edit a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedRows {
    pub(super) frame: StoredFrame,
    /// Whether rows came, went or were linked anew.
    pub(super) is_alone: bool,
}

/// A place that a run changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedChange {
    /// Offset of the new bytes in the new text.
    pub(crate) at: u64,
    /// How many new bytes there are.
    pub(crate) length: u64,
    /// Hash of them and of up to [`CONTEXT_BYTES`] on either side.
    pub(crate) check: String,
    /// For a cut, [`line_check`] of its place. Of two places with the same bytes, one of which quotes the other, it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<String>,
    /// What was there before, in order.
    pub(crate) old: Vec<RemovedBytes>,
}

/// Bytes that a run removed, and where they are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RemovedBytes {
    /// Part of a text.
    Text {
        #[serde(with = "hex")]
        text: Hash,
        from: u64,
        to: u64,
    },
    /// Part of the inline bytes: from here to there.
    Inline { inline: (u64, u64) },
    /// Not kept: a run that undoes another removes nothing but what that one wrote, and one that takes out secrets keeps nothing.
    Gone { gone: u64 },
}

impl RemovedBytes {
    fn len(&self) -> Option<u64> {
        match self {
            Self::Text { from, to, .. } | Self::Inline { inline: (from, to) } => to.checked_sub(*from),
            Self::Gone { gone } => Some(*gone),
        }
    }
}

impl RecordedChange {
    /// A change whose new bytes stand in `new`.
    pub(super) fn checked(
        new: &dyn Source,
        at: u64,
        length: u64,
        old: Vec<RemovedBytes>,
    ) -> Result<Self, Fault> {
        let mut change = Self { length, old, ..Self::nothing(at) };
        let (front, behind) = change.context(new.len());
        change.check = check(new, Span::new(at, at + length), front, behind)?;
        if change.texts().next().is_some() {
            change.line = Some(line_check(new, at)?);
        }
        Ok(change)
    }

    /// Stands for a place that an undo leaves as it is, so that the numbers of the others match those of the run undone.
    pub(crate) fn nothing(at: u64) -> Self {
        Self { at, length: 0, check: String::new(), line: None, old: Vec::new() }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.length == 0 && self.old.is_empty()
    }

    /// Notes that what was there before is not kept.
    pub(super) fn keep_nothing(&mut self) {
        let gone = self.length_before();
        self.old = if gone > 0 { vec![RemovedBytes::Gone { gone }] } else { Vec::new() };
    }

    /// How many bytes were there before.
    pub(crate) fn length_before(&self) -> u64 {
        self.old.iter().filter_map(RemovedBytes::len).sum()
    }

    /// The texts of which it cut something.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Hash> {
        self.old.iter().filter_map(|old| match old {
            RemovedBytes::Text { text, .. } => Some(text),
            RemovedBytes::Inline { .. } | RemovedBytes::Gone { .. } => None,
        })
    }

    /// How many bytes before the place and after it its check covers, in a text of this length.
    pub(crate) fn context(&self, length: u64) -> (u64, u64) {
        let behind = length.saturating_sub(self.at.saturating_add(self.length));
        (self.at.min(CONTEXT_BYTES), behind.min(CONTEXT_BYTES))
    }
}

/// What a plan changes, and the spans of the old text that are stored inline. `hashes` are those of the plan's texts.
pub(super) fn changes(
    source: &dyn Source,
    plan: &Plan,
    hashes: &[Hash],
) -> Result<(Vec<RecordedChange>, Vec<Span>), Fault> {
    let new = Rendered::new(source, plan);
    let spans = kept_spans(plan.texts(), hashes);
    let mut within = &spans[..];
    let (mut edits, mut inline, mut done) = (Vec::new(), Vec::new(), 0);
    let (mut at, mut before) = (0, 0);
    for Edit { at: old, with } in plan.edits() {
        at += old.start - before;
        let length = with.iter().map(Piece::len).sum();
        // Both lists are sorted, so spans that end before this place are not needed any more.
        while let [(span, ..), later @ ..] = within
            && span.end <= old.start
        {
            within = later;
        }
        let old_parts = split(*old, within, &mut inline, &mut done);
        edits.push(RecordedChange::checked(&new, at, length, old_parts)?);
        at += length;
        before = old.end;
    }
    Ok((edits, inline))
}

/// Spans of the old text that belong to a text: the span, the text and the offset in it, sorted.
fn kept_spans(texts: &[Vec<Piece>], hashes: &[Hash]) -> Vec<(Span, Hash, u64)> {
    let mut spans = Vec::new();
    for (text, hash) in texts.iter().zip(hashes) {
        let mut offset = 0;
        for piece in text {
            if let Piece::Kept(span) | Piece::Moved(span) = piece {
                spans.push((*span, *hash, offset));
            }
            offset += piece.len();
        }
    }
    spans.sort_by_key(|(span, ..)| (span.start, std::cmp::Reverse(span.end)));
    spans
}

/// Where the bytes of a span of the old text are stored: in texts, and between those inline.
fn split(
    old: Span,
    within: &[(Span, Hash, u64)],
    inline: &mut Vec<Span>,
    done: &mut u64,
) -> Vec<RemovedBytes> {
    let mut parts = Vec::new();
    let mut alone = |from: u64, to: u64, parts: &mut Vec<RemovedBytes>| {
        if from < to {
            inline.push(Span::new(from, to));
            parts.push(RemovedBytes::Inline { inline: (*done, *done + to - from) });
            *done += to - from;
        }
    };
    let mut at = old.start;
    for (span, text, offset) in within.iter().take_while(|(span, ..)| span.start < old.end) {
        let (from, to) = (span.start.max(at), span.end.min(old.end));
        if from < to {
            alone(at, from, &mut parts);
            let (start, end) = (offset + from - span.start, offset + to - span.start);
            parts.push(RemovedBytes::Text { text: *text, from: start, to: end });
            at = to;
        }
    }
    alone(at, old.end, &mut parts);
    parts
}

/// The hash of a place, with `front` bytes before it and `behind` bytes after it.
pub(crate) fn check(source: &dyn Source, place: Span, front: u64, behind: u64) -> Result<String, Fault> {
    let mut hasher = Hasher::new();
    source.pieces(Span::new(place.start - front, place.end + behind), &mut |bytes| {
        hasher.update(bytes);
        true
    })?;
    Ok(hasher.finalize().to_hex()[..CHECK_DIGITS].to_string())
}

/// How far before a place its line may begin: in windows of these lengths, the next one where the one before did not reach.
const LINE_WINDOWS: [u64; 3] = [4 << 10, 32 << 10, 256 << 10];

/// How many bytes of a line tell it from others: its ids are among them.
const LINE_HEAD_BYTES: usize = 256;

/// The hash of how a line begins, and of where in it a place is. A line that begins too far before the place counts as one that
/// begins as far before it as is looked.
pub(crate) fn line_check(source: &dyn Source, at: u64) -> Result<String, Fault> {
    let mut front = Vec::new();
    for window in LINE_WINDOWS {
        let from = at.saturating_sub(window);
        front.resize((at - from) as usize, 0);
        source.fill(from, &mut front)?;
        if let Some(end) = memchr::memrchr(b'\n', &front) {
            front.drain(..=end);
            break;
        }
        if from == 0 {
            break;
        }
    }
    let head = &front[..front.len().min(LINE_HEAD_BYTES)];
    let hash = Hasher::new().update(&front.len().to_le_bytes()).update(head).finalize();
    Ok(hash.to_hex()[..CHECK_DIGITS].to_string())
}

impl Record {
    /// Whether the edits are in order and add up, what they removed is in the file, and all frames are within `room`.
    pub(super) fn is_sound(&self, room: Span) -> bool {
        let fits = |stored: &StoredFrame| {
            let (start, end) = stored.frame;
            start <= end && room.contains(Span::new(start, end))
        };
        let texts: HashSet<Hash> = self.texts.iter().map(|stored| stored.hash).collect();
        self.adds_up(&texts).unwrap_or(false) && {
            let rows = self.rows.map(|rows| rows.frame);
            self.texts.iter().chain(&self.inline).chain(&rows).all(fits)
        }
    }

    /// `None` if a number is out of range.
    fn adds_up(&self, texts: &HashSet<Hash>) -> Option<bool> {
        let (mut after, mut before, mut inline) = (0_u64, 0_u64, 0_u64);
        for change in &self.edits {
            before = before.checked_add(change.at.checked_sub(after)?)?;
            after = change.at.checked_add(change.length)?;
            for old in &change.old {
                before = before.checked_add(old.len()?)?;
                match old {
                    RemovedBytes::Text { text, .. } if !texts.contains(text) => return None,
                    RemovedBytes::Inline { inline: (from, _) } if *from != inline => return None,
                    RemovedBytes::Inline { inline: (_, to) } => inline = *to,
                    RemovedBytes::Text { .. } | RemovedBytes::Gone { .. } => {}
                }
            }
        }
        let rest = self.bytes_after.checked_sub(after)?;
        let is_kept = inline == 0 || self.inline.is_some();
        Some(is_kept && self.bytes_before.checked_sub(before)? == rest)
    }

    /// How many places it changed.
    pub fn edits(&self) -> usize {
        self.edits.len()
    }

    /// Whether it changed rows with their owner stopped. They tell by themselves whether they are as it left them.
    pub(crate) fn is_of_rows(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.is_alone)
    }

    /// Whether it was undone: its file says so, or one of these later runs does.
    pub fn is_undone<'r>(&self, later: impl IntoIterator<Item = &'r Self>) -> bool {
        self.state == RunState::Undone
            || later.into_iter().any(|other| other.undoes.as_ref() == Some(&self.run))
    }

    /// Whether `undo` may choose it when the user names no run.
    pub fn can_be_undone<'r>(&self, later: impl IntoIterator<Item = &'r Self>) -> bool {
        self.undoes.is_none() && self.purpose != Some(Purpose::Merge) && !self.is_undone(later)
    }

    /// Whether it removed bytes.
    pub(crate) fn removes(&self) -> bool {
        self.edits.iter().any(|change| change.length_before() > 0)
    }
}
