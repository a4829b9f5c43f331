//! L3: a result that is longer than the check allows.

use super::base::{Cover, FindingSink, Help, Limit, Rule, RuleInfo, about_result};
use super::over_limit::{SOURCE, WHY, over};
use crate::format::Results;
use crate::model::finding::Finding;
use crate::session::Session;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "L3",
        name: "result-over-limit",
        help: Help {
            what: "The text of a tool result is longer than --max-result-chars, markers included, whatever the tool.",
            why: WHY,
            fix: "`fix --cut-results` with the same number shortens it.",
            source: SOURCE,
        },
        wakes: &[],
        limit: Some(Limit { option: "--max-result-chars", is_set: |budget| budget.result_chars_max > 0 }),
        ..RuleInfo::BASE
    },
    cover: |format| if format.results == Results::Unread { Cover::Never } else { Cover::Reported },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let limit = session.policy.budget.result_chars_max;
    for result in 0..session.transcript.results.len() {
        let chars = session.transcript.bodies_of(result).iter().map(|text| text.chars).sum();
        if let Some((severity, message)) = over(session, limit, chars, "result of", "characters") {
            let about = about_result(&RULE, session, result, severity, message);
            out.push(Finding { chars: Some(chars), ..about });
        }
    }
    Ok(())
}
