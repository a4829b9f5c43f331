//! B4: bytes that are not UTF-8.

use super::{Help, Rule, Stage, about_line};
use crate::entry::DamageKind;
use crate::finding::{Finding, Fix, Op, Severity};
use crate::salvage::LINE_BYTES_MAX;
use crate::session::Session;
use crate::source::{Fault, Span, read_span};
use alloc::format;
use alloc::vec::Vec;

pub(super) struct ForeignEncoding;

impl Rule for ForeignEncoding {
    fn code(&self) -> &'static str {
        "B4"
    }

    fn name(&self) -> &'static str {
        "foreign-encoding"
    }

    fn help(&self) -> Help {
        Help {
            what: "A line holds bytes that are not UTF-8.",
            why: "Some readers replace such bytes, others refuse the whole file: \"stream did not contain valid UTF-8\".",
            fix: "Each becomes U+FFFD, as which JavaScript and Python read it anyway.",
            source: "codex #36802, #28139",
        }
    }

    fn stage(&self) -> Stage {
        Stage::Bytes
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        for damage in &session.transcript.damage {
            let DamageKind::NotUtf8(at) = damage.kind else { continue };
            let long = damage.span.len() > LINE_BYTES_MAX;
            let fix = if long { Fix::NONE } else { Fix::safe(replaced(session, damage.span)?) };
            let message = format!("not UTF-8 at byte {at}");
            out.push(about_line(&ForeignEncoding, damage, Severity::Warning, message, fix));
        }
        Ok(())
    }
}

/// U+FFFD for each sequence, as the Unicode standard recommends.
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
