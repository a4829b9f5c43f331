//! The words that all formats share: entry, tool call, tool result, boundary, branch.
//!
//! An [`Entry`] is one JSON object of the file, reduced to what rules need: ids, links, and the places of what
//! may be altered. It holds no text; who needs more reads the entry's span again.

use crate::format::{Format, Head, was};
use crate::weight::Stuff;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::num::NonZeroU32;
use core::ops::Range;
use hashbrown::hash_table::Entry as TableEntry;
use hashbrown::{DefaultHashBuilder, HashTable};
use spans::fingerprint;
use spans::json::{Kind as Json, Odd, Text, Value};
use spans::source::Span;

/// An interned id: of an entry, a call, a message, a model. Equal ids are equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(NonZeroU32);

impl Id {
    /// Position among the ids, for tables.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All ids of one transcript, each stored once.
#[derive(Debug, Default)]
pub struct Ids {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Hashes of the texts: to ask millions of them again whenever the table grows would cost more than this takes.
    hashes: Vec<u32>,
    table: HashTable<Id>,
    hasher: DefaultHashBuilder,
    /// Those asked for last, by what tells them apart at a glance: models, tools and messages come again and again.
    recent: [Option<Id>; RECENT],
}

/// How many ids are tried before the table is asked.
const RECENT: usize = 16;

impl Ids {
    /// How many different ids there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The decoded text of an id.
    pub fn text(&self, id: Id) -> &[u8] {
        stored(&self.bytes, &self.ends, id)
    }

    /// The decoded texts of all.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end])
    }

    /// The id with this text, if there is one.
    pub fn find(&self, text: &[u8]) -> Option<Id> {
        let hash = self.hasher.hash_one(text) as u32;
        self.table.find(spread(hash), |&id| self.text(id) == text).copied()
    }

    fn intern(&mut self, text: &[u8]) -> Option<Id> {
        let last = text.last().copied().unwrap_or_default();
        let glance = (text.len() ^ usize::from(last)) % RECENT;
        if let Some(id) = self.recent[glance].filter(|&id| self.text(id) == text) {
            return Some(id);
        }
        let id = self.intern_in_table(text)?;
        self.recent[glance] = Some(id);
        Some(id)
    }

    fn intern_in_table(&mut self, text: &[u8]) -> Option<Id> {
        let Self { bytes, ends, hashes, table, hasher, .. } = self;
        let id = Id(NonZeroU32::new(u32::try_from(ends.len() + 1).ok()?)?);
        let hash = hasher.hash_one(text) as u32;
        let same = |&id: &Id| hashes[id.index()] == hash && stored(bytes, ends, id) == text;
        match table.entry(spread(hash), same, |id| spread(hashes[id.index()])) {
            TableEntry::Occupied(known) => Some(*known.get()),
            TableEntry::Vacant(vacant) => {
                vacant.insert(id);
                hashes.push(hash);
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
                Some(id)
            }
        }
    }
}

/// A hash over the bits that the table looks at.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The text of an id among those of all.
fn stored<'b>(bytes: &'b [u8], ends: &[usize], id: Id) -> &'b [u8] {
    let start = if id.index() == 0 { 0 } else { ends[id.index() - 1] };
    &bytes[start..ends[id.index()]]
}

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
    pub aside: bool,
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
    calls_from: u32,
    results_from: u32,
    sides_from: u32,
    thinking_from: u32,
    targets_from: u32,
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
        !self.aside && !self.injected
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
    bodies_from: u32,
}

/// A thinking block that carries a signature or is redacted.
#[derive(Clone, Copy, Debug)]
pub struct Thinking {
    /// The block, an element of the content array unless it is fixed.
    pub block: Span,
    /// It is no block that could be taken out.
    pub fixed: bool,
}

/// A stretch of an entry, and what it is: for [`crate::weight`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) stuff: Stuff,
    /// Index of the call or result that it belongs to.
    pub(crate) owner: u32,
    pub(crate) span: Span,
    /// How many characters of it the model sees.
    pub(crate) chars: u64,
}

/// Something in the content of an entry that providers may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirk {
    /// Index of the entry.
    pub entry: u32,
    /// What it is.
    pub kind: QuirkKind,
    /// The block, an element of the content array; the entry where it is about all of it.
    pub block: Span,
}

/// What may be odd about content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuirkKind {
    /// A text block of nothing but white space, or without a text.
    Blank,
    /// A text of nothing but white space in the result with this index; the inside of its literal.
    BlankResult(u32, Span),
    /// There is nothing in the message that could be sent.
    Hollow,
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
    /// Some bytes of a name in the record were written over; what it was, if only one will do. The block is its literal.
    Marred(Option<&'static str>),
}

