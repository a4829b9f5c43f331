//! B1: an incomplete last line.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about_damaged_line, about_line};
use crate::model::entry::DamageKind;
use crate::model::finding::{Fix, Op, Severity};
use crate::read::salvage::DamageCause;
use crate::session::Session;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use spans::source::{Fault, Span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B1",
        name: "torn-line",
        help: Help {
            what: "The file does not end with a line break: the last line is torn, or whole but not terminated.",
            why: "The next line that the agent appends is glued to it, and both are lost: \"Unexpected end of JSON \
                  input\", sessions that cannot be found.",
            fix: "A whole line gets its line break. A torn one is taken out (it stays in the copy of the original), but for \
                  whole records in it. Never while the file is still growing.",
            source: "claude-code #53821, #52387; OpenClaw #100644",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        recovers: true,
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Fixed,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for damage in session.transcript.damage.iter().filter(|damage| damage.kind == DamageKind::Unterminated) {
        let end = Span::new(damage.span.end, damage.span.end);
        let fix = Fix::safe(vec![Op::Replace { at: end, with: b"\n".to_vec() }]);
        let message = "no line break at the end of the file".to_string();
        out.push(about_line(&RULE, damage, Severity::Note, message, fix));
    }
    for damaged in session.damaged_lines()?.iter().filter(|damaged| damaged.is_torn()) {
        let bytes = damaged.damage.span.len();
        let message = match damaged.records {
            0 => format!("the last line is torn after {bytes} bytes"),
            _ => format!("the last line of {bytes} bytes is torn, but holds whole records"),
        };
        let mut finding = about_damaged_line(&RULE, damaged, message);
        if damaged.cause == DamageCause::Unknown {
            finding.fix = Fix::NONE;
        }
        out.push(finding);
    }
    Ok(())
}
