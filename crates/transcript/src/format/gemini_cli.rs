//! Gemini CLI: a log of records with ids. The last record with an id counts, at the place of the first.
//!
//! Each step of a tool call writes the whole message again. `$set` changes the header, or replaces all messages with a
//! list; `$rewindTo` removes a message and all after it.
//!
//! Older versions keep a result in the record of its call and nowhere else. Since 0.60 it is also in a user message, as
//! it was sent, and a resumed session sends both copies: P5 empties that message. The message's place tells nothing:
//! over ACP the calls of all turns gather in one record. Once an assistant message names calls in `content`, those are
//! sent, and `toolCalls` only holds results. A missing result is never added.

use super::agent::Agent;
use super::base::{
    BASE, Broken, Content, EntryPart, Format, Header, ReadEnd, ReadTool, Results, Root, Shape, SupportLevel,
    Vote,
};
use super::common::{alone, content_parts, is_string, items, listed_calls, says_any};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, has, needs, text};
use super::qwen_code::{self, content_part};
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role, Service, Target};
use crate::model::finding::Severity;
use spans::json::{Doc, Value, ValueKind as Json};

const MESSAGES: &[&str] = &["user", "gemini", "info", "error", "warning"];

/// Those that 0.61.0 tells apart when it loads a file.
const KINDS: &[Kinds] = &[
    Kinds::at(&["type"]).sent("gemini user").silent("info error warning"),
    Kinds::at(&["$"]).steers("$set $rewindTo"),
    qwen_code::parts_of_gemini(&["content", "*", "?"]),
];

const NAMES: &[FieldNames] = &[
    FieldNames::all(&[
        has("$set"),
        has("$rewindTo"),
        has("sessionId"),
        has("projectHash"),
        has("startTime"),
        has("lastUpdated"),
        has("kind"),
        has("type"),
    ]),
    FieldNames::beside("content", &[text("type")]),
    FieldNames::where_value("kind", &["main", "subagent"], &[text("sessionId"), text("projectHash")]),
    FieldNames::typed(
        &["user", "gemini"],
        &[
            text("id"),
            text("timestamp"),
            needs("content", Form::TextOrList).with(super::qwen_code::PART),
            has("displayContent"),
        ],
    ),
    FieldNames::typed(
        &["gemini"],
        &[
            has("model"),
            has("tokens"),
            has("thoughts"),
            has("toolCalls").with(&[FieldNames::all(&[
                text("id"),
                text("name"),
                needs("args", Form::Object),
                text("status"),
                needs("result", Form::List).with(super::qwen_code::PART),
                has("timestamp"),
                has("resultDisplay"),
            ])]),
        ],
    ),
];

