//! The requests of formats whose loader makes a request from many lines, and the checks for formats that no API is
//! sent: Copilot CLI, Kimi Code, the AI SDK's two kinds of messages, `ShareGPT`.
//!
//! Like the oracle, this shares no code with the crate under test.

use super::oracle::{ContentPart, RequestMessage, RequestRefusal, text};
use super::reader::{blocks, rows_with_lone};
use serde_json::Value;
use std::collections::BTreeSet;

/// A loader that refuses any line that is not an object, except a torn last one.
pub(crate) fn each_line_is_read(bytes: &[u8], out: &mut Vec<RequestRefusal>) {
    let ended = bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    for (n, line) in ended.enumerate() {
        let is_object = matches!(&rows_with_lone(line)[..], [row] if row.alone);
        if !line.trim_ascii().is_empty() && !is_object {
            out.push(RequestRefusal {
                class: "B9",
                text: format!("Session file is corrupted (line {})", n + 1),
            });
        }
    }
}

fn said(assistant: bool, said: &Value) -> RequestMessage {
    RequestMessage { assistant, parts: vec![ContentPart::Text(text(said))] }
}

fn call(id: &Value, name: &Value, arguments: &Value) -> ContentPart {
    ContentPart::Call { id: text(id), name: text(name), arguments: arguments.clone() }
}

fn result(id: &Value, said: &Value) -> RequestMessage {
    RequestMessage {
        assistant: false,
        parts: vec![ContentPart::Result { id: text(id), text: said.to_string() }],
    }
}

/// What the main agent of Copilot CLI sends: the events after the last compaction, up to a rewind. A result answers its
/// call wherever it is.
pub(crate) fn copilot(rows: &[&Value]) -> Vec<RequestMessage> {
    let mut events: Vec<&Value> = Vec::new();
    for row in rows {
        if row["type"] == "session.snapshot_rewind" {
            let to = events.iter().position(|event| event["id"] == row["data"]["upToEventId"]);
            events.truncate(to.unwrap_or(events.len()));
        } else {
            events.push(row);
        }
    }
    let summed_up = events.iter().rposition(|event| event["type"] == "session.compaction_complete");
    let of_subagent = |event: &Value| {
        let data = &event["data"];
        [&event["agentId"], &data["parentAgentTaskId"], &data["parentToolCallId"]]
            .iter()
            .any(|id| id.is_string())
    };
    let spoken = events[summed_up.unwrap_or(0)..].iter().filter(|event| !of_subagent(event));
    let message = |event: &&Value| {
        let data = &event["data"];
        Some(match event["type"].as_str()? {
            "user.message" => said(false, &data["content"]),
            "assistant.message" => {
                let requests = blocks(&data["toolRequests"]);
                let calls =
                    requests.iter().map(|one| call(&one["toolCallId"], &one["name"], &one["arguments"]));
                let spoken = data["content"].as_str().filter(|text| !text.is_empty());
                let spoken = spoken.map(|text| ContentPart::Text(text.into()));
                RequestMessage { assistant: true, parts: spoken.into_iter().chain(calls).collect() }
            }
            "tool.execution_complete" => {
                let said = [&data["result"], &data["error"]].into_iter().find(|said| !said.is_null());
                result(&data["toolCallId"], said.unwrap_or(&Value::Null))
            }
            _ => return None,
        })
    };
    spoken.filter_map(message).collect()
}

/// Kimi Code itself answers calls that stayed open and drops results of unknown calls. So the only possible problem is
/// a call that is written twice while it is open.
pub(crate) fn kimi_code(rows: &[&Value], out: &mut Vec<RequestRefusal>) {
    if rows.first().is_some_and(|row| row["type"] != "metadata" || row["protocol_version"].is_null()) {
        out.push(RequestRefusal { class: "B10", text: "the first record is no metadata".into() });
    }
    let mut open = BTreeSet::new();
    for row in rows {
        let event = &row["event"];
        match event["type"].as_str() {
            Some("tool.call") if !open.insert(text(&event["toolCallId"])) => {
                let text = format!("`tool_use` ids must be unique: {}", event["toolCallId"]);
                out.push(RequestRefusal { class: "P6", text });
            }
            Some("tool.result") => _ = open.remove(&text(&event["toolCallId"])),
            _ if row["type"] != "context.append_loop_event" => open.clear(),
            _ => {}
        }
    }
}

