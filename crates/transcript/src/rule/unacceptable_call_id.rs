//! P11: a call id that the next provider may refuse.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about_call};
use crate::format::Format;
use crate::model::finding::Severity;
use crate::session::Session;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P11",
        name: "unacceptable-call-id",
        help: Help {
            what: "A call has no id, or one with characters that Anthropic does not accept.",
            why: "\"tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'\". Ids come from other providers, after a switch in \
                  the middle of a session.",
            fix: "Report only: ids are never altered, and the provider that wrote them accepts them.",
            source: "nanobot #1634; vercel/ai #5171; OpenClaw #56021, #37508",
        },
        groups: &[Group::Pairing],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    let has_calls = format.results.have_calls();
    if has_calls && format.calls_have_ids { Cover::Reported } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for (index, call) in session.transcript.calls.iter().enumerate() {
        let id = session.transcript.id_text(call.id);
        let strange = session.format.has_plain_ids && !is_taken(id);
        let lacking = id.is_empty() && call.id_at().len() <= 2 && session.format.calls_have_ids;
        if lacking || strange {
            let sent = session.in_context(call.entry);
            let severity = match (sent, lacking) {
                (true, true) => Severity::Error,
                (true, false) => Severity::Warning,
                (false, _) => Severity::Note,
            };
            let message = if id.is_empty() {
                "call has no id; no result can match it"
            } else {
                "Anthropic does not take the call's id"
            };
            out.push(about_call(&RULE, session, index, severity, message));
        }
    }
    Ok(())
}

/// Whether Anthropic accepts this call id.
pub(crate) fn is_taken(id: &[u8]) -> bool {
    id.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
