//! Walks along parents, and cycles of them.

use crate::model::entry::{Kind, Role};
use crate::session::view::{Answers, NONE, Session};
use alloc::vec;
use alloc::vec::Vec;

impl Session<'_> {
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

    /// For each cycle of parents, the entry whose link is wrong: the first one whose parent comes later in the file, or is
    /// itself. The link of a result to its own call is not taken for wrong, wherever their lines are. If no other link
    /// goes forward, that of the first entry is wrong.
    pub(crate) fn circles(&self) -> Vec<u32> {
        const NEW: u32 = 0;
        // Nearly everywhere all links go back.
        if (0..).zip(&self.parents).all(|(index, &parent)| parent == NONE || parent < index) {
            return Vec::new();
        }
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

    /// The entry whose link is wrong in a cycle, which goes from child to parent.
    fn wrongly_linked(&self, mut circle: Vec<u32>) -> u32 {
        let is_result = |entry: u32| self.kind(entry) == Kind::Message(Role::Tool);
        // Other results may be between a result and its call, so start at an entry that is none and go down.
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

    /// The entries from the root down to a leaf.
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
}
