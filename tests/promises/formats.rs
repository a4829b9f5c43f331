//! The promises for formats in which random stories are not spelled: their fixtures and stories, damaged.
//!
//! Nothing here knows a format except by its name, its level and what counts its lines. User text is recognised by a
//! few words that all these formats share.

use super::damage::{self, LineDamage};
use super::judge;
use super::plainer::is_plainer;
use super::reader::{is_broken, rows};
use super::requests;
use super::rescue::{folders, unannounced, undone};
use super::spell::SpelledLine;
use super::stories;
use super::story::Dialect;
use super::{
    Case, Checked, any_policy, comes_to_rest, config, counts, finds_no_more, lets_history_go,
    lines_stay_readable, looks_say_what_tries_find, lossy, markers_lead_somewhere, repaired, small_limits,
    small_profiles, thinking,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use transcript::format::{FORMATS, Format, OutsideCount, SupportLevel};
use transcript::scan::scan;
use transcript::{Policy, examine};

/// Longer fixtures are about lengths, and each case is repaired several times.
const FIXTURE_BYTES_MAX: usize = 10_000;

/// A format, and its fixtures before repair.
pub(crate) struct FormatFixtures {
    pub format: &'static Format,
    pub files: Vec<Vec<u8>>,
}

/// All formats except the dialects of random stories.
pub(crate) static KINDS: LazyLock<Vec<FormatFixtures>> = LazyLock::new(|| {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let others = FORMATS.iter().filter(|format| !["pi", "claude-code"].contains(&format.name));
    let kind = |format: &&'static Format| {
        let cases = folders(&fixtures.join(format.name)).into_iter();
        let recorded = cases.filter_map(|case| std::fs::read(case.join("in.jsonl")).ok());
        let told = stories::all().into_iter().filter(|told| told.format == format.name);
        let files = recorded.chain(told.map(|told| told.bytes));
        FormatFixtures { format, files: files.filter(|bytes| bytes.len() < FIXTURE_BYTES_MAX).collect() }
    };
    others.map(kind).collect()
});

/// A fixture of a format, perhaps with lines of another fixture in between, and damaged.
fn damaged(kind: &'static FormatFixtures) -> impl Strategy<Value = Case> {
    let file = || select(kind.files.iter().collect::<Vec<_>>());
    let other = prop_oneof![4 => Just(None), 1 => (file(), vec(any::<bool>(), 1..9)).prop_map(Some)];
    let policy = prop_oneof![
        1 => Just(Policy::default()),
        3 => (small_limits(), thinking()).prop_map(|(policy, thinking)| Policy { thinking, ..policy }),
        1 => small_profiles(),
        1 => any_policy(),
    ];
    let damages = prop_oneof![1 => Just(Vec::new()), 4 => vec(damage::known(), 1..5)];
    (file(), other, damages, policy).prop_map(move |(file, other, damages, policy)| {
        let lines = match other {
            Some((other, turns)) => interleaved(lines(file), lines(other), &turns),
            None => lines(file),
        };
        // The dialect does not matter here.
        let bytes = damage::befall(lines, &damages);
        Case { dialect: Dialect::Pi, damages, policy, hold_history: false, bytes }
    })
}

/// The lines of a file, with the ids that other lines may name as their parent.
pub(crate) fn lines(bytes: &[u8]) -> Vec<SpelledLine> {
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|&byte| byte == b'\n');
    let line = |bytes: &[u8]| {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let id = value["id"].as_str().or(value["uuid"].as_str()).map(str::to_string);
        SpelledLine { id, bytes: bytes.to_vec() }
    };
    lines.map(line).collect()
}

/// Two programs write into one file.
fn interleaved(one: Vec<SpelledLine>, two: Vec<SpelledLine>, turns: &[bool]) -> Vec<SpelledLine> {
    let (mut one, mut two, mut out) = (one.into_iter(), two.into_iter(), Vec::new());
    for first in turns.iter().cycle() {
        let (now, then) = if *first { (&mut one, &mut two) } else { (&mut two, &mut one) };
        match now.next().or_else(|| then.next()) {
            Some(line) => out.push(line),
            None => break,
        }
    }
    out
}

