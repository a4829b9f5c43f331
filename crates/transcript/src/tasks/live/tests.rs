//! What a bot is promised: the rules of files, for messages that are in none.

use super::{Call, Message, Role, age, budget, cap, chunks, fit, guard, pair};
use crate::examine::mend::examine;
use crate::examine::verdict::Worse;
use crate::model::policy::{Policy, Selection};
use crate::model::profile::{self, PROFILES};
use crate::tasks::chunk::{Limits, chars4};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use proptest::prelude::*;
use spans::marker::Id;

fn policy(name: &str) -> Policy {
    profile::find(name).unwrap().policy()
}

fn calls(ids: &[&str]) -> Message {
    Message::assistant("", ids.iter().map(|id| Call::new(id, "fetch")).collect())
}

fn result(call: &str, chars: usize) -> Message {
    Message::result(call, "fetch", &"x".repeat(chars), false)
}

fn said() -> Message {
    Message::assistant("on", Vec::new())
}

#[test]
fn a_result_is_capped_while_others_of_its_turn_are_not_there_yet() {
    let text = "line \"one\"\n\u{1f980}\t".repeat(4_000);
    let capped = cap(&text, "bash", false, &Policy::default()).unwrap().unwrap();
    assert!(capped.text.chars().count() < 32_000 + 100);
    assert_eq!(capped.original.text, text);
    assert!(capped.text.contains(&format!("tailor show {}", capped.original.id)));
    assert_eq!(cap(&capped.text, "bash", false, &Policy::default()), Ok(None), "a second time");
    assert_eq!(cap("short", "bash", false, &Policy::default()), Ok(None));
    // Caps of tools, and failures that they do not ask: those of ChatCLI.
    let long = "x".repeat(25_000);
    let kept = |tool: &str, error: bool| {
        let capped = cap(&long, tool, error, &policy("chatcli")).unwrap();
        capped.map(|capped| capped.text.split_once('\n').unwrap().0.len())
    };
    assert_eq!([kept("fetch", false), kept("fetch", true)], [Some(4_000); 2]);
    let keep = Policy { tools_keep: vec!["fetch".into()], ..policy("chatcli") };
    assert_eq!(cap(&long, "fetch", false, &keep), Ok(None));
    let off = Selection { ignore: vec!["S1".into()], ..Selection::default() };
    assert_eq!(cap(&long, "fetch", false, &Policy { selection: off, ..Policy::default() }), Ok(None));
}

#[test]
fn chunks_hold_each_message_once_and_by_its_number() {
    let history: Vec<_> = (0..30)
        .flat_map(|n| {
            let call = Message::assistant("", vec![Call::new(&n.to_string(), "fetch")]);
            [Message::user("go \"on\""), call, result(&n.to_string(), 100 * n), said()]
        })
        .collect();
    let limits = Limits {
        tokens_max: 600,
        chars_max: 0,
        message_chars_max: 2_000,
        window_tokens: 0,
        budget_tokens: 0,
        count: &chars4,
    };
    let all = chunks(&history, &limits);
    assert!(all.len() > 3 && all.iter().all(|chunk| chunk.tokens <= 600), "{}", all.len());
    let told: Vec<_> = all.iter().flat_map(|chunk| &chunk.messages).collect();
    assert_eq!(told.iter().map(|message| message.line).collect::<Vec<_>>(), (1..=120).collect::<Vec<_>>());
    assert_eq!(told[0].text, "[user]\ngo \"on\"\n\n");
    assert_eq!((told[2].role, told[2].tool.as_deref()), ("tool", Some("fetch")));
    assert_eq!(told[118].omitted_chars, Some(2_900));
    assert!(chunks(&[], &limits).is_empty());
}

#[test]
fn pairs_come_together_and_messages_keep_their_numbers() {
    let history = [
        Message::user("go"),
        calls(&["a", "b"]),
        Message::user("hm"),
        result("b", 3),
        result("ghost", 3),
        said(),
    ];
    let fitted = pair(&history, &Policy::default()).unwrap();
    let from: Vec<_> = fitted.messages.iter().map(|now| now.from).collect();
    assert_eq!(from, [Some(0), Some(1), None, Some(3), Some(2), Some(5)]);
    let lost = &fitted.messages[2].message;
    assert_eq!((lost.role, lost.call.as_str(), lost.error), (Role::Tool, "a", true));
    let codes: Vec<_> = fitted.findings.iter().map(|found| (found.line, found.rule.code())).collect();
    assert_eq!(codes, [(2, "P1"), (4, "P4"), (5, "P2")]);
    // The newest calls may be running.
    assert_eq!(pair(&history[..2], &Policy::default()).unwrap().messages.len(), 2);
}

