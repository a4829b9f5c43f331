//! Not a rule: which records and lines must not be added, removed or moved, because another file counts them or holds offsets
//! of them.

use crate::format::{Format, OutsideCount, ResultPlace};
use crate::model::entry::ContentIssueKind;
use crate::model::finding::{Held, Op};
use crate::session::Session;
use spans::json;
use spans::source::{Fault, Span, ends_line_at, read_span};

/// Whether records of a format are never added or removed.
pub(super) fn records_stay(format: &Format) -> bool {
    records_keep_their_order(format) || matches!(format.counted, Some(OutsideCount::Number(_)))
}

/// Whether records of a format are never moved.
pub(super) fn records_keep_their_order(format: &Format) -> bool {
    matches!(format.counted, Some(OutsideCount::Records(_) | OutsideCount::Lines(_)))
}

/// Why these steps are forbidden by the file, or by whatever counts its lines.
pub(crate) fn forbidden(session: &Session<'_>, steps: &[Op]) -> Result<Option<Held>, Fault> {
    if let Some(why) = session.read_only() {
        return Ok(Some(Held::ReadOnly(why)));
    }
    if let Some(place) = session.transcript.offsets {
        for step in steps {
            if !stays_in_place(session, step)? {
                return Ok(Some(Held::Offsets(place)));
            }
        }
    }
    let (place, lines, from) = match session.format.counted {
        None => return Ok(None),
        Some(OutsideCount::Records(place) | OutsideCount::Number(place)) => (place, false, u32::MAX),
        Some(OutsideCount::Lines(place)) => (place, true, u32::MAX),
        Some(OutsideCount::UpToCompaction(place)) => (place, false, session.last_boundary().unwrap_or(0)),
        Some(OutsideCount::UpToCount(place)) => (place, false, counted_up_to(session)),
    };
    for op in steps {
        let changes = match *op {
            Op::Insert { .. } | Op::ToFront(_) => true,
            Op::DropEntry(entry) | Op::DropCopy(entry) => entry < from,
            Op::Move { .. } if matches!(session.format.counted, Some(OutsideCount::Number(_))) => false,
            Op::Move { entry, after } => entry < from || after < from,
            Op::Answer(call) => {
                !matches!(session.format.answer, ResultPlace::NextUser | ResultPlace::Call(_))
                    && session.call(call).entry < from
            }
            Op::Replace { at, ref with } if lines => changes_line_count(session, at, with)?,
            Op::Replace { .. } | Op::Cut { .. } | Op::DropBlock { .. } | Op::Keep(_) => false,
        };
        if changes {
            return Ok(Some(Held::Counted(place)));
        }
    }
    Ok(None)
}

/// Whether a step changes something within one record, and makes it no longer, or takes out one that is numbered as the record
/// before it: then spaces after the record keep all other lines where they are, and no number is missing.
fn stays_in_place(session: &Session<'_>, step: &Op) -> Result<bool, Fault> {
    Ok(match step {
        Op::Keep(_) | Op::DropBlock { .. } => true,
        Op::Cut { at, with, .. } | Op::Replace { at, with } => {
            record_of(session, *at).is_some() && with.len() as u64 <= at.len() && !with.contains(&b'\n')
        }
        Op::DropEntry(entry) => repeats_a_number(session, *entry)?,
        _ => false,
    })
}

/// Whether a record is on the line after a record with the same number.
fn repeats_a_number(session: &Session<'_>, entry: u32) -> Result<bool, Fault> {
    let Some(name) = session.format.content.ordinals else { return Ok(false) };
    let entries = &session.transcript.entries[..=entry as usize];
    let Some((own, before)) = entries.split_last() else { return Ok(false) };
    let Some(before) = before.iter().rfind(|other| !other.listed) else { return Ok(false) };
    let number = |at: Span| -> Result<Option<u64>, Fault> {
        Ok(json::parse(session.source, at)?.as_ref().and_then(|doc| doc.get(name)?.whole()))
    };
    if own.listed || own.glued || before.line + 1 != own.line {
        return Ok(false);
    }
    let own = number(own.span)?;
    Ok(own.is_some() && own == number(before.span)?)
}

/// The record that these bytes are in.
pub(crate) fn record_of(session: &Session<'_>, at: Span) -> Option<Span> {
    let entries = &session.transcript.entries;
    let next = entries.partition_point(|entry| entry.span.start <= at.start);
    entries[..next].last().map(|entry| entry.span).filter(|record| record.contains(at))
}

/// The first entry after all that the file's own count covers. Unreadable lines may have been counted.
fn counted_up_to(session: &Session<'_>) -> u32 {
    let counts = session.transcript.issues().iter().filter_map(|issue| match issue.kind {
        ContentIssueKind::Counts(count) => Some(u32::try_from(count).unwrap_or(u32::MAX)),
        _ => None,
    });
    match counts.max() {
        Some(0) => 0,
        Some(count) => count.saturating_add(1).saturating_add(session.transcript.damage.len() as u32),
        None => u32::MAX,
    }
}

/// Whether the edit adds, removes or empties a finished line; finished lines are counted.
fn changes_line_count(session: &Session<'_>, at: Span, with: &[u8]) -> Result<bool, Fault> {
    let bytes = session.transcript.bytes;
    let ends = !at.is_empty() && ends_line_at(session.source, at.end)?;
    if ends || at.end >= bytes {
        return Ok(ends);
    }
    let begins = ends_line_at(session.source, at.start)?;
    let after = read_span(session.source, Span::new(at.end, bytes.min(at.end + 2)))?;
    let nothing_else = after.starts_with(b"\n") || after.starts_with(b"\r\n");
    Ok(with.contains(&b'\n') || (with.is_empty() && begins && nothing_else))
}
