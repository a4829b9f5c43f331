//! The newest turn: its open calls, and the total length of its results.

use super::seen::{Reads, TextKey, key_in};
use super::state::{AppendedFacts, FeatureCheck};
use crate::format::Shape;
use crate::model::entry::{Call, Entry, Kind, Role, StopReason};
use crate::model::policy::Policy;
use crate::model::transcript::Transcript;
use crate::rule::{Feature, most, oversized_turn, speaks};
use crate::session::{Answers, Awaits, Session};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use spans::cut;
use spans::source::{Fault, Source};

/// If there are more open calls, only a look can tell.
const OPEN_MAX: usize = 128;

#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct NewestTurn {
    /// The group id that its entries share, if it has one.
    group: Option<TextKey>,
    open: Vec<OpenCall>,
    /// The greatest possible length of its results.
    length: u64,
    /// The files that were read by calls which have just been answered.
    #[serde(skip)]
    read: Vec<TextKey>,
    /// Whether the model is speaking. Only in logs, where the model's turn lasts until somebody else speaks.
    speaking: Option<bool>,
}

/// A call that waits for its result.
#[derive(Clone, Serialize, Deserialize)]
struct OpenCall {
    id: TextKey,
    /// The limits for its result: if the tool succeeded, and if it failed.
    limits: [ResultLimits; 2],
    /// The file that it reads.
    file: Option<TextKey>,
}

/// The strictest limits for results of a tool; the largest number where there is no limit.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct ResultLimits {
    chars_max: u64,
    lines_max: u64,
}

impl ResultLimits {
    const NONE: Self = Self { chars_max: u64::MAX, lines_max: u64::MAX };

    /// Indexed by whether the tool failed.
    fn for_tool(policy: &Policy, tool: &[u8]) -> [Self; 2] {
        [false, true].map(|error| {
            policy.caps_for(tool, error).into_iter().flatten().fold(Self::NONE, |limits, cap| Self {
                chars_max: limits.chars_max.min(cap.chars_max),
                lines_max: limits.lines_max.min(if cap.lines_max > 0 { cap.lines_max } else { u64::MAX }),
            })
        })
    }
}

/// The number of line breaks in each result, if a limit counts lines; otherwise empty.
pub(super) fn line_breaks(
    source: &dyn Source,
    added: &Transcript,
    policy: &Policy,
) -> Result<Vec<u64>, Fault> {
    if policy.tool_caps.iter().all(|own| own.cap.lines_max == 0) {
        return Ok(Vec::new());
    }
    let breaks = |result| match added.bodies_of(result) {
        // If a result has several texts, their lines are not counted.
        [text] => cut::line_breaks(source, text.inner),
        _ => Ok(0),
    };
    (0..added.results.len()).map(breaks).collect()
}

/// Whether the model spoke last, in a log.
fn speaking(session: &Session<'_>) -> Result<Option<bool>, Feature> {
    if session.format.shape != Shape::Log {
        return Ok(None);
    }
    let model = |&&entry: &&u32| session.kind(entry) == Kind::Message(Role::Assistant);
    let run =
        || session.live.iter().rev().take_while(model).map(|&entry| session.entry(entry).group.is_some());
    if run().any(|named| named) && run().any(|named| !named) {
        return Err(Feature::Unplaced);
    }
    Ok(Some(run().next().is_some()))
}

/// The open calls of the newest turn. Each has to be like one that was just appended, and no two may share an id,
/// because the turn alone would not tell which of them a result answers.
fn open_calls(session: &Session<'_>, turn: u64, files: &Reads) -> Result<Vec<OpenCall>, Feature> {
    let transcript = session.transcript;
    let waits = |index: u32| session.result_of(index).is_none();
    let ordered = !matches!(session.format.shape, Shape::Graph | Shape::Log);
    let mut open = Vec::new();
    for &entry in session.live.iter().filter(|&&entry| session.turn(entry) == turn) {
        if session.entry(entry).stop == StopReason::Aborted {
            continue;
        }
        for index in transcript.calls_of(entry).filter(|&index| waits(index as u32)) {
            let call = &transcript.calls[index];
            let rival =
                |(other, found): (u32, &Call)| other != index as u32 && found.key == call.key && waits(other);
            let spoken = ordered && session.after(entry).iter().any(|&other| speaks(session, entry, other));
            let odd = call.partial || spoken || !session.in_context(entry) || open.len() >= OPEN_MAX;
            if odd || (0..).zip(&transcript.calls).any(rival) {
                return Err(Feature::Unsettled);
            }
            let id = key_in(transcript, call.key).ok_or(Feature::Unpaired)?;
            open.push(OpenCall {
                id,
                limits: ResultLimits::for_tool(session.policy, transcript.id_text(call.name)),
                file: files.get(&(index as u32)).copied(),
            });
        }
    }
    Ok(open)
}

