//! What is printed about one file: plain data, taken from an outcome so that the outcome can be let go.

mod remains;

use crate::args::{CheckArgs, ReportFormat};
use crate::baseline::{Baseline, fingerprints};
use crate::place::portable_text;
use crate::remedy;
use crate::sessions::describe_error;
use crate::status::ExitStatus;
use keeper::{Ending, Error, Guarantee, Options, Outcome, Unsupported, is_stored};
use remains::Remains;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use transcript::finding::{Finding, Held, Safety, SecretMark};
use transcript::format::Format;
use transcript::{Examination, Messages, Severity};

/// One line of `--format json`.
#[derive(Serialize)]
pub(crate) struct FileReport {
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<&'static str>,
    /// By what that was recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recognised: Option<String>,
    /// Nothing of what follows is told of a file that was not looked at, rather than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<usize>,
    /// Messages in the file.
    #[serde(rename = "messages_total", skip_serializing_if = "Option::is_none")]
    messages: Option<usize>,
    /// How many of them the agent sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_in_context: Option<usize>,
    /// How many of them the agent sends after the fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_in_context_after: Option<usize>,
    /// The file that holds the repaired copy, if the session itself stays as it is.
    #[serde(skip)]
    pub(crate) copy: Option<String>,
    /// What sizes are about, if not about bytes on disk: a database may keep texts packed.
    #[serde(skip)]
    pub(crate) sizes_are: &'static str,
    #[serde(skip)]
    sight: Option<Messages>,
    #[serde(skip)]
    sight_after: Option<Messages>,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// `None` where nobody looks for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<FindingReport>>,
    /// What a fix brings to light.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uncovered: Vec<FindingReport>,
    /// What is found now, if the file was changed.
    #[serde(skip)]
    after: Option<Vec<FindingReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) saves_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// How many runs were undone, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runs: Option<u64>,
    /// When to try again, if it was deferred, or if lines appended during the swap are queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_seconds: Option<u64>,
    /// What kept lines safe that were appended meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<&'static str>,
    /// How many findings a fix leaves, or would leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remaining: Option<u64>,
    /// There is a baseline.
    #[serde(skip)]
    pub(crate) compared: bool,
    #[serde(skip)]
    pub(crate) status: ExitStatus,
    /// The user named this very file; others were found in a folder.
    #[serde(skip)]
    named: bool,
    /// Files that are not transcripts are ignored, also if they were named.
    #[serde(skip)]
    if_any: bool,
    /// How many findings there were before a repair, if there is one.
    #[serde(skip)]
    problems: Option<u64>,
    /// How many came to light with it.
    #[serde(skip)]
    pub(crate) newly_found: u64,
    #[serde(skip)]
    remains: Remains,
    /// Why a repair cannot be undone.
    #[serde(skip)]
    pub(crate) for_good: Option<&'static str>,
    /// The command that goes on with the session, where its agent has one.
    #[serde(skip)]
    pub(crate) resume: Option<String>,
    #[serde(skip)]
    pub(crate) diff: Vec<String>,
    /// How many places an undo put back, or would.
    #[serde(skip)]
    pub(crate) places_restored: usize,
    /// How many it left as they are, or would.
    #[serde(skip)]
    pub(crate) places_left: usize,
}

/// What is said of a repair that takes out secrets.
const KEEPS_NO_SECRETS: &str = "this run keeps no secret, so that it cannot be undone";

/// How many findings these are, with those that are not listed.
pub(crate) fn count<'f>(findings: impl IntoIterator<Item = &'f FindingReport>) -> u64 {
    findings.into_iter().map(|finding| 1 + finding.more).sum()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn name_of<S: Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.name())
}

