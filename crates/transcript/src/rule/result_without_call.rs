//! P2: a result without a call that the model sees.

use super::base::{
    FindingSink, Group, Help, Rule, RuleInfo, about_result, severity_in_context, severity_of_half,
};
use super::dangling_parent;
use super::removal::{cover_of_removed_results, removals};
use crate::format::Shape;
use crate::model::entry::{Call, Kind};
use crate::model::finding::{Finding, Fix, Held, Op};
use crate::session::{Answers, Compacts, Session};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use spans::literal::quote;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P2",
        name: "result-without-call",
        help: Help {
            what: "A tool result has no call before it, or its call lies before what a compaction kept.",
            why: "APIs refuse the whole session: \"unexpected `tool_use_id` found in `tool_result` blocks\", \"messages \
                  with role 'tool' must be a response to a preceding message with 'tool_calls'\", \"No tool call found \
                  for function call output\".",
            fix: "The result is removed; other content of its message stays, and its children are linked to its \
                  parent. If a compaction only split a pair, the compaction keeps the call as well and nothing is \
                  removed. The newest entry is removed only with --allow P2.",
            source: "Anthropic Messages, OpenAI Chat Completions and Responses; OpenClaw #8525, pi #4570",
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
    for (index, answers) in session.answers.iter().enumerate() {
        if let Answers::Call(call) = *answers
            && split_by_boundary(session, index, call)
        {
            let fix = keep_more(session, call);
            let severity = severity_in_context(session, session.result(index).entry);
            let message = "its call was compacted away".to_string();
            let about = about_result(&RULE, session, index, severity, message);
            out.push(Finding { fix, ..about });
        }
    }
    let is_orphan = |result: usize| match session.answers[result] {
        Answers::Nothing => true,
        Answers::Call(call) => out_of_sight(session, result, call),
        _ => false,
    };
    let mut hidden = None;
    for (orphan, fix) in removals(session, &is_orphan) {
        let entry = session.result(orphan).entry;
        let hidden = hidden.get_or_insert_with(|| HiddenCalls::from_session(session));
        let fix = match session.is_live(entry) {
            true if hidden.may_hold_call_of(session, orphan) => Fix::held(Held::Tangled),
            true => fix,
            false => Fix::NONE,
        };
        let severity = severity_of_half(session, entry);
        let message = "no call for this result".to_string();
        out.push(Finding { fix, ..about_result(&RULE, session, orphan, severity, message) });
    }
    Ok(())
}

/// In a graph, pairs find each other wherever they are, but only among loaded entries.
fn out_of_sight(session: &Session<'_>, result: usize, call: u32) -> bool {
    let (call, result) = (session.call(call).entry, session.result(result).entry);
    session.shape.pairs_anywhere && session.in_context(result) && !session.in_context(call)
}

/// Whether the model sees the result but not the call.
fn split_by_boundary(session: &Session<'_>, result: usize, call: u32) -> bool {
    let (call, result) = (session.call(call).entry, session.result(result).entry);
    session.shape.compacts == Compacts::AtEnd && session.in_context(result) && !session.in_context(call)
}

/// Moves the start of what the last compaction keeps to the entry of the call.
fn keep_more(session: &Session<'_>, call: u32) -> Fix {
    let boundary = session.live.iter().rev().find(|&&entry| session.kind(entry) == Kind::Boundary);
    let entry = session.call(call).entry;
    let (Some(&boundary), Some(id)) = (boundary, session.entry(entry).id) else {
        return Fix::held(Held::Tangled);
    };
    let target = session.transcript.target_of(boundary);
    let before = session.place(entry) < session.place(boundary);
    let shown = session.place(entry).map_or(&[][..], |place| &session.live[place..]);
    let shown = shown.iter().take_while(|&&other| other != boundary && !session.in_context(other));
    let heavy = shown.into_iter().any(|&other| super::base::too_heavy_to_return(session, other));
    if target.at.is_empty() || target.id.is_none() || !before || heavy {
        return Fix::held(Held::Tangled);
    }
    let mut with = Vec::new();
    quote(session.transcript.ids.text(id), &mut with);
    Fix::safe(vec![Op::Replace { at: target.at, with }])
}

/// Where a call may be that is not found.
struct HiddenCalls {
    /// Anywhere, for a result without an id: some call has no id, or the branch begins at a missing parent.
    of_nameless_result: bool,
    /// Among calls that the model sees, for a result with an id.
    of_named_result: bool,
    /// In the items that a log's compaction carries over, which are not read.
    of_result_in_context: bool,
}

impl HiddenCalls {
    fn from_session(session: &Session<'_>) -> Self {
        let nameless = |call: &&Call| session.format.calls_have_ids && call.id.is_none();
        let mut nameless = session.transcript.calls.iter().filter(nameless).peekable();
        let above = session.live.first().and_then(|&first| dangling_parent::nearest_before(session, first));
        let cut_off = session.is_cut_off() && above.is_some();
        let is_boundary = |&entry: &u32| session.kind(entry) == Kind::Boundary;
        Self {
            of_nameless_result: cut_off || nameless.peek().is_some(),
            of_named_result: cut_off || nameless.any(|call| session.in_context(call.entry)),
            of_result_in_context: session.format.shape == Shape::Log && session.live.iter().any(is_boundary),
        }
    }

    fn may_hold_call_of(&self, session: &Session<'_>, result: usize) -> bool {
        let result = session.result(result);
        let hidden = if result.call.is_none() { self.of_nameless_result } else { self.of_named_result };
        hidden || (self.of_result_in_context && session.in_context(result.entry))
    }
}
