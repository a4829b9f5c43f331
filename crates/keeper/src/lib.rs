//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes files. [`maintain`] is the whole program: `scan`, `fix` and `--dry-run` are this
//! one function with another [`Mode`]. It refuses to know what a transcript means; that is [`transcript`]'s.

mod error;
mod find;
mod gate;
mod new_text;
mod outcome;
mod replace;
mod snapshot;
#[allow(dead_code, reason = "the steps of the lease come next")]
mod step;
mod swap;
mod undo;
mod vault;

pub use error::Error;
pub use find::{Found, find, known_roots};
pub use outcome::{Deferral, Ending, Outcome, Refusal, Unsupported};
pub use snapshot::spool;
pub use undo::undo;
pub use vault::{Freed, Keep, Record, Run, State, Text, Vault};

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
    /// Where what is taken out is kept. Without one nothing can be undone.
    pub vault: Option<Vault>,
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
    let mut outcome = Outcome::looked(mended.before, snapshot.bytes());
    let Repair { plan, after } = match mended.repair {
        Ok(repair) => repair,
        Err(worse) => {
            outcome.ending = Ending::Refused(Refusal::Worse(worse));
            return Ok(outcome);
        }
    };
    if let Mode::CopyTo(path) = &options.mode {
        outcome.run = copy(snapshot, &plan, path, options)?;
    }
    if plan.is_empty() {
        return Ok(outcome);
    }
    if options.mode == Mode::Fix {
        if let Some(reason) = gate::check(snapshot, options.settle) {
            outcome.ending = Ending::Deferred(reason);
            return Ok(outcome);
        }
        if let Some(refusal) = snapshot.refusal() {
            outcome.ending = Ending::Refused(refusal);
            return Ok(outcome);
        }
        match write(snapshot, &plan, options)? {
            Ok(run) => outcome.run = run,
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

/// Keeps the originals, replaces the file, and gives the name of the run.
fn write(
    snapshot: &Snapshot,
    plan: &Plan,
    options: &Options,
) -> Result<Result<Option<String>, Deferral>, Error> {
    let run = keep(snapshot, plan, &snapshot.path, options)?;
    let replaced = replace::replace(&Target { snapshot, plan, backup: false });
    let landed = matches!(replaced, Ok(Ok(_)));
    let name = close(run, landed, options);
    Ok(replaced?.map(|_| name))
}

/// Writes the mended copy. What is cut out of it is kept too, so that its markers lead somewhere.
fn copy(snapshot: &Snapshot, plan: &Plan, path: &Path, options: &Options) -> Result<Option<String>, Error> {
    let real = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    // Whether the folder can be made is told when the copy is written.
    let _ = real.parent().map(std::fs::create_dir_all);
    let real = match (real.parent().map(Path::canonicalize), real.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => real,
    };
    let run = if plan.is_empty() { None } else { keep(snapshot, plan, &real, options)? };
    let copied = replace::copy_to(snapshot, plan, path);
    let name = close(run, copied.is_ok(), options);
    copied.map(|()| name)
}

fn keep(snapshot: &Snapshot, plan: &Plan, path: &Path, options: &Options) -> Result<Option<Run>, Error> {
    let Some(vault) = &options.vault else { return Ok(None) };
    let spill = options.policy.spill.as_ref();
    snapshot.read(|source| vault.keep(source, path, plan, spill))?.map(Some)
}

/// Says whether the file was replaced, and gives the name of the run.
fn close(run: Option<Run>, landed: bool, options: &Options) -> Option<String> {
    let (vault, run) = (options.vault.as_ref()?, run?);
    if landed {
        vault.landed(&run);
    } else {
        vault.forget(&run);
    }
    Some(run.name().to_string())
}
