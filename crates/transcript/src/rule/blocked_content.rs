//! M9: a turn that a content filter refused.

use super::{Cover, Help, Rule, about, severity_in_context};
use crate::entry::QuirkKind;
use crate::finding::Severity;
use crate::format::Format;
use crate::found::Found;
use crate::session::Session;
use alloc::string::ToString;
use spans::source::Fault;

pub(super) struct BlockedContent;

impl Rule for BlockedContent {
    fn code(&self) -> &'static str {
        "M9"
    }

    fn name(&self) -> &'static str {
        "blocked-content"
    }

    fn help(&self) -> Help {
        Help {
            what: "A request was refused by a content filter of the provider, and what it minds is still in the conversation.",
            why: "\"prompt injection patterns detected\", \"Output blocked by content filtering policy\": it will be refused again.",
            fix: "None: Tailor does not judge content. Go back to before the turn in the agent.",
            source: "hermes-agent #90177; OpenClaw #5481",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.content().failures { Cover::Reported } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        for quirk in session.transcript.quirks().iter().filter(|quirk| quirk.kind == QuirkKind::Blocked) {
            if session.is_live(quirk.entry) {
                let severity = severity_in_context(session, quirk.entry).min(Severity::Warning);
                let message = "a content filter refused the request".to_string();
                out.push(about(&BlockedContent, session, quirk.entry, severity, message));
            }
        }
        Ok(())
    }
}
