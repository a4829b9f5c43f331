//! `tailor recover`, `compact` and `chunk`: a session that is too long can continue, and undo restores every byte.

use crate::support::{BROKEN, Dir, FinishedRun, root, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

const ERROR: &str = "400 prompt is too long: 211884 tokens > 200000 maximum";
const TIME: &str = r#""timestamp":"2026-07-01T10:00:00.000Z""#;

/// Rounds of a question, a call, its result and an answer, as an agent writes them.
fn session(format: &str, rounds: usize, text: &str) -> String {
    let mut out = Vec::new();
    let mut last: Option<String> = None;
    if format == "pi" {
        out.push(format!(r#"{{"type":"session","version":3,"id":"s",{TIME},"cwd":"/w"}}"#));
    }
    if format == "openai-chat" {
        out.push(r#"{"role":"system","content":"Be brief."}"#.to_string());
    }
    for n in 0..rounds {
        for (step, message) in messages(format, n, text).into_iter().enumerate() {
            let id = format!("{n:04x}000{step}");
            let parent = last.take().map_or("null".to_string(), |id| format!("\"{id}\""));
            last = Some(id.clone());
            out.push(match format {
                "pi" => {
                    format!(
                        r#"{{"type":"message","id":"{id}","parentId":{parent},{TIME},"message":{message}}}"#
                    )
                }
                "claude-code" => {
                    let kind = if message.contains(r#""role":"user""#) { "user" } else { "assistant" };
                    format!(
                        r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"S","type":"{kind}","message":{message},"uuid":"{id}",{TIME}}}"#
                    )
                }
                _ => message,
            });
        }
    }
    out.join("\n") + "\n"
}

fn messages(format: &str, n: usize, text: &str) -> [String; 4] {
    let asked = format!(r#"{{"role":"user","content":"question {n}"}}"#);
    match format {
        "pi" => [
            asked,
            format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c{n}","name":"bash","arguments":{{}}}}],"stopReason":"toolUse"}}"#
            ),
            format!(
                r#"{{"role":"toolResult","toolCallId":"c{n}","toolName":"bash","content":[{{"type":"text","text":"{text}"}}]}}"#
            ),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"answer {n}"}}],"stopReason":"stop"}}"#
            ),
        ],
        "openai-chat" => [
            asked,
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{n}","function":{{"name":"bash","arguments":"{{}}"}}}}]}}"#
            ),
            format!(r#"{{"role":"tool","tool_call_id":"c{n}","content":"{text}"}}"#),
            format!(r#"{{"role":"assistant","content":"answer {n}"}}"#),
        ],
        _ => [
            asked,
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c{n}","name":"Bash","input":{{}}}}]}}"#
            ),
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{n}","content":"{text}"}}]}}"#
            ),
            format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"answer {n}"}}]}}"#),
        ],
    }
}

const FORMATS: [&str; 4] = ["pi", "claude-code", "anthropic", "openai-chat"];

/// The error entry that pi writes after a request that was too long.
fn failed(parent: &str) -> String {
    format!(
        r#"{{"type":"message","id":"ffff0000","parentId":"{parent}",{TIME},"message":{{"role":"assistant","content":[],"stopReason":"error","errorMessage":"{ERROR}"}}}}"#
    ) + "\n"
}

fn recover(dir: &Dir, more: &[&str]) -> FinishedRun {
    dir.tailor(&[&["recover", "s.jsonl", "--settle", "0"], more].concat())
}

#[track_caller]
fn told(run: &FinishedRun) -> Value {
    serde_json::from_str(run.text().trim())
        .unwrap_or_else(|error| panic!("{error}: {} {}", run.text(), run.stderr))
}

fn undo(dir: &Dir) -> FinishedRun {
    dir.tailor(&["undo", "s.jsonl", "--settle", "0"])
}

fn append(path: &Path, text: &str) {
    fs::write(path, fs::read_to_string(path).unwrap() + text).unwrap();
}

