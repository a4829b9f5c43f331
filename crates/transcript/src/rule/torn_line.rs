//! B1: the last line is torn off.

use super::{Help, Rule, about_line};
use crate::entry::{Damage, DamageKind};
use crate::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use crate::source::{Fault, Span};
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

pub(super) struct TornLine;

impl Rule for TornLine {
    fn code(&self) -> &'static str {
        "B1"
    }

    fn name(&self) -> &'static str {
        "torn-line"
    }

    fn help(&self) -> Help {
        Help {
            what: "The file does not end with a line break: the last line is torn, or whole but not ended.",
            why: "The next line that the agent appends is glued to it, and both are lost: \"Unexpected end of JSON \
                  input\", sessions that cannot be found.",
            fix: "A whole line gets its line break. A torn one is taken out (it stays in the copy of the original). \
                  Never while the file is still growing.",
            source: "claude-code #53821, #52387; OpenClaw #100644",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        for damage in &session.transcript.damage {
            let end = Span::new(damage.span.end, damage.span.end);
            let (severity, message, fix) = match damage.kind {
                DamageKind::Unterminated => (
                    Severity::Note,
                    "no line break at the end of the file".to_string(),
                    Fix::safe(vec![Op::Replace { at: end, with: b"\n".to_vec() }]),
                ),
                DamageKind::Torn => (
                    Severity::Warning,
                    format!("the last line is torn after {} bytes", damage.span.len()),
                    Fix::safe(vec![Op::Replace { at: damage.span, with: line_end(session, damage) }]),
                ),
                _ => continue,
            };
            out.push(about_line(&TornLine, damage, severity, message, fix));
        }
        Ok(())
    }
}

/// What comes in the place of what was torn: a line break, if whole objects stand before it on its line.
fn line_end(session: &Session<'_>, damage: &Damage) -> Vec<u8> {
    let behind = session.transcript.entries.last().is_some_and(|last| last.span.end == damage.span.start);
    if behind { b"\n".to_vec() } else { Vec::new() }
}
