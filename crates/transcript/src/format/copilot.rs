//! GitHub Copilot CLI's `events.jsonl`: a log of events, each naming the one before it.
//!
//! An `assistant.message` makes a call, and a `tool.execution_complete` answers it, perhaps many lines later, with a
//! subagent's events in between; a subagent's calls pair only with its own results. The loader refuses the whole log
//! over one bad line, and a compaction records how many messages came before it. Facts: docs/format-facts.md.

use super::agent::{Agent, Resume};
use super::base::{
    BASE, Broken, Content, EntryPart, Estimate, Format, Gate, Header, Lost, OutsideCount, ResultPlace, Root,
    Shape, Vote,
};
use super::common::{content_parts, is_string, items, listed_calls, says, time_after};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role, Service, StopReason};
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;
use spans::source::Span;

const TYPES: &[&str] =
    &["session.", "user.", "assistant.", "tool.", "subagent.", "hook.", "system.", "skill."];

/// Fields of an event's data in which the loader accepts any text. It checks the others, and refuses the log over one.
const TEXTS: &[&str] =
    &["content", "transformedContent", "summaryContent", "reasoningText", "arguments", "input", "output"];

/// Fields of `session.*` events that must be whole numbers of at least 0, by the schema of 1.0.102.
const COUNTS: &[&str] = &[
    "cacheReadTokens",
    "cacheWriteTokens",
    "checkpointNumber",
    "conversationTokens",
    "count",
    "currentTokens",
    "eventCount",
    "eventsFileSizeBytes",
    "filesModifiedCount",
    "inputTokens",
    "lastCallInputTokens",
    "lastCallOutputTokens",
    "linesAdded",
    "linesRemoved",
    "messagesCleared",
    "messagesRemoved",
    "messagesRemovedDuringTruncation",
    "outputTokens",
    "postCompactionTokens",
    "postTruncationMessagesLength",
    "postTruncationTokensInMessages",
    "preCompactionMessagesLength",
    "preCompactionTokens",
    "preTruncationMessagesLength",
    "preTruncationTokensInMessages",
    "reasoningTokens",
    "requestCount",
    "sessionStartTime",
    "systemTokens",
    "tokenCount",
    "tokenLimit",
    "tokensRemoved",
    "tokensRemovedDuringTruncation",
    "toolDefinitionsTokens",
    "totalApiDurationMs",
    "totalUserRequests",
];

