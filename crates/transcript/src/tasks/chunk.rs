//! Splits what is in context into chunks that a summariser can take.
//!
//! A chunk never exceeds its limits. Calls and their results are never separated; one line that says its role and
//! length replaces a message that is too long. Characters are checked before tokens, because estimates of tokens are
//! far too low for dense text (OpenClaw #10915). The caller says how tokens are counted. Thinking is left out. Only one
//! chunk and one message are in memory at a time.

use crate::examine::context::Context;
use crate::format::EntryPart;
use crate::model::entry::{Kind, Role};
use crate::model::policy::{Depth, Policy};
use crate::read::scan::Reading;
use crate::rule::tool_of;
use crate::session::Session;
use crate::tasks::compact::{NotDrawn, Unable};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use spans::json::{self, Value, ValueKind as Json};
use spans::literal;
use spans::source::{Fault, Source, Span, read_span};

/// The smallest limit of a chunk in tokens: room for the line that replaces a message, with any tokenizer.
pub const TOKENS_MIN: u64 = 256;

/// The smallest limit of a chunk in characters.
pub const CHARS_MIN: u64 = 512;

/// If only tokens are limited, a chunk has at most this many characters for each.
const CHARS_A_TOKEN_MAX: u64 = 8;

/// Longest name of a tool in a line that replaces a message.
const NAME_CHARS_MAX: usize = 64;

/// How many bytes of arguments count as one character of a message's limit: an escape has six.
const BYTES_A_CHAR: u64 = 6;

/// What a chunk may hold.
#[derive(Clone, Copy)]
pub struct ChunkBounds<'t> {
    /// Most tokens of a chunk; raised to [`TOKENS_MIN`].
    pub tokens_max: u64,
    /// Most characters of a chunk; 0 for eight per token; raised to [`CHARS_MIN`].
    pub chars_max: u64,
    /// Longest message in characters; 0 for any length that fits into a chunk.
    pub message_chars_max: u64,
    /// The summariser's window: a message that takes half of it, with a fifth to spare, is too long; 0 for any.
    pub window_tokens: u64,
    /// Most tokens of all chunks together: the oldest messages are left out; 0 for any number.
    pub budget_tokens: u64,
    /// Counts the tokens of a text; never more than it has bytes.
    pub count: &'t dyn Fn(&str) -> u64,
}

impl fmt::Debug for ChunkBounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens_max, chars_max, message_chars_max, window_tokens, budget_tokens, count } = self;
        let limits = (tokens_max, chars_max, message_chars_max, window_tokens, budget_tokens);
        // Shows which counter it is.
        write!(f, "{limits:?}, a word of eight letters is {}", count("abcdefgh"))
    }
}

/// Estimates the tokens of a text: four characters each, rounded up.
///
/// ```
/// assert_eq!(transcript::chunk::chars4("hello"), 2);
/// ```
pub fn chars4(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Messages that a summariser takes at once.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// The messages, in model order.
    pub messages: Vec<ChunkMessage>,
    /// Their characters.
    pub chars: u64,
    /// Their tokens.
    pub tokens: u64,
}

impl Chunk {
    /// The messages as one text.
    pub fn text(&self) -> String {
        self.messages.iter().map(|message| &*message.text).collect()
    }

    fn add(&mut self, message: ChunkMessage) {
        self.chars += message.chars;
        self.tokens += message.tokens;
        self.messages.push(message);
    }

    fn take(&mut self, at: usize, with: ChunkMessage) -> ChunkMessage {
        self.chars = self.chars - self.messages[at].chars + with.chars;
        self.tokens = self.tokens - self.messages[at].tokens + with.tokens;
        core::mem::replace(&mut self.messages[at], with)
    }
}

/// One message of a chunk.
#[derive(Clone, Debug)]
pub struct ChunkMessage {
    /// Line of its entry, from 1.
    pub line: u64,
    /// Id of its entry.
    pub entry: Option<String>,
    /// `user`, `assistant`, `tool`, `system`, `note` or `summary`.
    pub role: &'static str,
    /// The tool that it calls or is from, if there is one.
    pub tool: Option<String>,
    /// The text to be read: a line with the role, the content, and an empty line.
    pub text: String,
    /// Characters of the text.
    pub chars: u64,
    /// Tokens of the text.
    pub tokens: u64,
    /// How many characters were left out, if this line replaces a message.
    pub omitted_chars: Option<u64>,
    /// How many messages it represents: several only if one line for each would be too much.
    pub stands_for: u64,
}

