//! pi and OpenClaw before 2026.8: a header line, then entries in a tree by `id` and `parentId`.
//!
//! Header versions 1 (no ids: the order of lines counts), 2, 3, 4 (OpenClaw's database) and above are read; they differ for us only in
//! whether entries have ids. The leaf is the last entry of the file, unless OpenClaw's `leaf` records or
//! `appendMode: "side"` say otherwise. Facts: docs/format-facts.md.

use super::agent::{Agent, Index, Resume};
use super::base::{
    Arguments, BASE, Broken, Compaction, Content, EntryPart, Estimate, Format, Gate, Header, Lost, ReadEnd,
    ReadTool, ResultPlace, Root, Shape, SupportLevel, Vote,
};
use super::common::{
    CALLS, alone, content_parts, corrupted_role, has_block, is_string, items, later, says, time_after,
};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::{Draft, is_altered, is_blank};
use crate::model::entry::{ContentIssueKind, Kind, Role, Service, StopReason, Target};
use crate::model::finding::Severity;
use crate::refusal;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::marker::MISSING_RESULT;

/// Names that results use for their call's id.
const CALL_IDS: &[&str] = &["toolCallId", "toolUseId", "tool_call_id", "tool_use_id", "callId", "call_id"];

/// Types of entries that are not messages, each with a field that only pi writes.
const ENTRIES: &[(&str, &str)] = &[
    ("custom", "customType"),
    ("custom_message", "customType"),
    ("compaction", "firstKeptEntryId"),
    ("compaction", "firstKeptEntryIndex"),
    ("branch_summary", "fromId"),
    ("label", "targetId"),
    ("context_edit", "targetId"),
    ("model_change", "modelId"),
    ("thinking_level_change", "thinkingLevel"),
];

/// The header of sessions that OpenClaw keeps in a database. It answers open calls itself when it sends them.
const DATABASE_VERSION: u64 = 4;

/// OpenClaw 2026.9.6 writes one after each batch of tools: `persistToolResultProjections` (session-prompt-state.ts).
const SENT_TEXTS: &str = "openclaw.cache-ttl";

/// The types of pi 1.6.0 (session-manager.d.ts), OpenClaw 2026.9.6 and `OhMyPi` 18.3.4, which write the same files.
const KINDS: &[Kinds] = &[
    Kinds::at(&["type"])
        .sent("message compaction branch_summary custom_message")
        .steers("context_edit leaf reset reset_boundary")
        .silent(
            "session custom session model_change thinking_level_change label session_info usage model_usage \
         service_tier_change title title_change ttsr_injection credential_pin session_init mode_change",
        ),
    Kinds::at(&["message", "role"]).within("message").sent(
        "assistant toolResult user bashExecution custom branchSummary compactionSummary hookMessage \
         developer fileMention pythonExecution system",
    ),
    Kinds::at(&["message", "content", "*", "type"]).within("message custom_message").sent(
        "text toolCall thinking image redacted_thinking toolUse functionCall tool_use tool_call \
         function_call toolResult tool_result",
    ),
];

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[text("type"), has("details"), has("customType"), has("display"), has("summary")]),
    FieldNames::typed(
        &["session"],
        &[text("id"), needs("version", Form::Number), text("timestamp"), text("cwd")],
    ),
    FieldNames::typed(
        &[
            "message",
            "custom",
            "custom_message",
            "compaction",
            "branch_summary",
            "context_edit",
            "label",
            "model_change",
            "thinking_level_change",
            "session_info",
        ],
        &[text("id"), needs("parentId", Form::TextOrNull), text("timestamp")],
    ),
    FieldNames::typed(&["message"], &[needs("message", Form::Object).with(MESSAGE)]),
    FieldNames::typed(&["compaction"], &[text("summary"), text("firstKeptEntryId")]),
    FieldNames::typed(&["branch_summary"], &[text("summary"), text("fromId")]),
    FieldNames::typed(&["custom_message"], &[text("customType"), needs("content", Form::TextOrList)]),
    FieldNames::typed(&["model_change"], &[text("provider"), text("modelId")]),
];

