//! `tailor top` and `tailor report`: the output at two widths, the JSON, the page as a file. `tests/report/run` checks
//! what the page draws.

use crate::support::{Dir, WHOLE, as_written, codex_session, root, run};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A session with two tools, a compaction, a copy that is not sent, an image and texts that stand twice.
pub(crate) fn session() -> String {
    let mut text = json!({"type":"session","version":3,"id":"s","cwd":"/w"}).to_string() + "\n";
    let mut parent = Value::Null;
    let mut entries = Vec::new();
    for turn in 0..6 {
        let (call, tool) = (format!("c{turn}"), ["read", "bash\u{1b}[31m"][turn % 2]);
        entries.push(json!({"type":"message","message":{"role":"user","content":"go on, please"}}));
        entries.push(
            json!({"type":"message","message":{"role":"assistant","model":"some-model","stopReason":"toolUse",
            "usage":{"input":10,"output":5,"cacheRead":1000 * turn,"cacheWrite":0},
            "content":[{"type":"thinking","thinking":"hm ".repeat(100),"thinkingSignature":"c2ln".repeat(40)},
                {"type":"toolCall","id":call,"name":tool,"arguments":{"path":"src/main.rs"}}]}}),
        );
        entries.push(
            json!({"type":"message","message":{"role":"toolResult","toolCallId":call,"toolName":tool,
            "content":[{"type":"text","text":"a row of many\n".repeat(120 + 200 * (turn % 3))}],
            "details":{"copy":"d".repeat(900 * turn)}}}),
        );
        if turn == 2 {
            entries.push(json!({"type":"compaction","summary":"so far ".repeat(30),"firstKeptEntryId":"e7"}));
        }
    }
    let image = json!({"type":"image","mimeType":"image/png","data":"iVBO".repeat(300)});
    entries.push(json!({"type":"message","message":{"role":"user","content":[image]}}));
    for (n, mut entry) in entries.into_iter().enumerate() {
        entry["id"] = json!(format!("e{n}"));
        entry["parentId"] = parent;
        parent = entry["id"].clone();
        writeln!(text, "{entry}").unwrap();
    }
    text
}

/// Compares the output with the recorded one. `UPDATE=1` records it.
#[track_caller]
fn check(name: &str, columns: &str, locale: &str, arguments: &[&str]) -> String {
    let dir = Dir::new();
    dir.write("sessions/one.jsonl", session());
    dir.write("sessions/two.jsonl", WHOLE);
    let mut command = dir.command();
    command.env("COLUMNS", columns).env("LC_ALL", locale).arg("top").args(arguments);
    let done = run(&mut command, b"");
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    let text = done.text();
    let path = root().join("tests/snapshots").join(name);
    as_written(&path, &text);
    assert!(!text.contains('\u{1b}'), "{text}");
    text
}

