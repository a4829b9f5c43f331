//! What a repair is compared by: how many warnings and errors there are, and where.

use crate::format::Format;
use crate::model::finding::{ERRORS_MAX, Finding, Safety, Severity};
use crate::model::rule::{Codes, Stage};
use crate::plan::Origins;
use crate::rule::{self, RULES};
use alloc::vec;
use alloc::vec::Vec;

/// What a repair is compared by: how many warnings and errors there are of each rule, and where the errors are.
pub(crate) struct Tally {
    /// Warnings and errors of each rule. Each error is also a warning, so that to become less bad is no harm.
    warnings: Vec<usize>,
    /// Rules with a warning or an error that no fix mends when it is asked for by name.
    incurable: Codes,
    /// Sorted.
    errors: Vec<Problem>,
    /// There are more errors than that.
    is_cut: bool,
}

/// An error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// In the text that was looked at, or in the original.
    at: u64,
    rule: u8,
    /// A fix mends it when it is asked for by name.
    curable: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self { warnings: vec![0; RULES.len()], incurable: rule::NONE, errors: Vec::new(), is_cut: false }
    }
}

impl Tally {
    pub(super) fn add(&mut self, rule: usize, finding: &Finding) {
        if finding.severity < Severity::Warning {
            return;
        }
        let curable = matches!(finding.fix.safety, Safety::Guarded(_));
        self.warnings[rule] += 1;
        if !curable {
            self.incurable.insert(finding.rule.code());
        }
        if finding.severity < Severity::Error {
            return;
        }
        self.is_cut |= self.errors.len() == ERRORS_MAX;
        if !self.is_cut {
            self.errors.push(Problem { at: finding.at, rule: rule as u8, curable });
        }
    }

    /// Nothing is added any more.
    pub(super) fn finish(&mut self) {
        self.errors.sort_unstable();
        self.errors.shrink_to_fit();
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether the session cannot be sent, or not be read. What a lost link hides is not sent, nor a line that cannot be
    /// read where the agent skips it.
    pub(crate) fn is_refused(&self, format: &Format) -> bool {
        self.errors.iter().any(|error| match RULES[usize::from(error.rule)].stage {
            Stage::Bytes => !format.skips_unreadable_lines,
            Stage::Links => false,
            Stage::Lines | Stage::Talk => true,
        })
    }

    /// Whether the places of some errors are not known.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The same with the places in the original.
    pub(crate) fn at_origins(&self, origins: &Origins<'_>) -> Self {
        let errors = self.errors.iter().map(|error| Problem { at: origins.of(error.at), ..*error });
        let mut errors: Vec<Problem> = errors.collect();
        errors.sort_unstable();
        Self { warnings: self.warnings.clone(), errors, ..*self }
    }

    fn count(&self, at: u64, rule: u8) -> usize {
        let from = self.errors.partition_point(|error| (error.at, error.rule) < (at, rule));
        self.errors[from..].iter().take_while(|error| (error.at, error.rule) == (at, rule)).count()
    }

    /// The rules of which there is more than in any of these, and whether each of these findings has a fix that is made
    /// when it is asked for by name.
    ///
    /// A warning may move: where a lost link is mended, one further up comes into sight. An error may not.
    pub(crate) fn news(&self, known: &[&Self]) -> (Codes, bool) {
        let (mut codes, mut curable) = (rule::NONE, true);
        for (rule, &count) in self.warnings.iter().enumerate() {
            if known.iter().all(|known| known.warnings[rule] < count) && count > 0 {
                let code = RULES[rule].code();
                codes.insert(code);
                curable &= !self.incurable.has(code);
            }
        }
        for errors in self.errors.chunk_by(|a, b| (a.at, a.rule) == (b.at, b.rule)) {
            let Problem { at, rule, .. } = errors[0];
            if known.iter().all(|known| known.count(at, rule) < errors.len()) {
                codes.insert(RULES[usize::from(rule)].code());
                curable &= errors.iter().all(|error| error.curable);
            }
        }
        (codes, curable)
    }
}
