//! A run taken back: what it wrote goes, what it took out comes, and what was appended since stays.
//!
//! How a file is replaced is not known here, nor what its text means.

use crate::deferral::Deferral;
use crate::error::Error;
use crate::gate::{NotNow, Pass};
use crate::leftover::{self, ROUNDS_MAX, Settled};
use crate::outcome::{Ending, Outcome};
use crate::refusal::Refusal;
use crate::restore::{Extent, History, Restored, Runs, Way, choose};
use crate::snapshot::Snapshot;
use crate::vault::{Pending, Vault};
use crate::{Done, Mode, Options, carry_out, in_the_way, may_be_remembered, may_write, no_vault};
use std::path::Path;
use transcript::overflow::Cause;
use transcript::policy::SignedThinking;
use transcript::{Examination, examine};

/// Takes a run over a file back: the newest one, or the one of that name.
///
/// `root` is the folder that was asked for, if it was a folder: links that lead out of it are not followed. The
/// mode of the options is [`Mode::Fix`], or anything else to say what would be done.
///
/// # Errors
///
/// When the file or the vault cannot be read or written. Then the file is as it was.
pub fn undo(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    run: Option<&str>,
    extent: Extent,
) -> Result<Outcome, Error> {
    let vault = options.vault.as_ref().ok_or_else(|| no_vault(path))?;
    let opened = if options.mode == Mode::Fix {
        settled(path, root, vault)?
    } else {
        Snapshot::open(path, root)?.map_err(Ending::Refused)
    };
    let snapshot = match opened {
        Ok(snapshot) => snapshot,
        Err(ending) => return Ok(Outcome::without_look(ending)),
    };
    let done = snapshot.unless_changed(undo_once(&snapshot, vault, options, run, extent))?;
    Ok(done.unwrap_or_else(Outcome::deferred))
}

fn undo_once(
    snapshot: &Snapshot,
    vault: &Vault,
    options: &Options,
    run: Option<&str>,
    extent: Extent,
) -> Result<Outcome, Error> {
    let refused = |refusal| Ok(Outcome::without_look(Ending::Refused(refusal)));
    let runs = match choose(vault, snapshot, run)? {
        Ok(runs) => runs,
        Err(refusal) => return refused(refusal),
    };
    let way = match snapshot.read(|source| Way::back(&runs, extent, source))? {
        Ok(way) => way,
        Err(refusal) => return refused(refusal),
    };
    let now = snapshot.read(|source| examine(source, options.policy.choose(source)?))?;
    let facts = now.facts;
    if let Some(refusal) = signed_since(&runs, &now, options) {
        return refused(refusal);
    }
    let mut outcome = Outcome::without_look(Ending::WouldUndo);
    outcome.bytes = snapshot.bytes();
    outcome.bytes_after = way.length;
    outcome.run = Some(runs.target.run.clone());
    // The model sees what comes back.
    let remembered = || {
        let reason = if now.binds { may_be_remembered(snapshot, &facts, options) } else { None };
        reason.map(NotNow::from)
    };
    if options.mode != Mode::Fix {
        let closed = in_the_way(snapshot, &facts, options, &[])?.or_else(remembered);
        outcome.ending = closed.map_or(outcome.ending, Ending::from);
        return Ok(outcome);
    }
    let enter = || may_write(snapshot, &facts, options, &[]);
    // Asked first, so that nothing is written in vain.
    let asked = enter()?.map(drop).and_then(|()| remembered().map_or(Ok(()), Err));
    let done = match asked {
        Ok(()) => take_back(vault, snapshot, &runs, way, enter)?,
        Err(reason) => Err(reason),
    };
    outcome.ending = match done {
        Ok(done) => {
            outcome.guarantee = Some(done.guarantee);
            outcome.late = done.late;
            Ending::Undone
        }
        Err(reason) => reason.into(),
    };
    Ok(outcome)
}

/// Whether the model has signed over what the run left: the API would refuse what it signed beside what comes back. If it
/// does so now, it was signed over that.
fn signed_since(runs: &Runs, now: &Examination, options: &Options) -> Option<Refusal> {
    let facts = &now.facts;
    let refused = facts.failed.is_some_and(|failed| failed.cause == Cause::InvalidThinking);
    let ignored = options.policy.of(facts.format).thinking == SignedThinking::Ignore;
    let end = History::through(&runs.later).place(runs.target.bytes_after);
    let since = now.signed_at.is_some_and(|at| at >= end);
    (since && !refused && !ignored).then(|| Refusal::SignedSince(runs.target.run.clone()))
}

/// The file, locked, with nothing left of interrupted runs: late lines must be in it before places are looked for.
fn settled(path: &Path, root: Option<&Path>, vault: &Vault) -> Result<Result<Snapshot, Ending>, Error> {
    for _ in 0..ROUNDS_MAX {
        let snapshot = match Snapshot::open_locked(path, root)? {
            Ok(Ok(snapshot)) => snapshot,
            Ok(Err(reason)) => return Ok(Err(Ending::Deferred(reason))),
            Err(refusal) => return Ok(Err(Ending::Refused(refusal))),
        };
        match leftover::settle(&snapshot, vault)? {
            Ok(Settled::Something) => {}
            Ok(Settled::Nothing) => return Ok(Ok(snapshot)),
            Ok(Settled::Held) => return Ok(Err(Ending::Deferred(Deferral::OldFileOpen))),
            Err(reason) => return Ok(Err(Ending::Deferred(reason))),
        }
    }
    Ok(Err(Ending::Deferred(Deferral::Changed)))
}

fn take_back(
    vault: &Vault,
    snapshot: &Snapshot,
    runs: &Runs,
    way: Way,
    enter: impl FnOnce() -> Result<Result<Pass, NotNow>, Error>,
) -> Result<Result<Done, NotNow>, Error> {
    let text = Restored { vault, record: &runs.target, parts: way.parts, length: way.length };
    let keep = |pending: Pending, swap| {
        snapshot.read(|source| pending.keep_undo(&runs.target, source.len(), way.changes, swap))?
    };
    let done = carry_out(snapshot, &text, vault, keep, enter)?;
    if done.is_ok() {
        // The record of another file that is still there belongs to that one.
        let of = &runs.target.path;
        if *of == snapshot.path || !of.exists() {
            vault.undone(&runs.target);
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests;
