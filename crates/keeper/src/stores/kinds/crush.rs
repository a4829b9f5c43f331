//! Crush: `crush.db`, with a list of parts in each row of `messages`. They are read as messages of OpenAI's API. Messages before
//! the newest summary are no longer sent; only an export contains them.

use super::chat::{ChatMessage, ChatRows, image, list, part};
use crate::stores::kind::{EachRow, Query, RowOrder, RowTrouble, StoreKind};
use crate::stores::lines::RecordLines;
use crate::stores::rows::first;
use rusqlite::Row;
use serde_json::{Value, json};

pub(super) const KIND: StoreKind = StoreKind {
    agent: "Crush",
    tables: &[
        ("sessions", &["id", "parent_session_id", "title", "updated_at"]),
        ("messages", &["id", "session_id", "role", "parts", "created_at", "updated_at"]),
    ],
    // Times are seconds; some versions wrote milliseconds.
    sessions: "SELECT id, CASE WHEN updated_at > 100000000000 THEN updated_at ELSE 1000 * updated_at END FROM sessions AS s \
               WHERE EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id) ORDER BY id",
    sessions_by_rows: "SELECT DISTINCT session_id, NULL FROM messages ORDER BY session_id",
    mark: None,
    stamps: &["SELECT updated_at, octet_length(parts) FROM messages WHERE rowid = ?1"],
    version: None,
    tried: &[],
    keys,
    reader: |connection| {
        let row = "SELECT rowid, role, parts FROM messages WHERE rowid = ?1";
        Ok(Box::new(ChatRows { row: connection.prepare(row)?, read }))
    },
    fillers: &[(
        "files",
        "a copy of each version of a file that Crush edited. To be rid of them, delete old sessions in Crush",
    )],
    load: None,
    mend: None,
};

fn keys(query: &Query<'_>, each: EachRow<'_>) -> Result<(), RowTrouble> {
    const SUMMARISES: &str =
        "SELECT count(*) FROM pragma_table_info('sessions') WHERE name = 'summary_message_id'";
    const SUMMARY: &str = "SELECT m.rowid FROM sessions AS s JOIN messages AS m ON m.id = s.summary_message_id \
                           WHERE s.id = ?1 AND m.session_id = s.id";
    const ALL: RowOrder = RowOrder::all("messages WHERE session_id = ?1", &["created_at", "rowid"]);
    let summarises: i64 = query.connection.query_row(SUMMARISES, [], |row| row.get(0))?;
    let mut begin: Option<i64> = if !query.salvages && summarises > 0 {
        first(query.connection, SUMMARY, &[&query.session])?
    } else {
        None
    };
    query.each(0, &ALL, &mut |key| {
        // What is before the summary is not sent.
        begin = begin.filter(|begin| *begin != key.1);
        if begin.is_none() { each(key) } else { Ok(()) }
    })
}

fn read(row: &Row<'_>, out: &mut RecordLines) -> Result<(), RowTrouble> {
    let role: String = row.get(1)?;
    let Some(parts) = list(row, 2, out)? else { return Ok(()) };
    let mut message = ChatMessage::with_role(match role.as_str() {
        "assistant" => "assistant",
        "system" => "system",
        _ => "user",
    });
    for one in &parts {
        let data = &one["data"];
        match one["type"].as_str().unwrap_or_default() {
            "text" => message.text(&data["text"]),
            "reasoning" => message.think(&data["thinking"]),
            "tool_call" => message.call(&data["id"], &data["name"], &data["input"]),
            "tool_result" => message.result(&data["tool_call_id"], returned(data)),
            "binary" => message.image(&data["MIMEType"], &data["Data"]),
            "image_url" => message.text(&data["url"]),
            "shell_command" => message.text(&json!(format!(
                "$ {}\n{}",
                data["command"].as_str().unwrap_or_default(),
                data["output"].as_str().unwrap_or_default()
            ))),
            // How it ended.
            _ => {}
        }
    }
    Ok(message.write(out)?)
}

fn returned(data: &Value) -> Vec<Value> {
    let has_image = data["data"].as_str().is_some_and(|bytes| !bytes.is_empty());
    let image = has_image.then(|| image(&data["mime_type"], &data["data"]));
    part(&data["content"]).into_iter().chain(image).collect()
}
