//! Measures what fills a database: exactly if it is small, by samples if reading all of it would take too long.

use super::database::{COUNTED_BYTES_MAX, Database, entered, is_foreign};
use super::kind::StoreKind;
use super::kinds::KINDS;
use crate::ask::error::Error;
use crate::places::found::Fill;
use crate::places::store::beside;
use crate::platform::metadata;
use rusqlite::{Connection, OptionalExtension, Result as SqlResult, Statement};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to take samples, and how many of a table at most.
const SAMPLE_TIME: Duration = Duration::from_millis(1_500);
const SAMPLES_MAX: u32 = 400;
/// How exactly parts of bytes are counted.
const FRACTION_BITS: u32 = 16;
/// Longer search indexes are not checked.
const INDEX_BYTES_MAX: u64 = 16 << 20;
/// A remark is made if something takes this share of the database, and this many bytes.
const REMARK_PERCENT_MIN: u64 = 20;
const REMARK_BYTES_MIN: u64 = 10 << 20;

/// What fills a database. `None` if it is not a known store.
///
/// # Errors
///
/// When the database cannot be read.
pub fn measure_store(file: &Path) -> Result<Option<Fill>, Error> {
    const VERB: &str = "measure the database";
    let _acting = entered(file)?;
    let database = Database::open(file)?;
    let kind = match database.kind(KINDS) {
        Ok(Some(kind)) => kind,
        Ok(None) => return Ok(None),
        Err(error) if is_foreign(&error) => return Ok(None),
        Err(error) => return Err(database.unlisted(VERB, error)),
    };
    let length = |path: &Path| metadata::at(path).map_or(0, |there| there.len());
    let log = length(&beside(file, "-wal"));
    let damage = database.damage().map_err(|error| database.error(VERB, error))?;
    let known = Fill { file: file.to_path_buf(), log, bytes: length(file), ..Fill::default() };
    let mut measured = match measure(&database.connection, known.clone()) {
        Err(_) if damage.is_some() => known,
        found => found.map_err(|error| database.error(VERB, error))?,
    };
    measured.agent = kind.agent;
    measured.remark(kind);
    if measured.is_exact {
        measured.remarks.extend(damaged_indexes(&database.connection, &measured));
    }
    measured.remarks.extend(damage);
    measured.remarks.extend(database.lost_log());
    Ok(Some(measured))
}

