//! `tailor scan`: exit codes, selection, its JSON.

use crate::support::{BROKEN, Dir, WHOLE, run};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// One call with two results, in a format whose lines are only removed if allowed.
const DOUBLED: &str = concat!(
    r#"{"role":"user","content":"go"}"#,
    "\n",
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
    "\n",
    r#"{"role":"tool","tool_call_id":"c","content":"one"}"#,
    "\n",
    r#"{"role":"tool","tool_call_id":"c","content":"one"}"#,
    "\n",
    r#"{"role":"assistant","content":"done"}"#,
    "\n",
);

/// A call without a result, a result without a call, and no line break at the end.
fn three_findings() -> String {
    let orphan = r#"{"type":"message","id":"r","parentId":"a3","message":{"role":"toolResult","toolCallId":"x","toolName":"read","content":"?"}}"#;
    format!("{BROKEN}{orphan}\n{}", r#"{"type":"custom","id":"z","parentId":"r"}"#)
}

fn codes(dir: &Dir, arguments: &[&str]) -> Vec<String> {
    dir.tailor(&[&["scan", "--format", "json", "s.jsonl"], arguments].concat()).codes()
}

#[test]
fn nothing_wrong_exits_with_0() {
    let dir = Dir::new();
    dir.write("s.jsonl", WHOLE);
    let run = dir.tailor(&["scan", "s.jsonl"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert!(run.text().contains("nothing wrong"), "{}", run.text());
}

#[test]
fn findings_exit_with_1_and_change_nothing() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    let run = dir.tailor(&["scan", "s.jsonl"]);
    assert_eq!((run.status, run.stderr.as_str()), (1, ""));
    let begins = "s.jsonl\n  error   P1 call-without-result (line 3): ";
    assert!(run.text().starts_with(begins), "{}", run.text());
    assert_eq!(fs::read_to_string(path).unwrap(), BROKEN);
    assert_eq!(dir.names(), ["s.jsonl"]);
}

#[test]
fn a_file_is_read_as_it_is_told_and_says_by_what_it_was_recognised() {
    let dir = Dir::new();
    let row = r#"{"role":"assistant","content":"hi","conversation_id":"c"}"#;
    dir.write("s.jsonl", format!("{row}\n"));
    let run = dir.tailor(&["scan", "s.jsonl"]);
    assert_eq!(run.status, 2);
    assert!(
        run.text().contains("openai-chat or ai-sdk-model, but nothing tells that for certain: --as FORMAT"),
        "{}",
        run.text()
    );
    let run = dir.tailor(&["scan", "-v", "--as", "openai-chat", "s.jsonl"]);
    assert_eq!(run.status, 0);
    assert!(run.text().starts_with("s.jsonl (openai-chat: read as told)\n  note    V2"), "{}", run.text());
    assert_eq!(dir.tailor(&["scan", "--as", "openai", "s.jsonl"]).status, 2);
    dir.write("s.jsonl", DOUBLED);
    let json = dir.tailor(&["scan", "--json", "s.jsonl"]).json();
    assert_eq!(json[0]["recognised"], "5 of its first 5 objects are of this format alone");
    let tool = r#"{"role":"tool","tool_call_id":"c","content":"a"}"#;
    let used = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"ls","input":{}}]}"#;
    dir.write("s.jsonl", format!("{used}\n{tool}\n"));
    let run = dir.tailor(&["scan", "s.jsonl"]);
    assert!(
        run.text().contains("some of its objects are as in anthropic, others as in openai-chat"),
        "{}",
        run.text()
    );
}

#[test]
fn an_error_exits_with_2_and_the_others_are_looked_at() {
    let dir = Dir::new();
    dir.write("s.jsonl", BROKEN);
    let run = dir.tailor(&["scan", "gone.jsonl", "s.jsonl"]);
    assert_eq!(run.status, 2);
    assert!(run.text().contains("s.jsonl\n  error   P1"), "{}", run.text());
    assert!(run.stderr.starts_with("tailor: gone.jsonl: "), "{}", run.stderr);
}

