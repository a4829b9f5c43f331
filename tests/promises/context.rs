//! What a summariser gets, and what remains of a session that was too long, computed from the rows alone.

use super::reader::{self, Speaker, Spoken};
use super::story::Dialect;
use super::{Case, Checked, lossy, problems, read_all};
use proptest::prelude::*;
use std::collections::BTreeMap;
use transcript::chunk::{CHARS_MIN, Chunk, ChunkBounds, TOKENS_MIN, chars4, chunks};
use transcript::compact::NotDrawn;
use transcript::policy::{Policy, SignedThinking};
use transcript::recover::{RecoverLevel, recover};
use transcript::shorten::{Length, shorten};
use transcript::tokens::context_tokens;
use transcript::{Reading, Rendered, Severity, examine};

/// Counts each byte as a token, which no tokeniser exceeds.
fn by_bytes(text: &str) -> u64 {
    text.len() as u64
}

/// ChunkBounds that generated sessions exceed.
pub(crate) fn limits() -> impl Strategy<Value = ChunkBounds<'static>> {
    let count = prop::sample::select(vec![chars4 as fn(&str) -> u64, by_bytes]);
    let small = |least: u64| prop_oneof![Just(least), least..least * 3];
    (small(TOKENS_MIN), small(CHARS_MIN), 0u64..400, 0u64..600, count).prop_map(
        |(tokens_max, chars_max, message_chars_max, window_tokens, count)| ChunkBounds {
            tokens_max,
            chars_max,
            message_chars_max,
            window_tokens,
            budget_tokens: 0,
            count: Box::leak(Box::new(count)),
        },
    )
}

fn all(bytes: &[u8], limits: &ChunkBounds<'_>) -> Option<Vec<Chunk>> {
    let mut all = Vec::new();
    let totals = chunks(&Reading::new(&bytes).unwrap(), limits, None, &mut |chunk| {
        all.push(chunk.clone());
        true
    });
    let totals = match totals {
        Ok(totals) => totals,
        Err(NotDrawn::Unable(_)) => return None,
        Err(NotDrawn::Fault(_)) => panic!("memory can always be read"),
    };
    let sum = |of: fn(&Chunk) -> u64| all.iter().map(of).sum::<u64>();
    assert_eq!((totals.chars, totals.tokens), (sum(|chunk| chunk.chars), sum(|chunk| chunk.tokens)));
    assert_eq!((totals.chunks, totals.left_out), (all.len() as u64, 0));
    Some(all)
}

fn in_context(case: &Case, bytes: &[u8]) -> Vec<Spoken> {
    reader::live(case.dialect, &reader::rows(bytes)).into_iter().filter(|spoken| spoken.in_context).collect()
}

/// No chunk is too large, every message is in exactly one, and no call is separated from its result.
pub(crate) fn chunks_fit_and_cover(case: &Case, limits: &ChunkBounds<'_>) -> Checked {
    let Some(all) = all(&case.bytes, limits) else { return Ok(()) };
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    let mut chunk_of = BTreeMap::new();
    let mut collapsed = false;
    for (number, chunk) in all.iter().enumerate() {
        prop_assert!(!chunk.messages.is_empty());
        prop_assert!(chunk.chars <= limits.chars_max && chunk.tokens <= limits.tokens_max, "{:?}", chunk);
        let text = chunk.text();
        prop_assert_eq!(chunk.chars, text.chars().count() as u64);
        prop_assert!((limits.count)(&text) <= chunk.tokens);
        for message in &chunk.messages {
            let most = if limits.message_chars_max == 0 { u64::MAX } else { limits.message_chars_max };
            prop_assert!(message.chars <= most || message.omitted_chars.is_some(), "{:?}", message);
            *seen.entry(message.line).or_default() += 1;
            chunk_of.insert(message.line, number);
            collapsed |= message.stands_for > 1;
        }
    }
    if collapsed {
        return Ok(());
    }
    let spoken = in_context(case, &case.bytes);
    let speaks = |spoken: &&Spoken| matches!(spoken.kind, Speaker::User | Speaker::Assistant | Speaker::Tool);
    for message in spoken.iter().filter(speaks) {
        let here = || spoken.iter().filter(|other| other.line == message.line);
        // Notes count if they have text.
        let least = here().filter(speaks).count() as u64;
        let most = here().filter(|other| other.kind != Speaker::Quiet).count() as u64;
        let count = seen.get(&message.line).copied().unwrap_or(0);
        prop_assert!(least <= count && count <= most, "line {}: {} {:?}", message.line, count, all);
    }
    for result in &spoken {
        for id in &result.results {
            let calls: Vec<&Spoken> = spoken.iter().filter(|call| call.calls.contains(id)).collect();
            let answers = spoken.iter().filter(|other| other.results.contains(id)).count();
            let alone = |line: u64| spoken.iter().filter(|other| other.line == line).count() == 1;
            if let ([call], 1) = (&calls[..], answers)
                && alone(call.line)
                && alone(result.line)
            {
                prop_assert_eq!(chunk_of.get(&call.line), chunk_of.get(&result.line), "{}", id);
            }
        }
    }
    Ok(())
}

