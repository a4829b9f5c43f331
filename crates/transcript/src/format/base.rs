//! What a format is: what it says about files, about an object, and about how its agent writes.

use super::names::Names;
use super::writing::Writing;
use crate::model::draft::Draft;
use crate::model::finding::Severity;
use alloc::vec::Vec;
use core::fmt;
use spans::json::{Doc, Value};
use spans::source::Span;

/// A transcript format. What has a default is what most formats need not say; docs/formats.md shows how one is added.
pub trait Format: Sync {
    /// Its name, as printed and as used in fixtures.
    fn name(&self) -> &'static str;

    /// What an object, one of the first of a file, says about the file being of this format. By structure alone, and
    /// never a guess: an object that another format calls its own, and of which this one says nothing, makes the file
    /// neither's.
    fn vote(&self, doc: &Doc) -> Vote;

    /// The names that its records have: what tells a damaged key.
    fn names(&self) -> &'static [Names] {
        &[]
    }

    /// Whether an object, found whole among fragments, is a record of such a file and no part of one. What persons said
    /// is in records that other formats write as well.
    fn is_record(&self, doc: &Doc) -> bool {
        matches!(self.vote(doc), Vote::Own | Vote::Fits)
    }

    /// What an object means.
    fn read(&self, doc: &Doc, entry: &mut Draft<'_>);

    /// The list in an object whose elements are records like those on lines of their own.
    fn records_in<'d>(&self, doc: &'d Doc) -> Option<Value<'d>> {
        let _ = doc;
        None
    }

    /// What a record of [`Format::records_in`] means.
    fn read_record(&self, record: Value<'_>, entry: &mut Draft<'_>) {
        let _ = (record, entry);
    }

    /// Whether a file begins with a header, without which the owning program does not read it.
    fn has_header(&self) -> bool {
        false
    }

    /// Where a call has its arguments; `None` if whoever reads it can do without.
    fn arguments(&self) -> Option<Arguments> {
        None
    }

    /// Whether the ids of calls, and the names of tools, go to the API as they stand, which takes only some.
    fn has_plain_ids(&self) -> bool {
        false
    }

    /// Whether APIs ask for an id of each call.
    fn calls_have_ids(&self) -> bool {
        true
    }

    /// Whether the API pairs calls and results by position, and so takes an id again in a later turn.
    fn takes_ids_again(&self) -> bool {
        false
    }

    /// Whether the agent goes on behind a line that it cannot read; else it refuses the file.
    fn skips_unreadable_lines(&self) -> bool {
        true
    }

    /// Whether the agent reads a session in which a byte here, of a line that it skips for that byte, is U+FFFD.
    fn takes_any_text_at(&self, _: &Doc, _: Span) -> bool {
        true
    }

    /// How entries hang together.
    fn shape(&self) -> Shape;

    /// How far its files may be changed.
    fn level(&self) -> Level {
        Level::LiveInsert
    }

    /// What is kept elsewhere about how many records or lines there are; then none is added, taken out or moved.
    fn counted(&self) -> Option<Counted> {
        None
    }

    /// What says that the owning program is at work on a file, in the order in which it is asked. Nothing but quiet says
    /// that an archive's is not.
    fn gates(&self) -> &'static [Gate] {
        if self.level() == Level::Archive { &[Gate::Idle] } else { &[] }
    }

    /// Whether its agent sends calls that were open when it ended without a result, so that the API refuses the session.
    /// Others answer them on loading.
    fn leaves_calls_open(&self) -> bool {
        false
    }

    /// Where a missing result goes.
    fn answer(&self) -> Answer {
        Answer::Nowhere
    }

    /// Spells the result that was lost; asked only where [`Format::answer`] names a place.
    fn missing_result(&self, lost: &Lost<'_>) -> Vec<u8> {
        let _ = lost;
        Vec::new()
    }

    /// Where the result of a call stands.
    fn results(&self) -> Results {
        Results::Lines
    }

    /// Where the line of a result names its call once more: keys that lead there.
    fn names_call_again(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether results are repeated where the model never sees them.
    fn copies_results(&self) -> bool {
        false
    }

    /// Whether a message of the model may say that it was aborted while a call was written.
    fn aborts(&self) -> bool {
        false
    }

    /// Whether a compaction names the first entry that stays in context.
    fn compactions_name_what_stays(&self) -> bool {
        false
    }

    /// What may be wrong with content.
    fn content(&self) -> Content {
        Content::default()
    }

    /// A message that holds these results and nothing else, for [`Answer::NextUser`].
    fn results_message(&self, blocks: &[u8]) -> Vec<u8> {
        Writing::new().text("role", b"user").raw("content", &[b"[", blocks, b"]"].concat()).end()
    }

    /// Where the owning program, and others that write the same bytes, keep their transcripts.
    fn roots(&self) -> &'static [Root] {
        &[]
    }

    /// What an entry says, part by part: what a reader would want to see of it. Thinking is left out.
    fn parts<'d>(&self, doc: &'d Doc, each: &mut dyn FnMut(Part<'d>));

    /// How a message of the model says that it was not finished.
    fn broken<'d>(&self, doc: &'d Doc) -> Option<Broken<'d>> {
        let _ = doc;
        None
    }

    /// Spells a compaction: the lines, in order, without line breaks. None where it is not known how the owning program
    /// would read one.
    fn compaction(&self, made: &Compaction<'_>) -> Vec<Vec<u8>> {
        let _ = made;
        Vec::new()
    }
}

