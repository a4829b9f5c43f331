//! One session among many, in memory: a row of a table or a line of a data set. Whatever it holds, there is an answer, and
//! the text of a row that cannot be repaired stays as it is.

use crate::examine::look::Examination;
use crate::examine::mend::{examine, mend};
use crate::format::SupportLevel;
use crate::model::finding::Finding;
use crate::model::situation::Case;
use crate::plan::Rendered;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use spans::json::{self, Doc, Value};
use spans::source::{Fault, Source, Span};

/// How many findings a reason names.
const NAMED_MAX: usize = 3;

/// The longest line break, which is no session.
const BREAK_BYTES_MAX: u64 = 2;

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// Nothing is wrong.
    Clean,
    /// It was repaired.
    Fixed,
    /// There is something wrong, and nothing that is repaired without being asked for.
    Findings,
    /// A repair would not be safe.
    Refused,
    /// It is no session.
    Unreadable,
}

impl RowOutcome {
    /// The word for it, as printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Fixed => "fixed",
            Self::Findings => "findings",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A row and its repair.
pub struct RepairedRow {
    /// What became of it.
    pub outcome: RowOutcome,
    /// Why it could not be repaired or read, or what is wrong with it still.
    pub reason: Option<String>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What is found now, if it was repaired.
    pub after: Option<Vec<Finding>>,
    /// The repaired text; `None` if it stays as it is.
    pub text: Option<Vec<u8>>,
}

impl RepairedRow {
    /// A row that stays as it is.
    pub fn left(outcome: RowOutcome, reason: Option<String>, findings: Vec<Finding>) -> Self {
        Self { outcome, reason, findings, after: None, text: None }
    }

    /// What is wrong with it now.
    pub fn remaining(&self) -> &[Finding] {
        self.after.as_ref().unwrap_or(&self.findings)
    }
}

/// What is wrong with a row. One of which a repair would leave nothing is unreadable, as for [`repair`].
///
/// ```
/// use transcript::row::{self, RowOutcome};
/// let policy = transcript::Policy { format: Some("openai-dataset"), ..Default::default() };
/// let torn = row::check(br#"{"messages":"#, &policy);
/// assert_eq!((torn.outcome, torn.findings[0].rule.code()), (RowOutcome::Unreadable, "B9"));
/// assert!(row::check(b"", &policy).reason.unwrap().contains("empty"));
/// ```
pub fn check<'a>(text: &[u8], case: impl Into<Case<'a>>) -> RepairedRow {
    checked(text, case.into())
        .unwrap_or_else(|why| RepairedRow::left(RowOutcome::Unreadable, Some(why), Vec::new()))
}

fn checked(text: &[u8], case: Case<'_>) -> Result<RepairedRow, String> {
    let line = whole(text)?;
    let found = examine(&&*line, case).map_err(lost)?;
    if let Some(why) = unsupported(&found) {
        return Err(why);
    }
    let leaves_nothing = found.bytes_after <= BREAK_BYTES_MAX && found.bytes_after < found.facts.bytes;
    let outcome = match found.findings[..] {
        _ if leaves_nothing => RowOutcome::Unreadable,
        [] => RowOutcome::Clean,
        _ => RowOutcome::Findings,
    };
    Ok(RepairedRow::left(outcome, named(&found.findings, &line), found.findings))
}

/// Repairs a row.
pub fn repair<'a>(text: &[u8], case: impl Into<Case<'a>>) -> RepairedRow {
    repaired(text, case.into())
        .unwrap_or_else(|why| RepairedRow::left(RowOutcome::Unreadable, Some(why), Vec::new()))
}

