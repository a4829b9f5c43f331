//! What all shapes of results have in common: what they are told, and the totals at the end.

use crate::amount::{plural, size};
use crate::report::{FileReport, count, is_zero};
use crate::status::Status;
use serde::Serialize;
use std::io::{self, Write};

/// How many of the rules that were asked for are named.
const NAMED_MAX: usize = 8;

/// What results look like. One file each, beside this one.
pub(super) trait Shape {
    /// What there is to say about a file.
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()>;

    /// What comes at the end.
    fn finish(&mut self, totals: &Totals, out: &mut dyn Write) -> io::Result<()>;
}

/// The last line of `--format json`.
#[derive(Default, Serialize)]
pub(super) struct Totals {
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
    pub(super) errors: u64,
    /// How many files were not looked at because the run was interrupted.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) not_looked_at: u64,
    pub(super) seconds: f64,
    #[serde(skip)]
    pub(super) status: Status,
    #[serde(skip)]
    would_fix: bool,
    #[serde(skip)]
    would_undo: u64,
    /// The length of some file is known.
    #[serde(skip)]
    measured: bool,
    /// The rules that were asked for; none stands for all.
    #[serde(skip)]
    pub(super) by: Vec<String>,
}

impl Totals {
    pub(super) fn new() -> Self {
        Self { kind: "summary", ..Self::default() }
    }

    pub(super) fn add(&mut self, report: &FileReport) {
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

    pub(super) fn sentence(&self) -> String {
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
        let hint = " (tailor fix repairs what is safe; tailor explain CODE explains a rule)";
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
