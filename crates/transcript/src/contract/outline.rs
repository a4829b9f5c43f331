//! The conversation as it would be sent, whatever the format of its file: who speaks, and what each message holds. Texts stay
//! where they are.

use crate::format::{EntryPart, Format};
use crate::model::draft::is_blank;
use crate::model::entry::{Kind, Role, StopReason};
use crate::session::{Answers, Session};
use alloc::vec::Vec;
use core::ops::Range;
use spans::json::{self, Value, ValueKind as Json};
use spans::literal::decode;
use spans::source::{Fault, Source, Span, read_span};

/// A message of the request.
pub(super) struct Message {
    pub(super) role: Role,
    /// The entry that it begins with.
    pub(super) entry: u32,
    pub(super) parts: Vec<Part>,
}

/// A part of a message.
pub(super) struct Part {
    pub(super) entry: u32,
    pub(super) what: What,
}

/// What a part is.
pub(super) enum What {
    /// A text: its literal.
    Text { literal: Span, blank: bool },
    /// A call, by its index.
    Call { index: usize, arguments: Arguments, signed: bool },
    /// A result, by its index.
    Result { index: usize },
    /// A result that the agent puts in when it sends, for this call.
    MadeUp { call: usize },
    /// An image, by its index; those in results name their result.
    Image { index: usize, result: Option<usize> },
    /// Thinking that its provider signed.
    Thinking,
}

/// What the arguments of a call are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// A JSON object, or a text that is one.
    Object,
    /// Other JSON.
    Json,
    /// No JSON.
    Text,
    /// Not there.
    Missing,
}

/// An item of `OpenAI`'s Responses that is stored with its id.
pub(super) struct Item {
    pub(super) entry: u32,
    pub(super) kind: Vec<u8>,
    pub(super) id: Vec<u8>,
}

/// The conversation.
#[derive(Default)]
pub(super) struct Outline {
    pub(super) messages: Vec<Message>,
    pub(super) items: Vec<Item>,
    /// How many bytes all of it has.
    pub(super) bytes: u64,
}

impl Outline {
    pub(super) fn of(session: &Session<'_>) -> Result<Self, Fault> {
        let mut writer = Writer { session, outline: Self::default(), open: None, placed: Vec::new() };
        writer.placed.resize(session.transcript.results.len(), false);
        let mut sent: Vec<u32> = session.sent().collect();
        let boundary = sent.iter().rposition(|&entry| session.kind(entry) == Kind::Boundary);
        if let Some(at) = boundary.filter(|_| session.shape.summary_first) {
            sent[..=at].rotate_right(1);
        }
        for entry in sent {
            writer.add(entry)?;
        }
        writer.close();
        Ok(writer.outline)
    }
}

struct Writer<'s, 'a> {
    session: &'s Session<'a>,
    outline: Outline,
    /// The turn of the model that goes on, if its results are still to come.
    open: Option<u64>,
    /// Results that are in the outline.
    placed: Vec<bool>,
}

impl Writer<'_, '_> {
    fn add(&mut self, entry: u32) -> Result<(), Fault> {
        let session = self.session;
        let Some(role) = role_of(session, entry) else { return Ok(()) };
        let parts = self.parts(entry)?;
        if role == Role::Assistant {
            let turn = session.turn(entry);
            if self.open != Some(turn) {
                self.close();
                self.outline.messages.push(Message { role, entry, parts: Vec::new() });
                self.open = Some(turn);
            }
            self.extend(parts);
            return Ok(());
        }
        // A note without a text is an attachment, which is sent as something else or not at all.
        if parts.is_empty() && matches!(session.kind(entry), Kind::Note | Kind::Boundary) {
            return Ok(());
        }
        self.close();
        self.results(entry);
        let is_answer = role == Role::Tool || session.transcript.results_of(entry).next().is_some();
        if !(parts.is_empty() && is_answer) {
            let role = if role == Role::Tool { Role::User } else { role };
            self.outline.messages.push(Message { role, entry, parts });
        }
        Ok(())
    }

    fn extend(&mut self, parts: Vec<Part>) {
        if let Some(last) = self.outline.messages.last_mut() {
            last.parts.extend(parts);
        }
    }

