//! Not a rule: how the size rules shorten texts.

use crate::Depth;
use crate::cut::{Keep, Measure, cut, has_foreign_marker, measure};
use crate::entry::Text;
use crate::finding::{Fix, Op};
use crate::literal::Unit;
use crate::marker;
use crate::policy::Policy;
use crate::session::Session;
use crate::source::Fault;
use alloc::vec::Vec;

/// How long texts can be, told without reading them.
pub(crate) fn most(policy: &Policy, texts: &[Text]) -> u64 {
    let most = |text: &Text| if policy.unit == Unit::Chars { text.chars } else { text.inner.len() };
    texts.iter().map(most).sum()
}

/// The texts of one result, measured.
pub(super) struct Measured {
    texts: Vec<Measure>,
}

impl Measured {
    /// Reads the texts. `None` if they cannot be longer than `limit`.
    pub(super) fn new(session: &Session<'_>, texts: &[Text], limit: u64) -> Result<Option<Self>, Fault> {
        if most(session.policy, texts) <= limit {
            return Ok(None);
        }
        Self::all(session, texts, limit).map(Some)
    }

    /// Reads the texts, exactly wherever they may be kept by `limit`.
    pub(super) fn all(session: &Session<'_>, texts: &[Text], limit: u64) -> Result<Self, Fault> {
        let measured: Result<Vec<_>, _> = texts.iter().map(|text| Self::text(session, text, limit)).collect();
        Ok(Self { texts: measured? })
    }

    fn text(session: &Session<'_>, text: &Text, limit: u64) -> Result<Measure, Fault> {
        let unit = session.policy.unit;
        match session.depth {
            // Far above the limit, and what another tool may leave, it does not matter whether one of our markers
            // is in it.
            Depth::Sizes
                if unit == Unit::Chars
                    && text.chars > limit.saturating_mul(2).saturating_add(marker::BYTES_MAX as u64) =>
            {
                Ok(Measure::counted(text.inner, text.chars))
            }
            Depth::Sizes => measure(session.source, text.inner, unit, false),
            Depth::Plan => measure(session.source, text.inner, unit, true),
        }
    }

    /// What counts against a limit: all texts, without our own markers.
    pub(super) fn kept(&self) -> u64 {
        self.texts.iter().map(Measure::kept).sum()
    }

    /// Whether this is more than `limit` allows. A text that another tool has cut to a limit of its own is
    /// left alone up to twice ours.
    pub(super) fn exceeds(&self, session: &Session<'_>, limit: u64) -> Result<bool, Fault> {
        let kept = self.kept();
        if kept <= limit || kept > limit.saturating_mul(2) {
            return Ok(kept > limit);
        }
        for text in &self.texts {
            if has_foreign_marker(session.source, text.span)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Shortens the texts to `limit` together: in order, what fits stays whole, the first that does not fit
    /// is cut, and of those behind it only a marker stays (as OpenClaw #10915 spreads its budget). A text that
    /// a marker would not make shorter stays as it is.
    pub(super) fn trim(&self, session: &Session<'_>, limit: u64) -> Result<Fix, Fault> {
        let mut ops = Vec::new();
        for (text, budget) in self.spread(limit) {
            if let Some(room) = budget.and_then(|budget| room(session, text, budget)) {
                ops.extend(shorten(session, text, room)?);
            }
        }
        Ok(if ops.is_empty() { Fix::NONE } else { Fix::safe(ops) })
    }

    /// The most that can be left when the texts are shortened to `limit`: more than that where a marker would
    /// outweigh what it stands for.
    pub(super) fn left(&self, session: &Session<'_>, limit: u64) -> u64 {
        let left = self.spread(limit).map(|(text, budget)| {
            let room = budget.and_then(|budget| room(session, text, budget));
            room.map_or(text.kept(), |room| if room > 0 { room + BREAKS } else { 0 })
        });
        left.sum()
    }

    /// The texts, each with how much of it may stay; `None` if it fits.
    fn spread(&self, limit: u64) -> impl Iterator<Item = (&Measure, Option<u64>)> {
        self.texts.iter().scan(limit, |budget, text| {
            if text.kept() <= *budget {
                *budget -= text.kept();
                Some((text, None))
            } else {
                Some((text, Some(core::mem::take(budget))))
            }
        })
    }
}

/// Line breaks that may come around a marker.
const BREAKS: u64 = 2;

/// The address that a marker in a text names.
fn address(text: &Measure) -> &marker::Id {
    text.own.as_ref().map_or(&text.id, |found| &found.id)
}

/// How much of a text may stay if `budget` units may, line breaks around the marker included, and it is to be
/// shorter afterwards, also in characters: those are what a summariser's limit is told in. `None` if that cannot
/// be.
fn room(session: &Session<'_>, text: &Measure, budget: u64) -> Option<u64> {
    let total = text.original();
    let folder = session.policy.spill.as_ref();
    let marker = marker::text(total, total, address(text), folder).len() as u64 + BREAKS;
    let marker_max = marker * text.unit().per_char_max();
    let shorter = text.kept().checked_sub(marker_max).filter(|&shorter| shorter > 0)?;
    Some(budget.min(shorter).saturating_sub(BREAKS))
}

/// Cuts one text so that at most `room` units of it stay. The whole text is kept, unless an earlier cut has kept it.
fn shorten(session: &Session<'_>, text: &Measure, room: u64) -> Result<Vec<Op>, Fault> {
    let total = text.original();
    let head = share(room, session.policy);
    let cut = cut(session.source, text, Keep { head, tail: room - head })?;
    let omitted = total.saturating_sub(cut.head + cut.tail);
    let folder = session.policy.spill.as_ref();
    let mut with = Vec::new();
    if !cut.head_ends_line {
        with.extend_from_slice(b"\\n");
    }
    with.extend_from_slice(marker::text(omitted, total, address(text), folder).as_bytes());
    if cut.tail > 0 {
        with.extend_from_slice(b"\\n");
    }
    let keep = text.own.is_none().then_some(Op::Keep(text.span));
    Ok(keep.into_iter().chain([Op::Replace { at: cut.out, with }]).collect())
}

fn share(room: u64, policy: &Policy) -> u64 {
    room * policy.head_percent.min(100) / 100
}
