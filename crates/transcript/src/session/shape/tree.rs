//! A tree by parent ids, of which one path is live; order is the order of the path (pi).

use crate::model::entry::Kind;
use crate::session::traits::{Compacts, Traits};
use crate::session::view::Session;
use alloc::vec::Vec;

pub(super) static TREE: Traits = Traits {
    join: |session| session.join_tree(),
    summary_first: true,
    short_ids_below: 36,
    compacts: Compacts::AtEnd,
    ..Traits::BASE
};

impl Session<'_> {
    /// pi: the last entry of the file is the leaf, and its ancestors are the branch.
    fn join_tree(&mut self) {
        let entries = &self.transcript.entries;
        let tree = entries.iter().any(|entry| entry.id.is_some());
        let live = if tree {
            let mut leaf = None;
            for (index, entry) in (0..).zip(entries) {
                match entry.kind {
                    Kind::Leaf => leaf = self.transcript.target_of(index).id.and_then(|id| self.by_id(id)),
                    _ if entry.id.is_some() && !entry.is_sidechain => leaf = Some(index),
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
        let boundary = self.live.iter().rposition(|&entry| self.kind(entry) == Kind::Boundary);
        let from = boundary.map_or(0, |at| self.kept_from(at));
        for &entry in &self.live[from..] {
            self.context[entry as usize] = true;
        }
        self.change();
    }

    /// Applies what entries in context say of others (pi since 0.87, `buildSessionProjection`): of several about one entry
    /// the last one of the branch counts, and only within what is in context.
    fn change(&mut self) {
        let mut edits: Vec<(usize, u32)> = Vec::new();
        for (index, edit) in (0..).zip(self.transcript.edits()) {
            edits
                .extend(self.place(edit.entry).filter(|_| self.in_context(edit.entry)).map(|at| (at, index)));
        }
        edits.sort_unstable();
        for (_, index) in edits {
            let target = self.by_id(self.transcript.edits()[index as usize].target);
            if let Some(target) = target.filter(|&target| self.in_context(target)) {
                self.edited.insert(target, index);
            }
        }
        for (&target, &index) in &self.edited {
            self.context[target as usize] &= !self.transcript.edits()[index as usize].hides;
        }
    }

    /// The first place that stays in context with the compaction at place `boundary`.
    fn kept_from(&self, boundary: usize) -> usize {
        let target = self.target(self.live[boundary]);
        target.and_then(|target| self.place(target)).map_or(boundary, |place| place.min(boundary))
    }
}