/// An image as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Index of the entry.
    pub entry: u32,
    /// The block, an element of an array.
    pub block: Span,
    /// The inside of the literal with the data: base64, or a `data:` address.
    pub data: Span,
    /// How many bytes of it stand in front of the base64.
    pub data_from: u64,
    /// The media type's literal, where it has one of its own.
    pub media_at: Span,
    /// What the media type says.
    pub said: Option<crate::model::image::Kind>,
    /// What its first bytes say.
    pub facts: crate::model::image::Facts,
    /// What may stand in its place.
    pub stub: crate::model::image::Stub,
}

/// Side copies shorter than this many raw bytes are never cut, whatever the policy says.
pub const SIDE_BYTES_MIN: u64 = 1000;

/// Longest text of a result that a program invented.
const INVENTED_CHARS_MAX: u64 = 1000;

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

/// A transcript, read once: everything that rules look at.
#[derive(Default)]
pub struct Transcript {
    /// Who writes such files; `None` if unknown, and then nothing else is filled in.
    pub format: Option<&'static dyn Format>,
    /// The file is one JSON object or array, which no format claims as a record.
    pub is_document: bool,
    /// What the objects say about the format, if more of them would be listened to.
    pub(crate) undecided: Option<Head>,
    /// Length in bytes.
    pub bytes: u64,
    /// Lines, the last one also without a line break.
    pub lines: u64,
    /// Objects, in the order of the file.
    pub entries: Vec<Entry>,
    /// Calls, in the order of the file.
    pub calls: Vec<Call>,
    /// Results, in the order of the file.
    pub results: Vec<ToolResult>,
    /// What is not an entry.
    pub damage: Vec<Damage>,
    /// Why nothing of it may be changed, if that is so.
    pub read_only: Option<&'static str>,
    /// Ids of all kinds.
    pub ids: Ids,
    /// Fingerprint of all that persons said: independent of the order, for the verdict.
    pub user_text: u64,
    /// How many texts of persons there are.
    pub user_texts: u64,
    bodies: Vec<Text>,
    sides: Vec<Text>,
    thinking: Vec<Thinking>,
    targets: Vec<Target>,
    /// What the newest entry is made of, if somebody weighs it.
    marks: Option<Vec<Mark>>,
    /// Where it is said that tools began to run.
    starts: Vec<Start>,
    /// Fingerprint of the session that the first row names.
    pub(crate) session: Option<u64>,
    /// The first and the last ordinal of a record.
    pub(crate) ordinals: Option<(u64, u64)>,
    /// Entries that some rules are about and most are not: see [`Transcript::unusual`].
    unusual: Vec<u32>,
    /// Rare, so in one list for all entries, in their order.
    quirks: Vec<Quirk>,
    images: Vec<Image>,
    said: Vec<Said>,
    side_lists: Vec<SideList>,
}

/// A copy of a result, for the screen only, that is a list of short texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideList {
    entry: u32,
    /// The list.
    pub(crate) at: Span,
}

/// A record of that the tool of a call began to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) call: Id,
    pub(crate) entry: u32,
    /// The id's literal as written.
    pub(crate) at: Span,
}

/// What somebody said in an entry, for the verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    entry: u32,
    /// Fingerprint, as in [`Transcript::user_text`].
    pub(crate) hash: u64,
    /// How many texts.
    pub(crate) texts: u64,
}

impl Transcript {
    /// Lets formats mark what entries are made of.
    pub(crate) fn keep_marks(&mut self) {
        self.marks = Some(Vec::new());
    }

