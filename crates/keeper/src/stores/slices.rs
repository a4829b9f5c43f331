//! Reads the rows of a session as of one instant, in transactions of which none is long: a reader keeps the owner from resetting
//! its log (`-wal`).
//!
//! Rows that never change without a new mark are read once. Others are compared again from the first to the last until nothing
//! has changed before the transaction in which that ends. If they change all the time, the last comparison is one transaction.

use super::database::Database;
use super::kind::{Query, RowKey, RowReader, RowTrouble, StoreKind, WriteRow};
use super::lines::{RecordLines, RowStamp, Want};
use rusqlite::{OptionalExtension, Result as SqlResult, Statement, params};
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// How long one transaction may take, and how many rows it reads at most.
const SLICE_MAX: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(1) };
pub(super) const SLICE_ROWS: usize = if cfg!(test) { 500 } else { 100_000 };
/// How many rows are read for one of a session at most: itself, its version, and the message that it belongs to.
const ROWS_PER_KEY: usize = 3;
/// How often rows are compared in short transactions.
const ROUNDS: usize = 3;

/// Reads all rows of a session.
pub(super) fn fill(
    database: &Database,
    kind: &StoreKind,
    session: &str,
    lines: &mut RecordLines,
) -> Result<(), RowTrouble> {
    let salvages = lines.want == Want::Copy;
    let slices = Slices {
        database,
        kind,
        session,
        salvages,
        mark: String::new(),
        since: Cell::new(Instant::now()),
        rows: Cell::new(0),
        cuts: Cell::new(0),
        is_whole: Cell::new(false),
    };
    let order = slices.read(lines);
    // In a damaged database every transaction fails.
    let _ = database.connection.execute_batch("ROLLBACK");
    order?.map_or(Ok(()), |order| Ok(lines.arrange(&order)?))
}

/// Transactions that end after a while.
struct Slices<'s> {
    database: &'s Database,
    kind: &'s StoreKind,
    session: &'s str,
    salvages: bool,
    /// It changes when rows are rewritten.
    mark: String,
    /// When the transaction began, and how many rows it has read.
    since: Cell<Instant>,
    rows: Cell<usize>,
    /// How many transactions have ended.
    cuts: Cell<usize>,
    /// Whether the transaction must not end.
    is_whole: Cell<bool>,
}

