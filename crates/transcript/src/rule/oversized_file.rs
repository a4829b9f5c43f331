//! L1: a file that is larger than the check allows.

use super::base::{Cover, FindingSink, Help, Limit, Rule, RuleInfo, about_place};
use super::over_limit::{SOURCE, WHY, over};
use crate::session::Session;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "L1",
        name: "oversized-file",
        help: Help {
            what: "The file is larger than --max-file-size.",
            why: WHY,
            fix: "`fix` shortens what is too long by its own limits; `scan` says how much that saves. A session that stays too large is \
                  better replaced by a new session.",
            source: SOURCE,
        },
        wakes: &[],
        limit: Some(Limit { option: "--max-file-size", is_set: |budget| budget.file_bytes_max > 0 }),
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Reported,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let (limit, bytes) = (session.policy.budget.file_bytes_max, session.transcript.bytes);
    if let Some((severity, message)) = over(session, limit, bytes, "file of", "bytes") {
        out.push(about_place(&RULE, 1, severity, message));
    }
    Ok(())
}
