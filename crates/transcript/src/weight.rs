//! What takes up the space in a transcript and in the context.
//!
//! It uses the same scan as everything else, so it costs little more than a look. Each table divides all bytes of the
//! file in another way, and its rows add up to the file: by [`Standing`], by [`Category`], by kind of entry, by field, by
//! turn. It holds names, spans and numbers, but no text.

mod meter;
mod tally;
mod twins;

use crate::model::policy::{Depth, Policy};
use crate::read::scan;
use crate::session::tokens::ContextTokens;
use crate::session::{Facts, Session};
use alloc::string::String;
use alloc::vec::Vec;
use meter::Meter;
use spans::source::{Fault, Source, Span};

pub use crate::session::tokens::{IMAGE_TOKENS, ReportedTokens};

/// Whether the model sees an entry, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is sent.
    Context,
    /// It is before the last compaction.
    Compacted,
    /// It is on an abandoned branch, belongs to a subagent, or was replaced by a later record.
    OffBranch,
    /// It is not part of the conversation: settings, progress, snapshots.
    Unsent,
    /// Line breaks, blank lines, and damage.
    NoEntry,
}

impl Standing {
    /// All of them, in the order of printing.
    pub const ALL: [Self; 5] = [Self::Context, Self::Compacted, Self::OffBranch, Self::Unsent, Self::NoEntry];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Compacted => "compacted",
            Self::OffBranch => "off-branch",
            Self::Unsent => "unsent",
            Self::NoEntry => "no-entry",
        }
    }
}

/// A category of bytes: what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Texts of results.
    Results,
    /// Calls with their arguments.
    Calls,
    /// Assistant text.
    Assistant,
    /// Thinking and its signatures.
    Thinking,
    /// User text.
    User,
    /// Summaries, instructions and notes that programs add.
    Notes,
    /// Images that the model sees.
    Images,
    /// Copies of results that the model never sees.
    SideCopies,
    /// Ids, times, settings, names and punctuation around messages.
    Envelope,
    /// Entries that are not part of the conversation, line breaks, and damage.
    Bookkeeping,
}

impl Category {
    /// All of them, in the order of printing.
    pub const ALL: [Self; 10] = [
        Self::Results,
        Self::Calls,
        Self::Assistant,
        Self::Thinking,
        Self::User,
        Self::Notes,
        Self::Images,
        Self::SideCopies,
        Self::Envelope,
        Self::Bookkeeping,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Results => "results",
            Self::Calls => "calls",
            Self::Assistant => "assistant",
            Self::Thinking => "thinking",
            Self::User => "user",
            Self::Notes => "notes",
            Self::Images => "images",
            Self::SideCopies => "side-copies",
            Self::Envelope => "envelope",
            Self::Bookkeeping => "bookkeeping",
        }
    }
}

/// How much there is of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of entries, values or calls.
    pub count: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Tokens of the live context; see [`Weight::tokens_are_exact`].
    pub tokens: u64,
}

/// An amount with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAmount {
    /// Its name, as in the file.
    pub name: String,
    /// How much there is.
    pub amount: Amount,
}

/// The calls and results of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRow {
    /// Its name; empty if no call names it.
    pub name: String,
    /// Calls with their arguments; `count` is the number of calls.
    pub calls: Amount,
    /// Texts of its results.
    pub results: Amount,
    /// Images in its results.
    pub images: Amount,
    /// Side copies of its results.
    pub sides: Amount,
}

impl ToolRow {
    /// The sum; `count` is the number of calls.
    pub fn amount(&self) -> Amount {
        Amount {
            count: self.calls.count,
            bytes: self.calls.bytes + self.results.bytes + self.images.bytes + self.sides.bytes,
            tokens: self.calls.tokens + self.results.tokens + self.images.tokens,
        }
    }
}

/// From one user message to the next. What comes before the first is a turn as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Its first line.
    pub line: u64,
    /// `bytes` of its entries, `tokens` of those in the context, `count` of entries.
    pub amount: Amount,
    /// How full the context was at its end, estimated from how full it is now.
    pub context_tokens: u64,
    /// How many compactions are in it.
    pub compactions: u32,
    /// How many of its results were cut by Tailor or by another tool.
    pub cuts: u32,
}

