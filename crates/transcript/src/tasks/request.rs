//! Finds the line of the file for a place in a request. The request is built from the live context as the agent builds
//! it, as far as the numbers of its messages and blocks are concerned.
//!
//! It knows no error texts (see [`crate::refusal`]) and no rules. Agents add reminders of their own, so the result is
//! where to look first.

use crate::format::Results;
use crate::model::entry::{Kind, Role, StopReason};
use crate::model::ids::Id;
use crate::model::policy::{Depth, Policy};
use crate::read::scan::Reading;
use crate::refusal::{self, Unit};
use crate::session::Session;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use spans::json;
use spans::source::Fault;

/// The place at which a request was refused, and its lines in the file.
#[derive(Debug, Default)]
pub struct Blame {
    /// The place that the error names, as written there.
    pub place: Option<String>,
    /// How many messages the request has, if it was built to find the place.
    pub messages: usize,
    /// The lines of that place.
    pub at: Vec<u64>,
    /// What is on them, such as `a user message without text`.
    pub what: String,
    /// The role that the error says the message has, if no message near that place has it.
    pub other_role: Option<&'static str>,
    /// Lines that the agent does not send: compacted away, on another branch, or its own notes.
    pub unsent: Vec<u64>,
    /// Ids that the error names, with the lines of entries, calls or results that have them.
    pub named: Vec<(String, Vec<u64>)>,
}

/// Finds the lines that an error text is about. `None` if the format of the file is unknown.
pub fn blame(reading: &Reading<'_>, text: &str) -> Result<Option<Blame>, Fault> {
    let policy = Policy::default();
    let Some(session) = Session::of(reading, &policy, Depth::Sizes) else { return Ok(None) };
    let entries = (0..).zip(&reading.scanned.transcript.entries);
    let is_unsent = |entry: u32| !session.in_context(entry) || session.is_left_out(entry);
    let unsent = entries.filter(|(entry, _)| is_unsent(*entry)).map(|(_, entry)| entry.line);
    let unsent = unsent.collect();
    let mut blame = Blame { named: named(&session, text), unsent, ..Blame::default() };
    let told = refusal::read(text);
    let Some((number, place)) = told.place.and_then(|place| Some((place.number?, place))) else {
        return Ok(Some(blame));
    };
    let number = usize::try_from(number.saturating_sub(place.base)).unwrap_or(usize::MAX);
    match RequestDialect::of(place.unit) {
        Some(dialect) => {
            let messages = build(&session, dialect);
            blame.messages = messages.len();
            let (at, other_role) = by_role(&session, &messages, number, told.role, dialect);
            blame.other_role = other_role;
            if let Some(message) = at.and_then(|at| messages.get(at)) {
                let block = place.block.and_then(|block| usize::try_from(block).ok());
                let of_block = entries_of(&session, message, block)?;
                blame.at = of_block.iter().map(|&entry| session.entry(entry).line).collect();
                blame.at.dedup();
                blame.what = of_block.first().map_or_else(String::new, |&entry| described(&session, entry));
            }
        }
        None if place.unit == Unit::Line => {
            let line = place.number.unwrap_or_default();
            let mut entries = (0..).zip(&reading.scanned.transcript.entries);
            let found = entries.find(|(_, entry)| entry.line == line);
            blame.at = vec![line];
            blame.what = found.map_or_else(String::new, |(entry, _)| described(&session, entry));
        }
        None => return Ok(Some(blame)),
    }
    blame.place = Some(place.written);
    Ok(Some(blame))
}

/// The message at a number, or one beside it if only that one has the role that the error names: programs add and leave
/// out instructions. If none has it, the role comes back.
fn by_role(
    session: &Session<'_>,
    messages: &[Vec<u32>],
    number: usize,
    role: Option<&'static str>,
    dialect: RequestDialect,
) -> (Option<usize>, Option<&'static str>) {
    let Some(role) = role else { return (Some(number), None) };
    let has_role = |at: &usize| {
        let entry = messages.get(*at).and_then(|message| message.first());
        entry.is_some_and(|&entry| role_of(session, entry, dialect) == role)
    };
    let near = [Some(number), number.checked_sub(1), number.checked_add(1)];
    match near.into_iter().flatten().find(has_role) {
        Some(at) => (Some(at), None),
        None => (Some(number), Some(role)),
    }
}

