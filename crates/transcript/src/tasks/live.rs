//! The rules for messages that are in no file yet: what a bot calls before it sends or stores them.
//!
//! Plain structs go in and come out. In between, the messages are written down as pi writes them, mended like any
//! transcript, and read back, so that there is one implementation of each rule, and a session that was kept in shape
//! like this has no findings once it is a file. Where messages come from, and where originals go, is not known here.
//!
//! | to do | function |
//! |---|---|
//! | one result, before it goes into the history | [`cap`] |
//! | calls and results that do not match | [`pair`] |
//! | results that are too long together | [`budget`] |
//! | results that the conversation has left behind | [`age`] |
//! | all of it, in this order | [`fit`] |
//! | a message that a summariser could not take | [`guard`] |
//! | what a summariser is given, in chunks that fit | [`chunks`] |
//! | what an error of the API means | [`overflow::classify`](crate::overflow::classify) |
//! | an answer that was cut off at its limit of tokens | [`overflow::escalate`](crate::overflow::escalate) |
//!
//! ```
//! use transcript::live::{self, Call, Message};
//! use transcript::{Policy, profile};
//!
//! // A tool has answered at length. What goes into the history says how much is gone, and where it is.
//! let policy = profile::find("openclaw-10915").unwrap().policy();
//! let answer = "x".repeat(40_000);
//! let capped = live::cap(&answer, "bash", false, &policy)?.unwrap();
//! assert!(capped.text.contains("[tailor: 8000 of 40000 chars omitted; full text: tailor show "));
//! assert_eq!(capped.original.text, answer);
//!
//! // A run was interrupted, and its call has no result. The next request would be refused.
//! let history = [
//!     Message::user("build it"),
//!     Message::assistant("", vec![Call::new("c1", "bash")]),
//!     Message::user("are you still there?"),
//! ];
//! let fitted = live::fit(&history, &Policy::default())?;
//! let told: Vec<_> = fitted.messages.iter().map(|now| (now.from, now.message.call.as_str())).collect();
//! assert_eq!(told, [(Some(0), ""), (Some(1), ""), (None, "c1"), (Some(2), "")]);
//! assert!(fitted.messages[2].message.error);
//!
//! // A pasted log is too long for a summariser. What people said is never cut, so that is only told.
//! assert!(live::guard(&"log ".repeat(30_000), &Policy::default()).is_some());
//! # Ok::<(), transcript::verdict::Worse>(())
//! ```

use crate::examine::mend::mend;
use crate::examine::verdict::Worse;
use crate::format::Writing;
use crate::model::entry::Role;
use crate::model::finding::Finding;
use crate::model::policy::{Policy, Selection};
use crate::plan::{Piece, Rendered};
use crate::rule::oversized_for_summary;
use crate::tasks::chunk::{self, Chunk, Limits};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use spans::json::{self, Kind, Value};
use spans::literal::decode;
use spans::marker::Id;
use spans::source::{Fault, Source, Span, read_span};

/// One message of a conversation. What else a bot keeps of it stays with the bot: see [`Now::from`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said; of a result, what the tool printed.
    pub text: String,
    /// When, in milliseconds since 1970, if that is known. Only the age of a prompt cache goes by it.
    pub written_ms: Option<u64>,
    /// The tools that the model calls with it.
    pub calls: Vec<Call>,
    /// Of a result: the id of the call that it answers.
    pub call: String,
    /// Of a result: the name of the tool.
    pub tool: String,
    /// Of a result: the tool failed.
    pub error: bool,
}

/// A call of a tool. Its arguments are nobody's business here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
}

impl Call {
    /// A call.
    pub fn new(id: &str, tool: &str) -> Self {
        Self { id: id.to_owned(), tool: tool.to_owned() }
    }
}

impl Message {
    fn of(role: Role, text: &str) -> Self {
        let (call, tool) = (String::new(), String::new());
        let (written_ms, calls, error) = (None, Vec::new(), false);
        Self { role, text: text.to_owned(), written_ms, calls, call, tool, error }
    }

