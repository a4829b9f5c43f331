//! The session that an error is about: the newest one that has the error, or the defect that causes it.

use super::BATCH_FILES;
use super::interrupt::Interrupt;
use super::progress::Progress;
use crate::say::eprint_message;
use crate::sessions::{Candidate, Looks, Session, State, candidates};
use keeper::read;
use rayon::prelude::*;
use std::path::PathBuf;
use transcript::overflow::{Cause, classify, last_error};
use transcript::refusal::{self, Refusal};
use transcript::request::blame;
use transcript::{Severity, Source};

/// How much of the window a context fills that may be the one that was refused as too long.
const NEARLY_PERCENT_MIN: u64 = 75;

/// What was looked for.
pub(super) struct Search<'a> {
    pub(super) known: &'static Refusal,
    pub(super) text: &'a str,
    /// Ids in the text, one of which the session should hold.
    pub(super) ids: &'a [&'a str],
}

/// What came of it.
pub(super) struct Found {
    /// The session; `None` if no session has that error.
    pub(super) session: Option<Session>,
    /// It has the error, and not just something like it.
    pub(super) is_sure: bool,
    /// How many sessions there are.
    pub(super) sessions: usize,
}

impl Search<'_> {
    /// Looks at the sessions below these paths, or those of known agents, newest first, until one has the error.
    pub(super) fn run(&self, looks: &Looks, paths: &[PathBuf]) -> Found {
        let all = candidates(paths);
        let (interrupt, progress) = (Interrupt::watch(), Progress::of(all.iter().map(Candidate::path)));
        let look = |candidate: &Candidate| {
            if interrupt.came() {
                return None;
            }
            let session = looks.session(candidate, true);
            progress.passed(candidate.path());
            let session = session.map_err(|error| eprint_message(&error.to_string())).ok()??;
            let fit = self.fit(&session)?;
            Some((session, fit))
        };
        let mut second = None;
        for batch in all.chunks(BATCH_FILES) {
            let looked: Vec<_> = batch.par_iter().map(look).collect();
            for (session, fit) in looked.into_iter().flatten() {
                match fit {
                    Fit::Whole => {
                        progress.end();
                        return Found { session: Some(session), is_sure: true, sessions: all.len() };
                    }
                    Fit::Likely if second.is_none() => second = Some(session),
                    Fit::Likely => {}
                }
            }
        }
        progress.end();
        interrupt.obey();
        Found { session: second, is_sure: false, sessions: all.len() }
    }

    /// Whether a session has the error.
    fn fit(&self, session: &Session) -> Option<Fit> {
        let is_about = |code: &str| self.known.codes.contains(&code);
        let is_long = is_length(self.text);
        let has_defect = if is_long {
            session.state == State::TooLong || session.percent() > 100
        } else {
            session.found.iter().any(|(code, how)| *how == Severity::Error && is_about(code))
        };
        if self.ids.is_empty() && has_defect {
            return Some(Fit::Whole);
        }
        if !has_defect && session.failed.is_none() {
            // Estimates, and what is known of windows, may be off.
            return (is_long && session.percent() >= NEARLY_PERCENT_MIN).then_some(Fit::Likely);
        }
        let look = |source: &dyn Source| Ok((blame(source, self.text)?, last_error(source)?));
        let (blame, said) = read(&session.path, None, look).ok()?;
        let named = blame?.named;
        let is_said = said
            .is_some_and(|said| refusal::find(&said).is_some_and(|known| std::ptr::eq(known, self.known)));
        let has_id = self.ids.iter().any(|id| named.iter().any(|(name, _)| name == id));
        match (has_id, has_defect || is_said) {
            (true, true) => Some(Fit::Whole),
            (false, true) if self.ids.is_empty() => Some(Fit::Whole),
            (false, true) => Some(Fit::Likely),
            (_, false) => None,
        }
    }
}

/// Whether an error says that the conversation is too long.
pub(super) fn is_length(text: &str) -> bool {
    classify(text) == Cause::ContextOverflow
}

/// How well a session fits an error.
enum Fit {
    /// It has the error, and the ids that the text names.
    Whole,
    /// It has such an error with other ids, or its context nearly fills the window.
    Likely,
}
