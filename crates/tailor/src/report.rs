//! What is printed about one file: plain data, taken from an outcome so that the outcome can be let go.

use crate::args::Shared;
use crate::status::Status;
use keeper::{Ending, Error, Guarantee, Outcome, Unsupported};
use serde::Serialize;
use std::path::Path;
use transcript::finding::{Finding, Safety};

/// One line of `--format json`.
#[derive(Serialize)]
pub(crate) struct FileReport {
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<&'static str>,
    pub(crate) bytes: u64,
    lines: u64,
    entries: usize,
    calls: usize,
    results: usize,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) findings: Vec<FindingReport>,
    pub(crate) saves_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// When to try again, if it was deferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_seconds: Option<u64>,
    /// What kept lines safe that were appended meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<&'static str>,
    /// How many of the findings are still there.
    pub(crate) remaining: usize,
    #[serde(skip)]
    pub(crate) status: Status,
    #[serde(skip)]
    pub(crate) diff: Vec<String>,
}

/// One finding.
#[derive(Serialize)]
pub(crate) struct FindingReport {
    pub(crate) code: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) severity: String,
    pub(crate) line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chars: Option<u64>,
    pub(crate) message: String,
    pub(crate) fix: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl FindingReport {
    fn new(finding: &Finding) -> Self {
        let (fix, reason) = match finding.fix.safety {
            Safety::Safe => ("safe", None),
            Safety::Guarded(guard) => ("guarded", Some(format!("{guard} (--allow {})", finding.rule.code()))),
            Safety::Held(held) => ("held", Some(held.to_string())),
            Safety::None => ("none", None),
        };
        Self {
            code: finding.rule.code(),
            rule: finding.rule.name(),
            severity: finding.severity.to_string(),
            line: finding.line,
            entry: finding.labels.entry.clone(),
            call: finding.labels.call.clone(),
            tool: finding.labels.tool.clone(),
            chars: finding.chars,
            message: finding.message.clone(),
            fix,
            reason,
        }
    }
}

impl FileReport {
    fn empty(path: &Path, outcome: &'static str, reason: Option<String>, status: Status) -> Self {
        Self {
            kind: "file",
            path: path.to_string_lossy().into_owned(),
            format: None,
            bytes: 0,
            lines: 0,
            entries: 0,
            calls: 0,
            results: 0,
            outcome,
            reason,
            findings: Vec::new(),
            saves_bytes: 0,
            bytes_after: None,
            run: None,
            retry_seconds: None,
            guarantee: None,
            remaining: 0,
            status,
            diff: Vec::new(),
        }
    }

    pub(crate) fn failed(error: &Error) -> Self {
        Self::empty(error.path(), "error", Some(error.to_string()), Status::Error)
    }

    /// `named` says whether the user named this very file: then not to know it is an error.
    pub(crate) fn new(path: &Path, named: bool, outcome: &Outcome, shared: &Shared) -> Self {
        let mut status = match outcome.ending {
            Ending::Unsupported(Unsupported::UnknownFormat) if named => Status::Error,
            Ending::Refused(_) if outcome.before.is_none() => Status::Error,
            _ => Status::Clean,
        };
        if outcome.remaining().iter().any(|finding| shared.fails(finding)) {
            status = status.max(Status::Findings);
        }
        let mut report = Self::empty(path, outcome.ending.name(), outcome.ending.reason(), status);
        report.bytes = outcome.bytes;
        report.run.clone_from(&outcome.run);
        if let Ending::Deferred(reason) = &outcome.ending {
            // Up, as in the reason: a second too early is in vain.
            let after = reason.retry_after();
            report.retry_seconds = Some(after.as_secs() + u64::from(after.subsec_nanos() > 0));
        }
        report.guarantee = outcome.guarantee.map(Guarantee::name);
        report.remaining = outcome.remaining().len();
        if matches!(outcome.ending, Ending::Fixed | Ending::WouldFix) {
            report.bytes_after = Some(outcome.bytes_after);
        }
        if let Some(found) = &outcome.before {
            let facts = found.facts;
            report.format = outcome.agent();
            report.lines = facts.lines;
            report.entries = facts.entries;
            report.calls = facts.calls;
            report.results = facts.results;
            report.saves_bytes = outcome.bytes.saturating_sub(found.bytes_after);
            report.findings = found.findings.iter().map(FindingReport::new).collect();
        }
        report
    }
}

impl FileReport {
    /// What came of taking a run back.
    pub(crate) fn of_undo(path: &Path, outcome: &Outcome) -> Self {
        let status = match outcome.ending {
            Ending::Undone | Ending::WouldUndo => Status::Clean,
            Ending::Deferred(_) => Status::Findings,
            _ => Status::Error,
        };
        let mut report = Self::empty(path, outcome.ending.name(), outcome.ending.reason(), status);
        report.bytes = outcome.bytes;
        report.run.clone_from(&outcome.run);
        if status == Status::Clean {
            report.bytes_after = Some(outcome.bytes_after);
        }
        report
    }
}
