//! What the providers would answer to the agent's next request: the live context is turned into messages the way the
//! agent does it, and each rule of the APIs is checked, with the provider's own words.
//!
//! Shares no code with the crate under test. The rules are those that the APIs document or were seen to apply; a
//! refusal names the code of the rule that it belongs to. Left out is what only a running conversation can break
//! (prefill, prefix binding, images), and what agents repair when they send (ids that pi cleans).

use super::reader::{FileObject, LONE, Speaker, Spoken, blocks, live, message, rows_with_lone};
use super::story::Dialect;
use serde_json::Value;
use std::collections::BTreeSet;

/// Why a request would be refused.
#[derive(Clone, Debug)]
pub(crate) struct RequestRefusal {
    /// The code of the rule that it belongs to.
    pub class: &'static str,
    /// In the provider's words.
    pub text: String,
}

/// The content of a message, in words that all providers share.
#[derive(Clone, Debug)]
pub(crate) enum ContentPart {
    Text(String),
    Thinking,
    Call {
        id: String,
        name: String,
        arguments: Value,
    },
    Result {
        id: String,
        text: String,
    },
    /// A tool that the API runs itself, which needs no result from the agent.
    ServerCall(String),
    ServerResult(String),
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct RequestMessage {
    pub assistant: bool,
    pub parts: Vec<ContentPart>,
}

/// Everything that the dialect's providers would object to in the conversation in these bytes.
pub(crate) fn refusals(dialect: Dialect, bytes: &[u8]) -> Vec<RequestRefusal> {
    let rows: Vec<FileObject> = rows_with_lone(bytes).into_iter().filter(|row| row.alone).collect();
    let messages = request(dialect, &rows);
    let mut out = Vec::new();
    match dialect {
        Dialect::Pi | Dialect::PiFlat => {
            anthropic(&messages, false, &mut out);
            openai_chat(&messages, &mut out);
            openai_responses(&messages, &mut out);
            gemini(&messages, &mut out);
        }
        Dialect::ClaudeCode => {
            anthropic(&messages, true, &mut out);
            unfinished(&messages, &mut out);
        }
        Dialect::Anthropic => anthropic(&messages, true, &mut out),
        Dialect::OpenAiChat => openai_chat(&messages, &mut out),
    }
    // pi and Claude Code (since 2.1.132) clean texts when they read them.
    if matches!(dialect, Dialect::OpenAiChat | Dialect::Anthropic) {
        body(&messages, &mut out);
        roles(&rows, &mut out);
        let values: Vec<&Value> = rows.iter().map(|row| &row.value).collect();
        match dialect {
            Dialect::Anthropic => documents(&values, &mut out),
            _ => reasoning_back(&values, &mut out),
        }
    }
    out
}

/// DeepSeek and Kimi, in thinking mode: if one call has reasoning before it, each must.
pub(crate) fn reasoning_back(messages: &[&Value], out: &mut Vec<RequestRefusal>) {
    let calls =
        |message: &&&Value| message["role"] == "assistant" && !blocks(&message["tool_calls"]).is_empty();
    let thought: Vec<bool> =
        messages.iter().filter(calls).map(|message| message["reasoning_content"].is_string()).collect();
    if let Some(at) = thought.iter().position(|thought| !thought).filter(|_| thought.contains(&true)) {
        let text = format!(
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
        );
        out.push(RequestRefusal { class: "M13", text });
    }
}

/// Anthropic: a document of type PDF must be one. `JVBERi0` is `%PDF-` in base64.
pub(crate) fn documents(messages: &[&Value], out: &mut Vec<RequestRefusal>) {
    let within = |message: &&Value| {
        let own = blocks(&message["content"]);
        let of_results = own.iter().flat_map(|block| blocks(&block["content"])).cloned();
        of_results.chain(own.iter().cloned()).collect::<Vec<Value>>()
    };
    for block in messages.iter().flat_map(within).filter(|block| block["type"] == "document") {
        let source = &block["source"];
        let is_pdf = source["data"].as_str().is_some_and(|data| data.starts_with("JVBERi0"));
        if source["media_type"] == "application/pdf" && source["type"] == "base64" && !is_pdf {
            out.push(RequestRefusal { class: "S20", text: "The PDF specified was not valid.".into() });
        }
    }
}

/// The class of a refusal that only lasts until the message is complete.
pub(crate) const UNFINISHED: &str = "unfinished";

/// Tools start while Claude Code still writes the lines of a message, so their results do not end it: until the user or
/// the model speaks, the newest message may continue after its thinking.
fn unfinished(messages: &[RequestMessage], out: &mut [RequestRefusal]) {
    let messages = merged(messages);
    let newest = messages.iter().rposition(|message| message.assistant);
    let Some(newest) = newest.filter(|&newest| running(&messages, newest)) else { return };
    let own = format!("messages.{newest}:");
    for refusal in out.iter_mut().filter(|refusal| refusal.class == "M3" && refusal.text.starts_with(&own)) {
        refusal.class = UNFINISHED;
    }
}

/// If messages are sent as they are, each needs a known role.
fn roles(rows: &[FileObject], out: &mut Vec<RequestRefusal>) {
    const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];
    let unknown =
        rows.iter().map(|row| &row.value["role"]).filter(|own| !ROLES.iter().any(|role| *own == role));
    let text = |role: &Value| format!("Invalid value: {role}. Supported values are: {ROLES:?}");
    out.extend(unknown.map(|role| RequestRefusal { class: "B9", text: text(role) }));
}