/// User texts in any of these formats: strings and text blocks of a user or human.
fn said(value: &Value, out: &mut BTreeSet<String>) {
    let is = |key: &str, names: &[&str]| value[key].as_str().is_some_and(|own| names.contains(&own));
    let person = is("role", &["user"]) || is("from", &["human"]);
    if person || is("type", &["user", "user.message", "user_message"]) {
        for content in [&value["content"], &value["parts"], &value["value"], &value["data"]["content"]] {
            out.extend(content.as_str().map(str::to_string));
            let blocks = content.as_array().into_iter().flatten();
            let texts = blocks.filter(|block| block["type"] != "tool_result");
            out.extend(texts.filter_map(|block| block["text"].as_str()).map(str::to_string));
        }
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| said(item, out)),
        Value::Object(members) => members.values().for_each(|member| said(member, out)),
        _ => {}
    }
}

fn all_said(bytes: &[u8]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    rows(bytes).iter().for_each(|row| said(&row.value, &mut out));
    // White space is not content, and may be removed.
    out.retain(|text| !text.trim().is_empty());
    out
}

/// A file is recognised correctly or not at all, before and after the repair.
fn is_told_apart(kind: &FormatFixtures, case: &Case) -> Checked {
    let claimed = |bytes: &[u8]| scan(&bytes).unwrap().format.map(|format| format.name);
    let (before, own) = (claimed(&case.bytes), kind.format.name);
    let right = |name: &str| name == own || is_plainer(name, own);
    prop_assert!(before.is_none_or(right), "{own} is taken for {before:?}");
    let Some((_, after, _)) = repaired(&case.bytes, case.given()) else { return Ok(()) };
    let now = claimed(&after);
    let kept = now == before || now.zip(before).is_some_and(|(now, before)| is_plainer(now, before));
    prop_assert!(kept, "{before:?} comes to be {now:?}\n{}", lossy(&after));
    Ok(())
}

/// The plan has everything that was removed, and no user text is among it.
pub(crate) fn nothing_is_lost(case: &Case) -> Checked {
    let Some((plan, after, _)) = repaired(&case.bytes, case.given()) else { return Ok(()) };
    prop_assert_eq!(&undone(&case.bytes, &after, &plan), &case.bytes);
    if lets_history_go(&case.policy) {
        return Ok(());
    }
    let (old, new) = (all_said(&case.bytes), all_said(&after));
    let lost: Vec<&String> = old.difference(&new).collect();
    prop_assert!(lost.is_empty(), "{lost:?}\n{}", lossy(&after));
    // Only if no bytes had to be repaired, not even in user texts, and no text occurs twice.
    let found = examine(&case.bytes.as_slice(), case.given()).unwrap();
    if !is_broken(&case.bytes) && counts(&found).keys().all(|code| !code.starts_with(['B', 'T'])) {
        let told = |bytes: &[u8]| {
            scan(&bytes).map(|found| (found.transcript.user_text, found.transcript.user_texts)).unwrap()
        };
        prop_assert_eq!(told(&case.bytes), told(&after), "{}", lossy(&after));
    }
    Ok(())
}

/// Lines with a line end that are not empty.
fn whole_lines(bytes: &[u8]) -> usize {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.filter(|line| !line.trim_ascii().is_empty()).count()
}

/// The file is changed as far as its format's level allows, and no further.
fn stays_within_its_level(case: &Case) -> Checked {
    let Some((plan, after, _)) = repaired(&case.bytes, case.given()) else { return Ok(()) };
    let Some(format) = scan(&case.bytes.as_slice()).unwrap().format else {
        prop_assert!(plan.is_empty(), "nobody knows what this is");
        return Ok(());
    };
    let (old, new) = (rows(&case.bytes), rows(&after));
    let broken = is_broken(&case.bytes);
    let same = |old: usize, new: usize| old == new || (broken && old < new);
    let compacted = |rows: &[super::reader::FileObject]| {
        rows.iter().rposition(|row| row.value["type"] == "session.compaction_complete").unwrap_or(0)
    };
    match (format.level, format.counted) {
        (SupportLevel::ReadOnly(_), _) => prop_assert!(plan.is_empty(), "{plan:?}"),
        (_, Some(OutsideCount::Lines(_))) => {
            let (old, new) = (whole_lines(&case.bytes), whole_lines(&after));
            let ended = !case.bytes.ends_with(b"\n");
            // Repairs may join what its writer wrote, and counted, as one line and damage tore apart.
            let joined = new < old
                && counts(&examine(&case.bytes.as_slice(), case.given()).unwrap()).contains_key("B8");
            prop_assert!(
                old == new || joined || (ended && old + 1 == new),
                "{old}, {new}\n{}",
                lossy(&after)
            );
        }
        (_, Some(OutsideCount::Records(_))) => {
            prop_assert!(same(old.len(), new.len()), "{}, {}\n{}", old.len(), new.len(), lossy(&after));
        }
        (_, Some(OutsideCount::UpToCompaction(_))) => {
            prop_assert!(same(compacted(&old), compacted(&new)), "{}", lossy(&after));
        }
        (SupportLevel::Truncate, None) if case.policy.selection.allow.is_empty() => {
            prop_assert!(same(old.len(), new.len()), "{}, {}\n{}", old.len(), new.len(), lossy(&after));
        }
        _ => {}
    }
    Ok(())
}

