//! B6: characters in strings that some readers take for line breaks.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about_line};
use crate::model::entry::DamageKind;
use crate::model::finding::{Finding, Fix, Guard, Op, Severity};
use crate::read::salvage::LINE_BYTES_MAX;
use crate::read::scan::is_separator;
use crate::session::Session;
use alloc::format;
use alloc::vec::Vec;
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B6",
        name: "line-separator",
        help: Help {
            what: "A text holds a raw U+2028 or U+2029. That is legal JSON.",
            why: "Readers that split lines as Unicode or JavaScript once did cut the record in two: untitled sessions, \"Session file is \
                  corrupted\".",
            fix: "Only with --allow B6: they are written as escapes, which say the same.",
            source: "copilot-cli #2012; claude-code #27472; nodejs/node #62785",
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
        let DamageKind::Separators(at) = damage.kind else { continue };
        let ops =
            if damage.span.len() > LINE_BYTES_MAX { Vec::new() } else { escapes(session, damage.span)? };
        let fix = if ops.is_empty() { Fix::NONE } else { Fix::guarded(Guard::Respells, ops) };
        let message = format!("a raw line separator at byte {at}");
        let found = about_line(&RULE, damage, Severity::Note, message, fix);
        out.push(Finding { at, ..found });
    }
    Ok(())
}

fn escapes(session: &Session<'_>, line: Span) -> Result<Vec<Op>, Fault> {
    let bytes = read_span(session.source, line)?;
    let places = memchr::memchr_iter(0xe2, &bytes).filter(|&at| is_separator(&bytes[at..]));
    let escape = |at: usize| {
        let start = line.start + at as u64;
        let with = format!("\\u202{:x}", bytes[at + 2] & 0xf).into_bytes();
        Op::Replace { at: Span::new(start, start + 3), with }
    };
    Ok(places.map(escape).collect())
}
