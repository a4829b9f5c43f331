//! B3: NUL bytes between or inside records.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about_damaged_line};
use crate::read::salvage::DamageCause;
use crate::session::Session;
use alloc::format;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B3",
        name: "nul-bytes",
        help: Help {
            what: "There are NUL bytes before a record, after it, inside it, or in place of one.",
            why: "File systems leave them where nothing was written before a power cut. The line cannot be read, and \
                  everything below it in the tree is lost with it; sessions disappear from lists.",
            fix: "The NUL bytes are removed; records that are whole without them stay. `\\u0000` in a text is B11.",
            source: "claude-code #76059, #49876; OpenClaw #119969",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Fixed,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for damaged in session
        .damaged_lines()?
        .iter()
        .filter(|damaged| damaged.cause == DamageCause::Nul && !damaged.is_torn())
    {
        let message = format!("NUL bytes in a line of {} bytes", damaged.damage.span.len());
        out.push(about_damaged_line(&RULE, damaged, message));
    }
    Ok(())
}