const MESSAGE: &[FieldNames] = &[
    FieldNames::all(&[
        text("role"),
        has("timestamp"),
        has("api"),
        has("provider"),
        has("model"),
        has("stopReason"),
        has("errorMessage"),
        has("isError"),
        has("details"),
        has("usage").with(&[FieldNames::all(&[
            has("input"),
            has("output"),
            has("cacheRead"),
            has("cacheWrite"),
            has("totalTokens"),
            has("cost"),
            has("total"),
        ])]),
    ]),
    FieldNames::where_value(
        "role",
        &["user", "assistant", "toolResult"],
        &[needs("content", Form::TextOrList).with(BLOCK)],
    ),
    FieldNames::where_value("role", &["assistant"], &[text("stopReason")]),
    FieldNames::where_value("role", &["toolResult"], &[text("toolCallId"), text("toolName")]),
];

const BLOCK: &[FieldNames] = &[
    FieldNames::all(&[text("type"), has("textSignature"), has("thoughtSignature"), has("redacted")]),
    FieldNames::typed(&["text"], &[text("text")]),
    FieldNames::typed(&["toolCall"], &[text("id"), text("name"), needs("arguments", Form::Object)]),
    FieldNames::typed(&["thinking"], &[text("thinking"), has("thinkingSignature")]),
    FieldNames::typed(&["image"], &[text("data"), text("mimeType")]),
];

/// Tried with OpenClaw 2026.7.1.
const SESSIONS: Index = Index::List {
    name: "sessions.json",
    lost: "openclaw sessions cleanup --all-agents --fix-missing takes them off its list",
    unknown: "they are no part of any conversation any more, and openclaw doctor offers to put them aside",
};

pub(super) const FORMAT: Format = Format {
    name: "pi",
    written_by: "pi, OpenClaw before 2026.8, OhMyPi, Prime Agent, QClaw",
    remark: "a tree; takes OpenClaw's lock",
    agents: &[
        Agent::resumed("pi", Resume { command: &["pi", "--session"], ..Resume::BY_FILE }),
        Agent::at("OpenClaw", ".openclaw").with(SESSIONS),
        Agent::at("OpenClaw", ".clawdbot").with(SESSIONS),
        Agent::at("OpenClaw", ".moltbot").with(SESSIONS),
        Agent::at("OpenClaw", ".kimi_openclaw"),
        Agent::at("OhMyPi", ".omp"),
        Agent::at("Prime Agent", ".prime"),
        Agent::at("QClaw", ".qclaw"),
    ],
    // pi 1.6.0 cuts a result of a shell to 51,300 characters, OpenClaw 2026.9.6 to 64,000 (both measured).
    agent_cuts_results: Some(51_300),
    shape: Shape::Tree,
    level: SupportLevel::Insert,
    gates: &[Gate::RunInProgress, Gate::OpenClawLock],
    header: Header::First,
    roots: &[
        Root { env: Some("PI_CODING_AGENT_DIR"), home: ".pi/agent", below: "sessions" },
        Root { env: Some("OPENCLAW_STATE_DIR"), home: ".openclaw", below: "agents/*/sessions" },
        Root { env: None, home: ".openclaw", below: "agent/sessions" },
        Root { env: None, home: ".openclaw", below: "sessions" },
        Root { env: None, home: ".clawdbot", below: "agents/*/sessions" },
        Root { env: None, home: ".moltbot", below: "agents/*/sessions" },
        // OhMyPi, Prime Agent, QClaw and Kimi's OpenClaw write the same bytes.
        Root { env: None, home: ".omp/agent", below: "sessions" },
        Root { env: None, home: ".prime/agent", below: "sessions" },
        Root { env: None, home: ".qclaw", below: "agents/*/sessions" },
        Root { env: None, home: ".kimi_openclaw", below: "agents/*/sessions" },
    ],
    // pi 1.6.0 (tools/read.js), and OpenClaw 2026.9.6, which also takes the second name of the path.
    reads: &[ReadTool {
        name: "read",
        path: &["path", "file_path"],
        from: "offset",
        first_line: 1,
        to: ReadEnd::Count("limit"),
        lines_max: 2_000,
    }],
    answer: ResultPlace::Line,
    arguments: Some(Arguments { at: &[&["arguments"]], none: "{}" }),
    copies_results: true,
    aborts: true,
    leaves_out_failed: true,
    compactions_name_what_stays: true,
    keeps_sent_texts: true,
    content: Content {
        empty: Some(Severity::Note),
        blank: Some(Severity::Note),
        reasoning: true,
        thoughts: true,
        results_first: false,
        failures: true,
        mirrors: true,
        in_one_string: true,
        server_tools: false,
        ..Content::ANTHROPIC
    },
    estimate: Estimate { added: &[("", 4_600)], char: 280, sends_thinking: false },
    names: NAMES,
    kinds: KINDS,
    provider_at: &[&["message", "provider"], &["message", "api"]],
    vote,
    is_record: Some(is_record),
    read,
    parts,
    broken,
    missing_result,
    compaction,
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let header = says(doc, "type", "session")
        && is_string(doc.get("id"))
        // Another agent's event log begins with the same fields, but numbers its versions from 0.
        && doc.get("version").and_then(Value::whole) != Some(0)
        && (doc.get("version").is_some() || is_string(doc.get("cwd")));
    let foreign = doc.get("uuid").is_some()
        || doc.get("payload").is_some()
        || (says(doc, "type", "message") && doc.get("message").is_none() && doc.get("role").is_some());
    match (foreign, header || is_telling(doc)) {
        (true, _) => Vote::Foreign,
        (false, true) => Vote::Own,
        // Others use the same envelope around other blocks.
        (false, false) if says(doc, "type", "message") => Vote::Fits,
        (false, false) => Vote::Silent,
    }
}