    /// What a person says.
    pub fn user(text: &str) -> Self {
        Self::of(Role::User, text)
    }

    /// What the model says and calls.
    pub fn assistant(text: &str, calls: Vec<Call>) -> Self {
        Self { calls, ..Self::of(Role::Assistant, text) }
    }

    /// What a tool has answered.
    pub fn result(call: &str, tool: &str, text: &str, error: bool) -> Self {
        Self { call: call.to_owned(), tool: tool.to_owned(), error, ..Self::of(Role::Tool, text) }
    }
}

/// A conversation as it should be sent and stored.
#[derive(Clone)]
pub struct Fitted {
    /// All its messages, in order.
    pub messages: Vec<Now>,
    /// The texts that were cut for the first time. Whoever wants them back keeps them under their ids.
    pub originals: Vec<Original>,
    /// What was wrong; the lines are the numbers of the messages that were given, from 1.
    pub findings: Vec<Finding>,
}

/// A message as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Now {
    /// Which of the messages that were given it was; `None` if it stands for a result that was lost.
    pub from: Option<usize>,
    /// The message.
    pub message: Message,
}

/// A text before it was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// What the marker in its place says.
    pub id: Id,
    /// All of it.
    pub text: String,
}

/// A result that was too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped {
    /// What goes into the history.
    pub text: String,
    /// What the tool said.
    pub original: Original,
}

/// Why a summariser could not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// How many characters it has.
    pub chars: u64,
    /// They are more than [`Policy::summary_chars_max`].
    pub over_chars: bool,
    /// They are estimated to be more than half of [`Policy::window_tokens`], with a fifth to spare.
    pub over_tokens: bool,
}

/// One result within its limit (S1); `None` if it is. Whether calls of the same message are still unanswered does not
/// matter here. OpenClaw #10915 does this where results are stored, ChatCLI where tools return.
///
/// # Errors
///
/// See [`fit`].
pub fn cap(text: &str, tool: &str, error: bool, policy: &Policy) -> Result<Option<Capped>, Worse> {
    let history = [
        Message::assistant("", vec![Call::new("call", tool)]),
        Message::result("call", tool, text, error),
        Message::assistant("ok", Vec::new()),
    ];
    let fitted = only(&history, policy, &["S1"])?;
    let cut = fitted.messages.into_iter().find(|now| now.from == Some(1));
    let (cut, original) = (cut.map(|now| now.message.text), fitted.originals.into_iter().next());
    Ok(cut.zip(original).map(|(text, original)| Capped { text, original }))
}

/// Each call with one result right behind it (P1 to P6, P8), but for the newest message of the model, whose tools may be
/// running. ChatCLI does this before each request.
///
/// # Errors
///
/// See [`fit`].
pub fn pair(messages: &[Message], policy: &Policy) -> Result<Fitted, Worse> {
    only(messages, policy, &["P1", "P2", "P3", "P4", "P5", "P6", "P8"])
}

/// Results within their own limits and that of their turn (S1, S2). ChatCLI does this before each request.
///
/// # Errors
///
/// See [`fit`].
pub fn budget(messages: &[Message], policy: &Policy) -> Result<Fitted, Worse> {
    only(messages, policy, &["S1", "S2"])
}

/// Old results shortened or cleared, by turns and by how full the window is (S14, S15). ChatCLI and agent-max do this
/// at the beginning of a turn, OpenClaw before each request once the prompt cache is cold.
///
/// # Errors
///
/// See [`fit`].
pub fn age(messages: &[Message], policy: &Policy) -> Result<Fitted, Worse> {
    only(messages, policy, &["S14", "S15"])
}

