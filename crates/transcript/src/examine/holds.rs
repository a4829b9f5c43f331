//! Repairs that are left out because they would do harm.

use crate::model::finding::{Finding, Worse};
use crate::plan::Origins;
use alloc::vec::Vec;

/// A repair that is not made: of a rule, at one place of the original or everywhere.
#[derive(Clone, Copy)]
pub(super) struct Hold {
    pub(super) code: &'static str,
    pub(super) place: Option<u64>,
    pub(super) why: Worse,
}

/// What is not to be mended in a text, and where that text comes from.
#[derive(Default)]
pub(crate) struct Holds<'h> {
    pub(super) left_out: &'h [Hold],
    /// Where in the original links were mended on the way to the text, in order.
    pub(super) links: Vec<u64>,
    pub(super) origins: Origins<'h>,
    /// How many steps led to the text; see [`crate::model::finding::STEPS_MAX`].
    pub(crate) steps_made: usize,
}

impl Holds<'_> {
    /// Whether all is mended.
    pub(crate) fn is_empty(&self) -> bool {
        self.left_out.is_empty()
    }

    /// Why the fix of a finding is not made, if that was found out.
    pub(crate) fn of(&self, finding: &Finding) -> Option<Worse> {
        let mut own = self.left_out.iter().filter(|hold| hold.code == finding.rule.code());
        let here = |hold: &&Hold| hold.place.is_none_or(|place| place == self.origins.of(finding.at));
        own.find(here).map(|hold| hold.why)
    }

    /// Whether the link of the entry that begins here was mended.
    pub(crate) fn linked(&self, at: u64) -> bool {
        !self.links.is_empty() && self.links.binary_search(&self.origins.of(at)).is_ok()
    }
}
