//! Otter: messages with a speaker, after a line that names the session.

use super::agent::Agent;
use super::base::{BASE, EntryPart, Format, Lost, ResultPlace, Root, Vote};
use super::common::{content_parts, is_string, items, says, says_any};
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use alloc::vec::Vec;
use spans::json::{Doc, Value};
use spans::marker::MISSING_RESULT;

pub(super) const FORMAT: Format = Format {
    name: "otter",
    written_by: "Otter",
    remark: "messages by who says them",
    agents: &[Agent::named("Otter")],
    roots: &[Root { env: Some("OTTER_HOME"), home: ".otter", below: "sessions" }],
    answer: ResultPlace::Line,
    vote,
    read,
    parts,
    missing_result,
    ..BASE
};

fn vote(doc: &Doc) -> Vote {
    let header = doc.get("otter").is_some() && is_string(doc.get("session"));
    let message = says_any(doc, "who", &["me", "model", "tool"]);
    if header || message { Vote::Own } else { Vote::Silent }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    let text = doc.get("says");
    draft.entry.kind = match doc.get("who").and_then(Value::text).as_deref() {
        Some(b"me") => {
            if let Some(text) = text {
                draft.user_text(text);
            }
            Kind::Message(Role::User)
        }
        Some(b"model") => {
            if let Some(text) = text {
                draft.text(text);
            }
            for call in items(doc.get("runs")) {
                draft.call(call, call.get("ref"), call.get("tool"), false);
            }
            Kind::Message(Role::Assistant)
        }
        Some(b"tool") => {
            if let Some(line) = doc.root() {
                draft.result(line, doc.get("ref"), None, false);
                doc.get("gives").into_iter().for_each(|text| draft.body(text));
            }
            Kind::Message(Role::Tool)
        }
        _ if doc.get("otter").is_some() => Kind::Header,
        _ => Kind::Opaque,
    };
}

fn missing_result(lost: &Lost<'_>) -> Vec<u8> {
    Writing::new().text("who", b"tool").raw("ref", lost.call).text("gives", MISSING_RESULT.as_bytes()).end()
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    content_parts(doc.get("says"), each);
    for run in items(doc.get("runs")) {
        each(EntryPart::Call { name: run.get("tool"), arguments: None });
    }
    if says(doc, "who", "tool") {
        each(EntryPart::Result);
        content_parts(doc.get("gives"), each);
    }
}