#[test]
fn fail_on_chooses_what_makes_the_exit_code() {
    let dir = Dir::new();
    dir.write("warning.jsonl", format!("undefined\n{WHOLE}"));
    dir.write("note.jsonl", WHOLE.trim_end());
    for (file, fail_on, status) in [
        ("warning.jsonl", "note", 1),
        ("warning.jsonl", "warning", 1),
        ("warning.jsonl", "error", 0),
        ("warning.jsonl", "B9", 1),
        ("warning.jsonl", "unreadable-line", 1),
        ("warning.jsonl", "error,B9", 1),
        ("warning.jsonl", "P1", 0),
        ("note.jsonl", "note", 1),
        ("note.jsonl", "warning", 0),
    ] {
        assert_eq!(dir.tailor(&["scan", file, "--fail-on", fail_on]).status, status, "{file} {fail_on}");
    }
    for file in ["note.jsonl", "warning.jsonl"] {
        assert_eq!(dir.tailor(&["scan", file]).status, 0, "by default only an error is a failure: {file}");
    }
}

#[test]
fn select_and_ignore_choose_rules() {
    let dir = Dir::new();
    dir.write("s.jsonl", three_findings());
    assert_eq!(codes(&dir, &[]), ["P1", "P2", "B1"]);
    assert_eq!(codes(&dir, &["--select", "P2"]), ["P2"]);
    assert_eq!(codes(&dir, &["--select", "p2,torn-line"]), ["P2", "B1"]);
    assert_eq!(codes(&dir, &["--ignore", "P1", "--ignore", "B1"]), ["P2"]);
    assert_eq!(codes(&dir, &["--select", "P1,P2", "--ignore", "P1"]), ["P2"]);
    assert_eq!(dir.tailor(&["scan", "s.jsonl", "--ignore", "P1,P2,B1"]).status, 0);
}

