//! S1: a tool result that is too long.

use super::base::{Cover, Feature, FindingSink, Help, Rule, RuleInfo, about_result};
use super::crowded_window::has_room;
use super::trim::{Notes, exceeded};
use crate::format::Results;
use crate::model::finding::{Finding, Fix, Guard, Severity};
use crate::model::policy::RESULT_CHARS_MAX;
use crate::session::{Answers, Session};
use alloc::format;
use spans::json::{self, Value};
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S1",
        name: "oversized-result",
        help: Help {
            what: "The text of a tool result is longer than the policy allows (32,000 characters).",
            why: "One such result, repeated, fills the file and the context within hours; then the summariser \
                  overflows as well: \"prompt is too long\".",
            fix: "Three quarters of the limit stay from the beginning and one quarter from the end, cut at line ends, \
                  with one line between them that says how much is gone and how to get it back. Ids, error flag, \
                  images and everything else stay. What the agent itself has shortened (OpenClaw) waits until its context is 80 % full.",
            source: "OpenClaw #10915 (limit, order of blocks); head and tail: gsd-2 #4690",
        },
        entry_decides: true,
        wakes: &[Feature::LongResult],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results == Results::Unread { Cover::Never } else { Cover::Fixed },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let agents_max =
        if has_room(session)? { session.situation.load.map_or(0, |load| load.result_chars_max) } else { 0 };
    for index in 0..session.transcript.results.len() {
        let Some((text, cap)) = exceeded(session, index)? else { continue };
        let notes = if cap.paged { Notes::ReadOn(first_line(session, index)?) } else { Notes::None };
        let message = format!("result of {} characters (limit {})", text.kept(), cap.chars_max);
        let mut fix = text.trim(session, cap.shape, cap.chars_max, notes)?;
        if text.kept() <= agents_max && cap.chars_max == RESULT_CHARS_MAX && !fix.ops.is_empty() {
            fix = Fix::guarded(Guard::HasRoom, fix.ops);
        }
        out.push(Finding {
            chars: Some(text.kept()),
            fix,
            ..about_result(&RULE, session, index, Severity::Warning, message)
        });
    }
    Ok(())
}

/// How many lines of the file the result's call skipped: its argument `offset`. If the tool counts lines from 1, the
/// hint made from it repeats one line.
fn first_line(session: &Session<'_>, result: usize) -> Result<u64, Fault> {
    let (Answers::Call(call) | Answers::Again(call)) = session.answers[result] else { return Ok(0) };
    let block = json::parse(session.source, session.call(call).block)?;
    let arguments = ["arguments", "input"].map(|key| block.as_ref().and_then(|block| block.get(key)));
    let asked = arguments.into_iter().flatten().find_map(|arguments| arguments.get("offset"));
    Ok(asked.and_then(Value::whole).unwrap_or(0))
}
