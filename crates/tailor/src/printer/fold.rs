//! Folds repeated findings into one, for every format but JSON.

use crate::amount::{grouped, sized};
use crate::args::Listing;
use crate::report::FindingReport;
use crate::terminal::plain;
use std::collections::HashMap;
use std::fmt::{self, Display, Write as _};
use transcript::Severity;

/// How many tools are listed.
const TOOLS_MAX: usize = 3;

/// The findings with the same rule, severity and fix in one file; often only one.
pub(super) struct Fold<'f> {
    /// In file order; never empty.
    pub(super) all: Vec<&'f FindingReport>,
    /// The first of them.
    pub(super) first: &'f FindingReport,
}

/// Folds findings, errors first.
pub(super) fn fold<'f>(
    findings: impl IntoIterator<Item = &'f FindingReport>,
    listing: &Listing,
) -> Vec<Fold<'f>> {
    let (mut folds, mut known): (Vec<Fold<'f>>, HashMap<_, usize>) = (Vec::new(), HashMap::new());
    for finding in findings {
        let FindingReport { severity, code, fix, reason, fails, known: is_known, done, .. } = finding;
        let secret = finding.secret.as_ref().map(|secret| &secret.hash);
        let next = folds.len();
        let at = *known.entry((severity, code, fix, reason, fails, is_known, done, secret)).or_insert(next);
        match folds.get_mut(at).filter(|_| !listing.shows_all()) {
            Some(fold) => fold.all.push(finding),
            None => folds.push(Fold { all: vec![finding], first: finding }),
        }
    }
    folds.sort_by_key(|fold| std::cmp::Reverse(fold.first.severity));
    folds
}

impl Fold<'_> {
    /// How many findings this stands for, including those that are not listed.
    pub(super) fn count(&self) -> u64 {
        crate::report::count(self.all.iter().copied())
    }

    /// ` ×68`, if there is more than one.
    pub(super) fn times(&self) -> String {
        if self.all.len() < 2 { String::new() } else { format!(" ×{}", grouped(self.count())) }
    }

    /// `line 7`, or `lines 7–1210`.
    pub(super) fn lines(&self) -> String {
        let lines = || self.all.iter().map(|finding| finding.line);
        match (lines().min().unwrap_or(0), lines().max().unwrap_or(0)) {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first}–{last}"),
        }
    }

    /// What is wrong, and how often, for formats that show the number nowhere else.
    pub(super) fn plain(&self) -> String {
        let text = self.message();
        let lines = self.lines();
        let text = if self.all.len() < 2 { text } else { format!("{} times, {lines}: {text}", self.count()) };
        if self.more() > 0 { format!("{text}, and {} more", self.more()) } else { text }
    }

    /// How many findings are not listed, if only one is.
    fn more(&self) -> u64 {
        if self.all.len() == 1 { self.first.more } else { 0 }
    }

    /// What is wrong, without place and name, and why it was not repaired.
    pub(super) fn said(&self) -> String {
        let mut text = self.message();
        let saves: u64 = self.all.iter().filter_map(|finding| finding.saves_bytes).sum();
        if saves > 0 {
            _ = write!(text, ", {}", sized(saves));
        }
        let mut tools: Vec<&str> = Vec::new();
        for tool in self.all.iter().filter_map(|finding| finding.tool.as_deref()) {
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        if !tools.is_empty() {
            let more = if tools.len() > TOOLS_MAX { ", …" } else { "" };
            tools.truncate(TOOLS_MAX);
            _ = write!(text, " ({}{more})", plain(&tools.join(", ")));
        }
        if self.more() > 0 {
            _ = write!(text, ", and {} more", self.more());
        }
        match (&self.first.reason, self.first.fix) {
            _ if self.first.done => {}
            (Some(reason), "guarded") => _ = write!(text, " [{reason}]"),
            (Some(reason), fix) => _ = write!(text, " [{fix}: {reason}]"),
            (None, "none") => text.push_str(" [report only]"),
            _ => {}
        }
        text
    }

    fn message(&self) -> String {
        let message = &self.first.message;
        if self.all.iter().all(|finding| finding.message == *message) {
            return message.clone();
        }
        let chars: Option<Vec<u64>> = self.all.iter().map(|finding| finding.chars).collect();
        let Some(chars) = chars else { return format!("first: {message}") };
        let largest = self.all.iter().max_by_key(|finding| finding.chars).unwrap_or(&self.first);
        let chars = grouped(chars.iter().sum());
        format!("{chars} characters; line {}: {}", largest.line, largest.message)
    }
}

/// How many findings there are of each severity: `2 errors, 1 note`.
#[derive(Clone, Copy, Default)]
pub(super) struct Severities([u64; 3]);

impl Severities {
    pub(super) fn add(&mut self, severity: Severity, count: u64) {
        self.0[severity as usize] += count;
    }

    pub(super) fn count(self, severity: Severity) -> u64 {
        self.0[severity as usize]
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; 3]
    }
}

impl Display for Severities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severities = [Severity::Error, Severity::Warning, Severity::Note];
        let parts: Vec<String> = severities
            .into_iter()
            .filter(|severity| self.count(*severity) > 0)
            .map(|severity| crate::amount::plural(self.count(severity), severity.name()))
            .collect();
        f.write_str(&parts.join(", "))
    }
}
