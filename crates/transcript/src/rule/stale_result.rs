//! S14: a result that is old enough to be shortened.

use super::base::{Cover, FindingSink, Help, Rule, RuleInfo, about_result, tool_of};
use super::trim::{Measured, Notes, length_max, may_cut};
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Severity};
use crate::model::policy::{CutShape, Depth, Kept, Note, Turns, is_named};
use crate::session::Session;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashSet;
use spans::cut::CutLines;
use spans::cut::{Measure, line_breaks};
use spans::literal::decode;
use spans::marker;
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S14",
        name: "stale-result",
        help: Help {
            what: "A long tool result is several turns old, and the policy does not keep such results whole \
                   (--stale-shorten-turns, --stale-clear-turns, --profile chatcli or agent-max; off by default).",
            why: "The model has read it and moved on, but it is sent again with every request. Most of a long session \
                  is old results.",
            fix: "At the first age head and tail stay, at the second one line that says how long it was and what it \
                  held. Ids, error flag and images stay; so do results of tools that the policy keeps, failures if it \
                  says so, and everything of the newest turn. Rewriting history costs a prompt cache: do it when the \
                  session is idle.",
            source: "ChatCLI microcompact.go; agent-max #38 (context.ts)",
        },
        rewrites_history: true,
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.of_messages() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let stale = &session.policy.stale;
    if stale.shorten_at == 0 && stale.clear_at == 0 {
        return Ok(());
    }
    let ages = ages(session, stale.turns);
    for result in 0..session.transcript.results.len() {
        let Some(age) = ages[session.result(result).entry as usize] else { continue };
        let step = if stale.clear_at > 0 && age >= stale.clear_at {
            AgeStep::Clear
        } else if stale.shorten_at > 0 && age >= stale.shorten_at {
            AgeStep::Shorten
        } else {
            continue;
        };
        if stays(session, result) {
            continue;
        }
        if let Some((chars, fix)) = shortened(session, result, step)? {
            let message = format!("result of {chars} characters, {age} turns old");
            let chars = Some(chars);
            let about = about_result(&RULE, session, result, Severity::Warning, message);
            out.push(Finding { chars, fix, ..about });
        }
    }
    Ok(())
}

/// What is done at an age.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgeStep {
    Shorten,
    Clear,
}

/// For each live entry, how many turns began after it.
fn ages(session: &Session<'_>, turns: Turns) -> Vec<Option<u64>> {
    let (mut begun, mut seen) = (0, HashSet::new());
    let mut before = vec![None; session.transcript.entries.len()];
    for &entry in session.model_order() {
        let found = session.entry(entry);
        begun += u64::from(match (found.kind, turns) {
            // Several entries may form one message.
            (Kind::Message(Role::Assistant), Turns::Assistant) => seen.insert(session.turn(entry)),
            (Kind::Message(Role::User), Turns::User) => !found.injected,
            _ => false,
        });
        before[entry as usize] = Some(begun);
    }
    before.into_iter().map(|before| before.map(|before| begun - before)).collect()
}

/// Whether the result never becomes stale.
fn stays(session: &Session<'_>, result: usize) -> bool {
    let stale = &session.policy.stale;
    let tool = session.transcript.id_text(tool_of(session, result));
    (stale.errors_keep && session.result(result).error)
        || is_named(&stale.tools_keep, tool)
        || !may_cut(session, result)
}

/// The result's length, and the fix that shortens it; `None` if it is as short as it should be.
fn shortened(session: &Session<'_>, result: usize, step: AgeStep) -> Result<Option<(u64, Fix)>, Fault> {
    let stale = &session.policy.stale;
    let texts = session.transcript.bodies_of(result);
    let both = stale.head_chars.saturating_add(stale.tail_chars);
    let (head, tail, limit) = match step {
        AgeStep::Shorten => (stale.head_chars, stale.tail_chars, both.saturating_add(stale.slack_chars)),
        AgeStep::Clear => (stale.clear_head_chars, 0, stale.clear_head_chars),
    };
    // A result shorter than what an earlier step leaves was always short, or is done.
    let least = if step == AgeStep::Clear && stale.shorten_at > 0 { both / 2 } else { stale.chars_min };
    if length_max(session, texts) <= limit.max(least.min(stale.chars_min).saturating_sub(1)) {
        return Ok(None);
    }
    // A text is done if it is no longer than the limit, with one marker. Other texts are measured exactly up to twice
    // the number given here, and estimated above that.
    let text = Measured::all(session, texts, stale.chars_min.max(limit) / 2)?;
    // Texts that were cut before count with their original length.
    let original: u64 = text.texts().iter().map(Measure::original).sum();
    if text.kept() <= limit || original < stale.chars_min {
        return Ok(None);
    }
    let shape = CutShape { kept: Kept::Sizes { head, tail }, lines: CutLines::Anywhere };
    let (shape, notes) = match step {
        AgeStep::Shorten => (CutShape { lines: stale.lines, ..shape }, Vec::new()),
        AgeStep::Clear => (shape, notes(session, result, &text)?),
    };
    let fix = text.trim(session, shape, u64::MAX, Notes::Each(&notes))?;
    Ok((!fix.ops.is_empty()).then_some((text.kept(), fix)))
}

