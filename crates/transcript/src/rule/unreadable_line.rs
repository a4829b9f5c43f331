//! B9: a line that is not a record, or no longer one.

use super::base::{
    Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about, about_damaged_line, about_place,
};
use crate::format::{Format, OutsideCount};
use crate::model::entry::{ContentIssueKind, DamageKind};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::model::situation::KnownRecord;
use crate::read::salvage::DamageCause;
use crate::session::Session;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B9",
        name: "unreadable-line",
        help: Help {
            what: "A line holds no whole record: log text, a cut record, `null`, garbage; or some bytes of a field \
                   name in its record were overwritten.",
            why: "Agents silently skip the line and everything linked to it; some refuse the file. APIs refuse a message \
                  whose role they do not know, or that lacks its content.",
            fix: "The line is taken out (it stays in the copy of the original). One of more than 16 MiB, or with too many \
                  values or records (4,096) to look into, is only reported. A name is written again if what is left of it, and what the record lacks, \
                  tell which it was. In a database, the row says again what else is stored there about it. Nothing else of the record changes.",
            source: "claude-code #76059, #49876; OpenClaw #98669",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        recovers: true,
        entry_decides: true,
        unreadable: true,
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
    let causes = [DamageCause::Nothing, DamageCause::Unknown, DamageCause::Name];
    for damaged in session
        .damaged_lines()?
        .iter()
        .filter(|damaged| causes.contains(&damaged.cause) && !damaged.is_torn())
    {
        let bytes = damaged.damage.span.len();
        let known = known(session, damaged.damage.span)?;
        let message = match (known.and_then(|known| known.reason.clone()), damaged.damage.kind) {
            (Some(reason), _) => reason,
            _ if damaged.cause == DamageCause::Name => "a field name was overwritten".to_string(),
            _ if damaged.lines > 1 => format!("{} lines of {bytes} bytes hold no record", damaged.lines),
            (_, DamageKind::NotJson(at)) => {
                format!("line of {bytes} bytes is not a JSON object (from byte {at})")
            }
            (_, DamageKind::Nul(at)) => format!("line of {bytes} bytes holds NUL bytes (from byte {at})"),
            _ => format!("line of {bytes} bytes holds too many values or records to look into"),
        };
        let mut finding = about_damaged_line(&RULE, damaged, message);
        if damaged.cause == DamageCause::Unknown {
            finding.fix = Fix::NONE;
        }
        if let Some(fix) = replaced(damaged.damage.span, known) {
            finding.fix = fix;
        }
        if session.transcript.in_database {
            finding.severity = Severity::Error;
        }
        out.push(finding);
    }
    useless(session, out)?;
    corrupted(session, out)
}

/// What is known of a record or a line.
fn known<'s>(session: &'s Session<'_>, at: Span) -> Result<Option<&'s KnownRecord>, Fault> {
    let known = &session.situation.known_records;
    if at.end > session.source.len() || !known.keys().any(|record| record.len() as u64 == at.len()) {
        return Ok(None);
    }
    Ok(known.get(&read_span(session.source, at)?))
}

/// Puts in the place of a record what is known of it.
fn replaced(at: Span, known: Option<&KnownRecord>) -> Option<Fix> {
    let with = known?.replacement.clone()?;
    Some(Fix::safe([Op::Replace { at, with }].into()))
}

/// Records that are whole but of no use to the agent. Without the space after it, such a record is taken for a sound one.
fn useless(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let lengths: BTreeSet<u64> =
        session.situation.known_records.keys().map(|record| record.len() as u64).collect();
    if lengths.is_empty() {
        return Ok(());
    }
    for entry in session.transcript.entries.iter().filter(|entry| lengths.contains(&(entry.span.len() + 1))) {
        let mark = Span::new(entry.span.end, entry.span.end + 1);
        let known = known(session, Span::new(entry.span.start, mark.end))?;
        let Some(reason) = known.and_then(|known| known.reason.clone()) else { continue };
        let fix = Fix::safe([Op::Replace { at: mark, with: Vec::new() }].into());
        let found = about_place(&RULE, entry.line, Severity::Error, reason);
        out.push(Finding { fix, at: entry.span.start, ..found });
    }
    Ok(())
}

/// Records with an overwritten name.
fn corrupted(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for issue in session.transcript.issues() {
        let ContentIssueKind::Corrupted(was) = issue.kind else { continue };
        let (message, fix) = if let Some(name) = was {
            let op = Op::Replace { at: issue.block, with: format!("\"{name}\"").into_bytes() };
            (format!("`{name}` was overwritten"), Fix::safe([op].into()))
        } else {
            let at = session.entry(issue.entry).span;
            let fix = replaced(at, known(session, at)?).unwrap_or(Fix::NONE);
            ("a field name was overwritten or is missing".to_string(), fix)
        };
        out.push(Finding { fix, ..about(&RULE, session, issue.entry, Severity::Error, message) });
    }
    Ok(())
}
