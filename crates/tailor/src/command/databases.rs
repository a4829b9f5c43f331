//! What `top` and `doctor` say of the databases that sessions are in: what fills them, and what helps.

use crate::amount::{grouped, size};
use crate::place::{portable_text, shown};
use crate::say::eprint_message;
use crate::table::{TableRow, TableWriter};
use crate::terminal;
use keeper::{Error, Fill, is_stored, measure_store, store_file};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How many tables are listed.
const TABLES: usize = 8;

/// What fills the databases in which these sessions are. A user who asked for a session alone gets nothing.
pub(super) fn measure<'p>(paths: impl Iterator<Item = &'p Path>, asked: &[PathBuf]) -> Vec<Fill> {
    let measured = measured(paths, asked).into_iter().filter_map(|fill| match fill {
        Ok(fill) => Some(fill),
        Err(error) => {
            eprint_message(&error.to_string());
            None
        }
    });
    measured.collect()
}

/// What fills the databases, and what could not be measured.
pub(super) fn measured<'p>(
    paths: impl Iterator<Item = &'p Path>,
    asked: &[PathBuf],
) -> Vec<Result<Fill, Error>> {
    let mut files: BTreeSet<&Path> = paths.filter(|path| is_stored(path)).filter_map(store_file).collect();
    for path in asked.iter().filter(|path| is_stored(path)) {
        files.remove(store_file(path).unwrap_or(path));
    }
    files.into_iter().filter_map(|file| measure_store(file).transpose()).collect()
}

/// One line of `--json`.
#[derive(Serialize)]
struct DatabaseLine<'f> {
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    agent: &'static str,
    bytes: u64,
    free_bytes: u64,
    log_bytes: u64,
    estimated: bool,
    tables: Vec<DatabaseTable<'f>>,
    remarks: &'f [String],
}

#[derive(Serialize)]
struct DatabaseTable<'f> {
    name: &'f str,
    bytes: u64,
}

pub(super) fn json(fills: &[Fill], out: &mut impl Write) -> io::Result<()> {
    for fill in fills {
        let tables = fill.tables.iter().map(|(name, bytes)| DatabaseTable { name, bytes: *bytes }).collect();
        let line = DatabaseLine {
            kind: "database",
            path: portable_text(&fill.file),
            agent: fill.agent,
            bytes: fill.bytes,
            free_bytes: fill.free,
            log_bytes: fill.log,
            estimated: !fill.is_exact,
            tables,
            remarks: &fill.remarks,
        };
        writeln!(out, "{}", terminal::json(&serde_json::to_string(&line)?))?;
    }
    Ok(())
}

/// Prints a table for each database.
pub(super) fn print(fills: &[Fill], out: &mut impl Write) -> io::Result<()> {
    draw(fills, TableWriter::of_stdout(), out)
}

/// Prints a table for each database on a page of another width.
pub(super) fn draw(fills: &[Fill], canvas: TableWriter, out: &mut impl Write) -> io::Result<()> {
    for fill in fills {
        let log = if fill.log > 0 { format!(", and {} in its -wal", size(fill.log)) } else { String::new() };
        let about = if fill.is_exact { "" } else { ", estimated" };
        writeln!(out, "\nDatabase {}: {}{log}{about}", canvas.spell(&shown(&fill.file)), size(fill.bytes))?;
        let row = |name: String, bytes: u64| TableRow { name, columns: vec![size(bytes)], part: bytes };
        let mut rows: Vec<TableRow> =
            fill.tables.iter().take(TABLES).map(|(name, bytes)| row(name.clone(), *bytes)).collect();
        if let Some(more) = fill.tables.get(TABLES..).filter(|more| !more.is_empty()) {
            let name = format!("{} more tables", grouped(more.len() as u64));
            rows.push(row(name, more.iter().map(|(_, bytes)| bytes).sum()));
        }
        rows.push(row("free pages".to_string(), fill.free));
        rows.retain(|row| row.part > 0);
        write!(out, "{}", canvas.table(&rows, fill.bytes))?;
    }
    write_remarks(fills, canvas, out)
}

/// Prints what is remarkable.
pub(super) fn print_remarks(fills: &[Fill], out: &mut impl Write) -> io::Result<()> {
    write_remarks(fills, TableWriter::of_stdout(), out)
}

fn write_remarks(fills: &[Fill], canvas: TableWriter, out: &mut impl Write) -> io::Result<()> {
    for fill in fills {
        for remark in &fill.remarks {
            writeln!(
                out,
                "{}",
                canvas.wrap(&format!("{} ({}): {remark}.", shown(&fill.file), size(fill.bytes)))
            )?;
        }
    }
    Ok(())
}
