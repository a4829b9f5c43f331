//! Results to standard output, talk to standard error. The only place that prints.
#![expect(clippy::print_stderr, reason = "this is where talk goes out")]

use crate::args::Format;
use crate::report::FileReport;
use crate::status::Status;
use crate::terminal::{json, plain};
use humansize::{DECIMAL, format_size};
use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::time::Instant;

/// Where results go.
pub(crate) struct Printer {
    format: Format,
    out: BufWriter<StdoutLock<'static>>,
    totals: Totals,
    started: Instant,
    /// Standard output carries a transcript, so that results go to standard error.
    piped: bool,
}

/// The last line of `--format json`.
#[derive(Default, Serialize)]
struct Totals {
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
    remaining: u64,
    bytes: u64,
    saves_bytes: u64,
    errors: u64,
    seconds: f64,
    #[serde(skip)]
    status: Status,
    #[serde(skip)]
    would_fix: bool,
    #[serde(skip)]
    would_undo: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Printer {
    pub(crate) fn new(format: Format, piped: bool) -> Self {
        let out = BufWriter::new(io::stdout().lock());
        Self {
            format,
            out,
            totals: Totals { kind: "summary", ..Totals::default() },
            started: Instant::now(),
            piped,
        }
    }

    /// Prints what there is to say about a file and adds it up. An error means that nobody listens any more.
    pub(crate) fn file(&mut self, report: &FileReport) -> io::Result<()> {
        self.totals.add(report);
        match self.format {
            Format::Json => {
                let line = json(&serde_json::to_string(report)?);
                self.line(&line)
            }
            Format::Human => self.human(report),
        }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        if self.piped { writeln!(io::stderr(), "{text}") } else { writeln!(self.out, "{text}") }
    }

    fn human(&mut self, report: &FileReport) -> io::Result<()> {
        let path = plain(&report.path);
        for finding in &report.findings {
            let tool = finding.tool.as_ref().map(|tool| format!(" ({})", plain(tool))).unwrap_or_default();
            let held = match (&finding.reason, finding.fix) {
                (Some(reason), fix) => format!(" [{fix}: {reason}]"),
                (None, "none") => " [report only]".to_string(),
                _ => String::new(),
            };
            let saves = finding.saves_bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
            let (line, code, rule, message) = (finding.line, finding.code, finding.rule, &finding.message);
            self.line(&format!("{path}:{line}: {code} {rule}: {message}{saves}{tool}{held}"))?;
        }
        for change in &report.diff {
            self.line(change)?;
        }
        match (report.outcome, &report.reason, report.bytes_after) {
            ("error", Some(reason), _) => {
                self.out.flush()?;
                writeln!(io::stderr(), "tailor: {}", plain(reason))
            }
            (outcome, Some(reason), _) => self.line(&format!("{path}: {outcome}: {reason}")),
            (outcome, None, Some(after)) => {
                let sizes = format!("{} -> {}", size(report.bytes), size(after));
                let kept = if report.remaining > 0 {
                    format!(", {} findings stay", report.remaining)
                } else {
                    String::new()
                };
                self.line(&format!("{path}: {}: {sizes}{kept}", outcome.replace('-', " ")))
            }
            _ => Ok(()),
        }
    }

    /// Prints the totals and gives the exit code.
    pub(crate) fn finish(mut self) -> io::Result<Status> {
        self.totals.seconds = (self.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let text = match self.format {
            Format::Json => serde_json::to_string(&self.totals)?,
            Format::Human => self.totals.sentence(),
        };
        self.line(&text)?;
        self.out.flush()?;
        Ok(self.totals.status)
    }

    /// The raw standard output, for `fix -`.
    pub(crate) fn raw(&mut self) -> &mut impl Write {
        &mut self.out
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
        self.findings += report.findings.len() as u64;
        self.remaining += report.remaining as u64;
        self.bytes += report.bytes;
        self.saves_bytes += report.saves_bytes;
        self.status = self.status.max(report.status);
        self.would_fix |=
            report.outcome == "findings" && report.findings.iter().any(|finding| finding.fix == "safe");
    }

    fn sentence(&self) -> String {
        let found = match (self.findings, self.clean) {
            (0, 0) => "no findings".to_string(),
            (0, _) => "nothing wrong".to_string(),
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
        for (count, word) in
            [(self.deferred, "deferred"), (self.refused, "refused"), (self.unsupported, "not transcripts")]
        {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        if self.errors > 0 {
            parts.push(plural(self.errors, "error"));
        }
        let hint = " (tailor fix mends what is safe; tailor explain CODE says what a code means)";
        let hint = if self.would_fix { hint } else { "" };
        format!("{}, {}: {}{hint}", plural(self.files, "file"), size(self.bytes), parts.join(", "))
    }
}

/// A number of things.
pub(crate) fn plural(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// A number of bytes, as people read it.
pub(crate) fn size(bytes: u64) -> String {
    format_size(bytes, DECIMAL)
}

/// Says something that is not a result.
pub(crate) fn talk(text: &str) {
    eprintln!("tailor: {}", plain(text));
}
