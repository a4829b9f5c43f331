//! Links after the plan: re-links entries whose parents go or move, or that get a new entry before them.

use super::{BranchNode, Drawing};
use crate::format::Shape;
use crate::model::entry::{Kind, Link};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use spans::literal::quote;
use spans::source::{Fault, Span};

impl Drawing<'_> {
    /// Links the entries in the way of the shape.
    pub(super) fn link(&mut self) -> Result<(), Fault> {
        match self.session.format.shape {
            Shape::Tree => self.link_branch(),
            Shape::Graph => self.link_graph()?,
            Shape::Log => self.link_log(),
            Shape::List | Shape::Upserts => {}
        }
        Ok(())
    }

    /// Links the branch in its new order, and the children of entries that go.
    fn link_branch(&mut self) {
        if self.lines.is_empty() && self.moves.is_empty() && self.drop.is_empty() {
            return self.move_targets(&[]);
        }
        let mut following: BTreeMap<u32, Vec<BranchNode>> = BTreeMap::new();
        for (index, line) in (0..).zip(&self.lines) {
            following.entry(line.after).or_default().push(BranchNode::New(index));
        }
        for (&entry, &after) in &self.moves {
            following.entry(after).or_default().push(BranchNode::Old(entry));
        }
        let mut order: Vec<BranchNode> = Vec::with_capacity(self.session.live.len() + self.lines.len());
        for &entry in &self.session.live {
            if !self.drop.contains(&entry) && !self.moves.contains_key(&entry) {
                order.push(BranchNode::Old(entry));
                order.extend(following.get(&entry).into_iter().flatten());
            }
        }
        let mut before: Option<BranchNode> = None;
        for &node in &order {
            match node {
                BranchNode::New(index) => {
                    if let Some(parent) = before {
                        self.parents[index as usize] = self.id_of(parent);
                    }
                }
                BranchNode::Old(entry) => {
                    let place = self.session.place(entry).unwrap_or(0);
                    let was = place.checked_sub(1).map(|place| BranchNode::Old(self.session.live[place]));
                    if was != before {
                        self.relink(entry, before);
                    }
                }
            }
            before = Some(node);
        }
        self.link_off_branch();
        self.move_targets(&order);
    }

    fn id_of(&self, node: BranchNode) -> Vec<u8> {
        match node {
            BranchNode::Old(entry) => self.session.transcript.id_text(self.session.entry(entry).id).to_vec(),
            BranchNode::New(index) => self.lines[index as usize].id.as_bytes().to_vec(),
        }
    }

    fn relink(&mut self, entry: u32, parent: Option<BranchNode>) {
        let at = self.session.entry(entry).parent_at();
        let id = parent.map(|parent| self.id_of(parent)).unwrap_or_default();
        let mut with = Vec::new();
        if id.is_empty() {
            with.extend_from_slice(b"null");
        } else {
            quote(&id, &mut with);
        }
        if !at.is_empty() {
            self.replace.push((at, with));
        }
    }

    /// The nearest ancestor that stays; `Err` with the topmost entry that goes if there is none.
    fn surviving_parent(&self, entry: u32) -> Result<u32, u32> {
        let mut at = entry;
        // Each step goes to an entry that is dropped; a cycle among those ends with the count.
        for _ in 0..=self.drop.len() {
            let Link::To(id) = self.session.entry(at).parent else { return Err(at) };
            match self.session.by_id(id) {
                Some(parent) if self.drop.contains(&parent) => at = parent,
                Some(parent) => return Ok(parent),
                None => return Err(at),
            }
        }
        Err(at)
    }

    fn orphaned(&self) -> Vec<u32> {
        if self.drop.is_empty() {
            return Vec::new();
        }
        let on_dropped = |entry: u32| match self.session.entry(entry).parent {
            Link::To(id) => self.session.by_id(id).is_some_and(|parent| self.drop.contains(&parent)),
            Link::Root | Link::Missing => false,
        };
        let all = 0..self.session.transcript.entries.len() as u32;
        all.filter(|&entry| !self.drop.contains(&entry) && on_dropped(entry)).collect()
    }

    fn link_off_branch(&mut self) {
        for entry in self.orphaned() {
            if !self.session.is_live(entry) {
                let parent = self.surviving_parent(entry).ok().map(BranchNode::Old);
                self.relink(entry, parent);
            }
        }
    }

    /// Compactions and leaf records that point at entries that go point at their neighbours instead, and those
    /// that count lines count anew. A compaction whose first entry moves keeps what it kept after that one: the
    /// entry may have gone to a call that the compaction leaves out.
    fn move_targets(&mut self, order: &[BranchNode]) {
        if !self.session.transcript.has_targets() {
            return;
        }
        for (index, entry) in (0..).zip(&self.session.transcript.entries) {
            let pointer = self.session.transcript.target_of(index);
            if let Some(kept) = pointer.index {
                self.recount(index, pointer.at, kept);
            }
            let Some(target) = pointer.id.and_then(|_| self.session.target(index)) else { continue };
            if self.session.format.shape == Shape::Graph && entry.kind != Kind::Leaf {
                // What its compactions keep is between two entries, and stays with both.
                continue;
            }
            let chosen = self.replace.iter().any(|(at, _)| *at == pointer.at);
            let leaves = entry.kind == Kind::Boundary && self.moves.contains_key(&target) && !chosen;
            if !self.drop.contains(&target) && !leaves {
                continue;
            }
            let node = match entry.kind {
                Kind::Leaf => self.surviving_parent(target).ok().map(BranchNode::Old),
                _ => self.next_of(order, target).or(Some(BranchNode::Old(index))),
            };
            let mut with = Vec::new();
            quote(&node.map(|node| self.id_of(node)).unwrap_or_default(), &mut with);
            self.replace.push((pointer.at, with));
        }
    }

    /// The next entry after one that goes or moves that stays at its place.
    fn next_of(&self, order: &[BranchNode], gone: u32) -> Option<BranchNode> {
        let place = self.session.place(gone);
        let stays = |other: u32| self.session.place(other) > place && !self.moves.contains_key(&other);
        order.iter().find(|node| matches!(node, BranchNode::Old(other) if stays(*other))).copied()
    }

    /// A compaction that names its first entry by counting lines counts what will stand before that entry. One that
    /// keeps nothing, because it counted further than there are lines before it, is to keep nothing afterwards.
    fn recount(&mut self, boundary: u32, at: Span, kept: u64) {
        let kept_from = self.session.target(boundary).filter(|&target| target < boundary);
        let target = kept_from.unwrap_or(boundary);
        let staying = |before: &u32| !self.drop.contains(before) && !self.moves.contains_key(before);
        let split = self.replace.iter().filter(|(at, _)| at.is_empty()).map(|(at, _)| at.start).collect();
        let arriving = self.lines.iter().map(|line| line.after).chain(self.moves.values().copied());
        let count = (0..target).filter(|before| staying(before) && self.readable(*before, &split)).count()
            as u64
            + arriving.filter(|&after| after < target).count() as u64;
        if count != kept && (kept_from.is_some() || count > kept) {
            self.replace.push((at, format!("{count}").into_bytes()));
        }
    }

    /// Whether the entry will be on a line of its own once line breaks are put in at `split`.
    fn readable(&self, entry: u32, split: &BTreeSet<u64>) -> bool {
        let glued = |entry: u32| {
            let found = self.session.transcript.entries.get(entry as usize);
            found.is_some_and(|found| found.glued && !split.contains(&found.span.start))
        };
        !glued(entry) && !glued(entry + 1)
    }

    /// In a log each entry names the one before it. Where that goes, or a line is added after it, the entry names what is
    /// before it now.
    fn link_log(&mut self) {
        let mut newest: BTreeMap<u32, u32> = BTreeMap::new();
        for index in 0..self.lines.len() {
            if let Some(before) = newest.insert(self.lines[index].after, index as u32) {
                self.parents[index] = self.id_of(BranchNode::New(before));
            }
        }
        for (index, entry) in (0..).zip(&self.session.transcript.entries) {
            let Link::To(id) = entry.parent else { continue };
            let Some(parent) = self.session.by_id(id) else { continue };
            let stays = self.surviving_parent(index).ok();
            let new = stays.and_then(|stays| newest.get(&stays)).map(|&new| BranchNode::New(new));
            let node = new.or(stays.map(BranchNode::Old));
            if !self.drop.contains(&index) && node != Some(BranchNode::Old(parent)) {
                self.relink(index, node);
            }
        }
    }

    /// Links the children of entries that go to their grandparents. The parent of a new line is its call, as with the
    /// agent's own results.
    fn link_graph(&mut self) -> Result<(), Fault> {
        for entry in self.orphaned() {
            let at = self.session.entry(entry).parent_at();
            if self.replace.iter().any(|(chosen, _)| *chosen == at) {
                // A fix has chosen another parent.
                continue;
            }
            match self.surviving_parent(entry) {
                Ok(parent) => self.relink(entry, Some(BranchNode::Old(parent))),
                Err(topmost) => {
                    let written = self.session.entry(topmost).parent_at();
                    let with = if written.is_empty() { b"null".to_vec() } else { self.literal(written)? };
                    self.replace.push((self.session.entry(entry).parent_at(), with));
                }
            }
        }
        self.move_targets(&[]);
        Ok(())
    }
}
