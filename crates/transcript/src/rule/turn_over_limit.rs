//! L4: results that are longer together than the check allows.

use super::over_limit::{SOURCE, WHY, over};
use super::oversized_turn::by_turn;
use super::{Cover, Help, Rule, about};
use crate::finding::Finding;
use crate::format::Format;
use crate::found::Found;
use crate::session::Session;
use spans::source::Fault;

pub(super) struct TurnOverLimit;

impl Rule for TurnOverLimit {
    fn code(&self) -> &'static str {
        "L4"
    }

    fn name(&self) -> &'static str {
        "turn-over-limit"
    }

    fn help(&self) -> Help {
        Help {
            what: "The results that answer one message of the model are longer together than --max-turn-chars.",
            why: WHY,
            fix: "`fix --turn-chars-max` with the same number shortens the largest of them.",
            source: SOURCE,
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.results().of_messages() { Cover::Reported } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
        let limit = session.policy.budget.turn_chars_max;
        if limit == 0 {
            return Ok(());
        }
        for turn in by_turn(session).chunk_by(|one, two| one.0 == two.0) {
            let texts = turn.iter().flat_map(|&(_, result)| session.transcript.bodies_of(result));
            let chars = texts.map(|text| text.chars).sum();
            let found = over(session, limit, chars, "results of one turn of", "characters");
            if let Some((severity, message)) = found {
                let about = about(&TurnOverLimit, session, turn[0].0, severity, message);
                out.push(Finding { chars: Some(chars), ..about });
            }
        }
        Ok(())
    }
}
