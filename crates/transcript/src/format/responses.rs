//! Items of `OpenAI`'s Responses API, one per line, as its Agents SDK keeps them, a program sends them as `input`, and old Codex wrote
//! them: messages, calls and outputs are items of their own, and pair by `call_id`.
//!
//! What an item means is read as in Codex's rollouts, which hold the same items. The API refuses a call without an output, and an
//! output without a call. Facts: the types of openai 3.57.0 (`ResponseInputItem`); docs/format-facts.md.

use super::base::{Arguments, Content, EntryPart, Format, Lost, NO_AGENT, ResultPlace, Shape, Vote};
use super::codex;
use super::common::{block_types, has_key_like, has_untyped_block, is_string, summary_message};
use super::kinds::Kinds;
use super::writing::Writing;
use crate::model::draft::Draft;
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

/// Fields of items.
const KEYS: &[&str] = &[
    "type",
    "id",
    "role",
    "content",
    "status",
    "phase",
    "call_id",
    "name",
    "namespace",
    "arguments",
    "input",
    "output",
    "summary",
    "encrypted_content",
    "action",
    "actions",
    "execution",
    "tools",
    "queries",
    "results",
    "result",
    "caller",
    "created_by",
    "operation",
    "pending_safety_checks",
    "acknowledged_safety_checks",
    "environment",
    "max_output_length",
    "code",
    "container_id",
    "outputs",
    "server_label",
    "error",
    "approval_request_id",
    "approve",
    "reason",
    "agent",
    // What openai 3.57.0 calls `async` in Python.
    "async",
    "async_",
];
/// Fields by which a line is a record around an item, or an event.
const NOT_KEYS: &[&str] =
    &["payload", "timestamp", "uuid", "parentId", "message", "data", "parts", "event", "tool_calls"];

/// Blocks of messages that no other API has.
const SPOKEN: &[&str] = &["input_text", "output_text", "input_image", "input_file", "input_audio", "refusal"];

const ITEMS: Kinds = Kinds::at(&["type"]).sent(
    "message function_call function_call_output custom_tool_call custom_tool_call_output reasoning local_shell_call \
         local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output tool_search_call \
         tool_search_output web_search_call file_search_call computer_call computer_call_output code_interpreter_call \
         image_generation_call mcp_list_tools mcp_approval_request mcp_approval_response mcp_call compaction item_reference",
);

const KINDS: &[Kinds] = &[
    ITEMS,
    Kinds::at(&["content", "*", "type"])
        .sent("output_text input_text input_image input_audio input_file refusal reasoning_text text encrypted_content"),
    Kinds::at(&["output", "*", "type"]).sent("input_text input_image input_audio input_file output_text"),
];

pub(super) const FORMAT: Format = Format {
    name: "openai-responses",
    written_by: "items of OpenAI's Responses, its Agents SDK",
    shape: Shape::Log,
    answer: ResultPlace::LineIfAllowed,
    arguments: Some(Arguments { at: &[&["arguments"]], none: "\"{}\"" }),
    content: Content { reasoning: true, seals_items: true, ..Content::OPENAI },
    names: codex::ITEM,
    kinds: KINDS,
    fields: KEYS,
    item_at: Some(&[]),
    vote,
    is_record: Some(|doc| vote(doc) == Vote::Own),
    read,
    parts,
    missing_result,
    compaction: summary_message,
    ..NO_AGENT
};

fn vote(doc: &Doc) -> Vote {
    let Some(item) = doc.root() else { return Vote::Silent };
    let [kind, role, content, call, output, summary] =
        item.pick(["type", "role", "content", "call_id", "output", "summary"]);
    let is_of = |names: &[&str]| kind.is_some_and(|kind| names.iter().any(|name| kind.is(name)));
    let is_list = |value: Option<Value<'_>>| value.is_some_and(|value| value.kind() == Json::Array);
    let calls = is_of(&["function_call", "custom_tool_call"]) && is_string(item.get("name"));
    let answers = is_of(&["function_call_output", "custom_tool_call_output"]) && output.is_some();
    let speaks = role.is_some()
        && content.is_some()
        && !has_untyped_block(content)
        && block_types(content).all(|kind| SPOKEN.iter().any(|own| kind.is(own)));
    let says = is_of(&["message"]) && speaks && block_types(content).next().is_some();
    match !has_key_like(doc, NOT_KEYS) {
        true if (calls || answers) && is_string(call) => Vote::Own,
        true if says || (is_of(&["reasoning"]) && is_list(summary)) => Vote::Own,
        true if kind.is_none() && speaks && item.get("tool_call_id").is_none() => Vote::Fits,
        true if kind.is_some_and(|kind| ITEMS.has(kind)) && (role.is_none() || speaks) => Vote::Fits,
        _ => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(item) = doc.root() else { return };
    match item.get("type") {
        Some(_) => codex::item(item, draft),
        None => codex::message(item.get("role"), item.get("content"), draft),
    }
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    doc.root().into_iter().for_each(|item| codex::item_parts(item, each));
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let (kind, _) = codex::output_kind(lost.doc.root());
    let item = Writing::new().text("type", kind.as_bytes()).raw("call_id", lost.call);
    codex::with_output(item, kind, MISSING_RESULT.as_bytes()).end()
}
