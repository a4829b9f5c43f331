//! Entries joined up: the live branch, what of it is in context, and which result answers which call.
//!
//! The live branch is the one that the owning agent would load, by its own rules. Cycles end a walk, missing
//! parents end it as they do in the agents, and an entry that was written again counts as last written.

use crate::format::{Format, Head, Level, Shape};
use crate::model::entry::{Call, Entry, Kind, Link, Role, Stop, ToolResult};
use crate::model::ids::Id;
use crate::model::policy::Depth;
use crate::model::policy::Policy;
use crate::model::transcript::Transcript;
use crate::salvage::{self, Wreck};
use crate::scan::Scanned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::OnceCell;
use hashbrown::HashMap;
use spans::source::{Fault, Source};

const NONE: u32 = u32::MAX;

/// A transcript with its structure, and all that a rule may ask.
pub struct Session<'a> {
    /// The entries.
    pub transcript: &'a Transcript,
    /// Its format.
    pub format: &'static dyn Format,
    /// What the objects say about the format, if more of them would be listened to.
    pub(crate) undecided: Option<Head>,
    /// The bytes, for what entries do not hold.
    pub source: &'a dyn Source,
    /// What is asked for.
    pub policy: &'a Policy,
    /// How much is asked.
    pub(crate) depth: Depth,
    /// The live entries, those of a graph in the order of the file.
    pub live: Vec<u32>,
    /// Which call each result answers.
    pub answers: Vec<Answers>,
    place: Vec<u32>,
    /// The entry from which the live branch of a graph was found.
    pub(crate) leaf: Option<u32>,
    /// How else it could have been found; for graphs only.
    pub(crate) ends: Ends,
    /// Which comes first for the model, where that is not told by the place.
    rank: Vec<u32>,
    /// The live entries by their rank.
    told: Vec<u32>,
    context: Vec<bool>,
    by_id: Vec<u32>,
    /// The entry that each entry hangs on: asked for again and again, and much shorter than the entries.
    parents: Vec<u32>,
    /// Ids that several entries have.
    shared: Vec<bool>,
    /// Whether there is one.
    repeats_ids: bool,
    /// Ids that labels point at.
    labelled: Vec<bool>,
    result_of: Vec<u32>,
    pending_from: u32,
    wrecks: OnceCell<Vec<Wreck>>,
    /// Where the model first sees one of our markers, in its order; once that was looked for.
    pub(crate) first_marker: OnceCell<Option<u32>>,
    last_spoken: OnceCell<[LastSpoken; 2]>,
    /// The last live entry of each turn.
    turn_ends: OnceCell<HashMap<u64, u32>>,
    /// For logs: the first line of what the model said in one go, for each of its lines.
    runs: Vec<u32>,
}

/// Who spoke last in a conversation, as [`Session::at`] sorts entries; the default is before all of them.
#[derive(Clone, Copy, Default)]
struct LastSpoken {
    user: (Option<u32>, u32),
    /// The newest turn of the model's, and its last entry.
    model: Option<(u64, (Option<u32>, u32))>,
    /// The last entry of the model's that is of another turn.
    model_before: (Option<u32>, u32),
}

/// How the calls and results with one id have paired so far. There is one for each id of a call, so what is rare is
/// apart.
#[derive(Clone, Default)]
struct Uses {
    /// The call without a result, if it is the only one: that is the rule.
    single: Option<u32>,
    /// The newest call with a result. One more result is of that call, also after one that came late has moved up
    /// to an earlier call.
    answered: Option<u32>,
    rare: Option<Box<RareUses>>,
}

/// What most ids have none of.
#[derive(Clone, Default)]
struct RareUses {
    /// The calls without a result, turn by turn, if there are several.
    turns: Vec<(u64, VecDeque<u32>)>,
    /// Results for which there was no call yet.
    early: Vec<u32>,
}

impl Uses {
    fn rare(&mut self) -> &mut RareUses {
        self.rare.get_or_insert_default()
    }

    fn open(&mut self, call: u32, turn: impl Fn(u32) -> u64) {
        if self.single.is_none() && self.rare.as_ref().is_none_or(|rare| rare.turns.is_empty()) {
            self.single = Some(call);
            return;
        }
        for call in self.single.take().into_iter().chain([call]) {
            let turns = &mut self.rare().turns;
            match turns.last_mut().filter(|(newest, _)| *newest == turn(call)) {
                Some((_, calls)) => calls.push_back(call),
                None => turns.push((turn(call), [call].into())),
            }
        }
    }