fn is_record(doc: &Doc) -> bool {
    // Blocks of messages have a type too; messages themselves do not.
    is_string(doc.get("type")) && (doc.get("parentId").is_some() || is_string(doc.get("timestamp")))
        || (says(doc, "type", "session") && is_string(doc.get("id")))
        || (says(doc, "type", "message") && doc.get("message").is_some_and(|m| m.get("role").is_some()))
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(line) = doc.root() else { return };
    let [kind, id, parent, mode, said] = line.pick(["type", "id", "parentId", "appendMode", "message"]);
    let Some(kind) = kind else { return };
    if kind.is("session") {
        // Of a session in OpenClaw's database.
        let version = line.get("version").and_then(Value::whole);
        if version.is_some_and(|version| version >= DATABASE_VERSION) {
            draft.in_database();
        }
        // Without an id it is none to the agent.
        draft.entry.kind = if is_string(id) { Kind::Header } else { Kind::Opaque };
        return;
    }
    draft.entry.id = draft.intern(id);
    draft.parent(parent);
    draft.entry.is_sidechain = mode.is_some_and(|mode| mode.is("side"));
    match kind.text().as_deref() {
        Some(b"message") => message(said, draft),
        Some(b"compaction") => {
            draft.entry.kind = Kind::Boundary;
            match doc.get("firstKeptEntryIndex") {
                Some(index) if doc.get("firstKeptEntryId").is_none() => {
                    draft.target(Target { index: index.whole(), at: index.span(), ..Target::default() });
                }
                _ => target(doc.get("firstKeptEntryId"), draft),
            }
            let summary = doc.get("summary");
            if let Some(text) = summary {
                draft.text(text);
            }
            lacks(summary, draft);
        }
        Some(b"label") => target(doc.get("targetId"), draft),
        Some(b"reset") => draft.entry.service = Service::Reset,
        Some(b"custom") if says(doc, "customType", SENT_TEXTS) => draft.entry.service = Service::SentTexts,
        // Since 0.87: without a replacement the target is hidden.
        Some(b"context_edit") => {
            let content = doc.get("replacement").and_then(|replacement| replacement.get("content"));
            draft.edits(doc.get("targetId"), content);
        }
        Some(b"leaf") => {
            draft.entry.kind = Kind::Leaf;
            target(doc.get("targetId"), draft);
        }
        Some(b"branch_summary") => {
            draft.entry.kind = Kind::Note;
            doc.get("summary").into_iter().for_each(|text| draft.text(text));
        }
        Some(b"custom_message") => {
            draft.entry.kind = Kind::Note;
            let content = doc.get("content");
            texts(content).for_each(|text| draft.text(text));
            lacks(content, draft);
        }
        _ => {}
    }
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let content = Writing::new().text("type", b"text").text("text", MISSING_RESULT.as_bytes()).end();
    let mut message = Writing::new()
        .text("role", b"toolResult")
        .raw("toolCallId", lost.call)
        .text("toolName", lost.tool)
        .list("content", &content)
        .raw("isError", b"true");
    let written = lost.doc.get("message").and_then(|message| message.get("timestamp")).map(lost.raw);
    let millis = written.and_then(|raw| String::from_utf8(raw).ok()?.parse::<u64>().ok());
    if let Some(millis) = millis {
        message = message.raw("timestamp", format!("{}", millis.saturating_add(1)).as_bytes());
    }
    let mut line = Writing::new().text("type", b"message");
    if lost.doc.get("id").is_some() {
        line = line.text("id", lost.id.as_bytes()).text("parentId", lost.parent);
    }
    line.text("timestamp", time_after(lost.doc).as_bytes()).raw("message", &message.end()).end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let message = doc.get("message");
    let role = message.and_then(|message| message.get("role"));
    if role.is_some_and(|role| role.is("toolResult")) {
        each(EntryPart::Result);
    }
    let said = message.map_or_else(|| doc.get("content"), |message| message.get("content"));
    content_parts(said, each);
    let output = message.and_then(|message| message.get("output"));
    for text in [output, doc.get("summary")].into_iter().flatten() {
        if text.kind() == Json::String {
            each(EntryPart::Text(text));
        }
    }
}

