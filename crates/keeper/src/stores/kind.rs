//! Describes a kind of store: its tables, its queries, and how its rows are written.

use super::lines::RecordLines;
use super::rows::{RowCell, RowCells, RowEdit, RowLayout};
use rusqlite::{Connection, Result as SqlResult, Row, Statement, ToSql};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A kind of store.
pub(super) struct StoreKind {
    /// The agent that owns it.
    pub(super) agent: &'static str,
    /// The tables and columns that identify it and are read.
    pub(super) tables: Tables,
    /// A query for the sessions: their ids, and when each was last written, in milliseconds.
    pub(super) sessions: &'static str,
    /// A query for the sessions from the rows alone, for a store that is damaged.
    pub(super) sessions_by_rows: &'static str,
    /// A query for a text that changes when rows of a session (`?1`) are rewritten, and stays the same when rows are added.
    /// `None` if rows are rewritten at any time, which their stamps show.
    pub(super) mark: Option<&'static str>,
    /// For each table of a [`RowKey`], a query for two numbers, one of which changes when the row does (rowid `?1`). Empty if rows
    /// never change without a rewrite.
    pub(super) stamps: &'static [&'static str],
    /// A query for the version of the schema, if the owner keeps one.
    pub(super) version: Option<&'static str>,
    /// The tested versions.
    pub(super) tried: &'static [&'static str],
    /// Takes the rows of a session, in the order of the conversation.
    pub(super) keys: fn(&Query<'_>, EachRow<'_>) -> Result<(), RowTrouble>,
    pub(super) reader: for<'c> fn(&'c Connection) -> SqlResult<Box<dyn RowReader + 'c>>,
    /// Tables without sessions that may fill the database: what they hold, and what to do about it.
    pub(super) fillers: &'static [(&'static str, &'static str)],
    /// How much of a session the owner loads, if that is bounded.
    pub(super) load: Option<&'static LoadRule>,
    /// How its rows are written; `None` if they are only read.
    pub(super) mend: Option<&'static Mend>,
}

/// How much of a session its owner loads, from the newest row back.
pub(super) struct LoadRule {
    /// A query for the context window that a session (`?1`) records, in tokens.
    pub(super) window: &'static str,
    pub(super) bytes_per_token: u64,
    /// Most bytes and rows, whatever the window.
    pub(super) bytes_max: u64,
    pub(super) rows_max: u64,
    /// The longest results that the owner keeps, in characters, with windows of at least so many tokens; the largest windows first.
    pub(super) results: &'static [(u64, u64)],
}

/// Rows of which only the newest about each thing is needed.
pub(super) struct Snapshots {
    /// The number of their layout, which has the columns `id`, `aggregate_id`, `seq`, `type` and `data`.
    pub(super) layout: u8,
    /// Their types, and where in the data the id of the thing is.
    pub(super) types: &'static [(&'static str, &'static str)],
}

/// How rows are written. While the owner runs, only texts of results are shortened or restored, each within its row. All other
/// changes wait until the owner is stopped.
pub(super) struct Mend {
    /// The agent that owns it, for messages.
    pub(super) owner: &'static str,
    /// The tables and columns that are written, besides those that identify the kind.
    pub(super) tables: Tables,
    /// Note on the repairs that are not made while the owner runs.
    pub(super) only: &'static str,
    /// Note on rows that would have to be added.
    pub(super) no_rows: &'static str,
    /// The file of the owner's lock, if it has one: a database that it keeps locked while it runs.
    pub(super) lock: fn(&Path) -> Option<PathBuf>,
    /// The columns of rows. Rows of a session are numbered as in their [`RowKey`].
    pub(super) layouts: &'static [(u8, RowLayout)],
    /// Where in a record the JSON of its row is.
    pub(super) json: fn(&[u8]) -> Option<Range<usize>>,
    /// Removes the texts of a settled result; `None` if the row is not a settled result.
    pub(super) blank: fn(&mut Value) -> Option<()>,
    /// The JSON of a row, or what is read instead if its owner cannot read it.
    pub(super) read: fn(&[RowCell]) -> Option<Vec<u8>>,
    /// Replaces the JSON of a row, as the owner would store it.
    pub(super) put: fn(&Connection, &mut [RowCell], &str) -> SqlResult<()>,
    /// Reconstructs the JSON of an unreadable row from other rows.
    pub(super) known: fn(&RowPlace<'_>) -> SqlResult<Option<String>>,
    /// What else has to be written if these rows change; `None` if nothing depends on them.
    pub(super) links: Option<Links>,
    /// Rows beside the sessions of which only the newest are needed, if there are any.
    pub(super) snapshots: Option<&'static Snapshots>,
    /// The triggers that the owner has on tables that are written. None of them acts on what is written.
    pub(super) triggers: &'static [&'static str],
    /// Writes what is written when all rows are, and counts the rows.
    pub(super) seal: fn(&Connection, &str) -> SqlResult<usize>,
}