    /// Ends the turn of the model: the results come that its agent sends right after it.
    fn close(&mut self) {
        if self.open.take().is_none() {
            return;
        }
        let Some(message) = self.outline.messages.last() else { return };
        let call = |part: &Part| match part.what {
            What::Call { index, .. } => Some((part.entry, index)),
            _ => None,
        };
        let calls: Vec<(u32, usize)> = message.parts.iter().filter_map(call).collect();
        let gathers = gathers_results(self.session);
        for (entry, call) in calls {
            match self.session.result_of(call as u32) {
                Some(result) if gathers || self.session.is_in_record_of_call(result) => self.put(result),
                None if answers_itself(self.session.format) => {
                    self.answer(Part { entry, what: What::MadeUp { call } });
                }
                _ => {}
            }
        }
    }

    /// Puts in the results of an entry that are not there yet.
    fn results(&mut self, entry: u32) {
        for result in self.session.transcript.results_of(entry) {
            // An agent that gathers leaves out what it has a better one for.
            let is_again = matches!(self.session.answers[result], Answers::Again(_));
            if !(is_again && gathers_results(self.session)) {
                self.put(result);
            }
        }
    }

    fn put(&mut self, result: usize) {
        if core::mem::replace(&mut self.placed[result], true) {
            return;
        }
        let found = self.session.result(result);
        let entry = found.entry;
        self.outline.bytes += found.block.len();
        self.answer(Part { entry, what: What::Result { index: result } });
        let first = self.images_before(entry);
        for (at, image) in self.session.transcript.images_of(entry).iter().enumerate() {
            if found.block.contains(image.block) {
                self.answer(Part { entry, what: What::Image { index: first + at, result: Some(result) } });
            }
        }
    }

    /// Adds a part to the message with the results.
    fn answer(&mut self, part: Part) {
        if self.outline.messages.last().is_none_or(|last| last.role != Role::Tool) {
            self.outline.messages.push(Message { role: Role::Tool, entry: part.entry, parts: Vec::new() });
        }
        self.extend([part].into());
    }

    /// The index of an entry's first image.
    fn images_before(&self, entry: u32) -> usize {
        self.session.transcript.images().partition_point(|image| image.entry < entry)
    }

    /// What an entry holds besides results.
    fn parts(&mut self, entry: u32) -> Result<Vec<Part>, Fault> {
        let (session, mut parts) = (self.session, Vec::new());
        let transcript = session.transcript;
        let Some(doc) = json::parse(session.source, session.entry(entry).span)? else { return Ok(parts) };
        let results: Vec<Span> =
            transcript.results_of(entry).map(|result| session.result(result).block).collect();
        let is_in_result = |at: Span| results.iter().any(|block| block.contains(at));
        let thinking = transcript.thinking_of(entry).iter().map(|_| What::Thinking);
        parts.extend(thinking.map(|what| Part { entry, what }));
        let item = session
            .format
            .item_at
            .and_then(|way| way.iter().try_fold(doc.root()?, |value, name| value.get(name)));
        let is_free = item.and_then(|item| item.get("type")).is_some_and(|kind| kind.is("custom_tool_call"));
        let mut calls: Range<usize> = transcript.calls_of(entry);
        let mut told: Vec<(usize, Option<Given>)> = Vec::new();
        (session.format.parts)(&doc, &mut |part| match part {
            EntryPart::Text(text) if !is_in_result(text.span()) => {
                let what = What::Text { literal: text.span(), blank: is_blank(text) };
                parts.push(Part { entry, what });
            }
            EntryPart::Call { arguments, .. } => {
                told.extend(calls.next().map(|call| (call, arguments.map(Given::of))));
            }
            _ => {}
        });
        self.outline.bytes += parts.iter().map(|part| part.what.bytes()).sum::<u64>();
        told.extend(calls.map(|call| (call, None)));
        for (index, given) in told {
            let arguments = match given {
                // What is no JSON by design is sent elsewhere as an argument of its own.
                Some(_) if is_free => Arguments::Object,
                Some(given) => given.read(session.source)?,
                None => Arguments::Missing,
            };
            let signed = is_signed(session, index)?;
            self.outline.bytes += session.call(index as u32).sent_bytes;
            parts.push(Part { entry, what: What::Call { index, arguments, signed } });
        }
        let first = self.images_before(entry);
        for (at, image) in transcript.images_of(entry).iter().enumerate() {
            if !is_in_result(image.block) {
                parts.push(Part { entry, what: What::Image { index: first + at, result: None } });
            }
            self.outline.bytes += image.data.len();
        }
        self.outline.items.extend(item.and_then(|item| stored_item(entry, item)));
        Ok(parts)
    }
}

