//! One file per command, and what commands over many files share.

mod accepts;
pub(crate) mod chunk;
pub(crate) mod compact;
pub(crate) mod compare;
pub(crate) mod config;
pub(crate) mod databases;
mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fix;
pub(crate) mod forget;
pub(crate) mod gc;
pub(crate) mod generate;
mod gone;
pub(crate) mod hook;
mod interrupt;
pub(crate) mod keep;
mod lines;
mod progress;
pub(crate) mod prune;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod scan;
mod search;
pub(crate) mod show;
pub(crate) mod status;
mod strays;
pub(crate) mod top;
mod trains;
pub(crate) mod undo;
mod unread;
pub(crate) mod watch;

use crate::args::{FileLayout, Json, Listing, ReportFormat, ResultArgs};
use crate::output::is_stdout;
use crate::printer::Printer;
use crate::report::FileReport;
use crate::say::eprint_message;
use crate::status::ExitStatus;
use interrupt::Interrupt;
use keeper::{Error, FoundFile, LeftOut, Policies, find_without, known_roots, known_stores};
use progress::Progress;
use rayon::prelude::*;
use std::io;
use std::path::{Path, PathBuf};

/// How many files are processed before results are printed, so that memory is bounded and order is kept.
const BATCH_FILES: usize = 64;

/// Whether the path is `-`, which must be the only one.
fn is_stream(paths: &[PathBuf]) -> Result<bool, String> {
    let is_stdin = |path: &PathBuf| path == Path::new("-");
    if paths.len() > 1 && paths.iter().any(is_stdin) {
        return Err("`-` is standard input and stands alone (a file of that name is ./-)".to_string());
    }
    Ok(paths.iter().any(is_stdin))
}

/// How to print results, and what makes the run fail.
struct OutputOptions<'a> {
    format: ReportFormat,
    file: Option<&'a Path>,
    /// Having no transcripts is not an error.
    if_any: bool,
    /// The rules selected by the user; empty means all.
    by: Vec<String>,
    listing: Listing,
}

impl<'a> OutputOptions<'a> {
    fn new(results: &'a ResultArgs, policies: &'a Policies) -> Self {
        let file = results.output.as_deref().filter(|path| !is_stdout(path));
        let by = asked_rules(policies);
        Self { format: results.format(), file, if_any: results.if_any, by, listing: results.listing.clone() }
    }

    /// Results to standard output.
    fn plain(json: Json) -> Self {
        let format = if json.is_json() { ReportFormat::Json } else { ReportFormat::Human };
        Self { format, file: None, if_any: false, by: Vec::new(), listing: Listing::default() }
    }

    fn laid_out(mut self, layout: FileLayout) -> Self {
        self.listing.layout = layout;
        self
    }

    fn printer(&self) -> Result<Printer, String> {
        let listing = self.listing.clone();
        let printer = match self.file {
            Some(file) => Printer::to_file(self.format, listing, file),
            None => Ok(Printer::new(self.format, listing)),
        };
        Ok(printer?.by(self.by.clone()))
    }
}

/// The rules selected by the user; empty means all.
fn asked_rules(policies: &Policies) -> Vec<String> {
    let selection = &policies.all().selection;
    selection.select.iter().filter(|code| selection.includes(code)).cloned().collect()
}

/// Applies `work` to each file below the paths, but for what is left out, and prints the results worth printing. After an
/// interruption, finishes the current files and reports how many are left.
fn over_files(
    paths: &[PathBuf],
    left_out: &LeftOut,
    output: &OutputOptions<'_>,
    work: impl Fn(&FoundFile) -> Option<FileReport> + Sync,
) -> CommandResult {
    let files = find_without(&roots(paths), left_out);
    if files.is_empty() && !output.if_any {
        return Err(if left_out.is_nothing() { nothing_found(paths) } else { nothing_left(left_out) });
    }
    let mut printer = output.printer()?;
    let (interrupt, progress) = (Interrupt::watch(), Progress::new(&files));
    let mut left = files.len();
    for batch in files.chunks(BATCH_FILES) {
        let one = |found: &Result<FoundFile, Error>| {
            if interrupt.came() {
                return None;
            }
            let report = found.as_ref().map_or_else(|error| Some(FileReport::failed(error)), &work);
            progress.done(found);
            Some(report)
        };
        let reports: Vec<Option<Option<FileReport>>> = batch.par_iter().map(one).collect();
        left -= reports.iter().flatten().count();
        let mut reports = reports.into_iter().flatten().flatten();
        let outcome = progress.behind(|| reports.try_for_each(|report| printer.file(report)));
        if let Err(error) = outcome {
            return Err(output_closed(&printer.name(), &error));
        }
    }
    progress.end();
    printer.not_looked_at(left);
    let status = ended(finish(printer));
    interrupt.obey();
    Ok(status)
}

/// Ends the output.
fn finish(printer: Printer) -> CommandResult {
    let name = printer.name();
    printer.finish().map_err(|error| output_closed(&name, &error))
}

fn nothing_left(left_out: &LeftOut) -> CommandError {
    let mut out = Vec::from_iter((!left_out.globs.is_empty()).then_some("what --exclude names"));
    out.extend(
        left_out.elsewhere.as_ref().map(|_| "what `exclude` names in tailor.toml (--no-config reads it)"),
    );
    out.extend(
        left_out.ignored.then_some("what .gitignore names and hidden folders (--no-ignore reads them)"),
    );
    CommandError::from(format!(
        "no transcripts found: there is no .jsonl file, leaving out {}",
        out.join(", and ")
    ))
}

fn nothing_found(paths: &[PathBuf]) -> CommandError {
    CommandError::from(if paths.is_empty() {
        "no transcripts found: none of the known agents' folders exist here; name a file or a folder"
    } else {
        "no transcripts found: there is no .jsonl file below what was named"
    })
}

/// An error if the path is a folder: the command works on a single session.
fn one_session(path: &Path, verb: &str) -> Result<(), String> {
    if path.is_dir() {
        let path = path.display();
        return Err(format!("{path}: could not {verb}: it is a folder (name the file of one session)"));
    }
    Ok(())
}

/// How a command ends: its exit status, or what prevented its work.
pub(crate) type CommandResult = Result<ExitStatus, CommandError>;

/// Why a command ends early.
pub(crate) enum CommandError {
    /// What could not be done, for the user.
    Message(String),
    /// The user knows already.
    Told(ExitStatus),
}

impl<E: std::fmt::Display> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::Message(error.to_string())
    }
}

/// The exit status of what was done, after saying what could not be.
pub(crate) fn ended(done: CommandResult) -> ExitStatus {
    done.unwrap_or_else(|error| match error {
        CommandError::Message(error) => failed(&error),
        CommandError::Told(status) => status,
    })
}

/// Reports an error.
fn failed(error: &impl std::fmt::Display) -> ExitStatus {
    eprint_message(&error.to_string());
    ExitStatus::Error
}

/// Handles a failure to write output: quiet if nobody reads it any more, otherwise an error.
fn output_closed(name: &str, error: &io::Error) -> CommandError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CommandError::Told(ExitStatus::Error);
    }
    format!("{name}: could not write results: {error}").into()
}

/// The paths, or the folders of known agents.
fn roots(paths: &[PathBuf]) -> Vec<PathBuf> {
    if paths.is_empty() { [known_roots(), known_stores()].concat() } else { paths.to_vec() }
}
