//! Finishes what an earlier run left beside a transcript, and moves late lines from there into the transcript.
//!
//! The second file of a replacement is called `.tailor-RUN.tmp`; here it is a *leftover*. It is trusted only if a record in
//! the vault names this run and this inode, if it has no other name, and if it belongs to us or to the owner of the
//! transcript. A file that somebody planted, or that came here with a copied folder, is left alone and reported.
//!
//! | the run ended | the path has | left behind | what is done |
//! |---|---|---|---|
//! | before the vault kept the originals | the old text | a `.tmp-RUN` file in the vault | `gc` removes it |
//! | before the new file had a name | the old text | a `.kept` file in the vault | nothing; such a run never landed |
//! | before the exchange of the names | the old text | the new text, as a leftover | remove it and its record |
//! | between the two steps of an exchange | the old text | a second name of it, and the new text | remove the name; then as above |
//! | … in which the old file stepped aside | nothing | the old text and the new one, as leftovers | give the old file its name back; then as above |
//! | after the exchange | the new text | the old text, as a leftover | bring over its late lines, then remove it |
//! | after an exchange in steps | the new text | the old text, as a leftover or in the vault | bring over its late lines; the vault keeps it whole |
//! | after the exchange was reverted | another text | the new text, as a leftover | bring over what others appended, then remove it |
//!
//! The inode of a leftover shows which of the two files of its run it is. Late lines are those after the offset up to which
//! the [`Ledger`] accounts for the leftover. They are identified by their offset, never by their content, because the
//! transcript may have been repaired since.
//!
//! What is at the path is never discarded. What cannot be brought over goes into the vault, under a run of its own, which
//! `tailor undo --run` puts into the transcript.

mod late;
mod left;
#[cfg(test)]
mod tests;

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::gate::Pass;
use crate::ask::stop::Stop;
use crate::ask::writers;
use crate::disk::beside::run_of;
use crate::disk::folder::{Place, folder_of};
use crate::disk::lease::Lease;
use crate::platform::metadata::real_path;
use crate::swap::replace::{Replaced, replace};
use crate::swap::snapshot::{Snapshot, as_owner};
use crate::vault::{Swap, Vault};
use late::{Late, MergedText};
pub(crate) use left::remove_second_name;
use left::{FINISH, Leftover, OpenedLeftover, bring_back, left_of};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use walkdir::WalkDir;

/// Finishes interrupted replacements of a file whose lock we hold. `true` if there were any: then the file must be opened
/// and examined again, because another one may be at the path now. Deferred if all lines are in place, but a program still
/// has an old file open and may append to it.
pub(crate) fn finish_leftovers(now: &Snapshot, vault: &Vault) -> Result<bool, Stop> {
    let fail = |cause| Error::new(&now.path, FINISH, cause);
    if remove_second_name(now, vault)? {
        return Ok(true);
    }
    let names = now.place.names().map_err(fail)?;
    if bring_back(&now.place, &names, vault)? {
        return Ok(true);
    }
    let left = left_of(now, &names, vault)?;
    // With a lease, no program can be in the middle of a line when we look for the last time.
    let leases: Vec<_> = left.iter().map(|leftover| Lease::read(&leftover.file)).collect();
    let held: Vec<bool> =
        leases.iter().zip(&left).map(|(lease, of)| writers::holds(lease, &of.file)).collect();
    let mut late = Vec::new();
    for (leftover, held) in left.iter().zip(&held) {
        late.push(Late::from_leftover(leftover, now, vault, !held).map_err(fail)?);
    }
    if let Some(merged) = MergedText::new(&late, now) {
        bring_over(&merged, &late, now, vault)?;
        return Ok(true);
    }
    for late in &late {
        late.keep_dropped(now, vault)?;
    }
    for (leftover, _) in left.iter().zip(&held).filter(|(_, held)| !**held) {
        leftover.settle(now, vault).map_err(fail)?;
    }
    if held.contains(&true) { Err(Deferral::OldFileOpen.into()) } else { Ok(!left.is_empty()) }
}

/// Inserts late lines into the transcript. This is a run of its own, whose record says how far each leftover is accounted
/// for once it has landed.
fn bring_over(merged: &MergedText<'_>, late: &[Late<'_>], now: &Snapshot, vault: &Vault) -> Result<(), Stop> {
    let keep = |pending, swap: Swap| merged.keep(pending, merged.accounts(late, swap.new.inode), swap, now);
    // The caller has asked the gates already.
    let done = replace(now, merged, vault, keep, || Ok(Pass::default()))?;
    for (late, account) in late.iter().zip(merged.accounts(late, done.inode)) {
        late.leftover.note(vault, &account.ledger);
    }
    Ok(())
}

/// Inserts the late lines of a run that has landed, whatever becomes of them. Returns why some still wait, if any do.
pub(crate) fn late_lines(done: &Replaced, old: &Snapshot, vault: &Vault) -> Option<Deferral> {
    let waits = if done.late { insert_late_lines(&old.path, vault) } else { Ok(None) };
    waits.unwrap_or_else(|error| Some(Deferral::LateLines(error.to_string())))
}

/// How many times a file is examined again after a leftover was finished. Each round gets rid of one leftover, unless a
/// program keeps writing to it.
pub(crate) const ROUNDS_MAX: usize = 8;

/// How long to retry inserting late lines before they are left to the next run. Most programs close the file within
/// milliseconds.
const LATE_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 5 });