    /// The first open call of the newest turn that has one.
    fn close(&mut self) -> Option<u32> {
        if let Some(call) = self.single.take() {
            return Some(call);
        }
        let turns = &mut self.rare.as_mut()?.turns;
        let call = turns.last_mut().and_then(|(_, calls)| calls.pop_front());
        turns.pop_if(|(_, calls)| calls.is_empty());
        call
    }
}

/// The uses of each id. Most ids are no call's.
struct UsesById {
    /// Where in the list those of an id stand.
    at: Vec<u32>,
    all: Vec<Uses>,
}

impl UsesById {
    fn new(ids: usize) -> Self {
        Self { at: vec![NONE; ids], all: Vec::new() }
    }

    /// Those of an id.
    fn of(&mut self, id: Id) -> &mut Uses {
        let at = &mut self.at[id.index()];
        if *at == NONE {
            *at = self.all.len() as u32;
            self.all.push(Uses::default());
        }
        &mut self.all[*at as usize]
    }
}

/// The ends of the branches of a graph.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// The last entry without a child from which the leaf is the nearest that somebody said.
    pub(crate) tip: Option<u32>,
    /// How many ends of the main conversation there are.
    pub(crate) main: u32,
}

/// What is known of the way up from an entry.
#[derive(Clone, Copy)]
enum Nearest {
    Unknown,
    /// Nobody said anything there.
    Nobody,
    /// The nearest entry that somebody said.
    Entry(u32),
}

/// What a result is to the calls around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It answers this call.
    Call(u32),
    /// This call has another result, which is the better one.
    Again(u32),
    /// There is no such call.
    Nothing,
    /// It was not looked at: off the branch, or written again later.
    Unseen,
}

/// What the end of a conversation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// A tool was called and has not answered.
    Tool,
    /// A person or a tool said something, and the model has not answered.
    Model,
}

impl<'a> Session<'a> {
    /// Joins the entries of a transcript. `None` if its format is unknown.
    pub(crate) fn new(
        read: &'a Scanned,
        source: &'a dyn Source,
        policy: &'a Policy,
        depth: Depth,
    ) -> Option<Self> {
        let Scanned { format, undecided, transcript } = read;
        let format = (*format)?;
        let mut session = Self {
            transcript,
            format,
            undecided: *undecided,
            source,
            policy,
            depth,
            live: Vec::new(),
            answers: vec![Answers::Unseen; transcript.results.len()],
            place: vec![NONE; transcript.entries.len()],
            leaf: None,
            ends: Ends::default(),
            rank: Vec::new(),
            told: Vec::new(),
            context: vec![false; transcript.entries.len()],
            by_id: vec![NONE; transcript.ids.len()],
            parents: Vec::new(),
            repeats_ids: false,
            shared: vec![false; transcript.ids.len()],
            labelled: vec![false; transcript.ids.len()],
            result_of: vec![NONE; transcript.calls.len()],
            pending_from: NONE,
            wrecks: OnceCell::new(),
            first_marker: OnceCell::new(),
            last_spoken: OnceCell::new(),
            turn_ends: OnceCell::new(),
            runs: Vec::new(),
        };
        for (index, entry) in (0..).zip(&transcript.entries) {
            if let Some(id) = entry.id {
                if session.by_id[id.index()] != NONE {
                    session.shared[id.index()] = true;
                    session.repeats_ids = true;
                }
                session.by_id[id.index()] = index;
            }
            if entry.kind == Kind::Opaque
                && let Some(target) = transcript.target_of(index).id
            {
                session.labelled[target.index()] = true;
            }
        }
        session.parents = session.links();
        match format.shape() {
            Shape::Branch => session.branch(),
            Shape::Graph => session.graph(),
            Shape::List => session.list(),
            Shape::Log => session.log(),
            Shape::Upserts => session.upserts(),
        }
        session.pair();
        session.elect();
        session.find_pending();
        Some(session)
    }

    /// The lines that are no records, and what can be had of them. Looked at once, for all rules.
    pub(crate) fn wrecks(&self) -> Result<&[Wreck], Fault> {
        if let Some(wrecks) = self.wrecks.get() {
            return Ok(wrecks);
        }
        let wrecks = salvage::wrecks(self.transcript, self.format, self.source)?;
        Ok(self.wrecks.get_or_init(|| wrecks))
    }

    /// An entry by index.
    pub fn entry(&self, index: u32) -> &'a Entry {
        &self.transcript.entries[index as usize]
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

    /// Whether an entry is a whole conversation: a line of a data set.
    pub fn is_whole_conversation(&self, entry: u32) -> bool {
        self.format.results().of_conversations() && self.entry(entry).kind == Kind::Note
    }

    /// The position of an entry on the live branch.
    pub fn place(&self, entry: u32) -> Option<usize> {
        let place = self.place[entry as usize];
        (place != NONE).then_some(place as usize)
    }

