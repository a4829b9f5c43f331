//! P1: a call that nothing answers.

use super::base::{Cover, Found, Group, Help, Rule, RuleInfo, about, severity_in_context};
use super::counted::records_stay;
use crate::format::{Answer, Format, Results, Shape};
use crate::model::entry::{Call, Kind, Role, Stop};
use crate::model::finding::{Finding, Fix, Guard, Held, Op};
use crate::model::ids::Id;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use core::cell::OnceCell;
use hashbrown::HashSet;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P1",
        name: "call-without-result",
        help: Help {
            what: "A tool call on the live branch has no result, and the conversation went on.",
            why: "APIs refuse the whole session: \"`tool_use` ids were found without `tool_result` blocks immediately \
                  after\", \"An assistant message with 'tool_calls' must be followed by tool messages responding to \
                  each 'tool_call_id'\", \"No tool output found for function call\".",
            fix: "One result in neutral words is put behind the call, marked as an error. Not for calls of aborted \
                  turns, before a compaction, or in the newest turn: those are legal. (Kimi CLI sends a call of the \
                  newest turn as it is when the tool's run was cut short; --settle 0 answers it.) In a flat file a line is added \
                  only with --allow P1, because another file may count its lines. In data sets nothing is put in, \
                  because a model would learn it; a call in the last message of a line is what that teaches.",
            source: "Anthropic Messages, OpenAI Chat Completions and Responses; OpenClaw #10310, claude-code #8763",
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
    match (format.results, format.answer) {
        (Results::Unpaired | Results::Unread, _) => Cover::Never,
        (_, Answer::Nowhere) => Cover::Reported,
        (_, Answer::Line | Answer::LineIfAllowed) if records_stay(format) => Cover::Reported,
        _ => Cover::Fixed,
    }
}

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    let mut answered = None;
    let boundaries = OnceCell::new();
    let before_boundary = |entry| boundaries.get_or_init(|| before_boundaries(session)).contains(&entry);
    for (index, call) in (0..).zip(&session.transcript.calls) {
        if call.id.is_none() || session.result_of(index).is_some() || excused(session, call, &before_boundary)
        {
            continue;
        }
        // The same id twice in one message is its own rule's business: the result answers both.
        let answered = answered.get_or_insert_with(|| answered_in_turns(session));
        if answered.contains(&(session.turn(call.entry), call.key)) {
            continue;
        }
        let entry = call.entry;
        let ops = vec![Op::Answer(index)];
        // The result would repeat these, and then two lines would not be UTF-8.
        let ids = [call.id, session.entry(entry).id].map(|id| session.transcript.id_text(id));
        let fix = match session.format.answer {
            _ if ids.iter().any(|id| core::str::from_utf8(id).is_err()) => Fix::held(Held::Tangled),
            _ if stands_behind_the_leaf(session, entry) => Fix::held(Held::Tangled),
            Answer::LineIfAllowed => Fix::guarded(Guard::ChangesLineCount, ops),
            // A message of its own has to be put in.
            Answer::NextUser if next_user(session, entry).is_none() => {
                Fix::guarded(Guard::ChangesLineCount, ops)
            }
            Answer::Nowhere => Fix::NONE,
            Answer::Line | Answer::NextUser => Fix::safe(ops),
        };
        out.push(Finding {
            call: call.id,
            tool: call.name,
            fix,
            ..about(
                &RULE,
                session,
                entry,
                severity_in_context(session, entry),
                "no result for this call".to_string(),
            )
        });
    }
    Ok(())
}

/// Whether a line behind an entry would be the last that nothing hangs on, and so where the conversation ends: the last
/// line of Claude Code's that nothing hangs on is the leaf.
fn stands_behind_the_leaf(session: &Session<'_>, entry: u32) -> bool {
    session.format.shape == Shape::Graph && session.leaf.is_some_and(|leaf| leaf < entry)
}

/// The ids that have a result, turn by turn.
fn answered_in_turns(session: &Session<'_>) -> HashSet<(u64, Option<Id>)> {
    let answered =
        (0..).zip(&session.transcript.calls).filter(|(index, _)| session.result_of(*index).is_some());
    answered.map(|(_, call)| (session.turn(call.entry), call.key)).collect()
}

/// Whether an open call is legal there.
fn excused(session: &Session<'_>, call: &Call, before_boundary: &dyn Fn(u32) -> bool) -> bool {
    let entry = call.entry;
    if session.is_whole_conversation(entry) {
        return !call.followed;
    }
    // In a log both are sent.
    let superseded = session.superseded(entry) && session.format.shape != Shape::Log;
    if !session.is_live(entry) || superseded || session.entry(entry).stop == Stop::Aborted {
        return true;
    }
    let may_be_answered = !session.moved_on(entry) && !session.nothing_answers();
    // A compaction that keeps the call sends it without a result.
    may_be_answered || (!session.in_context(entry) && before_boundary(entry))
}

/// The entries of the model's after whose turn the next thing is a compaction: the summary takes the place of their calls.
fn before_boundaries(session: &Session<'_>) -> HashSet<u32> {
    let mut found = HashSet::new();
    // The turn before the compaction that was come upon last, once an entry of it was; nothing if another thing came.
    let mut turn: Option<Option<u64>> = None;
    for &entry in session.model_order().iter().rev() {
        let own = session.turn(entry);
        match session.entry(entry).kind {
            Kind::Boundary => turn = Some(None),
            Kind::Message(Role::Assistant)
                if turn.is_some_and(|turn| turn.is_none_or(|turn| turn == own)) =>
            {
                turn = Some(Some(own));
                found.insert(entry);
            }
            Kind::Message(Role::Tool) | Kind::Opaque | Kind::Leaf | Kind::Header => {}
            Kind::Message(_) | Kind::Note => turn = None,
        }
    }
    found
}

/// The user message that follows a call's entry directly.
pub(crate) fn next_user(session: &Session<'_>, entry: u32) -> Option<u32> {
    let next = *session.live.get(session.place(entry)? + 1)?;
    matches!(session.entry(next).kind, Kind::Message(Role::User | Role::Tool)).then_some(next)
}