/// One finding.
#[derive(Serialize)]
pub(crate) struct FindingReport {
    pub(crate) code: &'static str,
    pub(crate) rule: &'static str,
    #[serde(serialize_with = "name_of")]
    pub(crate) severity: Severity,
    pub(crate) line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chars: Option<u64>,
    /// What the fix would take out, if that is all that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) saves_bytes: Option<u64>,
    pub(crate) message: String,
    /// How many more of the kind there are that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more: u64,
    pub(crate) fix: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// What may be said of the secret that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<SecretMark>,
    /// Stays the same when the file grows, or is elsewhere.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) fingerprint: String,
    /// The command that repairs it, if it is an error and one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    /// It is in the baseline.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) known: bool,
    /// It makes the run fail.
    #[serde(skip)]
    pub(crate) fails: bool,
    /// Its guarded fix was asked for and made, or would be.
    #[serde(skip)]
    pub(crate) done: bool,
}

impl FindingReport {
    /// The findings about a file.
    fn all(path: &Path, findings: Vec<Finding>, judge: &FailPolicy<'_>) -> Vec<Self> {
        let prints = if judge.recognises() {
            fingerprints(path, &findings)
        } else {
            vec![String::new(); findings.len()]
        };
        let judged = |(finding, fingerprint): (Finding, String)| {
            let known = judge.baseline.knows(&fingerprint);
            let fails = judge.shared.fails(&finding, judge.fails_by_default) && !known;
            let is_error = finding.severity == Severity::Error;
            let next = (is_error && path != Path::new("-")).then(|| remedy::next(&finding, path)).flatten();
            Self { fingerprint, next, known, fails, ..Self::new(path, finding) }
        };
        findings.into_iter().zip(prints).map(judged).collect()
    }

    /// A finding that is held against nothing.
    pub(crate) fn new(path: &Path, finding: Finding) -> Self {
        let (fix, reason) = match finding.fix.safety {
            Safety::Safe => ("safe", None),
            Safety::Guarded(guard) => {
                ("guarded", Some(format!("needs --allow {}: {guard}", finding.rule.code())))
            }
            Safety::Held(held) => ("held", Some(held_back(path, &finding, held))),
            Safety::None => ("none", None),
        };
        Self {
            code: finding.rule.code(),
            rule: finding.rule.name(),
            severity: finding.severity,
            line: finding.line,
            entry: finding.labels.entry,
            call: finding.labels.call,
            tool: finding.labels.tool,
            chars: finding.chars,
            saves_bytes: finding.saves_bytes,
            message: finding.message,
            more: finding.more,
            fix,
            reason,
            secret: finding.secret,
            fingerprint: String::new(),
            next: None,
            known: false,
            fails: false,
            done: false,
        }
    }
}

/// Why a fix is held back, and the command that makes it all the same, if there is one.
fn held_back(path: &Path, finding: &Finding, held: Held) -> String {
    match (held, remedy::next(finding, path)) {
        (Held::Worse(_), Some(command)) => format!("{held}; to make both repairs: {command}"),
        _ => held.to_string(),
    }
}

/// What findings are held against.
pub(crate) struct FailPolicy<'a> {
    pub(crate) shared: &'a CheckArgs,
    pub(crate) options: &'a Options,
    pub(crate) baseline: Baseline,
    /// The least severity that makes the run fail, if nothing else is asked for.
    pub(crate) fails_by_default: Severity,
}

impl<'a> FailPolicy<'a> {
    pub(crate) fn new(
        shared: &'a CheckArgs,
        options: &'a Options,
        fails_by_default: Severity,
    ) -> Result<Self, String> {
        let baseline = Baseline::read(shared.results.baseline.as_deref())?;
        Ok(Self { shared, options, baseline, fails_by_default })
    }

    /// Whether anybody asks by what findings are recognised.
    fn recognises(&self) -> bool {
        self.baseline.is_given() || self.shared.results.format() != ReportFormat::Human
    }
}

impl FileReport {
    fn empty(path: &Path, outcome: &'static str, reason: Option<String>, status: ExitStatus) -> Self {
        Self {
            kind: "file",
            path: portable_text(path),
            format: None,
            recognised: None,
            bytes: None,
            lines: None,
            entries: None,
            calls: None,
            results: None,
            messages: None,
            messages_in_context: None,
            messages_in_context_after: None,
            copy: None,
            sizes_are: if is_stored(path) { " of text" } else { "" },
            sight: None,
            sight_after: None,
            outcome,
            reason,
            findings: Some(Vec::new()),
            uncovered: Vec::new(),
            after: None,
            saves_bytes: None,
            bytes_after: None,
            run: None,
            retry_seconds: None,
            guarantee: None,
            remaining: None,
            compared: false,
            status,
            named: true,
            if_any: false,
            problems: None,
            newly_found: 0,
            remains: Remains::default(),
            for_good: None,
            resume: None,
            runs: None,
            diff: Vec::new(),
            places_restored: 0,
            places_left: 0,
        }
    }