/// Pause between these retries.
const LATE_EVERY: Duration = Duration::from_millis(20);

/// Inserts lines that were appended too late to a file that a run has replaced. Returns why they still have to wait, if
/// they do; then nothing is lost, and the next call goes on.
///
/// # Errors
///
/// When a leftover or the transcript cannot be read or written.
pub fn insert_late_lines(path: &Path, vault: &Vault) -> Result<Option<Deferral>, Error> {
    let until = Instant::now() + LATE_PATIENCE;
    loop {
        match finish_at(path, vault)? {
            Some(_) if Instant::now() < until => sleep(LATE_EVERY),
            waits => return Ok(waits.map(|why| Deferral::LateLines(why.why()))),
        }
    }
}

/// Finishes the leftovers of the transcript at a path. Returns why one has to wait, if one does.
fn finish_at(path: &Path, vault: &Vault) -> Result<Option<Deferral>, Error> {
    match as_owner(path).and_then(|_acting| open_finished(path, None, vault)) {
        // A file that is refused was never replaced, so it has no leftovers.
        Ok(_) | Err(Stop::Refused(_)) => Ok(None),
        Err(Stop::Deferred(reason)) => Ok(Some(reason)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Opens and locks a file, once no leftovers are beside it any more.
pub(crate) fn open_finished(path: &Path, root: Option<&Path>, vault: &Vault) -> Result<Snapshot, Stop> {
    for _ in 0..ROUNDS_MAX {
        if came_back(path, vault)? {
            continue;
        }
        let snapshot = Snapshot::open(path, root)?;
        if snapshot.lock()? && !finish_leftovers(&snapshot, vault)? {
            return Ok(snapshot);
        }
    }
    Err(Deferral::Changed.into())
}

/// Gives a file its name back that an interrupted run took from it. `true` if it did.
pub(crate) fn came_back(path: &Path, vault: &Vault) -> Result<bool, Stop> {
    let place = || {
        let name = path.file_name().ok_or(io::ErrorKind::NotFound)?;
        let place = Place::hold(&real_path(folder_of(path))?.join(name))?;
        place.names().map(|names| (place, names))
    };
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    // If nothing can be seen there, opening the file says why.
    let Ok((place, names)) = place() else { return Ok(false) };
    bring_back(&place, &names, vault)
}

/// Finishes interrupted replacements of the files at or below a path. Returns what went wrong, and which files are not ours
/// and stay. Files that another Tailor is working on are skipped.
pub fn finish_all(path: &Path, vault: &Vault) -> Vec<Error> {
    let (folder, depth) = if path.is_dir() { (path, usize::MAX) } else { (folder_of(path), 1) };
    let walk = WalkDir::new(folder).max_depth(depth).into_iter().filter_map(Result::ok);
    let found: Vec<_> = walk.filter(|entry| entry.file_name().to_str().and_then(run_of).is_some()).collect();
    // A run may have left two, which are finished together.
    let left = found.iter().map(walkdir::DirEntry::path).filter(|path| path.symlink_metadata().is_ok());
    let mut failed: Vec<Error> = left.filter_map(|path| finish_one(path, vault).err()).collect();
    // If the vault cannot be read, a repair says so.
    let grown = real_path(path).map_or_else(|_| Vec::new(), |real| vault.grown(&real).unwrap_or_default());
    failed.extend(
        grown.iter().filter(|path| path.exists()).filter_map(|path| finish_target(path, vault).err()),
    );
    failed
}

/// Finishes the leftovers of the transcript at a path; an error says why some wait.
fn finish_target(path: &Path, vault: &Vault) -> Result<(), Error> {
    match finish_at(path, vault)? {
        None | Some(Deferral::OtherTailor) => Ok(()),
        Some(reason) => Err(Error::new(path, FINISH, io::Error::other(reason.to_string()))),
    }
}

/// Finishes one leftover.
fn finish_one(path: &Path, vault: &Vault) -> Result<(), Error> {
    let fail = |cause| Error::new(path, FINISH, cause);
    let _acting = as_owner(path).map_err(|stop| fail(io::Error::other(stop.to_string())))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = real_path(path.parent().unwrap_or(Path::new("/"))).map_err(fail)?;
    let Some(record) = run_of(name).map(|run| vault.run(run)).transpose()?.flatten() else {
        return Err(fail(io::Error::other("no run in this vault left this file, so it is left alone"))
            .with_way_out(
                "pass the vault of its run with --vault DIR, or remove the file if you do not need it",
            ));
    };
    let target = record.path.file_name().map(|name| folder.join(name)).unwrap_or_default();
    let place = Place::hold(&target).map_err(fail)?;
    let there = place.metadata_of(place.name()).map_err(fail)?;
    let leftover = match Leftover::open(&place, name, record, there.as_ref()).map_err(fail)? {
        OpenedLeftover::Ours(leftover) => Some(leftover),
        OpenedLeftover::SecondName => None,
        OpenedLeftover::Gone => return Ok(()),
        OpenedLeftover::NotOurs(why) => return Err(not_ours(path, why)),
    };
    if let (None, Some(leftover)) = (there, leftover)
        && !came_back(&target, vault).unwrap_or(false)
    {
        return leftover.abandoned(&place, vault);
    }
    finish_target(&target, vault)
}

fn not_ours(path: &Path, why: &str) -> Error {
    Error::new(path, FINISH, io::Error::other(format!("{why}, so it is left alone")))
        .with_way_out("if it came with a copied folder, compare it with the transcript; then remove it")
}
