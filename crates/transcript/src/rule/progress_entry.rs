//! S6: progress records of tools that ended long ago.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo};
use super::dead_weight;
use crate::format::Shape;
use crate::model::entry::Service;
use crate::session::Session;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S6",
        name: "progress-entry",
        help: Help {
            what: "Progress that a tool or subagent reported while it ran is kept in the session (Claude Code).",
            why: "Each line repeats what the subagent said so far: 5.27 GB of a session were 99.6 % progress, the conversation 0.67 MB.",
            fix: "With --allow S6 the lines go, and what hung on them is linked to what was before; the Agent SDK does the same when it forks a session. What belongs to a turn that waits for a tool stays.",
            source: "claude-code #18905, #19040, #22365",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[Feature::Progress],
        repeats: Repeats::Counted,
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape == Shape::Graph { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let entries = session
        .transcript
        .unusual()
        .filter(|(_, entry)| entry.service == Service::Progress)
        .map(|(index, _)| index);
    dead_weight::report(&RULE, session, entries, "progress of finished tools", out)
}
