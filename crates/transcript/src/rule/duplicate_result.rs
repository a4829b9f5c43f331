//! P5: more than one result for a call.

use super::base::{FindingSink, Group, Help, Rule, RuleInfo, about_result, severity_in_context};
use super::removal::{cover_of_removed_results, removals};
use crate::model::finding::Finding;
use crate::session::{Answers, Session};
use alloc::string::ToString;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P5",
        name: "duplicate-result",
        help: Help {
            what: "One call has several results.",
            why: "\"each tool_use must have a single result. Found multiple `tool_result` blocks with id\"; Gemini \
                  answers INVALID_ARGUMENT. Often a real result that came after one that a repair had invented.",
            fix: "One stays: a real one rather than an invented one, one after the call rather than before it, a \
                  success rather than an error, otherwise the first; in Gemini CLI, the one in the record of the call. \
                  The others are removed.",
            source: "Anthropic Messages; cline #7419, Roo-Code #9248",
        },
        groups: &[Group::Pairing],
        recovers: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| cover_of_removed_results(format),
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for (result, fix) in removals(session, &|result| is_sent_again(session, result)) {
        let severity = severity_in_context(session, session.result(result).entry);
        let message = "another result answers the same call".to_string();
        out.push(Finding { fix, ..about_result(&RULE, session, result, severity, message) });
    }
    Ok(())
}

/// Whether a result is sent beside another one of the same call. Copies off the branch are never sent.
fn is_sent_again(session: &Session<'_>, result: usize) -> bool {
    let live = |result: usize| session.is_live(session.result(result).entry);
    matches!(session.answers[result], Answers::Again(call) if live(result) && session.result_of(call).is_some_and(live))
}
