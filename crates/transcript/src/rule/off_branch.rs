//! S18: history on abandoned branches.

use super::abandoned_compaction::abandoned;
use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo, about};
use super::before_compaction::is_replaced;
use super::dead_weight;
use crate::format::Shape;
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Severity};
use crate::model::ids::Id;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use hashbrown::HashSet;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S18",
        name: "off-branch",
        help: Help {
            what: "There are messages on abandoned branches: the conversation was rewound, or a turn was retried.",
            why: "The agent reads them on every start, but never sends them.",
            fix: "With --allow S18 they go into the vault, including user messages. After that, you cannot go back to \
                  that branch.",
            source: "claude-code #48270; pi session tree",
        },
        groups: &[Group::DeadWeight],
        entry_decides: true,
        wakes: &[Feature::Beside],
        repeats: Repeats::Counted,
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape.has_parents() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let boundary = session.last_boundary();
    let older = |entry: u32| boundary.is_some_and(|boundary| entry < boundary) && is_replaced(session, entry);
    let all = (0..).zip(&session.transcript.entries);
    let left = |&(index, entry): &(u32, &crate::model::entry::Entry)| {
        let spoken = matches!(entry.kind, Kind::Message(_) | Kind::Note | Kind::Boundary);
        let off = entry.id.is_some() && !entry.is_sidechain && !session.is_live(index) && !older(index);
        spoken && off
    };
    let left: Vec<u32> = all.filter(left).map(|(index, _)| index).collect();
    if left.is_empty() {
        return Ok(());
    }
    // Abandoned compactions are T3.
    let (shown, abandoned) = (ShownElsewhere::from_session(session), abandoned(session));
    let is_abandoned = |entry: &u32| abandoned.binary_search(entry).is_ok();
    let entries = left.into_iter().filter(|entry| !is_abandoned(entry) && !shown.holds(session, *entry));
    let entries: Vec<u32> = entries.collect();
    // The first request is never dead weight: if it is off the branch, something between is damaged.
    let first = first_request(session).filter(|first| entries.contains(first));
    let going: Vec<u32> = entries.into_iter().filter(|entry| Some(*entry) != first).collect();
    let message = match first {
        Some(first) if going.is_empty() => {
            let message = "the first request of the session is on an abandoned branch, and stays".to_string();
            let told = about(&RULE, session, first, Severity::Note, message);
            // Nothing is removed as long as the first request is off the branch.
            out.push(Finding { saves_bytes: Some(0), ..told });
            return Ok(());
        }
        Some(_) => {
            "messages on abandoned branches; the first request of the session is among them, and stays"
        }
        None => "messages on abandoned branches",
    };
    dead_weight::report(&RULE, session, going.into_iter(), message, out)
}

/// The first user message.
fn first_request(session: &Session<'_>) -> Option<u32> {
    let said = |entry: &crate::model::entry::Entry| {
        entry.kind == Kind::Message(Role::User) && !entry.injected && !entry.is_sidechain
    };
    session.transcript.entries.iter().position(said).map(|first| first as u32)
}

/// Entries that other readers of the format show although they are not live here.
struct ShownElsewhere {
    /// The ancestors of the last entry: pi ignores the records with which OpenClaw moves the leaf.
    path: HashSet<u32>,
    /// Turns with a live entry, in a graph. The Agent SDK shows all their messages and all results below them.
    turns: HashSet<u64>,
    /// The calls of these turns. The SDK finds their results anywhere.
    calls: HashSet<Id>,
}

impl ShownElsewhere {
    fn from_session(session: &Session<'_>) -> Self {
        let mut shown = Self { path: HashSet::new(), turns: HashSet::new(), calls: HashSet::new() };
        if session.format.shape == Shape::Graph {
            shown.turns.extend(session.live.iter().map(|&entry| session.turn(entry)));
            let calls = session.live.iter().flat_map(|&entry| session.transcript.calls_of(entry));
            shown.calls.extend(calls.filter_map(|call| session.call(call as u32).id));
        } else {
            let last = session.transcript.entries.iter().rposition(|entry| entry.id.is_some());
            let mut next = last.map(|entry| entry as u32);
            while let Some(at) = next.filter(|&at| shown.path.insert(at)) {
                next = session.parent(at);
            }
        }
        shown
    }

    fn holds(&self, session: &Session<'_>, entry: u32) -> bool {
        let mut results = session.transcript.results_of(entry);
        let on_live = session.parent(entry).is_some_and(|parent| self.turns.contains(&session.turn(parent)));
        self.path.contains(&entry)
            || self.turns.contains(&session.turn(entry))
            || (on_live && !results.is_empty())
            || results.any(|result| session.result(result).call.is_some_and(|id| self.calls.contains(&id)))
    }
}
