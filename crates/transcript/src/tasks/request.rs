//! Finds the line of the file for a place in a request. The request is built from the live context as the agent builds
//! it, as far as the numbers of its messages and blocks are concerned.
//!
//! It knows no error texts (see [`crate::rule::refusal`]) and no rules. Agents add reminders of their own, so the
//! result is where to look first.

use crate::model::entry::{Kind, Role, StopReason};
use crate::model::ids::Id;
use crate::model::policy::{Depth, Policy};
use crate::read::scan;
use crate::session::Session;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use spans::json;
use spans::source::{Fault, Source};

/// The place at which a request was refused, and its lines in the file.
#[derive(Debug, Default)]
pub struct Blame {
    /// The place that the error names, as written there.
    pub place: Option<String>,
    /// How many messages the request has, if it was built to find the place.
    pub messages: usize,
    /// The lines of that place.
    pub at: Vec<u64>,
    /// Lines that the agent does not send: compacted away, on another branch, or its own notes.
    pub unsent: Vec<u64>,
    /// Ids that the error names, with the lines of entries, calls or results that have them.
    pub named: Vec<(String, Vec<u64>)>,
}

/// Finds the lines that an error text is about. `None` if the format of the file is unknown.
pub fn blame(source: &dyn Source, text: &str) -> Result<Option<Blame>, Fault> {
    let read = scan::scan(source)?;
    let policy = Policy::default();
    let Some(session) = Session::new(&read, source, &policy, Depth::Sizes) else { return Ok(None) };
    let entries = (0..).zip(&read.transcript.entries);
    let is_unsent = |entry: u32| !session.in_context(entry) || session.is_left_out(entry);
    let unsent = entries.filter(|(entry, _)| is_unsent(*entry)).map(|(_, entry)| entry.line);
    let unsent = unsent.collect();
    let mut blame = Blame { named: named(&session, text), unsent, ..Blame::default() };
    if let Some(place) = MessagePath::parse(text) {
        let messages = build(&session, place.dialect);
        blame.messages = messages.len();
        if let Some(message) = messages.get(place.message) {
            blame.at = lines(&session, message, place.block)?;
        }
        blame.place = Some(place.written);
    }
    Ok(Some(blame))
}

/// How a provider numbers messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestDialect {
    /// Instructions are not among the messages; adjacent results are one message.
    Anthropic,
    /// Each result is a message of its own, and the instructions are the first one.
    Chat,
    /// As in Chat Completions, but each call is an item of its own.
    Responses,
}

/// A path into a request, as written in error texts.
#[derive(Debug, PartialEq, Eq)]
struct MessagePath {
    dialect: RequestDialect,
    message: usize,
    block: Option<usize>,
    written: String,
}

impl MessagePath {
    /// `messages.12.content.0`, `messages[12]`, `messages.[12].role`, `input[7].content`.
    fn parse(text: &str) -> Option<Self> {
        for (word, dialect) in [("messages", RequestDialect::Anthropic), ("input", RequestDialect::Responses)]
        {
            for (at, _) in text.match_indices(word) {
                let rest = &text[at + word.len()..];
                let bracket = rest.starts_with('[') || rest.starts_with(".[");
                let Some((message, after)) = number(rest.trim_start_matches(['.', '['])) else { continue };
                if !rest.starts_with(['.', '[']) {
                    continue;
                }
                let dialect = if bracket && dialect == RequestDialect::Anthropic {
                    RequestDialect::Chat
                } else {
                    dialect
                };
                let block = after.trim_start_matches(']').strip_prefix(".content");
                let block = block.and_then(|after| number(after.trim_start_matches(['.', '['])));
                let end = block.map_or(after, |(_, after)| after).trim_start_matches(']');
                let written = text[at..text.len() - end.len()].into();
                return Some(Self { dialect, message, block: block.map(|(block, _)| block), written });
            }
        }
        // `the message at position 12 with role …`
        let (_, rest) = text.split_once("message at position ")?;
        let (message, end) = number(rest)?;
        let written = text[text.len() - rest.len()..text.len() - end.len()].into();
        Some(Self { dialect: RequestDialect::Chat, message, block: None, written })
    }
}

