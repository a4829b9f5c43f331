//! S19: compactions that a later one has replaced.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo};
use super::before_compaction::is_replaced;
use super::dead_weight;
use crate::format::{Format, Shape};
use crate::model::entry::Kind;
use crate::session::Session;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S19",
        name: "superseded-compaction",
        help: Help {
            what: "The conversation was compacted again, and the earlier compactions are still in the file: Codex writes the \
                   whole history that it keeps into each, pi the summary and its details.",
            why: "Only the last one counts. Sessions of 2 GB have consisted of hundreds of them.",
            fix: "With --allow S19 the earlier compactions go into the vault, and the messages stay. S9 takes both.",
            source: "codex #24089, #24191, #30932; oh-my-pi #3789",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

/// Records that hold what a compaction kept, and may be removed. In Claude Code a message holds it, and Gemini CLI also
/// rewrites the list for other reasons.
fn cover(format: &Format) -> Cover {
    let holds = matches!(format.shape, Shape::Tree | Shape::Log);
    if holds && format.counted.is_none() && !format.is_bare() { Cover::Fixed } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    // Programs skip a line with more than one object, and with it the compaction.
    let Some(last) = session.last_boundary().filter(|&last| is_alone(session, last)) else { return Ok(()) };
    // A compaction on an abandoned branch belongs to that branch.
    let superseded = |&entry: &u32| {
        session.kind(entry) == Kind::Boundary && session.is_live(entry) && is_replaced(session, entry)
    };
    dead_weight::report(&RULE, session, (0..last).filter(superseded), "compactions before the last one", out)
}

/// Whether an entry is alone on its line.
fn is_alone(session: &Session<'_>, entry: u32) -> bool {
    let line = |entry: u32| session.transcript.entries.get(entry as usize).map(|found| found.line);
    let mut beside = entry.checked_sub(1).into_iter().chain([entry + 1]);
    !beside.any(|other| line(other) == line(entry))
}
