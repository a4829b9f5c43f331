//! B7: byte order marks.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about_damaged_line, about_line};
use crate::model::entry::DamageKind;
use crate::model::finding::{Fix, Op, Severity};
use crate::read::salvage::DamageCause;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B7",
        name: "byte-order-mark",
        help: Help {
            what: "The file or a line begins with a byte order mark.",
            why: "`JSON.parse` refuses the line, and the first one is the header: some agents then find \
                  no session, and one has wiped the file. Carriage returns before line breaks are harmless and stay.",
            fix: "The mark is taken out.",
            source: "codex #28139; claude-code #9906; OpenClaw #89037",
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
    for damage in session.transcript.damage.iter().filter(|damage| damage.kind == DamageKind::Bom) {
        let fix = Fix::safe(vec![Op::Replace { at: damage.span, with: Vec::new() }]);
        let message = "byte order mark before the first line".to_string();
        out.push(about_line(&RULE, damage, Severity::Warning, message, fix));
    }
    for damaged in session
        .damaged_lines()?
        .iter()
        .filter(|damaged| damaged.cause == DamageCause::Bom && !damaged.is_torn())
    {
        let message = "byte order mark at the beginning of a line".to_string();
        out.push(about_damaged_line(&RULE, damaged, message));
    }
    Ok(())
}