    /// The live entries in the order in which the model sees them.
    pub fn told(&self) -> &[u32] {
        if self.rank.is_empty() { &self.live } else { &self.told }
    }

    /// What the agent would send, in the order in which the model sees it.
    pub fn sent(&self) -> impl Iterator<Item = u32> {
        self.told().iter().copied().filter(|&entry| self.in_context(entry))
    }

    /// What of the branch the model sees behind an entry of it.
    pub(crate) fn behind(&self, entry: u32) -> &[u32] {
        let told = self.told();
        // Nearly everywhere the order of the lines is that of the conversation.
        if let Some(place) = self.place(entry).filter(|&place| told.get(place) == Some(&entry)) {
            return &told[place + 1..];
        }
        &told[told.partition_point(|&other| self.at(other) <= self.at(entry))..]
    }

    /// Sorts entries as the model sees them.
    fn at(&self, entry: u32) -> (Option<u32>, u32) {
        (self.sequence(entry), entry)
    }

    /// When the model sees the entry, compared with others of the branch.
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

    /// Whether another entry with the same id comes later and takes its place.
    pub fn superseded(&self, entry: u32) -> bool {
        self.repeats_ids && self.entry(entry).id.is_some_and(|id| self.by_id[id.index()] != entry)
    }

    /// Whether another entry has the same id: without this one, that would be read instead.
    pub fn shares_its_id(&self, entry: u32) -> bool {
        self.repeats_ids && self.entry(entry).id.is_some_and(|id| self.shared[id.index()])
    }

    /// Whether any id stands more than once.
    pub(crate) fn repeats_ids(&self) -> bool {
        self.repeats_ids
    }

    /// Whether a label points at the entry.
    pub fn is_labelled(&self, entry: u32) -> bool {
        self.entry(entry).id.is_some_and(|id| self.labelled[id.index()])
    }

    /// Whether an entry is among the ancestors of another one, or is that one.
    pub(crate) fn is_above(&self, ancestor: u32, of: u32) -> bool {
        let (mut next, mut steps) = (Some(of), 0);
        while let Some(at) = next.filter(|_| steps <= self.transcript.entries.len()) {
            if at == ancestor {
                return true;
            }
            next = self.parent(at);
            steps += 1;
        }
        false
    }

    /// Of each circle of parents, the entry whose link is wrong: the first whose parent stands behind it, or is itself.
    /// But a result hangs on its call wherever their lines have come to stand; if no other link goes forward, the first
    /// entry's is wrong.
    pub(crate) fn circles(&self) -> Vec<u32> {
        const NEW: u32 = 0;
        let mut walk = vec![NEW; self.transcript.entries.len()];
        let mut circles = Vec::new();
        for start in 0..self.transcript.entries.len() as u32 {
            let (mut next, mine) = (Some(start), start + 1);
            while let Some(at) = next.filter(|&at| walk[at as usize] == NEW) {
                walk[at as usize] = mine;
                next = self.parent(at);
            }
            let Some(at) = next.filter(|&at| walk[at as usize] == mine) else { continue };
            let others = core::iter::successors(self.parent(at), |&member| self.parent(member));
            let circle: Vec<u32> =
                core::iter::once(at).chain(others.take_while(|&other| other != at)).collect();
            circles.push(self.wrongly_linked(circle));
        }
        circles
    }

    /// Of a circle of parents, from child to parent, the entry whose link is wrong.
    fn wrongly_linked(&self, mut circle: Vec<u32>) -> u32 {
        let is_result = |entry: u32| self.entry(entry).kind == Kind::Message(Role::Tool);
        // Other results may stand between one and its call: go down from what is none.
        circle.reverse();
        let spoken = circle.iter().position(|&entry| !is_result(entry)).unwrap_or(0);
        circle.rotate_left(spoken);
        let (mut above, mut best) = (circle[0], (true, true, NONE));
        for &entry in &circle {
            let sure = is_result(entry) && self.answers_a_call_of(entry, above);
            let forward = self.parent(entry) >= Some(entry);
            best = best.min((sure, !forward, entry));
            if !is_result(entry) {
                above = entry;
            }
        }
        best.2
    }

    /// Whether a result of `entry` is one of a call of the same turn as `caller`.
    fn answers_a_call_of(&self, entry: u32, caller: u32) -> bool {
        self.transcript.results_of(entry).any(|result| match self.answers[result] {
            Answers::Call(call) | Answers::Again(call) => {
                self.turn(self.call(call).entry) == self.turn(caller)
            }
            Answers::Nothing | Answers::Unseen => false,
        })
    }

    /// Whether the branch begins at an entry whose parent is missing, so that what stood before is out of sight.
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

