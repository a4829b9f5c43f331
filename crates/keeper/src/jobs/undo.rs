//! Undoes a run: removes what it wrote, puts back what it removed, and leaves what was appended since.
//!
//! `restore` chooses the run, finds its places in the text as it is now, and makes the new text. That goes to `replace` like any
//! repair, as a run of its own.

use crate::ask::error::Error;
use crate::ask::gate::Pass;
use crate::ask::outcome::{Ending, Guarantee, Outcome};
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::disk::folder::is_missing;
use crate::disk::new_text::NewText;
use crate::jobs::carry::gone_is_back;
use crate::jobs::leave::{could_write, may_be_in_turn, may_be_remembered, may_write};
use crate::jobs::stored::{self, Replacing, Stored};
use crate::options::{Mode, Options};
use crate::places::store::{is_in, real_path, store_file};
use crate::platform::files::temporary;
use crate::swap::content::{FileContent, no_temporary};
use crate::swap::leftover::{late_lines, open_finished};
use crate::swap::replace::{Replaced, replace};
use crate::swap::restore::{Extent, Restored, RestoredText, Runs};
use crate::swap::snapshot::{Snapshot, as_owner};
use crate::vault::{Pending, Purpose, Vault};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use transcript::overflow::Cause;
use transcript::policy::SignedThinking;
use transcript::{Examination, Facts, examine};

/// Undoes a run over a file: the newest one, or the one named `run`.
///
/// `root` is the folder that the user named, if it was a folder: links that lead out of it are not followed. The file is
/// changed only if the mode of the options is [`Mode::Fix`].
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
    let undo = || {
        let vault = options.vault(path)?;
        gone_is_back(path, options)?;
        let _acting = as_owner(path)?;
        let opened = if was_pruned(path, vault) { stored::open_or_gone } else { stored::open };
        if let Some(stored) = opened(path, root)? {
            return undo_stored(&stored, vault, options, run, extent);
        }
        // Late lines must be in the file before we look for the places of the run.
        let snapshot = match options.mode {
            Mode::Fix => open_finished(path, root, vault)?,
            _ => Snapshot::open(path, root)?,
        };
        snapshot.unless_changed(undo_once(&snapshot, vault, options, run, extent))
    };
    Outcome::from_result(undo())
}

/// Whether a prune has kept something of a session. It can be put back although the session is gone.
fn was_pruned(path: &Path, vault: &Vault) -> bool {
    let path = real_path(path).unwrap_or_else(|_| path.to_path_buf());
    // If the vault cannot be read, choosing the run fails later with a better message.
    let runs = vault.runs(&path).unwrap_or_default();
    runs.iter().flatten().any(|record| record.purpose == Some(Purpose::Prune))
}

/// The sessions of a database that are gone and of which a prune has kept something; none if the path is not a database.
///
/// # Errors
///
/// When the vault cannot be read.
pub fn gone_sessions(path: &Path, vault: &Vault) -> Result<Vec<PathBuf>, Error> {
    let Some(file) = store_file(path).filter(|file| *file == path).and_then(|file| real_path(file).ok())
    else {
        return Ok(Vec::new());
    };
    let listed: Result<HashSet<PathBuf>, Error> =
        stored::sessions(&file, None).into_iter().map(|found| Ok(found?.path)).collect();
    // What hinders a look at them is said when they are undone.
    let Ok(listed) = listed else { return Ok(Vec::new()) };
    let is_gone = |kept: &PathBuf| is_in(kept, &file) && !listed.contains(kept) && was_pruned(kept, vault);
    Ok(vault.files()?.into_iter().filter(is_gone).collect())
}

/// A run that can be undone.
struct UndoableRun {
    runs: Runs,
    way: RestoredText,
    /// What would come of it.
    outcome: Outcome,
    facts: Facts,
    /// Whether the model binds its thinking to what comes before it.
    binds: bool,
}

fn find(
    content: &FileContent,
    vault: &Vault,
    options: &Options,
    run: Option<&str>,
    extent: Extent,
) -> Result<UndoableRun, Stop> {
    let runs = Runs::choose(vault, content, run)?;
    if runs.target.purpose == Some(Purpose::Secrets) {
        return Err(Refusal::TookSecrets(runs.target.run.clone()).into());
    }
    // If the vault cannot be read, reading the texts fails later with a better message.
    let forgotten = vault.forgotten(&runs.target).unwrap_or_default();
    let back = |extent| content.read(|source| RestoredText::back(&runs, extent, &forgotten, source));
    let way = match runs.target.is_of_rows().then(|| back(Extent::Whole)) {
        Some(Ok(way)) => way,
        Some(Err(Stop::Refused(Refusal::ChangedSince { .. }))) => {
            RestoredText::by_rows(&runs.target, content.bytes())
        }
        _ => back(extent)?,
    };
    let now = content.read(|source| examine(source, options.case(source)?))?;
    signed_since(&runs, &way, &now, options).map_or(Ok(()), Err)?;
    let (facts, binds) = (now.facts, now.binds);
    let mut outcome = Outcome::without_look(Ending::WouldUndo);
    outcome.bytes = content.bytes();
    outcome.bytes_after = way.length;
    outcome.run = Some(runs.target.run.clone());
    outcome.places_restored = way.restored;
    outcome.places_left = runs.target.edits() - way.restored;
    outcome.before = Some(now);
    Ok(UndoableRun { runs, way, outcome, facts, binds })
}

