//! Not a rule: how the size rules shorten texts.

use super::base::tool_of;
use crate::model::finding::{Fix, Op};
use crate::model::policy::{Cap, CutShape, Depth, Kept, Policy};
use crate::session::Session;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use spans::cut::CutLines;
use spans::cut::{Keep, Measure, cut, line_breaks, lines_end, measure};
use spans::json::JsonText;
use spans::marker;
use spans::source::{Fault, Span};

/// The greatest possible length of texts, without reading them.
pub(crate) fn most(policy: &Policy, texts: &[JsonText]) -> u64 {
    texts.iter().map(|text| text.length(policy.unit).unwrap_or(text.inner.len())).sum()
}

/// Whether the policy lets a result be cut.
pub(super) fn may_cut(session: &Session<'_>, result: usize) -> bool {
    let images = session.policy.skip_images && session.result(result).images > 0;
    !images && session.policy.may_cut(session.transcript.id_text(tool_of(session, result)))
}

/// The limits of a result, in the order in which they apply.
pub(super) fn caps(session: &Session<'_>, result: usize) -> impl Iterator<Item = Cap> {
    let found = session.result(result);
    let tool = session.transcript.id_text(tool_of(session, result));
    let images = session.policy.skip_images && found.images > 0;
    let caps = if images { [None; 2] } else { session.policy.caps_for(tool, found.error) };
    caps.into_iter().flatten()
}

/// A result's texts and the first limit that they exceed, if they exceed any.
pub(super) fn exceeded(session: &Session<'_>, result: usize) -> Result<Option<(Measured, Cap)>, Fault> {
    let texts = session.transcript.bodies_of(result);
    for cap in caps(session, result) {
        if may_exceed(session, texts, &cap) {
            let text = Measured::all(session, texts, cap.chars_max)?;
            if let Some(cap) = text.exceeds_cap(session, cap)? {
                return Ok(Some((text, cap)));
            }
        }
    }
    Ok(None)
}

/// Whether texts may be longer than a limit allows, without reading them.
fn may_exceed(session: &Session<'_>, texts: &[JsonText], cap: &Cap) -> bool {
    // A line break is one character, but at least two bytes in the file.
    let breaks_max: u64 = texts.iter().map(|text| text.inner.len().saturating_sub(text.chars)).sum();
    length_max(session, texts) > cap.chars_max || (cap.lines_max > 0 && breaks_max >= cap.lines_max)
}

/// The greatest possible length of texts, in the unit of the policy.
pub(super) fn length_max(session: &Session<'_>, texts: &[JsonText]) -> u64 {
    most(session.policy, texts)
}

/// What markers say in addition to sizes.
#[derive(Clone, Copy)]
pub(super) enum Notes<'n> {
    /// Nothing.
    None,
    /// A note for each text.
    Each(&'n [String]),
    /// The line from which to read on, given how many lines were skipped before the text.
    ReadOn(u64),
}

impl<'n> Notes<'n> {
    /// A note for a text that is as long as notes can be.
    fn sample(self, n: usize) -> &'n str {
        match self {
            Self::None => "",
            Self::Each(notes) => notes.get(n).map_or("", String::as_str),
            Self::ReadOn(_) => "read on with offset 4294967295",
        }
    }

    /// The note for a text of which this much stays at the beginning.
    fn note(self, session: &Session<'_>, n: usize, kept: Span) -> Result<Cow<'n, str>, Fault> {
        Ok(match self {
            Self::ReadOn(first) if session.depth != Depth::Sizes => {
                let next = first.saturating_add(line_breaks(session.source, kept)?);
                format!("read on with offset {}", next.min(u64::from(u32::MAX))).into()
            }
            other => other.sample(n).into(),
        })
    }
}

/// The texts of one result, measured.
pub(super) struct Measured {
    texts: Vec<Measure>,
}

impl Measured {
    /// Reads the texts. `None` if they cannot be longer than `limit`.
    pub(super) fn new(session: &Session<'_>, texts: &[JsonText], limit: u64) -> Result<Option<Self>, Fault> {
        if length_max(session, texts) <= limit {
            return Ok(None);
        }
        Self::all(session, texts, limit).map(Some)
    }

