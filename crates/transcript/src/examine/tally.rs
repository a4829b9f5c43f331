//! The numbers that the verdict compares: how many warnings and errors there are, and where.

use crate::format::Format;
use crate::model::finding::{ERRORS_MAX, Finding, Safety, Severity};
use crate::model::rule::{Codes, Stage};
use crate::plan::Origins;
use crate::rule::{self, RULES};
use alloc::vec;
use alloc::vec::Vec;

/// How many warnings and errors each rule has, and where the errors are.
pub(crate) struct ProblemTally {
    /// Warnings and errors of each rule. An error counts as a warning too, so one that becomes a warning is nothing new.
    warnings: Vec<usize>,
    /// Rules with a warning or an error that `--allow` would not repair.
    incurable: Codes,
    /// Sorted.
    errors: Vec<Problem>,
    /// There are more errors than are kept.
    is_cut: bool,
}

/// An error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// Its offset in the text that was looked at, or in the original.
    at: u64,
    rule: u8,
    /// `--allow` would repair it.
    curable: bool,
}

impl Default for ProblemTally {
    fn default() -> Self {
        Self { warnings: vec![0; RULES.len()], incurable: rule::NONE, errors: Vec::new(), is_cut: false }
    }
}

impl ProblemTally {
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

    /// Sorts the errors; nothing is added afterwards.
    pub(super) fn finish(&mut self) {
        self.errors.sort_unstable();
        self.errors.shrink_to_fit();
    }

    /// Whether there are errors besides lost links, which hide messages, but keep nothing from being sent.
    pub(crate) fn has_refusals(&self) -> bool {
        self.errors.iter().any(|error| RULES[usize::from(error.rule)].stage != Stage::Links)
    }

    /// Whether the agent cannot read the session or the API refuses it. Messages hidden by a lost link are not sent, and so
    /// do no harm; nor does an unreadable line that the agent skips.
    pub(crate) fn is_refused(&self, format: &Format) -> bool {
        self.errors.iter().any(|error| match RULES[usize::from(error.rule)].stage {
            Stage::Bytes => !format.skips_unreadable_lines,
            Stage::Links => false,
            Stage::Secrets | Stage::Lines | Stage::Talk => true,
        })
    }

    /// Whether the places of some errors are not known.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// This tally with offsets in the original.
    pub(crate) fn at_origins(&self, origins: &Origins<'_>) -> Self {
        let errors =
            self.errors.iter().map(|error| Problem { at: origins.original_offset(error.at), ..*error });
        let mut errors: Vec<Problem> = errors.collect();
        errors.sort_unstable();
        Self { warnings: self.warnings.clone(), errors, ..*self }
    }

    fn count(&self, at: u64, rule: u8) -> usize {
        let from = self.errors.partition_point(|error| (error.at, error.rule) < (at, rule));
        self.errors[from..].iter().take_while(|error| (error.at, error.rule) == (at, rule)).count()
    }

    /// The rules with more findings than in any of `known`, and whether `--allow` would repair each of these findings.
    ///
    /// Warnings are compared by number, errors by place: where a lost link is repaired, the same warning may appear further
    /// up, but an error must not move.
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
