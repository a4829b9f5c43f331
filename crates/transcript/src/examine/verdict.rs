//! Whether a plan may be carried out: the text that it gives is read like any other, and compared with the original.

use super::conversation::Conversation;
use super::look::Examination;
use super::tally::Tally;
pub use crate::model::finding::{News, Worse};
use crate::plan::Origins;

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
