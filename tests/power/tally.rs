//! Counts of how the cases ended.

use std::collections::BTreeMap;

/// The number of examples to print for each broken invariant.
const EXAMPLES: usize = 3;

/// How all cases ended.
#[derive(Default)]
pub(super) struct CutTally {
    well: u64,
    in_vault: u64,
    pub(super) unclear: u64,
    /// One of the unclear traces.
    pub(super) example: String,
    killed: u64,
    left: u64,
    late: u64,
    lost_by_disk: u64,
    /// Seeds and details, by the invariant that broke.
    pub(super) wrong: BTreeMap<&'static str, Vec<(u64, String)>>,
}

impl CutTally {
    pub(super) fn add(&mut self, seed: u64, ended: Ended) {
        self.killed += u64::from(ended.killed);
        self.left += u64::from(ended.left);
        self.late += u64::from(ended.late);
        self.lost_by_disk += ended.lost_by_disk;
        match ended.verdict {
            CutVerdict::Well => self.well += 1,
            CutVerdict::InVault => self.in_vault += 1,
            CutVerdict::Unclear(why) => {
                self.unclear += 1;
                self.example = format!("{seed}: {why}");
            }
            CutVerdict::Wrong(what, why) => self.wrong.entry(what).or_default().push((seed, why)),
        }
    }

    pub(super) fn counts(&self) -> String {
        let wrong: usize = self.wrong.values().map(Vec::len).sum();
        let Self { well, in_vault, unclear, killed, left, late, lost_by_disk, .. } = self;
        format!(
            "{wrong} wrong, {well} well, {in_vault} with lines only in the vault, {unclear} unclear; killed {killed} \
            times; left a file next to the session {left} times, {late} times with the only copy of a line; \
            {lost_by_disk} lines lost by the disk alone"
        )
    }

    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        for (what, cases) in &self.wrong {
            lines.push(format!("{what}: {} times, for example", cases.len()));
            let some = cases.iter().take(EXAMPLES);
            lines.extend(
                some.map(|(seed, why)| format!("    TAILOR_POWER_SEED={seed} TAILOR_POWER_CASES=1: {why}")),
            );
        }
        lines.join("\n")
    }
}

/// How one case ended.
pub(super) struct Ended {
    /// Whether the program was killed before the cut.
    pub(super) killed: bool,
    /// Whether the cut left a file of ours next to the session.
    pub(super) left: bool,
    /// Whether that file had the only copy of a line that a program had appended to it.
    pub(super) late: bool,
    /// The number of lines that survived only in a new text that never reached its place. The disk lost them.
    pub(super) lost_by_disk: u64,
    pub(super) verdict: CutVerdict,
}

pub(super) enum CutVerdict {
    Well,
    /// The recovery dropped lines from a leftover, and undo brings them back.
    InVault,
    /// The trace does not tell what is on the disk.
    Unclear(String),
    /// The invariant that broke, and the details.
    Wrong(&'static str, String),
}
