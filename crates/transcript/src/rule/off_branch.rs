//! S18: history beside the live branch.

use super::before_compaction::is_replaced;
use super::{Cover, Help, Rule, dead_weight};
use crate::entry::Kind;
use crate::finding::Finding;
use crate::format::Format;
use crate::session::Session;
use crate::source::Fault;
use alloc::vec::Vec;

pub(super) struct OffBranch;

impl Rule for OffBranch {
    fn code(&self) -> &'static str {
        "S18"
    }

    fn name(&self) -> &'static str {
        "off-branch"
    }

    fn help(&self) -> Help {
        Help {
            what: "Messages stand on branches that the conversation has left: it was rewound, or a turn was tried again.",
            why: "The agent does not send them, and reads them on every start.",
            fix: "With --allow S18 they go into the vault, what a person said among them. Then nobody can go back to that branch.",
            source: "claude-code #48270; pi session tree",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.shape().is_tree() { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let boundary =
            session.live.iter().copied().filter(|&entry| session.entry(entry).kind == Kind::Boundary).max();
        let older =
            |entry: u32| boundary.is_some_and(|boundary| entry < boundary) && is_replaced(session, entry);
        let all = (0..).zip(&session.transcript.entries);
        let dead = |&(index, entry): &(u32, &crate::entry::Entry)| {
            let spoken = matches!(entry.kind, Kind::Message(_) | Kind::Note | Kind::Boundary);
            spoken && entry.id.is_some() && !entry.aside && !session.is_live(index) && !older(index)
        };
        let entries = all.filter(dead).map(|(index, _)| index);
        dead_weight::tell(&OffBranch, session, entries, "messages on branches that were left", out);
        Ok(())
    }
}
