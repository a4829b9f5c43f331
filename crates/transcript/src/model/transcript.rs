//! A transcript as it was read: entries, and what is in them, in one list for each kind.
//!
//! Frequent things (calls, results, thinking) are in lists, and each entry knows its part of each list. Rare things
//! (issues, images) name their entry instead.

use super::entry::{Call, ContentIssue, Damage, Entry, Mark, Target, Thinking, ToolResult};
use super::ids::{Id, Ids};
use super::image::Image;
use alloc::vec::Vec;
use core::ops::Range;
use spans::json::JsonText;
use spans::source::Span;

/// A transcript, read once: everything that rules look at.
#[derive(Clone, Default)]
pub struct Transcript {
    /// The file is one JSON object or array, which no format claims as a record. Its messages are [listed](Entry::listed).
    pub is_document: bool,
    /// Length in bytes.
    pub bytes: u64,
    /// Lines, including a last one without a line break.
    pub lines: u64,
    /// Objects, in the order of the file.
    pub entries: Vec<Entry>,
    /// Calls, in the order of the file.
    pub calls: Vec<Call>,
    /// Results, in the order of the file.
    pub results: Vec<ToolResult>,
    /// Lines, or parts of lines, that are not entries.
    pub damage: Vec<Damage>,
    /// Why nothing in it may be changed; `None` if it may.
    pub read_only: Option<&'static str>,
    /// What holds byte offsets into it, so that each line has to stay where it is; `None` if nothing does.
    pub offsets: Option<&'static str>,
    /// The session is stored in a database. Agents that do so complete half a pair when they send it, but load nothing of a
    /// session if they cannot read one of its rows.
    pub in_database: bool,
    /// Ids of all kinds.
    pub ids: Ids,
    /// Fingerprint of all user texts, independent of their order, for the verdict.
    pub user_text: u64,
    /// Number of user texts.
    pub user_texts: u64,
    pub(super) bodies: Vec<JsonText>,
    pub(super) sides: Vec<JsonText>,
    pub(super) thinking: Vec<Thinking>,
    pub(super) targets: Vec<Target>,
    /// The pieces of the newest entry, if a visitor wants them.
    pub(super) marks: Option<Vec<Mark>>,
    /// Records that mark when tools started.
    pub(super) starts: Vec<Start>,
    /// Fingerprint of the session that the first row names.
    pub(crate) session: Option<u64>,
    /// The first and the last ordinal of a record.
    pub(crate) ordinals: Option<(u64, u64)>,
    /// Entries that change what an earlier one says.
    pub(super) edits: Vec<ContextEdit>,
    /// When rows were written, where the agent goes by that.
    pub(super) times: Vec<Written>,
    /// Indices of unusual entries: see [`Transcript::unusual`].
    pub(super) unusual: Vec<u32>,
    /// Whether some message has its reasoning in a field beside its content.
    pub(crate) reasons: bool,
    /// Messages with calls and without such a field.
    pub(crate) unreasoned: Vec<u32>,
    /// The newest record with a count of tokens.
    pub(crate) token_counts: Option<u32>,
    /// In one list for all entries, in order, because they are rare.
    pub(super) issues: Vec<ContentIssue>,
    pub(super) images: Vec<Image>,
    pub(super) said: Vec<Said>,
    pub(super) side_lists: Vec<SideList>,
}

/// A copy of a result, for the screen only, that is a list of short texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideList {
    pub(super) entry: u32,
    /// The list.
    pub(crate) at: Span,
}

/// An entry that changes what an earlier one on its branch says to the model (pi's `context_edit`).
#[derive(Clone, Debug)]
pub(crate) struct ContextEdit {
    pub(crate) entry: u32,
    /// What it changes.
    pub(crate) target: Id,
    /// Nothing of that is sent any more.
    pub(crate) hides: bool,
    /// Otherwise, the calls that are sent in its place.
    pub(crate) calls: Vec<Id>,
}

/// When the row of an entry was written, in milliseconds; only the low bits, which tell moments of the same weeks apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) entry: u32,
    pub(crate) ms: u32,
}

/// Marks when a call's tool started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) call: Id,
    pub(crate) entry: u32,
    /// The id's literal as written.
    pub(crate) at: Span,
}

/// The user texts in an entry, for the verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(super) entry: u32,
    /// Fingerprint, as in [`Transcript::user_text`].
    pub(crate) hash: u64,
    /// Number of texts.
    pub(crate) texts: u64,
}

impl Transcript {
    /// Makes formats mark the pieces of entries.
    pub(crate) fn keep_marks(&mut self) {
        self.marks = Some(Vec::new());
    }