impl What {
    fn bytes(&self) -> u64 {
        match self {
            Self::Text { literal, .. } => literal.len(),
            _ => 0,
        }
    }
}

/// Arguments as they are written.
#[derive(Clone, Copy)]
struct Given {
    kind: Json,
    inner: Span,
}

impl Given {
    fn of(value: Value<'_>) -> Self {
        Self { kind: value.kind(), inner: value.inner() }
    }

    fn read(self, source: &dyn Source) -> Result<Arguments, Fault> {
        match self.kind {
            Json::Object => return Ok(Arguments::Object),
            Json::String => {}
            _ => return Ok(Arguments::Json),
        }
        let text = decode(&read_span(source, self.inner)?);
        written(&text)
    }
}

/// What a text is that stands for arguments.
pub(super) fn written(text: &[u8]) -> Result<Arguments, Fault> {
    let text = text.trim_ascii();
    let is_object =
        |text: &[u8]| Ok::<_, Fault>(json::parse(&text, Span::new(0, text.len() as u64))?.is_some());
    Ok(match is_object(text)? {
        true => Arguments::Object,
        false if is_object(&[b"{\"a\":", text, b"}"].concat())? => Arguments::Json,
        false => Arguments::Text,
    })
}

/// Whether a call has Gemini's signature.
fn is_signed(session: &Session<'_>, call: usize) -> Result<bool, Fault> {
    let block = json::parse(session.source, session.call(call as u32).block)?;
    Ok(block.is_some_and(|block| block.get("thoughtSignature").is_some_and(|signature| !signature.is(""))))
}

/// An item of Responses, if it has an id.
fn stored_item(entry: u32, item: Value<'_>) -> Option<Item> {
    let [kind, id] = item.pick(["type", "id"]);
    let (kind, id) = (kind?.text()?.into_owned(), id?.text()?.into_owned());
    Some(Item { entry, kind, id })
}

/// Whether the agent puts each result after its call, wherever it stands in the file.
fn gathers_results(session: &Session<'_>) -> bool {
    session.shape.pairs_anywhere
}

/// Whether the agent answers open calls itself when it sends.
fn answers_itself(format: &Format) -> bool {
    !format.agents.is_empty() && !format.leaves_calls_open
}

/// The role in which an entry is sent; `None` if it is not.
fn role_of(session: &Session<'_>, entry: u32) -> Option<Role> {
    match session.kind(entry) {
        _ if session.is_left_out(entry) => None,
        Kind::Message(Role::Assistant) if session.entry(entry).stop == StopReason::Aborted => {
            let mut calls = session.transcript.calls_of(entry);
            calls.any(|call| session.result_of(call as u32).is_some()).then_some(Role::Assistant)
        }
        Kind::Message(role) => Some(role),
        Kind::Note => Some(Role::User),
        Kind::Boundary => session.shape.summary_first.then_some(Role::User),
        Kind::Header | Kind::Leaf | Kind::Opaque => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, written};

    #[test]
    fn arguments_are_an_object_or_other_json_or_a_text() {
        for (text, wanted) in [
            ("{}", Arguments::Object),
            (" {\"a\":[1]} ", Arguments::Object),
            ("[]", Arguments::Json),
            ("\"a\"", Arguments::Json),
            ("null", Arguments::Json),
            ("", Arguments::Text),
            ("{\"a\":", Arguments::Text),
            ("ls -l", Arguments::Text),
            ("{}{}", Arguments::Text),
        ] {
            assert_eq!(written(text.as_bytes()).unwrap(), wanted, "{text}");
        }
    }
}
