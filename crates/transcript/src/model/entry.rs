//! What formats read records into: entries, tool calls, tool results, boundaries.
//!
//! An [`Entry`] is one JSON object of the file, reduced to what rules need: ids, links, and the spans of what may be altered.
//! It holds no text; for more than that, parse the entry's span again.

use super::ids::Id;
use spans::json::Odd;
use spans::source::Span;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A person, or a program on a person's behalf.
    User,
    /// The model.
    Assistant,
    /// A tool: the entry holds results and nothing that a person said.
    Tool,
    /// Instructions.
    System,
}

/// What an entry is to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first entry of formats that have one. Never altered.
    Header,
    /// Part of the conversation that the model sees.
    Message(Role),
    /// Seen by the model, but neither said by a person nor by the model: summaries, injected notes.
    Note,
    /// The record of a compaction: a summary replaces what comes before it.
    Boundary,
    /// A record that says which entry is the newest (OpenClaw's `leaf`).
    Leaf,
    /// Anything else, known or not: settings, progress, labels. Copied as it is.
    Opaque,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The entry does not say.
    #[default]
    Unknown,
    /// It waits for tools.
    ToolUse,
    /// It was done, or ran out of tokens.
    Done,
    /// The user interrupted it, or the request failed; its calls may be incomplete.
    Aborted,
}

/// What an entry says about its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// The format has no parents, or the entry names none.
    #[default]
    Missing,
    /// It is a root: the field is there and holds no id.
    Root,
    /// The parent's id.
    To(Id),
}

/// Records that agents write for themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Not such a record, or not known to be one.
    #[default]
    None,
    /// Progress of a running tool; of no use once it has ended.
    Progress,
    /// A request failed and is tried again.
    Retry,
    /// A log of a request or its response; never read again.
    RequestLog,
    /// The state of files at a message, which is [`Entry::group`]. A later snapshot for the same message replaces it.
    Snapshot,
    /// The title that the user gave the session; the last one counts.
    Title,
    /// The title that a model made.
    MadeTitle,
    /// The texts of results as they were last sent. Only the newest such record is read.
    SentTexts,
    /// The conversation begins anew after it.
    Reset,
    /// It is never sent, and not loaded.
    Excluded,
    /// How a request ended, beside the message that it was to make: [`crate::format::Format::broken`] reads it. Only a record
    /// of an error is one.
    Failure,
}

/// A place in a record, told by how far it is from another one: half as long as a [`Span`]. What is 2 GiB away, or longer
/// than 4 GiB, counts as not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NearSpan {
    from: i32,
    bytes: u32,
}

impl NearSpan {
    pub(super) fn new(span: Span, base: u64) -> Self {
        let from = i32::try_from(span.start.wrapping_sub(base).cast_signed());
        match (from, u32::try_from(span.len())) {
            (Ok(from), Ok(bytes @ 1..)) => Self { from, bytes },
            _ => Self::default(),
        }
    }

    fn at(self, base: u64) -> Span {
        if self.bytes == 0 {
            return Span::default();
        }
        let start = base.wrapping_add_signed(self.from.into());
        Span::new(start, start + u64::from(self.bytes))
    }
}

/// One object of the file.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Entry {
    /// Line in the file, from 1.
    pub line: u64,
    /// The object's bytes.
    pub span: Span,
    /// It follows another object on the same line.
    pub glued: bool,
    /// It is an element of a list in the last entry before it that is not `listed`: see
    /// [`crate::format::Format::records_in`].
    pub listed: bool,
    /// What it is.
    pub kind: Kind,
    /// Its own id.
    pub id: Option<Id>,
    /// Its parent.
    pub parent: Link,
    pub(super) parent_at: NearSpan,
    /// Belongs to a subagent, a team, or was appended without moving the leaf.
    pub is_sidechain: bool,
    /// Injected; a person never typed it.
    pub injected: bool,
    /// Entries of one API message share this (`message.id` of Claude Code).
    pub group: Option<Id>,
    /// The model that wrote it.
    pub model: Option<Id>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// Its strings hold characters that JSON allows and some readers refuse; see [`spans::json::Doc::odd`].
    pub odd: Odd,
    /// Which service record it is, if it is one.
    pub service: Service,
    /// Characters of the text that the model sees.
    pub text_chars: u64,
    pub(super) calls_from: u32,
    pub(super) results_from: u32,
    pub(super) sides_from: u32,
    pub(super) thinking_from: u32,
    pub(super) targets_from: u32,
}

