//! Qwen Code: lines linked by `uuid` and `parentUuid`, with messages of Gemini's API inside.
//!
//! When Qwen Code starts, it expects the very file that it left, by inode, so a file is never changed while it runs.
//! Logs of managed sessions store a hash of their content, so those are never changed at all. Lines that share a `uuid`
//! are parts of one record. Facts: docs/format-facts.md.

use super::agent::{Agent, Resume};
use super::base::{
    BASE, Broken, Content, EntryPart, Format, Gate, Lost, ReadEnd, ReadTool, ResultPlace, Results, Root,
    Shape, Vote,
};
use super::common::{content_parts, is_string, items, says, says_any, time_after, written_over};
use super::gemini_cli::{response, response_parts};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::writing::Writing;
use crate::model::draft::{Draft, is_altered};
use crate::model::entry::{ContentIssueKind, Kind, Link, Role, Service};
use crate::model::finding::Severity;
use alloc::vec::Vec;
use spans::json::{Doc, Value};
use spans::marker::MISSING_RESULT;

const TYPES: &[&str] = &["user", "assistant", "tool_result", "system"];
const MANAGED: &str = "Qwen Code pins a hash of it (managed session)";
/// Fields that a new line copies from the call's line.
const ENVELOPE: &[&str] = &["cwd", "version", "gitBranch"];

/// The types and subtypes that 0.24.4 accepts in its own files.
const KINDS: &[Kinds] = &[
    Kinds::at(&["type"]).sent("assistant tool_result user").steers("system"),
    Kinds::at(&["subtype"])
        .silent(
            "ui_telemetry slash_command at_command attribution_snapshot notification \
         background_task_completed cron mid_turn_user_message realtime_message custom_title \
         parent_session agent_bootstrap agent_launch_prompt agent_retry agent_session_ready \
         file_history_snapshot session_source session_model omni_recall session_sources_snapshot \
         branch_checkpoint goal_state goal_runtime goal_turn_end turn_result user_text_elements \
         session_artifact_event session_artifact_snapshot session_recording_degraded \
         managed_session_*",
        )
        .steers("chat_compression rewind"),
    parts_of_gemini(&["message", "parts", "*", "?"]),
];

/// The fields that a part of Gemini's API may have (`@google/genai`), and their names in Python (google-genai 3.6.1).
pub(super) const fn parts_of_gemini(at: &'static [&'static str]) -> Kinds {
    Kinds::at(at).sent(PARTS)
}

const PARTS: &str = "text functionCall functionResponse thoughtSignature thought inlineData fileData executableCode \
     codeExecutionResult videoMetadata toolCall toolResponse partMetadata mediaResolution function_call function_response \
     thought_signature inline_data file_data executable_code code_execution_result video_metadata tool_call tool_response \
     part_metadata media_resolution";

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[
        text("uuid"),
        needs("parentUuid", Form::TextOrNull),
        text("sessionId"),
        text("timestamp"),
        text("type"),
        has("cwd"),
        has("version"),
        has("gitBranch"),
        has("model"),
        has("subtype"),
        has("systemPayload"),
        has("usageMetadata"),
    ]),
    FieldNames::typed(
        &["user", "assistant", "tool_result"],
        &[needs("message", Form::Object)
            .with(&[FieldNames::all(&[text("role"), needs("parts", Form::List).with(PART)])])],
    ),
    FieldNames::typed(
        &["tool_result"],
        &[has("toolCallResult").with(&[FieldNames::all(&[
            has("callId"),
            has("status"),
            has("resultDisplay"),
        ])])],
    ),
];

/// Names in the parts of Gemini's turns. Only its name tells what a part holds.
pub(super) const PART: &[FieldNames] = &[
    FieldNames::all(&[has("thought"), has("thoughtSignature")]),
    FieldNames::one(&[
        text("text"),
        needs("inlineData", Form::Object),
        needs("functionCall", Form::Object).with(&[FieldNames::all(&[
            text("name"),
            needs("args", Form::Object),
            text("id"),
        ])]),
        needs("functionResponse", Form::Object).with(&[FieldNames::all(&[
            text("name"),
            text("id"),
            needs("response", Form::Object).with(&[FieldNames::all(&[has("output"), has("error")])]),
        ])]),
    ]),
];

