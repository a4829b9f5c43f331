//! V1 and T10: records that Copilot CLI wrote but does not read, and a compaction that it never finished.

use super::base::{Cover, FindingSink, Group, Heals, Help, Rule, RuleInfo, about};
use crate::model::entry::{ContentIssue, ContentIssueKind, Kind};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use spans::source::{Fault, Span, read_span};

pub(super) static REFUSED: Rule = Rule {
    info: RuleInfo {
        code: "V1",
        name: "refused-record",
        help: Help {
            what: "A record has a field that Copilot CLI's schema for session events does not allow: a count with a fraction \
                   or below zero, a compaction that does not say whether it succeeded, or a finished task without its summary.",
            why: "\"Session file is corrupted (line 10: invalid type: floating point `2.5`, expected i64)\": one record, and \
                  the whole session is not loaded. 1.0.102 refuses fractions and a missing `success`; older versions refuse negative counts \
                  (`tokensRemoved`) and a missing `summary` as well.",
            fix: "Only that field changes: a count becomes a whole number, 0 if it was negative; a missing summary is written \
                  as an empty one, and a missing `success` as true where there is a summary. Nothing of that is sent to the \
                  model. `copilot sessions import` is no way out: it reads another format, and not the session's own \
                  file.",
            source: "copilot-cli #2089, #2899, #3432, #3454, #3598; copilot-sdk #1007; tried with Copilot CLI 1.0.102",
        },
        ..INFO
    },
    cover: |format| if format.content.checks_records { Cover::Fixed } else { Cover::Never },
    check: refused,
};

pub(super) static UNFINISHED: Rule = Rule {
    info: RuleInfo {
        code: "T10",
        name: "unfinished-compaction",
        help: Help {
            what: "A compaction began and did not end, and nothing was said after it.",
            why: "If the agent ran out of memory while it compacted, it tries the same again each time the session is resumed.",
            fix: "None, and the record itself does no harm. tailor recover FILE makes the session shorter first.",
            source: "copilot-cli #4780",
        },
        heals: Heals::Always,
        ..INFO
    },
    cover: |format| if format.content.checks_records { Cover::Reported } else { Cover::Never },
    check: unfinished,
};

const INFO: RuleInfo = RuleInfo { groups: &[Group::Tree], model_sees: false, wakes: &[], ..RuleInfo::BASE };

fn refused(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for issue in session.transcript.issues() {
        let (severity, message, op) = match issue.kind {
            ContentIssueKind::Count => {
                let written = read_span(session.source, issue.block)?;
                let written = String::from_utf8_lossy(&written).into_owned();
                let negative = written.starts_with('-');
                let (severity, message) = if negative {
                    (Severity::Warning, "a count is negative, which older versions of the agent refuse")
                } else {
                    (Severity::Error, "a count is not a whole number, which the agent refuses")
                };
                let whole =
                    if negative { Some("0") } else { written.split_once('.').map(|(whole, _)| whole) };
                let whole = whole.filter(|_| !written.contains(['e', 'E']));
                let replace = |with: &str| Op::Replace { at: issue.block, with: with.as_bytes().to_vec() };
                (severity, message.to_string(), whole.map(replace))
            }
            ContentIssueKind::Lacks(name, value) => {
                let at = issue.block.start + 1;
                let comma = if read_span(session.source, issue.block)?.contains(&b':') { "," } else { "" };
                let with = format!("\"{name}\":{value}{comma}").into_bytes();
                let (severity, message) = match name {
                    "success" => (Severity::Error, format!("{name} is missing, which the agent refuses")),
                    _ => (
                        Severity::Warning,
                        format!("{name} is missing, which older versions of the agent require"),
                    ),
                };
                (severity, message, Some(Op::Replace { at: Span::new(at, at), with }))
            }
            _ => continue,
        };
        let fix = op.map_or(Fix::NONE, |op| Fix::safe(vec![op]));
        out.push(Finding { fix, ..about(&REFUSED, session, issue.entry, severity, message) });
    }
    Ok(())
}

fn unfinished(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let tells = |issue: &&ContentIssue| {
        matches!(issue.kind, ContentIssueKind::CompactionBegins | ContentIssueKind::CompactionFails)
    };
    let last = session.transcript.issues().iter().rev().find(tells);
    let Some(begun) = last.filter(|last| last.kind == ContentIssueKind::CompactionBegins) else {
        return Ok(());
    };
    let after = &session.transcript.entries[begun.entry as usize + 1..];
    if !after.iter().any(|entry| matches!(entry.kind, Kind::Boundary | Kind::Message(_))) {
        let message = "a compaction began here and did not end".to_string();
        out.push(about(&UNFINISHED, session, begun.entry, Severity::Warning, message));
    }
    Ok(())
}
