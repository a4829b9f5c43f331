//! Sessions that agents keep as rows of a SQLite database. They are read while their owner runs. In some kinds of store,
//! texts of results are shortened while it runs too; all other repairs wait until it is stopped.
//!
//! A session is written as a text with one record a line, to memory or a file without a name, and everything else reads that
//! text. The database is open only while the text is written, and a transaction lasts a second at most, because a reader keeps the
//! owner from resetting its log (`-wal`).
//!
//! Closing any descriptor of a file releases all locks that the process has on it, including SQLite's. So nothing else in this
//! process opens a database, its `-wal` or its `-shm`. SQLite also says which kind of store it is.
//!
//! Each kind of store is one file in `stores/`, with a `StoreKind`: the tables that identify it, and how its rows are read.
//! If its rows can be written, its `Mend` says how, and `write` does it.

mod ahead;
mod alone;
mod database;
mod fill;
mod kind;
mod kinds;
mod lines;
mod projection;
mod prune;
mod rows;
mod slices;
#[cfg(test)]
mod tests;
mod write;

pub use fill::measure_store;
pub use prune::{prune, vacuum};
pub(crate) use write::Replacing;

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::places::found::FoundFile;
use crate::places::store::{IN_DATABASE, may_be_read, session_path, split};
use crate::platform::identity::FileId;
use crate::platform::metadata::{self, MetadataExt};
use crate::swap::content::FileContent;
use crate::swap::snapshot::{as_owner, real_path_in};
use database::{Database, entered, is_foreign};
use kind::{Mend, PAGE_ROWS, RowKey, RowTrouble, StoreKind};
use kinds::KINDS;
use lines::{RecordLines, Want};
use rusqlite::{ErrorCode, Result as SqlResult};
use slices::fill;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transcript::Span;
use transcript::situation::{KnownRecords, LoadLimit};

/// How often a session is read from the start again because its rows changed.
const TRIES: usize = 3;

/// The sessions in a database; the file itself if it is not a known store.
pub(crate) fn sessions(file: &Path, root: Option<&Path>) -> Vec<Result<FoundFile, Error>> {
    match entered(file).and_then(|_acting| list(file)) {
        Ok(Some(sessions)) => {
            let found = |(id, millis): (String, Option<i64>)| {
                Ok(FoundFile {
                    written: millis.and_then(time),
                    ..FoundFile::file(&session_path(file, &id), root)
                })
            };
            sessions.into_iter().map(found).collect()
        }
        Ok(None) => vec![Ok(FoundFile::file(file, root))],
        Err(error) => vec![Err(error)],
    }
}

/// Notes on repairs that are not made in stores.
pub(crate) fn whys() -> Vec<&'static str> {
    let mends = KINDS.iter().filter_map(|kind| kind.mend);
    mends.flat_map(|mend| [mend.only, mend.no_rows]).chain([IN_DATABASE]).collect()
}

/// When a session was last written, according to its store.
pub(crate) fn written(file: &Path, session: &str) -> Option<SystemTime> {
    let _acting = entered(file).ok()?;
    let database = Database::open(file).ok()?;
    let kind = database.kind(KINDS).ok()??;
    database.written(kind, session).and_then(time)
}

fn time(millis: i64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(millis).ok()?))
}

type Sessions = Vec<(String, Option<i64>)>;

fn list(file: &Path) -> Result<Option<Sessions>, Error> {
    for _ in 0..TRIES {
        let database = Database::open(file)?;
        let kind = match database.kind(KINDS) {
            Err(error) if is_foreign(&error) => return Ok(None),
            Err(error) if database.is_unchanged() => return Err(database.unlisted("list its tables", error)),
            kind => kind,
        };
        match kind.and_then(|kind| kind.map(|kind| listed(&database, kind)).transpose()) {
            Ok(sessions) if database.is_unchanged() => return Ok(sessions),
            Err(error) if database.is_unchanged() => return Err(database.error("list its sessions", error)),
            _ => {}
        }
    }
    Err(Error::new(file, "list its sessions", io::Error::other("it changes all the time")))
}

