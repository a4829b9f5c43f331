//! The newest turn: its open calls, and how long its results are together.

use super::Reason;
use super::seen::Key;
use crate::entry::{Entry, Kind, Role, Stop, ToolResult, Transcript};
use crate::policy::Policy;
use crate::rule::{OversizedTurn, most, speaks};
use crate::session::{Answers, Awaits, Session};
use alloc::vec::Vec;

/// More open calls than these are not followed.
const OPEN_MAX: usize = 128;

#[derive(Clone, Default)]
pub(super) struct Turn {
    /// What its entries share, if there can be several.
    group: Option<Key>,
    open: Vec<Open>,
    /// The most that its results can come to.
    length: u64,
    /// Something spoke behind its calls.
    interrupted: bool,
}

/// A call that waits for its result.
#[derive(Clone)]
struct Open {
    id: Key,
    /// The limit for results of its tool.
    limit: Option<u64>,
}

impl Turn {
    /// The newest turn of a session.
    pub(super) fn of(session: &Session<'_>) -> Result<Self, Reason> {
        let Some(newest) = session.newest() else { return Ok(Self::default()) };
        let (turn, transcript) = (session.turn(newest), session.transcript);
        let group = session.entry(newest).group.map(|group| Key::of(transcript.ids.text(group)));
        let mut own = Self { group, ..Self::default() };
        let (mut ids, mut open_calls) = (Vec::new(), Vec::new());
        for &entry in session.live.iter().filter(|&&entry| session.turn(entry) == turn) {
            let open = |call: &usize| session.result_of(*call as u32).is_none();
            for call in transcript.calls_of(entry).filter(open) {
                if session.entry(entry).stop == Stop::Aborted {
                    continue;
                }
                let found = session.call(call as u32);
                if !session.in_context(entry) {
                    return Err(Reason::Boundary);
                }
                let id = found.key.ok_or(Reason::Unpaired)?;
                let limit = session.policy.limit_for(transcript.id_text(found.name));
                own.push(Open { id: Key::of(transcript.ids.text(id)), limit })?;
                ids.push(id);
                open_calls.push(call as u32);
                let behind = session.place(entry).map_or(&[][..], |place| &session.live[place + 1..]);
                own.interrupted |= behind.iter().any(|&other| speaks(session, entry, other));
            }
        }
        // Which of several calls with one id a result answers is not told from the newest turn alone.
        let rival = (0..).zip(&transcript.calls).any(|(index, call): (u32, _)| {
            call.key.is_some_and(|id| ids.contains(&id))
                && session.result_of(index).is_none()
                && !open_calls.contains(&index)
        });
        ids.sort_unstable();
        if rival || ids.windows(2).any(|two| two[0] == two[1]) {
            return Err(Reason::Tangled);
        }
        for (result, answers) in session.answers.iter().enumerate() {
            if let Answers::Call(call) | Answers::Again(call) = *answers
                && session.turn(session.call(call).entry) == turn
            {
                own.length = own.length.saturating_add(OversizedTurn::length_max(session, result));
            }
        }
        Ok(own)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn weight(&self) -> usize {
        self.open.capacity() * size_of::<Open>()
    }

    /// Whether a turn begins with this entry.
    pub(super) fn begins(&self, added: &Transcript, entry: u32) -> bool {
        let found = &added.entries[entry as usize];
        match found.kind {
            Kind::Message(Role::User | Role::System) => true,
            Kind::Message(Role::Assistant) => {
                let group = found.group.map(|group| Key::of(added.ids.text(group)));
                group.is_none() || group != self.group
            }
            _ => false,
        }
    }

    /// Takes in an entry of the live branch. `ordered`: results have to stand behind their calls.
    pub(super) fn take(
        &mut self,
        added: &Transcript,
        entry: u32,
        policy: &Policy,
        ordered: bool,
    ) -> Result<(), Reason> {
        let found = &added.entries[entry as usize];
        let (calls, results) = (added.calls_of(entry), added.results_of(entry));
        if !calls.is_empty() && !results.is_empty() {
            return Err(Reason::Tangled);
        }
        for result in results {
            if ordered && self.interrupted {
                return Err(Reason::Displaced);
            }
            self.answer(added, &added.results[result], added.bodies_of(result), policy)?;
        }
        if self.begins(added, entry) {
            if self.is_open() {
                return Err(Reason::LeftOpen);
            }
            let group = found.group.map(|group| Key::of(added.ids.text(group)));
            *self = Self { group, ..Self::default() };
        }
        self.interrupted |= found.kind == Kind::Note;
        // An interrupted turn waits for nothing.
        for call in added.calls[calls].iter().filter(|_| found.stop != Stop::Aborted) {
            let id = Key::of(added.ids.text(call.key.ok_or(Reason::Unpaired)?));
            self.push(Open { id, limit: policy.limit_for(added.id_text(call.name)) })?;
        }
        Ok(())
    }

    fn push(&mut self, call: Open) -> Result<(), Reason> {
        if self.open.len() >= OPEN_MAX {
            return Err(Reason::Tangled);
        }
        self.open.push(call);
        Ok(())
    }

    fn answer(
        &mut self,
        added: &Transcript,
        result: &ToolResult,
        texts: &[crate::entry::Text],
        policy: &Policy,
    ) -> Result<(), Reason> {
        let id = Key::of(added.ids.text(result.key.ok_or(Reason::Unpaired)?));
        let at = self.open.iter().position(|call| call.id == id).ok_or(Reason::Unpaired)?;
        let call = self.open.swap_remove(at);
        let limit = result.name.map_or(call.limit, |name| policy.limit_for(added.ids.text(name)));
        let kept = limit.filter(|_| policy.selection.includes("S1"));
        if kept.is_some_and(|limit| most(policy, texts) > limit) {
            return Err(Reason::Oversized);
        }
        self.length = self.length.saturating_add(OversizedTurn::length_below(policy, kept, texts));
        let (budget, asked) = (policy.turn_chars_max, policy.selection.includes("S2"));
        if asked && budget > 0 && self.length > budget { Err(Reason::Oversized) } else { Ok(()) }
    }

    /// What the end of the conversation waits for behind an entry that was just taken in.
    pub(super) fn awaits(&self, entry: &Entry, awaits: &mut Option<Awaits>) {
        *awaits = match entry.kind {
            Kind::Message(Role::User) => Some(Awaits::Model),
            Kind::Message(Role::Tool) if !self.is_open() => Some(Awaits::Model),
            Kind::Message(Role::Tool) => Some(Awaits::Tool),
            Kind::Message(Role::Assistant) if self.is_open() || entry.stop == Stop::ToolUse => {
                Some(Awaits::Tool)
            }
            Kind::Message(Role::Assistant) => None,
            _ => *awaits,
        };
    }
}
