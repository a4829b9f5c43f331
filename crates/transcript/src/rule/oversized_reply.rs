//! S16: an assistant message that is too long.

use super::base::{Cover, FindingSink, Help, Rule, RuleInfo, about};
use super::trim::{Measured, Notes};
use crate::format::EntryPart;
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Severity};
use crate::model::policy::{CutShape, Kept};
use crate::session::Session;
use alloc::format;
use alloc::vec::Vec;
use spans::cut::CutLines;
use spans::json::JsonText;
use spans::json::{self, ValueKind as Json};
use spans::source::Fault;

/// How much of the kept text is from the message's beginning, in percent (ChatCLI's `truncatePreservingEnd`).
const HEAD_PERCENT: u64 = 75;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S16",
        name: "oversized-reply",
        help: Help {
            what: "An assistant message in context is longer than the policy allows (--cut-replies; off by \
                   default, 5,000 characters for `tailor recover`).",
            why: "After an overflow everything counts, and what the model wrote at length it seldom needs word for \
                  word.",
            fix: "Three quarters of the limit stay from the beginning and one quarter from the end, with a marker \
                  between them. Calls, thinking and everything of the newest turn while it waits stay.",
            source: "ChatCLI context_recovery.go, level 1",
        },
        rewrites_history: true,
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.of_messages() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let limit = session.policy.reply_chars_max;
    if limit == 0 {
        return Ok(());
    }
    for entry in session.sent() {
        if session.kind(entry) != Kind::Message(Role::Assistant) {
            continue;
        }
        if let Some((chars, fix)) = shorten_message(session, entry, limit)? {
            let message = format!("assistant message of {chars} characters (limit {limit})");
            out.push(Finding {
                chars: Some(chars),
                fix,
                ..about(&RULE, session, entry, Severity::Warning, message)
            });
        }
    }
    Ok(())
}

/// The total length of an entry's texts, and the fix that cuts them to `limit`; `None` if they are not longer.
pub(crate) fn shorten_message(
    session: &Session<'_>,
    entry: u32,
    limit: u64,
) -> Result<Option<(u64, Fix)>, Fault> {
    let found = session.entry(entry);
    // Texts cannot exceed the limit if the longest possible characters would not. Then nothing is read.
    if found.text_chars.saturating_mul(session.policy.unit.per_char_max()) <= limit {
        return Ok(None);
    }
    let Some(doc) = json::parse(session.source, found.span)? else { return Ok(None) };
    let mut texts: Vec<JsonText> = Vec::new();
    // If the assistant's message holds results, these have limits of their own.
    let (model, mut results) = (found.kind == Kind::Message(Role::Assistant), false);
    (session.format.parts)(&doc, &mut |part| match part {
        EntryPart::Text(text) if text.kind() == Json::String && !(model && results) => {
            texts.push(JsonText::from_value(text));
        }
        EntryPart::Result => results = true,
        _ => {}
    });
    let Some(measured) = Measured::new(session, &texts, limit)? else { return Ok(None) };
    if measured.kept() <= limit {
        return Ok(None);
    }
    let shape = CutShape { kept: Kept::Within(HEAD_PERCENT), lines: CutLines::Half };
    Ok(Some((measured.kept(), measured.trim(session, shape, limit, Notes::None)?)))
}
