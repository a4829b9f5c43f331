//! B2: two objects on one line, or one and a fragment.

use super::{Cover, Help, Rule, Stage, about, about_wreck};
use crate::finding::{Finding, Fix, Op, Severity};
use crate::format::{Counted, Format};
use crate::found::Found;
use crate::salvage::Cause;
use crate::session::Session;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use spans::source::{Fault, Span};

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
            what: "Two whole objects stand on one line, or one and a fragment of another.",
            why: "Agents skip the line, so both are lost to the session, and with them often the link that holds \
                  everything after them.",
            fix: "A line break is put between them. Fragments are taken out (they stay in the copy of the original).",
            source: "claude-code #81843, qwen-code #3656, copilot-cli #4098",
        }
    }

    fn stage(&self) -> Stage {
        Stage::Bytes
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if let Some(Counted::Lines(_)) = format.counted() { Cover::Reported } else { Cover::Fixed }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        for (index, entry) in session.transcript.unusual().filter(|(_, entry)| entry.glued) {
            let at = Span::new(entry.span.start, entry.span.start);
            let fix = Fix::safe(vec![Op::Replace { at, with: b"\n".to_vec() }]);
            let message = "a second object on the same line".to_string();
            out.push(Finding { fix, ..about(&GluedLines, session, index, Severity::Error, message) });
        }
        for wreck in
            session.wrecks()?.iter().filter(|wreck| wreck.cause == Cause::Spliced && !wreck.is_torn())
        {
            let message = format!("{} whole records among fragments", wreck.records);
            out.push(about_wreck(&GluedLines, wreck, message));
        }
        Ok(())
    }
}
