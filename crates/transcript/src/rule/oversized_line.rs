//! L2: a line that is longer than the check allows.

use super::over_limit::{SOURCE, WHY, over};
use super::{Cover, Help, Rule, about_place};
use crate::finding::Finding;
use crate::format::Format;
use crate::found::Found;
use crate::session::Session;
use alloc::vec::Vec;
use spans::source::{Fault, Span};

pub(super) struct OversizedLine;

impl Rule for OversizedLine {
    fn code(&self) -> &'static str {
        "L2"
    }

    fn name(&self) -> &'static str {
        "oversized-line"
    }

    fn help(&self) -> Help {
        Help {
            what: "A line is longer than --max-line-size. White space around a record does not count.",
            why: WHY,
            fix: "S1 and S5 shorten results and side copies in it; images and what people wrote stay.",
            source: SOURCE,
        }
    }

    fn cover(&self, _format: &dyn Format) -> Cover {
        Cover::Reported
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let limit = session.policy.budget.line_bytes_max;
        if limit == 0 {
            return Ok(());
        }
        let entries = session.transcript.entries.iter().map(|entry| (entry.line, entry.span));
        let damage = session.transcript.damage.iter().map(|damage| (damage.line, damage.span));
        let mut parts: Vec<(u64, Span)> = entries.chain(damage).collect();
        parts.sort_by_key(|(line, span)| (*line, span.start));
        for parts in parts.chunk_by(|one, two| one.0 == two.0) {
            let start = parts.iter().map(|(_, span)| span.start).min().unwrap_or(0);
            let end = parts.iter().map(|(_, span)| span.end).max().unwrap_or(0);
            if let Some((severity, message)) = over(session, limit, end - start, "line of", "bytes") {
                let found = about_place(&OversizedLine, parts[0].0, severity, message);
                out.push(Finding { at: start, ..found });
            }
        }
        Ok(())
    }
}
