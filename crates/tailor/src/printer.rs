//! Results in the shape that was asked for; talk to standard error. The only place that prints results about files.

mod github;
mod human;
mod json;
mod junit;
mod sarif;

use crate::args::ReportFormat;
use crate::output::Output;
use crate::report::{FileReport, count};
use crate::status::Status;
use crate::terminal::{Screen, plain};
use humansize::{DECIMAL, SizeFormatter};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Instant;

/// What results look like. One file each, below; [`shape`] lists them.
trait Shape {
    /// What there is to say about a file.
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()>;

    /// What comes at the end.
    fn finish(&mut self, totals: &Totals, out: &mut dyn Write) -> io::Result<()>;
}

/// All shapes of results.
fn shape(format: ReportFormat, screen: Screen) -> Box<dyn Shape> {
    match format {
        ReportFormat::Human => Box::new(human::Human::new(screen)),
        ReportFormat::Json => Box::new(json::Lines),
        ReportFormat::Sarif => Box::new(sarif::Log::default()),
        ReportFormat::Junit => Box::new(junit::Suite::default()),
        ReportFormat::Github => Box::new(github::Annotations::default()),
    }
}

/// Prints results and adds them up.
pub(crate) struct Printer {
    shape: Box<dyn Shape>,
    out: Output,
    totals: Totals,
    started: Instant,
    /// Errors are also told as such: results are for a person, or go to where nobody looks now.
    says_errors: bool,
    file: Option<String>,
}

/// How many of the rules that were asked for are named.
const NAMED_MAX: usize = 8;

