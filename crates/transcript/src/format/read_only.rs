//! Files that are recognised, so that it can be said what they are, and never changed.
//!
//! One [`Kept`] each: how it is told, and why it is left alone. Their lines are not read.

use super::base::{Format, Level, Part, Results, Root, Shape, Vote};
use super::common::{is_string, items, says};
use crate::model::draft::Draft;
use spans::json::{Doc, Kind as Json, Value};

/// A kind of file that is only read.
pub(super) struct Kept {
    name: &'static str,
    why: &'static str,
    /// What an object says; see [`Format::vote`].
    vote: fn(&Doc) -> Vote,
    roots: &'static [Root],
}

/// VS Code's chat sessions: each line changes a place in what the lines before it made.
pub(super) const VSCODE_CHAT: Kept = Kept {
    name: "vscode-chat",
    why: "VS Code's lines say by position what they change",
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
    roots: &[],
};

/// Kimi CLI's `wire.jsonl`, a log for the screen beside the `context.jsonl` that is sent.
pub(super) const KIMI_CLI_WIRE: Kept = Kept {
    name: "kimi-cli-wire",
    why: "it is Kimi CLI's log for the screen, and /undo and /fork cut it by turns; context.jsonl is what is sent",
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
    roots: &[],
};

/// Cursor's transcripts are written for hooks; what it resumes from is a database.
pub(super) const CURSOR: Kept = Kept {
    name: "cursor",
    why: "Cursor writes it for hooks and never reads it; its sessions are in a database",
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
};

/// Kiro CLI.
pub(super) const KIRO: Kept = Kept {
    name: "kiro",
    why: "how Kiro CLI writes and loads it is not known",
    vote: |doc| {
        let kinds = ["Prompt", "AssistantMessage", "ToolResults"];
        let known = kinds.iter().any(|kind| says(doc, "kind", kind));
        let data = doc.get("data").is_some_and(|data| data.kind() == Json::Object);
        if known && data { Vote::Own } else { Vote::Silent }
    },
    roots: &[Root { env: None, home: ".kiro", below: "sessions/cli" }],
};

/// Goose before it took to a database.
pub(super) const GOOSE_LEGACY: Kept = Kept {
    name: "goose-legacy",
    why: "Goose keeps its sessions in a database now and reads this once, to import it",
    vote: |doc| {
        let header = is_string(doc.get("working_dir")) && doc.get("message_count").is_some();
        let kinds = || items(doc.get("content")).filter_map(|block| block.get("type"));
        let message = doc.get("role").is_some()
            && kinds().any(|kind| kind.is("toolRequest") || kind.is("toolResponse"));
        match header || message {
            true => Vote::Own,
            false if doc.get("role").is_some() && doc.get("created").is_some() => Vote::Fits,
            false => Vote::Silent,
        }
    },
    roots: &[Root { env: None, home: ".local/share/goose", below: "sessions" }],
};

impl Format for Kept {
    fn name(&self) -> &'static str {
        self.name
    }

    fn vote(&self, doc: &Doc) -> Vote {
        (self.vote)(doc)
    }

    fn shape(&self) -> Shape {
        Shape::List
    }

    fn level(&self) -> Level {
        Level::ReadOnly(self.why)
    }

    fn results(&self) -> Results {
        Results::Unread
    }

    fn roots(&self) -> &'static [Root] {
        self.roots
    }

    fn read(&self, _: &Doc, _: &mut Draft<'_>) {}

    fn parts<'d>(&self, _: &'d Doc, _: &mut dyn FnMut(Part<'d>)) {}
}