/// The role in which a request names a message.
fn role_of(session: &Session<'_>, entry: u32, dialect: RequestDialect) -> &'static str {
    match session.kind(entry) {
        Kind::Message(Role::System) => "system",
        Kind::Message(Role::Tool) if dialect != RequestDialect::Anthropic => "tool",
        Kind::Message(Role::Assistant) => "assistant",
        _ => "user",
    }
}

/// What an entry is, in a few words.
fn described(session: &Session<'_>, entry: u32) -> String {
    let (found, transcript) = (session.entry(entry), session.transcript);
    let calls = transcript.calls_of(entry).len();
    let results = transcript.results_of(entry).count();
    let who = match found.kind {
        Kind::Message(Role::Assistant) => "an assistant message",
        Kind::Message(Role::Tool) => "a tool result",
        Kind::Message(Role::System) => "a system message",
        Kind::Message(Role::User) if results > 0 => "a user message with tool results",
        Kind::Message(Role::User) => "a user message",
        _ => return String::new(),
    };
    let has = match calls {
        0 if found.text_chars == 0 && results == 0 => " without text",
        0 => "",
        1 => " with a tool call",
        _ => " with several tool calls",
    };
    [who, has].concat()
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

impl RequestDialect {
    /// The one in which a place counts; `None` if it is not in a request's messages.
    fn of(unit: Unit) -> Option<Self> {
        match unit {
            Unit::Message | Unit::Content => Some(Self::Anthropic),
            Unit::ChatMessage => Some(Self::Chat),
            Unit::Item => Some(Self::Responses),
            Unit::Line | Unit::Setting => None,
        }
    }
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
    let is_bare = is_sent_as_it_stands(session);
    let first = live.iter().find(|&&entry| sender(session, entry, dialect).is_some());
    let is_instructed = first.is_some_and(|&first| session.kind(first) == Kind::Message(Role::System));
    // The agent's own instructions come before what is in the file.
    let are_added = !is_bare && !is_instructed && dialect != RequestDialect::Anthropic;
    let mut messages = if are_added { vec![Vec::new()] } else { Vec::new() };
    let mut last: Option<(Sender, u64)> = None;
    // Results in the records of their calls come after the whole turn.
    let mut results: Vec<u32> = Vec::new();
    for entry in live {
        let Some(sender) = sender(session, entry, dialect) else {
            continue;
        };
        let turn = session.turn(entry);
        let goes_on = last == Some((Sender::Model, turn)) && sender == Sender::Model;
        if !goes_on {
            put_results(&mut messages, &mut results, dialect);
        }
        let joins = last.is_some_and(|(before, _)| match (before, sender) {
            (Sender::Model, Sender::Model) => goes_on && dialect != RequestDialect::Responses,
            (Sender::Tool, Sender::Tool) => dialect == RequestDialect::Anthropic && !is_bare,
            (Sender::Model, _) | (_, Sender::Model) => false,
            _ => session.shape.joins_messages,
        });
        last = Some((sender, turn));
        match messages.last_mut().filter(|_| joins) {
            Some(message) => message.push(entry),
            None => messages.push(vec![entry]),
        }
        let more = messages_of(session, entry, sender, dialect) - 1;
        messages.extend((0..more).map(|_| vec![entry]));
        if sender == Sender::Model {
            results.extend(session.transcript.results_of(entry).map(|_| entry));
        }
    }
    put_results(&mut messages, &mut results, dialect);
    messages
}

/// Adds messages with these results: one, or one for each.
fn put_results(messages: &mut Vec<Vec<u32>>, results: &mut Vec<u32>, dialect: RequestDialect) {
    let results = core::mem::take(results);
    match dialect {
        RequestDialect::Anthropic if results.is_empty() => {}
        RequestDialect::Anthropic => messages.push(results),
        RequestDialect::Chat | RequestDialect::Responses => {
            messages.extend(results.into_iter().map(|entry| vec![entry]));
        }
    }
}

/// Whether the lines of the file are the messages of a request, and no agent's record of them.
fn is_sent_as_it_stands(session: &Session<'_>) -> bool {
    let format = session.format;
    let is_written = session.shape.sent_as_written && format.agents.is_empty();
    (format.is_bare() || is_written) && format.results != Results::WithCall
}

/// How many messages an entry is, without the results in the record of a call.
fn messages_of(session: &Session<'_>, entry: u32, sender: Sender, dialect: RequestDialect) -> usize {
    let results = session.transcript.results_of(entry).count();
    let calls = session.transcript.calls_of(entry).len();
    // What stands in the record of a call is mostly the text of its result.
    let texts = usize::from(session.entry(entry).text_chars > 0 && results == 0);
    match (dialect, sender) {
        (RequestDialect::Responses, Sender::Model) => (texts + calls).max(1),
        (RequestDialect::Anthropic, _) | (_, Sender::Model) => 1,
        _ => results.max(1),
    }
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

/// The entries of a message, or the one that has one of its blocks.
fn entries_of(session: &Session<'_>, message: &[u32], block: Option<usize>) -> Result<Vec<u32>, Fault> {
    let Some(mut wanted) = block else { return Ok(message.to_vec()) };
    for &entry in message {
        let blocks = blocks(session, entry)?;
        if wanted < blocks {
            return Ok(vec![entry]);
        }
        wanted -= blocks;
    }
    Ok(message.to_vec())
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
    use super::{Reading, blame};
    use alloc::string::ToString;

    const PI: &str = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"message","id":"aaaa1","parentId":null,"message":{"role":"user","content":"go"}}
{"type":"message","id":"aaaa2","parentId":"aaaa1","message":{"role":"assistant","content":[],"stopReason":"error"}}
{"type":"message","id":"aaaa3","parentId":"aaaa2","message":{"role":"assistant","content":[{"type":"toolCall","id":"toolu_1","name":"a","arguments":{}},{"type":"toolCall","id":"toolu_2","name":"a","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","id":"aaaa4","parentId":"aaaa3","message":{"role":"toolResult","toolCallId":"toolu_1","content":"x"}}
{"type":"message","id":"aaaa5","parentId":"aaaa4","message":{"role":"toolResult","toolCallId":"toolu_2","content":"x"}}
{"type":"message","id":"aaaa6","parentId":"aaaa5","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}
"#;

    fn at(text: &str, error: &str) -> (alloc::vec::Vec<u64>, usize) {
        let blame = blame(&Reading::new(&text.as_bytes()).unwrap(), error).unwrap().unwrap();
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
        let blame =
            blame(&Reading::new(&PI.as_bytes()).unwrap(), "found in `tool_result` blocks: toolu_2. Each")
                .unwrap()
                .unwrap();
        assert_eq!(blame.named, [("toolu_2".to_string(), [4, 6].into())]);
        assert!(blame.place.is_none());
    }
}
