//! The vault: what each run removed from a transcript, in one file per run, so that the run can be undone.
//!
//! Below the root, folders have mode 0700 and files 0600:
//!
//! ```text
//! lock                             locked shared by runs, exclusively by `gc` and `forget`
//! runs/<hash>/.tmp-<run>           a run whose file is still being written; <hash> is that of the transcript's path
//! runs/<hash>/<run>.kept           the originals are stored; the transcript may not be replaced yet
//! runs/<hash>/<run>.undo           the transcript was replaced
//! runs/<hash>/<run>.undone         that was undone
//! runs/<hash>/<run>.whole          the old file itself, where names are exchanged in steps
//! ```
//!
//! The file of a run is laid out in `file`, what it says about the changes of a run in `record`, and how far a replacement got
//! in `ledger`. Undoing a run is `restore`'s work.

mod file;
mod forget;
mod gc;
mod hex;
mod ledger;
mod record;
mod texts;
mod whole;
mod whole_name;

pub use file::OriginalText;
pub use forget::Forgotten;
pub use gc::{Freed, RunsToKeep};
pub use record::{Purpose, Record, RunState};
pub(crate) use texts::PackedTexts;

pub(crate) use ledger::Ledger;
pub(crate) use record::{Account, CONTEXT_BYTES, RecordedChange, RemovedBytes, Swap, check, line_check};

use crate::ask::error::Error;
use crate::ask::stop::Halt;
use crate::base::step::{Step, before};
use crate::disk::appends::ends_line_at;
use crate::disk::folder::{Folder, Unfinished};
use crate::platform::own::Own;
use crate::platform::writing::sync_data;
use crate::platform::{OFlags, System, This};
use blake3::Hash;
use file::{KeepFailure, RunWriter, Section, broken};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use record::{RecordedRows, StoredFrame};
use spans::{marker, source};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transcript::plan::Plan;
use transcript::{Source, Span};

const LOCK: &str = "lock";
const RUNS: &str = "runs";

/// What to do when the vault cannot be used.
const ELSEWHERE: &str = "the file is unchanged; pass --vault DIR to keep originals elsewhere";

/// Format of the time in the name of a run.
const TIME: &str = "%Y%m%dT%H%M%S%.3f";

/// How many names to try for a run.
const TRIES_MAX: u32 = 100;

/// The folder of originals.
#[derive(Clone, Debug)]
pub struct Vault {
    root: PathBuf,
}

/// A run that has a name but has not stored anything yet. Dropping it removes what was written so far.
pub(crate) struct Pending {
    root: PathBuf,
    unfinished: Unfinished,
    record: Record,
    rows: RowsKept,
    /// Keeps `gc` and `forget` from running meanwhile.
    _lock: File,
}

/// A run whose originals are stored.
#[derive(Debug)]
pub struct Run {
    name: String,
    folder: Folder,
    file: Arc<File>,
    /// How many times the ledger was written.
    notes: AtomicU64,
    /// Whether it took out secrets, which nothing may keep.
    takes_secrets: bool,
}

/// Rows of a store as they are before a run, in the order in which they go back.
#[derive(Debug, Default)]
pub(crate) struct RowsKept {
    pub(crate) file: Option<File>,
    /// Whether rows came, went or were linked anew.
    pub(crate) is_alone: bool,
}

/// A run that has changed rows, and how many bytes fewer they have.
#[derive(Debug)]
pub(crate) struct RowsWritten {
    pub(crate) run: Run,
    pub(crate) saved_bytes: u64,
}

/// What was kept of them.
#[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "only stores put them back"))]
pub(crate) struct RowsMade {
    pub(crate) lines: Box<dyn Iterator<Item = io::Result<String>>>,
    /// Whether rows came, went or were linked anew, so that all go back together.
    pub(crate) is_alone: bool,
    /// Whether each goes back by itself nevertheless: nothing else refers to it.
    pub(crate) is_pruned: bool,
}

/// A change of [`Purpose::Merge`]: at offset `at` of the new text, `length` bytes take the place of others.
pub(crate) struct MergeEdit<'a> {
    pub(crate) at: u64,
    pub(crate) length: u64,
    /// What was removed there.
    pub(crate) removed: Vec<(&'a File, Span)>,
}

/// A stored text, and the file that it is in.
type StoredIn = (Arc<File>, StoredFrame);

