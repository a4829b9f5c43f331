//! Clears the vault: which runs are kept, and for how long.

use super::record::{Record, RunState};
use super::{LOCK, RUNS, Vault, broken_record, read_run, run_of, time_of, whole_name};
use crate::ask::error::Error;
use crate::base::step::{Step, before};
use crate::disk::folder::Folder;
use crate::platform::OFlags;
use jiff::Timestamp;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How long a run is kept by default. A run that may still have late lines is kept for at least as long, whatever is set.
const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Which runs to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsToKeep {
    /// How old a run may be.
    pub age: Duration,
    /// How many bytes the vault may hold.
    pub bytes: u64,
}

impl Default for RunsToKeep {
    /// 30 days, 5 GiB.
    fn default() -> Self {
        Self { age: AGE, bytes: 5 << 30 }
    }
}

/// What was removed, and what was kept.
#[derive(Debug, Default)]
pub struct Freed {
    /// Runs that were removed.
    pub runs: u64,
    /// Files of runs that died that were removed.
    pub leftovers: u64,
    /// How many bytes these were.
    pub bytes: u64,
    /// Damaged files of runs that were moved aside.
    pub damaged: u64,
    /// Runs that were kept.
    pub runs_kept: u64,
    /// How many bytes these are.
    pub bytes_kept: u64,
    /// What could not be read or removed. It stays.
    pub errors: Vec<Error>,
}

/// The file of a run in the vault.
struct RunFile {
    /// Name of its folder, which is not held open: there would be too many.
    folder: String,
    name: String,
    run: String,
    bytes: u64,
    stays: bool,
}

/// Ending of the name of a damaged file that was moved aside.
pub(super) const DAMAGED: &str = ".damaged";

/// One pass over the vault, which is locked.
struct Sweep {
    keep: RunsToKeep,
    now: Timestamp,
    dry_run: bool,
    freed: Freed,
}

impl Vault {
    /// Removes runs that are too old, then the oldest ones until the rest fits, and what runs that died left behind. With
    /// `dry_run` it only counts them. It keeps the newest run over each file that can be undone, all later ones over
    /// that file, and runs that may still have lines to bring over. Only what was read is removed: a file that cannot be read
    /// now stays, and a damaged one is moved aside once it is old.
    ///
    /// # Errors
    ///
    /// When the vault cannot be opened. What goes wrong with a single file is in [`Freed::errors`].
    pub fn gc(&self, keep: RunsToKeep, dry_run: bool) -> Result<Freed, Error> {
        let swept = self.clear(keep, dry_run, |lock| lock.lock().map(|()| true))?;
        Ok(swept.unwrap_or_default())
    }

    /// Does the same, unless it was done less than [`Self::GC_EVERY`] ago or somebody is writing to the vault; then
    /// `None`. So the vault stays bounded without anybody looking after it.
    ///
    /// # Errors
    ///
    /// When the vault cannot be opened.
    pub fn gc_if_due(&self, keep: RunsToKeep) -> Result<Option<Freed>, Error> {
        self.clear(keep, false, |lock| {
            let since = lock.metadata()?.modified()?.elapsed();
            Ok(since.is_ok_and(|since| since >= Self::GC_EVERY) && lock.try_lock().is_ok())
        })
    }

    /// Does it if `enter` takes the lock; `None` if it does not, or there is no vault.
    fn clear(
        &self,
        keep: RunsToKeep,
        dry_run: bool,
        enter: impl FnOnce(&File) -> io::Result<bool>,
    ) -> Result<Option<Freed>, Error> {
        let clear = || {
            let Some(root) = Folder::at(self.root())? else { return Ok(None) };
            let lock = root.open(LOCK, OFlags::RDWR | OFlags::CREATE)?;
            if !enter(&lock)? {
                return Ok(None);
            }
            let freed = sweep(&root, keep, dry_run)?;
            if !dry_run {
                // `gc_if_due` reads when it was done last.
                let _ = lock.set_modified(SystemTime::now());
            }
            Ok(Some(freed))
        };
        clear().map_err(|cause| Error::new(self.root(), "clear the vault", cause))
    }

    /// How often those who write to a vault clear it.
    pub const GC_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
}

fn sweep(root: &Folder, keep: RunsToKeep, dry_run: bool) -> io::Result<Freed> {
    let mut sweep = Sweep { keep, now: Timestamp::now(), dry_run, freed: Freed::default() };
    let Some(runs) = root.child(RUNS)? else { return Ok(sweep.freed) };
    let mut entries = Vec::new();
    for name in runs.names()? {
        match runs.child(&name) {
            Ok(Some(folder)) => entries.extend(sweep.entries(&folder, &name)),
            Ok(None) => {}
            Err(cause) => sweep.failed(&runs.path_of(&name), "open the folder", cause),
        }
    }
    entries.sort_by(|one, other| one.run.cmp(&other.run));
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    for entry in entries {
        let goes = !entry.stays && (sweep.is_old(&entry.run) || total > keep.bytes);
        let folder = if goes { runs.child(&entry.folder).ok().flatten() } else { None };
        if folder.is_some_and(|folder| sweep.remove_run(&folder, &entry)) {
            total -= entry.bytes;
            sweep.freed.runs += 1;
            sweep.freed.bytes += entry.bytes;
        } else {
            sweep.freed.runs_kept += 1;
            sweep.freed.bytes_kept += entry.bytes;
        }
    }
    for name in runs.names()?.iter().filter(|_| !dry_run) {
        // Removes only empty folders; for others it fails.
        let _ = before(Step::Clean).and_then(|()| runs.remove_child(name));
    }
    Ok(sweep.freed)
}