fn listed(database: &Database, kind: &StoreKind) -> SqlResult<Sessions> {
    // Each page is a transaction of its own.
    let all = |own: &str| -> SqlResult<Sessions> {
        let page = |from: &str| {
            format!(
                "WITH s(id, written) AS ({own}) SELECT id, written FROM s {from} ORDER BY id LIMIT {PAGE_ROWS}"
            )
        };
        let (first, next) = (page(""), page("WHERE id > ?1"));
        let mut all = Sessions::new();
        loop {
            let known = all.len();
            let mut statement = database.connection.prepare(if known == 0 { &first } else { &next })?;
            if let Some((id, _)) = all.last() {
                statement.raw_bind_parameter(1, id)?;
            }
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                all.push((row.get(0)?, row.get(1)?));
            }
            if all.len() < known + PAGE_ROWS {
                return Ok(all);
            }
        }
    };
    // What one table cannot give may be in another.
    all(kind.sessions).or_else(|error| all(kind.sessions_by_rows).map_err(|_| error))
}

/// The session at a path: `FILE#SESSION`, or the only session of a store. `None` if the path is not a session in a store.
pub(crate) fn open(path: &Path, root: Option<&Path>) -> Result<Option<Stored>, Stop> {
    there(spool(path, root, Want::Records)?)
}

/// The session at a path, which need not be there any more.
pub(crate) fn open_or_gone(path: &Path, root: Option<&Path>) -> Result<Option<Stored>, Stop> {
    spool(path, root, Want::Records)
}

/// The session at a path for [`FileContent::scan`]: what is written is already read into entries.
pub(crate) fn open_to_scan(path: &Path, root: Option<&Path>) -> Result<Option<Stored>, Stop> {
    there(spool(path, root, Want::Entries)?)
}

/// The text of one that is not examined.
pub(crate) fn text(path: &Path, root: Option<&Path>) -> Result<Option<FileContent>, Stop> {
    Ok(there(spool(path, root, Want::Text)?)?.map(|stored| stored.content))
}

fn there(stored: Option<Stored>) -> Result<Option<Stored>, Stop> {
    match stored {
        Some(Stored { content, lost, .. }) if content.is_empty() && lost.is_empty() => {
            Err(Error::new(&content.path, Error::OPEN, io::ErrorKind::NotFound.into()).into())
        }
        stored => Ok(stored),
    }
}

/// A session that was read: its records, one a line.
pub(crate) struct Stored {
    pub(crate) content: FileContent,
    /// Why the owner cannot read or use some of its records.
    pub(crate) known_records: KnownRecords,
    /// How much of it its owner loads, if that is bounded and known.
    pub(crate) load: Option<LoadLimit>,
    /// The database.
    file: PathBuf,
    /// Which file it is.
    id: FileId,
    session: String,
    kind: &'static StoreKind,
    /// Where in the text each row begins.
    rows: Vec<(RowKey, u64)>,
    lost: Vec<String>,
    /// Warnings about the store: its log is missing, or its version is untested.
    remark: Option<String>,
    /// Why this session is read-only although its kind is not.
    hindrance: Option<String>,
}

impl Stored {
    /// Note on the repairs that are not made here; `None` if all are.
    pub(crate) fn only(&self) -> Option<&'static str> {
        self.mend().ok().map(|mend| mend.only)
    }

    /// Note on a row that would have to be added.
    pub(crate) fn no_rows(&self) -> &'static str {
        self.mend().map_or("", |mend| mend.no_rows)
    }

    /// Why this session is read-only although its kind is not.
    pub(crate) fn hindrance(&self) -> Option<Refusal> {
        self.hindrance.clone().map(Refusal::StoreStays)
    }

    fn mend(&self) -> Result<&'static Mend, Stop> {
        match (self.hindrance(), self.kind.mend) {
            (Some(why), _) => Err(why.into()),
            (None, Some(mend)) => Ok(mend),
            (None, None) => {
                Err(Refusal::StoreStays(format!("of {}'s, none was tried", self.kind.agent)).into())
            }
        }
    }
}

/// A session as its records are stored, for a copy.
pub struct ExportedSession {
    content: FileContent,
    /// What could not be read, row by row.
    pub lost: Vec<String>,
    /// Warnings about the store: its log is missing, or its version is untested.
    pub remark: Option<String>,
}

