//! The order of the lines, in which what the model says in one go is the run of its lines (Codex, Copilot).

use crate::model::entry::{ContentIssueKind, Kind, Role};
use crate::session::traits::Traits;
use crate::session::view::{NONE, Session};
use alloc::vec::Vec;

pub(super) static LOG: Traits = Traits { join: |session| session.join_log(), ..Traits::BASE };

impl Session<'_> {
    /// Codex, Copilot: a list in which nothing before a compaction is sent any more, unless a later record restores an
    /// older state.
    fn join_log(&mut self) {
        self.join_list();
        self.take_back();
        let restores = |&entry: &u32| self.kind(entry) == Kind::Leaf && self.takes_back(entry).is_none();
        let boundary = self.live.iter().rposition(|&entry| self.kind(entry) == Kind::Boundary);
        let back = self.live.iter().rposition(restores);
        if let Some(at) = boundary.filter(|&at| back.is_none_or(|back| back < at)) {
            let begin = self.begin_of_compaction(self.live[at]);
            for &entry in self.live[..at].iter().take_while(|&&entry| entry < begin) {
                self.context[entry as usize] = false;
            }
        }
        // What a helper says is not sent.
        for (context, entry) in self.context.iter_mut().zip(&self.transcript.entries) {
            *context &= !entry.is_sidechain;
        }
        self.find_runs();
    }

    /// Codex 0.171: a prompt begins a turn, and so does a summary. What was taken back is not loaded, and what a compaction in
    /// it replaced is loaded again. A compaction without a history of its own leaves the prompts before it (measured:
    /// tests/agents/sent/codex.jsonl).
    fn take_back(&mut self) {
        let acts = |kind| matches!(kind, ContentIssueKind::TakesBack(_) | ContentIssueKind::LeavesPrompts);
        if !self.transcript.issues().iter().any(|issue| acts(issue.kind)) {
            return;
        }
        // The entries that are left, and those of them with which turns begin.
        let (mut left, mut turns) = (Vec::new(), Vec::new());
        for entry in core::mem::take(&mut self.live) {
            if let Some(count) = self.takes_back(entry).filter(|&count| count > 0) {
                let first = turns.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
                if let Some(&prompt) = turns.get(first) {
                    self.unsend_from(prompt, &mut left);
                }
                turns.truncate(first);
            } else if self.leaves_prompts(entry) {
                for &other in &left {
                    self.context[other as usize] &= self.is_prompt(other);
                }
                turns.push(entry);
            } else if self.is_prompt(entry) {
                turns.push(entry);
            }
            left.push(entry);
        }
        self.place.fill(NONE);
        self.set_live(left);
    }

    /// Takes a turn and what follows it out of the entries that are left, with what compacted it before its prompt.
    fn unsend_from(&mut self, prompt: u32, left: &mut Vec<u32>) {
        let begin = self.begin_of_turn(prompt);
        for entry in core::mem::take(left) {
            if entry >= prompt || (entry >= begin && self.kind(entry) == Kind::Boundary) {
                self.context[entry as usize] = false;
            } else {
                left.push(entry);
            }
        }
    }

    /// Where the turn of an entry begins: a compaction since then is of that turn, too.
    fn begin_of_turn(&self, entry: u32) -> u32 {
        let mut before = self.transcript.issues().iter().rev().filter(|issue| issue.entry < entry);
        before.find(|issue| issue.kind == ContentIssueKind::TurnBegins).map_or(0, |issue| issue.entry)
    }

    fn is_prompt(&self, entry: u32) -> bool {
        self.kind(entry) == Kind::Message(Role::User) && !self.entry(entry).injected
    }

    /// How many turns an entry takes back.
    fn takes_back(&self, entry: u32) -> Option<u64> {
        if self.kind(entry) != Kind::Leaf {
            return None;
        }
        self.transcript.issues_of(entry).iter().find_map(|issue| match issue.kind {
            ContentIssueKind::TakesBack(count) => Some(count),
            _ => None,
        })
    }

    /// Whether an entry is a compaction that leaves what the user said before it, and nothing else.
    pub(crate) fn leaves_prompts(&self, entry: u32) -> bool {
        let issues = self.transcript.issues_of(entry);
        self.kind(entry) == Kind::Note
            && issues.iter().any(|issue| issue.kind == ContentIssueKind::LeavesPrompts)
    }

    /// Where a compaction began. Copilot CLI 1.0.102 sends what was said since then (measured:
    /// tests/agents/sent/copilot-cli.jsonl).
    fn begin_of_compaction(&self, end: u32) -> u32 {
        let marks =
            |kind| matches!(kind, ContentIssueKind::CompactionBegins | ContentIssueKind::CompactionFails);
        let mut before = self.transcript.issues().iter().rev().filter(|issue| issue.entry < end);
        let last = before.find(|issue| marks(issue.kind));
        let begun =
            last.filter(|mark| mark.kind == ContentIssueKind::CompactionBegins).map(|mark| mark.entry);
        let is_own = |&begin: &u32| (begin..end).all(|entry| self.kind(entry) != Kind::Boundary);
        begun.filter(is_own).unwrap_or(end)
    }

    fn find_runs(&mut self) {
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
