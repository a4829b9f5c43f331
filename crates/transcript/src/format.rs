//! Who writes such files, and what their lines mean. One file an agent; [`FORMATS`] lists them all.
//!
//! A format is data about another program: how to recognise its files, what a line means in the words of
//! [`crate::model::entry`], which branch it would load, how it spells a result, and how it writes. It decides
//! nothing; rules do.

use crate::model::entry::{Draft, QuirkKind};
use crate::model::finding::Severity;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use names::Names;
use spans::json::{Doc, Kind, Value};
use spans::source::Span;

mod ai_sdk;
mod anthropic;
mod claude_code;
mod codex;
mod copilot;
mod dataset;
mod droid;
#[cfg(test)]
mod example;
mod gemini_cli;
mod gemini_contents;
mod grok_build;
mod kimi_code;
pub(crate) mod names;
mod openai_chat;
#[cfg(test)]
mod otter;
mod pi;
mod qwen_code;
mod read_only;

/// All formats. A file has the one that alone claims it.
pub const FORMATS: &[&dyn Format] = &[
    &pi::Pi,
    &claude_code::ClaudeCode,
    &codex::Codex,
    &copilot::Copilot,
    &gemini_cli::GeminiCli,
    &qwen_code::QwenCode,
    &kimi_code::KimiCode,
    &grok_build::GrokBuild,
    &anthropic::Anthropic,
    &droid::Droid,
    &openai_chat::BARE,
    &openai_chat::KIMI_CLI,
    &openai_chat::VIBE,
    &openai_chat::PICOCLAW,
    &openai_chat::NANOBOT,
    &openai_chat::HERMES,
    &openai_chat::REASONIX,
    &ai_sdk::Model,
    &ai_sdk::Screen,
    &gemini_contents::GeminiContents,
    &dataset::OPENAI,
    &dataset::ANTHROPIC,
    &dataset::SHAREGPT,
    &dataset::GEMINI,
    &read_only::VSCODE_CHAT,
    &read_only::KIMI_CLI_WIRE,
    &read_only::CURSOR,
    &read_only::KIRO,
    &read_only::GOOSE_LEGACY,
    #[cfg(test)]
    &otter::Otter,
];

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

    /// How the owning program writes.
    fn writer(&self) -> Writer {
        Writer::Unknown
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
    const NONE: Self = Self {
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

/// How the owning program writes its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Opens, appends and closes for each line.
    AppendsByPath,
    /// Appends through one descriptor for as long as it runs.
    HoldsOpen,
    /// Appends only to the very file that it left behind.
    Leases,
    /// Writes the whole file anew from memory.
    RewritesWhole,
    /// Not known: a file of this format may belong to any program.
    Unknown,
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

/// How many objects are looked at to tell the format.
const HEAD_OBJECTS: usize = 40;

/// How many values those objects may hold together; memory is what is bounded.
const HEAD_NODES: usize = 1 << 18;

/// Whether so many objects, with so many values, are enough to tell the format.
pub(crate) fn is_head(objects: usize, nodes: usize) -> bool {
    objects >= HEAD_OBJECTS || nodes >= HEAD_NODES
}

/// What the first objects of a file say about its format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    objects: usize,
    nodes: usize,
    /// Of which formats some object is.
    own: Bits,
    /// Of which formats some object cannot be.
    foreign: Bits,
    /// How many objects are of no format, but may be of one if a name in them was written over.
    marred: usize,
}

/// A bit for each of [`FORMATS`].
type Bits = u64;
const _: () = assert!(FORMATS.len() <= Bits::BITS as usize);

impl Head {
    /// What these objects say; all that were read, also those that turned out to be none, took `nodes` of memory.
    pub(crate) fn of(docs: &mut dyn Iterator<Item = &Doc>, nodes: usize) -> Self {
        let mut head = Self::default();
        docs.for_each(|doc| head.hear(doc));
        Self { nodes, ..head }
    }

    /// Hears one more object.
    pub(crate) fn hear(&mut self, doc: &Doc) {
        self.objects += 1;
        self.nodes += doc.size();
        let (mut own, mut fits, mut marred) = (0, 0, false);
        for (n, format) in FORMATS.iter().enumerate() {
            match vote(*format, doc) {
                Vote::Own => own |= 1 << n,
                Vote::Fits => fits |= 1 << n,
                Vote::Marred => marred = true,
                Vote::Foreign => self.foreign |= 1 << n,
                Vote::Silent => {}
            }
        }
        if own != 0 {
            self.foreign |= !(own | fits);
        }
        self.marred += usize::from(marred && own == 0);
        self.own |= own;
    }

    /// Whether the format is told by what was heard, and not by what may come.
    pub(crate) fn full(&self) -> bool {
        is_head(self.objects, self.nodes)
    }

    /// The format of a file that begins so: the only one that claims it, if most of its objects are whole.
    pub(crate) fn format(&self) -> Option<&'static dyn Format> {
        let claimed = self.own & !self.foreign;
        let whole = self.marred == 0 || self.marred * 2 < self.objects;
        if claimed.is_power_of_two() && whole {
            FORMATS.get(claimed.trailing_zeros() as usize).copied()
        } else {
            None
        }
    }
}

