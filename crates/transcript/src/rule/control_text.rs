//! B11: escaped NUL characters in texts.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use super::half_pair;
use crate::format::{Format, Results};
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Guard, Op, Severity};
use crate::read::salvage::LINE_BYTES_MAX;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B11",
        name: "escaped-nul",
        help: Help {
            what: "A text holds `\\u0000`. That is legal JSON.",
            why: "Databases, search indices and some request paths refuse it: \"unexpected end of data\".",
            fix: "Only in tool results, and only with --allow B11: it becomes U+2400, the picture of it.",
            source: "codex #24369; claude-code #94408; garrytan/gbrain #4392",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    match format.results {
        Results::Lines | Results::Blocks => Cover::Fixed,
        _ => Cover::Reported,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for (index, entry) in session.transcript.unusual().filter(|(_, entry)| entry.odd.nul()) {
        // User texts and call arguments are never changed.
        let ours = entry.kind == Kind::Message(Role::Tool) && entry.span.len() <= LINE_BYTES_MAX;
        let fix =
            if ours { Fix::guarded(Guard::Respells, pictures(session, entry.span)?) } else { Fix::NONE };
        let message = "an escaped NUL character in a text".to_string();
        out.push(Finding { fix, ..about(&RULE, session, index, Severity::Note, message) });
    }
    Ok(())
}

fn pictures(session: &Session<'_>, span: Span) -> Result<Vec<Op>, Fault> {
    let bytes = read_span(session.source, span)?;
    let zeros = half_pair::unicode_escapes(&bytes).filter(|(_, code)| *code == 0);
    let picture = |(at, _)| {
        let start = span.start + at as u64;
        Op::Replace { at: Span::new(start, start + 6), with: b"\\u2400".to_vec() }
    };
    Ok(zeros.map(picture).collect())
}
