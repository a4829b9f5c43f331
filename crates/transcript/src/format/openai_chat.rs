//! Bare messages of OpenAI's Chat Completions API, one a line: `role`, `content`, `tool_calls`, `tool_call_id`.
//!
//! Many agents write this dialect with a file beside it that counts the lines. Such a file cannot be seen from
//! here, so lines are added or removed only when the user allows it; any field that the API does not know makes
//! the file somebody else's.

use super::{Answer, Format, Lost, Shape, Vote, Writing, is_string, items, only_keys, says};
use crate::entry::{Draft, Kind, Role};
use crate::json::{Doc, Kind as Json, Value};
use crate::marker::MISSING_RESULT;
use alloc::vec::Vec;

pub(super) struct OpenAiChat;

const KEYS: &[&str] = &[
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "annotations",
    "audio",
    "reasoning_content",
];
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

impl Format for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai-chat"
    }

    fn vote(&self, doc: &Doc) -> Vote {
        let flat = || items(doc.get("tool_calls")).any(|call| call.get("function").is_none());
        let fits = only_keys(doc, KEYS)
            && ROLES.iter().any(|role| says(doc, "role", role))
            && (doc.get("content").is_some() || doc.get("tool_calls").is_some())
            && (!says(doc, "role", "tool") || is_string(doc.get("tool_call_id")))
            && !flat();
        let decisive = doc.get("tool_calls").is_some() || says(doc, "role", "tool");
        match fits {
            true if decisive => Vote::Own,
            true => Vote::Fits,
            false => Vote::Foreign,
        }
    }

    fn shape(&self) -> Shape {
        Shape::List
    }

    fn answer(&self) -> Answer {
        Answer::LineIfAllowed
    }

    fn read(&self, doc: &Doc, draft: &mut Draft<'_>) {
        let content = doc.get("content");
        let texts = || {
            let alone = content.filter(|value| value.kind() == Json::String);
            alone.into_iter().chain(items(content).filter_map(|part| part.get("text")))
        };
        draft.entry.kind = match doc.get("role").and_then(Value::text).as_deref() {
            Some(b"user") => {
                texts().for_each(|text| draft.user_text(text));
                Kind::Message(Role::User)
            }
            Some(b"assistant") => {
                texts().for_each(|text| draft.text(text));
                for call in items(doc.get("tool_calls")) {
                    let name = call.get("function").and_then(|function| function.get("name"));
                    draft.call(call, call.get("id"), name, false);
                }
                Kind::Message(Role::Assistant)
            }
            Some(b"tool") => {
                if let Some(root) = doc.root() {
                    draft.result(root, doc.get("tool_call_id"), doc.get("name"), false);
                    texts().for_each(|text| draft.body(text));
                    items(content).for_each(|part| draft.block(part));
                }
                Kind::Message(Role::Tool)
            }
            Some(b"system" | b"developer") => Kind::Message(Role::System),
            Some(b"function") => Kind::Note,
            _ => Kind::Opaque,
        };
    }

    fn missing_result(&self, lost: &Lost<'_>) -> Vec<u8> {
        Writing::new()
            .text("role", b"tool")
            .raw("tool_call_id", lost.call)
            .text("content", MISSING_RESULT.as_bytes())
            .end()
    }
}
