//! Messages of Vercel's AI SDK, one per line: those for the model, and those for the screen.
//!
//! Read are those of its versions 4 to 7. It is not known which program wrote such a file. In messages for the screen, call and
//! result are one part, whose `state` says how far the call is. Facts: docs/format-facts.md.

use super::base::{Arguments, Content, EntryPart, Format, Lost, NO_AGENT, ResultPlace, Results, Vote};
use super::common::{
    alone, asked, block_types, content_parts, has_block, has_untyped_block, is_string, items, only_keys,
    says_any,
};
use super::kinds::Kinds;
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use crate::model::finding::Severity;
use alloc::format;
use alloc::vec::Vec;
use spans::json::{Doc, Value};
use spans::marker::MISSING_RESULT;

const ARGUMENTS: Arguments = Arguments { at: &[&["input"]], none: "{}" };
const ROLES: &[&str] = &["system", "user", "assistant", "tool"];
const SCREEN_ROLES: &[&str] = &["system", "user", "assistant", "data"];
const KEYS: &[&str] = &["role", "content", "id", "providerOptions", "createdAt"];
/// Fields of a `UIMessage`: the last ones are of version 4 and before.
const SCREEN_KEYS: &[&str] = &[
    "id",
    "role",
    "parts",
    "metadata",
    "createdAt",
    "content",
    "toolInvocations",
    "reasoning",
    "annotations",
    "data",
    "experimental_attachments",
    "revisionId",
];

/// The parts of version 7 of the SDK (`ModelMessage`). By another part a file is not recognised.
const PARTS: Kinds = Kinds::at(&["content", "*", "type"]).sent(
    "text tool-call tool-result reasoning file image tool-approval-request tool-approval-response \
         reasoning-file custom",
);

const MODEL_KINDS: &[Kinds] = &[
    PARTS,
    Kinds::at(&["content", "*", "output", "type"])
        .sent("text json content error-text error-json execution-denied"),
];

/// Kinds of `UIMessage`.
const SCREEN_KINDS: &[Kinds] = &[
    Kinds::at(&["role"]).sent("assistant user system").silent("data"),
    Kinds::at(&["parts", "*", "type"])
        .sent("text tool-* dynamic-tool reasoning file reasoning-file custom")
        .silent("step-start source-url source-document source data-*"),
];

/// `ModelMessage`: parts `tool-call` and `tool-result`.
pub(super) const MODEL: Format = Format {
    name: "ai-sdk-model",
    written_by: "AI SDK, messages for the model",
    results: Results::Blocks,
    answer: ResultPlace::LineIfAllowed,
    arguments: Some(ARGUMENTS),
    takes_ids_again: true,
    // The SDK sends messages without their empty texts, and drops no message.
    content: Content { blank: Some(Severity::Note), ..Content::OPENAI },
    kinds: MODEL_KINDS,
    fields: KEYS,
    vote: model_vote,
    read: model_read,
    parts: model_parts,
    missing_result: model_missing_result,
    ..NO_AGENT
};

fn model_vote(doc: &Doc) -> Vote {
    let other = ["type", "parts", "tool_calls", "tool_call_id"].iter().any(|key| doc.get(key).is_some());
    let fits = says_any(doc, "role", ROLES)
        && doc.get("content").is_some()
        && !other
        && !has_untyped_block(doc.get("content"));
    let content = doc.get("content");
    let own = has_block(content, &["tool-call", "tool-result"]);
    let known = block_types(content).all(|kind| PARTS.has(kind));
    match fits && known {
        true if own && only_keys(doc, KEYS) => Vote::Own,
        true if own => Vote::Like,
        true if only_keys(doc, KEYS) => Vote::Fits,
        true => Vote::MayFit,
        false => Vote::Silent,
    }
}

fn model_read(doc: &Doc, draft: &mut Draft<'_>) {
    let content = doc.get("content");
    draft.entry.kind = match doc.get("role").and_then(Value::text).as_deref() {
        Some(b"user") => {
            asked(content, draft);
            Kind::Message(Role::User)
        }
        Some(b"assistant") => {
            if let Some(text) = alone(content) {
                draft.text(text);
            }
            items(content).for_each(|part| spoken_part(part, draft));
            Kind::Message(Role::Assistant)
        }
        Some(b"tool") => {
            items(content).for_each(|part| tool_part(part, draft));
            Kind::Message(Role::Tool)
        }
        Some(b"system") => Kind::Message(Role::System),
        _ => Kind::Opaque,
    };
}