/// The totals of all chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkTotals {
    /// Number of chunks.
    pub chunks: u64,
    /// Messages in them, including those that were replaced.
    pub messages: u64,
    /// Messages that were replaced by a line.
    pub replaced: u64,
    /// The oldest messages, which exceeded the budget.
    pub left_out: u64,
    /// Characters of all chunks.
    pub chars: u64,
    /// Tokens of all chunks.
    pub tokens: u64,
}

/// Passes the chunks of the context to `each`, in order, until it returns `false`. With `until`, only what comes before
/// the message that begins at this byte. A transcript of an unknown format has none.
///
/// ```
/// use transcript::chunk::{ChunkBounds, chars4, chunks};
/// let text = br#"{"role":"user","content":"What is in a.txt?"}
/// {"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"read","arguments":"{}"}}]}
/// {"role":"tool","tool_call_id":"c","content":"milk"}
/// "#;
/// let limits = ChunkBounds {
///     tokens_max: 1000,
///     chars_max: 0,
///     message_chars_max: 100_000,
///     window_tokens: 200_000,
///     budget_tokens: 0,
///     count: &chars4,
/// };
/// let mut all = String::new();
/// let totals = chunks(&transcript::Reading::new(&&text[..]).unwrap(), &limits, None, &mut |chunk| {
///     all += &chunk.text();
///     true
/// });
/// assert_eq!(totals.unwrap().messages, 3);
/// assert_eq!(all, "[user]\nWhat is in a.txt?\n\n[assistant]\n[calls read] {}\n\n[tool read]\nmilk\n\n");
/// ```
pub fn chunks(
    reading: &Reading<'_>,
    limits: &ChunkBounds<'_>,
    until: Option<u64>,
    each: &mut dyn FnMut(&Chunk) -> bool,
) -> Result<ChunkTotals, NotDrawn> {
    let policy = Policy::default();
    let session = Session::of(reading, &policy, Depth::Sizes).ok_or(Unable::UnknownFormat)?;
    let context = Context::from_session(&session);
    let begins = |&entry: &u32| Some(session.entry(entry).span.start) == until;
    let end = match (until, context.entries.iter().position(begins)) {
        (None, _) => context.entries.len(),
        (Some(_), Some(end)) => end,
        (Some(_), None) => return Err(Unable::Moved.into()),
    };
    let cutter = Cutter { session: &session, context: &context, limits: limits.sound() };
    Ok(cutter.run(end, until.is_some(), each)?)
}

impl ChunkBounds<'_> {
    /// Raises limits that are too small to be kept.
    fn sound(self) -> Self {
        let tokens_max = self.tokens_max.max(TOKENS_MIN);
        let chars =
            if self.chars_max == 0 { tokens_max.saturating_mul(CHARS_A_TOKEN_MAX) } else { self.chars_max };
        let chars_max = chars.max(CHARS_MIN);
        let message = if self.message_chars_max == 0 { chars_max } else { self.message_chars_max };
        Self { tokens_max, chars_max, message_chars_max: message.min(chars_max), ..self }
    }

    fn holds(&self, chars: u64, tokens: u64) -> bool {
        chars <= self.chars_max && tokens <= self.tokens_max
    }

    /// Whether this many tokens are too many for one message.
    fn is_too_dense(&self, tokens: u64) -> bool {
        self.window_tokens > 0 && tokens.saturating_mul(12) > self.window_tokens.saturating_mul(5)
    }
}

struct Cutter<'a> {
    session: &'a Session<'a>,
    context: &'a Context,
    limits: ChunkBounds<'a>,
}

