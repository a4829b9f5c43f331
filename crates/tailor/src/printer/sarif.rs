//! `--format sarif`: SARIF 2.1.0 (OASIS). There is one run; its rules have the texts of `tailor explain`, and each rule
//! with findings in a file is a result with physical lines. Results are written immediately, so that memory does not
//! grow with the number of findings.

use super::fold::{Fold, fold};
use super::shape::{FilePrinter, ScanTotals};
use crate::args::Listing;
use crate::place::uri;
use crate::report::FileReport;
use crate::status::ExitStatus;
use crate::terminal::json;
use serde_json::{Value, json as object};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use transcript::rule::RULES;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// How many places of a repeated finding are listed.
const PLACES_MAX: usize = 100;

pub(super) struct Log {
    listing: Listing,
    results: u64,
    /// What is about no rule: errors of reading and writing, and files that are not transcripts.
    errors: Vec<Value>,
}

impl Log {
    pub(super) fn new(listing: Listing) -> Self {
        Self { listing, results: 0, errors: Vec::new() }
    }

    /// Everything before the results, once.
    fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.results > 0 {
            return write!(out, ",");
        }
        let rules: Vec<Value> = RULES.iter().map(|rule| describe(rule)).collect();
        let driver = object!({
            "name": "tailor",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": rules,
        });
        write!(out, r#"{{"$schema":"{SCHEMA}","version":"2.1.0","runs":[{{"tool":{{"driver":{driver}}},"#)?;
        write!(out, r#""columnKind":"unicodeCodePoints","results":["#)
    }
}

fn describe(rule: &transcript::rule::Rule) -> Value {
    let help = rule.help();
    let text = format!("{}\n\nFix: {}\n\nSource: {}", help.why, help.fix, help.source);
    let markdown = format!("{}\n\n**Fix:** {}\n\n**Source:** {}", help.why, help.fix, help.source);
    object!({
        "id": rule.code(),
        "name": rule.name(),
        "shortDescription": { "text": help.what },
        "fullDescription": { "text": help.why },
        "help": { "text": text, "markdown": markdown },
    })
}

fn place(path: &str, line: u64) -> Value {
    object!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(Path::new(path)) },
            "region": { "startLine": line.max(1) },
        }
    })
}

fn result(path: &str, fold: &Fold<'_>, compared: bool) -> Value {
    let finding = fold.first;
    let mut properties = object!({ "fix": finding.fix });
    for (key, value) in [
        ("entry", &finding.entry),
        ("call", &finding.call),
        ("tool", &finding.tool),
        ("reason", &finding.reason),
    ] {
        if let Some(value) = value {
            properties[key] = object!(value);
        }
    }
    if finding.more > 0 {
        properties["more"] = object!(finding.more);
    }
    let index = RULES.iter().position(|rule| rule.code() == finding.code);
    let mut result = object!({
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity.name(),
        "message": { "text": fold.plain() },
        "locations": [place(path, finding.line)],
        "partialFingerprints": { "tailor/v1": finding.fingerprint },
        "properties": properties,
    });
    if fold.all.len() > 1 {
        // SARIF requires each place to be listed once.
        let lines = fold.all.iter().map(|finding| finding.line).filter(|line| *line != finding.line);
        let others: BTreeSet<u64> = lines.collect();
        result["occurrenceCount"] = object!(fold.count());
        result["relatedLocations"] =
            others.into_iter().take(PLACES_MAX).map(|line| place(path, line)).collect();
    }
    if compared {
        result["baselineState"] = object!(if finding.known { "unchanged" } else { "new" });
    }
    result
}

impl FilePrinter for Log {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        for fold in fold(report.left(), &self.listing) {
            self.begin(out)?;
            self.results += 1;
            write!(out, "{}", json(&result(&report.path, &fold, report.compared).to_string()))?;
        }
        if report.status == ExitStatus::Error {
            let text = report.reason.as_deref().unwrap_or_default();
            self.errors.push(object!({
                "level": "error",
                "message": { "text": text },
                "locations": [place(&report.path, 1)],
            }));
        }
        Ok(())
    }

    fn finish(&mut self, totals: &ScanTotals, out: &mut dyn Write) -> io::Result<()> {
        if self.results == 0 {
            self.begin(out)?;
        }
        if let Some(strangers) = totals.strangers.all() {
            let level = if totals.strangers.fail() { "error" } else { "note" };
            self.errors.push(object!({ "level": level, "message": { "text": strangers } }));
        }
        let invocation = object!({
            "executionSuccessful": totals.status != ExitStatus::Error && totals.not_looked_at == 0,
            "toolExecutionNotifications": self.errors,
        });
        writeln!(out, r#"],"invocations":[{}]}}]}}"#, json(&invocation.to_string()))
    }
}
