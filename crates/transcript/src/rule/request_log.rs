//! S21: records in which Claude Code logs its own requests.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo};
use super::dead_weight;
use crate::format::Shape;
use crate::model::entry::Service;
use crate::session::Session;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S21",
        name: "request-log",
        help: Help {
            what: "Claude Code logged its requests in the session (`api-request` and others like it).",
            why: "These rows are never read again, and are part of every file that is copied or searched.",
            fix: "With --allow S21 they go. Claude Code 2.1.330 clears them itself when it compacts a large file.",
            source: "Claude Code 2.1.330, its table of rows that a compaction clears",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[Feature::RequestLog],
        repeats: Repeats::Counted,
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape == Shape::Graph { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let logged = session.transcript.unusual().filter(|(_, entry)| entry.service == Service::RequestLog);
    let entries = logged.map(|(index, _)| index);
    dead_weight::report(&RULE, session, entries, "a log of requests, which is never read again", out)
}
