//! S3: a message that is too long for a summariser.

use super::base::{Cover, Feature, FindingSink, Help, Rule, RuleInfo, about};
use crate::model::entry::Kind;
use crate::model::finding::{Finding, Severity};
use crate::model::policy::Policy;
use crate::session::Session;
use alloc::format;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S3",
        name: "oversized-for-summary",
        help: Help {
            what: "One message in context is too long for the summariser: more than 100,000 characters, or more than \
                   half the context window with a fifth to spare.",
            why: "Compaction sends the message to a model and overflows there: \"Turn prefix summarization failed: \
                  prompt is too long\", again and again. Estimates of tokens are far too low for dense JSON, so there \
                  is a limit of characters as well.",
            fix: "Report only. If the message is a tool result, S1 shortens it; user text is never touched.",
            source: "OpenClaw #10915, with the early return of the original removed",
        },
        entry_decides: true,
        wakes: &[Feature::LongText],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.of_messages() { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let (chars_max, window) = (session.policy.summary_chars_max, session.policy.window_tokens());
    for entry in session.sent() {
        let found = session.entry(entry);
        let chars = found.text_chars;
        let tokens = chars.div_ceil(4);
        let (too_long, too_dense) = too_much(session.policy, chars);
        if matches!(found.kind, Kind::Boundary) || !(too_long || too_dense) {
            continue;
        }
        let message = match (too_long, too_dense) {
            (true, true) => format!("message of {chars} characters, about {tokens} tokens"),
            (true, false) => format!("message of {chars} characters (limit {chars_max})"),
            _ => {
                format!("message of about {tokens} tokens (plus 20%, more than half of a window of {window})")
            }
        };
        out.push(Finding { chars: Some(chars), ..about(&RULE, session, entry, Severity::Warning, message) });
    }
    Ok(())
}

/// Whether a text of this length exceeds the limit, and whether it takes up too much of the window.
pub(crate) fn too_much(policy: &Policy, chars: u64) -> (bool, bool) {
    let (chars_max, window) = (policy.summary_chars_max, policy.window_tokens());
    let tokens = chars.div_ceil(4);
    (chars_max > 0 && chars > chars_max, window > 0 && tokens.saturating_mul(12) > window.saturating_mul(5))
}
