//! Rows that an owner keeps beside its sessions and that newer rows supersede are taken out, and the file is made smaller.
//!
//! Nobody else has the database open from the first look to the last commit. The rows of a session go to a run of their own in
//! the vault before the first of them is deleted, so `tailor undo` puts them back, session by session, and also those of sessions
//! that are gone. Each transaction takes a moment at most. A death between two of them leaves rows that the next prune takes out
//! and that an undo leaves alone.

use super::alone::Alone;
use super::database::{Database, is_foreign};
use super::kind::{Mend, Snapshots, StoreKind};
use super::kinds::KINDS;
use super::rows::{RowCells, RowEdit, RowLayout, RowMade, first};
use super::write::BATCH_BYTES;
use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::base::step::{Step, before};
use crate::places::found::Pruned;
use crate::places::store::{session_path, split};
use crate::platform::identity::FileId;
use crate::platform::metadata::{self, MetadataExt};
use crate::swap::snapshot::{as_owner, real_path_in};
use crate::vault::{Run, Vault};
use rusqlite::Result as SqlResult;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How many rows one look for superseded ones reads.
const LOOK_ROWS: usize = 500;

/// Takes superseded rows out of the sessions of a database, or of the one that the path names. Without a vault they are only
/// counted, beside their owner.
///
/// # Errors
///
/// When there are none in this kind of database, it is in use, or it or the vault cannot be read or written. Then what is gone
/// already is in the vault.
pub fn prune(path: &Path, vault: Option<&Vault>) -> Result<Pruned, Stop> {
    let _acting = as_owner(path)?;
    let (file, only) = place(path)?;
    let pruning = Pruning::open(&file, vault.is_none())?;
    let mut done = Pruned::default();
    for session in only.map_or_else(|| pruning.sessions(), |only| Ok(vec![only]))? {
        pruning.session(&session, vault, &mut done)?;
    }
    pruning.end()?;
    let database = &pruning.database;
    (done.size, done.free) = pages(database).map_err(|error| database.stop(VERB, error))?;
    Ok(done)
}

/// Has SQLite write a database anew without free pages. What it gives is as of afterwards.
///
/// # Errors
///
/// When this kind of database was not tried, it is in use, there is too little room, or SQLite fails. Then the database is as it
/// was.
pub fn vacuum(path: &Path) -> Result<Pruned, Stop> {
    let _acting = as_owner(path)?;
    let (file, _) = place(path)?;
    let pruning = Pruning::open(&file, false)?;
    pruning.end()?;
    let database = &pruning.database;
    let fail = |error| database.stop(VACUUM, error);
    let (size, free) = pages(database).map_err(fail)?;
    // A copy without free pages, which then goes through the log.
    let needed = size.saturating_sub(free).saturating_mul(2);
    let folder = file.parent().unwrap_or(Path::new("."));
    let room =
        metadata::free_bytes(folder).map_err(|cause| Error::new(folder, "ask for free space", cause))?;
    if room < needed {
        return Err(Refusal::NoRoom { needed, room }.into());
    }
    let quoted = folder.to_string_lossy().replace('\'', "''");
    let ways = format!("PRAGMA temp_store_directory = '{quoted}'");
    // Otherwise the copy goes to where temporary files are, which may be memory.
    if folder.to_str().is_some() {
        database.connection.execute_batch(&ways).map_err(fail)?;
    }
    let done = database.connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    let _ = database.connection.execute_batch("PRAGMA temp_store_directory = ''");
    done.map_err(fail)?;
    let (size, free) = pages(database).map_err(fail)?;
    Ok(Pruned { size, free, ..Pruned::default() })
}

const VERB: &str = "look for superseded rows";
const VACUUM: &str = "make the database smaller";

/// The database that a path stands for, and the session.
fn place(path: &Path) -> Result<(PathBuf, Option<String>), Stop> {
    let (file, session) = split(path).map_or((path, None), |(file, id)| (file, Some(id.to_string())));
    Ok((real_path_in(file, None)?, session))
}

