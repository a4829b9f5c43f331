//! Where originals are kept: texts by their hash, and a record of each run by which it can be undone.
//!
//! Below the root, folders are for their owner alone (0700) and so are files (0600):
//!
//! ```text
//! lock                          shared by runs, held alone by gc
//! texts/<name>.pack             the texts that a run was the first to cut
//! runs/<16 hex>/<run>.kept      the record of a run over the file whose path has this hash
//! runs/<16 hex>/<run>.undo      … after the file was replaced
//! runs/<16 hex>/<run>.undone    … after that was undone
//! ```
//!
//! What a transcript means is not known here, nor how a file is replaced.

mod catalogue;
mod folder;
mod gc;
mod history;
mod pack;
mod record;
mod texts;

pub use gc::{Freed, Keep};
pub use pack::Text;
pub use record::{Purpose, Record, State};
pub(crate) use texts::Packed;

pub(crate) use history::History;
pub(crate) use record::{Body, Change, Old, check};

use crate::error::Error;
use crate::step::{Step, before};
use blake3::Hash;
use catalogue::Catalogue;
use folder::Folder;
use jiff::tz::TimeZone;
use record::{Draft, Header};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use transcript::plan::Plan;
use transcript::{Fault, Source, marker};

const LOCK: &str = "lock";
const TEXTS: &str = "texts";
const RUNS: &str = "runs";

/// What to do when the vault cannot be used.
const ELSEWHERE: &str = "the file is as it was; --vault DIR keeps originals elsewhere";

/// How the time stands in the name of a run.
const TIME: &str = "%Y%m%dT%H%M%S%.3f";

/// How many names are tried for a run.
const TRIES_MAX: u32 = 100;

/// The folder of originals.
#[derive(Clone, Debug)]
pub struct Vault {
    root: PathBuf,
}

/// A run whose originals are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    name: String,
    folder: String,
}

