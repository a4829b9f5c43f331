//! The index of verdicts: what earlier looks found, so that a file that has not changed need not be read again, and of
//! one that has only grown no more than the end is read, if that is enough.
//!
//! It only saves work. Whatever changes a file reads it first, and whatever is wrong with the index means that files are
//! read as if there were none: it may be deleted at any time. There is one file for each way to look (program, mode and
//! policy), readable by its owner alone. Each line is an entry with a checksum; the last one about a path counts. Lines
//! are appended, so that several programs may do so at once, and a run that finds too many stale ones rewrites the
//! file. A lost line costs a look.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::outcome::{Ending, Outcome, Unsupported};
use crate::disk::folder::Folder;
use crate::jobs::follow::{Remembered, follow};
use crate::jobs::maintain::maintain;
use crate::jobs::stored;
use crate::options::{Mode, Options};
use crate::places::store;
use crate::platform::identity::{FileId, Stamp};
use crate::platform::metadata::{self, MetadataExt};
use crate::platform::network::network;
use crate::platform::own::Own;
use crate::platform::owner::{is_ours, is_private};
use crate::platform::{FileExt, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transcript::{Digest, Situation};

/// The format of the file. Another one has another name.
const FORMAT: u32 = 3;
/// What the names of our files begin with. They do not end as transcripts do.
const PREFIX: &str = "verdicts-";
/// How many files stay: of other policies, and of versions of the program that are gone.
const FILES_MAX: usize = 8;
/// How long a file may grow, and how long one of its lines.
const BYTES_MAX: u64 = 64 << 20;
const LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes that are read and written at once.
const READ_BYTES: usize = 256 << 10;
/// How many entries are kept.
const ENTRIES_MAX: usize = 100_000;
/// Up to so many useless lines the file is not rewritten.
const USELESS_LINES_MIN: usize = 256;
/// Digits of a checksum.
const CHECK_DIGITS: usize = 16;
/// A file that changed this short a time before it was looked at may change once more without other times: clocks of
/// file systems tick in up to two seconds.
const FRESH: Duration = Duration::from_secs(2);

/// What is known of files for one way to look at them.
pub struct Verdicts {
    known: Mutex<HashMap<PathBuf, EntrySpan>>,
    file: File,
    /// How many bytes more may be appended.
    room: AtomicU64,
    /// Whether a device is of this machine.
    local: Mutex<HashMap<u64, bool>>,
}

/// Where an entry stands in the file. It is read when somebody asks for it, so that what is known of many sessions takes no
/// memory.
struct EntrySpan {
    /// Its line, without the end.
    at: u64,
    length: usize,
    was_returned: bool,
}

/// An entry that was read.
struct ReadEntry {
    stamp: Stamp,
    /// The digest of the look, as JSON.
    digest: Box<str>,
    /// What an append to it is judged by, as JSON; empty if nothing was remembered for that.
    judge: Box<str>,
}

/// What a look found in a file.
#[derive(Serialize, Deserialize)]
struct StoredDigest<'a> {
    digest: Digest<'a>,
    /// How much a repair would save and write, if that is why there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_worth: Option<(u64, u64)>,
}

/// A file before a look at it.
pub struct Sight {
    stamp: Stamp,
    /// When it was last written to, and last changed.
    times: Vec<(i64, i64)>,
    at: SystemTime,
}

/// What stands in the stamp of a database for the part of a time. Its numbers are of everything that was looked at.
const OF_STORE: i64 = -1;

impl Sight {
    /// The file as it is now; `None` if there is no regular file. A session in a database is as old as that and its log.
    pub fn now(path: &Path) -> Option<Self> {
        let at = SystemTime::now();
        let seen = |path: &Path| {
            let metadata = metadata::of_link(path).ok()?;
            metadata.is_file().then(|| Stamp::from_metadata(&metadata))
        };
        let Some((file, _)) = store::split(path) else {
            let stamp = seen(path)?;
            return Some(Self { stamp, times: vec![stamp.modified, stamp.changed], at });
        };
        let (stamp, log) = (seen(file)?, seen(&store::beside(file, "-wal")));
        // One without a byte is like none: whoever reads the database may make it. If that is root, SQLite also sets its owner
        // each time, so when it last changed says nothing.
        let log = log.filter(|log| log.bytes > 0).map(|log| Stamp { changed: log.modified, ..log });
        let both: Vec<Stamp> = [stamp].into_iter().chain(log).collect();
        let times = both.iter().flat_map(|stamp| [stamp.modified, stamp.changed]).collect();
        let hash = blake3::hash(format!("{both:?}").as_bytes());
        let number =
            |at: usize| hash.as_bytes()[at..].first_chunk().map(|part| (i64::from_le_bytes(*part), OF_STORE));
        let (modified, changed) = (number(0)?, number(8)?);
        Some(Self { stamp: Stamp { modified, changed, ..stamp }, times, at })
    }

