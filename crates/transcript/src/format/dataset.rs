//! Lines that each hold a whole conversation: fine-tuning data, batches of requests, exported sessions.
//!
//! Nothing is ever added: a model would learn an invented result, and a call without a result at the end is what such
//! data teaches, or a batch asks for. Calls and results find each other within their line. Facts: docs/format-facts.md.

use super::base::{Arguments, BASE, Content, Format, Results, Vote};
use super::common::{has_block, items, only_keys};
use super::order::{self, OrderedMessage};
use super::{anthropic, gemini_contents, openai_chat, qwen_code};
use crate::model::draft::Draft;
use crate::model::entry::{ContentIssueKind, Kind, Role};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use spans::json::{Doc, Value, ValueKind as Json};
use spans::source::Span;

/// What all data sets share.
const DATASET: Format = Format { results: Results::InConversation, ..BASE };

/// Where the lines of a dialect hold the conversation, and how to recognise them.
struct DatasetDialect {
    /// All keys that a line may have.
    keys: &'static [&'static str],
    /// Paths of keys to the conversation.
    at: &'static [&'static [&'static str]],
    /// How a message of the line votes on the dialect.
    vote: fn(Value<'_>) -> Vote,
    read: fn(Value<'_>, &mut Draft<'_>),
    /// Whether calls are recorded.
    reads_calls: bool,
}

/// OpenAI: fine-tuning, batches.
pub(super) const OPENAI: Format = Format {
    name: "openai-dataset",
    written_by: "OpenAI tuning and batches, one conversation a line",
    remark: "pairs are left as they are",
    arguments: Some(openai_chat::ARGUMENTS),
    content: Content::OPENAI,
    vote: |doc| vote(doc, &OPENAI_LINES),
    read: |doc, draft| read(doc, &OPENAI_LINES, draft),
    ..DATASET
};

const OPENAI_LINES: DatasetDialect = DatasetDialect {
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
    reads_calls: true,
};

/// Anthropic: batches, exports.
pub(super) const ANTHROPIC: Format = Format {
    name: "anthropic-dataset",
    written_by: "Anthropic batches, one conversation a line",
    remark: "pairs are left as they are",
    arguments: Some(Arguments::INPUT),
    has_plain_ids: true,
    content: Content::ANTHROPIC,
    vote: |doc| vote(doc, &ANTHROPIC_LINES),
    read: |doc, draft| read(doc, &ANTHROPIC_LINES, draft),
    ..DATASET
};

const ANTHROPIC_LINES: DatasetDialect = DatasetDialect {
    keys: &["messages", "system", "tools", "model", "max_tokens", "metadata", "custom_id", "params"],
    at: &[&["messages"], &["params", "messages"]],
    vote: |message| match message.get("role").is_some() {
        true if holds(message, ANTHROPIC_BLOCKS) => Vote::Own,
        true => Vote::Fits,
        false => Vote::Silent,
    },
    read: |message, draft| anthropic::message(message, draft),
    reads_calls: true,
};

/// `ShareGPT`, as Hermes writes its trajectories: texts, with calls only as markup inside them.
pub(super) const SHAREGPT: Format = Format {
    name: "sharegpt",
    written_by: "ShareGPT, Hermes trajectories",
    remark: "pairs are left as they are",
    results: Results::Unpaired,
    vote: |doc| vote(doc, &SHAREGPT_LINES),
    read: |doc, draft| read(doc, &SHAREGPT_LINES, draft),
    ..DATASET
};

const SHAREGPT_LINES: DatasetDialect = DatasetDialect {
    keys: &["conversations", "id", "model", "completed", "system", "tools", "timestamp", "metadata"],
    at: &[&["conversations"]],
    vote: |message| {
        if message.get("from").is_some() && message.get("value").is_some() { Vote::Own } else { Vote::Silent }
    },
    read: |message, draft| {
        let [from, value] = message.pick(["from", "value"]);
        let from = from.and_then(Value::text);
        draft.entry.kind = match from.as_deref() {
            Some(b"human" | b"user") => {
                if let Some(text) = value {
                    draft.user_text(text);
                }
                Kind::Message(Role::User)
            }
            Some(b"gpt" | b"assistant" | b"model") => {
                draft.shows();
                Kind::Message(Role::Assistant)
            }
            Some(b"tool") => {
                draft.result(message, None, None, false);
                if let Some(text) = value {
                    draft.body(text);
                }
                Kind::Message(Role::Tool)
            }
            _ => Kind::Opaque,
        };
    },
    reads_calls: false,
};

/// Gemini: fine-tuning, batches.
pub(super) const GEMINI: Format = Format {
    name: "gemini-dataset",
    written_by: "Gemini tuning and batches, one conversation a line",
    remark: "pairs are left as they are",
    calls_have_ids: false,
    content: Content::GEMINI,
    vote: |doc| vote(doc, &GEMINI_LINES),
    read: read_contents,
    ..DATASET
};

const GEMINI_LINES: DatasetDialect = DatasetDialect {
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
    reads_calls: true,
};

const ANTHROPIC_BLOCKS: &[&str] = &["tool_use", "tool_result", "thinking", "redacted_thinking"];
const AISDK_PARTS: &[&str] = &["tool-call", "tool-result"];

/// Whether the content of a message holds one of these blocks.
fn holds(message: Value<'_>, types: &[&str]) -> bool {
    has_block(message.get("content"), types)
}

impl DatasetDialect {
    /// The messages of a line.
    fn conversation<'d>(&self, doc: &'d Doc) -> Option<Value<'d>> {
        let walk = |path: &&[&str]| path.iter().try_fold(doc.root()?, |value, key| value.get(key));
        self.at.iter().find_map(walk).filter(|found| found.kind() == Json::Array)
    }

    /// The names of the tools listed beside the conversation. `None` without such a list, or if any of it is unknown:
    /// the provider's own tools have no name.
    fn tools<'d>(&self, doc: &'d Doc) -> Option<Vec<Cow<'d, [u8]>>> {
        let beside = self.at.iter().find_map(|path| {
            let (last, way) = path.split_last()?;
            let holder = way.iter().try_fold(doc.root()?, |value, key| value.get(key))?;
            holder.get(last).map(|_| holder)
        })?;
        let mut listed = ["tools", "functions"].iter().filter_map(|key| beside.get(key)).peekable();
        listed.peek()?;
        let mut names = Vec::new();
        for tool in listed.flat_map(Value::items) {
            let many = ["functionDeclarations", "function_declarations"].iter().find_map(|key| tool.get(key));
            let one = [tool.get("function").unwrap_or(tool)];
            for tool in
                many.into_iter().flat_map(Value::items).chain(one.into_iter().filter(|_| many.is_none()))
            {
                names.push(tool.get("name").and_then(Value::text)?);
            }
        }
        // An empty list tells nothing: rows whose tools are described in the text have one.
        Some(names).filter(|names| !names.is_empty())
    }
}

