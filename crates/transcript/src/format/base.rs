//! What a format consists of: facts about its files and about how its agent writes them, and functions that read and write
//! records.

use super::agent::Agent;
use super::common;
use super::kinds::Kinds;
use super::names::FieldNames;
use crate::model::draft::Draft;
use crate::model::finding::Severity;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};
use spans::json::{Doc, Value};
use spans::source::Span;

/// A transcript format: facts about another program's files, and functions that read and write their records. A format is a
/// constant over `BASE`; CONTRIBUTING.md shows how one is added.
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Format {
    /// Its name, as printed and as used in fixtures.
    pub name: &'static str,
    /// The programs that write such files, for the table in docs/formats.md.
    pub written_by: &'static str,
    /// What users should know about it beside what [`Format::remarks`] tells, in a few words, for the same table.
    pub remark: &'static str,
    /// The agents among them. The first one is assumed, unless the session is in another one's folder.
    pub agents: &'static [Agent],
    /// How entries make a conversation.
    pub shape: Shape,
    /// How far its files may be changed.
    pub level: SupportLevel,
    /// Why some of its files are never changed; `None` if all may be.
    pub single_files_read_only: Option<&'static str>,
    /// What holds byte offsets into some of its files, so that their lines stay where they are. The text completes
    /// "are kept in …".
    pub single_files_offsets: Option<&'static str>,
    /// How to find out whether the owning program is at work on a file, in the order of asking. A format of level
    /// `Archive` has at least one gate.
    pub gates: &'static [Gate],
    /// Whether the gates find every process that has a conversation in memory. If not, no process may work in the session's
    /// folder while a change could invalidate signatures.
    pub gates_know_memory: bool,
    /// What another file counts in this one. Fixes that would change that number are held.
    pub counted: Option<OutsideCount>,
    /// The line that a file begins with.
    pub header: Header,
    /// Whether the agent goes on after a line that it cannot read. If not, it refuses the file.
    pub skips_unreadable_lines: bool,
    /// Whether calls that were open when the agent ended are sent without results, so that the API refuses the session.
    /// Other agents add results when they load it.
    pub leaves_calls_open: bool,
    /// Where the programs that write this format keep their transcripts.
    pub roots: &'static [Root],
    /// Where the result of a call is.
    pub results: Results,
    /// To how many characters its agent cuts a result at most before it writes it; the least if there are several agents. `None` if
    /// it cuts none, or nobody has measured it.
    pub agent_cuts_results: Option<u64>,
    /// The tools by which the model reads a file.
    pub reads: &'static [ReadTool],
    /// Where a missing result goes.
    pub answer: ResultPlace,
    /// Where a call has its arguments; `None` if they may be missing.
    pub arguments: Option<Arguments>,
    /// Whether records state the model's context window, beside some or all numbers of tokens.
    pub states_window: bool,
    /// Whether ids of calls and names of tools go to the API unchanged, and the API takes only some characters.
    pub has_plain_ids: bool,
    /// Whether the API requires an id of each call.
    pub calls_have_ids: bool,
    /// Whether the API pairs calls and results by position, so that a later turn may use an id again.
    pub takes_ids_again: bool,
    /// Keys that lead to a second copy of the call's id in the line of a result.
    pub names_call_again: &'static [&'static str],
    /// Whether results are repeated where the model never sees them.
    pub copies_results: bool,
    /// In a graph the newest record is the leaf, whatever it is, and not the newest message.
    pub any_record_is_leaf: bool,
    /// Whether an assistant message may record that it was aborted during a call.
    pub aborts: bool,
    /// The agent leaves out a message that failed or was aborted, and sends its results all the same.
    pub leaves_out_failed: bool,
    /// Whether a compaction names the first entry that stays in context.
    pub compactions_name_what_stays: bool,
    /// Whether records may hold the texts of results as they were sent, of which only the newest record is read.
    pub keeps_sent_texts: bool,
    /// Which problems of content its records can show.
    pub content: Content,
    /// How the tokens of its sessions are estimated.
    pub estimate: Estimate,
    /// The names in its records, by which a damaged key is recognised.
    pub names: &'static [FieldNames],

    /// The kinds of records and blocks that are known.
    pub kinds: &'static [Kinds],
    /// Where a record may name the version of its writer.
    pub version_at: &'static [&'static [&'static str]],
    /// Where a header or a message of the model may name the provider that answers.
    pub provider_at: &'static [&'static [&'static str]],
    /// Where a record may hold an item of `OpenAI`'s Responses.
    pub item_at: Option<&'static [&'static str]>,

    /// The fields that its messages have in the API, if others are to be noted; see `fields`.
    pub fields: &'static [&'static str],

    /// Votes on whether a file is of this format, given one of its first objects. It looks at structure alone and never
    /// guesses: a format that is silent about an object is ruled out once another one claims it.
    pub vote: fn(&Doc) -> Vote,
    /// Whether a whole object in a damaged line is a record, and not a part of one. The default is that `vote` returns
    /// `Own`, `Like` or `Fits`. A format needs its own function if that is too easy: a user's text may quote records.
    pub is_record: Option<fn(&Doc) -> bool>,
    /// Reads what an object means.
    pub read: fn(&Doc, &mut Draft<'_>),
    /// The list in an object whose elements are records like those on lines of their own.
    pub records_in: fn(&Doc) -> Option<Value<'_>>,
    /// Reads a record of `records_in`.
    pub read_record: fn(Value<'_>, &mut Draft<'_>),
    /// The parts of an entry that people want to read. Thinking is left out.
    pub parts: for<'d> fn(&'d Doc, &mut dyn FnMut(EntryPart<'d>)),
    /// How an assistant message, or a record of [`crate::model::entry::Service::Failure`], says that a request failed.
    pub broken: fn(&Doc) -> Option<Broken<'_>>,
    /// The numbers in a record by which the agent judges, before it asks, how long the context is, if it stops by them: once what
    /// they count is gone, it would refuse what the API takes. It must take 0 for "not counted".
    pub gauges: Option<Gauges>,
    /// Whether the agent accepts the record once an invalid byte at this span is replaced by U+FFFD. Because of that
    /// byte, it skipped the line before.
    pub takes_any_text_at: fn(&Doc, Span) -> bool,
    /// Writes a missing result; called only if `answer` names a place for it.
    pub missing_result: fn(&Lost<'_>) -> Vec<u8>,
    /// Writes a message that holds these results and nothing else, for [`ResultPlace::NextUser`].
    pub results_message: fn(&[u8]) -> Vec<u8>,
    /// Writes a compaction: its lines, in order, without line breaks. Empty if it is not known how the owning program
    /// would read it.
    pub compaction: fn(&Compaction<'_>) -> Vec<Vec<u8>>,
}

/// Calls a function with numbers of a record.
pub type Gauges = for<'d> fn(&'d Doc, &mut dyn FnMut(Value<'d>));

/// The defaults. Where a wrong guess could do harm they are careful: files change only after a long time without
/// writes, and no result is added.
pub(super) const BASE: Format = Format {
    name: "",
    written_by: "",
    remark: "",
    agents: &[],
    shape: Shape::List,
    level: SupportLevel::Archive,
    single_files_read_only: None,
    single_files_offsets: None,
    gates: &[Gate::Idle],
    gates_know_memory: false,
    counted: None,
    header: Header::None,
    skips_unreadable_lines: true,
    leaves_calls_open: false,
    roots: &[],
    results: Results::Lines,
    agent_cuts_results: None,
    reads: &[],
    answer: ResultPlace::Nowhere,
    arguments: None,
    states_window: false,
    has_plain_ids: false,
    calls_have_ids: true,
    takes_ids_again: false,
    names_call_again: &[],
    copies_results: false,
    any_record_is_leaf: false,
    aborts: false,
    leaves_out_failed: false,
    compactions_name_what_stays: false,
    keeps_sent_texts: false,
    content: Content::NONE,
    estimate: Estimate::BASE,
    names: &[],
    kinds: &[],
    version_at: &[],
    provider_at: &[],
    item_at: None,
    fields: &[],
    vote: |_| Vote::Silent,
    is_record: None,
    read: |_, _| {},
    records_in: |_| None,
    read_record: |_, _| {},
    parts: |_, _| {},
    broken: |_| None,
    gauges: None,
    takes_any_text_at: |_, _| true,
    missing_result: |_| Vec::new(),
    results_message: common::results_message,
    compaction: |_| Vec::new(),
};

/// What no agent writes or locks: messages that some program has put into a file.
pub(super) const NO_AGENT: Format = Format { level: SupportLevel::Truncate, gates: &[], ..BASE };

impl Format {
    /// What users should know about it.
    pub fn remarks(&self) -> &'static str {
        match self.answer {
            ResultPlace::LineIfAllowed if self.remark.is_empty() => "lines come and go only with `--allow`",
            _ => self.remark,
        }
    }

    /// Whether its files are the messages of an API and nothing else, which no agent wrote for itself.
    pub fn is_bare(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The version of the program that wrote a record, if the record says so.
    pub(crate) fn version(&self, record: &Doc) -> Option<String> {
        let at = |path: &&[&str]| path.iter().try_fold(record.root()?, |value, name| value.get(name));
        let version = self.version_at.iter().find_map(at)?.text()?;
        Some(String::from_utf8_lossy(&version).into_owned())
    }

    /// Whether a whole object in a damaged line is a record.
    pub(crate) fn is_record(&self, doc: &Doc) -> bool {
        self.is_record
            .map_or_else(|| matches!((self.vote)(doc), Vote::Own | Vote::Like | Vote::Fits), |is| is(doc))
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How tokens are estimated where the provider's numbers say nothing. `session/tokens/rates.rs` says how the figures were
/// measured.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// What the agent adds to what is in its files, in tokens: instructions and the definitions of tools. By how the model's
    /// name begins; the first that fits counts.
    pub added: &'static [(&'static str, u64)],
    /// How many thousandths of a token a character is, where the model's name does not tell.
    pub char: u64,
    /// Whether the agent sends the thinking of earlier turns.
    pub sends_thinking: bool,
}

impl Estimate {
    /// Where nothing was measured: four characters are a token, and nothing is added.
    pub(crate) const BASE: Self = Self { added: &[], char: 250, sends_thinking: true };
}

/// The line that a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Files have none.
    None,
    /// A header, without which the owning program does not read the file.
    First,
    /// A header that also decides whether the file may be changed at all, so that no other line may replace it.
    Decides,
}

/// Where calls have their arguments.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// Paths to them. The first one whose parent object exists counts.
    pub at: &'static [&'static [&'static str]],
    /// How empty arguments are written.
    pub none: &'static str,
}

impl Arguments {
    /// Those of Anthropic's API.
    pub(crate) const INPUT: Self = Self { at: &[&["input"]], none: "{}" };
}

/// A tool that reads lines of a file, and the names of its arguments. With any other argument it reads something else, such as
/// the pages of a PDF.
#[derive(Clone, Copy, Debug)]
pub struct ReadTool {
    /// Its name.
    pub name: &'static str,
    /// Names of the file.
    pub path: &'static [&'static str],
    /// The line to begin with.
    pub from: &'static str,
    /// The number of a file's first line.
    pub first_line: u64,
    /// Where to end.
    pub to: ReadEnd,
    /// It shows at most so many lines; 0 for any number.
    pub lines_max: u64,
}

/// How a tool is told where to end.
#[derive(Clone, Copy, Debug)]
pub enum ReadEnd {
    /// By how many lines it shows.
    Count(&'static str),
    /// By the last line that it shows.
    Line(&'static str),
}

/// A part of an entry, for readers.
#[derive(Clone, Copy, Debug)]
pub enum EntryPart<'d> {
    /// A text: a string of the entry.
    Text(Value<'d>),
    /// The model calls a tool.
    Call {
        /// The tool.
        name: Option<Value<'d>>,
        /// The arguments: an object, or a string that holds one.
        arguments: Option<Value<'d>>,
    },
    /// A tool's result; its texts follow.
    Result,
    /// A picture.
    Image,
}

/// Why an assistant message is unfinished.
#[derive(Clone, Copy, Debug)]
pub enum Broken<'d> {
    /// The request failed. Holds the provider's error, if it was recorded.
    Error(Option<Value<'d>>),
    /// The request failed, and the agent says by a name of its own that the context was too long.
    TooLong(Option<Value<'d>>),
    /// It ran out of output tokens.
    CutOff,
}

/// A compaction to be written, for `Format::compaction`.
pub struct Compaction<'a> {
    /// An entry whose envelope the new lines copy: in a tree the first one that stays, elsewhere the newest one.
    pub doc: &'a Doc,
    /// Reads a value of that entry as it is in the file.
    pub raw: &'a dyn Fn(Value<'_>) -> Vec<u8>,
    /// Ids for the new entries, in the format's own form. It takes as many as it needs.
    pub ids: [&'a str; 2],
    /// Id of the entry before the compaction, decoded; empty if there is none.
    pub parent: &'a [u8],
    /// Id of the first entry that stays in context, decoded.
    pub first_kept: &'a [u8],
    /// The timestamp of the entry before, as it is in the file.
    pub time: &'a str,
    /// The text that stands for everything left out.
    pub summary: &'a str,
    /// Roughly how many tokens the context had.
    pub tokens_before: u64,
}

/// How entries make a conversation, which decides which of them the owning program would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// A tree by parent ids with one live path, which is the conversation (pi).
    Tree,
    /// A tree by parent ids. Blocks of one message, and results, may be on side branches, and are gathered on loading.
    /// Calls and results find each other by id wherever they are (Claude Code).
    Graph,
    /// Only the order of the lines counts.
    List,
    /// Records by id: the last one with an id counts, at the place of the first (Gemini CLI).
    Upserts,
    /// The order of the lines. A turn of the model is a run of lines, and calls and results find each other by id
    /// wherever they are (Codex, Copilot).
    Log,
}

/// Which problems of content [`Format::read`] records. A rule about any other problem does not run in that format.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Content {
    /// Severity of an empty turn in the context: some programs do not send it, and some providers accept it.
    pub empty: Option<Severity>,
    /// Severity of a text that is only white space.
    pub blank: Option<Severity>,
    /// Severity of an image that the provider refuses. `OpenAI` shrinks large ones, so there it is a warning.
    pub images: Option<Severity>,
    /// Whether there are thinking blocks of Anthropic.
    pub thinking: bool,
    /// Whether messages have a field for reasoning, which some providers require.
    pub reasons_beside: bool,
    /// Whether records count the tokens of requests, and the agent relies on these counts.
    pub counts_tokens: bool,
    /// Whether the agent checks records against a schema when it loads them.
    pub checks_records: bool,
    /// Whether there are items that `OpenAI` encrypted for one account.
    pub seals_items: bool,
    /// Whether there are calls and results of tools that Anthropic's API runs itself.
    pub server_tools: bool,
    /// Whether there are reasoning items of `OpenAI`.
    pub reasoning: bool,
    /// Whether there are thought signatures of Gemini.
    pub thoughts: bool,
    /// Severity of a conversation that begins with calls, without a user message before them.
    pub begins_with_user: Option<Severity>,
    /// Whether results must come first in their message.
    pub results_first: bool,
    /// Whether there are turns that hold nothing but an error.
    pub failures: bool,
    /// Whether an assistant message may be repeated as it was delivered to a chat.
    pub mirrors: bool,
    /// Whether each record names its session.
    pub names_session: bool,
    /// The field with the number of a record, if records may be numbered.
    pub ordinals: Option<&'static str>,
    /// Whether the agent reads the whole file into one JavaScript string.
    pub in_one_string: bool,
    /// Whether records may give the session a title, which lists of sessions show.
    pub titles: bool,
    /// Whether a record says how many messages a summary replaces.
    pub counts_messages: bool,
}

impl Content {
    pub(super) const NONE: Self = Self {
        empty: None,
        blank: None,
        images: None,
        thinking: false,
        server_tools: false,
        seals_items: false,
        checks_records: false,
        reasons_beside: false,
        counts_tokens: false,
        reasoning: false,
        thoughts: false,
        begins_with_user: None,
        results_first: false,
        failures: false,
        mirrors: false,
        names_session: false,
        ordinals: None,
        in_one_string: false,
        titles: false,
        counts_messages: false,
    };
    /// What Anthropic's API refuses.
    pub(crate) const ANTHROPIC: Self = Self {
        empty: Some(Severity::Error),
        blank: Some(Severity::Error),
        images: Some(Severity::Error),
        thinking: true,
        server_tools: true,
        results_first: true,
        ..Self::NONE
    };
    /// What `OpenAI`'s APIs, and others like them, refuse.
    pub(crate) const OPENAI: Self = Self {
        empty: Some(Severity::Warning),
        blank: Some(Severity::Warning),
        images: Some(Severity::Warning),
        ..Self::NONE
    };
    /// What Gemini's API refuses. It shrinks large images itself.
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
    pub fn has_parents(self) -> bool {
        matches!(self, Self::Tree | Self::Graph)
    }
}

/// How far files of a format may be changed. The gates decide whether they may be changed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupportLevel {
    /// Never, for this reason: findings are only reported.
    ReadOnly(&'static str),
    /// While the owning program is not running.
    Archive,
    /// Also while the owning program runs, if the number and the order of the lines do not change.
    Truncate,
    /// Also while the owning program runs; lines may be added and removed.
    Insert,
}

impl SupportLevel {
    /// In one or two words, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly(_) => "read-only",
            Self::Archive => "archive",
            Self::Truncate => "truncate",
            Self::Insert => "insert",
        }
    }
}