    /// Whether a change after this would show in the times of the file.
    fn is_settled(&self) -> bool {
        let time = |(seconds, nanos): (i64, i64)| {
            Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?))
        };
        let now = self.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        // Times before 1970 and times to come say nothing.
        self.times.iter().all(|at| time(*at).is_some_and(|at| at + FRESH < now))
    }
}

/// Whether it is the stamp of a database, whose length is not that of a session in it.
fn is_of_store(stamp: &Stamp) -> bool {
    stamp.modified.1 == OF_STORE
}

impl Verdicts {
    /// The default folder; `None` if no home folder is known.
    pub fn default_folder() -> Option<PathBuf> {
        Own::Cache.folder()
    }

    /// What is known of the files below these roots for such looks. Entries of files that are gone go.
    ///
    /// # Errors
    ///
    /// When there is no such index and none can be made: the folder is not ours alone, or what is asked for depends on
    /// more than a file.
    pub fn open(folder: &Path, options: &Options, roots: &[PathBuf]) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", key(options)?);
        let folder = private(folder)?;
        let file = open(&folder, &name)?;
        let (mut known, lines) = read(&file)?;
        let roots: Vec<PathBuf> = roots.iter().filter_map(|root| std::path::absolute(root).ok()).collect();
        let is_asked =
            |path: &Path| roots.iter().any(|root| path.starts_with(root) || store::is_in(path, root));
        let before = known.len();
        known.retain(|path, _| !(is_asked(path) && is_gone(path)));
        let is_long = |file: &File| file.metadata().is_ok_and(|found| found.len() > BYTES_MAX / 2);
        let is_worth_it =
            known.len() < before || lines > 2 * known.len() + USELESS_LINES_MIN || is_long(&file);
        let anew = |known: &_, keep| write_anew(&folder, &name, &file, known, keep).ok();
        let mut written = is_worth_it.then(|| anew(&known, EntriesToKeep::All)).flatten();
        // There must be room for what is new. What appends are judged by goes first.
        for keep in [EntriesToKeep::Digests, EntriesToKeep::Nothing] {
            if written.as_ref().is_some_and(is_long) {
                written = anew(&known, keep);
            }
        }
        let file = match written {
            Some(written) => {
                (known, _) = read(&written)?;
                written
            }
            None => file,
        };
        let room = AtomicU64::new(BYTES_MAX.saturating_sub(file.metadata()?.len()));
        known.retain(|path, _| is_asked(path));
        Ok(Self { known: Mutex::new(known), file, room, local: Mutex::default() })
    }

    /// Removes all indexes in a folder: titles in them may be what somebody wants forgotten.
    ///
    /// # Errors
    ///
    /// When one cannot be removed.
    pub fn forget(folder: &Path) -> io::Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        let folder = private(folder)?;
        let names = folder.names()?;
        names.iter().filter(|name| name.starts_with(PREFIX)).try_for_each(|name| folder.remove(name))
    }

    /// What is known of a file, or else what a look tells.
    ///
    /// # Errors
    ///
    /// As for [`crate::maintain`].
    pub fn maintain(&self, path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
        let outcome = self.follow(path, root, options, &mut None)?;
        outcome.map_or_else(|| maintain(path, root, options), Ok)
    }

    /// As [`crate::follow`], with what earlier runs found.
    ///
    /// # Errors
    ///
    /// As for [`crate::maintain`].
    pub fn follow(
        &self,
        path: &Path,
        root: Option<&Path>,
        options: &Options,
        remembered: &mut Option<Remembered>,
    ) -> Result<Option<Outcome>, Error> {
        let Some(now) = Sight::now(path) else { return follow(path, root, options, remembered) };
        let mut grown = None;
        if let Some((entry, is_used)) = self.entry(path) {
            if entry.stamp == now.stamp
                && !is_used
                && let Some(known) = entry.outcome()
            {
                self.mark_returned(path);
                return Ok(Some(known));
            }
            let is_longer = entry.stamp.file == now.stamp.file && entry.stamp.bytes < now.stamp.bytes;
            if remembered.is_none() && (is_longer || entry.stamp == now.stamp) {
                *remembered = entry.remembered(options);
                grown = Some(entry).filter(|_| is_longer);
            }
        }
        let mut outcome = follow(path, root, options, remembered)?;
        if let (None, Some(entry)) = (&outcome, grown) {
            outcome = remembered.as_ref().and_then(|known| entry.grown(known));
            if outcome.is_none() {
                *remembered = None;
                outcome = follow(path, root, options, remembered)?;
            }
        }
        if let Some(outcome) = &outcome {
            self.enter(path, &now, outcome, remembered.as_ref());
        }
        Ok(outcome)
    }

    /// What the index says about a path, and whether it was returned before.
    fn entry(&self, path: &Path) -> Option<(ReadEntry, bool)> {
        let known = lock(&self.known);
        let place = known.get(&std::path::absolute(path).ok()?)?;
        Some((place.read(&self.file)?, place.was_returned))
    }

    fn mark_returned(&self, path: &Path) {
        let Ok(path) = std::path::absolute(path) else { return };
        if let Some(place) = lock(&self.known).get_mut(&path) {
            place.was_returned = true;
        }
    }

    /// What is known of a file that has not changed since it was looked at. It is returned once.
    pub fn known(&self, path: &Path, now: &Sight) -> Option<Outcome> {
        let (entry, is_used) = self.entry(path)?;
        if is_used || entry.stamp != now.stamp {
            return None;
        }
        self.mark_returned(path);
        entry.outcome()
    }

    /// Enters what a look found in a file that has not changed since before it, unless a change might go unnoticed, or
    /// there is no room.
    pub fn enter(&self, path: &Path, before: &Sight, outcome: &Outcome, remembered: Option<&Remembered>) {
        if !before.is_settled() {
            return;
        }
        let Some(digest) = digest_of(outcome) else { return };
        let is_same = Sight::now(path).is_some_and(|after| after.stamp == before.stamp);
        let is_whole = outcome.bytes == before.stamp.bytes || is_of_store(&before.stamp);
        if !is_same || !is_whole || !self.is_local(path, before.stamp.file.device) {
            return;
        }
        let judge = remembered.and_then(|known| known.judge_of(before.stamp));
        let judge = judge.and_then(|judge| serde_json::to_string(judge).ok()).unwrap_or_default();
        let entry = ReadEntry { stamp: before.stamp, digest: digest.into(), judge: judge.into() };
        let Ok(path) = std::path::absolute(path) else { return };
        lock(&self.known).remove(&path);
        let line = line(&path, &entry);
        let Some(line) = line.filter(|line| line.len() <= LINE_BYTES_MAX) else { return };
        let takes = |room: u64| room.checked_sub(line.len() as u64);
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, takes).is_ok() {
            // A part of it is a line of no use.
            let _ = (&self.file).write_all(line.as_bytes());
        }
    }

    /// Whether a file system shows at once what other machines write.
    fn is_local(&self, path: &Path, device: u64) -> bool {
        let file = store::split(path).map_or(path, |(file, _)| file);
        *lock(&self.local).entry(device).or_insert_with(|| network(file).is_none())
    }
}

