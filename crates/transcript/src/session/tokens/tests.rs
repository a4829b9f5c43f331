//! Small sessions in which the provider's numbers are older or newer than what was cut.

use super::{ContextTokens, context_tokens, context_tokens_by};
use crate::examine::mend::mend;
use crate::model::policy::{Crowded, ModelWindow, Policy, Selection};
use crate::plan::Rendered;
use crate::read::scan::Reading;
use crate::tasks::recover::{RecoverLevel, recover};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;
use spans::source::Span;

/// A pi session with these messages, each the child of the one before.
fn pi(messages: &[String]) -> Vec<u8> {
    let mut text =
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#
            .to_string();
    for (n, message) in messages.iter().enumerate() {
        let parent = if n == 0 { "null".into() } else { format!(r#""e{}""#, n - 1) };
        let _ = write!(
            text,
            "\n{{\"type\":\"message\",\"id\":\"e{n}\",\"parentId\":{parent},\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"message\":{message}}}"
        );
    }
    (text + "\n").into_bytes()
}

fn user(chars: usize) -> String {
    format!(r#"{{"role":"user","content":"{}"}}"#, "ask ".repeat(chars / 4))
}

fn calls(id: &str, tokens: u64) -> String {
    format!(
        r#"{{"role":"assistant","model":"gpt-5.1","content":[{{"type":"toolCall","id":"{id}","name":"ls","arguments":{{}}}}],"usage":{{"input":{tokens},"output":0,"cacheRead":0,"cacheWrite":0}},"stopReason":"toolUse"}}"#
    )
}

fn result(id: &str, chars: usize) -> String {
    format!(
        r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"ls","content":[{{"type":"text","text":"{}"}}],"isError":false}}"#,
        "line\\n".repeat(chars / 5)
    )
}

fn said(tokens: u64) -> String {
    format!(
        r#"{{"role":"assistant","model":"gpt-5.1","content":[{{"type":"text","text":"ok"}}],"usage":{{"input":{tokens},"output":0,"cacheRead":0,"cacheWrite":0}},"stopReason":"stop"}}"#
    )
}

#[track_caller]
fn counted(bytes: &[u8]) -> ContextTokens {
    context_tokens(&bytes).unwrap().unwrap()
}

/// The bytes of a plan.
fn rendered(bytes: &[u8], plan: &crate::Plan) -> Vec<u8> {
    let source = Rendered::new(&bytes, plan);
    spans::source::read_span(&source, Span::new(0, spans::Source::len(&source))).unwrap()
}

fn mended(bytes: &[u8], policy: &Policy) -> Option<Vec<u8>> {
    let plan = mend(&bytes, policy).unwrap().repair.ok().unwrap().plan;
    (!plan.is_empty()).then(|| rendered(bytes, &plan))
}

/// With another entry at the end.
fn and(bytes: &[u8], id: &str, parent: &str, message: &str) -> Vec<u8> {
    let line = format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"timestamp\":\"2026-07-01T10:00:01.000Z\",\"message\":{message}}}\n"
    );
    [bytes, line.as_bytes()].concat()
}

#[test]
fn what_came_since_is_added_to_the_newest_number() {
    let session = pi(&[user(40), calls("c", 20_000), result("c", 10_000)]);
    let found = counted(&session);
    assert_eq!((found.tokens, found.counted.map(|counted| counted.line)), (22_800, Some(3)));
    assert!(!found.is_exact());
    let found = counted(&and(&session, "z", "e2", &said(23_500)));
    assert_eq!((found.tokens, found.is_exact()), (23_500, true));
    // A number of 0 is none: the request failed.
    assert_eq!(counted(&and(&session, "z", "e2", &said(0))).counted.map(|counted| counted.line), Some(3));
}

#[test]
fn without_a_number_all_of_it_is_estimated() {
    let found = counted(&pi(&[user(40), calls("c", 0), result("c", 10_000)]));
    assert_eq!((found.tokens, found.counted), (found.estimated, None));
    // Twelve characters and a call beside the result, and what pi adds.
    assert!((7_400..7_500).contains(&found.tokens), "{found:?}");
}

