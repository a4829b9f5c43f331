//! What a judge decides about an append agrees with a look at the whole file.

use super::damage;
use super::folder::real_files;
use super::spell::spell;
use super::story::{CallId, DIALECTS, StoryStep, story};
use super::{
    CASES, Case, Checked, any_policy, case, config, lossy, plain_case, profile_case, read_all, thinking,
    tried,
};
use crate::{HOLDING, ORDINARY, holding};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use std::collections::BTreeMap;
use std::sync::Arc;
use transcript::finding::{Labels, Safety};
use transcript::judge::{Judge, Judgement};
use transcript::policy::Selection;
use transcript::profile::PROFILES;
use transcript::{Digest, Examination, Policy, Rendered, Severity, Situation, Source, Span, examine};

type Told = (&'static str, u64, Severity, Labels, Option<u64>, String, Safety);

/// All findings of an examination.
fn told(found: &Examination) -> (Vec<Told>, i128) {
    let all = found.findings.iter().map(|f| {
        let (labels, message) = (f.labels.clone(), f.message.clone());
        (f.rule.code(), f.line, f.severity, labels, f.chars, message, f.fix.safety)
    });
    (all.collect(), i128::from(found.facts.bytes) - i128::from(found.bytes_after))
}

/// How often appends were judged in each way.
pub(crate) type JudgeCounts = BTreeMap<String, usize>;

/// Appends the text between the places, and compares each answer with a look.
pub(crate) fn follow<'a>(
    bytes: &[u8],
    places: &[usize],
    given: impl Into<transcript::Case<'a>>,
    counts: &mut JudgeCounts,
) -> Checked {
    let transcript::Case { policy, situation } = given.into();
    let policy = Arc::new(policy.clone());
    let mut places = places.iter().copied();
    let first = &bytes[..places.next().unwrap_or(0)];
    let (mut judge, mut report) = Judge::new(&first, &policy, situation).unwrap();
    remembers_the_same(first, &policy, situation)?;
    for place in places {
        let text = &bytes[..place];
        let before = judge.facts().bytes;
        let judgement = judge.append(&text).unwrap();
        *counts.entry(format!("{judgement:?}")).or_default() += 1;
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let judged = match judgement {
            Judgement::Same => text,
            Judgement::Begun => &text[..whole],
            Judgement::Look(_) => {
                (judge, report) = Judge::new(&text, &policy, situation).unwrap();
                continue;
            }
        };
        prop_assert!(judgement != Judgement::Begun || whole < text.len());
        let look = examine(&judged, transcript::Case { policy: &policy, situation }).unwrap();
        let context = || format!("{} bytes and then:\n{}", before, lossy(text));
        prop_assert_eq!(told(&report), told(&look), "{}", context());
        prop_assert_eq!(format!("{:?}", judge.facts()), format!("{:?}", look.facts), "{}", context());
        prop_assert!(judge.weight() < 16_384);
        // The counts that need no look, and the stored form of the judge.
        if let Some(counted) = judge.counted() {
            prop_assert_eq!(counted, (look.messages, look.context_tokens), "{}", context());
            let digest =
                Digest::from_examination(&report, &[]).map(|known| known.grown(*judge.facts(), counted));
            prop_assert_eq!(
                written(&digest),
                written(&Digest::from_examination(&look, &[])),
                "{}",
                context()
            );
            *counts.entry("counted".into()).or_default() += 1;
        }
        let restored: Judge = serde_json::from_str(&written(&judge)).unwrap();
        judge = restored.restored(&policy, judge.facts());
    }
    Ok(())
}

fn written(what: &impl serde::Serialize) -> String {
    serde_json::to_string(what).unwrap()
}

