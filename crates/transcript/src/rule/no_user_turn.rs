//! M8: a context without a user message.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo, about};
use crate::format::{Format, Shape};
use crate::model::entry::{ContentIssueKind, Entry, Kind, Role};
use crate::model::finding::Severity;
use crate::session::{Session, Traits};
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M8",
        name: "no-user-turn",
        help: Help {
            what: "What the agent would send has no user message: a compaction kept only assistant and tool turns. \
                   (pi, Claude Code and Qwen Code send its summary as a user message.) Or, in a request to Gemini, it \
                   begins with calls.",
            why: "\"No user query found in messages\" (LM Studio, llama.cpp); \"Please ensure that function call turn comes \
                  immediately after a user turn or after a function response turn\" (Gemini). A session that ends with the model's words \
                  (\"does not support assistant message prefill\") is whole, and not reported.",
            fix: "None: Tailor never invents a user message.",
            source: "hermes-agent #58331; claude-code #52433; gemini-cli #26486, #11814",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[Feature::NoUser],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    let told = format.results.of_messages() || format.content.begins_with_user.is_some();
    if told { Cover::Reported } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let spoken = |&entry: &u32| session.kind(entry) == Kind::Message(Role::Assistant);
    let first = session.sent().find(spoken);
    let severity = session.format.content.begins_with_user;
    if let Some((severity, entry)) = severity.zip(call_first(session)) {
        let message = "tool calls come before the first user message".to_string();
        out.push(about(&RULE, session, entry, severity, message));
    } else if let Some(entry) = first.filter(|_| lacks_a_user(session)) {
        let message = "no user message is in context".to_string();
        out.push(about(&RULE, session, entry, Severity::Note, message));
    }
    for issue in session.transcript.issues().iter().filter(|issue| issue.kind == ContentIssueKind::CallFirst)
    {
        let message = "the conversation begins with tool calls".to_string();
        let severity = severity.unwrap_or(Severity::Note);
        out.push(about(&RULE, session, issue.entry, severity, message));
    }
    Ok(())
}

/// The first entry with calls, if no user message or summary comes before it.
fn call_first(session: &Session<'_>) -> Option<u32> {
    let calls = |entry: u32| !session.transcript.calls_of(entry).is_empty();
    for entry in session.sent() {
        match session.kind(entry) {
            // A replaced list of messages is not a message itself.
            Kind::Boundary if session.format.shape == Shape::Upserts => {}
            Kind::Message(Role::User) | Kind::Note | Kind::Boundary => return None,
            Kind::Message(Role::Assistant) if calls(entry) => return Some(entry),
            _ => {}
        }
    }
    None
}

/// Whether no user message is in context.
pub(crate) fn lacks_a_user(session: &Session<'_>) -> bool {
    !session.sent().any(|entry| is_from_user(session.entry(entry), session.shape))
}

/// Whether an entry is sent with the role of the user.
pub(crate) fn is_from_user(entry: &Entry, shape: &Traits) -> bool {
    match entry.kind {
        // pi and Qwen Code send a compaction's summary as the user,
        Kind::Message(Role::User) => true,
        Kind::Boundary => shape.summary_first,
        // and Claude Code stores it as a note of its own; its attachments have no text.
        Kind::Note => shape.notes_are_summaries && entry.text_chars > 0,
        _ => false,
    }
}