/// How many messages with a text, a call or a result the model is sent, without interrupted turns; and how many
/// compactions there are.
pub(crate) fn heard(dialect: Dialect, bytes: &[u8]) -> [usize; 2] {
    let rows: Vec<FileObject> = rows_with_lone(bytes).into_iter().filter(|row| row.alone).collect();
    let mut live = live(dialect, &rows);
    let compactions = live.iter().filter(|spoken| spoken.kind == Speaker::Boundary).count();
    live.retain(|spoken| spoken.in_context && !spoken.aborted);
    let messages = messages(dialect, &rows, &live);
    let mut asked: Vec<String> = messages.iter().flat_map(calls).collect();
    let mut says = |part: &ContentPart| match part {
        ContentPart::Text(text) => !text.trim().is_empty(),
        ContentPart::Call { .. } => true,
        ContentPart::Result { id, .. } => {
            let call = asked.iter().position(|own| own == id);
            call.map(|call| asked.swap_remove(call)).is_some()
        }
        ContentPart::Thinking
        | ContentPart::ServerCall(_)
        | ContentPart::ServerResult(_)
        | ContentPart::Other => false,
    };
    [messages.iter().filter(|message| message.parts.iter().any(&mut says)).count(), compactions]
}

/// The messages of the live context.
pub(crate) fn request(dialect: Dialect, rows: &[FileObject]) -> Vec<RequestMessage> {
    let live: Vec<Spoken> = live(dialect, rows).into_iter().filter(|spoken| spoken.in_context).collect();
    messages(dialect, rows, &live)
}

