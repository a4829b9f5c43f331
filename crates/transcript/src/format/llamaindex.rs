//! `LlamaIndex`'s `ChatMessage`, one per line, as chat stores and memories keep it: `role`, `blocks` told by `block_type`, and in
//! `additional_kwargs` what the provider's API wants; before 0.12 a `content` in place of blocks.
//!
//! Calls are blocks or in `additional_kwargs`, which counts only if no block is one. A result is a message of its own. Facts:
//! llama-index-core 0.14.25 and llama-index-llms-openai, their own functions called.

use super::base::{Arguments, Compaction, Content, EntryPart, Format, Lost, NO_AGENT, ResultPlace, Vote};
use super::common::{alone, content_parts, is_string, items, listed_calls, says, says_any};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

const KEYS: &[&str] = &["role", "additional_kwargs", "blocks", "content"];
/// `MessageRole`.
const ROLES: &[&str] = &["user", "assistant", "system", "developer", "tool", "function", "chatbot", "model"];

const KINDS: &[Kinds] = &[
    Kinds::at(&["role"]).sent("user assistant system developer tool function chatbot model"),
    Kinds::at(&["blocks", "*", "block_type"])
        .sent("text image audio video document cache citable citation thinking tool_call"),
];

pub(super) const FORMAT: Format = Format {
    name: "llamaindex",
    written_by: "LlamaIndex chat messages",
    answer: ResultPlace::LineIfAllowed,
    // Arguments of a block may be a text as well.
    arguments: Some(Arguments { at: &[&["function", "arguments"], &["tool_kwargs"]], none: "\"{}\"" }),
    takes_ids_again: true,
    content: Content { empty: Content::OPENAI.empty, ..Content::NONE },
    names: &[FieldNames::all(&[text("role"), needs("additional_kwargs", Form::Object)])],
    kinds: KINDS,
    fields: KEYS,
    vote,
    read,
    parts,
    missing_result,
    compaction,
    ..NO_AGENT
};

fn vote(doc: &Doc) -> Vote {
    let [more, blocks, content] =
        doc.root().map(|root| root.pick(["additional_kwargs", "blocks", "content"])).unwrap_or_default();
    let is = |value: Option<Value<'_>>, kind| value.is_some_and(|value| value.kind() == kind);
    let are_blocks = is(blocks, Json::Array) && items(blocks).all(|block| is_string(block.get("block_type")));
    let is_message = says_any(doc, "role", ROLES) && doc.get("type").is_none() && is(more, Json::Object);
    if is_message && (are_blocks || content.is_some()) { Vote::Own } else { Vote::Silent }
}

/// The calls of a message beside its blocks.
fn calls_beside(doc: &Doc) -> Option<Value<'_>> {
    let in_blocks = items(doc.get("blocks")).any(is_call);
    doc.get("additional_kwargs")?.get("tool_calls").filter(|_| !in_blocks)
}

fn is_call(block: Value<'_>) -> bool {
    block.get("block_type").is_some_and(|kind| kind.is("tool_call"))
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let content = doc.get("blocks").or(doc.get("content"));
    draft.entry.kind = match doc.get("role").and_then(Value::text).as_deref() {
        Some(b"user") => {
            if let Some(text) = alone(content) {
                draft.user_text(text);
            }
            for block in items(content) {
                match block.get("text") {
                    Some(text) => draft.user_text(text),
                    None => draft.shows(),
                }
            }
            Kind::Message(Role::User)
        }
        Some(b"assistant" | b"chatbot" | b"model") => {
            if let Some(text) = alone(content) {
                draft.text(text);
            }
            items(content).for_each(|block| said(block, draft));
            for call in items(calls_beside(doc)) {
                let [name, arguments] = call.get("function").unwrap_or(call).pick(["name", "arguments"]);
                draft.call(call, call.get("id"), name, arguments.is_none_or(Value::is_null));
            }
            Kind::Message(Role::Assistant)
        }
        Some(b"tool") => {
            let more = doc.get("additional_kwargs");
            let [id, name] = more.map(|more| more.pick(["tool_call_id", "name"])).unwrap_or_default();
            doc.root().into_iter().for_each(|line| draft.result(line, id, name, false));
            draft.content(content);
            Kind::Message(Role::Tool)
        }
        Some(b"system" | b"developer") => Kind::Message(Role::System),
        Some(b"function") => Kind::Note,
        _ => Kind::Opaque,
    };
}

/// Reads a block of an assistant message.
fn said(block: Value<'_>, draft: &mut Draft<'_>) {
    let [text, id, name, arguments] = block.pick(["text", "tool_call_id", "tool_name", "tool_kwargs"]);
    match text {
        Some(text) => draft.text(text),
        None if is_call(block) => draft.call(block, id, name, arguments.is_none_or(Value::is_null)),
        None => draft.shows(),
    }
}

/// A message in the form of another one.
fn write(like: &Doc, role: &[u8], more: &[u8], text: &[u8]) -> Vec<u8> {
    let message = Writing::new().text("role", role).raw("additional_kwargs", more);
    if like.get("blocks").is_some() {
        let block = Writing::new().text("block_type", b"text").text("text", text).end();
        message.list("blocks", &block).end()
    } else {
        message.text("content", text).end()
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let more = Writing::new().raw("tool_call_id", lost.call).text("name", lost.tool).end();
    write(lost.doc, b"tool", &more, MISSING_RESULT.as_bytes())
}

/// A compaction as a user message in place of those that are left out.
fn compaction(made: &Compaction<'_>) -> Vec<Vec<u8>> {
    [write(made.doc, b"user", b"{}", made.summary.as_bytes())].into()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    if says(doc, "role", "tool") {
        each(EntryPart::Result);
    }
    content_parts(alone(doc.get("content")), each);
    for block in items(doc.get("blocks")) {
        let [text, name, arguments] = block.pick(["text", "tool_name", "tool_kwargs"]);
        match text {
            Some(_) => content_parts(text, each),
            None if is_call(block) => each(EntryPart::Call { name, arguments }),
            None => {}
        }
    }
    listed_calls(calls_beside(doc), each);
}
