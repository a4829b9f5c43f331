//! S1: a tool result that is too long.

use super::trim::exceeded;
use super::{Help, Rule, about_result};
use crate::finding::{Finding, Severity};
use crate::session::Session;
use crate::source::Fault;
use alloc::format;
use alloc::vec::Vec;

pub(super) struct OversizedResult;

impl Rule for OversizedResult {
    fn code(&self) -> &'static str {
        "S1"
    }

    fn name(&self) -> &'static str {
        "oversized-result"
    }

    fn help(&self) -> Help {
        Help {
            what: "The text of a tool result is longer than the policy allows (32,000 characters).",
            why: "One such result, repeated, fills the file and the context within hours; then the summariser \
                  overflows as well: \"prompt is too long\".",
            fix: "Three quarters of the limit stay from the beginning and one quarter from the end, cut at line ends, \
                  with one line between them that says how much is gone and how to get it back. Ids, error flag, \
                  images and everything else stay.",
            source: "OpenClaw #10915 (limit, order of blocks); head and tail: gsd-2 #4690",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        for index in 0..session.transcript.results.len() {
            let Some((text, cap)) = exceeded(session, index)? else { continue };
            let message = format!("result of {} characters (limit {})", text.kept(), cap.chars_max);
            out.push(Finding {
                chars: Some(text.kept()),
                fix: text.trim(session, cap.shape, cap.chars_max, &[])?,
                ..about_result(&OversizedResult, session, index, Severity::Warning, message)
            });
        }
        Ok(())
    }
}