/// Everything that the policy asks for: pairing, then limits, then ages, in one plan. What comes out goes in again
/// unchanged.
///
/// # Errors
///
/// [`Worse::Emptied`] when nothing of the conversation would be left: there was nothing in it but results without calls.
/// Anything else is a bug of this crate: what would come out has a problem that the messages did not have. They are as
/// they were, in either case.
pub fn fit(messages: &[Message], policy: &Policy) -> Result<Fitted, Worse> {
    let bytes = written(messages);
    let source = &bytes.as_slice();
    // Memory can always be read. If not, nothing is changed.
    let unread = |_: Fault| Worse::FormatLost;
    let mended = mend(source, policy).map_err(unread)?;
    let plan = mended.repair?.plan;
    let rendered = Rendered::new(source, &plan);
    let after = read_span(&rendered, Span::new(0, rendered.len())).map_err(unread)?;
    let originals = plan.texts().iter().map(|text| original(&bytes, text)).collect();
    let mut findings = mended.before.findings;
    for finding in &mut findings {
        finding.line = finding.line.saturating_sub(HEADER_LINES);
    }
    Ok(Fitted { messages: read(&after).map_err(unread)?, originals, findings })
}

/// Whether a text is too long for a summariser (S3): by its characters, and by its tokens whatever the characters say.
/// What is too long is named to the summariser and left out, as OpenClaw #10915 does.
pub fn guard(text: &str, policy: &Policy) -> Option<TooLong> {
    let chars = text.chars().count() as u64;
    let (over_chars, over_tokens) = oversized_for_summary::too_much(policy, chars);
    (over_chars || over_tokens).then_some(TooLong { chars, over_chars, over_tokens })
}

/// What a summariser is given of a conversation, in chunks that it can take: see [`chunk::chunks`]. The line of a message
/// is its number among those that were given, from 1.
///
/// ```
/// use transcript::chunk::{Limits, chars4};
/// use transcript::live::{self, Message};
/// let history = [Message::user("What is the matter?"), Message::assistant(&"word ".repeat(1_000), Vec::new())];
/// let limits = Limits {
///     tokens_max: 500,
///     chars_max: 0,
///     message_chars_max: 0,
///     window_tokens: 0,
///     budget_tokens: 0,
///     count: &chars4,
/// };
/// let chunks = live::chunks(&history, &limits);
/// assert_eq!(chunks.len(), 1);
/// assert_eq!(chunks[0].messages[0].text, "[user]\nWhat is the matter?\n\n");
/// assert_eq!((chunks[0].messages[1].line, chunks[0].messages[1].omitted_chars), (2, Some(5_000)));
/// ```
pub fn chunks(messages: &[Message], limits: &Limits<'_>) -> Vec<Chunk> {
    let (bytes, mut all) = (written(messages), Vec::new());
    let done = chunk::chunks(&bytes.as_slice(), limits, None, &mut |chunk| {
        let mut chunk = chunk.clone();
        for message in &mut chunk.messages {
            message.line = message.line.saturating_sub(HEADER_LINES);
        }
        all.push(chunk);
        true
    });
    debug_assert!(matches!(done, Ok(Ok(_))), "memory can be read, and what was written is known");
    all
}

/// The same with these rules alone, as far as the policy includes them.
fn only(messages: &[Message], policy: &Policy, codes: &[&str]) -> Result<Fitted, Worse> {
    let asked = codes.iter().copied().filter(|code| policy.selection.includes(code)).map(String::from);
    let (select, ignore) = (asked.collect::<Vec<_>>(), codes.iter().copied().map(String::from));
    // None is what an empty selection never means.
    let ignore = if select.is_empty() { ignore.collect() } else { Vec::new() };
    let select = if select.is_empty() { codes.iter().copied().map(String::from).collect() } else { select };
    let selection = Selection { select, ignore, allow: policy.selection.allow.clone() };
    fit(messages, &Policy { selection, ..policy.clone() })
}

/// Lines in front of the first message.
const HEADER_LINES: u64 = 1;

/// The messages as pi wrote them before entries had ids, each with its number.
fn written(messages: &[Message]) -> Vec<u8> {
    let mut out = br#"{"type":"session","version":1,"id":"live"}"#.to_vec();
    for (n, message) in messages.iter().enumerate() {
        out.push(b'\n');
        let line = Writing::new().text("type", b"message").raw("from", format!("{n}").as_bytes());
        out.extend(line.raw("message", &spelled(message)).end());
    }
    out.push(b'\n');
    out
}