/// The messages that Kimi Code makes of its records: those after the last compaction, and its summary.
pub(crate) fn kimi_code_messages(rows: &[&Value]) -> Vec<RequestMessage> {
    let summed_up = rows.iter().rposition(|row| row["type"] == "context.apply_compaction");
    let message = |row: &&Value| {
        let (own, event) = (&row["message"], &row["event"]);
        Some(match (row["type"].as_str()?, event["type"].as_str()) {
            ("context.apply_compaction", _) => said(false, &row["summary"]),
            ("context.append_message", _) => {
                let texts = blocks(&own["content"]).iter().filter_map(|part| part["text"].as_str());
                let texts = texts.chain(own["content"].as_str()).map(|text| ContentPart::Text(text.into()));
                let calls = blocks(&own["toolCalls"]);
                let calls = calls.iter().map(|one| call(&one["id"], &one["name"], &Value::Null));
                match own["role"].as_str()? {
                    "tool" => result(&own["toolCallId"], &own["content"]),
                    role => {
                        RequestMessage { assistant: role == "assistant", parts: texts.chain(calls).collect() }
                    }
                }
            }
            ("context.append_loop_event", Some("content.part")) => said(true, &event["part"]["text"]),
            ("context.append_loop_event", Some("tool.call")) => {
                let call = call(&event["toolCallId"], &event["name"], &event["args"]);
                RequestMessage { assistant: true, parts: vec![call] }
            }
            ("context.append_loop_event", Some("tool.result")) => {
                result(&event["toolCallId"], &event["result"]["output"])
            }
            _ => return None,
        })
    };
    rows[summed_up.unwrap_or(0)..].iter().filter_map(message).collect()
}

/// The AI SDK's messages for the model, as its OpenAI provider sends them: a message for each result.
pub(crate) fn ai_sdk_model(rows: &[&Value]) -> Vec<RequestMessage> {
    let mut messages = Vec::new();
    for row in rows {
        let parts = blocks(&row["content"]);
        match row["role"].as_str() {
            Some("user") => {
                messages.push(RequestMessage { assistant: false, parts: vec![ContentPart::Other] })
            }
            Some("assistant") => {
                let calls = parts.iter().filter(|part| part["type"] == "tool-call");
                // The SDK used the name `args` up to version 4.
                let input =
                    |part: &'_ Value| part.get("input").or(part.get("args")).cloned().unwrap_or_default();
                let calls = calls.map(|part| call(&part["toolCallId"], &part["toolName"], &input(part)));
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                let texts = texts.chain(row["content"].as_str()).map(|text| ContentPart::Text(text.into()));
                messages.push(RequestMessage { assistant: true, parts: texts.chain(calls).collect() });
            }
            Some("tool") => {
                let results = parts.iter().filter(|part| part["type"] == "tool-result");
                messages.extend(results.map(|part| result(&part["toolCallId"], &part["output"])));
            }
            _ => {}
        }
    }
    messages
}

/// Converts messages for the screen as `convertToModelMessages` does: for each step the calls, and after them the
/// results. A call whose input is incomplete is left out.
pub(crate) fn ai_sdk_ui(rows: &[&Value]) -> Vec<RequestMessage> {
    let mut messages = Vec::new();
    for row in rows.iter().filter(|row| row["role"] != "system") {
        if row["role"] == "user" {
            messages.push(RequestMessage { assistant: false, parts: vec![ContentPart::Other] });
            continue;
        }
        // Before there were parts, or beside them in version 4.
        let parts = blocks(&row[if row["parts"].is_null() { "toolInvocations" } else { "parts" }]);
        for step in parts.split(|part| part["type"] == "step-start") {
            let (mut spoken, mut results) = (Vec::new(), Vec::new());
            for part in step {
                let (kind, part) = match part.get("toolInvocation") {
                    Some(old) => ("dynamic-tool".to_string(), old),
                    None if part["type"].is_null() => ("dynamic-tool".to_string(), part),
                    None => (text(&part["type"]), part),
                };
                let name = kind.strip_prefix("tool-").map_or(part["toolName"].clone(), Value::from);
                if !kind.starts_with("tool-") && kind != "dynamic-tool" {
                    spoken.extend(part["text"].as_str().map(|text| ContentPart::Text(text.into())));
                } else if part["state"] != "input-streaming" {
                    let given = if part["input"].is_null() { &part["args"] } else { &part["input"] };
                    spoken.push(call(&part["toolCallId"], &name, given));
                    let mut said = [&part["output"], &part["errorText"], &part["result"]].into_iter();
                    let said = said.find(|said| !said.is_null());
                    results.extend(said.map(|said| result(&part["toolCallId"], said)));
                }
            }
            if !spoken.is_empty() {
                messages.push(RequestMessage { assistant: true, parts: spoken });
            }
            messages.extend(results);
        }
    }
    messages
}

/// What trainers require of `ShareGPT`: texts by known speakers, and tool texts after assistant texts.
pub(crate) fn sharegpt(rows: &[&Value], out: &mut Vec<RequestRefusal>) {
    const SPEAKERS: [&str; 6] = ["system", "human", "user", "gpt", "assistant", "tool"];
    for row in rows {
        let turns = blocks(&row["conversations"]);
        let mut before = "";
        for turn in turns {
            let from = turn["from"].as_str().unwrap_or_default();
            if !SPEAKERS.contains(&from) || !turn["value"].is_string() {
                out.push(RequestRefusal { class: "B8", text: format!("{from:?} says no text") });
            }
            if from == "tool" && !["gpt", "assistant", "tool"].contains(&before) {
                out.push(RequestRefusal { class: "P2", text: format!("a tool answers {before:?}") });
            }
            before = from;
        }
    }
}