/// Where calls have their arguments.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// The names that lead to them; the first of these whose holder is there counts.
    pub at: &'static [&'static [&'static str]],
    /// How none are written.
    pub none: &'static str,
}

impl Arguments {
    /// As Anthropic has them.
    pub(crate) const INPUT: Self = Self { at: &[&["input"]], none: "{}" };
}

/// A part of what an entry says.
#[derive(Clone, Copy, Debug)]
pub enum Part<'d> {
    /// A text: a string of the entry.
    Text(Value<'d>),
    /// The model calls a tool.
    Call {
        /// The tool.
        name: Option<Value<'d>>,
        /// The arguments: an object, or a string that holds one.
        arguments: Option<Value<'d>>,
    },
    /// A tool answers; its texts follow.
    Result,
    /// A picture.
    Image,
}

/// How a message of the model says that it was not finished.
#[derive(Clone, Copy, Debug)]
pub enum Broken<'d> {
    /// The request failed; what the provider said, if that is kept.
    Error(Option<Value<'d>>),
    /// It ran out of output tokens.
    CutOff,
}

/// A compaction that is to be written, for [`Format::compaction`].
pub struct Compaction<'a> {
    /// An entry whose envelope the new lines share: for a tree the first that stays, or the newest one.
    pub doc: &'a Doc,
    /// Reads a value of that entry as it is written.
    pub raw: &'a dyn Fn(Value<'_>) -> Vec<u8>,
    /// Ids of the new entries, in the format's own form; as many as it needs are used.
    pub ids: [&'a str; 2],
    /// Id of the entry before, decoded; empty if there is none.
    pub parent: &'a [u8],
    /// Id of the first entry that stays in context, decoded.
    pub first_kept: &'a [u8],
    /// When the entry before was written, as it is written.
    pub time: &'a str,
    /// What stands for all that is left out.
    pub summary: &'a str,
    /// About how many tokens the context had.
    pub tokens_before: u64,
}

impl fmt::Debug for dyn Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How entries hang together, and so which of them the owning program would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A tree by parent ids, of which one path is live; order is the order of the path (pi).
    Branch,
    /// A tree by parent ids; blocks of one message and results hang on side branches and are gathered again
    /// on loading, and calls and results find each other by id wherever they stand (Claude Code).
    Graph,
    /// The order of the lines is all there is.
    List,
    /// Records by id: the last one with an id counts, at the place of the first (Gemini CLI).
    Upserts,
    /// The order of the lines; what the model says in one go is the run of its lines, and calls and results find each
    /// other by id wherever they stand (Codex, Copilot).
    Log,
}