/// Finds the edits before and after those of the rows.
pub(super) type Links = fn(&Connection, &str, &[Turned]) -> Result<Around, Unlinked>;

/// Why no edits go with those of the rows.
pub(super) enum Unlinked {
    /// The rows have to stay, for this reason.
    Stays(&'static str),
    Sql(rusqlite::Error),
}

impl From<&'static str> for Unlinked {
    fn from(why: &'static str) -> Self {
        Self::Stays(why)
    }
}

impl From<rusqlite::Error> for Unlinked {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Edits before those of the rows, and after them.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub(super) before: Vec<RowEdit>,
    pub(super) after: Vec<RowEdit>,
}

/// A row that changes, and its new JSON; `None` if it is deleted.
pub(super) struct Turned {
    pub(super) row: RowCells,
    pub(super) new: Option<Value>,
}

/// Empties all texts in a value. Numbers, names and structure stay, so that values which differ only in texts become equal.
pub(super) fn blank_texts(value: &mut Value) {
    match value {
        Value::String(text) => text.clear(),
        Value::Array(values) => values.iter_mut().for_each(blank_texts),
        Value::Object(values) => values.values_mut().for_each(blank_texts),
        _ => {}
    }
}

impl Mend {
    pub(super) fn layout(&self, number: u8) -> Option<&'static RowLayout> {
        self.layouts.iter().find(|(own, _)| *own == number).map(|(_, layout)| layout)
    }
}

/// Tables, each with columns.
pub(super) type Tables = &'static [(&'static str, &'static [&'static str])];

/// A row of a session.
pub(super) struct RowPlace<'p> {
    pub(super) connection: &'p Connection,
    pub(super) session: &'p str,
    pub(super) key: RowKey,
}

/// A row: a table of the kind's, and the rowid.
pub(super) type RowKey = (u8, i64);

/// Reads rows one by one.
pub(super) trait RowReader {
    /// Writes the record, or the records, of a row.
    fn row(&mut self, key: RowKey, out: &mut RecordLines) -> Result<(), RowTrouble>;

    /// For rows of one table that never change without a rewrite: a query for all rows of a session (`?1`) after a position
    /// (`?2`), and what writes their records. The query yields the rowid, the position and the columns that are written.
    fn all(&mut self) -> Option<(String, WriteRow<'_>)> {
        None
    }
}

/// Writes the record of a row.
pub(super) type WriteRow<'w> = Box<dyn FnMut(&Row<'_>, &mut RecordLines) -> Result<(), RowTrouble> + 'w>;

/// Why a row cannot be read.
#[derive(Debug)]
pub(super) enum RowTrouble {
    Database(rusqlite::Error),
    Output(io::Error),
    /// They were rewritten between two transactions.
    Rewritten,
}

impl From<rusqlite::Error> for RowTrouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<io::Error> for RowTrouble {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Takes a row.
pub(super) type EachRow<'e> = &'e mut dyn FnMut(RowKey) -> Result<(), RowTrouble>;

/// Rows of a table in an order in which reading can go on after any of them.
pub(super) struct RowOrder {
    /// The table, and a condition with the parameter `?1`.
    pub(super) rows: &'static str,
    /// The columns by which they are ordered, of which no two rows have the same values.
    pub(super) by: &'static [&'static str],
    /// Which of them are taken; an expression.
    pub(super) only: &'static str,
}

/// How many rows of an order are read at once.
pub(super) const PAGE_ROWS: usize = if cfg!(test) { 100 } else { 10_000 };

/// The session to read.
pub(super) struct Query<'q> {
    pub(super) connection: &'q Connection,
    pub(super) session: &'q str,
    /// Whether to go on if the database is damaged.
    pub(super) salvages: bool,
    /// Told after so many rows were read, where the transaction may end and another one begin.
    pub(super) pause: &'q dyn Fn(usize) -> Result<(), RowTrouble>,
    /// Statements that are used again: there is one for each message.
    pub(super) statements: RefCell<HashMap<String, Statement<'q>>>,
}