/// What an object says about a format, also if a byte of a name in it was written over.
fn vote(format: &dyn Format, doc: &Doc) -> Vote {
    let vote = format.vote(doc);
    if !matches!(vote, Vote::Silent | Vote::Foreign) || names::is_sound(format.names(), doc) {
        return vote;
    }
    let mut mended = doc.clone();
    names::mend(format.names(), &mut mended);
    if matches!(format.vote(&mended), Vote::Own | Vote::Fits) { Vote::Marred } else { vote }
}

/// Whether a top-level field is this string.
fn says(doc: &Doc, key: &str, text: &str) -> bool {
    doc.get(key).is_some_and(|value| value.is(text))
}

/// Whether a value is a string.
fn is_string(value: Option<Value<'_>>) -> bool {
    value.is_some_and(|value| value.kind() == Kind::String)
}

/// The elements of an array; nothing for any other value.
fn items(value: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    let mut inside = value.map(Value::items);
    core::iter::from_fn(move || inside.as_mut()?.next())
}

/// A content that is one text.
fn alone(content: Option<Value<'_>>) -> Option<Value<'_>> {
    content.filter(|content| content.kind() == Kind::String)
}

/// The first text of a content: the only one, or that of the first block that has one.
fn first_text(content: Option<Value<'_>>) -> Option<Value<'_>> {
    alone(content).or_else(|| items(content).find_map(|part| part.get("text")))
}

/// Whether a message of the user's is one that a program put there: several agents wrap such text in this.
fn is_reminder(content: Option<Value<'_>>) -> bool {
    first_text(content).is_some_and(|text| text.prefix().starts_with(b"<system-reminder>"))
}

/// Reads what a user said: one text, or blocks with texts and images.
fn asked(content: Option<Value<'_>>, draft: &mut Draft<'_>) {
    if let Some(text) = alone(content) {
        draft.user_text(text);
    }
    for part in items(content) {
        match part.get("text") {
            Some(text) => {
                draft.user_text(text);
                draft.blank(part, text);
            }
            None => draft.image(part),
        }
    }
}

/// Reads what the model said in the same way.
fn answered(content: Option<Value<'_>>, draft: &mut Draft<'_>) {
    if let Some(text) = alone(content) {
        draft.text(text);
    }
    for part in items(content) {
        match part.get("text") {
            Some(text) => draft.text_block(part, text),
            None => draft.other_block(part),
        }
    }
}

/// The names under which calls have been seen.
const CALLS: &[&str] = &["toolCall", "toolUse", "functionCall", "tool_use", "tool_call", "function_call"];

/// The parts of a content value: a string, one block, or several.
fn content_parts<'d>(content: Option<Value<'d>>, each: &mut dyn FnMut(Part<'d>)) {
    let Some(content) = content else { return };
    match content.kind() {
        Kind::String => each(Part::Text(content)),
        Kind::Object => block_parts(content, each),
        _ => content.items().for_each(|block| block_parts(block, each)),
    }
}

fn block_parts<'d>(block: Value<'d>, each: &mut dyn FnMut(Part<'d>)) {
    let [kind, name, arguments, input, content, text] =
        block.pick(["type", "name", "arguments", "input", "content", "text"]);
    let is = |name: &&str| kind.is_some_and(|kind| kind.is(name));
    if CALLS.iter().any(is) {
        each(Part::Call { name, arguments: arguments.or(input) });
    } else if is(&"tool_result") {
        each(Part::Result);
        // A result holds no results.
        match content.filter(|content| content.kind() == Kind::String) {
            Some(text) => each(Part::Text(text)),
            None => items(content).for_each(|part| plain_part(part, part.get("text"), each)),
        }
    } else if !["thinking", "redacted_thinking", "reasoning"].iter().any(is) {
        plain_part(block, text, each);
    }
}

fn plain_part<'d>(block: Value<'d>, text: Option<Value<'d>>, each: &mut dyn FnMut(Part<'d>)) {
    let image = || {
        let kind = block.get("type");
        kind.is_some_and(|kind| ["image", "image_url", "input_image"].iter().any(|name| kind.is(name)))
    };
    match text.filter(|text| text.kind() == Kind::String) {
        Some(text) => each(Part::Text(text)),
        None if image() => each(Part::Image),
        None => {}
    }
}

