//! Claude Code: lines linked by `uuid` and `parentUuid`; each block of an API message is a line of its own.
//!
//! Conversation types are those of the Agent SDK's `sessions.py` (`user`, `assistant`, `progress`, `system`,
//! `attachment`); every other type is metadata, which is never changed. `toolUseResult` is a copy for the screen and
//! never sent. Facts: docs/format-facts.md.

use super::agent::{Agent, Index, Resume};
use super::base::{
    Arguments, BASE, Broken, Compaction, Content, EntryPart, Estimate, Format, Gate, Lost, ReadEnd, ReadTool,
    ResultPlace, Results, Root, Shape, SupportLevel, Vote,
};
use super::common::{
    alone, broken_by_stop_reason, content_parts, corrupted_role, is_string, items, later, moment_ms, says,
    says_any, time_after,
};
use super::kinds::{self, Kinds};
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::{Draft, is_blank};
use crate::model::entry::{ContentIssueKind, Kind, Role, Service, StopReason, Target};
use crate::model::finding::Severity;
use crate::refusal;
use alloc::vec::Vec;
use spans::json::{Doc, Value};
use spans::marker::MISSING_RESULT;

const CHAIN: &[&str] = &["user", "assistant", "progress", "system", "attachment"];

/// Records in which Claude Code logs its own requests.
const REQUEST_LOG: &[&str] = &["api-request", "api-request-shape", "api-request-blob", "api-request-resumed"];

/// Fields that a new line copies from the call's line, in the order in which the agent writes them.
const ENVELOPE: &[&str] =
    &["isSidechain", "agentId", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch"];

/// What 2.1.332 tells apart when it loads and compacts its files, and what earlier versions wrote.
const KINDS: &[Kinds] = &[
    Kinds::at(&["type"])
        .sent("assistant user attachment system")
        .steers("progress last-prompt content-replacement fork-context-ref history-suppression")
        .silent(
            "file-history-snapshot file-history-delta queue-operation summary custom-title ai-title tag mode \
         permission-mode pr-link bridge-session worktree-state relocated frame-link agent-name agent-color \
         agent-setting attribution-snapshot api-request api-request-shape api-request-blob \
         api-request-resumed continued-in resume-head-vouch data-flow-records data-flow-incomplete \
         derived-from ended-by-model artifact-comment-monitor artifact-autoreact-ledger isolation-latch \
         session-owner dev-mods memory-mode atis-latch tools-used cost-state observer-ref host-row \
         repl-mode hybrid-organization",
        ),
    Kinds::at(&["subtype"])
        .within("system")
        .steers("compact_boundary microcompact_boundary api_error rewind_stand_in")
        .sent("local_command")
        .silent(
            "turn_duration stop_hook_summary informational away_summary agents_killed api_retry \
         background_tasks_changed bridge_state bridge_status checkpoint_done cloud_session_delta \
         cloud_session_status code_change_published commands_changed control_request_progress dev_intent \
         elicitation_complete feedback_draft_queued file_attachments_missing file_snapshot hook_progress \
         hook_response hook_started inherited_asks_settled init instruction_size_warning late_allow_not_run \
         memory_recall memory_saved mirror_error model_consent_fallback model_fallback \
         model_refusal_fallback model_refusal_no_fallback notification peer_message_hold \
         per_turn_effort_changed permission_check_status permission_denied permission_retry placed \
         plugin_install post_turn_summary read_divider scheduled_task_fire session_metadata \
         session_state_changed session_title_changed session_writes_lost shell_cwd start_folder status \
         task_list_statuses task_notification task_progress task_started task_summary task_updated \
         thinking_tokens tool_host_result turn_handoff_available turn_preempted turn_starting \
         vcs_state_changed",
        ),
    kinds::blocks("assistant user", &["message", "content", "*", "type"]),
    kinds::blocks("user", &["message", "content", "*", "content", "*", "type"]),
];

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[text("type"), has("isMeta"), has("agentId"), has("requestId")]),
    FieldNames::typed(
        &["user", "assistant", "attachment", "system", "progress"],
        &[
            text("uuid"),
            needs("parentUuid", Form::TextOrNull),
            needs("isSidechain", Form::Any),
            text("sessionId"),
            text("timestamp"),
            has("userType"),
            has("version"),
            has("gitBranch"),
            has("toolUseResult"),
            has("sourceToolAssistantUUID"),
        ],
    ),
    FieldNames::typed(&["user", "assistant"], &[needs("message", Form::Object).with(MESSAGE)]),
    FieldNames::typed(&["attachment"], &[needs("attachment", Form::Object)]),
    FieldNames::typed(&["system"], &[text("subtype"), has("compactMetadata")]),
];