impl Query<'_> {
    /// Takes the rows of a table of this session.
    pub(super) fn each(&self, table: u8, order: &RowOrder, each: EachRow<'_>) -> Result<(), RowTrouble> {
        self.rows_of(order, &self.session, &mut |row| each((table, row)))
    }

    /// Takes the rowids; in a damaged database, those that are readable from either end.
    pub(super) fn rows_of(
        &self,
        order: &RowOrder,
        of: &dyn ToSql,
        each: &mut dyn FnMut(i64) -> Result<(), RowTrouble>,
    ) -> Result<(), RowTrouble> {
        let mut known = HashSet::new();
        let error = self.as_far_as(order, true, of, &mut |row| {
            if self.salvages {
                known.insert(row);
            }
            each(row)
        })?;
        match error {
            None => Ok(()),
            Some(error) if !self.salvages => Err(error.into()),
            Some(_) => {
                let mut end = Vec::new();
                self.as_far_as(order, false, of, &mut |row| {
                    end.extend(Some(row).filter(|row| !known.contains(row)));
                    Ok(())
                })?;
                end.into_iter().rev().try_for_each(each)
            }
        }
    }

    /// Takes the rowids up to the end, or to where the database is damaged.
    fn as_far_as(
        &self,
        order: &RowOrder,
        ascends: bool,
        of: &dyn ToSql,
        each: &mut dyn FnMut(i64) -> Result<(), RowTrouble>,
    ) -> Result<Option<rusqlite::Error>, RowTrouble> {
        let (mut after, mut read): (RowCells, usize) = (Vec::new(), 0);
        loop {
            let mut page = RowPage::default();
            let error = self.page(&order.sql(ascends, &after, read), of, &mut after, &mut page).err();
            read += page.read;
            (self.pause)(page.read)?;
            page.rows.into_iter().try_for_each(&mut *each)?;
            if page.read < PAGE_ROWS || error.is_some() {
                return Ok(error);
            }
        }
    }

    /// Reads rowids after some values, which become those of the last row.
    fn page(&self, sql: &str, of: &dyn ToSql, after: &mut RowCells, page: &mut RowPage) -> SqlResult<()> {
        let known = self.statements.borrow_mut().remove(sql);
        let mut statement = known.map_or_else(|| self.connection.prepare(sql), Ok)?;
        let count = statement.column_count();
        statement.raw_bind_parameter(1, of)?;
        for at in 2..=statement.parameter_count() {
            statement.raw_bind_parameter(at, &after[at - 2])?;
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            page.read += 1;
            if row.get(count - 1)? {
                page.rows.push(row.get(0)?);
            }
            if page.read == PAGE_ROWS {
                *after =
                    (1..count - 1).map(|at| row.get_ref(at).map(RowCell::from)).collect::<SqlResult<_>>()?;
            }
        }
        drop(rows);
        self.statements.borrow_mut().insert(sql.to_string(), statement);
        Ok(())
    }
}

/// Rowids that are taken, and how many rows were read for that.
#[derive(Default)]
struct RowPage {
    rows: Vec<i64>,
    read: usize,
}

impl RowOrder {
    pub(super) const fn all(rows: &'static str, by: &'static [&'static str]) -> Self {
        Self { rows, by, only: "1" }
    }

    /// A query for rowids, and for the values by which they are ordered.
    fn sql(&self, ascends: bool, after: &[RowCell], read: usize) -> String {
        let (than, way) = if ascends { (">", "ASC") } else { ("<", "DESC") };
        let (all, columns, only) = (self.rows, self.by.join(", "), self.only);
        let ordered: Vec<String> = self.by.iter().map(|column| format!("{column} {way}")).collect();
        let ordered = ordered.join(", ");
        // Nothing comes after an unknown value.
        let (from, skipped) = if after.is_empty() || after.contains(&RowCell::Null) {
            (String::new(), read)
        } else {
            let marks: Vec<String> = (2..).take(after.len()).map(|mark| format!("?{mark}")).collect();
            (format!(" AND ({columns}) {than} ({})", marks.join(", ")), 0)
        };
        format!(
            "SELECT rowid, {columns}, {only} FROM {all}{from} ORDER BY {ordered} LIMIT {PAGE_ROWS} OFFSET {skipped}"
        )
    }
}
