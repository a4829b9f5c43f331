//! A tree by parent ids in which blocks of one message and results hang on side branches, and are gathered again on
//! loading (Claude Code).
//!
//! Measured with Claude Code 2.1.332 against a stub: tests/agents/sent holds the sessions, and what it sent of each.

use crate::model::entry::{Kind, Link, Role, Service};
use crate::model::ids::Id;
use crate::session::traits::{Compacts, Traits};
use crate::session::view::{Ends, NONE, Session};
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;

pub(super) static GRAPH: Traits = Traits {
    join: |session| session.join_graph(),
    pairs_anywhere: true,
    notes_are_summaries: true,
    joins_messages: true,
    compacts: Compacts::Linked,
    ..Traits::BASE
};

/// How much older than a row whose parent is missing the row may be at which Claude Code goes on.
const GOES_ON_MS: u32 = 5_000;

impl Session<'_> {
    /// The chain of the leaf, the other blocks of its messages, and the results whose parents are among those.
    fn join_graph(&mut self) {
        self.ends = self.find_ends();
        let chain = self.path(self.ends.tip);
        let said = chain.iter().rposition(|&entry| self.entry(entry).is_spoken());
        self.leaf = said.map(|at| chain[at]);
        let chain = &chain[..said.map_or(0, |at| at + 1)];
        let mut live = self.gather(chain);
        self.rank = self.ranks(chain, &live);
        let rank = |entry: u32| self.rank[entry as usize];
        // The agent walks up as far as a compaction, so its descendants are loaded even if their lines come before it.
        let boundaries = live.iter().copied().filter(|&entry| self.kind(entry) == Kind::Boundary);
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
            self.rank = self.ranks(chain, &live);
        }
        self.by_rank.clone_from(&live);
        self.by_rank.sort_by_key(|&entry| self.rank[entry as usize]);
        self.set_live(live);
    }

    /// The order of the conversation, which follows links and not lines: first the block of a message that is on the chain,
    /// then the blocks of that message that are not, and then the results of its calls.
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
        // After the loop above, because a result may be on a line before its call.
        let mut is_live = vec![false; self.transcript.entries.len()];
        for &entry in live {
            is_live[entry as usize] = true;
        }
        let mut callers = None;
        for &entry in beside().filter(|&&entry| of_its_message(entry).is_none()) {
            let parent = self.parent(entry).filter(|&parent| is_live[parent as usize]).or_else(|| {
                let callers = callers.get_or_insert_with(|| self.calls_by_id(&is_live));
                let mut ids = self.transcript.results_of(entry).filter_map(|result| self.result(result).key);
                ids.find_map(|id| callers.get(&id).copied())
            });
            ranks[entry as usize] = parent.map_or(0, |parent| ranks[parent as usize] / 3 * 3 + 2);
        }
        ranks
    }

    /// Finds the leaf, and links the rows above it whose parents are missing to those at which the agent goes on.
    ///
    /// The leaf is the last row of the main conversation without children. Only if the last `last-prompt` record names a row that is not
    /// above it, it is that row, and what came later is not loaded. A file of a subagent has no main conversation.
    fn find_ends(&mut self) -> Ends {
        let mut rows: Vec<u32> = (0..self.transcript.entries.len() as u32).collect();
        rows.retain(|&entry| {
            let found = self.entry(entry);
            let may_be_leaf = self.format.any_record_is_leaf || found.is_spoken();
            found.id.is_some() && may_be_leaf && found.service != Service::Progress && !self.superseded(entry)
        });
        if rows.iter().any(|&entry| !self.entry(entry).is_sidechain) {
            rows.retain(|&entry| !self.entry(entry).is_sidechain);
        }
        let mut has_child = vec![false; self.transcript.entries.len()];
        for &entry in &rows {
            let up = core::iter::successors(self.parent(entry), |&parent| self.parent(parent));
            // Records of progress may go in a circle.
            let mut up = up.take(self.transcript.entries.len());
            let parent = up.find(|&parent| self.entry(parent).service != Service::Progress);
            if let Some(parent) = parent {
                has_child[parent as usize] = true;
            }
        }
        let last = rows.iter().rfind(|&&entry| !has_child[entry as usize]).or(rows.last()).copied();
        let all = 0..self.transcript.entries.len() as u32;
        let newest = all.rev().find(|&entry| self.kind(entry) == Kind::Leaf);
        let named = newest.and_then(|newest| self.target(newest));
        let named = named.filter(|&named| self.entry(named).service != Service::Progress);
        let aside = named.filter(|&named| last.is_some_and(|last| !self.is_above(named, last)));
        let tip = aside.or(last);
        if let Some(tip) = tip {
            self.go_on(tip, &rows);
        }
        Ends { tip, last }
    }

    /// Where the walk up from a row comes to a missing parent, Claude Code goes on at the row that was written last before
    /// the orphan, wherever that stands, unless it is too old or there is none. The records of progress are passed through.
    fn go_on(&mut self, from: u32, rows: &[u32]) {
        let mut seen = vec![false; self.transcript.entries.len()];
        let (mut next, mut orphan) = (Some(from), from);
        while let Some(entry) = next.filter(|&entry| !core::mem::replace(&mut seen[entry as usize], true)) {
            if self.entry(entry).service != Service::Progress {
                orphan = entry;
            }
            if let (None, Link::To(_)) = (self.parent(entry), self.entry(entry).parent) {
                let before = self.written_before(orphan, rows, &seen);
                // One below the orphan would close a circle.
                let before = before.filter(|&before| !self.is_above(entry, before));
                self.parents[entry as usize] = before.unwrap_or(NONE);
            }
            next = self.parent(entry);
        }
    }

    /// Of the rows that were not seen, the one that was written last before this one; the first of several.
    fn written_before(&self, orphan: u32, rows: &[u32], seen: &[bool]) -> Option<u32> {
        let times = self.transcript.times();
        let time = |entry: u32| {
            let at = times.binary_search_by_key(&entry, |time| time.entry).ok()?;
            Some(times[at].ms)
        };
        let own = time(orphan)?;
        let unseen = rows.iter().copied().filter(|&entry| !seen[entry as usize]);
        let ages = unseen.filter_map(|entry| Some((own.wrapping_sub(time(entry)?), entry)));
        ages.filter(|&(age, _)| age <= GOES_ON_MS).min().map(|(_, entry)| entry)
    }

    fn gather(&self, chain: &[u32]) -> Vec<u32> {
        let mut live = vec![false; self.transcript.entries.len()];
        let mut groups = vec![false; self.transcript.ids.len()];
        // Messages that call a tool, on whichever of their lines.
        let mut calling = groups.clone();
        let calls = |entry: u32| !self.transcript.calls_of(entry).is_empty();
        for &entry in chain {
            live[entry as usize] = true;
            if let Some(group) = self.entry(entry).group {
                groups[group.index()] = true;
            }
        }
        for (index, entry) in (0..).zip(&self.transcript.entries) {
            let Some(group) = entry.group.filter(|group| groups[group.index()]) else { continue };
            if entry.id.is_some() && !self.superseded(index) {
                live[index as usize] = true;
            }
            calling[group.index()] |= live[index as usize] && calls(index);
        }
        for (index, entry) in (0..).zip(&self.transcript.entries) {
            if entry.kind != Kind::Message(Role::Tool) {
                continue;
            }
            // Its parent may be any line of its call's message: Claude Code (2.1.330) sends it.
            let parent = self.parent(index).filter(|&parent| live[parent as usize]);
            let answers = parent.is_some_and(|parent| {
                calls(parent) || self.entry(parent).group.is_some_and(|group| calling[group.index()])
            });
            if answers && !self.superseded(index) {
                live[index as usize] = true;
            }
        }
        self.gather_strays(&mut live);
        (0..).zip(live).filter_map(|(index, live)| live.then_some(index)).collect()
    }

    /// Results of live calls that hang anywhere else are sent too, if the call has no other.
    fn gather_strays(&self, live: &mut [bool]) {
        let mut open = self.calls_by_id(live);
        if open.is_empty() {
            return;
        }
        let ids_of =
            |entry: u32| self.transcript.results_of(entry).filter_map(|result| self.result(result).key);
        for entry in (0..live.len() as u32).filter(|&entry| live[entry as usize]) {
            ids_of(entry).for_each(|id| _ = open.remove(&id));
        }
        for (index, entry) in (0..).zip(&self.transcript.entries) {
            let beside =
                entry.kind == Kind::Message(Role::Tool) && !live[index as usize] && !self.superseded(index);
            if beside && ids_of(index).filter(|id| open.remove(id).is_some()).count() > 0 {
                live[index as usize] = true;
            }
        }
    }

    /// The live entries with calls, by the ids of these.
    fn calls_by_id(&self, live: &[bool]) -> HashMap<Id, u32> {
        let calls = self.transcript.calls.iter().filter(|call| live[call.entry as usize]);
        calls.filter_map(|call| Some((call.key?, call.entry))).collect()
    }

    /// What a Claude Code compaction carries over unchanged.
    fn preserved(&self, boundary: u32) -> Vec<u32> {
        let target = self.transcript.target_of(boundary);
        let (Some(head), Some(tail)) = (target.id, target.end) else { return Vec::new() };
        let path = self.path(self.by_id(tail));
        let from = self.by_id(head).and_then(|head| path.iter().position(|&entry| entry == head));
        from.map_or_else(Vec::new, |from| self.gather(&path[from..]))
    }
}