impl Slices<'_> {
    /// Reads the rows; gives their order if it is not the one in which they were read.
    fn read(mut self, lines: &mut RecordLines) -> Result<Option<Vec<RowKey>>, RowTrouble> {
        self.begin()?;
        self.mark = self.mark()?;
        let mut rows = SessionRows {
            reader: (self.kind.reader)(&self.database.connection)?,
            stamps: self.stamps()?,
            salvages: self.salvages,
        };
        if let Some((all, write)) = rows.reader.all().filter(|_| !self.salvages) {
            return self.read_all(&all, write, lines).map(|()| None);
        }
        self.each(&mut |key| {
            self.pause(ROWS_PER_KEY)?;
            rows.read(key, lines)
        })?;
        if self.cuts.get() == 0 || self.kind.stamps.is_empty() {
            return Ok(None);
        }
        for round in 0..=ROUNDS {
            self.renew()?;
            self.is_whole.set(round == ROUNDS);
            let (order, is_settled) = self.compare(&mut rows, lines)?;
            if is_settled {
                return Ok(Some(order));
            }
            self.database.connection.execute_batch("ROLLBACK")?;
            lines.arrange(&order)?;
            self.begin()?;
        }
        Err(RowTrouble::Rewritten)
    }

    /// Reads the rows of one query.
    fn read_all(
        &self,
        all: &str,
        mut write: WriteRow<'_>,
        lines: &mut RecordLines,
    ) -> Result<(), RowTrouble> {
        let mut statement = self.database.connection.prepare(all)?;
        let mut after = i64::MIN;
        loop {
            let mut rows = statement.query(params![self.session, after])?;
            let mut is_long = false;
            while !is_long {
                let Some(row) = rows.next()? else { return Ok(()) };
                lines.begin((0, row.get(0)?));
                after = row.get(1)?;
                write(row, lines)?;
                // The row, and its identity.
                is_long = self.is_long(2);
            }
            drop(rows);
            self.renew()?;
        }
    }

    /// Reads again the rows that were added or changed. Gives the order of all, and whether they are as of now.
    fn compare(
        &self,
        rows: &mut SessionRows<'_>,
        lines: &mut RecordLines,
    ) -> Result<(Vec<RowKey>, bool), RowTrouble> {
        let (mut known, mut order, begun) = (lines.read_so_far(), Vec::new(), self.cuts.get());
        // The transaction in which the first change was seen.
        let mut changed = None;
        self.each(&mut |key| {
            self.pause(ROWS_PER_KEY)?;
            order.push(key);
            if known.stamp(key, lines) == Some(rows.stamp(key)?) {
                return Ok(());
            }
            changed.get_or_insert(self.cuts.get());
            rows.read(key, lines)
        })?;
        if known.lacks_some() {
            changed = Some(begun);
        }
        Ok((order, changed.is_none_or(|at| at == self.cuts.get())))
    }

    fn each(&self, each: &mut dyn FnMut(RowKey) -> Result<(), RowTrouble>) -> Result<(), RowTrouble> {
        let (connection, session, salvages) = (&self.database.connection, self.session, self.salvages);
        let query = Query {
            connection,
            session,
            salvages,
            pause: &|rows| self.pause(rows),
            statements: RefCell::default(),
        };
        (self.kind.keys)(&query, each)
    }

    /// Ends the transaction after so many more rows if it gets long, and begins another.
    fn pause(&self, rows: usize) -> Result<(), RowTrouble> {
        if self.is_long(rows) && !self.is_whole.get() { self.renew() } else { Ok(()) }
    }

    /// Whether the transaction is long after so many more rows.
    fn is_long(&self, rows: usize) -> bool {
        self.rows.set(self.rows.get() + rows);
        self.rows.get() >= SLICE_ROWS || self.since.get().elapsed() > SLICE_MAX
    }

    fn begin(&self) -> SqlResult<()> {
        self.since.set(Instant::now());
        self.rows.set(0);
        self.database.connection.execute_batch("BEGIN")
    }

    fn renew(&self) -> Result<(), RowTrouble> {
        self.database.connection.execute_batch("ROLLBACK")?;
        self.begin()?;
        self.cuts.set(self.cuts.get() + 1);
        if self.mark()? == self.mark { Ok(()) } else { Err(RowTrouble::Rewritten) }
    }

    fn mark(&self) -> SqlResult<String> {
        self.database
            .mark(self.kind, self.session)
            .or_else(|error| if self.salvages { Ok(String::new()) } else { Err(error) })
    }

    fn stamps(&self) -> SqlResult<Vec<Statement<'_>>> {
        self.kind.stamps.iter().map(|sql| self.database.connection.prepare(sql)).collect()
    }
}

/// What reads the rows of a session, and asks whether they have changed.
struct SessionRows<'c> {
    reader: Box<dyn RowReader + 'c>,
    stamps: Vec<Statement<'c>>,
    salvages: bool,
}

impl SessionRows<'_> {
    /// Reads a row, with its stamp if rows of this kind have one.
    fn read(&mut self, key: RowKey, lines: &mut RecordLines) -> Result<(), RowTrouble> {
        lines.begin(key);
        if !self.stamps.is_empty() {
            let stamp = self.stamp(key)?;
            lines.stamps.push(stamp);
        }
        match self.reader.row(key, lines) {
            Err(RowTrouble::Database(error)) if self.salvages => {
                lines.lose(format!("row {}: {error}", key.1));
                Ok(())
            }
            done => done,
        }
    }

    fn stamp(&mut self, (table, row): RowKey) -> SqlResult<RowStamp> {
        let Some(statement) = self.stamps.get_mut(usize::from(table)) else { return Ok(0) };
        let numbers =
            |row: &rusqlite::Row<'_>| -> SqlResult<[Option<i64>; 2]> { Ok([row.get(0)?, row.get(1)?]) };
        let found = match statement.query_row([row], numbers).optional() {
            Err(_) if self.salvages => None,
            found => found?,
        };
        let mut hasher = DefaultHasher::new();
        found.hash(&mut hasher);
        Ok(hasher.finish())
    }
}
