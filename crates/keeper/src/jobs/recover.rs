//! A session that the API refuses because it is too long: shorter, in as many steps as that takes.
//!
//! How it becomes shorter is not known here, but what was tried: the vault keeps a record of each run.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::outcome::{Ending, Outcome};
use crate::ask::stop::Halt;
use crate::base::refusal::Refusal;
use crate::jobs::carry::{Draw, Drawn, Next, STORE_TRIES, carry, carry_stopped};
use crate::jobs::stored;
use crate::options::Options;
use crate::swap::content::FileContent;
use crate::vault::{Purpose, Record, RunState, Vault};
use std::path::Path;
use transcript::compact::{Shares, Unable};
use transcript::overflow::{Cause, Failure, answered_since, last_error, last_failure, tokens_named};
use transcript::recover::{self, RecoverLevel};
use transcript::refusal::cause as cause_of;
use transcript::shorten::{Length, Need, shorten};
use transcript::{Case, Fault, Reading, Situation, examine_read};

/// What is known, and what is asked for.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// What the API said. Without it the transcript's own last error counts.
    pub error: Option<String>,
    /// The level, whatever the error is. Without one, as much as a number of tokens takes; or if not tokens but bytes were
    /// too many, the next level after those that were tried.
    pub level: Option<RecoverLevel>,
    /// How many messages stay at level 2; 0 for 10.
    pub keep: u64,
    /// How many tokens are to be left, whatever the error is. Without it, 60 percent of the window.
    pub target_tokens: Option<u64>,
    /// Only if a request has failed since the last recovery, however full the window is.
    pub only_new: bool,
    /// How often in a row, without an answer of the model in between, before it is given up; 0 for any number.
    pub attempts_max: u64,
}

/// What came of it.
pub struct Recovered {
    /// What was done. [`Ending::Clean`] if no request has failed and the session is not too long, or only an answer was cut
    /// off.
    pub outcome: Outcome,
    /// Why the request failed; `None` if nothing says that it did.
    pub cause: Option<Cause>,
    /// The text of the error.
    pub error: Option<String>,
    /// The last error in the transcript, or the one that was passed, is older than the last recovery.
    pub is_over: bool,
    /// The level that was used; `None` if nothing was changed, or a number of tokens decided.
    pub level: Option<RecoverLevel>,
    /// How often it was recovered in a row before this, without an answer of the model since.
    pub attempts_before: u64,
    /// How the conversation was divided, where messages were left out.
    pub shares: Option<Shares>,
    /// How long the session was, and is. `None` if its format is not known.
    pub tokens: Option<Tokens>,
}

/// How long a session is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// How long it was.
    pub before: Length,
    /// How long it is; `None` if nothing was changed.
    pub after: Option<u64>,
    /// What it was to get down to; `None` if a level decided.
    pub target: Option<u64>,
    /// From how many of the messages that stay signed thinking was removed.
    pub thinking_removed: u64,
    /// Why older messages could not be left out, if they could not.
    pub unable: Option<Unable>,
}

impl Tokens {
    /// Whether it has more tokens than it was to have, or than the window has.
    pub fn is_over(&self) -> bool {
        self.after.is_some_and(|after| after > self.target.unwrap_or(self.before.window))
    }
}

/// What is found out on the way.
#[derive(Default)]
struct FoundOut {
    cause: Option<Cause>,
    error: Option<String>,
    is_over: bool,
    level: Option<RecoverLevel>,
    attempts: u64,
    shares: Option<Shares>,
    tokens: Option<Tokens>,
}

/// Recovers the session in a file, if its last request was too long: makes it fit into part of the window, half as much each
/// time that the model has not answered since. Without a vault nothing is known of earlier attempts.
///
/// The mode of the options says whether to do that or only report it, and their settle time how long the file must have
/// been quiet, as for [`crate::maintain`]. A conversation that waits for a tool or for the model is deferred in every
/// format, unless the settle time is 0.
///
/// # Errors
///
/// When the file or the vault cannot be read or written. Then the file is as it was.
pub fn recover(
    path: &Path,
    root: Option<&Path>,
    recovery: &Recovery,
    options: &Options,
) -> Result<Recovered, Error> {
    let draw = |content: &FileContent, situation: &Situation| {
        content.read_whole(&options.policy, |reading, policy| {
            let case = Case { policy, situation };
            Recovering { path: &content.path, reading, case, recovery, options }.draw()
        })
    };
    let (outcome, found) = match recover_stored(path, root, options, &draw)? {
        Some(done) => done,
        None => carry(path, root, options, &draw)?,
    };
    let FoundOut { cause, error, is_over, level, attempts: attempts_before, shares, mut tokens } =
        found.unwrap_or_default();
    let changed = matches!(outcome.ending, Ending::Fixed | Ending::WouldFix);
    if let Some(tokens) = tokens.as_mut().filter(|_| !changed) {
        tokens.after = None;
    }
    let level = level.filter(|_| changed);
    Ok(Recovered { outcome, cause, error, is_over, level, attempts_before, shares, tokens })
}

