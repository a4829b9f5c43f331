//! What hostile and odd sessions cost: at most in proportion to their length. Counted in instructions, because time
//! means nothing on a busy machine.

use crate::support::{Dir, is_thorough, skipped};
use std::fmt::Write;
use std::fs;
use std::process::Stdio;

/// How many parts the shorter session has; the longer one has four times as many.
const PARTS: usize = 400;

/// What four times the length may cost. Quadratic cost would be far above.
const RATIO_MAX: f64 = 5.0;

/// A kind of session, made of so many parts.
type SessionRecipe = fn(usize) -> String;

const SHAPES: &[(&str, SessionRecipe)] = &[
    ("open calls in one message", |n| calls(n, "toolUse", n / 2, |n| n % 7)),
    ("answered calls in one message", |n| calls(n, "toolUse", n, |n| n)),
    ("calls of one aborted message", |n| calls(n, "aborted", n, |n| n)),
    ("open calls in one Anthropic message", anthropic),
    ("results in one Anthropic message whose calls were lost", lost_calls),
    ("images in one message that are too large", |n| images(n, "AAIygAAABkCAIAAAA", 400)),
    ("images in one message that are as long as one another", |n| images(n, "AAAAoAAAAKCAIAAAA", 1000)),
    ("turns that are nothing but thinking", |n| {
        chain((0..n).flat_map(|_| [USER.to_string(), THINKING.to_string()]))
    }),
    ("raw lines behind an open string", |n| format!("{}{}\"}}}}\n", half_a_record(0), "abc\n".repeat(n))),
    ("records that are never closed", |n| (0..n).map(half_a_record).collect()),
    ("objects that are opened on each line", |n| "{\"a\":\n".repeat(n)),
    ("objects on one line", |n| format!("{}\n", "{}".repeat(4 * n))),
    ("records between fragments on one line", |n| {
        format!("{}\n", format!("x{}", message(0, USER)).repeat(n))
    }),
    ("records with raw control characters on one line", |n| {
        format!("{}\n", format!("x{}", message(0, "{\"role\":\"user\",\"content\":\"a\u{1}b\"}")).repeat(n))
    }),
    ("a number without an end", |n| format!("[{}", "1".repeat(2000 * n))),
    ("control characters between tokens", |n| format!("{{{}\n", "\u{1}".repeat(100 * n))),
    ("NUL bytes and blanks between tokens", |n| format!("{{{}\n", "\0 ".repeat(10 * n))),
    ("fields of a record that lacks one", |n| {
        let fields: Vec<_> = (0..10 * n).map(|n| format!("\"k{n}\":1")).collect();
        format!("{{\"type\":\"message\",\"id\":\"e0\",{}}}\n", fields.join(","))
    }),
    ("records with damaged names on one line", |n| {
        format!("{}\n", message(0, USER).replacen("message\":{", "messag\0\":{", 1).repeat(n))
    }),
    ("raw control characters behind a long text", |n| {
        let text = format!("{}{}", "a".repeat(800 * n), "\u{1}b".repeat(n));
        format!("{}\n", message(0, &format!("{{\"role\":\"user\",\"content\":\"{text}\"}}")))
    }),
];

const USER: &str = r#"{"role":"user","content":"x"}"#;

const THINKING: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"x","thinkingSignature":"s"}],"stopReason":"stop"}"#;

/// A line of pi, without its line break.
fn message(n: usize, said: &str) -> String {
    let parent = n.checked_sub(1).map_or("null".to_string(), |parent| format!("\"e{parent}\""));
    format!(
        r#"{{"type":"message","id":"e{n}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{said}}}"#
    )
}

fn half_a_record(n: usize) -> String {
    format!("{{\"type\":\"message\",\"id\":\"q{n}\",\"message\":{{\"role\":\"user\",\"content\":\"abc\n")
}

fn chain(said: impl Iterator<Item = String>) -> String {
    said.enumerate().fold(String::new(), |mut text, (n, said)| {
        let _ = writeln!(text, "{}", message(n, &said));
        text
    })
}

