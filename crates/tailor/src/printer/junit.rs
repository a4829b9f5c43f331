//! `--format junit`: a test case per file, which fails if a finding makes the run fail. All files that are not
//! transcripts share one case. The counts come first in the XML, so the output is kept until the end; for each file
//! only the first findings are kept.

use super::fold::{Fold, fold};
use super::shape::{FilePrinter, ScanTotals};
use crate::amount::plural;
use crate::args::Listing;
use crate::place::portable_text;
use crate::report::{FileReport, FindingReport, count};
use crate::status::ExitStatus;
use crate::terminal::plain;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

/// How many findings of a file are listed.
const LISTED_MAX: usize = 100;

pub(super) struct Suite {
    listing: Listing,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    verdict: Option<CaseVerdict>,
    /// Findings that do not make the case fail.
    notes: String,
}

/// Why a case has not simply passed.
struct CaseVerdict {
    /// `failure`, `error` or `skipped`.
    element: &'static str,
    message: String,
    kind: &'static str,
    text: String,
}

impl Suite {
    pub(super) fn new(listing: Listing) -> Self {
        Self { listing, cases: Vec::new() }
    }

    fn count(&self, element: &str) -> String {
        let is = |case: &&Case| case.verdict.as_ref().is_some_and(|verdict| verdict.element == element);
        self.cases.iter().filter(is).count().to_string()
    }
}

impl CaseVerdict {
    fn from_report(report: &FileReport, listing: &Listing) -> Option<Self> {
        let reason = report.reason.as_deref().map(plain).unwrap_or_default();
        let failing: Vec<&FindingReport> = report.left().iter().filter(|finding| finding.fails).collect();
        let (element, message, kind) = match (report.outcome, &failing[..]) {
            ("error", _) => ("error", reason, "error"),
            (outcome, []) if report.status == ExitStatus::Error => ("error", reason, outcome),
            (_, [first, ..]) => ("failure", plural(count(failing.iter().copied()), "finding"), first.rule),
            ("deferred" | "refused" | "unsupported", _) => ("skipped", reason, report.outcome),
            _ => return None,
        };
        Some(Self { element, message, kind, text: list(&failing, listing) })
    }
}

fn list(findings: &[&FindingReport], listing: &Listing) -> String {
    let mut text = String::new();
    let folds = fold(findings.iter().copied(), listing);
    let listed = folds.len().min(LISTED_MAX);
    for fold in &folds[..listed] {
        let FindingReport { severity, code, rule, .. } = fold.first;
        let _ = writeln!(text, "{}: {severity} {code} {rule}{}: {}", fold.lines(), fold.times(), fold.said());
    }
    let more: u64 = folds[listed..].iter().map(Fold::count).sum();
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    text
}

impl FilePrinter for Suite {
    fn file(&mut self, report: &FileReport, _: &mut dyn Write) -> io::Result<()> {
        let notes: Vec<&FindingReport> = report.left().iter().filter(|finding| !finding.fails).collect();
        self.cases.push(Case {
            name: plain(&portable_text(Path::new(&report.path))),
            verdict: CaseVerdict::from_report(report, &self.listing),
            notes: list(&notes, &self.listing),
        });
        Ok(())
    }

    fn finish(&mut self, totals: &ScanTotals, out: &mut dyn Write) -> io::Result<()> {
        if let Some(strangers) = totals.strangers.all() {
            let element = if totals.strangers.fail() { "error" } else { "skipped" };
            let (message, kind, text) = (plain(&strangers), "unsupported", String::new());
            let verdict = Some(CaseVerdict { element, message, kind, text });
            self.cases.push(Case {
                name: "files that are not transcripts".into(),
                verdict,
                notes: String::new(),
            });
        }
        let is_bad = |verdict: &CaseVerdict| verdict.element != "skipped";
        self.cases.sort_by_key(|case| !case.verdict.as_ref().is_some_and(is_bad));
        let mut xml = Writer::new_with_indent(out, b' ', 2);
        xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let counts = [
            ("name", "tailor".to_string()),
            ("tests", self.cases.len().to_string()),
            ("failures", self.count("failure")),
            ("errors", self.count("error")),
            ("skipped", self.count("skipped")),
            ("time", totals.seconds.to_string()),
        ];
        let counts = || counts.iter().map(|(key, value)| (*key, value.as_str()));
        // The outermost element does not count skipped cases.
        let outer = counts().filter(|(key, _)| *key != "skipped");
        xml.create_element("testsuites").with_attributes(outer).write_inner_content(|xml| {
            xml.create_element("testsuite")
                .with_attributes(counts())
                .write_inner_content(|xml| self.cases.iter().try_for_each(|case| write(case, xml)))?;
            Ok(())
        })?;
        writeln!(xml.get_mut())
    }
}

fn write<W: Write>(case: &Case, xml: &mut Writer<W>) -> io::Result<()> {
    let element = xml.create_element("testcase").with_attributes([
        ("name", case.name.as_str()),
        ("classname", "tailor"),
        ("time", "0"),
    ]);
    if case.verdict.is_none() && case.notes.is_empty() {
        element.write_empty()?;
        return Ok(());
    }
    element.write_inner_content(|xml| {
        if let Some(CaseVerdict { element, message, kind, text }) = &case.verdict {
            let element = xml.create_element(*element);
            let element = element.with_attributes([("message", message.as_str()), ("type", kind)]);
            match text.as_str() {
                "" => element.write_empty()?,
                text => element.write_text_content(BytesText::new(text))?,
            };
        }
        if !case.notes.is_empty() {
            xml.create_element("system-out").write_text_content(BytesText::new(&case.notes))?;
        }
        Ok(())
    })?;
    Ok(())
}