/// `None` if the path stands for no session in a store.
fn recover_stored(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    draw: Draw<'_, FoundOut>,
) -> Result<Option<(Outcome, Option<FoundOut>)>, Error> {
    let mut last = None;
    for _ in 0..STORE_TRIES {
        let stored = match stored::open(path, root) {
            Ok(None) => return Ok(None),
            Ok(Some(stored)) => stored,
            Err(stop) => return Ok(Some((Outcome::from_result(Err(stop))?, None))),
        };
        let done = carry_stopped(&stored, options, draw)?;
        let is_late = done.0.ending == Ending::Deferred(Deferral::Changed);
        last = Some(done);
        if !is_late {
            break;
        }
    }
    Ok(last)
}

/// A session that may have to be recovered, as it was read.
struct Recovering<'a> {
    path: &'a Path,
    reading: &'a Reading<'a>,
    case: Case<'a>,
    recovery: &'a Recovery,
    options: &'a Options,
}

impl Recovering<'_> {
    fn draw(&self) -> Result<Drawn<FoundOut>, Halt> {
        let Self { reading, recovery, .. } = *self;
        let (failure, said) = (last_failure(reading)?, last_error(reading)?);
        let tried = TriedLevels::read(self.options.vault.as_ref(), self.path, reading)?;
        // What the API said before the last recovery says nothing about what is left.
        let was_over = failure.is_some_and(|failure| tried.end.is_some_and(|end| failure.at < end));
        let failure = failure.filter(|_| !was_over);
        let is_old = |error: &&String| {
            was_over && said.as_deref().is_some_and(|said| is_same(said, error)) || tried.has_met(error)
        };
        let passed = recovery.error.as_ref().filter(|error| !is_old(error));
        let is_over = (was_over || recovery.error.is_some()) && passed.is_none() && failure.is_none();
        let error = passed.cloned().or(said.filter(|_| failure.is_some()));
        let cause = passed.map(|error| cause_of(error)).or(failure.map(|failure| failure.cause));
        let length = Length::measure(reading, self.case.policy, error.as_deref())?;
        let tokens = length.map(|before| Tokens {
            before,
            after: None,
            target: None,
            thinking_removed: 0,
            unable: None,
        });
        let attempts = tried.count;
        let found = FoundOut { cause, error, is_over, attempts, tokens, ..FoundOut::default() };
        // It was already shortened because of that error, whatever the estimate of the rest is.
        let fits = is_over && length.is_some_and(|length| length.tokens <= length.window);
        let is_asked = recovery.level.is_some() || recovery.target_tokens.is_some();
        if fits && !is_asked {
            return Ok(self.not_drawn(Ending::Clean, found)?);
        }
        Ok(match tried.next(recovery, cause, length) {
            Ok(ShortenBy::Levels(levels)) => self.by_levels(levels, found)?,
            Ok(ShortenBy::Target(target)) => self.to_target(target, is_asked, found)?,
            Err(ending) => self.not_drawn(ending, found)?,
        })
    }

    /// Takes the first of these levels that changes anything.
    fn by_levels(&self, levels: &[RecoverLevel], mut found: FoundOut) -> Result<Drawn<FoundOut>, Fault> {
        let mut last = Ending::Refused(Refusal::Unable(Unable::Nothing));
        for &level in levels {
            let done = recover::recover(self.reading, self.case, level, self.recovery.keep)?;
            match done.repair {
                Ok(repair) if repair.plan.is_empty() => {}
                Err(Unable::Nothing) => {}
                Err(unable) => last = Ending::Refused(Refusal::Unable(unable)),
                Ok(repair) => {
                    (found.level, found.shares) = (Some(level), done.shares);
                    if let (Some(tokens), Some(after)) = (&mut found.tokens, &repair.after) {
                        tokens.after = Some(tokens.before.when(after.context_tokens.estimated));
                    }
                    let next = Next::change(repair, Some(Purpose::Recover(level.number())));
                    return Ok(Drawn { before: done.before, next, seen: Some(found) });
                }
            }
        }
        self.not_drawn(last, found)
    }

    /// Makes it fit into so many tokens.
    fn to_target(&self, target: u64, is_asked: bool, mut found: FoundOut) -> Result<Drawn<FoundOut>, Fault> {
        let Some(tokens) = &mut found.tokens else {
            return self.not_drawn(Ending::Refused(Refusal::Unable(Unable::UnknownFormat)), found);
        };
        let length = tokens.before;
        let is_needed = found.cause.is_some() || is_asked || length.tokens > length.window;
        let done = shorten(self.reading, self.case, &length, target)?;
        let repair = match done.recovered.repair {
            // Nobody has refused it, and it fits.
            Err(_) if !is_needed => Err(Ending::Clean),
            Err(unable) => Err(Ending::Refused(Refusal::Unable(unable))),
            // Shorter, and refused all the same: nothing is worth losing for that.
            Ok(_) if done.tokens > length.window.max(target) => Err(Ending::Refused(Refusal::StillTooLong {
                tokens: done.tokens,
                window: length.window,
                unable: done.unable,
            })),
            Ok(repair) => Ok(repair),
        };
        let next = match repair {
            Err(ending) => Next::End(ending),
            Ok(repair) => {
                (tokens.after, tokens.target) = (Some(done.tokens), Some(target));
                (tokens.thinking_removed, tokens.unable) = (done.thinking_removed, done.unable);
                found.shares = done.recovered.shares;
                let refused = found.error.as_deref().and_then(tokens_named);
                Next::change(repair, Some(refused.map_or(Purpose::Recover(0), Purpose::RecoverFrom)))
            }
        };
        Ok(Drawn { before: done.recovered.before, next, seen: Some(found) })
    }

    fn not_drawn(&self, ending: Ending, found: FoundOut) -> Result<Drawn<FoundOut>, Fault> {
        let before = examine_read(self.reading, self.case)?;
        Ok(Drawn { before, next: Next::End(ending), seen: Some(found) })
    }
}

