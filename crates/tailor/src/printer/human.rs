//! `--format human`: files with their findings, errors first, then what was done to each, and a summary sentence.

use super::fold::{Fold, fold};
use super::shape::{FilePrinter, ScanTotals};
use crate::amount::{plural, size};
use crate::args::{FileLayout, Listing};
use crate::place::{shown, shown_word};
use crate::remedy;
use crate::report::FileReport;
use crate::say::{is_quiet, is_verbose};
use crate::terminal::{Screen, plain};
use anstyle::{AnsiColor, Style};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use transcript::Severity;
use unicode_width::UnicodeWidthStr;

/// How much text is held back for sorting. More is sorted in portions.
const WAITING_BYTES_MAX: usize = 4 << 20;

pub(super) struct Human {
    screen: Screen,
    listing: Listing,
    /// Text held back until the end: files, each with its worst finding.
    files: Vec<(Option<Severity>, String)>,
    /// The length of that text.
    waiting: usize,
}

impl Human {
    pub(super) fn new(screen: Screen, listing: Listing) -> Self {
        Self { screen, listing, files: Vec::new(), waiting: 0 }
    }

    /// Holds the text about a file back until the order is known.
    fn keep(&mut self, worst: Option<Severity>, text: String, out: &mut dyn Write) -> io::Result<()> {
        self.waiting += text.len();
        self.files.push((worst, text));
        if self.waiting > WAITING_BYTES_MAX { self.write_kept(out) } else { Ok(()) }
    }

    fn write_kept(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.waiting = 0;
        self.files.sort_by_key(|(worst, _)| Reverse(*worst));
        self.files.drain(..).try_for_each(|(_, text)| out.write_all(text.as_bytes()))
    }

    fn line(&self, text: &str, out: &mut String) {
        out.push_str(&self.screen.fit(text));
        out.push('\n');
    }

    /// The outcome and the command that undoes it: on the same line if there is room, and never broken, so that it can
    /// be copied.
    fn end(&self, indent: &str, end: &End, out: &mut String) {
        let End { text, undo } = end;
        let Some(undo) = undo else { return self.line(&format!("{indent}{text}"), out) };
        let both = format!("{indent}{text}. {undo}");
        if self.screen.columns().is_none_or(|columns| both.width() <= columns) {
            return self.line(&both, out);
        }
        self.line(&format!("{indent}{text}"), out);
        out.push_str(&self.screen.whole(&format!("  {undo}")));
        out.push('\n');
    }

    /// `error   P1 call-without-result (line 3): no result for this call`.
    fn finding(&self, fold: &Fold<'_>) -> String {
        let colour = match fold.first.severity {
            Severity::Error => AnsiColor::Red,
            Severity::Warning => AnsiColor::Yellow,
            Severity::Note => AnsiColor::Cyan,
        };
        let mut text = String::from("  ");
        self.screen.paint(colour.on_default(), &mut text, |text| text.push_str(fold.first.severity.name()));
        text.push_str(&" ".repeat(Severity::Warning.name().len() + 1 - fold.first.severity.name().len()));
        self.screen.paint(Style::new().bold(), &mut text, |text| text.push_str(fold.first.code));
        text.extend([" ", fold.first.rule, &fold.times(), " (", &fold.lines(), "): ", &fold.said()]);
        text
    }

    /// One line about a file that would be changed: `broken  s.jsonl: 1 problem, 551 B → 874 B`.
    fn asked_about(&self, path: &str, worst: Option<Severity>, report: &FileReport) -> Option<String> {
        let after = report.bytes_after.filter(|_| report.outcome == "would-fix")?;
        let (repaired, _) = report.repaired().unwrap_or_default();
        let (problems, sizes) = (plural(repaired, "problem"), sizes(report, after));
        let text = format!("{:6}  {path}: {problems}, {sizes}", state(worst));
        Some(format!("{}\n", self.screen.whole(&text)))
    }