/// Undoes a run over a session in a store.
fn undo_stored(
    stored: &Stored,
    vault: &Vault,
    options: &Options,
    run: Option<&str>,
    extent: Extent,
) -> Result<Outcome, Stop> {
    let content = &stored.content;
    let UndoableRun { runs, way, mut outcome, facts, binds } = find(content, vault, options, run, extent)?;
    if let Some(why) = stored.hindrance() {
        outcome.ending = Ending::Refused(why);
    } else if let Some(reason) = may_be_in_turn(content, &facts, options).filter(|_| binds) {
        outcome.ending = Ending::Deferred(reason);
    } else if options.mode == Mode::Fix {
        outcome.ending =
            restore_rows(stored, vault, &runs, way, binds).map_or_else(Ending::from_stop, |()| {
                outcome.guarantee = Some(Guarantee::Transaction);
                Ok(Ending::Undone)
            })?;
    }
    Ok(outcome)
}

fn restore_rows(
    stored: &Stored,
    vault: &Vault,
    runs: &Runs,
    way: RestoredText,
    only_if_still: bool,
) -> Result<(), Stop> {
    let content = &stored.content;
    let text = Restored { vault, record: &runs.target, parts: way.parts };
    let file = temporary().map_err(no_temporary)?;
    let fail = |cause| Error::new(&content.path, "put the originals together", cause);
    content.file().and_then(|original| text.write(&original, &file)).map_err(fail)?;
    let new = FileContent::of_temporary(&content.path, file)?;
    let keep = |_| {
        let pending = vault.begin(&content.path)?;
        content.read(|old| pending.keep_undo(&runs.target, old.len(), way.changes, None))
    };
    let fail = |cause| Error::new(vault.root(), "read the rows", cause);
    let made = vault.rows(&runs.target).map_err(fail)?;
    content.read(|old| {
        new.read(|new| stored.replace(Replacing { old, new, parts: text.parts(), only_if_still, made }, keep))
    })?;
    vault.undone(&runs.target);
    Ok(())
}

fn undo_once(
    snapshot: &Snapshot,
    vault: &Vault,
    options: &Options,
    run: Option<&str>,
    extent: Extent,
) -> Result<Outcome, Stop> {
    let UndoableRun { runs, way, mut outcome, facts, binds } = find(snapshot, vault, options, run, extent)?;
    // What comes back is seen by the model, so an agent that remembers the session matters here too.
    let forgotten = || -> Result<(), Stop> {
        let reason = if binds { may_be_remembered(snapshot, &facts, options) } else { None };
        reason.map_or(Ok(()), |reason| Err(reason.into()))
    };
    if options.mode != Mode::Fix {
        let could = could_write(snapshot, &facts, options, &[]).and_then(|()| forgotten());
        outcome.ending = could.map_or_else(Ending::from_stop, |()| Ok(outcome.ending))?;
        return Ok(outcome);
    }
    let enter = || may_write(snapshot, &facts, options, &[]);
    // Asked before anything is written, and once more by `replace`.
    let asked = enter().map(drop).and_then(|()| forgotten());
    match asked.and_then(|()| restore_and_record(vault, snapshot, &runs, way, enter)) {
        Ok(done) => {
            outcome.guarantee = Some(done.guarantee);
            outcome.late = late_lines(&done, snapshot, vault);
            outcome.ending = Ending::Undone;
        }
        Err(stop) => outcome.ending = Ending::from_stop(stop)?,
    }
    Ok(outcome)
}

/// Refuses if the model has signed thinking after the run's changes: once they are undone, the API would refuse those
/// signatures. If the API refuses them now already, they were made over the text that comes back.
fn signed_since(runs: &Runs, way: &RestoredText, now: &Examination, options: &Options) -> Option<Refusal> {
    let facts = &now.facts;
    let refused = facts.failed.is_some_and(|failed| failed.cause == Cause::InvalidThinking);
    let ignored = options.policy.for_format(facts.format).thinking == SignedThinking::Ignore
        || runs.target.purpose == Some(Purpose::Prune);
    let since = now.signed_at.is_some_and(|at| at >= way.left_to);
    (since && !refused && !ignored).then(|| Refusal::SignedSince(runs.target.run.clone()))
}

fn restore_and_record(
    vault: &Vault,
    snapshot: &Snapshot,
    runs: &Runs,
    way: RestoredText,
    enter: impl FnOnce() -> Result<Pass, Stop>,
) -> Result<Replaced, Stop> {
    let text = Restored { vault, record: &runs.target, parts: way.parts };
    let keep = |pending: Pending, swap| {
        snapshot.read(|source| pending.keep_undo(&runs.target, source.len(), way.changes, Some(swap)))
    };
    let done = replace(snapshot, &text, vault, keep, enter)?;
    // If the run was over another file that still exists, or may, its record stays as it is for that file.
    let of = &runs.target.path;
    if *of == snapshot.path || is_missing(of) {
        vault.undone(&runs.target);
    }
    Ok(done)
}

#[cfg(test)]
mod tests;
