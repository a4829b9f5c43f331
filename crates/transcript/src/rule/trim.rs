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

/// The texts of one result, measured.
pub(super) struct Measured {
    texts: Vec<Measure>,
}

impl Measured {
    /// Reads the texts. `None` if they cannot be longer than `limit`.
    pub(super) fn new(session: &Session<'_>, texts: &[Text], limit: u64) -> Result<Option<Self>, Fault> {
        let unit = session.policy.unit;
        let most = |text: &Text| if unit == Unit::Chars { text.chars } else { text.inner.len() };
        if texts.iter().map(most).sum::<u64>() <= limit {
            return Ok(None);
        }
        let measured: Result<Vec<_>, _> = texts.iter().map(|text| Self::text(session, text, limit)).collect();
        Ok(Some(Self { texts: measured? }))
    }

    fn text(session: &Session<'_>, text: &Text, limit: u64) -> Result<Measure, Fault> {
        let unit = session.policy.unit;
        match session.depth {
            // Far above the limit it does not matter whether one of our markers is in it.
            Depth::Sizes
                if unit == Unit::Chars && text.chars > limit.saturating_add(marker::BYTES_MAX as u64) =>
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
        let mut budget = limit;
        for text in &self.texts {
            if text.kept() <= budget {
                budget -= text.kept();
            } else {
                ops.extend(shorten(session, text, budget)?);
                budget = 0;
            }
        }
        Ok(if ops.is_empty() { Fix::NONE } else { Fix::safe(ops) })
    }
}

/// Line breaks that may come around a marker.
const BREAKS: u64 = 2;

/// Cuts one text so that at most `budget` units of it stay, line breaks around the marker included, and that it
/// is shorter afterwards. The whole text is kept, unless an earlier cut has kept it.
fn shorten(session: &Session<'_>, text: &Measure, budget: u64) -> Result<Vec<Op>, Fault> {
    let total = text.original();
    let id = text.own.as_ref().map_or(&text.id, |found| &found.id);
    let folder = session.policy.spill.as_ref();
    let marker_max = marker::text(total, total, id, folder).len() as u64 + BREAKS;
    if text.kept() <= marker_max {
        return Ok(Vec::new());
    }
    let room = budget.min(text.kept() - marker_max).saturating_sub(BREAKS);
    let head = share(room, session.policy);
    let cut = cut(session.source, text, Keep { head, tail: room - head })?;
    let omitted = total.saturating_sub(cut.head + cut.tail);
    let mut with = Vec::new();
    if !cut.head_ends_line {
        with.extend_from_slice(b"\\n");
    }
    with.extend_from_slice(marker::text(omitted, total, id, folder).as_bytes());
    if cut.tail > 0 {
        with.extend_from_slice(b"\\n");
    }
    let keep = text.own.is_none().then_some(Op::Keep(text.span));
    Ok(keep.into_iter().chain([Op::Replace { at: cut.out, with }]).collect())
}

fn share(room: u64, policy: &Policy) -> u64 {
    room * policy.head_percent.min(100) / 100
}
