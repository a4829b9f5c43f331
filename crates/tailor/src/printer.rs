//! Prints results in the chosen format. Nothing else prints results about files.

mod fold;
mod github;
mod gitlab;
mod human;
mod json;
mod junit;
mod sarif;
mod secrets;
mod shape;
mod strangers;

use crate::args::{Listing, ReportFormat};
use crate::output::Output;
use crate::report::{FileReport, FindingReport, count};
use crate::say::{eprint_message, hint};
use crate::status::ExitStatus;
use crate::terminal::Screen;
use shape::{FilePrinter, ScanTotals};
use std::io::{self, Write};
use std::time::Instant;

/// The writer of each format.
fn shape(format: ReportFormat, screen: Screen, listing: Listing) -> Box<dyn FilePrinter> {
    match format {
        ReportFormat::Human => Box::new(human::Human::new(screen, listing)),
        ReportFormat::Json => Box::new(json::JsonPrinter),
        ReportFormat::Sarif => Box::new(sarif::Log::new(listing)),
        ReportFormat::Junit => Box::new(junit::Suite::new(listing)),
        ReportFormat::Gitlab => Box::new(gitlab::Degradations::new(listing)),
        ReportFormat::Github => Box::new(github::Annotations::new(listing)),
    }
}

/// Prints results and adds them up.
pub(crate) struct Printer {
    shape: Box<dyn FilePrinter>,
    out: Output,
    totals: ScanTotals,
    listing: Listing,
    started: Instant,
    /// Errors are also printed to standard error, because results are for a person, or go to a file.
    says_errors: bool,
    /// Files that are not transcripts are only counted.
    folds_strangers: bool,
    file: Option<String>,
}

impl Printer {
    /// Results to standard output.
    pub(crate) fn new(format: ReportFormat, listing: Listing) -> Self {
        Self::with(format, listing, Output::stdout(), Screen::of_stdout())
    }

    /// Results to standard error: standard output carries a transcript.
    pub(crate) fn beside_a_transcript(format: ReportFormat, listing: Listing) -> Self {
        Self::with(format, listing, Output::Stderr(io::stderr().lock()), Screen::of_stderr())
    }

    /// Results to a file.
    pub(crate) fn to_file(
        format: ReportFormat,
        listing: Listing,
        path: &std::path::Path,
    ) -> Result<Self, String> {
        let shown = path.display().to_string();
        match Output::to_file(path) {
            Ok(out) => Ok(Self { file: Some(shown), ..Self::with(format, listing, out, Screen::NONE) }),
            Err(error) => Err(format!("{shown}: could not write results: {error}")),
        }
    }

    fn with(format: ReportFormat, listing: Listing, out: Output, screen: Screen) -> Self {
        Self {
            totals: ScanTotals::new(listing.statistics),
            folds_strangers: format != ReportFormat::Json && !listing.shows_all(),
            shape: shape(format, screen, listing.clone()),
            listing,
            says_errors: format == ReportFormat::Human || out.is_file(),
            out,
            started: Instant::now(),
            file: None,
        }
    }

    /// Prints the result for a file and adds it to the totals. An error means that output was closed.
    pub(crate) fn file(&mut self, report: FileReport) -> io::Result<()> {
        self.totals.add(&report);
        if self.folds_strangers && report.is_stranger() {
            self.totals.strangers.add(report);
            return Ok(());
        }
        self.print(report)
    }

    fn print(&mut self, mut report: FileReport) -> io::Result<()> {
        let lists = |finding: &FindingReport| self.listing.lists(finding.severity, finding.fails);
        if !self.listing.statistics {
            let is_hidden = |finding: &&FindingReport| !finding.known && !lists(finding);
            self.totals.hidden += count(report.findings().iter().filter(is_hidden));
        }
        report.retain(lists);
        self.shape.file(&report, &mut self.out)?;
        match (&report.reason, self.says_errors && report.outcome == "error") {
            (Some(reason), true) => {
                self.out.flush()?;
                eprint_message(reason);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sets the rules that the user selected; empty means all.
    pub(crate) fn by(mut self, rules: Vec<String>) -> Self {
        self.totals.by = rules;
        self
    }

    /// Records how many files are left after an interruption.
    pub(crate) fn not_looked_at(&mut self, files: usize) {
        self.totals.not_looked_at += files as u64;
    }

    /// Prints the totals and returns the exit status.
    pub(crate) fn finish(mut self) -> io::Result<ExitStatus> {
        if let Some(only) = self.totals.strangers.take_only() {
            self.print(only)?;
        }
        self.totals.end();
        self.totals.seconds = (self.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        self.shape.finish(&self.totals, &mut self.out)?;
        self.out.finish()?;
        if let Some(file) = self.file {
            hint(&format!("{file}: {}", self.totals.sentence()));
        }
        Ok(self.totals.status)
    }

    /// The name of the output for an error message.
    pub(crate) fn name(&self) -> String {
        self.file.clone().unwrap_or_else(|| "standard output".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::FileLayout;
    use crate::report::tests::with_late_lines;
    use keeper::Ending;

    #[test]
    fn not_all_that_is_printed_waits_for_the_end() {
        let mut listing = Listing::default();
        listing.layout = FileLayout::Sorted;
        let mut shape = shape(ReportFormat::Human, Screen::NONE, listing);
        let report = with_late_lines(Ending::Fixed);
        let mut text = Vec::new();
        shape.file(&report, &mut text).unwrap();
        assert_eq!(text, b"", "errors come first");
        for _ in 0..60_000 {
            shape.file(&report, &mut text).unwrap();
        }
        assert!(text.len() > 4 << 20, "{}", text.len());
    }

    #[test]
    fn lines_that_wait_are_told_of_where_the_file_is_done() {
        for ending in [Ending::Fixed, Ending::Undone] {
            let report = with_late_lines(ending.clone());
            let print = |format| {
                let mut text = Vec::new();
                shape(format, Screen::NONE, Listing::default()).file(&report, &mut text).unwrap();
                String::from_utf8(text).unwrap()
            };
            let human = print(ReportFormat::Human);
            let done = if ending == Ending::Fixed { "fixed 0 problems," } else { "undone:" };
            let done = format!("s.jsonl: {done} 2 kB → 1 kB; lines appended during the swap are queued");
            assert!(human.starts_with(&done), "{human}");
            let json: serde_json::Value = serde_json::from_str(&print(ReportFormat::Json)).unwrap();
            assert_eq!(json["outcome"], report.outcome);
            assert!(json["reason"].as_str().unwrap().starts_with("lines appended during the swap"), "{json}");
            assert_eq!(json["retry_seconds"], 1, "{json}");
        }
    }
}