#[test]
fn a_cut_takes_off_what_an_older_number_still_counts() {
    let session = pi(&[user(40), calls("c", 20_000), result("c", 200_000), said(80_000), user(40)]);
    let before = counted(&session).tokens;
    let cut = mended(&session, &Policy::default()).unwrap();
    let after = counted(&cut).tokens;
    // 168,000 characters and more went.
    assert!((46_900..47_500).contains(&(before - after)), "{before} -> {after}");
    // The agent has not read it again, and what it reports is as high as before, with what it added.
    let still = counted(&and(&cut, "z", "e4", &said(80_500))).tokens;
    assert!(still < 34_000, "{still}");
    // It has, and reports what is there.
    let loaded = and(&cut, "z", "e4", &said(33_300));
    let found = counted(&loaded).tokens;
    assert!((32_900..=33_300).contains(&found), "{found}");
    // A session that goes on for long after that.
    let on = and(&and(&loaded, "y", "z", &user(4_000)), "x", "y", &said(34_400));
    let found = counted(&on).tokens;
    assert!((34_000..=34_400).contains(&found), "{found}");
    // A second cut, of what came since.
    let on = and(&and(&on, "w", "x", &calls("d", 34_500)), "v", "w", &result("d", 200_000));
    let on = and(&and(&on, "u", "v", &said(90_500)), "t", "u", &user(40));
    let again = mended(&on, &Policy::default()).unwrap();
    let after = counted(&again).tokens;
    assert!((43_000..44_000).contains(&after), "{after}");
}

#[test]
fn a_crowded_window_is_trimmed_until_it_is_not_crowded_and_no_further() {
    let mut messages = Vec::from([user(40)]);
    for n in 0..40 {
        messages.push(calls(&format!("c{n}"), 20_000 + n * 4_000));
        messages.push(result(&format!("c{n}"), 14_000));
    }
    messages.push(said(180_000));
    let mut crowded = Policy { crowded: Crowded::OFF, ..Policy::default() };
    crowded.crowded = Crowded {
        trim_percent: 30,
        trim_chars_max: 4_000,
        head_chars: 1_500,
        tail_chars: 1_500,
        clear_percent: 0,
        keep_assistants: 3,
        ..crowded.crowded
    };
    crowded.selection = Selection { allow: ["S15".to_string()].into(), ..Selection::default() };
    let mut session = pi(&messages);
    let mut runs = 0;
    while let Some(next) = mended(&session, &crowded) {
        assert!(counted(&next).tokens < counted(&session).tokens, "the number is stale");
        session = next;
        runs += 1;
        assert!(runs < 5, "cut again and again");
    }
    assert!(runs > 0);
    // Nothing more is cut because of the next number, which knows.
    let loaded = and(&and(&session, "z", "e81", &user(40)), "y", "z", &said(66_000));
    assert!(mended(&loaded, &crowded).is_none());
    let found = counted(&loaded).tokens;
    assert!((62_000..=66_000).contains(&found), "{found}");
}

/// What is cleared is measured as what the provider counted: not a result more than it takes.
#[test]
fn as_few_results_are_cleared_as_it_takes() {
    let mut messages = Vec::from([user(40)]);
    for n in 0..40 {
        messages.push(calls(&format!("c{n}"), 0));
        messages.push(result(&format!("c{n}"), 14_000));
    }
    messages.push(said(240_000));
    let crowded = Crowded { trim_percent: 50, trim_chars_max: 100_000, clear_percent: 50, ..Crowded::OFF };
    let selection = Selection { allow: ["S15".to_string()].into(), ..Selection::default() };
    let cut = mended(&pi(&messages), &Policy { crowded, selection, ..Policy::default() }).unwrap();
    let cleared = String::from_utf8(cut.clone()).unwrap().matches("14000 of 14000 chars omitted").count();
    // Each has 3,920 tokens, and its marker 91 at most.
    assert_eq!(cleared, 11, "40,000 of 240,000 tokens");
    assert!((195_000..=200_000).contains(&counted(&cut).tokens), "{:?}", counted(&cut));
}

