//! Stored rows and edits of them. An edit is made only if the row is unchanged since it was read.
//!
//! The vault keeps the edits of a run, one a line, in the order in which they are undone: the whole old row, and a hash of the
//! new one.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Result as SqlResult, Row, ToSql, params_from_iter};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;

/// A table, and the columns of its rows.
pub(super) struct RowLayout {
    pub(super) table: &'static str,
    /// The first ones are its key.
    pub(super) columns: &'static [&'static str],
    /// How many columns the key has.
    pub(super) keys: usize,
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowCell {
    Null,
    Integer(i64),
    /// The bits of a number.
    Real(u64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

/// The values of a row, in the order of its layout.
pub(super) type RowCells = Vec<RowCell>;

impl RowCell {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }

    pub(super) fn integer(number: usize) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(super) fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { std::str::from_utf8(text).ok() } else { None }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(bytes) | Self::Blob(bytes) => bytes.len(),
            _ => size_of::<i64>(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Integer(number) => json!(number),
            Self::Real(bits) => json!({ "real": bits }),
            Self::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => json!(text),
                Err(_) => json!({ "text": hex(text) }),
            },
            Self::Blob(bytes) => json!({ "blob": hex(bytes) }),
        }
    }

    fn of_json(value: &Value) -> Option<Self> {
        let bytes = |name| unhex(value.get(name)?.as_str()?);
        Some(match value {
            Value::Null => Self::Null,
            Value::Number(number) => Self::Integer(number.as_i64()?),
            Value::String(text) => Self::text(text),
            Value::Object(_) => bytes("blob")
                .map(Self::Blob)
                .or_else(|| bytes("text").map(Self::Text))
                .or_else(|| Some(Self::Real(value.get("real")?.as_u64()?)))?,
            _ => return None,
        })
    }
}

impl From<ValueRef<'_>> for RowCell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number.to_bits()),
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for RowCell {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(bits) => ValueRef::Real(f64::from_bits(*bits)),
            Self::Text(text) => ValueRef::Text(text),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl RowLayout {
    /// The rows that match a condition.
    pub(super) fn rows(
        &self,
        connection: &Connection,
        condition: &str,
        of: &[&dyn ToSql],
    ) -> SqlResult<Vec<RowCells>> {
        let (columns, table) = (self.columns.join(", "), self.table);
        let mut found = connection.prepare(&format!("SELECT {columns} FROM {table} WHERE {condition}"))?;
        let cells = |row: &Row<'_>| (0..self.columns.len()).map(|at| Ok(row.get_ref(at)?.into())).collect();
        found.query_map(of, cells)?.collect()
    }

    /// The row with this key.
    fn row(&self, connection: &Connection, key: &[RowCell]) -> SqlResult<Option<RowCells>> {
        let named: Vec<&dyn ToSql> = key.iter().take(self.keys).map(|cell| cell as &dyn ToSql).collect();
        Ok(self.rows(connection, &self.naming(0), &named)?.pop())
    }

    fn naming(&self, before: usize) -> String {
        let named = self.columns.iter().take(self.keys).enumerate();
        named.map(|(at, column)| format!("{column} = ?{}", before + at + 1)).collect::<Vec<_>>().join(" AND ")
    }

    /// Whether the table has other columns too.
    pub(super) fn lacks_some(&self, connection: &Connection) -> SqlResult<bool> {
        const COUNT: &str = "SELECT count(*) FROM pragma_table_info(?1)";
        let count: i64 = connection.query_row(COUNT, [self.table], |row| row.get(0))?;
        Ok(usize::try_from(count) != Ok(self.columns.len()))
    }
}

/// A change of a row. Without old values the row is added, and without new ones it is deleted.
#[derive(Clone, Debug)]
pub(super) struct RowEdit {
    /// The number of its layout.
    pub(super) layout: u8,
    pub(super) old: Option<RowCells>,
    pub(super) new: Option<RowCells>,
}

impl RowEdit {
    /// Its size in bytes.
    pub(super) fn len(&self) -> usize {
        self.old.iter().chain(&self.new).flatten().map(RowCell::len).sum()
    }

    /// How many bytes fewer the row then has.
    pub(super) fn saved(&self) -> isize {
        let length = |row: &Option<Vec<RowCell>>| row.iter().flatten().map(RowCell::len).sum::<usize>();
        length(&self.old).cast_signed() - length(&self.new).cast_signed()
    }

    /// Makes the edit if the row is unchanged, nothing else in the database changes with it, and, if it is to be undone one day, the
    /// old row can be written back: its owner may have written it damaged, which is noticed only when it is written.
    pub(super) fn make(
        &self,
        layout: &RowLayout,
        connection: &Connection,
        must_go_back: bool,
    ) -> SqlResult<RowMade> {
        let before = connection.total_changes();
        let (old, new) = (self.old.as_ref(), self.new.as_ref());
        if !set_row(layout, connection, old, new)? {
            return Ok(RowMade::Changed);
        }
        let table = layout.table;
        if connection.total_changes() - before > u64::from(old.is_some() || new.is_some()) {
            return Ok(RowMade::Stays(format!(
                "other rows would change with one of {table}, by a trigger or a foreign key, and undo could not put them back"
            )));
        }
        if !must_go_back {
            return Ok(RowMade::Done);
        }
        connection.execute_batch("SAVEPOINT back")?;
        let back = set_row(layout, connection, new, old);
        connection.execute_batch("ROLLBACK TO back; RELEASE back")?;
        match back {
            Ok(true) => Ok(RowMade::Done),
            Ok(false) => Ok(RowMade::Stays(format!("undo would not find a row of {table} again"))),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(RowMade::Stays(format!(
                    "a row of {table} is damaged, and undo could not write it back as it is: {error}"
                )))
            }
            Err(error) => Err(error),
        }
    }

    /// Its line in the vault.
    pub(super) fn line(&self, layout: &RowLayout) -> String {
        let all = |cells: &RowCells| cells.iter().map(RowCell::json).collect::<Vec<_>>();
        let kept = EditLine {
            layout: self.layout,
            key: self.old.iter().chain(&self.new).flatten().take(layout.keys).map(RowCell::json).collect(),
            old: self.old.as_ref().map(all),
            new: self.new.as_ref().map(hash),
        };
        serde_json::to_string(&kept).unwrap_or_default()
    }
}

