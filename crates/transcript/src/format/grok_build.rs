//! Grok Build's `chat_history.jsonl`: items of the model's history, one per line.
//!
//! Results must be in the run of lines directly after their calls (its own `repair_history`). The agent writes the file
//! anew when a session begins, and holds a lock beside it while it writes. Facts: docs/format-facts.md.

use super::agent::Agent;
use super::base::{Arguments, BASE, Content, EntryPart, Format, Gate, Lost, ResultPlace, Root, Vote};
use super::common::{answered, asked, content_parts, is_string, items, listed_calls, says};
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value};
use spans::marker::MISSING_RESULT;

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[text("type"), has("prompt_index"), has("model_id"), has("synthetic_reason")]),
    FieldNames::typed(&["system", "assistant"], &[needs("content", Form::TextOrList)]),
    FieldNames::typed(
        &["user"],
        &[needs("content", Form::TextOrList)
            .with(&[FieldNames::all(&[text("type")]), FieldNames::typed(&["text"], &[text("text")])])],
    ),
    FieldNames::typed(
        &["assistant"],
        &[needs("tool_calls", Form::Objects).with(&[FieldNames::all(&[
            text("id"),
            text("name"),
            text("arguments"),
        ])])],
    ),
    FieldNames::typed(&["tool_result"], &[text("tool_call_id"), needs("content", Form::TextOrList)]),
];

pub(super) const FORMAT: Format = Format {
    name: "grok-build",
    written_by: "Grok Build `chat_history.jsonl`",
    remark: "its lock is taken",
    agents: &[Agent::named("Grok Build")],
    gates: &[Gate::Idle, Gate::GrokLock],
    roots: &[Root { env: Some("GROK_HOME"), home: ".grok", below: "sessions" }],
    answer: ResultPlace::Line,
    arguments: Some(Arguments { at: &[&["arguments"]], none: "\"{}\"" }),
    content: Content::OPENAI,
    names: NAMES,
    vote,
    read,
    parts,
    missing_result,
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let is = |kind: &str| says(doc, "type", kind);
    let other = ["uuid", "message", "role", "timestamp", "data", "payload", "parentId"];
    let content = doc.get("content").is_some();
    let own = (is("system") || is("user") || is("assistant")) && content
        || is("tool_result") && is_string(doc.get("tool_call_id"))
        || is("reasoning") && doc.get("summary").is_some()
        || is("backend_tool_call") && doc.get("kind").is_some();
    if own && !other.iter().any(|key| doc.get(key).is_some()) { Vote::Own } else { Vote::Silent }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let content = doc.get("content");
    draft.entry.kind = match doc.get("type").and_then(Value::text).as_deref() {
        Some(b"system") => Kind::Message(Role::System),
        Some(b"user") => {
            asked(content, draft);
            draft.entry.injected = is_string(doc.get("synthetic_reason"));
            Kind::Message(Role::User)
        }
        Some(b"assistant") => {
            answered(content, draft);
            draft.entry.model = draft.intern(doc.get("model_id"));
            for call in items(doc.get("tool_calls")) {
                let [id, name, arguments] = call.pick(["id", "name", "arguments"]);
                draft.call(call, id, name, arguments.is_none_or(Value::is_null));
            }
            Kind::Message(Role::Assistant)
        }
        Some(b"tool_result") => {
            if let Some(root) = doc.root() {
                draft.result(root, doc.get("tool_call_id"), None, false);
                draft.content(content);
            }
            Kind::Message(Role::Tool)
        }
        _ => Kind::Opaque,
    };
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    Writing::new()
        .text("type", b"tool_result")
        .raw("tool_call_id", lost.call)
        .text("content", MISSING_RESULT.as_bytes())
        .end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    if says(doc, "type", "tool_result") {
        each(EntryPart::Result);
    }
    content_parts(doc.get("content"), each);
    listed_calls(doc.get("tool_calls"), each);
}