/// The calls that a message lists beside its content, in OpenAI's dialect or without a `function` around the name.
fn listed_calls<'d>(calls: Option<Value<'d>>, each: &mut dyn FnMut(Part<'d>)) {
    for call in items(calls) {
        let function = call.get("function").unwrap_or(call);
        let [name, arguments, args] = function.pick(["name", "arguments", "args"]);
        each(Part::Call { name, arguments: arguments.or(args) });
    }
}

/// Whether an answer in Anthropic's dialect was cut off, or had no room in the window.
fn broken_by_stop_reason(message: Option<Value<'_>>) -> Option<Broken<'_>> {
    let stop = message?.get("stop_reason")?;
    if stop.is("max_tokens") {
        return Some(Broken::CutOff);
    }
    stop.is("model_context_window_exceeded").then_some(Broken::Error(Some(stop)))
}

/// A name of which some bytes were written over.
struct Marred {
    /// Its literal.
    at: Span,
    /// What it was, if only one name will do.
    was: Option<&'static str>,
}

/// Finds the name of a message that was written over, a key or the role, if there is exactly one, and everything else
/// is as it should be.
///
/// Such a name holds characters that no program puts into one, and at least a quarter of what it was is left around
/// them: what some other program writes is not taken for damage.
fn marred(
    message: Option<Value<'_>>,
    keys: &'static [&'static str],
    roles: &'static [&'static str],
) -> Option<Marred> {
    let fields = || message.into_iter().flat_map(Value::fields);
    let known = |key: Value<'_>| keys.iter().any(|name| key.is(name));
    let is_role = |value: Value<'_>| roles.iter().any(|role| value.is(role));
    let wrong = |(key, value): &(Value<'_>, Value<'_>)| !known(*key) || (key.is("role") && !is_role(*value));
    let mut all_wrong = fields().filter(wrong);
    let (key, value) = all_wrong.next().filter(|_| all_wrong.next().is_none())?;
    if known(key) {
        return most_like(value, &mut roles.iter().copied());
    }
    // It was none of those that are there.
    let there = |name: &&'static str| fields().any(|(key, _)| key.is(name));
    most_like(key, &mut keys.iter().copied().filter(|name| !there(name)))
}

impl Marred {
    /// Notes it, where a message lacks what it cannot do without: one of these names, or a role.
    fn note(self, needed: &[&str], draft: &mut Draft<'_>) {
        let was = self.was.filter(|was| needed.contains(was));
        draft.quirk(QuirkKind::Marred(was), self.at);
    }
}

