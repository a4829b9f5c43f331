//! What all output formats share: what they are given, and the totals at the end.

use super::fold::Severities;
use super::secrets::{SecretPlaces, Secrets};
use super::strangers::Strangers;
use crate::amount::{grouped, plural, size};
use crate::report::{FileReport, FindingReport, count, is_zero};
use crate::status::ExitStatus;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use transcript::Severity;

/// How many of the selected rules are listed.
const NAMED_MAX: usize = 8;

/// An output format. There is one file for each, beside this one.
pub(super) trait FilePrinter {
    /// Prints the result for a file.
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()>;

    /// Prints what comes at the end.
    fn finish(&mut self, totals: &ScanTotals, out: &mut dyn Write) -> io::Result<()>;
}

/// The last line of `--format json`.
#[derive(Default, Serialize)]
pub(super) struct ScanTotals {
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
    #[serde(rename = "findings_total")]
    pub(super) findings: u64,
    /// How many of the findings that remain are in the baseline.
    #[serde(rename = "known_total", skip_serializing_if = "is_zero")]
    known: u64,
    remaining: u64,
    bytes: u64,
    saves_bytes: u64,
    pub(super) errors: u64,
    /// How many files were not looked at because the run was interrupted.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) not_looked_at: u64,
    pub(super) seconds: f64,
    /// How many findings each rule has, for `--statistics`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<Vec<RuleCount>>,
    /// Each secret, and where it stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) secrets: Vec<SecretPlaces>,
    #[serde(skip)]
    found_secrets: Secrets,
    #[serde(skip)]
    counts: BTreeMap<(Reverse<Severity>, &'static str), RuleCount>,
    /// Findings that are not in the baseline.
    #[serde(skip)]
    severities: Severities,
    #[serde(skip)]
    pub(super) status: ExitStatus,
    /// How many problems repairs solve, out of how many, and in how many files.
    #[serde(skip)]
    repaired: (u64, u64),
    /// Files that are not transcripts and have no result of their own.
    #[serde(skip)]
    pub(super) strangers: Strangers,
    #[serde(skip)]
    would_fix: u64,
    #[serde(skip)]
    has_safe_fixes: bool,
    #[serde(skip)]
    would_undo: u64,
    #[serde(skip)]
    runs_undone: u64,
    /// The length of at least one file is known.
    #[serde(skip)]
    measured: bool,
    /// How many of the findings are not listed.
    #[serde(skip)]
    pub(super) hidden: u64,
    /// The rules that the user selected; empty means all.
    #[serde(skip)]
    pub(super) by: Vec<String>,
}

/// How many findings there are of a rule.
#[derive(Clone, Serialize)]
struct RuleCount {
    code: &'static str,
    rule: &'static str,
    severity: &'static str,
    #[serde(rename = "findings_total")]
    findings: u64,
    files: u64,
}

impl RuleCount {
    fn none_of(finding: &FindingReport) -> Self {
        let FindingReport { code, rule, severity, .. } = finding;
        Self { code, rule, severity: severity.name(), findings: 0, files: 0 }
    }
}

impl ScanTotals {
    pub(super) fn new(with_statistics: bool) -> Self {
        Self { kind: "summary", rules: with_statistics.then(Vec::new), ..Self::default() }
    }

    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// There are no more files.
    pub(super) fn end(&mut self) {
        self.secrets = std::mem::take(&mut self.found_secrets.all);
        if let Some(rules) = &mut self.rules {
            rules.extend(self.counts.values().cloned());
        }
    }

    /// How many findings each rule has, errors first, for `--statistics`.
    pub(super) fn table(&self) -> Vec<String> {
        let rules = self.rules.as_deref().unwrap_or_default();
        let width = rules.iter().map(|rule| grouped(rule.findings).len()).max().unwrap_or(0);
        let row = |rule: &RuleCount| {
            let RuleCount { code, rule: name, severity, findings, files } = rule;
            let (findings, files) = (grouped(*findings), plural(*files, "file"));
            format!("{findings:>width$}  {severity:<7}  {code:<3}  {name}, in {files}")
        };
        rules.iter().map(row).collect()
    }

