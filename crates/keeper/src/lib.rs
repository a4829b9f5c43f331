//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes files. [`maintain`] is the whole program: `scan`, `fix` and `--dry-run` are this
//! one function with another [`Mode`]. It refuses to know what a transcript means; that is [`transcript`]'s.

mod error;
mod find;
mod gate;
mod outcome;
mod replace;
mod snapshot;
#[allow(dead_code, reason = "the steps of the vault and of the lease come next")]
mod step;

pub use error::Error;
pub use find::{Found, find, known_roots};
pub use outcome::{Deferral, Ending, Outcome, Refusal, Unsupported};
pub use snapshot::spool;

use gate::GateTarget;
use replace::Target;
use snapshot::Snapshot;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::plan::Plan;
use transcript::{Mended, Policy, Repair, examine, mend};

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
    /// Keep the old file beside the new one, under a name that no agent looks for.
    pub backup: bool,
}

/// Looks at one file and does with it what the mode says.
///
/// `root` is the folder that was asked for, if it was a folder: links that lead out of it are not followed.
///
/// # Errors
///
/// When the file cannot be read or written. Then it is as it was.
pub fn maintain(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
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
    let mended = snapshot.read(|source| mend(source, &options.policy))?;
    carry_out(&snapshot, mended, options)
}

fn carry_out(snapshot: &Snapshot, mended: Mended, options: &Options) -> Result<Outcome, Error> {
    let facts = mended.before.facts;
    let mut outcome = Outcome::looked(mended.before, snapshot.bytes());
    let Repair { plan, after } = match mended.repair {
        Ok(repair) => repair,
        Err(worse) => {
            outcome.ending = Ending::Refused(Refusal::Worse(worse));
            return Ok(outcome);
        }
    };
    if let Mode::CopyTo(path) = &options.mode {
        replace::copy_to(snapshot, &plan, path)?;
    }
    if plan.is_empty() {
        return Ok(outcome);
    }
    if options.mode == Mode::Fix {
        if let Some(refusal) = snapshot.refusal() {
            outcome.ending = Ending::Refused(refusal);
            return Ok(outcome);
        }
        let gates = facts.format.map_or(&[][..], |format| format.gates());
        let target = GateTarget {
            path: &snapshot.path,
            file: &snapshot.file,
            metadata: &snapshot.metadata,
            facts: &facts,
        };
        // Given back when this block ends, after the file was written.
        let _pass = match gate::pass(gates, &target, options.settle)? {
            Ok(pass) => pass,
            Err(reason) => {
                outcome.ending = reason.into();
                return Ok(outcome);
            }
        };
        match write(snapshot, &plan, options)? {
            Ok(run) => outcome.run = Some(run),
            Err(reason) => {
                outcome.ending = Ending::Deferred(reason);
                return Ok(outcome);
            }
        }
    }
    outcome.bytes_after = plan.length_after();
    outcome.after = after;
    outcome.plan = plan;
    outcome.ending = if options.mode == Mode::DryRun { Ending::WouldFix } else { Ending::Fixed };
    Ok(outcome)
}

fn write(snapshot: &Snapshot, plan: &Plan, options: &Options) -> Result<Result<String, Deferral>, Error> {
    replace::replace(&Target { snapshot, plan, backup: options.backup })
}
