//! B3: NUL bytes between or inside records.

use super::base::{Cover, Found, Group, Help, Rule, RuleInfo, Stage, about_damaged_line};
use crate::format::{Counted, Format};
use crate::read::salvage::Cause;
use crate::session::Session;
use alloc::format;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B3",
        name: "nul-bytes",
        help: Help {
            what: "There are NUL bytes before a record, after it, inside it, or in place of one.",
            why: "A file system puts them where nothing was written before the power went. The line cannot be read, and with it goes \
                  all that hangs on it; sessions vanish from lists.",
            fix: "The NUL bytes are taken out; what is whole without them stays. `\\u0000` in a text is another matter (B11).",
            source: "claude-code #76059, #49876; OpenClaw #119969",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    if let Some(Counted::Lines(_)) = format.counted { Cover::Reported } else { Cover::Fixed }
}

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    for damaged in
        session.damaged_lines()?.iter().filter(|damaged| damaged.cause == Cause::Nul && !damaged.is_torn())
    {
        let message = format!("NUL bytes in a line of {} bytes", damaged.damage.span.len());
        out.push(about_damaged_line(&RULE, damaged, message));
    }
    Ok(())
}