fn broken(doc: &Doc) -> Option<Broken<'_>> {
    let [stop, error] = doc.get("message")?.pick(["stopReason", "errorMessage"]);
    let stop = stop?;
    if stop.is("length") {
        return Some(Broken::CutOff);
    }
    stop.is("error").then_some(Broken::Error(error))
}

/// One entry, after the newest one. `fromHook` tells pi not to expect its own `details` in it.
fn compaction(made: &Compaction<'_>) -> Vec<Vec<u8>> {
    let line = Writing::new()
        .text("type", b"compaction")
        .text("id", made.ids[0].as_bytes())
        .text("parentId", made.parent)
        .text("timestamp", later(made.time.as_bytes()).as_bytes())
        .text("summary", made.summary.as_bytes())
        .text("firstKeptEntryId", made.first_kept)
        .raw("tokensBefore", format!("{}", made.tokens_before).as_bytes())
        .raw("fromHook", b"true");
    [line.end()].into()
}

/// Whether only pi writes such an entry. Identifies a file whose header is lost, with or without ids.
fn is_telling(doc: &Doc) -> bool {
    if !is_string(doc.get("timestamp")) {
        return false;
    }
    if let Some(message) = doc.get("message") {
        let [role, stop, content] = message.pick(["role", "stopReason", "content"]);
        let calls = || has_block(content, &["toolCall"]);
        let answers = role.is_some_and(|role| role.is("toolResult"));
        let speaks = role.is_some_and(|role| role.is("assistant")) && (is_string(stop) || calls());
        return says(doc, "type", "message") && (answers || speaks);
    }
    ENTRIES.iter().any(|(kind, key)| says(doc, "type", kind) && doc.get(key).is_some())
}

/// Notes missing content that pi needs. An empty text or list is not missing: pi leaves it out when it sends, and
/// extensions write such notes.
fn lacks(content: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let there = |content: Value<'_>| matches!(content.kind(), Json::String | Json::Array | Json::Object);
    if !content.is_some_and(there) {
        draft.issue(ContentIssueKind::Empty, draft.entry.span);
    }
}

fn target(value: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let (id, at) = (draft.intern(value), value.map(Value::span).unwrap_or_default());
    draft.target(Target { id, at, ..Target::default() });
}

/// The texts of a content value: the string itself, or the `text` of its blocks.
fn texts(content: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    let single = content.filter(|value| value.kind() == Json::Object).and_then(|block| block.get("text"));
    alone(content).into_iter().chain(single).chain(items(content).filter_map(|block| block.get("text")))
}

