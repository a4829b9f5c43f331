//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes files. [`maintain`] is the whole program: `scan`, `fix` and `--dry-run` are this
//! one function with another [`Mode`]. It refuses to know what a transcript means; that is [`transcript`]'s.

#[cfg(test)]
mod actions;
mod attributes;
mod error;
mod find;
mod gate;
mod lease;
mod leftover;
mod new_text;
mod outcome;
mod replace;
mod snapshot;
#[allow(dead_code, reason = "the steps of the vault come next")]
mod step;
mod tail;

pub use error::Error;
pub use find::{Found, find, known_roots};
pub use leftover::settle_all;
pub use outcome::{Deferral, Ending, Guarantee, Outcome, Refusal, Unsupported};
pub use snapshot::spool;

use gate::{GateTarget, Pass};
use leftover::Settled;
use snapshot::Snapshot;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::{Policy, Repair, examine, mend};

/// What to do with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read it and say what is wrong.
    Look,
    /// Also draw the plan and check it, but write nothing.
    DryRun,
    /// Mend it in place.
    Fix,
    /// Leave it alone and write the mended text, or the same text if there is nothing to mend, to this new file.
    CopyTo(PathBuf),
}

/// How to go about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is asked for.
    pub policy: Policy,
    /// What to do.
    pub mode: Mode,
    /// How long a file must have been quiet before it is replaced.
    pub settle: Duration,
}

/// Looks at one file and does with it what the mode says.
///
/// `root` is the folder that was asked for, if it was a folder: links that lead out of it are not followed.
///
/// # Errors
///
/// When the file cannot be read or written. Then it is as it was, unless the error says otherwise.
pub fn maintain(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
    if options.mode == Mode::Fix {
        return fix(path, root, options);
    }
    let snapshot = match Snapshot::open(path, root)? {
        Ok(snapshot) => snapshot,
        Err(refusal) => return Ok(Outcome::without_look(Ending::Refused(refusal))),
    };
    if snapshot.is_empty() {
        return Ok(Outcome::without_look(Ending::Unsupported(Unsupported::Empty)));
    }
    if options.mode == Mode::Look {
        let found = snapshot.read(|source| examine(source, &options.policy))?;
        return Ok(Outcome::looked(found, snapshot.bytes()));
    }
    let (mut outcome, repair) = plan(&snapshot, options)?;
    let Some(repair) = repair else { return Ok(outcome) };
    if let Mode::CopyTo(path) = &options.mode {
        replace::copy_to(&snapshot, &repair.plan, path)?;
    }
    if !repair.plan.is_empty() {
        let ending = if options.mode == Mode::DryRun { Ending::WouldFix } else { Ending::Fixed };
        outcome.end(ending, repair);
    }
    Ok(outcome)
}

/// What was found, and what is to be done about it; `None` if nothing can be.
fn plan(snapshot: &Snapshot, options: &Options) -> Result<(Outcome, Option<Repair>), Error> {
    let mended = snapshot.read(|source| mend(source, &options.policy))?;
    let mut outcome = Outcome::looked(mended.before, snapshot.bytes());
    match mended.repair {
        Ok(repair) => Ok((outcome, Some(repair))),
        Err(worse) => {
            outcome.ending = Ending::Refused(Refusal::Worse(worse));
            Ok((outcome, None))
        }
    }
}

fn fix(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
    for _ in 0..leftover::ROUNDS_MAX {
        let snapshot = match Snapshot::open_locked(path, root)? {
            Ok(Ok(snapshot)) => snapshot,
            Ok(Err(reason)) => return Ok(Outcome::without_look(Ending::Deferred(reason))),
            Err(refusal) => return Ok(Outcome::without_look(Ending::Refused(refusal))),
        };
        if snapshot.is_empty() {
            return Ok(Outcome::without_look(Ending::Unsupported(Unsupported::Empty)));
        }
        let (mut outcome, repair) = plan(&snapshot, options)?;
        let Some(repair) = repair.filter(|repair| !repair.plan.is_empty()) else { return Ok(outcome) };
        // Given back when the file is written.
        let pass = match may_write(&snapshot, &outcome, options)? {
            Ok(pass) => pass,
            Err(ending) => return Ok(Outcome { ending, ..outcome }),
        };
        // Lines that an interrupted run has left beside the file come first; then we look again.
        match leftover::settle(&snapshot)? {
            Ok(Settled::Something) => continue,
            Ok(Settled::Nothing) => {}
            Err(reason) => return Ok(Outcome { ending: Ending::Deferred(reason), ..outcome }),
        }
        match replace::replace(&snapshot, &repair.plan)? {
            Ok(guarantee) => {
                outcome.guarantee = Some(guarantee);
                outcome.end(Ending::Fixed, repair);
            }
            Err(reason) => outcome.ending = Ending::Deferred(reason),
        }
        drop(pass);
        return Ok(outcome);
    }
    Ok(Outcome::without_look(Ending::Deferred(Deferral::Changed)))
}

/// Leave to replace the file, or how it ends without.
fn may_write(
    snapshot: &Snapshot,
    outcome: &Outcome,
    options: &Options,
) -> Result<Result<Pass, Ending>, Error> {
    if let Some(refusal) = snapshot.refusal() {
        return Ok(Err(Ending::Refused(refusal)));
    }
    let Some(facts) = outcome.before.as_ref().map(|found| &found.facts) else {
        return Ok(Ok(Pass::default()));
    };
    let gates = facts.format.map_or(&[][..], |format| format.gates());
    let target =
        GateTarget { path: &snapshot.path, file: &snapshot.file, metadata: &snapshot.metadata, facts };
    Ok(gate::pass(gates, &target, options.settle)?.map_err(Ending::from))
}
