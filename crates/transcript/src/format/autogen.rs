//! Messages of `AutoGen` 0.4 and later, one per line: those that an agent keeps for its model (`UserMessage`, `AssistantMessage`,
//! `FunctionExecutionResultMessage`), and the events of its teams (`TextMessage`, `ToolCallRequestEvent`, `ToolCallExecutionEvent`).
//!
//! Calls are the content of a message, and all results of a turn that of the next one. `AutoGen` sends a history as it is, and the
//! API refuses a call without a result. Facts: autogen-core and autogen-agentchat 0.7.5, their own functions called.

use super::base::{Arguments, Content, EntryPart, Format, Lost, NO_AGENT, ResultPlace, Results, Vote};
use super::common::{alone, content_parts, is_any, is_string, items};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

/// Fields of messages, and of events.
const KEYS: &[&str] = &[
    "type",
    "content",
    "source",
    "thought",
    "id",
    "models_usage",
    "metadata",
    "created_at",
    "tool_calls",
    "results",
];

const CALLS: &[&str] = &["AssistantMessage", "ToolCallRequestEvent"];
const RESULTS: &[&str] = &["FunctionExecutionResultMessage", "ToolCallExecutionEvent"];
/// What a team says; its users by their name, which is `user` unless somebody chose another.
const SPOKEN: &[&str] =
    &["TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage"];

const TYPES: Kinds = Kinds::at(&["type"])
        .sent(
            "UserMessage AssistantMessage SystemMessage FunctionExecutionResultMessage TextMessage MultiModalMessage StopMessage \
             HandoffMessage ToolCallSummaryMessage ToolCallRequestEvent ToolCallExecutionEvent StructuredMessage",
        )
        .silent(
            "ThoughtEvent UserInputRequestedEvent MemoryQueryEvent ModelClientStreamingChunkEvent SelectSpeakerEvent SelectorEvent \
             CodeGenerationEvent CodeExecutionEvent",
        );

pub(super) const FORMAT: Format = Format {
    name: "autogen",
    written_by: "AutoGen messages and events",
    results: Results::Blocks,
    answer: ResultPlace::LineIfAllowed,
    arguments: Some(Arguments { at: &[&["arguments"]], none: "\"{}\"" }),
    takes_ids_again: true,
    content: Content { empty: Content::OPENAI.empty, ..Content::NONE },
    names: &[FieldNames::all(&[text("type"), needs("content", Form::TextOrList)])],
    kinds: &[TYPES],
    fields: KEYS,
    vote,
    read,
    parts,
    missing_result,
    ..NO_AGENT
};

fn is_of(doc: &Doc, types: &[&str]) -> bool {
    doc.get("type").is_some_and(|kind| is_any(kind, types))
}

/// Whether elements of the content have these fields, all of them strings.
fn holds(doc: &Doc, names: [&str; 2]) -> bool {
    items(doc.get("content")).next().is_some_and(|item| item.pick(names).into_iter().all(is_string))
}

fn vote(doc: &Doc) -> Vote {
    let content = doc.get("content");
    let is_event = is_string(doc.get("source")) && doc.get("models_usage").is_some();
    match doc.get("role").is_none() && doc.get("message").is_none() {
        true if is_of(doc, CALLS) && holds(doc, ["name", "arguments"]) => Vote::Own,
        true if is_of(doc, RESULTS) && holds(doc, ["call_id", "content"]) => Vote::Own,
        true if is_of(doc, &["UserMessage", "AssistantMessage"]) && is_string(doc.get("source")) => Vote::Own,
        true if is_event && doc.get("type").is_some_and(|kind| TYPES.has(kind)) => Vote::Own,
        true if is_of(doc, &["SystemMessage"]) && is_string(content) => Vote::Fits,
        true if is_of(doc, RESULTS) && content.is_some_and(|content| content.kind() == Json::Array) => {
            Vote::Fits
        }
        _ => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let content = doc.get("content");
    let speaks_for_user = is_of(doc, SPOKEN) && doc.get("source").is_some_and(|source| source.is("user"));
    let is_spoken = is_of(doc, SPOKEN) || is_of(doc, &["StructuredMessage"]);
    draft.entry.kind = if is_of(doc, &["UserMessage"]) || speaks_for_user {
        let texts = items(content).filter(|item| item.kind() == Json::String);
        alone(content).into_iter().chain(texts).for_each(|text| draft.user_text(text));
        if items(content).any(|item| item.kind() == Json::Object) {
            draft.shows();
        }
        Kind::Message(Role::User)
    } else if is_of(doc, CALLS) || is_spoken {
        alone(content).into_iter().chain(doc.get("thought")).for_each(|text| draft.text(text));
        for call in items(content).filter(|_| !is_spoken) {
            let [id, name, arguments] = call.pick(["id", "name", "arguments"]);
            draft.call(call, id, name, arguments.is_none_or(Value::is_null));
        }
        if is_spoken && content.is_some_and(|content| content.kind() != Json::String) {
            draft.shows();
        }
        Kind::Message(Role::Assistant)
    } else if is_of(doc, RESULTS) {
        for result in items(content) {
            let [id, name, text, failed] = result.pick(["call_id", "name", "content", "is_error"]);
            draft.result(result, id, name, failed.is_some_and(Value::is_true));
            draft.content(text);
        }
        Kind::Message(Role::Tool)
    } else if is_of(doc, &["SystemMessage"]) {
        Kind::Message(Role::System)
    } else if doc.get("type").is_some_and(|kind| TYPES.has(kind)) {
        Kind::Note
    } else {
        Kind::Opaque
    };
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let result = Writing::new()
        .text("content", MISSING_RESULT.as_bytes())
        .text("name", lost.tool)
        .raw("call_id", lost.call)
        .raw("is_error", b"true")
        .end();
    match lost.doc.get("source").filter(|_| is_of(lost.doc, &["ToolCallRequestEvent"])) {
        Some(source) => Writing::new()
            .raw("source", &(lost.raw)(source))
            .raw("models_usage", b"null")
            .raw("metadata", b"{}")
            .list("content", &result)
            .text("type", b"ToolCallExecutionEvent")
            .end(),
        None => Writing::new().list("content", &result).text("type", b"FunctionExecutionResultMessage").end(),
    }
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let content = doc.get("content");
    content_parts(alone(content), each);
    for item in items(content) {
        let [name, arguments, call, text] = item.pick(["name", "arguments", "call_id", "content"]);
        if call.is_some() {
            each(EntryPart::Result);
            content_parts(text, each);
        } else if name.is_some() {
            each(EntryPart::Call { name, arguments });
        } else if item.kind() == Json::String {
            each(EntryPart::Text(item));
        }
    }
}