const MESSAGE: &[FieldNames] = &[
    FieldNames::all(&[
        text("role"),
        needs("content", Form::TextOrList).with(super::anthropic::BLOCK),
        has("type"),
        has("stop_reason"),
        has("stop_sequence"),
        has("usage").with(&[FieldNames::all(&[has("input_tokens"), has("output_tokens")])]),
    ]),
    FieldNames::where_value("role", &["assistant"], &[text("id"), text("model")]),
];

/// Tried with 2.1.330. It prints "No conversation found with session ID" for both, and no command restores them. When
/// it removes an old session, it removes the folder too.
const FOLDERS: Index = Index::Folders {
    lost: "claude --resume does not find them, and only a backup brings them back",
    emptied: "claude --resume does not find a conversation in them, and only a backup brings it back",
};

pub(super) const FORMAT: Format = Format {
    name: "claude-code",
    written_by: "Claude Code, OpenClaude, iFlow",
    remark: "a graph; pairs are joined by id",
    agents: &[
        Agent::resumed(
            "Claude Code",
            Resume { command: &["claude", "--resume"], below: "projects", ..Resume::BY_FILE },
        )
        .with(FOLDERS),
        Agent::at("OpenClaude", ".openclaude"),
        Agent::at("iFlow", ".iflow"),
    ],
    // Claude Code 2.1.332 writes up to 30,000 characters whole, and 2,800 of what is longer (measured).
    agent_cuts_results: Some(30_000),
    shape: Shape::Graph,
    level: SupportLevel::Insert,
    gates: &[Gate::ClaudeRegistry],
    gates_know_memory: true,
    roots: &[
        Root { env: Some("CLAUDE_CONFIG_DIR"), home: ".claude", below: "projects" },
        // OpenClaude and iFlow write the same shape.
        Root { env: None, home: ".openclaude", below: "projects" },
        Root { env: None, home: ".iflow", below: "projects" },
    ],
    results: Results::Blocks,
    // The schema of `Read` in 2.1.332.
    reads: &[ReadTool {
        name: "Read",
        path: &["file_path"],
        from: "offset",
        first_line: 1,
        to: ReadEnd::Count("limit"),
        lines_max: 2_000,
    }],
    answer: ResultPlace::Line,
    arguments: Some(Arguments::INPUT),
    has_plain_ids: true,
    copies_results: true,
    any_record_is_leaf: true,
    aborts: true,
    content: Content {
        empty: Some(Severity::Note),
        blank: Some(Severity::Note),
        failures: true,
        names_session: true,
        in_one_string: true,
        titles: true,
        results_first: false,
        ..Content::ANTHROPIC
    },
    estimate: Estimate {
        added: &[
            // Versions 1.0 of 2025 had fewer tools; the model tells them. Measured with Sonnet 4 only.
            ("claude-sonnet-4-2025", 14_800),
            ("claude-opus-4-2025", 14_800),
            ("claude-3", 14_800),
            ("", 36_000),
        ],
        char: 327,
        ..Estimate::BASE
    },
    names: NAMES,
    kinds: KINDS,
    version_at: &[&["version"]],
    vote,
    is_record: Some(is_record),
    read,
    parts,
    broken,
    gauges: Some(gauges),
    missing_result,
    compaction,
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let linked = is_string(doc.get("uuid")) && doc.get("parentUuid").is_some();
    let said = (says(doc, "type", "user") || says(doc, "type", "assistant"))
        && doc.get("message").is_some_and(|message| message.get("content").is_some());
    // Short or badly damaged files may have no better evidence.
    let envelope =
        says_any(doc, "type", CHAIN) && is_string(doc.get("sessionId")) && doc.get("isSidechain").is_some();
    let snapshot = says(doc, "type", "file-history-snapshot")
        && is_string(doc.get("messageId"))
        && doc.get("snapshot").is_some();
    let own = (linked && (said || envelope)) || snapshot;
    // Qwen Code has the same envelope, but `parts`.
    let foreign = doc.get("message").is_some_and(|message| message.get("parts").is_some());
    match (foreign, own) {
        (true, _) => Vote::Foreign,
        (false, true) => Vote::Own,
        (false, false) => Vote::Silent,
    }
}

