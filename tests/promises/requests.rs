//! What providers would answer for formats whose requests are simple: the live messages, in order, as the agent sends
//! them. [`super::agents`] knows what is sent for the others. Formats that are only read are left out.
//!
//! Like the oracle, this shares no code with the crate under test.

use super::agents;
use super::oracle::{
    self, ContentPart, RequestMessage, RequestRefusal, anthropic, body, documents, gemini, openai_chat,
    reasoning_back, said, text,
};
use super::reader::{FileObject, blocks, rows_with_lone};
use super::story::Dialect;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The dialect in which stories are spelled for a format, if there is one.
pub(crate) fn dialect(format: &str) -> Option<Dialect> {
    match format {
        "pi" => Some(Dialect::Pi),
        "claude-code" => Some(Dialect::ClaudeCode),
        "openai-chat" => Some(Dialect::OpenAiChat),
        "anthropic" => Some(Dialect::Anthropic),
        _ => None,
    }
}

/// The provider's refusals of a file; `None` if they are unknown.
pub(crate) fn refusals_of(format: &str, bytes: &[u8]) -> Option<Vec<RequestRefusal>> {
    let of_dialect = dialect(format).map(|dialect| oracle::refusals(dialect, bytes));
    of_dialect.or_else(|| refusals(format, bytes))
}

/// The messages that a format's agent would send; `None` if the format has no single conversation, or if they are
/// unknown.
pub(crate) fn conversation(format: &str, bytes: &[u8]) -> Option<Vec<RequestMessage>> {
    let rows: Vec<FileObject> = rows_with_lone(bytes).into_iter().filter(|row| row.alone).collect();
    if let Some(dialect) = dialect(format) {
        return Some(oracle::request(dialect, &rows));
    }
    let values: Vec<&Value> = rows.iter().map(|row| &row.value).collect();
    Some(match format {
        "codex" => codex(&values),
        "qwen-code" => qwen(&values),
        "gemini-cli" => gemini_cli(&values),
        "kimi-cli" | "vibe" | "picoclaw" | "nanobot" | "hermes" | "reasonix" => chat(&values),
        "grok-build" => grok(&values),
        "copilot-cli" => agents::copilot(&values),
        "kimi-code" => agents::kimi_code_messages(&values),
        _ => return None,
    })
}

/// Everything that a format's provider would object to in the conversations in these bytes; `None` if the format is
/// left out.
pub(crate) fn refusals(format: &str, bytes: &[u8]) -> Option<Vec<RequestRefusal>> {
    let rows: Vec<FileObject> = rows_with_lone(bytes).into_iter().filter(|row| row.alone).collect();
    let values: Vec<&Value> = rows.iter().map(|row| &row.value).collect();
    let mut out = Vec::new();
    match format {
        "codex" => {
            let items = codex(&values);
            responses(&items, &mut out);
            reasoning(&items, &mut out);
            body(&items, &mut out);
        }
        "gemini-contents" => all(&[contents(&values)], gemini_as_it_is, &mut out),
        "gemini-dataset" => {
            let each = |key: &'static str| values.iter().filter_map(move |row| row.pointer(key)?.as_array());
            let all_contents = each("/request/contents").chain(each("/contents"));
            let conversations = all_contents.map(|list| contents(&list.iter().collect::<Vec<_>>()));
            all(&conversations.collect::<Vec<_>>(), gemini_as_it_is, &mut out);
        }
        "qwen-code" => all(&[qwen(&values)], gemini_turns, &mut out),
        "gemini-cli" => all(&[gemini_cli(&values)], gemini_turns, &mut out),
        "kimi-cli" | "vibe" | "picoclaw" | "nanobot" | "hermes" | "reasonix" => {
            all(&[chat(&values)], openai_chat, &mut out);
            reasoning_back(&values, &mut out);
        }
        "grok-build" => all(&[grok(&values)], openai_chat, &mut out),
        "openai-dataset" => all(&messages_of(&values, chat), openai_chat, &mut out),
        "anthropic-dataset" => all(&messages_of(&values, blocks_of), strictly, &mut out),
        "droid" => {
            let spoken = values.iter().filter(|row| row["type"] == "message");
            // Other providers accept its messages too.
            let loosely: fn(&[RequestMessage], &mut Vec<RequestRefusal>) =
                |messages, out| anthropic(messages, false, out);
            let messages: Vec<&Value> = spoken.map(|row| &row["message"]).collect();
            all(&[blocks_of(&messages)], loosely, &mut out);
            documents(&messages, &mut out);
        }
        "copilot-cli" => {
            agents::each_line_is_read(bytes, &mut out);
            let items = agents::copilot(&values);
            responses(&items, &mut out);
            body(&items, &mut out);
        }
        "kimi-code" => {
            agents::each_line_is_read(bytes, &mut out);
            agents::kimi_code(&values, &mut out);
        }
        "ai-sdk-model" => all(&[agents::ai_sdk_model(&values)], openai_chat, &mut out),
        "ai-sdk-ui" => all(&[agents::ai_sdk_ui(&values)], openai_chat, &mut out),
        "sharegpt" => agents::sharegpt(&values, &mut out),
        _ => return None,
    }
    Some(out)
}

