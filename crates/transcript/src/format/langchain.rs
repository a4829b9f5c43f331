//! Messages of `LangChain`, one per line, in the three forms that it writes: `messages_to_dict` (`type`, `data`), `dumps` (`lc`, `id`,
//! `kwargs`), and `model_dump`, which is also how `LangGraph`'s server answers (the fields alone).
//!
//! The order of lines is the conversation, and a result is a message of its own. `LangGraph` refuses a history in which a call has no
//! result (`INVALID_CHAT_HISTORY`), and so do the providers. Facts: langchain-core 1.8.3, its own functions called.

use super::base::{Arguments, Compaction, Content, EntryPart, Format, Lost, NO_AGENT, ResultPlace, Vote};
use super::common::{answered, asked, content_parts, is_any, is_string, items, listed_calls};
use super::kinds::Kinds;
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use alloc::format;
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

/// Kinds of messages.
const TYPES: &[&str] = &[
    "human",
    "ai",
    "system",
    "tool",
    "function",
    "chat",
    "developer",
    "remove",
    "HumanMessageChunk",
    "AIMessageChunk",
    "SystemMessageChunk",
    "ToolMessageChunk",
];

/// Fields of a message, and those around it.
const KEYS: &[&str] = &[
    "type",
    "data",
    "lc",
    "id",
    "kwargs",
    "content",
    "additional_kwargs",
    "response_metadata",
    "name",
    "role",
    "example",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_chunks",
    "chunk_position",
    "usage_metadata",
    "tool_call_id",
    "artifact",
    "status",
];

pub(super) const FORMAT: Format = Format {
    name: "langchain",
    written_by: "LangChain and LangGraph messages",
    answer: ResultPlace::LineIfAllowed,
    arguments: Some(Arguments { at: &[&["args"]], none: "{}" }),
    content: Content::OPENAI,
    kinds: KINDS,
    fields: KEYS,
    vote,
    read,
    parts,
    missing_result,
    compaction,
    ..NO_AGENT
};

/// Messages that `LangGraph` removes others by steer what is sent.
const fn messages(at: &'static [&'static str]) -> Kinds {
    Kinds::at(at).sent("human ai system tool function chat developer").steers("remove")
}

/// The standard blocks of langchain-core, and those of providers that it passes on.
const fn blocks(at: &'static [&'static str]) -> Kinds {
    Kinds::at(at).sent(
        "text text-plain reasoning image audio video file tool_call invalid_tool_call server_tool_call server_tool_result non_standard \
         image_url input_audio document thinking redacted_thinking tool_use tool_result function_call media refusal input_text \
         output_text server_tool_use web_search_tool_result",
    )
}

const KINDS: &[Kinds] = &[
    messages(&["data", "type"]),
    messages(&["kwargs", "type"]),
    blocks(&["content", "*", "type"]),
    blocks(&["data", "content", "*", "type"]),
    blocks(&["kwargs", "content", "*", "type"]),
];

/// How a message is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By `messages_to_dict`.
    Data,
    /// By `dumps`.
    Constructor,
    /// By `model_dump`.
    Flat,
}

/// How a message is written, and its fields.
fn body(doc: &Doc) -> Option<(Form, Value<'_>)> {
    let [lc, data, kwargs] = doc.root()?.pick(["lc", "data", "kwargs"]);
    match (lc, data, kwargs) {
        (Some(_), _, Some(kwargs)) => Some((Form::Constructor, kwargs)),
        (None, Some(data), None) => Some((Form::Data, data)),
        (None, None, None) => Some((Form::Flat, doc.root()?)),
        _ => None,
    }
}

fn vote(doc: &Doc) -> Vote {
    let Some((form, body)) = body(doc) else { return Vote::Silent };
    let [kind, content, more, metadata, role] =
        body.pick(["type", "content", "additional_kwargs", "response_metadata", "role"]);
    let is_kind = kind.is_some_and(|kind| is_any(kind, TYPES)) && content.is_some();
    let is_chat = kind.is_some_and(|kind| kind.is("chat"));
    match is_kind && (is_chat || role.is_none()) {
        true if form != Form::Flat => Vote::Own,
        true if more.or(metadata).is_some_and(|value| value.kind() == Json::Object) => Vote::Own,
        true if items(body.get("tool_calls")).any(|call| call.get("args").is_some()) => Vote::Own,
        true if kind.is_some_and(|kind| is_any(kind, &["human", "ai"])) || is_result(body) => Vote::Like,
        true => Vote::Fits,
        false => Vote::Silent,
    }
}

fn is_result(body: Value<'_>) -> bool {
    is_string(body.get("tool_call_id"))
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some((_, body)) = body(doc) else { return };
    let [kind, content, calls, id, name, status, role] =
        body.pick(["type", "content", "tool_calls", "tool_call_id", "name", "status", "role"]);
    let kind = kind.and_then(Value::text).unwrap_or_default();
    let is_of_user = role.is_some_and(|role| role.is("user"));
    draft.entry.kind = match kind.strip_suffix(b"MessageChunk").unwrap_or(&kind) {
        kind if matches!(kind, b"human" | b"Human") || (kind == b"chat" && is_of_user) => {
            asked(content, draft);
            Kind::Message(Role::User)
        }
        b"ai" | b"AI" | b"chat" => {
            answered(content, draft);
            for call in items(calls) {
                let [id, name, arguments] = call.pick(["id", "name", "args"]);
                draft.call(call, id, name, arguments.is_none_or(Value::is_null));
            }
            Kind::Message(Role::Assistant)
        }
        b"tool" | b"Tool" => {
            draft.result(body, id, name, status.is_some_and(|status| status.is("error")));
            draft.content(content);
            Kind::Message(Role::Tool)
        }
        b"system" | b"System" | b"developer" => Kind::Message(Role::System),
        b"function" => Kind::Note,
        _ => Kind::Opaque,
    };
}

/// A message in the form of another one.
fn write(like: &Doc, kind: &str, class: &str, fields: Writing) -> Vec<u8> {
    let fields = fields.text("type", kind.as_bytes()).end();
    match body(like) {
        Some((Form::Data, _)) => Writing::new().text("type", kind.as_bytes()).raw("data", &fields).end(),
        Some((Form::Constructor, _)) => Writing::new()
            .raw("lc", b"1")
            .text("type", b"constructor")
            .raw("id", format!(r#"["langchain","schema","messages","{class}"]"#).as_bytes())
            .raw("kwargs", &fields)
            .end(),
        _ => fields,
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let body = Writing::new()
        .text("content", MISSING_RESULT.as_bytes())
        .raw("tool_call_id", lost.call)
        .text("name", lost.tool)
        .text("status", b"error");
    write(lost.doc, "tool", "ToolMessage", body)
}

/// A compaction as a user message in place of those that are left out.
fn compaction(made: &Compaction<'_>) -> Vec<Vec<u8>> {
    let body = Writing::new().text("content", made.summary.as_bytes());
    [write(made.doc, "human", "HumanMessage", body)].into()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let Some((_, body)) = body(doc) else { return };
    if is_result(body) {
        each(EntryPart::Result);
    }
    content_parts(body.get("content"), each);
    listed_calls(body.get("tool_calls"), each);
}
