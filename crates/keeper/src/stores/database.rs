//! A database that is open for reading, or for one writing transaction.

use super::alone::nobody_seen;
use super::kind::{LoadRule, Mend, StoreKind};
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::places::store::beside;
use crate::platform::acting::{self, Acting};
use crate::platform::identity::{FileId, Stamp};
use crate::platform::metadata::{self, MetadataExt};
use crate::swap::snapshot::as_owner;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Result as SqlResult};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use transcript::situation::LoadLimit;

/// How long to wait for a program that has locked the database.
const BUSY_MAX: Duration = Duration::from_secs(2);

/// How long a database that was whole counts as whole.
const WHOLE_FOR: Duration = Duration::from_secs(600);
/// Up to this length all pages are read at once, which takes less than a second.
pub(super) const COUNTED_BYTES_MAX: u64 = 256 << 20;

/// What to do about a damaged database.
const DAMAGED: &str = "the database is damaged, and Tailor leaves it as it is; to print what can still be read of a session, run: \
                       tailor export 'FILE#SESSION'";
/// What to do about a database whose tables cannot be listed.
const NO_TABLES: &str = "the list of its tables is damaged, so nothing can be found in it, and Tailor leaves it as it is; SQLite may \
                         find rows without the list: stop its agent, and run: sqlite3 FILE .recover | sqlite3 recovered.db, and \
                         then: tailor scan recovered.db";
/// What to do if the log cannot be created.
const NO_PLACE: &str = "SQLite needs the -shm file that belongs to its -wal, or a place to make one: copy the database and its \
                        -wal together to a folder of yours, and read that";
/// What to do if there is no room for the index of the log.
const NO_ROOM: &str = "to read a database in WAL mode, SQLite needs 32 kB beside it for a -shm file: free some space, or copy the \
                       database and its -wal together to another disk, and read that";
/// What to do if a program died in the middle of a transaction. Without its journal the database would be read half written.
const UNFINISHED: &str = "a program died in the middle of a transaction; SQLite rolls it back from the -journal when a program that may \
                          write opens the database: start its owner, or run: sqlite3 FILE .tables";

pub(super) struct Database {
    pub(super) connection: Connection,
    file: PathBuf,
    /// The state of the file before it was read without locks.
    unlocked: Option<Stamp>,
    /// The log's index exists but not the log: it was deleted, or the database was copied without it.
    pub(super) lacks_log: bool,
}

impl Database {
    /// Opens a database read-only.
    pub(super) fn open(file: &Path) -> Result<Self, Error> {
        const VERB: &str = "open the database";
        let real = metadata::real_path(file).map_err(|cause| Error::new(file, Error::OPEN, cause))?;
        let fail = |error| failed(file, VERB, error);
        let found = metadata::at(&real).map_err(|cause| Error::new(file, Error::OPEN, cause))?;
        if !acting::may_open(&found) {
            return Err(Error::new(file, VERB, io::Error::other("it came to belong to somebody else")));
        }
        // SQLite makes a new one.
        let lacks_log =
            !has_log(&real) && metadata::at(&beside(&real, "-shm")).is_ok_and(|index| index.len() > 0);
        let connection = connect(&real, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fail)?;
        let error = match connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) {
            Err(error) if is_without_place(&error) => error,
            // Any other error comes again where the database is read.
            _ => return Ok(Self { connection, file: real, unlocked: None, lacks_log }),
        };
        drop(connection);
        if beside(&real, "-journal").symlink_metadata().is_ok() {
            return Err(fail(error).with_way_out(UNFINISHED));
        }
        // Without a log, and without permission to create one, no locks are needed: no process has the database open.
        let before = metadata::at(&real).map_err(|cause| Error::new(file, VERB, cause))?;
        if has_log(&real) {
            return Err(fail(error).with_way_out(NO_PLACE));
        }
        let address = format!("file:{}?immutable=1", address(&real));
        let connection =
            connect(Path::new(&address), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
                .map_err(fail)?;
        Ok(Self { connection, file: real, unlocked: Some(Stamp::from_metadata(&before)), lacks_log })
    }

