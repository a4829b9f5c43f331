//! Factory Droid: messages of Anthropic's API in an envelope, after a line that begins the session.
//!
//! It is not known how Droid writes, and `todo_state` and `compaction_state` count messages. So files are changed only
//! while Droid does not run, and no line is added or removed. Facts: docs/format-facts.md.

use super::agent::Agent;
use super::anthropic;
use super::base::{
    Arguments, BASE, Broken, Content, EntryPart, Format, OutsideCount, ResultPlace, Results, Root, Vote,
};
use super::claude_code::spoken;
use super::common::{broken_by_stop_reason, content_parts, has_block, is_any, is_string, says};
use super::kinds::{self, Kinds};
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use spans::json::{Doc, Value};

/// What was seen in files; Droid's source is not public.
const KINDS: &[Kinds] = &[
    Kinds::at(&["type"])
        .sent("message")
        .steers("compaction_state")
        .silent("session_start todo_state session_end"),
    Kinds::at(&["message", "role"]).within("message").sent("assistant user"),
    kinds::blocks("message", &["message", "content", "*", "type"]),
    kinds::blocks("message", &["message", "content", "*", "content", "*", "type"]),
];

pub(super) const FORMAT: Format = Format {
    name: "droid",
    written_by: "Factory Droid",
    remark: "no record comes or goes; a lost result goes into the next user message",
    agents: &[Agent::named("Factory Droid")],
    counted: Some(OutsideCount::Records("its own lines (messageIndex, removedCount)")),
    roots: &[Root { env: None, home: ".factory", below: "sessions" }],
    results: Results::Blocks,
    answer: ResultPlace::NextUser,
    arguments: Some(Arguments::INPUT),
    content: Content::ANTHROPIC,
    kinds: KINDS,
    version_at: &[&["version"]],
    vote,
    read,
    parts,
    broken,
    missing_result: anthropic::FORMAT.missing_result,
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let begins = says(doc, "type", "session_start")
        && is_string(doc.get("id"))
        && ["cwd", "title", "sessionTitle"].iter().any(|key| is_string(doc.get(key)));
    // pi's messages have more fields than these.
    let plain = |(key, _): (Value<'_>, Value<'_>)| is_any(key, &["role", "content", "id"]);
    let bare = doc.get("message").is_some_and(|message| message.fields().all(plain));
    let message = says(doc, "type", "message") && is_string(doc.get("id")) && bare;
    let content = doc.get("message").and_then(|message| message.get("content"));
    match begins || (message && has_block(content, &["tool_use", "tool_result"])) {
        true => Vote::Own,
        false if message => Vote::Fits,
        false => Vote::Silent,
    }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let message = doc.get("message");
    let role = message.and_then(|message| message.get("role")).and_then(Value::text);
    draft.entry.kind = match doc.get("type").and_then(Value::text).as_deref() {
        Some(b"session_start") => Kind::Header,
        Some(b"compaction_state") => Kind::Note,
        Some(b"message") if role.as_deref() == Some(b"user") => {
            anthropic::asked(message.and_then(|message| message.get("content")), draft)
        }
        Some(b"message") if role.as_deref() == Some(b"assistant") => {
            if let Some(message) = message {
                spoken(message, draft);
            }
            // A line is a whole message, whatever its id is.
            draft.entry.group = None;
            Kind::Message(Role::Assistant)
        }
        _ => Kind::Opaque,
    };
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    content_parts(doc.get("message").and_then(|message| message.get("content")), each);
}

fn broken(doc: &Doc) -> Option<Broken<'_>> {
    broken_by_stop_reason(doc.get("message"))
}
