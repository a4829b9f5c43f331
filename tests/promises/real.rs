//! Real sessions, damaged and repaired: what holds for stories holds for what agents wrote.

use super::damage::{self, befall};
use super::folder::real_files;
use super::formats::{lines, nothing_is_lost};
use super::requests::{dialect, refusals_of};
use super::rescue::{RescueEnd, end, rescue_policy, shown_in_short, unannounced, undone};
use super::spell::SpelledLine;
use super::story::Dialect;
use super::{Case, config, lossy, read_all, tried};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::path::PathBuf;
use transcript::format::{FORMATS, ResultPlace};
use transcript::plan::{Plan, Rendered};
use transcript::scan::detect;
use transcript::{Awaits, Policy, examine};

/// The lengths to which sessions are cut; the beginning is taken.
const BYTES_MAX: &[usize] =
    if cfg!(debug_assertions) { &[10_000, 30_000] } else { &[10_000, 30_000, 80_000, 200_000] };

/// Stands for ids and texts in files that somebody derived from a session to test a program.
const STAND_IN: &[u8] = b"[trimmed for fixture]";

/// Fewer lines hardly make a session.
const LINES_MIN: usize = 7;

/// The beginning of a real session that is healthy.
struct RealSession {
    name: String,
    format: &'static str,
    lines: Vec<SpelledLine>,
}

/// All that are recognised and that their providers would accept, without duplicates.
fn healthy_sessions(files: Vec<PathBuf>) -> Vec<RealSession> {
    let mut sessions = Vec::new();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        if memchr::memmem::find(&bytes, STAND_IN).is_some() {
            continue;
        }
        let mut known = 0;
        for most in BYTES_MAX {
            let end = if bytes.len() <= *most {
                bytes.len()
            } else {
                bytes[..*most].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
            };
            let lines = at_rest(lines(&bytes[..end]));
            if lines.len() < LINES_MIN || end == known {
                continue;
            }
            known = end;
            let whole = befall(lines.clone(), &[]);
            let format = detect(&whole.as_slice()).unwrap().map(|format| format.name);
            let Some(format) = format else { continue };
            if refusals_of(format, &whole).is_some_and(|refusals| refusals.is_empty()) {
                let name = format!("{}[..{end}]", path.display());
                sessions.push(RealSession { name, format, lines });
            }
        }
    }
    sessions
}

/// The most lines at whose end no tool is awaited, because an open turn is never changed.
fn at_rest(mut lines: Vec<SpelledLine>) -> Vec<SpelledLine> {
    let waits = |lines: &[SpelledLine]| {
        let bytes = befall(lines.to_vec(), &[]);
        examine(&bytes.as_slice(), &Policy::default()).unwrap().facts.awaits == Some(Awaits::Tool)
    };
    while waits(&lines) {
        lines.pop();
    }
    lines
}

/// How a session ends whose format has no dialect here.
fn end_of_other(format: &str, case: &Case) -> Result<RescueEnd, TestCaseError> {
    let mended = tried(&case.bytes, case.given());
    if mended.before.facts.format.map(|format| format.name) != Some(format) {
        return Ok(RescueEnd::Unknown);
    }
    let Ok(repair) = mended.repair else { return Ok(RescueEnd::NoPlan) };
    let after = read_all(&Rendered::new(&case.bytes.as_slice(), &repair.plan));
    prop_assert_eq!(undone(&case.bytes, &after, &repair.plan), case.bytes.clone());
    let again = tried(&after, case.given()).repair.map(|repair| repair.plan);
    prop_assert!(again.as_ref().is_ok_and(Plan::is_empty), "{:?}\n{}", again, lossy(&after));
    nothing_is_lost(case)?;
    let refusals = refusals_of(format, &after).unwrap_or_default();
    let left = unannounced(refusals.clone(), &after, case.given());
    prop_assert!(left.is_empty(), "{left:#?}\n{}", lossy(&after));
    Ok(if refusals.is_empty() { RescueEnd::Accepted } else { RescueEnd::Announced })
}

fn become_of(session: &RealSession, case: &Case) -> Result<RescueEnd, TestCaseError> {
    if dialect(session.format).is_some() { end(case) } else { end_of_other(session.format, case) }
}

/// Whether results may be added and removed. If another file counts them, or it is unknown how they would be read,
/// missing ones are only reported.
fn is_mended_whole(name: &str) -> bool {
    let format = FORMATS.iter().find(|format| format.name == name);
    format.is_some_and(|format| format.counted.is_none() && format.answer != ResultPlace::Nowhere)
}

/// Of real sessions, at least 99 of 100 end accepted where lines may be added and removed; in all formats, nothing is
/// lost or fails silently. With `SHOW_REFUSED` in the environment, each that is not accepted is printed.
#[test]
fn real_sessions_are_rescued() {
    let Some(files) = real_files() else { return };
    let (config, sessions) = (config(), healthy_sessions(files));
    eprintln!("{} healthy sessions, seed {:?}", sessions.len(), config.rng_seed);
    let shown = std::env::var_os("SHOW_REFUSED").is_some();
    let (mut runner, strategy) =
        (TestRunner::new(config), (any::<prop::sample::Index>(), vec(damage::known(), 1..6)));
    let (mut ends, mut silent) = (BTreeMap::<(&str, RescueEnd), usize>::new(), Vec::new());
    for number in 0..runner.config().cases {
        let (which, damages) = strategy.new_tree(&mut runner).expect("nothing is rejected").current();
        let session = &sessions[which.index(sessions.len())];
        let bytes = befall(session.lines.clone(), &damages);
        let dialect = dialect(session.format).unwrap_or(Dialect::Pi);
        let case = Case { dialect, damages, policy: rescue_policy(), hold_history: false, bytes };
        let told = || format!("case {number}, {}: {:?}", session.name, case.damages);
        match become_of(session, &case) {
            Ok(end) => {
                *ends.entry((session.format, end)).or_default() += 1;
                if end != RescueEnd::Accepted && shown {
                    eprintln!("{end:?} {}\n{}", told(), shown_in_short(session.format, &case));
                }
            }
            Err(why) => silent.push(format!("{}\n{:.3000}", told(), why.to_string())),
        }
    }
    let of = |counts: &dyn Fn(&str, RescueEnd) -> bool| -> usize {
        let counted = ends.iter().filter(|((format, end), _)| counts(format, *end));
        counted.map(|(_, count)| count).sum()
    };
    let accepted = of(&|format, end| is_mended_whole(format) && end == RescueEnd::Accepted);
    let all = of(&|format, _| is_mended_whole(format)) + silent.len();
    eprintln!("{accepted} of {all} are accepted where lines may come and go: {ends:?}");
    assert!(silent.is_empty(), "{} are wrong:\n{}", silent.len(), silent.join("\n\n"));
    assert!(accepted * 100 >= all * 99, "{ends:?}");
}
