//! S5: long copies of a result that the model never sees.

use super::trim::{Measured, Notes};
use super::{Cover, Help, Rule, about};
use crate::finding::{Finding, Fix, Severity};
use crate::format::Format;
use crate::found::Found;
use crate::policy::Shape;
use crate::session::Session;
use crate::source::Fault;
use alloc::format;
use alloc::vec::Vec;

pub(super) struct OversizedSideCopy;

impl Rule for OversizedSideCopy {
    fn code(&self) -> &'static str {
        "S5"
    }

    fn name(&self) -> &'static str {
        "oversized-side-copy"
    }

    fn help(&self) -> Help {
        Help {
            what: "A copy of a result that is kept for the screen only (`toolUseResult` of Claude Code, `details` of \
                   pi) holds strings longer than the policy allows (8,000 characters).",
            why: "The model never sees it, but it is 38 % of the bytes of real Claude Code files and 19 % of pi's, and \
                  agents read it on every start.",
            fix: "Long strings are shortened one by one; keys, types and everything else stay, because screens and \
                  hooks read them. Image data is not touched. Always safe: nothing the model sees changes.",
            source: "claude-code #83206, #85179; OpenClaw bounds its persisted details by 8,192 bytes",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.copies_results() { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let limit = session.policy.side_chars_max;
        if limit == 0 {
            return Ok(());
        }
        for entry in 0..session.transcript.entries.len() as u32 {
            let (mut ops, mut chars, mut strings) = (Vec::new(), 0, 0);
            for side in session.transcript.sides_of(entry) {
                let Some(text) = Measured::new(session, &[*side], limit)? else { continue };
                if !text.exceeds(session, limit)? {
                    continue;
                }
                chars += text.kept();
                strings += 1;
                ops.extend(text.trim(session, Shape::default(), limit, Notes::None)?.ops);
            }
            if strings > 0 {
                let noun = if strings == 1 { "string" } else { "strings" };
                let message =
                    format!("{strings} long {noun} of {chars} characters that the model never sees");
                out.push(Finding {
                    chars: Some(chars),
                    fix: if ops.is_empty() { Fix::NONE } else { Fix::safe(ops) },
                    ..about(&OversizedSideCopy, session, entry, Severity::Warning, message)
                });
            }
        }
        Ok(())
    }
}
