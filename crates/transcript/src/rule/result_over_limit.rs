//! L3: a result that is longer than the check allows.

use super::over_limit::{SOURCE, WHY, over};
use super::{Cover, Help, Rule, about_result};
use crate::finding::Finding;
use crate::format::{Format, Results};
use crate::found::Found;
use crate::session::Session;
use spans::source::Fault;

pub(super) struct ResultOverLimit;

impl Rule for ResultOverLimit {
    fn code(&self) -> &'static str {
        "L3"
    }

    fn name(&self) -> &'static str {
        "result-over-limit"
    }

    fn help(&self) -> Help {
        Help {
            what: "The text of a tool result is longer than --max-result-chars, markers included, whatever the tool.",
            why: WHY,
            fix: "`fix --result-chars-max` with the same number shortens it.",
            source: SOURCE,
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.results() == Results::Unread { Cover::Never } else { Cover::Reported }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let limit = session.policy.budget.result_chars_max;
        for result in 0..session.transcript.results.len() {
            let chars = session.transcript.bodies_of(result).iter().map(|text| text.chars).sum();
            if let Some((severity, message)) = over(session, limit, chars, "result of", "characters") {
                let about = about_result(&ResultOverLimit, session, result, severity, message);
                out.push(Finding { chars: Some(chars), ..about });
            }
        }
        Ok(())
    }
}
