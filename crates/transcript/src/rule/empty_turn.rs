//! M1: a message without content.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about, severity_in_context};
use super::counted::records_stay;
use super::removal::take_out;
use crate::format::Format;
use crate::model::entry::{ContentIssue, ContentIssueKind, Kind, Role, StopReason};
use crate::model::finding::{Finding, Fix, Held, Severity};
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M1",
        name: "empty-turn",
        help: Help {
            what: "A message holds nothing that could be sent: a turn that failed or was interrupted before its first word, or a note \
                   for the model whose content is gone.",
            why: "\"all messages must have non-empty content\", \"role 'assistant' must not be empty\", \"Improperly formed \
                  request\"; each failure appends another one. pi and Claude Code leave them out when they send.",
            fix: "An empty assistant turn, or an empty note, is removed, and its children are linked to its parent. It \
                  is never filled with something that the model did not say. Empty user messages are only reported, \
                  and so are compactions without a summary.",
            source: "OpenClaw #94278, #11986, #16116",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    match format.content.empty {
        None => Cover::Never,
        // The owner of a data set decides what it holds.
        Some(_) if format.results.of_conversations() || records_stay(format) => Cover::Reported,
        Some(_) => Cover::Fixed,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let issues = session.transcript.issues().iter().filter(|issue| issue.kind == ContentIssueKind::Empty);
    for entry in issues.map(|issue| issue.entry).filter(|&entry| session.is_live(entry)) {
        let found = session.entry(entry);
        let (message, fix) = match found.kind {
            Kind::Message(Role::Assistant) if follows_reasoning(session, entry) => {
                ("the assistant message is empty", Fix::held(Held::Tangled))
            }
            Kind::Message(Role::Assistant) if is_empty_turn(session, entry) => {
                ("the assistant message is empty", take_out(session, entry))
            }
            _ if session.is_whole_conversation(entry) => ("an empty message", Fix::NONE),
            Kind::Message(Role::User) => ("the message is empty", Fix::NONE),
            Kind::Note => ("a note for the model has no content", take_out(session, entry)),
            Kind::Boundary => ("the summary of a compaction is missing", Fix::NONE),
            _ => continue,
        };
        // Agents do not send turns that failed.
        let severity = match found.kind {
            _ if found.stop == StopReason::Aborted => Severity::Note,
            // pi fails when it sends such an entry.
            Kind::Note if !session.is_whole_conversation(entry) => severity_in_context(session, entry),
            _ => severity(session, entry, session.format.content.empty),
        };
        out.push(Finding { fix, ..about(&RULE, session, entry, severity, message.to_string()) });
    }
    Ok(())
}

/// Whether reasoning comes right before an entry. Without the entry, the reasoning would belong to nothing.
fn follows_reasoning(session: &Session<'_>, entry: u32) -> bool {
    let before = session.place(entry).and_then(|place| session.live.get(place.checked_sub(1)?));
    let ends = |issue: &ContentIssue| issue.kind == ContentIssueKind::ReasoningLast;
    before.is_some_and(|&before| session.transcript.issues_of(before).iter().any(ends))
}

/// Whether all entries of the message are empty.
pub(super) fn is_empty_turn(session: &Session<'_>, entry: u32) -> bool {
    let turn = session.turn(entry);
    session.entry(entry).group.is_none()
        || session
            .live
            .iter()
            .filter(|&&other| session.turn(other) == turn)
            .all(|&other| is_empty_entry(session, other))
}

/// Whether an entry is empty.
pub(super) fn is_empty_entry(session: &Session<'_>, entry: u32) -> bool {
    let all = session.entry(entry).span;
    let empty = |issue: &ContentIssue| issue.kind == ContentIssueKind::Empty && issue.block == all;
    session.transcript.issues_of(entry).iter().any(empty)
}

/// The severity of an empty entry; `sent` applies if it is in context.
pub(super) fn severity(session: &Session<'_>, entry: u32, sent: Option<Severity>) -> Severity {
    sent.filter(|_| session.in_context(entry)).unwrap_or(Severity::Note)
}
