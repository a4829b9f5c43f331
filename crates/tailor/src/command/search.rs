//! Finds the session that an error is about: one that holds an id from the error, or else the newest one that has
//! recorded the error or has the defect that causes it.

use super::BATCH_FILES;
use super::interrupt::Interrupt;
use super::progress::Progress;
use crate::say::eprint_message;
use crate::sessions::{Candidate, ListedSession, Looks, SessionState, candidates};
use keeper::{Policies, Stop, read, read_to_examine};
use memchr::memmem;
use rayon::prelude::*;
use spans::{Fault, Span};
use std::path::{Path, PathBuf};
use transcript::overflow::{Cause, last_error, tokens_named, window_named};
use transcript::refusal::{self, Family};
use transcript::request::blame;
use transcript::{Case, Reading, Severity, Situation, examine_read};

/// How full of the window a context must be to be a candidate for an error about length.
const NEARLY_PERCENT_MIN: u64 = 75;
/// How far a session's number may be from the one in the error: one may be an estimate, or the session may have grown.
const NUMBERS_APART_PERCENT_MAX: u64 = 25;

/// The error to search for.
pub(super) struct ErrorSearch<'a> {
    pub(super) known: &'static Family,
    pub(super) text: &'a str,
    /// Ids in the text. If there are any, only a session that holds one of them matches.
    pub(super) ids: &'a [&'a str],
}

/// The result of a search.
pub(super) struct SearchResult {
    /// The session, and how well it matches; `None` if no session does.
    pub(super) session: Option<(ListedSession, Fit)>,
    /// How many sessions there are.
    pub(super) sessions: usize,
}

/// How well a session matches an error, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It holds an id that the error names, and the defect.
    HasId,
    /// The error is its last one, or the numbers in the error are the session's.
    Recorded,
    /// It has the defect that causes such errors.
    HasDefect,
    /// It holds an id that the error names, but the defect is gone.
    Repaired,
    /// It is nearly as long as the error says.
    Near,
    /// It is long, but the error has other numbers.
    Likely,
}

impl ErrorSearch<'_> {
    /// Examines the sessions below these paths, or those of known agents, newest first, until one certainly has the
    /// error.
    pub(super) fn run(&self, looks: &Looks, paths: &[PathBuf]) -> SearchResult {
        let all = candidates(paths);
        let (interrupt, progress) =
            (Interrupt::watch(), Progress::for_files(all.iter().map(Candidate::path)));
        let look = |candidate: &Candidate| {
            if interrupt.came() {
                return None;
            }
            let found = self.candidate(looks, candidate);
            progress.passed(candidate.path());
            found
        };
        let mut best: Option<(ListedSession, Fit)> = None;
        for batch in all.chunks(BATCH_FILES) {
            let looked: Vec<_> = batch.par_iter().map(look).collect();
            for found in looked.into_iter().flatten() {
                if best.as_ref().is_none_or(|(_, fit)| found.1 < *fit) {
                    best = Some(found);
                }
            }
            // Without ids in the error, the newest session with the defect is the best match.
            if best.as_ref().is_some_and(|(_, fit)| *fit <= Fit::HasDefect) {
                break;
            }
        }
        progress.end();
        interrupt.obey();
        SearchResult { session: best, sessions: all.len() }
    }

    fn candidate(&self, looks: &Looks, candidate: &Candidate) -> Option<(ListedSession, Fit)> {
        // Most sessions hold none of the ids, which a text search shows without a look.
        if !self.ids.is_empty() && !holds_one_of(candidate.path(), self.ids).unwrap_or(false) {
            return None;
        }
        let session = looks.session(candidate, true);
        let session = session.map_err(|error| eprint_message(&error.to_string())).ok()??;
        let fit = if self.ids.is_empty() { self.fit(&session) } else { self.fit_by_id(&session) };
        Some((session, fit?))
    }

    /// How well a session matches in which one of the ids was found.
    fn fit_by_id(&self, session: &ListedSession) -> Option<Fit> {
        // Some rules have no findings without the error's text.
        let situation = Situation { error: Some(self.text.to_string()), ..Situation::default() };
        let look = |reading: &Reading<'_>, case: Case<'_>| {
            Ok::<_, Fault>((blame(reading, self.text)?, examine_read(reading, case)?))
        };
        let (blame, looked) =
            read_to_examine(&session.path, None, &Policies::default(), &situation, look).ok()?;
        let named = blame?.named;
        // The id may only have been mentioned in a text.
        if !self.ids.iter().any(|id| named.iter().any(|(name, _)| name == id)) {
            return None;
        }
        let is_cause = |finding: &transcript::Finding| {
            finding.severity >= Severity::Warning && self.known.codes.contains(&finding.rule.code())
        };
        Some(if looked.findings.iter().any(is_cause) { Fit::HasId } else { Fit::Repaired })
    }

    /// How well a session matches an error without ids.
    fn fit(&self, session: &ListedSession) -> Option<Fit> {
        let is_about = |code: &str| self.known.codes.contains(&code);
        let is_long = is_length(self.text);
        let has_defect = if is_long {
            session.state == SessionState::TooLong || session.percent() > 100
        } else {
            session.found.iter().any(|(code, how)| *how == Severity::Error && is_about(code))
        };
        if session.failed.is_some() && self.is_recorded(&session.path)
            || has_defect && self.numbers_fit(session)
        {
            return Some(Fit::Recorded);
        }
        if is_long {
            // Both estimates and known window sizes may be wrong.
            let fit = if self.numbers_fit(session) { Fit::Near } else { Fit::Likely };
            return (has_defect || session.percent() >= NEARLY_PERCENT_MIN).then_some(fit);
        }
        has_defect.then_some(Fit::HasDefect)
    }

    /// Whether this error is the last one that the session recorded.
    fn is_recorded(&self, path: &Path) -> bool {
        let said = read(path, None, |source| last_error(&Reading::new(source)?));
        let Ok(Some(said)) = said else { return false };
        let is_known = refusal::find(&said).is_some_and(|known| std::ptr::eq(known, self.known));
        let counts = tokens_named(&said).zip(tokens_named(self.text));
        is_known && counts.is_none_or(|(said, asked)| said == asked)
    }

    /// Whether the error's only numbers are the session's length and its window.
    fn numbers_fit(&self, session: &ListedSession) -> bool {
        let is_near = |own: u64, named: u64| {
            own.abs_diff(named).saturating_mul(100) <= named.saturating_mul(NUMBERS_APART_PERCENT_MAX)
        };
        let tokens = session.tokens.zip(tokens_named(self.text)).map(|(own, named)| is_near(own, named));
        let window = window_named(self.text).map(|named| is_near(session.window, named));
        (tokens.is_some() || window.is_some()) && tokens != Some(false) && window != Some(false)
    }
}

/// Whether a file holds one of these ids anywhere.
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
    refusal::cause(text) == Cause::ContextOverflow
}