/// If the provider's answer is known, each remaining refusal has a finding.
fn is_accepted_or_said_not_to_be(kind: &FormatFixtures, case: &Case) -> Checked {
    let Some((_, after, _)) = repaired(&case.bytes, case.given()) else { return Ok(()) };
    let found = examine(&after.as_slice(), &Policy::default()).unwrap();
    // It is unknown what agents make of broken lines and overwritten names.
    let overwritten = case.damages.iter().any(|damage| matches!(damage, LineDamage::Overwrite(..)));
    let read = !overwritten && counts(&found).keys().all(|code| !code.starts_with('B'));
    let known = found.facts.format.map(|format| format.name).filter(|name| read && *name == kind.format.name);
    let Some(refusals) = known.and_then(|name| requests::refusals(name, &after)) else { return Ok(()) };
    let rows = rows(&after);
    // Two sessions in one file share their records' ids, so it is unknown which one is meant.
    let begins = |row: &&super::reader::FileObject| {
        row.value["type"] == "session.start" || row.value["projectHash"].is_string()
    };
    if rows.iter().filter(begins).count() > 1 {
        return Ok(());
    }
    let mut left = unannounced(refusals, &after, &Policy::default());
    // Gemini joins pairs without ids by their place, so no finding is required.
    if rows.iter().any(|row| has_unnamed_result(&row.value)) {
        left.retain(|refusal| !["P1", "P2"].contains(&refusal.class));
    }
    prop_assert!(left.is_empty(), "{left:#?}\n{}", lossy(&after));
    Ok(())
}

/// Whether there is one of Gemini's results without an id.
fn has_unnamed_result(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_unnamed_result),
        Value::Object(members) => {
            let unnamed = members.get("functionResponse").is_some_and(|answer| !answer["id"].is_string());
            unnamed || members.values().any(has_unnamed_result)
        }
        _ => false,
    }
}

fn keeps_the_promises(kind: &FormatFixtures, case: &Case) -> Checked {
    is_told_apart(kind, case)?;
    nothing_is_lost(case)?;
    stays_within_its_level(case)?;
    comes_to_rest(case)?;
    markers_lead_somewhere(case)?;
    looks_say_what_tries_find(case)?;
    finds_no_more(case)?;
    lines_stay_readable(case)?;
    is_accepted_or_said_not_to_be(kind, case)?;
    judge::follow(&case.bytes, &judge::line_ends(&case.bytes), case.given(), &mut judge::JudgeCounts::new())
}

/// Each format has its own cases, so that none is missed.
#[test]
fn every_format_keeps_the_promises() {
    let (config, mut wrong) = (config(), Vec::new());
    let cases = config.cases / 20;
    for kind in KINDS.iter() {
        let mut runner = TestRunner::new(ProptestConfig { cases, ..config.clone() });
        let kept = runner.run(&damaged(kind), |case| keeps_the_promises(kind, &case));
        wrong.extend(kept.err().map(|why| format!("{:?}: {why}", kind.format)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_format_has_fixtures_to_damage() {
    for kind in KINDS.iter() {
        let few = if let SupportLevel::ReadOnly(_) = kind.format.level { 2 } else { 6 };
        assert!(kind.files.len() >= few, "{:?}: {}", kind.format, kind.files.len());
    }
}
