//! What agents send of a session: tests/agents/sent holds small sessions, and what the real program sent of each.
//!
//! `tests/agents/sent.py` asks the programs again. A line is a case: its name, the rows of the file, and what was in the request,
//! as a set: `t:` a text, `c:` a call, `r:` a result. Halves of pairs are left out on both sides, because the programs complete or
//! drop them in ways of their own.

use crate::support::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use transcript::request::blame;

/// Texts, calls and results of a row of any format, by the names that the formats use. `instead` is what another row puts
/// in the place of its content.
fn tags(row: &Value, instead: Option<&Value>, out: &mut BTreeSet<String>) {
    let message =
        ["message", "payload", "data"].iter().find_map(|key| row[key].as_object().map(|_| &row[key]));
    let message = message.unwrap_or(row);
    let answers = row["type"] != "tool.execution_start" && message["type"] != "function_call";
    let id = ["toolCallId", "call_id"].iter().find_map(|key| message[key].as_str()).filter(|_| answers);
    if let Some(call) = id {
        out.insert(format!("r:{call}"));
        return;
    }
    if let Some(call) = message["call_id"].as_str() {
        out.insert(format!("c:{call}"));
    }
    for request in message["toolRequests"].as_array().into_iter().flatten() {
        out.insert(format!("c:{}", request["toolCallId"].as_str().unwrap_or_default()));
    }
    // A compaction of Codex.
    let history = message["replacement_history"].as_array();
    history.into_iter().flatten().for_each(|item| tags(item, None, out));
    if row["type"] == "compacted" && history.is_none() {
        out.insert(format!("t:{}", message["message"].as_str().unwrap_or_default()));
    }
    match instead.or_else(|| message.get("content")) {
        Some(Value::String(text)) => _ = out.insert(format!("t:{}", text.trim())),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().trim();
                match text("type") {
                    "text" | "input_text" | "output_text" => _ = out.insert(format!("t:{}", text("text"))),
                    "tool_use" | "toolCall" => _ = out.insert(format!("c:{}", text("id"))),
                    "tool_result" => _ = out.insert(format!("r:{}", text("tool_use_id"))),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// What of a file is sent, by Tailor's picture of it.
fn sent(text: &str) -> BTreeSet<String> {
    let unsent = blame(&transcript::Reading::new(&text.as_bytes()).unwrap(), "").unwrap().unwrap().unsent;
    let lines = (1..).zip(text.lines()).filter(|(line, _)| !unsent.contains(line));
    let rows: Vec<Value> = lines.filter_map(|(_, row)| serde_json::from_str(row).ok()).collect();
    let edits = rows.iter().filter(|row| row["type"] == "context_edit");
    let edits: BTreeMap<_, _> =
        edits.map(|row| (row["targetId"].as_str(), &row["replacement"]["content"])).collect();
    let mut found = BTreeSet::new();
    let says = [
        "user",
        "assistant",
        "message",
        "custom_message",
        "context_edit",
        "response_item",
        "compacted",
        "user.message",
        "assistant.message",
        "tool.execution_complete",
    ];
    for row in rows.iter().filter(|row| row["type"].as_str().is_some_and(|kind| says.contains(&kind))) {
        let id = row.get("id").and_then(Value::as_str).filter(|_| row["type"] != "context_edit");
        tags(row, id.and_then(|id| edits.get(&Some(id)).copied()), &mut found);
    }
    found
}

/// The same without halves of pairs.
fn whole(tags: &BTreeSet<String>) -> BTreeSet<&str> {
    let is_whole = |tag: &&String| {
        let has = |kind: &str| tags.contains(&format!("{kind}{}", &tag[1..]));
        tag.starts_with('t') || has("c") && has("r")
    };
    tags.iter().filter(is_whole).map(String::as_str).collect()
}

#[test]
fn what_is_sent_is_what_the_programs_sent() {
    let mut wrong = Vec::new();
    for file in fs::read_dir(root().join("tests/agents/sent")).unwrap() {
        let path = file.unwrap().path();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let rows = case["rows"].as_array().unwrap().iter();
            // A row that is a string is a damaged line.
            let rows = rows.map(|row| row.as_str().map_or_else(|| row.to_string(), str::to_string));
            let text: String = rows.map(|row| row + "\n").collect();
            let expected: BTreeSet<String> = case["sent"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tag| tag.as_str().unwrap().to_string())
                .collect();
            let found = sent(&text);
            if whole(&found) != whole(&expected) {
                wrong.push(format!(
                    "{}: {}\n  found {found:?}\n  sent  {expected:?}",
                    path.display(),
                    case["case"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