/// A budget is kept, and the result is the end of what there would be without one.
pub(crate) fn a_budget_keeps_the_newest(case: &Case, limits: &ChunkBounds<'_>, budget: u64) -> Checked {
    let Some(whole) = all(&case.bytes, limits) else { return Ok(()) };
    let mut text = String::new();
    let with = ChunkBounds { budget_tokens: budget, ..*limits };
    let totals = chunks(&Reading::new(&&case.bytes[..]).unwrap(), &with, None, &mut |chunk| {
        text += &chunk.text();
        true
    });
    let totals = totals.unwrap();
    let everything: String = whole.iter().map(Chunk::text).collect();
    prop_assert!(totals.tokens <= budget && everything.ends_with(&text), "{}\n{}", everything, text);
    let count: u64 = whole.iter().flat_map(|chunk| &chunk.messages).map(|message| message.stands_for).sum();
    prop_assert_eq!(totals.messages + totals.left_out, count);
    Ok(())
}

/// The result of a level is no worse than before, begins where a conversation can begin, and does not change when the
/// level is applied again.
pub(crate) fn recovery_is_sound(case: &Case, level: RecoverLevel, keep: u64) -> Checked {
    let done = recover(&Reading::new(&case.bytes.as_slice()).unwrap(), case.given(), level, keep)
        .expect("memory can always be read");
    let Ok(repair) = done.repair else { return Ok(()) };
    let after = read_all(&Rendered::new(&case.bytes.as_slice(), &repair.plan));
    has_no_new_problems(case, &after)?;
    if repair.plan.is_empty() || level == RecoverLevel::One {
        return Ok(());
    }
    let said = |spoken: &&Spoken| matches!(spoken.kind, Speaker::User | Speaker::Assistant | Speaker::Tool);
    let spoken = in_context(case, &after);
    if let Some(shares) = done.shares.filter(|shares| shares.left_out > 0) {
        prop_assert!(shares.kept > 0);
        let first = spoken.iter().find(said).map(|first| first.kind);
        let begins = matches!(first, Some(Speaker::User | Speaker::Assistant));
        prop_assert!(begins, "begins with {:?}\n{}", first, lossy(&after));
    }
    let tree = matches!(case.dialect, Dialect::Pi | Dialect::ClaudeCode);
    if tree
        && level == RecoverLevel::Two
        && case.policy.thinking == SignedThinking::Ignore
        && case.damages.is_empty()
    {
        let told = |bytes: &[u8]| reader::user_texts(case.dialect, bytes);
        let now = told(&after);
        prop_assert!(told(&case.bytes).iter().all(|text| now.contains(text)), "{}", lossy(&after));
    }
    let again = recover(&Reading::new(&after.as_slice()).unwrap(), case.given(), level, keep).unwrap();
    let rests = again.repair.as_ref().map_or(true, |repair| repair.plan.is_empty());
    prop_assert!(rests, "{}", lossy(&after));
    Ok(())
}

fn has_no_new_problems(case: &Case, after: &[u8]) -> Checked {
    let before = examine(&case.bytes.as_slice(), &Policy::default()).unwrap();
    let found = examine(&after, &Policy::default()).unwrap();
    if before.findings.iter().all(|finding| finding.severity < Severity::Error) {
        let old = problems(&before);
        for (problem, count) in
            problems(&found).into_iter().filter(|((code, _), _)| code.starts_with(['P', 'B']))
        {
            let known = old.get(&problem).is_some_and(|old| *old >= count);
            prop_assert!(known, "{problem:?}: {count}\n{}", lossy(after));
        }
    }
    Ok(())
}

/// A session that is shortened to a number of tokens is no worse, and has as many tokens as reported.
pub(crate) fn shortening_is_sound(case: &Case, percent: u64) -> Checked {
    let source = case.bytes.as_slice();
    let reading = Reading::new(&source).expect("memory can always be read");
    let Some(length) = Length::measure(&reading, &case.policy, None).unwrap() else { return Ok(()) };
    let target = length.tokens * percent / 100;
    let done = shorten(&reading, case.given(), &length, target).expect("memory can always be read");
    let Ok(repair) = done.recovered.repair else { return Ok(()) };
    let after = read_all(&Rendered::new(&source, &repair.plan));
    has_no_new_problems(case, &after)?;
    let left = context_tokens(&after.as_slice()).unwrap().map_or(0, |left| left.estimated);
    prop_assert_eq!(length.when(left), done.tokens, "{}", lossy(&after));
    prop_assert!(done.tokens < length.tokens, "{}", lossy(&after));
    let spoken = in_context(case, &after);
    if done.recovered.shares.is_some_and(|shares| shares.left_out > 0) {
        let said =
            |spoken: &&Spoken| matches!(spoken.kind, Speaker::User | Speaker::Assistant | Speaker::Tool);
        let first = spoken.iter().find(said).map(|first| first.kind);
        prop_assert!(matches!(first, Some(Speaker::User | Speaker::Assistant)), "{}", lossy(&after));
    }
    Ok(())
}
