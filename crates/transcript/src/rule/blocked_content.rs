//! M9: a turn that a content filter refused.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about, severity_in_context};
use crate::model::entry::ContentIssueKind;
use crate::model::finding::Severity;
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M9",
        name: "blocked-content",
        help: Help {
            what: "The provider's content filter refused a request, and the refused content is still in the conversation.",
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

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for issue in session.transcript.issues().iter().filter(|issue| issue.kind == ContentIssueKind::Blocked) {
        if session.is_live(issue.entry) {
            let severity = severity_in_context(session, issue.entry).min(Severity::Warning);
            let message = "a content filter refused the request".to_string();
            out.push(about(&RULE, session, issue.entry, severity, message));
        }
    }
    Ok(())
}