impl Cutter<'_> {
    /// `rest` says that what comes after stays as it is, and so do instructions.
    fn run(
        &self,
        end: usize,
        rest: bool,
        each: &mut dyn FnMut(&Chunk) -> bool,
    ) -> Result<ChunkTotals, Fault> {
        let mut totals = ChunkTotals::default();
        let from = self.affordable(end, rest, &mut totals)?;
        let mut chunk = Chunk::default();
        for range in self.context.groups(end).filter(|range| range.start >= from) {
            let group = self.group(range, rest)?;
            let fits = self.limits.holds(chunk.chars + group.chars, chunk.tokens + group.tokens);
            if !fits && !chunk.messages.is_empty() && !totals.hand_out(&mut chunk, each) {
                return Ok(totals);
            }
            group.messages.into_iter().for_each(|message| chunk.add(message));
        }
        if !chunk.messages.is_empty() {
            totals.hand_out(&mut chunk, each);
        }
        Ok(totals)
    }

    /// The first position from which on everything is within the budget.
    fn affordable(&self, end: usize, rest: bool, totals: &mut ChunkTotals) -> Result<usize, Fault> {
        if self.limits.budget_tokens == 0 {
            return Ok(0);
        }
        let mut sizes = Vec::new();
        for range in self.context.groups(end) {
            let group = self.group(range.clone(), rest)?;
            let messages: u64 = group.messages.iter().map(|message| message.stands_for).sum();
            sizes.push((range.start, group.tokens, messages));
        }
        let (mut from, mut spent) = (end, 0_u64);
        while let Some((start, tokens, messages)) = sizes.pop() {
            spent = spent.saturating_add(tokens);
            if spent > self.limits.budget_tokens {
                totals.left_out = messages + sizes.iter().map(|(_, _, messages)| messages).sum::<u64>();
                break;
            }
            from = start;
        }
        Ok(from)
    }

    /// Messages that belong together, made to fit into one chunk: the longest are replaced first.
    fn group(&self, range: Range<usize>, rest: bool) -> Result<Chunk, Fault> {
        let mut group = Chunk::default();
        for &entry in &self.context.entries[range] {
            if rest && self.session.kind(entry) == Kind::Message(Role::System) {
                continue;
            }
            group.add(self.message(entry)?);
            while !self.limits.holds(group.chars, group.tokens) {
                let whole =
                    (0..group.messages.len()).filter(|&at| group.messages[at].omitted_chars.is_none());
                // The first of equally long ones.
                let longest = whole.rev().max_by_key(|&at| group.messages[at].chars);
                let Some(at) = longest else {
                    self.collapse(&mut group);
                    break;
                };
                let found = &group.messages[at];
                let line = self.stand_in(found, found.chars);
                group.take(at, line);
            }
        }
        Ok(group)
    }

    /// Replaces all by one line.
    fn collapse(&self, group: &mut Chunk) {
        let Some(first) = group.messages.first() else { return };
        let chars = group.messages.iter().filter_map(|message| message.omitted_chars).sum();
        let stands_for = group.messages.iter().map(|message| message.stands_for).sum();
        let name = first.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
        let text = format!("[{}{name}: {stands_for} messages, {chars} characters left out]\n\n", first.role);
        let line = ChunkMessage {
            stands_for,
            ..self.sized(ChunkMessage { omitted_chars: Some(chars), ..first.clone() }, text)
        };
        *group = Chunk::default();
        group.add(line);
    }

    fn sized(&self, message: ChunkMessage, text: String) -> ChunkMessage {
        let (chars, tokens) = (text.chars().count() as u64, (self.limits.count)(&text));
        ChunkMessage { text, chars, tokens, ..message }
    }

    /// The line that replaces a message of this many characters.
    fn stand_in(&self, message: &ChunkMessage, chars: u64) -> ChunkMessage {
        let name = message.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
        let text = format!("[{}{name}: {chars} characters left out]\n\n", message.role);
        self.sized(ChunkMessage { omitted_chars: Some(chars), text: String::new(), ..message.clone() }, text)
    }

    fn message(&self, entry: u32) -> Result<ChunkMessage, Fault> {
        let session = self.session;
        let found = session.entry(entry);
        let blank = ChunkMessage {
            line: found.line,
            entry: found.id.map(|id| String::from_utf8_lossy(session.transcript.ids.text(id)).into_owned()),
            role: role(found.kind),
            tool: self.tool(entry),
            text: String::new(),
            chars: 0,
            tokens: 0,
            omitted_chars: None,
            stands_for: 1,
        };
        let limit = self.limits.message_chars_max;
        let calls =
            session.transcript.calls_of(entry).map(|call| session.call(call as u32).sent_bytes).sum::<u64>();
        if found.text_chars > limit || calls > limit.saturating_mul(BYTES_A_CHAR) {
            return Ok(self.stand_in(&blank, found.text_chars.max(calls)));
        }
        let Some(text) = self.words(entry, &blank)? else {
            return Ok(self.stand_in(&blank, found.span.len()));
        };
        let chars = text.chars().count() as u64;
        if chars > limit {
            return Ok(self.stand_in(&blank, chars));
        }
        let message = self.sized(blank, text);
        let fits =
            self.limits.holds(message.chars, message.tokens) && !self.limits.is_too_dense(message.tokens);
        Ok(if fits { message } else { self.stand_in(&message, message.chars) })
    }

    /// The tool that an entry calls or is from, in characters that need no escape anywhere.
    fn tool(&self, entry: u32) -> Option<String> {
        let session = self.session;
        let from = session.transcript.results_of(entry).find_map(|result| tool_of(session, result));
        let calls = || session.transcript.calls_of(entry).find_map(|call| session.call(call as u32).name);
        let name = String::from_utf8_lossy(session.transcript.ids.text(from.or_else(calls)?));
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.:/@".contains(c) { c } else { '?' };
        Some(name.chars().take(NAME_CHARS_MAX).map(plain).collect())
    }

    /// The text of an entry; `None` if it is longer than was counted, and too long.
    fn words(&self, entry: u32, message: &ChunkMessage) -> Result<Option<String>, Fault> {
        let source = self.session.source;
        let name = if message.role == "tool" { message.tool.as_deref() } else { None };
        let mut text = match name {
            Some(tool) => format!("[{} {tool}]\n", message.role),
            None => format!("[{}]\n", message.role),
        };
        let mut room = Some(self.limits.message_chars_max.saturating_mul(BYTES_A_CHAR));
        let mut failed = None;
        let mut add = |part: EntryPart<'_>| {
            room = room.and_then(|room| room.checked_sub(length(part)));
            match room.map(|_| self.spoken(entry, part)) {
                None => {}
                Some(Err(fault)) => failed = Some(fault),
                Some(Ok(spoken)) if spoken.is_empty() => {}
                Some(Ok(spoken)) => {
                    text += &spoken;
                    if !text.ends_with('\n') {
                        text.push('\n');
                    }
                }
            }
        };
        if let Some(doc) = json::parse(source, self.session.entry(entry).span)? {
            (self.session.format.parts)(&doc, &mut add);
        }
        text.push('\n');
        failed.map_or(Ok(room.map(|_| text)), Err)
    }

    fn spoken(&self, entry: u32, part: EntryPart<'_>) -> Result<String, Fault> {
        let source = self.session.source;
        match part {
            EntryPart::Text(text) => said(source, text),
            EntryPart::Call { name, arguments } => {
                let name = match (name, name.and_then(|name| self.named_within(entry, name.span()))) {
                    (_, Some(tool)) => tool,
                    (Some(name), None) => said(source, name)?,
                    (None, None) => "a tool".to_owned(),
                };
                let arguments = arguments.map_or(Ok(String::new()), |arguments| said(source, arguments))?;
                Ok(format!("[calls {name}] {arguments}"))
            }
            EntryPart::Image => Ok("[image]".to_owned()),
            EntryPart::Result => Ok(String::new()),
        }
    }

    /// The tool of the call at this place, if its name is only a part of the literal (AI SDK's messages for the
    /// screen).
    fn named_within(&self, entry: u32, at: Span) -> Option<String> {
        let transcript = self.session.transcript;
        let calls = &transcript.calls[transcript.calls_of(entry)];
        let begun = calls.partition_point(|call| call.block.start <= at.start);
        let call =
            calls[..begun].last().filter(|call| call.name_at().is_empty() && call.block.contains(at))?;
        Some(String::from_utf8_lossy(transcript.id_text(call.name)).into_owned())
            .filter(|name| !name.is_empty())
    }
}