/// What another file counts in this one. The text completes "are counted in …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideCount {
    /// Records: whole objects, wherever they are.
    Records(&'static str),
    /// Records, but only how many there are; their order is free.
    Number(&'static str),
    /// Lines that are not empty, whether readable or not.
    Lines(&'static str),
    /// Records before the last compaction.
    UpToCompaction(&'static str),
    /// Records before the message that a [count](crate::model::entry::ContentIssueKind::Counts) in the file names.
    UpToCount(&'static str),
}

/// A way to find out whether the owning program is at work on a file. Formats name gates, and `keeper` obeys them.
/// Gates that only look come before those that take a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The end of the conversation waits for a tool or for the model, and was written recently. OpenClaw releases its
    /// lock while the model answers, and abandons the turn if the file was replaced meanwhile.
    RunInProgress,
    /// OpenClaw's write lock beside the file, which other programs should take as well (`session-write-lock.ts`).
    OpenClawLock,
    /// Claude Code's list of running sessions: `sessions/<pid>.json` below its folder.
    ClaudeRegistry,
    /// Codex's locks for writers and for maintenance, and the file descriptor that it holds open. Threads whose
    /// bytes a database counts are refused.
    CodexWriter,
    /// Copilot's `inuse.<pid>.lock` beside the file.
    CopilotInUse,
    /// Grok Build's lock beside the file, which other programs should take as well.
    GrokLock,
    /// The program leaves no sign of being at work. A long time without writes is taken to mean that it is not running.
    Idle,
    /// Qwen Code's writer lease, which is tied to the file's inode (`session-writer-lease.ts`).
    QwenLease,
}

/// Where the result of an unanswered call is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultPlace {
    /// A line of its own after the call.
    Line,
    /// A line of its own, but only if the user allows it, because other files may count the lines.
    LineIfAllowed,
    /// A block at the beginning of the next user message.
    NextUser,
    /// In the object of the call itself, in place of the value of this field, which says how far the call is.
    Call(&'static str),
    /// Nowhere: it is not added.
    Nowhere,
}

/// Where results are, as [`Format::read`] records them. It decides what can be wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// In lines of their own.
    Lines,
    /// In later messages, which may hold other blocks too.
    Blocks,
    /// In the record of the call. They can be missing, and nothing else can be wrong.
    WithCall,
    /// In the line of the call, which holds a whole conversation.
    InConversation,
    /// In such a line too, but without saying which call they answer.
    Unpaired,
    /// Not recorded, because lines are not read.
    Unread,
}

impl Results {
    /// Whether a line is a message or an event of one conversation.
    pub fn of_messages(self) -> bool {
        matches!(self, Self::Lines | Self::Blocks | Self::WithCall)
    }

    /// Whether each line is a whole conversation.
    pub fn of_conversations(self) -> bool {
        matches!(self, Self::InConversation | Self::Unpaired)
    }

    /// Whether calls are recorded.
    pub fn have_calls(self) -> bool {
        !matches!(self, Self::Unpaired | Self::Unread)
    }
}

/// A folder in which an agent keeps transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Environment variable that names another folder to use in its place.
    pub env: Option<&'static str>,
    /// Its usual folder below the home directory.
    pub home: &'static str,
    /// Path below that folder; `*` stands for one folder name.
    pub below: &'static str,
}

/// A call whose result is lost, for `Format::missing_result`.
pub struct Lost<'a> {
    /// The entry that holds the call.
    pub doc: &'a Doc,
    /// Reads a value of that entry as it is in the file.
    pub raw: &'a dyn Fn(Value<'_>) -> Vec<u8>,
    /// The entry that the result goes after; usually the same one.
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

/// What one object tells about whether a file is of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The file is of this format, unless another object contradicts.
    Own,
    /// The file is of this format, unless another one calls the object its own: it has fields of other programs beside those of this one.
    Like,
    /// It may be: such objects occur in this format, and in others.
    Fits,
    /// It may be, but has such fields, and nothing in it tells its format for certain.
    MayFit,
    /// It may be, if some bytes of a name in the object were overwritten. That does not rule the format out while most
    /// objects are whole.
    Corrupted,
    /// It is not, whatever other objects tell.
    Foreign,
    /// Nothing.
    Silent,
}