/// Whether a session was recovered after a turn of it had failed. `path` has no symbolic links in it.
///
/// # Errors
///
/// When the vault cannot be read.
pub fn recovered_since(vault: &Vault, path: &Path, failure: &Failure) -> Result<bool, Error> {
    Ok(recoveries(vault, path)?.first().is_some_and(|(end, _)| failure.at < *end))
}

/// Whether a session was changed after its last turn failed, so that the next request will be another. `path` has no
/// symbolic links in it.
///
/// # Errors
///
/// When the vault cannot be read.
pub fn changed_since(vault: &Vault, path: &Path, failure: &Failure) -> Result<bool, Error> {
    let changes = runs(vault, path, |purpose| purpose != Some(Purpose::Prune))?;
    Ok(changes.first().is_some_and(|(end, _)| failure.at < *end))
}

/// Whether a session was recovered after a failed request whose error names this number of tokens. `path` has no
/// symbolic links in it.
///
/// # Errors
///
/// When the vault cannot be read.
pub fn recovered_from(vault: &Vault, path: &Path, error: &str) -> Result<bool, Error> {
    let Some(tokens) = tokens_named(error) else { return Ok(false) };
    Ok(recoveries(vault, path)?.iter().any(|(_, purpose)| *purpose == Purpose::RecoverFrom(tokens)))
}

/// Whether two texts are of one error: they name the same number of tokens, or one holds the other. A request that has
/// become shorter is not refused with the same number.
pub fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    match (tokens_named(one), tokens_named(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.contains(other) || other.contains(one),
    }
}

/// The recoveries of a file that were not undone, newest first: where the file ended after each, in bytes as they are
/// now, and what it was for.
fn recoveries(vault: &Vault, path: &Path) -> Result<Vec<(u64, Purpose)>, Error> {
    let found = runs(vault, path, |purpose| purpose.is_some_and(Purpose::is_recovery))?;
    Ok(found.into_iter().filter_map(|(end, purpose)| Some((end, purpose?))).collect())
}