/// One of the largest entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// Its line, from 1.
    pub line: u64,
    /// Its turn, as an index of [`Weight::turns`].
    pub turn: u32,
    /// Its own id, if it has one.
    pub id: String,
    /// What kind of entry it is, as in [`Weight::kinds`].
    pub kind: String,
    /// The tool that was called or has answered; empty if there is none.
    pub tool: String,
    /// Whether the model sees it.
    pub standing: Standing,
    /// What most of it is.
    pub part: Category,
    /// Its bytes by what they are.
    pub parts: [u64; Category::ALL.len()],
    /// How large it is, and what of it is in the context.
    pub amount: Amount,
    /// Its longest piece, as written.
    pub text: Span,
}

/// Texts that are in the file more than once, byte for byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// The copies: how many there are and their total length, not counting the first of each text.
    pub again: Amount,
    /// Shorter texts were not compared.
    pub bytes_min: u64,
    /// There may be more, because comparing all would have taken too long.
    pub at_least: bool,
}

/// What takes up the space in a transcript.
pub struct Weight {
    /// Counts of what it holds.
    pub facts: Facts,
    /// The last model that is named; may be empty.
    pub model: String,
    /// All bytes, by whether the model sees them.
    pub standings: Vec<(Standing, Amount)>,
    /// All bytes, by category. `count` is of pieces, not of entries.
    pub parts: Vec<(Category, Amount)>,
    /// All bytes of entries, by their types and roles; largest first. Without `tokens`.
    pub kinds: Vec<NamedAmount>,
    /// All bytes of entries, by field; largest first. Short values count for the object that holds them. Without
    /// `tokens`.
    pub fields: Vec<NamedAmount>,
    /// Calls and results, by tool; largest first.
    pub tools: Vec<ToolRow>,
    /// All bytes of entries, by turn.
    pub turns: Vec<Turn>,
    /// The largest entries; largest first.
    pub largest: Vec<Large>,
    /// All images, including those in side copies.
    pub images: Amount,
    /// Texts that are there more than once.
    pub duplicates: Duplicates,
    /// How many tokens the model would be sent, including what is not in the file. The tables only divide what is in
    /// the file.
    pub context_tokens: ContextTokens,
    /// Whether all tokens in the tables were counted by the model's own tokeniser. If not, at least some are estimated
    /// from characters.
    pub tokens_are_exact: bool,
}

impl Weight {
    /// The live context.
    pub fn context(&self) -> Amount {
        self.standings.iter().find(|(s, _)| *s == Standing::Context).map_or_else(Amount::default, |(_, a)| *a)
    }
}

/// How many tokens a text has, for one model.
pub type CountTokens = fn(&[u8]) -> u64;

/// Weighs a transcript.
///
/// `tokens_of` is called once with the name of the model, and returns its tokeniser. `largest` is how many of the
/// largest entries to list.
pub fn weigh(
    source: &dyn Source,
    largest: usize,
    tokens_of: &mut dyn FnMut(&[u8]) -> Option<CountTokens>,
) -> Result<Weight, Fault> {
    let mut meter = Meter::new();
    let read = scan::scan_with(source, &mut meter)?;
    let policy = Policy::default();
    let session = Session::new(&read, source, (&policy).into(), Depth::Sizes);
    let mut weight = Weight::nothing(Facts::from_scan(&read));
    if let Some(session) = session {
        weight.facts.awaits = session.awaits();
        tally::tally(&session, &meter, largest, tokens_of, &mut weight)?;
        weight.duplicates = twins::compare(source, &meter)?;
    }
    Ok(weight)
}

impl Weight {
    fn nothing(facts: Facts) -> Self {
        let mut standings: Vec<_> = Standing::ALL.iter().map(|&s| (s, Amount::default())).collect();
        let mut parts: Vec<_> = Category::ALL.iter().map(|&part| (part, Amount::default())).collect();
        standings[Standing::NoEntry as usize].1.bytes = facts.bytes;
        parts[Category::Bookkeeping as usize].1.bytes = facts.bytes;
        Self {
            facts,
            model: String::new(),
            standings,
            parts,
            kinds: Vec::new(),
            fields: Vec::new(),
            tools: Vec::new(),
            turns: Vec::new(),
            largest: Vec::new(),
            images: Amount::default(),
            duplicates: Duplicates::default(),
            context_tokens: ContextTokens::default(),
            tokens_are_exact: false,
        }
    }
}

#[cfg(test)]
mod tests;
