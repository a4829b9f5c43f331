//! Where the places of an older run are now, computed from the offsets in the records of later runs: each of those moved the
//! places, overwrote them, or put them back. No bytes are read here.

use crate::vault::{CONTEXT_BYTES, Record, RecordedChange};
use std::collections::HashMap;
use transcript::Span;

/// The end of a text of unknown length, which others may append to.
const OPEN_END: u64 = u64::MAX / 2;

/// Part of the text as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentPart {
    /// Bytes of the text that the run left behind, or that were appended since.
    Old(Span),
    /// Bytes that a later run wrote.
    Foreign(u64),
}

impl CurrentPart {
    fn len(self) -> u64 {
        match self {
            Self::Old(span) => span.len(),
            Self::Foreign(length) => length,
        }
    }

    /// The part of it between two offsets.
    fn within(self, from: u64, to: u64) -> Self {
        match self {
            Self::Old(span) => Self::Old(Span::new(span.start + from, span.start + to)),
            Self::Foreign(_) => Self::Foreign(to - from),
        }
    }
}

/// The text as it is now, as a list of spans of the text that the run left behind.
pub(crate) struct History<'r> {
    parts: Vec<CurrentPart>,
    /// What later runs removed, by run and place, for runs that put it back.
    taken: HashMap<(&'r str, usize), Vec<CurrentPart>>,
}

impl<'r> History<'r> {
    /// What became of a text through these runs, which are in order.
    pub(crate) fn through(later: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut history =
            Self { parts: vec![CurrentPart::Old(Span::new(0, OPEN_END))], taken: HashMap::new() };
        for record in later {
            history.apply(record);
        }
        history
    }

    fn apply(&mut self, run: &'r Record) {
        let mut out = Vec::new();
        let (mut before, mut after) = (0, 0);
        for (index, change) in run.edits.iter().enumerate() {
            let start = before + change.at - after;
            let end = start + change.length_before();
            extend(&mut out, self.slice(before, start));
            if change.is_nothing() {
                (before, after) = (start, change.at);
                continue;
            }
            let taken = self.slice(start, end);
            match run.undoes.as_deref().and_then(|undone| self.taken.remove(&(undone, index))) {
                Some(parts) => {
                    // An undo may add a line break.
                    let more = change.length.saturating_sub(parts.iter().map(|part| part.len()).sum());
                    extend(&mut out, parts);
                    extend(&mut out, vec![CurrentPart::Foreign(more)]);
                }
                None => extend(&mut out, vec![CurrentPart::Foreign(change.length)]),
            }
            self.taken.insert((&run.run, index), taken);
            (before, after) = (end, change.at + change.length);
        }
        extend(&mut out, self.slice(before, u64::MAX));
        self.parts = out;
    }

    fn slice(&self, from: u64, to: u64) -> Vec<CurrentPart> {
        let (mut at, mut parts) = (0, Vec::new());
        for part in &self.parts {
            let (start, end) = (from.max(at), to.min(at + part.len()));
            if start < end {
                parts.push(part.within(start - at, end - at));
            }
            at += part.len();
        }
        parts
    }

    /// Where the byte at this offset is now. If a later run has removed it, where the next byte is that was not.
    pub(crate) fn place(&self, old: u64) -> u64 {
        let mut at = 0;
        for part in &self.parts {
            match part {
                CurrentPart::Old(span) if span.end > old => return at + old.saturating_sub(span.start),
                _ => at += part.len(),
            }
        }
        at
    }

    /// Where these places, which are in order, are now; `None` for one that a later run has changed, or the bytes around it.
    pub(super) fn places(&self, changes: &[RecordedChange]) -> Vec<Option<u64>> {
        let (mut at, mut spans) = (0, Vec::new());
        for part in &self.parts {
            if let CurrentPart::Old(span) = part {
                spans.push((*span, at));
            }
            at += part.len();
        }
        let place = |change: &RecordedChange| {
            let around =
                Span::new(change.at.saturating_sub(CONTEXT_BYTES), change.at + change.length + CONTEXT_BYTES);
            // Runs only split these spans, and what is put back goes where it was, so they are still in order.
            let index = spans.partition_point(|(span, _)| span.end < around.end);
            let (span, now) = spans.get(index)?;
            span.contains(around).then(|| now + change.at - span.start)
        };
        changes.iter().map(place).collect()
    }
}

/// Appends parts, and joins those that are adjacent in the old text.
fn extend(out: &mut Vec<CurrentPart>, parts: Vec<CurrentPart>) {
    for part in parts {
        match (out.last_mut(), part) {
            (Some(CurrentPart::Old(last)), CurrentPart::Old(span)) if last.end == span.start => {
                last.end = span.end;
            }
            (_, CurrentPart::Foreign(0)) => {}
            _ => out.push(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::RemovedBytes;

    fn edit(at: u64, gone: u64, come: u64) -> RecordedChange {
        let old = vec![RemovedBytes::Gone { gone }];
        RecordedChange { length: come, old, ..RecordedChange::nothing(at) }
    }

    /// A later run has put 4 bytes in the place of 10, and 7 in that of 2: what is far enough from that is where the lengths say, and
    /// what is not is gone.
    #[test]
    fn a_place_is_found_up_to_the_bytes_around_it() {
        let (at, other) = (1_000, 3_000);
        let mut later = Record::default();
        later.edits.extend([edit(at, 10, 4), edit(other - 6, 2, 7)]);
        let history = History::through([&later]);
        let length = 5;
        let before = at - CONTEXT_BYTES - length;
        let (behind, next) = (at + 10 + CONTEXT_BYTES, other - CONTEXT_BYTES - length);
        let last = other + 2 + CONTEXT_BYTES;
        for (place, now) in [
            (0, Some(0)),
            (before, Some(before)),
            (before + 1, None),
            (at, None),
            (behind - 1, None),
            (behind, Some(behind - 6)),
            (next, Some(next - 6)),
            (next + 1, None),
            (last - 1, None),
            (last, Some(last - 1)),
        ] {
            assert_eq!(history.places(&[edit(place, 0, length)]), [now], "{place}");
        }
        for (old, now) in [(0, 0), (at - 1, at - 1), (at + 9, at + 4), (at + 10, at + 4), (last, last - 1)] {
            assert_eq!(history.place(old), now, "{old}");
        }
    }
}
