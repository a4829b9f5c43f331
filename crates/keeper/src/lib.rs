//! One transcript on disk: whether it may be touched, and how it is replaced.
//!
//! The only crate that writes files. [`maintain`] is the whole program: `scan`, `fix` and `--dry-run` are this
//! one function with another [`Mode`]. It refuses to know what a transcript means; that is [`transcript`]'s.

#[cfg(test)]
mod actions;
mod attributes;
mod error;
mod find;
mod follow;
mod gate;
mod lease;
mod leftover;
mod new_text;
mod outcome;
mod policies;
mod replace;
mod snapshot;
mod step;
mod tail;
mod undo;
mod vault;

pub use error::Error;
pub use find::{DEPTH_MAX, Found, find, is_candidate, known_roots, known_roots_above};
pub use follow::{Remembered, follow};
pub use leftover::settle_all;
pub use outcome::{Deferral, Ending, Guarantee, Outcome, Refusal, Unsupported};
pub use policies::Policies;
pub use snapshot::{bytes_read, spool};
pub use undo::undo;
pub use vault::{Freed, Keep, Record, Run, State, Text, Vault};

use gate::{GateTarget, Pass};
use leftover::Settled;
use new_text::NewText;
use snapshot::Snapshot;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::plan::Plan;
use transcript::tail::Tail;
use transcript::{Facts, Repair, examine, mend};

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
    pub policy: Policies,
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
/// When the file cannot be read or written. Then it is as it was, unless the error says otherwise.
pub fn maintain(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
    maintain_and_remember(path, root, options, None)
}

/// What is to be remembered of a file, if anything is.
type Memory<'a> = Option<&'a mut Option<Remembered>>;

fn maintain_and_remember(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    memory: Memory<'_>,
) -> Result<Outcome, Error> {
    if options.mode == Mode::Fix {
        return fix(path, root, options, memory);
    }
    let snapshot = match Snapshot::open(path, root)? {
        Ok(snapshot) => snapshot,
        Err(refusal) => return Ok(Outcome::without_look(Ending::Refused(refusal))),
    };
    if snapshot.is_empty() {
        return Ok(Outcome::without_look(Ending::Unsupported(Unsupported::Empty)));
    }
    if options.mode == Mode::Look {
        return look(&snapshot, options, memory);
    }
    let Planned { mut outcome, repair, .. } = plan(&snapshot, options, false)?;
    let Some(repair) = repair else { return Ok(outcome) };
    if let Mode::CopyTo(path) = &options.mode {
        outcome.run = copy(&snapshot, &repair.plan, path, options)?;
    }
    if !repair.plan.is_empty() {
        let ending = if options.mode == Mode::DryRun { Ending::WouldFix } else { Ending::Fixed };
        outcome.end(ending, repair);
    }
    Ok(outcome)
}

fn look(snapshot: &Snapshot, options: &Options, memory: Memory<'_>) -> Result<Outcome, Error> {
    let found = snapshot.read(|source| {
        let policy = options.policy.choose(source)?;
        let Some(memory) = memory else { return examine(source, policy) };
        let (tail, found) = Tail::new(source, policy)?;
        *memory = Remembered::of(tail, &snapshot.metadata, false);
        Ok(found)
    })?;
    Ok(Outcome::looked(found, snapshot.bytes()))
}

/// What was found, and what is to be done about it.
struct Planned {
    outcome: Outcome,
    /// `None` if nothing can be.
    repair: Option<Repair>,
    /// The end of the file as it is, and as the plan makes it, if they are to be remembered.
    tails: [Option<Tail>; 2],
}

fn plan(snapshot: &Snapshot, options: &Options, remember: bool) -> Result<Planned, Error> {
    let (mended, tails) = snapshot.read(|source| {
        let policy = options.policy.choose(source)?;
        if !remember {
            return Ok((mend(source, policy)?, [None, None]));
        }
        let (mended, before, after) = Tail::mend(source, policy)?;
        Ok((mended, [Some(before), after]))
    })?;
    let mut outcome = Outcome::looked(mended.before, snapshot.bytes());
    let repair = match mended.repair {
        Ok(repair) => Some(repair),
        Err(worse) => {
            outcome.ending = Ending::Refused(Refusal::Worse(worse));
            None
        }
    };
    Ok(Planned { outcome, repair, tails })
}

fn fix(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    mut memory: Memory<'_>,
) -> Result<Outcome, Error> {
    for _ in 0..leftover::ROUNDS_MAX {
        let snapshot = match Snapshot::open_locked(path, root)? {
            Ok(Ok(snapshot)) => snapshot,
            Ok(Err(reason)) => return Ok(Outcome::without_look(Ending::Deferred(reason))),
            Err(refusal) => return Ok(Outcome::without_look(Ending::Refused(refusal))),
        };
        if snapshot.is_empty() {
            return Ok(Outcome::without_look(Ending::Unsupported(Unsupported::Empty)));
        }
        match snapshot.unless_changed(fix_once(&snapshot, options, memory.as_deref_mut())) {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(outcome))) => return Ok(outcome),
            Ok(Err(reason)) => return Ok(Outcome::without_look(Ending::Deferred(reason))),
            Err(error) => return Err(error),
        }
    }
    Ok(Outcome::without_look(Ending::Deferred(Deferral::Changed)))
}