fn is_record(doc: &Doc) -> bool {
    // A subagent's message inside a progress record has a `uuid` too.
    let own = is_string(doc.get("sessionId")) || doc.get("parentUuid").is_some();
    let others = is_string(doc.get("messageId")) || is_string(doc.get("leafUuid"));
    is_string(doc.get("type")) && (own || others)
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(line) = doc.root() else { return };
    let [kind, uuid, parent, sidechain, team, meta, message, session, timestamp] = line.pick([
        "type",
        "uuid",
        "parentUuid",
        "isSidechain",
        "teamName",
        "isMeta",
        "message",
        "sessionId",
        "timestamp",
    ]);
    let Some(kind) = kind.and_then(|own| CHAIN.iter().find(|kind| own.is(kind))) else {
        return service(doc, draft);
    };
    if !is_string(uuid) {
        return;
    }
    draft.entry.id = draft.intern(uuid);
    draft.parent(parent);
    draft.session(session);
    draft.written(timestamp.and_then(moment_ms));
    draft.entry.is_sidechain = sidechain.is_some_and(Value::is_true) || is_string(team);
    draft.entry.injected = meta.is_some_and(Value::is_true);
    if let Some(message) = message.filter(|message| message.get("role").is_none()) {
        corrupted_role(message, draft);
    }
    match *kind {
        "user" => user(line, message, draft),
        "assistant" => assistant(line, message, draft),
        "attachment" => draft.entry.kind = Kind::Note,
        "progress" => draft.entry.service = Service::Progress,
        "system" if says(doc, "subtype", "api_error") => draft.entry.service = Service::Retry,
        "system" if says(doc, "subtype", "compact_boundary") => {
            draft.entry.kind = Kind::Boundary;
            let kept = doc.get("compactMetadata").and_then(|metadata| metadata.get("preservedSegment"));
            let id = draft.intern(kept.and_then(|kept| kept.get("headUuid")));
            let end = draft.intern(kept.and_then(|kept| kept.get("tailUuid")));
            draft.target(Target { id, end, ..Target::default() });
        }
        _ => {}
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let own = lost.doc.get("uuid").and_then(Value::text).unwrap_or_default();
    let mut line = Writing::new().text("parentUuid", lost.parent);
    for key in ENVELOPE {
        if let Some(value) = lost.doc.get(key) {
            line = line.raw(key, &(lost.raw)(value));
        }
    }
    let block = Writing::new()
        .raw("tool_use_id", lost.call)
        .text("type", b"tool_result")
        .text("content", MISSING_RESULT.as_bytes())
        .raw("is_error", b"true")
        .end();
    let message = Writing::new().text("role", b"user").list("content", &block).end();
    let time = time_after(lost.doc);
    line.text("type", b"user")
        .raw("message", &message)
        .text("uuid", lost.id.as_bytes())
        .text("timestamp", time.as_bytes())
        .text("toolUseResult", [b"Error: ", MISSING_RESULT.as_bytes()].concat().as_slice())
        .text("sourceToolAssistantUUID", &own)
        .end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    content_parts(doc.get("message").and_then(|message| message.get("content")), each);
}

fn broken(doc: &Doc) -> Option<Broken<'_>> {
    let message = doc.get("message");
    if !doc.get("isApiErrorMessage").is_some_and(Value::is_true) {
        return broken_by_stop_reason(message);
    }
    let mut said = None;
    content_parts(message.and_then(|message| message.get("content")), &mut |part| {
        if let EntryPart::Text(text) = part {
            said.get_or_insert(text);
        }
    });
    Some(Broken::Error(said))
}

