//! L2: a line that is longer than the check allows.

use super::base::{Cover, FindingSink, Help, Limit, Rule, RuleInfo, about_place};
use super::over_limit::{SOURCE, WHY, over};
use crate::model::finding::Finding;
use crate::session::Session;
use alloc::vec::Vec;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "L2",
        name: "oversized-line",
        help: Help {
            what: "A line is longer than --max-line-size. White space around a record does not count.",
            why: WHY,
            fix: "S1 and S5 shorten results and side copies in it; images and what people wrote stay.",
            source: SOURCE,
        },
        wakes: &[],
        limit: Some(Limit { option: "--max-line-size", is_set: |budget| budget.line_bytes_max > 0 }),
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Reported,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
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
            let found = about_place(&RULE, parts[0].0, severity, message);
            out.push(Finding { at: start, ..found });
        }
    }
    Ok(())
}