#[test]
fn one_session_on_80_columns() {
    let text = check("top-80.txt", "80", "C.UTF-8", &["sessions/one.jsonl"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn one_session_on_200_columns() {
    check("top-200.txt", "200", "C.UTF-8", &["sessions/one.jsonl"]);
}

#[test]
fn a_folder_on_a_terminal_that_knows_ascii_only() {
    let text = check("top-folder-ascii.txt", "80", "C", &["sessions", "-n", "3"]);
    assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
}

/// The same number of tokens fills one window more than another; `doctor` shows the same.
#[test]
fn a_context_is_measured_against_its_own_window() {
    let dir = Dir::new();
    dir.write("sessions/roomy.jsonl", codex_session(210_000, 400_000));
    dir.write("sessions/full.jsonl", codex_session(190_000, 200_000));
    let text = dir.tailor(&["top", "sessions"]).text();
    let table = text.split("Fullest contexts").nth(1).unwrap_or_default();
    let rows: Vec<&str> = table.lines().skip(1).take(2).collect();
    let expected =
        ["  95%  190,000 of 200,000  sessions/full.jsonl", "  53%  210,000 of 400,000  sessions/roomy.jsonl"];
    assert_eq!(rows, expected, "{text}");
    for file in
        dir.tailor(&["doctor", "--json", "sessions"]).json().iter().filter(|line| line["type"] == "session")
    {
        let is_full = file["path"] == "sessions/full.jsonl";
        assert_eq!(file["window_tokens"], if is_full { 200_000 } else { 400_000 }, "{file}");
    }
}

#[test]
fn the_configuration_says_how_large_the_window_is() {
    let dir = Dir::new();
    dir.write("c.toml", "window_tokens = 300000\n[agents.codex]\nwindow_tokens = 250000\n");
    dir.write("s.jsonl", codex_session(210_000, 400_000));
    dir.write("w.jsonl", WHOLE);
    let window = |arguments: &[&str]| {
        let text = dir.tailor(&[arguments, &["--config", "c.toml"]].concat()).text();
        let mut words = text.split(" of ").skip(1).filter_map(|rest| rest.split(' ').next());
        words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap().to_string()
    };
    assert_eq!(window(&["top", "s.jsonl"]), "250,000");
    assert_eq!(window(&["top", "w.jsonl"]), "300,000");
    assert_eq!(window(&["top", "w.jsonl", "--window-tokens", "9000"]), "9,000");
    assert_eq!(window(&["explain", "prompt is too long", "s.jsonl"]), "250,000");
}

#[test]
fn the_json_adds_up_and_says_no_content() {
    let dir = Dir::new();
    let text = session();
    dir.write("s.jsonl", &text);
    dir.write("w.jsonl", WHOLE);
    let done = dir.tailor(&["top", "--json", "-n", "2", "s.jsonl", "w.jsonl"]);
    assert!(!done.text().contains("row of many") && !done.text().contains('\u{1b}'));
    let lines: Vec<Value> = done.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |line: &Value, table: &str, key: &str| -> u64 {
        line[table].as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
    };
    let file = &lines[0];
    assert_eq!(
        (file["bytes"].as_u64(), file["outcome"].as_str()),
        (Some(text.len() as u64), Some("weighed"))
    );
    for line in &lines {
        for table in ["standings", "parts"] {
            assert_eq!(of(line, table, "bytes"), line["bytes"].as_u64().unwrap(), "{table}");
            // No table has what the agent adds to requests.
            assert_eq!(of(line, table, "tokens"), of(line, "parts", "tokens"), "{table}");
            assert!(of(line, table, "tokens") < line["context"]["tokens"].as_u64().unwrap(), "{table}");
        }
        assert_eq!(
            of(line, "kinds", "bytes"),
            of(line, "fields", "bytes"),
            "rows that are left out are one row"
        );
    }
    assert_eq!(file["largest"].as_array().unwrap().len(), 2);
    assert_eq!(file["context"]["counted_tokens"], 5015);
    assert_eq!(lines[2]["type"], "summary");
    assert_eq!(lines[2]["weighed"], 2);
    let shown = dir.tailor(&["top", "--json", "-n", "2", "--show-content", "s.jsonl"]);
    assert!(shown.text().contains("row of many"));
}

#[test]
fn what_is_no_transcript_is_an_error_if_it_was_named() {
    let dir = Dir::new();
    dir.write("d/notes.jsonl", "{\"a\":1}\n");
    dir.write("d/w.jsonl", WHOLE);
    let named = dir.tailor(&["top", "d/notes.jsonl"]);
    assert_eq!(named.status, 2);
    assert!(named.stderr.starts_with("tailor: d/notes.jsonl: "), "{}", named.stderr);
    assert_eq!(dir.tailor(&["top", "d"]).status, 0);
    assert_eq!(dir.tailor(&["top", "gone"]).status, 2);
    let piped = dir.pipe(WHOLE.as_bytes(), &["top", "-"]);
    assert!(piped.text().starts_with("-: pi, "), "{}", piped.text());
}

#[test]
fn a_report_is_written_for_nobody_else_and_over_nothing_else() {
    let dir = Dir::new();
    dir.write("s.jsonl", session());
    let path = dir.path("report.html");
    for _ in 0..2 {
        let done = dir.tailor(&["report", "s.jsonl", "-o", "report.html"]);
        assert_eq!((done.status, done.text().as_str()), (0, ""), "{}", done.stderr);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    // A link stays, and its target is checked and replaced.
    std::os::unix::fs::symlink("report.html", dir.path("link")).unwrap();
    assert_eq!(dir.tailor(&["report", "s.jsonl", "-o", "link"]).status, 0);
    assert!(dir.path("link").is_symlink());
    fs::remove_file(dir.path("link")).unwrap();
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("default-src 'none'"));
    assert!(!page.contains("row of many"), "no content unless asked for");
    assert!(
        !page.contains("http://") || page.matches("http://").count() == 1,
        "the name of SVG is no address"
    );
    assert_eq!(dir.names(), ["report.html", "s.jsonl"]);
    let done = dir.tailor(&["report", "s.jsonl", "-o", "s.jsonl"]);
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("is not a report"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(dir.path("s.jsonl")).unwrap(), session());
    assert_eq!(dir.tailor(&["report", "s.jsonl", "-o", "no/such/folder.html"]).status, 2);
}
