//! P9: a call without arguments.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about_call, severity_in_context};
use crate::format::Arguments;
use crate::model::damaged_name::was;
use crate::model::entry::StopReason;
use crate::model::finding::{Finding, Fix, Held, Op};
use crate::session::Session;
use alloc::vec;
use alloc::vec::Vec;
use spans::json::{self, Value};
use spans::literal::quote;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P9",
        name: "call-without-arguments",
        help: Help {
            what: "A complete call has no arguments at all.",
            why: "Some models leave them out for tools that take none, and APIs want them: \"tool_use.input: Field required\", \
                  \"Input should be a valid dictionary\", \"Missing required parameter: …function.arguments\".",
            fix: "An empty object is added, if the tool has answered. If only some bytes of the name were overwritten, \
                  the name is restored. Arguments that were cut off are never completed (P3).",
            source: "OpenClaw #1509, #3442; claude-code #6696",
        },
        groups: &[Group::Pairing],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.arguments.is_none() { Cover::Never } else { Cover::Fixed },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(place) = session.format.arguments else { return Ok(()) };
    for (index, call) in session.transcript.calls.iter().enumerate().filter(|(_, call)| call.partial) {
        if session.entry(call.entry).stop == StopReason::Aborted || session.superseded(call.entry) {
            continue;
        }
        let Some(block) = json::parse(session.source, call.block)? else { continue };
        let Some(root) = block.root().filter(|root| root.get("partialJson").is_none()) else { continue };
        let Some((holder, field)) = holder(root, place) else { continue };
        if holder.get(field).is_some_and(|value| !value.is_null()) {
            continue;
        }
        let done = session.result_of(index as u32).is_some();
        let corrupted = holder.fields().map(|(key, _)| key).find(|key| was(*key, field));
        let fix = match corrupted {
            Some(key) => Fix::safe(vec![Op::Replace { at: key.span(), with: quoted(field) }]),
            None if done => Fix::safe(vec![none(holder, field, place.none)]),
            None if session.is_pending(call.entry) && !session.situation.agent_gone => {
                Fix::held(Held::NewestTurn)
            }
            None => Fix::NONE,
        };
        let message =
            if corrupted.is_some() { "`arguments` was overwritten" } else { "the call has no arguments" };
        let severity = severity_in_context(session, call.entry);
        let found = about_call(&RULE, session, index, severity, message);
        out.push(Finding { fix, ..found });
    }
    Ok(())
}

/// Adds empty arguments.
fn none(holder: Value<'_>, field: &str, none: &str) -> Op {
    if let Some(null) = holder.get(field) {
        return Op::Replace { at: null.span(), with: none.into() };
    }
    let end = holder.span().end - 1;
    let with = [&b","[..], &quoted(field), b":", none.as_bytes()].concat();
    Op::Replace { at: Span::new(end, end), with }
}

fn quoted(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    quote(name.as_bytes(), &mut out);
    out
}

/// The object in which a call has its arguments, and their name in it. The object is not empty.
fn holder(call: Value<'_>, place: Arguments) -> Option<(Value<'_>, &'static str)> {
    let found = place.at.iter().find_map(|path| {
        let (field, way) = path.split_last()?;
        Some((way.iter().try_fold(call, |value, key| value.get(key))?, *field))
    });
    found.filter(|(holder, _)| holder.fields().next().is_some())
}