/// Which of these a name was before some bytes of it were written over; `None` if it is not like any of them.
fn most_like(name: Value<'_>, names: &mut dyn Iterator<Item = &'static str>) -> Option<Marred> {
    let text = name.text()?;
    let text = String::from_utf8_lossy(&text);
    let usual = |c: char| c.is_alphanumeric() || "_-. $:/@".contains(c);
    if text.chars().all(usual) {
        return None;
    }
    let mut best: Option<(usize, Option<&'static str>)> = None;
    for other in names {
        let same = |(one, two): &(char, char)| one == two;
        let before = text.chars().zip(other.chars()).take_while(same).count();
        let behind = text.chars().rev().zip(other.chars().rev()).take_while(same).count();
        let left = before + behind;
        // No character is made of fewer bytes than one.
        if left * 4 < other.len() || text.chars().count() > other.len() {
            continue;
        }
        best = match best {
            Some((most, _)) if most > left => best,
            Some((most, _)) if most == left => Some((left, None)),
            _ => Some((left, Some(other))),
        };
    }
    best.map(|(_, was)| Marred { at: name.span(), was })
}

/// Whether a name was this one before some bytes of it were written over.
pub(crate) fn was(name: Value<'_>, what: &'static str) -> bool {
    most_like(name, &mut core::iter::once(what)).is_some()
}

/// Notes that the name under which a message says whose it is was written over, and says whether it was.
fn marred_role(message: Value<'_>, draft: &mut Draft<'_>) -> bool {
    written_over(message, "role", draft).is_some()
}

/// What an object that lacks this name holds under one that it may have been, and notes that it was written over.
fn written_over<'d>(object: Value<'d>, name: &'static str, draft: &mut Draft<'_>) -> Option<Value<'d>> {
    let (key, value) = object.fields().find(|(key, _)| was(*key, name))?;
    draft.quirk(QuirkKind::Marred(Some(name)), key.span());
    Some(value)
}

/// Whether every field has one of these names.
fn only_keys(doc: &Doc, names: &[&str]) -> bool {
    let fields = doc.root().into_iter().flat_map(Value::fields);
    fields.map(|(key, _)| key).all(|key| names.iter().any(|name| key.is(name)))
}

/// An RFC 3339 timestamp one millisecond later; the same text if it is none.
fn later(timestamp: &[u8]) -> String {
    let text = String::from_utf8_lossy(timestamp);
    let moment = text.parse::<jiff::Timestamp>().ok();
    let next = moment.and_then(|moment| moment.checked_add(jiff::SignedDuration::from_millis(1)).ok());
    next.map_or_else(|| text.to_string(), |next| format!("{next:.3}"))
}

/// When an object was written, in milliseconds since 1970: its own time, or that of the message in it.
pub(crate) fn written_ms(doc: &Doc) -> Option<u64> {
    let own = doc.get("timestamp");
    let moment = own.and_then(Value::text).and_then(|text| core::str::from_utf8(&text).ok()?.parse().ok());
    let moment = moment.map(jiff::Timestamp::as_millisecond).and_then(|millis| u64::try_from(millis).ok());
    let inside = || doc.get("message").and_then(|message| message.get("timestamp")).and_then(Value::whole);
    moment.or_else(|| own.and_then(Value::whole)).or_else(inside)
}

/// Pieces of an object in the making, with a comma between fields.
pub(crate) struct Writing(Vec<u8>);

impl Writing {
    pub(crate) fn new() -> Self {
        Self(b"{".to_vec())
    }

    /// A field whose value is given as JSON.
    pub(crate) fn raw(mut self, key: &str, json: &[u8]) -> Self {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        spans::literal::quote(key.as_bytes(), &mut self.0);
        self.0.push(b':');
        self.0.extend_from_slice(json);
        self
    }

