//! Whether a plan may be carried out: the text that it gives is read like any other, and compared with the original.

use crate::entry::Kind;
use crate::finding::{Guard, Op, Safety};
use crate::found::{ERRORS_MAX, Tally};
use crate::plan::Origins;
use crate::rule::RULES;
use crate::session::Session;
use crate::{Examination, Messages};
use core::fmt;
use hashbrown::HashSet;

/// Why a repair is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// The result has errors or warnings that the original does not have.
    NewFindings(News),
    /// Something that a person said would be missing.
    UserTextLost,
    /// The model would see fewer messages, and nobody asked for that.
    Shortened,
    /// Nothing of the conversation would be left.
    Emptied,
    /// The file would not be recognised any more.
    FormatLost,
    /// There are too many errors to compare the result with the original.
    TooMany,
    /// After several rounds this rule would still want changes.
    Unsettled(&'static str),
}

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewFindings(news) => write!(f, "the repair would bring a new problem ({})", news.codes),
            Self::UserTextLost => f.write_str("the repair would lose something that a person said"),
            Self::Shortened => f.write_str("the repair would hide messages that the model sees now"),
            Self::Emptied => f.write_str("the repair would leave nothing of the conversation"),
            Self::FormatLost => f.write_str("the repair would make the file unrecognisable"),
            Self::TooMany => write!(
                f,
                "more than {ERRORS_MAX} errors are too many to check a repair; repair one rule at a time (--select CODE)"
            ),
            Self::Unsettled(code) => write!(f, "the repair of {code} would not come to an end"),
        }
    }
}

/// What a repair would bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The rules that find something new.
    pub codes: Codes,
    /// Whether each of them has a repair that is made when it is asked for by name.
    pub curable: bool,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codes(u128);

const _: () = assert!(RULES.len() <= 128, "a set of rules has a bit for each");

impl Codes {
    pub(crate) fn insert(&mut self, code: &str) {
        let place = RULES.iter().position(|rule| rule.code() == code);
        self.0 |= place.map_or(0, |place| 1 << place);
    }

    pub(crate) fn has(self, code: &str) -> bool {
        self.iter().any(|own| own == code)
    }

    /// In the order of [`RULES`].
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        let has = move |place: &usize| self.0 & (1 << place) != 0;
        (0..RULES.len()).filter(has).map(|place| RULES[place].code())
    }
}

impl fmt::Display for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, code) in self.iter().enumerate() {
            f.write_str(if n > 0 { "," } else { "" })?;
            f.write_str(code)?;
        }
        Ok(())
    }
}

/// What persons said, and how much of the conversation there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// Fingerprint of what persons said.
    pub(crate) hash: u64,
    /// In how many texts they said it.
    pub(crate) texts: u64,
    /// Messages that the model sees.
    pub(crate) seen: usize,
    /// Messages on the live branch.
    pub(crate) live: usize,
}

impl Conversation {
    pub(crate) fn of(session: &Session<'_>, seen: usize) -> Self {
        let spoken = |&&entry: &&u32| matches!(session.entry(entry).kind, Kind::Message(_));
        let live = session.live.iter().filter(spoken).count();
        Self { hash: session.transcript.user_text, texts: session.transcript.user_texts, seen, live }
    }

    /// What of it the plan of a stage takes out because somebody asked for that by name: messages of the agent, and, of
    /// history that is not loaded, what persons said. A copy that goes says nothing that the other one does not.
    pub(crate) fn released(session: &Session<'_>, steps: &[(Safety, &[Op])]) -> Self {
        let (mut going, mut said) = (HashSet::new(), HashSet::new());
        for (safety, op) in steps.iter().flat_map(|(safety, ops)| ops.iter().map(move |op| (safety, op))) {
            match (op, safety) {
                (Op::DropCopy(entry), _) => _ = said.insert(*entry),
                (Op::DropEntry(entry), Safety::Guarded(why)) => {
                    going.insert(*entry);
                    if *why == Guard::History {
                        said.insert(*entry);
                    }
                }
                _ => {}
            }
        }
        let texts = said.into_iter().filter_map(|entry| session.transcript.said_in(entry));
        let (hash, texts) = texts.fold((0, 0), |(hash, texts): (u64, u64), said| {
            (hash.wrapping_add(said.hash), texts + said.texts)
        });
        Self { hash, texts, seen: Messages::seen_in(session, going.into_iter()), live: 0 }
    }
}

