//! S5: long copies of results that the model never sees.

use super::base::{Cover, Feature, FindingSink, Help, Rule, RuleInfo, about};
use super::trim::{Measured, Notes};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::model::policy::{CutShape, Depth};
use crate::session::Session;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use spans::cut::measure;
use spans::marker;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S5",
        name: "oversized-side-copy",
        help: Help {
            what: "A copy of a result that is kept for the screen only (`toolUseResult` of Claude Code, `details` of \
                   pi) holds strings longer than the policy allows (8,000 characters).",
            why: "The model never sees it, but it is 38 % of the bytes of real Claude Code files and 19 % of pi's, and \
                  agents read it on every start.",
            fix: "Long strings are shortened one by one; keys, types and everything else stay, because screens and \
                  hooks read them. A string that says how to get it back replaces the terminal output of Gemini CLI, which is \
                  a list of lines and colours. Image data is not touched. Always safe: nothing the model sees changes.",
            source: "claude-code #83206, #85179; OpenClaw bounds its persisted details by 8,192 bytes",
        },
        model_sees: false,
        entry_decides: true,
        wakes: &[Feature::LongSide],
        ..RuleInfo::BASE
    },
    cover: |format| if format.copies_results { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let limit = session.policy.side_chars_max;
    if limit == 0 {
        return Ok(());
    }
    for entry in 0..session.transcript.entries.len() as u32 {
        let (mut ops, mut chars, mut strings) = (Vec::new(), 0, 0);
        for side in session.transcript.sides_of(entry) {
            let Some(text) = Measured::new(session, &[*side], limit)? else { continue };
            if text.kept() <= limit {
                continue;
            }
            chars += text.kept();
            strings += 1;
            ops.extend(text.trim(session, CutShape::default(), limit, Notes::None)?.ops);
        }
        if strings > 0 {
            let noun = if strings == 1 { "string" } else { "strings" };
            let message = format!("{strings} long {noun} of {chars} characters that the model never sees");
            out.push(Finding {
                chars: Some(chars),
                fix: if ops.is_empty() { Fix::NONE } else { Fix::safe(ops) },
                ..about(&RULE, session, entry, Severity::Note, message)
            });
        }
        for list in session.transcript.side_lists_of(entry) {
            out.extend(list_of_texts(session, entry, list.at, limit)?);
        }
    }
    Ok(())
}

/// A copy that is a list of short texts: one marker replaces the list.
fn list_of_texts(session: &Session<'_>, entry: u32, at: Span, limit: u64) -> Result<Option<Finding>, Fault> {
    if at.len() <= limit {
        return Ok(None);
    }
    let list = measure(session.source, at, None, session.policy.unit, session.depth == Depth::Plan)?;
    if list.units <= limit {
        return Ok(None);
    }
    let marker = marker::text(list.units, list.units, &list.id, session.policy.spill.as_ref(), "");
    let ops = vec![Op::Keep(at), Op::Replace { at, with: format!("\"{marker}\"").into_bytes() }];
    let message = format!("a list of {} characters that the model never sees", list.units);
    Ok(Some(Finding {
        chars: Some(list.units),
        fix: Fix::safe(ops),
        ..about(&RULE, session, entry, Severity::Note, message)
    }))
}