#[test]
fn budgets_and_ages_are_those_of_the_profile() {
    let kept = |fitted: super::Fitted| -> Vec<usize> {
        fitted
            .messages
            .iter()
            .filter(|now| now.message.role == Role::Tool)
            .map(|now| now.message.text.len())
            .collect()
    };
    let small = Policy { turn_chars_max: 20_000, ..policy("chatcli") };
    let turn = [calls(&["a", "b"]), result("a", 9_000), result("b", 15_000), said()];
    let fitted = budget(&turn, &small).unwrap();
    assert_eq!(fitted.originals.len(), 1);
    let lengths = kept(fitted);
    assert!(lengths[0] == 9_000 && (5_000..5_100).contains(&lengths[1]), "{lengths:?}");
    let old = [&turn[..], &[said(), said(), said()]].concat();
    let lengths = kept(age(&old, &policy("chatcli")).unwrap());
    assert!(lengths.iter().all(|&length| length < 120), "{lengths:?}");
    // The cache of openclaw-5057 is warm until the model has been silent for five minutes.
    let now = 1_782_900_000_000;
    let crowded = Policy { now_ms: Some(now), window_tokens: 6_000, ..policy("openclaw-5057") };
    let spoken = |ago_ms: u64| {
        let last = Message { written_ms: Some(now - ago_ms), ..said() };
        let history = [&[Message::user("go")], &old[..], &[last]].concat();
        kept(age(&history, &crowded).unwrap())
    };
    assert_eq!(spoken(299_999), [9_000, 15_000]);
    assert!(spoken(300_000).iter().all(|&length| length < 3_200));
}

#[test]
fn a_summariser_is_guarded_by_characters_and_by_tokens() {
    let told = |chars: usize, window_tokens: u64| {
        let found = guard(&"\u{e9}".repeat(chars), &Policy { window_tokens, ..Policy::default() })?;
        assert_eq!(found.chars, chars as u64);
        Some((found.over_chars, found.over_tokens))
    };
    assert_eq!(told(100_000, 200_000), None);
    assert_eq!(told(100_001, 200_000), Some((true, false)));
    assert_eq!(told(400_000, 200_000), Some((true, true)));
    assert_eq!(told(4_000, 2_000), Some((false, true)));
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let id = || prop::sample::select(vec!["a", "b", "c", "d"]);
    let text = (prop::sample::select(vec!["x", "é\n", "\u{1f980}", "\"\\"]), 0usize..900)
        .prop_map(|(unit, count)| unit.repeat(count));
    let some = prop::collection::vec(id(), 0..3);
    let one = (0..4u8, text, some, id(), any::<bool>()).prop_map(|(kind, text, ids, id, error)| match kind {
        0 => Message::user(&text),
        1 => Message::assistant(&text, ids.iter().map(|id| Call::new(id, "read_file")).collect()),
        _ => Message::result(id, "read_file", &text, error),
    });
    prop::collection::vec(one, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What comes out goes in again unchanged, people's words are all there, and each marker names an original.
    #[test]
    fn what_fits_fits(history in messages(), index in 0..PROFILES.len()) {
        let base = PROFILES[index].policy();
        let result_chars_max = base.result_chars_max.min(700);
        let limits = Policy { result_chars_max, turn_chars_max: base.turn_chars_max.min(1_500), window_tokens: 500, ..base };
        let fitted = match fit(&history, &limits) {
            Err(Worse::Emptied) => return Ok(()),
            other => other.unwrap(),
        };
        let now: Vec<Message> = fitted.messages.iter().map(|now| now.message.clone()).collect();
        let again = fit(&now, &limits).unwrap();
        let numbers: Vec<_> = again.messages.iter().map(|now| now.from).collect();
        prop_assert_eq!(numbers, (0..now.len()).map(Some).collect::<Vec<_>>());
        prop_assert_eq!(again.messages.into_iter().map(|now| now.message).collect::<Vec<_>>(), now.clone());
        let people = |all: &[Message]| -> Vec<String> {
            all.iter().filter(|one| one.role == Role::User).map(|one| one.text.clone()).collect()
        };
        prop_assert_eq!(people(&history), people(&now));
        for original in &fitted.originals {
            // A text may have been cut and then turned out to answer no call.
            let was = |one: &Message| one.role == Role::Tool && one.text == original.text;
            prop_assert!(history.iter().any(was));
        }
        for Message { text, .. } in now.iter().filter(|one| one.role != Role::User) {
            for id in text.split("tailor show ").skip(1) {
                prop_assert!(fitted.originals.iter().any(|original| id.starts_with(&original.id.to_string())));
                prop_assert!(Id::of_hex(&id[..12]).is_some());
            }
        }
        // As a file it has no finding that could be mended.
        let file = super::written(&now);
        let found = examine(&file.as_slice(), &limits).unwrap();
        prop_assert_eq!(found.bytes_after, file.len() as u64);
    }
}
