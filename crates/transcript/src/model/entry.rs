//! The words that all formats share: entry, tool call, tool result, boundary, branch.
//!
//! An [`Entry`] is one JSON object of the file, reduced to what rules need: ids, links, and the places of what
//! may be altered. It holds no text; who needs more reads the entry's span again.

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
    /// Here the context was compacted: what stands before it is replaced by a summary.
    Boundary,
    /// A record that says which entry is the newest (OpenClaw's `leaf`).
    Leaf,
    /// Anything else, known or not: settings, progress, labels. Copied as it is.
    Opaque,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Not said.
    #[default]
    Unknown,
    /// It waits for tools.
    ToolUse,
    /// It was done, or ran out of tokens.
    Done,
    /// The person interrupted it, or the request failed; its calls may be incomplete.
    Aborted,
}

/// What an entry says about its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// The format has no parents, or the entry names none.
    #[default]
    Missing,
    /// It says that it has none.
    Root,
    /// The parent's id.
    To(Id),
}

/// Records that agents write for themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// None of those, or not known.
    #[default]
    None,
    /// How far a running tool is; of use while it runs.
    Progress,
    /// What a request was, or was answered; never read again.
    RequestLog,
    /// What files were like at a message; a later one of the same message takes its place. [`Entry::group`] is the
    /// message.
    Snapshot,
    /// What a person calls the session; the last one counts.
    Title,
    /// The same, as a model called it.
    MadeTitle,
}

/// One object of the file.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Entry {
    /// Line in the file, from 1.
    pub line: u64,
    /// The object's bytes.
    pub span: Span,
    /// It stands behind another object on the same line.
    pub glued: bool,
    /// It is an element of a list in the last entry before it that is not: see
    /// [`crate::format::Format::records_in`].
    pub listed: bool,
    /// What it is.
    pub kind: Kind,
    /// Its own id.
    pub id: Option<Id>,
    /// Its parent.
    pub parent: Link,
    /// The parent's value as written (empty if there is none), for re-linking.
    pub parent_at: Span,
    /// Belongs to a subagent, a team, or was appended without moving the leaf.
    pub is_sidechain: bool,
    /// Injected; a person never typed it.
    pub injected: bool,
    /// Entries of one API message share this (`message.id` of Claude Code).
    pub group: Option<Id>,
    /// The model that wrote it.
    pub model: Option<Id>,
    /// Why the model stopped.
    pub stop: Stop,
    /// Its strings hold what can be said in JSON and not in every request; see [`spans::json::Doc::odd`].
    pub odd: Odd,
    /// What it is to the agent, if that is no part of the conversation.
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
    /// Claude Code: whether somebody said it. Summaries are user lines too; attachments are not.
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

/// What an entry points at, other than its parent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Boundary: the first entry that stays in context. Leaf: the newest entry.
    pub id: Option<Id>,
    /// That value as written.
    pub at: Span,
    /// Boundary of files without ids: the index, among all entries, of the first one that stays in context.
    pub index: Option<u64>,
    /// Boundary: the last entry that stays in context, where that is not the one before the boundary.
    pub end: Option<Id>,
}

/// A tool call of the model.
#[derive(Clone, Debug)]
pub struct Call {
    /// Index of the entry that holds it.
    pub entry: u32,
    /// The call's id; `None` if it has none.
    pub id: Option<Id>,
    /// What results that answer it have in common with it: the id, and its kind where that counts as well.
    pub key: Option<Id>,
    /// The id's literal as written.
    pub id_at: Span,
    /// The tool's name.
    pub name: Option<Id>,
    /// That name's literal as written; empty where it is a part of a longer one.
    pub name_at: Span,
    /// The block, an element of the content array.
    pub block: Span,
    /// The arguments were still being written when the turn ended.
    pub partial: bool,
    /// In a whole conversation: more was said behind the message that holds it.
    pub followed: bool,
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
    /// That id's literal as written.
    pub call_at: Span,
    /// The tool's name, where the result repeats it.
    pub name: Option<Id>,
    /// That name's literal as written; the call's where they are one record.
    pub name_at: Span,
    /// The block in the content array; the whole entry where an entry is one result.
    pub block: Span,
    /// The entry is this result and nothing else.
    pub whole: bool,
    /// The tool failed.
    pub error: bool,
    /// A program invented it for a lost one.
    pub synthetic: bool,
    /// How many images it holds.
    pub images: u32,
    pub(super) bodies_from: u32,
}

/// A thinking block that carries a signature or is redacted.
#[derive(Clone, Copy, Debug)]
pub struct Thinking {
    /// The block, an element of the content array unless it is fixed.
    pub block: Span,
    /// It is no block that could be taken out.
    pub fixed: bool,
}

/// What a piece of an entry is, before it is known who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// Somebody's text.
    Text,
    /// Thoughts of the model.
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

/// A stretch of an entry, and what it is: for [`crate::weight`].
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

/// What may be odd about content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentIssueKind {
    /// A text block of nothing but white space, or without a text.
    Blank,
    /// A text of nothing but white space in the result with this index; the inside of its literal.
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
    /// The same of a thought signature of Gemini, which belongs to a call.
    AlteredThought,
    /// Something stands before a result in this content; where that is sent as it stands.
    Misordered,
    /// The conversation begins with a call; of lines that are whole conversations.
    CallFirst,
    /// The request was refused by a content filter.
    Blocked,
    /// The row names another session than the first one.
    Foreign,
    /// The ordinal of the record does not count on from the one before.
    Ordinal,
    /// The record says how many messages were summed up.
    Counts(u64),
    /// A document: a PDF, mostly.
    Document,
    /// More tokens were counted than any request can have.
    Impossible,
    /// In a whole conversation, something stands between the result with this index and its call.
    Displaced(u32),
    /// In a whole conversation, the result with this index stands before its call.
    Early(u32),
    /// In a whole conversation, the call with this index is of a tool that its line does not offer.
    Undeclared(u32),
    /// The model speaks, and spoke right before.
    ModelAgain,
    /// The model says nothing in a whole conversation.
    NothingToLearn,
    /// A number that is to be a whole one and not negative, and is not.
    Count,
    /// An object that is to have a value of this name, and has not; and what will do.
    Lacks(&'static str, &'static str),
    /// A compaction begins with the record.
    CompactionBegins,
    /// A compaction ends with the record, and nothing came of it.
    CompactionFails,
    /// A call of a tool that the API runs itself, with this id.
    ServerCall(Id),
    /// The result of such a call.
    ServerResult(Id),
    /// Some bytes of a name in the record were written over; what it was, if only one will do. The block is its literal.
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
    /// Not a JSON object; the offset where it stops making sense.
    NotJson(u64),
    /// Nothing but NUL bytes, or NUL bytes around something.
    Nul(u64),
    /// More values, or more records, than are looked into.
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