pub(super) const FORMAT: Format = Format {
    name: "gemini-cli",
    written_by: "Gemini CLI",
    remark: "superseded records go, repeated results are emptied; no result is put in",
    agents: &[Agent::named("Gemini CLI")],
    // Gemini CLI 0.61 with `-p` (measured); over ACP it writes results whole.
    agent_cuts_results: Some(40_300),
    shape: Shape::Upserts,
    level: SupportLevel::Insert,
    gates: &[],
    header: Header::First,
    roots: &[Root { env: None, home: ".gemini", below: "tmp/*/chats" }],
    // The declaration of `read_file` in 0.61.0.
    reads: &[ReadTool {
        name: "read_file",
        path: &["file_path"],
        from: "start_line",
        first_line: 1,
        to: ReadEnd::Line("end_line"),
        lines_max: 2_000,
    }],
    results: Results::Blocks,
    calls_have_ids: false,
    copies_results: true,
    // The agent leaves empty turns out and starts with a user message (`historyHardening.ts`); it does send empty
    // texts.
    content: Content {
        empty: Some(Severity::Note),
        blank: Some(Severity::Warning),
        begins_with_user: Some(Severity::Note),
        ..Content::GEMINI
    },
    names: NAMES,
    kinds: KINDS,
    vote,
    read,
    records_in,
    read_record,
    parts,
    broken: |doc| doc.root().and_then(failed),
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let kind = doc.get("type");
    let header = kind.is_none()
        && is_string(doc.get("sessionId"))
        && is_string(doc.get("projectHash"))
        && doc.get("messages").is_none();
    let change = doc.get("$set").is_some() || doc.get("$rewindTo").is_some();
    let message = is_string(doc.get("id"))
        && is_string(doc.get("timestamp"))
        && doc.get("uuid").is_none()
        && doc.get("data").is_none()
        && doc.get("payload").is_none()
        && says_any(doc, "type", MESSAGES);
    let own = message && kind.is_some_and(|kind| kind.is("gemini"));
    match header || change || own {
        true => Vote::Own,
        false if message => Vote::Fits,
        false => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let Some(line) = doc.root() else { return };
    let [set, rewind] = line.pick(["$set", "$rewindTo"]);
    if set.is_some() {
        let messages = set.and_then(|set| set.get("messages"));
        let replaces = messages.is_some_and(|messages| messages.kind() == Json::Array);
        draft.entry.kind = if replaces { Kind::Boundary } else { Kind::Opaque };
    } else if let Some(to) = rewind {
        draft.entry.kind = Kind::Leaf;
        let id = draft.intern(Some(to));
        draft.target(Target { id, at: to.span(), ..Target::default() });
    } else {
        read_record(line, draft);
    }
}

fn records_in(doc: &Doc) -> Option<Value<'_>> {
    let messages = doc.get("$set")?.get("messages")?;
    messages.items().all(|message| message.kind() == Json::Object).then_some(messages)
}

fn read_record(record: Value<'_>, draft: &mut Draft<'_>) {
    let [id, kind, content] = record.pick(["id", "type", "content"]);
    draft.entry.id = draft.intern(id);
    match kind.and_then(Value::text).as_deref() {
        None if record.get("projectHash").is_some() => draft.entry.kind = Kind::Header,
        // A message with an empty list is not sent; it stands where results were removed.
        Some(b"user") if content.is_some_and(is_empty_list) => {}
        Some(b"user") => asked(content, draft),
        Some(b"gemini") => {
            draft.entry.kind = Kind::Message(Role::Assistant);
            draft.entry.model = draft.intern(record.get("model"));
            if let Some(text) = alone(content) {
                draft.text(text);
            }
            items(content).for_each(|part| qwen_code::said(part, draft));
            let called = lists_calls(content);
            items(record.get("toolCalls")).for_each(|call| tool_call(call, !called, draft));
            // Recorded thoughts are only for the screen.
            if items(record.get("thoughts")).next().is_some() {
                draft.shows();
            }
        }
        _ if failed(record).is_some() => draft.entry.service = Service::Failure,
        _ => {}
    }
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    let content = doc.get("content");
    if content.is_some_and(|content| content.kind() == Json::Array) {
        items(content).for_each(|part| content_part(part, each));
    } else {
        content_parts(content, each);
    }
    if !lists_calls(content) {
        listed_calls(doc.get("toolCalls"), each);
    }
    for result in items(doc.get("toolCalls")).filter_map(|call| call.get("result")) {
        answers(result).for_each(|answer| response_parts(Some(answer), each));
    }
}

fn is_empty_list(content: Value<'_>) -> bool {
    content.kind() == Json::Array && content.items().next().is_none()
}

/// Whether the content of an assistant message names its calls. If so, `toolCalls` are not sent as calls.
fn lists_calls(content: Option<Value<'_>>) -> bool {
    items(content)
        .any(|part| part.get("functionCall").is_some() || part.get("thought").is_some_and(Value::is_true))
}