/// A message with `n` calls, results of which the k-th answers `answers(k)`, and another user message.
fn calls(n: usize, stop: &str, results: usize, answers: fn(usize) -> usize) -> String {
    let call = |n| format!(r#"{{"type":"toolCall","id":"t{n}","name":"exec","arguments":{{}}}}"#);
    let content: Vec<String> = (0..n).map(call).collect();
    let asks = format!(r#"{{"role":"assistant","content":[{}],"stopReason":"{stop}"}}"#, content.join(","));
    let result = |k| {
        let call = answers(k);
        format!(
            r#"{{"role":"toolResult","toolCallId":"t{call}","toolName":"exec","content":[{{"type":"text","text":"x"}}],"isError":false}}"#
        )
    };
    chain([USER.to_string(), asks].into_iter().chain((0..results).map(result)).chain([USER.to_string()]))
}

/// A message with `n` PNG images of this size, each with this many characters beside its header.
fn images(n: usize, size: &str, chars: usize) -> String {
    let image = |n| {
        format!(
            r#"{{"type":"image","data":"iVBORw0KGgoAAAANSUhEUg{size}{n:0chars$}","mimeType":"image/png"}}"#
        )
    };
    let images: Vec<String> = (0..n).map(image).collect();
    chain([format!(r#"{{"role":"user","content":[{}]}}"#, images.join(","))].into_iter())
}

fn anthropic(n: usize) -> String {
    let list = |count, each: fn(usize) -> String| (0..count).map(each).collect::<Vec<_>>().join(",");
    let calls = list(n, |n| format!(r#"{{"type":"tool_use","id":"c{n}","name":"f","input":{{}}}}"#));
    let results = list(n / 2, |n| format!(r#"{{"type":"tool_result","tool_use_id":"c{n}","content":"x"}}"#));
    format!(
        "{USER}\n{{\"role\":\"assistant\",\"content\":[{calls}]}}\n{{\"role\":\"user\",\"content\":[{results}]}}\n{USER}\n"
    )
}

fn lost_calls(n: usize) -> String {
    let result = |n| format!(r#"{{"type":"tool_result","tool_use_id":"c{n}","content":"x"}}"#);
    let results: Vec<String> = (0..n).map(result).collect();
    let said = r#"{"role":"assistant","content":"x"}"#;
    format!("{USER}\n{said}\n{{\"role\":\"user\",\"content\":[{}]}}\n{said}\n", results.join(","))
}

/// The instructions that `fix` takes for a text; `None` if they cannot be counted here.
fn cost(dir: &Dir, text: &str) -> Option<f64> {
    fs::write(dir.path("s.jsonl"), text).unwrap();
    let mut command = dir.command_of("valgrind");
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("RAYON_NUM_THREADS", "1");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    command.args([env!("CARGO_BIN_EXE_tailor"), "fix", "--format", "json", "-"]);
    command.stdin(fs::File::open(dir.path("s.jsonl")).unwrap()).stdout(Stdio::null());
    let said = String::from_utf8(command.output().ok()?.stderr).unwrap();
    let counted = said.lines().find_map(|line| line.split_once("refs:"))?.1.trim().replace(',', "");
    counted.parse().ok()
}

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n";

#[test]
fn no_session_costs_more_than_in_proportion_to_its_length() {
    if !is_thorough() {
        skipped("a minute of valgrind, which TAILOR_THOROUGH=1 asks for, and .ci/long does");
        return;
    }
    let dir = Dir::new();
    let Some(nothing) = cost(&dir, "") else {
        skipped("instructions cannot be counted without valgrind, so that no cost was");
        return;
    };
    let mut dear = String::new();
    for (name, shape) in SHAPES {
        let headed =
            |parts| format!("{}{}", if name.contains("Anthropic") { "" } else { HEADER }, shape(parts));
        let [short, long] = [PARTS, 4 * PARTS].map(|parts| cost(&dir, &headed(parts)).unwrap() - nothing);
        if long > RATIO_MAX * short {
            let _ = writeln!(dear, "{name}: four times as long costs {:.1} times as much", long / short);
        }
    }
    assert!(dear.is_empty(), "{dear}");
}
