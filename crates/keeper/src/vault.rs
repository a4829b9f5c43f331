//! The vault: the originals of each run over a transcript, in one file a run, by which it can be undone.
//!
//! Below the root, folders have mode 0700 and files 0600:
//!
//! ```text
//! lock                             shared by runs, exclusive for gc
//! runs/<hash>/<run>.kept           a run over the transcript whose path has this hash
//! runs/<hash>/<run>.undo           the same after the transcript was replaced
//! runs/<hash>/<run>.undone         the same after that was undone
//! runs/<hash>/.tmp-<run>           a run that is not kept yet
//! ```
//!
//! What a transcript means and how it is replaced is decided elsewhere.

mod file;
mod folder;
mod gc;
mod history;
mod record;
mod texts;

pub use file::Text;
pub use gc::{Freed, Keep};
pub use record::{Purpose, Record, State};
pub(crate) use texts::Packed;

pub(crate) use file::Ledger;
pub(crate) use history::History;
pub(crate) use record::{Account, Change, Digest, FileId, Old, Swap, check};

use crate::error::Error;
use crate::step::{Step, before};
use blake3::Hash;
use file::Writer;
use folder::{Folder, Unfinished};
use jiff::tz::TimeZone;
use record::{Index, Stored};
use spans::marker;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use transcript::plan::Plan;
use transcript::{Fault, Source};

const LOCK: &str = "lock";
const RUNS: &str = "runs";

/// What to do when the vault cannot be used.
const ELSEWHERE: &str = "the file is as it was; --vault DIR keeps originals elsewhere";

/// Format of the time in the name of a run.
const TIME: &str = "%Y%m%dT%H%M%S%.3f";

/// How many names are tried for a run.
const TRIES_MAX: u32 = 100;

/// The folder of originals.
#[derive(Clone, Debug)]
pub struct Vault {
    root: PathBuf,
}

/// A run that has a name but has not kept anything yet. What it wrote goes if it never does.
pub(crate) struct Pending {
    root: PathBuf,
    folder: Folder,
    unfinished: Unfinished,
    index: Index,
    /// Keeps gc away.
    _lock: File,
}

/// A run whose originals are kept.
#[derive(Debug)]
pub struct Run {
    name: String,
    folder: Folder,
    file: Arc<File>,
    /// How many ledgers were written.
    notes: AtomicU64,
}

/// A change of [`Purpose::Merge`]: `length` bytes were put in at offset `at` of the new text, in the place of others.
pub(crate) struct Merged<'a> {
    pub(crate) at: u64,
    pub(crate) length: u64,
    /// How many bytes were removed there, and where to read them.
    pub(crate) removed: Option<(u64, &'a mut dyn Read)>,
}

/// A frame, and the file that it is in.
type StoredIn = (Arc<File>, Stored);

/// Why originals could not be kept.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The vault could not be written.
    Disk(io::Error),
    /// The original could not be read.
    Source(Fault),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Source(fault)
    }
}