    /// A field whose value is a text.
    pub(crate) fn text(self, key: &str, text: &[u8]) -> Self {
        let mut literal = Vec::new();
        spans::literal::quote(text, &mut literal);
        self.raw(key, &literal)
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{later, written_ms};
    use spans::json;
    use spans::source::Span;

    /// The format of a file with these lines.
    fn told(lines: &[&str]) -> Option<&'static str> {
        let bytes = lines.join("\n").into_bytes();
        crate::scan::scan(&bytes.as_slice()).unwrap().format.map(super::Format::name)
    }

    const CHAT: [&str; 3] = [
        r#"{"role":"user","content":"list"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"c","content":"a.txt"}"#,
    ];

    const MESSAGES: [&str; 3] = [
        r#"{"role":"user","content":"list"}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"ls","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"a.txt"}]}"#,
    ];

    #[test]
    fn a_name_that_was_written_over_does_not_hide_the_format() {
        let marred = [
            r#"{"role":"us\u0001r","content":"go"}"#,
            "{\"role\":\"user\",\"con\u{fffd}ent\":\"go\"}",
            r#"{"r#le":"user","content":"go"}"#,
            // Nothing but the name is missing, and no other will do.
            r#"{"rule":"user","content":"go"}"#,
        ];
        for line in marred {
            assert_eq!(told(&[&CHAT[..], &[line]].concat()), Some("openai-chat"), "{line}");
            assert_eq!(told(&[&MESSAGES[..], &[line]].concat()), Some("anthropic"), "{line}");
            // Of half the objects nothing is known.
            assert_eq!(told(&[CHAT[0], line]), None, "{line}");
            assert_eq!(told(&[line]), None, "{line}");
        }
        let tool = r#"{"role":"tool","tool_c%ll_id":"c","content":"b"}"#;
        assert_eq!(told(&[&CHAT[..], &[tool]].concat()), Some("openai-chat"));
        assert_eq!(told(&[&MESSAGES[..], &[tool]].concat()), None, "no message of Anthropic's");
    }

    #[test]
    fn what_another_program_writes_is_not_taken_for_damage() {
        let others = [
            // Names that somebody may give.
            r#"{"role":"user","contents":"go"}"#,
            r#"{"rule":"narrator","content":"go"}"#,
            r#"{"rule":["user"],"content":"go"}"#,
            r#"{"ruled":"user","content":"go"}"#,
            r#"{"role":"narrator","content":"go"}"#,
            r#"{"role":"user","content":"go","né":1}"#,
            r#"{"role":"user","content":"go","x#y":1}"#,
            // Two at once, or one beside something else.
            r#"{"role":"us#r","c#ntent":"go"}"#,
            r#"{"r#le":"user","content":"go","time":1}"#,
            // Records of their own.
            r#"{"version":1,"session":"s"}"#,
            r#"{"content":"go"}"#,
            r#"{"a":1}"#,
            // What is another format's, or would be if its name were whole.
            r#"{"r;le":"assistant","content":"","tool_calls":[{"id":"d","name":"ls","arguments":"{}"}]}"#,
            r#"{"role":"assistant","content":"","t;ol_calls":[{"id":"d","name":"ls","arguments":"{}"}]}"#,
            r#"{"r;le":"assistant","content":[{"type":"tool-call","toolCallId":"d","toolName":"ls","input":{}}]}"#,
            r#"{"role":"user","content":"go","created_at":"2026-07-01T10:00:00Z","type":"x"}"#,
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
        ];
        for line in others {
            assert_eq!(told(&[&CHAT[..], &[line]].concat()), None, "{line}");
            assert_eq!(told(&[&MESSAGES[..], &[line]].concat()), None, "{line}");
        }
    }