/// What may go because the plan was asked for by name, to save a session that is too long to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing.
    None,
    /// Messages may leave the context.
    Context,
    /// What persons said may leave the file as well.
    Texts,
}

/// What a repair is measured against: the original, and what people asked to be taken out of it.
pub(crate) struct Baseline<'o> {
    known: bool,
    problems: &'o Tally,
    /// The original could not be sent, or not be read.
    broken: bool,
    /// What came to light once bytes, lines and links were right.
    uncovered: Tally,
    said: Conversation,
    seen: usize,
}

impl<'o> Baseline<'o> {
    pub(crate) fn of(original: &'o Examination) -> Self {
        Self {
            known: original.facts.format.is_some(),
            problems: &original.tally,
            broken: original.tally.has_errors(),
            uncovered: Tally::default(),
            said: original.said,
            seen: original.said.seen,
        }
    }

    /// Bytes, lines or links were put right. Persons may be found to have said more with that, and not less.
    pub(crate) fn lay_open(&mut self, after: &Examination, origins: &Origins<'_>) -> Result<(), Worse> {
        self.is_known(after)?;
        if after.said.texts < self.said.texts {
            return Err(Worse::UserTextLost);
        }
        let live = self.said.live.max(after.said.live);
        self.said = Conversation { live, ..after.said };
        self.uncovered = after.tally.at_origins(origins);
        Ok(())
    }

    /// What was in entries that are taken out because somebody asked for that by name need not be there, nor what stands
    /// in the file again.
    pub(crate) fn release(&mut self, gone: Conversation) {
        self.said.hash = self.said.hash.wrapping_sub(gone.hash);
        self.said.texts = self.said.texts.saturating_sub(gone.texts);
        self.seen = self.seen.saturating_sub(gone.seen);
    }

    /// Whether the file is still recognised.
    fn is_known(&self, after: &Examination) -> Result<(), Worse> {
        // Without the last block that only one dialect has, the messages may be read as another's; that is no loss.
        if self.known && after.facts.format.is_none() { Err(Worse::FormatLost) } else { Ok(()) }
    }

    /// Compares with the text that a plan gives.
    pub(crate) fn compare(
        &self,
        after: &Examination,
        origins: &Origins<'_>,
        loss: Loss,
    ) -> Result<(), Worse> {
        self.is_known(after)?;
        if self.said.live > 0 && after.said.live == 0 {
            return Err(Worse::Emptied);
        }
        if loss != Loss::Texts && (self.said.hash, self.said.texts) != (after.said.hash, after.said.texts) {
            return Err(Worse::UserTextLost);
        }
        if loss == Loss::None && after.said.seen < self.seen {
            return Err(Worse::Shortened);
        }
        news(after, origins, &[self.problems])
    }

    /// Whether all that is new came to light with bytes, lines and links.
    pub(crate) fn has_uncovered(&self, after: &Examination, origins: &Origins<'_>) -> bool {
        news(after, origins, &[self.problems, &self.uncovered]).is_ok()
    }

    /// Whether that may be there: damage had hidden it, and the original could not be sent either.
    pub(crate) fn forgives(&self, after: &Examination, origins: &Origins<'_>) -> bool {
        self.broken && self.has_uncovered(after, origins)
    }
}

/// Errors and warnings of which there are more than in any of these.
fn news(after: &Examination, origins: &Origins<'_>, known: &[&Tally]) -> Result<(), Worse> {
    let all = after.tally.at_origins(origins);
    if all.is_cut() || known.iter().any(|known| known.is_cut()) {
        return Err(Worse::TooMany);
    }
    match all.news(known) {
        (codes, _) if codes == Codes::default() => Ok(()),
        (codes, curable) => Err(Worse::NewFindings(News { codes, curable })),
    }
}