/// Forty results of 14,000 characters, and what the provider counted at the end.
fn forty_results(tokens: u64) -> Vec<u8> {
    let results = (0..40).flat_map(|n| [calls(&format!("c{n}"), 0), result(&format!("c{n}"), 14_000)]);
    pi(&[user(40)].into_iter().chain(results).chain([said(tokens)]).collect::<Vec<_>>())
}

/// The oldest keep a quarter of the limit, until it is below 60 %.
#[test]
fn in_a_window_that_is_nearly_full_old_results_are_shortened_by_default() {
    let policy = Policy { window_tokens: Some(200_000), ..Policy::default() };
    assert!(mended(&forty_results(159_000), &policy).is_none(), "there is room");
    let cut = mended(&forty_results(170_000), &policy).unwrap();
    assert!((110_000..120_000).contains(&counted(&cut).tokens), "{:?}", counted(&cut));
    let text = String::from_utf8(cut.clone()).unwrap();
    let is_cut: Vec<bool> = text
        .lines()
        .filter(|line| line.contains("toolResult"))
        .map(|line| line.contains("[tailor:"))
        .collect();
    let newest = is_cut.iter().rev().take_while(|cut| !**cut).count();
    assert!(newest >= 8 && is_cut[..40 - newest].iter().all(|cut| *cut), "{is_cut:?}");
    assert!(text.contains(" of 14000 chars omitted") && !text.contains("14000 of 14000"), "none is cleared");
    assert!(mended(&cut, &policy).is_none(), "once is enough");
    // Shortening is not enough for as much as this.
    let cut = mended(&forty_results(235_000), &policy).unwrap();
    assert!(counted(&cut).tokens < 120_000 && mended(&cut, &policy).is_none(), "{:?}", counted(&cut));
    assert!(String::from_utf8(cut).unwrap().contains("14000 of 14000 chars omitted"));
}

/// An agent may know less than the provider does about the window.
#[test]
fn what_was_refused_as_too_long_is_shortened_whatever_the_window_is_taken_to_be() {
    let policy = Policy { window_tokens: Some(1_000_000), ..Policy::default() };
    let session = and(&forty_results(170_000), "y", "e81", &user(40));
    assert!(mended(&session, &policy).is_none());
    let failed = r#"{"role":"assistant","model":"gpt-5.1","content":[],"stopReason":"error","errorMessage":"prompt is too long: 170010 tokens > 170000 maximum"}"#;
    let cut = mended(&and(&session, "z", "y", failed), &policy).unwrap();
    assert!((95_000..102_000).contains(&counted(&cut).tokens), "{:?}", counted(&cut));
    assert!(mended(&cut, &policy).is_none());
}