    /// What the last message of the branch waits for. Notes and boundaries behind it answer nothing.
    pub fn awaits(&self) -> Option<Awaits> {
        let message = |&entry: &u32| match self.entry(entry).kind {
            Kind::Message(role @ (Role::User | Role::Assistant | Role::Tool)) => Some((role, entry)),
            _ => None,
        };
        let (role, last) = self.told().iter().rev().find_map(message)?;
        match (role, self.entry(last).stop) {
            // Some of the tools of a turn may have answered, and others not.
            _ if self.pending_from != NONE => Some(Awaits::Tool),
            (Role::Assistant, Stop::ToolUse) => Some(Awaits::Tool),
            (Role::Assistant, _) => None,
            _ => Some(Awaits::Model),
        }
    }

    /// Whether the entry is the newest one. The agent may hold its id in memory and hang the next entry on it, and
    /// without it another branch may be live.
    pub fn is_newest(&self, entry: u32) -> bool {
        self.live.last() == Some(&entry)
            || self.leaf == Some(entry)
            || self.transcript.entries.iter().rposition(|e| e.id.is_some()) == Some(entry as usize)
    }

    /// What tells one turn of the model from the next: the message that several entries may share.
    pub fn turn(&self, entry: u32) -> u64 {
        let own = self.entry(entry).group.map(|group| group.index() as u64);
        let first = self.runs.get(entry as usize).copied().unwrap_or(entry);
        own.unwrap_or((1 << 40) + u64::from(first))
    }

    /// The last compaction of the branch.
    pub fn last_boundary(&self) -> Option<u32> {
        self.told().iter().rev().copied().find(|&entry| self.entry(entry).kind == Kind::Boundary)
    }

