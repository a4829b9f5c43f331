//! B3: NUL bytes between or inside records.

use super::base::{Cover, Found, Group, Help, Rule, RuleInfo, Stage, about_wreck};
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
            what: "NUL bytes stand in front of a record, behind it, inside it, or in place of one.",
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
    for wreck in session.wrecks()?.iter().filter(|wreck| wreck.cause == Cause::Nul && !wreck.is_torn()) {
        let message = format!("NUL bytes in a line of {} bytes", wreck.damage.span.len());
        out.push(about_wreck(&RULE, wreck, message));
    }
    Ok(())
}