/// The notes in the markers, one per text.
fn notes(session: &Session<'_>, result: usize, text: &Measured) -> Result<Vec<String>, Fault> {
    let mut notes = Vec::new();
    for text in text.texts() {
        notes.push(match session.policy.stale.note {
            Note::Tool => {
                let name = session.transcript.id_text(tool_of(session, result));
                String::from_utf8_lossy(name).into_owned()
            }
            Note::Kind => {
                // A look only needs their rough length, unless a marker may be longer than the text.
                let short = text.kept() <= marker::BYTES_MAX as u64 * text.unit().per_char_max();
                if session.depth == Depth::Sizes && !short {
                    "100 lines, text".into()
                } else {
                    lines_and_kind(session, text)?
                }
            }
        });
    }
    Ok(notes)
}

fn lines_and_kind(session: &Session<'_>, text: &Measure) -> Result<String, Fault> {
    let kind = kind(&beginning(session, text)?);
    // Lines removed by an earlier cut cannot be counted any more.
    if text.own.is_some() {
        return Ok(kind.into());
    }
    let lines = line_breaks(session.source, text.span)? + 1;
    let noun = if lines == 1 { "line" } else { "lines" };
    Ok(format!("{lines} {noun}, {kind}"))
}

/// How much of a text is read to classify it, decoded and raw.
const KIND_BYTES: usize = 200;
const KIND_RAW_BYTES: u64 = 1024;

/// The beginning of a text, up to our marker.
fn beginning(session: &Session<'_>, text: &Measure) -> Result<Vec<u8>, Fault> {
    let end = text.own.as_ref().map_or(text.span.end, |found| found.span.start);
    let raw =
        read_span(session.source, Span::new(text.span.start, end.min(text.span.start + KIND_RAW_BYTES)))?;
    Ok(decode(&raw))
}

/// ChatCLI's name for the kind of a text that begins like this.
fn kind(text: &[u8]) -> &'static str {
    let trimmed = text.trim_ascii_start();
    let first = &text[..text.len().min(KIND_BYTES)];
    let holds = |part: &str| memchr::memmem::find(first, part.as_bytes()).is_some();
    match trimmed {
        [b'{' | b'[', ..] => "JSON",
        _ if holds("package ") => "Go source",
        _ if holds("import ") => "source code",
        _ if holds("def ") => "Python source",
        _ if holds("function ") => "JavaScript source",
        _ if trimmed.starts_with(b"diff ") || trimmed.starts_with(b"--- ") => "diff",
        _ if trimmed.starts_with(b"commit ") => "git log",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::kind;

    /// The order of ChatCLI's `detectContentType`.
    #[test]
    fn kinds_are_tried_in_chatclis_order() {
        for (text, expected) in [
            ("  {\"a\":1}", "JSON"),
            ("[1]", "JSON"),
            ("// x\npackage main\nimport \"fmt\"", "Go source"),
            ("import os\ndef f(): pass", "source code"),
            ("def f(): pass", "Python source"),
            ("function f() {}", "JavaScript source"),
            ("diff --git a b", "diff"),
            ("--- a\n+++ b", "diff"),
            ("\ncommit 3f9a1c", "git log"),
            ("a commit 3f9a1c", "text"),
            ("", "text"),
            (&("x".repeat(195) + "package main"), "text"),
        ] {
            assert_eq!(kind(text.as_bytes()), expected, "{text}");
        }
    }
}