    /// Why nothing of the file may be changed, if that is so.
    pub fn read_only(&self) -> Option<&'static str> {
        self.transcript.read_only.or(match self.format.level() {
            Level::ReadOnly(why) => Some(why),
            _ => None,
        })
    }

    /// The entry that an entry hangs on.
    pub(crate) fn parent(&self, entry: u32) -> Option<u32> {
        let parent = self.parents[entry as usize];
        (parent != NONE).then_some(parent)
    }

    fn links(&self) -> Vec<u32> {
        let mut before = NONE;
        let link = |(index, entry): (u32, &Entry)| {
            let parent = match entry.parent {
                Link::To(id) => self.by_id[id.index()],
                // OpenClaw writes rows without a parent that simply follow the row before.
                Link::Missing if self.format.shape() == Shape::Branch => before,
                Link::Root | Link::Missing => NONE,
            };
            if entry.id.is_some() {
                before = index;
            }
            parent
        };
        (0..).zip(&self.transcript.entries).map(link).collect()
    }

    fn set_live(&mut self, live: Vec<u32>) {
        for (place, &entry) in (0..).zip(&live) {
            self.place[entry as usize] = place;
        }
        self.live = live;
    }

    /// From a leaf up to the root, in the order root to leaf.
    pub(crate) fn path(&self, leaf: Option<u32>) -> Vec<u32> {
        let mut path = Vec::new();
        let mut seen = vec![false; self.transcript.entries.len()];
        let mut next = leaf;
        while let Some(entry) = next
            && !core::mem::replace(&mut seen[entry as usize], true)
        {
            path.push(entry);
            next = self.parent(entry);
        }
        path.reverse();
        path
    }

    /// pi: the last entry of the file is the leaf, and its ancestors are the branch.
    fn branch(&mut self) {
        let entries = &self.transcript.entries;
        let tree = entries.iter().any(|entry| entry.id.is_some());
        let live = if tree {
            let mut leaf = None;
            for (index, entry) in (0..).zip(entries) {
                match entry.kind {
                    Kind::Leaf => leaf = self.transcript.target_of(index).id.and_then(|id| self.by_id(id)),
                    _ if entry.id.is_some() && !entry.aside => leaf = Some(index),
                    _ => {}
                }
            }
            self.path(leaf)
        } else {
            (0..)
                .zip(entries)
                .filter(|(_, entry)| entry.kind != Kind::Header)
                .map(|(index, _)| index)
                .collect()
        };
        self.set_live(live);
        let boundary = self.live.iter().rposition(|&entry| self.entry(entry).kind == Kind::Boundary);
        let from = boundary.map_or(0, |at| self.kept_from(at));
        for &entry in &self.live[from..] {
            self.context[entry as usize] = true;
        }
    }

    /// The first place that stays in context with the compaction at place `boundary`.
    fn kept_from(&self, boundary: usize) -> usize {
        let target = self.target(self.live[boundary]);
        target.and_then(|target| self.place(target)).map_or(boundary, |place| place.min(boundary))
    }

    /// The entry that a compaction or leaf record points at.
    pub fn target(&self, entry: u32) -> Option<u32> {
        let found = self.transcript.target_of(entry);
        if let Some(id) = found.id {
            return self.by_id(id);
        }
        // Without ids pi counts the lines that it could read, the header included; of a line with two objects
        // it reads neither.
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

    /// Claude Code, by the rules of the Agent SDK: the last leaf of the file that is part of the main
    /// conversation, its ancestors, the other blocks of their messages, and the results that hang on those.
    fn graph(&mut self) {
        let entries = &self.transcript.entries;
        let count = entries.len() as u32;
        let mut has_child = vec![false; entries.len()];
        for entry in (0..count).filter(|&entry| !self.superseded(entry)) {
            if let Some(parent) = self.parent(entry) {
                has_child[parent as usize] = true;
            }
        }
        let spoken = |entry: u32| self.entry(entry).is_spoken();
        let mut nearest = vec![Nearest::Unknown; entries.len()];
        let (mut best, mut ends) = (None, Ends::default());
        for terminal in (0..count).filter(|&entry| !self.superseded(entry)) {
            if has_child[terminal as usize] || entries[terminal as usize].id.is_none() {
                continue;
            }
            if let Some(leaf) = self.nearest(terminal, &spoken, &mut nearest) {
                let main = self.entry(leaf).is_main();
                ends.main += u32::from(main);
                if Some((main, leaf)) >= best {
                    (best, ends.tip) = (Some((main, leaf)), Some(terminal));
                }
            }
        }
        (self.leaf, self.ends) = (best.map(|(_, leaf)| leaf), ends);
        let chain = self.path(self.leaf);
        let mut live = self.gather(&chain);
        self.rank = self.ranks(&chain, &live);
        let rank = |entry: u32| self.rank[entry as usize];
        // The way up ends at a compaction: what hangs on it is loaded, also where its line stands before it.
        let boundaries = live.iter().copied().filter(|&entry| self.entry(entry).kind == Kind::Boundary);
        let boundary = boundaries.max_by_key(|&entry| rank(entry));
        for &entry in live.iter().filter(|&&entry| boundary.is_none_or(|from| rank(entry) >= rank(from))) {
            self.context[entry as usize] = true;
        }
        let kept = boundary.map_or_else(Vec::new, |boundary| self.preserved(boundary));
        if !kept.is_empty() {
            for &entry in &kept {
                self.context[entry as usize] = true;
            }
            live.extend(kept);
            live.sort_unstable();
            live.dedup();
            self.rank = self.ranks(&chain, &live);
        }
        self.told.clone_from(&live);
        self.told.sort_by_key(|&entry| self.rank[entry as usize]);
        self.set_live(live);
    }

    /// The order of the conversation, which the links tell and not the lines: blocks of one message come
    /// together, those beside the branch behind the first one on it, and then the results of that one's calls.
    fn ranks(&self, chain: &[u32], live: &[u32]) -> Vec<u32> {
        let mut ranks = vec![0; self.transcript.entries.len()];
        let mut of_group = vec![NONE; self.transcript.ids.len()];
        for (index, &entry) in (0..).zip(chain) {
            ranks[entry as usize] = index * 3;
            if let Some(group) = self.entry(entry).group {
                of_group[group.index()] = of_group[group.index()].min(index * 3);
            }
        }
        let mut on_chain = vec![false; self.transcript.entries.len()];
        for &entry in chain {
            on_chain[entry as usize] = true;
        }
        let beside = || live.iter().filter(|&&entry| !on_chain[entry as usize]);
        let of_its_message = |entry: u32| {
            let group = self.entry(entry).group.map(|group| of_group[group.index()]);
            group.filter(|&rank| rank != NONE).map(|rank| rank + 1)
        };
        for &entry in beside() {
            ranks[entry as usize] = of_its_message(entry).unwrap_or(0);
        }
        // Now that all calls have their place: results may stand on lines before theirs.
        for &entry in beside().filter(|&&entry| of_its_message(entry).is_none()) {
            let parent = self.parent(entry).map(|parent| ranks[parent as usize] / 3 * 3 + 2);
            ranks[entry as usize] = parent.unwrap_or(0);
        }
        ranks
    }

    /// The nearest entry at or above `from` that somebody said. Remembers what it finds on the way.
    fn nearest(&self, from: u32, spoken: &dyn Fn(u32) -> bool, known: &mut [Nearest]) -> Option<u32> {
        let mut way = Vec::new();
        let mut next = Some(from);
        let found = loop {
            let Some(entry) = next else { break None };
            match known[entry as usize] {
                Nearest::Unknown => {}
                Nearest::Nobody => break None,
                Nearest::Entry(found) => break Some(found),
            }
            if spoken(entry) {
                break Some(entry);
            }
            // Also ends a cycle: whoever comes by again finds nobody here.
            known[entry as usize] = Nearest::Nobody;
            way.push(entry);
            next = self.parent(entry);
        };
        for entry in way {
            known[entry as usize] = found.map_or(Nearest::Nobody, Nearest::Entry);
        }
        found
    }

    fn gather(&self, chain: &[u32]) -> Vec<u32> {
        let mut live = vec![false; self.transcript.entries.len()];
        let mut groups = vec![false; self.transcript.ids.len()];
        for &entry in chain {
            live[entry as usize] = true;
            if let Some(group) = self.entry(entry).group {
                groups[group.index()] = true;
            }
        }
        for (index, entry) in (0..).zip(&self.transcript.entries) {
            let sibling = entry.group.is_some_and(|group| groups[group.index()]);
            if entry.id.is_some() && sibling && !self.superseded(index) {
                live[index as usize] = true;
            }
        }
        for (index, entry) in (0..).zip(&self.transcript.entries) {
            if entry.kind != Kind::Message(Role::Tool) {
                continue;
            }
            // On whichever line of the message it hangs: Claude Code (2.1.330) sends it.
            let parent = self.parent(index).filter(|&parent| live[parent as usize]);
            let answers =
                parent.is_some_and(|parent| self.entry(parent).kind == Kind::Message(Role::Assistant));
            if answers && !self.superseded(index) {
                live[index as usize] = true;
            }
        }
        (0..).zip(live).filter_map(|(index, live)| live.then_some(index)).collect()
    }

    /// What a Claude Code compaction carries over unchanged.
    fn preserved(&self, boundary: u32) -> Vec<u32> {
        let target = self.transcript.target_of(boundary);
        let (Some(head), Some(tail)) = (target.id, target.end) else { return Vec::new() };
        let path = self.path(self.by_id(tail));
        let from = self.by_id(head).and_then(|head| path.iter().position(|&entry| entry == head));
        from.map_or_else(Vec::new, |from| self.gather(&path[from..]))
    }

    fn list(&mut self) {
        let live = (0..).zip(&self.transcript.entries).filter(|(_, entry)| entry.kind != Kind::Opaque);
        self.set_live(live.map(|(index, _)| index).collect());
        self.context.fill(true);
    }

    /// Codex, Copilot: a list in which what stands before a compaction is not sent any more, unless something behind
    /// it brings an older state back.
    fn log(&mut self) {
        self.list();
        let of_kind = |kind: Kind| self.live.iter().rposition(|&entry| self.entry(entry).kind == kind);
        let boundary = of_kind(Kind::Boundary).filter(|&at| of_kind(Kind::Leaf).is_none_or(|back| back < at));
        for &entry in &self.live[..boundary.unwrap_or(0)] {
            self.context[entry as usize] = false;
        }
        let mut runs: Vec<u32> = (0..self.transcript.entries.len() as u32).collect();
        // Subagents speak in between.
        let mut first = [None; 2];
        for &entry in &self.live {
            let found = self.entry(entry);
            let first = &mut first[usize::from(found.aside)];
            *first = match found.kind {
                Kind::Message(Role::Assistant) => first.or(Some(entry)),
                _ => None,
            };
            runs[entry as usize] = first.unwrap_or(entry);
        }
        self.runs = runs;
    }

    /// Gemini CLI: of the records with one id the last one counts, at the place of the first. What was taken back, or
    /// stands before a list that was put in its place, is not live.
    fn upserts(&mut self) {
        let mut order: Vec<u32> = Vec::new();
        let mut places = vec![NONE; self.transcript.ids.len()];
        // A record that a list has replaced is not read again, whatever becomes of those with its id.
        self.shared.fill(false);
        for (index, entry) in (0..).zip(&self.transcript.entries) {
            match (entry.kind, entry.id) {
                (Kind::Boundary, _) => {
                    order.clear();
                    places.fill(NONE);
                    self.shared.fill(false);
                    order.push(index);
                }
                (Kind::Leaf, _) => {
                    let to = self.transcript.target_of(index).id;
                    // An id that is not there takes everything back.
                    let keep = to.map(|to| places[to.index()]).filter(|&place| place != NONE).unwrap_or(0);
                    for gone in order.drain(keep as usize..) {
                        if let Some(id) = self.transcript.entries[gone as usize].id {
                            places[id.index()] = NONE;
                        }
                    }
                }
                (_, Some(id)) if places[id.index()] != NONE => {
                    order[places[id.index()] as usize] = index;
                    self.shared[id.index()] = true;
                }
                (_, Some(id)) => {
                    places[id.index()] = order.len() as u32;
                    order.push(index);
                }
                _ => {}
            }
        }
        order.retain(|&entry| self.entry(entry).kind != Kind::Opaque);
        for &entry in &order {
            self.context[entry as usize] = true;
        }
        self.set_live(order);
    }

    /// Finds the result of each call: by occurrence along the branch, never by id alone, because ids are used
    /// again in later turns.
    fn pair(&mut self) {
        let everywhere = self.format.shape() == Shape::Graph;
        let order: Vec<u32> = if everywhere {
            let all = 0..self.transcript.entries.len() as u32;
            all.filter(|&entry| !self.superseded(entry)).collect()
        } else {
            self.live.clone()
        };
        let mut uses = UsesById::new(self.transcript.ids.len());
        for entry in order {
            for call in self.transcript.calls_of(entry) {
                let Some(id) = self.call(call as u32).key else { continue };
                uses.of(id).open(call as u32, |call| self.turn(self.call(call).entry));
            }
            for result in self.transcript.results_of(entry) {
                let found = self.result(result);
                // An id too long to be kept is an id all the same.
                self.answers[result] =
                    if found.call_at.len() > 2 { Answers::Unseen } else { Answers::Nothing };
                let Some(id) = found.key else { continue };
                self.answers[result] = Answers::Nothing;
                let uses = uses.of(id);
                // An interrupted call waits for nothing once a later one with its id has been answered.
                let answered = uses.answered;
                let waits = |&call: &u32| Some(call) > answered || !self.is_aborted(call);
                let mut open = core::iter::from_fn(|| uses.close());
                if let Some(call) = open.find(waits) {
                    uses.answered = uses.answered.max(Some(call));
                    self.answers[result] = Answers::Call(call);
                    self.result_of[call as usize] = result as u32;
                } else if let Some(call) = uses.answered {
                    self.answers[result] = Answers::Again(call);
                } else {
                    uses.rare().early.push(result as u32);
                }
            }
        }
        // Results that stood before their call.
        let rare = uses.all.into_iter().filter_map(|uses| Some((uses.single, uses.answered, uses.rare?)));
        let mut early: Vec<_> = rare.filter(|(_, _, rare)| !rare.early.is_empty()).collect();
        early.sort_unstable_by_key(|(_, _, rare)| rare.early[0]);
        for (single, mut answered, rare) in early {
            let several = rare.turns.into_iter().flat_map(|(_, calls)| calls);
            let mut open = single.into_iter().chain(several);
            for result in rare.early {
                self.answers[result as usize] = match (open.next(), answered) {
                    (Some(call), _) => {
                        self.result_of[call as usize] = result;
                        answered = answered.max(Some(call));
                        Answers::Call(call)
                    }
                    (None, Some(call)) => Answers::Again(call),
                    (None, None) => Answers::Nothing,
                };
            }
        }
    }

    fn is_aborted(&self, call: u32) -> bool {
        self.entry(self.call(call).entry).stop == Stop::Aborted
    }

    /// Of several results of a call, makes the best one its answer, so that all rules speak of the one that stays
    /// when the others are taken out.
    fn elect(&mut self) {
        for result in 0..self.answers.len() {
            let Answers::Again(call) = self.answers[result] else { continue };
            let Some(first) = self.result_of(call) else { continue };
            if self.worth(call, result) < self.worth(call, first) {
                self.answers[first] = Answers::Again(call);
                self.answers[result] = Answers::Call(call);
                self.result_of[call as usize] = result as u32;
            }
        }
    }

    /// Which of several results of a call to keep: the least of these. Off-branch copies are never sent. What
    /// stands before the call may be of an earlier one, beyond a missing parent, that had the same id.
    fn worth(&self, call: u32, result: usize) -> (bool, bool, bool, bool, bool, usize) {
        let found = self.result(result);
        let before_call = self.place(found.entry) < self.place(self.call(call).entry);
        let apart = !self.is_in_record_of_call(result);
        (!self.is_live(found.entry), found.synthetic, before_call, apart, found.error, result)
    }

    /// Whether a result stands in a record of calls, where others stand in messages of their own: Gemini CLI sends it
    /// right after the calls, whatever follows them in the file.
    pub(crate) fn is_in_record_of_call(&self, result: usize) -> bool {
        let entry = self.entry(self.result(result).entry);
        self.format.shape() == Shape::Upserts && entry.kind == Kind::Message(Role::Assistant)
    }

    /// Whether somebody spoke after the turn of this entry: then its tools are not running any more.
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
        let find = || self.told().iter().map(|&entry| (self.turn(entry), entry)).collect();
        let last = self.turn_ends.get_or_init(find).get(&self.turn(entry));
        last.is_none_or(|&last| self.at(last) <= self.at(entry))
    }

    /// Of the two conversations in a log, which one an entry belongs to.
    fn side(&self, entry: u32) -> usize {
        usize::from(!self.runs.is_empty() && self.entry(entry).aside)
    }

    /// Calls are many, and what came after them can be most of the file: it is gone over once for all of them.
    fn find_last_spoken(&self) -> [LastSpoken; 2] {
        let mut spoken = [LastSpoken::default(); 2];
        for &entry in self.told().iter().rev() {
            let (last, at) = (&mut spoken[self.side(entry)], self.at(entry));
            match self.entry(entry).kind {
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

    /// The last entry of the live branch with which a turn can begin, or go on.
    pub(crate) fn newest(&self) -> Option<u32> {
        self.told().iter().rev().copied().find(|&entry| {
            let beside = !self.runs.is_empty() && self.entry(entry).aside;
            let speaks =
                matches!(self.entry(entry).kind, Kind::Message(Role::Assistant | Role::User | Role::System));
            speaks && !beside
        })
    }

    /// Whether calls of the newest turn stay without a result: no tool runs, and the agent does not answer them itself.
    pub(crate) fn nothing_answers(&self) -> bool {
        self.policy.agent_gone && self.format.leaves_calls_open()
    }

    fn find_pending(&mut self) {
        if self.nothing_answers() {
            return;
        }
        // Only the newest turn can be pending, and that is among the last entries that the model wrote.
        let Some(newest) = self.newest() else { return };
        let turn = self.turn(newest);
        let members = || self.live.iter().copied().filter(|&entry| self.turn(entry) == turn);
        let open = |entry: u32| {
            self.transcript.calls_of(entry).any(|call| self.result_of(call as u32).is_none())
                && self.entry(entry).stop != Stop::Aborted
        };
        if members().any(open) {
            self.pending_from = members().min().unwrap_or(NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Awaits;
    use crate::{Policy, examine};
    use alloc::format;
    use alloc::string::String;
    use core::fmt::Write;

    /// What a pi session with these messages behind its first line awaits.
    #[track_caller]
    fn check(messages: &[&str], expected: Option<Awaits>) {
        let mut text = String::from(r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#);
        for (n, message) in messages.iter().enumerate() {
            let parent = if n == 0 { "null".into() } else { format!(r#""e{}""#, n - 1) };
            write!(text, "\n{{\"id\":\"e{n}\",\"parentId\":{parent},{message}}}").unwrap();
        }
        let found = examine(&(text + "\n").as_bytes(), &Policy::default()).unwrap();
        assert_eq!(found.facts.awaits, expected, "{messages:?}");
    }

    const ASKED: &str = r#""type":"message","message":{"role":"user","content":"go"}"#;
    const CALLED: &str = r#""type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"a","arguments":{}},{"type":"toolCall","id":"d","name":"a","arguments":{}}],"stopReason":"toolUse"}"#;
    const FIRST: &str = r#""type":"message","message":{"role":"toolResult","toolCallId":"c","content":"x"}"#;
    const SECOND: &str = r#""type":"message","message":{"role":"toolResult","toolCallId":"d","content":"x"}"#;
    const SAID: &str = r#""type":"message","message":{"role":"assistant","content":[],"stopReason":"stop"}"#;
    const NOTED: &str = r#""type":"custom_message","content":"note""#;

    #[test]
    fn the_end_of_the_branch_says_what_it_waits_for() {
        check(&[], None);
        check(&[ASKED], Some(Awaits::Model));
        check(&[ASKED, SAID], None);
        check(&[ASKED, SAID, NOTED], None);
        check(&[ASKED, NOTED], Some(Awaits::Model));
        check(&[ASKED, CALLED], Some(Awaits::Tool));
        check(&[ASKED, CALLED, FIRST], Some(Awaits::Tool));
        check(&[ASKED, CALLED, FIRST, SECOND], Some(Awaits::Model));
        check(&[ASKED, CALLED, FIRST, SECOND, SAID], None);
        // Without its call, it still says that it stopped for one.
        check(&[ASKED, &CALLED.replace("toolCall", "gone")], Some(Awaits::Tool));
        check(&[ASKED, &CALLED.replace("toolUse", "aborted")], None);
        check(&[ASKED, CALLED, ASKED], Some(Awaits::Model));
    }

    #[test]
    fn what_is_off_the_branch_waits_for_nothing() {
        let back = r#""type":"leaf","targetId":"e1""#;
        check(&[ASKED, SAID, ASKED, back], None);
    }
}