/// Where automatic compaction is off, 2.1.332 adds an estimate of what came since to the newest of these that is not 0, and
/// answers "Prompt is too long" by itself if that leaves less than 3,000 tokens of the window. Where all are 0, it estimates
/// everything.
fn gauges<'d>(doc: &'d Doc, each: &mut dyn FnMut(Value<'d>)) {
    let Some(usage) = doc.get("message").and_then(|message| message.get("usage")) else { return };
    let numbers = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    usage.pick(numbers).into_iter().flatten().for_each(each);
}

/// A boundary without a parent, and the summary after it, which becomes the parent of the first entry that stays.
fn compaction(made: &Compaction<'_>) -> Vec<Vec<u8>> {
    let envelope = |mut line: Writing| {
        for key in ENVELOPE {
            if let Some(value) = made.doc.get(key) {
                line = line.raw(key, &(made.raw)(value));
            }
        }
        line
    };
    let [boundary, summary] = made.ids.map(str::as_bytes);
    let time = later(made.time.as_bytes());
    let mut line = Writing::new().raw("parentUuid", b"null");
    if !made.parent.is_empty() {
        line = line.text("logicalParentUuid", made.parent);
    }
    let metadata = Writing::new()
        .text("trigger", b"manual")
        .raw("preTokens", alloc::format!("{}", made.tokens_before).as_bytes())
        .end();
    let first = envelope(line)
        .text("type", b"system")
        .text("subtype", b"compact_boundary")
        .text("content", b"Conversation compacted")
        .raw("isMeta", b"false")
        .text("timestamp", time.as_bytes())
        .text("uuid", boundary)
        .text("level", b"info")
        .raw("compactMetadata", &metadata)
        .end();
    let said = Writing::new().text("role", b"user").text("content", made.summary.as_bytes()).end();
    let second = envelope(Writing::new().text("parentUuid", boundary))
        .text("type", b"user")
        .raw("message", &said)
        .raw("isVisibleInTranscriptOnly", b"true")
        .raw("isCompactSummary", b"true")
        .text("uuid", summary)
        .text("timestamp", time.as_bytes())
        .end();
    [first, second].into()
}

/// Reads records that are not part of the conversation.
fn service(doc: &Doc, draft: &mut Draft<'_>) {
    let titled = |key: &str| doc.get(key).is_some_and(|title| is_string(Some(title)) && !title.is(""));
    if says(doc, "type", "custom-title") && titled("customTitle") {
        draft.entry.service = Service::Title;
    }
    if says(doc, "type", "ai-title") && titled("aiTitle") {
        draft.entry.service = Service::MadeTitle;
    }
    if says_any(doc, "type", REQUEST_LOG) {
        draft.entry.service = Service::RequestLog;
    }
    // The leaf, unless a row after that one came below it.
    if says(doc, "type", "last-prompt") && is_string(doc.get("leafUuid")) {
        draft.entry.kind = Kind::Leaf;
        let named = doc.get("leafUuid");
        let (id, at) = (draft.intern(named), named.map(Value::span).unwrap_or_default());
        draft.target(Target { id, at, ..Target::default() });
    }
    if says(doc, "type", "file-history-snapshot") {
        draft.entry.service = Service::Snapshot;
        draft.entry.group = draft.intern(doc.get("messageId"));
    }
}