/// What may be wrong with the content of messages, as far as [`Format::read`] notes it. Rules about what it does not
/// note have nothing to say in that format.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Content {
    /// How bad it is if a turn in the context is empty: some programs leave such things out of what they send,
    /// and some providers take them.
    pub empty: Option<Severity>,
    /// The same of a text of nothing but white space.
    pub blank: Option<Severity>,
    /// How bad an image is that its provider refuses. `OpenAI` makes large ones small: there it is a warning.
    pub images: Option<Severity>,
    /// Whether there are thinking blocks of Anthropic.
    pub thinking: bool,
    /// Whether there are reasoning items of `OpenAI`.
    pub reasoning: bool,
    /// Whether there are thought signatures of Gemini.
    pub thoughts: bool,
    /// How bad it is if a conversation begins with calls, and no user said anything before them.
    pub begins_with_user: Option<Severity>,
    /// Whether results have to come before whatever else is in their message.
    pub results_first: bool,
    /// Whether there are turns that only say what went wrong.
    pub failures: bool,
    /// Whether what the model said may stand there again as it was delivered.
    pub mirrors: bool,
    /// Whether each row names its session.
    pub names_session: bool,
    /// Whether records may be numbered.
    pub ordinals: bool,
    /// Whether the agent reads the whole file into one string of JavaScript.
    pub in_one_string: bool,
    /// Whether records may say what the session is called, for lists of sessions.
    pub titles: bool,
    /// Whether a record counts the messages that were summed up.
    pub counts_messages: bool,
}

impl Content {
    pub(super) const NONE: Self = Self {
        empty: None,
        blank: None,
        images: None,
        thinking: false,
        reasoning: false,
        thoughts: false,
        begins_with_user: None,
        results_first: false,
        failures: false,
        mirrors: false,
        names_session: false,
        ordinals: false,
        in_one_string: false,
        titles: false,
        counts_messages: false,
    };
    /// What Anthropic's API minds.
    pub(crate) const ANTHROPIC: Self = Self {
        empty: Some(Severity::Error),
        blank: Some(Severity::Error),
        images: Some(Severity::Error),
        thinking: true,
        results_first: true,
        ..Self::NONE
    };
    /// What `OpenAI`'s APIs mind, and others that speak like them.
    pub(crate) const OPENAI: Self = Self {
        empty: Some(Severity::Warning),
        blank: Some(Severity::Warning),
        images: Some(Severity::Warning),
        ..Self::NONE
    };
    /// What Gemini's API minds. It makes large images small.
    pub(crate) const GEMINI: Self = Self {
        empty: Some(Severity::Error),
        blank: Some(Severity::Error),
        images: Some(Severity::Warning),
        thoughts: true,
        begins_with_user: Some(Severity::Error),
        ..Self::NONE
    };
}

impl Shape {
    /// Whether entries name their parents.
    pub fn is_tree(self) -> bool {
        matches!(self, Self::Branch | Self::Graph)
    }
}

/// How far files of a format may be changed. Beside this, the gates say whether it may be now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Never, for this reason: findings are told, and that is all.
    ReadOnly(&'static str),
    /// While the owning program is not running.
    Archive,
    /// Beside the running program, as long as the number and the order of the lines stay.
    LiveTruncate,
    /// Beside the running program; lines may come and go.
    LiveInsert,
}

impl Level {
    /// In one or two words, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly(_) => "read-only",
            Self::Archive => "archive",
            Self::LiveTruncate => "live truncate",
            Self::LiveInsert => "live insert",
        }
    }
}