/// The types in the schema of copilot-sdk 1.0.14 (session-events), which Copilot CLI 1.0.102 writes.
const KINDS: &[Kinds] = &[
    Kinds::at(&["type"])
        .sent("assistant.message tool.execution_complete user.message system.message system.notification")
        .steers("session.compaction_complete session.compaction_start session.context_cleared")
        .silent(
            "session.snapshot_rewind session.truncation tool.execution_start hook.start hook.end \
         assistant.turn_start assistant.turn_end assistant.fusion_phase_activity \
         assistant.fusion_phase_completed assistant.fusion_phase_failed \
         assistant.fusion_phase_started assistant.idle assistant.intent assistant.message_delta \
         assistant.message_start assistant.reasoning assistant.reasoning_delta \
         assistant.server_tool_progress assistant.streaming_delta assistant.tool_call_delta \
         assistant.usage auto_mode_switch.completed auto_mode_switch.requested capabilities.changed \
         command.completed command.execute command.queued commands.changed elicitation.completed \
         elicitation.requested exit_plan_mode.completed exit_plan_mode.requested \
         external_tool.completed external_tool.requested factory.run_settled factory.run_started \
         factory.run_updated hook.progress mcp.headers_refresh_completed mcp.headers_refresh_required \
         mcp.oauth_completed mcp.oauth_required mcp.prompts.list_changed mcp.resources.list_changed \
         mcp.tools.list_changed mcp_app.tool_call_complete model.call_failure model.call_finished \
         pending_messages.modified permission.completed permission.requested sampling.completed \
         sampling.requested session.auto_mode_resolved session.auto_tier_recommendation \
         session.auto_tier_switch_failed session.autopilot_objective_changed \
         session.background_tasks_changed session.binary_asset session.canvas.closed \
         session.canvas.opened session.canvas.recorded session.canvas.registry_changed \
         session.canvas.removed session.canvas.unavailable session.completion_receipt \
         session.context_changed session.custom_agents_updated session.custom_notification \
         session.error session.extensions.attachments_pushed session.extensions_loaded \
         session.fusion_completed session.fusion_resolved session.fusion_route_failed \
         session.fusion_route_started session.handoff session.idle session.info \
         session.managed_settings_enforced session.managed_settings_resolved \
         session.mcp_server_needs_reconnect session.mcp_server_removed \
         session.mcp_server_status_changed session.mcp_servers_loaded session.mode_changed \
         session.mode_notice_delivered session.model_change session.permissions_changed \
         session.plan_changed session.remote_steerable_changed session.resume \
         session.schedule_cancelled session.schedule_created session.schedule_rearmed \
         session.session_limits_changed session.shutdown session.skills_loaded session.start \
         session.task_complete session.title_changed session.todos_changed session.tools_updated \
         session.usage_checkpoint session.usage_info session.warning session.workspace_file_changed \
         session_limits_exhausted.completed session_limits_exhausted.requested skill.invoked \
         subagent.completed subagent.configured subagent.deselected subagent.failed subagent.selected \
         subagent.started tool.execution_partial_result tool.execution_progress tool.user_requested \
         tool_search.activated ui.ephemeral_query user_input.completed user_input.requested abort",
        ),
    Kinds::at(&["data", "toolRequests", "*", "type"]).within("assistant.message").sent("function custom"),
    Kinds::at(&["data", "attachments", "*", "type"]).within("user.message").sent(
        "file directory selection blob extension_context github_actions_job github_commit github_file \
         github_file_diff github_reference github_release github_repository github_snippet \
         github_tree_comparison github_url",
    ),
];

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[
        text("type"),
        needs("data", Form::Object),
        text("id"),
        text("timestamp"),
        needs("parentId", Form::TextOrNull),
        has("agentId"),
    ]),
    FieldNames::typed(
        &["session.start"],
        &[has("data").with(&[FieldNames::all(&[
            text("sessionId"),
            needs("version", Form::Number),
            has("producer"),
            has("copilotVersion"),
            has("startTime"),
            has("context"),
        ])])],
    ),
    FieldNames::typed(
        &["user.message"],
        &[has("data").with(&[FieldNames::all(&[
            text("content"),
            has("transformedContent"),
            has("attachments"),
        ])])],
    ),
    FieldNames::typed(
        &["assistant.message"],
        &[has("data").with(&[FieldNames::all(&[
            text("messageId"),
            text("content"),
            needs("toolRequests", Form::List).with(&[FieldNames::all(&[
                text("toolCallId"),
                text("name"),
                needs("arguments", Form::Any),
                has("type"),
            ])]),
            has("model"),
        ])])],
    ),
    FieldNames::typed(
        &["tool.execution_start"],
        &[has("data").with(&[FieldNames::all(&[text("toolCallId"), text("toolName"), has("arguments")])])],
    ),
    FieldNames::typed(
        &["tool.execution_complete"],
        &[has("data").with(&[FieldNames::all(&[
            text("toolCallId"),
            needs("success", Form::Any),
            has("error"),
            has("result").with(&[FieldNames::all(&[text("content"), has("detailedContent")])]),
        ])])],
    ),
];