pub(super) const FORMAT: Format = Format {
    name: "qwen-code",
    written_by: "Qwen Code",
    remark: "its lease is obeyed; managed sessions are only read",
    agents: &[Agent::resumed(
        "Qwen Code",
        Resume { command: &["qwen", "--resume"], below: "projects", ..Resume::BY_FILE },
    )],
    // Qwen Code 0.24.4 (measured).
    agent_cuts_results: Some(4_500),
    shape: Shape::Tree,
    gates: &[Gate::QwenLease],
    roots: &[Root { env: None, home: ".qwen", below: "projects/*/chats" }],
    // The declaration of `read_file` in 0.24.4.
    reads: &[ReadTool {
        name: "read_file",
        path: &["file_path"],
        from: "offset",
        first_line: 0,
        to: ReadEnd::Count("limit"),
        lines_max: 1_000,
    }],
    results: Results::Blocks,
    answer: ResultPlace::Line,
    names_call_again: &["toolCallResult", "callId"],
    copies_results: true,
    states_window: true,
    // The agent leaves empty turns out, and works with other APIs than Gemini's as well.
    content: Content {
        empty: Some(Severity::Note),
        blank: Some(Severity::Warning),
        begins_with_user: Some(Severity::Warning),
        names_session: true,
        in_one_string: true,
        ..Content::GEMINI
    },
    names: NAMES,
    kinds: KINDS,
    version_at: &[&["version"]],
    vote,
    read,
    parts,
    broken: failed,
    missing_result,
    single_files_read_only: Some(MANAGED),
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let linked =
        is_string(doc.get("uuid")) && doc.get("parentUuid").is_some() && is_string(doc.get("sessionId"));
    let known = says_any(doc, "type", TYPES);
    let parts = doc.get("message").is_some_and(|message| message.get("parts").is_some());
    let payload = says(doc, "type", "system") && doc.get("systemPayload").is_some();
    match linked && known {
        true if parts || payload || says(doc, "type", "tool_result") => Vote::Own,
        true if doc.get("message").is_none() => Vote::Fits,
        _ => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(line) = doc.root() else { return };
    let [id, parent, kind, subtype, message, session] =
        line.pick(["uuid", "parentUuid", "type", "subtype", "message", "sessionId"]);
    let subtype = subtype.and_then(Value::text).unwrap_or_default();
    if subtype.starts_with(b"managed_session_") {
        draft.read_only(MANAGED);
    }
    draft.entry.id = draft.intern(id);
    let parent = parent.or_else(|| written_over(line, "parentUuid", draft));
    draft.parent(parent);
    if parent.is_none() && draft.entry.id.is_some() {
        // Each record names a parent, even if it is `null`. Where the name is missing, Qwen Code stops following
        // parents.
        draft.entry.parent = Link::Root;
        draft.issue(ContentIssueKind::Corrupted(None), draft.entry.span);
    }
    draft.session(session);
    let parts = || items(message.and_then(|message| message.get("parts")));
    match kind.and_then(Value::text).as_deref() {
        Some(b"user") if subtype.is_empty() => {
            parts().for_each(|part| _ = asked(part, false, draft));
            draft.entry.kind = Kind::Message(Role::User);
        }
        Some(b"user") => draft.entry.kind = Kind::Note,
        Some(b"assistant") => {
            draft.entry.kind = Kind::Message(Role::Assistant);
            draft.entry.model = draft.intern(doc.get("model"));
            parts().for_each(|part| said(part, draft));
        }
        Some(b"tool_result") => {
            draft.entry.kind = Kind::Message(Role::Tool);
            parts().for_each(|part| _ = asked(part, false, draft));
            draft.sides(doc.get("toolCallResult").and_then(|result| result.get("resultDisplay")));
        }
        Some(b"system") if subtype == &b"chat_compression"[..] => {
            draft.entry.kind = Kind::Boundary;
        }
        Some(b"system") if failed(doc).is_some() => draft.entry.service = Service::Failure,
        _ => {}
    }
}

/// How a request of the conversation failed (0.24.4): in what is recorded for the screen, and over ACP where a turn ends.
fn failed(doc: &Doc) -> Option<Broken<'_>> {
    let payload = doc.get("systemPayload")?;
    if let Some(event) = payload.get("uiEvent") {
        let [name, said, subagent] = event.pick(["event.name", "error_message", "subagent_name"]);
        let failed = name?.is("qwen-code.api_error") && !is_string(subagent);
        return failed.then_some(Broken::Error(said));
    }
    let error = payload.get("error").filter(|_| says(doc, "subtype", "turn_result"))?;
    Some(Broken::Error(error.get("message")))
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    let error = Writing::new().text("error", MISSING_RESULT.as_bytes()).end();
    let answer = Writing::new().raw("id", lost.call).text("name", lost.tool).raw("response", &error).end();
    let part = Writing::new().raw("functionResponse", &answer).end();
    let message = Writing::new().text("role", b"user").list("parts", &part).end();
    let time = time_after(lost.doc);
    let mut line = Writing::new().text("uuid", lost.id.as_bytes()).text("parentUuid", lost.parent);
    if let Some(session) = lost.doc.get("sessionId") {
        line = line.raw("sessionId", &(lost.raw)(session));
    }
    line = line.text("timestamp", time.as_bytes()).text("type", b"tool_result");
    for key in ENVELOPE {
        if let Some(value) = lost.doc.get(key) {
            line = line.raw(key, &(lost.raw)(value));
        }
    }
    let result = Writing::new().raw("callId", lost.call).text("status", b"error").end();
    line.raw("message", &message).raw("toolCallResult", &result).end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    content_parts_of_gemini(doc.get("message"), each);
}

