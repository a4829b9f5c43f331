//! P13: a call of a tool that the API ran itself, whose result is not in the same assistant turn.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about, severity_in_context};
use super::removal::take_out_blocks;
use crate::format::Shape;
use crate::model::entry::{ContentIssue, ContentIssueKind, Kind, Role};
use crate::model::finding::{Finding, Fix, Held, Op, Severity};
use crate::model::ids::Id;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use spans::json;
use spans::literal;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P13",
        name: "split-server-pair",
        help: Help {
            what: "A tool ran on the provider's side (advisor, web search, code execution, tool search, MCP), and its \
                   result is not in the same assistant turn as its call, or one of the two is missing.",
            why: "\"unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_…. Each `advisor_tool_result` \
                  block must have a corresponding `server_tool_use` block before it\", on every request and on /compact. \
                  Claude Code writes each block on a line of its own, and a command or a hook that is written between them \
                  splits the turn.",
            fix: "If something was written before a result's line, the line moves to right after its call, and what \
                  was between comes after it. A result whose call is missing is removed, and so is a call that never \
                  got its result.",
            source: "claude-code #62885, #63790, #89348, #92611, #95406",
        },
        groups: &[Group::Pairing],
        recovers: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.server_tools { Cover::Fixed } else { Cover::Never },
    check,
};

/// A live call or result of such a tool.
#[derive(Clone, Copy)]
struct Half<'a> {
    issue: &'a ContentIssue,
    id: Id,
    is_call: bool,
    /// The number of its stretch of conversation. A stretch ends when anybody but the model and its tools speaks.
    turn: usize,
    /// How many earlier rows only some versions send between the blocks of a turn.
    rows: usize,
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let halves = halves(session)?;
    let mut open: HashMap<Id, Half<'_>> = HashMap::new();
    for &half in &halves {
        if half.is_call {
            open.insert(half.id, half);
            continue;
        }
        let in_context = severity_in_context(session, half.issue.entry);
        let (severity, fix, message) = match open.remove(&half.id) {
            Some(call) if (call.turn, call.rows) == (half.turn, half.rows) => continue,
            Some(call) => {
                let fix = pull_up(session, call.issue.entry, half.issue)?;
                let severity = if call.turn == half.turn { Severity::Warning } else { in_context };
                (severity, fix, "something comes between a server tool's call and its result")
            }
            None => (
                in_context,
                take_out_blocks(session, half.issue.entry, &[half.issue.block])?,
                "result of a server tool without its call",
            ),
        };
        out.push(finding(session, half, severity, message, fix));
    }
    for &call in halves.iter().filter(|half| half.is_call) {
        let unanswered = open.get(&call.id).is_some_and(|open| core::ptr::eq(open.issue, call.issue));
        if unanswered && session.moved_on(call.issue.entry) {
            // Claude Code does not send such calls.
            let severity = match session.format.shape {
                Shape::Graph => Severity::Note,
                _ => severity_in_context(session, call.issue.entry),
            };
            let fix = take_out_blocks(session, call.issue.entry, &[call.issue.block])?;
            out.push(finding(session, call, severity, "call of a server tool without its result", fix));
        }
    }
    Ok(())
}

fn finding(session: &Session<'_>, half: Half<'_>, severity: Severity, message: &str, fix: Fix) -> Finding {
    Finding {
        call: Some(half.id),
        fix,
        ..about(&RULE, session, half.issue.entry, severity, message.to_string())
    }
}

/// All halves on the live branch, in model order.
fn halves<'a>(session: &'a Session<'_>) -> Result<Vec<Half<'a>>, Fault> {
    let issues = session.transcript.issues();
    let half = |issue: &ContentIssue| {
        matches!(issue.kind, ContentIssueKind::ServerCall(_) | ContentIssueKind::ServerResult(_))
    };
    // Most sessions have none and need no walk.
    if !issues.iter().any(half) {
        return Ok(Vec::new());
    }
    let (mut halves, mut turn, mut rows) = (Vec::new(), 0, 0);
    for &entry in session.model_order() {
        turn += usize::from(ends_the_turn(session, entry)?);
        rows += usize::from(is_attachment(session, entry));
        for issue in session.transcript.issues_of(entry) {
            let (id, is_call) = match issue.kind {
                ContentIssueKind::ServerCall(id) => (id, true),
                ContentIssueKind::ServerResult(id) => (id, false),
                _ => continue,
            };
            halves.push(Half { issue, id, is_call, turn, rows });
        }
    }
    Ok(halves)
}