/// What is remembered after a repair is what a look at the repaired file would remember.
fn remembers_the_same(bytes: &[u8], policy: &Arc<Policy>, situation: &Situation) -> Checked {
    let (mended, before, after) = Judge::mend(&bytes, policy, situation).unwrap();
    let look = |bytes: &[u8]| Judge::new(&bytes, policy, situation).unwrap().0;
    let mut pairs = vec![(bytes.to_vec(), before)];
    if let (Ok(repair), Some(after)) = (mended.repair, after) {
        let mut text = Vec::new();
        let rendered = Rendered::new(&bytes, &repair.plan);
        let mut take = |piece: &[u8]| {
            text.extend_from_slice(piece);
            true
        };
        rendered.pieces(Span::new(0, rendered.len()), &mut take).unwrap();
        pairs.push((text, after));
    }
    for (mut text, mut remembered) in pairs {
        let mut looked = look(&text);
        prop_assert_eq!(remembered.is_of_use(), looked.is_of_use());
        text.extend_from_slice(b"{\"role\":\"user\",\"content\":\"more\"}\n");
        let judgement = looked.append(&text.as_slice()).unwrap();
        prop_assert_eq!(remembered.append(&text.as_slice()).unwrap(), judgement);
        prop_assert_eq!(format!("{:?}", remembered.facts()), format!("{:?}", looked.facts()));
    }
    Ok(())
}

/// The offsets of line ends.
pub(crate) fn line_ends(bytes: &[u8]) -> Vec<usize> {
    (1..=bytes.len()).filter(|&at| bytes[at - 1] == b'\n').collect()
}

/// Some of the line ends, and other offsets.
fn places(bytes: &[u8], skip: &[bool], anywhere: &[Index]) -> Vec<usize> {
    let skip = skip.iter().copied().cycle();
    let ends = line_ends(bytes).into_iter().zip(skip).filter(|(_, skip)| !skip).map(|(at, _)| at);
    let mut places: Vec<usize> = ends.chain(anywhere.iter().map(|at| at.index(bytes.len() + 1))).collect();
    places.push(bytes.len());
    places.sort_unstable();
    places
}

fn generous() -> Policy {
    Policy { side_chars_max: 1 << 20, ..Policy::default() }
}

/// A text without what some readers fail on; never empty.
fn sound(text: &str) -> String {
    let whole = text.replace("\\ud83d\\ude00", "😀").replace("\\uD83D\\uDE00", "😀");
    let halves = ["\\ud83d", "\\ude00", "\\u0000"];
    halves.iter().fold(whole, |text, half| text.replace(half, "")) + "."
}

