//! M13: a reasoning model's calls, some of them without reasoning before them.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use crate::format::Format;
use crate::model::finding::{Finding, Fix, Guard, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M13",
        name: "missing-reasoning",
        help: Help {
            what: "Some messages with tool calls have a `reasoning_content`, and others in the same session do not.",
            why: "\"The `reasoning_content` in the thinking mode must be passed back to the API\" (DeepSeek), \"thinking is \
                  enabled but reasoning_content is missing in assistant tool call message at index 2\" (Kimi), on every \
                  request. A model that is not in thinking mode does not mind.",
            fix: "With --allow M13 such a message gets an empty `reasoning_content`, which these APIs accept.",
            source: "opencode #16318, #25356; continue #11600, #11711; mastra #12592",
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
    if format.content.reasons_beside { Cover::Fixed } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    if !session.transcript.reasons {
        return Ok(());
    }
    for &entry in session.transcript.unreasoned.iter().filter(|&&entry| session.in_context(entry)) {
        let at = session.entry(entry).span.start + 1;
        let with = b"\"reasoning_content\":\"\",".to_vec();
        let fix = Fix::guarded(Guard::Blamed, vec![Op::Replace { at: Span::new(at, at), with }]);
        let message = "call without reasoning, although other calls of this session have it".to_string();
        out.push(Finding { fix, ..about(&RULE, session, entry, Severity::Warning, message) });
    }
    Ok(())
}
