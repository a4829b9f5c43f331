//! Goose: `sessions.db`, with a list of parts in each row of `messages`, in Goose's own message format. They are read as messages
//! of OpenAI's API. What Goose hides from the model (`agentVisible`, parts for people) is only in an export.

use super::chat::{ChatMessage, ChatRows, image, list, part};
use crate::stores::kind::{EachRow, Query, RowOrder, RowTrouble, StoreKind};
use crate::stores::lines::{RecordLines, Want};
use rusqlite::Row;
use serde_json::Value;

pub(super) const KIND: StoreKind = StoreKind {
    agent: "Goose",
    tables: &[
        ("sessions", &["id", "working_dir", "updated_at"]),
        ("messages", &["id", "session_id", "role", "content_json", "created_timestamp", "metadata_json"]),
    ],
    sessions: "SELECT id, 1000 * CAST(strftime('%s', updated_at) AS INTEGER) FROM sessions AS s \
               WHERE EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id) ORDER BY id",
    sessions_by_rows: "SELECT DISTINCT session_id, NULL FROM messages ORDER BY session_id",
    mark: None,
    // To rewrite a history, Goose deletes its rows and inserts them again with new numbers.
    stamps: &["SELECT octet_length(content_json), octet_length(metadata_json) FROM messages WHERE id = ?1"],
    version: None,
    tried: &[],
    keys,
    reader: |connection| {
        let row = "SELECT id, role, content_json FROM messages WHERE id = ?1";
        Ok(Box::new(ChatRows { row: connection.prepare(row)?, read }))
    },
    fillers: &[],
    load: None,
    mend: None,
};

fn keys(query: &Query<'_>, each: EachRow<'_>) -> Result<(), RowTrouble> {
    let rows = if query.salvages {
        "messages WHERE session_id = ?1"
    } else {
        "messages WHERE session_id = ?1 AND coalesce(CASE WHEN json_valid(metadata_json) THEN \
         json_extract(metadata_json, '$.agentVisible') END, 1)"
    };
    query.each(0, &RowOrder::all(rows, &["created_timestamp", "id"]), each)
}

fn read(row: &Row<'_>, out: &mut RecordLines) -> Result<(), RowTrouble> {
    let role: String = row.get(1)?;
    let Some(parts) = list(row, 2, out)? else { return Ok(()) };
    let mut message = ChatMessage::with_role(if role == "assistant" { "assistant" } else { "user" });
    for one in &parts {
        match one["type"].as_str().unwrap_or_default() {
            "text" => message.text(&one["text"]),
            "thinking" => message.think(&one["thinking"]),
            "image" => message.image(&one["mimeType"], &one["data"]),
            "toolRequest" | "frontendToolRequest" => {
                let call = &one["toolCall"]["value"];
                message.call(&one["id"], &call["name"], &call["arguments"]);
            }
            "toolResponse" => message.result(&one["id"], returned(&one["toolResult"], out.want)),
            // Questions to people and their answers, and redacted thinking.
            _ => {}
        }
    }
    Ok(message.write(out)?)
}

/// What a tool returned: an error, or a list of parts that is in `content` in newer versions.
fn returned(result: &Value, want: Want) -> Vec<Value> {
    if let Some(error) = part(&result["error"]) {
        return vec![error];
    }
    let value = &result["value"];
    let parts = value.as_array().or_else(|| value["content"].as_array());
    let is_sent = |one: &&Value| {
        let audience = one["annotations"]["audience"].as_array();
        want == Want::Copy || audience.is_none_or(|all| all.iter().any(|who| who == "assistant"))
    };
    let parts = parts.into_iter().flatten().filter(is_sent);
    let shown = |one: &Value| match one["type"].as_str() {
        Some("image") => Some(image(&one["mimeType"], &one["data"])),
        Some("resource") => part(&one["resource"]["text"]),
        _ => part(&one["text"]),
    };
    parts.filter_map(shown).collect()
}
