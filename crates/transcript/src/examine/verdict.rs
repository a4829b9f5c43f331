//! Whether a plan may be carried out: the planned text is read like any other and compared with the original.

use super::conversation::Conversation;
use super::look::Examination;
use super::tally::ProblemTally;
pub use crate::model::finding::{NewProblems, Worse};
use crate::plan::Origins;

/// What a plan may lose because somebody asked for it by name (`compact`, `recover`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing.
    None,
    /// Messages may leave the context.
    Context,
    /// Users' texts may leave the file as well.
    Texts,
}

/// What a repair is compared with: the original, less what somebody asked to be taken out.
pub(crate) struct RepairBaseline<'o> {
    known: bool,
    problems: &'o ProblemTally,
    /// The original has errors besides lost links.
    broken: bool,
    /// What was found once bytes, lines and links were repaired.
    uncovered: ProblemTally,
    said: Conversation,
    seen: usize,
}

impl<'o> RepairBaseline<'o> {
    pub(crate) fn from_original(original: &'o Examination) -> Self {
        Self {
            known: original.facts.format.is_some(),
            problems: &original.tally,
            broken: original.tally.has_refusals(),
            uncovered: ProblemTally::default(),
            said: original.said,
            seen: original.said.seen,
        }
    }

    /// Takes in the text after repairs of bytes, lines or links. They may reveal more texts of users, but not lose any.
    pub(crate) fn reveal(&mut self, after: &Examination, origins: &Origins<'_>) -> Result<(), Worse> {
        self.is_known(after)?;
        if after.said.texts < self.said.texts {
            return Err(Worse::UserTextLost);
        }
        let live = self.said.live.max(after.said.live);
        self.said = Conversation { live, ..after.said };
        self.uncovered = after.tally.at_origins(origins);
        Ok(())
    }

    /// No longer expects what a plan takes out because somebody asked for it, or because it is in the file twice.
    pub(crate) fn release(&mut self, gone: Conversation) {
        self.said.hash = self.said.hash.wrapping_sub(gone.hash);
        self.said.texts = self.said.texts.saturating_sub(gone.texts);
        self.seen = self.seen.saturating_sub(gone.seen);
    }

    /// Whether the file is still recognised.
    fn is_known(&self, after: &Examination) -> Result<(), Worse> {
        // A repair may take out the last block that tells two dialects apart. Being read as the other is no loss.
        if self.known && after.facts.format.is_none() { Err(Worse::FormatLost) } else { Ok(()) }
    }

    /// Compares with the planned text.
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

    /// Whether repairs of bytes, lines and links revealed everything that is new.
    pub(crate) fn has_uncovered(&self, after: &Examination, origins: &Origins<'_>) -> bool {
        news(after, origins, &[self.problems, &self.uncovered]).is_ok()
    }

    /// Whether new problems are acceptable: damage had hidden them, and the original had errors as well.
    pub(crate) fn forgives(&self, after: &Examination, origins: &Origins<'_>) -> bool {
        self.broken && self.has_uncovered(after, origins)
    }
}

/// Fails if there are errors or warnings that none of `known` has.
fn news(after: &Examination, origins: &Origins<'_>, known: &[&ProblemTally]) -> Result<(), Worse> {
    let all = after.tally.at_origins(origins);
    if all.is_cut() || known.iter().any(|known| known.is_cut()) {
        return Err(Worse::TooMany);
    }
    match all.news(known) {
        (codes, _) if codes.is_empty() => Ok(()),
        (codes, curable) => Err(Worse::NewFindings(NewProblems { codes, curable })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, examine};
    use alloc::string::{String, ToString};

    /// A plan that nobody asked for may not take a message out of the context, also where it leaves no problem behind.
    #[test]
    fn what_the_model_would_not_see_any_more_is_noticed() {
        let line =
            |role: &str, said: &str| alloc::format!("{{\"role\":\"{role}\",\"content\":\"{said}\"}}\n");
        let (asked, answered) = (line("user", "hello"), line("assistant", "hi"));
        let look = |text: &str| examine(&text.as_bytes(), &Policy::default()).unwrap();
        let whole = look(&(asked.clone() + &answered + &line("user", "well?") + &line("assistant", "well")));
        let baseline = RepairBaseline::from_original(&whole);
        let compare = |text: &str, loss| baseline.compare(&look(text), &Origins::default(), loss);
        let shorter: String = asked + &answered + &line("user", "well?");
        assert_eq!(compare(&shorter, Loss::None).unwrap_err(), Worse::Shortened);
        assert!(compare(&shorter, Loss::Context).is_ok());
        assert_eq!(compare(&answered, Loss::Context).unwrap_err(), Worse::UserTextLost);
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n";
        let said = "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"go on\"}}\n";
        let (whole, empty, origins) = (look(&(header.to_string() + said)), look(header), Origins::default());
        let emptied = RepairBaseline::from_original(&whole).compare(&empty, &origins, Loss::Texts);
        assert_eq!(emptied.unwrap_err(), Worse::Emptied);
        assert!(RepairBaseline::from_original(&empty).compare(&empty, &origins, Loss::None).is_ok());
    }
}
