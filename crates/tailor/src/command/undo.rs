//! `tailor undo`: restores what a run changed.

use super::{CommandResult, OutputOptions, failed, over_files, roots};
use crate::amount::{plural, size};
use crate::args::UndoArgs;
use crate::place::{portable_text, shown};
use crate::report::FileReport;
use crate::say::{eprint_message, hint, print_json};
use crate::sessions::{describe_error, no_such_session};
use crate::status::ExitStatus;
use crate::terminal::{Screen, plain};
use keeper::{
    Ending, Error, Extent, FoundFile, LeftOut, Options, Outcome, Purpose, Record, Refusal, Vault, find,
    gone_sessions, is_stored, undo,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How many of the newest runs are listed.
const NEWEST_MAX: usize = 20;

pub(crate) fn run(asked: &UndoArgs) -> CommandResult {
    let options = asked.options()?;
    let Some(vault) = &options.vault else { return Ok(ExitStatus::Error) };
    if asked.paths.is_empty() && !asked.all {
        return list_newest(asked, vault);
    }
    let mut paths = if asked.all { vault.files()? } else { asked.paths.clone() };
    for path in &asked.paths {
        paths.extend(gone_sessions(path, vault)?);
    }
    if paths.is_empty() {
        return Ok(nothing_kept(vault));
    }
    if asked.list {
        return Ok(list(asked, &paths, vault));
    }
    let is_there = |found: &FoundFile| !asked.all || found.path.exists() || is_stored(&found.path);
    let is_of_a_named_database =
        |found: &FoundFile| is_stored(&found.path) && !asked.paths.contains(&found.path);
    over_files(&paths, &LeftOut::default(), &OutputOptions::plain(asked.change.json), |found| {
        if !is_there(found) {
            return None;
        }
        let report =
            if asked.to_original { to_original(asked, &options, found) } else { one(asked, &options, found) };
        match report {
            // Within a folder or a database, or with `--all`, only files are reported to which something was done.
            Ok((outcome, _))
                if outcome.ending == Ending::Refused(Refusal::NothingToUndo)
                    && (asked.all || found.root.is_some() || is_of_a_named_database(found)) =>
            {
                None
            }
            Ok((outcome, runs)) => Some(FileReport::of_undo(&found.path, &outcome, runs)),
            Err(error) => Some(FileReport::failed_undo(&found.path, &error)),
        }
    })
}

fn nothing_kept(vault: &Vault) -> ExitStatus {
    eprint_message(&format!("{}: no runs to undo", vault.root().display()));
    ExitStatus::Clean
}

/// Undoes one run. Returns how many were undone.
fn one(asked: &UndoArgs, options: &Options, found: &FoundFile) -> Result<(Outcome, u64), Error> {
    let extent = if asked.partly { Extent::Possible } else { Extent::Whole };
    let outcome = undo(&found.path, found.root.as_deref(), options, asked.run.as_deref(), extent)?;
    let runs = u64::from(matches!(outcome.ending, Ending::Undone | Ending::WouldUndo));
    Ok((outcome, runs))
}

/// Undoes run after run, newest first, as long as that succeeds.
fn to_original(asked: &UndoArgs, options: &Options, found: &FoundFile) -> Result<(Outcome, u64), Error> {
    let (mut last, mut undone) = one(asked, options, found)?;
    let bytes = last.bytes;
    if last.ending == Ending::WouldUndo {
        let vault = options.vault.as_ref();
        let records = vault.map_or(Ok(Vec::new()), |vault| runs_of(found, vault))?;
        let whole: Vec<Record> = records.into_iter().flatten().collect();
        let open: Vec<&Record> = whole.iter().filter(|record| record.can_be_undone(&whole)).collect();
        let sum = |length: fn(&Record) -> u64| open.iter().map(|record| length(record)).sum::<u64>();
        // Text appended between the runs stays.
        last.bytes_after = (bytes + sum(|run| run.bytes_before)).saturating_sub(sum(|run| run.bytes_after));
        last.places_restored = open.iter().map(|run| run.edits()).sum();
        return Ok((last, open.len() as u64));
    }
    while last.ending == Ending::Undone {
        let (next, runs) = one(asked, options, found)?;
        if next.ending == Ending::Refused(Refusal::NothingToUndo) {
            break;
        }
        let places_restored = last.places_restored + next.places_restored;
        let places_left = last.places_left + next.places_left;
        (last, undone) = (Outcome { places_restored, places_left, ..next }, undone + runs);
    }
    last.bytes = bytes;
    Ok((last, undone))
}

/// One line of `--list --json`.
#[derive(Serialize)]
struct RunLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    run: &'a str,
    time: &'a str,
    edits: usize,
    bytes: u64,
    bytes_after: u64,
    outcome: &'static str,
}