/// The contract with programs that read the JSON: these fields with these types. Fields may be added, but not removed.
#[test]
fn the_shape_of_json() {
    let dir = Dir::new();
    let long = BROKEN.replace("well?", "fine").replace(
        r#"{"type":"message","id":"a3","#,
        &format!(
            r#"{{"type":"message","id":"r","parentId":"a2","message":{{"role":"toolResult","toolCallId":"c","toolName":"bash","content":"{}"}}}}
{{"type":"message","id":"a3","#,
            "long ".repeat(10_000)
        ),
    );
    dir.write(
        "s.jsonl",
        long.replace(r#""parentId":"a2","timestamp":"2026-07-01T10:00:03.000Z""#, r#""parentId":"r""#),
    );
    dir.write("t.jsonl", WHOLE);
    let lines = dir.tailor(&["scan", "--format", "json", "."]).json();
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(kinds, ["file", "file", "summary"]);
    let file = &lines[0];
    assert!(file["path"].as_str().unwrap().ends_with("s.jsonl"));
    assert_eq!(file["format"], "pi");
    assert_eq!(file["outcome"], "findings");
    for (field, value) in [("lines", 5), ("entries", 5), ("calls", 1), ("results", 1)] {
        assert_eq!(file[field], value, "{field}");
    }
    let [bytes, saves] = ["bytes", "saves_bytes"].map(|field| file[field].as_u64().unwrap());
    assert!(saves > 15_000 && saves < bytes, "{saves} of {bytes}");
    let [finding] = &file["findings"].as_array().unwrap()[..] else { panic!("{file}") };
    let texts = [
        ("code", "S1"),
        ("rule", "oversized-result"),
        ("severity", "warning"),
        ("entry", "r"),
        ("call", "c"),
        ("tool", "bash"),
        ("fix", "safe"),
    ];
    for (field, text) in texts {
        assert_eq!(finding[field], text, "{field}");
    }
    assert_eq!((&finding["line"], &finding["chars"]), (&Value::from(4), &Value::from(50_000)));
    assert_eq!(lines[1]["outcome"], "clean");
    let summary = &lines[2];
    for (field, value) in
        [("files", 2), ("clean", 1), ("findings_total", 1), ("errors", 0), ("saves_bytes", saves)]
    {
        assert_eq!(summary[field], value, "{field}");
    }
    assert_eq!(summary["bytes"], bytes + WHOLE.len() as u64);
    assert!(summary["seconds"].is_number());
}

#[test]
fn standard_input() {
    let dir = Dir::new();
    let run = dir.pipe(BROKEN.as_bytes(), &["scan", "-", "--format", "json"]);
    assert_eq!((run.status, run.codes()), (1, vec!["P1".to_string()]));
    assert_eq!(run.file()["path"], "-");
    assert_eq!(dir.pipe(WHOLE.as_bytes(), &["scan", "-"]).status, 0);
}

/// It may be a session that has just begun. It makes no difference how the file was found.
#[test]
fn what_is_empty_is_no_error() {
    let dir = Dir::new();
    dir.write("e.jsonl", "");
    for command in ["scan", "fix"] {
        let file = dir.tailor(&[command, "e.jsonl"]);
        let piped = dir.pipe(b"", &[command, "-"]);
        assert_eq!((file.status, piped.status), (0, 0), "{command}: {}{}", piped.text(), piped.stderr);
        let said = piped.text() + &piped.stderr;
        assert_eq!(said, file.text().replace("e.jsonl:", "-:"));
        assert!(said.starts_with("-: unsupported: the file is empty\n"), "{said}");
    }
    assert_eq!(dir.pipe(b"no transcript\n", &["scan", "-"]).status, 2);
}

#[test]
fn standard_input_stands_alone() {
    let dir = Dir::new();
    dir.write("w.jsonl", WHOLE);
    for paths in [["-", "-"], ["-", "w.jsonl"], ["w.jsonl", "-"]] {
        for command in ["scan", "fix", "top"] {
            let run = dir.pipe(WHOLE.as_bytes(), &[command, paths[0], paths[1]]);
            assert_eq!((run.status, run.text().as_str()), (2, ""), "{command} {paths:?}");
            assert!(
                run.stderr.starts_with("tailor: `-` is standard input and stands alone"),
                "{}",
                run.stderr
            );
        }
    }
    dir.write("-", WHOLE);
    assert_eq!(dir.tailor(&["scan", "./-", "w.jsonl"]).status, 0);
}

#[test]
fn that_nothing_is_wrong_is_said_of_the_rules_that_were_asked() {
    let dir = Dir::new();
    dir.write("w.jsonl", WHOLE);
    let last = |arguments: &[&str]| {
        let run = dir.tailor(&[&["scan", "w.jsonl"], arguments].concat());
        run.text().trim_end().rsplit_once(": ").unwrap().1.to_string()
    };
    assert_eq!(last(&[]), "nothing wrong");
    assert_eq!(last(&["--select", "P1,oversized-result"]), "nothing wrong (only P1, S1 checked)");
    let many = last(&["--only", "pairing"]);
    assert!(
        many.starts_with("nothing wrong (only P1, P2, P3, ") && many.ends_with(" more rules checked)"),
        "{many}"
    );
}

/// Numbers that are unknown are absent, and not 0.
#[test]
fn what_was_not_looked_at_is_left_out() {
    let dir = Dir::new();
    dir.write("s.jsonl", WHOLE);
    let bytes = WHOLE.len();
    let counted = ["lines", "entries", "calls", "results", "remaining", "saves_bytes"];
    let check = |file: &Value, bytes: Option<usize>| {
        assert_eq!(file["bytes"].as_u64(), bytes.map(|bytes| bytes as u64), "{file}");
        assert!(counted.iter().all(|field| file.get(field).is_none()), "{file}");
    };
    check(&dir.tailor(&["undo", "s.jsonl", "--json"]).file(), Some(bytes));
    let none = dir.tailor(&["undo", "s.jsonl"]);
    let size = format!("\n1 file, {bytes} B: 1 refused\n");
    assert!(none.text().ends_with(&size), "{}", none.text());
    check(&dir.tailor(&["scan", "gone.jsonl", "--format", "json"]).file(), None);
    assert_eq!(dir.tailor(&["scan", "gone.jsonl"]).text(), "1 file: 1 failed\n");
    let looked = dir.tailor(&["scan", "s.jsonl", "--format", "json"]).file();
    assert!(counted.iter().all(|field| looked[*field].is_u64()), "{looked}");
    assert!(looked["findings"].is_array());
}

#[test]
fn what_was_allowed_is_not_said_to_wait_for_leave() {
    let dir = Dir::new();
    dir.write("f.jsonl", DOUBLED);
    let guarded = "[needs --allow P5: ";
    let scanned = dir.tailor(&["scan", "f.jsonl"]).text();
    assert!(scanned.contains(guarded), "{scanned}");
    for arguments in [&["--allow", "P5", "--dry-run"][..], &["--allow", "P5"]] {
        let done = dir.tailor(&[&["fix", "f.jsonl"], arguments].concat()).text();
        assert!(done.contains(" P5 ") && !done.contains(guarded), "{done}");
    }
}

/// A session with side copies of three results, which the model never sees.
fn side_copies() -> String {
    let mut text = WHOLE.to_string();
    let mut parent = "a1".to_string();
    for n in 0..3 {
        let call = format!(
            r#"{{"type":"message","id":"c{n}","parentId":"{parent}","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"t{n}","name":"edit","arguments":{{}}}}],"stopReason":"toolUse"}}}}"#
        );
        let result = format!(
            r#"{{"type":"message","id":"r{n}","parentId":"c{n}","message":{{"role":"toolResult","toolCallId":"t{n}","toolName":"edit","content":"ok","details":{{"diff":"{}"}}}}}}"#,
            "x".repeat(10_000 + 1_000 * n)
        );
        text.extend([&call, "\n", &result, "\n"]);
        parent = format!("r{n}");
    }
    text + &format!(
        r#"{{"type":"message","id":"z","parentId":"{parent}","message":{{"role":"user","content":"ok"}}}}"#
    ) + "\n"
}

#[test]
fn a_healthy_session_exits_with_0_and_repetitions_are_one_line() {
    let dir = Dir::new();
    dir.write("s.jsonl", side_copies());
    let run = dir.tailor(&["scan", "s.jsonl"]);
    let text = run.text();
    let lines: Vec<&str> = text.lines().collect();
    let folded =
        "  note    S5 oversized-side-copy ×3 (lines 4–8): 33,000 characters; line 8: 1 long string of 12000 ";
    assert!(lines[1].starts_with(folded), "{text}");
    assert_eq!((run.status, lines.len()), (0, 3), "{text}");
    assert!(lines[2].contains(": 3 notes, "), "{text}");
    let all = dir.tailor(&["scan", "s.jsonl", "--show", "all"]).text();
    assert_eq!(all.lines().filter(|line| line.starts_with("  note    S5 ")).count(), 3, "{all}");
    assert!(all.contains(" S5 oversized-side-copy (line 6): 1 long string of 11000 "), "{all}");
    assert_eq!(codes(&dir, &[]), ["S5", "S5", "S5"], "JSON is not folded");
}

#[test]
fn errors_come_first_and_what_is_no_transcript_is_a_number() {
    let dir = Dir::new();
    dir.write("a.jsonl", WHOLE.trim_end());
    dir.write("b.jsonl", format!("undefined\n{WHOLE}"));
    dir.write("c.jsonl", side_copies() + "undefined\n" + &BROKEN.replace("\"s\"", "\"t\""));
    dir.write("d.jsonl", WHOLE);
    for n in 0..3 {
        dir.write(format!("x{n}.jsonl"), "no transcript\n");
    }
    let text = dir.tailor(&["scan", "."]).text();
    let files: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).take(3).collect();
    assert_eq!(files, ["c.jsonl", "b.jsonl", "a.jsonl"], "{text}");
    let words: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let rank = |word: &&str| ["error", "warning", "note"].iter().position(|known| known == word);
    let of_c = &words[..=words.iter().rposition(|word| *word == "error").unwrap()];
    assert!(of_c.iter().all(|word| *word == "error"), "errors come first: {text}");
    assert!(words.iter().all(|word| rank(word).is_some() || *word == "context:"), "{text}");
    assert!(text.contains(", 3 not transcripts") && !text.contains("x1.jsonl"), "{text}");
    let all = dir.tailor(&["scan", ".", "--show", "all"]).text();
    assert!(all.contains("\nx1.jsonl: unsupported: not a transcript"), "{all}");
    let named = dir.tailor(&["scan", "x1.jsonl"]);
    assert!(named.status == 2 && named.text().starts_with("x1.jsonl: unsupported: "), "{}", named.text());
}

#[test]
fn what_is_listed_can_be_limited_and_counted() {
    let dir = Dir::new();
    dir.write("n.jsonl", side_copies());
    dir.write("w.jsonl", format!("undefined\n{}", side_copies()));
    let listed = |arguments: &[&str]| dir.tailor(&[&["scan", "."], arguments].concat()).text();
    let warnings = listed(&["--min-severity", "warning"]);
    assert!(!warnings.contains("n.jsonl") && !warnings.contains(" S5 "), "{warnings}");
    assert!(warnings.contains(": 1 warning, 6 notes (6 hidden)"), "what is not listed counts: {warnings}");
    assert!(!listed(&[]).contains("hidden"), "{}", listed(&[]));
    let all = dir.tailor(&["scan", ".", "--min-severity", "warning", "--fail-on", "note"]);
    assert_eq!(all.status, 1, "what is not listed fails all the same");
    let json = dir.tailor(&["scan", ".", "--min-severity", "warning", "--format", "json"]).json();
    assert_eq!((&json[0]["findings"], &json[2]["findings_total"]), (&serde_json::json!([]), &Value::from(7)));
    let table = listed(&["--statistics"]);
    assert!(table.starts_with("1  warning  B9   unreadable-line, in 1 file\n6  note     S5   oversized-side-copy, in 2 files\n2 files"), "{table}");
    let json = dir.tailor(&["scan", ".", "--statistics", "--format", "json"]).json();
    let rules = serde_json::json!([
        {"code": "B9", "rule": "unreadable-line", "severity": "warning", "findings_total": 1, "files": 1},
        {"code": "S5", "rule": "oversized-side-copy", "severity": "note", "findings_total": 6, "files": 2},
    ]);
    assert_eq!(json[2]["rules"], rules);
    let wrong = dir.tailor(&["scan", ".", "--min-severity", "eror"]);
    assert!(wrong.status == 2 && wrong.stderr.contains("did you mean error?"), "{}", wrong.stderr);
}

#[test]
fn without_a_path_notes_are_a_number_unless_they_are_asked_for() {
    let dir = Dir::new();
    let folder = dir.home().join(".pi/agent/sessions/--w--");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("n.jsonl"), side_copies()).unwrap();
    fs::write(folder.join("w.jsonl"), format!("undefined\n{}", side_copies())).unwrap();
    let listed = |arguments: &[&str]| dir.tailor(&[&["scan"], arguments].concat()).text();
    let text = listed(&[]);
    assert!(text.contains("warning B9 ") && !text.contains(" S5 ") && !text.contains("n.jsonl"), "{text}");
    assert!(text.contains("\n6 notes: --show all lists them\n"), "{text}");
    assert!(text.lines().next_back().unwrap().starts_with("Next: tailor doctor"), "{text}");
    for asked in [&["--show", "all"][..], &["--min-severity", "note"], &["--fail-on", "S5"]] {
        let text = listed(asked);
        assert!(text.contains(" S5 ") && !text.contains("notes: --show all"), "{asked:?}: {text}");
    }
    let json = dir.tailor(&["scan", "--json"]).json();
    assert_eq!(json[0]["findings"].as_array().unwrap().len(), 3, "machines get all of them");
}

#[test]
fn paths_are_short_and_a_branch_that_was_cut_off_is_named() {
    let dir = Dir::new();
    let path = dir.home().join(".pi/agent/sessions/--w--/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let branch = r#"{"type":"message","id":"b1","parentId":null,"message":{"role":"user","content":"anew"}}"#;
    fs::write(&path, format!("{}{branch}\n", side_copies())).unwrap();
    let text = dir.tailor(&["scan", "--min-severity", "note"]).text();
    assert!(text.starts_with("~/.pi/agent/sessions/--w--/s.jsonl\n"), "{text}");
    assert!(text.contains("\n  context: the agent sees 1 of 9 messages\n"), "{text}");
}

/// The reader leaves early, or there is none: no panic and no error message.
#[test]
fn a_reader_that_leaves_early() {
    let dir = Dir::new();
    for n in 0..200 {
        dir.write(format!("s{n}.jsonl"), BROKEN);
    }
    let mut shell = dir.command_of("/bin/sh");
    shell
        .args(["-c", "\"$0\" scan . | head -n 1", env!("CARGO_BIN_EXE_tailor")])
        .env("PATH", "/usr/bin:/bin");
    let run = run(&mut shell, b"");
    assert_eq!((run.text().lines().count(), run.stderr.as_str()), (1, ""));
}

#[test]
fn no_command_minds_that_nobody_listens() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    assert_eq!(dir.tailor(&["fix", "s.jsonl"]).status, 0);
    fs::write(&path, BROKEN).unwrap();
    for arguments in [
        &["undo", "--list", "."][..],
        &["undo", "--list", "--json", "s.jsonl"],
        &["gc", "--dry-run"],
        &["config", "check"],
        &["config", "print"],
        &["explain"],
        &["explain", "P1"],
        &["explain", "chatcli"],
        &["explain", "prompt is too long", "s.jsonl"],
        &["recover", "s.jsonl", "--dry-run", "--level", "1"],
        &["recover", "s.jsonl", "--dry-run", "--json"],
        &["compact", "s.jsonl", "--dry-run"],
        &["compact", "s.jsonl", "--dry-run", "--json"],
        &["chunk", "s.jsonl"],
        &["top", "s.jsonl"],
        &["scan", "s.jsonl"],
        &["report", "s.jsonl", "-o", "-"],
        &["completions", "bash"],
        &["help"],
        &[],
    ] {
        for deaf in ["stdout", "stderr"] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = dir.command();
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            if deaf == "stdout" {
                command.stdout(writer)
            } else {
                command.stderr(writer)
            };
            let ended = command.spawn().unwrap().wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr);
            // A panic would end with 101 or by a signal.
            assert!(
                matches!(ended.status.code(), Some(0..=2)),
                "{arguments:?}, {deaf}: {}\n{said}",
                ended.status
            );
            assert!(!said.contains("panicked") && !said.contains("pipe"), "{arguments:?}, {deaf}: {said}");
        }
    }
    let closed = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = dir.command().args(["undo", "--list", "."]).stdout(closed).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(
        said,
        "tailor: standard output: could not write results: No space left on device (os error 28)\n"
    );
}

