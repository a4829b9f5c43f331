//! A session that the API refuses because it is too long: the next level of what helps.
//!
//! What a level does is not known here, but which were tried: the vault keeps a record of each run.

use crate::carry::{Drawn, Next, carry};
use crate::content::Content;
use crate::error::Error;
use crate::options::Options;
use crate::outcome::{Ending, Outcome};
use crate::policies::Policies;
use crate::refusal::Refusal;
use crate::stop::Stop;
use crate::vault::{Purpose, Record, State, Vault};
use std::path::Path;
use transcript::Repair;
use transcript::compact::{Shares, Unable};
use transcript::overflow::{Cause, answered_since, classify, last_failure};
use transcript::recover::{self, Level};

/// What is known, and what is asked for.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// What the API said. Without it the transcript's own last error counts.
    pub error: Option<String>,
    /// The level. Without one, the next after those that were tried, whether the error is about length or not.
    pub level: Option<Level>,
    /// How many messages stay at level 2; 0 for 10.
    pub keep: u64,
    /// Only if the request has failed once more since the last recovery. Who looks again and again at what nobody has
    /// tried again would go through all levels.
    pub only_new: bool,
    /// How often in a row, without an answer of the model in between, before it is given up; 0 for any number.
    pub attempts_max: u64,
}

/// What came of it.
pub struct Recovered {
    /// What was done. [`Ending::Clean`] if no request has failed, or only an answer was cut off.
    pub outcome: Outcome,
    /// Why the request failed; `None` if nobody says that it did.
    pub cause: Option<Cause>,
    /// The level that was used; `None` if nothing was changed.
    pub level: Option<Level>,
    /// How often it was recovered in a row before this, without an answer of the model since.
    pub attempts_before: u64,
    /// How the conversation was divided, at levels 2 and 3.
    pub shares: Option<Shares>,
}

/// What is found out on the way.
#[derive(Default)]
struct Found {
    cause: Option<Cause>,
    level: Option<Level>,
    attempts: u64,
    shares: Option<Shares>,
}

/// Recovers the session in a file, if its last request was too long: takes the next level after those that were tried
/// since the model last answered, and of the levels from there on the first that changes anything. Without a vault
/// nothing is known of earlier attempts.
///
/// The mode of the options says whether that is done or only told, their settle time how long the file must have been
/// quiet, as for [`crate::maintain`]; a conversation that waits for a tool or for the model is deferred in every format,
/// unless the settle time is 0.
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
    let (outcome, found) = carry(path, root, options, &|content, policies| {
        let failure = content.read(|source| last_failure(source))?;
        let cause = recovery.error.as_deref().map(classify).or_else(|| failure.map(|failure| failure.cause));
        let tried = Tried::of(options.vault.as_ref(), content)?;
        let mut found = Found { cause, attempts: tried.count, ..Found::default() };
        let is_old = failure.zip(tried.end).is_some_and(|(failure, end)| failure.at < end);
        if recovery.only_new && is_old {
            return not_drawn(content, policies, Ending::Clean, found);
        }
        let levels = match tried.next(recovery, cause) {
            Ok(levels) => levels,
            Err(ending) => return not_drawn(content, policies, ending, found),
        };
        let mut last = Ending::Refused(Refusal::Unable(Unable::Nothing));
        for &level in levels {
            let done = content
                .read(|source| recover::recover(source, policies.choose(source)?, level, recovery.keep))?;
            match done.repair {
                Ok(Repair { plan, .. }) if plan.is_empty() => {}
                Err(Unable::Nothing) => {}
                Err(unable) => last = Ending::Refused(Refusal::Unable(unable)),
                Ok(repair) => {
                    (found.level, found.shares) = (Some(level), done.shares);
                    let next = Next::change(repair, Some(Purpose::Recover(level.number())));
                    return Ok(Drawn { before: done.before, next, told: Some(found) });
                }
            }
        }
        not_drawn(content, policies, last, found)
    })?;
    let Found { cause, level, attempts: attempts_before, shares } = found.unwrap_or_default();
    let changed = matches!(outcome.ending, Ending::Fixed | Ending::WouldFix);
    Ok(Recovered { outcome, cause, level: level.filter(|_| changed), attempts_before, shares })
}

fn not_drawn(
    content: &Content,
    policies: &Policies,
    ending: Ending,
    found: Found,
) -> Result<Drawn<Found>, Stop> {
    let before = content.read(|source| transcript::examine(source, policies.choose(source)?))?;
    Ok(Drawn { before, next: Next::End(ending), told: Some(found) })
}

/// What was tried since the model last answered.
struct Tried {
    count: u64,
    highest: u8,
    /// Where the file ended after the last of them, in bytes as they are now.
    end: Option<u64>,
}

impl Tried {
    fn of(vault: Option<&Vault>, content: &Content) -> Result<Self, Stop> {
        let mut tried = Self { count: 0, highest: 0, end: None };
        let Some(vault) = vault else { return Ok(tried) };
        // A record that cannot be read counts as none: that tries a level once more.
        let records: Vec<Record> = vault.runs(&content.path)?.into_iter().flatten().collect();
        // How much longer later runs have made what stands before the place.
        let mut grown = 0_i128;
        for record in records.iter().rev().filter(|record| record.state != State::Kept) {
            if let Some(Purpose::Recover(level)) = record.purpose.filter(|_| !record.is_undone(&records)) {
                let end = i128::from(record.bytes_after) + grown;
                let from = u64::try_from(end).unwrap_or(0);
                tried.end = tried.end.or(Some(from));
                if content.read(|source| answered_since(source, from))? {
                    break;
                }
                tried.count += 1;
                tried.highest = tried.highest.max(level);
            }
            grown += i128::from(record.bytes_after) - i128::from(record.bytes_before);
        }
        Ok(tried)
    }

    /// The levels to try, in order; or how it ends if there is nothing to try.
    fn next(&self, recovery: &Recovery, cause: Option<Cause>) -> Result<&'static [Level], Ending> {
        let index = |level: Level| usize::from(level.number()) - 1;
        if let Some(level) = recovery.level {
            return Ok(&Level::ALL[index(level)..=index(level)]);
        }
        match cause {
            None | Some(Cause::OutputCutOff) => Err(Ending::Clean),
            Some(cause) if !cause.is_cured_by_less() => Err(Ending::Refused(Refusal::NotTooLong(cause))),
            Some(_) if recovery.attempts_max > 0 && self.count >= recovery.attempts_max => {
                Err(Ending::Refused(Refusal::GivenUp(self.count)))
            }
            Some(_) => Ok(&Level::ALL[usize::from(self.highest).min(Level::ALL.len() - 1)..]),
        }
    }
}
