//! T9: an assistant message that is repeated as it was delivered to a chat.

use super::base::{Cover, Feature, FindingSink, Group, Help, Rule, RuleInfo, about};
use super::removal::{only_if_asked, take_out};
use crate::format::EntryPart;
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Guard, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::json::{self, Value, ValueKind as Json};
use spans::source::{Fault, Span, read_span};

/// The model that `OpenClaw` writes into such a message.
pub(crate) const MIRROR: &[u8] = b"delivery-mirror";

/// Texts longer than this are not compared.
const COMPARED_BYTES_MAX: u64 = 1 << 20;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T9",
        name: "mirrored-reply",
        help: Help {
            what: "An assistant message is stored a second time as it was delivered (`delivery-mirror`), with the same text.",
            why: "The text is sent twice, and the copy may come between a call and its result.",
            fix: "With --allow T9 the copy is taken out, if what the model said or sent in the same turn holds just that text. \
                  A copy that is the only one of its text stays.",
            source: "OpenClaw #27150, #8221, #143787",
        },
        groups: &[Group::Tree],
        wakes: &[Feature::Mirror],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.mirrors { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for (at, &entry) in session.live.iter().enumerate().filter(|(_, entry)| is_mirror(session, **entry)) {
        if said_before(session, &session.live[..at], entry)? {
            let fix = only_if_asked(take_out(session, entry), Guard::Copy);
            let message = "second copy of the previous message, as it was delivered".to_string();
            out.push(Finding { fix, ..about(&RULE, session, entry, Severity::Note, message) });
        }
    }
    Ok(())
}

fn is_mirror(session: &Session<'_>, entry: u32) -> bool {
    session.transcript.id_text(session.entry(entry).model) == MIRROR
}

/// Whether the assistant said or sent this text in the entry before, with no user message in between.
fn said_before(session: &Session<'_>, before: &[u32], entry: u32) -> Result<bool, Fault> {
    let mut texts = Vec::new();
    if let Some(doc) = json::parse(session.source, session.entry(entry).span)? {
        (session.format.parts)(&doc, &mut |part| {
            if let EntryPart::Text(text) = part {
                texts.push(text.inner());
            }
        });
    }
    let &[text] = &texts[..] else { return Ok(false) };
    let own = trimmed(session, text)?;
    if own.is_empty() {
        return Ok(false);
    }
    for &earlier in before.iter().rev() {
        match session.kind(earlier) {
            Kind::Message(Role::User) | Kind::Boundary => break,
            Kind::Message(Role::Assistant) if is_mirror(session, earlier) => {}
            Kind::Message(Role::Assistant) if holds(session, earlier, &own)? => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// Whether the entry holds this text as a string.
fn holds(session: &Session<'_>, entry: u32, text: &[u8]) -> Result<bool, Fault> {
    let doc = json::parse(session.source, session.entry(entry).span)?;
    let strings = doc.as_ref().and_then(json::Doc::root).into_iter().flat_map(Value::descendants);
    for string in strings.filter(|value| value.kind() == Json::String) {
        if string.inner().len() >= text.len() as u64 && trimmed(session, string.inner())? == text {
            return Ok(true);
        }
    }
    Ok(false)
}

fn trimmed(session: &Session<'_>, text: Span) -> Result<Vec<u8>, Fault> {
    if text.len() > COMPARED_BYTES_MAX {
        return Ok(Vec::new());
    }
    Ok(read_span(session.source, text)?.trim_ascii().to_vec())
}