fn model_missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let part =
        Writing::new().text("type", b"tool-result").raw("toolCallId", lost.call).text("toolName", lost.tool);
    // In version 4 calls have `args`, and results are what the tool returned.
    let part = if items(lost.doc.get("content")).any(|part| part.get("args").is_some()) {
        part.text("result", MISSING_RESULT.as_bytes()).raw("isError", b"true").end()
    } else {
        let output =
            Writing::new().text("type", b"error-text").text("value", MISSING_RESULT.as_bytes()).end();
        part.raw("output", &output).end()
    };
    Writing::new().text("role", b"tool").list("content", &part).end()
}

fn model_parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let content = doc.get("content");
    content_parts(alone(content), each);
    for part in items(content) {
        let [kind, name, arguments, output, old] =
            part.pick(["type", "toolName", "input", "output", "result"]);
        match kind.and_then(Value::text).as_deref() {
            Some(b"tool-call") => each(EntryPart::Call { name, arguments }),
            Some(b"tool-result") => {
                each(EntryPart::Result);
                content_parts(output.and_then(|output| output.get("value")), each);
                content_parts(old, each);
            }
            _ => content_parts(Some(part), each),
        }
    }
}

/// Reads a part of an assistant message. Reasoning of any length belongs to the part that follows it.
fn spoken_part(part: Value<'_>, draft: &mut Draft<'_>) {
    let [kind, text] = part.pick(["type", "text"]);
    match text {
        Some(text) if kind.is_some_and(|kind| kind.is("text")) => draft.text_block(part, text),
        Some(text) => {
            draft.text(text);
            draft.shows();
        }
        None => draft.image(part),
    }
    tool_part(part, draft);
}

fn tool_part(part: Value<'_>, draft: &mut Draft<'_>) {
    let [kind, id, name, output, old] = part.pick(["type", "toolCallId", "toolName", "output", "result"]);
    match kind.and_then(Value::text).as_deref() {
        Some(b"tool-call") => draft.call(part, id, name, lacks_arguments(part)),
        Some(b"tool-result") => {
            let [kind, value] = output.map(|output| output.pick(["type", "value"])).unwrap_or_default();
            let failed = kind.is_some_and(|kind| kind.is("error-text") || kind.is("error-json"));
            draft.result(part, id, name, failed);
            value.into_iter().chain(old).for_each(|text| draft.body(text));
            for part in items(value) {
                match part.get("text") {
                    Some(text) => draft.body(text),
                    None => draft.result_image(part),
                }
            }
        }
        _ => {}
    }
}

/// Whether a call has no arguments, under their current or their old name.
fn lacks_arguments(part: Value<'_>) -> bool {
    let [input, old] = part.pick(["input", "args"]);
    input.or(old).is_none_or(Value::is_null)
}

/// `UIMessage`: parts `tool-<name>`, each with a call and its result. In version 4 they are `tool-invocation`; before parts there
/// was only the list `toolInvocations`, which version 4 still writes, and does not read beside parts.
pub(super) const SCREEN: Format = Format {
    name: "ai-sdk-ui",
    written_by: "AI SDK, messages for the screen",
    remark: "a lost result goes into the part of its call",
    results: Results::WithCall,
    answer: ResultPlace::Call("state"),
    arguments: Some(Arguments { at: &[&["toolInvocation", "args"], &["input"]], none: "{}" }),
    content: Content { empty: None, blank: None, ..Content::OPENAI },
    kinds: SCREEN_KINDS,
    fields: SCREEN_KEYS,
    vote: screen_vote,
    read: screen_read,
    parts: screen_parts,
    missing_result: screen_missing_result,
    ..NO_AGENT
};

fn screen_vote(doc: &Doc) -> Vote {
    let mut parts = items(doc.get("parts")).peekable();
    let content = doc.get("content");
    let is_message = is_string(doc.get("id")) && says_any(doc, "role", SCREEN_ROLES);
    let is_typed = parts.peek().is_some() && parts.all(|part| is_string(part.get("type")));
    let mut calls = items(doc.get("toolInvocations"));
    match is_message && (content.is_none() || is_string(content)) {
        true if is_typed || calls.any(|call| is_string(call.get("toolCallId"))) => Vote::Own,
        true if content.is_some() && only_keys(doc, SCREEN_KEYS) => Vote::Fits,
        _ => Vote::Silent,
    }
}

