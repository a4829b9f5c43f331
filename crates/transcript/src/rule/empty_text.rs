//! M2: texts that are only white space.

use super::base::{Cover, Feature, FindingSink, Group, Help, Repeats, Rule, RuleInfo, about, about_result};
use super::empty_turn::{is_empty_entry, is_empty_turn, severity};
use super::removal::{take_out, take_out_blocks};
use crate::model::entry::{ContentIssue, ContentIssueKind, Kind, Role};
use crate::model::finding::{Finding, Fix, Guard, Op, Safety, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::marker::NO_OUTPUT;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "M2",
        name: "empty-text",
        help: Help {
            what: "A text block is empty, or holds nothing but white space.",
            why: "\"text content blocks must be non-empty\", \"must contain non-whitespace text\", \"cache_control cannot be \
                  set for empty text blocks\", \"toolResult cannot be empty when status value is error\".",
            fix: "The block is taken out if the message holds more; with --allow M2 where the agent leaves it out when it sends. Where it is all of a tool's result, `(no output)` \
                  stands in its place: without the result the call would be open.",
            source: "claude-code #57668, hermes-agent #70475; OpenClaw #94278",
        },
        groups: &[Group::Content],
        entry_decides: true,
        wakes: &[Feature::EmptyText],
        repeats: Repeats::Counted,
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.blank.is_some() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    // One finding per file if the agent does not send such texts: Gemini writes one with every call.
    let harmless = session.format.content.blank == Some(Severity::Note);
    let mut all: Option<Finding> = None;
    for own in session.transcript.issues().chunk_by(|one, next| one.entry == next.entry) {
        let entry = own[0].entry;
        if !session.is_live(entry) {
            continue;
        }
        results(session, own, out);
        let Some(finding) = said(session, own)? else { continue };
        match &mut all {
            _ if !harmless => out.push(finding),
            None => all = Some(as_one(finding)),
            Some(all) if movable(&finding.fix) && !session.is_pending(entry) => {
                all.fix.ops.extend(finding.fix.ops);
            }
            Some(_) => {}
        }
    }
    out.extend(all);
    Ok(())
}

fn movable(fix: &Fix) -> bool {
    matches!(fix.safety, Safety::Safe)
}

/// Makes the finding about the first text stand for all.
fn as_one(finding: Finding) -> Finding {
    let ops = if movable(&finding.fix) { finding.fix.ops } else { Vec::new() };
    let message = "empty texts, which the agent does not send".to_string();
    Finding { fix: Fix::guarded(Guard::Respells, ops), message, ..finding }
}

/// Blank blocks in assistant or user messages.
fn said(session: &Session<'_>, issues: &[ContentIssue]) -> Result<Option<Finding>, Fault> {
    let blank = |issue: &&ContentIssue| issue.kind == ContentIssueKind::Blank;
    let mut blocks: Vec<Span> = issues.iter().filter(blank).map(|issue| issue.block).collect();
    let entry = issues[0].entry;
    if session.is_whole_conversation(entry) {
        // If all of a message is empty, it is M1.
        let empty = |block: &Span| {
            let around =
                |issue: &ContentIssue| issue.block.start < block.start && block.end < issue.block.end;
            issues.iter().any(|issue| issue.kind == ContentIssueKind::Empty && around(issue))
        };
        blocks.retain(|block| !empty(block));
    }
    if blocks.is_empty() {
        return Ok(None);
    }
    let fix = match session.kind(entry) {
        // If all of the message is empty, it is M1.
        Kind::Message(Role::Assistant) if is_empty_entry(session, entry) && is_empty_turn(session, entry) => {
            return Ok(None);
        }
        Kind::Message(Role::Assistant) if is_empty_entry(session, entry) => take_out(session, entry),
        _ if is_empty_entry(session, entry) => return Ok(None),
        _ => take_out_blocks(session, entry, &blocks)?,
    };
    let message = "a text that is empty or only white space".to_string();
    Ok(Some(Finding {
        fix,
        ..about(&RULE, session, entry, severity(session, entry, session.format.content.blank), message)
    }))
}

/// What stands in the place of all of a result: of its value, in its list, where Converse wants a block, or inside its text.
fn no_output(at: Span, block: Span) -> Vec<u8> {
    let list_start = Span::new(block.start + 1, block.start + 1);
    if at == block {
        [b"\"", NO_OUTPUT.as_bytes(), b"\""].concat()
    } else if at == list_start {
        [b"{\"text\":\"", NO_OUTPUT.as_bytes(), b"\"}"].concat()
    } else {
        NO_OUTPUT.into()
    }
}

/// Blank texts in results.
fn results(session: &Session<'_>, issues: &[ContentIssue], out: &mut FindingSink<'_>) {
    let of = |issue: &ContentIssue| match issue.kind {
        ContentIssueKind::BlankResult(result, text) => Some((result as usize, text, issue.block)),
        _ => None,
    };
    let mut blanks = issues.iter().filter_map(of).peekable();
    while let Some((result, text, _)) = blanks.peek().copied() {
        let own: Vec<Span> = core::iter::from_fn(|| blanks.next_if(|(other, ..)| *other == result))
            .map(|(_, _, block)| block)
            .collect();
        let found = session.result(result);
        let all = session.transcript.bodies_of(result).len() + found.images as usize;
        let mut ops: Vec<Op> = own.iter().map(|&block| Op::DropBlock { entry: found.entry, block }).collect();
        if own.len() >= all {
            ops[0] = Op::Replace { at: text, with: no_output(text, own[0]) };
        }
        let severity = severity(session, found.entry, session.format.content.blank);
        let message = "a result that is empty or only white space".to_string();
        let fix = Fix::safe(ops);
        out.push(Finding { fix, ..about_result(&RULE, session, result, severity, message) });
    }
}