/// Claude Code 2.1.330 sends attachments after the turn.
fn is_attachment(session: &Session<'_>, entry: u32) -> bool {
    let found = session.entry(entry);
    session.format.shape == Shape::Graph && found.kind == Kind::Note && found.text_chars == 0
}

/// Whether an entry ends the assistant's turn for the API. Results of other tools do not: code that the provider runs
/// may call them, and continues with their results. Of its own rows, Claude Code sends commands as the user.
fn ends_the_turn(session: &Session<'_>, entry: u32) -> Result<bool, Fault> {
    let found = session.entry(entry);
    Ok(match found.kind {
        Kind::Message(role) => matches!(role, Role::User | Role::System),
        Kind::Note | Kind::Boundary => !is_attachment(session, entry),
        Kind::Opaque => {
            let is_row = session.format.shape == Shape::Graph && found.id.is_some();
            let doc = if is_row { json::parse(session.source, found.span)? } else { None };
            let subtype = doc.as_ref().and_then(|doc| doc.get("subtype"));
            subtype.is_some_and(|subtype| subtype.is("local_command"))
        }
        Kind::Header | Kind::Leaf => false,
    })
}

/// Moves a result to right after its call, if it is alone on its line; in a graph, by its links.
fn pull_up(session: &Session<'_>, call: u32, result: &ContentIssue) -> Result<Fix, Fault> {
    let entry = result.entry;
    let doc = json::parse(session.source, session.entry(entry).span)?;
    let mut arrays = doc.as_ref().and_then(json::Doc::root).into_iter().flat_map(json::Value::descendants);
    let alone = arrays.any(|list| list.items().map(json::Value::span).eq([result.block]));
    let (from, to) = (session.place(call).unwrap_or(0), session.place(entry).unwrap_or(0));
    let between = session.live.get(from..to).unwrap_or_default();
    let compacted = between.iter().any(|&entry| session.kind(entry) == Kind::Boundary);
    // A running agent may make this entry the parent of its next one.
    let held = session.is_newest(entry) && session.entry(entry).id.is_some();
    if session.shares_its_id(entry) || session.shares_its_id(call) {
        return Ok(Fix::held(Held::Referenced));
    }
    let ops = match session.format.shape {
        Shape::Graph => relinked(session, call, entry),
        _ => Some(vec![Op::Move { entry, after: call }]),
    };
    Ok(ops.filter(|_| alone && !compacted && !held).map_or(Fix::held(Held::Tangled), Fix::safe))
}

/// Makes the result a child of its call, the first entry between them a child of the result, and the result's children
/// those of the last entry between. Lines stay where they are.
fn relinked(session: &Session<'_>, call: u32, result: u32) -> Option<Vec<Op>> {
    let mut first = result;
    for _ in 0..session.live.len() {
        match session.parent(first)? {
            parent if parent == call => break,
            parent => first = parent,
        }
    }
    let last = session.parent(result).filter(|_| first != result)?;
    let link = |entry: u32, to: u32| {
        let id = session.transcript.id_text(session.entry(to).id);
        let at = session.entry(entry).parent_at();
        let mut with = Vec::new();
        literal::quote(id, &mut with);
        (!at.is_empty() && core::str::from_utf8(id).is_ok()).then_some(Op::Replace { at, with })
    };
    let children =
        (0..session.transcript.entries.len() as u32).filter(|&entry| session.parent(entry) == Some(result));
    let moved = [(result, call), (first, result)].into_iter().chain(children.map(|child| (child, last)));
    moved.map(|(entry, to)| link(entry, to)).collect()
}