/// The messages on these lines.
fn messages(dialect: Dialect, rows: &[FileObject], live: &[Spoken]) -> Vec<RequestMessage> {
    match dialect {
        Dialect::Pi | Dialect::PiFlat => pi(rows, live),
        Dialect::ClaudeCode => claude(rows, live),
        Dialect::OpenAiChat | Dialect::Anthropic => {
            let spoken = live.iter().map(|spoken| &rows[spoken.row].value);
            let spoken = spoken.filter(|value| !["system", "developer"].contains(&role(value)));
            spoken.map(|value| said(dialect, value)).collect()
        }
    }
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

/// Names that results use for their call's id.
const CALL_IDS: [&str; 6] = ["toolCallId", "toolUseId", "tool_call_id", "tool_use_id", "callId", "call_id"];

/// A message as its program wrote it.
pub(crate) fn said(dialect: Dialect, row: &Value) -> RequestMessage {
    let message = message(dialect, row);
    let role = role(message);
    if let Some(together) = message.get("tool_responses").and_then(Value::as_array) {
        // AG2 sends each by itself, and their order is the file's.
        let own = |row: &Value| ContentPart::Result {
            id: text(&row["tool_call_id"]),
            text: texts(&row["content"]),
        };
        return RequestMessage { assistant: false, parts: together.iter().map(own).collect() };
    }
    if ["toolResult", "tool"].contains(&role) {
        let id = CALL_IDS.iter().find_map(|key| message.get(key)).map(text).unwrap_or_default();
        let part = ContentPart::Result { id, text: texts(&message["content"]) };
        return RequestMessage { assistant: false, parts: vec![part] };
    }
    let mut parts: Vec<ContentPart> =
        message["content"].as_str().into_iter().map(|t| ContentPart::Text(t.into())).collect();
    parts.extend(blocks(&message["content"]).iter().map(part));
    for call in blocks(&message["tool_calls"]) {
        let function = call.get("function").unwrap_or(call);
        let (id, name) = (text(&call["id"]), text(&function["name"]));
        let arguments =
            if function["arguments"].is_null() { Value::Null } else { Value::Object(Default::default()) };
        parts.push(ContentPart::Call { id, name, arguments });
    }
    // Beside calls, Chat Completions ignores empty content.
    if dialect == Dialect::OpenAiChat {
        parts.retain(|part| !matches!(part, ContentPart::Text(text) if text.is_empty()));
    }
    // Claude Code sends the role of the line.
    let speaker =
        if dialect == Dialect::ClaudeCode { row["type"].as_str().unwrap_or_default() } else { role };
    RequestMessage { assistant: speaker == "assistant", parts }
}

fn texts(content: &Value) -> String {
    let alone = content.as_str().into_iter();
    alone.chain(blocks(content).iter().filter_map(|block| block["text"].as_str())).collect()
}

fn part(block: &Value) -> ContentPart {
    match block["type"].as_str() {
        Some("text") => ContentPart::Text(text(&block["text"])),
        Some("thinking" | "redacted_thinking") => ContentPart::Thinking,
        Some("tool_use") => ContentPart::Call {
            id: text(&block["id"]),
            name: text(&block["name"]),
            arguments: block["input"].clone(),
        },
        Some("toolCall" | "toolUse" | "functionCall" | "tool_call" | "function_call") => {
            let arguments = block.get("arguments").or(block.get("input")).cloned().unwrap_or_default();
            ContentPart::Call { id: text(&block["id"]), name: text(&block["name"]), arguments }
        }
        Some("tool_result") => {
            ContentPart::Result { id: text(&block["tool_use_id"]), text: texts(&block["content"]) }
        }
        Some("server_tool_use" | "mcp_tool_use") => ContentPart::ServerCall(text(&block["id"])),
        Some(kind) if kind.ends_with("_tool_result") => {
            ContentPart::ServerResult(text(&block["tool_use_id"]))
        }
        _ => ContentPart::Other,
    }
}

fn user(text: &Value) -> RequestMessage {
    RequestMessage { assistant: false, parts: vec![ContentPart::Text(texts(text))] }
}

/// pi: the newest compaction's summary comes first; older ones and interrupted turns are not sent.
fn pi(rows: &[FileObject], live: &[Spoken]) -> Vec<RequestMessage> {
    let mut messages = Vec::new();
    let newest = live.iter().rev().find(|spoken| spoken.kind == Speaker::Boundary);
    messages.extend(newest.map(|spoken| user(&rows[spoken.row].value["summary"])));
    for spoken in live {
        let value = &rows[spoken.row].value;
        let (kind, role) = (value["type"].as_str().unwrap_or_default(), role(&value["message"]));
        match (kind, role) {
            ("message", "assistant") if spoken.aborted => {
                messages.extend(interrupted(said(Dialect::Pi, value), live))
            }
            ("message", "assistant" | "user" | "toolResult") => messages.push(said(Dialect::Pi, value)),
            ("custom_message", _) => messages.push(user(&value["content"])),
            ("branch_summary", _) => messages.push(user(&value["summary"])),
            _ => {}
        }
    }
    messages
}

/// What agents send of an interrupted turn: nothing, unless tools have answered.
fn interrupted(message: RequestMessage, live: &[Spoken]) -> Option<RequestMessage> {
    let answered = |id: &String| live.iter().any(|spoken| spoken.results.contains(id));
    let any = calls(&message).iter().any(answered);
    let stays = |part: &ContentPart| {
        !matches!(part, ContentPart::Call { id, .. } if !answered(id))
            && !matches!(part, ContentPart::Thinking)
    };
    let parts: Vec<ContentPart> = message.parts.into_iter().filter(stays).collect();
    any.then_some(RequestMessage { assistant: true, parts })
}

/// Claude Code: the blocks of one message are joined. Results come after the message with their call, wherever their
/// line is, and before the user's text in the same message.
fn claude(rows: &[FileObject], live: &[Spoken]) -> Vec<RequestMessage> {
    let mut messages: Vec<(String, RequestMessage)> = Vec::new();
    let mut results = Vec::new();
    for spoken in live {
        let value = &rows[spoken.row].value;
        let kept = match value["type"].as_str() {
            Some("assistant") if spoken.aborted => interrupted(said(Dialect::ClaudeCode, value), live),
            Some("assistant" | "user") => Some(said(Dialect::ClaudeCode, value)),
            _ => None,
        };
        let Some(mut message) = kept else { continue };
        let known = messages.iter().position(|(group, of)| *group == spoken.group && of.assistant);
        // A user text between the halves of a server tool's pair ends the message.
        let ended = |known: usize| messages[known + 1..].iter().any(|(_, between)| !between.assistant);
        let known = known.filter(|&known| !(message.parts.iter().any(is_of_server) && ended(known)));
        if let Some(known) = known.filter(|_| message.assistant) {
            messages[known].1.parts.append(&mut message.parts);
            continue;
        }
        let (own, rest) =
            message.parts.into_iter().partition(|part| matches!(part, ContentPart::Result { .. }));
        let own: Vec<ContentPart> = own;
        results.extend(own.into_iter().map(|part| (messages.len(), part)));
        let parts: Vec<ContentPart> = rest;
        if !parts.is_empty() || message.assistant {
            messages.push((spoken.group.clone(), RequestMessage { assistant: message.assistant, parts }));
        }
    }
    let mut messages: Vec<RequestMessage> = messages.into_iter().map(|(_, message)| message).collect();
    // A call that the API never finished is left out.
    let of_all: Vec<ContentPart> = messages.iter().flat_map(|message| message.parts.clone()).collect();
    let finished =
        |id: &String| of_all.iter().any(|part| matches!(part, ContentPart::ServerResult(own) if own == id));
    for message in &mut messages {
        message.parts.retain(|part| !matches!(part, ContentPart::ServerCall(id) if !finished(id)));
    }
    messages.retain(|message| !message.parts.is_empty() || !message.assistant);
    let mut answers: Vec<Vec<ContentPart>> = vec![Vec::new(); messages.len() + 1];
    for (place, part) in results {
        let ContentPart::Result { id, .. } = &part else { continue };
        let open = |at: usize| {
            let taken = answers[at + 1]
                .iter()
                .filter(|part| matches!(part, ContentPart::Result { id: own, .. } if own == id));
            let calls = calls(&messages[at]).into_iter().filter(|own| own == id);
            calls.count() > taken.count()
        };
        let has = |at: &usize| calls(&messages[*at]).contains(id);
        let before =
            (0..place).rev().find(|&at| open(at)).or_else(|| (place..messages.len()).find(|&at| open(at)));
        let home = before.or_else(|| (0..messages.len()).rev().find(has));
        answers[home.map_or(place, |at| at + 1)].push(part);
    }
    let mut out = Vec::new();
    for (at, parts) in answers.into_iter().enumerate() {
        if !parts.is_empty() {
            out.push(RequestMessage { assistant: false, parts });
        }
        if at < messages.len() {
            out.push(std::mem::replace(
                &mut messages[at],
                RequestMessage { assistant: false, parts: Vec::new() },
            ));
        }
    }
    out
}

fn calls(message: &RequestMessage) -> Vec<String> {
    let ids = message
        .parts
        .iter()
        .filter_map(|part| if let ContentPart::Call { id, .. } = part { Some(id) } else { None });
    ids.cloned().collect()
}

fn results(message: &RequestMessage) -> Vec<String> {
    let id =
        |part: &ContentPart| if let ContentPart::Result { id, .. } = part { Some(id.clone()) } else { None };
    message.parts.iter().filter_map(id).collect()
}

fn merged(messages: &[RequestMessage]) -> Vec<RequestMessage> {
    let mut out: Vec<RequestMessage> = Vec::new();
    for message in messages {
        match out.last_mut().filter(|last| last.assistant == message.assistant) {
            Some(last) => last.parts.extend(message.parts.iter().cloned()),
            None => out.push(message.clone()),
        }
    }
    out
}

/// Whether the calls of the message at this place may still be running: only results follow.
fn running(messages: &[RequestMessage], at: usize) -> bool {
    let results = |message: &RequestMessage| {
        message.parts.iter().all(|part| matches!(part, ContentPart::Result { .. }))
    };
    messages[at + 1..].iter().all(|message| !message.assistant && results(message))
}

/// Anthropic's Messages API. `strict`: messages are sent as they are, including ids.
pub(crate) fn anthropic(messages: &[RequestMessage], strict: bool, out: &mut Vec<RequestRefusal>) {
    let messages = merged(messages);
    let mut seen = BTreeSet::new();
    let mut say = |class, text: String| out.push(RequestRefusal { class, text });
    for (n, message) in messages.iter().enumerate() {
        let (own, next) = (calls(message), messages.get(n + 1).map(results).unwrap_or_default());
        let missing: Vec<&String> = own.iter().filter(|id| !next.contains(id)).collect();
        if !missing.is_empty() && !running(&messages, n) {
            say(
                "P1",
                format!(
                    "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing:?}"
                ),
            );
        }
        let before = n.checked_sub(1).map(|before| calls(&messages[before])).unwrap_or_default();
        let mut answered = BTreeSet::new();
        for id in results(message) {
            if !before.contains(&id) {
                say(
                    "P2",
                    format!("messages.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"),
                );
            } else if !answered.insert(id.clone()) {
                say(
                    "P5",
                    format!(
                        "messages.{n}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                    ),
                );
            }
        }
        let is_result = |part: &ContentPart| matches!(part, ContentPart::Result { .. });
        let last = message.parts.iter().rposition(is_result);
        if message.parts.iter().position(|part| !is_result(part)).is_some_and(|other| Some(other) < last) {
            say(
                "P7",
                format!("messages.{n}: Did not find tool_result block(s) at the beginning of this message"),
            );
        }
        for id in own.iter().filter(|_| strict) {
            if !seen.insert(id.clone()) {
                say("P6", format!("messages: `tool_use` ids must be unique ({id})"));
            }
            if !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') || id.is_empty() {
                say(
                    "P11",
                    format!(
                        "messages.{n}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$' ({id})"
                    ),
                );
            }
        }
        contents(n, message, n + 1 == messages.len(), strict, &mut say);
    }
    of_server(&messages, out);
}

fn is_of_server(part: &ContentPart) -> bool {
    matches!(part, ContentPart::ServerCall(_) | ContentPart::ServerResult(_))
}

/// Anthropic: a tool that the API ran itself has its result in the same turn. Only results of other tools may come
/// between, because code that the API runs may call them.
fn of_server(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    let mut open: Vec<&String> = Vec::new();
    let mut say = |text: String| out.push(RequestRefusal { class: "P13", text });
    for (n, message) in messages.iter().enumerate() {
        for part in &message.parts {
            match part {
                ContentPart::ServerCall(id) => open.push(id),
                ContentPart::ServerResult(id) => match open.iter().position(|own| *own == id) {
                    Some(at) => _ = open.remove(at),
                    None => say(format!(
                        "messages.{n}: unexpected `tool_use_id` found in `advisor_tool_result` blocks: {id}. Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it."
                    )),
                },
                ContentPart::Result { .. } => {}
                _ if !message.assistant => {
                    open.drain(..).for_each(|id| {
                        say(format!("messages.{n}: tool use with id `{id}` was found without a corresponding `web_search_tool_result` block"));
                    });
                }
                _ => {}
            }
        }
    }
}

/// What Anthropic requires of the content of one message.
fn contents(
    n: usize,
    message: &RequestMessage,
    last: bool,
    strict: bool,
    say: &mut dyn FnMut(&'static str, String),
) {
    if message.parts.is_empty() {
        say("M1", format!("messages.{n}: all messages must have non-empty content"));
    }
    // The last message may still be incomplete.
    if message.assistant && !last && matches!(message.parts.last(), Some(ContentPart::Thinking)) {
        say("M3", format!("messages.{n}: The final block in an assistant message cannot be `thinking`"));
    }
    for part in &message.parts {
        match part {
            ContentPart::Text(text) if text.trim().is_empty() => {
                say("M2", format!("messages.{n}: text content blocks must contain non-whitespace text"));
            }
            ContentPart::Call { arguments, id, .. } if !arguments.is_object() => {
                say("P9", format!("messages.{n}: tool_use.input: Input should be a valid dictionary ({id})"));
            }
            ContentPart::Call { name, .. } => {
                // Agents whose tools have names that the API refuses change these when they send.
                let own = |b: u8| !strict && [b'.', b':', b'/'].contains(&b);
                let fits =
                    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || own(b));
                if !fits || name.is_empty() || name.len() > 128 {
                    say("P10", format!("messages.{n}: tool_use.name: String should match pattern ({name})"));
                }
            }
            _ => {}
        }
    }
}

/// OpenAI's Chat Completions API.
pub(crate) fn openai_chat(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    let mut say = |class, text: String| out.push(RequestRefusal { class, text });
    // Each result is a message of its own; user text comes after them.
    let mut open: Vec<String> = Vec::new();
    let mut asked: Vec<String> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        for id in results(message) {
            if !asked.contains(&id) {
                say(
                    "P2",
                    format!(
                        "messages with role 'tool' must be a response to a preceding message with 'tool_calls' ({id})"
                    ),
                );
            } else if let Some(at) = open.iter().position(|own| *own == id) {
                open.remove(at);
            } else {
                say("P5", format!("messages.[{n}]: duplicate tool message for tool_call_id {id}"));
            }
        }
        let only_results =
            !message.assistant && message.parts.iter().all(|p| matches!(p, ContentPart::Result { .. }));
        if !only_results || message.parts.is_empty() {
            if !open.is_empty() {
                say(
                    "P1",
                    format!(
                        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': {open:?}"
                    ),
                );
            }
            open = calls(message);
            asked.clone_from(&open);
        }
        for part in &message.parts {
            if let ContentPart::Call { id, arguments: Value::Null, .. } = part {
                let what = "Missing required parameter: 'function.arguments'";
                say("P9", format!("messages.[{n}]: {what} ({id})"));
            }
        }
    }
}

