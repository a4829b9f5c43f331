//! The order of the lines, in which what the model says in one go is the run of its lines (Codex, Copilot).

use crate::model::entry::{Kind, Role};
use crate::session::traits::Traits;
use crate::session::view::Session;
use alloc::vec::Vec;

pub(super) static LOG: Traits = Traits { join: |session| session.join_log(), ..Traits::BASE };

impl Session<'_> {
    /// Codex, Copilot: a list in which nothing before a compaction is sent any more, unless a later record restores an
    /// older state.
    fn join_log(&mut self) {
        self.join_list();
        let of_kind = |kind: Kind| self.live.iter().rposition(|&entry| self.kind(entry) == kind);
        let boundary = of_kind(Kind::Boundary).filter(|&at| of_kind(Kind::Leaf).is_none_or(|back| back < at));
        for &entry in &self.live[..boundary.unwrap_or(0)] {
            self.context[entry as usize] = false;
        }
        let mut runs: Vec<u32> = (0..self.transcript.entries.len() as u32).collect();
        // Subagents speak in between.
        let mut first = [None; 2];
        for &entry in &self.live {
            let found = self.entry(entry);
            let first = &mut first[usize::from(found.is_sidechain)];
            *first = match found.kind {
                Kind::Message(Role::Assistant) => first.or(Some(entry)),
                _ => None,
            };
            runs[entry as usize] = first.unwrap_or(entry);
        }
        self.runs = runs;
    }
}
