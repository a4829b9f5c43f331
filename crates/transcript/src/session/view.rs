//! A session, and the questions that rules ask about it.

use super::traits::Traits;
use crate::format::{Format, Head, Shape, SupportLevel};
use crate::model::context_tokens::Count;
use crate::model::entry::{Call, Entry, Kind, Link, Role, StopReason, ToolResult};
use crate::model::ids::Id;
use crate::model::policy::{Depth, Policy};
use crate::model::situation::{Case, Situation};
use crate::model::transcript::{ContextEdit, Transcript};
use crate::read::salvage::{self, DamagedLine};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::OnceCell;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use spans::source::{Fault, Source, Span};

pub(super) const NONE: u32 = u32::MAX;

/// A transcript with its structure: everything that a rule may look at.
pub struct Session<'a> {
    /// The entries.
    pub transcript: &'a Transcript,
    /// Its format.
    pub format: &'static Format,
    /// What holds for files of its shape.
    pub(crate) shape: &'static Traits,
    /// The votes on the format so far, if later objects would still count.
    pub(crate) undecided: Option<Head>,
    /// The bytes, for what entries do not hold.
    pub source: &'a dyn Source,
    /// Limits, and which rules run.
    pub policy: &'a Policy,
    /// What is the case with it.
    pub situation: &'a Situation,
    /// Whether the plan will be carried out, or only its sizes are wanted.
    pub(crate) depth: Depth,
    /// The live entries, those of a graph in the order of the file.
    pub live: Vec<u32>,
    /// Which call each result answers.
    pub answers: Vec<Answers>,
    /// The index in `live` of each entry, or [`NONE`].
    pub(super) place: Vec<u32>,
    /// The entry from which the live branch of a graph was found.
    pub(crate) leaf: Option<u32>,
    /// How else it could have been found; for graphs only.
    pub(crate) ends: Ends,
    /// For graphs, the order in which the model sees the entries; elsewhere it is that of `live`.
    pub(super) rank: Vec<u32>,
    /// The live entries, sorted by `rank`.
    pub(super) by_rank: Vec<u32>,
    /// Whether each entry is in context.
    pub(super) context: Vec<bool>,
    /// The last entry with each id, or [`NONE`].
    pub(super) by_id: Vec<u32>,
    /// The parent of each entry, or [`NONE`]. Kept apart from the entries because it is needed so often.
    pub(super) parents: Vec<u32>,
    /// Ids that several entries have.
    pub(super) shared: Vec<bool>,
    /// Whether there is one.
    pub(super) repeats_ids: bool,
    /// What each entry is. Kept apart because nearly every rule asks that of all of them.
    pub(super) kinds: Vec<Kind>,
    /// Whether an entry names the message that it is a part of.
    pub(super) groups: bool,
    /// Ids that labels point at.
    pub(super) labelled: Vec<bool>,
    pub(super) result_of: Vec<u32>,
    pub(super) pending_from: u32,
    pub(super) damaged_lines: OnceCell<Vec<DamagedLine>>,
    /// Where the model first sees a marker of Tailor's, as a position; computed when first needed.
    pub(crate) first_marker: OnceCell<Option<u32>>,
    /// The entries in context that hold bound thinking, in model order; computed when first needed.
    pub(crate) bound_thinking: OnceCell<Vec<u32>>,
    /// How many tokens the context has; computed when first needed.
    pub(crate) tokens: OnceCell<Count>,
    pub(super) last_spoken: OnceCell<[LastSpoken; 2]>,
    /// The last live entry of each turn.
    pub(super) turn_ends: OnceCell<HashMap<u64, u32>>,
    /// For each entry that another one changes, the index of that change.
    pub(super) edited: HashMap<u32, u32>,
    /// For logs: for each entry, the first one of its run of assistant entries, which make one turn.
    pub(super) runs: Vec<u32>,
}

/// Who spoke last in a conversation, as keys of [`Session::at`]; the default is before all of them.
#[derive(Clone, Copy, Default)]
pub(super) struct LastSpoken {
    user: (Option<u32>, u32),
    /// The model's newest turn, and its last entry.
    model: Option<(u64, (Option<u32>, u32))>,
    /// The model's last entry of any other turn.
    model_before: (Option<u32>, u32),
}

/// The ends of the branches of a graph.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// The row that the leaf was found from: the leaf is its nearest ancestor that is a message, or itself.
    pub(crate) tip: Option<u32>,
    /// The last row of the conversation: the tip, unless a record names another one.
    pub(crate) last: Option<u32>,
}