impl Sweep {
    /// The runs in a folder, oldest first. Removes unfinished files of runs that died.
    fn entries(&mut self, folder: &Folder, folder_name: &str) -> Vec<RunFile> {
        let names = folder.names().unwrap_or_else(|cause| {
            self.failed(folder.path(), "list the folder", cause);
            Vec::new()
        });
        for name in names.iter().filter(|name| Folder::is_unfinished(name)) {
            let bytes = size(folder, name);
            if self.remove(folder, name) {
                self.freed.leftovers += 1;
                self.freed.bytes += bytes;
            }
        }
        let mut found = Vec::new();
        for name in names {
            let Some((run, _)) = run_of(&name) else { continue };
            let (record, stays) = match read_run(folder, run) {
                Ok(None) => continue,
                Ok(record) => (record, false),
                Err(cause) if self.is_old(run) && is_damage(&cause) && self.put_aside(folder, &name) => {
                    continue;
                }
                Err(cause) => {
                    self.freed.errors.push(broken_record(folder, &name, cause));
                    (None, true)
                }
            };
            let bytes = size(folder, &name) + size(folder, &whole_name::name_of(run));
            let (folder, run) = (folder_name.to_string(), run.to_string());
            found.push((RunFile { folder, name, run, bytes, stays }, record));
        }
        // The newest run that can be undone stays, and so do all later ones, which are needed to find its places.
        let records = || found.iter().filter_map(|(_, record)| record.as_ref());
        let active = |record: &Record| record.can_be_undone(records());
        let newest = found.iter().rposition(|(_, record)| record.as_ref().is_some_and(active));
        let newest = newest.unwrap_or(found.len());
        let protect = |(number, (mut entry, record)): (usize, (RunFile, Option<Record>))| {
            entry.stays |= record.is_some_and(|record| number >= newest || self.may_have_late_lines(&record));
            entry
        };
        found.into_iter().enumerate().map(protect).collect()
    }

    fn may_have_late_lines(&self, record: &Record) -> bool {
        record.state == RunState::Kept && record.swap.is_some() && self.age(&record.run) < AGE
    }

    fn is_old(&self, run: &str) -> bool {
        self.age(run) > self.keep.age
    }

    /// How long ago a run was.
    fn age(&self, run: &str) -> Duration {
        let then = time_of(run).unwrap_or(self.now);
        Duration::try_from(self.now.duration_since(then)).unwrap_or_default()
    }

    /// Removes a run, its old file first, and says whether that worked.
    fn remove_run(&mut self, folder: &Folder, entry: &RunFile) -> bool {
        let has_whole = matches!(folder.metadata_of(whole_name::name_of(&entry.run)), Ok(Some(_)));
        (!has_whole || self.remove(folder, &whole_name::name_of(&entry.run)))
            && self.remove(folder, &entry.name)
    }

    /// Removes a file, and says whether that worked.
    fn remove(&mut self, folder: &Folder, name: &str) -> bool {
        let remove = || before(Step::Clean).and_then(|()| folder.remove(name));
        let done = if self.dry_run { Ok(()) } else { remove() };
        done.map_err(|cause| self.failed(&folder.path_of(name), "remove it from the vault", cause)).is_ok()
    }

    /// Moves a damaged file aside, and says whether that worked: what is left of it may still be of use to somebody.
    fn put_aside(&mut self, folder: &Folder, name: &str) -> bool {
        let move_it = || before(Step::Clean).and_then(|()| folder.rename(name, format!("{name}{DAMAGED}")));
        let done = if self.dry_run { Ok(()) } else { move_it() };
        self.freed.damaged += u64::from(done.is_ok());
        done.map_err(|cause| self.failed(&folder.path_of(name), "move it aside", cause)).is_ok()
    }

    fn failed(&mut self, path: &Path, verb: &'static str, cause: io::Error) {
        self.freed.errors.push(Error::new(path, verb, cause));
    }
}

/// Whether the bytes of a file are wrong. A system call that fails says nothing about them, and a newer format is none of ours.
fn is_damage(cause: &io::Error) -> bool {
    let by_bytes =
        matches!(cause.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::Other);
    by_bytes && cause.raw_os_error().is_none()
}

/// Length of a file; 0 if it cannot be read.
fn size(folder: &Folder, name: &str) -> u64 {
    folder.metadata_of(name).ok().flatten().map_or(0, |found| found.len())
}