/// OpenAI's Responses API: pairs, wherever they are.
fn openai_responses(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    let mut open: Vec<(usize, String)> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        for id in results(message) {
            match open.iter().position(|(_, own)| *own == id) {
                Some(at) => _ = open.remove(at),
                None => {
                    let text = format!("No tool call found for function call output with call_id {id}.");
                    out.push(RequestRefusal { class: "P2", text });
                }
            }
        }
        open.extend(calls(message).into_iter().map(|id| (n, id)));
    }
    open.retain(|(n, _)| !running(messages, *n));
    let text = |(_, id): (usize, String)| format!("No tool output found for function call {id}.");
    out.extend(open.into_iter().map(|call| RequestRefusal { class: "P1", text: text(call) }));
}

/// Gemini's API: as many responses as calls, in the turn directly after.
pub(crate) fn gemini(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    let messages = merged(messages);
    for (n, message) in messages.iter().enumerate() {
        let (asked, next) = (calls(message).len(), messages.get(n + 1).map_or(0, |next| results(next).len()));
        if asked != next && asked > 0 && !running(&messages, n) {
            let text = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
            let class = if next < asked { "P1" } else { "P5" };
            out.push(RequestRefusal { class, text: text.into() });
        }
        let before = n.checked_sub(1).map_or(0, |before| calls(&messages[before]).len());
        if !results(message).is_empty() && before == 0 {
            let text =
                "Please ensure that function response turn comes immediately after a function call turn.";
            out.push(RequestRefusal { class: "P2", text: text.into() });
        }
    }
}

/// What no provider can read.
pub(crate) fn body(messages: &[RequestMessage], out: &mut Vec<RequestRefusal>) {
    let lone = |text: &str| text.contains(LONE);
    let bad = messages.iter().flat_map(|message| &message.parts).any(|part| match part {
        ContentPart::Text(text) | ContentPart::Result { text, .. } => lone(text),
        ContentPart::Call { arguments, .. } => lone(&arguments.to_string()),
        ContentPart::Thinking
        | ContentPart::ServerCall(_)
        | ContentPart::ServerResult(_)
        | ContentPart::Other => false,
    });
    if bad {
        let text = "The request body is not valid JSON: no low surrogate in string".to_string();
        out.push(RequestRefusal { class: "B5", text });
    }
}