/// Which call a result answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It answers this call.
    Call(u32),
    /// This call, which already has a better result.
    Again(u32),
    /// No call: there is none with its id.
    Nothing,
    /// Unknown: it is off the branch, or was written again later.
    Unseen,
}

/// What the end of a conversation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaits {
    /// A tool was called and has not answered.
    Tool,
    /// A person or a tool said something, and the model has not answered.
    Model,
}

impl<'a> Session<'a> {
    /// The damaged lines, and what can be salvaged from them. Computed once, for all rules.
    pub(crate) fn damaged_lines(&self) -> Result<&[DamagedLine], Fault> {
        if let Some(damaged_lines) = self.damaged_lines.get() {
            return Ok(damaged_lines);
        }
        let damaged_lines = salvage::damaged_lines(self.transcript, self.format, self.source)?;
        Ok(self.damaged_lines.get_or_init(|| damaged_lines))
    }

    /// An entry by index.
    pub fn entry(&self, index: u32) -> &'a Entry {
        &self.transcript.entries[index as usize]
    }

    /// What an entry is.
    pub fn kind(&self, index: u32) -> Kind {
        self.kinds[index as usize]
    }

    /// A call by index.
    pub fn call(&self, index: u32) -> &'a Call {
        &self.transcript.calls[index as usize]
    }

    /// A result by index.
    pub fn result(&self, index: usize) -> &'a ToolResult {
        &self.transcript.results[index]
    }

    /// The entry that has this id; the last one if several have.
    pub fn by_id(&self, id: Id) -> Option<u32> {
        let index = self.by_id[id.index()];
        (index != NONE).then_some(index)
    }

    /// The entry that holds these bytes inside, not merely at its edge.
    pub(crate) fn entry_around(&self, at: Span) -> Option<u32> {
        let entries = &self.transcript.entries;
        let after = entries.partition_point(|entry| entry.span.start < at.start);
        (after > 0 && at.end < entries[after - 1].span.end).then(|| after as u32 - 1)
    }

    /// Whether an entry is a whole conversation: a line of a data set.
    pub fn is_whole_conversation(&self, entry: u32) -> bool {
        self.format.results.of_conversations() && self.kind(entry) == Kind::Note
    }

    /// The position of an entry on the live branch.
    pub fn place(&self, entry: u32) -> Option<usize> {
        let place = self.place[entry as usize];
        (place != NONE).then_some(place as usize)
    }

    /// The live entries in the order in which the model sees them.
    pub fn model_order(&self) -> &[u32] {
        if self.rank.is_empty() { &self.live } else { &self.by_rank }
    }

    /// What the agent would send, in the order in which the model sees it.
    pub fn sent(&self) -> impl Iterator<Item = u32> {
        self.model_order().iter().copied().filter(|&entry| self.in_context(entry))
    }

    /// The live entries after `entry`, in model order.
    pub(crate) fn after(&self, entry: u32) -> &[u32] {
        let order = self.model_order();
        // Nearly everywhere the order of the lines is that of the conversation.
        if let Some(place) = self.place(entry).filter(|&place| order.get(place) == Some(&entry)) {
            return &order[place + 1..];
        }
        &order[order.partition_point(|&other| self.at(other) <= self.at(entry))..]
    }

    /// A key that sorts entries as the model sees them.
    fn at(&self, entry: u32) -> (Option<u32>, u32) {
        (self.sequence(entry), entry)
    }

    /// The position of the entry in the model's order; `None` if it is not live.
    pub fn sequence(&self, entry: u32) -> Option<u32> {
        let place = self.place(entry)?;
        Some(self.rank.get(entry as usize).copied().unwrap_or(place as u32))
    }

    /// Whether the agent would load the entry.
    pub fn is_live(&self, entry: u32) -> bool {
        self.place[entry as usize] != NONE
    }

    /// Whether the agent would send the entry to the model.
    pub fn in_context(&self, entry: u32) -> bool {
        self.context[entry as usize]
    }

    /// The last entry of the branch that changes what this one says to the model.
    pub(crate) fn edit_of(&self, entry: u32) -> Option<&'a ContextEdit> {
        if self.edited.is_empty() {
            return None;
        }
        self.edited.get(&entry).map(|&edit| &self.transcript.edits()[edit as usize])
    }

    /// Whether the agent leaves out a message because it failed, although it sends the results of its calls. What
    /// OpenClaw makes of those in its database was not measured.
    pub(crate) fn is_left_out(&self, entry: u32) -> bool {
        let failed = self.entry(entry).stop == StopReason::Aborted;
        failed && self.format.leaves_out_failed && !self.transcript.in_database
    }

    /// Whether a call is still in what its entry says, after a change.
    pub(crate) fn is_said(&self, call: u32) -> bool {
        let call = self.call(call);
        let kept = |edit: &ContextEdit| !edit.hides && call.id.is_some_and(|id| edit.calls.contains(&id));
        self.edit_of(call.entry).is_none_or(kept)
    }

    /// Whether another entry with the same id comes later and takes its place.
    pub fn superseded(&self, entry: u32) -> bool {
        self.repeats_ids && self.entry(entry).id.is_some_and(|id| self.by_id[id.index()] != entry)
    }

    /// Whether another entry has the same id: without this one, that would be read instead.
    pub fn shares_its_id(&self, entry: u32) -> bool {
        self.repeats_ids && self.entry(entry).id.is_some_and(|id| self.shared[id.index()])
    }

    /// Whether any id is used more than once.
    pub(crate) fn repeats_ids(&self) -> bool {
        self.repeats_ids
    }

    /// Whether a label points at the entry.
    pub fn is_labelled(&self, entry: u32) -> bool {
        self.entry(entry).id.is_some_and(|id| self.labelled[id.index()])
    }

    /// Whether the parent of the branch's first entry is missing, so that the agent does not see what came before.
    pub fn is_cut_off(&self) -> bool {
        let first = self.live.first().map(|&first| self.entry(first).parent);
        matches!(first, Some(Link::To(id)) if self.by_id(id).is_none())
    }

    /// The result that answers a call.
    pub fn result_of(&self, call: u32) -> Option<usize> {
        let result = self.result_of[call as usize];
        (result != NONE).then_some(result as usize)
    }

    /// Whether the entry belongs to the newest turn while that still waits for a result. Nothing is altered
    /// there: the tool may be running.
    pub fn is_pending(&self, entry: u32) -> bool {
        entry >= self.pending_from
    }

    /// What the last message of the branch waits for. Notes and boundaries after it are no answers.
    pub fn awaits(&self) -> Option<Awaits> {
        let message = |&entry: &u32| match self.kind(entry) {
            Kind::Message(role @ (Role::User | Role::Assistant | Role::Tool)) => Some((role, entry)),
            _ => None,
        };
        let (role, last) = self.model_order().iter().rev().find_map(message)?;
        match (role, self.entry(last).stop) {
            // Some of the tools of a turn may have answered, and others not.
            _ if self.pending_from != NONE => Some(Awaits::Tool),
            (Role::Assistant, StopReason::ToolUse) => Some(Awaits::Tool),
            (Role::Assistant, _) => None,
            _ => Some(Awaits::Model),
        }
    }

    /// Whether the entry is the newest one. The agent may have its id in memory as the next entry's parent, and without it
    /// another branch may be live.
    pub fn is_newest(&self, entry: u32) -> bool {
        self.live.last() == Some(&entry)
            || self.leaf == Some(entry)
            || self.transcript.entries.iter().rposition(|e| e.id.is_some()) == Some(entry as usize)
    }

    /// A key for the turn of the model that an entry belongs to. Entries of one message share it.
    pub fn turn(&self, entry: u32) -> u64 {
        let group = if self.groups { self.entry(entry).group } else { None };
        let own = group.map(|group| group.index() as u64);
        let first = self.runs.get(entry as usize).copied().unwrap_or(entry);
        own.unwrap_or((1 << 40) + u64::from(first))
    }

    /// Whether each entry is a turn of its own.
    pub(crate) fn is_each_a_turn(&self) -> bool {
        !self.groups && self.runs.is_empty()
    }

    /// For each id, whether several calls in the file have it.
    pub(crate) fn ids_of_several_calls(&self) -> Vec<bool> {
        let ids = self.transcript.ids.len();
        let (mut once, mut several) = (vec![false; ids], vec![false; ids]);
        for key in self.transcript.calls.iter().filter_map(|call| call.key) {
            several[key.index()] |= core::mem::replace(&mut once[key.index()], true);
        }
        several
    }

    /// The last compaction of the branch.
    pub fn last_boundary(&self) -> Option<u32> {
        self.model_order().iter().rev().copied().find(|&entry| self.kind(entry) == Kind::Boundary)
    }

    /// Why nothing of the file may be changed, if that is so.
    pub fn read_only(&self) -> Option<&'static str> {
        self.transcript.read_only.or(match self.format.level {
            SupportLevel::ReadOnly(why) => Some(why),
            _ => None,
        })
    }

    /// The parent of an entry.
    pub(crate) fn parent(&self, entry: u32) -> Option<u32> {
        let parent = self.parents[entry as usize];
        (parent != NONE).then_some(parent)
    }

    pub(super) fn set_live(&mut self, live: Vec<u32>) {
        for (place, &entry) in (0..).zip(&live) {
            self.place[entry as usize] = place;
        }
        self.live = live;
    }

    /// The entry that a compaction or leaf record points at.
    pub fn target(&self, entry: u32) -> Option<u32> {
        let found = self.transcript.target_of(entry);
        if let Some(id) = found.id {
            return self.by_id(id);
        }
        // Without ids pi counts the lines that it can read, including the header. It cannot read a line with two objects.
        let index = usize::try_from(found.index?).ok()?;
        let all = 0..self.transcript.entries.len() as u32;
        let whole = self.shares_its_line(entry);
        all.filter(|&other| whole || !self.shares_its_line(other)).nth(index)
    }

    /// Whether another object stands on the entry's line.
    pub fn shares_its_line(&self, entry: u32) -> bool {
        let next = self.transcript.entries.get(entry as usize + 1);
        self.entry(entry).glued || next.is_some_and(|next| next.glued)
    }

    /// Whether a result is in the record of its call, in a format that also has results in messages of their own: Gemini CLI
    /// sends it right after the calls, whatever follows them in the file.
    pub(crate) fn is_in_record_of_call(&self, result: usize) -> bool {
        let entry = self.entry(self.result(result).entry);
        self.format.shape == Shape::Upserts && entry.kind == Kind::Message(Role::Assistant)
    }

    /// Whether a message follows the turn of this entry: then its tools are not running any more.
    pub fn moved_on(&self, entry: u32) -> bool {
        if !self.is_live(entry) {
            return true;
        }
        let spoken = &self.last_spoken.get_or_init(|| self.find_last_spoken())[self.side(entry)];
        let of_another_turn = match spoken.model {
            Some((turn, at)) if turn != self.turn(entry) => at,
            _ => spoken.model_before,
        };
        spoken.user.max(of_another_turn) > self.at(entry)
    }

    /// Whether nothing of its turn comes after an entry.
    pub(crate) fn is_last_of_turn(&self, entry: u32) -> bool {
        let find = || self.model_order().iter().map(|&entry| (self.turn(entry), entry)).collect();
        let last = self.turn_ends.get_or_init(find).get(&self.turn(entry));
        last.is_none_or(|&last| self.at(last) <= self.at(entry))
    }

    /// Which of the two conversations in a log an entry belongs to: 0 is the main one, 1 that of subagents.
    fn side(&self, entry: u32) -> usize {
        usize::from(!self.runs.is_empty() && self.entry(entry).is_sidechain)
    }

    /// One pass for all calls, because there are many and each may be followed by most of the file.
    fn find_last_spoken(&self) -> [LastSpoken; 2] {
        let mut spoken = [LastSpoken::default(); 2];
        for &entry in self.model_order().iter().rev() {
            let (last, at) = (&mut spoken[self.side(entry)], self.at(entry));
            match self.kind(entry) {
                Kind::Message(Role::User | Role::System) => last.user = last.user.max(at),
                Kind::Message(Role::Assistant) => match last.model {
                    None => last.model = Some((self.turn(entry), at)),
                    Some((turn, _)) if turn != self.turn(entry) => {
                        last.model_before = last.model_before.max(at);
                    }
                    Some(_) => {}
                },
                _ => {}
            }
        }
        spoken
    }

    /// The last message of the live branch that is no result: the newest turn is its turn.
    pub(crate) fn newest(&self) -> Option<u32> {
        self.model_order().iter().rev().copied().find(|&entry| {
            let beside = !self.runs.is_empty() && self.entry(entry).is_sidechain;
            let speaks =
                matches!(self.kind(entry), Kind::Message(Role::Assistant | Role::User | Role::System));
            speaks && !beside
        })
    }

    /// The policy and the situation.
    pub(crate) fn case(&self) -> Case<'a> {
        Case { policy: self.policy, situation: self.situation }
    }

    /// Whether calls of the newest turn stay without a result: no tool runs, and the agent does not answer them itself.
    pub(crate) fn nothing_answers(&self) -> bool {
        self.situation.agent_gone && self.format.leaves_calls_open
    }
}