    /// Reads the texts. Measures exactly those that may fit into `limit`.
    pub(super) fn all(session: &Session<'_>, texts: &[JsonText], limit: u64) -> Result<Self, Fault> {
        let measured: Result<Vec<_>, _> = texts.iter().map(|text| Self::text(session, text, limit)).collect();
        Ok(Self { texts: measured? })
    }

    fn text(session: &Session<'_>, text: &JsonText, limit: u64) -> Result<Measure, Fault> {
        let unit = session.policy.unit;
        let (known, planned) = (text.length(unit), session.depth == Depth::Plan);
        if let Some(units) = known.filter(|_| !planned && text.is_unmarked()) {
            return Ok(Measure::counted(text.inner, units, unit));
        }
        // For texts far above the limit, their size need not consider our markers, nor
        // other units than characters.
        let far = text.chars > limit.saturating_mul(2).saturating_add(marker::BYTES_MAX as u64);
        if session.depth == Depth::Sizes && far {
            return Ok(Measure::counted(text.inner, text.chars, unit));
        }
        measure(session.source, text.inner, known, unit, planned)
    }

    /// What counts against a limit: all texts, without our own markers.
    pub(super) fn kept(&self) -> u64 {
        self.texts.iter().map(Measure::kept).sum()
    }

    /// The limit, if it is exceeded. A limit of lines is converted to one of characters.
    pub(super) fn exceeds_cap(&self, session: &Session<'_>, cap: Cap) -> Result<Option<Cap>, Fault> {
        if let (1.., [text]) = (cap.lines_max, &self.texts[..])
            && let Some(units) = lines_end(session.source, text, cap.lines_max, cap.chars_max)?
        {
            return Ok(Some(Cap { chars_max: units, ..cap }));
        }
        Ok((self.kept() > cap.chars_max).then_some(cap))
    }

    /// Shortens the texts to `limit` in total, with this shape. A text that a marker would not make shorter stays as it
    /// is. Each marker gets the note with the number of its text, if there is one.
    pub(super) fn trim(
        &self,
        session: &Session<'_>,
        shape: CutShape,
        limit: u64,
        notes: Notes<'_>,
    ) -> Result<Fix, Fault> {
        let mut ops = Vec::with_capacity(2 * self.texts.len());
        for (n, (text, keep)) in self.texts.iter().zip(self.keep(session, shape, limit, notes)).enumerate() {
            if let Some(keep) = keep {
                shorten(session, text, keep, shape.lines, (notes, n), &mut ops)?;
            }
        }
        Ok(if ops.is_empty() { Fix::NONE } else { Fix::safe(ops) })
    }

    /// The greatest length that can remain after shortening to `limit`. It is above the limit where a marker would be
    /// longer than the text it replaces.
    pub(super) fn left(&self, session: &Session<'_>, shape: CutShape, limit: u64) -> u64 {
        let breaks = if matches!(shape.kept, Kept::Within(_)) { BREAKS } else { 0 };
        let left =
            self.texts.iter().zip(self.keep(session, shape, limit, Notes::None)).map(|(text, keep)| {
                let room = keep.map(|keep| keep.head + keep.tail);
                room.map_or(text.kept(), |room| if room > 0 { room + breaks } else { 0 })
            });
        left.sum()
    }