pub(super) const FORMAT: Format = Format {
    name: "copilot-cli",
    written_by: "GitHub Copilot CLI `events.jsonl`",
    remark: "no record comes or goes before the last compaction",
    agents: &[Agent::resumed(
        "Copilot CLI",
        Resume { command: &["copilot", "--resume"], below: "session-state", above: 1, ..Resume::BY_FILE },
    )],
    // Copilot CLI 1.0.102 writes up to 19,000 characters whole, and 900 of what is longer (measured).
    agent_cuts_results: Some(19_000),
    shape: Shape::Log,
    gates: &[Gate::CopilotInUse],
    counted: Some(OutsideCount::UpToCompaction("its last compaction (preCompactionMessagesLength)")),
    header: Header::First,
    skips_unreadable_lines: false,
    roots: &[Root { env: Some("COPILOT_HOME"), home: ".copilot", below: "session-state" }],
    answer: ResultPlace::Line,
    copies_results: true,
    states_window: true,
    content: Content {
        empty: None,
        blank: None,
        in_one_string: true,
        checks_records: true,
        ..Content::OPENAI
    },
    // The definitions of tools, as `session.shutdown` counts them; the instructions are in the file.
    estimate: Estimate { added: &[("", 4_426)], char: 280, ..Estimate::BASE },
    names: NAMES,
    kinds: KINDS,
    version_at: &[&["data", "copilotVersion"]],
    vote,
    read,
    parts,
    // An error of any kind, with the words of the provider (tried with 1.0.102).
    broken: |doc| {
        let failed = says(doc, "type", "session.error");
        failed.then(|| Broken::Error(doc.get("data").and_then(|data| data.get("message"))))
    },
    takes_any_text_at,
    missing_result,
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let kind = doc.get("type").and_then(Value::text).unwrap_or_default();
    let known = TYPES.iter().any(|family| kind.starts_with(family.as_bytes()));
    let envelope = doc.get("data").is_some()
        && is_string(doc.get("id"))
        && is_string(doc.get("timestamp"))
        && doc.get("parentId").is_some();
    if known && envelope { Vote::Own } else { Vote::Silent }
}

fn takes_any_text_at(doc: &Doc, at: Span) -> bool {
    let Some(data) = doc.get("data") else { return false };
    let [result, error] = data.pick(["result", "error"]);
    let below =
        [result.and_then(|result| result.get("content")), error.and_then(|error| error.get("message"))];
    let copy = result.and_then(|result| result.get("detailedContent"));
    let asked = items(data.get("toolRequests")).filter_map(|request| request.get("arguments"));
    let own = TEXTS.iter().filter_map(|name| data.get(name));
    own.chain(below.into_iter().flatten()).chain(copy).chain(asked).any(|text| text.span().contains(at))
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(line) = doc.root() else { return };
    let [kind, data, id, parent, agent] = line.pick(["type", "data", "id", "parentId", "agentId"]);
    let (Some(kind), Some(data)) = (kind.and_then(Value::text), data) else { return };
    draft.entry.id = draft.intern(id);
    draft.parent(parent);
    // `parentAgentTaskId` is no sign of one: 1.0.102 writes a new one with each prompt of a person.
    draft.entry.is_sidechain = is_string(agent) || is_string(data.get("parentToolCallId"));
    if kind.starts_with(b"session.") {
        check(&kind, data, draft);
    }
    let text = data.get("content");
    draft.entry.kind = match &*kind {
        b"session.start" => Kind::Header,
        b"user.message" => {
            if let Some(text) = text {
                draft.user_text(text);
            }
            items(data.get("attachments")).for_each(|file| file_alone(file, draft));
            Kind::Message(Role::User)
        }
        b"system.message" => Kind::Message(Role::System),
        b"assistant.message" => {
            assistant(data, agent, draft);
            Kind::Message(Role::Assistant)
        }
        b"tool.execution_start" => {
            draft.started(data.get("toolCallId"));
            Kind::Opaque
        }
        b"tool.execution_complete" => {
            complete(data, agent, draft);
            Kind::Message(Role::Tool)
        }
        b"session.compaction_complete" if compacts(data) => {
            data.get("summaryContent").into_iter().for_each(|text| draft.text(text));
            Kind::Boundary
        }
        b"session.error" => {
            draft.entry.service = Service::Failure;
            Kind::Opaque
        }
        // Hooks repeat results, which are not sent.
        b"hook.start" | b"hook.end" => {
            for key in ["input", "output"] {
                draft.sides(data.get(key));
            }
            Kind::Opaque
        }
        _ => Kind::Opaque,
    };
}

/// Whether a compaction finished, with a summary that replaces earlier messages.
fn compacts(data: Value<'_>) -> bool {
    let [success, summary] = data.pick(["success", "summaryContent"]);
    success.map_or_else(|| is_string(summary), Value::is_true)
}

