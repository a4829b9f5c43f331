//! S8: conversations of subagents in the main file.

use super::{Cover, Help, Rule, dead_weight};
use crate::entry::Kind;
use crate::format::{Format, Shape};
use crate::found::Found;
use crate::session::Session;
use spans::source::Fault;

pub(super) struct SidechainEntry;

impl Rule for SidechainEntry {
    fn code(&self) -> &'static str {
        "S8"
    }

    fn name(&self) -> &'static str {
        "sidechain-entry"
    }

    fn help(&self) -> Help {
        Help {
            what: "What subagents said to themselves stands in the file of the main conversation.",
            why: "A session of 14 messages was 102.7 MB long, with 35,500 lines of 404 subagents. The agent does not load them.",
            fix: "With --allow S8 they go; calls and results of the main conversation stay. Files of subagents are left alone.",
            source: "claude-code #23373",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.shape() == Shape::Graph { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let main = session.live.iter().any(|&entry| !session.entry(entry).aside);
        let all = (0..).zip(&session.transcript.entries);
        let dead = |&(index, entry): &(u32, &crate::entry::Entry)| {
            main && entry.aside
                && matches!(entry.kind, Kind::Message(_) | Kind::Note)
                && !session.is_live(index)
        };
        let entries = all.filter(dead).map(|(index, _)| index);
        dead_weight::tell(&SidechainEntry, session, entries, "what subagents said to themselves", out);
        Ok(())
    }
}
