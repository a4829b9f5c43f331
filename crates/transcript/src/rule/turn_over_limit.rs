//! L4: results that are together longer than the check allows.

use super::base::{Cover, FindingSink, Help, Limit, Rule, RuleInfo, about};
use super::over_limit::{SOURCE, WHY, over};
use super::oversized_turn::by_message;
use crate::model::finding::Finding;
use crate::session::{Answers, Session};
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "L4",
        name: "turn-over-limit",
        help: Help {
            what: "The results of one assistant message are longer together than --max-turn-chars.",
            why: WHY,
            fix: "`fix --cut-turns` with the same number shortens the largest of them.",
            source: SOURCE,
        },
        wakes: &[],
        limit: Some(Limit { option: "--max-turn-chars", is_set: |budget| budget.turn_chars_max > 0 }),
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.of_messages() { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let limit = session.policy.budget.turn_chars_max;
    if limit == 0 {
        return Ok(());
    }
    for turn in by_message(session).chunk_by(|one, two| one.0 == two.0) {
        let texts = turn.iter().flat_map(|&(_, result)| session.transcript.bodies_of(result));
        let chars = texts.map(|text| text.chars).sum();
        let found = over(session, limit, chars, "results of one turn of", "characters");
        if let Some((severity, message)) = found {
            let about = about(&RULE, session, caller(session, turn[0].1), severity, message);
            out.push(Finding { chars: Some(chars), ..about });
        }
    }
    Ok(())
}

/// The entry of the call that a result answers.
fn caller(session: &Session<'_>, result: usize) -> u32 {
    match session.answers[result] {
        Answers::Call(call) | Answers::Again(call) => session.call(call).entry,
        Answers::Nothing | Answers::Unseen => session.result(result).entry,
    }
}