/// What becomes of a call's state: in version 4 there is no failed one.
fn screen_missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let is_old = lost.doc.get("toolInvocations").is_some()
        || items(lost.doc.get("parts")).any(|part| part.get("toolInvocation").is_some());
    let (state, text) = if is_old { ("result", "result") } else { ("output-error", "errorText") };
    format!(r#""{state}","{text}":"{MISSING_RESULT}""#).into_bytes()
}

/// The calls of a message without parts, or its text.
fn before_parts(doc: &Doc) -> [Option<Value<'_>>; 2] {
    match doc.get("parts") {
        Some(_) => [None; 2],
        None => [doc.get("toolInvocations"), doc.get("content")],
    }
}

fn screen_read(doc: &Doc, draft: &mut Draft<'_>) {
    let role = doc.get("role").and_then(Value::text);
    let user = role.as_deref() == Some(b"user");
    let [calls, content] = before_parts(doc);
    match content {
        Some(text) if user => draft.user_text(text),
        Some(text) => draft.text(text),
        None => {}
    }
    items(calls).for_each(|call| invocation(call, call, draft));
    for part in items(doc.get("parts")) {
        let [kind, text] = part.pick(["type", "text"]);
        let kind = kind.and_then(Value::text).unwrap_or_default();
        if &*kind == b"file" {
            draft.image(part);
        } else if user {
            if let Some(text) = text {
                draft.user_text(text);
            }
        } else if let Some(call) = part.get("toolInvocation") {
            invocation(part, call, draft);
        } else if kind.starts_with(b"tool-") || &*kind == b"dynamic-tool" {
            screen_part(part, draft);
        } else if let Some(text) = text {
            draft.text(text);
        }
    }
    draft.entry.kind = match role.as_deref() {
        Some(b"user") => Kind::Message(Role::User),
        Some(b"assistant") => Kind::Message(Role::Assistant),
        Some(b"data") => Kind::Note,
        _ => Kind::Message(Role::System),
    };
}

fn screen_parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let is_tool = |part: &Value<'d>| {
        let kind = part.get("type").and_then(Value::text).unwrap_or_default();
        kind.starts_with(b"tool-") || &*kind == b"dynamic-tool"
    };
    let [calls, content] = before_parts(doc);
    content_parts(content, each);
    for part in items(calls).chain(items(doc.get("parts"))) {
        if calls.is_none() && !is_tool(&part) {
            content_parts(Some(part), each);
            continue;
        }
        let call = part.get("toolInvocation").unwrap_or(part);
        let [name, kind, input, args, output, result, error] =
            call.pick(["toolName", "type", "input", "args", "output", "result", "errorText"]);
        each(EntryPart::Call { name: name.or(kind), arguments: input.or(args) });
        for text in output.or(result).into_iter().chain(error) {
            each(EntryPart::Result);
            content_parts(Some(text), each);
        }
    }
}

/// Reads a call of version 4, and what it returned. The SDK refuses to send one that has no result, whatever its state.
fn invocation(part: Value<'_>, call: Value<'_>, draft: &mut Draft<'_>) {
    let [id, name, arguments, result] = call.pick(["toolCallId", "toolName", "args", "result"]);
    let is_part = part.get("toolInvocation").is_some();
    draft.call(part, id, name, is_part && result.is_some() && arguments.is_none_or(Value::is_null));
    if let Some(result) = result {
        draft.result(part, id, name, false);
        draft.content(Some(result));
    }
}

fn screen_part(part: Value<'_>, draft: &mut Draft<'_>) {
    let [kind, id, name, output, error, state] =
        part.pick(["type", "toolCallId", "toolName", "output", "errorText", "state"]);
    // The SDK leaves out a call whose arguments are not complete (6.0).
    if state.is_some_and(|state| state.is("input-streaming")) {
        return;
    }
    let answered = output.is_some() || error.is_some();
    draft.call(part, id, name, answered && lacks_arguments(part));
    let kind = kind.and_then(Value::text);
    if let Some(name) = kind.as_ref().and_then(|kind| kind.strip_prefix(b"tool-")) {
        draft.call_name(name);
    }
    if answered {
        draft.result(part, id, name, error.is_some());
        output.into_iter().chain(error).for_each(|text| draft.body(text));
    }
}
