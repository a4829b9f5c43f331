//! P9: a call without arguments.

use super::{Cover, Help, Rule, about_call, severity_in_context};
use crate::entry::Stop;
use crate::finding::{Finding, Fix, Op};
use crate::format::Format;
use crate::json;
use crate::literal::quote;
use crate::session::Session;
use crate::source::{Fault, Span};
use alloc::vec;
use alloc::vec::Vec;

pub(super) struct CallWithoutArguments;

impl Rule for CallWithoutArguments {
    fn code(&self) -> &'static str {
        "P9"
    }

    fn name(&self) -> &'static str {
        "call-without-arguments"
    }

    fn help(&self) -> Help {
        Help {
            what: "A call that was written to its end has no arguments at all.",
            why: "Some models leave them out for tools that take none, and APIs want an object: \"tool_use.input: Field required\", \
                  \"Input should be a valid dictionary\".",
            fix: "An empty object is put in, if the tool has answered. Arguments that were cut off are never completed (P3).",
            source: "OpenClaw #1509, #3442; claude-code #6696",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.arguments_field().is_none() { Cover::Never } else { Cover::Fixed }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let Some(field) = session.format.arguments_field() else { return Ok(()) };
        for (index, call) in session.transcript.calls.iter().enumerate().filter(|(_, call)| call.partial) {
            let done = session.result_of(index as u32).is_some();
            if !done || session.entry(call.entry).stop == Stop::Aborted || session.superseded(call.entry) {
                continue;
            }
            let Some(block) = json::parse(session.source, call.block)? else { continue };
            let Some(root) = block.root().filter(|root| root.get("partialJson").is_none()) else { continue };
            let fix = match root.get(field) {
                Some(value) if value.is_null() => {
                    vec![Op::Replace { at: value.span(), with: b"{}".to_vec() }]
                }
                Some(_) => continue,
                None => {
                    let mut with = b",".to_vec();
                    quote(field.as_bytes(), &mut with);
                    with.extend_from_slice(b":{}");
                    let end = call.block.end - 1;
                    vec![Op::Replace { at: Span::new(end, end), with }]
                }
            };
            let severity = severity_in_context(session, call.entry);
            let found =
                about_call(&CallWithoutArguments, session, index, severity, "the call has no arguments");
            out.push(Finding { fix: Fix::safe(fix), ..found });
        }
        Ok(())
    }
}
