//! B2: two objects on one line, or an object and a fragment.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about, about_damaged_line};
use crate::format::{Format, OutsideCount};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::read::salvage::DamageCause;
use crate::session::Session;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B2",
        name: "glued-lines",
        help: Help {
            what: "A line holds two whole objects, or one and a fragment of another.",
            why: "Agents skip the line, so both are lost to the session, and often everything after them, because a \
                  link is missing.",
            fix: "A line break is added between them. Fragments are removed (they stay in the copy of the original).",
            source: "claude-code #81843, qwen-code #3656, copilot-cli #4098",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        recovers: true,
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    if let Some(OutsideCount::Lines(_)) = format.counted { Cover::Reported } else { Cover::Fixed }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for (index, entry) in session.transcript.unusual().filter(|(_, entry)| entry.glued) {
        let at = Span::new(entry.span.start, entry.span.start);
        let fix = Fix::safe(vec![Op::Replace { at, with: b"\n".to_vec() }]);
        let message = "a second object on the same line".to_string();
        out.push(Finding { fix, ..about(&RULE, session, index, Severity::Error, message) });
    }
    for damaged in session
        .damaged_lines()?
        .iter()
        .filter(|damaged| damaged.cause == DamageCause::Spliced && !damaged.is_torn())
    {
        let message = format!("{} whole records among fragments", damaged.records);
        out.push(about_damaged_line(&RULE, damaged, message));
    }
    Ok(())
}
