//! Gemini CLI: a log of records by id, of which the last one counts, at the place of the first.
//!
//! Each step of a tool call writes the whole message anew, results included. `$set` changes the header, or puts a list
//! in the place of all messages; `$rewindTo` takes a message and all behind it back. A result stands in its call, so
//! none is ever put in as a line. Facts: `reference/formats-other.md` §4.2.

use super::names::{Form, Names, has, needs};
use super::{
    Content, Format, Part, Results, Root, Shape, Vote, Writer, alone, asked, content_parts, is_string, items,
    listed_calls,
};
use crate::entry::{Draft, Kind, QuirkKind, Role, Target, is_altered};
use crate::finding::Severity;
use crate::json::{Doc, Kind as Json, Value};

pub(super) struct GeminiCli;

const MESSAGES: &[&str] = &["user", "gemini", "info", "error", "warning"];

const NAMES: &[Names] = &[
    Names::all(&[
        has("$set"),
        has("$rewindTo"),
        has("sessionId"),
        has("projectHash"),
        has("startTime"),
        has("lastUpdated"),
        has("kind"),
        has("type"),
    ]),
    Names::beside("content", &[needs("type", Form::Text)]),
    Names::of(
        "kind",
        &["main", "subagent"],
        &[needs("sessionId", Form::Text), needs("projectHash", Form::Text)],
    ),
    Names::of(
        "type",
        &["user", "gemini"],
        &[
            needs("id", Form::Text),
            needs("timestamp", Form::Text),
            needs("content", Form::TextOrList).with(super::qwen_code::PART),
            has("displayContent"),
        ],
    ),
    Names::of(
        "type",
        &["gemini"],
        &[
            has("model"),
            has("tokens"),
            has("thoughts"),
            has("toolCalls").with(&[Names::all(&[
                needs("id", Form::Text),
                needs("name", Form::Text),
                needs("args", Form::Object),
                needs("status", Form::Text),
                needs("result", Form::List).with(super::qwen_code::PART),
                has("timestamp"),
                has("resultDisplay"),
            ])]),
        ],
    ),
];

impl Format for GeminiCli {
    fn name(&self) -> &'static str {
        "gemini-cli"
    }

    fn vote(&self, doc: &Doc) -> Vote {
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
            && kind.is_some_and(|kind| MESSAGES.iter().any(|name| kind.is(name)));
        let own = message && kind.is_some_and(|kind| kind.is("gemini"));
        match header || change || own {
            true => Vote::Own,
            false if message => Vote::Fits,
            false => Vote::Silent,
        }
    }

    fn calls_have_ids(&self) -> bool {
        false
    }

    fn has_header(&self) -> bool {
        true
    }

    fn names(&self) -> &'static [Names] {
        NAMES
    }

    fn shape(&self) -> Shape {
        Shape::Upserts
    }

    fn writer(&self) -> Writer {
        Writer::AppendsByPath
    }

    fn results(&self) -> Results {
        Results::WithCall
    }

    fn copies_results(&self) -> bool {
        true
    }

    fn content(&self) -> Content {
        // It leaves empty turns out and puts a user's before the first (`historyHardening.ts`); empty texts it sends.
        Content {
            empty: Some(Severity::Note),
            blank: Some(Severity::Warning),
            begins_with_user: Some(Severity::Note),
            ..Content::GEMINI
        }
    }

    fn roots(&self) -> &'static [Root] {
        &[Root { env: None, home: ".gemini", below: "tmp/*/chats" }]
    }

    fn read(&self, doc: &Doc, draft: &mut Draft<'_>) {
        let Some(line) = doc.root() else { return };
        let [id, kind, content, set, rewind] = line.pick(["id", "type", "content", "$set", "$rewindTo"]);
        if let Some(set) = set {
            draft.entry.kind = if set.get("messages").is_some() { Kind::Boundary } else { Kind::Opaque };
            return;
        }
        if let Some(to) = rewind {
            draft.entry.kind = Kind::Leaf;
            let id = draft.intern(Some(to));
            draft.target(Target { id, at: to.span(), ..Target::default() });
            return;
        }
        draft.entry.id = draft.intern(id);
        match kind.and_then(Value::text).as_deref() {
            None if doc.get("projectHash").is_some() => draft.entry.kind = Kind::Header,
            Some(b"user") => {
                asked(content, draft);
                draft.entry.kind = Kind::Message(Role::User);
            }
            Some(b"gemini") => {
                draft.entry.kind = Kind::Message(Role::Assistant);
                draft.entry.model = draft.intern(doc.get("model"));
                if let Some(text) = alone(content) {
                    draft.text(text);
                }
                items(content).for_each(|part| said(part, draft));
                items(doc.get("toolCalls")).for_each(|call| tool_call(call, draft));
                // What the model thought is for the screen.
                if items(doc.get("thoughts")).next().is_some() {
                    draft.shows();
                }
            }
            _ => {}
        }
    }

    fn parts<'d>(&self, doc: &'d Doc, each: &mut dyn FnMut(Part<'d>)) {
        content_parts(doc.get("content"), each);
        listed_calls(doc.get("toolCalls"), each);
        for result in items(doc.get("toolCalls")).filter_map(|call| call.get("result")) {
            let single = Some(result).filter(|result| result.kind() == Json::Object);
            for part in single.into_iter().chain(result.items()) {
                response_parts(part.get("functionResponse"), each);
            }
        }
    }
}

/// The texts of a `functionResponse`, as parts of what an entry says.
pub(super) fn response_parts<'d>(answer: Option<Value<'d>>, each: &mut dyn FnMut(Part<'d>)) {
    let Some(response) = answer.and_then(|answer| answer.get("response")) else { return };
    each(Part::Result);
    let texts = response.pick(["output", "content", "error"]).into_iter().flatten();
    texts.for_each(|text| content_parts(Some(text), each));
}

/// A part of what the model said. Calls are read where their results are.
fn said(part: Value<'_>, draft: &mut Draft<'_>) {
    let [text, signature] = part.pick(["text", "thoughtSignature"]);
    match text {
        Some(text) if signature.is_none() => draft.text_block(part, text),
        Some(text) => draft.text(text),
        None => draft.image(part),
    }
    if signature.is_some() {
        draft.shows();
    }
    if part.get("functionCall").is_some() && signature.is_some_and(is_altered) {
        draft.quirk(QuirkKind::AlteredThought, part.span());
    }
}

/// A call, and its result if there is one already.
fn tool_call(call: Value<'_>, draft: &mut Draft<'_>) {
    let [id, name, status, result, display] = call.pick(["id", "name", "status", "result", "resultDisplay"]);
    draft.call(call, id, name, false);
    let single = result.filter(|result| result.kind() == Json::Object);
    let mut answers = single.into_iter().chain(items(result)).filter_map(|part| part.get("functionResponse"));
    if let Some(first) = answers.next() {
        let failed = status.is_some_and(|status| status.is("error") || status.is("cancelled"));
        // Old records name no id: there the place is what joins the two.
        draft.result(first, first.get("id").or(id).or(name), first.get("name").or(name), failed);
        if id.is_none() {
            draft.unpaired();
        }
        core::iter::once(first).chain(answers).for_each(|answer| response(answer, draft));
        let files = items(result).filter(|part| part.get("functionResponse").is_none());
        files.filter(|part| part.get("text").is_none()).for_each(|part| draft.result_image(part));
    }
    draft.sides(display);
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
