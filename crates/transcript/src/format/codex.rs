//! Codex rollouts: a header, then items of the Responses API and events for the screen, each in an envelope.
//!
//! Calls and outputs find each other by `call_id` and kind, wherever they are (`context_manager/normalize.rs`). Items
//! before the newest compaction are not sent any more (`rollout_reconstruction.rs`). Events repeat outputs, and the
//! model never sees those copies. Reasoning is encrypted, but not bound to earlier items. Of a thread with a paginated
//! history, a database and the threads that were forked from it keep byte offsets, so its lines stay where they are.
//! Facts: docs/format-facts.md, docs/stores.md.

use super::agent::{Agent, Index, Resume};
use super::base::{
    BASE, Broken, Content, EntryPart, Estimate, Format, Gate, Header, Lost, ResultPlace, Root, Shape,
    SupportLevel, Vote,
};
use super::common::{
    answered, asked, content_parts, first_text, is_string, items, only_keys, says, time_after,
};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role, Service};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use uuid::Uuid;

const KEYS: &[&str] = &["timestamp", ORDINAL, "type", "payload", "metadata"];
const ORDINAL: &str = "ordinal";
const PAGINATED: &str = "Codex's database and in forks of the thread (paginated history)";
const UNKNOWN: &str = "how Codex keeps its history (history_mode) is not known";

/// Namespace of the ids that Codex gives to outputs it adds (`context_manager/normalize.rs`).
const OUTPUT_IDS: Uuid = Uuid::from_u128(0x90d3_8d3e_6a5b_4d52_bfe2_2f1e_634b_fac4);

/// What Codex itself sends in place of a missing output.
const ABORTED: &[u8] = b"aborted";

/// The variants that 0.171.0 deserialises, and those of earlier versions; 0.171.0 skips `ghost_snapshot` by name.
const KINDS: &[Kinds] = &[
    LINES,
    Kinds::at(&["payload", "type"]).within("response_item").sent(ITEMS).silent(OTHER_ITEMS),
    Kinds::at(&["payload", "replacement_history", "*", "type"])
        .within("compacted")
        .sent(ITEMS)
        .silent(OTHER_ITEMS),
    Kinds::at(&["payload", "content", "*", "type"])
        .within("response_item")
        .sent("output_text input_text input_image input_audio encrypted_content reasoning_text text"),
    Kinds::at(&["payload", "output", "*", "type"])
        .within("response_item")
        .sent("input_text input_image input_audio encrypted_content"),
    Kinds::at(&["payload", "type"])
        .within("event_msg")
        .silent(
            "token_count agent_message user_message agent_reasoning task_started task_complete \
         exec_command_end patch_apply_end mcp_tool_call_end turn_aborted item_completed \
         agent_reasoning_raw_content agent_reasoning_section_break thread_settings_applied \
         thread_name_updated thread_goal_updated thread_queue_changed context_compacted \
         entered_review_mode exited_review_mode web_search_begin web_search_end \
         image_generation_begin image_generation_end view_image_tool_call error warning stream_error \
         deprecation_notice background_event turn_diff plan_update plan_delta session_configured \
         environment_connected environment_disconnected mcp_startup_update mcp_startup_complete \
         mcp_tool_call_begin exec_command_begin exec_command_output_delta terminal_interaction \
         exec_approval_request request_permissions request_user_input dynamic_tool_call_request \
         dynamic_tool_call_response elicitation_request elicitation_abandoned \
         apply_patch_approval_request patch_apply_begin patch_apply_updated guardian_assessment \
         guardian_warning auth_recovery_started auth_recovery_completed realtime_conversation_started \
         realtime_conversation_realtime realtime_conversation_closed realtime_conversation_sdp \
         realtime_conversation_list_voices_response model_reroute model_verification \
         turn_moderation_metadata safety_buffering shutdown_complete raw_response_item \
         raw_response_completed item_started hook_started hook_completed agent_message_content_delta \
         agent_message_delta agent_reasoning_delta reasoning_content_delta \
         reasoning_raw_content_delta collab_agent_spawn_begin collab_agent_spawn_end \
         collab_agent_interaction_begin collab_agent_interaction_end collab_waiting_begin \
         collab_waiting_end collab_close_begin collab_close_end collab_resume_begin collab_resume_end \
         sub_agent_activity undo_started undo_completed",
        )
        .steers("thread_rolled_back"),
];