    fn count(&mut self, findings: &[FindingReport]) {
        let mut seen = Vec::new();
        for finding in findings {
            let key = (Reverse(finding.severity), finding.code);
            let of_rule = self.counts.entry(key).or_insert_with(|| RuleCount::none_of(finding));
            of_rule.findings += count([finding]);
            if !seen.contains(&key) {
                seen.push(key);
                of_rule.files += 1;
            }
            if !finding.known {
                self.severities.add(finding.severity, count([finding]));
            }
        }
    }

    pub(super) fn add(&mut self, report: &FileReport) {
        self.files += 1;
        self.clean += u64::from(report.outcome == "clean");
        self.fixed += u64::from(report.outcome == "fixed");
        self.undone += u64::from(report.outcome == "undone");
        let runs = report.runs.unwrap_or(0);
        *(if report.outcome == "would-undo" { &mut self.would_undo } else { &mut self.runs_undone }) += runs;
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
        self.would_fix += u64::from(report.outcome == "would-fix");
        let (repaired, problems) = report.repaired().unwrap_or_default();
        self.repaired = (self.repaired.0 + repaired, self.repaired.1 + problems);
        self.count(report.findings());
        self.found_secrets.add(report);
        self.has_safe_fixes |=
            report.outcome == "findings" && report.findings().iter().any(|finding| finding.fix == "safe");
    }

    pub(super) fn sentence(&self) -> String {
        let mut parts = vec![self.main_part()];
        parts.extend(match (self.fixed, self.saves_bytes) {
            (_, 0) => None,
            (0, bytes) => Some(format!("{} to save", size(bytes))),
            (_, bytes) => Some(format!("{} saved", size(bytes))),
        });
        for (count, word) in [
            (self.deferred, "deferred"),
            (self.refused, "refused"),
            (self.unsupported, if self.unsupported == 1 { "not a transcript" } else { "not transcripts" }),
            (self.not_looked_at, "not looked at"),
            (self.errors, "failed"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        let hint = " (tailor fix repairs what is safe; tailor explain CODE explains a rule)";
        let hint = if self.has_safe_fixes { hint } else { "" };
        parts.retain(|part| !part.is_empty());
        let files = plural(self.files, "file");
        let bytes =
            if self.files == 0 || self.measured { format!(", {}", size(self.bytes)) } else { String::new() };
        format!("{files}{bytes}: {}{hint}", parts.join(", "))
    }

    /// What was done, or otherwise what was found.
    fn main_part(&self) -> String {
        let (repaired, problems) = self.repaired;
        let of = if repaired == problems { String::new() } else { format!("{} of ", grouped(repaired)) };
        let problems = || format!("{of}{}", plural(problems, "problem"));
        if self.fixed > 0 {
            return format!("{} fixed in {}", problems(), plural(self.fixed, "file"));
        }
        if self.would_fix > 0 {
            return format!("would fix {} in {}", problems(), plural(self.would_fix, "file"));
        }
        match (self.runs_undone, self.would_undo) {
            (0, 0) => self.found(),
            (0, count) => format!("{} would be undone", plural(count, "run")),
            (count, _) => format!("{} undone", plural(count, "run")),
        }
    }

    fn found(&self) -> String {
        let nothing_read = self.files > 0 && self.refused + self.errors == self.files;
        let known = if self.known > 0 { format!("{} known", self.known) } else { String::new() };
        let hidden = if self.hidden > 0 { format!(" ({} hidden)", self.hidden) } else { String::new() };
        match (self.findings, self.clean) {
            (0, 0) if nothing_read => String::new(),
            (0, 0) if self.files + self.not_looked_at == 0 => "nothing to do".to_string(),
            (0, 0) => "no findings".to_string(),
            (0, _) => format!("nothing wrong{}", self.by()),
            _ if self.severities.is_empty() => known,
            _ if known.is_empty() => format!("{}{hidden}", self.severities),
            _ => format!("{}{hidden}, {known}", self.severities),
        }
    }

    /// Which rules were checked, if not all.
    fn by(&self) -> String {
        match &self.by[..] {
            [] => String::new(),
            few if few.len() <= NAMED_MAX => format!(" (only {} checked)", few.join(", ")),
            many => {
                format!(
                    " (only {} and {} more rules checked)",
                    many[..NAMED_MAX].join(", "),
                    many.len() - NAMED_MAX
                )
            }
        }
    }
}
