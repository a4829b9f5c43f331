//! A repair that is verified by its edits is the one that a look at the whole result gives.

use super::story::{StoryStep, StoryThinking, StoryTurn};
use super::{Case, Checked, config, damage, lossy, small_limits, small_profiles, spell, story, thinking};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use transcript::policy::Policy;
use transcript::scan::scan;
use transcript::{Examination, Fault, Mended, Source, mend_scanned};

/// So many questions and answers come first: the format of a file is decided by its first 40 records, and as long as it is
/// not, all of the file is read.
const PLAIN_TURNS: usize = 24;

fn plain_turns() -> impl Iterator<Item = StoryStep> {
    (0..PLAIN_TURNS).flat_map(|n| {
        let turn = StoryTurn {
            thinking: StoryThinking::None,
            text: Some(format!("answer {n}")),
            calls: Vec::new(),
            aborted: false,
            grouped: false,
            trailing: None,
        };
        [StoryStep::Says(format!("question {n}")), StoryStep::Turn(turn)]
    })
}

fn long_case() -> impl Strategy<Value = Case> {
    let dialect = prop::sample::select(story::DIALECTS.to_vec());
    let limits = prop_oneof![2 => small_limits().boxed(), 1 => small_profiles().boxed()];
    (dialect, story::story(), vec(damage::any_kind(), 0..5), limits, thinking()).prop_map(
        |(dialect, story, damages, policy, thinking)| {
            let story: Vec<StoryStep> = plain_turns().chain(story).collect();
            let bytes = damage::befall(spell::spell(dialect, &story), &damages);
            Case { dialect, damages, policy: Policy { thinking, ..policy }, hold_history: false, bytes }
        },
    )
}

/// All that is told of a transcript.
fn told(found: &Examination) -> String {
    let findings: Vec<_> = found
        .findings
        .iter()
        .map(|f| {
            (
                f.rule.code(),
                f.line,
                f.severity,
                &f.labels,
                f.chars,
                &f.message,
                f.fix.safety,
                f.uncovered,
                f.more,
            )
        })
        .collect();
    let Examination { facts, messages, waiting, bytes_after, context_tokens, binds, signed_at, .. } = found;
    let mut facts = *facts;
    facts.is_document = false;
    format!(
        "{facts:?} {messages:?} {waiting} {bytes_after} {context_tokens:?} {binds} {signed_at:?}\n{findings:#?}"
    )
}

fn same_as_by_whole_looks(case: &Case) -> Checked {
    let mend = |is_document: bool| {
        let mut read = scan(&case.bytes.as_slice()).unwrap();
        read.transcript.is_document |= is_document;
        mend_scanned(read, &case.bytes.as_slice(), case.given(), &mut |_| {}).unwrap()
    };
    // Of a file that was read as a document nothing can be built upon, so that all of each result is read.
    let (by_edits, whole) = (mend(false), mend(true));
    let parts = |mended: &Mended| {
        let repair = mended.repair.as_ref().map_err(|worse| format!("{worse:?}"));
        let repair = repair.map(|repair| (repair.plan.clone(), repair.after.as_ref().map(told)));
        (told(&mended.before), repair)
    };
    let (by_edits, whole) = (parts(&by_edits), parts(&whole));
    prop_assert_eq!(&by_edits.0, &whole.0, "{}", lossy(&case.bytes));
    prop_assert_eq!(&by_edits.1, &whole.1, "{}", lossy(&case.bytes));
    Ok(())
}

/// Counts how much is read.
struct CountingSource<'b>(&'b [u8], Cell<u64>);

impl Source for CountingSource<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let got = self.0.read(at, buffer)?;
        self.1.set(self.1.get() + got as u64);
        Ok(got)
    }
}

/// Whether a repair is found, and how many bytes are read for it.
fn effort(case: &Case, is_document: bool) -> (bool, u64) {
    let source = CountingSource(&case.bytes, Cell::new(0));
    let mut read = scan(&case.bytes.as_slice()).unwrap();
    read.transcript.is_document |= is_document;
    let mended = mend_scanned(read, &source, case.given(), &mut |_| {}).unwrap();
    (mended.repair.is_ok_and(|repair| !repair.plan.is_empty()), source.1.get())
}

/// The comparison below says nothing where a result is read whole in both ways. Those are not counted that read little less
/// because they begin near the front: there the format is decided again, and such a session is hardly longer than what
/// that takes.
#[test]
fn many_repairs_are_verified_by_their_edits() {
    let (mut runner, cases) = (TestRunner::deterministic(), long_case());
    let (mut repairs, mut by_edits) = (0, 0);
    for _ in 0..80 {
        let case = cases.new_tree(&mut runner).unwrap().current();
        let ((repaired, some), (_, all)) = (effort(&case, false), effort(&case, true));
        repairs += u32::from(repaired);
        by_edits += u32::from(repaired && some + case.bytes.len() as u64 / 4 < all);
    }
    assert!(repairs >= 20, "{repairs} repairs");
    assert!(by_edits * 4 > repairs, "{by_edits} of {repairs} repairs");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_repair_verified_by_its_edits_is_that_of_whole_looks(case in long_case()) {
        same_as_by_whole_looks(&case)?;
    }
}
