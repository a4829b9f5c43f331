//! The newest turn: its open calls, and how long its results are together.

use super::reason::Reason;
use super::seen::Key;
use crate::format::Shape;
use crate::model::entry::{Entry, Kind, Role, Stop};
use crate::model::policy::Policy;
use crate::model::transcript::Transcript;
use crate::rule::{Feature, minds, most, oversized_turn, speaks};
use crate::session::{Answers, Awaits, Session};
use alloc::vec::Vec;
use spans::cut;
use spans::source::{Fault, Source};

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
    /// Whether the model is speaking; of logs only, where that is one turn until somebody else does.
    speaking: Option<bool>,
}

/// A call that waits for its result.
#[derive(Clone)]
struct Open {
    id: Key,
    /// The limits for its result: if the tool did what it was to do, and if it failed.
    limits: [Limits; 2],
}

/// The strictest limits for results of a tool; the largest number where there is none.
#[derive(Clone, Copy)]
struct Limits {
    chars_max: u64,
    lines_max: u64,
}

impl Limits {
    const NONE: Self = Self { chars_max: u64::MAX, lines_max: u64::MAX };

    /// By whether the tool failed.
    fn of(policy: &Policy, tool: &[u8]) -> [Self; 2] {
        [false, true].map(|error| {
            policy.caps_for(tool, error).into_iter().flatten().fold(Self::NONE, |limits, cap| Self {
                chars_max: limits.chars_max.min(cap.chars_max),
                lines_max: limits.lines_max.min(if cap.lines_max > 0 { cap.lines_max } else { u64::MAX }),
            })
        })
    }
}

/// How many lines end in each result, where a limit counts them; else nothing.
pub(super) fn line_breaks(
    source: &dyn Source,
    added: &Transcript,
    policy: &Policy,
) -> Result<Vec<u64>, Fault> {
    if policy.tool_caps.iter().all(|own| own.cap.lines_max == 0) {
        return Ok(Vec::new());
    }
    let breaks = |result| match added.bodies_of(result) {
        // Lines of several texts are not counted.
        [text] => cut::line_breaks(source, text.inner),
        _ => Ok(0),
    };
    (0..added.results.len()).map(breaks).collect()
}

/// Whether the last one that spoke is the model, in a log.
fn speaking(session: &Session<'_>) -> Result<Option<bool>, Reason> {
    if session.format.shape() != Shape::Log {
        return Ok(None);
    }
    let model = |&&entry: &&u32| session.entry(entry).kind == Kind::Message(Role::Assistant);
    let run =
        || session.live.iter().rev().take_while(model).map(|&entry| session.entry(entry).group.is_some());
    if run().any(|named| named) && run().any(|named| !named) {
        return Err(Reason::Tangled);
    }
    Ok(Some(run().next().is_some()))
}

impl Turn {
    /// The newest turn of a session.
    pub(super) fn of(session: &Session<'_>) -> Result<Self, Reason> {
        let speaking = speaking(session)?;
        let Some(newest) = session.newest() else { return Ok(Self { speaking, ..Self::default() }) };
        let (turn, transcript) = (session.turn(newest), session.transcript);
        let group = session.entry(newest).group.map(|group| Key::of(transcript.ids.text(group)));
        let mut own = Self { group, speaking, ..Self::default() };
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
                // Whether arguments are missing counts once there is a result.
                if found.partial {
                    return Err(Reason::Damaged);
                }
                let id = found.key.ok_or(Reason::Unpaired)?;
                let limits = Limits::of(session.policy, transcript.id_text(found.name));
                own.push(Open { id: Key::of(transcript.ids.text(id)), limits })?;
                ids.push(id);
                open_calls.push(call as u32);
                own.interrupted |= session.behind(entry).iter().any(|&other| speaks(session, entry, other));
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
                own.length = own.length.saturating_add(oversized_turn::length_max(session, result));
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
                let goes_on = self.speaking == Some(true) && self.group.is_none();
                group != self.group || (group.is_none() && !goes_on)
            }
            _ => false,
        }
    }

    /// Takes in an entry of the live branch. `breaks` are of [`line_breaks`]; `ordered`: results have to stand behind
    /// their calls.
    pub(super) fn take(
        &mut self,
        added: &Transcript,
        breaks: &[u64],
        entry: u32,
        policy: &Policy,
        ordered: bool,
    ) -> Result<(), Reason> {
        let found = &added.entries[entry as usize];
        let (calls, results) = (added.calls_of(entry), added.results_of(entry));
        if (!calls.is_empty() && !results.is_empty()) || self.changes_its_name(found) {
            return Err(Reason::Tangled);
        }
        for result in results {
            if ordered && self.interrupted {
                return Err(Reason::Displaced);
            }
            let lines = breaks.get(result).copied().unwrap_or(0);
            self.answer(added, result, lines, policy)?;
        }
        if self.begins(added, entry) {
            if self.is_open() {
                return Err(Reason::LeftOpen);
            }
            let group = found.group.map(|group| Key::of(added.ids.text(group)));
            *self = Self { group, speaking: self.speaking, ..Self::default() };
        }
        if let Some(speaking) = &mut self.speaking {
            *speaking = found.kind == Kind::Message(Role::Assistant);
        }
        self.interrupted |= found.kind == Kind::Note;
        // An interrupted turn waits for nothing.
        for call in added.calls[calls].iter().filter(|_| found.stop != Stop::Aborted) {
            let id = Key::of(added.ids.text(call.key.ok_or(Reason::Unpaired)?));
            self.push(Open { id, limits: Limits::of(policy, added.id_text(call.name)) })?;
        }
        Ok(())
    }

    /// Whether one of two messages in a run has a name that tells its turn, and the other has not.
    fn changes_its_name(&self, found: &Entry) -> bool {
        self.speaking == Some(true)
            && found.kind == Kind::Message(Role::Assistant)
            && found.group.is_some() != self.group.is_some()
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
        index: usize,
        lines: u64,
        policy: &Policy,
    ) -> Result<(), Reason> {
        let (result, texts) = (&added.results[index], added.bodies_of(index));
        let id = Key::of(added.ids.text(result.key.ok_or(Reason::Unpaired)?));
        let at = self.open.iter().position(|call| call.id == id).ok_or(Reason::Unpaired)?;
        let call = self.open.swap_remove(at);
        let limits = result.name.map_or(call.limits, |name| Limits::of(policy, added.ids.text(name)));
        let spared = policy.skip_images && result.images > 0;
        let asked = !spared && minds(policy, Feature::LongResult);
        let kept = if asked { limits[usize::from(result.error)] } else { Limits::NONE };
        if most(policy, texts) > kept.chars_max || lines >= kept.lines_max {
            return Err(Reason::Oversized);
        }
        self.length =
            self.length.saturating_add(oversized_turn::length_below(policy, Some(kept.chars_max), texts));
        let (budget, asked) = (policy.turn_chars_max, minds(policy, Feature::LongTurn));
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
