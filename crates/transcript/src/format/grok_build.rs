//! Grok Build's `chat_history.jsonl`: items of the model's history, one per line.
//!
//! Results must be in the run of lines directly after their calls (its own `repair_history`). The agent writes the file
//! anew when a session begins, and holds a lock beside it while it writes. Facts: docs/format-facts.md.

use super::agent::Agent;
use super::base::{Arguments, BASE, Content, EntryPart, Format, Gate, Lost, ResultPlace, Root, Vote};
use super::common::{answered, asked, content_parts, is_string, items, listed_calls, says};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value};
use spans::marker::MISSING_RESULT;

const KINDS: &[Kinds] = &[
    Kinds::at(&["type"]).sent("assistant user tool_result system reasoning backend_tool_call"),
    Kinds::at(&["content", "*", "type"]).sent("text image image_url"),
];

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
    kinds: KINDS,
    vote,
    read,
    parts,
    missing_result,
    ..BASE
};

/// Others write `type` and `content` too, but neither calls like these, nor which prompt a message belongs to and which model
/// said it.
fn vote(doc: &Doc) -> Vote {
    let is = |kind: &str| says(doc, "type", kind);
    let has = |key: &str| doc.get(key).is_some();
    let foreign = ["uuid", "message", "role", "timestamp", "ts", "v", "data", "payload", "parentId"];
    let flat = |call: Value<'_>| is_string(call.get("name")) && is_string(call.get("arguments"));
    let own = is("user") && has("content") && (has("prompt_index") || is_string(doc.get("synthetic_reason")))
        || is("assistant")
            && has("content")
            && (is_string(doc.get("model_id")) || items(doc.get("tool_calls")).any(flat))
        || is("backend_tool_call") && doc.get("kind").is_some_and(|kind| kind.get("tool_type").is_some());
    let fits = ["system", "user", "assistant"].into_iter().any(is) && has("content")
        || is("tool_result") && is_string(doc.get("tool_call_id"))
        || is("reasoning") && has("summary");
    match own || fits {
        true if foreign.into_iter().any(has) => Vote::Silent,
        true if own => Vote::Own,
        true => Vote::Fits,
        false => Vote::Silent,
    }
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
