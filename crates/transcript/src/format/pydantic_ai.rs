//! Messages of Pydantic AI, one per line, as `ModelMessagesTypeAdapter` writes them: `kind` is `request` or `response`, and `parts` hold
//! what is said, called and answered.
//!
//! Calls are in a response, and their results in the request that follows, before what the user says. Pydantic AI sends a history as
//! it is: a call without a result is refused by the provider. Facts: pydantic-ai 2.68.0, its own adapter called.

use super::base::{
    Arguments, Compaction, Content, EntryPart, Format, Lost, NO_AGENT, ResultPlace, Results, Vote,
};
use super::common::{alone, content_parts, is_any, is_string, items, says_any};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

/// Fields of requests and responses.
const KEYS: &[&str] = &[
    "parts",
    "kind",
    "timestamp",
    "instructions",
    "run_id",
    "conversation_id",
    "metadata",
    "state",
    "usage",
    "model_name",
    "model_id",
    "provider_name",
    "provider_url",
    "provider_details",
    "provider_response_id",
    "vendor_details",
    "vendor_id",
    "canonical_system",
    "finish_reason",
    "workspace_ref",
    "history_digest",
    "failed_attempts",
];

const PARTS: Kinds = Kinds::at(&["parts", "*", "part_kind"]).sent(
    "system-prompt user-prompt speech tool-return retry-prompt retry-feedback text thinking tool-call file builtin-tool-call \
     builtin-tool-return instruction-delta instruction-baseline",
);

pub(super) const FORMAT: Format = Format {
    name: "pydantic-ai",
    written_by: "Pydantic AI messages",
    remark: "a lost result goes into the next request",
    results: Results::Blocks,
    answer: ResultPlace::NextUser,
    arguments: Some(Arguments { at: &[&["args"]], none: "{}" }),
    content: Content { thinking: true, ..Content::NONE },
    names: NAMES,
    kinds: &[PARTS],
    fields: KEYS,
    vote,
    read,
    parts,
    missing_result,
    results_message: |parts| Writing::new().list("parts", parts).text("kind", b"request").end(),
    compaction,
    ..NO_AGENT
};

const NAMES: &[FieldNames] = &[FieldNames::all(&[text("kind"), needs("parts", Form::Objects).with(PART)])];
const PART: &[FieldNames] = &[FieldNames::all(&[text("part_kind")])];

fn vote(doc: &Doc) -> Vote {
    let parts = doc.get("parts").filter(|parts| parts.kind() == Json::Array);
    let are_parts = || items(parts).all(|part| is_string(part.get("part_kind")));
    match says_any(doc, "kind", &["request", "response"]) && parts.is_some() && are_parts() {
        true if items(parts).next().is_some() => Vote::Own,
        true => Vote::Fits,
        false => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let parts = || items(doc.get("parts"));
    let is_response = doc.get("kind").is_some_and(|kind| kind.is("response"));
    draft.entry.kind = if is_response {
        parts().for_each(|part| said(part, draft));
        Kind::Message(Role::Assistant)
    } else {
        parts().for_each(|part| asked(part, draft));
        Kind::Message(role(&mut parts()))
    };
}

/// The role of a request: of tools, if it holds nothing but results.
fn role(parts: &mut dyn Iterator<Item = Value<'_>>) -> Role {
    let (mut role, mut holds_results) = (Role::System, false);
    for part in parts {
        if is_result(part) {
            holds_results = true;
        } else if part.get("part_kind").is_none_or(|kind| !kind.is("system-prompt")) {
            role = Role::User;
        }
    }
    if role == Role::System && holds_results { Role::Tool } else { role }
}

/// Whether a part of a request answers a call.
fn is_result(part: Value<'_>) -> bool {
    let [kind, id] = part.pick(["part_kind", "tool_call_id"]);
    is_string(id) && kind.is_some_and(|kind| is_any(kind, &["tool-return", "retry-prompt"]))
}

/// Reads a part of a request.
fn asked(part: Value<'_>, draft: &mut Draft<'_>) {
    let [kind, content, id, name, outcome] =
        part.pick(["part_kind", "content", "tool_call_id", "tool_name", "outcome"]);
    let is_of = |name: &str| kind.is_some_and(|kind| kind.is(name));
    if is_result(part) {
        let failed = is_of("retry-prompt") || outcome.is_some_and(|outcome| !outcome.is("success"));
        draft.result(part, id, name, failed);
        draft.content(content);
    } else if is_of("user-prompt") {
        let texts = items(content).filter(|item| item.kind() == Json::String);
        alone(content).into_iter().chain(texts).for_each(|text| draft.user_text(text));
        if items(content).any(|item| item.kind() == Json::Object) {
            draft.shows();
        }
    } else if !is_of("system-prompt") {
        draft.shows();
    }
}

/// Reads a part of a response.
fn said(part: Value<'_>, draft: &mut Draft<'_>) {
    let [kind, content, signature, id, name, arguments] =
        part.pick(["part_kind", "content", "signature", "tool_call_id", "tool_name", "args"]);
    match kind.and_then(Value::text).as_deref() {
        Some(b"tool-call") => draft.call(part, id, name, arguments.is_none_or(Value::is_null)),
        Some(b"text") => content.into_iter().for_each(|text| draft.text(text)),
        Some(b"thinking") if is_string(signature) => draft.signed(part, signature),
        _ => draft.shows(),
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    Writing::new()
        .text("tool_name", lost.tool)
        .text("content", MISSING_RESULT.as_bytes())
        .raw("tool_call_id", lost.call)
        .text("outcome", b"interrupted")
        .text("part_kind", b"tool-return")
        .end()
}

/// A compaction as a request in place of the messages that are left out.
fn compaction(made: &Compaction<'_>) -> Vec<Vec<u8>> {
    let part =
        Writing::new().text("content", made.summary.as_bytes()).text("part_kind", b"user-prompt").end();
    [(FORMAT.results_message)(&part)].into()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    for part in items(doc.get("parts")) {
        let [kind, name, arguments, content] = part.pick(["part_kind", "tool_name", "args", "content"]);
        match kind.and_then(Value::text).as_deref() {
            Some(b"tool-call") => each(EntryPart::Call { name, arguments }),
            Some(b"thinking") => {}
            _ => {
                if is_result(part) {
                    each(EntryPart::Result);
                }
                content_parts(content, each);
            }
        }
    }
}