fn measure(connection: &Connection, mut fill: Fill) -> SqlResult<Fill> {
    let pragma = |name: &str| -> SqlResult<u64> {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let page = pragma("page_size")?;
    fill.bytes = pragma("page_count")? * page;
    fill.free = pragma("freelist_count")? * page;
    fill.is_exact = fill.bytes <= COUNTED_BYTES_MAX;
    fill.tables = if fill.is_exact { counted(connection)? } else { estimated(connection)? };
    fill.tables.retain(|(_, bytes)| *bytes > 0);
    fill.tables.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
    Ok(fill)
}

impl Fill {
    fn remark(&mut self, kind: &StoreKind) {
        let is_much =
            |bytes: u64| bytes >= REMARK_BYTES_MIN && bytes * 100 >= self.bytes * REMARK_PERCENT_MIN;
        let tables = self.tables.iter().filter(|(_, bytes)| is_much(*bytes));
        let about = |(name, _): &(String, u64)| {
            kind.fillers.iter().find(|(table, _)| table == name).map(|(_, what)| format!("{name}: {what}"))
        };
        let mut remarks: Vec<String> = tables.filter_map(about).collect();
        if is_much(self.free) {
            remarks.push(format!(
                "free pages: SQLite uses them for what comes next. To give them back to the disk, stop {} and run VACUUM, which \
                 needs about {} MB of free space beside the database",
                kind.agent,
                (self.bytes - self.free).div_ceil(1_000_000)
            ));
        }
        if self.log >= REMARK_BYTES_MIN && self.log >= self.bytes / 2 {
            remarks.push(format!(
                "-wal: it goes back into the database when {} ends or has a quiet moment; a copy without it lacks what was written \
                 last",
                kind.agent
            ));
        }
        self.remarks = remarks;
    }
}

/// What is wrong with indexes for searching: SQLite checks them against the rows, which takes about a second for each 16 MB.
fn damaged_indexes(connection: &Connection, fill: &Fill) -> Vec<String> {
    const INDEXES: &str = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual'";
    let names = connection
        .prepare(INDEXES)
        .and_then(|mut list| list.query_map([], |row| row.get(0))?.collect::<SqlResult<Vec<String>>>());
    let is_short = |name: &String| {
        let own = fill.tables.iter().filter(|(table, _)| table.starts_with(&format!("{name}_")));
        own.map(|(_, bytes)| bytes).sum::<u64>() <= INDEX_BYTES_MAX
    };
    let wrong = |name: String| {
        let check = "SELECT integrity_check FROM pragma_integrity_check(?1)";
        let said: String = connection.query_row(check, [&name], |row| row.get(0)).ok()?;
        // A tokenizer that only the owner has is not damage.
        let is_damaged = said != "ok" && said.contains("malformed");
        is_damaged.then(|| {
            format!(
                "{name}: this index for searching is damaged ({said}), so {} may fail when it writes; the sessions are read as they \
                 are. To build it anew, stop {} and run: sqlite3 FILE \"INSERT INTO {name}({name}) VALUES('rebuild')\"",
                fill.agent, fill.agent
            )
        })
    };
    names.unwrap_or_default().into_iter().filter(is_short).filter_map(wrong).collect()
}

/// The bytes of all pages of each table and its indexes.
fn counted(connection: &Connection) -> SqlResult<Vec<(String, u64)>> {
    const PAGES: &str = "SELECT coalesce(s.tbl_name, d.name), sum(d.pgsize) FROM dbstat AS d \
                         LEFT JOIN sqlite_schema AS s ON s.name = d.name WHERE d.aggregate = TRUE GROUP BY 1";
    let mut pages = connection.prepare(PAGES)?;
    pages.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?.collect()
}

/// An estimate of the bytes of the rows of each table. Each transaction reads one row.
fn estimated(connection: &Connection) -> SqlResult<Vec<(String, u64)>> {
    const TABLES: &str = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') \
                          AND wr = 0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut list = connection.prepare(TABLES)?;
    let names: Vec<String> = list.query_map([], |row| row.get(0))?.collect::<SqlResult<_>>()?;
    let mut samples = Vec::new();
    for name in names {
        samples.extend(Sample::read(connection, &name)?.map(|sample| (name, sample)));
    }
    let until = Instant::now() + SAMPLE_TIME;
    for n in 1..=SAMPLES_MAX {
        // Each table gets at least one sample, however long that takes.
        for (_, sample) in samples.iter_mut().take_while(|_| n == 1 || Instant::now() < until) {
            sample.take(n)?;
        }
    }
    Ok(samples.into_iter().map(|(name, sample)| (name, sample.bytes())).collect())
}

/// Samples rows of a table, evenly between its first and its last rowid.
struct Sample<'c> {
    at: Statement<'c>,
    before: Statement<'c>,
    first: i64,
    /// From the first rowid to the last.
    range: i64,
    places: u64,
    /// The bytes of the sampled rows, each divided by the number of places that lead to it.
    found: u128,
}

impl<'c> Sample<'c> {
    fn read(connection: &'c Connection, table: &str) -> SqlResult<Option<Self>> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let columns: Vec<String> = columns.query_map([table], |row| row.get(0))?.collect::<SqlResult<_>>()?;
        // The lengths of all values are at the beginning of a row.
        let lengths: Vec<String> =
            columns.iter().map(|name| format!("coalesce(octet_length({}), 0)", quoted(name))).collect();
        let (table, length) = (quoted(table), lengths.join(" + "));
        let ends = format!("SELECT (SELECT min(rowid) FROM {table}), (SELECT max(rowid) FROM {table})");
        let ends = connection.query_row(&ends, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (Some(first), Some(last)): (Option<i64>, Option<i64>) = ends else { return Ok(None) };
        let at = format!("SELECT rowid, {length} FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
        let before = format!("SELECT max(rowid) FROM {table} WHERE rowid < ?1");
        Ok(Some(Self {
            at: connection.prepare(&at)?,
            before: connection.prepare(&before)?,
            first,
            range: last.saturating_sub(first).saturating_add(1),
            places: 0,
            found: 0,
        }))
    }

    /// Samples the next place. Each round halves the distance between places, so that sampling can stop at any time.
    fn take(&mut self, n: u32) -> SqlResult<()> {
        let place = (i128::from(self.range) * i128::from(n.reverse_bits())) >> u32::BITS;
        let place = self.first.saturating_add(i64::try_from(place).unwrap_or(i64::MAX));
        let row = self.at.query_row([place], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        let Some((id, bytes)) = row.optional()? else { return Ok(()) };
        let before: Option<i64> = self.before.query_row([id], |row| row.get(0))?;
        let leads = before.map_or(1, |before| id.saturating_sub(before)).unsigned_abs().max(1);
        self.places += 1;
        self.found += (u128::from(bytes.unsigned_abs()) << FRACTION_BITS) / u128::from(leads);
        Ok(())
    }

    /// An estimate of the bytes of all rows.
    fn bytes(self) -> u64 {
        let all = (self.found * u128::from(self.range.unsigned_abs())).checked_div(u128::from(self.places));
        u64::try_from(all.unwrap_or(0) >> FRACTION_BITS).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = "
        CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, time_updated integer);
        CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
        CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);
        CREATE TABLE event (id text PRIMARY KEY, aggregate_id text, seq integer, type text, data text);
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 3000)
        INSERT INTO event SELECT 'evt_' || n, 's', n, 'message.part.updated.1', hex(zeroblob(CASE WHEN n % 10 = 0 THEN 20000 ELSE 200 END)) FROM n;
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 500)
        INSERT INTO part SELECT 'prt_' || n, 'm', 's', 0, 0, hex(zeroblob(500)) FROM n;";