/// `None` if the file has to be looked at again.
fn fix_once(snapshot: &Snapshot, options: &Options, memory: Memory<'_>) -> Result<Option<Outcome>, Error> {
    let Planned { outcome, repair, tails: [as_it_is, mended] } = plan(snapshot, options, memory.is_some())?;
    // A repair that would do harm may do none when more has come.
    let is_judged = repair.is_some();
    let repair = repair.filter(|repair| !repair.plan.is_empty());
    let pending = repair.is_some();
    let done = match repair {
        Some(repair) => land(snapshot, options, outcome, repair)?,
        None => Some(outcome),
    };
    if let Some(memory) = memory {
        *memory = if done.as_ref().is_some_and(|outcome| outcome.ending == Ending::Fixed) {
            let now = std::fs::symlink_metadata(&snapshot.path).ok();
            mended.zip(now).and_then(|(tail, now)| Remembered::of(tail, &now, false))
        } else {
            let tail = as_it_is.filter(|_| is_judged);
            tail.and_then(|tail| Remembered::of(tail, &snapshot.metadata, pending))
        };
    }
    Ok(done)
}

/// Carries a repair out, if that may be. `None` if the file has to be looked at again.
fn land(
    snapshot: &Snapshot,
    options: &Options,
    mut outcome: Outcome,
    repair: Repair,
) -> Result<Option<Outcome>, Error> {
    let Some(facts) = outcome.before.as_ref().map(|found| found.facts) else { return Ok(Some(outcome)) };
    // Given back when the file is written.
    let _pass = match may_write(snapshot, &facts, options)? {
        Ok(pass) => pass,
        Err(ending) => return Ok(Some(Outcome { ending, ..outcome })),
    };
    // Lines that an interrupted run has left beside the file come first; then we look again.
    match leftover::settle(snapshot)? {
        Ok(Settled::Something) => return Ok(None),
        Ok(Settled::Nothing) => {}
        Err(reason) => return Ok(Some(Outcome { ending: Ending::Deferred(reason), ..outcome })),
    }
    let run = keep(snapshot, &repair.plan, &snapshot.path, options)?;
    match carry_out(snapshot, &repair.plan, options.vault.as_ref(), run.as_ref())? {
        Ok(guarantee) => {
            outcome.run = run.map(|run| run.name().to_string());
            outcome.guarantee = Some(guarantee);
            outcome.end(Ending::Fixed, repair);
        }
        Err(reason) => outcome.ending = Ending::Deferred(reason),
    }
    Ok(Some(outcome))
}

/// Leave to replace the file, or how it ends without.
fn may_write(snapshot: &Snapshot, facts: &Facts, options: &Options) -> Result<Result<Pass, Ending>, Error> {
    if let Some(refusal) = snapshot.refusal() {
        return Ok(Err(Ending::Refused(refusal)));
    }
    let gates = facts.format.map_or(&[][..], |format| format.gates());
    let target =
        GateTarget { path: &snapshot.path, file: &snapshot.file, metadata: &snapshot.metadata, facts };
    Ok(gate::pass(gates, &target, options.settle)?.map_err(Ending::from))
}

/// Replaces the file, and tells the vault whether the run landed.
fn carry_out(
    snapshot: &Snapshot,
    text: &dyn NewText,
    vault: Option<&Vault>,
    run: Option<&Run>,
) -> Result<Result<Guarantee, Deferral>, Error> {
    let replaced = replace::replace(snapshot, text);
    let landed = match &replaced {
        Ok(landed) => landed.is_ok(),
        // Something may have failed after the new text was put in place. If not even that is to be found out, undo
        // will ask the file.
        Err(_) => !snapshot.is_at_path().unwrap_or(false),
    };
    tell(vault, run, landed);
    Ok(match replaced? {
        Ok(landed) => {
            if landed.late {
                leftover::settle_path(&snapshot.path)?;
            }
            Ok(landed.guarantee)
        }
        Err(reason) => Err(reason),
    })
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
    tell(options.vault.as_ref(), run.as_ref(), copied.is_ok());
    copied.map(|()| run.map(|run| run.name().to_string()))
}

fn keep(snapshot: &Snapshot, plan: &Plan, path: &Path, options: &Options) -> Result<Option<Run>, Error> {
    let Some(vault) = &options.vault else { return Ok(None) };
    let spill = options.policy.all().spill.as_ref();
    snapshot.read(|source| vault.keep(source, path, plan, spill))?.map(Some)
}

/// Tells the vault whether the new text was put in place.
fn tell(vault: Option<&Vault>, run: Option<&Run>, landed: bool) {
    match (vault, run) {
        (Some(vault), Some(run)) if landed => vault.landed(run),
        (Some(vault), Some(run)) => vault.forget(run),
        _ => {}
    }
}