    /// Opens a database to write rows: the same file that was read, under the same name. In exclusive mode no other process can
    /// have it open, from the first read on.
    pub(super) fn open_to_write(file: &Path, id: FileId, is_alone: bool) -> Result<Self, Stop> {
        let fail = |error| failed(file, Self::WRITE, error);
        let is_same = || -> Result<bool, Error> {
            let found = metadata::at(file).map_err(|cause| Error::new(file, Self::WRITE, cause))?;
            Ok(FileId::from_metadata(&found) == id && found.nlink() == 1 && acting::may_open(&found))
        };
        // Before, because SQLite makes files beside it, and after, because it opens it by its path.
        if !is_same()? {
            return Err(Deferral::Changed.into());
        }
        let connection = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
        if !is_same()? {
            return Err(Deferral::Changed.into());
        }
        if is_alone {
            connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE").map_err(fail)?;
        }
        // The owner resets the log when it has time.
        let ways = "PRAGMA query_only = OFF; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON";
        connection.execute_batch(ways).map_err(fail)?;
        Ok(Self { connection, file: file.to_path_buf(), unlocked: None, lacks_log: false })
    }

    /// Begins a transaction if no other process has the database open. None can open it until the connection is closed.
    pub(super) fn begin_alone(&self) -> Result<(), Stop> {
        match self.connection.execute_batch("BEGIN EXCLUSIVE") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                nobody_seen(&self.file)?;
                Err(Deferral::HeldOpen.into())
            }
            done => done.map_err(|error| self.stop(Self::WRITE, error)),
        }
    }

    /// Checks that the written tables are intact, and that what they refer to exists.
    pub(super) fn check(&self, tables: &[&str]) -> SqlResult<Option<String>> {
        for table in tables {
            let query = format!("SELECT count(*) FROM pragma_foreign_key_check('{table}')");
            if self.connection.query_row(&query, [], |row| row.get::<_, i64>(0))? > 0 {
                return Ok(Some(format!("rows of {table} would refer to rows that are not there")));
            }
            let query = format!("PRAGMA quick_check({table})");
            let said: String = self.connection.query_row(&query, [], |row| row.get(0))?;
            if said != "ok" {
                return Ok(Some(format!("{table} would not be whole: {said}")));
            }
        }
        Ok(None)
    }

    /// What is wrong with the pages of its tables, and what to do about it, if it is so small that all can be read in a moment. Search indexes are left
    /// out: that takes longer, and no row depends on them.
    pub(super) fn damage(&self) -> SqlResult<Option<String>> {
        const TABLES: &str =
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')";
        const BYTES: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let connection = &self.connection;
        if connection.query_row(BYTES, [], |row| row.get::<_, i64>(0))?.unsigned_abs() > COUNTED_BYTES_MAX {
            return Ok(None);
        }
        let mut tables = connection.prepare(TABLES)?;
        let tables = tables.query_map([], |row| row.get(0))?.collect::<SqlResult<Vec<String>>>()?;
        for table in tables {
            let check = format!("PRAGMA quick_check(\"{}\")", table.replace('"', "\"\""));
            let said = match connection.query_row(&check, [], |row| row.get::<_, String>(0)) {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                    error.to_string()
                }
                said => said?,
            };
            if said != "ok" {
                let said = said.lines().last().unwrap_or_default();
                return Ok(Some(format!("{DAMAGED} ({table}: {said})")));
            }
        }
        Ok(None)
    }

    /// Refuses a database that is damaged anywhere: nobody knows what a write would do to it. A whole one is looked at again after a while.
    pub(super) fn refuse_damaged(file: &Path, id: FileId) -> Result<(), Stop> {
        static WHOLE: Mutex<Vec<(PathBuf, FileId, Instant)>> = Mutex::new(Vec::new());
        let mut known = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(.., looked)| looked.elapsed() < WHOLE_FOR);
        if known.iter().any(|(path, whole, _)| path == file && *whole == id) {
            return Ok(());
        }
        let database = Self::open(file)?;
        match database.damage().map_err(|error| database.stop("look for damage", error))? {
            None => known.push((file.to_path_buf(), id, Instant::now())),
            Some(damage) => return Err(Refusal::StoreStays(damage).into()),
        }
        Ok(())
    }

    /// The verb in errors of writing.
    pub(super) const WRITE: &str = "write its rows";

    /// Whether the database is unchanged since it was opened. It can change only if it is read without locks.
    pub(super) fn is_unchanged(&self) -> bool {
        let is_same =
            |before: &Stamp| metadata::at(&self.file).is_ok_and(|now| Stamp::from_metadata(&now) == *before);
        self.unlocked.as_ref().is_none_or(|before| is_same(before) && !has_log(&self.file))
    }

    /// The kind of store; `None` if it is unknown.
    pub(super) fn kind(&self, kinds: &[&'static StoreKind]) -> SqlResult<Option<&'static StoreKind>> {
        for &kind in kinds {
            if self.missing(kind.tables)?.is_none() {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// The first column that is not there, or is one of something else than a table.
    pub(super) fn missing(&self, tables: &[(&str, &[&str])]) -> SqlResult<Option<String>> {
        // A view could be anything.
        const HAS: &str = "SELECT c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c \
                           WHERE s.type = 'table' AND s.name = ?1";
        let mut has = self.connection.prepare(HAS)?;
        for (table, columns) in tables {
            let known: Vec<String> = has.query_map([table], |row| row.get(0))?.collect::<SqlResult<_>>()?;
            if let Some(column) = columns.iter().find(|column| !known.iter().any(|known| known == *column)) {
                return Ok(Some(format!("{table}.{column}")));
            }
        }
        Ok(None)
    }

    /// When a session was last written, in milliseconds since 1970.
    pub(super) fn written(&self, kind: &StoreKind, session: &str) -> Option<i64> {
        let own = format!("WITH s(id, written) AS ({}) SELECT written FROM s WHERE id = ?1", kind.sessions);
        self.connection.query_row(&own, [session], |row| row.get(0)).ok().flatten()
    }

    /// How much of a session its owner loads; `None` if the session does not say.
    pub(super) fn load_limit(&self, rule: &LoadRule, session: &str) -> Option<LoadLimit> {
        let window = self.connection.query_row(rule.window, [session], |row| row.get::<_, Option<i64>>(0));
        let window_tokens = u64::try_from(window.ok().flatten()?).ok().filter(|window| *window > 0)?;
        let bytes_max = window_tokens.saturating_mul(rule.bytes_per_token).min(rule.bytes_max);
        let result_chars_max = rule.results.iter().find(|(tokens, _)| window_tokens >= *tokens)?.1;
        Some(LoadLimit { window_tokens, bytes_max, entries_max: rule.rows_max, result_chars_max })
    }

    /// A value that changes when rows of a session are rewritten, or moved to other rowids.
    pub(super) fn mark(&self, kind: &StoreKind, session: &str) -> SqlResult<String> {
        // It counts operations that move rows, such as VACUUM.
        let schema: i64 = self.connection.query_row("PRAGMA schema_version", [], |row| row.get(0))?;
        let own = |mark| self.connection.query_row(mark, [session], |row| row.get::<_, Option<String>>(0));
        let own = kind.mark.map(|mark| own(mark).optional()).transpose()?.flatten().flatten();
        Ok(format!("{schema} {}", own.unwrap_or_default()))
    }

    /// A warning if the schema is not one that was tested.
    pub(super) fn untried(&self, kind: &StoreKind) -> Option<String> {
        let version = self.connection.query_row(kind.version?, [], |row| row.get::<_, Option<String>>(0));
        let version = version.ok().flatten().unwrap_or_else(|| "none".to_string());
        let is_tried = kind.tried.contains(&version.as_str());
        let tried = kind.tried.join(", ");
        let agent = kind.agent;
        (!is_tried).then(|| format!("{agent}'s schema is version {version}; Tailor was tried with {tried}"))
    }

    /// Why its rows must not be written; `None` if they may be.
    pub(super) fn hindrance(&self, kind: &StoreKind, mend: &Mend) -> SqlResult<Option<String>> {
        Ok(match self.untried(kind) {
            None => match self.missing(mend.tables)? {
                Some(column) => Some(format!("{column} is missing")),
                None => self.automatic(mend)?,
            },
            untried => untried,
        })
    }

    /// What else would change with the tables that are written, which nobody has tried.
    fn automatic(&self, mend: &Mend) -> SqlResult<Option<String>> {
        // A row that `ON CONFLICT REPLACE` takes out is counted nowhere.
        const ACTS: &str = "SELECT name, tbl_name, type FROM sqlite_schema \
                            WHERE type = 'trigger' OR type = 'table' AND sql LIKE '%CONFLICT%'";
        let layouts = mend.layouts.iter().map(|(_, layout)| layout.table);
        let written: Vec<&str> = layouts.chain(mend.tables.iter().map(|(table, _)| *table)).collect();
        let mut acts = self.connection.prepare(ACTS)?;
        let mut acts = acts.query([])?;
        while let Some(row) = acts.next()? {
            let (name, table, kind): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let is_known = mend.triggers.contains(&name.as_str());
            if !is_known && written.iter().any(|written| table.eq_ignore_ascii_case(written)) {
                let owner = mend.owner;
                return Ok(Some(format!("{table} has a {kind} that {owner} does not make ({name})")));
            }
        }
        Ok(None)
    }

    /// A warning if the log is missing.
    pub(super) fn lost_log(&self) -> Option<String> {
        let said = "its -wal was taken away, or it was copied without it (its -shm is there): what was written last is missing. If \
                    the -wal is still somewhere, put both into a new folder before anything opens the database again";
        self.lacks_log.then(|| said.to_string())
    }

    /// The error for a database of unknown kind.
    pub(super) fn unlisted(&self, verb: &'static str, error: rusqlite::Error) -> Error {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => {
                Error::new(&self.file, verb, io::Error::other(error)).with_way_out(NO_TABLES)
            }
            _ => self.error(verb, error),
        }
    }

    pub(super) fn error(&self, verb: &'static str, error: rusqlite::Error) -> Error {
        failed(&self.file, verb, error)
    }

    /// Why to stop after an error of SQLite: a deferral if another program has locked the database.
    pub(super) fn stop(&self, verb: &'static str, error: rusqlite::Error) -> Stop {
        if is_busy(error.sqlite_error_code()) {
            return Deferral::Busy { agent: "SQLite", lock: Deferral::DATABASE }.into();
        }
        self.error(verb, error).into()
    }
}

/// Acts as the owner of a database, which is read.
pub(super) fn entered(file: &Path) -> Result<Acting, Error> {
    as_owner(file).map_err(|stop| match stop {
        Stop::Failed(error) => error,
        stop => Error::new(file, "list its sessions", io::Error::other(stop.to_string())),
    })
}

/// Has SQLite open a file; never through a link.
pub(super) fn connect_plainly(path: &Path, flags: OpenFlags) -> SqlResult<Connection> {
    Connection::open_with_flags(
        path,
        flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW,
    )
}

fn connect(path: &Path, flags: OpenFlags) -> SqlResult<Connection> {
    let connection = connect_plainly(path, flags)?;
    connection.busy_timeout(BUSY_MAX)?;
    // The content of the file is not trusted.
    connection
        .execute_batch("PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")?;
    Ok(connection)
}

/// A path as part of a URI.
fn address(path: &Path) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.as_os_str().as_encoded_bytes().iter().copied().map(escape).collect()
}

/// Whether a database has a log.
fn has_log(file: &Path) -> bool {
    beside(file, "-wal").symlink_metadata().is_ok()
}

/// Whether the log or its index cannot be created or opened.
fn is_without_place(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Whether the file is not a database.
pub(super) fn is_foreign(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::NotADatabase)
}

fn failed(file: &Path, verb: &'static str, error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    let is_without_room =
        error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE);
    let kind = if is_busy(code) { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other };
    let error = Error::new(file, verb, io::Error::new(kind, error));
    match code {
        Some(ErrorCode::DatabaseCorrupt) => error.with_way_out(DAMAGED),
        _ if is_without_room => error.with_way_out(NO_ROOM),
        _ => error,
    }
}

/// Whether another program has locked it.
fn is_busy(code: Option<ErrorCode>) -> bool {
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