impl Vault {
    /// The vault at a folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The default place; `None` if no home folder is known.
    pub fn default_root() -> Option<PathBuf> {
        Own::State.folder()
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Begins a run over a file: reserves a name and makes its folder durable. This comes before other writes, because a disk
    /// that is busy with those would make the sync wait for them. `path` has no symbolic links in it.
    pub(crate) fn begin(&self, path: &Path) -> Result<Pending, Error> {
        self.reserve(path).map_err(|cause| cannot_keep(&self.root, cause))
    }

    fn reserve(&self, path: &Path) -> io::Result<Pending> {
        let root = Folder::make(&self.root)?;
        let lock = root.open(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        lock.lock_shared()?;
        let folder = root.make_child(RUNS)?.make_child(folder_of(path))?;
        let last = folder.names()?.iter().filter_map(|name| time_of(run_of(name)?.0)).max();
        for attempt in 0..TRIES_MAX {
            let time = Timestamp::now().as_millisecond();
            let time = time.max(last.map_or(0, |last| last.as_millisecond() + 1 + i64::from(attempt)));
            let (run, time) = run_name(time, path)?;
            let unfinished = match folder.begin(&run) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                other => other?,
            };
            // Creating the unfinished file reserves the name, unless another run has just finished under it.
            if RunState::ALL
                .iter()
                .any(|state| !matches!(folder.metadata_of(name_of(&run, *state)), Ok(None)))
            {
                continue;
            }
            let (path, time) = (path.to_path_buf(), time.to_string());
            let record = Record { path, run, time, ends_line: true, ..Record::default() };
            let rows = RowsKept::default();
            return Ok(Pending { root: self.root.clone(), unfinished, record, rows, _lock: lock });
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Keeps what a plan will remove from a stream, so that its markers lead somewhere.
    ///
    /// A fault is one of the source, and a stop one of the vault.
    pub(crate) fn keep_stream(
        &self,
        source: &dyn Source,
        plan: &Plan,
        spill: Option<&marker::TextFolder>,
    ) -> Result<Run, Halt> {
        let pending = self.begin(Path::new("-"))?;
        pending.keep(source, plan, &PackedTexts::default(), spill, None, None).inspect(Run::landed)
    }

    /// Records that a run was undone. If that fails, the record of the run that undid it says so too.
    pub(crate) fn undone(&self, record: &Record) {
        if let Ok(Some(folder)) = self.runs_over(&record.path) {
            let _ = folder.rename(name_of(&record.run, record.state), name_of(&record.run, RunState::Undone));
        }
    }

    /// All runs, over whatever file.
    fn all_runs(&self) -> io::Result<Option<Folder>> {
        Folder::at(&self.root)?.map_or(Ok(None), |root| root.child(RUNS))
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
                Ok(Some(record)) if record.path == path => records.push(Ok(record)),
                // It has been removed since, or its path is another one with the same hash.
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

    /// The newest runs over whatever files, newest first. A run that cannot be read is an error among the others.
    ///
    /// # Errors
    ///
    /// When the vault cannot be read.
    pub fn newest(&self, count: usize) -> Result<Vec<Result<Record, Error>>, Error> {
        let fail = |cause| Error::new(&self.root, "read the records", cause);
        let Some(runs) = self.all_runs().map_err(fail)? else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        for (run, folder) in all_names(&runs).map_err(fail)?.into_iter().rev() {
            let read = runs.child(&folder).and_then(|folder| folder.map_or(Ok(None), |f| read_run(&f, &run)));
            match read {
                Ok(Some(record)) if record.undoes.is_none() => records.push(Ok(record)),
                Ok(_) => {}
                Err(cause) => records.push(Err(Error::new(&runs.path_of(&folder), "read a record", cause))),
            }
            if records.len() == count {
                break;
            }
        }
        Ok(records)
    }

    /// The files that there are runs over, in no order. What cannot be read is left out.
    ///
    /// # Errors
    ///
    /// When the vault cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let fail = |cause| Error::new(&self.root, "read the records", cause);
        let Some(runs) = self.all_runs().map_err(fail)? else { return Ok(Vec::new()) };
        let mut files = BTreeMap::new();
        for (run, folder) in all_names(&runs).map_err(fail)?.into_iter().rev() {
            if files.contains_key(&folder) {
                continue;
            }
            if let Ok(Some(inside)) = runs.child(&folder)
                && let Ok(Some(record)) = read_run(&inside, &run)
            {
                files.insert(folder, record.path);
            }
        }
        Ok(files.into_values().collect())
    }

    /// Opens the file of a run, in whatever state, so that [`Run::note`] can go on after a restart.
    pub(crate) fn run_for_notes(&self, record: &Record) -> io::Result<Run> {
        let (folder, file) = self.open(record, OFlags::RDWR)?;
        let notes = ledger::newest(&file, &record.run)?.map_or(0, |(sequence, _)| sequence);
        let takes_secrets = record.purpose == Some(Purpose::Secrets);
        let (name, notes) = (record.run.clone(), notes.into());
        Ok(Run { name, folder, file: file.into(), notes, takes_secrets })
    }

    /// Opens what a run removed.
    pub(crate) fn originals(&self, record: &Record) -> io::Result<Originals> {
        let (_, file) = self.open(record, OFlags::RDONLY)?;
        let texts = record.texts.iter().map(|stored| (stored.hash, *stored)).collect();
        let file = Arc::new(file);
        let inline = record.inline.map(|stored| OriginalText::open(&file, &stored)).transpose()?;
        Ok(Originals { file, texts, inline })
    }

    /// Opens what a run kept of rows; `None` if it kept none, or `tailor forget` removed them with a text.
    pub(crate) fn rows(&self, record: &Record) -> io::Result<Option<RowsMade>> {
        let Some(rows) = record.rows else { return Ok(None) };
        let (_, file) = self.open(record, OFlags::RDONLY)?;
        // The texts are kept apart as well, and will do for rows that changed by themselves.
        if file::is_wiped(&file, &rows.frame)? && !rows.is_alone {
            return Ok(None);
        }
        let text = OriginalText::open(&Arc::new(file), &rows.frame)?;
        let lines = Box::new(BufReader::new(text).lines());
        let is_pruned = record.purpose == Some(Purpose::Prune);
        Ok(Some(RowsMade { lines, is_alone: rows.is_alone, is_pruned }))
    }

    /// The texts of a run that were forgotten.
    pub(crate) fn forgotten(&self, record: &Record) -> io::Result<HashSet<Hash>> {
        let (_, file) = self.open(record, OFlags::RDONLY)?;
        let wiped = |stored: &&StoredFrame| file::is_wiped(&file, stored).unwrap_or(false);
        Ok(record.texts.iter().filter(wiped).map(|stored| stored.hash).collect())
    }

    /// Opens the file of a run, and its folder.
    fn open(&self, record: &Record, access: OFlags) -> io::Result<(Folder, File)> {
        let folder = self.runs_over(&record.path)?.ok_or(ErrorKind::NotFound)?;
        let (file, _) = open_run(&folder, &record.run, access)?.ok_or(ErrorKind::NotFound)?;
        Ok((folder, file))
    }

    /// Opens the text whose hash begins with these hex digits, 8 to 64 of them.
    ///
    /// # Errors
    ///
    /// When there is no such text or several, or it cannot be read.
    pub fn text(&self, digits: &str) -> Result<OriginalText, Error> {
        let fail = |cause| Error::new(&self.root, "open the text", cause);
        let (_, (file, stored)) = self.find(digits)?;
        OriginalText::open(&file, &stored).map_err(fail)
    }

    /// The hash of the only text whose hash begins with these digits.
    fn only(&self, digits: &str) -> Result<String, Error> {
        self.find(digits).map(|(hash, _)| hash)
    }

    /// The only text whose hash begins with these digits.
    fn find(&self, digits: &str) -> Result<(String, StoredIn), Error> {
        let fail = |cause| Error::new(&self.root, "open the text", cause);
        let other = |text: String| Err(fail(io::Error::other(text)));
        let hex = (8..=64).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if !hex {
            return other(format!("`{digits}` is not an id: 8 to 64 hex digits, as a marker names them"));
        }
        let digits = digits.to_ascii_lowercase();
        let (mut found, excuse) = self.copies(&digits).map_err(fail)?;
        match &found.keys().collect::<Vec<_>>()[..] {
            [] => other(format!(
                "no text with id {digits}: it was never kept here, or gc removed it (pass --vault DIR to look elsewhere){excuse}"
            )),
            [_] => found.pop_first().map_or_else(|| other(format!("no text with id {digits}")), Ok),
            several => {
                let ids: Vec<&str> = several.iter().map(|hash| hash.as_str()).collect();
                let (count, ids) = (ids.len(), ids.join(", "));
                other(format!("{digits} matches {count} texts; give more digits: {ids}"))
            }
        }
    }

    /// The texts whose hashes begin with these digits, and why one may be missing. Of several copies, the newest undamaged
    /// one.
    fn copies(&self, digits: &str) -> io::Result<(BTreeMap<String, StoredIn>, String)> {
        let (mut found, mut excuse) = (BTreeMap::new(), String::new());
        let Some(runs) = self.all_runs()? else { return Ok((found, excuse)) };
        let is_whole = |(file, stored): &StoredIn| {
            OriginalText::open(file, stored).and_then(OriginalText::check).is_ok()
        };
        for (run, folder) in all_names(&runs)?.into_iter().rev() {
            let mut read = || -> io::Result<()> {
                let Some(folder) = runs.child(&folder)? else { return Ok(()) };
                let Some((file, _)) = open_run(&folder, &run, OFlags::RDONLY)? else { return Ok(()) };
                let file = Arc::new(file);
                for stored in file::read_index(&file, &run)?.texts {
                    let hash = stored.hash.to_string();
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

/// The names of all runs, oldest first, each with that of its folder.
fn all_names(runs: &Folder) -> io::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for folder in runs.names()? {
        let names = runs.child(&folder)?.map_or(Ok(Vec::new()), |folder| folder.names())?;
        all.extend(names.iter().filter_map(|name| Some((run_of(name)?.0.to_string(), folder.clone()))));
    }
    all.sort();
    Ok(all)
}

impl Pending {
    /// The name of the run, which sorts by time.
    pub(crate) fn run(&self) -> &str {
        &self.record.run
    }

    /// Keeps rows as well.
    pub(crate) fn with_rows(self, rows: RowsKept) -> Self {
        Self { rows, ..self }
    }

    /// Keeps what a plan will remove, and makes it durable. With `spill` the texts that are cut become plain files too.
    /// What is `packed` need not be compressed again.
    ///
    /// A fault is one of the source, and a stop one of the vault.
    pub(crate) fn keep(
        self,
        source: &dyn Source,
        plan: &Plan,
        packed: &PackedTexts,
        spill: Option<&marker::TextFolder>,
        purpose: Option<Purpose>,
        swap: Option<Swap>,
    ) -> Result<Run, Halt> {
        self.fill(|record, out| {
            let hashes = texts::write(out, source, plan.texts(), packed)?;
            if let Some(folder) = spill {
                texts::spill(folder, source, plan.texts(), &hashes)?;
            }
            let (mut edits, mut inline) = record::changes(source, plan, &hashes)?;
            let mut purpose = purpose;
            if plan.removes_secrets() {
                edits.iter_mut().for_each(RecordedChange::keep_nothing);
                (inline, purpose) = (Vec::new(), Some(Purpose::Secrets));
            }
            (record.bytes_before, record.bytes_after) = (source.len(), plan.length_after());
            record.ends_line = source::ends_line_at(source, source.len())?;
            (record.purpose, record.swap, record.edits) = (purpose, swap, edits);
            before(Step::WriteRecord)?;
            if !inline.is_empty() {
                record.inline = Some(out.stream(None, |out| {
                    let mut copy = |span| texts::copy(source, span, &mut |bytes| out.write_all(bytes));
                    inline.into_iter().try_for_each(&mut copy)
                })?);
            }
            Ok(())
        })
    }

    /// Keeps rows of a store that go without the session changing, one edit a line, and makes them durable.
    #[cfg(feature = "stores")]
    pub(crate) fn keep_rows(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Run, crate::ask::stop::Stop> {
        let root = self.root.clone();
        let kept = self.fill(|record, out| {
            record.purpose = Some(Purpose::Prune);
            before(Step::WriteRecord)?;
            let frame = out.stream(None, |mut out| Ok(write(&mut out)?))?;
            record.rows = Some(RecordedRows { frame, is_alone: true });
            Ok(())
        });
        kept.map_err(|halt| halt.stop(|_| cannot_keep(&root, ErrorKind::UnexpectedEof.into())))
    }

    /// Stores which places undoing a run will change in a transcript of `length` bytes.
    ///
    /// There are no faults.
    pub(crate) fn keep_undo(
        self,
        target: &Record,
        length: u64,
        changes: Vec<RecordedChange>,
        swap: Option<Swap>,
    ) -> Result<Run, Halt> {
        self.fill(|record, _| {
            let grown = |bytes, change: &RecordedChange| bytes + change.length - change.length_before();
            (record.bytes_before, record.bytes_after) = (length, changes.iter().fold(length, grown));
            (record.undoes, record.swap, record.edits) = (Some(target.run.clone()), swap, changes);
            Ok(before(Step::WriteRecord)?)
        })
    }

    /// Keeps what merging late lines removes from a transcript of `bytes_before` bytes; `new` is the text after it.
    ///
    /// A fault is one of `new`, and a stop one of the vault or of what was removed.
    pub(crate) fn keep_merge(
        self,
        new: &dyn Source,
        bytes_before: u64,
        edits: Vec<MergeEdit<'_>>,
        swap: Option<Swap>,
        accounts: Vec<Account>,
    ) -> Result<Run, Halt> {
        self.fill(|record, out| {
            let (mut done, mut removed) = (0, Vec::new());
            for edit in edits {
                let start = done;
                record.ends_line = true;
                for (file, span) in edit.removed.into_iter().filter(|(_, span)| !span.is_empty()) {
                    record.ends_line = ends_line_at(file, span.end)?;
                    done += span.len();
                    removed.push((file, span));
                }
                let old = if start < done {
                    vec![RemovedBytes::Inline { inline: (start, done) }]
                } else {
                    Vec::new()
                };
                record.edits.push(RecordedChange::checked(new, edit.at, edit.length, old)?);
            }
            (record.bytes_before, record.bytes_after) = (bytes_before, new.len());
            (record.purpose, record.swap, record.accounts) = (Some(Purpose::Merge), swap, accounts);
            before(Step::WriteRecord)?;
            if done > 0 {
                record.inline = Some(out.stream(Some(done), |out| {
                    for (file, span) in removed {
                        if io::copy(&mut Section::new(file, (span.start, span.end)), out)? < span.len() {
                            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
                        }
                    }
                    Ok(())
                })?);
            }
            Ok(())
        })
    }

    /// Writes the file of the run, whose record and frames come from `fill`.
    fn fill(
        mut self,
        fill: impl FnOnce(&mut Record, &mut RunWriter) -> Result<(), KeepFailure>,
    ) -> Result<Run, Halt> {
        let root = self.root.clone();
        let kept = || {
            let mut out = RunWriter::begin(&self.unfinished.file)?;
            fill(&mut self.record, &mut out)?;
            if let Some(mut rows) = self.rows.file.take() {
                let is_alone = self.rows.is_alone;
                let frame = out.stream(None, |out| Ok(io::copy(&mut rows, out).map(drop)?))?;
                self.record.rows = Some(RecordedRows { frame, is_alone });
            }
            self.finish(out)
        };
        kept().map_err(|failure| match failure {
            KeepFailure::Disk(cause) => cannot_keep(&root, cause).into(),
            KeepFailure::Source(fault) => fault.into(),
        })
    }

    /// Writes the index, makes the file durable and gives it its name.
    fn finish(mut self, out: RunWriter) -> Result<Run, KeepFailure> {
        out.finish(&mut self.record)?;
        before(Step::SyncRecord)?;
        let (file, folder) = (self.unfinished.file.clone(), self.unfinished.folder.clone());
        This::sync(&file)?;
        self.unfinished.place(&name_of(&self.record.run, RunState::Kept))?;
        before(Step::SyncRecord)?;
        folder.sync()?;
        let takes_secrets = self.record.purpose == Some(Purpose::Secrets);
        Ok(Run { name: self.record.run, folder, file, notes: AtomicU64::new(0), takes_secrets })
    }
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
        ledger::write(&self.file, &self.name, written + 1, ledger)
    }

    /// Makes what was noted durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync_data(&self.file)
    }

    /// Records that the transcript was replaced. If that fails, `undo` finds it out from the transcript itself.
    pub(crate) fn landed(&self) {
        let _ =
            self.folder.rename(name_of(&self.name, RunState::Kept), name_of(&self.name, RunState::Landed));
    }

    /// Removes the run: the transcript was not replaced.
    pub(crate) fn forget(&self) {
        // If that fails, the run still counts as one that never landed, because the transcript does not hold what it wrote.
        let remove = || self.folder.remove(name_of(&self.name, RunState::Kept));
        let _ = before(Step::Clean).and_then(|()| remove());
    }
}

/// What a run removed, to be read in order.
pub(crate) struct Originals {
    file: Arc<File>,
    texts: HashMap<Hash, StoredFrame>,
    /// The bytes that are part of no text.
    inline: Option<OriginalText>,
}

impl Originals {
    /// Writes the bytes that were removed from a place, or a part of them.
    pub(crate) fn write(&mut self, old: &RemovedBytes, out: &mut dyn Write) -> io::Result<()> {
        let (copied, length) = match old {
            RemovedBytes::Gone { .. } => return Err(broken("these bytes were not kept")),
            RemovedBytes::Inline { inline: (from, to) } => {
                let inline = self.inline.as_mut().ok_or(ErrorKind::NotFound)?;
                (io::copy(&mut inline.take(to - from), out)?, to - from)
            }
            RemovedBytes::Text { text, from, to } => {
                let mut text =
                    OriginalText::open(&self.file, self.texts.get(text).ok_or(ErrorKind::NotFound)?)?;
                io::copy(&mut text.by_ref().take(*from), &mut io::sink())?;
                let copied = io::copy(&mut text.by_ref().take(to - from), out)?;
                text.check()?;
                (copied, to - from)
            }
        };
        if copied < length { Err(broken("what was kept is too short")) } else { Ok(()) }
    }

    /// Skips the bytes that were removed from a place.
    pub(crate) fn skip(&mut self, old: &RemovedBytes) -> io::Result<()> {
        match old {
            RemovedBytes::Inline { .. } => self.write(old, &mut io::sink()),
            RemovedBytes::Text { .. } | RemovedBytes::Gone { .. } => Ok(()),
        }
    }

    /// Fails if the bytes that were written are not those that were stored.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.inline.map_or(Ok(()), OriginalText::check)
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
fn open_run(folder: &Folder, run: &str, access: OFlags) -> io::Result<Option<(File, RunState)>> {
    // In the order in which a run goes through its states, so that one that is renamed meanwhile is still found.
    for state in RunState::ALL {
        if let Some(file) = folder.open_file(name_of(run, state), access)? {
            return Ok(Some((file, state)));
        }
    }
    Ok(None)
}

/// Reads the record of a run; `None` if there is no such run in the folder.
fn read_run(folder: &Folder, run: &str) -> io::Result<Option<Record>> {
    let Some((file, state)) = open_run(folder, run, OFlags::RDONLY)? else { return Ok(None) };
    let file = Arc::new(file);
    let ledger = ledger::newest(&file, run)?.map(|(_, ledger)| ledger);
    Ok(Some(Record { state, ledger, ..file::read_index(&file, run)? }))
}

/// The file of a run in a state.
fn name_of(run: &str, state: RunState) -> String {
    format!("{run}{}", state.ending())
}

/// The folder of the runs over a file.
fn folder_of(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..16].to_string()
}

fn run_name(millis: i64, path: &Path) -> io::Result<(String, Timestamp)> {
    let time = Timestamp::from_millisecond(millis).map_err(|error| io::Error::other(error.to_string()))?;
    let seed = texts::fresh(&path.to_string_lossy());
    let random = &blake3::hash(seed.as_bytes()).to_hex()[..8];
    Ok((format!("{}Z-{random}", time.to_zoned(TimeZone::UTC).strftime(TIME)), time))
}

/// The time in the name of a run.
fn time_of(run: &str) -> Option<Timestamp> {
    let (time, _) = run.split_once("Z-")?;
    let time = jiff::civil::DateTime::strptime(TIME, time).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Whether this may be the name of a run.
fn is_run(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
        && !name.starts_with('.')
}

/// The run whose file has this name, and its state.
fn run_of(name: &str) -> Option<(&str, RunState)> {
    if Folder::is_unfinished(name) {
        return None;
    }
    RunState::ALL.iter().find_map(|state| {
        let run = name.strip_suffix(state.ending())?;
        is_run(run).then_some((run, *state))
    })
}

#[cfg(test)]
mod tests;