fn message(message: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let Some(message) = message else {
        return draft.issue(ContentIssueKind::Corrupted(None), draft.entry.span);
    };
    let [role, content, excluded] = message.pick(["role", "content", "excludeFromContext"]);
    let role = role.and_then(Value::text);
    if excluded.is_some_and(Value::is_true) {
        draft.entry.service = Service::Excluded;
    }
    draft.entry.kind = match role.as_deref() {
        Some(b"user") => {
            texts(content).for_each(|text| draft.user_text(text));
            for block in items(content) {
                match block.get("text") {
                    Some(text) => draft.blank(block, text),
                    None => draft.image(block),
                }
            }
            Kind::Message(Role::User)
        }
        Some(b"assistant") => {
            assistant(message, draft);
            Kind::Message(Role::Assistant)
        }
        Some(b"toolResult") => {
            result(message, draft);
            Kind::Message(Role::Tool)
        }
        Some(b"bashExecution") => {
            message.get("output").into_iter().for_each(|text| draft.text(text));
            Kind::Note
        }
        Some(_) => {
            texts(content).for_each(|text| draft.text(text));
            Kind::Note
        }
        None => {
            // pi always writes a role.
            if !corrupted_role(message, draft) {
                draft.issue(ContentIssueKind::Corrupted(None), message.span());
            }
            Kind::Opaque
        }
    };
}

fn assistant(message: Value<'_>, draft: &mut Draft<'_>) {
    let [model, stop, content] = message.pick(["model", "stopReason", "content"]);
    draft.entry.model = draft.intern(model);
    draft.entry.stop = match stop.and_then(Value::text).as_deref() {
        Some(b"toolUse") => StopReason::ToolUse,
        Some(b"stop" | b"length") => StopReason::Done,
        Some(b"aborted" | b"error") => StopReason::Aborted,
        _ => StopReason::Unknown,
    };
    if let Some(text) = alone(content) {
        draft.text(text);
    }
    let mut last = None;
    for block in items(content) {
        let [kind, text] = block.pick(["type", "text"]);
        let is = |name: &&str| kind.is_some_and(|kind| kind.is(name));
        if !text.is_some_and(is_blank) {
            last = None;
        }
        if CALLS.iter().any(is) {
            let [id, name, arguments, input, partial, signature] =
                block.pick(["id", "name", "arguments", "input", "partialJson", "thoughtSignature"]);
            let partial = partial.is_some() || arguments.or(input).is_none_or(Value::is_null);
            draft.call(block, id, name, partial);
            if signature.is_some_and(is_altered) {
                draft.issue(ContentIssueKind::AlteredThought, block.span());
            }
        } else if is(&"thinking") || is(&"redacted_thinking") {
            let signature = block.get("thinkingSignature");
            let item = signature.is_some_and(|value| value.prefix().starts_with(b"{"));
            last = Some((
                if item { ContentIssueKind::ReasoningLast } else { ContentIssueKind::ThinkingLast },
                block.span(),
            ));
            thinking(block, signature, draft);
        } else if let Some(text) = text {
            draft.text_block(block, text);
        } else {
            draft.other_block(block);
        }
    }
    if let Some((kind, block)) = last {
        draft.issue(kind, block);
    }
    if draft.entry.stop == StopReason::Aborted
        && message.get("errorMessage").is_some_and(|text| refusal::is_blocked(text.prefix()))
    {
        draft.issue(ContentIssueKind::Blocked, draft.entry.span);
    }
}

/// pi keeps thinking of all providers. Most do not sign it, and pi sends unsigned thinking as text.
fn thinking(block: Value<'_>, signature: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let redacted = block.get("type").is_some_and(|kind| kind.is("redacted_thinking"));
    let signed = signature.is_some_and(|value| !value.is_null() && !value.is(""));
    if signed || redacted {
        draft.signed(block, signature.or(block.get("data")));
    } else if let Some(text) = block.get("thinking") {
        draft.shows_text(text);
    }
}

fn result(message: Value<'_>, draft: &mut Draft<'_>) {
    let [usual, tool, content, error, details] =
        message.pick(["toolCallId", "toolName", "content", "isError", "details"]);
    let call = usual.or_else(|| CALL_IDS.iter().find_map(|key| message.get(key)));
    let span = draft.entry.span;
    draft.result(message, call, tool, error.is_some_and(Value::is_true));
    draft.whole_result(span);
    draft.content(content);
    if details.is_some_and(|details| details.get("openclawSyntheticMissingToolResult").is_some()) {
        draft.invented();
    }
    draft.sides(details);
}
