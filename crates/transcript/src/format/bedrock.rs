//! Messages of Bedrock's Converse API, one per line, as boto3 takes them and Strands holds them: `role` and `content`, whose
//! blocks are told by their only field: `text`, `toolUse`, `toolResult`.
//!
//! Lines have no envelope and no id that is sent: their order is the conversation. The API refuses a call without a result in the
//! next user message, and a result without a call in the message before. Facts: the API's model in botocore 1.44.8.

use super::base::{Arguments, Content, EntryPart, Format, Lost, NO_AGENT, ResultPlace, Results, Vote};
use super::common::{content_parts, has_key_like, items, only_keys, says_any};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use crate::model::finding::Severity;
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

/// `Message`, and what Strands 1.62.0 keeps beside it and does not send.
const KEYS: &[&str] = &["role", "content", "tracking_id", "metadata"];
/// Fields by which a line is something else.
const NOT_KEYS: &[&str] = &["type", "kind", "message", "parts", "uuid", "tool_calls", "tool_call_id"];

/// `ContentBlock`.
const BLOCKS: Kinds = Kinds::at(&["content", "*", "?"]).sent(
    "text toolUse toolResult image document video audio reasoningContent guardContent cachePoint citationsContent searchResult \
     toolAddition toolRemoval",
);

const KINDS: &[Kinds] = &[Kinds::at(&["role"]).sent("user assistant system"), BLOCKS];

const NAMES: &[FieldNames] =
    &[FieldNames::all(&[text("role"), needs("content", Form::Objects).with(BLOCK), has("tracking_id")])];

const BLOCK: &[FieldNames] = &[FieldNames::one(&[
    text("text"),
    needs("toolUse", Form::Object).with(&[FieldNames::all(&[
        text("toolUseId"),
        text("name"),
        needs("input", Form::Object),
    ])]),
    needs("toolResult", Form::Object)
        .with(&[FieldNames::all(&[text("toolUseId"), needs("content", Form::Objects)])]),
])];

pub(super) const FORMAT: Format = Format {
    name: "bedrock-converse",
    written_by: "bare Bedrock Converse messages, Strands",
    remark: "a lost result goes into the next user message",
    results: Results::Blocks,
    answer: ResultPlace::NextUser,
    arguments: Some(Arguments { at: &[&["toolUse", "input"]], none: "{}" }),
    has_plain_ids: true,
    content: Content {
        empty: Some(Severity::Error),
        blank: Some(Severity::Error),
        thinking: true,
        ..Content::NONE
    },
    names: NAMES,
    kinds: KINDS,
    fields: KEYS,
    vote,
    read,
    parts,
    missing_result,
    ..NO_AGENT
};

fn vote(doc: &Doc) -> Vote {
    let content = doc.get("content");
    let is_list = content.is_some_and(|content| content.kind() == Json::Array);
    if !is_list || !says_any(doc, "role", &["user", "assistant", "system"]) || has_key_like(doc, NOT_KEYS) {
        return Vote::Silent;
    }
    let is_block = |block: Value<'_>| {
        block.get("type").is_none() && block.fields().next().is_some_and(|(key, _)| BLOCKS.has(key))
    };
    let pairs = ["toolUse", "toolResult", "reasoningContent"];
    match items(content).all(is_block) {
        true if items(content).next().is_none() => Vote::Fits,
        true if only_keys(doc, KEYS) => Vote::Own,
        true if items(content).any(|block| pairs.iter().any(|key| block.get(key).is_some())) => Vote::Like,
        true => Vote::MayFit,
        false => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let content = doc.get("content");
    draft.entry.kind = match doc.get("role").and_then(Value::text).as_deref() {
        Some(b"user") => {
            items(content).for_each(|block| asked(block, draft));
            let is_result = |block: Value<'_>| block.get("toolResult").is_some();
            let results = items(content).filter(|block| is_result(*block)).count();
            let only_results = results > 0 && results == items(content).count();
            Kind::Message(if only_results { Role::Tool } else { Role::User })
        }
        Some(b"assistant") => {
            items(content).for_each(|block| said(block, draft));
            Kind::Message(Role::Assistant)
        }
        Some(b"system") => Kind::Message(Role::System),
        _ => Kind::Opaque,
    };
}

/// Reads a block of a user message.
fn asked(block: Value<'_>, draft: &mut Draft<'_>) {
    let [text, result] = block.pick(["text", "toolResult"]);
    if let Some(result) = result {
        let [id, content, status] = result.pick(["toolUseId", "content", "status"]);
        let failed = status.is_some_and(|status| status.is("error"));
        draft.result(block, id, None, failed);
        items(content).filter_map(|part| part.get("text")).for_each(|text| draft.body(text));
        if failed {
            draft.says_nothing(content, true);
        }
    } else if let Some(text) = text {
        draft.user_text(text);
        draft.blank(block, text);
    } else {
        draft.shows();
    }
}

/// Reads a block of an assistant message. Tools of the API itself are answered there too. Reasoning without a signature is of models
/// that sign none.
fn said(block: Value<'_>, draft: &mut Draft<'_>) {
    let [text, call, reasoning] = block.pick(["text", "toolUse", "reasoningContent"]);
    if let Some(call) = call.filter(|call| call.get("type").is_none()) {
        let [id, name, input] = call.pick(["toolUseId", "name", "input"]);
        draft.call(block, id, name, input.is_none_or(Value::is_null));
    } else if let Some(text) = text {
        draft.text_block(block, text);
    } else if let Some(signature) = reasoning.and_then(signature) {
        draft.signed(block, Some(signature));
    } else {
        draft.shows();
    }
}

fn signature(reasoning: Value<'_>) -> Option<Value<'_>> {
    let signature = reasoning.get("reasoningText").and_then(|text| text.get("signature"));
    let signature = signature.filter(|signature| signature.kind() == Json::String && !signature.is(""));
    signature.or_else(|| reasoning.get("redactedContent"))
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let text = Writing::new().text("text", MISSING_RESULT.as_bytes()).end();
    let result =
        Writing::new().raw("toolUseId", lost.call).list("content", &text).text("status", b"error").end();
    Writing::new().raw("toolResult", &result).end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    for block in items(doc.get("content")) {
        let [text, call, result, image] = block.pick(["text", "toolUse", "toolResult", "image"]);
        if let Some(call) = call {
            let [name, arguments] = call.pick(["name", "input"]);
            each(EntryPart::Call { name, arguments });
        }
        if let Some(result) = result {
            each(EntryPart::Result);
            items(result.get("content")).for_each(|part| content_parts(part.get("text"), each));
        }
        content_parts(text, each);
        if image.is_some() {
            each(EntryPart::Image);
        }
    }
}