    #[test]
    fn what_fills_a_database_is_counted_and_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("opencode.db");
        let store = Connection::open(&path).unwrap();
        store.execute_batch(EVENTS).unwrap();
        let full = measure_store(&path).unwrap().unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        assert_eq!((full.agent, full.bytes, full.free, full.is_exact), ("OpenCode", length, 0, true));
        assert_eq!(full.tables[0].0, "event");
        assert_eq!(full.tables.iter().map(|(_, bytes)| bytes).sum::<u64>(), length, "{:?}", full.tables);
        assert!(
            full.remarks.len() == 1 && full.remarks[0].starts_with("event: a copy"),
            "{:?}",
            full.remarks
        );
        store.execute_batch("DELETE FROM event").unwrap();
        let emptied = measure_store(&path).unwrap().unwrap();
        assert!(emptied.free > length / 2 && emptied.bytes == length, "{emptied:?}");
        assert!(emptied.remarks.len() == 1 && emptied.remarks[0].contains("VACUUM"), "{:?}", emptied.remarks);
    }

    #[test]
    fn an_index_that_is_damaged_alone_is_named_and_so_is_a_log_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("opencode.db");
        let store = Connection::open(&path).unwrap();
        store.execute_batch(&format!("PRAGMA journal_mode = WAL; {EVENTS}")).unwrap();
        let texts = "CREATE VIRTUAL TABLE found USING fts5(text); INSERT INTO found VALUES ('list files'), ('thanks');
                     CREATE VIRTUAL TABLE other USING fts5(text, tokenize = trigram); INSERT INTO other VALUES ('list files')";
        store.execute_batch(texts).unwrap();
        store.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let remarks = |path: &Path| measure_store(path).unwrap().unwrap().remarks;
        assert_eq!(remarks(&path).len(), 1);
        store
            .execute_batch("DELETE FROM found_content WHERE id = 2; PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        let before = std::fs::read(&path).unwrap();
        let said = remarks(&path);
        assert!(
            said.len() == 2 && said[1].starts_with("found: ") && said[1].contains("'rebuild'"),
            "{said:?}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
        store.execute_batch("INSERT INTO session VALUES ('late', NULL, '/w', 't', '1', 1)").unwrap();
        let copy = dir.path().join("copy.db");
        for end in ["", "-shm"] {
            std::fs::copy(beside(&path, end), beside(&copy, end)).unwrap();
        }
        let said = remarks(&copy);
        assert!(said.len() == 3 && said[2].starts_with("its -wal was taken away"), "{said:?}");
        assert_eq!(remarks(&path).len(), 2);
        drop(store);
    }

    #[test]
    fn samples_come_close_also_where_rows_are_gone() {
        let store = Connection::open_in_memory().unwrap();
        store.execute_batch(EVENTS).unwrap();
        let close = |table: &str| {
            let all = estimated(&store).unwrap();
            let (_, about) = all.iter().find(|(name, _)| name == table).unwrap();
            let exact = format!("SELECT coalesce(sum(length(data)), 0) FROM {table}");
            let exact: u64 = store.query_row(&exact, [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs();
            assert!(*about > exact * 7 / 10 && *about < exact * 14 / 10, "{table}: {about}, {exact}");
        };
        close("event");
        close("part");
        // Three quarters of the numbers are gone, in one piece and one by one.
        store.execute_batch("DELETE FROM event WHERE rowid BETWEEN 500 AND 1999 OR rowid % 3 = 1").unwrap();
        close("event");
        store.execute_batch("DELETE FROM part").unwrap();
        assert!(estimated(&store).unwrap().iter().all(|(name, _)| name != "part"));
    }
}