impl Vault {
    /// The vault at a folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The default place; `None` if no home folder is known.
    pub fn default_root() -> Option<PathBuf> {
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Some(state.or_else(|| home.map(|home| home.join(".local/state")))?.join("tailor"))
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Begins a run over a file: reserves its name and makes its folder durable. That is quick as long as nothing else is
    /// being written, because the disk finishes that first. `path` has no symbolic links in it.
    pub(crate) fn begin(&self, path: &Path) -> Result<Pending, Error> {
        self.reserve(path).map_err(|cause| cannot_keep(&self.root, cause))
    }

    fn reserve(&self, path: &Path) -> io::Result<Pending> {
        let root = Folder::make(&self.root)?;
        let lock = root.shared(LOCK)?;
        lock.lock_shared()?;
        let folder = root.make_child(RUNS)?.make_child(folder_of(path))?;
        let last = folder.names()?.iter().filter_map(|name| time_of(run_of(name)?.0)).max();
        for attempt in 0..TRIES_MAX {
            let now = i64::try_from(now()).unwrap_or(i64::MAX);
            let time = now.max(last.map_or(0, |last| last + 1 + i64::from(attempt)));
            let (run, time) = run_name(time, path)?;
            let unfinished = match folder.begin(&run) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                other => other?,
            };
            // Whoever has the unfinished file has the name, unless another run has just finished with it.
            if State::ALL.iter().any(|state| folder.has(&name_of(&run, *state)).unwrap_or(true)) {
                continue;
            }
            let index = Index::new(path, &run, time);
            return Ok(Pending { root: self.root.clone(), folder, unfinished, index, _lock: lock });
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Keeps what a plan will remove from a stream, so that its markers lead somewhere.
    ///
    /// A fault is one of the source, and an error one of the vault.
    ///
    /// # Errors
    ///
    /// See above.
    pub fn keep_stream(
        &self,
        source: &dyn Source,
        plan: &Plan,
        spill: Option<&marker::Folder>,
    ) -> Result<Result<Run, Error>, Fault> {
        let pending = match self.begin(Path::new("-")) {
            Ok(pending) => pending,
            Err(error) => return Ok(Err(error)),
        };
        let kept = pending.keep(source, plan, &Packed::default(), spill, None, None)?;
        Ok(kept.inspect(|run| self.landed(run)))
    }

    /// Records that the transcript was replaced. If that fails, the transcript itself tells later.
    #[expect(clippy::unused_self, reason = "a run belongs to a vault")]
    pub(crate) fn landed(&self, run: &Run) {
        let _ = run.folder.rename(&name_of(&run.name, State::Kept), &name_of(&run.name, State::Landed));
    }

    /// Removes a run after which the transcript was not replaced.
    #[expect(clippy::unused_self, reason = "a run belongs to a vault")]
    pub(crate) fn forget(&self, run: &Run) {
        // If that fails, the run is known as one that never landed: the transcript does not hold what it wrote.
        let remove = || run.folder.remove(&name_of(&run.name, State::Kept));
        let _ = before(Step::Clean).and_then(|()| remove());
    }

    /// Records that a run was undone. If that fails, the run that undid it tells later.
    pub(crate) fn undone(&self, record: &Record) {
        let rename = |folder: Folder| {
            folder.rename(&name_of(record.run(), record.state), &name_of(record.run(), State::Undone))
        };
        let _ = self.runs_over(&record.path()).map(|folder| folder.map(rename));
    }

    /// All runs, over whatever file.
    fn all_runs(&self) -> io::Result<Option<Folder>> {
        Folder::open(&self.root)?.map_or(Ok(None), |root| root.child(RUNS))
    }

    /// The runs over a file.
    fn runs_over(&self, path: &Path) -> io::Result<Option<Folder>> {
        self.all_runs()?.map_or(Ok(None), |runs| runs.child(folder_of(path)))
    }

    /// The runs over a file, oldest first. A run that cannot be read is an error among the others. `path` has no symbolic
    /// links in it.
    ///
    /// # Errors
    ///
    /// When the vault cannot be read.
    pub fn runs(&self, path: &Path) -> Result<Vec<Result<Record, Error>>, Error> {
        let fail = |cause| Error::new(&self.root, "read the records", cause);
        let Some(folder) = self.runs_over(path).map_err(fail)? else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        for name in folder.names().map_err(fail)? {
            let Some((run, _)) = run_of(&name) else { continue };
            match read_run(&folder, run) {
                Ok(Some(record)) if record.path() == path => records.push(Ok(record)),
                // It is gone by now, or it is over a file whose path has the same hash.
                Ok(_) => {}
                Err(cause) => records.push(Err(broken_record(&folder, &name, cause))),
            }
        }
        Ok(records)
    }

    /// The run of this name, over whatever file.
    ///
    /// # Errors
    ///
    /// When the vault cannot be read, or the run.
    pub fn run(&self, run: &str) -> Result<Option<Record>, Error> {
        let find = || {
            let Some(runs) = self.all_runs()?.filter(|_| is_run(run)) else { return Ok(None) };
            for name in runs.names()? {
                let found = runs.child(&name)?.map_or(Ok(None), |folder| read_run(&folder, run))?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        };
        find().map_err(|cause| Error::new(&self.root, "look for the run", cause))
    }

    /// Opens the file of a run, in whatever state, so that [`Run::note`] can go on after a restart.
    pub(crate) fn run_for_notes(&self, record: &Record) -> io::Result<Run> {
        let folder = self.runs_over(&record.path())?.ok_or(ErrorKind::NotFound)?;
        let (file, _) = open_run(&folder, record.run(), Folder::update)?.ok_or(ErrorKind::NotFound)?;
        let notes = file::ledger(&file, record.run())?.map_or(0, |(sequence, _)| sequence);
        Ok(Run { name: record.run().to_string(), folder, file: file.into(), notes: notes.into() })
    }

    /// Opens what a run removed.
    pub(crate) fn originals(&self, record: &Record) -> io::Result<Originals> {
        let folder = self.runs_over(&record.path())?.ok_or(ErrorKind::NotFound)?;
        let (file, _) = open_run(&folder, record.run(), Folder::read)?.ok_or(ErrorKind::NotFound)?;
        let texts = record.index.texts.iter().map(|stored| (stored.hash.0, *stored)).collect();
        Ok(Originals { file: file.into(), texts, inline: record.index.inline })
    }

    /// Opens the text whose hash begins with these hex digits, 8 to 64 of them.
    ///
    /// # Errors
    ///
    /// When there is no such text or several, or it cannot be read.
    pub fn text(&self, digits: &str) -> Result<Text, Error> {
        let fail = |cause| Error::new(&self.root, "open the text", cause);
        let other = |text: String| Err(fail(io::Error::other(text)));
        let hex = (8..=64).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if !hex {
            return other(format!("`{digits}` is not an id: 8 to 64 hex digits, as a marker names them"));
        }
        let digits = digits.to_ascii_lowercase();
        let (found, excuse) = self.copies(&digits).map_err(fail)?;
        match &found.iter().collect::<Vec<_>>()[..] {
            [] => other(format!(
                "no text begins with {digits}: it was never here, or gc removed it (--vault DIR looks elsewhere){excuse}"
            )),
            [(_, (file, stored))] => Text::open(file, stored).map_err(fail),
            several => {
                let ids: Vec<&str> = several.iter().map(|(hash, _)| &***hash).collect();
                let (count, ids) = (ids.len(), ids.join(", "));
                other(format!("{digits} is the beginning of {count} texts; give more digits: {ids}"))
            }
        }
    }

    /// The texts whose hashes begin with these digits, and why one may be missing. Of several copies the newest whole one.
    fn copies(&self, digits: &str) -> io::Result<(BTreeMap<String, StoredIn>, String)> {
        let (mut all, mut found, mut excuse) = (Vec::new(), BTreeMap::new(), String::new());
        let Some(runs) = self.all_runs()? else { return Ok((found, excuse)) };
        for folder in runs.names()? {
            let names = runs.child(&folder)?.map_or(Ok(Vec::new()), |folder| folder.names())?;
            all.extend(names.iter().filter_map(|name| Some((run_of(name)?.0.to_string(), folder.clone()))));
        }
        all.sort();
        let is_whole = |(file, stored): &StoredIn| {
            Text::open(file, stored).and_then(|mut text| io::copy(&mut text, &mut io::sink())).is_ok()
        };
        for (run, folder) in all.into_iter().rev() {
            let mut read = || -> io::Result<()> {
                let Some(folder) = runs.child(&folder)? else { return Ok(()) };
                let Some((file, _)) = open_run(&folder, &run, Folder::read)? else { return Ok(()) };
                let file = Arc::new(file);
                for stored in file::read_index(&file, &run)?.texts {
                    let hash = String::from(stored.hash);
                    if hash.starts_with(digits) && !found.get(&hash).is_some_and(is_whole) {
                        found.insert(hash, (file.clone(), stored));
                    }
                }
                Ok(())
            };
            if let Err(cause) = read() {
                let path = runs.path_of(&folder).join(run);
                excuse = format!("; it may be in {}, which cannot be read: {cause}", path.display());
            }
        }
        Ok((found, excuse))
    }
}

impl Pending {
    /// The name of the run, which sorts by time.
    pub(crate) fn run(&self) -> &str {
        &self.index.run
    }

    /// Keeps what a plan will remove, and makes it durable. With `spill` the texts that are cut become plain files too.
    /// What is `packed` need not be compressed again.
    ///
    /// A fault is one of the source, and an error one of the vault.
    pub(crate) fn keep(
        mut self,
        source: &dyn Source,
        plan: &Plan,
        packed: &Packed,
        spill: Option<&marker::Folder>,
        purpose: Option<Purpose>,
        swap: Option<Swap>,
    ) -> Result<Result<Run, Error>, Fault> {
        let root = self.root.clone();
        let kept = || {
            let mut out = Writer::begin(&self.unfinished.file)?;
            let hashes = texts::write(&mut out, source, plan.texts(), packed)?;
            if let Some(folder) = spill {
                texts::spill(folder, source, plan.texts(), &hashes)?;
            }
            let (edits, inline) = record::changes(source, plan, &hashes)?;
            let index = &mut self.index;
            (index.bytes_before, index.bytes_after) = (source.len(), plan.length_after());
            index.ends_line = record::ends_line(source)?;
            (index.purpose, index.swap, index.edits) = (purpose, swap, edits);
            before(Step::WriteRecord)?;
            if !inline.is_empty() {
                self.index.inline = Some(out.stream(None, |out| {
                    let mut copy = |span| texts::copy(source, span, &mut |bytes| out.write_all(bytes));
                    inline.into_iter().try_for_each(&mut copy)
                })?);
            }
            Ok(self.finish(out)?)
        };
        told(&root, kept())
    }

    /// Keeps the places that undoing a run will change in a transcript of `length` bytes.
    pub(crate) fn keep_undo(
        mut self,
        target: &Record,
        length: u64,
        changes: Vec<Change>,
        swap: Option<Swap>,
    ) -> Result<Run, Error> {
        let root = self.root.clone();
        let index = &mut self.index;
        index.bytes_before = length;
        index.bytes_after =
            changes.iter().fold(length, |sum, change| sum + change.length - change.length_before());
        (index.undoes, index.edits, index.swap) = (Some(target.run().to_string()), changes, swap);
        let kept = || {
            before(Step::WriteRecord)?;
            let out = Writer::begin(&self.unfinished.file)?;
            self.finish(out)
        };
        kept().map_err(|cause| cannot_keep(&root, cause))
    }

    /// Keeps what merging late lines removes from a transcript of `bytes_before` bytes; `new` is the text after it.
    ///
    /// A fault is one of `new`, and an error one of the vault or of what was removed.
    pub(crate) fn keep_merge(
        mut self,
        new: &dyn Source,
        bytes_before: u64,
        edits: Vec<Merged<'_>>,
        swap: Option<Swap>,
        accounts: Vec<Account>,
    ) -> Result<Result<Run, Error>, Fault> {
        let root = self.root.clone();
        let kept = || {
            let mut removed = Vec::new();
            let (mut done, mut ends_with_old) = (0, false);
            for edit in edits {
                let start = done;
                done += edit.removed.as_ref().map_or(0, |(bytes, _)| *bytes);
                ends_with_old = start < done;
                let old = if start < done { vec![Old::Inline { inline: (start, done) }] } else { Vec::new() };
                self.index.edits.push(Change::checked(new, edit.at, edit.length, old)?);
                removed.extend(edit.removed);
            }
            let index = &mut self.index;
            (index.bytes_before, index.bytes_after) = (bytes_before, new.len());
            (index.purpose, index.swap, index.accounts) = (Some(Purpose::Merge), swap, accounts);
            before(Step::WriteRecord)?;
            let mut out = Writer::begin(&self.unfinished.file)?;
            if done > 0 {
                let mut last = b'\n';
                self.index.inline = Some(out.stream(Some(done), |out| {
                    removed.into_iter().try_for_each(|(bytes, from)| copy(from, bytes, out, &mut last))
                })?);
                self.index.ends_line = last == b'\n' || !ends_with_old;
            }
            Ok(self.finish(out)?)
        };
        told(&root, kept())
    }

    /// Writes the index, makes the file durable and gives it its name.
    fn finish(mut self, mut out: Writer) -> io::Result<Run> {
        self.index.texts = out.take_texts();
        out.finish(&self.index)?;
        before(Step::SyncRecord)?;
        let file = self.unfinished.file.clone();
        file.sync_all()?;
        self.unfinished.place(&name_of(&self.index.run, State::Kept))?;
        before(Step::SyncRecord)?;
        self.folder.sync()?;
        Ok(Run { name: self.index.run, folder: self.folder, file, notes: AtomicU64::new(0) })
    }
}

/// Copies so many bytes and remembers the last one.
fn copy(from: &mut dyn Read, bytes: u64, out: &mut dyn Write, last: &mut u8) -> io::Result<()> {
    let mut buffer = [0; 8192];
    let mut rest = bytes;
    while rest > 0 {
        let wanted = rest.min(buffer.len() as u64) as usize;
        from.read_exact(&mut buffer[..wanted])?;
        out.write_all(&buffer[..wanted])?;
        *last = buffer[wanted - 1];
        rest -= wanted as u64;
    }
    Ok(())
}

impl Run {
    /// Its name, which sorts by time.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Records how far the old file is accounted for. This survives the end of the process, but not a power cut before
    /// [`Self::sync`].
    pub(crate) fn note(&self, ledger: &Ledger) -> io::Result<()> {
        let written = self.notes.fetch_add(1, Ordering::Relaxed);
        file::note(&self.file, &self.name, written + 1, ledger)
    }

    /// Makes what was noted durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// What a run removed, to be read.
pub(crate) struct Originals {
    file: Arc<File>,
    texts: HashMap<Hash, Stored>,
    inline: Option<Stored>,
}

impl Originals {
    /// Opens a text.
    pub(crate) fn text(&self, digest: &Digest) -> io::Result<Text> {
        Text::open(&self.file, self.texts.get(&digest.0).ok_or(ErrorKind::NotFound)?)
    }

    /// Opens the bytes that are part of no text; `None` if there are none.
    pub(crate) fn inline(&self) -> io::Result<Option<Text>> {
        self.inline.as_ref().map(|stored| Text::open(&self.file, stored)).transpose()
    }
}

fn told(root: &Path, kept: Result<Run, Failure>) -> Result<Result<Run, Error>, Fault> {
    match kept {
        Ok(run) => Ok(Ok(run)),
        Err(Failure::Disk(cause)) => Ok(Err(cannot_keep(root, cause))),
        Err(Failure::Source(fault)) => Err(fault),
    }
}

fn cannot_keep(root: &Path, cause: io::Error) -> Error {
    Error::new(root, "keep the originals", cause).with_way_out(ELSEWHERE)
}

fn broken_record(folder: &Folder, name: &str, cause: io::Error) -> Error {
    Error::new(&folder.path_of(name), "read the record", cause)
        .with_way_out("this run cannot be undone; without the record those before it can")
}

/// Opens the file of a run, whatever state it is in.
fn open_run(
    folder: &Folder,
    run: &str,
    open: impl Fn(&Folder, &str) -> io::Result<Option<File>>,
) -> io::Result<Option<(File, State)>> {
    // In the order in which a run goes through them, so that one that is renamed meanwhile is found.
    for state in State::ALL {
        if let Some(file) = open(folder, &name_of(run, state))? {
            return Ok(Some((file, state)));
        }
    }
    Ok(None)
}

/// Reads the record of a run; `None` if there is no such run in the folder.
fn read_run(folder: &Folder, run: &str) -> io::Result<Option<Record>> {
    let Some((file, state)) = open_run(folder, run, Folder::read)? else { return Ok(None) };
    let file = Arc::new(file);
    let index = file::read_index(&file, run)?;
    let ledger = file::ledger(&file, run)?.map(|(_, ledger)| ledger);
    Ok(Some(Record { index, state, ledger }))
}

/// The file of a run in a state.
fn name_of(run: &str, state: State) -> String {
    format!("{run}{}", state.ending())
}

/// The folder of the runs over a file.
fn folder_of(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_bytes()).to_hex()[..16].to_string()
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A name that nobody else uses.
fn fresh(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{what}-{}-{count}-{}", std::process::id(), since.as_nanos())
}

fn run_name(millis: i64, path: &Path) -> io::Result<(String, jiff::Timestamp)> {
    let time =
        jiff::Timestamp::from_millisecond(millis).map_err(|error| io::Error::other(error.to_string()))?;
    let seed = fresh(&path.to_string_lossy());
    let random = &blake3::hash(seed.as_bytes()).to_hex()[..8];
    Ok((format!("{}Z-{random}", time.to_zoned(TimeZone::UTC).strftime(TIME)), time))
}

/// The time in the name of a run, in milliseconds since 1970.
fn time_of(run: &str) -> Option<i64> {
    let (time, _) = run.split_once("Z-")?;
    let time = jiff::civil::DateTime::strptime(TIME, time).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// Whether this may be the name of a run.
fn is_run(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
        && !name.starts_with('.')
}

/// The run whose file has this name, and its state.
fn run_of(name: &str) -> Option<(&str, State)> {
    if Folder::is_unfinished(name) {
        return None;
    }
    State::ALL.iter().find_map(|state| {
        let run = name.strip_suffix(state.ending())?;
        is_run(run).then_some((run, *state))
    })
}

#[cfg(test)]
mod tests;