    /// The marks of the newest entry.
    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        self.marks.take().unwrap_or_default()
    }

    /// Gives the memory of marks back.
    pub(crate) fn give_marks(&mut self, mut marks: Vec<Mark>) {
        marks.clear();
        self.marks = Some(marks);
    }

    fn range<T>(of: &[T], from: u32, next: Option<u32>) -> Range<usize> {
        from as usize..next.map_or(of.len(), |next| next as usize)
    }

    /// Indices of the calls in an entry.
    pub fn calls_of(&self, entry: u32) -> Range<usize> {
        let next = self.entries.get(entry as usize + 1);
        Self::range(&self.calls, self.entries[entry as usize].calls_from, next.map(|e| e.calls_from))
    }

    /// Indices of the results in an entry.
    pub fn results_of(&self, entry: u32) -> Range<usize> {
        let next = self.entries.get(entry as usize + 1);
        Self::range(&self.results, self.entries[entry as usize].results_from, next.map(|e| e.results_from))
    }

    /// The side copies in an entry.
    pub fn sides_of(&self, entry: u32) -> &[Text] {
        let next = self.entries.get(entry as usize + 1);
        &self.sides
            [Self::range(&self.sides, self.entries[entry as usize].sides_from, next.map(|e| e.sides_from))]
    }

    /// The targets of an entry.
    pub(crate) fn has_target(&self, entry: u32) -> bool {
        let next = self.entries.get(entry as usize + 1).map(|e| e.targets_from);
        !Self::range(&self.targets, self.entries[entry as usize].targets_from, next).is_empty()
    }

    /// The signed thinking blocks in an entry.
    pub fn thinking_of(&self, entry: u32) -> &[Thinking] {
        let from = self.entries[entry as usize].thinking_from;
        let next = self.entries.get(entry as usize + 1).map(|e| e.thinking_from);
        &self.thinking[Self::range(&self.thinking, from, next)]
    }

    /// Entries that are glued, hold odd strings, or are records of the agent's own, with their indices. Rules that look
    /// for those need not walk over all.
    pub(crate) fn unusual(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.unusual.iter().map(|&index| (index, &self.entries[index as usize]))
    }

    /// What is odd about the content of an entry.
    pub fn quirks_of(&self, entry: u32) -> &[Quirk] {
        of_entry(&self.quirks, entry, |quirk| quirk.entry)
    }

    /// What is odd about the content of all entries, in their order.
    pub fn quirks(&self) -> &[Quirk] {
        &self.quirks
    }

    /// All images that are sent, in the order of the file.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The images in an entry.
    pub fn images_of(&self, entry: u32) -> &[Image] {
        of_entry(&self.images, entry, |image| image.entry)
    }

    /// The side copies in an entry that are lists.
    pub(crate) fn side_lists_of(&self, entry: u32) -> &[SideList] {
        of_entry(&self.side_lists, entry, |list| list.entry)
    }

    /// What somebody said in an entry.
    pub(crate) fn said_in(&self, entry: u32) -> Option<Said> {
        of_entry(&self.said, entry, |said| said.entry).first().copied()
    }

    /// What a boundary, leaf record or label points at.
    pub fn target_of(&self, entry: u32) -> Target {
        let from = self.entries[entry as usize].targets_from;
        let next = self.entries.get(entry as usize + 1).map(|e| e.targets_from);
        self.targets[Self::range(&self.targets, from, next)].last().copied().unwrap_or_default()
    }

    /// The entry behind which the result of a call belongs: where its tool began to run, or else its own.
    pub(crate) fn start_of(&self, call: &Call) -> u32 {
        let starts = self.starts_between(call.entry, u32::MAX);
        starts.iter().find(|start| Some(start.call) == call.id).map_or(call.entry, |start| start.entry)
    }

    /// Where it is said that tools began to run, between two entries.
    pub(crate) fn starts_between(&self, one: u32, other: u32) -> &[Start] {
        let from = self.starts.partition_point(|start| start.entry <= one);
        let to = self.starts.partition_point(|start| start.entry < other);
        &self.starts[from..to.max(from)]
    }

    /// The texts of a result.
    pub fn bodies_of(&self, result: usize) -> &[Text] {
        let next = self.results.get(result + 1).map(|r| r.bodies_from);
        &self.bodies[Self::range(&self.bodies, self.results[result].bodies_from, next)]
    }

    /// The entry in whose list an entry stands; itself if it stands in none.
    pub(crate) fn holder_of(&self, entry: u32) -> u32 {
        let before = self.entries[..=entry as usize].iter().rposition(|entry| !entry.listed);
        before.map_or(entry, |holder| holder as u32)
    }

    /// How many bytes of an entry belong to no other entry in it.
    pub(crate) fn own_bytes(&self, entry: u32) -> u64 {
        let (found, after) = (&self.entries[entry as usize], &self.entries[entry as usize + 1..]);
        let inside = after.iter().take_while(|other| other.listed && !found.listed);
        found.span.len() - inside.map(|other| other.span.len()).sum::<u64>()
    }

    /// The text of an optional id; empty without one.
    pub fn id_text(&self, id: Option<Id>) -> &[u8] {
        id.map_or(&[], |id| self.ids.text(id))
    }

    /// Begins an entry; see [`Draft`].
    pub(crate) fn draft(&mut self, line: u64, span: Span, glued: bool) -> Draft<'_> {
        let entry = Entry {
            line,
            span,
            glued,
            listed: false,
            kind: Kind::Opaque,
            id: None,
            parent: Link::Missing,
            parent_at: Span::default(),
            aside: false,
            injected: false,
            group: None,
            model: None,
            stop: Stop::Unknown,
            odd: Odd::default(),
            service: Service::None,
            text_chars: 0,
            calls_from: self.calls.len() as u32,
            results_from: self.results.len() as u32,
            sides_from: self.sides.len() as u32,
            thinking_from: self.thinking.len() as u32,
            targets_from: self.targets.len() as u32,
        };
        Draft { transcript: self, entry, shown: false, said: (0, 0) }
    }

    /// Forgets the entries from this index on: their line turned out not to be one.
    pub(crate) fn forget_entries_from(&mut self, index: usize) {
        if let Some(entry) = self.entries.get(index) {
            self.calls.truncate(entry.calls_from as usize);
            self.sides.truncate(entry.sides_from as usize);
            self.thinking.truncate(entry.thinking_from as usize);
            self.targets.truncate(entry.targets_from as usize);
            let from = entry.results_from as usize;
            if let Some(result) = self.results.get(from) {
                self.bodies.truncate(result.bodies_from as usize);
            }
            self.results.truncate(from);
            self.starts.truncate(self.starts.partition_point(|start| (start.entry as usize) < index));
            self.quirks.truncate(self.quirks.partition_point(|quirk| (quirk.entry as usize) < index));
            self.images.truncate(self.images.partition_point(|image| (image.entry as usize) < index));
            self.said.truncate(self.said.partition_point(|said| (said.entry as usize) < index));
            self.side_lists.truncate(self.side_lists.partition_point(|list| (list.entry as usize) < index));
            self.unusual.truncate(self.unusual.partition_point(|&unusual| (unusual as usize) < index));
            self.entries.truncate(index);
        }
    }
}

