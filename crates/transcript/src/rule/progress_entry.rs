//! S6: progress of tools that have long ended.

use super::{Cover, Help, Rule, dead_weight};
use crate::entry::Service;
use crate::format::{Format, Shape};
use crate::found::Found;
use crate::session::Session;
use spans::source::Fault;

pub(super) struct ProgressEntry;

impl Rule for ProgressEntry {
    fn code(&self) -> &'static str {
        "S6"
    }

    fn name(&self) -> &'static str {
        "progress-entry"
    }

    fn help(&self) -> Help {
        Help {
            what: "Progress that a tool or subagent reported while it ran is kept in the session (Claude Code).",
            why: "Each line repeats what the subagent said so far: 5.27 GB of a session were 99.6 % progress, the conversation 0.67 MB.",
            fix: "With --allow S6 the lines go, and what hung on them is linked to what was before; the Agent SDK does the same when it forks a session. What belongs to a turn that waits for a tool stays.",
            source: "claude-code #18905, #19040, #22365",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.shape() == Shape::Graph { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let entries = session
            .transcript
            .unusual()
            .filter(|(_, entry)| entry.service == Service::Progress)
            .map(|(index, _)| index);
        dead_weight::tell(
            &ProgressEntry,
            session,
            entries,
            "progress of tools, of no use once they have ended",
            out,
        );
        Ok(())
    }
}
