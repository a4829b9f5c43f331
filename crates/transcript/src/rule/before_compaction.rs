//! S9: entries that a compaction has replaced.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo};
use super::dead_weight;
use crate::format::{Format, Shape};
use crate::model::entry::{Kind, Role};
use crate::session::{Compacts, Session, traits};
use alloc::vec::Vec;
use spans::json;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S9",
        name: "before-compaction",
        help: Help {
            what: "The file still holds messages from before the last compaction; the agent sends a summary instead of them.",
            why: "The file only grows: 7 MB after ten compactions, read on every start. The agent does not load them into the context.",
            fix: "With --allow S9 they go into the vault, including user messages. What the compaction keeps stays, \
                  and so do settings, labels and the message from which pi takes the model.",
            source: "OpenClaw #39953, #76604, #115904",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    match (traits(format.shape).compacts, format.counted) {
        (Compacts::InPlace, _) => Cover::Never,
        // Bare messages know no compaction.
        _ if format.is_bare() => Cover::Never,
        (_, Some(_)) => Cover::Reported,
        (_, None) => Cover::Fixed,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(boundary) = session.last_boundary() else { return Ok(()) };
    let mut needed = named_before(session)?;
    needed.extend(names_the_model(session, boundary));
    let entries = (0..boundary).filter(|&entry| is_replaced(session, entry) && !needed.contains(&entry));
    dead_weight::report(&RULE, session, entries, "messages from before the last compaction", out)
}

/// Whether an entry before the last compaction is not sent any more. A call whose result is sent stays.
pub(super) fn is_replaced(session: &Session<'_>, entry: u32) -> bool {
    let found = session.entry(entry);
    let answered = |call: usize| {
        session.result_of(call as u32).is_some_and(|result| session.in_context(session.result(result).entry))
    };
    matches!(found.kind, Kind::Message(_) | Kind::Note | Kind::Boundary)
        && !found.is_sidechain
        && !session.in_context(entry)
        && !session.transcript.calls_of(entry).any(answered)
}

/// The last assistant message before a compaction. pi resumes with the model that it names, unless a later message
/// names another, even if the message is not in context. Later messages are not considered here, so that an append
/// changes nothing about earlier entries.
fn names_the_model(session: &Session<'_>, boundary: u32) -> Option<u32> {
    let spoken = |&entry: &u32| entry < boundary && session.kind(entry) == Kind::Message(Role::Assistant);
    let branch = session.format.shape == Shape::Tree;
    session.live.iter().rev().copied().find(spoken).filter(|_| branch)
}

/// The entries that compactions name as the ones before them (Claude Code): some versions stop if they are missing.
fn named_before(session: &Session<'_>) -> Result<Vec<u32>, Fault> {
    let boundaries = session.live.iter().filter(|&&entry| session.kind(entry) == Kind::Boundary);
    let mut named = Vec::new();
    for &entry in boundaries {
        let doc = json::parse(session.source, session.entry(entry).span)?;
        let before = doc.as_ref().and_then(|doc| doc.get("logicalParentUuid")).and_then(json::Value::text);
        let id = before.and_then(|id| session.transcript.ids.find(&id));
        named.extend(id.and_then(|id| session.by_id(id)));
    }
    Ok(named)
}
