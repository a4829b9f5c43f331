//! B5: half a surrogate pair.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use crate::model::finding::{Finding, Fix, Guard, Op, Severity};
use crate::read::salvage::LINE_BYTES_MAX;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B5",
        name: "half-surrogate-pair",
        help: Help {
            what: "A text holds half of an escaped surrogate pair: something cut it in the middle of a character.",
            why: "No encoding can express it. APIs refuse the request: \"The request body is not valid JSON: no low \
                  surrogate in string\"; summarising fails as well. Some agents clean texts before they send them.",
            fix: "The half becomes U+FFFD, the replacement character. Nothing else in the text changes. Guarded, \
                  because it may be in user text or in the arguments of a call.",
            source: "claude-code #56064, #68325, #69927, #86560",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Fixed,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for (index, entry) in session.transcript.unusual().filter(|(_, entry)| entry.odd.half_pairs()) {
        let sent = session.in_context(index) && session.shape.sent_as_written;
        let severity = if sent { Severity::Error } else { Severity::Note };
        let fix = if entry.span.len() > LINE_BYTES_MAX {
            Fix::NONE
        } else {
            Fix::guarded(Guard::Respells, halves(session, entry.span)?)
        };
        let message = "half of a surrogate pair in a text".to_string();
        out.push(Finding { fix, ..about(&RULE, session, index, severity, message) });
    }
    Ok(())
}

fn halves(session: &Session<'_>, span: Span) -> Result<Vec<Op>, Fault> {
    let bytes = read_span(session.source, span)?;
    let mut ops = Vec::new();
    let mut first: Option<usize> = None;
    let mut fill = |at: usize| {
        let start = span.start + at as u64;
        ops.push(Op::Replace { at: Span::new(start, start + 6), with: b"\\ufffd".to_vec() });
    };
    for (at, code) in unicode_escapes(&bytes) {
        match code {
            0xdc00..0xe000 if first.is_some_and(|first| first + 6 == at) => first = None,
            0xd800..0xe000 => {
                first.take().into_iter().for_each(&mut fill);
                if code < 0xdc00 {
                    first = Some(at);
                } else {
                    fill(at);
                }
            }
            _ => first.take().into_iter().for_each(&mut fill),
        }
    }
    first.into_iter().for_each(&mut fill);
    Ok(ops)
}

/// The `\\uXXXX` escapes of an object: their offsets and code units.
pub(super) fn unicode_escapes(bytes: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    let mut at = 0;
    core::iter::from_fn(move || {
        loop {
            at += memchr::memchr(b'\\', bytes.get(at..)?)?;
            let escape = &bytes[at..];
            if escape.get(1) != Some(&b'u') {
                at += 2;
                continue;
            }
            let digits = core::str::from_utf8(escape.get(2..6)?).ok()?;
            let found = (at, u32::from_str_radix(digits, 16).ok()?);
            at += 6;
            return Some(found);
        }
    })
}