impl NewestTurn {
    /// The newest turn of a session.
    pub(super) fn from_session(session: &Session<'_>, files: &Reads) -> Result<Self, Feature> {
        let speaking = speaking(session)?;
        let Some(newest) = session.newest() else { return Ok(Self { speaking, ..Self::default() }) };
        let (turn, transcript) = (session.turn(newest), session.transcript);
        let open = open_calls(session, turn, files)?;
        let mut length = 0u64;
        for (result, answers) in session.answers.iter().enumerate() {
            if let Answers::Call(call) | Answers::Again(call) = *answers
                && session.turn(session.call(call).entry) == turn
            {
                length = length.saturating_add(oversized_turn::length_max(session, result));
            }
        }
        let group = key_in(transcript, session.entry(newest).group);
        Ok(Self { group, open, length, read: Vec::new(), speaking })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn weight(&self) -> usize {
        self.open.capacity() * size_of::<OpenCall>()
    }

    /// Whether a turn begins with this entry.
    pub(super) fn begins(&self, added: &Transcript, entry: u32) -> bool {
        let found = &added.entries[entry as usize];
        match found.kind {
            Kind::Message(Role::User | Role::System) => true,
            Kind::Message(Role::Assistant) => {
                let goes_on = self.speaking == Some(true) && self.group.is_none();
                key_in(added, found.group) != self.group || (found.group.is_none() && !goes_on)
            }
            _ => false,
        }
    }

    /// The files that the last entry shows. Asked once.
    pub(super) fn files_read(&mut self) -> Vec<TextKey> {
        core::mem::take(&mut self.read)
    }

    /// Adds an entry of the live branch. `ordered` says whether results have to come directly after their calls.
    pub(super) fn take(
        &mut self,
        added: &Transcript,
        more: &AppendedFacts,
        entry: u32,
        check: &FeatureCheck<'_>,
        ordered: bool,
    ) -> Result<(), Feature> {
        let found = &added.entries[entry as usize];
        let speaks = found.kind == Kind::Message(Role::Assistant);
        // Of two messages in a run, only one has a group id.
        if self.speaking == Some(true) && speaks && found.group.is_some() != self.group.is_some() {
            return Err(Feature::Unplaced);
        }
        for result in added.results_of(entry) {
            self.answer(added, result, more.breaks.get(result).copied().unwrap_or(0), check)?;
        }
        let begins = self.begins(added, entry);
        // A call stays open, or something comes before its result.
        if self.is_open() && (begins || ordered && found.kind == Kind::Note) {
            return Err(Feature::Unpaired);
        }
        if begins {
            let read = self.files_read();
            *self =
                Self { group: key_in(added, found.group), read, speaking: self.speaking, ..Self::default() };
        }
        self.speaking = self.speaking.map(|_| speaks);
        for index in added.calls_of(entry) {
            let call = &added.calls[index];
            if self.open.len() >= OPEN_MAX {
                return Err(Feature::Unplaced);
            }
            let id = key_in(added, call.key).ok_or(Feature::Unpaired)?;
            self.open.push(OpenCall {
                id,
                limits: ResultLimits::for_tool(check.policy, added.id_text(call.name)),
                file: more.reads.get(&(index as u32)).copied(),
            });
        }
        Ok(())
    }

    fn answer(
        &mut self,
        added: &Transcript,
        index: usize,
        lines: u64,
        check: &FeatureCheck<'_>,
    ) -> Result<(), Feature> {
        let (result, texts, policy) = (&added.results[index], added.bodies_of(index), check.policy);
        let id = key_in(added, result.key);
        let at = self.open.iter().position(|call| Some(call.id) == id).ok_or(Feature::Unpaired)?;
        let call = self.open.swap_remove(at);
        self.read.extend(call.file);
        let limits =
            result.name.map_or(call.limits, |name| ResultLimits::for_tool(policy, added.ids.text(name)));
        let spared = policy.skip_images && result.images > 0;
        let kept = if spared { ResultLimits::NONE } else { limits[usize::from(result.error)] };
        let long = most(policy, texts) > kept.chars_max || lines >= kept.lines_max;
        check.feature(long, Feature::LongResult)?;
        // A result that may be too long, and stays as it is, counts with its whole length.
        let kept = (!long).then_some(kept.chars_max);
        self.length = self.length.saturating_add(oversized_turn::length_below(policy, kept, texts));
        let budget = policy.turn_chars_max;
        check.feature(budget > 0 && self.length > budget, Feature::LongTurn)
    }

    /// What the end of the conversation waits for after the entry that was just added.
    pub(super) fn awaits(&self, entry: &Entry, awaits: &mut Option<Awaits>) {
        *awaits = match entry.kind {
            Kind::Message(Role::User) => Some(Awaits::Model),
            Kind::Message(Role::Tool) if !self.is_open() => Some(Awaits::Model),
            Kind::Message(Role::Tool) => Some(Awaits::Tool),
            Kind::Message(Role::Assistant) if self.is_open() || entry.stop == StopReason::ToolUse => {
                Some(Awaits::Tool)
            }
            Kind::Message(Role::Assistant) => None,
            _ => *awaits,
        };
    }
}
