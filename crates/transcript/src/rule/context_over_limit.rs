//! L5: a context that is larger than the check allows.

use super::base::{Cover, FindingSink, Help, Limit, Rule, RuleInfo, about_place};
use super::over_limit::{SOURCE, WHY, over};
use crate::format::Results;
use crate::session::Session;
use crate::session::tokens::tokens_of;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "L5",
        name: "context-over-limit",
        help: Help {
            what: "What the model would be sent next has more tokens than --max-context-tokens: as many as the provider \
                   counted last, with an estimate of what came or went since; without such a count an estimate.",
            why: WHY,
            fix: "`fix` shortens long results; the agent's own compaction replaces the conversation by a summary.",
            source: SOURCE,
        },
        wakes: &[],
        limit: Some(Limit {
            option: "--max-context-tokens",
            is_set: |budget| budget.context_tokens_max > 0 || budget.context_fits_window,
        }),
        ..RuleInfo::BASE
    },
    cover: |format| if format.results == Results::Unread { Cover::Never } else { Cover::Reported },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let budget = &session.policy.budget;
    if budget.context_tokens_max == 0 && !budget.context_fits_window {
        return Ok(());
    }
    let counted = tokens_of(session)?;
    let limit =
        if budget.context_fits_window { counted.window(session.policy) } else { budget.context_tokens_max };
    let tokens = counted.tokens;
    if let Some((severity, message)) = over(session, limit, tokens, "context of about", "tokens") {
        out.push(about_place(&RULE, 1, severity, message));
    }
    Ok(())
}