impl Entry {
    /// The parent's value as written (empty if there is none), for re-linking.
    pub fn parent_at(&self) -> Span {
        self.parent_at.at(self.span.start)
    }

    /// Whether it is what a request ended with: something that the model said, or a record of an error.
    pub(crate) fn ends_request(&self) -> bool {
        self.kind == Kind::Message(Role::Assistant) || self.service == Service::Failure && !self.is_sidechain
    }

    /// Claude Code: whether it is a message. Summaries are user lines too; attachments are not.
    pub(crate) fn is_spoken(&self) -> bool {
        match self.kind {
            Kind::Message(_) => true,
            Kind::Note => self.text_chars > 0,
            _ => false,
        }
    }

    /// Claude Code: whether it is part of the main conversation.
    pub(crate) fn is_main(&self) -> bool {
        !self.is_sidechain && !self.injected
    }
}

// A long session has hundreds of thousands of each, and they are most of the memory that it takes.
const _: () = assert!(size_of::<Entry>() <= 88 && size_of::<Call>() <= 64 && size_of::<ToolResult>() <= 64);

/// What an entry points at, other than its parent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Boundary: the first entry that stays in context. Leaf: the newest entry.
    pub id: Option<Id>,
    /// That value as written.
    pub at: Span,
    /// Boundary of files without ids: the index, among all entries, of the first one that stays in context.
    pub index: Option<u64>,
    /// Boundary: the last entry that stays in context, if that is not the one before the boundary.
    pub end: Option<Id>,
}

/// A tool call of the model.
#[derive(Clone, Debug)]
pub struct Call {
    /// Index of the entry that holds it.
    pub entry: u32,
    /// The call's id; `None` if it has none.
    pub id: Option<Id>,
    /// What it pairs by: a result with the same key answers it. The id, together with a kind where a format has several.
    pub key: Option<Id>,
    pub(super) id_at: NearSpan,
    /// The tool's name.
    pub name: Option<Id>,
    pub(super) name_at: NearSpan,
    /// The block, an element of the content array.
    pub block: Span,
    /// How many bytes of it are sent as the call.
    pub sent_bytes: u64,
    /// The arguments were still being written when the turn ended.
    pub partial: bool,
    /// In a whole conversation: another message follows the one that holds it.
    pub followed: bool,
}

impl Call {
    /// The id's literal as written.
    pub fn id_at(&self) -> Span {
        self.id_at.at(self.block.start)
    }

    /// The literal of the tool's name as written; empty if the name is a part of a longer literal.
    pub fn name_at(&self) -> Span {
        self.name_at.at(self.block.start)
    }
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub struct ToolResult {
    /// Index of the entry that holds it.
    pub entry: u32,
    /// The id of the call that it answers.
    pub call: Option<Id>,
    /// See [`Call::key`].
    pub key: Option<Id>,
    pub(super) call_at: NearSpan,
    /// The tool's name, where the result repeats it.
    pub name: Option<Id>,
    pub(super) name_at: NearSpan,
    /// The block in the content array; the whole entry where an entry is one result.
    pub block: Span,
    /// The entry is this result and nothing else.
    pub whole: bool,
    /// The tool failed.
    pub error: bool,
    /// A program made it up for a lost one.
    pub synthetic: bool,
    /// How many images it holds.
    pub images: u32,
    pub(super) bodies_from: u32,
}

impl ToolResult {
    /// The literal of the call's id as written.
    pub fn call_at(&self) -> Span {
        self.call_at.at(self.block.start)
    }

    /// The literal of the tool's name as written; the call's if they are one record.
    pub fn name_at(&self) -> Span {
        self.name_at.at(self.block.start)
    }

    /// Says which block it is.
    pub(super) fn set_block(&mut self, block: Span) {
        let (call_at, name_at) = (self.call_at(), self.name_at());
        self.call_at = NearSpan::new(call_at, block.start);
        self.name_at = NearSpan::new(name_at, block.start);
        self.block = block;
    }
}

/// A thinking block that carries a signature or is redacted.
#[derive(Clone, Copy, Debug)]
pub struct Thinking {
    /// The block, an element of the content array unless it is `fixed`.
    pub block: Span,
    /// It cannot be taken out, because it is not an element of an array.
    pub fixed: bool,
}

/// What a piece of an entry is. Whose text it is depends on the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// Text of a message.
    Text,
    /// Thinking of the model.
    Thinking,
    /// A call with its arguments.
    Call,
    /// A result's text.
    Result,
    /// An image.
    Image,
    /// What the model never sees.
    Side,
}