impl ChunkTotals {
    fn hand_out(&mut self, chunk: &mut Chunk, each: &mut dyn FnMut(&Chunk) -> bool) -> bool {
        self.chunks += 1;
        self.messages += chunk.messages.iter().map(|message| message.stands_for).sum::<u64>();
        let gone = chunk.messages.iter().filter(|message| message.omitted_chars.is_some());
        self.replaced += gone.map(|message| message.stands_for).sum::<u64>();
        self.chars += chunk.chars;
        self.tokens += chunk.tokens;
        each(&core::mem::take(chunk))
    }
}

fn role(kind: Kind) -> &'static str {
    match kind {
        Kind::Message(Role::User) => "user",
        Kind::Message(Role::Assistant) => "assistant",
        Kind::Message(Role::Tool) => "tool",
        Kind::Message(Role::System) => "system",
        Kind::Boundary => "summary",
        _ => "note",
    }
}

/// The text of a string, or the raw bytes of anything else.
fn said(source: &dyn Source, value: Value<'_>) -> Result<String, Fault> {
    let bytes = match value.kind() {
        Json::String => literal::decode(&read_span(source, value.inner())?),
        _ => read_span(source, value.span())?,
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// How many bytes a part has in the file.
fn length(part: EntryPart<'_>) -> u64 {
    let length = |value: Option<Value<'_>>| value.map_or(0, |value| value.span().len());
    match part {
        EntryPart::Text(text) => text.span().len(),
        EntryPart::Call { name, arguments } => length(name) + length(arguments),
        EntryPart::Result | EntryPart::Image => 0,
    }
}
