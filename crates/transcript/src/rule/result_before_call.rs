//! P8: a result before its call.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo};
use super::displaced_result::{self, Displacement, report};
use crate::format::Format;
use crate::session::{Session, traits};
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P8",
        name: "result-before-call",
        help: Help {
            what: "A result comes before the call that it answers: entries were sorted by time, or written by two threads.",
            why: "To APIs it is a result without a call and a call without a result: \"unexpected \
                  `tool_use_id` found in `tool_result` blocks\", \"`tool_use` ids were found without `tool_result` blocks\".",
            fix: "The result moves to right after its call, and links are adapted. Nothing is removed or invented. \
                  Claude Code and Codex join pairs by id, whichever comes first.",
            source: "factory-factory #2236, codex #33044",
        },
        groups: &[Group::Pairing],
        recovers: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    if traits(format.shape).pairs_anywhere { Cover::Never } else { displaced_result::cover(format) }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    report(&RULE, session, Displacement::BeforeCall, "the result comes before its call", out);
    Ok(())
}