fn repaired(text: &[u8], case: Case<'_>) -> Result<RepairedRow, String> {
    let line = whole(text)?;
    let source = &*line;
    let mended = mend(&source, case).map_err(lost)?;
    let findings = mended.before.findings.clone();
    if let Some(why) = unsupported(&mended.before) {
        return Err(why);
    }
    if let Some(SupportLevel::ReadOnly(why)) = mended.before.facts.format.map(|format| format.level) {
        return Ok(RepairedRow::left(RowOutcome::Refused, Some(format!("never changed: {why}")), findings));
    }
    let repair = match mended.repair {
        Ok(repair) if !repair.plan.is_empty() => repair,
        Err(worse) => return Ok(RepairedRow::left(RowOutcome::Refused, Some(worse.to_string()), findings)),
        Ok(_) => {
            let outcome = if findings.is_empty() { RowOutcome::Clean } else { RowOutcome::Findings };
            return Ok(RepairedRow::left(outcome, named(&findings, source), findings));
        }
    };
    let mut made = Vec::with_capacity(repair.plan.length_after() as usize);
    let rendered = Rendered::new(&source, &repair.plan);
    rendered
        .pieces(Span::new(0, rendered.len()), &mut |bytes| {
            made.extend_from_slice(bytes);
            true
        })
        .map_err(lost)?;
    if line.len() > text.len() && made.ends_with(b"\n") {
        made.pop();
    }
    // In a file the original keeps what is taken out; of a row nothing else would be left.
    if made.trim_ascii().is_empty() {
        return Ok(RepairedRow::left(RowOutcome::Unreadable, named(&findings, source), findings));
    }
    let after = repair.after.map(|after| after.findings);
    let reason = named(after.as_deref().unwrap_or_default(), &made);
    Ok(RepairedRow { outcome: RowOutcome::Fixed, reason, findings, after, text: Some(made) })
}

/// A row as it is read. Nothing is appended to a row, so that a missing line break at its end says nothing.
fn whole(text: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    match text {
        [] => Err("the row is empty".to_string()),
        [.., b'\n'] => Ok(text.into()),
        _ => Ok([text, b"\n"].concat().into()),
    }
}

/// Where in a row of data a finding is: the column, and the way from there. Empty if it is about the whole row, or about a session
/// of several lines.
pub fn place(finding: &Finding, row: &[u8]) -> String {
    let row = row.trim_ascii_end();
    let doc = json::parse(&row, Span::new(0, row.len() as u64)).ok().flatten();
    let (mut place, mut at) = (String::new(), doc.as_ref().and_then(Doc::root));
    while let (Some(value), Some(spot)) = (at, finding.spot) {
        let holds = |inner: Value<'_>| inner.span().contains(spot);
        let field = value.fields().find(|(_, inner)| holds(*inner));
        let item = value.items().enumerate().find(|(_, inner)| holds(*inner));
        if let Some((name, _)) = field {
            let name = name.text().unwrap_or_default();
            let dot = if place.is_empty() { "" } else { "." };
            place = format!("{place}{dot}{}", String::from_utf8_lossy(&name));
        } else if let Some((n, _)) = item {
            place = format!("{place}[{n}]");
        }
        at = field.map(|(_, inner)| inner).or_else(|| item.map(|(_, inner)| inner));
    }
    place
}

fn lost(fault: Fault) -> String {
    format!("the row could not be read at byte {}", fault.at)
}

/// Why nothing can be said of a text; `None` if it is a transcript.
fn unsupported(found: &Examination) -> Option<String> {
    match found.facts.format {
        Some(_) => None,
        None if found.facts.is_document => {
            Some("one JSON document, not a session of a known format".to_string())
        }
        None => Some("not a session of a known format".to_string()),
    }
}

/// Findings in a few words, with the place in a row of data, or the line; `None` if there are none.
fn named(findings: &[Finding], row: &[u8]) -> Option<String> {
    let is_line = !row.trim_ascii_end().contains(&b'\n');
    let name = |found: &Finding| match place(found, row) {
        place if !place.is_empty() => format!("{} {place}: {}", found.rule.code(), found.message),
        _ if is_line => format!("{}: {}", found.rule.code(), found.message),
        _ => format!("{} line {}: {}", found.rule.code(), found.line, found.message),
    };
    let mut named: Vec<String> = findings.iter().take(NAMED_MAX).map(name).collect();
    let more = findings.iter().map(Finding::count).sum::<u64>().saturating_sub(named.len() as u64);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    (!named.is_empty()).then(|| named.join("; "))
}