    /// How much of each text may stay; `None` if all of it may.
    fn keep(
        &self,
        session: &Session<'_>,
        shape: CutShape,
        limit: u64,
        notes: Notes<'_>,
    ) -> Vec<Option<Keep>> {
        let (percent, breaks) = match shape.kept {
            Kept::Sizes { head, tail } if head.saturating_add(tail) < limit => {
                return self.ends(session, head, tail, notes);
            }
            // If a limit is too small for both ends, ChatCLI's per-tool cap keeps the beginning.
            Kept::Sizes { .. } => (100, 0),
            Kept::Percent(percent) => (percent.min(100), 0),
            Kept::Within(percent) => (percent.min(100), BREAKS),
        };
        // In order: texts that fit stay whole, the first that does not fit is cut, and of later ones only a marker
        // stays, as OpenClaw #10915 spreads its budget.
        let mut budget = limit;
        let keep = self.texts.iter().enumerate().map(|(n, text)| {
            if text.kept() <= budget {
                budget -= text.kept();
                return None;
            }
            let room = room(session, text, core::mem::take(&mut budget), notes.sample(n))?;
            let room = room.saturating_sub(breaks);
            let head = room * percent / 100;
            Some(Keep { head, tail: room - head })
        });
        keep.collect()
    }

    /// The beginning of the first text and the end of the last: the texts count as one, joined by line breaks, as in
    /// OpenClaw's pruner.
    fn ends(&self, session: &Session<'_>, head: u64, tail: u64, notes: Notes<'_>) -> Vec<Option<Keep>> {
        let mut keep = vec![Keep { head: 0, tail: 0 }; self.texts.len()];
        let (mut head, mut tail) = (head, tail);
        for (text, keep) in self.texts.iter().zip(&mut keep) {
            keep.head = text.kept().min(head);
            head = head.saturating_sub(keep.head + 1);
        }
        for (text, keep) in self.texts.iter().zip(&mut keep).rev() {
            keep.tail = text.kept().min(tail);
            tail = tail.saturating_sub(keep.tail + 1);
        }
        let fit = |(n, (text, keep)): (usize, (&Measure, Keep))| {
            let both = keep.head + keep.tail;
            if text.kept() <= both {
                return None;
            }
            let room = room(session, text, both, notes.sample(n))?;
            let head = keep.head.min(room);
            Some(Keep { head, tail: room - head })
        };
        self.texts.iter().zip(keep).enumerate().map(fit).collect()
    }

    /// The texts.
    pub(super) fn texts(&self) -> &[Measure] {
        &self.texts
    }
}

/// Line breaks that may surround a marker.
const BREAKS: u64 = 2;

/// The id that a marker in a text names.
fn address(text: &Measure) -> &marker::TextId {
    text.own.as_ref().map_or(&text.id, |found| &found.id)
}

/// How much of a text may stay, given a budget. The text must become shorter, also in characters, because a
/// summariser's limit is in characters. `None` if that is impossible.
fn room(session: &Session<'_>, text: &Measure, budget: u64, note: &str) -> Option<u64> {
    let total = text.original();
    let folder = session.policy.spill.as_ref();
    let marker = marker::bytes_max(total, address(text), folder, note) + BREAKS;
    let marker_max = marker * text.unit().per_char_max();
    let shorter = text.kept().checked_sub(marker_max).filter(|&shorter| shorter > 0)?;
    Some(budget.min(shorter))
}

/// Cuts one text to at most `keep`; the marker gets the note with this number. The vault keeps the original, unless an
/// earlier cut has stored it.
fn shorten(
    session: &Session<'_>,
    text: &Measure,
    keep: Keep,
    lines: CutLines,
    (notes, n): (Notes<'_>, usize),
    ops: &mut Vec<Op>,
) -> Result<(), Fault> {
    let total = text.original();
    let cut = cut(session.source, text, keep, lines)?;
    let omitted = total.saturating_sub(cut.head + cut.tail);
    let note = notes.note(session, n, Span::new(text.span.start, cut.out.start))?;
    let folder = session.policy.spill.as_ref();
    let marker = marker::text(omitted, total, address(text), folder, &note);
    let mut with = Vec::with_capacity(marker.len() + 2 * b"\\n".len());
    if !cut.head_ends_line {
        with.extend_from_slice(b"\\n");
    }
    with.extend_from_slice(marker.as_bytes());
    if cut.tail > 0 {
        with.extend_from_slice(b"\\n");
    }
    ops.extend(text.own.is_none().then_some(Op::Keep(text.span)));
    ops.push(Op::Cut { text: text.span, at: cut.out, with });
    Ok(())
}
