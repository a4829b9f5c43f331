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
mod packed;
mod replace;
mod snapshot;
mod step;
mod store;
mod tail;
mod undo;
mod vault;

pub use error::Error;
pub use find::{DEPTH_MAX, Found, find, is_candidate, known_roots};
pub use gate::quiet_for;
pub use leftover::settle_all;
pub use outcome::{Deferral, Ending, Guarantee, Outcome, Refusal, Unsupported};
pub use snapshot::spool;
pub use store::{Store, known_stores};
pub use undo::undo;
pub use vault::{Freed, Keep, Record, Run, State, Text, Vault};

use gate::{GateTarget, NotNow, Pass};
use leftover::Settled;
use new_text::NewText;
use replace::Replacement;
use snapshot::Snapshot;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transcript::plan::Plan;
use transcript::{Facts, Policy, Repair, examine, mend};

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
/// When the file cannot be read or written. Then it is as it was, unless the error says otherwise.
pub fn maintain(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
    if let Some(store) = Store::of(path) {
        return Ok(Outcome::without_look(Ending::Unsupported(Unsupported::Store(*store))));
    }
    if packed::plain(path).is_some() {
        return packed::look(path, root, options);
    }
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
        outcome.run = copy(&snapshot, &repair.plan, path, options)?;
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
        match snapshot.unless_changed(fix_once(&snapshot, options)) {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(outcome))) => return Ok(outcome),
            Ok(Err(reason)) => return Ok(Outcome::without_look(Ending::Deferred(reason))),
            Err(error) => return Err(error),
        }
    }
    Ok(Outcome::without_look(Ending::Deferred(Deferral::Changed)))
}

/// `None` if the file has to be looked at again.
fn fix_once(snapshot: &Snapshot, options: &Options) -> Result<Option<Outcome>, Error> {
    let (mut outcome, repair) = plan(snapshot, options)?;
    let Some(repair) = repair.filter(|repair| !repair.plan.is_empty()) else { return Ok(Some(outcome)) };
    let Some(facts) = outcome.before.as_ref().map(|found| found.facts) else { return Ok(Some(outcome)) };
    let enter = || may_write(snapshot, &facts, options);
    {
        let _pass = match enter()? {
            Ok(pass) => pass,
            Err(reason) => return Ok(Some(Outcome { ending: reason.into(), ..outcome })),
        };
        // Lines that an interrupted run has left beside the file come first; then we look again.
        match leftover::settle(snapshot)? {
            Ok(Settled::Something) => return Ok(None),
            Ok(Settled::Nothing) => {}
            Err(reason) => return Ok(Some(Outcome { ending: Ending::Deferred(reason), ..outcome })),
        }
    }
    let keep = || keep(snapshot, &repair.plan, &snapshot.path, options);
    match carry_out(snapshot, &repair.plan, options.vault.as_ref(), keep, enter)? {
        Ok((guarantee, run)) => {
            outcome.run = run.map(|run| run.name().to_string());
            outcome.guarantee = Some(guarantee);
            outcome.end(Ending::Fixed, repair);
        }
        Err(reason) => outcome.ending = reason.into(),
    }
    Ok(Some(outcome))
}

/// Leave to replace the file, or why not.
fn may_write(snapshot: &Snapshot, facts: &Facts, options: &Options) -> Result<Result<Pass, NotNow>, Error> {
    if let Some(refusal) = snapshot.refusal() {
        return Ok(Err(NotNow::Refused(refusal)));
    }
    let gates = facts.format.map_or(&[][..], |format| format.gates());
    let target =
        GateTarget { path: &snapshot.path, file: &snapshot.file, metadata: &snapshot.metadata, facts };
    gate::pass(gates, &target, options.settle)
}

/// Replaces the file, with what it loses kept by then, and tells the vault whether the run landed. `enter` says whether
/// it may be replaced.
fn carry_out(
    snapshot: &Snapshot,
    text: &dyn NewText,
    vault: Option<&Vault>,
    keep: impl FnOnce() -> Result<Option<Run>, Error>,
    enter: impl FnOnce() -> Result<Result<Pass, NotNow>, Error>,
) -> Result<Result<(Guarantee, Option<Run>), NotNow>, Error> {
    let work = Replacement::stage(snapshot, text)?;
    let mut run = None;
    let kept = work.last(|| {
        run = keep()?;
        Ok(())
    });
    let replaced = kept.and_then(|()| work.land(enter));
    let landed = match &replaced {
        Ok(landed) => landed.is_ok(),
        // Something may have failed after the new text was put in place. If not even that is to be found out, undo
        // will ask the file.
        Err(_) => !snapshot.is_at_path().unwrap_or(false),
    };
    tell(vault, run.as_ref(), landed);
    Ok(match replaced? {
        Ok(landed) => {
            if landed.late {
                leftover::settle_path(&snapshot.path)?;
            }
            Ok((landed.guarantee, run))
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
    let spill = options.policy.spill.as_ref();
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