fn spelled(message: &Message) -> Vec<u8> {
    let role: &[u8] = match message.role {
        Role::User => b"user",
        Role::Assistant => b"assistant",
        Role::Tool => b"toolResult",
        Role::System => b"system",
    };
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    if !message.text.is_empty() || message.calls.is_empty() {
        blocks.push(Writing::new().text("type", b"text").text("text", message.text.as_bytes()).end());
    }
    for Call { id, tool } in &message.calls {
        let block = Writing::new().text("type", b"toolCall").text("id", id.as_bytes());
        blocks.push(block.text("name", tool.as_bytes()).raw("arguments", b"{}").end());
    }
    let content = [b"[", &blocks.join(&b","[..])[..], b"]"].concat();
    let mut line = Writing::new().text("role", role).raw("content", &content);
    if let Some(millis) = message.written_ms {
        line = line.raw("timestamp", format!("{millis}").as_bytes());
    }
    match message.role {
        Role::Tool => {
            let error: &[u8] = if message.error { b"true" } else { b"false" };
            let line = line.text("toolCallId", message.call.as_bytes());
            line.text("toolName", message.tool.as_bytes()).raw("isError", error)
        }
        Role::Assistant => {
            line.text("stopReason", if message.calls.is_empty() { b"stop" } else { b"toolUse" })
        }
        Role::User | Role::System => line,
    }
    .end()
}

/// Reads back what [`written`] and a plan have made.
fn read(bytes: &[u8]) -> Result<Vec<Now>, Fault> {
    let (mut all, mut at) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let span = Span::new(at, at + line.len() as u64 - 1);
        at += line.len() as u64;
        let doc = json::parse(&bytes, span)?;
        let doc = doc.as_ref();
        let Some(said) = doc.and_then(|doc| doc.get("message")) else { continue };
        let from = doc.and_then(|doc| doc.get("from")).and_then(Value::whole);
        let from = from.and_then(|from| usize::try_from(from).ok());
        all.push(Now { from, message: message(bytes, said) });
    }
    Ok(all)
}

fn message(bytes: &[u8], said: Value<'_>) -> Message {
    let text = |value: Option<Value<'_>>| {
        let literal = value.filter(|value| value.kind() == Kind::String).map(Value::inner);
        literal.map_or_else(String::new, |span| unescaped(bytes, span))
    };
    let blocks = || said.get("content").into_iter().flat_map(Value::items);
    let calls = blocks().filter(|block| block.get("id").is_some());
    let is = |key: &str, word: &str| said.get(key).is_some_and(|value| value.is(word));
    Message {
        role: match () {
            () if is("role", "user") => Role::User,
            () if is("role", "assistant") => Role::Assistant,
            () if is("role", "toolResult") => Role::Tool,
            () => Role::System,
        },
        text: text(blocks().find_map(|block| block.get("text"))),
        written_ms: said.get("timestamp").and_then(Value::whole),
        calls: calls.map(|block| Call { id: text(block.get("id")), tool: text(block.get("name")) }).collect(),
        call: text(said.get("toolCallId")),
        tool: text(said.get("toolName")),
        error: said.get("isError").is_some_and(Value::is_true),
    }
}

/// The text of a literal, without its quotes.
fn unescaped(bytes: &[u8], inner: Span) -> String {
    let raw = bytes.get(inner.start as usize..inner.end as usize).unwrap_or_default();
    String::from_utf8_lossy(&decode(raw)).into_owned()
}

/// A text that a plan keeps, and its address: both are those of what was written.
fn original(bytes: &[u8], pieces: &[Piece]) -> Original {
    let mut raw = Vec::new();
    for piece in pieces {
        match piece {
            Piece::New(new) => raw.extend_from_slice(new),
            Piece::Kept(span) | Piece::Moved(span) => {
                raw.extend_from_slice(bytes.get(span.start as usize..span.end as usize).unwrap_or_default());
            }
        }
    }
    Original { id: Id::new(&blake3::hash(&raw)), text: String::from_utf8_lossy(&decode(&raw)).into_owned() }
}

#[cfg(test)]
mod tests;