/// The last line of `--format json`.
#[derive(Default, Serialize)]
pub(crate) struct Totals {
    #[serde(rename = "type")]
    kind: &'static str,
    files: u64,
    clean: u64,
    fixed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    undone: u64,
    deferred: u64,
    refused: u64,
    unsupported: u64,
    findings: u64,
    /// How many of the findings that remain are in the baseline.
    #[serde(skip_serializing_if = "is_zero")]
    known: u64,
    remaining: u64,
    bytes: u64,
    saves_bytes: u64,
    errors: u64,
    /// How many files were not looked at because the run was interrupted.
    #[serde(skip_serializing_if = "is_zero")]
    not_looked_at: u64,
    seconds: f64,
    #[serde(skip)]
    status: Status,
    #[serde(skip)]
    would_fix: bool,
    #[serde(skip)]
    would_undo: u64,
    /// The length of some file is known.
    #[serde(skip)]
    measured: bool,
    /// The rules that were asked for; none stands for all.
    #[serde(skip)]
    by: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Printer {
    /// Results to standard output.
    pub(crate) fn new(format: ReportFormat) -> Self {
        Self::with(format, Output::stdout(), Screen::of_stdout())
    }

    /// Results to standard error: standard output carries a transcript.
    pub(crate) fn beside_a_transcript(format: ReportFormat) -> Self {
        Self::with(format, Output::Stderr(io::stderr().lock()), Screen::of_stderr())
    }

    /// Results to a file.
    pub(crate) fn to_file(format: ReportFormat, path: &std::path::Path) -> Result<Self, String> {
        let shown = path.display().to_string();
        match Output::to_file(path) {
            Ok(out) => Ok(Self { file: Some(shown), ..Self::with(format, out, Screen::NONE) }),
            Err(error) => Err(format!("{shown}: could not write results: {error}")),
        }
    }

    fn with(format: ReportFormat, out: Output, screen: Screen) -> Self {
        Self {
            shape: shape(format, screen),
            says_errors: format == ReportFormat::Human || out.is_file(),
            out,
            totals: Totals { kind: "summary", ..Totals::default() },
            started: Instant::now(),
            file: None,
        }
    }

    /// Prints what there is to say about a file and adds it up. An error means that nobody listens any more.
    pub(crate) fn file(&mut self, report: &FileReport) -> io::Result<()> {
        self.totals.add(report);
        self.shape.file(report, &mut self.out)?;
        match (&report.reason, self.says_errors && report.outcome == "error") {
            (Some(reason), true) => {
                self.out.flush()?;
                talk(reason);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Only these rules were asked for; none stands for all.
    pub(crate) fn by(mut self, rules: Vec<String>) -> Self {
        self.totals.by = rules;
        self
    }

    /// Notes that the run was interrupted before these files.
    pub(crate) fn not_looked_at(&mut self, files: usize) {
        self.totals.not_looked_at += files as u64;
    }

    /// Prints the totals and gives the exit code.
    pub(crate) fn finish(mut self) -> io::Result<Status> {
        self.totals.seconds = (self.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        self.shape.finish(&self.totals, &mut self.out)?;
        self.out.finish()?;
        if let Some(file) = self.file {
            talk(&format!("{file}: {}", self.totals.sentence()));
        }
        Ok(self.totals.status)
    }

    /// The way out when nobody listens any more, or what was written cannot be kept.
    pub(crate) fn name(&self) -> String {
        self.file.clone().unwrap_or_else(|| "standard output".to_string())
    }
}

impl Totals {
    fn add(&mut self, report: &FileReport) {
        self.files += 1;
        self.clean += u64::from(report.outcome == "clean");
        self.fixed += u64::from(report.outcome == "fixed");
        self.undone += u64::from(report.outcome == "undone");
        self.would_undo += u64::from(report.outcome == "would-undo");
        self.deferred += u64::from(report.outcome == "deferred");
        self.refused += u64::from(report.outcome == "refused");
        self.unsupported += u64::from(report.outcome == "unsupported");
        self.errors += u64::from(report.outcome == "error");
        self.findings += count(report.findings());
        self.known += count(report.left().iter().filter(|finding| finding.known));
        self.remaining += report.remaining.unwrap_or(0);
        self.bytes += report.bytes.unwrap_or(0);
        self.measured |= report.bytes.is_some();
        self.saves_bytes += report.saves_bytes.unwrap_or(0);
        self.status = self.status.max(report.status);
        self.would_fix |=
            report.outcome == "findings" && report.findings().iter().any(|finding| finding.fix == "safe");
    }

    fn sentence(&self) -> String {
        let nothing_read = self.files > 0 && self.refused + self.errors == self.files;
        let found = match (self.findings, self.clean) {
            (0, 0) if nothing_read => String::new(),
            (0, 0) if self.files + self.not_looked_at == 0 => "nothing to do".to_string(),
            (0, 0) => "no findings".to_string(),
            (0, _) => format!("nothing wrong{}", self.by()),
            (count, _) if self.known > 0 => format!("{}, {} known", plural(count, "finding"), self.known),
            (count, _) => plural(count, "finding"),
        };
        let mut parts = match (self.undone, self.would_undo) {
            (0, 0) => vec![found],
            (0, count) => vec![format!("{} would be undone", plural(count, "run"))],
            (count, _) => vec![format!("{} undone", plural(count, "run"))],
        };
        if self.fixed > 0 {
            parts.push(format!("{} fixed", plural(self.fixed, "file")));
            parts.push(format!("{} saved", size(self.saves_bytes)));
        } else if self.saves_bytes > 0 {
            parts.push(format!("{} to save", size(self.saves_bytes)));
        }
        for (count, word) in [
            (self.deferred, "deferred"),
            (self.refused, "refused"),
            (self.unsupported, if self.unsupported == 1 { "not a transcript" } else { "not transcripts" }),
            (self.not_looked_at, "not looked at"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        if self.errors > 0 {
            parts.push(plural(self.errors, "error"));
        }
        let hint = " (tailor fix mends what is safe; tailor explain CODE says what a code means)";
        let hint = if self.would_fix { hint } else { "" };
        parts.retain(|part| !part.is_empty());
        let files = plural(self.files, "file");
        let bytes =
            if self.files == 0 || self.measured { format!(", {}", size(self.bytes)) } else { String::new() };
        format!("{files}{bytes}: {}{hint}", parts.join(", "))
    }

    /// By which rules, if not by all.
    fn by(&self) -> String {
        match &self.by[..] {
            [] => String::new(),
            few if few.len() <= NAMED_MAX => format!(" by {}", few.join(", ")),
            many => {
                format!(" by {} and {} more rules", many[..NAMED_MAX].join(", "), many.len() - NAMED_MAX)
            }
        }
    }
}

/// A number of things.
pub(crate) fn plural(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// A number of bytes, as people read it.
pub(crate) fn size(bytes: u64) -> String {
    sized(bytes).to_string()
}

/// The same, for a longer text.
fn sized(bytes: u64) -> impl std::fmt::Display {
    SizeFormatter::new(bytes, DECIMAL)
}

/// Says something that is not a result.
pub(crate) fn talk(text: &str) {
    let screen = Screen::of_stderr();
    eprintln!("{}", screen.fit(&format!("tailor: {}", plain(text))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::with_late_lines;
    use keeper::Ending;

    #[test]
    fn lines_that_wait_are_told_of_where_the_file_is_done() {
        for ending in [Ending::Fixed, Ending::Undone] {
            let report = with_late_lines(ending);
            let print = |format| {
                let mut text = Vec::new();
                shape(format, Screen::NONE).file(&report, &mut text).unwrap();
                String::from_utf8(text).unwrap()
            };
            let human = print(ReportFormat::Human);
            let done = format!(
                "s.jsonl: {}: 2 kB -> 1 kB; lines appended during the swap are queued",
                report.outcome
            );
            assert!(human.starts_with(&done), "{human}");
            let json: serde_json::Value = serde_json::from_str(&print(ReportFormat::Json)).unwrap();
            assert_eq!(json["outcome"], report.outcome);
            assert!(json["reason"].as_str().unwrap().starts_with("lines appended during the swap"), "{json}");
            assert_eq!(json["retry_seconds"], 1, "{json}");
        }
    }
}
