//! P9: a call without arguments.

use super::{Cover, Help, Rule, about_call, severity_in_context};
use crate::entry::Stop;
use crate::finding::{Finding, Fix, Op};
use crate::format::{Arguments, Format};
use crate::json::{self, Value};
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
            why: "Some models leave them out for tools that take none, and APIs want them: \"tool_use.input: Field required\", \
                  \"Input should be a valid dictionary\", \"Missing required parameter: …function.arguments\".",
            fix: "An empty object is put in, if the tool has answered. Arguments that were cut off are never completed (P3).",
            source: "OpenClaw #1509, #3442; claude-code #6696",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.arguments().is_none() { Cover::Never } else { Cover::Fixed }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let Some(place) = session.format.arguments() else { return Ok(()) };
        for (index, call) in session.transcript.calls.iter().enumerate().filter(|(_, call)| call.partial) {
            let done = session.result_of(index as u32).is_some();
            let open = !done && session.is_pending(call.entry);
            if open || session.entry(call.entry).stop == Stop::Aborted || session.superseded(call.entry) {
                continue;
            }
            let Some(block) = json::parse(session.source, call.block)? else { continue };
            let Some(root) = block.root().filter(|root| root.get("partialJson").is_none()) else { continue };
            let Some((holder, field)) = holder(root, place) else { continue };
            let fix = match holder.get(field) {
                Some(value) if value.is_null() => {
                    vec![Op::Replace { at: value.span(), with: place.none.into() }]
                }
                Some(_) => continue,
                None => {
                    let mut with = b",".to_vec();
                    quote(field.as_bytes(), &mut with);
                    with.push(b':');
                    with.extend_from_slice(place.none.as_bytes());
                    let end = holder.span().end - 1;
                    vec![Op::Replace { at: Span::new(end, end), with }]
                }
            };
            let severity = severity_in_context(session, call.entry);
            let found =
                about_call(&CallWithoutArguments, session, index, severity, "the call has no arguments");
            let fix = if done { Fix::safe(fix) } else { Fix::NONE };
            out.push(Finding { fix, ..found });
        }
        Ok(())
    }
}

/// The object in which a call has its arguments, and under which name. It is not empty.
fn holder(call: Value<'_>, place: Arguments) -> Option<(Value<'_>, &'static str)> {
    let found = place.at.iter().find_map(|path| {
        let (field, way) = path.split_last()?;
        Some((way.iter().try_fold(call, |value, key| value.get(key))?, *field))
    });
    found.filter(|(holder, _)| holder.fields().next().is_some())
}