/// The part of a list, sorted by entry, that is about one.
fn of_entry<T>(list: &[T], entry: u32, of: impl Fn(&T) -> u32) -> &[T] {
    let from = list.partition_point(|item| of(item) < entry);
    let count = list[from..].iter().take_while(|item| of(item) == entry).count();
    &list[from..from + count]
}

/// An entry while a format reads it.
pub struct Draft<'t> {
    transcript: &'t mut Transcript,
    /// The entry so far.
    pub entry: Entry,
    /// It holds something that could be sent.
    shown: bool,
    /// Fingerprint of what somebody said in it, and how many texts that was.
    said: (u64, u64),
}

impl Draft<'_> {
    /// Interns a short string; `None` for anything else. Empty ids are ids that nothing matches.
    pub fn intern(&mut self, value: Option<Value<'_>>) -> Option<Id> {
        self.intern_text(&value?.text()?)
    }

    fn intern_text(&mut self, text: &[u8]) -> Option<Id> {
        if text.is_empty() { None } else { self.transcript.ids.intern(text) }
    }

    /// The id of the entry before, if this is it: mostly that is the parent, and need not be looked up.
    fn newest(&self, value: Value<'_>) -> Option<Id> {
        let id = self.transcript.entries.last()?.id?;
        (*value.text()? == *self.transcript.ids.text(id)).then_some(id)
    }

    /// Reads the parent from a field's value.
    pub fn parent(&mut self, value: Option<Value<'_>>) {
        self.entry.parent = match value {
            None => Link::Missing,
            Some(value) => {
                self.newest(value).or_else(|| self.intern(Some(value))).map_or(Link::Root, Link::To)
            }
        };
        self.entry.parent_at = value.map(Value::span).unwrap_or_default();
    }

    /// Says what the entry points at.
    pub fn target(&mut self, target: Target) {
        self.transcript.targets.push(target);
    }

    /// Counts a text that the model sees.
    pub fn text(&mut self, value: Value<'_>) {
        self.seen(Stuff::Text, value, u32::MAX);
    }

    fn seen(&mut self, stuff: Stuff, value: Value<'_>, owner: u32) {
        if value.kind() == Json::String {
            self.entry.text_chars += value.chars();
            self.shown |= !is_blank(value);
            self.mark(stuff, owner, value.span(), value.chars());
        }
    }

    fn mark(&mut self, stuff: Stuff, owner: u32, span: Span, chars: u64) {
        if let Some(marks) = &mut self.transcript.marks {
            marks.push(Mark { stuff, owner, span, chars });
        }
    }

    /// Counts the text of a block, and notes it if there is nothing in it.
    pub fn text_block(&mut self, block: Value<'_>, text: Value<'_>) {
        self.text(text);
        self.blank(block, text);
    }

    /// Notes a text block that was counted already, if there is nothing in it.
    pub fn blank(&mut self, block: Value<'_>, text: Value<'_>) {
        if text.kind() == Json::String && is_blank(text) {
            self.quirk(QuirkKind::Blank, block.span());
        }
    }

    /// Notes to which session the row belongs.
    pub fn session(&mut self, name: Option<Value<'_>>) {
        let Some(name) = name.and_then(Value::text) else { return };
        let own = fingerprint::of(&name);
        if *self.transcript.session.get_or_insert(own) != own {
            self.quirk(QuirkKind::Foreign, self.entry.span);
        }
    }

    /// Notes the number of the record.
    pub fn ordinal(&mut self, number: Value<'_>) {
        let Some(own) = number.whole() else { return };
        let before = self.transcript.ordinals;
        if before.is_some_and(|(_, last)| last.checked_add(1) != Some(own)) {
            self.quirk(QuirkKind::Ordinal, self.entry.span);
        }
        self.transcript.ordinals = Some((before.map_or(own, |(first, _)| first), own));
    }

    /// Notes something odd.
    pub fn quirk(&mut self, kind: QuirkKind, block: Span) {
        let entry = self.transcript.entries.len() as u32;
        self.transcript.quirks.push(Quirk { entry, kind, block });
    }

    /// Says that a text is sent, without counting it.
    pub fn shows_text(&mut self, text: Value<'_>) {
        self.shown |= text.kind() == Json::String && !is_blank(text);
    }

    /// Says that the entry holds something that is sent, and is no text, call, result or thinking.
    pub fn shows(&mut self) {
        self.shown = true;
    }

    /// Looks at a block without a text in what the model said.
    pub fn other_block(&mut self, block: Value<'_>) {
        if !self.lacks_text(block) {
            self.shows();
        }
    }

    /// Notes a text block that has no text, or not under its name.
    fn lacks_text(&mut self, block: Value<'_>) -> bool {
        let text = block.get("type").is_some_and(|kind| kind.is("text")) && block.get("text").is_none();
        if text {
            let (kind, at) = match block.fields().map(|(key, _)| key).find(|key| was(*key, "text")) {
                Some(key) => (QuirkKind::Marred(Some("text")), key.span()),
                None => (QuirkKind::Blank, block.span()),
            };
            self.shown |= kind != QuirkKind::Blank;
            self.quirk(kind, at);
        }
        text
    }

    /// Counts a text that a person said.
    pub fn user_text(&mut self, value: Value<'_>) {
        if value.kind() == Json::String {
            self.text(value);
            // White space says nothing, and what stands for an image was not said.
            if is_blank(value)
                || spans::marker::may_begin(value.prefix())
                    && value.text().is_some_and(|text| spans::marker::is_alone(&text))
            {
                return;
            }
            // Of the beginning and the length; summed, so that order does not matter.
            let hash = fingerprint::mix(fingerprint::of(value.prefix()) ^ value.inner().len());
            self.transcript.user_text = self.transcript.user_text.wrapping_add(hash);
            self.transcript.user_texts += 1;
            self.said = (self.said.0.wrapping_add(hash), self.said.1 + 1);
        }
    }

    /// Records a call.
    pub fn call(&mut self, block: Value<'_>, id: Option<Value<'_>>, name: Option<Value<'_>>, partial: bool) {
        let own = self.intern(id);
        let call = Call {
            entry: self.transcript.entries.len() as u32,
            id: own,
            key: own,
            id_at: id.map(Value::span).unwrap_or_default(),
            name: self.intern(name),
            name_at: name.map(Value::span).unwrap_or_default(),
            block: block.span(),
            partial,
            followed: false,
        };
        let (owner, span) = (self.transcript.calls.len() as u32, block.span());
        self.mark(Stuff::Call, owner, span, span.len());
        self.transcript.calls.push(call);
    }

    /// Says that of the call last recorded only this is sent.
    pub fn call_weighs(&mut self, sent: Option<Value<'_>>) {
        if let Some(mark) = self.transcript.marks.as_mut().and_then(|marks| marks.last_mut()) {
            mark.span = sent.map_or_else(|| Span::new(mark.span.start, mark.span.start), Value::span);
            mark.chars = mark.span.len();
        }
    }

    /// Records a result. Its texts follow with [`Draft::body`].
    pub fn result(
        &mut self,
        block: Value<'_>,
        call: Option<Value<'_>>,
        name: Option<Value<'_>>,
        error: bool,
    ) {
        let own = self.intern(call);
        let result = ToolResult {
            entry: self.transcript.entries.len() as u32,
            call: own,
            key: own,
            call_at: call.map(Value::span).unwrap_or_default(),
            name: self.intern(name),
            name_at: name.map(Value::span).unwrap_or_default(),
            block: block.span(),
            whole: block.span() == self.entry.span,
            error,
            synthetic: false,
            images: 0,
            bodies_from: self.transcript.bodies.len() as u32,
        };
        self.transcript.results.push(result);
    }

    /// Names the tool of the call last recorded, where a part of a longer literal does.
    pub fn call_name(&mut self, name: &[u8]) {
        let name = self.intern_text(name);
        if let Some(call) = self.transcript.calls.last_mut() {
            call.name = name;
        }
    }

    /// Says that the call last recorded is only answered by results of the same kind.
    pub fn call_kind(&mut self, kind: &[u8]) {
        let id = self.transcript.calls.last().and_then(|call| call.id);
        let key = self.key(kind, id);
        if let Some(call) = self.transcript.calls.last_mut() {
            call.key = key;
        }
    }

    /// Says that the result last recorded only answers calls of the same kind.
    pub fn result_kind(&mut self, kind: &[u8]) {
        let call = self.transcript.results.last().and_then(|result| result.call);
        let key = self.key(kind, call);
        if let Some(result) = self.transcript.results.last_mut() {
            result.key = key;
        }
    }

    /// Says that calls and results of this entry only pair with each other.
    pub fn scope(&mut self, name: &[u8]) {
        for call in self.entry.calls_from as usize..self.transcript.calls.len() {
            self.transcript.calls[call].key = self.key(name, self.transcript.calls[call].id);
        }
        for result in self.entry.results_from as usize..self.transcript.results.len() {
            self.transcript.results[result].key = self.key(name, self.transcript.results[result].call);
        }
    }

    /// Says which message of a whole conversation is the last one.
    pub fn ends_with(&mut self, last: Span) {
        for call in &mut self.transcript.calls[self.entry.calls_from as usize..] {
            call.followed = call.block.end <= last.start;
        }
    }

    /// A kind and an id as one; only an id with a NUL in it could be mistaken for this.
    fn key(&mut self, kind: &[u8], id: Option<Id>) -> Option<Id> {
        let ids = &mut self.transcript.ids;
        let text = [kind, b"\0", ids.text(id?)].concat();
        ids.intern(&text)
    }

    /// Says that nothing of this file may be changed, whatever its format allows, and why.
    pub fn read_only(&mut self, why: &'static str) {
        self.transcript.read_only.get_or_insert(why);
    }

    /// Records a text of the result last recorded.
    pub fn body(&mut self, text: Value<'_>) {
        if text.kind() != Json::String {
            return;
        }
        if let Some(result) = self.transcript.results.last_mut()
            && result.bodies_from as usize == self.transcript.bodies.len()
            && text.chars() <= INVENTED_CHARS_MAX
            && spans::marker::synthetic(text.prefix())
        {
            // Such a text is of no weight: otherwise putting one in could make a message too long.
            result.synthetic = true;
            return;
        }
        // What stands for an empty text is of no weight either.
        if text.is(spans::marker::NO_OUTPUT) {
            return;
        }
        let owner = (self.transcript.results.len() as u32).wrapping_sub(1);
        self.seen(Stuff::Result, text, owner);
        self.transcript.bodies.push(Text::of(text));
    }

    /// Says that the result last recorded is all that this entry is.
    pub fn whole_result(&mut self, span: Span) {
        if let Some(result) = self.transcript.results.last_mut() {
            (result.block, result.whole) = (span, true);
        }
    }

    /// Looks at the content of the result last recorded: a text, or a list of blocks.
    pub fn content(&mut self, content: Option<Value<'_>>) {
        match content {
            Some(text) if text.kind() == Json::String => self.body(text),
            blocks => blocks.into_iter().flat_map(Value::items).for_each(|block| self.block(block)),
        }
    }

    /// Looks at a block of the result last recorded.
    fn block(&mut self, block: Value<'_>) {
        let index = self.transcript.results.len().saturating_sub(1) as u32;
        if let Some(text) = block.get("text") {
            self.body(text);
            if text.kind() == Json::String && is_blank(text) {
                self.quirk(QuirkKind::BlankResult(index, text.inner()), block.span());
            }
            return;
        }
        self.result_image(block);
    }

    /// Looks at a block of the result last recorded that holds no text.
    pub fn result_image(&mut self, block: Value<'_>) {
        if crate::model::image::may_be(block)
            && let Some(result) = self.transcript.results.last_mut()
        {
            result.images += 1;
        }
        self.image(block);
    }

    /// Looks at a block that holds no text: whether it is an image.
    pub fn image(&mut self, block: Value<'_>) {
        if self.lacks_text(block) {
            return;
        }
        self.shown = true;
        if let Some(image) =
            crate::model::image::may_be(block).then(|| crate::model::image::of_block(block)).flatten()
        {
            let entry = self.transcript.entries.len() as u32;
            self.transcript.images.push(Image { entry, ..image });
        }
    }

    /// Says that nothing but an image may stand in the place of this block.
    pub fn no_words_for(&mut self, block: Value<'_>) {
        if let Some(image) = self.transcript.images.last_mut().filter(|image| image.block == block.span()) {
            image.stub = crate::model::image::Stub::Nothing;
        }
    }

    /// Reads one of the messages of which the entry is made, and notes if there is nothing in it.
    pub fn message(&mut self, message: Value<'_>, read: impl FnOnce(Value<'_>, &mut Self)) {
        let before = self.held();
        self.shown = false;
        read(message, self);
        let said = matches!(self.entry.kind, Kind::Message(Role::Assistant | Role::User));
        if said && !self.shown && self.held() == before {
            self.quirk(QuirkKind::Hollow, message.span());
        }
    }

    /// How much there is that is sent and is no text.
    fn held(&self) -> [usize; 3] {
        [self.transcript.calls.len(), self.transcript.results.len(), self.transcript.thinking.len()]
    }

    /// Says that the result last recorded was invented.
    pub fn invented(&mut self) {
        if let Some(result) = self.transcript.results.last_mut() {
            result.synthetic = true;
        }
    }

    /// Records the long strings inside a value that the model never sees. Image data and what names things
    /// (paths, ids, signatures) are not among them.
    pub fn sides(&mut self, value: Option<Value<'_>>) {
        let Some(value) = value else { return };
        self.mark_side(value);
        let mut opaque = false;
        // In the order of the bytes a key stands right before its value.
        for inside in value.descendants() {
            let long = inside.kind() == Json::String && inside.span().len() - 2 >= SIDE_BYTES_MIN;
            if long && !opaque && !inside.prefix().starts_with(b"data:") {
                self.transcript.sides.push(Text::of(inside));
            }
            opaque =
                ["base64", "data", "signature", "filePath", "file_path"].iter().any(|key| inside.is(key));
        }
    }

    /// The same for a value that may also be a list of lines, each a list of short texts, and for which a string does.
    pub fn sides_or_lines(&mut self, value: Option<Value<'_>>) {
        let are_lines = |list: &Value<'_>| list.items().all(|line| line.kind() == Json::Array);
        match value.filter(|list| list.kind() == Json::Array && are_lines(list)) {
            Some(lines) => {
                self.mark_side(lines);
                let entry = self.transcript.entries.len() as u32;
                self.transcript.side_lists.push(SideList { entry, at: lines.span() });
            }
            None => self.sides(value),
        }
    }

    /// Marks a copy for the screen, of the only result of the entry if it has just one.
    fn mark_side(&mut self, value: Value<'_>) {
        let from = self.entry.results_from as usize;
        let owner = if self.transcript.results.len() == from + 1 { from as u32 } else { u32::MAX };
        self.mark(Stuff::Side, owner, value.span(), 0);
    }

    /// Records a signed thinking block.
    pub fn thinking(&mut self, block: Value<'_>) {
        self.mark(Stuff::Thinking, u32::MAX, block.span(), block.get("thinking").map_or(0, Value::chars));
        self.transcript.thinking.push(Thinking { block: block.span(), fixed: false });
    }

    /// Records signed thinking that is no element of an array, and so cannot be taken out.
    pub fn fixed_thinking(&mut self, value: Value<'_>) {
        self.transcript.thinking.push(Thinking { block: value.span(), fixed: true });
    }

    /// Says that a tool began to run with this entry: the result of its call belongs behind it.
    pub fn started(&mut self, call: Option<Value<'_>>) {
        let entry = self.transcript.entries.len() as u32;
        if let (Some(id), Some(at)) = (self.intern(call), call.map(Value::span)) {
            self.transcript.starts.push(Start { call: id, entry, at });
        }
    }

    /// Says that the result last recorded names no call, but is known to have one.
    pub fn unpaired(&mut self) {
        if let Some(result) = self.transcript.results.last_mut() {
            (result.call, result.key) = (None, None);
        }
    }

    /// Looks at a thinking block with this signature, or this redacted content.
    pub fn signed(&mut self, block: Value<'_>, signature: Option<Value<'_>>) {
        let redacted = block.get("type").is_some_and(|kind| kind.is("redacted_thinking"));
        let signed = signature.is_some_and(|value| !value.is_null() && !value.is(""));
        if signed || redacted {
            self.thinking(block);
        }
        if !signed {
            self.quirk(QuirkKind::Unsigned, block.span());
        } else if signature.is_some_and(is_altered) {
            self.quirk(QuirkKind::Altered, block.span());
        }
    }

    /// Ends the entry.
    pub(crate) fn finish(mut self) {
        let Entry { calls_from, results_from, thinking_from, .. } = self.entry;
        let before = [calls_from, results_from, thinking_from].map(|from| from as usize);
        let hollow = !self.shown && self.held() == before;
        if hollow && matches!(self.entry.kind, Kind::Message(Role::Assistant | Role::User)) {
            self.quirk(QuirkKind::Hollow, self.entry.span);
        }
        let (hash, texts) = self.said;
        if texts > 0 {
            let entry = self.transcript.entries.len() as u32;
            self.transcript.said.push(Said { entry, hash, texts });
        }
        if self.entry.glued || self.entry.odd != Odd::default() || self.entry.service != Service::None {
            self.transcript.unusual.push(self.transcript.entries.len() as u32);
        }
        self.transcript.entries.push(self.entry);
    }
}

