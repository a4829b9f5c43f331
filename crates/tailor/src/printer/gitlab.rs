//! `--format gitlab`: a Code Quality report, which GitLab shows beside a merge request. It is an array with an object
//! for each rule with findings in each file, written immediately, so that memory does not grow with the number of
//! findings.

use super::fold::{Fold, fold};
use super::shape::{FilePrinter, ScanTotals};
use crate::args::Listing;
use crate::baseline::fingerprint_of;
use crate::place::portable_text;
use crate::report::{FileReport, FindingReport};
use crate::status::ExitStatus;
use crate::terminal::json;
use serde_json::{Value, json as object};
use std::io::{self, Write};
use std::path::Path;
use transcript::Severity;

pub(super) struct Degradations {
    listing: Listing,
    count: u64,
}

impl Degradations {
    pub(super) fn new(listing: Listing) -> Self {
        Self { listing, count: 0 }
    }

    fn push(&mut self, degradation: &Value, out: &mut dyn Write) -> io::Result<()> {
        let before = if self.count == 0 { "[" } else { ",\n" };
        self.count += 1;
        write!(out, "{before}{}", json(&degradation.to_string()))
    }
}

fn degradation(path: &str, fold: &Fold<'_>) -> Value {
    let FindingReport { code, rule, severity, line, fingerprint, .. } = fold.first;
    let severity = match severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
        Severity::Note => "info",
    };
    object!({
        "description": format!("{code} {rule}: {}", fold.plain()),
        "check_name": code,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": { "path": path, "lines": { "begin": (*line).max(1) } },
    })
}

/// What is not about a line.
fn whole_file(name: &str, severity: &str, path: &str, text: &str) -> Value {
    object!({
        "description": text,
        "check_name": name,
        "fingerprint": fingerprint_of(&[name, path]),
        "severity": severity,
        "location": { "path": path, "lines": { "begin": 1 } },
    })
}

impl FilePrinter for Degradations {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        let path = portable_text(Path::new(&report.path));
        for fold in fold(report.left().iter().filter(|finding| !finding.known), &self.listing) {
            self.push(&degradation(&path, &fold), out)?;
        }
        if report.status == ExitStatus::Error {
            let reason = report.reason.as_deref().unwrap_or_default();
            self.push(&whole_file("error", "blocker", &path, reason), out)?;
        }
        Ok(())
    }

    fn finish(&mut self, totals: &ScanTotals, out: &mut dyn Write) -> io::Result<()> {
        if let Some(strangers) = totals.strangers.all() {
            let severity = if totals.strangers.fail() { "blocker" } else { "info" };
            self.push(&whole_file("unsupported", severity, totals.strangers.first(), &strangers), out)?;
        }
        writeln!(out, "{}]", if self.count == 0 { "[" } else { "" })
    }
}