fn vote(doc: &Doc, dialect: &DatasetDialect) -> Vote {
    let Some(messages) = dialect.conversation(doc).filter(|_| only_keys(doc, dialect.keys)) else {
        return Vote::Silent;
    };
    // The first message that is certainly of this dialect decides, or the first that certainly is not.
    let mut said = Vote::Silent;
    for message in messages.items() {
        match (dialect.vote)(message) {
            Vote::Own => said = Vote::Own,
            Vote::Fits if said == Vote::Silent => said = Vote::Fits,
            Vote::Fits => {}
            Vote::Like | Vote::MayFit | Vote::Silent | Vote::Corrupted | Vote::Foreign => {
                return Vote::Silent;
            }
        }
    }
    said
}

/// Reads a line. It is a whole conversation and not an entry of one, so it has no parts to show.
fn read(doc: &Doc, dialect: &DatasetDialect, draft: &mut Draft<'_>) {
    let Some(messages) = dialect.conversation(doc) else { return };
    let (mut last, mut turns) = (Span::default(), Vec::new());
    for message in messages.items() {
        let before = draft.pairs_so_far();
        draft.entry.kind = Kind::Opaque;
        draft.message(message, dialect.read);
        last = message.span();
        turns.push(OrderedMessage::read(last, before, draft));
    }
    draft.ends_with(last);
    order::note(&turns, dialect.reads_calls, is_for_training(doc, dialect), draft);
    if let Some(names) = dialect.tools(doc) {
        draft.offers(&names);
    }
    let place = draft.entry.span.start.to_le_bytes();
    draft.scope(&place);
    // One conversation among others; there is nothing to compact.
    draft.entry.kind = Kind::Note;
    draft.entry.text_chars = 0;
}

/// Whether a line is a training example, and not a request.
fn is_for_training(doc: &Doc, dialect: &DatasetDialect) -> bool {
    let requests = ["custom_id", "max_tokens", "key", "generationConfig"];
    let at_top = dialect.at.first().and_then(|path| path.first()).is_some_and(|key| doc.get(key).is_some());
    at_top && requests.iter().all(|key| doc.get(key).is_none())
}

/// Reads a line in Gemini's dialect, and notes if its conversation begins with calls.
fn read_contents(doc: &Doc, draft: &mut Draft<'_>) {
    read(doc, &GEMINI_LINES, draft);
    let first = GEMINI_LINES.conversation(doc).and_then(|messages| messages.items().next());
    let calls = |first: &Value<'_>| items(first.get("parts")).any(qwen_code::is_call);
    if let Some(first) = first.filter(calls) {
        draft.issue(ContentIssueKind::CallFirst, first.span());
    }
}