/// The runs of a file for such a purpose that were not undone and undo nothing, in the same way.
fn runs(
    vault: &Vault,
    path: &Path,
    is_meant: fn(Option<Purpose>) -> bool,
) -> Result<Vec<(u64, Option<Purpose>)>, Error> {
    // A record that cannot be read counts as none: that tries a level once more.
    let records: Vec<Record> = vault.runs(path)?.into_iter().flatten().collect();
    // How many bytes later runs have added before the place.
    let (mut grown, mut found) = (0_i128, Vec::new());
    for record in records.iter().rev().filter(|record| record.state != RunState::Kept) {
        if is_meant(record.purpose) && record.can_be_undone(&records) {
            found.push((u64::try_from(i128::from(record.bytes_after) + grown).unwrap_or(0), record.purpose));
        }
        grown += i128::from(record.bytes_after) - i128::from(record.bytes_before);
    }
    Ok(found)
}

/// What was tried since the model last answered.
struct TriedLevels {
    count: u64,
    highest: u8,
    /// Where the file ended after the last of them, in bytes as they are now.
    end: Option<u64>,
    /// How many tokens the requests had for which it was recovered, and for the last time before that.
    refused: Vec<u64>,
}

impl TriedLevels {
    fn read(vault: Option<&Vault>, path: &Path, reading: &Reading<'_>) -> Result<Self, Halt> {
        let mut tried = Self { count: 0, highest: 0, end: None, refused: Vec::new() };
        let Some(vault) = vault else { return Ok(tried) };
        for (end, purpose) in recoveries(vault, path)? {
            tried.end = tried.end.or(Some(end));
            if let Purpose::RecoverFrom(tokens) = purpose {
                tried.refused.push(tokens);
            }
            if answered_since(reading, end)? {
                break;
            }
            tried.count += 1;
            if let Purpose::Recover(level) = purpose {
                tried.highest = tried.highest.max(level);
            }
        }
        Ok(tried)
    }

    /// Whether it was recovered after this very error: a request that has become shorter is not refused with the same
    /// number of tokens.
    fn has_met(&self, error: &str) -> bool {
        tokens_named(error).is_some_and(|tokens| self.refused.contains(&tokens))
    }

    /// What to do; or how it ends if there is nothing to do.
    fn next(
        &self,
        recovery: &Recovery,
        cause: Option<Cause>,
        length: Option<Length>,
    ) -> Result<ShortenBy, Ending> {
        let index = |level: RecoverLevel| usize::from(level.number()) - 1;
        if let Some(level) = recovery.level {
            return Ok(ShortenBy::Levels(&RecoverLevel::ALL[index(level)..=index(level)]));
        }
        let attempts_max = if recovery.target_tokens.is_some() { 0 } else { recovery.attempts_max };
        match cause {
            Some(Cause::OutputCutOff) => return Err(Ending::Clean),
            None if recovery.only_new => return Err(Ending::Clean),
            Some(cause) if !cause.is_cured_by_less() && recovery.target_tokens.is_none() => {
                return Err(Ending::Refused(Refusal::NotTooLong(cause)));
            }
            Some(_) if attempts_max > 0 && self.count >= attempts_max => {
                return Err(Ending::Refused(Refusal::GivenUp(self.count)));
            }
            Some(Cause::PayloadTooLarge) if recovery.target_tokens.is_none() => {
                return Ok(ShortenBy::Levels(
                    &RecoverLevel::ALL[usize::from(self.highest).min(RecoverLevel::ALL.len() - 1)..],
                ));
            }
            _ => {}
        }
        let Some(length) = length else {
            return Err(Ending::Refused(Refusal::Unable(Unable::UnknownFormat)));
        };
        let refused = cause == Some(Cause::ContextOverflow);
        let need = Need { refused, target_tokens: recovery.target_tokens, attempts: self.count };
        match length.target(&need) {
            Some(target) => Ok(ShortenBy::Target(target)),
            None if refused => Err(Ending::Refused(Refusal::Short(length))),
            None => Err(Ending::Clean),
        }
    }
}

/// How a session is made shorter.
enum ShortenBy {
    /// By the first of these levels that changes anything.
    Levels(&'static [RecoverLevel]),
    /// As much as so many tokens take.
    Target(u64),
}
