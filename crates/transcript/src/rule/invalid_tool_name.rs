//! P10: a tool name that no API accepts.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about_call, severity_in_context};
use crate::format::{Format, Shape};
use crate::model::entry::{Call, ToolResult};
use crate::model::finding::{Finding, Fix, Op};
use crate::model::transcript::Transcript;
use crate::session::Session;
use alloc::vec::Vec;
use core::ops::Range;
use hashbrown::HashSet;
use spans::literal::quote;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P10",
        name: "invalid-tool-name",
        help: Help {
            what: "A call has no tool name, or one with characters other than letters, digits, `_` and `-`. `.`, `:` \
                   and `/` are allowed in agents that replace them when they send; Claude Code and bare messages of \
                   Anthropic's API are sent unchanged.",
            why: "APIs refuse the request: \"string does not match pattern '^[a-zA-Z0-9_-]+$'\".",
            fix: "NUL bytes and white space around a name are removed, if the rest is the name of a tool that the \
                  session uses elsewhere. In a database, other characters become `_`. Otherwise report only: it is not known which tool it was.",
            source: "codex #24369; OpenClaw #30723, #21985",
        },
        groups: &[Group::Pairing],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.results.have_calls() { Cover::Fixed } else { Cover::Never },
    check,
};

/// Anthropic's limit; OpenAI's is 64.
const NAME_BYTES_MAX: usize = 128;

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let calls = &session.transcript.calls;
    if are_plain(session.format, session.transcript, 0..calls.len()) {
        return Ok(());
    }
    let name = |call: &Call| session.transcript.id_text(call.name);
    let is_plain = |name: &[u8]| is_plain(session.format, name);
    let known: HashSet<&[u8]> = calls.iter().map(name).filter(|name| is_plain(name)).collect();
    for (index, call) in calls.iter().enumerate().filter(|(_, call)| !is_plain(name(call))) {
        // Codex's special kinds of calls have no name and need none.
        if call.name_at().is_empty() && session.format.shape == Shape::Log {
            continue;
        }
        let trimmed = name(call).trim_ascii();
        let left = trimmed.iter().rposition(|byte| *byte > b' ').map_or(0, |last| last + 1);
        let left = &trimmed[..left];
        let mut fix = Fix::NONE;
        if known.contains(left) && !call.name_at().is_empty() {
            fix = Fix::safe(renamed(session, index, left));
        } else if session.transcript.in_database && !call.name_at().is_empty() {
            fix = Fix::safe(renamed(session, index, &spelled(left)));
        }
        let severity = severity_in_context(session, call.entry);
        let found = about_call(&RULE, session, index, severity, "no API accepts this tool name");
        out.push(Finding { fix, ..found });
    }
    Ok(())
}

/// A name that APIs accept, as close to this one as that goes: the agents that keep sessions in databases send calls by whatever
/// name they have.
fn spelled(name: &[u8]) -> Vec<u8> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let name: Vec<u8> =
        name.iter().map(|&byte| if fits(byte) { byte } else { b'_' }).take(NAME_BYTES_MAX).collect();
    if name.is_empty() { b"unknown".to_vec() } else { name }
}

/// Renames a call's tool, and the tool in its result if the result names it (Gemini).
fn renamed(session: &Session<'_>, call: usize, name: &[u8]) -> Vec<Op> {
    let mut with = Vec::new();
    quote(name, &mut with);
    let found = &session.transcript.calls[call];
    let result = session.result_of(call as u32).map(|result| session.result(result));
    let result = result.filter(|result| result.name == found.name).map(ToolResult::name_at);
    let other = result.filter(|at| !at.is_empty() && *at != found.name_at());
    let replace = |at| Op::Replace { at, with: with.clone() };
    core::iter::once(found.name_at()).chain(other).map(replace).collect()
}

/// Whether APIs accept this name of a tool.
fn is_plain(format: &Format, name: &[u8]) -> bool {
    let own = |byte: u8| matches!(byte, b'.' | b':' | b'/') && !format.has_plain_ids;
    let fits = |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || own(byte);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.iter().all(fits)
}

/// Whether APIs accept the names of these calls.
pub(crate) fn are_plain(format: &Format, transcript: &Transcript, mut calls: Range<usize>) -> bool {
    calls.all(|call| is_plain(format, transcript.id_text(transcript.calls[call].name)))
}
