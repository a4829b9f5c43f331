//! OpenCode's database, row by row: the session, each message, and after it the parts that it consists of. What a row holds is
//! in `data`; what is beside it names the row. Kilo is built on OpenCode and has the same tables.
//!
//! Call and result are one part, which is written again when the tool ends. OpenCode answers a call that never ended when it
//! sends it. A part that is no JSON, or says `completed` without an output, keeps the session from being loaded or sent.

use super::agent::Agent;
use super::base::{
    BASE, Broken, Content, EntryPart, Format, OutsideCount, ReadEnd, ReadTool, Results, Shape, Vote,
};
use super::common::{is_string, says};
use super::kinds::Kinds;
use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role, Service};
use crate::model::finding::Severity;
use spans::json::{Doc, Value, ValueKind as Json};

/// The parts of 1.18.33.
const KINDS: &[Kinds] = &[
    Kinds::at(&["data", "type"])
        .sent("text reasoning tool file")
        .steers("compaction")
        .silent("step-start step-finish snapshot patch agent retry subtask"),
    Kinds::at(&["data", "role"]).sent("assistant user"),
];

pub(super) const FORMAT: Format = Format {
    name: "opencode",
    written_by: "OpenCode and Kilo: rows of the database",
    remark: "read from the database; no result is put in",
    agents: &[Agent::named("OpenCode"), Agent::at("Kilo", "kilo")],
    // OpenCode 1.18.33 (measured).
    agent_cuts_results: Some(51_000),
    shape: Shape::Log,
    counted: Some(OutsideCount::Records("its database")),
    // The schema of `read` in 1.18.33.
    reads: &[ReadTool {
        name: "read",
        path: &["filePath"],
        from: "offset",
        first_line: 1,
        to: ReadEnd::Count("limit"),
        lines_max: 2_000,
    }],
    results: Results::WithCall,
    copies_results: true,
    // It leaves empty texts out when it sends.
    content: Content { empty: None, blank: None, images: Some(Severity::Warning), ..Content::NONE },
    kinds: KINDS,
    vote: |doc| if says(doc, "store", "opencode") { Vote::Own } else { Vote::Silent },
    read,
    parts,
    broken,
    ..BASE
};

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(row) = doc.root() else { return };
    let [table, id, role, model, message, data] =
        row.pick(["table", "id", "role", "model", "message_id", "data"]);
    draft.entry.id = draft.intern(id);
    let is = |name: &str| table.is_some_and(|table| table.is(name));
    let Some(data) = data.filter(|data| data.kind() == Json::Object) else {
        if is("session") {
            draft.in_database();
            draft.entry.kind = Kind::Header;
        } else {
            draft.issue(ContentIssueKind::Corrupted(None), draft.entry.span);
        }
        return;
    };
    if is("message") {
        if failed(data).is_some() {
            draft.entry.service = Service::Failure;
            draft.entry.group = draft.entry.id;
        }
        // The summary is in the parts of this message.
        let summarises = data.get("summary").is_some_and(Value::is_true);
        draft.entry.kind = if summarises { Kind::Boundary } else { Kind::Opaque };
        return;
    }
    draft.entry.model = draft.intern(model);
    // Each answer of the model is a message of its own, a turn has many.
    draft.entry.group = draft.intern(message);
    let role = if role.is_some_and(|role| role.is("user")) { Role::User } else { Role::Assistant };
    part(data, role, draft);
}

fn part(data: Value<'_>, role: Role, draft: &mut Draft<'_>) {
    let [kind, text, ignored, made] = data.pick(["type", "text", "ignored", "synthetic"]);
    let made = made.is_some_and(Value::is_true);
    // Parts of a user's message are not messages of their own.
    let beside = if role == Role::User { Kind::Note } else { Kind::Message(role) };
    draft.entry.kind = match (kind.and_then(Value::text).as_deref(), text) {
        (Some(b"text"), Some(_)) if ignored.is_some_and(Value::is_true) => return,
        (Some(b"text"), Some(text)) if role == Role::User && !made => {
            draft.user_text(text);
            Kind::Message(role)
        }
        (Some(b"text" | b"reasoning"), Some(text)) => {
            draft.text(text);
            beside
        }
        (Some(b"file"), _) => {
            draft.image(data);
            beside
        }
        (Some(b"tool"), _) => {
            tool(data, draft);
            Kind::Message(Role::Assistant)
        }
        _ => return,
    };
}

fn tool(data: Value<'_>, draft: &mut Draft<'_>) {
    let [id, name, state] = data.pick(["callID", "tool", "state"]);
    draft.call(data, id, name, false);
    let Some(state) = state else {
        return draft.issue(ContentIssueKind::Corrupted(None), data.span());
    };
    let [status, input, output, error, metadata, time] =
        state.pick(["status", "input", "output", "error", "metadata", "time"]);
    draft.call_is_only(input);
    let is = |name: &str| status.is_some_and(|status| status.is(name));
    match (output, error) {
        (Some(output), _) if is("completed") && is_string(Some(output)) => {
            draft.result(state, id, name, false);
            if time.is_some_and(|time| time.get("compacted").is_some()) {
                // It stays stored, and a few words are sent in its place.
                draft.sides(Some(output));
            } else {
                draft.body(output);
            }
        }
        (_, Some(error)) if is("error") => {
            draft.result(state, id, name, true);
            draft.body(error);
        }
        _ if is("completed") => draft.issue(ContentIssueKind::Corrupted(None), state.span()),
        _ => {}
    }
    draft.sides(metadata);
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let Some(data) = doc.get("data") else { return };
    let [kind, text, name, state] = data.pick(["type", "text", "tool", "state"]);
    match kind.and_then(Value::text).as_deref() {
        Some(b"text" | b"reasoning") => text.into_iter().for_each(|text| each(EntryPart::Text(text))),
        Some(b"file") => each(EntryPart::Image),
        Some(b"tool") => {
            let [arguments, output, error] =
                state.map(|state| state.pick(["input", "output", "error"])).unwrap_or_default();
            each(EntryPart::Call { name, arguments });
            for text in [output, error].into_iter().flatten().filter(|text| is_string(Some(*text))) {
                each(EntryPart::Result);
                each(EntryPart::Text(text));
            }
        }
        _ => {}
    }
}

fn broken(doc: &Doc) -> Option<Broken<'_>> {
    let error = failed(doc.get("data").filter(|_| says(doc, "table", "message"))?)?;
    let said = error.get("data").and_then(|data| data.get("message"));
    // 1.18.33 (`message-v2.ts`): what it makes of any provider's refusal of a context that is too long.
    let is_long = error.get("name").is_some_and(|name| name.is("ContextOverflowError"));
    Some(if is_long { Broken::TooLong(said) } else { Broken::Error(said) })
}

/// The error in a message.
fn failed(message: Value<'_>) -> Option<Value<'_>> {
    message.get("error").filter(|error| error.kind() == Json::Object)
}