/// The parts of a message of Gemini's API, without thinking.
pub(super) fn content_parts_of_gemini<'d>(message: Option<Value<'d>>, each: &mut dyn FnMut(EntryPart<'d>)) {
    items(message.and_then(|message| message.get("parts"))).for_each(|part| content_part(part, each));
}

/// The fields of these names, or of the same ones in Python, which also writes `null` for what is not there.
fn given<'d, const N: usize>(part: Value<'d>, names: [&str; N]) -> [Option<Value<'d>>; N] {
    let mut found = part.pick(names);
    for (found, other) in found.iter_mut().zip(part.pick(names.map(in_python))) {
        *found = found.filter(|value| !value.is_null()).or(other).filter(|value| !value.is_null());
    }
    found
}

/// What google-genai calls a field.
fn in_python(name: &str) -> &str {
    match name {
        "functionCall" => "function_call",
        "functionResponse" => "function_response",
        "thoughtSignature" => "thought_signature",
        "inlineData" => "inline_data",
        "fileData" => "file_data",
        other => other,
    }
}

/// Whether a part is a call.
pub(super) fn is_call(part: Value<'_>) -> bool {
    given(part, ["functionCall"])[0].is_some()
}

/// One such part.
pub(super) fn content_part<'d>(part: Value<'d>, each: &mut dyn FnMut(EntryPart<'d>)) {
    let [text, thought, call, answer] = given(part, ["text", "thought", "functionCall", "functionResponse"]);
    if let Some(call) = call {
        each(EntryPart::Call { name: call.get("name"), arguments: call.get("args") });
    }
    if !thought.is_some_and(Value::is_true) {
        content_parts(text, each);
    }
    response_parts(answer, each);
    if given(part, ["inlineData", "fileData"]).iter().any(Option::is_some) {
        each(EntryPart::Image);
    }
}

/// Reads a part of an assistant message.
pub(super) fn said(part: Value<'_>, draft: &mut Draft<'_>) {
    let [text, thought, call, signature] =
        given(part, ["text", "thought", "functionCall", "thoughtSignature"]);
    if let Some(call) = call {
        let [id, name] = given(call, ["id", "name"]);
        let id = id.or_else(|| written_over(call, "id", draft));
        draft.call(part, id, name, false);
        if signature.is_some_and(is_altered) {
            draft.issue(ContentIssueKind::AlteredThought, part.span());
        }
    }
    match text {
        // An empty text may only carry a signature, and a thought is not sent.
        Some(text) if signature.is_some() || thought.is_some_and(Value::is_true) => {
            draft.text(text);
            draft.shows();
        }
        Some(text) => draft.text_block(part, text),
        None if call.is_none() => draft.image(part),
        None => {}
    }
}

/// Reads a part of a user message, and returns whether it is a result. `by_place` says whether a result without an id
/// finds its call by its place.
pub(super) fn asked(part: Value<'_>, by_place: bool, draft: &mut Draft<'_>) -> bool {
    let [text, answer] = given(part, ["text", "functionResponse"]);
    match (text, answer) {
        (Some(text), _) => {
            draft.user_text(text);
            draft.blank(part, text);
        }
        (None, Some(answer)) => answered(part, answer, by_place, draft),
        (None, None) => draft.image(part),
    }
    text.is_none() && answer.is_some()
}

/// Reads a result.
fn answered(part: Value<'_>, answer: Value<'_>, by_place: bool, draft: &mut Draft<'_>) {
    let [id, name] = given(answer, ["id", "name"]);
    let id = id.or_else(|| written_over(answer, "id", draft));
    let failed = answer.get("response").is_some_and(|response| response.get("error").is_some());
    draft.result(part, id.or(name.filter(|_| by_place)), name, failed);
    if id.is_none() {
        draft.unpaired();
    }
    response(answer, draft);
}
