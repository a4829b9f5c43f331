//! Verifies which places of a run still hold what the run wrote, and finds those that another program has moved.

use super::History;
use crate::vault::{Record, RecordedChange, RemovedBytes, check};
use spans::marker::{self, BYTES_MAX};
use spans::source::WINDOW_BYTES;
use transcript::{Fault, Source, Span};

/// Longest new text for which every possible start around its marker is tried.
const MARKED_BYTES_MAX: u64 = 1024;

/// Why a place is not what the run left behind.
#[derive(Clone, Copy)]
pub(super) enum Wrong {
    /// A later run changed it.
    Touched,
    /// Other bytes are there now.
    Other(u64),
}

/// The first place that is not what the run left behind.
pub(super) fn first_wrong(
    record: &Record,
    history: &History<'_>,
    source: &dyn Source,
) -> Result<Option<Wrong>, Fault> {
    for (change, place) in record.edits.iter().zip(history.places(&record.edits)) {
        if let Err(wrong) = judged(change, place, record, source)? {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// Where each place is now.
pub(super) fn standing(
    record: &Record,
    history: &History<'_>,
    source: &dyn Source,
) -> Result<Vec<Result<u64, Wrong>>, Fault> {
    let places = record.edits.iter().zip(history.places(&record.edits));
    let mut all: Vec<_> =
        places.map(|(change, place)| judged(change, place, record, source)).collect::<Result<_, _>>()?;
    if all.iter().all(Result::is_ok) {
        return Ok(all);
    }
    let markers = markers(source)?;
    let mut from = 0;
    for (place, change) in all.iter_mut().zip(&record.edits) {
        // If the places are not in the order of the edits, they cannot all be restored.
        if place.is_ok_and(|at| at < from) {
            *place = Err(Wrong::Other(from));
        }
        if place.is_err()
            && let Some(at) = moved(change, record, &markers, from, source)?
        {
            *place = Ok(at);
        }
        from = place.map_or(from, |at| at + change.length);
    }
    Ok(all)
}

fn judged(
    change: &RecordedChange,
    place: Option<u64>,
    record: &Record,
    source: &dyn Source,
) -> Result<Result<u64, Wrong>, Fault> {
    let Some(at) = place else { return Ok(Err(Wrong::Touched)) };
    Ok(if holds(change, at, record, source)? { Ok(at) } else { Err(Wrong::Other(at)) })
}

/// Whether this place holds what the run wrote, between the same bytes.
fn holds(change: &RecordedChange, at: u64, record: &Record, source: &dyn Source) -> Result<bool, Fault> {
    let (front, behind) = change.context(record.bytes_after);
    let end = at.checked_add(change.length + behind);
    if at < front || end.is_none_or(|end| end > source.len()) {
        return Ok(false);
    }
    Ok(check(source, Span::new(at, at + change.length), front, behind)? == change.check)
}

/// Where a cut has been moved to: the marker that it left names the text.
fn moved(
    change: &RecordedChange,
    record: &Record,
    markers: &[marker::FoundMarker],
    from: u64,
    source: &dyn Source,
) -> Result<Option<u64>, Fault> {
    if change.length > MARKED_BYTES_MAX {
        return Ok(None);
    }
    let ids: Vec<_> = change.texts().map(marker::TextId::new).collect();
    for found in markers.iter().filter(|found| ids.contains(&found.id)) {
        let first = found.span.end.saturating_sub(change.length).max(from);
        for at in first..=found.span.start {
            if holds(change, at, record, source)? {
                return Ok(Some(at));
            }
        }
    }
    Ok(None)
}

/// All our markers, in order.
fn markers(source: &dyn Source) -> Result<Vec<marker::FoundMarker>, Fault> {
    let mut window = vec![0; WINDOW_BYTES + BYTES_MAX];
    let (mut at, mut found) = (0, Vec::new());
    while at < source.len() {
        let got = source.read(at, &mut window)?;
        found.extend(marker::find(&window[..got], WINDOW_BYTES, at));
        at += WINDOW_BYTES as u64;
    }
    Ok(found)
}

impl RecordedChange {
    /// The texts of which it cut something.
    pub(super) fn texts(&self) -> impl Iterator<Item = &blake3::Hash> {
        self.old.iter().filter_map(|old| match old {
            RemovedBytes::Text { text, .. } => Some(text),
            RemovedBytes::Inline { .. } | RemovedBytes::Gone { .. } => None,
        })
    }
}