impl ExportedSession {
    /// Writes the records, one a line.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut done = Ok(());
        let read = self.content.read(|source| {
            source.pieces(Span::new(0, source.len()), &mut |bytes| {
                done = out.write_all(bytes);
                done.is_ok()
            })
        });
        read.map_err(|stop| io::Error::other(stop.to_string()))?;
        done.and_then(|()| out.flush())
    }
}

/// Reads a session as it is stored; from a damaged database, what is readable. `None` if the path is not a session in a store.
///
/// # Errors
///
/// When the database cannot be read.
pub fn export(path: &Path) -> Result<Option<ExportedSession>, Stop> {
    let _acting = as_owner(path)?;
    let stored = there(spool(path, None, Want::Copy)?)?;
    Ok(stored.map(|Stored { content, lost, remark, .. }| ExportedSession { content, lost, remark }))
}

fn spool(path: &Path, root: Option<&Path>, want: Want) -> Result<Option<Stored>, Stop> {
    let (file, session) = match split(path) {
        Some((file, session)) if may_be_read(file) => (file, session.to_string()),
        None if may_be_read(path) && path.is_file() => match list(path)? {
            None => return Ok(None),
            Some(sessions) if sessions.len() == 1 => (path, sessions.into_iter().map(|(id, _)| id).collect()),
            Some(sessions) => return Err(Refusal::NamesNoSession(sessions.len()).into()),
        },
        _ => return Ok(None),
    };
    let real = real_path_in(file, root)?;
    for _ in 0..TRIES {
        let database = Database::open(&real)?;
        let copied = copy(&database, &real, &session, want);
        if database.is_unchanged() {
            return copied;
        }
    }
    Err(Deferral::Changed.into())
}

fn copy(database: &Database, file: &Path, session: &str, want: Want) -> Result<Option<Stored>, Stop> {
    let fail = |error| database.stop("read the session", error);
    let kind = match database.kind(KINDS) {
        Ok(kind) => kind,
        Err(error) if is_foreign(&error) => None,
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            return Err(database.unlisted("list its tables", error).into());
        }
        Err(error) => return Err(fail(error)),
    };
    let Some(kind) = kind else { return Ok(None) };
    for _ in 0..TRIES {
        let mut lines = RecordLines::new(want)?;
        match fill(database, kind, session, &mut lines) {
            Ok(()) => return Ok(Some(stored(database, kind, (file, session), lines)?)),
            Err(RowTrouble::Database(error)) => return Err(fail(error)),
            Err(RowTrouble::Rewritten) => {}
            Err(RowTrouble::Output(cause)) => return Err(crate::swap::content::no_temporary(cause).into()),
        }
    }
    Err(Deferral::Changed.into())
}

fn stored(
    database: &Database,
    kind: &'static StoreKind,
    (file, session): (&Path, &str),
    mut lines: RecordLines,
) -> Result<Stored, Stop> {
    let found = metadata::at(file).map_err(|cause| Error::new(file, Error::OPEN, cause))?;
    let (names, id) = (found.nlink(), FileId::from_metadata(&found));
    let hindrance = match kind.mend {
        None => None,
        // Under another name the log is another file.
        Some(_) if names > 1 => Some(format!("it has {names} hard links")),
        Some(_) if lines.is_folded => {
            Some("a row holds a line break, which its owner never writes".to_string())
        }
        Some(mend) => database.hindrance(kind, mend).unwrap_or_else(|error| Some(error.to_string())),
    };
    let written = database.written(kind, session).and_then(time);
    let (rows, lost) = (std::mem::take(&mut lines.rows), std::mem::take(&mut lines.lost));
    let known_records = std::mem::take(&mut lines.known);
    let content = lines.finish(&session_path(file, session), written)?;
    let (file, session) = (file.to_path_buf(), session.to_string());
    let remark = database.lost_log().or_else(|| database.untried(kind));
    let load = kind.load.and_then(|rule| database.load_limit(rule, &session));
    Ok(Stored { content, known_records, load, file, id, session, kind, rows, lost, remark, hindrance })
}
