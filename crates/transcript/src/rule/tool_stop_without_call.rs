//! P12: a turn that stopped for a tool and calls none.

use super::{Cover, Help, Rule, about};
use crate::entry::{Kind, Role, Stop};
use crate::finding::{Finding, Fix, Op, Severity};
use crate::format::{Format, Shape};
use crate::found::Found;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::json;
use spans::source::Fault;

pub(super) struct ToolStopWithoutCall;

impl Rule for ToolStopWithoutCall {
    fn code(&self) -> &'static str {
        "P12"
    }

    fn name(&self) -> &'static str {
        "tool-stop-without-call"
    }

    fn help(&self) -> Help {
        Help {
            what: "A message says that it stopped for a tool, and calls none.",
            why: "Agents wait for a result that never comes, or make one up with an empty id, which APIs refuse.",
            fix: "It says `stop` instead. A result with an empty id goes with P2.",
            source: "OpenClaw #21985, #30723",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        let says_why_it_stopped = format.shape() == Shape::Branch && format.aborts();
        if says_why_it_stopped { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        for (index, entry) in (0..).zip(&session.transcript.entries) {
            let waits = entry.kind == Kind::Message(Role::Assistant) && entry.stop == Stop::ToolUse;
            if !waits || !session.transcript.calls_of(index).is_empty() {
                continue;
            }
            let doc = json::parse(session.source, entry.span)?;
            let stop = doc.as_ref().and_then(|doc| doc.get("message")?.get("stopReason"));
            let replace =
                |value: json::Value<'_>| Op::Replace { at: value.span(), with: b"\"stop\"".to_vec() };
            let fix = stop.map_or(Fix::NONE, |value| Fix::safe(vec![replace(value)]));
            let message = "it stopped for a tool, and calls none".to_string();
            out.push(Finding {
                fix,
                ..about(&ToolStopWithoutCall, session, index, Severity::Warning, message)
            });
        }
        Ok(())
    }
}
