//! A tree by parent ids in which blocks of one message and results hang on side branches, and are gathered again on
//! loading (Claude Code).

use crate::model::entry::{Kind, Role};
use crate::session::traits::{Compacts, Traits};
use crate::session::view::{Ends, NONE, Session};
use alloc::vec;
use alloc::vec::Vec;

pub(super) static GRAPH: Traits = Traits {
    join: |session| session.join_graph(),
    pairs_anywhere: true,
    notes_are_summaries: true,
    joins_messages: true,
    compacts: Compacts::Linked,
    ..Traits::BASE
};

/// What is known of the ancestors of an entry.
#[derive(Clone, Copy)]
enum Nearest {
    Unknown,
    /// Nobody said anything there.
    Nobody,
    /// The nearest entry that somebody said.
    Entry(u32),
}

impl Session<'_> {
    /// Claude Code, by the rules of the Agent SDK: the last leaf of the file that is part of the main
    /// conversation, its ancestors, the other blocks of their messages, and the results whose parents are among those.
    fn join_graph(&mut self) {
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
            self.rank = self.ranks(&chain, &live);
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
            // This also ends a cycle.
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
}
