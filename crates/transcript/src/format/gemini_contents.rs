//! Bare messages of Gemini's API, one per line: `role` and `parts`, with the names of the API or those of its Python library.
//!
//! The API counts calls and results of neighbouring turns, so a missing result is never added. Facts:
//! docs/format-facts.md.

use super::base::{Content, EntryPart, Format, NO_AGENT, Results, Vote};
use super::common::{is_string, items, only_keys, says_any};
use super::kinds::Kinds;
use super::names::{FieldNames, Form, needs, text};
use super::qwen_code;
use crate::model::draft::Draft;
use crate::model::entry::{Kind, Role};
use spans::json::{Doc, Value};

const KINDS: &[Kinds] = &[
    Kinds::at(&["role"]).sent("user model function system"),
    qwen_code::parts_of_gemini(&["parts", "*", "?"]),
];

const KEYS: &[&str] = &["role", "parts"];

pub(super) const FORMAT: Format = Format {
    name: "gemini-contents",
    written_by: "bare Gemini messages",
    remark: "no result is put in",
    results: Results::Blocks,
    calls_have_ids: false,
    content: Content::GEMINI,
    names: &[FieldNames::all(&[text("role"), needs("parts", Form::List).with(qwen_code::PART)])],
    kinds: KINDS,
    fields: KEYS,
    vote,
    read,
    parts,
    ..NO_AGENT
};

fn vote(doc: &Doc) -> Vote {
    let mut parts = items(doc.get("parts")).peekable();
    let own = only_keys(doc, KEYS)
        && says_any(doc, "role", &["user", "model", "function"])
        && parts.peek().is_some()
        && parts.all(|part| !is_string(part.get("type")));
    if own { Vote::Own } else { Vote::Silent }
}

fn read(doc: &Doc, draft: &mut Draft<'_>) {
    doc.root().into_iter().for_each(|root| message(root, draft));
}

fn parts<'d>(doc: &'d Doc, each: &mut dyn FnMut(EntryPart<'d>)) {
    qwen_code::content_parts_of_gemini(doc.root(), each);
}

/// Reads a message of this dialect.
pub(super) fn message(root: Value<'_>, draft: &mut Draft<'_>) {
    let [role, parts] = root.pick(["role", "parts"]);
    draft.entry.kind = Kind::Message(if role.is_some_and(|role| role.is("model")) {
        items(parts).for_each(|part| qwen_code::said(part, draft));
        Role::Assistant
    } else {
        let mut results = false;
        items(parts).for_each(|part| results |= qwen_code::asked(part, true, draft));
        if results { Role::Tool } else { Role::User }
    });
}
