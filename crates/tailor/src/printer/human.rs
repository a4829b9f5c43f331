//! `--format human`: a line a finding, a line for what was done to a file, and a sentence at the end.

use super::shape::{Shape, Totals};
use crate::amount::{plural, size, sized};
use crate::report::{FileReport, FindingReport};
use crate::terminal::{Screen, plain, push_plain};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use std::io::{self, Write};

pub(super) struct Human {
    screen: Screen,
}

impl Human {
    pub(super) fn new(screen: Screen) -> Self {
        Self { screen }
    }

    fn line(&self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.screen.fit(text))
    }

    /// Appends the line of a finding. There may be tens of thousands, so all of them are put together in the same piece
    /// of memory.
    fn finding(&self, path: &str, finding: &FindingReport, text: &mut String) {
        let colour = match finding.severity {
            "error" => AnsiColor::Red,
            "warning" => AnsiColor::Yellow,
            _ => AnsiColor::Cyan,
        };
        self.screen.paint(Style::new().bold(), text, |text| {
            text.extend([path, ":"]);
            // Writing to a string cannot fail.
            _ = write!(text, "{}", finding.line);
        });
        text.push_str(": ");
        self.screen.paint(colour.on_default(), text, |text| text.push_str(finding.code));
        text.extend([" ", finding.rule, ": "]);
        say(finding, text);
    }
}

/// What there is to say about a finding, without its place and name.
pub(super) fn said(finding: &FindingReport) -> String {
    let mut said = String::new();
    say(finding, &mut said);
    said
}

fn say(finding: &FindingReport, text: &mut String) {
    text.push_str(&finding.message);
    if let Some(bytes) = finding.saves_bytes {
        _ = write!(text, ", {}", sized(bytes));
    }
    if let Some(tool) = &finding.tool {
        text.push_str(" (");
        push_plain(tool, text);
        text.push(')');
    }
    if finding.more > 0 {
        _ = write!(text, ", and {} more", finding.more);
    }
    match (&finding.reason, finding.fix) {
        _ if finding.done => {}
        (Some(reason), fix) => text.extend([" [", fix, ": ", reason, "]"]),
        (None, "none") => text.push_str(" [report only]"),
        _ => {}
    }
}

impl Shape for Human {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        let path = plain(&report.path);
        let mut text = String::new();
        for finding in report.findings().iter().filter(|finding| !finding.known) {
            text.clear();
            self.finding(&path, finding, &mut text);
            self.line(&text, out)?;
        }
        for change in &report.diff {
            writeln!(out, "{}", self.screen.whole(change))?;
        }
        match (report.outcome, &report.reason, report.bytes_after) {
            ("error", Some(_), _) => Ok(()),
            (outcome, reason, Some(after)) => {
                let sizes = format!("{} -> {}", size(report.bytes.unwrap_or(0)), size(after));
                let uncovered = report.uncovered();
                let mut kept = match report.remaining.unwrap_or(0) - uncovered {
                    0 => String::new(),
                    1 => ", 1 finding remains".to_string(),
                    count => format!(", {count} findings remain"),
                };
                if uncovered > 0 {
                    _ = write!(kept, ", {} newly found", plural(uncovered, "finding"));
                }
                if let Some(sight) = report.sight() {
                    kept.extend([", ", &sight]);
                }
                let more = reason.as_ref().map(|reason| format!("; {}", plain(reason))).unwrap_or_default();
                self.line(&format!("{path}: {}: {sizes}{kept}{more}", outcome.replace('-', " ")), out)
            }
            (outcome, Some(reason), None) => self.line(&format!("{path}: {outcome}: {}", plain(reason)), out),
            ("findings", None, None) => match report.sight() {
                Some(sight) => self.line(&format!("{path}: {sight}"), out),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn finish(&mut self, totals: &Totals, out: &mut dyn Write) -> io::Result<()> {
        self.line(&totals.sentence(), out)
    }
}