/// The questions in context, according to the messages that `chunk` prints.
fn in_context(dir: &Dir) -> Vec<String> {
    let run = dir.tailor(&["chunk", "s.jsonl"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let lines = run.json();
    let messages = lines.iter().filter_map(|line| line["messages"].as_array()).flatten();
    messages.map(|message| message["text"].as_str().unwrap().to_string()).collect()
}

#[test]
fn each_level_shortens_every_format_and_can_be_undone() {
    let long = "a row of the log\\n".repeat(2_000);
    for format in FORMATS {
        for (level, kept) in [("1", None), ("2", Some(8)), ("3", Some(4))] {
            let dir = Dir::new();
            let before = session(format, 8, &long);
            let path = dir.write("s.jsonl", &before);
            let dry = recover(&dir, &["--level", level, "--dry-run", "--json"]);
            assert_eq!((dry.status, fs::read_to_string(&path).unwrap()), (0, before.clone()), "{format}");
            let run = recover(&dir, &["--level", level, "--json"]);
            let said = told(&run);
            assert_eq!((run.status, &said["outcome"]), (0, &"fixed".into()), "{format} {level} {said}");
            assert_eq!(said["bytes_after"], told(&dry)["bytes_after"], "{format} {level}");
            assert_eq!(said["kept"].as_u64(), kept, "{format} {level}");
            assert_eq!(said["advice"]["action"], "retry");
            let again = recover(&dir, &["--level", level, "--json"]);
            assert_eq!((again.status, &told(&again)["outcome"]), (1, &"refused".into()), "{format} {level}");
            if let Some(kept) = kept {
                let now = in_context(&dir);
                let system = usize::from(format == "openai-chat");
                assert!(now[system].contains("earlier messages left out"), "{format} {level} {now:?}");
                assert!(now[system + 1].starts_with("[user]\nquestion"), "{format} {level} {now:?}");
                assert_eq!(now.len() as u64, kept + 1 + system as u64, "{format} {level}");
            }
            assert_eq!(undo(&dir).status, 0, "{format} {level}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before, "{format} {level}");
        }
    }
}

#[test]
fn trees_lose_nothing_at_level_two() {
    for format in ["pi", "claude-code"] {
        let dir = Dir::new();
        let before = session(format, 20, "short");
        let path = dir.write("s.jsonl", &before);
        assert_eq!(recover(&dir, &["--level", "2"]).status, 0);
        let after = fs::read_to_string(&path).unwrap();
        let gone = before.lines().filter(|line| !after.lines().any(|now| now == *line)).count();
        assert!(gone <= 1, "{format}: {gone} lines went; one is hung on the summary in Claude Code");
        assert_eq!(after.lines().count(), before.lines().count() + if format == "pi" { 1 } else { 2 });
    }
}

#[test]
fn no_message_is_longer_than_four_thousand_at_level_three() {
    for format in FORMATS {
        let dir = Dir::new();
        let text = "x".repeat(30_000);
        dir.write("s.jsonl", session(format, 5, &text).replace("question 4", &"why ".repeat(5_000)));
        assert_eq!(recover(&dir, &["--level", "3"]).status, 0, "{format}");
        let run = dir.tailor(&["chunk", "s.jsonl"]);
        for message in run.json().iter().filter_map(|line| line["messages"].as_array()).flatten() {
            let chars = message["chars"].as_u64().unwrap();
            assert!(chars < 4_030, "{format}: {chars}");
        }
        let now = in_context(&dir);
        assert!(
            now.iter().any(|text| text.contains("[tailor: ") && text.starts_with("[user]\nwhy")),
            "{format}"
        );
    }
}

/// Each time that the API refuses the session again, half as much stays. A result that the API has not seen is not
/// shortened again.
#[test]
fn what_is_refused_again_becomes_shorter_until_the_model_answers() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", session("pi", 16, &"y".repeat(30_000)) + &failed("000f0003"));
    let leaf = || {
        let text = fs::read_to_string(&path).unwrap();
        let line: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
        line["id"].as_str().unwrap().to_string()
    };
    let error = "prompt is too long";
    let refused = |n: u64| {
        let entry = failed(&leaf()).replacen("ffff0000", &format!("ffff000{n}"), 1);
        append(&path, &entry.replace(ERROR, error));
    };
    let mut last = u64::MAX;
    for n in 0..3 {
        let said = told(&recover(&dir, &["--json"]));
        assert_eq!(
            (&said["cause"], &said["outcome"]),
            (&"context-overflow".into(), &"fixed".into()),
            "{said}"
        );
        assert_eq!((said["attempts_before"].as_u64(), &said["advice"]["action"]), (Some(n), &"retry".into()));
        let after = said["tokens_after"].as_u64().unwrap();
        assert!(after <= 120_000 >> n && after < last, "{said}");
        last = after;
        let again = told(&recover(&dir, &["--json"]));
        assert_eq!(again["outcome"], "clean", "{again}");
        refused(1 + n);
    }
    let given_up = recover(&dir, &["--json"]);
    let said = told(&given_up);
    assert_eq!((given_up.status, &said["advice"]["action"]), (1, &"give-up".into()), "{said}");
    assert!(said["reason"].as_str().unwrap().contains("3 times in a row"), "{said}");
    let answer = format!(
        r#"{{"type":"message","id":"ffff0009","parentId":"{}",{TIME},"message":{{"role":"assistant","content":"{}","stopReason":"stop"}}}}"#,
        leaf(),
        "z".repeat(300_000)
    );
    append(&path, &(answer + "\n" + &failed("ffff0009")));
    let said = told(&recover(&dir, &["--json"]));
    assert_eq!((&said["outcome"], said["attempts_before"].as_u64()), (&"fixed".into(), Some(0)), "{said}");
}

/// An error that only the user knows: its number of tokens shows whether the session was already shortened for it.
#[test]
fn an_error_that_is_passed_twice_shortens_once() {
    let dir = Dir::new();
    let before = session("claude-code", 200, &"a row of the log. ".repeat(200));
    let path = dir.write("s.jsonl", &before);
    let refused = |tokens: u64| {
        let error = format!("prompt is too long: {tokens} tokens > 200000 maximum");
        told(&recover(&dir, &["--json", "--error", &error]))
    };
    assert_eq!(refused(234_743)["outcome"], "fixed");
    let short = fs::read(&path).unwrap();
    let again = recover(&dir, &["--error", "prompt is too long: 234743 tokens > 200000 maximum"]);
    assert!(again.status == 0 && again.stderr.contains("older than the last recovery"), "{}", again.stderr);
    assert_eq!(fs::read(&path).unwrap(), short);
    let said =
        dir.tailor(&["explain", "prompt is too long: 234743 tokens > 200000 maximum", "s.jsonl"]).text();
    assert!(said.contains("was shortened since this error"), "{said}");
    let other = refused(210_002);
    assert_eq!((&other["outcome"], other["attempts_before"].as_u64()), (&"fixed".into(), Some(1)), "{other}");
    assert_eq!(refused(234_743)["outcome"], "clean", "whichever it was");
    for _ in 0..2 {
        assert_eq!(undo(&dir).status, 0);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert_eq!(refused(234_743)["outcome"], "fixed", "what was undone does not count");
}

/// A Claude Code session of 880 messages and about 250,000 tokens. Beside each result is a long copy that the API never
/// sees.
fn long_session() -> String {
    let side = "y".repeat(9_000);
    let line = |line: &str| match line.strip_suffix('}') {
        Some(open) if line.contains("tool_result") => {
            format!("{open},\"toolUseResult\":{{\"stdout\":\"{side}\"}}}}\n")
        }
        _ => format!("{line}\n"),
    };
    session("claude-code", 220, &"a row of the log. ".repeat(160)).lines().map(line).collect()
}

const TOO_LONG: &str = "400 prompt is too long: 234743 tokens > 200000 maximum";

/// Level 1 only cuts what is never sent, and levels 2 and 3 leave next to nothing.
#[test]
fn as_many_of_the_newest_turns_stay_as_fit() {
    let dir = Dir::new();
    let before = long_session();
    let path = dir.write("s.jsonl", &before);
    // Old results are not shortened, which would be enough.
    let recover = |dir: &Dir, with: &[&str]| recover(dir, &[&["--crowded-trim-percent", "0"], with].concat());
    let first = recover(&dir, &["--level", "1", "--error", TOO_LONG, "--dry-run"]);
    assert_eq!(first.status, 1, "{}", first.text());
    assert!(first.text().contains("234,743 → 234,743 of 200,000 tokens, still too long"), "{}", first.text());
    let dry = recover(&dir, &["--error", TOO_LONG, "--dry-run"]);
    assert!(dry.status == 0 && dry.text().contains("would recover: 234,743 → "), "{}", dry.text());
    let run = recover(&dir, &["--error", TOO_LONG, "--json"]);
    let said = told(&run);
    assert_eq!((run.status, &said["tokens"], &said["window_tokens"]), (0, &234_743.into(), &200_000.into()));
    let after = said["tokens_after"].as_u64().unwrap();
    assert!((60_000..=120_000).contains(&after), "{said}");
    let (kept, left_out) = (said["kept"].as_u64().unwrap(), said["left_out"].as_u64().unwrap());
    assert!(kept > 200 && kept + left_out == 880, "{said}");
    let now = in_context(&dir);
    assert!(now[1].starts_with("[user]\nquestion"), "a whole turn: {}", now[1]);
    let texts: Vec<&String> = now.iter().filter(|text| text.contains("a row of the log")).collect();
    assert!(texts.iter().all(|text| !text.contains("[tailor: ")), "the newest turns are whole");
    let again = recover(&dir, &[]);
    assert!(again.status == 0 && again.text().contains(": not too long: "), "{}", again.text());
    let human = recover(&dir, &["--error", TOO_LONG, "--target-tokens", "40000", "--dry-run"]);
    assert!(human.text().contains(" of 200,000 tokens, ") && human.text().contains(" messages left out"));
    assert_eq!(undo(&dir).status, 0);
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}

#[test]
fn what_is_not_too_long_is_not_cut_unless_that_is_asked_for() {
    let dir = Dir::new();
    let before = session("anthropic", 50, &"row ".repeat(500));
    let path = dir.write("s.jsonl", &before);
    let plain = recover(&dir, &[]);
    assert!(plain.status == 0 && plain.text().contains("not too long: "), "{}", plain.text());
    assert!(plain.stderr.contains("--target-tokens"), "{}", plain.stderr);
    let refused = recover(&dir, &["--error", "prompt is too long"]);
    assert!(refused.status == 1 && refused.text().contains(" of 200,000 tokens ("), "{}", refused.text());
    // The number is not this session's.
    let foreign = recover(&dir, &["--error", "prompt is too long: 2347430 tokens > 200000 maximum"]);
    assert!(foreign.status == 1 && foreign.text().contains("another session"), "{}", foreign.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let asked = told(&recover(&dir, &["--target-tokens", "20000", "--json"]));
    assert_eq!((&asked["outcome"], &asked["target_tokens"]), (&"fixed".into(), &20_000.into()), "{asked}");
    assert!(asked["tokens_after"].as_u64().unwrap() <= 20_000, "{asked}");
}

/// The newest turn alone is longer than the window: its texts are cut, and it stays.
#[test]
fn a_turn_that_is_too_long_is_cut() {
    let dir = Dir::new();
    let long = "a row of the log\\n".repeat(30_000);
    for format in FORMATS {
        dir.write(
            "s.jsonl",
            session(format, 2, "short") + &session(format, 1, &long).replace("question 0", "why"),
        );
        let run = recover(&dir, &["--target-tokens", "60000", "--json"]);
        let said = told(&run);
        assert_eq!((run.status, &said["outcome"]), (0, &"fixed".into()), "{format} {said}");
        assert_eq!(said["left_out"].as_u64(), None, "{format} {said}");
    }
}

/// If older messages cannot be left out, results are cut until the session fits.
#[test]
fn a_format_without_compactions_is_cut_until_it_fits() {
    let dir = Dir::new();
    let case = fs::read_to_string(root().join("fixtures/codex/p1-lost-result/in.jsonl")).unwrap();
    let meta = case.lines().next().unwrap();
    let line = |payload: String| format!("{{{TIME},\"type\":\"response_item\",\"payload\":{payload}}}\n");
    let mut text = format!("{meta}\n");
    for n in 0..40 {
        text += &line(format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"question {n}"}}]}}"#
        ));
        text += &line(format!(
            r#"{{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"c{n}"}}"#
        ));
        let output = "a row of the log. ".repeat(1_000);
        text += &line(format!(r#"{{"type":"function_call_output","call_id":"c{n}","output":"{output}"}}"#));
    }
    text += &line(
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#.into(),
    );
    dir.write("s.jsonl", text);
    let error = "This model's maximum context length is 200000 tokens. However, you requested 220000 tokens";
    let said = told(&recover(&dir, &["--error", error, "--json"]));
    assert_eq!(said["outcome"], "fixed", "{said}");
    assert!(said["tokens_after"].as_u64().unwrap() <= 120_000, "{said}");
}