    /// What could not be found.
    pub(crate) fn failed(error: &Error) -> Self {
        Self::failed_at(error.path(), error)
    }

    pub(crate) fn with_diff(self, diff: Vec<String>) -> Self {
        Self { diff, ..self }
    }

    /// The report of a session whose repaired copy is there.
    pub(crate) fn in_copy(self, copy: Option<&Path>) -> Self {
        Self { copy: copy.map(|copy| copy.display().to_string()), ..self }
    }

    /// When to try again, if the file was put off.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.retry_seconds.map(Duration::from_secs)
    }

    /// A file that could not be dealt with.
    pub(crate) fn failed_at(path: &Path, error: &Error) -> Self {
        let report = Self::empty(path, "error", Some(describe_error(path, error)), ExitStatus::Error);
        Self { bytes: length(path), ..report }
    }

    /// `named` says whether the user named this very file: then not to know it is an error.
    pub(crate) fn new(path: &Path, named: bool, outcome: Outcome, judge: &FailPolicy<'_>) -> Self {
        let results = &judge.shared.results;
        let status = match outcome.ending {
            Ending::Unsupported(Unsupported::UnknownFormat | Unsupported::Document)
                if named && !results.if_any =>
            {
                ExitStatus::Error
            }
            Ending::Refused(_) if outcome.before.is_none() => ExitStatus::Error,
            _ => ExitStatus::Clean,
        };
        let mut report = Self::empty(path, outcome.ending.name(), outcome.reason(), status);
        report.named = named;
        report.if_any = results.if_any;
        report.bytes = bytes(path, &outcome);
        report.retry_seconds = retry_seconds(outcome.retry_after());
        report.guarantee = outcome.guarantee.map(Guarantee::name);
        let changes = matches!(outcome.ending, Ending::Fixed | Ending::WouldFix);
        let left = outcome.after.as_ref().filter(|_| changes);
        report.remaining =
            outcome.before.as_ref().map(|_| left.map_or(outcome.remaining_count(), Examination::count));
        report.bytes_after = changes.then_some(outcome.bytes_after);
        let forgets = outcome.before.as_ref().filter(|before| before.messages.brought_back > 0);
        report.messages_in_context_after = left
            .map(|left| left.messages.seen)
            .or(forgets.map(|before| before.messages.seen + before.messages.brought_back));
        report.sight = outcome.before.as_ref().map(|found| found.messages);
        report.sight_after = left.map(|left| left.messages);
        report.remains = Remains::from_findings(left.map_or(&[], |left| &left.findings));
        let uncovered = left.iter().flat_map(|left| &left.findings).filter(|finding| finding.uncovered);
        report.uncovered = FindingReport::all(path, uncovered.cloned().collect(), judge);
        report.newly_found = count(&report.uncovered);
        report.format = outcome.agent();
        if outcome.ending == Ending::Fixed {
            report.after = Some(FindingReport::all(path, outcome.remaining().to_vec(), judge));
        }
        report.run = outcome.run;
        report.for_good = outcome.plan.removes_secrets().then_some(KEEPS_NO_SECRETS);
        if let Some(found) = outcome.before {
            let facts = found.facts;
            report.resume = facts.format.and_then(|format| resume(format, path));
            report.recognised = facts.format.map(|_| facts.recognised());
            report.lines = Some(facts.lines);
            report.entries = Some(facts.entries);
            report.calls = Some(facts.calls);
            report.results = Some(facts.results);
            report.messages = Some(found.messages.all);
            report.messages_in_context = Some(found.messages.seen);
            let saves_bytes = outcome.bytes.saturating_sub(found.bytes_after);
            report.saves_bytes = Some(outcome.rows_saved_bytes.unwrap_or(saves_bytes));
            let mut findings = FindingReport::all(path, found.findings, judge);
            let selection = &judge.options.policy.for_format(facts.format).selection;
            for finding in findings.iter_mut().filter(|finding| changes && finding.fix == "guarded") {
                finding.done = selection.allows(finding.code);
            }
            report.problems = changes.then(|| count(&findings));
            report.findings = Some(findings);
        }
        report.compared = judge.baseline.is_given();
        if !results.exit_zero && report.left().iter().any(|finding| finding.fails) {
            report.status = report.status.max(ExitStatus::Findings);
        }
        report
    }

    /// What was found before any fix.
    pub(crate) fn findings(&self) -> &[FindingReport] {
        self.findings.as_deref().unwrap_or_default()
    }

    /// How much of the conversation the model sees, if branches or losses hide some of it, or a fix takes some away.
    pub(crate) fn sight(&self) -> Option<String> {
        let (before, after) = (self.sight?, self.sight_after);
        let now = after.unwrap_or(before);
        let back = if after.is_none() { before.brought_back } else { 0 };
        if back == 0 && before.off_branch == 0 && now.off_branch == 0 && now.seen >= before.seen {
            return None;
        }
        let was = if now.seen == before.seen { String::new() } else { format!(" (before: {})", before.seen) };
        let more = if back == 0 { String::new() } else { format!("; the repair brings {back} back") };
        Some(format!("the agent sees {} of {} messages{was}{more}", now.seen, now.all))
    }

    /// The errors that no fix of this run repairs, by the command that does. Those that are only reported say so themselves.
    pub(crate) fn unrepaired(&self) -> BTreeMap<Option<&str>, BTreeSet<&'static str>> {
        let mut commands: BTreeMap<Option<&str>, BTreeSet<&'static str>> = BTreeMap::new();
        for finding in
            self.left().iter().filter(|finding| !matches!(finding.fix, "safe" | "none") && !finding.done)
        {
            if finding.severity == Severity::Error {
                commands.entry(finding.next.as_deref()).or_default().insert(finding.code);
            }
        }
        commands
    }

    /// Lets go of findings that are not to be listed.
    pub(crate) fn retain(&mut self, keep: impl Fn(&FindingReport) -> bool) {
        let listed = [self.findings.as_mut(), Some(&mut self.uncovered), self.after.as_mut()];
        listed.into_iter().flatten().for_each(|findings| findings.retain(&keep));
    }

    /// Of how many problems a repair takes how many, if there is one.
    pub(crate) fn repaired(&self) -> Option<(u64, u64)> {
        let left = self.remaining.unwrap_or(0).saturating_sub(self.newly_found);
        self.problems.map(|problems| (problems.saturating_sub(left), problems))
    }

    /// What a repair leaves, and which options would take it.
    pub(crate) fn remains(&self) -> &Remains {
        &self.remains
    }

    /// It was checked, and is not a transcript.
    pub(crate) fn is_stranger(&self) -> bool {
        self.outcome == "unsupported" && self.findings.is_some()
    }

    /// It is such a file, and nobody asked for this one.
    pub(crate) fn is_ignored(&self) -> bool {
        self.is_stranger() && (!self.named || self.if_any)
    }

    /// What is still found.
    pub(crate) fn left(&self) -> &[FindingReport] {
        self.after.as_deref().unwrap_or_else(|| self.findings())
    }
}

