//! M9: a turn that a content filter refused.

use super::base::{Cover, Found, Group, Help, Rule, RuleInfo, about, severity_in_context};
use crate::model::entry::QuirkKind;
use crate::model::finding::Severity;
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M9",
        name: "blocked-content",
        help: Help {
            what: "A request was refused by a content filter of the provider, and what it minds is still in the conversation.",
            why: "\"prompt injection patterns detected\", \"Output blocked by content filtering policy\": it will be refused again.",
            fix: "None: Tailor does not judge content. Go back to before the turn in the agent.",
            source: "hermes-agent #90177; OpenClaw #5481",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.failures { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    for quirk in session.transcript.quirks().iter().filter(|quirk| quirk.kind == QuirkKind::Blocked) {
        if session.is_live(quirk.entry) {
            let severity = severity_in_context(session, quirk.entry).min(Severity::Warning);
            let message = "a content filter refused the request".to_string();
            out.push(about(&RULE, session, quirk.entry, severity, message));
        }
    }
    Ok(())
}
