//! S8: conversations of subagents in the main file.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo};
use super::dead_weight;
use crate::format::Shape;
use crate::model::entry::Kind;
use crate::session::Session;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S8",
        name: "sidechain-entry",
        help: Help {
            what: "The file of the main conversation holds subagents' messages.",
            why: "A session of 14 messages was 102.7 MB long, with 35,500 lines of 404 subagents. The agent does not load them.",
            fix: "With --allow S8 they go; calls and results of the main conversation stay. Files of subagents are left alone.",
            source: "claude-code #23373",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[Feature::Sidechain],
        repeats: Repeats::Counted,
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape == Shape::Graph { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let main = session.live.iter().any(|&entry| !session.entry(entry).is_sidechain);
    let all = (0..).zip(&session.transcript.entries);
    let dead = |&(index, entry): &(u32, &crate::model::entry::Entry)| {
        main && entry.is_sidechain
            && matches!(entry.kind, Kind::Message(_) | Kind::Note)
            && !session.is_live(index)
    };
    let entries = all.filter(dead).map(|(index, _)| index);
    dead_weight::report(&RULE, session, entries, "messages of subagents", out)
}
