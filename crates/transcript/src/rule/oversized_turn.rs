//! S2: results that are too long together.

use super::base::{Cover, Feature, FindingSink, Help, Rule, RuleInfo, about_result};
use super::oversized_result;
use super::trim::{Measured, Notes, caps};
use crate::format::Shape;
use crate::model::entry::Kind;
use crate::model::finding::{Finding, Severity};
use crate::model::policy::{Cap, Policy};
use crate::session::{Answers, Session};
use alloc::format;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::json::JsonText;
use spans::marker;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S2",
        name: "oversized-turn",
        help: Help {
            what: "The results of one assistant message are too long together (200,000 characters).",
            why: "Each is below its own limit, so nothing stops them; the context jumps by more than a summariser can \
                  take in one step.",
            fix: "The largest results of the turn are shortened, one after the other, until the sum fits; none below \
                  2,000 characters.",
            source: "ChatCLI tool_result_budget.go (sum, largest first); OpenClaw #15409 (floor)",
        },
        entry_decides: true,
        wakes: &[Feature::LongTurn],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.of_messages() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let budget = session.policy.turn_chars_max;
    if budget == 0 {
        return Ok(());
    }
    for turn in by_message(session).chunk_by(|one, two| one.0 == two.0) {
        check_turn(session, turn, budget, out)?;
    }
    Ok(())
}

/// The greatest possible length of a result.
pub(crate) fn length_max(session: &Session<'_>, result: usize) -> u64 {
    let own = own_limits(session, result).map(|cap| cap.chars_max).min();
    length_below(session.policy, own, session.transcript.bodies_of(result))
}

/// The greatest possible length of texts, without reading them: no more characters than bytes. If they have been cut to
/// their own limit, no more than that plus what a marker can add.
pub(crate) fn length_below(policy: &Policy, own: Option<u64>, texts: &[JsonText]) -> u64 {
    let bytes = texts.iter().map(|text| text.inner.len()).sum();
    let outweighed = marker::BYTES_MAX as u64 * policy.unit.per_char_max() * texts.len() as u64;
    own.map_or(bytes, |limit| limit.saturating_add(outweighed).min(bytes))
}

/// Results by the message of the model that they answer, in the order of those messages.
pub(super) fn by_message(session: &Session<'_>) -> Vec<(u64, usize)> {
    let mut members: Vec<(u64, usize)> = Vec::new();
    let (mut first, answered): (HashMap<u64, u32>, _) = (HashMap::new(), first_responses(session));
    for (index, call) in answers(session) {
        let entry = session.call(call).entry;
        if !matches!(session.kind(entry), Kind::Message(_)) {
            continue;
        }
        let is_alone = session.is_each_a_turn();
        let of_call = if is_alone { entry } else { *first.entry(session.turn(entry)).or_insert(entry) };
        members.push((answered.get(&index).copied().unwrap_or(u64::from(of_call)), index));
    }
    members.sort_unstable();
    members
}

/// Results, and the calls that they answer. Repeated answers count too. Otherwise a finding could appear only after another
/// fix.
fn answers<'s>(session: &'s Session<'_>) -> impl Iterator<Item = (usize, u32)> + 's {
    session.answers.iter().enumerate().filter_map(|(index, answers)| match *answers {
        Answers::Call(call) | Answers::Again(call) => Some((index, call)),
        Answers::Nothing | Answers::Unseen => None,
    })
}

/// Where a record of calls holds those of several messages, the message that first answers a call tells which other calls were
/// made with it: Gemini CLI over ACP (0.61) gathers the calls of all turns in one record, and writes a message for the answers
/// to each message of the model. A key for each result in such a session.
fn first_responses(session: &Session<'_>) -> HashMap<usize, u64> {
    if session.format.shape != Shape::Upserts {
        return HashMap::new();
    }
    let mut first: HashMap<u32, u32> = HashMap::new();
    for (index, call) in answers(session).filter(|&(index, _)| !session.is_in_record_of_call(index)) {
        let entry = session.result(index).entry;
        first.entry(call).and_modify(|first| *first = entry.min(*first)).or_insert(entry);
    }
    // The answers in a message stand together, and so do their copies beside the calls.
    let key = |(index, call): (usize, u32)| {
        let is_copy = session.is_in_record_of_call(index);
        let own = if is_copy { first.get(&call).copied() } else { Some(session.result(index).entry) };
        own.map(|entry| (index, (u64::from(entry) << 1 | u64::from(is_copy)) + (1 << 40)))
    };
    answers(session).filter_map(key).collect()
}

/// The limits to which S1 cuts a result.
fn own_limits(session: &Session<'_>, result: usize) -> impl Iterator<Item = Cap> {
    caps(session, result).filter(|_| session.policy.selection.includes(oversized_result::RULE.code()))
}