/// The types of lines.
const LINES: Kinds = Kinds::at(&["type"])
    .sent("response_item inter_agent_communication")
    .steers("event_msg compacted")
    .silent(
        "turn_context session_meta world_state inter_agent_communication_metadata \
         dynamic_tools_updated token_usage_record security_risk_score realtime_item",
    );

/// Items of the conversation.
const ITEMS: &str = "function_call function_call_output message reasoning custom_tool_call custom_tool_call_output \
     local_shell_call tool_search_call tool_search_output web_search_call image_generation_call agent_message compaction \
     compaction_summary context_compaction configuration_update compaction_trigger";

/// What takes the place of items of other versions, and what was never sent.
const OTHER_ITEMS: &str = "ghost_snapshot other";

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[text("timestamp"), text("type"), needs("payload", Form::Object)]),
    FieldNames::typed(
        &["session_meta"],
        &[has("payload").with(&[FieldNames::all(&[
            text("id"),
            text("timestamp"),
            text("cwd"),
            text("originator"),
            text("cli_version"),
            has("source"),
            has("model_provider"),
            has("base_instructions"),
            has("instructions"),
        ])])],
    ),
    FieldNames::typed(&["response_item"], &[has("payload").with(ITEM)]),
    FieldNames::typed(
        &["event_msg"],
        &[has("payload").with(&[
            FieldNames::all(&[text("type"), has("images"), has("local_images"), has("text_elements")]),
            FieldNames::typed(&["user_message", "agent_message"], &[text("message")]),
        ])],
    ),
];

/// The names in an item.
pub(super) const ITEM: &[FieldNames] = &[
    FieldNames::all(&[
        text("type"),
        has("status"),
        has("phase"),
        has("internal_chat_message_metadata_passthrough"),
    ]),
    FieldNames::typed(
        &["message"],
        &[
            text("role"),
            needs("content", Form::List).with(&[
                FieldNames::all(&[text("type")]),
                FieldNames::typed(&["input_text", "output_text"], &[text("text")]),
                FieldNames::typed(&["input_image"], &[text("image_url")]),
            ]),
        ],
    ),
    FieldNames::typed(&["function_call"], &[text("name"), text("arguments"), text("call_id")]),
    FieldNames::typed(&["custom_tool_call"], &[text("name"), text("input"), text("call_id")]),
    FieldNames::typed(
        &["function_call_output", "custom_tool_call_output"],
        &[text("call_id"), needs("output", Form::Any)],
    ),
    FieldNames::typed(&["reasoning"], &[needs("summary", Form::List), has("encrypted_content")]),
];

/// Tried with 0.169.0: `codex resume` finds a file that has no row and adds one; until then its picker does not list
/// the session.
const THREADS: Index =
    Index::Database { name: ["state_", ".sqlite"], unknown: "codex resume ID finds one and adds it" };

