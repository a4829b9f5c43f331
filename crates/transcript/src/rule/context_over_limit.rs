//! L5: a context that is larger than the check allows.

use super::crowded_window::{TOKEN_CHARS, weight, whole};
use super::over_limit::{SOURCE, WHY, over};
use super::{Cover, Help, Rule, about_place};
use crate::format::{Format, Results};
use crate::found::Found;
use crate::session::Session;
use spans::source::Fault;

pub(super) struct ContextOverLimit;

/// What the model would be sent next, in tokens, as far as characters tell.
pub(crate) fn context_tokens(session: &Session<'_>) -> Result<u64, Fault> {
    Ok(weight(session, |result| Ok(whole(session, result)))?.div_ceil(TOKEN_CHARS))
}

impl Rule for ContextOverLimit {
    fn code(&self) -> &'static str {
        "L5"
    }

    fn name(&self) -> &'static str {
        "context-over-limit"
    }

    fn help(&self) -> Help {
        Help {
            what: "What the model would be sent next is estimated at more tokens than --max-context-tokens: four characters are a token, \
                   an image is 2,000.",
            why: WHY,
            fix: "`fix` shortens long results; the agent's own compaction replaces the conversation by a summary.",
            source: SOURCE,
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.results() == Results::Unread { Cover::Never } else { Cover::Reported }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let limit = session.policy.budget.context_tokens_max;
        if limit == 0 {
            return Ok(());
        }
        let tokens = context_tokens(session)?;
        if let Some((severity, message)) = over(session, limit, tokens, "context of about", "tokens") {
            out.push(about_place(&ContextOverLimit, 1, severity, message));
        }
        Ok(())
    }
}