    #[test]
    fn pi_is_told_by_what_only_pi_writes() {
        let said = r#"{"type":"message","timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"user","content":"list"}}"#;
        let own = [
            r#"{"type":"message","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":"a"}],"stopReason":"stop"}}"#,
            r#"{"type":"message","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}}]}}"#,
            r#"{"type":"message","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"toolResult","toolCallId":"c","content":[]}}"#,
            r#"{"type":"custom","timestamp":"2026-07-01T10:00:01.000Z","customType":"x"}"#,
            r#"{"type":"compaction","timestamp":"2026-07-01T10:00:01.000Z","summary":"","firstKeptEntryIndex":1}"#,
        ];
        assert_eq!(told(&[said]), None);
        for line in own {
            assert_eq!(told(&[said, line]), Some("pi"), "{line}");
            assert_eq!(told(&[said, line, CHAT[0]]), None, "{line}");
        }
        let others = [
            r#"{"type":"message","id":"d","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":"a"}]}}"#,
            r#"{"type":"message","timestamp":5,"message":{"role":"toolResult","toolCallId":"c"}}"#,
            r#"{"type":"custom","timestamp":"2026-07-01T10:00:01.000Z","name":"x"}"#,
            r#"{"type":"message","message":{"role":"assistant","content":[]}}"#,
        ];
        for line in others {
            assert_eq!(told(&[said, line]), None, "{line}");
        }
    }

    #[test]
    fn what_only_begins_like_a_format_is_nobodys() {
        let misses = [
            // Another agent's log of events.
            &[
                r#"{"type":"session","version":0,"id":"s","createdAt":1783950000000,"cwd":"/w","delegationDepth":0}"#,
                r#"{"type":"turn/start","seq":1,"time":1783950000001,"data":{}}"#,
                r#"{"type":"user/message","seq":4,"time":1783950000002,"data":{"text":"list"}}"#,
            ][..],
            // Claude Code's without links.
            &[r#"{"type":"user","message":{"role":"user","content":"list"},"uuid":"u","timestamp":"t"}"#],
            // Codex's without a payload, and with one field more.
            &[r#"{"timestamp":"t","type":"response_item","payload":"list"}"#],
            &[r#"{"timestamp":"t","type":"response_item","payload":{},"seq":1}"#],
            // Copilot's without an envelope.
            &[r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e"}"#],
            // Gemini CLI's header without a project.
            &[r#"{"sessionId":"s","startTime":"t","kind":"main"}"#],
            // Qwen Code's without a parent.
            &[
                r#"{"uuid":"u","sessionId":"s","timestamp":"t","type":"user","message":{"role":"user","parts":[]}}"#,
            ],
            // Kimi Code's with a field of another log.
            &[r#"{"type":"context.append_message","uuid":"u","message":{}}"#],
            // Grok Build's by another program.
            &[r#"{"type":"user","content":"list","uuid":"u"}"#],
        ];
        for lines in misses {
            assert_eq!(told(lines), None, "{lines:?}");
        }
    }

    #[test]
    fn the_time_of_an_object_is_its_own_or_that_of_its_message() {
        for (text, expected) in [
            (r#"{"timestamp":"1970-01-01T00:00:01.500Z","message":{"timestamp":9}}"#, Some(1_500)),
            (r#"{"timestamp":"1970-01-01T01:00:02+01:00"}"#, Some(2_000)),
            (r#"{"timestamp":7}"#, Some(7)),
            (r#"{"timestamp":"noon","message":{"timestamp":1782900001000}}"#, Some(1_782_900_001_000)),
            (r#"{"timestamp":"1969-01-01T00:00:00Z"}"#, None),
            (r#"{"role":"assistant"}"#, None),
        ] {
            let doc = json::parse(&text.as_bytes(), Span::new(0, text.len() as u64)).unwrap().unwrap();
            assert_eq!(written_ms(&doc), expected, "{text}");
        }
    }

    #[test]
    fn a_millisecond_later_in_the_same_spelling() {
        assert_eq!(later(b"2026-07-01T10:00:00.000Z"), "2026-07-01T10:00:00.001Z");
        assert_eq!(later(b"2026-12-31T23:59:59.999Z"), "2027-01-01T00:00:00.000Z");
        assert_eq!(later(b"yesterday"), "yesterday");
    }
}
