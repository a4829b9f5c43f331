//! B4: bytes that are not UTF-8, and byte order marks.

use super::{Help, Rule, about_line};
use crate::entry::{Damage, DamageKind};
use crate::finding::{Finding, Fix, Severity};
use crate::scan;
use crate::session::Session;
use crate::source::Fault;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
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
            what: "A line holds bytes that are not UTF-8, or the file or a line begins with a byte order mark.",
            why: "Some readers replace such bytes, others refuse the whole file: \"stream did not contain valid UTF-8\".",
            fix: "Report only; the bytes stay as they are, also inside texts that are shortened.",
            source: "codex #36802, #28139",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        for damage in &session.transcript.damage {
            match damage.kind {
                DamageKind::NotUtf8(at) => not_utf8(session, damage, at, out)?,
                DamageKind::Bom => {
                    out.push(finding(damage, "byte order mark before the first line".to_string()));
                }
                // Such a line may come to be the first.
                DamageKind::NotJson(_) if damage.span.start > 0 && begins_with_bom(session, damage)? => {
                    out.push(finding(damage, "byte order mark at the beginning of a line".to_string()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn finding(damage: &Damage, message: String) -> Finding {
    about_line(&ForeignEncoding, damage, Severity::Warning, message, Fix::NONE)
}

fn begins_with_bom(session: &Session<'_>, damage: &Damage) -> Result<bool, Fault> {
    let mut bytes = [0; scan::BOM.len()];
    let got = session.source.read(damage.span.start, &mut bytes)?;
    Ok(&bytes[..got] == scan::BOM)
}

/// Each object of a line counts: they may come to stand on lines of their own.
fn not_utf8(session: &Session<'_>, damage: &Damage, first: u64, out: &mut Vec<Finding>) -> Result<(), Fault> {
    let entries = &session.transcript.entries;
    let from = entries.partition_point(|entry| entry.line < damage.line);
    let on_line = entries[from..].iter().take_while(|entry| entry.line == damage.line);
    let mut places = vec![first];
    for entry in on_line.filter(|entry| entry.span.start > first) {
        places.extend(scan::not_utf8(session.source, entry.span)?);
    }
    out.extend(places.into_iter().map(|at| finding(damage, format!("not UTF-8 at byte {at}"))));
    Ok(())
}
