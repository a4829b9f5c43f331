//! Repairs that are left out because they would make something worse.

use crate::model::finding::{Finding, Worse};
use crate::plan::Origins;
use alloc::vec::Vec;

/// A repair that is left out: all fixes of a rule, or the one at an offset of the original.
#[derive(Clone, Copy)]
pub(super) struct Hold {
    pub(super) code: &'static str,
    pub(super) place: Option<u64>,
    pub(super) why: Worse,
}

/// What to leave out when looking at a text, and where that text comes from.
#[derive(Default)]
pub(crate) struct Holds<'h> {
    pub(super) left_out: &'h [Hold],
    /// Offsets in the original at which earlier rounds repaired links, sorted.
    pub(super) links: Vec<u64>,
    pub(super) origins: Origins<'h>,
    /// How many steps earlier rounds made; see [`crate::model::finding::STEPS_MAX`].
    pub(crate) steps_made: usize,
}

impl Holds<'_> {
    /// Whether nothing is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.left_out.is_empty()
    }

    /// Why the fix of a finding is left out, if it is.
    pub(crate) fn why_left_out(&self, finding: &Finding) -> Option<Worse> {
        let mut own = self.left_out.iter().filter(|hold| hold.code == finding.rule.code());
        let here =
            |hold: &&Hold| hold.place.is_none_or(|place| place == self.origins.original_offset(finding.at));
        own.find(here).map(|hold| hold.why)
    }

    /// Whether the link of the entry that begins here was repaired.
    pub(crate) fn linked(&self, at: u64) -> bool {
        !self.links.is_empty() && self.links.binary_search(&self.origins.original_offset(at)).is_ok()
    }
}