/// A Codex session of so many turns, each of a question, an answer and its count.
fn codex(turns: u64) -> Vec<u8> {
    let line = |kind: &str, payload: &str| {
        format!("{{\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let mut text = line(
        "session_meta",
        r#"{"id":"0190f5fe-0000-7000-8000-000000000001","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.50.0"}"#,
    );
    for turn in 1..=turns {
        let said = |role: &str, kind: &str| {
            let words = "many words ".repeat(400);
            line(
                "response_item",
                &format!(
                    r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{words}{turn}"}}]}}"#
                ),
            )
        };
        text += &said("user", "input_text");
        text += &said("assistant", "output_text");
        text += &count(10_000 + 2_500 * turn);
    }
    text.into_bytes()
}

fn count(tokens: u64) -> String {
    format!(
        "{{\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"token_count\",\"info\":{{\"total_token_usage\":{{\"total_tokens\":9999999}},\"last_token_usage\":{{\"input_tokens\":{},\"cached_input_tokens\":9000,\"output_tokens\":100,\"total_tokens\":{tokens}}},\"model_context_window\":258400}}}}}}\n",
        tokens - 100
    )
}

#[test]
fn codex_is_judged_against_the_window_that_its_file_names() {
    let found = counted(&codex(4));
    assert_eq!((found.tokens, found.window), (20_000, Some(258_400)));
    assert_eq!(found.window(&Policy::default()), 258_400);
    // What somebody asked for counts.
    for asked in [100_000, 200_000] {
        assert_eq!(found.window(&Policy { window_tokens: Some(asked), ..Policy::default() }), asked);
    }
}

/// A session of Claude Code of so many turns, each of a question and an answer with its number.
fn claude(turns: u64) -> Vec<u8> {
    let mut text = String::new();
    for turn in 1..=turns {
        let words = "many words ".repeat(400);
        text += &spoken(2 * turn - 1, "user", &format!(r#"{{"role":"user","content":"{words}"}}"#));
        text += &answered(2 * turn, 36_000 + 3_000 * turn, &words);
    }
    text.into_bytes()
}

fn spoken(n: u64, kind: &str, message: &str) -> String {
    let parent = if n == 1 { "null".into() } else { format!("\"0a000000-0000-4000-8000-{:012}\"", n - 1) };
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/w\",\"sessionId\":\"5e000000-0000-4000-8000-0000000000aa\",\"version\":\"2.1.100\",\"gitBranch\":\"main\",\"type\":\"{kind}\",\"message\":{message},\"uuid\":\"0a000000-0000-4000-8000-{n:012}\",\"timestamp\":\"2026-07-01T10:00:00.000Z\"}}\n"
    )
}

fn answered(n: u64, tokens: u64, words: &str) -> String {
    let message = format!(
        r#"{{"model":"claude-opus-4-6","id":"msg_{n}","type":"message","role":"assistant","content":[{{"type":"text","text":"{words}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":3,"cache_creation_input_tokens":{},"cache_read_input_tokens":1000,"output_tokens":100}}}}"#,
        tokens - 1_103
    );
    spoken(n, "assistant", &message)
}

#[test]
fn a_number_from_before_a_recovery_is_not_believed() {
    let session = claude(40);
    assert_eq!(counted(&session).tokens, 156_000);
    let done =
        recover(&Reading::new(&session.as_slice()).unwrap(), &Policy::default(), RecoverLevel::Two, 20)
            .unwrap();
    let shorter = rendered(&session, &done.repair.ok().unwrap().plan);
    let found = counted(&shorter);
    assert_eq!((found.tokens, found.counted), (found.estimated, None));
    assert!((60_000..75_000).contains(&found.tokens), "{found:?}");
    // The next number knows.
    let loaded = [&shorter[..], answered(81, 67_000, "ok").as_bytes()].concat();
    assert_eq!((counted(&loaded).tokens, counted(&loaded).is_exact()), (67_000, true));
}

#[test]
fn a_number_that_never_counted_what_was_cut_does_not_fall_below_the_texts() {
    let session = pi(&[user(40), calls("c", 20_000), result("c", 200_000)]);
    let cut = mended(&session, &Policy::default()).unwrap();
    let found = counted(&and(&cut, "z", "e2", &said(29_000))).tokens;
    assert!((8_000..=29_000).contains(&found), "{found}");
}

#[test]
fn a_number_that_leaves_out_what_was_cached_is_not_believed() {
    let session = claude(40);
    let bare = [&session[..], answered(81, 1_103, "ok").replace("1000,", "0,").as_bytes()].concat();
    assert_eq!(counted(&bare).counted, None);
}

/// Qwen Code and Gemini CLI clear old results in memory only.
#[test]
fn a_number_of_a_third_of_the_texts_is_believed_if_it_counts_more_than_what_is_new() {
    let turns = |sent: u64| {
        let turn =
            |n: u64| [user(40), calls(&format!("c{n}"), sent), result(&format!("c{n}"), 10_000), said(sent)];
        pi(&(0..40).flat_map(turn).collect::<Vec<_>>())
    };
    let cleared = counted(&turns(40_000));
    assert!(cleared.estimated > 3 * 38_000, "{cleared:?}");
    assert_eq!((cleared.tokens, cleared.is_exact()), (40_000, true));
    // What was not cached is about as much as what is new.
    for bare in [1, 3_000] {
        let found = counted(&turns(bare));
        assert_eq!((found.counted, found.tokens), (None, found.estimated), "{bare}");
    }
}

#[test]
fn a_window_that_the_agents_configuration_states_counts_before_the_models_name() {
    let session = pi(&[user(40), said(9_000)]);
    let known = |model: &str| {
        let known = ModelWindow { format: "pi", model: model.to_string(), tokens: 64_000 };
        let policy = Policy { model_windows: [known].into(), ..Policy::default() };
        context_tokens_by(&Reading::new(&session.as_slice()).unwrap(), &policy).unwrap().unwrap().window
    };
    assert_eq!((known("gpt-5.1"), known("gpt-5")), (Some(64_000), Some(400_000)));
}

#[test]
fn windows_stand_beside_the_numbers() {
    let qwen = r#"{"uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"t","type":"user","message":{"role":"user","parts":[{"text":"go"}]}}
{"uuid":"b","parentUuid":"a","sessionId":"s","timestamp":"t","type":"assistant","message":{"role":"model","parts":[{"text":"ok"}]},"usageMetadata":{"promptTokenCount":900,"totalTokenCount":910},"contextWindowSize":131072,"model":"qwen"}
"#;
    let found = counted(qwen.as_bytes());
    assert_eq!((found.tokens, found.window), (910, Some(131_072)));
    let copilot = |kind: &str, data: &str| {
        format!(
            r#"{{"type":"{kind}","data":{data},"id":"i","timestamp":"2026-07-01T10:00:00.000Z","parentId":null}}"#
        ) + "\n"
    };
    let usage = |kind: &str, tokens: u64| {
        let usage = format!(
            r#"{{"usage":{{"inputTokens":{tokens},"outputTokens":10,"interactionType":"{kind}","maxPromptTokens":111616}}}}"#
        );
        copilot("session.usage_record", &usage)
    };
    let text = copilot(
        "session.start",
        r#"{"sessionId":"s","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102","startTime":"2026-07-01T10:00:00.000Z"}"#,
    ) + &copilot("user.message", r#"{"content":"go","parentAgentTaskId":"t"}"#)
        + &usage("conversation-agent", 10_443)
        + &copilot("assistant.message", r#"{"messageId":"m","content":"ok","toolRequests":[]}"#)
        + &copilot("session.shutdown", r#"{"currentTokens":10453}"#)
        + &usage("conversation-subagent", 99_000);
    let found = counted(text.as_bytes());
    assert_eq!((found.counted.map(|counted| counted.tokens), found.window), (Some(10_453), Some(111_616)));
}

#[test]
fn an_error_names_the_window() {
    let refused = r#"{"role":"assistant","model":"gpt-5.1","content":[],"stopReason":"error","errorMessage":"prompt is too long: 311884 tokens > 272000 maximum"}"#;
    let found = counted(&pi(&[user(40), refused.to_string()]));
    assert_eq!(found.window, Some(272_000));
    assert_eq!(counted(&pi(&[user(40), said(9_000)])).window, Some(400_000), "by its name");
}

#[test]
fn the_instructions_of_copilot_count_once_and_the_newest_ones_do() {
    let start = r#"{"type":"session.start","data":{"sessionId":"s","version":1,"producer":"copilot-agent","copilotVersion":"1.0.64","startTime":"2026-07-01T10:00:00.000Z"},"id":"a","timestamp":"2026-07-01T10:00:00.000Z","parentId":null}"#;
    let line = |id: &str, parent: &str, kind: &str, data: &str| {
        format!(
            r#"{{"type":"{kind}","data":{data},"id":"{id}","timestamp":"2026-07-01T10:00:00.000Z","parentId":"{parent}"}}"#
        )
    };
    let system = format!(r#"{{"role":"system","content":"{}"}}"#, "You are. ".repeat(4_000));
    let once = [
        start.to_string(),
        line("b", "a", "system.message", &system),
        line("c", "b", "user.message", r#"{"content":"go"}"#),
    ];
    let twice = [&once[..], &[line("d", "c", "system.message", &system)]].concat();
    let tokens = |lines: &[String]| counted((lines.join("\n") + "\n").as_bytes()).tokens;
    let words: usize = tokens(&once) as usize;
    assert!((11_900..12_300).contains(&words), "{words}");
    assert_eq!(tokens(&once), tokens(&twice));
    let text = once.join("\n") + "\n";
    let weight = crate::weight::weigh(&text.as_bytes(), 3, &mut |_| None).unwrap();
    assert_eq!(weight.context_tokens, counted(text.as_bytes()));
}

/// A session of Kimi CLI of so many turns, each followed by the count of the whole context.
fn kimi(turns: u64) -> Vec<u8> {
    let mut text = "{\"role\":\"_system_prompt\",\"content\":\"Be brief.\"}\n".to_string();
    let words = "many words ".repeat(400);
    for turn in 1..=turns {
        let _ = write!(
            text,
            "{{\"role\":\"user\",\"content\":\"{words}\"}}\n{{\"role\":\"assistant\",\"content\":\"{words}\"}}\n"
        );
        text += &kimi_count(3_000 + 2_200 * turn);
    }
    text.into_bytes()
}

fn kimi_count(tokens: u64) -> String {
    format!("{{\"role\":\"_usage\",\"token_count\":{tokens}}}\n")
}

#[test]
fn in_a_list_a_number_from_before_a_recovery_is_not_believed() {
    for (session, next) in [(kimi(40), kimi_count(47_000)), (anthropic(40), answer(47_000))] {
        let before = counted(&session);
        assert!(before.counted.is_some() && before.tokens > 85_000, "{before:?}");
        let done =
            recover(&Reading::new(&session.as_slice()).unwrap(), &Policy::default(), RecoverLevel::Two, 40)
                .unwrap();
        let shorter = rendered(&session, &done.repair.ok().unwrap().plan);
        let found = counted(&shorter);
        assert_eq!((found.tokens, found.counted), (found.estimated, None), "{before:?} {found:?}");
        let loaded = [&shorter[..], next.as_bytes()].concat();
        assert_eq!(counted(&loaded).tokens, 47_000, "{found:?}");
    }
}

/// The same in bare messages, each answer with its number.
fn anthropic(turns: u64) -> Vec<u8> {
    let words = "many words ".repeat(400);
    let turn = |turn: u64| {
        let answer = answer(3_000 + 2_200 * turn).replace("\"ok\"", &format!("\"{words}\""));
        format!("{{\"role\":\"user\",\"content\":\"{words}\"}}\n{answer}")
    };
    (1..=turns).map(turn).collect::<String>().into_bytes()
}

fn answer(tokens: u64) -> String {
    format!(
        "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"ok\"}}],\"stop_reason\":\"end_turn\",\"usage\":{{\"input_tokens\":{},\"output_tokens\":100}}}}\n",
        tokens - 100
    )
}

/// Numbers fall a little now and then, and after a fall of a few tokens they are still those of the long session.
#[test]
fn a_small_fall_at_a_boundary_does_not_make_a_number_new() {
    let steady: Vec<u8> = {
        let words = "many words ".repeat(400);
        let turn = |turn: u64| {
            let asked = format!(r#"{{"role":"user","content":"{words}"}}"#);
            spoken(2 * turn - 1, "user", &asked) + &answered(2 * turn, 67_140 - turn, &words)
        };
        (1..=12).map(turn).collect::<String>().into_bytes()
    };
    let done = recover(&Reading::new(&steady.as_slice()).unwrap(), &Policy::default(), RecoverLevel::Two, 4)
        .unwrap();
    let shorter = rendered(&steady, &done.repair.ok().unwrap().plan);
    let found = counted(&shorter);
    assert_eq!((found.tokens, found.counted), (found.estimated, None), "{found:?}");
}

/// A number of an abandoned branch is not what the compaction compares with.
#[test]
fn numbers_of_other_branches_do_not_count() {
    let session = claude(40);
    let text = String::from_utf8(session).unwrap();
    let aside = answered(81, 400_000, "aside")
        .replace("0a000000-0000-4000-8000-000000000080", "0a000000-0000-4000-8000-000000000060");
    let done =
        recover(&Reading::new(&text.as_bytes()).unwrap(), &Policy::default(), RecoverLevel::Two, 20).unwrap();
    let shorter = String::from_utf8(rendered(text.as_bytes(), &done.repair.ok().unwrap().plan)).unwrap();
    let boundary = shorter.find("compact_boundary").unwrap();
    let start = shorter[..boundary].rfind('\n').unwrap() + 1;
    let mixed = [&shorter[..start], &aside, &shorter[start..]].concat();
    let found = counted(mixed.as_bytes());
    assert_eq!((found.tokens, found.counted), (found.estimated, None), "{found:?}");
}

/// Not only results are cut: so are long answers and what persons said, and lines of text stand for images.
#[test]
fn whatever_is_cut_is_taken_off_an_older_number() {
    let long = format!(
        r#"{{"role":"assistant","model":"gpt-5.1","content":[{{"type":"text","text":"{}"}}],"stopReason":"stop"}}"#,
        "ask ".repeat(40_000)
    );
    let session = pi(&[user(40), long, user(120_000), said(100_000), user(40), said(100_100)]);
    let less = Policy { reply_chars_max: 5_000, ..Policy::default() };
    let cut = mended(&session, &less).unwrap();
    // 155,000 characters.
    let gone = counted(&session).tokens - counted(&cut).tokens;
    assert!((43_000..44_000).contains(&gone), "{gone}");
    let three =
        recover(&Reading::new(&session.as_slice()).unwrap(), &Policy::default(), RecoverLevel::Three, 0)
            .unwrap();
    let three = rendered(&session, &three.repair.ok().unwrap().plan);
    assert!(counted(&three).tokens < 8_000, "{:?}", counted(&three));

    let picture =
        r#"{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAJxAAACcQCAYAAAA=","mimeType":"image/png"}"#;
    let seen = format!(r#"{{"role":"user","content":[{{"type":"text","text":"look"}},{picture}]}}"#);
    let session = pi(&[seen, said(20_000), user(40), said(20_100)]);
    let selection = Selection { allow: ["S4".to_string()].into(), ..Selection::default() };
    let images = Policy { selection, ..Policy::default() };
    let cut = mended(&session, &images).unwrap();
    assert_eq!(counted(&session).tokens - counted(&cut).tokens, super::IMAGE_TOKENS);
}

#[test]
fn a_window_goes_by_the_whole_name_of_a_model() {
    for (model, window) in [
        ("gpt-5", Some(400_000)),
        ("gpt-5-codex", Some(400_000)),
        ("openai/gpt-5.1-codex-max", Some(400_000)),
        ("gpt-5.9", None),
        ("o1", Some(200_000)),
        ("o1-mini", Some(128_000)),
        ("o1-preview-2024-09-12", Some(128_000)),
        ("o3-mini", Some(200_000)),
        ("gemini-2.5-pro", Some(1_048_576)),
        ("claude-opus-4-6-20260101", Some(1_000_000)),
    ] {
        assert_eq!(super::rates::window_of(model.as_bytes()), window, "{model}");
    }
}
