//! The parts of a rule, and helpers to build its findings.

use crate::format::Format;
use crate::model::entry::Damage;
use crate::model::finding::{Finding, Fix, Labels, Op, Severity};
use crate::model::ids::Id;
use crate::read::salvage::DamagedLine;
use crate::session::{Answers, Session};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use spans::source::{Fault, Span};

pub use crate::model::rule::{Feature, Group, Help, Limit, RuleInfo, Stage};
pub(crate) use crate::model::rule::{Heals, Repeats};

/// One problem that a session may have.
pub struct Rule {
    /// Facts about the rule.
    pub(crate) info: RuleInfo,
    /// What it does in a format. `check` only runs where this is not [`Cover::Never`].
    pub(crate) cover: fn(&Format) -> Cover,
    /// Finds the problem in a session.
    pub(crate) check: fn(&Session<'_>, &mut FindingSink<'_>) -> Result<(), Fault>,
}

impl Rule {
    /// What it does in a format.
    pub fn cover(&self, format: &Format) -> Cover {
        (self.cover)(format)
    }
}

impl Deref for Rule {
    type Target = RuleInfo;

    fn deref(&self) -> &RuleInfo {
        &self.info
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}

/// Takes the findings of a rule, one at a time.
pub struct FindingSink<'t>(&'t mut dyn FnMut(Finding));

impl<'t> FindingSink<'t> {
    pub(crate) fn new(take: &'t mut dyn FnMut(Finding)) -> Self {
        Self(take)
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        (self.0)(finding);
    }
}

impl Extend<Finding> for FindingSink<'_> {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, findings: T) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}

/// What a rule does in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// It finds the problem, and can repair it in some places.
    Fixed,
    /// It finds the problem and reports it.
    Reported,
    /// The problem cannot occur there, or the owning program repairs it; tests/cells.md says why, and docs/rules.md what remains.
    Never,
}

/// A finding about an entry, without a fix yet.
pub(super) fn about(
    rule: &'static Rule,
    session: &Session<'_>,
    entry: u32,
    severity: Severity,
    message: String,
) -> Finding {
    let found = session.entry(entry);
    let at = found.span.start;
    Finding { entry: Some(entry), at, ..about_place(rule, found.line, severity, message) }
}

/// A finding about a call.
pub(super) fn about_call(
    rule: &'static Rule,
    session: &Session<'_>,
    call: usize,
    severity: Severity,
    message: &str,
) -> Finding {
    let found = &session.transcript.calls[call];
    Finding {
        call: found.id,
        tool: found.name,
        spot: Some(found.block),
        ..about(rule, session, found.entry, severity, message.into())
    }
}

/// A finding about a line that is not an entry.
pub(super) fn about_line(
    rule: &'static Rule,
    damage: &Damage,
    severity: Severity,
    message: String,
    fix: Fix,
) -> Finding {
    Finding { fix, at: damage.span.start, ..about_place(rule, damage.line, severity, message) }
}

/// A finding about a line as a whole; about the whole file if that is line 1.
pub(super) fn about_place(rule: &'static Rule, line: u64, severity: Severity, message: String) -> Finding {
    Finding {
        rule: &rule.info,
        severity,
        line,
        labels: Labels::default(),
        uncovered: false,
        more: 0,
        at: 0,
        spot: None,
        entry: None,
        call: None,
        tool: None,
        chars: None,
        saves_bytes: None,
        message,
        fix: Fix::NONE,
        secret: None,
    }
}

/// A finding about a line that is not a record, with its repair.
pub(super) fn about_damaged_line(rule: &'static Rule, damaged: &DamagedLine, message: String) -> Finding {
    // A damaged line hides records from the agent, or else nothing that any program could read.
    let severity = if damaged.records > 0 || damaged.user { Severity::Error } else { Severity::Warning };
    let message = if damaged.user { format!("{message}; a user's message begins in it") } else { message };
    let replace = |(at, with): &(Span, Vec<u8>)| Op::Replace { at: *at, with: with.clone() };
    let fix = Fix::safe(damaged.edits.iter().map(replace).collect());
    about_line(rule, &damaged.damage, severity, message, fix)
}

/// A finding about a result.
pub(super) fn about_result(
    rule: &'static Rule,
    session: &Session<'_>,
    result: usize,
    severity: Severity,
    message: String,
) -> Finding {
    let found = session.result(result);
    Finding {
        call: found.call,
        tool: tool_of(session, result),
        spot: Some(found.block),
        ..about(rule, session, found.entry, severity, message)
    }
}

/// A wrong pair makes the API refuse the session only if the model sees it.
pub(super) fn severity_in_context(session: &Session<'_>, entry: u32) -> Severity {
    if session.in_context(entry) { Severity::Error } else { Severity::Note }
}

/// Half a pair is only a note in databases, whose agents complete it or leave it out when they send it.
pub(super) fn severity_of_half(session: &Session<'_>, entry: u32) -> Severity {
    if session.transcript.in_database { Severity::Note } else { severity_in_context(session, entry) }
}

/// The tool that a result is from: its own word, or its call's.
pub(crate) fn tool_of(session: &Session<'_>, result: usize) -> Option<Id> {
    session.result(result).name.or_else(|| match session.answers[result] {
        Answers::Call(call) | Answers::Again(call) => session.call(call).name,
        _ => None,
    })
}

/// Whether an entry must not return to the context, because a summariser could not take it.
pub(super) fn too_heavy_to_return(session: &Session<'_>, entry: u32) -> bool {
    let limit = session.policy.summary_chars_max;
    !session.in_context(entry) && limit > 0 && session.entry(entry).text_chars > limit
}
