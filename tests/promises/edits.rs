//! A repair that is verified by its edits is the one that a look at the whole result gives.

use super::story::{Step, Thinking, Turn};
use super::{Case, Checked, config, damage, lossy, small_limits, small_profiles, spell, story, thinking};
use proptest::collection::vec;
use proptest::prelude::*;
use transcript::policy::Policy;
use transcript::scan::scan;
use transcript::{Examination, Mended, mend_scanned};

/// So many questions and answers come first: the format of a file is decided by its first 40 records, and as long as it is
/// not, all of the file is read.
const PLAIN_TURNS: usize = 24;

fn plain_turns() -> impl Iterator<Item = Step> {
    (0..PLAIN_TURNS).flat_map(|n| {
        let turn = Turn {
            thinking: Thinking::None,
            text: Some(format!("answer {n}")),
            calls: Vec::new(),
            aborted: false,
            grouped: false,
            trailing: None,
        };
        [Step::Says(format!("question {n}")), Step::Turn(turn)]
    })
}

fn long_case() -> impl Strategy<Value = Case> {
    let dialect = prop::sample::select(story::DIALECTS.to_vec());
    let limits = prop_oneof![2 => small_limits().boxed(), 1 => small_profiles().boxed()];
    (dialect, story::story(), vec(damage::any_kind(), 0..5), limits, thinking()).prop_map(
        |(dialect, story, damages, policy, thinking)| {
            let story: Vec<Step> = plain_turns().chain(story).collect();
            let bytes = damage::befall(spell::spell(dialect, &story), &damages);
            Case { dialect, damages, policy: Policy { thinking, ..policy }, bytes }
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
    let facts = transcript::Facts { is_document: false, ..*facts };
    format!(
        "{facts:?} {messages:?} {waiting} {bytes_after} {context_tokens:?} {binds} {signed_at:?}\n{findings:#?}"
    )
}

fn same_as_by_whole_looks(case: &Case) -> Checked {
    let mend = |is_document: bool| {
        let mut read = scan(&case.bytes.as_slice()).unwrap();
        read.transcript.is_document |= is_document;
        mend_scanned(read, &case.bytes.as_slice(), &case.policy, &mut |_| {}).unwrap()
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

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_repair_verified_by_its_edits_is_that_of_whole_looks(case in long_case()) {
        same_as_by_whole_looks(&case)?;
    }
}