/// A piece of an entry and its kind, for [`crate::weight`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) kind: PieceKind,
    /// Index of the call or result that it belongs to.
    pub(crate) owner: u32,
    pub(crate) span: Span,
    /// How many characters of it the model sees.
    pub(crate) chars: u64,
}

/// Something in the content of an entry that providers may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentIssue {
    /// Index of the entry.
    pub entry: u32,
    /// What it is.
    pub kind: ContentIssueKind,
    /// The block, an element of the content array; the entry where it is about all of it.
    pub block: Span,
}

/// What may be wrong with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentIssueKind {
    /// A text block of nothing but white space, or without a text.
    Blank,
    /// A text of nothing but white space in the result with this index; the inside of its literal. Or a failed result whose content is
    /// empty: all of that, or where a block goes into its list.
    BlankResult(u32, Span),
    /// There is nothing in the message that could be sent.
    Empty,
    /// The last block is thinking.
    ThinkingLast,
    /// The last block is a reasoning item of `OpenAI`.
    ReasoningLast,
    /// A thinking block has no signature, or a redacted one no data.
    Unsigned,
    /// A signature was altered: it holds what no signature can.
    Altered,
    /// A thought signature of Gemini, which belongs to a call, was altered.
    AlteredThought,
    /// Something comes before a result in this content, in a format that is sent as it is.
    Misordered,
    /// In a whole conversation, a call comes first.
    CallFirst,
    /// The request was refused by a content filter.
    Blocked,
    /// The row names another session than the first one.
    Foreign,
    /// The ordinal of the record is not one more than that of the record before.
    Ordinal,
    /// The record says how many messages a summary stands for.
    Counts(u64),
    /// A document: a PDF, mostly.
    Document,
    /// It reports more tokens than any request can have.
    Impossible,
    /// In a whole conversation, something is between the result with this index and its call.
    Displaced(u32),
    /// In a whole conversation, the result with this index comes before its call.
    Early(u32),
    /// In a whole conversation, the call with this index is of a tool that its line does not offer.
    Undeclared(u32),
    /// A second assistant message in a row.
    ModelAgain,
    /// A whole conversation without an assistant message.
    NothingToLearn,
    /// A field that must hold a natural number and does not.
    Count,
    /// An object without a needed value of this name; the second string is a value that is acceptable.
    Lacks(&'static str, &'static str),
    /// A compaction begins with the record.
    CompactionBegins,
    /// A compaction that leaves what the user said before it, and nothing else.
    LeavesPrompts,
    /// A turn begins with the record.
    TurnBegins,
    /// The record takes back so many turns before it.
    TakesBack(u64),
    /// A compaction ends with the record, without success.
    CompactionFails,
    /// A call of a tool that the API runs itself, with this id.
    ServerCall(Id),
    /// The result of such a call.
    ServerResult(Id),
    /// The name of a kind that the format does not know; the block is its literal.
    Unknown,
    /// The name of a field that the format does not know; the block is its literal.
    UnknownField,
    /// Some bytes of a name in the record were overwritten; the original name, if only one fits. The block is its literal.
    Corrupted(Option<&'static str>),
}

/// A line, or a part of one, that is not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Line in the file, from 1.
    pub line: u64,
    /// The bytes concerned.
    pub span: Span,
    /// What is wrong.
    pub kind: DamageKind,
}

/// What may be wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// Not a JSON object; the offset of the first byte that cannot be part of one.
    NotJson(u64),
    /// It has NUL bytes, alone or around something; the offset of the first.
    Nul(u64),
    /// More values or records than are read.
    TooComplex,
    /// The last line ends in the middle of an object.
    Torn,
    /// The last line is whole, but has no line break.
    Unterminated,
    /// Readable, but with bytes that are not UTF-8; the offset of the first.
    NotUtf8(u64),
    /// A byte order mark before the first line.
    Bom,
    /// Readable, but with characters that some readers take for line breaks; the offset of the first.
    Separators(u64),
}
