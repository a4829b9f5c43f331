//! B4: bytes that are not UTF-8, and byte order marks.

use super::{Help, Rule, about_line};
use crate::entry::DamageKind;
use crate::finding::{Finding, Fix, Severity};
use crate::session::Session;
use crate::source::Fault;
use alloc::format;
use alloc::string::ToString;
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
            what: "A line holds bytes that are not UTF-8, or the file begins with a byte order mark.",
            why: "Some readers replace such bytes, others refuse the whole file: \"stream did not contain valid UTF-8\".",
            fix: "Report only; the bytes stay as they are, also inside texts that are shortened.",
            source: "codex #36802, #28139",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        for damage in &session.transcript.damage {
            let message = match damage.kind {
                DamageKind::NotUtf8(at) => format!("not UTF-8 at byte {at}"),
                DamageKind::Bom => "byte order mark before the first line".to_string(),
                _ => continue,
            };
            out.push(about_line(&ForeignEncoding, damage, Severity::Warning, message, Fix::NONE));
        }
        Ok(())
    }
}