/// What is counted outside of a file, and by what: the text ends "are counted in …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Records: whole objects, wherever they stand.
    Records(&'static str),
    /// Records, but only how many there are: not in which order they stand.
    Number(&'static str),
    /// Lines that are not empty, readable or not.
    Lines(&'static str),
    /// Records before the last compaction.
    UpToCompaction(&'static str),
    /// Records before the message that a [count](crate::model::entry::QuirkKind::Counts) in the file names.
    UpToCount(&'static str),
}

/// Something that says whether the owning program is at work on a file. Formats declare it; whoever replaces the
/// file obeys. What only looks stands before what takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The end of the conversation waits for a tool or for the model, and that was written not long ago. OpenClaw
    /// lets go of its lock while the model answers, and gives the turn up if the file was replaced meanwhile.
    RunInProgress,
    /// OpenClaw's write lock beside the file, which others are to take as well (`session-write-lock.ts`).
    OpenClawLock,
    /// Claude Code's register of live sessions, `sessions/<pid>.json` below its folder.
    ClaudeRegistry,
    /// Codex's locks for writers and for maintenance, and the descriptor that it holds open; threads whose bytes
    /// are counted elsewhere.
    CodexWriter,
    /// Copilot's `inuse.<pid>.lock` beside the file.
    CopilotInUse,
    /// Grok Build's lock beside the file, which others are to take as well.
    GrokLock,
    /// Nothing of its own: that it has been quiet for so long that the program is not running.
    Idle,
    /// Qwen Code's writer lease, which pins the very inode (`session-writer-lease.ts`).
    QwenLease,
}

/// Where the result of an unanswered call is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A line of its own behind the call.
    Line,
    /// A line of its own, but other files may count the lines, so only when asked for.
    LineIfAllowed,
    /// A block at the beginning of the next user message.
    NextUser,
    /// Nowhere: it is not put in.
    Nowhere,
}

/// Where results stand, as [`Format::read`] notes them; what can be wrong with them hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// In lines of their own.
    Lines,
    /// In messages behind the call's, which may hold more.
    Blocks,
    /// In the very record of the call: it may be missing, and no more.
    WithCall,
    /// In the line of the call, which is a whole conversation.
    InConversation,
    /// Within such a line too, and what they answer is not noted.
    Unpaired,
    /// Nothing is noted: lines are not read.
    Unread,
}

impl Results {
    /// Whether lines are messages of one conversation, or events in it.
    pub fn of_messages(self) -> bool {
        matches!(self, Self::Lines | Self::Blocks | Self::WithCall)
    }

    /// Whether each line is a whole conversation.
    pub fn of_conversations(self) -> bool {
        matches!(self, Self::InConversation | Self::Unpaired)
    }

    /// Whether calls are noted.
    pub fn have_calls(self) -> bool {
        !matches!(self, Self::Unpaired | Self::Unread)
    }
}

/// A folder in which an agent keeps transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Environment variable that moves it.
    pub env: Option<&'static str>,
    /// Folder below the home directory where it is otherwise.
    pub home: &'static str,
    /// Path below either; `*` stands for one folder name.
    pub below: &'static str,
}

/// A call whose result is lost, for [`Format::missing_result`].
pub struct Lost<'a> {
    /// The entry that holds the call.
    pub doc: &'a Doc,
    /// Reads a value of that entry as it is written.
    pub raw: &'a dyn Fn(Value<'_>) -> Vec<u8>,
    /// The entry behind which the result goes; mostly the same.
    pub place: &'a Doc,
    /// The call's id, as a literal with quotes.
    pub call: &'a [u8],
    /// The tool's name.
    pub tool: &'a [u8],
    /// Id of the new entry, in the format's own form.
    pub id: &'a str,
    /// Id of its parent, decoded.
    pub parent: &'a [u8],
}

/// What one object says about a file being of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// It is, unless another object says that it is not.
    Own,
    /// It may be: such objects occur in its files, but do not tell them from others.
    Fits,
    /// It may be, if some bytes of a name in it were written over. That says nothing against it while most
    /// objects are whole.
    Marred,
    /// It is not, whatever other objects say.
    Foreign,
    /// Nothing.
    Silent,
}