/// Lists the newest runs of all files.
fn list_newest(asked: &UndoArgs, vault: &Vault) -> CommandResult {
    let records = vault.newest(NEWEST_MAX)?;
    if records.is_empty() {
        return Ok(nothing_kept(vault));
    }
    let mut status = ExitStatus::Clean;
    for record in records {
        match record {
            Ok(record) => print(asked, &record.path, &record, record.is_undone(&[])),
            Err(error) => status = failed(&error),
        }
    }
    if !asked.change.json.is_json() {
        hint("to undo the newest run of a file: tailor undo FILE; of every file: tailor undo --all");
    }
    Ok(status)
}

fn list(asked: &UndoArgs, paths: &[PathBuf], vault: &Vault) -> ExitStatus {
    let mut status = ExitStatus::Clean;
    for found in find(&roots(paths)) {
        let (found, records) = match found.and_then(|found| Ok((runs_of(&found, vault)?, found))) {
            Ok((records, found)) => (found, records),
            Err(error) => {
                status = failed(&describe_error(error.path(), &error));
                continue;
            }
        };
        if records.is_empty() && found.root.is_none() {
            let is_there = found.path.symlink_metadata().is_ok();
            let unchanged = || format!("{}: no run has changed it", found.path.display());
            eprint_message(&if is_there { unchanged() } else { no_such_session(&found.path) });
        }
        let (mut whole, mut broken) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Ok(record) => whole.push(record),
                Err(error) => broken.push(error),
            }
        }
        for record in whole.iter().filter(|record| record.undoes.is_none()) {
            print(asked, &found.path, record, record.is_undone(&whole));
        }
        for error in broken {
            status = failed(&error);
        }
    }
    status
}

fn runs_of(found: &FoundFile, vault: &Vault) -> Result<Vec<Result<Record, Error>>, Error> {
    // A deleted file still has its runs.
    vault.runs(&keeper::real_path(&found.path).unwrap_or_else(|_| found.path.clone()))
}

fn print(asked: &UndoArgs, path: &Path, record: &Record, undone: bool) {
    if asked.change.json.is_json() {
        print_json(&RunLine {
            kind: "run",
            path: portable_text(path),
            run: &record.run,
            time: &record.time,
            edits: record.edits(),
            bytes: record.bytes_before,
            bytes_after: record.bytes_after,
            outcome: if undone { "undone" } else { "fixed" },
        });
        return;
    }
    let edits = plural(record.edits() as u64, "edit");
    let sizes = format!("{} → {}", size(record.bytes_before), size(record.bytes_after));
    let undone = if undone { ", undone" } else { "" };
    let merged = if record.purpose == Some(Purpose::Merge) { ", merged late lines" } else { "" };
    let path = plain(&shown(path));
    let what = match record.purpose {
        Some(Purpose::Prune) => "superseded rows removed".to_string(),
        Some(Purpose::Secrets) => format!("{edits}, {sizes}, secrets removed for good"),
        _ => format!("{edits}, {sizes}{merged}"),
    };
    let line = format!("{path}: {}  {}  {what}{undone}", record.run, record.time);
    println!("{}", Screen::of_stdout().whole(&line));
}
