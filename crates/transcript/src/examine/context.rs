//! What the model sees, message by message, and between which two messages it may be parted: never between a call and
//! its result, nor inside one message that several entries share.

use crate::model::entry::{Kind, Role, StopReason};
use crate::model::ids::Id;
use crate::session::{Answers, Session};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// The entries in context that say something, in the order in which the model sees them.
pub(crate) struct Context {
    /// The entries.
    pub(crate) entries: Vec<u32>,
    /// Whether each belongs together with the one before it.
    joined: Vec<bool>,
}

impl Context {
    /// What of a session is in context.
    pub(crate) fn from_session(session: &Session<'_>) -> Self {
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
        let mut entries: Vec<u32> = session.model_order().iter().copied().filter(speaks).collect();
        if session.shape.summary_first {
            // The summary comes before what it lets stay.
            entries.sort_by_key(|&entry| session.kind(entry) != Kind::Boundary);
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
        match session.kind(entry) {
            Kind::Message(role) => role != Role::System,
            Kind::Note => !session.shape.notes_are_summaries,
            _ => false,
        }
    }
}

/// How much of a conversation the model sees. Entries that share a message are one; instructions, summaries, turns that
/// failed, and results without a call are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// All of them, wherever in the file.
    pub all: usize,
    /// Those that the agent would send.
    pub seen: usize,
    /// Those that it would send again once a broken link is mended.
    pub brought_back: usize,
    /// Those that stand on branches which the agent does not load.
    pub off_branch: usize,
}

impl Messages {
    pub(crate) fn from_session(session: &Session<'_>) -> Self {
        let entries = 0..session.transcript.entries.len() as u32;
        let main = |&entry: &u32| session.in_context(entry) || !session.entry(entry).is_sidechain;
        let says: Vec<u32> = entries.filter(main).filter(|&entry| says(session, entry)).collect();
        let boundary = session.last_boundary();
        let compacted = |entry: u32| boundary.is_some_and(|boundary| entry < boundary);
        let count = |counts: &dyn Fn(u32) -> bool| {
            turns(session, says.iter().copied().filter(|&entry| counts(entry)))
        };
        Self {
            all: count(&|_| true),
            seen: count(&|entry| session.in_context(entry)),
            brought_back: 0,
            off_branch: count(&|entry| {
                !session.is_live(entry) && !session.superseded(entry) && !compacted(entry)
            }),
        }
    }

    /// How many of the messages that the model sees are in these entries.
    pub(crate) fn seen_in(session: &Session<'_>, entries: impl Iterator<Item = u32>) -> usize {
        turns(session, entries.filter(|&entry| session.in_context(entry) && says(session, entry)))
    }
}

/// How many turns these entries are, each of which comes once.
fn turns(session: &Session<'_>, entries: impl Iterator<Item = u32>) -> usize {
    if session.is_each_a_turn() {
        return entries.count();
    }
    let mut turns: Vec<u64> = entries.map(|entry| session.turn(entry)).collect();
    turns.sort_unstable();
    turns.dedup();
    turns.len()
}

/// Whether an entry says something that a model is sent.
pub(crate) fn says(session: &Session<'_>, entry: u32) -> bool {
    let found = session.entry(entry);
    // Without its call in context a result is refused.
    let sent = |call: u32| {
        let caller = session.call(call).entry;
        session.entry(caller).stop != StopReason::Aborted
            && (session.in_context(caller) || !session.in_context(entry))
    };
    let answers = |result: usize| match session.answers[result] {
        Answers::Call(call) => sent(call),
        // Off the branch nobody looks for calls.
        Answers::Unseen => !session.is_live(entry),
        Answers::Again(_) | Answers::Nothing => false,
    };
    let answers = || session.transcript.results_of(entry).any(answers);
    match found.kind {
        Kind::Message(Role::Assistant) => {
            found.stop != StopReason::Aborted
                && (found.text_chars > 0 || !session.transcript.calls_of(entry).is_empty())
        }
        Kind::Message(Role::User) if session.transcript.results_of(entry).is_empty() => found.text_chars > 0,
        Kind::Message(Role::User | Role::Tool) => answers(),
        Kind::Note => Context::counts(session, entry) && found.text_chars > 0,
        _ => false,
    }
}

fn joined(session: &Session<'_>, entries: &[u32]) -> Vec<bool> {
    let mut position = vec![usize::MAX; session.transcript.entries.len()];
    for (at, &entry) in entries.iter().enumerate() {
        position[entry as usize] = at;
    }
    // How many ranges that stay together begin after a position, and how many end at it.
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
