//! What the model sees, message by message, and between which two messages it may be parted: never between a call and
//! its result, nor inside one message that several entries share.

use crate::entry::{Id, Kind, Role};
use crate::format::Shape;
use crate::session::{Answers, Session};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// The entries in context that say something, in the order in which the model sees them.
pub(crate) struct Context {
    /// The entries.
    pub(crate) entries: Vec<u32>,
    /// Whether each belongs together with the one before it.
    joined: Vec<bool>,
}

impl Context {
    /// What of a session is in context.
    pub(crate) fn of(session: &Session<'_>) -> Self {
        let boundary = session.last_boundary();
        let speaks = |&entry: &u32| {
            let found = session.entry(entry);
            match found.kind {
                Kind::Message(_) => session.in_context(entry),
                Kind::Note => session.in_context(entry) && found.text_chars > 0,
                // Only the last summary is read.
                Kind::Boundary => Some(entry) == boundary && found.text_chars > 0,
                _ => false,
            }
        };
        let mut entries: Vec<u32> = session.told().iter().copied().filter(speaks).collect();
        if session.format.shape() == Shape::Branch {
            // The summary comes before what it lets stay.
            entries.sort_by_key(|&entry| session.entry(entry).kind != Kind::Boundary);
        }
        let joined = joined(session, &entries);
        Self { entries, joined }
    }

    /// Whether what stands before a position may be parted from it.
    pub(crate) fn parts_at(&self, position: usize) -> bool {
        self.joined.get(position).is_none_or(|joined| !joined)
    }

    /// What belongs together, as ranges of positions up to `end`.
    pub(crate) fn groups(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let mut from = 0;
        core::iter::from_fn(move || {
            let start = from;
            from = (start + 1..end).find(|&at| self.parts_at(at)).unwrap_or(end);
            (start < end).then_some(start..from)
        })
    }

    /// How many messages these entries are: those that share one are one.
    pub(crate) fn count(session: &Session<'_>, entries: &[u32]) -> u64 {
        let mut turns: Vec<u64> = entries
            .iter()
            .filter(|&&entry| Self::counts(session, entry))
            .map(|&entry| session.turn(entry))
            .collect();
        turns.sort_unstable();
        turns.dedup();
        turns.len() as u64
    }

    /// Whether an entry is a message that counts when messages are counted: summaries and instructions do not.
    pub(crate) fn counts(session: &Session<'_>, entry: u32) -> bool {
        match session.entry(entry).kind {
            Kind::Message(role) => role != Role::System,
            Kind::Note => session.format.shape() != Shape::Graph,
            _ => false,
        }
    }
}

fn joined(session: &Session<'_>, entries: &[u32]) -> Vec<bool> {
    let mut position = vec![usize::MAX; session.transcript.entries.len()];
    for (at, &entry) in entries.iter().enumerate() {
        position[entry as usize] = at;
    }
    // How many stretches that stay together begin behind a position, and how many end at it.
    let mut depth = vec![0_i64; entries.len() + 1];
    let mut join = |one: usize, other: usize| {
        if one != other && one.max(other) != usize::MAX {
            depth[one.min(other) + 1] += 1;
            depth[one.max(other) + 1] -= 1;
        }
    };
    let mut groups: BTreeMap<Id, usize> = BTreeMap::new();
    for (at, &entry) in entries.iter().enumerate() {
        if let Some(group) = session.entry(entry).group {
            join(*groups.entry(group).or_insert(at), at);
        }
        for result in session.transcript.results_of(entry) {
            if let Answers::Call(call) | Answers::Again(call) = session.answers[result] {
                join(position[session.call(call).entry as usize], at);
            }
        }
    }
    let mut open = 0;
    let sum = depth.iter().take(entries.len()).map(|change| {
        open += change;
        open > 0
    });
    sum.collect()
}
