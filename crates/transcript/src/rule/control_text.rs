//! B11: escaped NUL characters in texts.

use super::{Cover, Help, Rule, Stage, about, half_pair};
use crate::entry::{Kind, Role};
use crate::finding::{Finding, Fix, Guard, Op, Severity};
use crate::format::{Format, Results};
use crate::found::Found;
use crate::salvage::LINE_BYTES_MAX;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::source::{Fault, Span, read_span};

pub(super) struct ControlText;

impl Rule for ControlText {
    fn code(&self) -> &'static str {
        "B11"
    }

    fn name(&self) -> &'static str {
        "escaped-nul"
    }

    fn help(&self) -> Help {
        Help {
            what: "A text holds `\\u0000`. That is legal JSON.",
            why: "Databases, search indices and some request paths refuse it: \"unexpected end of data\".",
            fix: "Only in tool results, and only with --allow B11: it becomes U+2400, the picture of it.",
            source: "codex #24369; claude-code #94408; garrytan/gbrain #4392",
        }
    }

    fn stage(&self) -> Stage {
        Stage::Bytes
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        match format.results() {
            Results::Lines | Results::Blocks => Cover::Fixed,
            _ => Cover::Reported,
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        for (index, entry) in session.transcript.unusual().filter(|(_, entry)| entry.odd.nul) {
            // What persons said and what tools were asked stays as it is.
            let ours = entry.kind == Kind::Message(Role::Tool) && entry.span.len() <= LINE_BYTES_MAX;
            let fix =
                if ours { Fix::guarded(Guard::Respells, pictures(session, entry.span)?) } else { Fix::NONE };
            let message = "an escaped NUL character in a text".to_string();
            out.push(Finding { fix, ..about(&ControlText, session, index, Severity::Note, message) });
        }
        Ok(())
    }
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