/// Whether a signature holds what other programs put in the place of secrets and long texts, and no signature has. Only
/// what is kept of it is looked at.
pub(crate) fn is_altered(signature: Value<'_>) -> bool {
    let bytes = signature.prefix();
    let mark = |mark: &[u8]| memchr::memmem::find(bytes, mark).is_some();
    // None of these bytes is base64, so nearly every signature is asked once.
    let marked = || {
        memchr::memchr3(b'.', b'*', b'\\', bytes).or_else(|| memchr::memchr(0xe2, bytes)).is_some()
            && ["\u{2026}".as_bytes(), b"\\u2026", b"...", b"***"].into_iter().any(mark)
    };
    !bytes.starts_with(b"{") && (marked() || mark(b"REDACTED"))
}

/// Whether a text is nothing but white space. What is longer than is kept of a string is not asked.
pub(crate) fn is_blank(text: Value<'_>) -> bool {
    text.kind() == Json::String
        && may_be_blank(text.prefix())
        && text
            .text()
            .is_some_and(|text| core::str::from_utf8(&text).is_ok_and(|text| text.trim().is_empty()))
}

/// Whether a literal begins with white space as far as its bytes tell, without decoding it: nearly every text ends this
/// at its first byte.
fn may_be_blank(literal: &[u8]) -> bool {
    let mut bytes = literal.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(b'n' | b't' | b'r' | b'f') => {}
                // All other white space of Unicode.
                Some(b'u') => {
                    return [b"00", b"16", b"20", b"30"]
                        .iter()
                        .any(|high| bytes.as_slice().starts_with(*high));
                }
                _ => return false,
            },
            byte if byte.is_ascii_whitespace() => {}
            byte => return matches!(byte, 0xc2 | 0xe1 | 0xe2 | 0xe3),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_blank;
    use alloc::format;
    use spans::json;
    use spans::source::Span;

    #[test]
    fn white_space_is_blank_however_it_is_spelt() {
        for (literal, blank) in [
            ("", true),
            (" \\n\\t\\r\\f ", true),
            ("\u{a0}\u{3000}\u{2003}\u{1680}\u{85}", true),
            ("\\u00a0\\u3000\\u2028\\u0009", true),
            ("\\n\\nx", false),
            (" \u{e9}", false),
            ("\u{3042}", false),
            ("\\u00e9", false),
            ("\\\\n", false),
            ("\\u4e00", false),
        ] {
            let text = format!("{{\"text\":\"{literal}\"}}");
            let span = Span::new(0, text.len() as u64);
            let doc = json::parse(&text.as_bytes(), span).unwrap().unwrap();
            assert_eq!(is_blank(doc.get("text").unwrap()), blank, "{literal:?}");
        }
    }
}