/// Notes what the schema that ships with Copilot CLI forbids in a record about the session.
fn check(kind: &[u8], data: Value<'_>, draft: &mut Draft<'_>) {
    let mut is_count = false;
    // Descendants come in byte order, so a key comes right before its value.
    for inside in data.descendants() {
        if is_count && inside.kind() == Json::Number && inside.whole().is_none() {
            draft.issue(ContentIssueKind::Count, inside.span());
        }
        is_count = inside.kind() == Json::String && COUNTS.iter().any(|name| inside.is(name));
    }
    if kind == b"session.task_complete" && data.get("summary").is_none() && data.kind() == Json::Object {
        draft.issue(ContentIssueKind::Lacks("summary", "\"\""), data.span());
    }
    if kind == b"session.compaction_complete" && data.kind() == Json::Object {
        let compacts = compacts(data);
        if data.get("success").is_none() {
            let value = if compacts { "true" } else { "false" };
            draft.issue(ContentIssueKind::Lacks("success", value), data.span());
        }
        if !compacts {
            draft.issue(ContentIssueKind::CompactionFails, draft.entry.span);
        }
    }
    if kind == b"session.compaction_start" {
        draft.issue(ContentIssueKind::CompactionBegins, draft.entry.span);
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let error = Writing::new().text("message", MISSING_RESULT.as_bytes()).end();
    let data =
        Writing::new().raw("toolCallId", lost.call).raw("success", b"false").raw("error", &error).end();
    let time = time_after(lost.place);
    let line = Writing::new()
        .text("type", b"tool.execution_complete")
        .raw("data", &data)
        .text("id", lost.id.as_bytes())
        .text("timestamp", time.as_bytes())
        .text("parentId", lost.parent);
    match lost.doc.get("agentId") {
        Some(agent) => line.raw("agentId", &(lost.raw)(agent)).end(),
        None => line.end(),
    }
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let Some(data) = doc.get("data") else { return };
    if says(doc, "type", "tool.execution_complete") {
        each(EntryPart::Result);
        content_parts(data.get("result").and_then(|result| result.get("content")), each);
        content_parts(data.get("error").and_then(|error| error.get("message")), each);
        return;
    }
    content_parts(data.get("content"), each);
    content_parts(data.get("summaryContent"), each);
    listed_calls(data.get("toolRequests"), each);
}

fn assistant(data: Value<'_>, agent: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let [text, model, requests] = data.pick(["content", "model", "toolRequests"]);
    if let Some(text) = text {
        draft.text(text);
    }
    draft.entry.model = draft.intern(model);
    draft.entry.group = draft.intern(data.get("messageId"));
    for request in items(requests) {
        draft.call(request, request.get("toolCallId"), request.get("name"), false);
        if let Some(agent) = agent.and_then(Value::text) {
            draft.call_kind(&agent);
        }
        draft.entry.stop = StopReason::ToolUse;
    }
    // The model's encrypted reasoning. It is not a block, so it cannot be removed.
    for sealed in [data.get("reasoningOpaque"), data.get("encryptedContent")].into_iter().flatten() {
        if is_string(Some(sealed)) {
            draft.fixed_thinking(sealed);
        }
    }
}

/// A file as the whole result: the loader accepts no text in its place.
fn file_alone(file: Value<'_>, draft: &mut Draft<'_>) {
    draft.image(file);
    draft.no_words_for(file);
}

fn complete(data: Value<'_>, agent: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let [id, success, result, error] = data.pick(["toolCallId", "success", "result", "error"]);
    let span = draft.entry.span;
    draft.result(data, id, None, success.is_some_and(|success| !success.is_true()));
    if let Some(agent) = agent.and_then(Value::text) {
        draft.result_kind(&agent);
    }
    draft.whole_result(span);
    items(result.and_then(|result| result.get("binaryResultsForLlm")))
        .for_each(|file| file_alone(file, draft));
    let result =
        result.map(|result| result.pick(["content", "detailedContent", "contents", "structuredContent"]));
    let [text, detailed, contents, structured] = result.unwrap_or_default();
    let message = error.and_then(|error| error.get("message"));
    text.into_iter().chain(message).for_each(|text| draft.body(text));
    for copy in [detailed, contents, structured] {
        draft.sides(copy);
    }
}
