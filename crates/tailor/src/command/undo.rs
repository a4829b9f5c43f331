//! `tailor undo`: what a run changed, put back.

use super::{OutputOptions, failed, gather, over_files};
use crate::amount::{plural, size};
use crate::args::{Format, Undo};
use crate::report::FileReport;
use crate::say::eprint_message;
use crate::status::Status;
use crate::terminal::plain;
use keeper::{Ending, Error, Extent, Found, Options, Purpose, Record, Refusal, Vault, undo};
use serde::Serialize;

pub(crate) fn run(asked: &Undo) -> Status {
    let options = match asked.options() {
        Ok(options) => options,
        Err(error) => return failed(&error),
    };
    if asked.list {
        let vault = options.vault.as_ref();
        return vault.map_or(Status::Error, |vault| list(asked, vault));
    }
    over_files(&asked.paths, &OutputOptions::plain(asked.change.format), |found| one(asked, &options, found))
}

/// Of the files in a folder only those are told of that something was done to.
fn one(asked: &Undo, options: &Options, found: &Found) -> Option<FileReport> {
    let extent = if asked.partly { Extent::AllButCompaction } else { Extent::Whole };
    match undo(&found.path, found.root.as_deref(), options, asked.run.as_deref(), extent) {
        Ok(outcome) if found.root.is_some() && outcome.ending == Ending::Refused(Refusal::NothingToUndo) => {
            None
        }
        Ok(outcome) => Some(FileReport::of_undo(&found.path, &outcome)),
        Err(error) => Some(FileReport::failed_undo(&found.path, &error)),
    }
}

/// One line of `--list --format json`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    run: &'a str,
    time: &'a str,
    edits: usize,
    bytes: u64,
    bytes_after: u64,
    undone: bool,
}

fn list(asked: &Undo, vault: &Vault) -> Status {
    let mut status = Status::Clean;
    for found in gather(&asked.paths) {
        let (found, records) = match found.and_then(|found| Ok((runs_of(&found, vault)?, found))) {
            Ok((records, found)) => (found, records),
            Err(error) => {
                status = failed(&error);
                continue;
            }
        };
        if records.is_empty() && found.root.is_none() {
            eprint_message(&format!("{}: no run has changed it", found.path.display()));
        }
        let (mut whole, mut broken) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Ok(record) => whole.push(record),
                Err(error) => broken.push(error),
            }
        }
        for record in whole.iter().filter(|record| record.undoes.is_none()) {
            print(asked.change.format, &found, record, record.is_undone(&whole));
        }
        for error in broken {
            status = failed(&error);
        }
    }
    status
}

fn runs_of(found: &Found, vault: &Vault) -> Result<Vec<Result<Record, Error>>, Error> {
    // A file that is gone has its runs all the same.
    vault.runs(&found.path.canonicalize().unwrap_or_else(|_| found.path.clone()))
}

fn print(format: Format, found: &Found, record: &Record, undone: bool) {
    let path = found.path.to_string_lossy();
    match format {
        Format::Human => {
            let edits = plural(record.edits() as u64, "edit");
            let sizes = format!("{} -> {}", size(record.bytes_before), size(record.bytes_after));
            let undone = if undone { ", undone" } else { "" };
            let merged = if record.purpose == Some(Purpose::Merge) { ", merged late lines" } else { "" };
            println!("{}: {}  {}  {edits}, {sizes}{merged}{undone}", plain(&path), record.run, record.time);
        }
        Format::Json => {
            let line = Line {
                kind: "run",
                path: path.into_owned(),
                run: &record.run,
                time: &record.time,
                edits: record.edits(),
                bytes: record.bytes_before,
                bytes_after: record.bytes_after,
                undone,
            };
            if let Ok(line) = serde_json::to_string(&line) {
                println!("{}", crate::terminal::json(&line));
            }
        }
    }
}