#[test]
fn without_a_path_it_looks_where_agents_keep_their_sessions() {
    let dir = Dir::new();
    let none = dir.tailor(&["scan"]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("no transcripts found"), "{}", none.stderr);
    let folders = [
        ".claude/projects/-w/s.jsonl",
        ".pi/agent/sessions/--w--/s.jsonl",
        ".openclaw/agents/main/sessions/s.jsonl",
    ];
    for name in folders {
        let path = dir.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, WHOLE).unwrap();
    }
    let run = dir.tailor(&["scan", "--format", "json"]);
    let files = run.json().len() - 1;
    assert_eq!((run.status, files), (0, folders.len()), "{}", run.text());
}

#[test]
fn what_lies_in_a_folder_but_is_no_session() {
    let dir = Dir::new();
    for name in [
        "s.jsonl",
        "deep/er/t.jsonl",
        "notes.txt",
        ".hidden.jsonl",
        "s.trajectory.jsonl",
        "s/resume-head.jsonl",
        "s.checkpoint.1.jsonl",
        "s.jsonl.lock",
        // OpenClaw's archives, and a session whose id only resembles one.
        "abc.jsonl.deleted.2026-01-01T00-00-00.000Z",
        "abc.jsonl.reset.2026-01-01T00-00-00.000Z",
        "abc.jsonl.bak.2026-01-01T00-00-00.000Z",
        "sessions.json.bak.1737420882",
        "keep.deleted.keep.jsonl",
    ] {
        dir.write(name, BROKEN);
    }
    let lines = dir.tailor(&["scan", "--format", "json", "."]).json();
    let mut paths: Vec<&str> = lines.iter().filter_map(|line| line["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["deep/er/t.jsonl", "keep.deleted.keep.jsonl", "s.jsonl"]);
}

#[test]
fn limits_of_zero_are_switched_off() {
    let dir = Dir::new();
    dir.write("s.jsonl", BROKEN.replace("well?", &"x".repeat(300_000)));
    assert_eq!(codes(&dir, &["--ignore", "P1"]), ["S3"]);
    assert_eq!(codes(&dir, &["--ignore", "P1", "--max-summary-chars", "0"]), Vec::<String>::new());
}

#[test]
fn each_rule_is_explained_by_code_and_by_name() {
    let dir = Dir::new();
    for rule in transcript::rule::RULES {
        let [by_code, by_name] = [rule.code(), rule.name()].map(|text| dir.tailor(&["explain", text]));
        assert_eq!((by_code.status, by_code.text()), (0, by_name.text()));
        let text = by_code.text();
        for part in [rule.code(), rule.name(), "Why: ", "Fix: ", "Source: "] {
            assert!(text.contains(part), "{text}");
        }
    }
}

/// An answer may name a code that is no rule: what explains it then is where it is from.
#[test]
fn each_code_of_an_answer_is_explained() {
    let dir = Dir::new();
    let mut codes: Vec<&str> =
        transcript::refusal::FAMILIES.iter().flat_map(|family| family.codes).copied().collect();
    codes.retain(|code| transcript::rule::find(code).is_none());
    for code in codes {
        let run = dir.tailor(&["explain", code]);
        assert_eq!(run.status, 0, "{code}: {}", run.text());
        assert!(run.text().contains(code), "{}", run.text());
    }
}

#[test]
fn each_profile_is_explained() {
    let dir = Dir::new();
    for profile in transcript::profile::PROFILES {
        let run = dir.tailor(&["explain", profile.name]);
        assert_eq!(run.status, 0);
        assert!(run.text().starts_with(profile.name) && run.text().contains("Source: "), "{}", run.text());
    }
}

#[test]
fn exit_codes_are_in_the_help() {
    let run = Dir::new().tailor(&["--help"]);
    assert_eq!(run.status, 0);
    assert!(run.text().contains("Exit codes: 0 "), "{}", run.text());
}

/// A session of this many bytes with damage of all kinds, some of it at the offsets at which parts begin.
fn long_session(bytes: usize) -> Vec<u8> {
    const PART_BYTES: usize = 8 << 20;
    let mut text =
        br#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#
            .to_vec();
    text.push(b'\n');
    let line = |n: usize, said: &str| {
        let parent = if n % 501 == 500 { n.saturating_sub(9) } else { n.max(1) - 1 };
        let time = "2026-07-01T10:00:00.000Z";
        format!(
            r#"{{"type":"message","id":"e{n}","parentId":"e{parent}","timestamp":"{time}","message":{said}}}"#
        ) + "\n"
    };
    for n in 0.. {
        let left = PART_BYTES - text.len() % PART_BYTES;
        let size = if n % 211 == 0 { 40_000 } else { 200 + n * 37 % 9000 };
        let said = match n % 4 {
            0 => format!(r#"{{"role":"user","content":"go {n}"}}"#),
            1 => format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c{n}","name":"ls","arguments":{{}}}}],"stopReason":"toolUse"}}"#
            ),
            2 if n % 97 == 0 => r#"{"role":"custom","content":"\ud83d"}"#.to_string(),
            2 => {
                let (call, text) = (n - 1, "a \\\"b\\\" \u{e9}\u{1f600}\\n".repeat(size / 20));
                format!(
                    r#"{{"role":"toolResult","toolCallId":"c{call}","toolName":"ls","content":[{{"type":"text","text":"{text}"}}]}}"#
                )
            }
            _ => format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"done {n}"}}],"stopReason":"stop"}}"#
            ),
        };
        text.extend(line(n, &said).bytes());
        if left < 12_000 {
            // A line that ends or begins just where a part does, or reaches far into it.
            match text.len() / PART_BYTES {
                0 => {
                    text.extend(
                        format!("{}\n", "x".repeat(PART_BYTES - text.len() % PART_BYTES - 1)).bytes(),
                    );
                }
                1 => text.extend(line(0, r#"{"role":"user","content":"again"}"#).trim_end().bytes()),
                _ => text.extend(format!("{{\"a\":\"{}\"}}\n", "y".repeat(PART_BYTES + 9)).bytes()),
            }
        }
        if n % 303 == 0 {
            text.extend(b"no record\n\n\0\0\n{\"a\":\"\xff\"}\n");
        }
        if text.len() >= bytes {
            break;
        }
    }
    text.extend(br#"{"type":"message","id":"torn","#);
    text
}

#[test]
fn however_many_threads_read_a_long_session_the_outcome_is_the_same() {
    let dir = Dir::in_memory();
    dir.write("long.jsonl", long_session(26 << 20));
    let by = |jobs: &str| {
        let run = |status: i32, command: &[&str]| {
            let run = dir.tailor(&[command, &["--format", "json", "-j", jobs, "long.jsonl"]].concat());
            assert_eq!((run.status, run.stderr.as_str()), (status, ""), "{command:?}");
            run
        };
        let told = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line["seconds"].take();
            line
        };
        let scanned: Vec<Value> = run(1, &["scan"]).text().lines().map(told).collect();
        run(0, &["fix", "--copy-to", "out"]);
        let written = fs::read(dir.path("out/long.jsonl")).unwrap();
        fs::remove_dir_all(dir.path("out")).unwrap();
        (scanned, written)
    };
    let (one, two) = (by("1"), by("2"));
    assert_eq!(one.0, two.0);
    let findings = one.0[0]["findings"].as_array().unwrap();
    assert!(findings.len() > 100, "{} findings", findings.len());
    assert!(one.1 == two.1, "the files differ");
}
