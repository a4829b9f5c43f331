//! P6: two calls with one id.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use crate::format::{Format, Results};
use crate::model::finding::{Finding, Fix, Guard, Held, Op, Severity};
use crate::model::ids::Id;
use crate::session::Session;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::json::{self, Doc, Value};
use spans::literal::quote;
use spans::source::{Fault, Span, read_span};

/// How many new ids are tried.
const RENAMES_MAX: usize = 1000;

/// How many calls, and how many results, are searched between a call and its result.
const NEAR_MAX: usize = 1000;

/// Blocks longer than this are not compared; they count as different.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P6",
        name: "duplicate-call-id",
        help: Help {
            what: "Two calls on the live branch share an id.",
            why: "\"messages: `tool_use` ids must be unique\". Within one message it is a stream put together wrongly; \
                  across turns some models (Kimi) number their calls anew in each turn, which OpenAI-like APIs accept.",
            fix: "The same block twice in one message: the second one goes. Otherwise the later call and its result get \
                  a new id, only with --allow P6, because ids are not ours to change unasked.",
            source: "Anthropic Messages; claude-code #20508, nanobot #4442",
        },
        groups: &[Group::Pairing],
        recovers: true,
        makes_ids: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    match format.results {
        Results::InConversation => Cover::Reported,
        Results::Unpaired | Results::Unread => Cover::Never,
        _ => Cover::Fixed,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let several = session.ids_of_several_calls();
    if !several.contains(&true) {
        return Ok(());
    }
    let mut first: HashMap<Id, (u32, u32)> = HashMap::new();
    for &entry in &session.live {
        for call in session.transcript.calls_of(entry) {
            let call = call as u32;
            let Some(id) = session.call(call).key.filter(|id| several[id.index()]) else { continue };
            let Some((earlier, count)) = first.get_mut(&id) else {
                first.insert(id, (call, 1));
                continue;
            };
            *count += 1;
            out.push(judge(session, *earlier, call, *count)?);
        }
    }
    Ok(())
}

fn judge(session: &Session<'_>, earlier: u32, call: u32, count: u32) -> Result<Finding, Fault> {
    let (one, two) = (session.call(earlier), session.call(call));
    // In a whole conversation, it is not recorded which messages the two are in.
    let apart = session.format.results != Results::InConversation;
    let same_turn = apart && session.turn(one.entry) == session.turn(two.entry);
    let in_context = session.in_context(one.entry) && session.in_context(two.entry);
    let taken = session.format.takes_ids_again && !same_turn;
    let (severity, message) = match (in_context && !taken, same_turn) {
        (false, _) => (Severity::Note, "the id of an earlier call is used again"),
        (true, true) => (Severity::Error, "two calls of one message share an id"),
        (true, false) => (Severity::Warning, "the id of an earlier call is used again"),
    };
    let fix = if !apart {
        Fix::held(Held::Tangled)
    } else if same_turn && one.entry == two.entry && same_block(session, earlier, call)? {
        match session.result_of(call) {
            None => Fix::safe(vec![Op::DropBlock { entry: two.entry, block: two.block }]),
            Some(_) => Fix::held(Held::Tangled),
        }
    } else {
        rename(session, call, count)?
    };
    Ok(Finding {
        call: two.id,
        tool: two.name,
        fix,
        ..about(&RULE, session, two.entry, severity, message.to_string())
    })
}

fn same_block(session: &Session<'_>, one: u32, two: u32) -> Result<bool, Fault> {
    let (one, two) = (session.call(one).block, session.call(two).block);
    Ok(one.len() == two.len()
        && one.len() <= BLOCK_BYTES_MAX
        && read_span(session.source, one)? == read_span(session.source, two)?)
}

/// Gives the call and its result a new id.
fn rename(session: &Session<'_>, call: u32, count: u32) -> Result<Fix, Fault> {
    let found = session.call(call);
    let text = session.transcript.id_text(found.id);
    let candidates = (count..).map(|n| [text, format!("__{n}").as_bytes()].concat());
    let free = candidates.take(RENAMES_MAX).find(|new| session.transcript.ids.find(new).is_none());
    let Some(new) = free else { return Ok(Fix::held(Held::Tangled)) };
    let mut with = Vec::new();
    quote(&new, &mut with);
    let mut ops = vec![Op::Replace { at: found.id_at(), with: with.clone() }];
    if let Some(result) = session.result_of(call) {
        if session.result(result).entry == found.entry {
            // If both are in one record, it may name the id at other places too.
            return Ok(Fix::held(Held::Tangled));
        }
        let places = core::iter::once(session.result(result).call_at()).chain(again(session, result)?);
        let places = places.chain(start(session, call, result));
        ops.extend(places.map(|at| Op::Replace { at, with: with.clone() }));
    }
    // One of them is too far away.
    let is_lost = |op: &Op| matches!(op, Op::Replace { at, .. } if at.is_empty());
    Ok(if ops.iter().any(is_lost) { Fix::held(Held::Tangled) } else { Fix::guarded(Guard::RewritesIds, ops) })
}

/// Where a record marks the start of the call's tool, if it certainly means this call: between the call and its result,
/// the id occurs in no other call or result, and in one start.
fn start(session: &Session<'_>, call: u32, result: usize) -> Option<Span> {
    let found = session.call(call);
    let (from, to, transcript) = (found.entry, session.result(result).entry, session.transcript);
    if to <= from {
        return None;
    }
    let calls = &transcript.calls[transcript.calls_of(from).start..transcript.calls_of(to).end];
    let results = &transcript.results[transcript.results_of(from).start..transcript.results_of(to).end];
    let starts = transcript.starts_between(from, to);
    if starts.is_empty() || calls.len().max(results.len()).max(starts.len()) > NEAR_MAX {
        return None;
    }
    let alone = calls.iter().filter(|other| other.id == found.id).count() == 1
        && results.iter().filter(|other| other.call == found.id).count() == 1;
    let mut own = starts.iter().filter(|start| Some(start.call) == found.id);
    own.next().filter(|_| alone && own.next().is_none()).map(|start| start.at)
}

/// Where the line of a result repeats its call's id.
fn again(session: &Session<'_>, result: usize) -> Result<Option<Span>, Fault> {
    let keys = session.format.names_call_again;
    if keys.is_empty() {
        return Ok(None);
    }
    let found = session.result(result);
    let doc = json::parse(session.source, session.entry(found.entry).span)?;
    let root = doc.as_ref().and_then(Doc::root);
    let place = root.and_then(|root| keys.iter().try_fold(root, |value, key| value.get(key)));
    let own = session.transcript.id_text(found.call);
    Ok(place.filter(|place| place.text().as_deref() == Some(own)).map(Value::span))
}
