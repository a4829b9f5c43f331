//! How long runs are kept.

use super::folder::Folder;
use super::record::{Record, State};
use super::{LOCK, RUNS, Vault, broken_record, read_run, run_of, time_of};
use crate::error::Error;
use crate::step::{Step, before};
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How long a run is kept that may still have lines to bring over.
const UNFINISHED_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Which runs to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How old a run may be.
    pub age: Duration,
    /// How many bytes the vault may hold.
    pub bytes: u64,
}

impl Default for Keep {
    /// 30 days, 5 GiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(30 * 24 * 60 * 60), bytes: 5 << 30 }
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
    /// Runs that were kept.
    pub runs_kept: u64,
    /// How many bytes these are.
    pub bytes_kept: u64,
    /// What could not be read or removed. It stays.
    pub errors: Vec<Error>,
}

/// The file of a run.
struct Entry {
    /// Name of its folder. Held open, the folders of all files would be too many.
    folder: String,
    name: String,
    run: String,
    bytes: u64,
    stays: bool,
}

/// The vault. Nobody else writes to it meanwhile.
struct Sweep {
    keep: Keep,
    now: SystemTime,
    dry_run: bool,
    freed: Freed,
}

impl Vault {
    /// Removes runs that are too old, then the oldest ones until the rest fits, and what runs that died left behind. With
    /// `dry_run` it only counts them. It keeps the newest run over each file that can be undone, all later ones over
    /// that file, and runs that may still have lines to bring over.
    ///
    /// # Errors
    ///
    /// When the vault cannot be opened. What goes wrong with a single file is in [`Freed::errors`].
    pub fn gc(&self, keep: Keep, dry_run: bool) -> Result<Freed, Error> {
        let fail = |cause| Error::new(self.root(), "clear the vault", cause);
        let Some(root) = Folder::open(self.root()).map_err(fail)? else { return Ok(Freed::default()) };
        let lock = root.shared(LOCK).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let freed = sweep(&root, keep, dry_run).map_err(fail)?;
        if !dry_run {
            // `gc_if_due` reads when it was done last.
            let _ = lock.set_modified(SystemTime::now());
        }
        Ok(freed)
    }

    /// Does the same, unless it was done less than [`Self::GC_EVERY`] ago or somebody is writing to the vault; then
    /// `None`. So the vault stays bounded without anybody looking after it.
    ///
    /// # Errors
    ///
    /// When the vault cannot be opened.
    pub fn gc_if_due(&self, keep: Keep) -> Result<Option<Freed>, Error> {
        let fail = |cause| Error::new(self.root(), "clear the vault", cause);
        let Some(root) = Folder::open(self.root()).map_err(fail)? else { return Ok(None) };
        let lock = root.shared(LOCK).map_err(fail)?;
        let last = lock.metadata().and_then(|found| found.modified()).map_err(fail)?;
        let due = last.elapsed().is_ok_and(|since| since >= Self::GC_EVERY);
        if !due || lock.try_lock().is_err() {
            return Ok(None);
        }
        let freed = sweep(&root, keep, false).map_err(fail)?;
        let _ = lock.set_modified(SystemTime::now());
        Ok(Some(freed))
    }

    /// How often those who write to a vault clear it.
    pub const GC_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
}

fn sweep(root: &Folder, keep: Keep, dry_run: bool) -> io::Result<Freed> {
    let mut sweep = Sweep { keep, now: SystemTime::now(), dry_run, freed: Freed::default() };
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
        if folder.is_some_and(|folder| sweep.remove(&folder, &entry.name)) {
            total -= entry.bytes;
            sweep.freed.runs += 1;
            sweep.freed.bytes += entry.bytes;
        } else {
            sweep.freed.runs_kept += 1;
            sweep.freed.bytes_kept += entry.bytes;
        }
    }
    for name in runs.names()?.iter().filter(|_| !dry_run) {
        // This fails for a folder that is not empty.
        let _ = before(Step::Clean).and_then(|()| runs.remove_child(name));
    }
    Ok(sweep.freed)
}

impl Sweep {
    /// The runs in a folder, oldest first. What runs that died left there goes.
    fn entries(&mut self, folder: &Folder, folder_name: &str) -> Vec<Entry> {
        let names = folder.names().unwrap_or_else(|cause| {
            self.failed(&folder.path_of(""), "list the folder", cause);
            Vec::new()
        });
        for name in names.iter().filter(|name| Folder::is_unfinished(name)) {
            let bytes = size(folder, name);
            if self.remove(folder, name) {
                self.freed.leftovers += 1;
                self.freed.bytes += bytes;
            }
        }
        let mut records = Vec::new();
        let mut entries = Vec::new();
        for name in names {
            let Some((run, _)) = run_of(&name) else { continue };
            let bytes = size(folder, &name);
            let mut stays = false;
            match read_run(folder, run) {
                Ok(Some(record)) => records.push((entries.len(), record)),
                Ok(None) => continue,
                // A damaged file is of no use when it is old. One in a newer format is.
                Err(cause) if self.is_old(run) && cause.kind() != ErrorKind::Unsupported => {}
                Err(cause) => {
                    stays = true;
                    self.freed.errors.push(broken_record(folder, &name, cause));
                }
            }
            let (folder, run) = (folder_name.to_string(), run.to_string());
            entries.push(Entry { folder, name, run, bytes, stays });
        }
        self.protect(&records, &mut entries);
        entries
    }

    /// Keeps the newest run that can be undone, and the later ones, which tell where its places are now.
    fn protect(&self, records: &[(usize, Record)], entries: &mut [Entry]) {
        let undone: HashSet<&str> = records.iter().filter_map(|(_, record)| record.undoes()).collect();
        let active = |(_, record): &(usize, Record)| record.can_be_undone() && !undone.contains(record.run());
        let newest = records.iter().rposition(active).unwrap_or(records.len());
        for (number, (index, record)) in records.iter().enumerate() {
            let unfinished = record.state() == State::Kept
                && record.swap().is_some()
                && self.age(record.run()) < UNFINISHED_KEPT;
            if number >= newest || unfinished {
                entries[*index].stays = true;
            }
        }
    }

    fn is_old(&self, run: &str) -> bool {
        self.age(run) > self.keep.age
    }

    /// How long ago a run was.
    fn age(&self, run: &str) -> Duration {
        let millis = time_of(run).and_then(|millis| u64::try_from(millis).ok()).unwrap_or(u64::MAX);
        let then = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis));
        then.and_then(|then| self.now.duration_since(then).ok()).unwrap_or_default()
    }

    /// Removes a file, and says whether that worked.
    fn remove(&mut self, folder: &Folder, name: &str) -> bool {
        let remove = || before(Step::Clean).and_then(|()| folder.remove(name));
        let done = if self.dry_run { Ok(()) } else { remove() };
        done.map_err(|cause| self.failed(&folder.path_of(name), "remove it from the vault", cause)).is_ok()
    }

    fn failed(&mut self, path: &Path, verb: &'static str, cause: io::Error) {
        self.freed.errors.push(Error::new(path, verb, cause));
    }
}

/// Length of a file; 0 if that cannot be found out.
fn size(folder: &Folder, name: &str) -> u64 {
    let found = folder.read(name).ok().flatten();
    found.and_then(|file| Some(file.metadata().ok()?.len())).unwrap_or(0)
}