impl Run {
    /// Its name, which sorts by time.
    pub fn name(&self) -> &str {
        &self.name
    }
}

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

    /// Where it is unless somebody says otherwise; `None` if nobody says where home is.
    pub fn default_root() -> Option<PathBuf> {
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Some(state.or_else(|| home.map(|home| home.join(".local/state")))?.join("tailor"))
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folders that a run over a file needs, and makes them last: quickly done as long as nothing is being
    /// written, for the disk finishes that first.
    pub(crate) fn prepare(&self, path: &Path) -> Result<(), Error> {
        let made = self.lock().and_then(|(root, _lock)| {
            root.make_child(TEXTS)?;
            root.make_child(RUNS)?.make_child(&folder_of(path))
        });
        made.map(drop).map_err(|cause| self.failed("keep the originals", cause))
    }

    /// Keeps what a plan is going to take out of a file, so that it lasts before this returns. With `spill` the
    /// texts that are cut also become plain files. What is `packed` need not be compressed any more.
    ///
    /// A fault is one of the source, and an error one of the vault.
    pub(crate) fn keep(
        &self,
        source: &dyn Source,
        path: &Path,
        plan: &Plan,
        packed: &Packed,
        spill: Option<&marker::Folder>,
        purpose: Option<Purpose>,
    ) -> Result<Result<Run, Error>, Fault> {
        let kept = self.lock().map_err(Failure::Disk).and_then(|(root, _lock)| {
            let catalogue = Catalogue::load(root.make_child(TEXTS)?)?;
            let hashes = texts::keep(&catalogue, source, plan.texts(), packed)?;
            if let Some(folder) = spill {
                texts::spill(folder, source, plan.texts(), &hashes)?;
            }
            let draft = Draft { purpose, ..Draft::of(source, plan, &hashes)? };
            write_record(&root, draft, source, path)
        });
        self.told(kept)
    }

    /// Keeps what a plan is going to take out of a stream, so that its markers lead somewhere.
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
        let kept = self.keep(source, Path::new("-"), plan, &Packed::default(), spill, None)?;
        Ok(kept.inspect(|run| self.landed(run)))
    }

    /// Keeps the places that undoing a run is going to change: so many bytes go there, and so many come.
    pub(crate) fn keep_undo(
        &self,
        target: &Record,
        path: &Path,
        length: u64,
        changes: Vec<Change>,
    ) -> Result<Run, Error> {
        let after = changes.iter().fold(length, |sum, change| sum + change.length - change.length_before());
        let draft = Draft {
            bytes_before: length,
            bytes_after: after,
            ends_line: true,
            undoes: Some(target.run().to_string()),
            purpose: None,
            edits: changes,
            texts: Vec::new(),
            inline: Vec::new(),
        };
        let kept = self.lock().map_err(Failure::Disk);
        let kept = kept.and_then(|(root, _lock)| write_record(&root, draft, &&b""[..], path));
        self.told(kept).unwrap_or_else(|fault| {
            Err(self.failed("keep the record", io::Error::other(format!("byte {} is missing", fault.at))))
        })
    }

    fn told(&self, kept: Result<Run, Failure>) -> Result<Result<Run, Error>, Fault> {
        match kept {
            Ok(run) => Ok(Ok(run)),
            Err(Failure::Disk(cause)) => Ok(Err(self.failed("keep the originals", cause))),
            Err(Failure::Source(fault)) => Err(fault),
        }
    }

    fn failed(&self, verb: &'static str, cause: io::Error) -> Error {
        Error::new(&self.root, verb, cause).with_way_out(ELSEWHERE)
    }

    /// Opens the root, made if it is missing, and keeps gc away for as long as the lock is held.
    fn lock(&self) -> io::Result<(Folder, File)> {
        let root = Folder::make(&self.root)?;
        let lock = root.shared(LOCK)?;
        lock.lock_shared()?;
        Ok((root, lock))
    }

    /// Says that the file was replaced. If that cannot be written down, the file itself tells later.
    pub(crate) fn landed(&self, run: &Run) {
        self.mark(&run.folder, &run.name, State::Kept, State::Landed);
    }

    /// Says that a run was undone. If that cannot be written down, the record of the run that did it tells.
    pub(crate) fn undone(&self, record: &Record) {
        self.mark(&folder_of(&record.path()), record.run(), record.state, State::Undone);
    }

    fn mark(&self, folder: &str, run: &str, from: State, to: State) {
        let mark = || {
            let folder = self.runs_in(folder)?.ok_or(ErrorKind::NotFound)?;
            folder.rename(&format!("{run}{}", from.ending()), &format!("{run}{}", to.ending()))
        };
        let _: io::Result<()> = mark();
    }

    /// Removes the record of a run after which the file was not replaced.
    pub(crate) fn forget(&self, run: &Run) {
        let remove = || {
            before(Step::Clean)?;
            let folder = self.runs_in(&run.folder)?.ok_or(ErrorKind::NotFound)?;
            folder.remove(&format!("{}{}", run.name, State::Kept.ending()))
        };
        // What stays is known as a run that never landed, since the file does not hold what it would have written.
        let _: io::Result<()> = remove();
    }

    fn runs_in(&self, folder: &str) -> io::Result<Option<Folder>> {
        let Some(root) = Folder::open(&self.root)? else { return Ok(None) };
        let Some(runs) = root.child(RUNS)? else { return Ok(None) };
        runs.child(folder)
    }

    /// The runs over a file, oldest first; `path` is without links. A record that cannot be read is an error among
    /// the others.
    ///
    /// # Errors
    ///
    /// When the vault cannot be read.
    pub fn runs(&self, path: &Path) -> Result<Vec<Result<Record, Error>>, Error> {
        let fail = |cause| Error::new(&self.root, "read the records", cause);
        let Some(folder) = self.runs_in(&folder_of(path)).map_err(fail)? else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        for name in folder.names().map_err(fail)? {
            let Some((_, state)) = run_of(&name) else { continue };
            match read_record(&folder, &name, state) {
                Ok(Some((record, _))) if record.path() == path => records.push(Ok(record)),
                // It was undone or forgotten a moment ago, or is about a file whose path has the same hash.
                Ok(_) => {}
                Err(cause) => records.push(Err(broken_record(&folder, &name, cause))),
            }
        }
        Ok(records)
    }

    /// The run with this name, over whatever file.
    ///
    /// # Errors
    ///
    /// When the vault cannot be read, or the record.
    pub fn run(&self, run: &str) -> Result<Option<Record>, Error> {
        let fail = |cause| Error::new(&self.root, "look for the run", cause);
        let find = || {
            let Some(root) = Folder::open(&self.root)? else { return Ok(None) };
            let Some(runs) = root.child(RUNS)? else { return Ok(None) };
            for name in runs.names()? {
                let Some(folder) = runs.child(&name)? else { continue };
                for state in State::ALL {
                    if is_run(run)
                        && let Some((record, _)) =
                            read_record(&folder, &format!("{run}{}", state.ending()), state)?
                    {
                        return Ok(Some(record));
                    }
                }
            }
            Ok(None)
        };
        find().map_err(fail)
    }

    /// The bytes that a run put into its record.
    pub(crate) fn body(&self, record: &Record) -> io::Result<Body> {
        let folder = self.runs_in(&folder_of(&record.path()))?.ok_or(ErrorKind::NotFound)?;
        let name = format!("{}{}", record.run(), record.state.ending());
        Ok(read_record(&folder, &name, record.state)?.ok_or(ErrorKind::NotFound)?.1)
    }

    /// What texts there are. Gc, which moves them, is kept away for as long as this is there.
    pub(crate) fn originals(&self) -> io::Result<Originals> {
        let Some(root) = Folder::open(&self.root)? else { return Ok(Originals::default()) };
        let lock = root.read(LOCK)?;
        lock.as_ref().map_or(Ok(()), File::lock_shared)?;
        let catalogue = root.child(TEXTS)?.map(Catalogue::load).transpose()?;
        Ok(Originals { catalogue, _lock: lock })
    }

    /// Opens the text whose hash begins with these hex digits, 8 to 64 of them.
    ///
    /// # Errors
    ///
    /// When there is no such text or there are several, or it cannot be read.
    pub fn text(&self, digits: &str) -> Result<Text, Error> {
        let fail = |cause| Error::new(&self.root, "open the text", cause);
        let other = |text: String| Err(fail(io::Error::other(text)));
        let hex = (8..=64).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if !hex {
            return other(format!("`{digits}` is not an id: 8 to 64 hex digits, as a marker names them"));
        }
        let originals = self.originals().map_err(fail)?;
        let catalogue = originals.catalogue.as_ref();
        let digits = digits.to_ascii_lowercase();
        match &catalogue.map_or_else(Vec::new, |all| all.beginning_with(&digits))[..] {
            [hash] => originals.open(hash).map_err(fail),
            [] => other(format!(
                "no text begins with {digits}: it was never here, or gc removed it (--vault DIR looks elsewhere){}",
                catalogue.map_or_else(String::new, Catalogue::excuse)
            )),
            several => {
                let ids: Vec<String> = several.iter().map(Hash::to_string).collect();
                other(format!(
                    "{digits} is the beginning of {} texts; give more digits: {}",
                    ids.len(),
                    ids.join(", ")
                ))
            }
        }
    }
}

