//! M7: two user messages in a row, without an answer between them.

use super::base::{Cover, Feature, FindingSink, Group, Help, Rule, RuleInfo, about};
use super::empty_turn::is_empty_entry;
use crate::model::entry::{Entry, Kind, Role, StopReason};
use crate::model::finding::{Finding, Severity};
use crate::session::Session;
use alloc::string::ToString;
use spans::json;
use spans::source::{Fault, Span, read_span};

/// Texts longer than this are not compared.
const COMPARED_BYTES_MAX: u64 = 1 << 20;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M7",
        name: "same-role-again",
        help: Help {
            what: "Two user messages follow each other, and the model says nothing in between: a turn failed, or a \
                   message was sent again.",
            why: "\"roles must alternate\", \"incorrect role information\" with some models (Mistral, SGLang); \
                  Anthropic and OpenAI accept it. Claude Code joins such messages, so there only repeated ones are \
                  reported.",
            fix: "None: user text is never deleted, even if it was sent twice, and joining messages is up to the \
                  agent.",
            source: "OpenClaw #83404, #77336, #17743",
        },
        groups: &[Group::Content],
        entry_decides: true,
        unanswered: true,
        wakes: &[Feature::Again],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.of_messages() { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut before = None;
    for entry in session.sent() {
        // Whether an answer is empty matters only after a user message.
        let empty = before.is_some() && is_empty_entry(session, entry);
        match flow(session.entry(entry), empty, calls(session, entry)) {
            RoleFlow::Asks => {
                if let Some(before) = before {
                    let again = is_again(session, before, entry)?;
                    if again || !session.shape.joins_messages {
                        out.push(finding(session, entry, again));
                    }
                }
                before = Some(entry);
            }
            RoleFlow::Answers => before = None,
            // A summary.
            RoleFlow::Neither if session.leaves_prompts(entry) => before = None,
            RoleFlow::Neither => {}
        }
    }
    Ok(())
}

fn finding(session: &Session<'_>, entry: u32, again: bool) -> Finding {
    let message =
        if again { "the user message is repeated" } else { "another user message before any answer" };
    about(&RULE, session, entry, Severity::Note, message.to_string())
}

fn calls(session: &Session<'_>, entry: u32) -> bool {
    !session.transcript.calls_of(entry).is_empty()
}

/// What an entry does to the turns of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleFlow {
    /// A user message.
    Asks,
    /// An assistant message.
    Answers,
    /// Neither, or a failed turn, which is not sent.
    Neither,
}

/// What an entry does, given whether it is empty and whether it holds calls.
pub(crate) fn flow(entry: &Entry, empty: bool, calls: bool) -> RoleFlow {
    match entry.kind {
        Kind::Message(Role::User) if !entry.injected => RoleFlow::Asks,
        Kind::Message(Role::Assistant)
            if entry.stop != StopReason::Aborted && !empty && (calls || entry.text_chars > 0) =>
        {
            RoleFlow::Answers
        }
        _ => RoleFlow::Neither,
    }
}

/// Whether two messages have the same text.
fn is_again(session: &Session<'_>, one: u32, two: u32) -> Result<bool, Fault> {
    if session.entry(one).text_chars != session.entry(two).text_chars {
        return Ok(false);
    }
    let content = |entry: u32| -> Result<Option<Span>, Fault> {
        let doc = json::parse(session.source, session.entry(entry).span)?;
        let content = doc.as_ref().and_then(|doc| {
            let inside = doc.get("message").or(doc.get("payload"));
            inside.map_or(doc.get("content"), |inside| inside.get("content"))
        });
        Ok(content.map(json::Value::span))
    };
    let (Some(one), Some(two)) = (content(one)?, content(two)?) else { return Ok(false) };
    Ok(one.len() == two.len()
        && one.len() <= COMPARED_BYTES_MAX
        && read_span(session.source, one)? == read_span(session.source, two)?)
}
