//! M5: a reasoning item of OpenAI that nothing follows.

use super::base::{Cover, Feature, FindingSink, Group, Help, Rule, RuleInfo, about};
use super::invalid_thinking::ends_its_turn;
use super::removal::{only_if_asked, take_out_blocks};
use crate::format::Shape;
use crate::model::entry::{ContentIssueKind, Kind, Role};
use crate::model::finding::{Finding, Guard, Severity};
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M5",
        name: "reasoning-alone",
        help: Help {
            what: "A turn ends with a reasoning item of OpenAI's Responses API, and the message or call that belongs to it \
                   is not there.",
            why: "\"Item 'rs_…' of type 'reasoning' was provided without its required following item.\" Codex leaves \
                  such an item where a user interrupts it. The API accepts it if the user's message follows, \
                  so that is a warning. If a result follows, it is an error.",
            fix: "Reasoning and what follows it are one: with --allow M5 reasoning that nothing follows is removed whole. \
                  Its content is never touched.",
            source: "pi #838, #3369, #6950; openai-agents-python #3207",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[Feature::LoneThinking],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.reasoning { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let issues =
        session.transcript.issues().iter().filter(|issue| issue.kind == ContentIssueKind::ReasoningLast);
    for issue in issues.filter(|issue| session.is_live(issue.entry)) {
        let behind = after_in_log(session, issue.entry);
        let is_cut_off = behind.is_some_and(|kind| kind != Kind::Message(Role::Assistant));
        if !is_cut_off && !ends_its_turn(session, issue.entry) {
            continue;
        }
        let (severity, message) = match (session.in_context(issue.entry), behind) {
            (false, _) => (Severity::Note, "reasoning that nothing follows"),
            (true, Some(Kind::Message(Role::Tool))) => (
                Severity::Error,
                "reasoning followed by a tool result instead of the item that belongs to it",
            ),
            (true, _) => (Severity::Warning, "reasoning that nothing follows"),
        };
        let fix = take_out_blocks(session, issue.entry, &[issue.block])?;
        let fix = only_if_asked(fix, Guard::Thinking);
        out.push(Finding { fix, ..about(&RULE, session, issue.entry, severity, message.to_string()) });
    }
    Ok(())
}

/// In a log, the kind of the message right after an entry. If the message is somebody else's, the turn may go on, but
/// nothing that belongs to the entry can follow.
fn after_in_log(session: &Session<'_>, entry: u32) -> Option<Kind> {
    let behind = session.place(entry).map_or(&[][..], |place| &session.live[place + 1..]);
    let mut kinds = behind.iter().map(|&other| session.kind(other));
    kinds.find(|kind| matches!(kind, Kind::Message(_))).filter(|_| session.format.shape == Shape::Log)
}
