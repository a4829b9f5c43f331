//! P3: a call that was never finished, with an invented result.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about_result, severity_in_context};
use crate::format::{Format, Results};
use crate::model::entry::StopReason;
use crate::model::finding::{Finding, Fix, Guard, Held, Op};
use crate::session::{Answers, Session};
use alloc::string::ToString;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P3",
        name: "aborted-call-with-result",
        help: Help {
            what: "A turn was aborted while the model wrote a call, and a repair invented a result for it.",
            why: "The agent leaves the aborted call out of the request but sends the result: \"unexpected \
                  `tool_use_id` found in `tool_result` blocks\", for ever, even after a reset.",
            fix: "The result goes, and the unfinished call with it; the text of the turn stays. A call that was \
                  complete and has a real result is left alone, except in pi, which sends nothing of such a turn but its results.",
            source: "OpenClaw #8264, #9769, #1859; pi #812",
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
    match format.results {
        _ if !format.aborts => Cover::Never,
        Results::Lines => Cover::Fixed,
        _ => Cover::Reported,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut others: HashMap<u32, Vec<usize>> = HashMap::new();
    for (index, answers) in session.answers.iter().enumerate() {
        if let Answers::Again(call) = *answers {
            others.entry(call).or_default().push(index);
        }
    }
    for (index, answers) in session.answers.iter().enumerate() {
        let Answers::Call(call) = *answers else { continue };
        let (found, result) = (session.call(call), session.result(index));
        let aborted = session.entry(found.entry).stop == StopReason::Aborted;
        let goes = found.partial || result.synthetic || session.is_left_out(found.entry);
        if !aborted || !session.is_live(found.entry) || !goes {
            continue;
        }
        let severity = severity_in_context(session, found.entry);
        let message = "result for a call of an aborted turn".to_string();
        // Remove all results or none: one that stayed would be without a call, or be the next finding.
        let others = others.get(&call).map_or(&[][..], Vec::as_slice);
        let all = [&[index], others].concat();
        let fix = take_out(session, call, &all);
        out.push(Finding { fix, ..about_result(&RULE, session, index, severity, message) });
    }
    Ok(())
}

fn take_out(session: &Session<'_>, call: u32, results: &[usize]) -> Fix {
    let mut ops = Vec::new();
    let mut guard = None;
    for &result in results {
        let result = session.result(result);
        if !result.whole {
            return Fix::held(Held::Tangled);
        }
        if session.shares_its_id(result.entry) || session.is_labelled(result.entry) {
            return Fix::held(Held::Referenced);
        }
        if session.is_newest(result.entry) {
            guard = Some(Guard::NewestEntry);
        }
        ops.push(Op::DropEntry(result.entry));
    }
    let found = session.call(call);
    if found.partial {
        ops.push(Op::DropBlock { entry: found.entry, block: found.block });
    }
    match guard {
        Some(guard) => Fix::guarded(guard, ops),
        None => Fix::safe(ops),
    }
}
