//! S7: file snapshots that a later one replaced.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo};
use super::dead_weight;
use crate::format::Shape;
use crate::model::entry::Service;
use crate::session::Session;
use hashbrown::HashMap;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S7",
        name: "superseded-snapshot",
        help: Help {
            what: "The state of files at a message is written several times; only the last one counts (Claude Code).",
            why: "981,140 of 981,547 lines of a session were snapshots, 31 a second.",
            fix: "With --allow S7 the last snapshot of each message stays, so that /rewind works, and the earlier ones go.",
            source: "claude-code #9736, #50998, #36583",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[Feature::Snapshot],
        repeats: Repeats::Counted,
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape == Shape::Graph { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut newest = HashMap::new();
    let all = || session.transcript.unusual().filter(|(_, entry)| entry.service == Service::Snapshot);
    for (index, entry) in all() {
        entry.group.and_then(|message| newest.insert(message, index));
    }
    let old = |&(index, entry): &(u32, &crate::model::entry::Entry)| {
        entry.group.is_some_and(|message| newest.get(&message) != Some(&index))
    };
    let entries = all().filter(old).map(|(index, _)| index);
    dead_weight::report(&RULE, session, entries, "snapshots of files that later ones replace", out)
}
