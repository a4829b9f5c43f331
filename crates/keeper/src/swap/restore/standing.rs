//! Verifies which places of a run still hold what the run wrote, and finds those that another program has moved.

use super::History;
use crate::vault::{Record, RecordedChange, check, line_check};
use spans::marker::{self, BYTES_MAX};
use spans::source::WINDOW_BYTES;
use transcript::{Fault, Source, Span};

/// Longest new text for which every possible start around its marker is tried.
const MARKED_BYTES_MAX: u64 = 1024;

/// What is at a place of a run now.
#[derive(Clone, Copy)]
pub(super) enum Standing {
    /// What the run left behind.
    Whole(u64),
    /// A later run changed it.
    Touched,
    /// Other bytes.
    Other(u64),
}

impl Standing {
    /// Where what the run left behind is; `None` if it is not there any more.
    pub(super) fn whole(self) -> Option<u64> {
        if let Self::Whole(at) = self { Some(at) } else { None }
    }
}

/// Whether each place is what the run left behind.
pub(super) fn is_all_whole(
    record: &Record,
    history: &History<'_>,
    source: &dyn Source,
) -> Result<bool, Fault> {
    for (change, place) in record.edits.iter().zip(history.places(&record.edits)) {
        if judged(change, place, record, source)?.whole().is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where each place is now.
pub(super) fn standing(
    record: &Record,
    history: &History<'_>,
    source: &dyn Source,
) -> Result<Vec<Standing>, Fault> {
    let places = record.edits.iter().zip(history.places(&record.edits));
    let mut all: Vec<_> =
        places.map(|(change, place)| judged(change, place, record, source)).collect::<Result<_, _>>()?;
    if all.iter().all(|place| place.whole().is_some()) {
        return Ok(all);
    }
    let markers = markers(source)?;
    let mut from = 0;
    for (place, change) in all.iter_mut().zip(&record.edits) {
        // If the places are not in the order of the edits, they cannot all be restored.
        if place.whole().is_some_and(|at| at < from) {
            *place = Standing::Other(from);
        }
        if place.whole().is_none()
            && let Some(at) = moved(change, record, &markers, from, source)?
        {
            *place = Standing::Whole(at);
        }
        from = place.whole().map_or(from, |at| at + change.length);
    }
    Ok(all)
}

fn judged(
    change: &RecordedChange,
    place: Option<u64>,
    record: &Record,
    source: &dyn Source,
) -> Result<Standing, Fault> {
    let Some(at) = place else { return Ok(Standing::Touched) };
    Ok(if holds(change, at, record, source)? { Standing::Whole(at) } else { Standing::Other(at) })
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

/// Where a cut has been moved to: the marker that it left names the text. If a text quotes the marker and what is around it, the
/// line tells which of them is the place.
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
    let mut places = Vec::new();
    for found in markers.iter().filter(|found| ids.contains(&found.id)) {
        let first = found.span.end.saturating_sub(change.length).max(from);
        for at in first..=found.span.start {
            if holds(change, at, record, source)? {
                places.push(at);
                break;
            }
        }
    }
    // A run of an older version did not record the line.
    let Some(line) = change.line.as_ref().filter(|_| places.len() > 1) else {
        return Ok(places.first().copied());
    };
    let mut own = None;
    for at in places {
        if line_check(source, at)? == *line && own.replace(at).is_some() {
            return Ok(None);
        }
    }
    Ok(own)
}

/// All our markers, in order.
fn markers(source: &dyn Source) -> Result<Vec<marker::FoundMarker>, Fault> {
    let mut window = vec![0; WINDOW_BYTES + BYTES_MAX];
    let (mut at, mut found) = (0, Vec::new());
    while at < source.len() {
        at = source.data_from(at).max(at);
        let got = source.read(at, &mut window)?;
        found.extend(marker::find(&window[..got], WINDOW_BYTES, at));
        at += WINDOW_BYTES as u64;
    }
    Ok(found)
}
