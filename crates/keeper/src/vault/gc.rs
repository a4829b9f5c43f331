//! What is kept for how long. What a record is about, and whether its file still exists, is not known here.

mod packs;

use super::catalogue::Catalogue;
use super::folder::Folder;
use super::pack::{END_BYTES, Entry};
use super::record::{Record, State};
use super::{LOCK, RUNS, TEXTS, Vault, broken_record, read_record, run_of};
use crate::error::Error;
use crate::step::{Step, before};
use blake3::Hash;
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, SystemTime};

/// What is to stay.
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

/// What was removed, and what stays.
#[derive(Debug, Default)]
pub struct Freed {
    /// Records of runs that are gone.
    pub runs: u64,
    /// Texts that are gone.
    pub texts: u64,
    /// Files of runs that died that are gone.
    pub leftovers: u64,
    /// How many bytes that is.
    pub bytes: u64,
    /// Records that stay.
    pub runs_kept: u64,
    /// Texts that stay.
    pub texts_kept: u64,
    /// How many bytes that is.
    pub bytes_kept: u64,
    /// What could not be read or removed. It stays.
    pub errors: Vec<Error>,
}

/// The record of a run, and where it is.
struct RunEntry {
    folder: String,
    name: String,
    record: Record,
    /// Newest run over its file that can be undone, or later.
    protected: bool,
}

/// A text, and who names it.
struct TextEntry {
    bytes: u64,
    age: Duration,
    names: u64,
}

/// The vault, listed. Nobody else writes to it meanwhile.
struct Sweep {
    root: Folder,
    runs: Option<Folder>,
    catalogue: Option<Catalogue>,
    dry_run: bool,
    freed: Freed,
}

impl Vault {
    /// Removes what need not be kept any longer, or with `dry_run` only says what that would be: runs that are too
    /// old, then the oldest of those that are too many, but never the newest run over a file; then the texts that no
    /// run names, and what runs left behind that died.
    ///
    /// # Errors
    ///
    /// When the vault cannot be opened. What goes wrong with a single file is in [`Freed::errors`].
    pub fn gc(&self, keep: Keep, dry_run: bool) -> Result<Freed, Error> {
        let fail = |cause| Error::new(self.root(), "clear the vault", cause);
        let Some(root) = Folder::open(self.root()).map_err(fail)? else { return Ok(Freed::default()) };
        let lock = root.shared(LOCK).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let freed = sweep(root, keep, dry_run).map_err(fail)?;
        if !dry_run {
            // When it was done last; see `gc_if_due`.
            let _ = lock.set_modified(SystemTime::now());
        }
        Ok(freed)
    }

    /// The same, so that the vault stays bounded without anybody's care: not if it was done less than
    /// [`Self::GC_EVERY`] ago, and not if somebody is writing to the vault. `None` then.
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
        let freed = sweep(root, keep, false).map_err(fail)?;
        let _ = lock.set_modified(SystemTime::now());
        Ok(Some(freed))
    }

    /// How often a vault is cleared by those who write to it.
    pub const GC_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
}

fn sweep(root: Folder, keep: Keep, dry_run: bool) -> io::Result<Freed> {
    let runs = root.child(RUNS)?;
    let catalogue = root.child(TEXTS)?.map(Catalogue::load).transpose()?;
    let mut sweep = Sweep { root, runs, catalogue, dry_run, freed: Freed::default() };
    sweep.run(keep);
    Ok(sweep.freed)
}

impl Sweep {
    fn run(&mut self, keep: Keep) {
        let now = SystemTime::now();
        let (entries, broken) = self.entries();
        let mut texts = self.texts(now);
        for entry in &entries {
            for digest in &entry.record.header.texts {
                if let Some(text) = texts.get_mut(&digest.0) {
                    text.names += 1;
                }
            }
        }
        // A text that only an unreadable record names cannot be told from one that none names, until it is too old.
        let lost = |text: &TextEntry| text.names == 0 && (!broken || text.age > keep.age);
        let mut total: u64 = entries.iter().map(|entry| entry.record.size).sum();
        total += texts.values().filter(|text| !lost(text)).map(|text| text.bytes).sum::<u64>();
        total += self.catalogue.iter().map(|all| (all.packs.len() * END_BYTES) as u64).sum::<u64>();
        for entry in entries {
            let age = age(entry.record.run(), now);
            if entry.protected || (age <= keep.age && total <= keep.bytes) || !self.remove_run(&entry) {
                self.freed.runs_kept += 1;
                self.freed.bytes_kept += entry.record.size;
                continue;
            }
            total -= entry.record.size;
            for digest in &entry.record.header.texts {
                if let Some(text) = texts.get_mut(&digest.0) {
                    text.names -= 1;
                    total -= if lost(text) { text.bytes } else { 0 };
                }
            }
        }
        self.remove_rubbish(keep, now);
        if let Some(catalogue) = &self.catalogue {
            let stays = |hash: &Hash| texts.get(hash).is_some_and(|text| !lost(text));
            packs::clear(catalogue, &stays, self.dry_run, &mut self.freed);
        }
        self.remove_empty();
    }

