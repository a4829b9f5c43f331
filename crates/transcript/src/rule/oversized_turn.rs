//! S2: results that are too long together.

use super::trim::Measured;
use super::{Help, Rule, about_result, tool_of};
use crate::entry::{Id, Text};
use crate::finding::{Finding, Severity};
use crate::marker;
use crate::policy::Policy;
use crate::session::{Answers, Session};
use crate::source::Fault;
use alloc::format;
use alloc::vec::Vec;
use hashbrown::HashMap;

pub(crate) struct OversizedTurn;

impl Rule for OversizedTurn {
    fn code(&self) -> &'static str {
        "S2"
    }

    fn name(&self) -> &'static str {
        "oversized-turn"
    }

    fn help(&self) -> Help {
        Help {
            what: "The results that answer one message of the model are too long together (200,000 characters).",
            why: "Each is below its own limit, so nothing stops them; the context jumps by more than a summariser can \
                  take in one step.",
            fix: "The largest results of the turn are shortened, one after the other, until the sum fits; none below \
                  2,000 characters.",
            source: "ChatCLI tool_result_budget.go (sum, largest first); OpenClaw #15409 (floor)",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let budget = session.policy.turn_chars_max;
        if budget == 0 {
            return Ok(());
        }
        // Turn by turn, in the order of the first call of each.
        let mut first: HashMap<Id, u32> = HashMap::new();
        let mut members: Vec<(u32, usize)> = Vec::new();
        for (index, answers) in session.answers.iter().enumerate() {
            // A result too many counts as well, or taking out another one could bring this finding up.
            if let Answers::Call(call) | Answers::Again(call) = *answers {
                let entry = session.call(call).entry;
                // Without a group each entry is a turn of its own.
                let group = session.entry(entry).group;
                members.push((group.map_or(entry, |group| *first.entry(group).or_insert(entry)), index));
            }
        }
        members.sort_unstable();
        for turn in members.chunk_by(|one, two| one.0 == two.0) {
            check_turn(session, turn, budget, out)?;
        }
        Ok(())
    }
}

impl OversizedTurn {
    /// The most that a result can come to.
    pub(crate) fn length_max(session: &Session<'_>, result: usize) -> u64 {
        Self::length_below(session.policy, own_limit(session, result), session.transcript.bodies_of(result))
    }

    /// The most that texts can come to, told without reading them: never more characters than bytes, and where their
    /// own limit is kept, no more than that (twice that if another tool cut it) and what a marker would outweigh.
    pub(crate) fn length_below(policy: &Policy, own: Option<u64>, texts: &[Text]) -> u64 {
        let bytes = texts.iter().map(|text| text.inner.len()).sum();
        let outweighed = marker::BYTES_MAX as u64 * policy.unit.per_char_max() * texts.len() as u64;
        own.map_or(bytes, |limit| limit.saturating_mul(2).saturating_add(outweighed).min(bytes))
    }
}

/// The limit that S1 keeps for a result.
fn own_limit(session: &Session<'_>, result: usize) -> Option<u64> {
    let limit = session.policy.limit_for(session.transcript.id_text(tool_of(session, result)));
    limit.filter(|_| session.policy.selection.includes("S1"))
}

/// A result of the turn: its length once its own limit is kept.
struct Member {
    index: usize,
    text: Measured,
    chars: u64,
}

fn check_turn(
    session: &Session<'_>,
    turn: &[(u32, usize)],
    budget: u64,
    out: &mut Vec<Finding>,
) -> Result<(), Fault> {
    if turn.iter().map(|&(_, result)| OversizedTurn::length_max(session, result)).sum::<u64>() <= budget {
        return Ok(());
    }
    let mut members = Vec::new();
    for &(_, index) in turn {
        let tool = session.transcript.id_text(tool_of(session, index));
        let own = own_limit(session, index);
        let texts = session.transcript.bodies_of(index);
        let text = Measured::all(session, texts, own.unwrap_or(u64::MAX))?;
        let chars = match own {
            Some(limit) if text.exceeds(session, limit)? => text.left(session, limit),
            _ => text.kept(),
        };
        members.push((session.policy.limit_for(tool).is_some(), Member { index, text, chars }));
    }
    let mut sum: u64 = members.iter().map(|(_, member)| member.chars).sum();
    let whole = sum;
    let mut victims: Vec<Member> =
        members.into_iter().filter(|(may, _)| *may).map(|(_, member)| member).collect();
    victims.sort_by_key(|member| (core::cmp::Reverse(member.chars), member.index));
    for Member { index, text, chars } in victims {
        let wanted = chars.saturating_sub(sum.saturating_sub(budget));
        // What cannot be shortened any more is at the cost of what can.
        let more = text.left(session, wanted).saturating_sub(wanted);
        let target = session.policy.turn_floor_chars.max(wanted.saturating_sub(more));
        let left = text.left(session, target);
        if sum <= budget || target >= chars || left >= chars {
            continue;
        }
        sum = sum - chars + left;
        let message = format!("results of one turn are {whole} characters together (limit {budget})");
        out.push(Finding {
            chars: Some(chars),
            fix: text.trim(session, target)?,
            ..about_result(&OversizedTurn, session, index, Severity::Warning, message)
        });
    }
    if sum > budget
        && let Some(&(_, index)) = turn.first()
    {
        let message = format!(
            "results of one turn stay {sum} characters together (limit {budget}): all at their floor"
        );
        out.push(Finding { ..about_result(&OversizedTurn, session, index, Severity::Warning, message) });
    }
    Ok(())
}