/// The length of a result after S1 has cut it to its own limit.
fn once_capped(session: &Session<'_>, result: usize, text: &Measured) -> Result<u64, Fault> {
    for cap in own_limits(session, result) {
        if let Some(cap) = text.exceeds_cap(session, cap)? {
            return Ok(text.left(session, cap.shape, cap.chars_max));
        }
    }
    Ok(text.kept())
}

/// A result of the turn, with its length after S1.
struct Member {
    index: usize,
    text: Measured,
    chars: u64,
}

fn check_turn(
    session: &Session<'_>,
    turn: &[(u64, usize)],
    budget: u64,
    out: &mut FindingSink<'_>,
) -> Result<(), Fault> {
    if turn.iter().map(|&(_, result)| length_max(session, result)).sum::<u64>() <= budget {
        return Ok(());
    }
    let mut members = Vec::new();
    for &(_, index) in turn {
        let exact = own_limits(session, index).map(|cap| cap.chars_max).max();
        let texts = session.transcript.bodies_of(index);
        let text = Measured::all(session, texts, exact.unwrap_or(u64::MAX))?;
        let chars = once_capped(session, index, &text)?;
        // Results of a tool without its own limit are not cut, unless the policy has no limit for all tools.
        let may = caps(session, index).next().is_some();
        members.push((may, Member { index, text, chars }));
    }
    let mut sum: u64 = members.iter().map(|(_, member)| member.chars).sum();
    let (whole, shape) = (sum, session.policy.shape);
    let mut victims: Vec<Member> =
        members.into_iter().filter(|(may, _)| *may).map(|(_, member)| member).collect();
    victims.sort_by_key(|member| (core::cmp::Reverse(member.chars), member.index));
    for Member { index, text, chars } in victims {
        let wanted = chars.saturating_sub(sum.saturating_sub(budget));
        // What cannot be cut any further uses up the budget of the others.
        let more = text.left(session, shape, wanted).saturating_sub(wanted);
        let target = session.policy.turn_floor_chars.max(wanted.saturating_sub(more));
        let left = text.left(session, shape, target);
        if sum <= budget || target >= chars || left >= chars {
            continue;
        }
        sum = sum - chars + left;
        let message = format!("results of one turn are {whole} characters together (limit {budget})");
        out.push(Finding {
            chars: Some(chars),
            fix: text.trim(session, shape, target, Notes::None)?,
            ..about_result(&RULE, session, index, Severity::Warning, message)
        });
    }
    if sum > budget
        && let Some(&(_, index)) = turn.first()
    {
        let message = format!(
            "results of one turn are still {sum} characters together (limit {budget}), each at its minimum"
        );
        out.push(Finding { ..about_result(&RULE, session, index, Severity::Warning, message) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::examine::mend::examine;
    use crate::model::policy::Policy;
    use alloc::format;
    use alloc::string::String;

    #[track_caller]
    fn found(text: &str, expected: usize) {
        let policy = Policy { turn_chars_max: 5_000, ..Policy::default() };
        let found = examine(&text.as_bytes(), &policy).unwrap();
        let of_rule = |finding: &&crate::Finding| finding.rule.code() == "S2";
        assert_eq!(found.findings.iter().filter(of_rule).count(), expected);
    }

    /// Two messages of the model with two calls each, as 0.61 records them over ACP: all calls in the first record.
    fn gemini(chars: usize) -> String {
        let answer = |id: &str| {
            let text = "row ".repeat(chars / 4);
            format!(r#"{{"functionResponse":{{"id":"{id}","name":"ls","response":{{"output":"{text}"}}}}}}"#)
        };
        let call = |id: &str| {
            format!(r#"{{"id":"{id}","name":"ls","args":{{}},"status":"success","result":[{}]}}"#, answer(id))
        };
        let told = |id: &str, more: &str| format!("{{\"id\":\"{id}\",\"timestamp\":\"t\",{more}}}\n");
        let calls = ["a", "b", "c", "d"].map(call).join(",");
        String::from(
            "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":\"t\",\"lastUpdated\":\"t\",\"kind\":\"main\"}\n",
        ) + &told("1", r#""type":"user","content":[{"text":"go"}]"#)
            + &told("2", &format!(r#""type":"gemini","content":"","toolCalls":[{calls}]"#))
            + &told("3", &format!(r#""type":"user","content":[{},{}]"#, answer("a"), answer("b")))
            + &told("4", r#""type":"gemini","content":"more""#)
            + &told("5", &format!(r#""type":"user","content":[{},{}]"#, answer("c"), answer("d")))
            + &told("6", r#""type":"gemini","content":"done""#)
    }

    #[test]
    fn calls_of_several_messages_in_one_record_are_told_apart_by_their_answers() {
        found(&gemini(2_400), 0);
        // One of each two, of each copy.
        found(&gemini(3_000), 4);
    }
}