fn all(
    each: &[Vec<RequestMessage>],
    check: fn(&[RequestMessage], &mut Vec<RequestRefusal>),
    out: &mut Vec<RequestRefusal>,
) {
    for messages in each {
        check(messages, out);
        body(messages, out);
    }
}

/// Gemini's requirements, and that calls come after a user turn.
fn gemini_turns(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    gemini(messages, out);
    let calls = |message: &&RequestMessage| {
        message.assistant && message.parts.iter().any(|part| matches!(part, ContentPart::Call { .. }))
    };
    let spoke_before = |message: &&RequestMessage| !message.assistant;
    let text = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
    if messages
        .iter()
        .find(|message| calls(message) || spoke_before(message))
        .is_some_and(|first| calls(&first))
    {
        out.push(RequestRefusal { class: "M8", text: text.into() });
    }
}

/// The same, with what Gemini requires of content that is sent unchecked.
fn gemini_as_it_is(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    gemini_turns(messages, out);
    for (n, message) in messages.iter().enumerate() {
        if message.parts.is_empty() {
            let text =
                format!("GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty.");
            out.push(RequestRefusal { class: "M1", text });
        }
        if message.parts.iter().any(|part| matches!(part, ContentPart::Text(text) if text.trim().is_empty()))
        {
            let text = "Unable to submit request because it has an empty text parameter.".to_string();
            out.push(RequestRefusal { class: "M2", text });
        }
    }
}

fn strictly(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    anthropic(messages, true, out);
}

fn has_role(value: &Value, roles: &[&str]) -> bool {
    value["role"].as_str().is_some_and(|role| roles.contains(&role))
}

fn chat(rows: &[&Value]) -> Vec<RequestMessage> {
    let spoken = rows.iter().filter(|row| has_role(row, &["user", "assistant", "tool"]));
    spoken.map(|row| said(Dialect::OpenAiChat, row)).collect()
}

fn blocks_of(rows: &[&Value]) -> Vec<RequestMessage> {
    let spoken = rows.iter().filter(|row| has_role(row, &["user", "assistant"]));
    spoken.map(|row| said(Dialect::Anthropic, row)).collect()
}

/// The conversations of a data set, in training files and batches.
fn messages_of(rows: &[&Value], read: fn(&[&Value]) -> Vec<RequestMessage>) -> Vec<Vec<RequestMessage>> {
    let places = ["/messages", "/body/messages", "/params/messages"];
    let list = |row: &&Value| places.iter().find_map(|place| row.pointer(place)?.as_array().cloned());
    rows.iter().filter_map(list).map(|list| read(&list.iter().collect::<Vec<_>>())).collect()
}

/// Grok Build names the speaker in `type`.
fn grok(rows: &[&Value]) -> Vec<RequestMessage> {
    let roles = [("user", "user"), ("assistant", "assistant"), ("tool_result", "tool")];
    let message = |row: &&Value| {
        let (_, role) = roles.iter().find(|(kind, _)| row["type"] == *kind)?;
        let mut message = (*row).clone();
        message["role"] = Value::from(*role);
        Some(said(Dialect::OpenAiChat, &message))
    };
    rows.iter().filter_map(message).collect()
}

/// Gemini's own turns.
fn contents(turns: &[&Value]) -> Vec<RequestMessage> {
    let spoken = turns.iter().filter(|turn| has_role(turn, &["user", "model", "function"]));
    let message = |turn: &&Value| RequestMessage {
        assistant: turn["role"] == "model",
        parts: blocks(&turn["parts"]).iter().map(gemini_part).collect(),
    };
    spoken.map(message).collect()
}