    /// The marks of the newest entry.
    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        self.marks.take().unwrap_or_default()
    }

    /// Returns the list of marks, to be used again.
    pub(crate) fn give_marks(&mut self, mut marks: Vec<Mark>) {
        marks.clear();
        self.marks = Some(marks);
    }

    /// The range of a list that belongs to an entry; `from` says where that of each entry begins.
    fn own<T>(&self, list: &[T], entry: u32, from: impl Fn(&Entry) -> u32) -> Range<usize> {
        let next = self.entries.get(entry as usize + 1);
        from(&self.entries[entry as usize]) as usize..next.map_or(list.len(), |next| from(next) as usize)
    }

    /// Indices of the calls in an entry.
    pub fn calls_of(&self, entry: u32) -> Range<usize> {
        self.own(&self.calls, entry, |entry| entry.calls_from)
    }

    /// Indices of the results in an entry.
    pub fn results_of(&self, entry: u32) -> Range<usize> {
        self.own(&self.results, entry, |entry| entry.results_from)
    }

    /// The side copies in an entry.
    pub fn sides_of(&self, entry: u32) -> &[JsonText] {
        &self.sides[self.own(&self.sides, entry, |entry| entry.sides_from)]
    }

    /// The signed thinking blocks in an entry.
    pub fn thinking_of(&self, entry: u32) -> &[Thinking] {
        &self.thinking[self.own(&self.thinking, entry, |entry| entry.thinking_from)]
    }

    fn targets_of(&self, entry: u32) -> &[Target] {
        &self.targets[self.own(&self.targets, entry, |entry| entry.targets_from)]
    }

    /// Whether any entry points at another, other than its parent.
    pub(crate) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Whether an entry points at another.
    pub(crate) fn has_target(&self, entry: u32) -> bool {
        !self.targets_of(entry).is_empty()
    }

    /// Entries that are glued, hold odd strings, or are service records, with their indices. They are listed so that rules
    /// about them need not visit all entries.
    pub(crate) fn unusual(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.unusual.iter().map(|&index| (index, &self.entries[index as usize]))
    }

    /// The entries that change others, in the order of the file.
    pub(crate) fn edits(&self) -> &[ContextEdit] {
        &self.edits
    }

    /// When rows were written, in the order of the file.
    pub(crate) fn times(&self) -> &[Written] {
        &self.times
    }

    /// The content issues of an entry.
    pub fn issues_of(&self, entry: u32) -> &[ContentIssue] {
        of_entry(&self.issues, entry, |issue| issue.entry)
    }

    /// The content issues of all entries, in their order.
    pub fn issues(&self) -> &[ContentIssue] {
        &self.issues
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

    /// The user texts in an entry.
    pub(crate) fn said_in(&self, entry: u32) -> Option<Said> {
        of_entry(&self.said, entry, |said| said.entry).first().copied()
    }

    /// What a boundary, leaf record or label points at.
    pub fn target_of(&self, entry: u32) -> Target {
        self.targets_of(entry).last().copied().unwrap_or_default()
    }

    /// The entry that the result of a call has to follow: the record of its tool's start, or else the call's own.
    pub(crate) fn start_of(&self, call: &Call) -> u32 {
        let starts = self.starts_between(call.entry, u32::MAX);
        starts.iter().find(|start| Some(start.call) == call.id).map_or(call.entry, |start| start.entry)
    }

    /// The records between two entries that mark when tools started.
    pub(crate) fn starts_between(&self, one: u32, other: u32) -> &[Start] {
        let from = self.starts.partition_point(|start| start.entry <= one);
        let to = self.starts.partition_point(|start| start.entry < other);
        &self.starts[from..to.max(from)]
    }

    /// The texts of a result.
    pub fn bodies_of(&self, result: usize) -> &[JsonText] {
        let next = self.results.get(result + 1);
        let end = next.map_or(self.bodies.len(), |next| next.bodies_from as usize);
        &self.bodies[self.results[result].bodies_from as usize..end]
    }

    /// The entry whose list holds an entry; itself if it is in none.
    pub(crate) fn holder_of(&self, entry: u32) -> u32 {
        let before = self.entries[..=entry as usize].iter().rposition(|entry| !entry.listed);
        before.map_or(entry, |holder| holder as u32)
    }

    /// The bytes of an entry, less those of the entries in its list.
    pub(crate) fn own_bytes(&self, entry: u32) -> u64 {
        let (found, after) = (&self.entries[entry as usize], &self.entries[entry as usize + 1..]);
        let inside = after.iter().take_while(|other| other.listed && !found.listed);
        found.span.len() - inside.map(|other| other.span.len()).sum::<u64>()
    }

    /// The text of an optional id; empty without one.
    pub fn id_text(&self, id: Option<Id>) -> &[u8] {
        id.map_or(&[], |id| self.ids.text(id))
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
            self.issues.truncate(self.issues.partition_point(|issue| (issue.entry as usize) < index));
            self.images.truncate(self.images.partition_point(|image| (image.entry as usize) < index));
            self.said.truncate(self.said.partition_point(|said| (said.entry as usize) < index));
            self.side_lists.truncate(self.side_lists.partition_point(|list| (list.entry as usize) < index));
            self.edits.truncate(self.edits.partition_point(|edit| (edit.entry as usize) < index));
            self.times.truncate(self.times.partition_point(|time| (time.entry as usize) < index));
            self.unreasoned.truncate(self.unreasoned.partition_point(|&entry| (entry as usize) < index));
            self.token_counts = self.token_counts.filter(|&entry| (entry as usize) < index);
            self.unusual.truncate(self.unusual.partition_point(|&unusual| (unusual as usize) < index));
            self.entries.truncate(index);
        }
    }
}

/// The part of a list, sorted by entry, that is about one entry.
fn of_entry<T>(list: &[T], entry: u32, of: impl Fn(&T) -> u32) -> &[T] {
    let from = list.partition_point(|item| of(item) < entry);
    let count = list[from..].iter().take_while(|item| of(item) == entry).count();
    &list[from..from + count]
}
