//! M10: the same error, again and again.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use super::empty_turn::is_empty_entry;
use super::removal::take_out;
use crate::model::entry::{Kind, Role, StopReason};
use crate::model::finding::{Finding, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::json;
use spans::source::{Fault, Span, read_span};

/// This many equal turns in a row are a flood.
const FLOOD_TURNS: usize = 3;
/// A longer turn is more than an error.
const ERROR_BYTES_MAX: u64 = 64 << 10;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M10",
        name: "error-flood",
        help: Help {
            what: "Three or more turns in a row failed in the same way, and each says so in the same words.",
            why: "Retry loops append until the session is hundreds of megabytes long; the agent reads them on every start.",
            fix: "The first and the last of them stay. Turns that hold anything else, and failed turns that hold nothing at \
                  all (M1), are not among them.",
            source: "OpenClaw #64767, #83404",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.failures { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut run: Vec<(u32, Vec<u8>)> = Vec::new();
    for &entry in session.model_order() {
        if run.is_empty() && session.entry(entry).stop != StopReason::Aborted {
            continue;
        }
        match session.kind(entry) {
            Kind::Message(Role::Assistant) if is_empty_entry(session, entry) => {}
            Kind::Message(_) | Kind::Boundary => match words(session, entry)? {
                Some(words) => {
                    if run.last().is_some_and(|(_, last)| *last != words) {
                        report(session, &mut run, out);
                    }
                    run.push((entry, words));
                }
                None => report(session, &mut run, out),
            },
            _ => {}
        }
    }
    report(session, &mut run, out);
    Ok(())
}

/// The text of a failed turn; `None` for any other turn.
fn words(session: &Session<'_>, entry: u32) -> Result<Option<Vec<u8>>, Fault> {
    let found = session.entry(entry);
    let failed = found.kind == Kind::Message(Role::Assistant) && found.stop == StopReason::Aborted;
    if !failed || !session.transcript.calls_of(entry).is_empty() || found.span.len() > ERROR_BYTES_MAX {
        return Ok(None);
    }
    let doc = json::parse(session.source, found.span)?;
    let message = doc.as_ref().and_then(|doc| doc.get("message"));
    let parts = ["content", "errorMessage"].map(|key| message.and_then(|message| message.get(key)));
    let spans: Vec<Span> = parts.into_iter().flatten().map(json::Value::span).collect();
    let texts: Result<Vec<Vec<u8>>, Fault> =
        spans.iter().map(|&span| read_span(session.source, span)).collect();
    Ok(Some(texts?.concat()))
}

/// Reports a run of equal turns if it is a flood: each turn between the first and the last.
fn report(session: &Session<'_>, run: &mut Vec<(u32, Vec<u8>)>, out: &mut FindingSink<'_>) {
    if run.len() >= FLOOD_TURNS {
        for (entry, _) in &run[1..run.len() - 1] {
            let message = "the same error as in the turns before and after".to_string();
            let fix = take_out(session, *entry);
            out.push(Finding { fix, ..about(&RULE, session, *entry, Severity::Warning, message) });
        }
    }
    run.clear();
}
