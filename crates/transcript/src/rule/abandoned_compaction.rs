//! T3: a compaction from which the conversation never continued, beside the one from which it did.

use super::base::{Cover, FindingSink, Group, Heals, Help, Rule, RuleInfo, about};
use super::dead_weight::is_in_doubt;
use super::removal::{only_if_asked, take_out};
use crate::format::{Format, Shape};
use crate::model::entry::{Kind, Link};
use crate::model::finding::{Finding, Fix, Guard, Held, Severity};
use crate::model::ids::Id;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use hashbrown::HashSet;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T3",
        name: "abandoned-compaction",
        help: Help {
            what: "A compaction was tried twice at one place, and nothing follows this attempt: the conversation went on \
                   from the other.",
            why: "Programs that take the first branch, or the longest summary, go on from the wrong one: \"80 % of the \
                  session lost\".",
            fix: "With --allow T3, or --only dead-weight, it goes into the vault. Messages on abandoned branches are \
                  S18: an accidental fork looks like one that the user wanted.",
            source: "claude-code #35024, #37739; OpenClaw #79635",
        },
        groups: &[Group::DeadWeight, Group::Tree],
        heals: Heals::Copies,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    // In Claude Code, boundaries have no parent.
    if format.shape == Shape::Tree { Cover::Fixed } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let abandoned = abandoned(session);
    let in_doubt = !abandoned.is_empty() && is_in_doubt(session)?;
    for entry in abandoned {
        let message = "a compaction attempt that was abandoned".to_string();
        let goes = only_if_asked(take_out(session, entry), Guard::History);
        let fix = if in_doubt { Fix::held(Held::BrokenLinks) } else { goes };
        out.push(Finding { fix, ..about(&RULE, session, entry, Severity::Note, message) });
    }
    Ok(())
}

/// The abandoned compactions, in file order.
pub(super) fn abandoned(session: &Session<'_>) -> Vec<u32> {
    let parent = |entry: u32| match session.entry(entry).parent {
        Link::To(id) => Some(id),
        Link::Root | Link::Missing => None,
    };
    let boundary = |entry: &u32| session.kind(*entry) == Kind::Boundary;
    let all = || 0..session.transcript.entries.len() as u32;
    let live: HashSet<Id> = session.live.iter().copied().filter(boundary).filter_map(parent).collect();
    if live.is_empty() || session.format.shape != Shape::Tree {
        return Vec::new();
    }
    let beside = |&entry: &u32| {
        boundary(&entry)
            && !session.is_live(entry)
            && !session.is_newest(entry)
            && parent(entry).is_some_and(|id| live.contains(&id))
    };
    let mut found: Vec<u32> = all().filter(beside).collect();
    if !found.is_empty() {
        // An abandoned compaction has no children. The last entry stays, because other readers begin there.
        let parents: HashSet<Id> = all().filter_map(parent).collect();
        let last = session.transcript.entries.iter().rposition(|entry| entry.id.is_some());
        let alone = |entry: u32| session.entry(entry).id.is_some_and(|id| !parents.contains(&id));
        found.retain(|&entry| alone(entry) && Some(entry as usize) != last);
    }
    found
}