/// A session without problems.
pub(crate) fn healthy() -> impl Strategy<Value = Vec<StoryStep>> {
    vec(story(), 1..4).prop_map(|stories| {
        let mut steps: Vec<StoryStep> = stories.into_iter().flatten().collect();
        steps.retain(|step| !matches!(step, StoryStep::Compaction(_) | StoryStep::Aside(..)));
        for step in &mut steps {
            if let StoryStep::Says(text) | StoryStep::Note(text) = step {
                *text = sound(text);
            }
            let StoryStep::Turn(turn) = step else { continue };
            turn.text = Some(sound(turn.text.as_deref().unwrap_or_default()));
            turn.aborted = false;
            turn.trailing = None;
            for call in &mut turn.calls {
                (call.id, call.partial) = (CallId::Fresh, false);
                call.answers.truncate(1);
                for answer in &mut call.answers {
                    answer.texts.iter_mut().for_each(|text| *text = sound(text));
                    answer.side = answer.side.as_deref().map(sound);
                }
                call.answers.iter_mut().for_each(|answer| answer.late = false);
            }
            turn.calls.retain(|call| !call.answers.is_empty());
        }
        steps
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_append_is_judged_as_a_look_would(
        case in prop_oneof![case(), plain_case(thinking())],
        skip in prop_oneof![1 => Just(vec![false]), 1 => vec(any::<bool>(), 1..8)],
        anywhere in vec(any::<Index>(), 0..4),
        small in any::<bool>(),
    ) {
        let Case { bytes, policy, .. } = &case;
        let policy = if small { policy.clone() } else { Policy { thinking: policy.thinking, ..generous() } };
        follow(bytes, &places(bytes, &skip, &anywhere), &policy, &mut JudgeCounts::new())?;
    }

    #[test]
    fn an_append_is_judged_whatever_is_asked_for(case in case(), policy in any_policy()) {
        follow(&case.bytes, &places(&case.bytes, &[false], &[]), &policy, &mut JudgeCounts::new())?;
    }

    #[test]
    fn an_append_is_judged_under_every_profile(case in profile_case(), reply in 0..400u64, in_use in any::<bool>()) {
        let mut policy = Policy { reply_chars_max: reply, ..case.policy.clone() };
        if in_use {
            policy.leave_history();
        }
        let situation: &Situation = if in_use { &HOLDING } else { case.given().situation };
        let given = transcript::Case { policy: &policy, situation };
        follow(&case.bytes, &places(&case.bytes, &[false], &[]), given, &mut JudgeCounts::new())?;
    }

    #[test]
    fn nothing_is_built_on_what_has_changed(
        case in plain_case(thinking()),
        at in any::<Index>(),
        cut in any::<Index>(),
        change in any::<bool>(),
    ) {
        let ends = line_ends(&case.bytes);
        if ends.is_empty() {
            return Ok(());
        }
        let end = ends[at.index(ends.len())];
        let mut bytes = case.bytes[..end].to_vec();
        let (mut judge, _) = Judge::new(&bytes.as_slice(), &Arc::new(generous()), &ORDINARY).unwrap();
        let cut = cut.index(end.min(4096)) + 1;
        if change {
            bytes[end - cut] ^= 1;
        } else {
            bytes.truncate(end - cut);
        }
        let judgement = judge.append(&bytes.as_slice()).unwrap();
        prop_assert!(matches!(judgement, Judgement::Look(_)), "{judgement:?}");
        prop_assert_eq!(judge.append(&case.bytes.as_slice()).unwrap(), judgement);
    }
}

/// P6 was not selected, so no finding reports that ids are used twice.
#[test]
fn which_of_two_calls_a_result_answers_is_not_guessed() {
    let call = |id: &str, tool: &str| format!(r#"{{"id":"{id}","function":{{"name":"{tool}"}}}}"#);
    let calls = [call("a", "read"), call("b", "read"), call("b", "grep")].join(",");
    let result = |id: &str, text: &str| {
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#) + "\n"
    };
    let text = [
        format!(r#"{{"role":"assistant","tool_calls":[{calls}]}}"#) + "\n",
        result("a", ""),
        result("b", "long"),
        result("b", ""),
    ];
    let policy = Policy {
        result_chars_max: 1,
        tool_chars_max: vec![("grep".to_string(), 0)],
        selection: Selection { ignore: vec!["P6".to_string()], ..Selection::default() },
        ..Policy::default()
    };
    let bytes = text.concat().into_bytes();
    follow(&bytes, &line_ends(&bytes), &policy, &mut JudgeCounts::new()).unwrap();
}

/// Cases that are too rare in generated sessions.
#[test]
fn what_only_a_look_can_tell_is_not_called_the_same() {
    let claude = |id: &str, parent: &str| {
        format!(
            r#"{{"parentUuid":"{parent}","isSidechain":false,"sessionId":"S","isMeta":true,"type":"user","message":{{"role":"user","content":"x"}},"uuid":"{id}","timestamp":"2026-07-01T10:00:00.000Z"}}"#
        ) + "\n"
    };
    let call = r#"{"role":"assistant","model":"m","content":[{"type":"tool_use","id":"t","name":"read"}],"stop_reason":"tool_use"}"#;
    let result = r#"{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":""}]}"#;
    let user = r#"{"role":"user","content":"go"}"#;
    for (text, code) in [
        // It is its own parent.
        ([claude("a", "0").replace("\"0\"", "null"), claude("b", "b")].concat(), "T2"),
        // A call without arguments is reported once it has a result.
        (format!("{user}\n{call}\n{result}\n"), "P9"),
        (format!("{call}\n{result}\n"), "P9"),
    ] {
        let bytes = text.into_bytes();
        let policy = Policy::default();
        let found = examine(&bytes.as_slice(), &policy).unwrap().findings;
        assert!(found.iter().any(|finding| finding.rule.code() == code), "no {code} in {}", lossy(&bytes));
        follow(&bytes, &line_ends(&bytes), &policy, &mut JudgeCounts::new()).unwrap();
    }
}

/// A finding about a message's first line may change its wording or disappear once another line has come.
#[test]
fn what_is_told_otherwise_later_is_looked_at() {
    let part = |id: &str, parent: &str, text: &str| {
        format!(
            r#"{{"parentUuid":"{parent}","isSidechain":false,"sessionId":"S","type":"assistant","message":{{"id":"m","role":"assistant","model":"claude-x","content":[{{"type":"text","text":"{text}"}}]}},"uuid":"{id}","timestamp":"2026-07-01T10:00:00.000Z"}}"#
        ) + "\n"
    };
    let asked = r#"{"parentUuid":null,"isSidechain":false,"sessionId":"S","type":"user","message":{"role":"user","content":"go"},"uuid":"u","timestamp":"2026-07-01T10:00:00.000Z"}"#;
    let split =
        [&format!("{asked}\n"), &part("a", "u", ""), &part("b", "a", "said")].map(String::as_str).concat();
    let pi = |kind: &str, id: &str, parent: &str, more: &str| {
        format!(
            r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2026-07-01T10:00:00.000Z",{more}}}"#
        ) + "\n"
    };
    let said = r#""message":{"role":"user","content":""}"#;
    let called = r#""message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{}}],"model":"m","stopReason":"toolUse"}"#;
    let summary = |kept| format!(r#""summary":"So far.","firstKeptEntryId":"{kept}","tokensBefore":9"#);
    let compaction = pi("compaction", "a5", "\"a4\"", &summary("a4"));
    let header =
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#;
    let copied = [
        compaction.clone(),
        format!("{header}\n"),
        pi("message", "a1", "null", said),
        pi("message", "a2", "\"a1\"", said),
        pi("compaction", "a3", "\"a2\"", &summary("a2")),
        pi("message", "a4", "\"a3\"", said),
        compaction,
        pi("message", "a6", "\"a5\"", called),
    ]
    .concat();
    for (text, ignored) in [(split, "M1"), (copied, "P6")] {
        let policy = Policy {
            selection: Selection { ignore: vec![ignored.to_string()], ..Selection::default() },
            ..Policy::default()
        };
        follow(text.as_bytes(), &line_ends(text.as_bytes()), &policy, &mut JudgeCounts::new()).unwrap();
    }
}

/// Policies for sessions in use, with their names.
fn asked() -> Vec<(&'static str, Policy)> {
    let profiles = PROFILES.iter().map(|profile| (profile.name, profile.policy()));
    let reply = ("reply", Policy { reply_chars_max: 1, ..Policy::default() });
    let in_use = |(name, mut policy): (_, Policy)| {
        policy.side_chars_max = generous().side_chars_max;
        policy.leave_history();
        (name, policy)
    };
    profiles.chain([reply]).map(in_use).collect()
}

/// A judge that always requires a look would keep all other promises. How many it spares is what `benches/soak.py` measures: here the
/// cases are always the same, and most is more than half.
#[test]
fn most_appends_to_healthy_sessions_need_no_look() {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: CASES, rng_seed: RngSeed::Fixed(1), ..config() });
    let mut all: BTreeMap<String, JudgeCounts> = BTreeMap::new();
    let mut asked = asked().into_iter().cycle();
    for _ in 0..runner.config().cases {
        let story = healthy().new_tree(&mut runner).expect("no case is rejected").current();
        let (name, policy) = asked.next().expect("there are profiles");
        for dialect in DIALECTS {
            let bytes = damage::befall(spell(dialect, &story), &[]);
            let mut counts = JudgeCounts::new();
            follow(&bytes, &line_ends(&bytes), holding(&policy), &mut counts).unwrap();
            for of in [format!("{dialect:?}"), name.to_string()] {
                let sum = all.entry(of).or_default();
                counts
                    .iter()
                    .for_each(|(judgement, count)| *sum.entry(judgement.clone()).or_default() += count);
            }
        }
    }
    assert_eq!(all.len(), DIALECTS.len() + self::asked().len());
    for (of, mut counts) in all {
        let counted = counts.remove("counted").unwrap_or(0);
        let sum: usize = counts.values().sum();
        let same = counts.get("Same").copied().unwrap_or(0);
        eprintln!("{of}: {same} of {sum}, {counted} counted, {counts:?}");
        assert!(counted > 0, "{of}");
        // These stories have unusual features more often than sessions do, and each needs a look.
        let odd = ["EmptyText", "Odd", "NoUser", "Again", "LoneThinking", "Image"]
            .map(|odd| format!("Look({odd})"));
        let odd: usize = odd.iter().filter_map(|odd| counts.get(odd)).sum();
        assert!(same * 2 > sum - odd, "{of}: {same} of {sum}, {counts:?}");
    }
}

/// A Codex session with this many exchanges: two parallel calls, their outputs in reverse order, and events in between.
fn codex(exchanges: usize) -> String {
    let mut text = String::new();
    let mut line = |kind: &str, payload: String| {
        text += &format!(r#"{{"timestamp":"2026-08-01T10:00:00.000Z","type":"{kind}","payload":{payload}}}"#);
        text += "\n";
    };
    line("session_meta", r#"{"id":"s","cwd":"/w","originator":"codex_cli_rs"}"#.into());
    let said = |role: &str, kind: &str, text: &str| {
        format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#)
    };
    let call =
        |id: String| format!(r#"{{"type":"function_call","name":"ls","arguments":"{{}}","call_id":"{id}"}}"#);
    let output =
        |id: String| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"a.txt"}}"#);
    for n in 0..exchanges {
        line("response_item", said("user", "input_text", "list files"));
        line("event_msg", r#"{"type":"user_message","message":"list files"}"#.into());
        line("response_item", r#"{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}"#.into());
        line("response_item", said("assistant", "output_text", "I look."));
        line("response_item", call(format!("call_{n}A")));
        line("response_item", call(format!("call_{n}B")));
        line("event_msg", r#"{"type":"exec_command_end","stdout":"a.txt"}"#.into());
        line("response_item", output(format!("call_{n}B")));
        line("response_item", output(format!("call_{n}A")));
        line("response_item", said("assistant", "output_text", "One file."));
    }
    text
}

/// Appends to a log are judged alone, even within the model's turn.
#[test]
fn no_append_to_a_healthy_codex_session_needs_a_look() {
    let bytes = codex(20).into_bytes();
    for (name, policy) in asked() {
        // At the beginning there is no user message yet.
        let ends = line_ends(&bytes).split_off(2);
        let mut counts = JudgeCounts::new();
        follow(&bytes, &ends, holding(&policy), &mut counts).unwrap();
        let same = counts.get("Same").copied().unwrap_or(0);
        assert_eq!(same, ends.len() - 1, "{name}: {counts:?}");
    }
}

/// What ends a run, or leaves a call open, is distinguished from what continues it.
#[test]
fn a_log_that_goes_wrong_is_looked_at() {
    let whole = codex(3);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for left_out in 1..lines.len() {
        for moved_to in [None, Some(left_out + 3), Some(lines.len() - 2)] {
            let mut lines = lines.clone();
            let line = lines.remove(left_out);
            moved_to.filter(|to| *to < lines.len()).into_iter().for_each(|to| lines.insert(to, line));
            let bytes = lines.concat().into_bytes();
            follow(&bytes, &line_ends(&bytes), &generous(), &mut JudgeCounts::new()).unwrap();
        }
    }
}

/// A title that becomes too far from the end costs one look, and a new title another.
#[test]
fn a_title_is_missed_once() {
    let say = |number: usize| {
        let parent = if number == 0 { "null".to_string() } else { format!("\"u{}\"", number - 1) };
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let text = "x".repeat(20_000);
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"S","type":"{role}","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}},"uuid":"u{number}"}}"#
        ) + "\n"
    };
    let title = "{\"type\":\"custom-title\",\"customTitle\":\"work\",\"sessionId\":\"S\"}\n";
    let mut text: String = (0..5).map(say).collect();
    text += title;
    text.extend((5..15).map(say));
    let from = line_ends(text.as_bytes()).into_iter().skip(6);
    for (more, looks) in [("", 1), (title, 2)] {
        let bytes = [text.as_bytes(), more.as_bytes()].concat();
        let mut counts = JudgeCounts::new();
        let places: Vec<usize> = from.clone().chain(Some(bytes.len())).collect();
        follow(&bytes, &places, &Policy::default(), &mut counts).unwrap();
        let looked: usize = counts
            .iter()
            .filter(|(judgement, _)| judgement.starts_with("Look"))
            .map(|(_, count)| count)
            .sum();
        assert_eq!(looked, looks, "{counts:?}");
    }
}

/// Every fixture and every story, by format.
fn fixtures() -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let mut all = BTreeMap::<String, Vec<_>>::new();
    for told in super::stories::all() {
        all.entry(told.format.into()).or_default().push((format!("story {}", told.story), told.bytes));
    }
    for format in std::fs::read_dir(root).unwrap().map(|format| format.unwrap()) {
        for case in std::fs::read_dir(format.path()).unwrap().map(|case| case.unwrap().path()) {
            let files = ["in.jsonl", "in.json"].map(|name| case.join(name));
            let Some(bytes) = files.iter().find_map(|file| std::fs::read(file).ok()) else { continue };
            let name = format.file_name().into_string().unwrap();
            all.entry(name).or_default().push((case.display().to_string(), bytes));
        }
    }
    all.values_mut().for_each(|cases| cases.sort());
    all
}

/// Appends a session's lines to another session, and judges each as a look would. How many were judged, and how many
/// needed no look; text appended to an unfinished line belongs to that line, so there it is nothing.
fn behind(base: &(String, Vec<u8>), other: &(String, Vec<u8>), lines_max: usize) -> (usize, usize) {
    let ((base, before), (added, more)) = (base, other);
    if before.last() != Some(&b'\n') {
        return (0, 0);
    }
    let bytes = [&before[..], &more[..]].concat();
    let ends = line_ends(&bytes);
    let places: Vec<usize> = ends.into_iter().filter(|&end| end >= before.len()).take(lines_max).collect();
    let mut counts = JudgeCounts::new();
    let held = follow(&bytes, &places, &Policy::default(), &mut counts);
    assert!(held.is_ok(), "{added} behind {base}: {held:?}");
    counts.remove("counted");
    (counts.values().sum(), counts.get("Same").copied().unwrap_or(0))
}

/// The lines of one session are appended to another of the same format, and the judge must agree with a look: no rule
/// depends on what the judge does not know. Of all pairs that are not long, as many are tried as a property has cases,
/// spread over the formats; with `TAILOR_THOROUGH`, as in `.ci/long`, all lines of all pairs.
#[test]
fn the_lines_of_every_fixture_are_judged_behind_every_other_session() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 25 && fixtures.values().map(Vec::len).sum::<usize>() > 1_000);
    let mut formats: Vec<_> = fixtures.iter().collect();
    formats.sort_by_key(|(_, cases)| cases.len());
    let (mut judged, mut same) = (0, 0);
    let mut add = |(lines, alike)| (judged, same) = (judged + lines, same + alike);
    if std::env::var_os("TAILOR_THOROUGH").is_some() {
        for (format, cases) in formats {
            let pairs = cases.iter().flat_map(|base| cases.iter().map(move |other| (base, other)));
            pairs.for_each(|(base, other)| add(behind(base, other, usize::MAX)));
            eprintln!("{format}: all pairs of {} sessions", cases.len());
        }
    } else {
        let mut runner = TestRunner::new(config());
        let pairs = (any::<Index>(), any::<Index>(), any::<Index>());
        for _ in 0..runner.config().cases * 4 {
            let (format, one, other) = pairs.new_tree(&mut runner).expect("no case is rejected").current();
            let cases = formats[format.index(formats.len())].1;
            let (base, other) = (one.get(cases), other.get(cases));
            if base.1.len() + other.1.len() <= 256 << 10 {
                add(behind(base, other, 64));
            }
        }
    }
    eprintln!("{same} of {judged} appended lines need no look");
    assert!(same > 0 && judged > same);
}

/// Each line of every fixture is judged as a look would judge it, with the default policy and others in turn.
#[test]
fn the_lines_of_every_fixture_are_judged() {
    let mut others = asked().into_iter().cycle();
    for (name, bytes) in fixtures().into_values().flatten() {
        if bytes.len() > 256 << 10 {
            continue;
        }
        let ends: Vec<usize> = Some(0).into_iter().chain(line_ends(&bytes)).take(100).collect();
        for (asked, policy) in others.next().into_iter().chain([("default", Policy::default())]) {
            let held = follow(&bytes, &ends, holding(&policy), &mut JudgeCounts::new());
            assert!(held.is_ok(), "{name}, {asked}: {held:?}");
        }
    }
}

/// At the end of a healthy real session, few appended lines need a look. Formats whose records may replace earlier ones
/// are left out.
#[test]
fn most_lines_of_real_sessions_need_no_look() {
    let Some(files) = real_files() else { return };
    let policy = Arc::new(Policy::default());
    let mut all: BTreeMap<&str, JudgeCounts> = BTreeMap::new();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let ends = line_ends(&bytes);
        if ends.len() < 8 || bytes.len() > 3 << 20 {
            continue;
        }
        let ends = &ends[ends.len().saturating_sub(60)..];
        let at = ends[0];
        let mended = tried(&bytes[..at], &*policy).repair;
        let mut text = bytes[..at].to_vec();
        if let Ok(repair) = mended {
            text = read_all(&Rendered::new(&&bytes[..at], &repair.plan));
        }
        let (mut judge, found) = Judge::new(&text.as_slice(), &policy, &ORDINARY).unwrap();
        let Some(format) = found.facts.format.filter(|format| !format.name.starts_with("copilot")) else {
            continue;
        };
        let counts = all.entry(format.name).or_default();
        for line in ends.windows(2) {
            text.extend_from_slice(&bytes[line[0]..line[1]]);
            let judgement = judge.append(&text.as_slice()).unwrap();
            *counts.entry(format!("{judgement:?}")).or_default() += 1;
            if judge.counted().is_some() {
                *counts.entry("counted".to_string()).or_default() += 1;
            }
            if matches!(judgement, Judgement::Look(_)) || judge.counted().is_none() {
                judge = Judge::new(&text.as_slice(), &policy, &ORDINARY).unwrap().0;
            }
        }
    }
    let sum = |only: &str| -> usize {
        let counts = all.values().flatten().filter(|(judgement, _)| judgement.starts_with(only));
        counts.map(|(_, count)| count).sum()
    };
    for (format, counts) in &all {
        eprintln!("{format}: {counts:?}");
    }
    let (same, counted) = (sum("Same"), sum("counted"));
    let judged = sum("") - counted;
    eprintln!("{same} of {judged} need no look, {counted} of these not for the count of tokens either");
    assert!(judged > 0 && same * 100 >= judged * 75 && counted * 100 >= same * 75);
}
