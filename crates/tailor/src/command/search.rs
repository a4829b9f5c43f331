//! The session that an error is about: the one that holds the ids the error names, or else the newest one that has the
//! error, or the defect that causes it.

use super::BATCH_FILES;
use super::interrupt::Interrupt;
use super::progress::Progress;
use crate::say::eprint_message;
use crate::sessions::{Candidate, Looks, Session, State, candidates};
use keeper::{Stop, read};
use memchr::memmem;
use rayon::prelude::*;
use spans::{Fault, Source, Span};
use std::path::{Path, PathBuf};
use transcript::overflow::{Cause, classify, last_error, tokens_named, window_named};
use transcript::refusal::{self, Refusal};
use transcript::request::blame;
use transcript::{Policy, Severity, examine};

/// How much of the window a context fills that may be the one that was refused as too long.
const NEARLY_PERCENT_MIN: u64 = 75;
/// How far a number of a session may be from the one that the error names: one is an estimate, or has grown since.
const NUMBERS_APART_PERCENT_MAX: u64 = 25;

/// What is looked for.
pub(super) struct Search<'a> {
    pub(super) known: &'static Refusal,
    pub(super) text: &'a str,
    /// Ids in the text. If there are any, only a session that holds one of them is meant.
    pub(super) ids: &'a [&'a str],
}

/// What came of it.
pub(super) struct Found {
    /// The session, and how well it fits; `None` if no session has that error.
    pub(super) session: Option<(Session, Fit)>,
    /// How many sessions there are.
    pub(super) sessions: usize,
}

/// How well a session fits an error, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It holds an id that the error names, and the defect.
    HasId,
    /// The error is recorded as its last one, or the numbers of the error are those of the session.
    Recorded,
    /// It has the defect that causes such errors.
    HasDefect,
    /// It holds an id that the error names, but the defect is gone.
    Repaired,
    /// It is nearly as long as the error says.
    Near,
    /// It is long, but the numbers of the error are others.
    Likely,
}

impl Search<'_> {
    /// Looks at the sessions below these paths, or those of known agents, newest first, until one surely has the error.
    pub(super) fn run(&self, looks: &Looks, paths: &[PathBuf]) -> Found {
        let all = candidates(paths);
        let (interrupt, progress) = (Interrupt::watch(), Progress::of(all.iter().map(Candidate::path)));
        let look = |candidate: &Candidate| {
            if interrupt.came() {
                return None;
            }
            let found = self.candidate(looks, candidate);
            progress.passed(candidate.path());
            found
        };
        let mut best: Option<(Session, Fit)> = None;
        for batch in all.chunks(BATCH_FILES) {
            let looked: Vec<_> = batch.par_iter().map(look).collect();
            for found in looked.into_iter().flatten() {
                if best.as_ref().is_none_or(|(_, fit)| found.1 < *fit) {
                    best = Some(found);
                }
            }
            // Where the error names no id, nothing fits better than the newest session that has its defect.
            if best.as_ref().is_some_and(|(_, fit)| *fit <= Fit::HasDefect) {
                break;
            }
        }
        progress.end();
        interrupt.obey();
        Found { session: best, sessions: all.len() }
    }

    fn candidate(&self, looks: &Looks, candidate: &Candidate) -> Option<(Session, Fit)> {
        // Most sessions hold none of the ids, which takes no look to see.
        if !self.ids.is_empty() && !holds_one_of(candidate.path(), self.ids).unwrap_or(false) {
            return None;
        }
        let session = looks.session(candidate, true);
        let session = session.map_err(|error| eprint_message(&error.to_string())).ok()??;
        let fit = if self.ids.is_empty() { self.fit(&session) } else { self.fit_by_id(&session) };
        Some((session, fit?))
    }

    /// How well a session fits in which one of the ids stands somewhere.
    fn fit_by_id(&self, session: &Session) -> Option<Fit> {
        // What the error says is part of the question: some rules find nothing without it.
        let policy = Policy { error: Some(self.text.to_string()), ..Policy::default() };
        let look = |source: &dyn Source| Ok((blame(source, self.text)?, examine(source, &policy)?));
        let (blame, looked) = read(&session.path, None, look).ok()?;
        let named = blame?.named;
        // Somebody may only have talked about it.
        if !self.ids.iter().any(|id| named.iter().any(|(name, _)| name == id)) {
            return None;
        }
        let is_cause = |finding: &transcript::Finding| {
            finding.severity >= Severity::Warning && self.known.codes.contains(&finding.rule.code())
        };
        Some(if looked.findings.iter().any(is_cause) { Fit::HasId } else { Fit::Repaired })
    }

    /// How well a session fits an error that names no ids.
    fn fit(&self, session: &Session) -> Option<Fit> {
        let is_about = |code: &str| self.known.codes.contains(&code);
        let is_long = is_length(self.text);
        let has_defect = if is_long {
            session.state == State::TooLong || session.percent() > 100
        } else {
            session.found.iter().any(|(code, how)| *how == Severity::Error && is_about(code))
        };
        if session.failed.is_some() && self.is_recorded(&session.path)
            || has_defect && self.numbers_fit(session)
        {
            return Some(Fit::Recorded);
        }
        if is_long {
            // Estimates, and what is known of windows, may be off.
            let fit = if self.numbers_fit(session) { Fit::Near } else { Fit::Likely };
            return (has_defect || session.percent() >= NEARLY_PERCENT_MIN).then_some(fit);
        }
        has_defect.then_some(Fit::HasDefect)
    }

    /// Whether this error is the last one that the session says.
    fn is_recorded(&self, path: &Path) -> bool {
        let Ok(Some(said)) = read(path, None, last_error) else { return false };
        let is_known = refusal::find(&said).is_some_and(|known| std::ptr::eq(known, self.known));
        let counts = tokens_named(&said).zip(tokens_named(self.text));
        is_known && counts.is_none_or(|(said, asked)| said == asked)
    }

    /// Whether the error names how long the session is, or its window, and nothing else.
    fn numbers_fit(&self, session: &Session) -> bool {
        let is_near = |own: u64, named: u64| {
            own.abs_diff(named).saturating_mul(100) <= named.saturating_mul(NUMBERS_APART_PERCENT_MAX)
        };
        let tokens = session.tokens.zip(tokens_named(self.text)).map(|(own, named)| is_near(own, named));
        let window = window_named(self.text).map(|named| is_near(session.window, named));
        (tokens.is_some() || window.is_some()) && tokens != Some(false) && window != Some(false)
    }
}

/// Whether one of these ids stands anywhere in a file.
fn holds_one_of(path: &Path, ids: &[&str]) -> Result<bool, Stop> {
    let longest = ids.iter().map(|id| id.len()).max().unwrap_or(0);
    read(path, None, |source| {
        let (mut holds, mut joint) = (false, Vec::new());
        source.pieces(Span { start: 0, end: source.len() }, &mut |piece| {
            // An id may begin in one piece and end in the next.
            joint.extend_from_slice(&piece[..piece.len().min(longest)]);
            holds = ids.iter().any(|id| {
                memmem::find(piece, id.as_bytes()).is_some() || memmem::find(&joint, id.as_bytes()).is_some()
            });
            joint = piece[piece.len().saturating_sub(longest)..].to_vec();
            !holds
        })?;
        Ok::<bool, Fault>(holds)
    })
}

/// Whether an error says that the conversation is too long.
pub(super) fn is_length(text: &str) -> bool {
    classify(text) == Cause::ContextOverflow
}