    /// Everything about a file.
    fn text_of(&self, path: &str, folds: &[Fold<'_>], report: &FileReport) -> String {
        let ends = match (report.outcome, folds) {
            // If no finding is listed, neither is anything else.
            ("findings", []) => Vec::new(),
            _ => endings(report).into_iter().chain(still_broken(report)).collect(),
        };
        let mut text = String::new();
        if folds.is_empty() && report.diff.is_empty() {
            for (n, end) in ends.iter().enumerate() {
                self.end(&if n == 0 { format!("{path}: ") } else { "  ".to_string() }, end, &mut text);
            }
            return text;
        }
        let mut heading = String::new();
        self.screen.paint(Style::new().bold(), &mut heading, |heading| heading.push_str(path));
        heading.push_str(&recognised(report));
        self.line(&heading, &mut text);
        for fold in folds {
            self.line(&self.finding(fold), &mut text);
        }
        for change in &report.diff {
            text.push_str(&self.screen.whole(change));
            text.push('\n');
        }
        for end in ends {
            self.end("  ", &end, &mut text);
        }
        text
    }
}

/// The state of a session with findings of this severity, before its repair.
fn state(worst: Option<Severity>) -> &'static str {
    if worst == Some(Severity::Error) { "broken" } else { "" }
}

/// A line about the outcome.
struct End {
    text: String,
    /// The command that undoes it.
    undo: Option<String>,
}

impl From<String> for End {
    fn from(text: String) -> Self {
        Self { text, undo: None }
    }
}

/// The outcome, and what comes next.
fn endings(report: &FileReport) -> Vec<End> {
    let reason = report.reason.as_deref().map(plain);
    match (report.outcome, &reason, report.bytes_after) {
        ("error", Some(_), _) => Vec::new(),
        ("fixed" | "would-fix", _, Some(after)) => repair(report, after),
        (outcome, _, Some(after)) => {
            let more = reason.map(|reason| format!("; {reason}")).unwrap_or_default();
            let runs = report.runs.filter(|runs| *runs > 1).map(|runs| format!(" {runs} runs"));
            let (outcome, runs) = (outcome.replace('-', " "), runs.unwrap_or_default());
            let put_back = match (report.places_restored as u64, report.places_left as u64) {
                (0, _) => String::new(),
                (restored, 0) => format!("{} put back, ", plural(restored, "edit")),
                (restored, left) => format!("{restored} of {} put back, ", plural(restored + left, "edit")),
            };
            let done = format!("{outcome}{runs}: {put_back}{}{more}", sizes(report, after)).into();
            [Some(done), resume(report)].into_iter().flatten().collect()
        }
        (outcome, Some(reason), None) => {
            let undone = report
                .runs
                .filter(|runs| *runs > 0)
                .map(|runs| format!(" ({} undone)", plural(runs, "later run")));
            vec![format!("{outcome}: {reason}{}", undone.unwrap_or_default()).into()]
        }
        ("clean", None, None) if is_verbose() => vec![format!("clean{}", recognised(report)).into()],
        _ => report.sight().map(|sight| format!("context: {sight}").into()).into_iter().collect(),
    }
}

/// With -v, the format and by what it was recognised.
fn recognised(report: &FileReport) -> String {
    let told = report.format.zip(report.recognised.as_ref()).filter(|_| is_verbose());
    told.map(|(format, why)| format!(" ({format}: {why})")).unwrap_or_default()
}

/// `1.61 MB → 1.41 MB`, or only the second if both look the same. What that takes on disk a database knows.
fn sizes(report: &FileReport, after: u64) -> String {
    let (before, after) = (size(report.bytes.unwrap_or(0)), size(after));
    let what = report.sizes_are;
    if before == after { format!("{after}{what}") } else { format!("{before} → {after}{what}") }
}

