//! `--format human`: a line a finding, a line for what was done to a file, and a sentence at the end.

use super::{Shape, Totals, size};
use crate::report::{FileReport, FindingReport};
use crate::terminal::{Screen, plain};
use anstyle::{AnsiColor, Style};
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

    fn finding(&self, path: &str, finding: &FindingReport) -> String {
        let place = self.screen.paint(Style::new().bold(), format!("{path}:{}", finding.line));
        let colour = match finding.severity {
            "error" => AnsiColor::Red,
            "warning" => AnsiColor::Yellow,
            _ => AnsiColor::Cyan,
        };
        let code = self.screen.paint(colour.on_default(), finding.code.to_string());
        format!("{place}: {code} {}: {}", finding.rule, said(finding))
    }
}

/// What there is to say about a finding, without its place and name.
pub(super) fn said(finding: &FindingReport) -> String {
    let mut said = finding.message.clone();
    if let Some(bytes) = finding.saves_bytes {
        said.extend([", ", &size(bytes)]);
    }
    if let Some(tool) = &finding.tool {
        said.extend([" (", &plain(tool), ")"]);
    }
    match (&finding.reason, finding.fix) {
        (Some(reason), fix) => said.extend([" [", fix, ": ", reason, "]"]),
        (None, "none") => said += " [report only]",
        _ => {}
    }
    said
}

impl Shape for Human {
    fn file(&mut self, report: &FileReport, out: &mut dyn Write) -> io::Result<()> {
        let path = plain(&report.path);
        for finding in report.findings.iter().filter(|finding| !finding.known) {
            self.line(&self.finding(&path, finding), out)?;
        }
        for change in &report.diff {
            writeln!(out, "{}", self.screen.whole(change))?;
        }
        match (report.outcome, &report.reason, report.bytes_after) {
            ("error", Some(_), _) => Ok(()),
            (outcome, reason, Some(after)) => {
                let sizes = format!("{} -> {}", size(report.bytes), size(after));
                let kept = match report.stays {
                    0 => String::new(),
                    1 => ", 1 finding stays".to_string(),
                    count => format!(", {count} findings stay"),
                };
                let more = reason.as_ref().map(|reason| format!("; {}", plain(reason))).unwrap_or_default();
                self.line(&format!("{path}: {}: {sizes}{kept}{more}", outcome.replace('-', " ")), out)
            }
            (outcome, Some(reason), None) => self.line(&format!("{path}: {outcome}: {}", plain(reason)), out),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, totals: &Totals, out: &mut dyn Write) -> io::Result<()> {
        self.line(&totals.sentence(), out)
    }
}
