//! B2: two objects on one line.

use super::{Help, Rule, about};
use crate::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use crate::source::{Fault, Span};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

pub(super) struct GluedLines;

impl Rule for GluedLines {
    fn code(&self) -> &'static str {
        "B2"
    }

    fn name(&self) -> &'static str {
        "glued-lines"
    }

    fn help(&self) -> Help {
        Help {
            what: "Two whole objects stand on one line.",
            why: "Agents skip the line, so both are lost to the session, and with them often the link that holds \
                  everything after them.",
            fix: "A line break is put between them. Nothing is taken out.",
            source: "claude-code #81843, qwen-code #3656, copilot-cli #4098",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        for (index, entry) in (0..).zip(&session.transcript.entries) {
            if entry.glued {
                let at = Span::new(entry.span.start, entry.span.start);
                let fix = Fix::safe(vec![Op::Replace { at, with: b"\n".to_vec() }]);
                let message = "a second object on the same line".to_string();
                out.push(Finding { fix, ..about(&GluedLines, session, index, Severity::Error, message) });
            }
        }
        Ok(())
    }
}
