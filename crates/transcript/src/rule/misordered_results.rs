//! P7: text before the results of a message.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about, severity_in_context};
use crate::model::entry::ContentIssueKind;
use crate::model::finding::{Finding, Fix, Op};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use spans::json::{self, Value};
use spans::source::{Fault, Span, read_span};

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "P7",
        name: "misordered-results",
        help: Help {
            what: "A message holds something else before the last of its results.",
            why: "Anthropic requires results first: otherwise it answers as if they were missing.",
            fix: "The results come first, in their order, and the rest after them; the bytes of each stay the same. \
                  Claude Code does this itself when it sends.",
            source: "claude-code #21906; dsh-plugin-subscriptions #22",
        },
        groups: &[Group::Pairing],
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.results_first { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for own in session.transcript.issues().chunk_by(|one, next| one.entry == next.entry) {
        let mixed = own.iter().filter(|issue| issue.kind == ContentIssueKind::Misordered);
        let mixed: Vec<Span> = mixed.map(|issue| issue.block).collect();
        if mixed.is_empty() {
            continue;
        }
        let index = own[0].entry;
        let Some(doc) = json::parse(session.source, session.entry(index).span)? else { continue };
        let inside = doc.root().into_iter().flat_map(Value::descendants);
        let mut ops = Vec::new();
        for content in inside.filter(|value| mixed.contains(&value.span())) {
            let blocks: Vec<Value<'_>> = content.items().collect();
            let moved = reordered(session, &blocks)?;
            ops.extend(moved.map(|(at, with)| Op::Replace { at, with }));
        }
        let severity = severity_in_context(session, index);
        let message = "something comes before the results in this message".to_string();
        let fix = Fix::safe(ops);
        out.push(Finding { fix, ..about(&RULE, session, index, severity, message) });
    }
    Ok(())
}

/// The blocks up to the last result, with the results first; `None` if they already are.
fn reordered(session: &Session<'_>, blocks: &[Value<'_>]) -> Result<Option<(Span, Vec<u8>)>, Fault> {
    let is_result = |block: &&Value<'_>| block.get("type").is_some_and(|kind| kind.is("tool_result"));
    let first = blocks.iter().position(|block| !is_result(&block));
    let last = blocks.iter().rposition(|block| is_result(&block));
    let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
    if last < first {
        return Ok(None);
    }
    let mixed = &blocks[first..=last];
    let others = mixed.iter().filter(|block| !is_result(block));
    let mut with = Vec::new();
    for block in mixed.iter().filter(is_result).chain(others) {
        if !with.is_empty() {
            with.push(b',');
        }
        with.extend(read_span(session.source, block.span())?);
    }
    Ok(Some((Span::new(mixed[0].span().start, mixed[mixed.len() - 1].span().end), with)))
}
