//! What holds for all files of a shape. Each shape says it in its own file.

use super::view::Session;

/// What holds for all files of a shape.
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(crate) struct Traits {
    /// Finds the live entries, their order, and what of them is in context.
    pub(super) join: fn(&mut Session<'_>),
    /// Calls and results find each other by id wherever they stand.
    pub(crate) pairs_anywhere: bool,
    /// The summary of a compaction is sent first, before what it keeps, as a user's message.
    pub(crate) summary_first: bool,
    /// Summaries are notes, lines of their own; notes without a text are attachments.
    pub(crate) notes_are_summaries: bool,
    /// The agent joins what is between two assistant messages into one message.
    pub(crate) joins_messages: bool,
    /// The agent sends the messages as they are, without correcting anything.
    pub(crate) sent_as_written: bool,
    /// A record may be the target of a rewind, by its id: one that held only results stays, empty, when they go.
    pub(crate) emptied_records_stay: bool,
    /// An agent of this shape gives a new entry a short id where its neighbour's is shorter than this, else a uuid.
    pub(crate) short_ids_below: usize,
    /// How a compaction is written.
    pub(crate) compacts: Compacts,
}

impl Traits {
    /// What holds for most shapes; each says the rest.
    pub(super) const BASE: Self = Self {
        join: |_| {},
        pairs_anywhere: false,
        summary_first: false,
        notes_are_summaries: false,
        joins_messages: false,
        sent_as_written: false,
        emptied_records_stay: false,
        short_ids_below: 0,
        compacts: Compacts::Before,
    };
}

/// How a compaction is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compacts {
    /// At the end of the branch, naming the first entry that stays.
    AtEnd,
    /// Before the first entry that stays, as its parent.
    Linked,
    /// Before the first line that stays.
    Before,
    /// Without a record: a message replaces those that go.
    InPlace,
}