#[test]
fn thinking_that_is_signed_over_what_goes_is_removed_and_told() {
    let dir = Dir::new();
    let sign = |line: &str| {
        let thinking = r#"{"type":"thinking","thinking":"so","signature":"U2lnbmVkIGJ5IHRoZSBtb2RlbA=="},{"type":"text","text":"answer"#;
        let line = line.replace(r#"{"type":"text","text":"answer"#, thinking);
        line.replace(r#""role":"assistant","#, r#""role":"assistant","model":"claude-opus-5-5","#) + "\n"
    };
    let text: String =
        session("claude-code", 200, &"a row of the log. ".repeat(160)).lines().map(sign).collect();
    dir.write("s.jsonl", &text);
    let run = recover(&dir, &["--target-tokens", "100000"]);
    assert!(run.status == 0 && run.text().contains(", signed thinking removed from "), "{}", run.text());
    assert_eq!(dir.tailor(&["scan", "s.jsonl", "--select", "M4"]).status, 0);
}

/// For an error of another kind, the message names the command that repairs it, with the real path.
#[test]
fn an_error_of_another_kind_names_its_command() {
    let dir = Dir::new();
    dir.write("a b.jsonl", fs::read(root().join("fixtures/pi/p1-lost-result/in.jsonl")).unwrap());
    let error =
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1";
    let run = dir.tailor(&["recover", "a b.jsonl", "--settle", "0", "--error", error]);
    assert_eq!(run.status, 1, "{}", run.text());
    assert!(run.stderr.contains("tailor fix --select P1 'a b.jsonl'"), "{}", run.stderr);
    for error in ["overloaded_error", "401 invalid x-api-key"] {
        let run = dir.tailor(&["recover", "a b.jsonl", "--settle", "0", "--error", error]);
        let said = run.text() + &run.stderr;
        assert!(run.status == 1 && !said.contains("FILE") && !said.contains("(other)"), "{said}");
    }
}

#[test]
fn what_the_api_said_decides() {
    let dir = Dir::new();
    let before = session("anthropic", 20, "short");
    let path = dir.write("s.jsonl", &before);
    let said = |error: &str| {
        let run = recover(&dir, &["--json", "--dry-run", "--error", error]);
        (run.status, told(&run))
    };
    let (status, payload) = said("413 Request Entity Too Large");
    assert_eq!((status, &payload["cause"], &payload["level"]), (0, &"payload-too-large".into(), &2.into()));
    let (status, proxy) = said("403 Forbidden: blocked by firewall");
    assert_eq!((status, &proxy["cause"]), (1, &"proxy-rejection".into()));
    assert_eq!(proxy["advice"]["action"], "check-proxy");
    let (status, other) = said("401 invalid x-api-key");
    assert_eq!(
        (status, &other["outcome"], &other["advice"]["action"]),
        (1, &"refused".into(), &"none".into())
    );
    let none = recover(&dir, &[]);
    assert_eq!(none.status, 0);
    assert!(none.text().contains("not too long: ") && none.stderr.contains("--error \"TEXT\""));
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}

#[test]
fn an_answer_that_was_cut_off_gets_advice_and_the_file_stays() {
    let dir = Dir::new();
    let before = session("pi", 2, "short").replace(
        r#"[{"type":"text","text":"answer 1"}],"stopReason":"stop""#,
        r#"[{"type":"text","text":"answer"}],"stopReason":"length""#,
    );
    let path = dir.write("s.jsonl", &before);
    let run = recover(&dir, &["--json", "--output-tokens", "6000", "--max-output-tokens", "8192"]);
    let said = told(&run);
    assert_eq!(
        (run.status, &said["cause"], &said["outcome"]),
        (0, &"output-cut-off".into(), &"clean".into())
    );
    assert_eq!(
        (&said["advice"]["action"], &said["advice"]["max_tokens"]),
        (&"continue".into(), &8192.into())
    );
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}

#[test]
fn a_session_that_waits_for_a_tool_is_deferred() {
    let dir = Dir::new();
    let (before, _) = BROKEN.trim_end().rsplit_once('\n').unwrap();
    let path = dir.path("s.jsonl");
    for format in ["pi", "openai-chat"] {
        let text = match format {
            "pi" => before.to_string() + "\n",
            _ => {
                session(format, 20, "short")
                    + r#"{"role":"assistant","content":null,"tool_calls":[{"id":"z","function":{"name":"b","arguments":"{}"}}]}"#
                    + "\n"
            }
        };
        fs::write(&path, &text).unwrap();
        for command in
            [&["recover", "--level", "3", "--keep", "1"][..], &["compact", "--with", "echo s", "--keep", "1"]]
        {
            let run = dir.tailor(&[command, &["s.jsonl", "--settle", "0.01", "--json"]].concat());
            let said = told(&run);
            assert_eq!(run.status, 1, "{said}");
            assert_ne!(said["outcome"], "fixed", "{said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}

#[test]
fn undo_refuses_where_the_agent_has_gone_on_from_the_compaction() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", session("pi", 20, "short"));
    assert_eq!(recover(&dir, &["--level", "2"]).status, 0);
    let text = fs::read_to_string(&path).unwrap();
    let leaf: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
    append(&path, &failed(leaf["id"].as_str().unwrap()));
    let grown = fs::read_to_string(&path).unwrap();
    let run = undo(&dir);
    assert!(run.status == 2 && run.text().contains("continues, at line 83"), "{}", run.text());
    assert!(run.text().contains("nothing was removed"), "{}", run.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), grown);
}

#[test]
fn what_was_cut_comes_back_where_the_agent_has_gone_on_from_the_compaction() {
    let dir = Dir::new();
    let before = session("pi", 8, &"a row of the log\\n".repeat(2_000));
    let path = dir.write("s.jsonl", &before);
    assert_eq!(recover(&dir, &["--level", "3"]).status, 0);
    let text = fs::read_to_string(&path).unwrap();
    let leaf = text.lines().next_back().unwrap();
    let id: Value = serde_json::from_str(leaf).unwrap();
    let more = failed(id["id"].as_str().unwrap());
    append(&path, &more);
    let run = undo(&dir);
    assert!(run.status == 2 && run.text().contains("--partly keeps the compaction"), "{}", run.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{text}{more}"));
    let run = dir.tailor(&["undo", "s.jsonl", "--settle", "0", "--partly"]);
    assert_eq!(run.status, 0, "{}", run.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{before}{leaf}\n{more}"));
    assert_eq!(undo(&dir).status, 2, "it is undone, as far as it can be");
}

#[test]
fn messages_that_were_taken_out_come_back_in_front_of_what_was_appended() {
    for format in FORMATS.iter().filter(|format| **format != "pi") {
        for level in ["2", "3"] {
            let dir = Dir::new();
            let all = session(format, 9, &"a row of the log\\n".repeat(2_000));
            let (at, _) = all.match_indices('\n').rev().nth(4).unwrap();
            let (before, more) = all.split_at(at + 1);
            let path = dir.write("s.jsonl", before);
            assert_eq!(recover(&dir, &["--level", level]).status, 0, "{format} {level}");
            append(&path, more);
            assert_eq!(undo(&dir).status, 0, "{format} {level}");
            assert_eq!(fs::read_to_string(&path).unwrap(), all, "{format} {level}");
        }
    }
}

#[test]
fn a_command_summarises_chunk_by_chunk() {
    for format in FORMATS {
        let dir = Dir::new();
        let before = session(format, 20, &"log ".repeat(100));
        let path = dir.write("s.jsonl", &before);
        let compact = |more: &[&str]| {
            dir.tailor(&[&["compact", "s.jsonl", "--settle", "0", "--max-tokens", "1000"][..], more].concat())
        };
        let dry = compact(&["--dry-run"]);
        assert_eq!(dry.status, 0, "{}", dry.stderr);
        assert!(
            dry.text().contains("chunk 1: lines")
                && dry.text().contains("8 messages in context, 72 left out")
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        let command = r#"grep -c '' > seen.$TAILOR_CHUNK; echo "part $TAILOR_CHUNK of $TAILOR_CHUNKS""#;
        let run = compact(&["--with", command, "--json"]);
        let said = told(&run);
        assert_eq!((run.status, &said["outcome"], &said["kept"]), (0, &"fixed".into(), &8.into()), "{said}");
        let chunks = said["chunks"].as_u64().unwrap();
        assert!(chunks > 2 && dir.path(format!("seen.{chunks}")).exists());
        let now = in_context(&dir);
        let system = usize::from(format == "openai-chat");
        assert!(
            now[system].contains(&format!("part 1 of {chunks}\n\npart 2 of {chunks}")),
            "{format} {now:?}"
        );
        assert_eq!(now.len(), 9 + system, "{format}");
        assert_eq!(undo(&dir).status, 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
}

#[test]
fn a_command_that_fails_or_says_nothing_changes_nothing() {
    let dir = Dir::new();
    let before = session("pi", 20, "short");
    let path = dir.write("s.jsonl", &before);
    for (command, why) in [
        ("cat > /dev/null; exit 3", "the command failed (exit status: 3)"),
        ("true", "the command printed nothing"),
        ("printf ' \\n '", "the command printed nothing"),
        ("yes", "printed more than"),
        ("kill -9 $$", "the command failed (signal: 9"),
    ] {
        let run = dir.tailor(&["compact", "s.jsonl", "--settle", "0", "--with", command]);
        assert_eq!(run.status, 2, "{command}");
        assert!(
            run.stderr.contains("could not summarise chunk 1 of 1") && run.stderr.contains(why),
            "{}",
            run.stderr
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{command}");
    }
    assert!(!dir.home().join(".state").exists(), "nothing was kept, because nothing went");
}

#[test]
fn a_file_that_changes_while_the_command_works_is_not_spoiled() {
    let dir = Dir::new();
    let before = session("openai-chat", 20, "short");
    let path = dir.write("s.jsonl", &before);
    let command = "sed -i 3,6d s.jsonl; echo a summary of what was";
    let run = dir.tailor(&["compact", "s.jsonl", "--settle", "0", "--with", command]);
    assert!(run.status == 1 && run.text().contains("not what it was"), "{} {}", run.text(), run.stderr);
    let command = r#"echo '{"role":"user","content":"late"}' >> s.jsonl; echo what was"#;
    let run = dir.tailor(&["compact", "s.jsonl", "--settle", "0", "--with", command]);
    assert_eq!(run.status, 0, "{}", run.text());
    assert!(fs::read_to_string(path).unwrap().ends_with("{\"role\":\"user\",\"content\":\"late\"}\n"));
}

/// The shape of OpenClaw #2254: 35 messages, seven of them results of 396 KB of dense JSON.
#[test]
fn a_bloated_session_fits_into_chunks() {
    let dir = Dir::new();
    let json = r#"{\"key\":[1,2,3],\"description\":\"some value of the schema, told at length, so that there are words between the quotes\",\"id\":12345678},"#
        .repeat(3000);
    let text = session("pi", 9, "short");
    let mut bloated = 0;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let result = line.contains("\"short\"") && bloated < 7;
            bloated += usize::from(result);
            if result { line.replace("\"short\"", &format!("\"{json}\"")) } else { line.to_string() }
        })
        .collect();
    let path = dir.write("s.jsonl", lines.join("\n") + "\n");
    assert!(fs::metadata(&path).unwrap().len() > 2_700_000);
    for tokenizer in ["chars4", "o200k"] {
        let run = dir.tailor(&["chunk", "s.jsonl", "--max-tokens", "2000", "--tokenizer", tokenizer]);
        let mut lines = run.json();
        let summary = lines.pop().unwrap();
        assert_eq!((&summary["messages_total"], &summary["replaced"]), (&36.into(), &7.into()), "{summary}");
        assert_eq!(summary["estimated"], tokenizer == "chars4");
        assert!(lines.iter().all(|chunk| chunk["tokens"].as_u64().unwrap() <= 2000));
        assert_eq!(
            run.text().matches("[tool bash: 393000 characters left out]").count(),
            7,
            "{}",
            run.text()
        );
    }
    dir.tailor(&["fix", "s.jsonl", "--settle", "0"]);
    assert!(fs::metadata(&path).unwrap().len() < 250_000);
}

#[test]
fn a_budget_leaves_the_oldest_out_and_a_pipe_will_do() {
    let dir = Dir::new();
    let text = session("anthropic", 20, "short");
    let run = dir.pipe(text.as_bytes(), &["chunk", "-", "--max-total-tokens", "300"]);
    let lines = run.json();
    let summary = lines.last().unwrap();
    assert!(
        summary["tokens"].as_u64().unwrap() <= 300 && summary["left_out"].as_u64().unwrap() > 0,
        "{summary}"
    );
    assert!(run.text().contains("answer 19") && !run.text().contains("question 0\\n"));
    assert_eq!(summary["messages_total"].as_u64().unwrap() + summary["left_out"].as_u64().unwrap(), 80);
}

#[test]
fn what_cannot_be_dealt_with_says_why() {
    let dir = Dir::new();
    dir.write("empty.jsonl", "");
    dir.write("other.jsonl", "{\"a\":1}\n{\"b\":2}\n");
    dir.write(
        "cycle.jsonl",
        session("pi", 3, "x").replacen(r#""parentId":null"#, r#""parentId":"00020003""#, 1),
    );
    dir.write(
        "old.jsonl",
        "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/w\"}\n".to_string()
            + &r#"{"type":"message","message":{"role":"user","content":"go"}}
"#
            .repeat(30),
    );
    fs::create_dir(dir.path("folder")).unwrap();
    for (name, status, words) in [
        ("empty.jsonl", 2, "empty"),
        ("other.jsonl", 2, "not a transcript of a known format"),
        ("missing.jsonl", 2, "no file or session id of this name"),
        ("folder", 2, "folder"),
        ("cycle.jsonl", 0, ""),
        ("old.jsonl", 1, "no ids"),
    ] {
        let run = dir.tailor(&["recover", name, "--level", "2", "--settle", "0", "--keep", "2"]);
        let said = run.text() + &run.stderr;
        assert!(run.status == status && said.contains(words), "recover {name}: {} {said}", run.status);
        let run = dir.tailor(&["compact", name, "--with", "echo s", "--settle", "0", "--keep", "2"]);
        let said = run.text() + &run.stderr;
        let status = if name == "cycle.jsonl" { 1 } else { status };
        let words = if ["empty.jsonl", "cycle.jsonl"].contains(&name) { "" } else { words };
        assert!(run.status == status && said.contains(words), "compact {name}: {} {said}", run.status);
        if !["cycle.jsonl", "old.jsonl"].contains(&name) {
            let run = dir.tailor(&["chunk", name]);
            assert!(run.status == 2 && run.stderr.contains(words), "chunk {name}: {}", run.stderr);
        }
    }
    // A format that is only recognised gives a reason; an empty conversation is no error.
    let never_read = root().join("fixtures/cursor/ok-recognised/in.jsonl");
    let run = run(dir.command().arg("chunk").arg(never_read), b"");
    assert!(run.status == 2 && run.stderr.contains("its sessions are in a database"), "{}", run.stderr);
    dir.write("silent.jsonl", session("pi", 0, ""));
    let run = dir.tailor(&["chunk", "silent.jsonl"]);
    assert!(run.status == 0 && run.stderr.contains("no message is in context"), "{}", run.stderr);
    for wrong in [
        &["recover", "s", "--level", "4"][..],
        &["recover", "s", "--keep", "0"],
        &["chunk", "s", "--max-tokens", "9"],
        &["compact", "s"],
    ] {
        assert_eq!(dir.tailor(wrong).status, 2, "{wrong:?}");
    }
}

/// pi sends the summary as the user, and Claude Code stores it as a user message.
#[test]
fn a_summary_is_said_by_the_user() {
    for format in ["pi", "claude-code"] {
        let dir = Dir::new();
        dir.write("s.jsonl", session(format, 4, "row"));
        let run = recover(&dir, &["--level", "2", "--keep", "3", "--json"]);
        assert_eq!((run.status, &told(&run)["kept"]), (0, &3.into()), "{format}");
        let asked = |text: &String| text.starts_with("[user]\nquestion");
        assert!(!in_context(&dir).iter().any(asked), "{format}");
        let scan = dir.tailor(&["scan", "s.jsonl", "--select", "M8"]);
        assert!(scan.text().contains("nothing wrong"), "{format}: {}", scan.text());
    }
}

/// In the AI SDK's messages for the screen, a part's type holds the tool's name.
#[test]
fn a_tool_has_one_name_in_a_chunk() {
    let dir = Dir::new();
    let screen = root().join("fixtures/ai-sdk-ui/s1-limit-of-one-tool/in.jsonl");
    let run = run(dir.command().arg("chunk").arg(screen), b"");
    let chunk: Value = serde_json::from_str(run.text().lines().next().unwrap()).unwrap();
    let messages = chunk["messages"].as_array().unwrap().iter().filter(|message| message["tool"].is_string());
    for message in messages {
        let called = format!("[calls {}] ", message["tool"].as_str().unwrap());
        assert!(message["text"].as_str().unwrap().contains(&called), "{message}");
    }
}

/// A fix that was held back because its entry was the newest is made once the compaction comes after it.
#[test]
fn as_many_messages_are_told_as_stay() {
    let dir = Dir::new();
    let newest = fs::read_to_string(root().join("fixtures/pi/p5-newest/in.jsonl")).unwrap();
    dir.write("s.jsonl", &newest);
    let run = recover(&dir, &["--level", "2", "--keep", "3", "--json"]);
    assert_eq!((run.status, &told(&run)["outcome"], &told(&run)["kept"]), (0, &"fixed".into(), &2.into()));
    assert_eq!(in_context(&dir).len(), 3, "with the summary");
}

/// An added result repairs a session, but does not shorten it.
#[test]
fn what_is_mended_only_is_not_said_to_be_recovered() {
    let dir = Dir::new();
    dir.write("s.jsonl", fs::read(root().join("fixtures/pi/p1-lost-result/in.jsonl")).unwrap());
    for (more, said) in [(&["--dry-run"][..], "would repair at level 2: "), (&[], "repaired at level 2: ")] {
        let asked = ["recover", "s.jsonl", "--settle", "0", "--level", "2"];
        let text = dir.tailor(&[&asked[..], more].concat()).text();
        let only = ", nothing shortened or left out";
        assert!(
            text.contains(&format!("s.jsonl: {said}"))
                && text.lines().next().is_some_and(|line| line.ends_with(only)),
            "{text}"
        );
    }
}

/// If older messages cannot be left out, no other level is proposed.
#[test]
fn what_stands_in_the_way_is_not_told_to_try_another_level() {
    let dir = Dir::new();
    dir.write("s.jsonl", fs::read(root().join("fixtures/codex/p1-lost-result/in.jsonl")).unwrap());
    let run = dir.tailor(&["recover", "s.jsonl", "--settle", "0", "--level", "2", "--keep", "1"]);
    assert!(
        run.status == 1 && run.text().contains("cannot write a compaction for this agent"),
        "{}",
        run.text()
    );
    assert!(run.stderr.contains("--cut-results") && !run.stderr.contains("--level"), "{}", run.stderr);
}
