//! What a run left beside a transcript, and how lines get from there into the transcript.
//!
//! The second file of a replacement is called `.tailor-RUN.tmp`. It is believed only if a record in the vault names this
//! run and this inode, if it has one name, and if it is ours or the transcript's owner's: a file that somebody planted, or
//! that came here with a copied folder, is left alone and reported.
//!
//! Which of the two files of the run it is, its inode tells. The new text was never put in place, unless lines were
//! appended to it that the [`Ledger`] does not account for. The old text may hold late lines: what stands after the
//! place up to which the ledger accounts for it. Lines are told by their place in the file, never by what they say: the
//! transcript may have been mended since.
//!
//! The text at the path always stays. What cannot be brought over goes into the vault, with a record by which
//! `tailor undo --run` puts it into the transcript.

mod late;
mod left;
#[cfg(test)]
mod tests;

use crate::beside::run_of;
use crate::deferral::Deferral;
use crate::error::Error;
use crate::gate::Pass;
use crate::lease::Lease;
use crate::new_text::NewText;
use crate::place::Place;
use crate::platform::facts::real_path;
use crate::replace::{Replaced, replace};
use crate::snapshot::Snapshot;
use crate::stop::Stop;
use crate::vault::{Ledger, Pending, Run, Swap, Vault};
use crate::writers;
use late::{Late, Merged};
use left::{FINISH, Leftover, Opened, left_of};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use walkdir::WalkDir;

/// Finishes what was left of replacements of one file, of which we hold the lock. `true` if there was something: the
/// snapshot may be of a file that is not at the path any more, so look again. Deferred if all lines are in their place, but
/// a program has an old file open and may write more to it.
pub(crate) fn settle(now: &Snapshot, vault: &Vault) -> Result<bool, Stop> {
    let fail = |cause| Error::new(&now.path, FINISH, cause);
    let left = left_of(now, vault)?;
    // Nobody may be in the middle of a line when we look for the last time.
    let leases: Vec<_> = left.iter().map(|leftover| Lease::read(&leftover.file)).collect();
    let held: Vec<bool> =
        leases.iter().zip(&left).map(|(lease, of)| writers::holds(lease, &of.file)).collect();
    let mut late = Vec::new();
    for (leftover, held) in left.iter().zip(&held) {
        late.push(Late::of(leftover, now, vault, !held).map_err(fail)?);
    }
    if let Some(merged) = Merged::of(&late, now) {
        bring_over(&merged, &late, now, vault)?;
        return Ok(true);
    }
    for late in &late {
        late.keep_dropped(now, vault)?;
    }
    for (leftover, _) in left.iter().zip(&held).filter(|(_, held)| !**held) {
        leftover.remove(&now.place).map_err(fail)?;
        leftover.note(vault, &Ledger::CLOSED);
        leftover.mark(now, vault);
    }
    if held.contains(&true) { Err(Deferral::OldFileOpen.into()) } else { Ok(!left.is_empty()) }
}

/// Puts late lines into the transcript: a run of its own, whose record says how far each old file is accounted for then.
fn bring_over(merged: &Merged<'_>, late: &[Late<'_>], now: &Snapshot, vault: &Vault) -> Result<(), Stop> {
    let keep = |pending, swap: Swap| merged.keep(pending, merged.accounts(late, swap.new.inode), swap, now);
    // Whoever calls us has asked already.
    let done = replace(now, merged, vault, keep, || Ok(Pass::default()))?;
    for (late, account) in late.iter().zip(merged.accounts(late, done.inode)) {
        late.leftover.note(vault, &account.ledger);
    }
    Ok(())
}