fn user(line: Value<'_>, message: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let [copy, summary] = line.pick(["toolUseResult", "isCompactSummary"]);
    let content = message.and_then(|message| message.get("content"));
    if summary.is_some_and(Value::is_true) {
        // The agent wrote this text itself.
        content_parts(content, &mut |part| {
            if let EntryPart::Text(text) = part {
                draft.text(text);
            }
        });
        draft.entry.kind = Kind::Note;
        return;
    }
    let results = blocks(content, draft);
    draft.sides(copy);
    draft.entry.kind = Kind::Message(if results { Role::Tool } else { Role::User });
}

/// Reads the content of a user message in Anthropic's dialect. Returns whether it holds only results.
pub(super) fn blocks(content: Option<Value<'_>>, draft: &mut Draft<'_>) -> bool {
    if let Some(text) = alone(content) {
        draft.user_text(text);
    }
    let (mut results, mut others) = (0, 0);
    for block in items(content) {
        let [kind, call, inside, error, text] =
            block.pick(["type", "tool_use_id", "content", "is_error", "text"]);
        if !kind.is_some_and(|kind| kind.is("tool_result")) {
            others += 1;
            match text {
                Some(text) => {
                    draft.user_text(text);
                    draft.blank(block, text);
                }
                None => draft.image(block),
            }
            continue;
        }
        results += 1;
        let failed = error.is_some_and(Value::is_true);
        draft.result(block, call, None, failed);
        draft.content(inside);
        if failed {
            draft.says_nothing(inside, false);
        }
    }
    results > 0 && others == 0
}

fn assistant(line: Value<'_>, message: Option<Value<'_>>, draft: &mut Draft<'_>) {
    draft.entry.kind = Kind::Message(Role::Assistant);
    let Some(message) = message else { return };
    spoken(message, draft);
    if line.get("isApiErrorMessage").is_some_and(Value::is_true) {
        draft.entry.stop = StopReason::Aborted;
        let mut texts = items(message.get("content")).filter_map(|block| block.get("text"));
        if texts.any(|text| refusal::is_blocked(text.prefix())) {
            draft.issue(ContentIssueKind::Blocked, draft.entry.span);
        }
    }
}

/// Reads an assistant message in Anthropic's dialect.
pub(super) fn spoken(message: Value<'_>, draft: &mut Draft<'_>) {
    let [id, model, stop, content] = message.pick(["id", "model", "stop_reason", "content"]);
    draft.entry.group = draft.intern(id);
    draft.entry.model = draft.intern(model);
    draft.entry.stop = match stop.and_then(Value::text).as_deref() {
        Some(b"tool_use") => StopReason::ToolUse,
        Some(_) => StopReason::Done,
        None => StopReason::Unknown,
    };
    if let Some(text) = alone(content) {
        draft.text(text);
    }
    let mut last = None;
    for block in items(content) {
        let [kind, id, name, input, signature, text] =
            block.pick(["type", "id", "name", "input", "signature", "text"]);
        if !text.is_some_and(is_blank) {
            last = None;
        }
        match kind.and_then(Value::text).as_deref() {
            Some(b"tool_use") => draft.call(block, id, name, input.is_none()),
            Some(b"redacted_thinking" | b"thinking") => {
                last = Some(block.span());
                draft.signed(block, signature.or(block.get("data")));
            }
            kind => {
                draft.server_tool(block, kind.unwrap_or_default());
                match text {
                    Some(text) => draft.text_block(block, text),
                    None => draft.other_block(block),
                }
            }
        }
    }
    if let Some(block) = last {
        draft.issue(ContentIssueKind::ThinkingLast, block);
    }
}