impl FileReport {
    /// What came of taking a run back.
    pub(crate) fn of_undo(path: &Path, outcome: &Outcome, runs: u64) -> Self {
        let status = ExitStatus::of_change(&outcome.ending);
        let mut report = Self::empty(path, outcome.ending.name(), outcome.reason(), status);
        report.bytes = bytes(path, outcome);
        report.findings = None;
        report.places_restored = outcome.places_restored;
        report.places_left = outcome.places_left;
        report.runs = Some(runs);
        let format = outcome.before.as_ref().and_then(|found| found.facts.format);
        report.resume =
            format.filter(|_| outcome.ending == Ending::Undone).and_then(|format| resume(format, path));
        report.run.clone_from(&outcome.run);
        report.retry_seconds = retry_seconds(outcome.retry_after());
        report.guarantee = outcome.guarantee.map(Guarantee::name);
        if status == ExitStatus::Clean {
            report.bytes_after = Some(outcome.bytes_after);
        }
        report
    }

    /// An undo that could not be done: it looks for no findings.
    pub(crate) fn failed_undo(path: &Path, error: &Error) -> Self {
        Self { findings: None, ..Self::failed_at(path, error) }
    }
}

/// The command that goes on with the session in a file.
fn resume(format: &Format, path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let path = path.to_str()?;
    let words: Vec<&str> = format.agent(path).resume(path)?.collect();
    Some(words.join(" "))
}

