//! P1: a call without a result.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about, severity_of_half};
use super::counted::records_stay;
use crate::format::{Format, ResultPlace, Results, Shape};
use crate::model::entry::{Call, Kind, Role, StopReason};
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
            fix: "A neutral result, marked as an error, is added after the call. Not for calls of aborted turns, \
                  before a compaction, or in the newest turn: those are legal. (Kimi CLI sends a call of the newest \
                  turn as it is if the tool was interrupted; --settle 0 answers it.) In a flat file a line is added \
                  only with --allow P1, because another file may count its lines. In data sets nothing is added, \
                  because a model would learn it; a call in the last message of a line is what that line teaches.",
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
        (_, ResultPlace::Nowhere) => Cover::Reported,
        (_, ResultPlace::Line | ResultPlace::LineIfAllowed) if records_stay(format) => Cover::Reported,
        _ => Cover::Fixed,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let (mut answered, mut open) = (None, HashSet::new());
    let boundaries = OnceCell::new();
    let before_boundary = |entry| boundaries.get_or_init(|| before_boundaries(session)).contains(&entry);
    for (index, call) in (0..).zip(&session.transcript.calls) {
        let is_settled = session.result_of(index).is_some() || !session.is_said(index);
        if call.id.is_none() || is_settled || excused(session, call, &before_boundary) {
            continue;
        }
        // Two calls with one id in a message are P6: the result answers both.
        let answered = answered.get_or_insert_with(|| answered_again(session));
        if answered.contains(&(session.turn(call.entry), call.key)) {
            continue;
        }
        let entry = call.entry;
        let ops = vec![Op::Answer(index)];
        // A new result would repeat these ids, which then would make a second line invalid UTF-8.
        let ids = [call.id, session.entry(entry).id].map(|id| session.transcript.id_text(id));
        let fix = match session.format.answer {
            _ if call.id_at().is_empty() || ids.iter().any(|id| core::str::from_utf8(id).is_err()) => {
                Fix::held(Held::Tangled)
            }
            _ if would_become_leaf(session, entry) => Fix::held(Held::Tangled),
            // The second of two calls with one id is P6.
            ResultPlace::Call(_) if !open.insert((session.turn(entry), call.key)) => Fix::held(Held::Tangled),
            ResultPlace::LineIfAllowed => Fix::guarded(Guard::ChangesLineCount, ops),
            // There is no message that could hold it, so a new one is needed.
            ResultPlace::NextUser if next_user(session, entry).is_none() => {
                Fix::guarded(Guard::ChangesLineCount, ops)
            }
            ResultPlace::Nowhere => Fix::NONE,
            ResultPlace::Line | ResultPlace::NextUser | ResultPlace::Call(_) => Fix::safe(ops),
        };
        out.push(Finding {
            call: call.id,
            tool: call.name,
            fix,
            ..about(
                &RULE,
                session,
                entry,
                severity_of_half(session, entry),
                "no result for this call".to_string(),
            )
        });
    }
    Ok(())
}

/// Whether a line after an entry would become the leaf. In Claude Code, the last line without children is the leaf.
fn would_become_leaf(session: &Session<'_>, entry: u32) -> bool {
    session.format.shape == Shape::Graph && session.leaf.is_some_and(|leaf| leaf < entry)
}

/// Of the ids that several calls have, those with a result, by turn.
fn answered_again(session: &Session<'_>) -> HashSet<(u64, Option<Id>)> {
    let several = session.ids_of_several_calls();
    let is_of_several = |call: &Call| call.key.is_some_and(|key| several[key.index()]);
    let answered = (0..).zip(&session.transcript.calls).filter(|(index, call)| {
        (call.key.is_none() || is_of_several(call)) && session.result_of(*index).is_some()
    });
    answered.map(|(_, call)| (session.turn(call.entry), call.key)).collect()
}

/// Whether a call may be open at this place.
fn excused(session: &Session<'_>, call: &Call, before_boundary: &dyn Fn(u32) -> bool) -> bool {
    let entry = call.entry;
    if session.is_whole_conversation(entry) {
        return !call.followed;
    }
    // A log sends both.
    let superseded = session.superseded(entry) && session.format.shape != Shape::Log;
    if !session.is_live(entry) || superseded || session.entry(entry).stop == StopReason::Aborted {
        return true;
    }
    let may_be_answered = !session.moved_on(entry) && !session.nothing_answers();
    // If a compaction keeps the call, it is sent without a result.
    may_be_answered || (!session.in_context(entry) && before_boundary(entry))
}

/// The assistant's entries whose turn is directly followed by a compaction: its summary replaces their calls.
fn before_boundaries(session: &Session<'_>) -> HashSet<u32> {
    let mut found = HashSet::new();
    // The turn before the compaction that was met last, once an entry of it was met; none if something else came
    // between.
    let mut turn: Option<Option<u64>> = None;
    for &entry in session.model_order().iter().rev() {
        let own = session.turn(entry);
        match session.kind(entry) {
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

/// The user message directly after a call's entry.
pub(crate) fn next_user(session: &Session<'_>, entry: u32) -> Option<u32> {
    let next = *session.live.get(session.place(entry)? + 1)?;
    matches!(session.kind(next), Kind::Message(Role::User | Role::Tool)).then_some(next)
}