    /// All records, oldest first, and whether one could not be read.
    fn entries(&mut self) -> (Vec<RunEntry>, bool) {
        let mut all = Vec::new();
        let mut broken = false;
        for (folder_name, folder) in children(self.runs.as_ref(), &mut self.freed) {
            let mut entries: Vec<RunEntry> = Vec::new();
            for name in listed(&folder, &mut self.freed) {
                let Some((_, state)) = run_of(&name) else {
                    self.remove_leftover(&folder, &name);
                    continue;
                };
                match read_record(&folder, &name, state) {
                    Ok(Some((mut record, _))) => {
                        // What was taken out and where is of no interest here, and may be much.
                        record.header.edits = Vec::new();
                        entries.push(RunEntry {
                            folder: folder_name.clone(),
                            name,
                            record,
                            protected: false,
                        });
                    }
                    Ok(None) => {}
                    Err(cause) => {
                        broken = true;
                        self.freed.runs_kept += 1;
                        self.freed.errors.push(broken_record(&folder, &name, cause));
                    }
                }
            }
            entries.sort_by(|one, other| one.record.run().cmp(other.record.run()));
            let undone: HashSet<String> =
                entries.iter().filter_map(|entry| entry.record.undoes().map(str::to_string)).collect();
            let active = |entry: &RunEntry| {
                let record = &entry.record;
                record.undoes().is_none() && record.state() != State::Undone && !undone.contains(record.run())
            };
            // Later ones tell where its places are now.
            if let Some(newest) = entries.iter().rposition(active) {
                entries[newest..].iter_mut().for_each(|entry| entry.protected = true);
            }
            all.extend(entries);
        }
        all.sort_by(|one, other| one.record.run().cmp(other.record.run()));
        (all, broken)
    }

    fn texts(&mut self, now: SystemTime) -> HashMap<Hash, TextEntry> {
        let text = |entry: &Entry| TextEntry { bytes: entry.bytes(), age: since(entry.kept, now), names: 0 };
        let places = self.catalogue.iter().flat_map(Catalogue::places);
        places.map(|place| (place.entry.hash, text(&place.entry))).collect()
    }

    /// What died in the making, and packs that cannot be read any more and are too old.
    fn remove_rubbish(&mut self, keep: Keep, now: SystemTime) {
        let Some(catalogue) = &mut self.catalogue else { return };
        for name in listed(&catalogue.folder, &mut self.freed) {
            if Folder::is_unfinished(&name) {
                remove_leftover(&catalogue.folder, &name, self.dry_run, &mut self.freed);
            }
        }
        for (name, cause) in std::mem::take(&mut catalogue.broken) {
            let found = catalogue.folder.read(&name).ok().flatten();
            let modified = found.and_then(|file| file.metadata().ok()?.modified().ok());
            let age = modified.and_then(|modified| now.duration_since(modified).ok());
            if age.is_some_and(|age| age > keep.age) {
                remove_leftover(&catalogue.folder, &name, self.dry_run, &mut self.freed);
            } else {
                let error = Error::new(&catalogue.folder.path_of(&name), "read the texts", cause);
                self.freed.errors.push(error);
            }
        }
    }

    fn remove_run(&mut self, entry: &RunEntry) -> bool {
        let remove = |runs: &Folder| match runs.child(&entry.folder)? {
            Some(folder) => remove(&folder, &entry.name, self.dry_run),
            None => Ok(()),
        };
        let done = self.runs.as_ref().map_or(Ok(()), remove);
        let path = self.root.path_of(RUNS).join(&entry.folder).join(&entry.name);
        let removed = note(&mut self.freed, &path, done);
        self.freed.runs += u64::from(removed);
        self.freed.bytes += if removed { entry.record.size } else { 0 };
        removed
    }

    fn remove_leftover(&mut self, folder: &Folder, name: &str) {
        if Folder::is_unfinished(name) {
            remove_leftover(folder, name, self.dry_run, &mut self.freed);
        }
    }

    fn remove_empty(&mut self) {
        let Some(runs) = self.runs.as_ref().filter(|_| !self.dry_run) else { return };
        for name in runs.names().unwrap_or_default() {
            // One that is not empty stays, and so does what is no folder.
            let _ = before(Step::Clean).and_then(|()| runs.remove_child(&name));
        }
    }
}

fn age(run: &str, now: SystemTime) -> Duration {
    let millis = super::time_of(run).and_then(|millis| u64::try_from(millis).ok()).unwrap_or(u64::MAX);
    since(millis, now)
}

/// How long ago so many milliseconds after 1970 was.
fn since(millis: u64, now: SystemTime) -> Duration {
    let then = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    then.and_then(|then| now.duration_since(then).ok()).unwrap_or_default()
}

fn remove(folder: &Folder, name: &str, dry_run: bool) -> io::Result<()> {
    if dry_run {
        return Ok(());
    }
    before(Step::Clean)?;
    folder.remove(name)
}

fn remove_leftover(folder: &Folder, name: &str, dry_run: bool, freed: &mut Freed) {
    let bytes = folder.read(name).ok().flatten().and_then(|file| Some(file.metadata().ok()?.len()));
    if note(freed, &folder.path_of(name), remove(folder, name, dry_run)) {
        freed.leftovers += 1;
        freed.bytes += bytes.unwrap_or(0);
    }
}

/// Whether something was done; if not, why is told.
fn note(freed: &mut Freed, path: &std::path::Path, done: io::Result<()>) -> bool {
    let done = done.map_err(|cause| freed.errors.push(Error::new(path, "remove it from the vault", cause)));
    done.is_ok()
}

fn listed(folder: &Folder, freed: &mut Freed) -> Vec<String> {
    folder.names().unwrap_or_else(|cause| {
        freed.errors.push(Error::new(&folder.path_of(""), "list the folder", cause));
        Vec::new()
    })
}

fn children(folder: Option<&Folder>, freed: &mut Freed) -> Vec<(String, Folder)> {
    let Some(folder) = folder else { return Vec::new() };
    let mut children = Vec::new();
    for name in listed(folder, freed).into_iter().filter(|name| !Folder::is_unfinished(name)) {
        match folder.child(&name) {
            Ok(Some(child)) => children.push((name, child)),
            Ok(None) => {}
            Err(cause) => freed.errors.push(Error::new(&folder.path_of(&name), "open the folder", cause)),
        }
    }
    children
}