/// How long a file was, or is if it was not read.
fn bytes(path: &Path, outcome: &Outcome) -> Option<u64> {
    let is_empty = outcome.ending == Ending::Unsupported(Unsupported::Empty);
    if is_empty || outcome.before.is_some() || outcome.bytes > 0 { Some(outcome.bytes) } else { length(path) }
}

/// How long the file is that stands there; `None` if there is none.
fn length(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(std::fs::Metadata::is_file).map(|there| there.len())
}

/// What `recover` and `compact` print of a session, each with more of its own.
#[derive(Serialize)]
pub(crate) struct Changed {
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<&'static str>,
    /// The command that goes on with the session, where its agent has one.
    #[serde(skip)]
    pub(crate) resume: Option<String>,
}

impl Changed {
    pub(crate) fn new(kind: &'static str, path: &Path, outcome: &Outcome) -> Self {
        let changed = matches!(outcome.ending, Ending::Fixed | Ending::WouldFix);
        let format = outcome.before.as_ref().and_then(|found| found.facts.format);
        Self {
            resume: format.and_then(|format| resume(format, path)),
            format: outcome.agent(),
            bytes: Some(outcome.bytes),
            bytes_after: changed.then_some(outcome.bytes_after),
            run: outcome.run.clone(),
            guarantee: outcome.guarantee.map(Guarantee::name),
            reason: outcome.reason(),
            retry_seconds: retry_seconds(outcome.retry_after()),
            ..Self::ended(kind, path, &outcome.ending)
        }
    }

    /// What ended before anything was to be changed.
    pub(crate) fn ended(kind: &'static str, path: &Path, ending: &Ending) -> Self {
        Self {
            kind,
            path: portable_text(path),
            format: None,
            bytes: None,
            outcome: ending.name(),
            reason: ending.reason(),
            bytes_after: None,
            run: None,
            retry_seconds: retry_seconds(ending.retry_after()),
            guarantee: None,
            resume: None,
        }
    }
}

/// In whole seconds. Up, as in the reason: a second too early is in vain.
pub(crate) fn retry_seconds(after: Option<Duration>) -> Option<u64> {
    after.map(|after| after.as_secs() + u64::from(after.subsec_nanos() > 0))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser;
    use keeper::Deferral;

    /// The report of a file that was replaced while lines were appended, which are queued until no program has it open.
    pub(crate) fn with_late_lines(ending: Ending) -> FileReport {
        let Some(Command::Scan(scan)) = Args::parse_from(["tailor", "scan", "s.jsonl"]).command else {
            panic!("another command")
        };
        let judge = FailPolicy {
            shared: &scan.shared,
            options: &Options::default(),
            baseline: Baseline::default(),
            fails_by_default: Severity::Error,
        };
        let late = Some(Deferral::LateLines("a program has it open".into()));
        let outcome = Outcome {
            ending,
            late,
            bytes: 2_000,
            bytes_after: 1_000,
            ..Outcome::deferred(Deferral::Changed)
        };
        if outcome.ending == Ending::Undone {
            FileReport::of_undo(Path::new("s.jsonl"), &outcome, 1)
        } else {
            FileReport::new(Path::new("s.jsonl"), true, outcome, &judge)
        }
    }
}
