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
    messages: usize,
}

impl Health {
    pub(crate) fn of(session: &Session<'_>, findings: &[crate::finding::Finding]) -> Self {
        let mut counts = BTreeMap::new();
        for finding in findings {
            *counts.entry(finding.rule.code()).or_default() += 1;
        }
        let spoken = |&&entry: &&u32| matches!(session.entry(entry).kind, Kind::Message(_));
        Self {
            findings: counts,
            user_text: session.transcript.user_text,
            user_texts: session.transcript.user_texts,
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

/// Compares the text before with the text that a plan gives.
pub(crate) fn compare(before: &Examination, after: &Examination, loss: Loss) -> Result<(), Worse> {
    // Without the last block that only one dialect has, the messages may be read as another's; that is no loss.
    if before.facts.format.is_some() && after.facts.format.is_none() {
        return Err(Worse::FormatLost);
    }
    let (old, new) = (&before.health, &after.health);
    for rule in rule::RULES {
        let count = |health: &Health| health.findings.get(rule.code()).copied().unwrap_or(0);
        if count(new) > count(old) {
            return Err(Worse::NewFinding(rule.code()));
        }
    }
    if loss == Loss::None && (old.user_text, old.user_texts) != (new.user_text, new.user_texts) {
        return Err(Worse::UserTextLost);
    }
    if old.messages > 0 && new.messages == 0 {
        return Err(Worse::Emptied);
    }
    Ok(())
}