/// As [`replace`], and puts late lines into place. Also gives why they still wait for it.
pub(crate) fn replace_and_settle(
    old: &Snapshot,
    text: &(dyn NewText + Sync),
    vault: &Vault,
    keep: impl FnOnce(Pending, Swap) -> Result<Run, Stop>,
    enter: impl FnOnce() -> Result<Pass, Stop>,
) -> Result<(Replaced, Option<Deferral>), Stop> {
    let done = replace(old, text, vault, keep, enter)?;
    // The run has landed whatever becomes of them.
    let settled = if done.late { settle_late(&old.path, vault) } else { Ok(None) };
    Ok((done, settled.unwrap_or_else(|error| Some(Deferral::LateLines(error.to_string())))))
}

/// How often a file is looked at again after something was settled. Each round settles one leftover for good, unless
/// its program goes on writing to it.
pub(crate) const ROUNDS_MAX: usize = 8;

/// How long late lines are tried to be put into place before they are left to the next run. Most programs are out in
/// milliseconds.
const LATE_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 5 });

/// After which time that is tried again.
const LATE_EVERY: Duration = Duration::from_millis(20);

/// Puts lines into place that came late to a file that one of us has replaced. Gives why they still have to wait; then
/// nothing is lost, and another call goes on.
///
/// # Errors
///
/// When what an interrupted run left, or the transcript, cannot be read or written.
pub fn settle_late(path: &Path, vault: &Vault) -> Result<Option<Deferral>, Error> {
    let until = Instant::now() + LATE_PATIENCE;
    loop {
        match settle_path(path, vault)? {
            Some(_) if Instant::now() < until => sleep(LATE_EVERY),
            waits => return Ok(waits.map(|why| Deferral::LateLines(why.why()))),
        }
    }
}

/// Gives why something that was left has to wait.
fn settle_path(path: &Path, vault: &Vault) -> Result<Option<Deferral>, Error> {
    match settled(path, None, vault) {
        // Nothing of ours can be beside what is refused.
        Ok(_) | Err(Stop::Refused(_)) => Ok(None),
        Err(Stop::Deferred(reason)) => Ok(Some(reason)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// The file, locked, with nothing left of interrupted runs beside it.
pub(crate) fn settled(path: &Path, root: Option<&Path>, vault: &Vault) -> Result<Snapshot, Stop> {
    for _ in 0..ROUNDS_MAX {
        let snapshot = Snapshot::open_locked(path, root)?;
        if !settle(&snapshot, vault)? {
            return Ok(snapshot);
        }
    }
    Err(Deferral::Changed.into())
}

/// Finishes what was left of replacements of files at or below a path. Gives what went wrong, and what is not ours and
/// stays; files that another Tailor is working on are passed over.
pub fn settle_all(path: &Path, vault: &Vault) -> Vec<Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = if path.is_dir() { path } else { parent };
    let depth = if path.is_dir() { usize::MAX } else { 1 };
    let walk = WalkDir::new(folder).max_depth(depth).into_iter().filter_map(Result::ok);
    let found: Vec<_> = walk.filter(|entry| entry.file_name().to_str().and_then(run_of).is_some()).collect();
    found.iter().filter_map(|entry| settle_one(entry.path(), vault).err()).collect()
}

/// The same for one file that was left.
fn settle_one(path: &Path, vault: &Vault) -> Result<(), Error> {
    let fail = |cause| Error::new(path, FINISH, cause);
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
    let there = place.look(place.name()).map_err(fail)?;
    let leftover = match Leftover::open(&place, name, record, there.as_ref()).map_err(fail)? {
        Opened::Ours(leftover) => leftover,
        Opened::Gone => return Ok(()),
        Opened::NotOurs(why) => return Err(not_ours(path, why)),
    };
    if there.is_none() {
        return leftover.abandoned(&place, vault);
    }
    match settle_path(&target, vault)? {
        None | Some(Deferral::OtherTailor) => Ok(()),
        Some(reason) => Err(Error::new(&target, FINISH, io::Error::other(reason.to_string()))),
    }
}

fn not_ours(path: &Path, why: &str) -> Error {
    Error::new(path, FINISH, io::Error::other(format!("{why}, so it is left alone")))
        .with_way_out("if it came with a copied folder, compare it with the transcript; then remove it")
}
