//! Builds messages of OpenAI's Chat Completions API for programs that store no JSON messages of their own: what the model would
//! be sent, whichever API the program uses.

use crate::stores::kind::{RowKey, RowReader, RowTrouble};
use crate::stores::lines::{RecordLines, Want};
use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement};
use serde_json::{Value, json};
use std::io;

/// A message that is being built.
pub(super) struct ChatMessage {
    role: &'static str,
    content: Vec<Value>,
    thinking: String,
    calls: Vec<Value>,
    /// Results; each becomes a message of its own.
    results: Vec<Value>,
}

impl ChatMessage {
    pub(super) const fn with_role(role: &'static str) -> Self {
        Self { role, content: Vec::new(), thinking: String::new(), calls: Vec::new(), results: Vec::new() }
    }

    /// Adds a text. Empty texts are not sent.
    pub(super) fn text(&mut self, text: &Value) {
        self.content.extend(part(text));
    }

    pub(super) fn think(&mut self, text: &Value) {
        self.thinking.push_str(text.as_str().unwrap_or_default());
    }

    pub(super) fn image(&mut self, mime: &Value, base64: &Value) {
        self.content.push(image(mime, base64));
    }

    /// Adds a call. Its arguments are an object, or a text that should contain one.
    pub(super) fn call(&mut self, id: &Value, name: &Value, arguments: &Value) {
        let arguments = match arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.calls.push(
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }),
        );
    }

    pub(super) fn result(&mut self, id: &Value, content: Vec<Value>) {
        self.results.push(json!({ "role": "tool", "tool_call_id": id, "content": folded(content) }));
    }

    /// Writes the message. In a user message, results come before other content.
    pub(super) fn write(self, out: &mut RecordLines) -> io::Result<()> {
        let own = !self.content.is_empty() || !self.calls.is_empty();
        let results = || self.results.iter().cloned();
        let message = own.then(|| {
            let mut message = json!({ "role": self.role, "content": folded(self.content.clone()) });
            // Some APIs require it on every call of a session or on none, and what these programs send depends on the API.
            if out.want == Want::Copy && !self.thinking.is_empty() {
                message["reasoning_content"] = self.thinking.clone().into();
            }
            if !self.calls.is_empty() {
                message["tool_calls"] = self.calls.clone().into();
            }
            message
        });
        let is_first = self.role == "assistant";
        let before = message.clone().filter(|_| is_first);
        let after = message.filter(|_| !is_first);
        before
            .into_iter()
            .chain(results())
            .chain(after)
            .try_for_each(|message| out.record(&[message.to_string().as_bytes()]))
    }
}

/// A content part for a text, unless it is empty.
pub(super) fn part(text: &Value) -> Option<Value> {
    let text = text.as_str().filter(|text| !text.trim().is_empty())?;
    Some(json!({ "type": "text", "text": text }))
}

pub(super) fn image(mime: &Value, base64: &Value) -> Value {
    let (mime, base64) = (mime.as_str().unwrap_or("image/png"), base64.as_str().unwrap_or_default());
    json!({ "type": "image_url", "image_url": { "url": format!("data:{mime};base64,{base64}") } })
}

/// Content that is a single text is written as that text.
fn folded(mut content: Vec<Value>) -> Value {
    match content.as_mut_slice() {
        [] => "".into(),
        [Value::Object(only)] if only.contains_key("text") => only.remove("text").unwrap_or_default(),
        _ => content.into(),
    }
}

/// Reads rows that each hold a message.
pub(super) struct ChatRows<'c> {
    pub(super) row: Statement<'c>,
    pub(super) read: fn(&Row<'_>, &mut RecordLines) -> Result<(), RowTrouble>,
}

impl RowReader for ChatRows<'_> {
    fn row(&mut self, (_, row): RowKey, out: &mut RecordLines) -> Result<(), RowTrouble> {
        let mut rows = self.row.query([row])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        (self.read)(row, out)
    }
}

/// The list in a column; `None`, and a note, if it is not a list.
pub(super) fn list(
    row: &Row<'_>,
    column: usize,
    out: &mut RecordLines,
) -> Result<Option<Vec<Value>>, RowTrouble> {
    let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = row.get_ref(column)? else { return Ok(None) };
    if let Ok(list) = serde_json::from_slice(bytes) {
        return Ok(Some(list));
    }
    let id: i64 = row.get(0)?;
    out.unreadable(format!("message {id}: its content is not a list of parts"), Some(bytes))?;
    Ok(None)
}