/// What came of an edit. Unless it is done, the transaction must not be committed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowMade {
    Done,
    /// The row is not the one that was read.
    Changed,
    /// Why the rows have to stay.
    Stays(String),
}

/// Writes a row in the place of another, if that is as it was; `None` for no row.
fn set_row(
    layout: &RowLayout,
    connection: &Connection,
    old: Option<&RowCells>,
    new: Option<&RowCells>,
) -> SqlResult<bool> {
    let RowLayout { table, columns, keys } = *layout;
    let numbered = |from: usize, columns: &[&str], how: &str, between: &str| {
        let one = |(at, column): (usize, &&str)| format!("{column} {how} ?{}", from + at + 1);
        columns.iter().enumerate().map(one).collect::<Vec<_>>().join(between)
    };
    let is_old = |from| numbered(from, columns, "IS", " AND ");
    let (sql, cells): (String, Vec<&RowCell>) = match (old, new) {
        (Some(old), Some(new)) => {
            let set = numbered(0, &columns[keys..], "=", ", ");
            let sql = format!("UPDATE {table} SET {set} WHERE {}", is_old(columns.len() - keys));
            (sql, new[keys..].iter().chain(old).collect())
        }
        (Some(old), None) => (format!("DELETE FROM {table} WHERE {}", is_old(0)), old.iter().collect()),
        (None, Some(new)) => {
            let marks = (1..=columns.len()).map(|at| format!("?{at}")).collect::<Vec<_>>().join(", ");
            let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", "));
            (sql, new.iter().collect())
        }
        (None, None) => return Ok(true),
    };
    let mut statement = connection.prepare(&sql)?;
    Ok(statement.execute(params_from_iter(cells))? == 1)
}

#[derive(Serialize, Deserialize)]
struct EditLine {
    layout: u8,
    key: Vec<Value>,
    old: Option<Vec<Value>>,
    new: Option<String>,
}

/// An edit that an earlier run made.
pub(super) struct MadeEdit {
    pub(super) layout: u8,
    pub(super) key: RowCells,
    old: Option<RowCells>,
    new: Option<String>,
}

impl MadeEdit {
    pub(super) fn of_line(line: &str) -> io::Result<Self> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "a row in the vault is no row");
        let EditLine { layout, key, old, new } = serde_json::from_str(line)?;
        let cells = |values: Vec<Value>| -> io::Result<RowCells> {
            values.iter().map(|value| RowCell::of_json(value).ok_or_else(broken)).collect()
        };
        Ok(Self { layout, key: cells(key)?, old: old.map(cells).transpose()?, new })
    }

    /// What takes it back; `None` if the row has changed since. A row that went and is there again as it was stays.
    pub(super) fn back(self, layout: &RowLayout, connection: &Connection) -> SqlResult<Option<RowEdit>> {
        let now = layout.row(connection, &self.key)?;
        if self.new.is_none() && now.is_some() && now == self.old {
            return Ok(Some(RowEdit { layout: self.layout, old: None, new: None }));
        }
        let is_same = now.as_ref().map(hash) == self.new;
        Ok(is_same.then_some(RowEdit { layout: self.layout, old: now, new: self.old }))
    }
}

fn hash(cells: &RowCells) -> String {
    let all: Vec<Value> = cells.iter().map(RowCell::json).collect();
    blake3::hash(Value::from(all).to_string().as_bytes()).to_hex()[..32].to_string()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|half| char::from_digit(half.into(), 16))
        .collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    text.as_bytes().chunks(2).map(pair).collect()
}

/// A row by its number in the table.
pub(super) fn at(
    layout: &RowLayout,
    connection: &Connection,
    session: &str,
    row: i64,
) -> SqlResult<Option<RowCells>> {
    Ok(layout.rows(connection, "rowid = ?1 AND session_id = ?2", &[&row, &session])?.pop())
}

/// The first value that a query yields for a session.
pub(super) fn first<T: rusqlite::types::FromSql>(
    connection: &Connection,
    sql: &str,
    of: &[&dyn ToSql],
) -> SqlResult<Option<T>> {
    let found = connection.prepare(sql)?.query_row(of, |row| row.get::<_, Option<T>>(0)).optional()?;
    Ok(found.flatten())
}
