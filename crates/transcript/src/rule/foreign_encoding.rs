//! B4: bytes that are not UTF-8.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about_line};
use super::unreadable_line;
use crate::model::entry::{ContentIssueKind, DamageKind};
use crate::model::finding::{Fix, Held, Op, Severity};
use crate::read::salvage::LINE_BYTES_MAX;
use crate::session::Session;
use alloc::format;
use alloc::vec::Vec;
use spans::json::{self, Doc};
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B4",
        name: "foreign-encoding",
        help: Help {
            what: "A line holds bytes that are not UTF-8.",
            why: "Some readers replace such bytes, others refuse the whole file: \"stream did not contain valid UTF-8\".",
            fix: "Each becomes U+FFFD, which is how JavaScript and Python read it anyway. If the agent skips such a \
                  line, and refuses the whole file because of such an id or name, only those in texts do.",
            source: "codex #36802, #28139",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        model_sees: false,
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Fixed,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for damage in &session.transcript.damage {
        let DamageKind::NotUtf8(at) = damage.kind else { continue };
        let long = damage.span.len() > LINE_BYTES_MAX;
        let fix = if long { Fix::NONE } else { fix(session, damage.span)? };
        let message = format!("not UTF-8 at byte {at}");
        out.push(about_line(&RULE, damage, Severity::Warning, message, fix));
    }
    Ok(())
}

fn fix(session: &Session<'_>, line: Span) -> Result<Fix, Fault> {
    let ops = replaced(session, line)?;
    let mut read: Option<(u32, Option<Doc>)> = None;
    for op in &ops {
        let Op::Replace { at, .. } = *op else { continue };
        // A line that is not a record is removed, or repaired first.
        let Some(entry) = session.entry_around(at).filter(|_| !is_mended(session, at)) else { continue };
        if read.as_ref().is_none_or(|(of, _)| *of != entry) {
            read = Some((entry, json::parse(session.source, session.entry(entry).span)?));
        }
        let doc = read.as_ref().and_then(|(_, doc)| doc.as_ref());
        if doc.is_some_and(|doc| !(session.format.takes_any_text_at)(doc, at)) {
            return Ok(Fix::held(Held::Checked));
        }
    }
    Ok(Fix::safe(ops))
}

/// Whether the byte is part of a name that B9 restores.
fn is_mended(session: &Session<'_>, at: Span) -> bool {
    session.policy.selection.includes(unreadable_line::RULE.code())
        && session.transcript.issues().iter().any(|issue| {
            matches!(issue.kind, ContentIssueKind::Corrupted(Some(_))) && issue.block.contains(at)
        })
}

/// Replaces each invalid sequence by U+FFFD, as the Unicode standard recommends.
fn replaced(session: &Session<'_>, line: Span) -> Result<Vec<Op>, Fault> {
    let bytes = read_span(session.source, line)?;
    let (mut at, mut ops) = (line.start, Vec::new());
    for chunk in bytes.utf8_chunks() {
        at += chunk.valid().len() as u64;
        let end = at + chunk.invalid().len() as u64;
        if at < end {
            ops.push(Op::Replace { at: Span::new(at, end), with: "\u{fffd}".into() });
        }
        at = end;
    }
    Ok(ops)
}