/// How a request failed, in the words that the screen showed (`useGeminiStream.ts`, 0.61). Over ACP and with `-p` it is not
/// recorded.
fn failed(record: Value<'_>) -> Option<Broken<'_>> {
    let [kind, said] = record.pick(["type", "content"]);
    let said = said.filter(|said| is_string(Some(*said)))?;
    let is =
        |name: &str, begin: &[u8]| kind.is_some_and(|kind| kind.is(name)) && said.prefix().starts_with(begin);
    match () {
        () if is("error", b"[API Error") => Some(Broken::Error(Some(said))),
        // It does not ask at all if it expects that.
        () if is("info", b"Sending this message (") => Some(Broken::TooLong(Some(said))),
        () => None,
    }
}

/// The responses in a recorded result: a list of parts, or one part.
fn answers(result: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let single = Some(result).filter(|result| result.kind() == Json::Object);
    single.into_iter().chain(items(Some(result))).filter_map(|part| part.get("functionResponse"))
}

/// The texts of a `functionResponse`, as parts of what an entry says.
pub(super) fn response_parts<'d>(answer: Option<Value<'d>>, each: &mut dyn FnMut(EntryPart<'d>)) {
    let Some(response) = answer.and_then(|answer| answer.get("response")) else { return };
    each(EntryPart::Result);
    let texts = response.pick(["output", "content", "error"]).into_iter().flatten();
    texts.for_each(|text| content_parts(Some(text), each));
}

/// User messages that the program adds begin with one of these. It adds new ones when it resumes.
const INJECTED: [&[u8]; 2] = [b"<session_context>", b"<hook_context>"];

/// Reads a user message: what a person said, what the program added, or results of calls.
fn asked(content: Option<Value<'_>>, draft: &mut Draft<'_>) {
    let injected = |text: Value<'_>| INJECTED.iter().any(|tag| text.prefix().starts_with(tag));
    let (mut results, mut said, mut typed) = (false, false, false);
    if let Some(text) = alone(content) {
        draft.user_text(text);
        (said, typed) = (true, !injected(text));
    }
    for part in items(content) {
        let result = qwen_code::asked(part, true, draft);
        results |= result;
        said |= !result;
        typed |= !result && !part.get("text").is_some_and(injected);
    }
    draft.entry.injected = said && !typed;
    draft.entry.kind = Kind::Message(if results && !said { Role::Tool } else { Role::User });
}

/// Reads a record of a call, with its results if it has any. `sent` says whether it is sent as a call.
fn tool_call(call: Value<'_>, sent: bool, draft: &mut Draft<'_>) {
    let [id, name, args, status, result, display] =
        call.pick(["id", "name", "args", "status", "result", "resultDisplay"]);
    if sent {
        draft.call(call, id, name, false);
        draft.call_weighs(args);
    }
    let failed = status.is_some_and(|status| status.is("error") || status.is("cancelled"));
    let mut answered = false;
    if let Some(text) = alone(result) {
        draft.result(text, id.or(name), name, failed);
        draft.body(text);
        answered = true;
    }
    // After a resume, each call of a message may hold the results of all its calls.
    for (whole, answer) in result.into_iter().flat_map(|whole| answers(whole).map(move |one| (whole, one))) {
        let [own, tool] = answer.pick(["id", "name"]);
        // Old records have no id; their place joins result and call.
        draft.result(whole, own.or(id).or(name), tool.or(name), failed);
        if id.is_none() {
            draft.unpaired();
        }
        response(answer, draft);
        answered = true;
    }
    if answered {
        let files = items(result).filter(|part| part.get("functionResponse").is_none());
        files.filter(|part| part.get("text").is_none()).for_each(|part| draft.result_image(part));
    }
    draft.sides_or_lines(display);
}

/// Reads the texts and files of a `functionResponse`.
pub(super) fn response(answer: Value<'_>, draft: &mut Draft<'_>) {
    let [response, parts] = answer.pick(["response", "parts"]);
    let fields = response.map(|response| response.pick(["output", "content", "error"]));
    fields.into_iter().flatten().flatten().for_each(|text| draft.body(text));
    // A part of a response holds a file and nothing else.
    for part in items(parts) {
        draft.result_image(part);
        draft.no_words_for(part);
    }
}
