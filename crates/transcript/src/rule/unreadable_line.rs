//! B9: a line that is not a record, or no longer one.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about, about_damaged_line};
use crate::format::{Format, OutsideCount};
use crate::model::entry::{ContentIssueKind, DamageKind};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::read::salvage::DamageCause;
use crate::session::Session;
use alloc::format;
use alloc::string::{String, ToString};
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
        let message = match damaged.damage.kind {
            _ if damaged.cause == DamageCause::Name => "a field name was overwritten".to_string(),
            DamageKind::NotJson(at)
                if session.transcript.in_database
                    && damaged.lines == 1
                    && at == damaged.damage.span.start
                    && bytes <= SAID_MAX =>
            {
                said(session, damaged.damage.span)?.unwrap_or_else(|| not_json(bytes, at))
            }
            _ if damaged.lines > 1 => format!("{} lines of {bytes} bytes hold no record", damaged.lines),
            DamageKind::NotJson(at) => not_json(bytes, at),
            DamageKind::Nul(at) => format!("line of {bytes} bytes holds NUL bytes (from byte {at})"),
            _ => format!("line of {bytes} bytes holds too many values or records to look into"),
        };
        let mut finding = about_damaged_line(&RULE, damaged, message);
        if damaged.cause == DamageCause::Unknown {
            finding.fix = Fix::NONE;
        }
        if let Some(fix) = known(session, damaged.damage.span)? {
            finding.fix = fix;
        }
        if session.transcript.in_database {
            finding.severity = Severity::Error;
        }
        out.push(finding);
    }
    corrupted(session, out)
}

fn not_json(bytes: u64, at: u64) -> String {
    format!("line of {bytes} bytes is not a JSON object (from byte {at})")
}

/// What stands in the place of a row says what is wrong with it.
const SAID_MAX: u64 = 250;

fn said(session: &Session<'_>, at: Span) -> Result<Option<String>, Fault> {
    let line = String::from_utf8(read_span(session.source, at)?).ok();
    Ok(line.filter(|line| {
        let number =
            line.strip_prefix("event ").and_then(|rest| rest.split_once(": ")).map(|(number, _)| number);
        number.is_some_and(|number| number.parse::<u64>().is_ok())
            && !line.contains(|char| matches!(char, '{' | '\0'..='\x1f'))
    }))
}

/// Puts in the place of a record what is known of it.
fn known(session: &Session<'_>, at: Span) -> Result<Option<Fix>, Fault> {
    let known = &session.policy.known_records;
    if !known.iter().any(|(old, _)| old.len() as u64 == at.len()) {
        return Ok(None);
    }
    let bytes = read_span(session.source, at)?;
    let known = known.iter().find(|(old, _)| *old == bytes);
    Ok(known.map(|(_, new)| Fix::safe([Op::Replace { at, with: new.clone() }].into())))
}

/// Records with an overwritten name.
fn corrupted(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for issue in session.transcript.issues() {
        let ContentIssueKind::Corrupted(was) = issue.kind else { continue };
        let (message, fix) = if let Some(name) = was {
            let op = Op::Replace { at: issue.block, with: format!("\"{name}\"").into_bytes() };
            (format!("`{name}` was overwritten"), Fix::safe([op].into()))
        } else {
            let fix = known(session, session.entry(issue.entry).span)?.unwrap_or(Fix::NONE);
            ("a field name was overwritten or is missing".to_string(), fix)
        };
        out.push(Finding { fix, ..about(&RULE, session, issue.entry, Severity::Error, message) });
    }
    Ok(())
}