/// What was repaired, what remains and which option would repair that, and how to undo the repair.
fn repair(report: &FileReport, after: u64) -> Vec<End> {
    let verb = if report.outcome == "fixed" { "fixed" } else { "would fix" };
    let problems = match report.repaired().unwrap_or_default() {
        (repaired, all) if repaired == all => plural(all, "problem"),
        (repaired, all) => format!("{repaired} of {}", plural(all, "problem")),
    };
    let mut text = format!("{verb} {problems}, {}{}", sizes(report, after), report.remains());
    if let Some(copy) = report.copy.as_ref().filter(|_| report.outcome == "fixed") {
        text.extend([" in ", &shown_word(Path::new(copy))]);
    }
    if report.newly_found > 0 {
        text.extend(["; ", &plural(report.newly_found, "problem"), " newly found"]);
    }
    if let Some(reason) = &report.reason {
        text.extend(["; ", &plain(reason)]);
    }
    if let Some(why) = report.for_good {
        text.extend(["; ", why]);
    }
    let kept = report.run.is_some() && report.path != "-" && report.copy.is_none();
    let undo = (kept && report.for_good.is_none()).then(|| remedy::undo(Path::new(&report.path)));
    let context = report.sight().map(|sight| format!("context: {sight}").into());
    let resume = resume(report).filter(|_| kept);
    [Some(End { text, undo }), context, resume].into_iter().flatten().collect()
}

/// Which errors stay, and the command that repairs them.
fn still_broken(report: &FileReport) -> Vec<End> {
    if report.path == "-" {
        return Vec::new();
    }
    let line = |(command, codes): (Option<&str>, BTreeSet<&str>)| {
        let codes = Vec::from_iter(codes).join(",");
        format!("{codes} stays: {}", command.unwrap_or("no command repairs it")).into()
    };
    report.unrepaired().into_iter().map(line).collect()
}

/// How to resume the session.
fn resume(report: &FileReport) -> Option<End> {
    report.resume.as_ref().map(|command| remedy::resume(command).into())
}

impl FilePrinter for Human {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        let unknown = report.findings().iter().filter(|finding| !finding.known && !self.listing.statistics);
        let folds = fold(unknown, &self.listing);
        let path = plain(&shown(Path::new(&report.path)));
        if self.listing.layout == FileLayout::Question && report.diff.is_empty() && !self.listing.shows_all()
        {
            let worst = folds.first().map(|fold| fold.first.severity);
            let text = self.asked_about(&path, worst, report);
            return text.map_or(Ok(()), |text| self.keep(worst, text, out));
        }
        let text = self.text_of(&path, &folds, report);
        if self.listing.layout == FileLayout::AsFound {
            return out.write_all(text.as_bytes());
        }
        if text.is_empty() {
            return Ok(());
        }
        self.keep(folds.first().map(|fold| fold.first.severity), text, out)
    }

    fn finish(&mut self, totals: &ScanTotals, out: &mut dyn Write) -> io::Result<()> {
        self.write_kept(out)?;
        let mut text = String::new();
        if let Some(strangers) = totals.strangers.named() {
            self.line(&plain(&strangers), &mut text);
        }
        for row in totals.table() {
            self.line(&row, &mut text);
        }
        // Of one file, they are listed with it.
        for secret in totals.secrets.iter().filter(|_| totals.files() > 1) {
            self.line(&secret.line(), &mut text);
        }
        if is_quiet() {
            return out.write_all(text.as_bytes());
        }
        if self.listing.leaves_notes_out() && totals.hidden > 0 {
            self.line(&format!("{}: --show all lists them", plural(totals.hidden, "note")), &mut text);
        }
        self.line(&totals.sentence(), &mut text);
        if self.listing.layout == FileLayout::Overview && totals.findings > 0 {
            self.line("Next: tailor doctor (lists each session with the command that repairs it)", &mut text);
        }
        out.write_all(text.as_bytes())
    }
}
