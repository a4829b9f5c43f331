//! Bare messages of Anthropic's API, one per line: `role` and `content`, with `tool_use` and `tool_result` blocks.
//!
//! Lines have no envelope and no id: their order is the conversation.

use super::base::{
    Arguments, Broken, Content, EntryPart, Estimate, Format, Lost, NO_AGENT, ResultPlace, Results, Vote,
};
use super::claude_code::{blocks, spoken};
use super::common::{
    block_types, broken_by_stop_reason, content_parts, corrupted, has_block, has_key_like, has_untyped_block,
    items, note_corrupted, only_keys, says_any, summary_message,
};
use super::fields;
use super::kinds::{self, Kinds};
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value};
use spans::marker::MISSING_RESULT;

const KEYS: &[&str] =
    &["role", "content", "id", "type", "model", "stop_reason", "stop_sequence", "usage", "container"];
/// Fields of messages of OpenAI.
const OPENAI: &[&str] = &["tool_calls", "tool_call_id"];
const ROLES: &[&str] = &["user", "assistant", "system"];
/// Names of which a message needs at least one.
const NEEDED: &[&str] = &["role", "content", "user", "assistant", "system"];
const BLOCKS: &[&str] = &["tool_use", "tool_result", "thinking", "redacted_thinking"];

/// Parts of the AI SDK's messages.
const AISDK: &[&str] = &["tool-call", "tool-result"];

const BLOCK_KINDS: Kinds = kinds::blocks("", &["content", "*", "type"]);

const KINDS: &[Kinds] = &[
    Kinds::at(&["role"]).sent("assistant user system"),
    BLOCK_KINDS,
    kinds::blocks("", &["content", "*", "content", "*", "type"]),
];

const NAMES: &[FieldNames] = &[FieldNames::all(&[
    text("role"),
    needs("content", Form::TextOrList).with(BLOCK),
    has("type"),
    has("model"),
    has("stop_reason"),
    has("stop_sequence"),
    has("usage").with(&[FieldNames::all(&[has("input_tokens"), has("output_tokens")])]),
])];

/// Names in blocks of this dialect.
pub(super) const BLOCK: &[FieldNames] = &[
    FieldNames::all(&[text("type"), has("cache_control"), has("is_error"), has("citations")]),
    FieldNames::typed(&["text"], &[text("text")]),
    FieldNames::typed(&["tool_use"], &[text("id"), text("name"), needs("input", Form::Object)]),
    FieldNames::typed(
        &["tool_result"],
        &[text("tool_use_id"), needs("content", Form::TextOrList).with(RESULT)],
    ),
    FieldNames::typed(&["thinking"], &[text("thinking"), text("signature")]),
    FieldNames::typed(&["redacted_thinking"], &[text("data")]),
    FieldNames::typed(&["image"], &[needs("source", Form::Object)]),
];

const RESULT: &[FieldNames] = &[
    FieldNames::all(&[text("type")]),
    FieldNames::typed(&["text"], &[text("text")]),
    FieldNames::typed(&["image"], &[needs("source", Form::Object)]),
];

pub(super) const FORMAT: Format = Format {
    name: "anthropic",
    written_by: "bare Anthropic messages",
    remark: "a lost result goes into the next user message",
    results: Results::Blocks,
    answer: ResultPlace::NextUser,
    arguments: Some(Arguments::INPUT),
    has_plain_ids: true,
    content: Content::ANTHROPIC,
    estimate: Estimate { char: 327, ..Estimate::BASE },
    names: NAMES,
    kinds: KINDS,
    fields: KEYS,
    vote,
    read,
    parts,
    broken,
    missing_result,
    compaction: summary_message,
    ..NO_AGENT
};

fn vote(doc: &Doc) -> Vote {
    let fits = only_keys(doc, KEYS)
        && !has_untyped_block(doc.get("content"))
        && doc.get("content").is_some()
        && says_any(doc, "role", ROLES)
        && doc.get("type").is_none_or(|kind| kind.is("message"));
    let holds = |types: &[&str]| has_block(doc.get("content"), types);
    match fits {
        true if holds(AISDK) => Vote::Foreign,
        true if holds(BLOCKS) || doc.get("stop_reason").is_some() => Vote::Own,
        true => Vote::Fits,
        false if corrupted(doc.root(), KEYS, ROLES).is_some() && !holds(AISDK) => Vote::Corrupted,
        false if !is_dialect(doc) => Vote::Foreign,
        false if holds(BLOCKS) => Vote::Like,
        false => Vote::MayFit,
    }
}

/// Whether an object is a message but for fields that other programs add.
fn is_dialect(doc: &Doc) -> bool {
    let content = doc.get("content");
    content.is_some()
        && says_any(doc, "role", ROLES)
        && !has_key_like(doc, fields::OF_RECORDS)
        && !has_key_like(doc, OPENAI)
        && !has_untyped_block(content)
        && block_types(content).all(|kind| BLOCK_KINDS.has(kind))
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    doc.root().into_iter().for_each(|root| message(root, draft));
    if (draft.entry.kind == Kind::Opaque || doc.get("content").is_none())
        && let Some(name) = corrupted(doc.root(), KEYS, ROLES)
    {
        note_corrupted(&name, NEEDED, draft);
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    Writing::new()
        .text("type", b"tool_result")
        .raw("tool_use_id", lost.call)
        .text("content", MISSING_RESULT.as_bytes())
        .raw("is_error", b"true")
        .end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    content_parts(doc.get("content"), each);
}

fn broken(doc: &Doc) -> Option<Broken<'_>> {
    broken_by_stop_reason(doc.root())
}

/// Reads a message of this dialect.
pub(super) fn message(root: Value<'_>, draft: &mut Draft<'_>) {
    draft.entry.kind = match root.get("role").and_then(Value::text).as_deref() {
        Some(b"user") => asked(root.get("content"), draft),
        Some(b"assistant") => {
            spoken(root, draft);
            // A line is a whole message here, whatever its id.
            draft.entry.group = None;
            Kind::Message(Role::Assistant)
        }
        Some(b"system") => Kind::Message(Role::System),
        _ => Kind::Opaque,
    };
}

/// Reads a user message, whose blocks may be tool results, and notes it if the results do not come first.
pub(super) fn asked(content: Option<Value<'_>>, draft: &mut Draft<'_>) -> Kind {
    if blocks(content, draft) {
        return Kind::Message(Role::Tool);
    }
    let is_result = |block: Value<'_>| block.get("type").is_some_and(|kind| kind.is("tool_result"));
    let sorted = items(content).map(is_result).is_sorted_by(|one, next| one >= next);
    if let Some(content) = content.filter(|_| !sorted) {
        draft.issue(ContentIssueKind::Misordered, content.span());
    }
    Kind::Message(Role::User)
}