/// How long a database is, and how much of it is free.
fn pages(database: &Database) -> SqlResult<(u64, u64)> {
    let pragma = |name: &str| -> SqlResult<u64> {
        let sql = format!("PRAGMA {name}");
        database.connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let page = pragma("page_size")?;
    Ok((pragma("page_count")? * page, pragma("freelist_count")? * page))
}

/// A database in which rows are looked for, and deleted unless it is read only.
struct Pruning {
    file: PathBuf,
    database: Database,
    snapshots: &'static Snapshots,
    layout: &'static RowLayout,
    _alone: Option<Alone>,
}

impl Pruning {
    /// If it is to be written, a transaction is open from then on.
    fn open(file: &Path, dry_run: bool) -> Result<Self, Stop> {
        let found = metadata::at(file).map_err(|cause| Error::new(file, Error::OPEN, cause))?;
        let reading = Database::open(file)?;
        let fail = |error| reading.stop(VERB, error);
        let kind = match reading.kind(KINDS) {
            Err(error) if is_foreign(&error) => None,
            kind => kind.map_err(fail)?,
        };
        let (kind, mend, snapshots, layout) = tried(kind)?;
        if found.nlink() > 1 {
            return Err(stays(format!("it has {} hard links", found.nlink())));
        }
        if dry_run {
            check(&reading, kind, mend, layout)?;
            return Ok(Self { file: file.into(), database: reading, snapshots, layout, _alone: None });
        }
        Database::refuse_damaged(file, FileId::from_metadata(&found))?;
        let alone = Alone::enter(file, mend)?;
        let database = Database::open_to_write(file, FileId::from_metadata(&found), true)?;
        drop(reading);
        step(file, Step::LockRows)?;
        database.begin_alone()?;
        check(&database, kind, mend, layout)?;
        // Nobody else is there to clear its log.
        let ways = "PRAGMA wal_autocheckpoint = 1000";
        database.connection.execute_batch(ways).map_err(|error| database.stop(VERB, error))?;
        Ok(Self { file: file.into(), database, snapshots, layout, _alone: Some(alone) })
    }

    fn fail(&self, error: rusqlite::Error) -> Stop {
        self.database.stop(Database::WRITE, error)
    }

    /// The sessions that have rows here, whether they are there or were deleted.
    fn sessions(&self) -> Result<Vec<String>, Stop> {
        let next = format!("SELECT min(aggregate_id) FROM {} WHERE aggregate_id > ?1", self.layout.table);
        let (mut all, mut at) = (Vec::new(), String::new());
        let ask = |at: &str| first::<String>(&self.database.connection, &next, &[&at]);
        while let Some(id) = ask(&at).map_err(|error| self.fail(error))? {
            all.push(id.clone());
            at = id;
        }
        Ok(all)
    }

    /// Takes out what is superseded in a session, or counts it if there is no vault.
    fn session(&self, session: &str, vault: Option<&Vault>, done: &mut Pruned) -> Result<(), Stop> {
        let (mut superseded, bytes) = self.superseded(session).map_err(|error| self.fail(error))?;
        done.sessions += u64::from(!superseded.is_empty());
        superseded.sort_unstable();
        if superseded.is_empty() {
            return Ok(());
        }
        if let Some(vault) = vault {
            let pending = vault.begin(&session_path(&self.file, session))?;
            let run = pending.keep_rows(|out| self.keep(&superseded, out))?;
            let mut stays = false;
            match self.delete(&superseded, &run, &mut stays) {
                Ok(()) => run.landed(),
                Err(stop) => {
                    if !stays {
                        run.forget();
                    }
                    return Err(stop);
                }
            }
            done.runs.push(run.name().to_string());
        }
        done.rows += superseded.len() as u64;
        done.bytes += bytes;
        Ok(())
    }

    /// The rowids of rows that a newer one supersedes, and how many bytes their data has.
    fn superseded(&self, session: &str) -> SqlResult<(Vec<i64>, u64)> {
        let (table, mut found, mut bytes) = (self.layout.table, Vec::new(), 0);
        for (kind, id) in self.snapshots.types {
            let mut seen: HashSet<String> = HashSet::new();
            let mut before = i64::MAX;
            let sql = format!(
                "SELECT rowid, seq, octet_length(data), CASE WHEN json_valid(data) THEN json_extract(data, '{id}') END \
                 FROM {table} WHERE aggregate_id = ?1 AND type = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT {LOOK_ROWS}"
            );
            let mut statement = self.database.connection.prepare(&sql)?;
            loop {
                let mut rows = statement.query(rusqlite::params![session, kind, before])?;
                let mut read = 0;
                while let Some(row) = rows.next()? {
                    (read, before) = (read + 1, row.get(1)?);
                    let Ok(Some(thing)) = row.get::<_, Option<String>>(3) else { continue };
                    if !seen.insert(thing) {
                        found.push(row.get(0)?);
                        bytes += row.get::<_, i64>(2)?.unsigned_abs();
                    }
                }
                if read < LOOK_ROWS {
                    break;
                }
            }
        }
        Ok((found, bytes))
    }

    fn row(&self, rowid: i64) -> SqlResult<Option<RowCells>> {
        Ok(self.layout.rows(&self.database.connection, "rowid = ?1", &[&rowid])?.pop())
    }

    /// Writes the rows for the vault.
    fn keep(&self, superseded: &[i64], out: &mut dyn Write) -> io::Result<()> {
        for rowid in superseded {
            let old = self.row(*rowid).map_err(io::Error::other)?;
            let edit = RowEdit { layout: self.snapshots.layout, old, new: None };
            writeln!(out, "{}", edit.line(self.layout))?;
        }
        Ok(())
    }

    fn delete(&self, superseded: &[i64], run: &Run, stays: &mut bool) -> Result<(), Stop> {
        let connection = &self.database.connection;
        let mut bytes = 0;
        for rowid in superseded {
            if bytes >= BATCH_BYTES {
                (*stays, bytes) = (true, 0);
                run.landed();
                self.end()?;
                step(&self.file, Step::LockRows)?;
                self.database.begin_alone()?;
            }
            let old = self.row(*rowid).map_err(|error| self.fail(error))?;
            let edit = RowEdit { layout: self.snapshots.layout, old, new: None };
            bytes += edit.len();
            step(&self.file, Step::WriteRow)?;
            match edit.make(self.layout, connection, true).map_err(|error| self.fail(error))? {
                RowMade::Done => {}
                RowMade::Changed => return Err(Deferral::Changed.into()),
                RowMade::Stays(why) => return Err(Refusal::StoreStays(why).into()),
            }
        }
        *stays = true;
        self.end()?;
        self.database.begin_alone()
    }

    /// Ends the transaction, if there is one.
    fn end(&self) -> Result<(), Stop> {
        let connection = &self.database.connection;
        if connection.is_autocommit() {
            return Ok(());
        }
        step(&self.file, Step::CommitRows)?;
        connection.execute_batch("COMMIT").map_err(|error| self.fail(error))
    }
}

/// What is known of rows that are superseded in a kind of store.
fn tried(
    kind: Option<&'static StoreKind>,
) -> Result<(&'static StoreKind, &'static Mend, &'static Snapshots, &'static RowLayout), Stop> {
    let kind = kind.ok_or_else(|| stays("it is no database that Tailor reads".to_string()))?;
    let known = kind.mend.and_then(|mend| {
        let snapshots = mend.snapshots?;
        Some((kind, mend, snapshots, mend.layout(snapshots.layout)?))
    });
    known.ok_or_else(|| {
        stays(format!(
            "nothing in a database of {} is known to be superseded (tailor top says what fills it)",
            kind.agent
        ))
    })
}

/// Asks whether the schema is one that was tried.
fn check(database: &Database, kind: &StoreKind, mend: &Mend, layout: &RowLayout) -> Result<(), Stop> {
    let fail = |error| database.stop(VERB, error);
    if let Some(why) = database.hindrance(kind, mend).map_err(fail)? {
        return Err(stays(why));
    }
    if let Some(column) = database.missing(&[(layout.table, layout.columns)]).map_err(fail)? {
        return Err(stays(format!("{column} is missing")));
    }
    if layout.lacks_some(&database.connection).map_err(fail)? {
        return Err(stays(format!("{} has columns that were not tried", layout.table)));
    }
    Ok(())
}

fn step(file: &Path, step: Step) -> Result<(), Stop> {
    Ok(before(step).map_err(|cause| Error::new(file, Database::WRITE, cause))?)
}

fn stays(why: String) -> Stop {
    Refusal::StoreStays(why).into()
}
