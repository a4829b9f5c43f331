//! `--format github`: annotations of GitHub Actions on standard output, and a summary of the step for
//! `$GITHUB_STEP_SUMMARY`.
//!
//! GitHub shows ten annotations of each kind per step, and a summary of at most 1 MiB. The rest goes to the log as
//! plain lines, and the summary has the total. A runner interprets any line that begins with `::` or holds `##[`, so no
//! file name may form either.

use super::fold::fold;
use super::shape::{FilePrinter, ScanTotals};
use crate::args::Listing;
use crate::place::portable_text;
use crate::report::{FileReport, FindingReport};
use crate::say::eprint_message;
use crate::status::ExitStatus;
use crate::terminal::plain;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use transcript::Severity;

/// How many annotations of each kind GitHub shows for a step.
const ANNOTATIONS_MAX: usize = 10;
/// Size limit for the table in a summary; a step may have 1 MiB in all.
const TABLE_BYTES_MAX: usize = 512 * 1024;

/// The kinds of annotations, the worst first.
const KINDS: [&str; 3] = ["error", "warning", "notice"];

pub(super) struct Annotations {
    listing: Listing,
    /// How many annotations there were of each kind.
    counts: BTreeMap<&'static str, usize>,
    /// Annotations that come after all errors.
    kept: BTreeMap<&'static str, String>,
    /// The rows of the table of each kind.
    rows: BTreeMap<&'static str, String>,
    rows_left_out: u64,
}

impl Annotations {
    pub(super) fn new(listing: Listing) -> Self {
        let (counts, kept, rows) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { listing, counts, kept, rows, rows_left_out: 0 }
    }

    fn say(
        &mut self,
        kind: &'static str,
        at: &Annotated<'_>,
        text: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let Annotated { path, line, title } = at;
        if *count <= ANNOTATIONS_MAX {
            let (path, title) = (property(path), property(title));
            let annotation = format!("::{kind} file={path},line={line},title={title}::{}\n", data(text));
            if kind == KINDS[0] {
                return out.write_all(annotation.as_bytes());
            }
            *self.kept.entry(kind).or_default() += &annotation;
            return Ok(());
        }
        writeln!(out, "{}", harmless(&format!("{kind}: {path}:{line}: {title}: {text}")))
    }

    fn row(&mut self, kind: &'static str, at: &Annotated<'_>, text: &str) {
        let cells = [kind, at.path, &at.line.to_string(), at.title, text].map(cell);
        let row = format!("| {} |\n", cells.join(" | "));
        let rows = self.rows.entry(kind).or_default();
        if rows.len() + row.len() > TABLE_BYTES_MAX / KINDS.len() {
            self.rows_left_out += 1;
        } else {
            *rows += &row;
        }
    }

    fn summary(&self, totals: &ScanTotals) -> String {
        let mut text = format!("### Tailor\n\n{}\n", cell(&totals.sentence()));
        if !self.rows.is_empty() {
            text += "\n| | file | line | rule | what |\n|---|---|---|---|---|\n";
            text.extend(KINDS.iter().filter_map(|kind| self.rows.get(kind)).map(String::as_str));
        }
        if self.rows_left_out > 0 {
            let _ = writeln!(text, "\nand {} more", self.rows_left_out);
        }
        text
    }
}

/// Where an annotation points.
struct Annotated<'a> {
    path: &'a str,
    line: u64,
    title: &'a str,
}

fn kind_of(finding: &FindingReport) -> &'static str {
    match (finding.severity, finding.fails) {
        (Severity::Error, _) => "error",
        (Severity::Warning, _) | (_, true) => "warning",
        _ => "notice",
    }
}

impl FilePrinter for Annotations {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        let path = plain(&portable_text(Path::new(&report.path)));
        let left = report.left().iter().filter(|finding| !finding.known);
        for fold in fold(left, &self.listing) {
            let finding = fold.first;
            let times = if fold.all.len() > 1 {
                format!("{} ({})", fold.times(), fold.lines())
            } else {
                String::new()
            };
            let title = format!("{} {}{times}", finding.code, finding.rule);
            let (at, text) = (Annotated { path: &path, line: finding.line, title: &title }, fold.said());
            self.say(kind_of(finding), &at, &text, out)?;
            self.row(kind_of(finding), &at, &text);
        }
        let Some(reason) = report.reason.as_deref().map(plain) else { return Ok(()) };
        let kind = if report.status == ExitStatus::Error { "error" } else { "notice" };
        let at = Annotated { path: &path, line: 1, title: report.outcome };
        self.say(kind, &at, &reason, out)?;
        self.row(kind, &at, &reason);
        Ok(())
    }

    fn finish(&mut self, totals: &ScanTotals, out: &mut dyn Write) -> io::Result<()> {
        if let Some(strangers) = totals.strangers.named() {
            let kind = if totals.strangers.fail() { "error" } else { "notice" };
            let path = plain(totals.strangers.first());
            let at = Annotated { path: &path, line: 1, title: "unsupported" };
            self.say(kind, &at, &plain(&strangers), out)?;
            self.row(kind, &at, &plain(&strangers));
        }
        for kept in KINDS.iter().filter_map(|kind| self.kept.get(kind)) {
            out.write_all(kept.as_bytes())?;
        }
        writeln!(out, "{}", totals.sentence())?;
        let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") else { return Ok(()) };
        let file = File::options().append(true).create(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(self.summary(totals).as_bytes())) {
            let path = Path::new(&path).display();
            eprint_message(&format!("{path}: could not write the summary of the step: {error}"));
        }
        Ok(())
    }
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Escapes a line of the log, so that it is no command.
fn harmless(text: &str) -> String {
    text.replace("##[", "##\\[")
}

/// Escapes text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() && !"/.,-".contains(c) {
            let _ = write!(out, "&#{};", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{cell, data, harmless, property};

    #[test]
    fn no_name_is_a_command() {
        assert_eq!(data("100%\r\n::error::x"), "100%25%0D%0A::error::x");
        assert_eq!(property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
        assert_eq!(harmless("notice: ##[add-path]x"), "notice: ##\\[add-path]x");
        assert_eq!(cell("a|b <b>*c*</b>"), "a&#124;b &#60;b&#62;&#42;c&#42;&#60;/b&#62;");
    }
}