fn gemini_part(part: &Value) -> ContentPart {
    if let Some(said) = part["text"].as_str() {
        // A text with a signature may be empty.
        let signed = part.get("thoughtSignature").is_some();
        return if part["thought"] == true || signed {
            ContentPart::Thinking
        } else {
            ContentPart::Text(said.into())
        };
    }
    if let Some(call) = part.get("functionCall") {
        return ContentPart::Call {
            id: text(&call["id"]),
            name: text(&call["name"]),
            arguments: call["args"].clone(),
        };
    }
    match part.get("functionResponse") {
        Some(response) => {
            ContentPart::Result { id: text(&response["id"]), text: response["response"].to_string() }
        }
        None => ContentPart::Other,
    }
}

/// The path from the last entry to the first, by parents, without what only the screen and the statistics use.
fn qwen(rows: &[&Value]) -> Vec<RequestMessage> {
    let by_id: BTreeMap<&str, &Value> =
        rows.iter().filter_map(|row| Some((row["uuid"].as_str()?, *row))).collect();
    let mut path: Vec<&Value> = Vec::new();
    let mut next = rows.iter().rev().find(|row| row["uuid"].is_string()).copied();
    while let Some(row) = next.filter(|_| path.len() <= rows.len()) {
        path.push(row);
        next = row["parentUuid"].as_str().and_then(|parent| by_id.get(parent).copied());
    }
    path.reverse();
    // The newest summary replaces what was before it.
    let summary = path.iter().rposition(|row| row["subtype"] == "chat_compression");
    let list = summary.and_then(|at| path[at].pointer("/systemPayload/compressedHistory")?.as_array());
    let from = summary.filter(|_| list.is_some()).unwrap_or(0);
    let spoken = path[from..].iter().filter(|row| row["type"] != "system").map(|row| &row["message"]);
    contents(&list.into_iter().flatten().chain(spoken).collect::<Vec<_>>())
}

/// The last record of each id, at the place of the first; an assistant message holds its calls with their results.
fn gemini_cli(rows: &[&Value]) -> Vec<RequestMessage> {
    let mut records: Vec<&Value> = Vec::new();
    for row in rows {
        let place = |id: &Value| records.iter().position(|record| record["id"] == *id);
        if let Some(to) = row.get("$rewindTo") {
            records.truncate(place(to).unwrap_or(0));
        } else if let Some(list) = row.pointer("/$set/messages").and_then(Value::as_array) {
            records = list.iter().collect();
        } else if row["id"].is_string() {
            match place(&row["id"]) {
                Some(at) => records[at] = row,
                None => records.push(row),
            }
        }
    }
    let mut messages = Vec::new();
    for record in records.iter().filter(|record| record["type"] == "user" || record["type"] == "gemini") {
        let content = &record["content"];
        let alone =
            content.as_str().filter(|text| !text.is_empty()).map(|text| ContentPart::Text(text.into()));
        let mut parts: Vec<ContentPart> =
            alone.into_iter().chain(blocks(content).iter().map(gemini_part)).collect();
        let calls = blocks(&record["toolCalls"]);
        // A call that is also in the content counts once.
        let said: Vec<&Value> = blocks(content).iter().map(|part| &part["functionCall"]["id"]).collect();
        parts.extend(calls.iter().filter(|call| !said.contains(&&call["id"])).map(|call| {
            ContentPart::Call {
                id: text(&call["id"]),
                name: text(&call["name"]),
                arguments: call["args"].clone(),
            }
        }));
        messages.push(RequestMessage { assistant: record["type"] == "gemini", parts });
        let results = calls.iter().flat_map(|call| blocks(&call["result"])).map(gemini_part);
        let results: Vec<ContentPart> =
            results.filter(|part| matches!(part, ContentPart::Result { .. })).collect();
        if !results.is_empty() {
            messages.push(RequestMessage { assistant: false, parts: results });
        }
    }
    messages
}

/// The items after the newest compaction that was not undone; ids of calls are prefixed with their kind.
fn codex(rows: &[&Value]) -> Vec<RequestMessage> {
    let back = rows.iter().rposition(|row| row["payload"]["type"] == "thread_rolled_back");
    let replaced =
        |row: &&Value| row["type"] == "compacted" && row["payload"]["replacement_history"].is_array();
    let from = rows.iter().rposition(replaced).filter(|at| back.is_none_or(|back| back < *at));
    let items = |rows: &[&Value]| -> Vec<RequestMessage> {
        let items = rows.iter().filter(|row| row["type"] == "response_item");
        items.filter(|row| row["timestamp"].is_string()).filter_map(|row| item(&row["payload"])).collect()
    };
    let (before, sent) = rows.split_at(from.unwrap_or(0));
    let (before, mut sent) = (items(before), items(sent));
    // Codex removes outputs whose call went with the compaction.
    let ids = |items: &[RequestMessage]| -> BTreeSet<String> {
        let parts = items.iter().flat_map(|item| &item.parts);
        parts
            .filter_map(|part| if let ContentPart::Call { id, .. } = part { Some(id.clone()) } else { None })
            .collect()
    };
    let (gone, there) = (ids(&before), ids(&sent));
    let left = |part: &ContentPart| matches!(part, ContentPart::Result { id, .. } if gone.contains(id) && !there.contains(id));
    sent.retain(|item| !item.parts.iter().any(left));
    sent
}

