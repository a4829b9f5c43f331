//! P12: a turn that stopped for a tool call but has none.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use crate::format::{Format, Shape};
use crate::model::entry::{Kind, Role, StopReason};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::json;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P12",
        name: "tool-stop-without-call",
        help: Help {
            what: "A message says that it stopped for a tool call, and has none.",
            why: "Agents wait for a result that never comes, or make one up with an empty id, which APIs refuse.",
            fix: "It says `stop` instead. A result with an empty id goes with P2.",
            source: "OpenClaw #21985, #30723",
        },
        groups: &[Group::Pairing],
        model_sees: false,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    let says_why_it_stopped = format.shape == Shape::Tree && format.aborts;
    if says_why_it_stopped { Cover::Fixed } else { Cover::Never }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for (index, entry) in (0..).zip(&session.transcript.entries) {
        let waits = entry.kind == Kind::Message(Role::Assistant) && entry.stop == StopReason::ToolUse;
        if !waits || !session.transcript.calls_of(index).is_empty() {
            continue;
        }
        let doc = json::parse(session.source, entry.span)?;
        let stop = doc.as_ref().and_then(|doc| doc.get("message")?.get("stopReason"));
        let replace = |value: json::Value<'_>| Op::Replace { at: value.span(), with: b"\"stop\"".to_vec() };
        let fix = stop.map_or(Fix::NONE, |value| Fix::safe(vec![replace(value)]));
        let message = "message stopped for a tool call, but has none".to_string();
        out.push(Finding { fix, ..about(&RULE, session, index, Severity::Warning, message) });
    }
    Ok(())
}