/// The texts of a vault, to be read.
#[derive(Default)]
pub(crate) struct Originals {
    catalogue: Option<Catalogue>,
    _lock: Option<File>,
}

impl Originals {
    /// Opens the text with this hash.
    pub(crate) fn open(&self, hash: &Hash) -> io::Result<Text> {
        let catalogue = self.catalogue.as_ref();
        let text = catalogue.map_or(Ok(None), |all| all.open(hash))?;
        text.ok_or_else(|| {
            let excuse = catalogue.map_or_else(String::new, Catalogue::excuse);
            io::Error::new(ErrorKind::NotFound, format!("the text {hash} is not in the vault{excuse}"))
        })
    }
}

fn write_record(root: &Folder, draft: Draft, source: &dyn Source, path: &Path) -> Result<Run, Failure> {
    let runs = root.make_child(RUNS)?;
    let name = folder_of(path);
    let folder = runs.make_child(&name)?;
    let last = folder.names()?.iter().filter_map(|name| time_of(run_of(name)?.0)).max();
    let mut draft = Some(draft);
    for attempt in 0..TRIES_MAX {
        let now = i64::try_from(now()).unwrap_or(i64::MAX);
        let time = now.max(last.map_or(0, |last| last + 1 + i64::from(attempt)));
        let (run, time) = run_name(time, path)?;
        let unfinished = match folder.begin(&run) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        // Who has the unfinished file has the name, unless somebody has just finished one.
        let taken = State::ALL.iter().map(|state| folder.has(&format!("{run}{}", state.ending())));
        if taken.collect::<io::Result<Vec<bool>>>()?.contains(&true) {
            continue;
        }
        let Some(mut draft) = draft.take() else { break };
        let inline = std::mem::take(&mut draft.inline);
        before(Step::WriteRecord)?;
        record::write(&unfinished.file, &Header::new(draft, path, &run, time), source, &inline)?;
        before(Step::SyncRecord)?;
        unfinished.file.sync_all()?;
        unfinished.place(&folder, &format!("{run}{}", State::Kept.ending()))?;
        before(Step::SyncRecord)?;
        folder.sync()?;
        return Ok(Run { name: run, folder: name });
    }
    Err(io::Error::from(ErrorKind::AlreadyExists).into())
}

/// A record of which not even the header can be read.
fn broken_record(folder: &Folder, name: &str, cause: io::Error) -> Error {
    Error::new(&folder.path_of(name), "read the record", cause)
        .with_way_out("this run cannot be undone; without the record those before it can")
}

fn read_record(folder: &Folder, name: &str, state: State) -> io::Result<Option<(Record, Body)>> {
    let Some(file) = folder.read(name)? else { return Ok(None) };
    let size = file.metadata()?.len();
    let (header, body) = record::read(file)?;
    Ok(Some((Record { header, state, size }, body)))
}

/// The folder of the records of a file.
fn folder_of(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_bytes()).to_hex()[..16].to_string()
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A name that no other writer gives to what it writes.
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
    let random = &blake3::hash(seed.as_bytes()).to_hex()[..4];
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

/// The run of which this is the name of the record, and how far it has got.
fn run_of(name: &str) -> Option<(&str, State)> {
    if Folder::is_unfinished(name) {
        return None;
    }
    State::ALL.iter().find_map(|state| {
        let run = name.strip_suffix(state.ending())?;
        is_run(run).then_some((run, *state))
    })
}