fn item(payload: &Value) -> Option<RequestMessage> {
    let kind = payload["type"].as_str()?;
    // A search that the API ran itself needs no output.
    if kind.starts_with("tool_search")
        && (payload["execution"] == "server" || !payload["call_id"].is_string())
    {
        return None;
    }
    let id = |kind: &str| format!("{kind}:{}", text(&payload["call_id"]));
    let call =
        |kind: &str| ContentPart::Call { id: id(kind), name: text(&payload["name"]), arguments: Value::Null };
    let result = |kind: &str| ContentPart::Result { id: id(kind), text: payload["output"].to_string() };
    let one =
        |part| RequestMessage { assistant: matches!(part, ContentPart::Call { .. }), parts: vec![part] };
    Some(match kind {
        "message" => RequestMessage {
            assistant: payload["role"] == "assistant",
            parts: blocks(&payload["content"])
                .iter()
                .map(|part| ContentPart::Text(text(&part["text"])))
                .collect(),
        },
        "reasoning" => RequestMessage { assistant: true, parts: vec![ContentPart::Thinking] },
        "web_search_call" | "image_generation_call" => {
            RequestMessage { assistant: true, parts: vec![ContentPart::Other] }
        }
        "function_call" | "local_shell_call" => one(call("function")),
        "custom_tool_call" => one(call("custom")),
        "tool_search_call" => one(call("search")),
        "function_call_output" => one(result("function")),
        "custom_tool_call_output" => one(result("custom")),
        "tool_search_output" => one(result("search")),
        _ => return None,
    })
}

/// Whether the tools of a turn may still be running: only the model spoke after the call, and no output is followed by
/// the model's next message.
fn may_run(behind: &[RequestMessage]) -> bool {
    let is_result = |item: &RequestMessage| matches!(item.parts.first(), Some(ContentPart::Result { .. }));
    let first = behind.iter().position(is_result).unwrap_or(behind.len());
    behind.iter().all(|item| item.assistant || is_result(item))
        && !behind[first..].iter().any(|item| item.assistant)
}

/// OpenAI's Responses API: reasoning belongs to what the model said or did next. The last reasoning may still be
/// followed by something, and real sessions continued after one that a user had interrupted.
fn reasoning(items: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    let answers = |message: &RequestMessage| matches!(message.parts[..], [ContentPart::Result { .. }, ..]);
    let alone =
        |pair: &&[RequestMessage]| matches!(pair[0].parts[..], [ContentPart::Thinking]) && answers(&pair[1]);
    for _ in items.windows(2).filter(alone) {
        let text = "Item of type 'reasoning' was provided without its required following item.".to_string();
        out.push(RequestRefusal { class: "M5", text });
    }
}

/// OpenAI's Responses API: each call has one output and each output its call, wherever they are. The last calls may
/// still run.
fn responses(items: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    let (mut calls, mut outputs) = (BTreeMap::<&str, Vec<usize>>::new(), BTreeMap::<&str, usize>::new());
    for (at, part) in
        items.iter().enumerate().flat_map(|(at, item)| item.parts.iter().map(move |part| (at, part)))
    {
        match part {
            ContentPart::Call { id, .. } => calls.entry(id).or_default().push(at),
            ContentPart::Result { id, .. } => *outputs.entry(id).or_default() += 1,
            _ => {}
        }
    }
    for (id, places) in &calls {
        let answered = outputs.get(id).copied().unwrap_or(0);
        let last = places.last().copied().unwrap_or(0);
        let running = may_run(&items[last..]);
        if answered < places.len() && !(running && answered + 1 == places.len()) {
            let text = format!("No tool output found for function call {id}.");
            out.push(RequestRefusal { class: "P1", text });
        }
    }
    for (id, count) in outputs {
        let asked = calls.get(id).map_or(0, Vec::len);
        if count > asked {
            let text = format!("No tool call found for function call output with call_id {id}.");
            out.push(RequestRefusal { class: if asked == 0 { "P2" } else { "P5" }, text });
        }
    }
}
