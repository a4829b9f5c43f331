//! Whether a plan may be carried out: the text that it gives is read like any other, and compared with the original.

use crate::found::Tally;
use crate::model::entry::Kind;
use crate::model::finding::{Guard, Op, Safety};
pub use crate::model::finding::{News, Worse};
use crate::plan::Origins;
use crate::session::Session;
use crate::{Examination, Messages};
use hashbrown::HashSet;

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
        (codes, _) if codes.is_empty() => Ok(()),
        (codes, curable) => Err(Worse::NewFindings(News { codes, curable })),
    }
}
