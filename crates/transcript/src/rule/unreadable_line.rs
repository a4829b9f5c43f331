//! B9: a line that is not a record.

use super::{Help, Rule, about_line};
use crate::entry::DamageKind;
use crate::finding::{Finding, Fix, Severity};
use crate::session::Session;
use crate::source::Fault;
use alloc::format;
use alloc::vec::Vec;

pub(super) struct UnreadableLine;

impl Rule for UnreadableLine {
    fn code(&self) -> &'static str {
        "B9"
    }

    fn name(&self) -> &'static str {
        "unreadable-line"
    }

    fn help(&self) -> Help {
        Help {
            what: "A line is not one JSON object: NUL bytes, a cut record, log text, a raw control character.",
            why: "Agents skip the line in silence, and everything that hangs on it; some refuse the file.",
            fix: "Report only; the line stays as it is.",
            source: "claude-code #76059, #49876; OpenClaw #98669",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        for damage in &session.transcript.damage {
            let bytes = damage.span.len();
            let message = match damage.kind {
                DamageKind::NotJson(at) => {
                    format!("line of {bytes} bytes is not a JSON object (from byte {at})")
                }
                DamageKind::Nul(at) => format!("line of {bytes} bytes holds NUL bytes (from byte {at})"),
                DamageKind::TooComplex => format!("line of {bytes} bytes holds too many values to look into"),
                _ => continue,
            };
            out.push(about_line(&UnreadableLine, damage, Severity::Warning, message, Fix::NONE));
        }
        Ok(())
    }
}
