//! One file a command, and what commands over many files share.

pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fix;
pub(crate) mod gc;
pub(crate) mod scan;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod undo;
pub(crate) mod watch;

use crate::args::Format;
use crate::printer::{Printer, talk};
use crate::report::FileReport;
use crate::status::Status;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use keeper::{Error, Found, find, known_roots, known_stores};
use rayon::prelude::*;
use std::io;
use std::path::{Path, PathBuf};

/// How many files are worked on before results are printed, so that memory stays bounded and order is kept.
const BATCH_FILES: usize = 64;

/// Whether the paths are standard input alone.
fn is_stream(paths: &[PathBuf]) -> bool {
    paths == [Path::new("-")]
}

/// Does `work` to each file that the paths lead to and prints what came of it, if that is worth a word.
fn over_files(
    paths: &[PathBuf],
    format: Format,
    work: impl Fn(&Found) -> Option<FileReport> + Sync,
) -> Status {
    let files = gather(paths);
    if files.is_empty() {
        talk(if paths.is_empty() {
            "no transcripts found: none of the known agents' folders exist here; name a file or a folder"
        } else {
            "no transcripts found: there is no .jsonl file below what was named"
        });
        return Status::Error;
    }
    let progress = progress(files.len());
    let mut printer = Printer::new(format, false);
    for batch in files.chunks(BATCH_FILES) {
        let reports: Vec<Option<FileReport>> = batch
            .par_iter()
            .map(|found| {
                let report = found.as_ref().map_or_else(|error| Some(FileReport::failed(error)), &work);
                progress.inc(1);
                report
            })
            .collect();
        let mut reports = reports.iter().flatten();
        let done = progress.suspend(|| reports.try_for_each(|report| printer.file(report)));
        if let Err(error) = done {
            return deaf(&error);
        }
    }
    progress.finish_and_clear();
    printer.finish().unwrap_or_else(|error| deaf(&error))
}

/// Nothing could be begun.
fn failed(error: &impl std::fmt::Display) -> Status {
    talk(&error.to_string());
    Status::Error
}

/// Nobody reads our output any more: quietly stop, unless something else is wrong with it.
fn deaf(error: &io::Error) -> Status {
    if error.kind() != io::ErrorKind::BrokenPipe {
        talk(&format!("standard output: could not write: {error}"));
    }
    Status::Error
}

fn gather(paths: &[PathBuf]) -> Vec<Result<Found, Error>> {
    let known = || [known_roots(), known_stores()].concat();
    let roots = if paths.is_empty() { known() } else { paths.to_vec() };
    roots.iter().flat_map(|path| find(path)).collect()
}

/// A bar on a terminal when there is more than a little to do.
fn progress(files: usize) -> ProgressBar {
    let target = if files > 1 { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(files as u64), target);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} files, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
