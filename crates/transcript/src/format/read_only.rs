//! Files that are recognised, so that Tailor can say what they are, but never changed.
//!
//! One constant each: how to recognise the file, and why it is left alone. Their lines are not read.

use super::agent::Agent;
use super::base::{BASE, Format, Results, Root, SupportLevel, Vote};
use super::common::{has_block, is_string, says, says_any};
use spans::json::{Value, ValueKind as Json};

/// What they share: no gates, since nothing changes them, and no results, since nothing reads them.
const KEPT: Format = Format { gates: &[], results: Results::Unread, ..BASE };

/// VS Code's chat sessions: each line patches the state that the earlier lines made.
pub(super) const VSCODE_CHAT: Format = Format {
    name: "vscode-chat",
    written_by: "VS Code's chat sessions",
    remark: "lines say by position what they change",
    level: SupportLevel::ReadOnly("VS Code's lines say by position what they change"),
    vote: |doc| {
        let kind = doc.get("kind").and_then(Value::whole);
        let first = kind == Some(0) && doc.get("v").is_some_and(|value| value.kind() == Json::Object);
        let later = kind.is_some_and(|kind| (1..=3).contains(&kind))
            && doc.get("k").is_some_and(|keys| keys.kind() == Json::Array);
        match doc.get("type").is_none() && doc.get("role").is_none() {
            true if first => Vote::Own,
            true if later => Vote::Fits,
            _ => Vote::Foreign,
        }
    },
    ..KEPT
};

/// Kimi CLI's `wire.jsonl`, a log for the screen. The model is sent `context.jsonl`, which is beside it.
pub(super) const KIMI_CLI_WIRE: Format = Format {
    name: "kimi-cli-wire",
    written_by: "Kimi CLI `wire.jsonl`",
    agents: &[Agent::named("Kimi CLI")],
    remark: "a log for the screen",
    level: SupportLevel::ReadOnly(
        "it is Kimi CLI's log for the screen, and /undo and /fork cut it by turns; context.jsonl is what is sent",
    ),
    vote: |doc| {
        let header = says(doc, "type", "metadata")
            && is_string(doc.get("protocol_version"))
            && doc.get("created_at").is_none();
        let message = doc.get("message");
        let event = doc.get("timestamp").is_some_and(|time| time.kind() == Json::Number)
            && is_string(message.and_then(|message| message.get("type")))
            && message.is_some_and(|message| message.get("payload").is_some());
        if header || event { Vote::Own } else { Vote::Silent }
    },
    ..KEPT
};

/// Cursor writes transcripts for hooks; it resumes from a database.
pub(super) const CURSOR: Format = Format {
    name: "cursor",
    written_by: "Cursor",
    remark: "written for hooks; sessions are in a database",
    agents: &[Agent::named("Cursor")],
    level: SupportLevel::ReadOnly(
        "Cursor writes it for hooks and never reads it; its sessions are in a database",
    ),
    vote: |doc| {
        let content = doc.get("message").and_then(|message| message.get("content"));
        let message = (says(doc, "role", "user") || says(doc, "role", "assistant"))
            && content.is_some()
            && doc.get("content").is_none()
            && doc.get("uuid").is_none()
            && doc.get("type").is_none();
        let ended = says(doc, "type", "turn_ended") && is_string(doc.get("status"));
        if message || ended { Vote::Own } else { Vote::Silent }
    },
    roots: &[Root { env: None, home: ".cursor", below: "projects/*/agent-transcripts" }],
    ..KEPT
};

/// Kiro CLI.
pub(super) const KIRO: Format = Format {
    name: "kiro",
    written_by: "Kiro CLI",
    agents: &[Agent::named("Kiro CLI")],
    level: SupportLevel::ReadOnly("how Kiro CLI writes and loads it is unknown"),
    vote: |doc| {
        let known = says_any(doc, "kind", &["Prompt", "AssistantMessage", "ToolResults"]);
        let data = doc.get("data").is_some_and(|data| data.kind() == Json::Object);
        if known && data { Vote::Own } else { Vote::Silent }
    },
    roots: &[Root { env: None, home: ".kiro", below: "sessions/cli" }],
    ..KEPT
};

/// What Claude Code prints with `--output-format stream-json` (2.1): it has the messages of the session, whose own file is what is
/// loaded again, beside reports of the run.
pub(super) const CLAUDE_STREAM: Format = Format {
    name: "claude-stream-json",
    written_by: "Claude Code's `--output-format stream-json`",
    remark: "output of a run",
    agents: &[Agent::named("Claude Code")],
    level: SupportLevel::ReadOnly(
        "it is what a run of Claude Code printed; the session that is loaded again is the file named by its session_id",
    ),
    vote: |doc| {
        let is_output = is_string(doc.get("session_id")) && doc.get("sessionId").is_none();
        let role = doc.get("message").and_then(|message| message.get("role"));
        let speaks = says_any(doc, "type", &["assistant", "user"])
            && is_string(role)
            && doc.get("parent_tool_use_id").is_some();
        let ends = says(doc, "type", "result") && doc.get("num_turns").is_some();
        match is_output {
            true if speaks || ends => Vote::Own,
            true if is_string(doc.get("type")) => Vote::Fits,
            _ => Vote::Silent,
        }
    },
    ..KEPT
};

/// Goose, before it moved to a database.
pub(super) const GOOSE_LEGACY: Format = Format {
    name: "goose-legacy",
    written_by: "Goose before its database",
    agents: &[Agent::named("Goose")],
    level: SupportLevel::ReadOnly(
        "Goose keeps its sessions in a database now and reads this once, to import it",
    ),
    vote: |doc| {
        let header = is_string(doc.get("working_dir")) && doc.get("message_count").is_some();
        let message =
            doc.get("role").is_some() && has_block(doc.get("content"), &["toolRequest", "toolResponse"]);
        match header || message {
            true => Vote::Own,
            false if doc.get("role").is_some() && doc.get("created").is_some() => Vote::Fits,
            false => Vote::Silent,
        }
    },
    roots: &[Root { env: None, home: ".local/share/goose", below: "sessions" }],
    ..KEPT
};
