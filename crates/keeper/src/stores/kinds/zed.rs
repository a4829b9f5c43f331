//! Zed: `threads.db`, with a whole thread in each row of `threads`, as JSON or compressed JSON. Its messages become messages of
//! OpenAI's API, one by one.

use super::chat::{ChatMessage, ChatRows, image, part};
use crate::stores::kind::{RowOrder, RowTrouble, StoreKind};
use crate::stores::lines::RecordLines;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, Read};

/// Longer threads are not read, because a thread is in memory as a whole.
const THREAD_BYTES_MAX: u64 = 256 << 20;

pub(super) const KIND: StoreKind = StoreKind {
    agent: "Zed",
    tables: &[("threads", &["id", "summary", "updated_at", "data_type", "data"])],
    sessions: "SELECT id, 1000 * CAST(strftime('%s', updated_at) AS INTEGER) FROM threads ORDER BY id",
    sessions_by_rows: "SELECT id, NULL FROM threads ORDER BY id",
    mark: None,
    stamps: &[
        "SELECT CAST(strftime('%s', updated_at) AS INTEGER), octet_length(data) FROM threads WHERE rowid = ?1",
    ],
    version: None,
    tried: &[],
    keys: |query, each| query.each(0, &RowOrder::all("threads WHERE id = ?1", &["id"]), each),
    reader: |connection| {
        let row = "SELECT id, data_type, data FROM threads WHERE rowid = ?1";
        Ok(Box::new(ChatRows { row: connection.prepare(row)?, read }))
    },
    fillers: &[],
    load: None,
    mend: None,
};

/// A thread. Its messages are parsed one by one, so that only one is in memory.
#[derive(Deserialize)]
struct Thread<'t> {
    #[serde(borrow)]
    messages: Vec<&'t RawValue>,
}

fn read(row: &Row<'_>, out: &mut RecordLines) -> Result<(), RowTrouble> {
    let kind: String = row.get(1)?;
    let (ValueRef::Text(stored) | ValueRef::Blob(stored)) = row.get_ref(2)? else {
        return Ok(out.unreadable("the thread holds nothing".to_string(), None)?);
    };
    let text = match kind.as_str() {
        "json" => Ok(Cow::Borrowed(stored)),
        "zstd" => unpack(stored).map(Cow::Owned),
        other => Err(io::Error::other(format!("it is of a kind that is not known: {other}"))),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => return Ok(out.unreadable(format!("the thread cannot be read: {error}"), None)?),
    };
    let thread: Thread<'_> = match serde_json::from_slice(&text) {
        Ok(thread) => thread,
        Err(error) => {
            return Ok(out.unreadable(format!("the thread is no JSON: {error}"), Some(&text))?);
        }
    };
    for (n, message) in thread.messages.iter().enumerate() {
        let message: Value = serde_json::from_str(message.get()).unwrap_or_default();
        match (&message["User"], &message["Agent"], &message["segments"]) {
            (Value::Object(_), ..) => asked(&message["User"]).write(out)?,
            (_, Value::Object(_), _) => answered(&message["Agent"]).write(out)?,
            (_, _, Value::Array(_)) => older(&message).write(out)?,
            // It went on after a limit.
            _ if message == "Resume" => {}
            _ => out.lose(format!("message {}: it is of a kind that is not known", n + 1)),
        }
    }
    Ok(())
}

fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    zstd::Decoder::with_buffer(packed)?.take(THREAD_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > THREAD_BYTES_MAX {
        return Err(io::Error::other("it holds more than 256 MiB"));
    }
    Ok(text)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn asked(message: &Value) -> ChatMessage {
    let mut asked = ChatMessage::with_role("user");
    for one in items(&message["content"]) {
        asked.text(&one["Text"]);
        asked.text(&one["Mention"]["content"]);
        if one["Image"].is_object() {
            asked.image(&"image/png".into(), &one["Image"]["source"]);
        }
    }
    asked
}

fn answered(message: &Value) -> ChatMessage {
    let mut answered = ChatMessage::with_role("assistant");
    for one in items(&message["content"]) {
        answered.text(&one["Text"]);
        answered.think(&one["Thinking"]["text"]);
        let call = &one["ToolUse"];
        if call.is_object() {
            answered.call(&call["id"], &call["name"], &call["input"]);
        }
    }
    for (id, result) in message["tool_results"].as_object().into_iter().flatten() {
        answered.result(&id.as_str().into(), returned(&result["content"]));
    }
    answered
}

/// A message of versions before 0.3.
fn older(message: &Value) -> ChatMessage {
    let mut older = ChatMessage::with_role(match message["role"].as_str() {
        Some("assistant") => "assistant",
        Some("system") => "system",
        _ => "user",
    });
    for segment in items(&message["segments"]) {
        match segment["type"].as_str() {
            Some("thinking") => older.think(&segment["text"]),
            _ => older.text(&segment["text"]),
        }
    }
    for call in items(&message["tool_uses"]) {
        older.call(&call["id"], &call["name"], &call["input"]);
    }
    for result in items(&message["tool_results"]) {
        older.result(&result["tool_use_id"], returned(&result["content"]));
    }
    older
}

/// What a tool returned: one part, or a list of them, each a text or an image in one of several spellings.
fn returned(content: &Value) -> Vec<Value> {
    let one = |content: &Value| {
        let image_of = |key: &str| Some(&content[key]).filter(|image| image["source"].is_string());
        match image_of("Image").or_else(|| image_of("image")) {
            Some(found) => Some(image(&"image/png".into(), &found["source"])),
            None => part(content).or_else(|| part(&content["Text"])).or_else(|| part(&content["text"])),
        }
    };
    match content {
        Value::Array(all) => all.iter().filter_map(one).collect(),
        single => one(single).into_iter().collect(),
    }
}