pub(super) const FORMAT: Format = Format {
    name: "codex",
    written_by: "Codex rollouts, TraeX",
    remark: "only while nobody holds it open; in paginated threads no line moves, so their files never shrink",
    agents: &[
        Agent::resumed("Codex", Resume { command: &["codex", "resume"], ..Resume::BY_FILE }).with(THREADS),
        Agent::at("TraeX", ".trae"),
    ],
    // Codex 0.171 (measured).
    agent_cuts_results: Some(10_200),
    shape: Shape::Log,
    level: SupportLevel::Insert,
    single_files_read_only: Some(UNKNOWN),
    single_files_offsets: Some(PAGINATED),
    gates: &[Gate::CodexWriter],
    header: Header::Decides,
    roots: &[
        Root { env: Some("CODEX_HOME"), home: ".codex", below: "sessions" },
        Root { env: Some("CODEX_HOME"), home: ".codex", below: "archived_sessions" },
        // TraeX writes the same bytes.
        Root { env: None, home: ".trae/cli", below: "sessions" },
        Root { env: None, home: ".trae/cli", below: "archived_sessions" },
    ],
    answer: ResultPlace::Line,
    copies_results: true,
    states_window: true,
    content: Content {
        reasoning: true,
        seals_items: true,
        counts_tokens: true,
        ordinals: Some(ORDINAL),
        ..Content::OPENAI
    },
    estimate: Estimate { added: &[("", 3_600)], char: 280, ..Estimate::BASE },
    names: NAMES,
    kinds: KINDS,
    version_at: &[&["payload", "cli_version"]],
    provider_at: &[&["payload", "model_provider"]],
    item_at: Some(&["payload"]),
    vote,
    read,
    parts,
    broken,
    missing_result,
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let known = doc.get("type").is_some_and(|kind| LINES.has(kind));
    let payload = doc.get("payload").is_some_and(|payload| payload.kind() == Json::Object);
    if known && payload && is_string(doc.get("timestamp")) && only_keys(doc, KEYS) {
        Vote::Own
    } else {
        Vote::Silent
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(line) = doc.root() else { return };
    let [kind, payload, ordinal] = line.pick(["type", "payload", ORDINAL]);
    if let Some(ordinal) = ordinal {
        draft.offsets(PAGINATED);
        draft.ordinal(ordinal);
    }
    // Codex skips a line without a time.
    let (Some(kind), Some(payload), true) = (kind, payload, is_string(doc.get("timestamp"))) else {
        return;
    };
    match kind.text().as_deref() {
        Some(b"session_meta") => header(payload, draft),
        Some(b"response_item") => item(payload, draft),
        Some(b"compacted") => {
            // Old compactions hold no history: for these, Codex collects earlier user messages from the lines.
            let whole = payload.get("replacement_history").is_some_and(|all| all.kind() == Json::Array);
            draft.entry.kind = if whole { Kind::Boundary } else { Kind::Note };
            if !whole {
                draft.issue(ContentIssueKind::LeavesPrompts, draft.entry.span);
            }
            payload.get("message").into_iter().for_each(|text| draft.text(text));
            // Each compaction repeats the images that stay in context.
            for kept in items(payload.get("replacement_history")) {
                let [content, output] = kept.pick(["content", "output"]);
                let parts = items(content).chain(items(output));
                parts.filter(|part| part.get("text").is_none()).for_each(|part| draft.image(part));
            }
        }
        Some(b"event_msg") => event(payload, draft),
        _ => {}
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let call = lost.doc.get("payload");
    let (kind, prefix) = output_kind(call);
    let mut payload = Writing::new().text("type", kind.as_bytes());
    if let Some(id) = call.and_then(|call| call.get("id")).and_then(Value::text) {
        payload = payload.text("id", output_id(prefix, &id).as_bytes());
    }
    payload = with_output(payload.raw("call_id", lost.call), kind, ABORTED);
    Writing::new()
        .text("timestamp", time_after(lost.doc).as_bytes())
        .text("type", b"response_item")
        .raw("payload", &payload.end())
        .end()
}

/// The type of the output of a call, and how its id begins.
pub(super) fn output_kind(call: Option<Value<'_>>) -> (&'static str, &'static str) {
    let kind = call.and_then(|call| call.get("type")).and_then(Value::text);
    match kind.as_deref() {
        Some(b"custom_tool_call") => ("custom_tool_call_output", "ctco"),
        Some(b"tool_search_call") => ("tool_search_output", "tso"),
        _ => ("function_call_output", "fco"),
    }
}

/// Adds what an output of this type says. The output of a search is a list of tools.
pub(super) fn with_output(item: Writing, kind: &str, said: &[u8]) -> Writing {
    match kind {
        "tool_search_output" => {
            item.text("status", b"completed").text("execution", b"client").raw("tools", b"[]")
        }
        _ => item.text("output", said),
    }
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let Some(payload) = doc.get("payload") else { return };
    if says(doc, "type", "compacted") {
        content_parts(payload.get("message"), each);
    } else if says(doc, "type", "response_item") {
        item_parts(payload, each);
    }
}

/// The parts of an item.
pub(super) fn item_parts<'d>(payload: Value<'d>, each: &mut dyn FnMut(EntryPart<'d>)) {
    let [kind, name, arguments, input] = payload.pick(["type", "name", "arguments", "input"]);
    match kind.and_then(Value::text).as_deref() {
        None | Some(b"message") => content_parts(payload.get("content"), each),
        Some(b"function_call" | b"custom_tool_call" | b"tool_search_call") => {
            each(EntryPart::Call { name, arguments: arguments.or(input) });
        }
        Some(b"local_shell_call") => each(EntryPart::Call { name, arguments: payload.get("action") }),
        Some(b"function_call_output" | b"custom_tool_call_output" | b"tool_search_output") => {
            each(EntryPart::Result);
            content_parts(payload.get("output"), each);
        }
        _ => {}
    }
}

fn broken(doc: &Doc) -> Option<Broken<'_>> {
    let error = doc.get("payload")?.get("error").filter(|error| !error.is_null())?;
    let [said, why] = error.pick(["message", "codex_error_info"]);
    let is_long = why.is_some_and(|why| why.is("context_window_exceeded"));
    Some(if is_long { Broken::TooLong(said) } else { Broken::Error(said) })
}

/// The id of an output that is added for a call. It is the id that Codex would use; another one would miss the
/// provider's prompt cache.
fn output_id(prefix: &str, call: &[u8]) -> String {
    let name = [prefix.as_bytes(), b":", call].concat();
    format!("{prefix}_{}", Uuid::new_v5(&OUTPUT_IDS, &name))
}

fn header(payload: Value<'_>, draft: &mut Draft<'_>) {
    let [id, mode, base] = payload.pick(["id", "history_mode", "history_base"]);
    // Codex does not accept a header without an id.
    draft.entry.kind = if is_string(id) { Kind::Header } else { Kind::Opaque };
    let is = |known: &str| mode.is_some_and(|mode| mode.is(known));
    if base.is_some_and(|base| !base.is_null()) || is("paginated") {
        draft.offsets(PAGINATED);
    }
    if !is("paginated") && !is("legacy") && mode.is_some_and(|mode| !mode.is_null()) {
        draft.read_only(UNKNOWN);
    }
}

/// Reads an item of the conversation.
pub(super) fn item(payload: Value<'_>, draft: &mut Draft<'_>) {
    let [kind, id, name, content] = payload.pick(["type", "call_id", "name", "content"]);
    let Some(kind) = kind.and_then(Value::text) else { return };
    draft.entry.kind = Kind::Message(Role::Assistant);
    if &*kind != b"message" {
        draft.shows();
    }
    match &*kind {
        b"message" => message(payload.get("role"), content, draft),
        b"reasoning" => {
            let parts = items(payload.get("summary")).chain(items(content));
            parts.filter_map(|part| part.get("text")).for_each(|text| draft.text(text));
            draft.issue(ContentIssueKind::ReasoningLast, draft.entry.span);
        }
        b"function_call" => {
            draft.call(payload, id, name, payload.get("arguments").is_none_or(Value::is_null));
        }
        b"local_shell_call" => draft.call(payload, id, name, false),
        b"custom_tool_call" => {
            draft.call(payload, id, name, false);
            draft.call_kind(b"custom");
        }
        // A search that the API ran itself needs no output.
        b"tool_search_call" if !is_of_server(payload) => {
            draft.call(payload, id, None, false);
            draft.call_kind(b"search");
        }
        b"function_call_output" => output(payload, draft),
        b"custom_tool_call_output" => {
            output(payload, draft);
            draft.result_kind(b"custom");
        }
        b"tool_search_output" if !is_of_server(payload) => {
            output(payload, draft);
            draft.result_kind(b"search");
        }
        b"web_search_call" | b"image_generation_call" | b"tool_search_call" | b"tool_search_output" => {}
        b"compaction" | b"compaction_summary" | b"context_compaction" | b"agent_message" => {
            draft.entry.kind = Kind::Note;
        }
        _ => draft.entry.kind = Kind::Opaque,
    }
}

/// Texts that Codex itself sends as the user begin with one of these (its `contextual_user_message.rs`).
const OWN_WORDS: &[&[u8]] = &[
    b"<environment_context>",
    b"<user_instructions>",
    b"# AGENTS.md instructions",
    b"<skill>",
    b"<user_shell_command>",
    b"<turn_aborted>",
    b"<subagent_notification>",
];

/// Whether the server ran a tool search, and not the client.
fn is_of_server(payload: Value<'_>) -> bool {
    let [execution, id] = payload.pick(["execution", "call_id"]);
    execution.is_some_and(|execution| execution.is("server")) || !is_string(id)
}

/// Reads a message.
pub(super) fn message(role: Option<Value<'_>>, content: Option<Value<'_>>, draft: &mut Draft<'_>) {
    draft.entry.kind = match role.and_then(Value::text).as_deref() {
        Some(b"user") => {
            asked(content, draft);
            let own = |text: Value<'_>| OWN_WORDS.iter().any(|words| text.prefix().starts_with(words));
            draft.entry.injected = first_text(content).is_some_and(own);
            Kind::Message(Role::User)
        }
        Some(b"assistant") => {
            answered(content, draft);
            Kind::Message(Role::Assistant)
        }
        _ => Kind::Message(Role::System),
    };
}

/// Reads an output: a string, or a list of content items.
fn output(payload: Value<'_>, draft: &mut Draft<'_>) {
    let [id, name, output] = payload.pick(["call_id", "name", "output"]);
    let span = draft.entry.span;
    draft.entry.kind = Kind::Message(Role::Tool);
    draft.result(payload, id, name, false);
    draft.whole_result(span);
    draft.content(output);
}

/// Reads an event, which is for the screen. Some events repeat an output, in strings that may be shortened. Patches and
/// user messages must stay, because the screen reads them again.
fn event(payload: Value<'_>, draft: &mut Draft<'_>) {
    let copies: &[&str] = match payload.get("type").and_then(Value::text).as_deref() {
        Some(b"mcp_tool_call_end") => &["result"],
        Some(b"patch_apply_end") => &["stdout", "stderr"],
        Some(b"exec_command_end") => &["stdout", "stderr", "aggregated_output", "formatted_output"],
        Some(b"token_count") => {
            let info = payload.get("info");
            let window = info.and_then(|info| info.get("model_context_window")).and_then(Value::whole);
            let last = info.and_then(|info| info.get("last_token_usage"));
            let tokens = last.and_then(|last| last.get("total_tokens")).and_then(Value::whole);
            let all = tokens.zip(window.filter(|window| *window > 0));
            draft.counts_tokens(all.is_some_and(|(tokens, window)| tokens / 2 > window));
            &[]
        }
        // 0.171 records errors only here.
        Some(b"task_complete") if payload.get("error").is_some_and(|error| !error.is_null()) => {
            draft.entry.service = Service::Failure;
            &[]
        }
        Some(b"task_started") => {
            draft.issue(ContentIssueKind::TurnBegins, draft.entry.span);
            &[]
        }
        Some(b"thread_rolled_back") => {
            draft.entry.kind = Kind::Leaf;
            let turns = payload.get("num_turns").and_then(Value::whole).unwrap_or(0);
            draft.issue(ContentIssueKind::TakesBack(turns), draft.entry.span);
            &[]
        }
        _ => &[],
    };
    for key in copies {
        draft.sides(payload.get(key));
    }
}
