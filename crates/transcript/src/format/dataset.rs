//! Lines that each hold a whole conversation: data for tuning and batches of requests, exports of sessions.
//!
//! Nothing is ever put in: a result that nobody had would be learnt from, and a call that is left open at the end is what
//! such data teaches, or asks for. Calls and results find each other within their line. Facts:
//! docs/format-facts.md.

use super::base::{Arguments, Content, Format, Level, Part, Results, Shape, Vote};
use super::common::{items, only_keys};
use super::{anthropic, gemini_contents, openai_chat};
use crate::model::draft::Draft;
use crate::model::entry::{Kind, QuirkKind};
use spans::json::{Doc, Kind as Json, Value};
use spans::source::Span;

/// A dialect of such lines.
pub(super) struct Dataset {
    name: &'static str,
    keys: &'static [&'static str],
    /// Where the conversation is: keys that lead to it.
    at: &'static [&'static [&'static str]],
    /// What a message says about the dialect of its line.
    vote: fn(Value<'_>) -> Vote,
    read: fn(Value<'_>, &mut Draft<'_>),
    content: Content,
    results: Results,
    calls_have_ids: bool,
    has_plain_ids: bool,
    arguments: Option<Arguments>,
}

/// OpenAI: tuning, batches.
pub(super) const OPENAI: Dataset = Dataset {
    name: "openai-dataset",
    keys: &[
        "messages",
        "tools",
        "functions",
        "parallel_tool_calls",
        "weight",
        "metadata",
        "custom_id",
        "method",
        "url",
        "body",
    ],
    at: &[&["messages"], &["body", "messages"]],
    vote: |message| {
        if message.get("role").is_some() && !holds(message, ANTHROPIC_BLOCKS) && !holds(message, AISDK_PARTS)
        {
            Vote::Own
        } else {
            Vote::Silent
        }
    },
    read: |message, draft| openai_chat::message(Some(message), draft),
    content: Content::OPENAI,
    results: Results::InConversation,
    calls_have_ids: true,
    has_plain_ids: false,
    arguments: Some(openai_chat::ARGUMENTS),
};

/// Anthropic: batches, exports.
pub(super) const ANTHROPIC: Dataset = Dataset {
    name: "anthropic-dataset",
    keys: &["messages", "system", "tools", "model", "max_tokens", "metadata", "custom_id", "params"],
    at: &[&["messages"], &["params", "messages"]],
    vote: |message| match message.get("role").is_some() {
        true if holds(message, ANTHROPIC_BLOCKS) => Vote::Own,
        true => Vote::Fits,
        false => Vote::Silent,
    },
    read: |message, draft| anthropic::message(message, draft),
    content: Content::ANTHROPIC,
    results: Results::InConversation,
    calls_have_ids: true,
    has_plain_ids: true,
    arguments: Some(Arguments::INPUT),
};

/// `ShareGPT`, as Hermes writes its trajectories: texts, and calls only as markup within them.
pub(super) const SHAREGPT: Dataset = Dataset {
    name: "sharegpt",
    keys: &["conversations", "id", "model", "completed", "system", "tools", "timestamp", "metadata"],
    at: &[&["conversations"]],
    vote: |message| {
        if message.get("from").is_some() && message.get("value").is_some() { Vote::Own } else { Vote::Silent }
    },
    read: |message, draft| {
        let [from, value] = message.pick(["from", "value"]);
        let from = from.and_then(Value::text);
        match from.as_deref() {
            Some(b"human" | b"user") => value.into_iter().for_each(|text| draft.user_text(text)),
            Some(b"tool") => {
                draft.result(message, None, None, false);
                if let Some(text) = value {
                    draft.body(text);
                }
            }
            _ => {}
        }
    },
    content: Content::NONE,
    results: Results::Unpaired,
    calls_have_ids: true,
    has_plain_ids: false,
    arguments: None,
};

/// Gemini: tuning, batches.
pub(super) const GEMINI: Dataset = Dataset {
    name: "gemini-dataset",
    keys: &[
        "contents",
        "systemInstruction",
        "system_instruction",
        "tools",
        "generationConfig",
        "key",
        "request",
    ],
    at: &[&["contents"], &["request", "contents"]],
    vote: |message| if message.get("parts").is_some() { Vote::Own } else { Vote::Silent },
    read: |message, draft| gemini_contents::message(message, draft),
    content: Content::GEMINI,
    results: Results::InConversation,
    calls_have_ids: false,
    has_plain_ids: false,
    arguments: None,
};

const ANTHROPIC_BLOCKS: &[&str] = &["tool_use", "tool_result", "thinking", "redacted_thinking"];
const AISDK_PARTS: &[&str] = &["tool-call", "tool-result"];

/// Whether the content of a message holds one of these blocks.
fn holds(message: Value<'_>, blocks: &[&str]) -> bool {
    let kinds = items(message.get("content")).filter_map(|block| block.get("type"));
    kinds.into_iter().any(|kind| blocks.iter().any(|name| kind.is(name)))
}

impl Dataset {
    /// The messages of a line.
    fn conversation<'d>(&self, doc: &'d Doc) -> Option<Value<'d>> {
        let walk = |path: &&[&str]| path.iter().try_fold(doc.root()?, |value, key| value.get(key));
        self.at.iter().find_map(walk).filter(|found| found.kind() == Json::Array)
    }
}

impl Format for Dataset {
    fn name(&self) -> &'static str {
        self.name
    }

    fn vote(&self, doc: &Doc) -> Vote {
        let Some(messages) = self.conversation(doc).filter(|_| only_keys(doc, self.keys)) else {
            return Vote::Silent;
        };
        // One message that is only this dialect's tells; one that is not at all tells as well.
        let mut said = Vote::Silent;
        for message in messages.items() {
            match (self.vote)(message) {
                Vote::Own => said = Vote::Own,
                Vote::Fits if said == Vote::Silent => said = Vote::Fits,
                Vote::Fits => {}
                Vote::Silent | Vote::Marred | Vote::Foreign => return Vote::Silent,
            }
        }
        said
    }

    fn calls_have_ids(&self) -> bool {
        self.calls_have_ids
    }

    fn arguments(&self) -> Option<Arguments> {
        self.arguments
    }

    fn has_plain_ids(&self) -> bool {
        self.has_plain_ids
    }

    fn shape(&self) -> Shape {
        Shape::List
    }

    fn results(&self) -> Results {
        self.results
    }

    fn content(&self) -> Content {
        self.content
    }

    fn level(&self) -> Level {
        Level::Archive
    }

    fn read(&self, doc: &Doc, draft: &mut Draft<'_>) {
        let Some(messages) = self.conversation(doc) else { return };
        let mut last = Span::default();
        for message in messages.items() {
            draft.message(message, self.read);
            last = message.span();
        }
        draft.ends_with(last);
        if self.content.begins_with_user.is_some() {
            let parts = |message: Value<'_>| {
                items(message.get("parts")).any(|part| part.get("functionCall").is_some())
            };
            let first = messages.items().next();
            first.filter(|first| parts(*first)).into_iter().for_each(|first| {
                draft.quirk(QuirkKind::CallFirst, first.span());
            });
        }
        let place = draft.entry.span.start.to_le_bytes();
        draft.scope(&place);
        // One conversation among others, which nobody sums up.
        draft.entry.kind = Kind::Note;
        draft.entry.text_chars = 0;
    }

    /// Nothing: a line is no entry of a conversation, but all of one.
    fn parts<'d>(&self, _: &'d Doc, _: &mut dyn FnMut(Part<'d>)) {}
}
