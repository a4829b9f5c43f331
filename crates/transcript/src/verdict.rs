//! Whether a plan may be carried out: the text that it gives is read like any other and must be no worse.

use crate::entry::Kind;
use crate::session::Session;
use crate::{Examination, rule};
use alloc::collections::BTreeMap;
use core::fmt;

/// Why a plan is not carried out. Seeing one is a bug of Tailor; the original stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// The result has findings of this rule that were not there before.
    NewFinding(&'static str),
    /// What persons said is not all there any more.
    UserTextLost,
    /// Nothing of the conversation would be left.
    Emptied,
    /// The file would not be recognised any more.
    FormatLost,
    /// After several rounds there would still be something to change.
    Unsettled,
}

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewFinding(code) => write!(f, "the repair would bring a new problem ({code})"),
            Self::UserTextLost => f.write_str("the repair would lose something that a person said"),
            Self::Emptied => f.write_str("the repair would leave nothing of the conversation"),
            Self::FormatLost => f.write_str("the repair would make the file unrecognisable"),
            Self::Unsettled => f.write_str("the repair would not come to an end"),
        }
    }
}

/// What must not get worse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    findings: BTreeMap<&'static str, usize>,
    user_text: u64,
    user_texts: u64,
    /// How many of them are in records that are there twice.
    copied_texts: u64,
    messages: usize,
}

impl Health {
    pub(crate) fn of(session: &Session<'_>, findings: &[crate::finding::Finding]) -> Self {
        let mut counts = BTreeMap::new();
        for finding in findings.iter().filter(|finding| !rule::is_remark(finding)) {
            *counts.entry(finding.rule.code()).or_default() += 1;
        }
        let spoken = |&&entry: &&u32| matches!(session.entry(entry).kind, Kind::Message(_));
        // Each is one entry; a message rarely has more than one text, and never this many.
        let copied_texts = counts.get("T5").map_or(0, |copies: &usize| *copies as u64 * 64);
        Self {
            findings: counts,
            user_text: session.transcript.user_text,
            user_texts: session.transcript.user_texts,
            copied_texts,
            messages: session.live.iter().filter(spoken).count(),
        }
    }
}

/// Whether something may go that a person said: only where the plan was asked for by name, to save a session that is
/// too long to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing.
    None,
    /// It may.
    Allowed,
}

/// What a repair is measured against.
pub(crate) struct Baseline {
    known: bool,
    health: Health,
}

impl crate::Examination {
    pub(crate) fn baseline(&self) -> Baseline {
        Baseline { known: self.facts.format.is_some(), health: self.health.clone() }
    }
}

impl Baseline {
    /// Bytes, lines or links were put right: what comes to light with that was there before. What was there must not be
    /// gone; but a branch that now ends in a record whose parent is lost is linked again later, so that whether there is
    /// still a conversation is asked at the end.
    pub(crate) fn lay_open(&mut self, after: &Examination) -> Result<(), Worse> {
        self.is_known(after)?;
        // A copy of a record that is taken out says nothing that the other one does not.
        if after.health.user_texts + self.health.copied_texts < self.health.user_texts {
            return Err(Worse::UserTextLost);
        }
        let messages = self.health.messages.max(after.health.messages);
        self.health = Health { messages, ..after.health.clone() };
        Ok(())
    }

    /// What persons said in entries that are taken out because somebody asked for that by name need not be there.
    pub(crate) fn release(&mut self, (hash, texts): (u64, u64)) {
        self.health.user_text = self.health.user_text.wrapping_sub(hash);
        self.health.user_texts = self.health.user_texts.saturating_sub(texts);
    }

    /// Whether the file is still recognised.
    fn is_known(&self, after: &Examination) -> Result<(), Worse> {
        // Without the last block that only one dialect has, the messages may be read as another's; that is no loss.
        if self.known && after.facts.format.is_none() { Err(Worse::FormatLost) } else { Ok(()) }
    }

    /// Whether there is still a conversation, of the same kind.
    fn holds(&self, after: &Examination) -> Result<(), Worse> {
        self.is_known(after)?;
        if self.health.messages > 0 && after.health.messages == 0 {
            return Err(Worse::Emptied);
        }
        Ok(())
    }

    /// Compares with the text that a plan gives.
    pub(crate) fn compare(&self, after: &Examination, loss: Loss) -> Result<(), Worse> {
        self.holds(after)?;
        let (old, new) = (&self.health, &after.health);
        for rule in rule::RULES {
            let count = |health: &Health| health.findings.get(rule.code()).copied().unwrap_or(0);
            if count(new) > count(old) {
                return Err(Worse::NewFinding(rule.code()));
            }
        }
        if loss == Loss::None && (old.user_text, old.user_texts) != (new.user_text, new.user_texts) {
            return Err(Worse::UserTextLost);
        }
        Ok(())
    }
}

/// Compares the text before with the text that a plan gives.
pub(crate) fn compare(before: &Examination, after: &Examination, loss: Loss) -> Result<(), Worse> {
    before.baseline().compare(after, loss)
}