/// The number that a text begins with, and the rest.
fn number(text: &str) -> Option<(usize, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// Words of a text that are ids in the file, with the lines of what has them.
fn named(session: &Session<'_>, text: &str) -> Vec<(String, Vec<u64>)> {
    let mut found: Vec<(Id, String)> = Vec::new();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-|:.".contains(c)));
    // `messages.3.role` or a word of the sentence may be an id by chance; ids of calls are longer.
    for word in words.map(|word| word.trim_matches(['.', ':'])).filter(|word| word.len() >= 4) {
        let id = session.transcript.ids.find(word.as_bytes());
        if let Some(id) = id.filter(|id| found.iter().all(|(known, _)| known != id)) {
            found.push((id, word.into()));
        }
    }
    let named = found.into_iter().map(|(id, word)| (word, lines_of(session, id)));
    named.filter(|(_, lines)| !lines.is_empty()).collect()
}

fn lines_of(session: &Session<'_>, id: Id) -> Vec<u64> {
    let transcript = session.transcript;
    let entries = transcript.entries.iter().filter(|entry| entry.id == Some(id)).map(|entry| entry.line);
    let calls = transcript.calls.iter().filter(|call| call.id == Some(id)).map(|call| call.entry);
    let results = transcript.results.iter().filter(|result| result.call == Some(id)).map(|r| r.entry);
    let mut lines: Vec<u64> = entries.chain(calls.chain(results).map(|of| session.entry(of).line)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// The entries of each message of the request, in order.
fn build(session: &Session<'_>, dialect: RequestDialect) -> Vec<Vec<u32>> {
    let mut live: Vec<u32> = session.sent().collect();
    // The summary of a compaction comes first, whatever the compaction keeps.
    let boundary = live.iter().rposition(|&entry| session.kind(entry) == Kind::Boundary);
    if let Some(at) = boundary.filter(|_| session.shape.summary_first) {
        live[..=at].rotate_right(1);
    }
    let flat = session.shape.sent_as_written;
    // The agent's own instructions come before what is in the file.
    let mut messages =
        if flat || dialect == RequestDialect::Anthropic { Vec::new() } else { vec![Vec::new()] };
    let mut last: Option<(Sender, u64)> = None;
    for entry in live {
        let Some(sender) = sender(session, entry, dialect) else {
            continue;
        };
        let turn = session.turn(entry);
        let joins = last.is_some_and(|(before, group)| match (before, sender) {
            (Sender::Model, Sender::Model) => group == turn,
            (Sender::Tool, Sender::Tool) => dialect == RequestDialect::Anthropic && !flat,
            (Sender::Model, _) | (_, Sender::Model) => false,
            _ => session.shape.joins_messages,
        });
        last = Some((sender, turn));
        let items =
            if dialect == RequestDialect::Responses { session.transcript.calls_of(entry).len() } else { 0 };
        match messages.last_mut().filter(|_| joins) {
            Some(message) => message.push(entry),
            None => messages.push(vec![entry]),
        }
        let text = session.entry(entry).text_chars > 0;
        let more = if text { items } else { items.saturating_sub(1) };
        messages.extend((0..more).map(|_| vec![entry]));
    }
    messages
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Model,
    Tool,
    Person,
}

/// The role in which an entry is sent; `None` if it is not sent.
fn sender(session: &Session<'_>, entry: u32, dialect: RequestDialect) -> Option<Sender> {
    let found = session.entry(entry);
    match found.kind {
        _ if session.is_left_out(entry) => None,
        Kind::Message(Role::Assistant) if found.stop == StopReason::Aborted => {
            let answered =
                session.transcript.calls_of(entry).any(|call| session.result_of(call as u32).is_some());
            answered.then_some(Sender::Model)
        }
        Kind::Message(Role::Assistant) => Some(Sender::Model),
        Kind::Message(Role::Tool) => Some(Sender::Tool),
        Kind::Message(Role::User) | Kind::Note => Some(Sender::Person),
        Kind::Message(Role::System) => (dialect != RequestDialect::Anthropic).then_some(Sender::Person),
        // Claude Code writes the summary as a line of its own after the boundary.
        Kind::Boundary => (session.shape.summary_first).then_some(Sender::Person),
        Kind::Header | Kind::Leaf | Kind::Opaque => None,
    }
}

/// The lines of a message, or of one of its blocks.
fn lines(session: &Session<'_>, message: &[u32], block: Option<usize>) -> Result<Vec<u64>, Fault> {
    let mut entries = message.to_vec();
    if let Some(mut wanted) = block {
        for &entry in message {
            let blocks = blocks(session, entry)?;
            if wanted < blocks {
                entries = vec![entry];
                break;
            }
            wanted -= blocks;
        }
    }
    let mut lines: Vec<u64> = entries.iter().map(|&entry| session.entry(entry).line).collect();
    lines.dedup();
    Ok(lines)
}

/// How many blocks of a message an entry forms.
fn blocks(session: &Session<'_>, entry: u32) -> Result<usize, Fault> {
    let whole = session.transcript.results_of(entry).any(|result| session.result(result).whole);
    let Some(doc) = (if whole { None } else { json::parse(session.source, session.entry(entry).span)? })
    else {
        return Ok(1);
    };
    let content = doc.get("message").and_then(|message| message.get("content")).or(doc.get("content"));
    let items = content.map_or(0, |content| content.items().count());
    Ok(items.max(1))
}

#[cfg(test)]
mod tests {
    use super::{MessagePath, RequestDialect, blame};
    use alloc::string::{String, ToString};

    fn place(text: &str) -> Option<(RequestDialect, usize, Option<usize>, String)> {
        MessagePath::parse(text).map(|place| (place.dialect, place.message, place.block, place.written))
    }

    #[test]
    fn places_are_read_as_providers_write_them() {
        use RequestDialect::{Anthropic, Chat, Responses};
        for (text, dialect, message, block, written) in [
            ("messages.12.content.0: unexpected", Anthropic, 12, Some(0), "messages.12.content.0"),
            ("400 messages.3: `tool_use` ids", Anthropic, 3, None, "messages.3"),
            ("Invalid parameter: messages.[7].role", Chat, 7, None, "messages.[7]"),
            ("'messages[7].content[2].text'", Chat, 7, Some(2), "messages[7].content[2]"),
            ("Invalid 'input[646].name': string", Responses, 646, None, "input[646]"),
            ("the message at position 8 with role", Chat, 8, None, "8"),
            ("messages: 2 errors, messages.1.content", Anthropic, 1, None, "messages.1"),
        ] {
            assert_eq!(place(text), Some((dialect, message, block, written.to_string())), "{text}");
        }
        for text in ["", "messages", "messages: at least one", "input is long", "messages 4"] {
            assert_eq!(place(text), None, "{text}");
        }
    }

    const PI: &str = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"message","id":"aaaa1","parentId":null,"message":{"role":"user","content":"go"}}
{"type":"message","id":"aaaa2","parentId":"aaaa1","message":{"role":"assistant","content":[],"stopReason":"error"}}
{"type":"message","id":"aaaa3","parentId":"aaaa2","message":{"role":"assistant","content":[{"type":"toolCall","id":"toolu_1","name":"a","arguments":{}},{"type":"toolCall","id":"toolu_2","name":"a","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","id":"aaaa4","parentId":"aaaa3","message":{"role":"toolResult","toolCallId":"toolu_1","content":"x"}}
{"type":"message","id":"aaaa5","parentId":"aaaa4","message":{"role":"toolResult","toolCallId":"toolu_2","content":"x"}}
{"type":"message","id":"aaaa6","parentId":"aaaa5","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}
"#;

    fn at(text: &str, error: &str) -> (alloc::vec::Vec<u64>, usize) {
        let blame = blame(&text.as_bytes(), error).unwrap().unwrap();
        (blame.at, blame.messages)
    }

    #[test]
    fn a_place_in_a_request_is_a_line_of_the_file() {
        // Failed turns are not sent, and the results of a turn are one message.
        assert_eq!(at(PI, "messages.0"), ([2].into(), 4));
        assert_eq!(at(PI, "messages.1.content.1"), ([4].into(), 4));
        assert_eq!(at(PI, "messages.2"), ([5, 6].into(), 4));
        assert_eq!(at(PI, "messages.2.content.1: x"), ([6].into(), 4));
        assert_eq!(at(PI, "messages.3.content.1"), ([7].into(), 4));
        assert_eq!(at(PI, "messages.9"), ([].into(), 4));
        // Chat Completions: instructions come first, and each result is a message.
        assert_eq!(at(PI, "messages.[4].role"), ([6].into(), 6));
        // Responses: each call is an item.
        assert_eq!(at(PI, "input[3].name"), ([4].into(), 7));
    }

    #[test]
    fn ids_that_an_error_names_are_found() {
        let blame = blame(&PI.as_bytes(), "found in `tool_result` blocks: toolu_2. Each").unwrap().unwrap();
        assert_eq!(blame.named, [("toolu_2".to_string(), [4, 6].into())]);
        assert!(blame.place.is_none());
    }
}