impl EntrySpan {
    /// The entry; `None` if it cannot be read any more.
    fn read(&self, file: &File) -> Option<ReadEntry> {
        let mut line = vec![0; self.length];
        file.read_exact_at(&mut line, self.at).ok()?;
        Some(entry(&line)?.1)
    }
}

impl ReadEntry {
    fn stored(&self) -> Option<StoredDigest<'_>> {
        serde_json::from_str(&self.digest).ok()
    }

    /// The outcome of the look.
    fn outcome(&self) -> Option<Outcome> {
        let StoredDigest { digest, not_worth } = self.stored()?;
        let bytes = if is_of_store(&self.stamp) { digest.facts().bytes } else { self.stamp.bytes };
        let mut outcome = Outcome::looked(digest.examination(&stored::whys())?, bytes);
        if let Some((saved, bytes)) = not_worth {
            outcome.ending = Ending::Deferred(Deferral::NotWorth { saved, bytes });
        }
        Some(outcome)
    }

    /// What appends are judged by.
    fn remembered(&self, options: &Options) -> Option<Remembered> {
        let StoredDigest { digest, not_worth: None } = self.stored()? else { return None };
        let judge = serde_json::from_str(&self.judge).ok()?;
        Remembered::restored(judge, digest.facts(), self.stamp, options)
    }

    /// What a look would tell, now that the file is longer and this is remembered of it.
    fn grown(&self, now: &Remembered) -> Option<Outcome> {
        let digest = now.grown_digest(self.stored()?.digest)?;
        Some(Outcome::looked(digest.examination(&stored::whys())?, now.bytes()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything but the file that a look depends on, in a few digits: this very program, and what it is asked for.
fn key(options: &Options) -> io::Result<String> {
    let depends_on_time = match options.mode {
        Mode::Look => false,
        Mode::Fix => !options.settle_stale.is_zero(),
        Mode::DryRun | Mode::CopyTo(_) => true,
    };
    if depends_on_time || options.policy.each().any(|policy| policy.crowded.spares_caches()) {
        return Err(io::Error::other("what is asked for depends on the time"));
    }
    let situation = Situation { now_ms: None, ..options.situation.clone() };
    let program = (env!("CARGO_PKG_VERSION"), Stamp::from_metadata(&metadata::of_program()?));
    let all = format!(
        "{FORMAT} {program:?} {:?} {:?} {situation:?} {:?}",
        options.mode, options.policy, options.worth
    );
    Ok(check(all.as_bytes()))
}

/// Our folder, which nobody else may enter. What lies in another one is not trusted.
fn private(path: &Path) -> io::Result<Folder> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = match Folder::at(parent)? {
        Some(parent) => parent,
        None => private(parent)?,
    };
    let folder = match parent.child(name)? {
        Some(folder) => folder,
        // In the home of somebody else it would be in the way there.
        None if is_ours(parent.file(), &metadata::of_file(parent.file())?) => parent.make_child(name)?,
        None => return Err(io::ErrorKind::PermissionDenied.into()),
    };
    let is_private = is_private(folder.file(), &metadata::of_file(folder.file())?);
    if is_private { Ok(folder) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Opens a file for entries, or begins one, and then removes the oldest of the others.
fn open(folder: &Folder, name: &str) -> io::Result<File> {
    let access = OFlags::RDWR | OFlags::APPEND;
    if let Some(file) = folder.open_file(name, access)? {
        let metadata = metadata::of_file(&file)?;
        let is_usable = is_private(&file, &metadata) && metadata.nlink() == 1 && metadata.len() <= BYTES_MAX;
        if is_usable {
            return Ok(file);
        }
        folder.remove(name)?;
    }
    let age = |name: &String| {
        folder.metadata_of(name).ok().flatten().map(|found| (found.mtime(), found.mtime_nsec()))
    };
    let mut others: Vec<String> =
        folder.names()?.into_iter().filter(|name| name.starts_with(PREFIX)).collect();
    others.sort_by_key(|name| std::cmp::Reverse(age(name)));
    for name in others.iter().skip(FILES_MAX - 1) {
        folder.remove(name)?;
    }
    folder.open(name, access | OFlags::CREATE | OFlags::NONBLOCK)
}

/// Where the entries in a file stand, and how many lines it has.
fn read(file: &File) -> io::Result<(HashMap<PathBuf, EntrySpan>, usize)> {
    let mut bytes = BufReader::with_capacity(READ_BYTES, file.take(BYTES_MAX));
    let (mut known, mut lines, mut at, mut line) = (HashMap::new(), 0, 0, Vec::new());
    while bytes.read_until(b'\n', &mut line)? > 0 {
        lines += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some((path, _)) = entry(text)
            && (known.len() < ENTRIES_MAX || known.contains_key(&path))
        {
            known.insert(path, EntrySpan { at, length: text.len(), was_returned: false });
        }
        at += line.len() as u64;
        line.clear();
    }
    Ok((known, lines))
}

fn is_gone(path: &Path) -> bool {
    let path = store::split(path).map_or(path, |(file, _)| file);
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// How much of each entry stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntriesToKeep {
    All,
    /// The digest of the look, without what appends are judged by.
    Digests,
    Nothing,
}

/// Puts a file with these entries of the old one alone in its place. What others append to that one meanwhile is lost, and
/// so is what others were about to put in its place.
fn write_anew(
    folder: &Folder,
    name: &str,
    old: &File,
    known: &HashMap<PathBuf, EntrySpan>,
    keep: EntriesToKeep,
) -> io::Result<File> {
    for left in folder.names()?.iter().filter(|name| Folder::is_unfinished(name)) {
        folder.remove(left)?;
    }
    let temporary = folder.begin(&format!("{name}-{}", std::process::id()))?;
    let mut out = BufWriter::with_capacity(READ_BYTES, &*temporary.file);
    for (path, place) in known.iter().filter(|_| keep != EntriesToKeep::Nothing) {
        let Some(mut entry) = place.read(old) else { continue };
        if keep == EntriesToKeep::Digests {
            entry.judge = Box::default();
        }
        if let Some(line) = line(path, &entry) {
            out.write_all(line.as_bytes())?;
        }
    }
    out.flush()?;
    drop(out);
    temporary.place(name)?;
    open(folder, name)
}

/// What there is to enter of an outcome: only what holds as long as the file stays as it is.
fn digest_of(outcome: &Outcome) -> Option<String> {
    let not_worth = match outcome.ending {
        Ending::Clean
        | Ending::Findings
        | Ending::Unsupported(
            Unsupported::UnknownFormat | Unsupported::Document | Unsupported::OnlyRead(..),
        ) => None,
        Ending::Deferred(Deferral::NotWorth { saved, bytes }) => Some((saved, bytes)),
        _ => return None,
    };
    let digest = Digest::from_examination(
        outcome.before.as_ref().filter(|_| outcome.late.is_none())?,
        &stored::whys(),
    )?;
    serde_json::to_string(&StoredDigest { digest, not_worth }).ok()
}

/// An entry as a line: a checksum of what follows, the file's identity, its path, the digest, and what appends are judged
/// by. JSON holds no tab.
fn line(path: &Path, entry: &ReadEntry) -> Option<String> {
    let Stamp { file, bytes, modified, changed } = entry.stamp;
    let numbers = serde_json::to_string(&(file.device, file.inode, bytes, modified, changed)).ok()?;
    let path = serde_json::to_string(path.to_str()?).ok()?;
    let rest = format!("{numbers}\t{path}\t{}\t{}", entry.digest, entry.judge);
    Some(format!("{}\t{rest}\n", check(rest.as_bytes())))
}

/// The entry that a line is; `None` if it is damaged.
fn entry(line: &[u8]) -> Option<(PathBuf, ReadEntry)> {
    let (sum, rest) = std::str::from_utf8(line).ok()?.split_once('\t')?;
    if sum != check(rest.as_bytes()) {
        return None;
    }
    let mut parts = rest.split('\t');
    let (numbers, path) = (parts.next()?, parts.next()?);
    let (digest, judge) = (parts.next()?.into(), parts.next()?.into());
    let (device, inode, bytes, modified, changed) = serde_json::from_str(numbers).ok()?;
    let stamp = Stamp { file: FileId { device, inode }, bytes, modified, changed };
    Some((serde_json::from_str::<String>(path).ok()?.into(), ReadEntry { stamp, digest, judge }))
}

fn check(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..CHECK_DIGITS].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it has changed since could not be told by its stamp.
    #[test]
    fn what_other_machines_may_write_unseen_is_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, options) = (dir.path().join("tailor"), Options::default());
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, "{\"role\":\"user\",\"content\":\"go\"}\n").unwrap();
        let outcome = crate::maintain(&path, None, &options).unwrap();
        let mut before = Sight::now(&path).unwrap();
        before.at += 2 * FRESH;
        for is_local in [false, true] {
            let verdicts = Verdicts::open(&folder, &options, &[dir.path().into()]).unwrap();
            verdicts.local.lock().unwrap().insert(before.stamp.file.device, is_local);
            verdicts.enter(&path, &before, &outcome, None);
            let verdicts = Verdicts::open(&folder, &options, &[dir.path().into()]).unwrap();
            assert_eq!(verdicts.known(&path, &before).is_some(), is_local);
        }
    }

    #[test]
    fn a_long_index_loses_what_appends_are_judged_by_first() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, options) = (dir.path().join("tailor"), Options::default());
        let before = Verdicts::open(&folder, &options, &[]).unwrap();
        let file = FileId { device: 1, inode: 1 };
        let stamp = Stamp { file, bytes: 1, modified: (1, 0), changed: (1, 0) };
        for n in 0..40 {
            let judge = "x".repeat(LINE_BYTES_MAX - 1_000).into();
            let entry = ReadEntry { stamp, digest: "{}".into(), judge };
            let line = line(Path::new(&format!("/sessions/{n}.jsonl")), &entry).unwrap();
            (&before.file).write_all(line.as_bytes()).unwrap();
        }
        Verdicts::open(&folder, &options, &[]).unwrap();
        let file = folder.join(format!("{PREFIX}{}", key(&options).unwrap()));
        assert!(file.metadata().unwrap().len() < 10_000);
        let file = File::open(file).unwrap();
        let (known, lines) = read(&file).unwrap();
        assert_eq!((known.len(), lines), (40, 40));
        let was_returned = |entry: ReadEntry| &*entry.digest == "{}" && entry.judge.is_empty();
        assert!(known.values().all(|place| place.read(&file).is_some_and(was_returned)));
    }
}
