//! `tailor fix`: what it changes, keeps and prints.

use crate::support::{BROKEN, Dir, FinishedRun, WHOLE, is_root, make_old, root, run};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// A session with a result that is too long, followed by thinking whose signature covers it.
fn signed(model: &str) -> String {
    let text = "a row of the log\\n".repeat(4_000);
    let message = |id: &str, parent: &str, message: String| {
        format!(r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{{message}}}}}"#)
    };
    let blocks = |blocks: &str| format!(r#""role":"assistant","model":"{model}","content":[{blocks}]"#);
    let thinking = r#"{"type":"thinking","thinking":"hm","thinkingSignature":"c2lnbmVk"},"#;
    let lines = [
        WHOLE.trim_end().to_string(),
        message("a2", "a1", blocks(r#"{"type":"toolCall","id":"c","name":"bash","arguments":{}}"#)),
        message(
            "a3",
            "a2",
            format!(r#""role":"toolResult","toolCallId":"c","toolName":"bash","content":"{text}""#),
        ),
        message("a4", "a3", blocks(&format!(r#"{thinking}{{"type":"text","text":"Done."}}"#))),
    ];
    lines.join("\n") + "\n"
}

/// A session in its agent's folder.
fn at_home(dir: &Dir) -> std::path::PathBuf {
    let path = dir.home().join(".pi/agent/sessions/--w--/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, BROKEN).unwrap();
    make_old(&path);
    path
}

/// `--output` names a file for the report; the session would be changed in place.
#[test]
fn who_takes_output_for_a_copy_is_told_so_and_nothing_is_changed() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    let done = dir.tailor(&["fix", "s.jsonl", "--settle", "0", "--output", "repaired.jsonl"]);
    assert!(done.status == 2 && done.stderr.contains("--copy-to DIR"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    for arguments in [&["--output", "report.txt"][..], &["--json", "--output", "report.jsonl"]] {
        fs::write(&path, BROKEN).unwrap();
        assert_eq!(dir.tailor(&[&["fix", "s.jsonl", "--settle", "0"], arguments].concat()).status, 0);
        assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
    }
}

#[test]
fn without_a_path_nothing_is_changed_unless_all_is_asked_for() {
    let dir = Dir::new();
    let path = at_home(&dir);
    let run = dir.tailor(&["fix"]);
    assert_eq!((run.status, run.text().as_str()), (2, ""));
    assert!(run.stderr.contains("pass --all"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    let dry = dir.tailor(&["fix", "--dry-run"]);
    assert!(dry.text().contains("would fix 1 problem"), "{}", dry.text());
    let all = dir.tailor(&["fix", "--all"]);
    let said = "Undo: tailor undo ~/.pi/agent/sessions/--w--/s.jsonl\n";
    assert!(all.status == 0 && all.text().contains(said), "{}", all.text());
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
    assert_eq!(dir.tailor(&["fix", "--all", "s.jsonl"]).status, 2);
}

/// Claude Code keeps offsets into a session beside it, and notices by itself that they are wrong.
#[test]
fn what_an_agent_keeps_beside_a_session_stays_as_it_is() {
    let dir = Dir::new();
    let folder = dir.home().join(".claude/projects/-w");
    let id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    let (path, head) = (folder.join(format!("{id}.jsonl")), folder.join(id).join("resume-head.jsonl"));
    fs::create_dir_all(folder.join(id)).unwrap();
    let broken = crate::doctor::claude("/w");
    // Worse than what really happens.
    for file in [&path, &head] {
        fs::write(file, &broken).unwrap();
        make_old(file);
    }
    let run = dir.tailor(&["fix", "--all"]);
    assert_eq!(run.status, 0, "{}", run.text());
    assert_ne!(fs::read_to_string(&path).unwrap(), broken);
    assert_eq!(fs::read_to_string(&head).unwrap(), broken);
}

/// What remains and which option would repair it, how to undo the repair, and how to resume.
#[test]
fn after_a_repair_the_next_commands_are_named() {
    let dir = Dir::new();
    let id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    let path = dir.home().join(format!(".claude/projects/-w d/{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(root().join("fixtures/claude-code/p1-lost-result/in.jsonl"), &path).unwrap();
    let text = dir.tailor(&["fix", "--settle", "0", path.to_str().unwrap()]).text();
    let undo = format!("Undo: tailor undo ~/'.claude/projects/-w d/{id}.jsonl'");
    assert!(text.contains(&format!("{undo}\n  Resume: claude --resume {id}\n")), "{text}");
    // A shell accepts the command as printed.
    let mut shell = dir.command_of("/bin/sh");
    let program = Path::new(env!("CARGO_BIN_EXE_tailor")).parent().unwrap();
    shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    let undone = run(shell.args(["-c", &format!("{} --settle 0", &undo["Undo: ".len()..])]), b"");
    let said = undone.text();
    assert!(undone.status == 0 && said.contains("undone: "), "{said}{}", undone.stderr);
    assert!(said.contains(&format!("\n  Resume: claude --resume {id}\n")), "{said}");
    // A finding that remains, and a compaction.
    let mut lines = vec![WHOLE.trim_end().to_string()];
    for n in 1..6 {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let parent = format!("a{n}");
        lines.push(format!(
            r#"{{"type":"message","id":"a{}","parentId":"{parent}","message":{{"role":"{role}","content":"and"}}}}"#,
            n + 1
        ));
    }
    let beside = r#"{"type":"message","id":"b","parentId":"a3","message":{"role":"user","content":"or"}}"#;
    lines.insert(5, beside.to_string());
    dir.write("s.jsonl", format!("undefined\n{}\n", lines.join("\n")));
    let text = dir.tailor(&["fix", "--settle", "0", "s.jsonl"]).text();
    let said = "  fixed 1 of 2 problems, 760 B → 750 B; 1 needs --allow S18. Undo: tailor undo s.jsonl\n";
    assert!(text.contains(said), "{text}");
    let compacted =
        dir.tailor(&["compact", "s.jsonl", "--settle", "0", "--with", "echo what was", "--keep", "1"]);
    assert!(
        compacted.text().contains(". Undo: tailor undo s.jsonl\n"),
        "{}{}",
        compacted.text(),
        compacted.stderr
    );
}

#[test]
fn all_mended_exits_with_0() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    let run = dir.tailor(&["fix", "s.jsonl"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    let said = "  fixed 1 problem, 551 B → 874 B. Undo: tailor undo s.jsonl\n";
    assert!(run.text().contains(said), "{}", run.text());
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
    let again = dir.tailor(&["fix", "s.jsonl", "--format", "json"]);
    assert_eq!((again.status, again.file()["outcome"].as_str()), (0, Some("clean")));
}

#[test]
fn findings_that_stay_exit_with_1() {
    let dir = Dir::new();
    // It is unknown which call has no id, so that finding remains.
    let nameless = r#"{"type":"message","id":"a9","parentId":"a3","message":{"role":"assistant","content":[{"type":"toolCall","name":"ls","arguments":{}}],"stopReason":"stop"}}"#;
    dir.write("s.jsonl", format!("{BROKEN}{nameless}\n"));
    let run = dir.tailor(&["fix", "s.jsonl", "--format", "json"]);
    let file = run.file();
    assert_eq!((run.status, &file["outcome"], &file["remaining"]), (1, &"fixed".into(), &1.into()));
    assert_eq!(dir.tailor(&["fix", "s.jsonl", "--fail-on", "error"]).status, 1);
    assert_eq!(dir.tailor(&["fix", "s.jsonl", "--fail-on", "S1"]).status, 0);
}

#[test]
fn an_error_exits_with_2_and_the_others_are_mended() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    assert_eq!(dir.tailor(&["fix", "gone.jsonl", "s.jsonl"]).status, 2);
    assert_ne!(fs::read_to_string(path).unwrap(), BROKEN);
}

/// Nothing was repaired, so the findings remain.
#[test]
fn a_dry_run_exits_with_1_if_there_is_something_to_mend() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    let run = dir.tailor(&["fix", "--dry-run", "s.jsonl"]);
    assert!(run.text().contains("would fix"), "{}", run.text());
    assert_eq!(fs::read_to_string(path).unwrap(), BROKEN);
    assert_eq!(dir.names(), ["s.jsonl"]);
    assert_eq!(run.status, 1);
}

#[test]
fn the_shape_of_json() {
    let dir = Dir::new();
    dir.write("s.jsonl", BROKEN);
    let lines = dir.tailor(&["fix", "--format", "json", "s.jsonl"]).json();
    let (file, summary) = (&lines[0], &lines[1]);
    assert_eq!((&file["type"], &file["outcome"]), (&"file".into(), &"fixed".into()));
    assert_eq!(file["bytes"], BROKEN.len());
    assert_eq!(file["bytes_after"], fs::metadata(dir.path("s.jsonl")).unwrap().len());
    assert!(!file["run"].as_str().unwrap().is_empty());
    assert_eq!(file["findings"][0]["code"], "P1");
    assert_eq!((&summary["files"], &summary["fixed"]), (&1.into(), &1.into()));
}

#[test]
fn mode_times_and_owner_stay() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    if is_root() {
        dir.give_files_to(1234, 4321);
    }
    make_old(&path);
    let facts = || {
        let facts = fs::metadata(&path).unwrap();
        (facts.mode(), facts.uid(), facts.gid(), facts.mtime(), facts.mtime_nsec())
    };
    let before = facts();
    assert_eq!(dir.tailor(&["fix", "s.jsonl"]).status, 0);
    assert_eq!(facts(), before);
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
}

#[test]
fn nothing_is_left_beside_the_file_and_nothing_is_kept_without_a_change() {
    let dir = Dir::new();
    dir.write("whole.jsonl", WHOLE);
    dir.tailor(&["fix", "."]);
    assert!(!dir.home().join(".state").exists(), "nothing was taken out");
    dir.write("broken.jsonl", BROKEN);
    dir.tailor(&["fix", "--dry-run", "."]);
    assert!(!dir.home().join(".state").exists(), "nothing was done");
    dir.tailor(&["fix", "."]);
    assert_eq!(dir.names(), ["broken.jsonl", "whole.jsonl"]);
    assert!(dir.home().join(".state/tailor/runs").exists());
}

#[test]
fn a_file_without_a_change_is_not_touched_at_all() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", WHOLE);
    let facts = || {
        let facts = fs::metadata(&path).unwrap();
        (facts.ino(), facts.mtime(), facts.ctime(), facts.ctime_nsec())
    };
    let before = facts();
    assert_eq!(dir.tailor(&["fix", "s.jsonl"]).status, 0);
    assert_eq!(facts(), before);
}

#[test]
fn a_copy_leaves_the_original_alone() {
    let dir = Dir::new();
    let broken = dir.write("in/a/broken.jsonl", BROKEN);
    dir.write("in/whole.jsonl", WHOLE);
    let out = dir.path("out");
    let arguments = ["fix", "--copy-to", "out", "--format", "json", "in"];
    let run = dir.tailor(&arguments);
    assert_eq!(run.status, 0, "{}", run.text());
    assert_eq!(fs::read_to_string(&broken).unwrap(), BROKEN);
    let copied = fs::read_to_string(out.join("a/broken.jsonl")).unwrap();
    assert_eq!(copied.len() as u64, run.json()[0]["bytes_after"].as_u64().unwrap());
    assert_eq!(
        fs::read_to_string(out.join("whole.jsonl")).unwrap(),
        WHOLE,
        "what needs no mending is copied too"
    );
    // Writing a copy needs no waiting, and existing files are not replaced.
    assert_eq!(dir.names(), ["in/a/broken.jsonl", "in/whole.jsonl", "out/a/broken.jsonl", "out/whole.jsonl"]);
    fs::write(out.join("whole.jsonl"), "mine").unwrap();
    let again = dir.tailor(&arguments);
    assert_eq!(again.status, 2);
    assert!(again.text().contains("File exists"), "{}", again.text());
    assert_eq!(fs::read_to_string(out.join("whole.jsonl")).unwrap(), "mine");
    // The repaired copy is what repairing in place would have produced.
    dir.tailor(&["fix", "in"]);
    assert_eq!(fs::read_to_string(&broken).unwrap(), copied);
}

#[test]
fn copies_of_several_folders_keep_their_names_apart() {
    let dir = Dir::new();
    dir.write("one/chats/s.jsonl", BROKEN);
    dir.write("two/chats/s.jsonl", WHOLE);
    let run = dir.tailor(&["fix", "--copy-to", "out", "one/chats", "two/chats"]);
    assert_eq!(run.status, 0, "{}", run.text());
    assert_eq!(fs::read_to_string(dir.path("out/two/chats/s.jsonl")).unwrap(), WHOLE);
    assert_ne!(fs::read_to_string(dir.path("out/one/chats/s.jsonl")).unwrap(), BROKEN);
}

#[test]
fn a_diff_shows_places_and_content_only_if_asked() {
    let dir = Dir::new();
    dir.write("s.jsonl", signed("claude-opus-4-5"));
    let sizes = dir.tailor(&["fix", "--dry-run", "--diff", "s.jsonl"]).text();
    assert!(sizes.contains("--- s.jsonl\n@@ line 4, bytes "), "{sizes}");
    assert!(sizes.contains("+ [tailor: ") && !sizes.contains("a row of the log"), "{sizes}");
    let content = dir.tailor(&["fix", "--dry-run", "--diff", "--show-content", "s.jsonl"]).text();
    assert!(content.contains("- a row of the log"), "{content}");
    assert_eq!(dir.tailor(&["fix", "--show-content", "s.jsonl"]).status, 2, "only together with --diff");
}

/// A session with a damaged line in the middle, a call without a result after it, and a torn end: repairing it takes
/// several rounds.
fn damaged() -> String {
    let lines: Vec<&str> = BROKEN.lines().collect();
    let mut text = vec![lines[0].to_string(), lines[1].replace("a1", "b1")];
    for n in 2..9 {
        text.push(lines[1].replace("a1", &format!("b{n}")).replace("null", &format!("\"b{}\"", n - 1)));
    }
    text.insert(5, "{\"type\":\"mess\u{1b}[2Jage secret".to_string());
    text.push(lines[2].replace("\"a1\"", "\"b8\""));
    text.push(lines[3].to_string());
    text.push("{\"type\":\"message\",\"id\":\"a4\",\"par".to_string());
    text.join("\n")
}

/// The hunks of a diff: lines, bytes, and the text below.
fn hunks(text: &str) -> Vec<(usize, usize, usize, String)> {
    let one = |hunk: &str| {
        let (head, body) = hunk.split_once(" @@\n").unwrap();
        let (line, bytes) = head.split_once(", bytes ").unwrap();
        let (start, end) = bytes.split_once("..").unwrap();
        let number = |text: &str| text.parse().unwrap();
        (number(line), number(start), number(end), body.to_string())
    };
    text.split("@@ line ").skip(1).map(one).collect()
}

#[test]
fn a_diff_names_the_lines_of_the_file_as_it_is() {
    let dir = Dir::new();
    let text = damaged();
    let path = dir.write("s.jsonl", &text);
    let dry = dir.tailor(&["fix", "--dry-run", "--diff", "s.jsonl"]).text();
    let hunks = hunks(&dry);
    let lines: Vec<usize> = hunks.iter().map(|(line, ..)| *line).collect();
    assert_eq!(lines, [6, 11, 12, 13], "{dry}");
    for (line, start, end, body) in &hunks {
        let begin: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let length = text.split_inclusive('\n').nth(line - 1).unwrap().len();
        assert!((begin..=begin + length).contains(start), "{line}: {start}\n{dry}");
        assert!(start == end || body.starts_with(&format!("- {} bytes\n", end - start)), "{dry}");
    }
    assert!(!dry.contains("secret"));
    // The text is the same, however the file is repaired.
    let content = ["--diff", "--show-content", "s.jsonl"];
    let of = |run: &FinishedRun| {
        let all = run.text() + &run.stderr;
        let from = all.find("@@ line").unwrap_or_else(|| panic!("no diff: {all}"));
        let to = all[from..].find("\n  fixed").or(all[from..].find("\n  would fix")).unwrap() + 1;
        let shown = &all[from..from + to];
        shown[..shown.rfind('\n').unwrap()].to_string()
    };
    let dry = of(&dir.tailor(&[&["fix", "--dry-run"][..], &content].concat()));
    assert!(dry.contains("- {\"type\":\"mess\\u{1b}[2Jage secret\\u{a}\n"), "{dry}");
    assert_eq!(of(&dir.tailor(&[&["fix", "--copy-to", "out"][..], &content].concat())), dry);
    assert_eq!(of(&dir.pipe(text.as_bytes(), &["fix", "--diff", "--show-content", "-", "--dry-run"])), dry);
    assert_eq!(of(&dir.tailor(&[&["fix"][..], &content].concat())), dry);
    assert_ne!(fs::read_to_string(path).unwrap(), text);
    let clean = dir.tailor(&[&["fix"][..], &content].concat());
    assert!(!clean.text().contains("---"), "{}", clean.text());
}

#[test]
fn select_ignore_and_allow_choose_what_is_mended() {
    let dir = Dir::new();
    let orphan = r#"{"type":"message","id":"r","parentId":"a3","message":{"role":"toolResult","toolCallId":"x","toolName":"read","content":"?"}}"#;
    let text = format!("{BROKEN}{orphan}\n");
    let fixed = |arguments: &[&str]| {
        let path = dir.write("s.jsonl", &text);
        dir.tailor(&[&["fix", "s.jsonl"], arguments].concat());
        let text = fs::read_to_string(path).unwrap();
        (text.contains("tool result missing"), !text.contains(r#""toolCallId":"x""#))
    };
    // The orphan is the newest entry, so removing it needs `--allow`.
    assert_eq!(fixed(&[]), (true, false));
    assert_eq!(fixed(&["--allow", "P2"]), (true, true));
    assert_eq!(fixed(&["--allow", "P2", "--ignore", "P1"]), (false, true));
    assert_eq!(fixed(&["--allow", "result-without-call", "--select", "P2"]), (false, true));
    assert_eq!(fixed(&["--select", "S1"]), (false, false));
    // `--only GROUP` allows the group's fixes, even beside another rule.
    assert_eq!(fixed(&["--only", "pairing"]), (true, true));
    assert_eq!(fixed(&["--only", "pairing", "--allow", "S18"]), (true, true));
    assert_eq!(fixed(&["--only", "bytes"]), (false, false));
}

#[test]
fn thinking_is_kept_stripped_or_ignored() {
    let dir = Dir::new();
    let fixed = |model: &str, arguments: &[&str]| {
        let path = dir.write("s.jsonl", signed(model));
        let run = dir.tailor(&[&["fix", "--format", "json", "s.jsonl"], arguments].concat());
        let text = fs::read_to_string(path).unwrap();
        let (cut, signed) = (text.contains("[tailor: "), text.contains("c2lnbmVk"));
        (run.status, run.file()["findings"][0]["fix"].as_str().unwrap().to_string(), cut, signed)
    };
    assert_eq!(fixed("claude-fable-5-1", &[]), (1, "held".into(), false, true));
    assert_eq!(fixed("claude-fable-5-1", &["--thinking", "keep"]), (1, "held".into(), false, true));
    assert_eq!(fixed("claude-fable-5-1", &["--thinking", "strip"]), (0, "safe".into(), true, false));
    assert_eq!(fixed("claude-fable-5-1", &["--thinking", "ignore"]), (0, "safe".into(), true, true));
    assert_eq!(fixed("a-model-nobody-knows", &[]), (1, "held".into(), false, true));
    assert_eq!(fixed("claude-opus-4-5", &[]), (0, "safe".into(), true, true));
}

/// If thinking cannot be stripped (it is alone in the newest turn, or its turn waits for a result), an edit that would
/// invalidate it is not made either: the API would refuse the session for ever.
#[test]
fn strip_leaves_no_thinking_that_it_invalidates() {
    let dir = Dir::new();
    let last = |line: String| line.trim_end().lines().last().unwrap().to_string();
    let whole = signed("claude-fable-5-1");
    let line = last(whole.clone());
    let nothing_else = line.replace(r#",{"type":"text","text":"Done."}"#, "");
    let waiting = line.replace(
        r#"{"type":"text","text":"Done."}"#,
        r#"{"type":"toolCall","id":"d","name":"bash","arguments":{}}"#,
    );
    for other in [nothing_else, waiting] {
        assert_ne!(other, line);
        let path = dir.write("s.jsonl", whole.replace(&line, &other));
        dir.tailor(&["fix", "--thinking", "strip", "s.jsonl"]);
        let text = fs::read_to_string(path).unwrap();
        let (cut, signed) = (text.contains("[tailor: "), text.contains("c2lnbmVk"));
        assert!(!(cut && signed), "the result was cut, and this still follows: {}", last(text));
    }
}

/// Claude Code may write the next message before the result that precedes it; the model sees them in the order of the
/// links.
#[test]
fn what_comes_before_thinking_is_told_by_links_not_by_lines() {
    let dir = Dir::new();
    let line = |kind: &str, id: &str, parent: &str, message: &str| {
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","message":{message},"uuid":"{id}","sessionId":"s"}}"#
        )
    };
    let spoken = |id: &str, blocks: &str| {
        format!(r#"{{"model":"claude-fable-5-1","id":"{id}","role":"assistant","content":[{blocks}]}}"#)
    };
    let result = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"{}"}}]}}"#,
        "a row of the log\\n".repeat(4_000)
    );
    let thinking =
        r#"{"type":"thinking","thinking":"","signature":"c2lnbmVk"},{"type":"text","text":"Done."}"#;
    let lines = [
        line("user", "u1", "null", r#"{"role":"user","content":"go"}"#),
        line(
            "assistant",
            "u2",
            r#""u1""#,
            &spoken("m1", r#"{"type":"tool_use","id":"t","name":"Bash","input":{}}"#),
        ),
        line("assistant", "u4", r#""u3""#, &spoken("m2", thinking)),
        line("user", "u3", r#""u2""#, &result),
    ];
    let text = lines.join("\n") + "\n";
    let path = dir.write("s.jsonl", &text);
    let run = dir.tailor(&["fix", "--format", "json", "s.jsonl"]);
    assert_eq!(run.file()["findings"][0]["fix"], "held", "{}", run.text());
    assert_eq!(fs::read_to_string(path).unwrap(), text);
}

#[test]
fn a_pipe_carries_the_transcript_and_nothing_else() {
    let dir = Dir::new();
    let run = dir.pipe(BROKEN.as_bytes(), &["fix", "-"]);
    assert_eq!(run.status, 0);
    assert!(run.stdout.starts_with(WHOLE.as_bytes()) && run.text().contains("tool result missing"));
    assert!(run.stderr.contains("P1 call-without-result"), "{}", run.stderr);
    let again = dir.pipe(&run.stdout, &["fix", "-"]);
    assert_eq!((again.status, &again.stdout), (0, &run.stdout));
    // Unrecognised input is passed through.
    for input in [&b"{\"level\":\"info\"}\n\xff\0"[..], b"", b"\n\n"] {
        assert_eq!(dir.pipe(input, &["fix", "-"]).stdout, input);
    }
    let dry = dir.pipe(BROKEN.as_bytes(), &["fix", "-", "--dry-run"]);
    assert_eq!(dry.text(), "", "a dry run writes no transcript");
}

#[test]
fn settle_says_how_long_a_file_must_have_been_quiet() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    fs::File::options().append(true).open(&path).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    let run = dir.tailor(&["fix", "--format", "json", "--settle", "86400", "s.jsonl"]);
    assert_eq!(run.file()["outcome"], "deferred");
    assert!(run.file()["reason"].as_str().unwrap().contains("waiting for 24 h"), "{}", run.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    assert_eq!(dir.tailor(&["fix", "--settle", "0", "s.jsonl"]).status, 0);
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
}

/// A file with an old result that becomes stale, and a new one that is too long.
const AGEING: &[&str] = &["--profile", "chatcli", "--format", "json", "s.jsonl"];

fn ageing(newest_chars: usize) -> String {
    let message = |n: usize, message: serde_json::Value| {
        let parent = if n == 0 { "null".into() } else { format!("\"e{}\"", n - 1) };
        format!("{{\"type\":\"message\",\"id\":\"e{n}\",\"parentId\":{parent},\"message\":{message}}}\n")
    };
    let call =
        |id: &str| serde_json::json!([{"type": "toolCall", "id": id, "name": "fetch", "arguments": {}}]);
    let calls =
        |id: &str| serde_json::json!({"role": "assistant", "content": call(id), "stopReason": "toolUse"});
    let result = |id: &str, chars: usize| {
        let text = "x".repeat(chars);
        serde_json::json!({"role": "toolResult", "toolCallId": id, "toolName": "fetch", "content": text})
    };
    let said = || serde_json::json!({"role": "assistant", "content": "ok", "stopReason": "stop"});
    let all = [
        serde_json::json!({"role": "user", "content": "go"}),
        calls("c0"),
        result("c0", 9_000),
        said(),
        said(),
        said(),
        calls("c1"),
        result("c1", newest_chars),
        said(),
    ];
    let lines = all.into_iter().enumerate().map(|(n, one)| message(n, one));
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}\n".to_string()
        + &lines.collect::<String>()
}

#[test]
fn older_history_waits_while_a_cache_may_hold_it() {
    let dir = Dir::new();
    let write = |text: &str, minutes: u64| {
        let path = dir.write("s.jsonl", text);
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(minutes * 60);
        fs::File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
        path
    };
    let fix = |more: &[&str]| dir.tailor(&[&["fix"], more, AGEING].concat());
    let codes = |run: &FinishedRun| {
        let found = run.file()["findings"].as_array().unwrap().clone();
        let words = found
            .iter()
            .map(|one| format!("{} {}", one["code"].as_str().unwrap(), one["fix"].as_str().unwrap()));
        words.collect::<Vec<_>>()
    };
    // Limits do not wait. Stale results do, and the reason is printed.
    let (text, short) = (ageing(60_000), ageing(100));
    let path = write(&text, 10);
    let run = fix(&[]);
    assert_eq!(run.file()["outcome"], "fixed");
    assert_eq!(codes(&run), ["S14 held", "S1 safe"]);
    assert!(run.file()["findings"][0]["reason"].as_str().unwrap().contains("--settle-stale 0"));
    assert!(fs::read_to_string(&path).unwrap().contains(&"x".repeat(9_000)));
    // If there is nothing else to do, the file is deferred; a dry run says so too.
    for more in [&["--dry-run"][..], &[]] {
        let path = write(&short, 10);
        let run = fix(more);
        assert_eq!((&run.file()["outcome"], run.status), (&"deferred".into(), 1));
        let seconds = run.file()["retry_seconds"].as_u64().unwrap();
        assert!((2_990..=3_000).contains(&seconds), "{seconds}");
        assert_eq!(fs::read_to_string(&path).unwrap(), short);
    }
    // After enough time, with `--settle 0`, or if the file is an archive.
    for (minutes, more) in [
        (61, &[][..]),
        (10, &["--settle-stale", "0"]),
        (10, &["--settle-stale", "300"]),
        (0, &["--settle", "0"]),
        (10, &["--copy-to", "copies"]),
    ] {
        write(&short, minutes);
        let run = fix(more);
        assert_eq!((&run.file()["outcome"], run.status), (&"fixed".into(), 0), "{minutes} {more:?}");
        assert_eq!(codes(&run), ["S14 safe"]);
    }
}

/// OpenClaw #2254: 35 messages, seven of them results of 396 KB of minified JSON, 2.8 MB in all.
#[test]
fn a_session_that_schemas_have_filled() {
    let dir = Dir::new();
    // Limits count characters of the text; in the file each quote takes two bytes, which is one character in twenty
    // here.
    let field = |n: usize| {
        let hint = "How many seconds to wait for an answer of the gateway before the request is given up and the \
                    channel is told that nobody is there; nothing waits longer than the channel itself does";
        format!(r#""field{n:05}":{{"type":"integer","description":"{hint}"}}"#)
    };
    let schema = (0..1650).map(field).collect::<Vec<_>>().join(",");
    let schema = &format!(r#"{{"type":"object","properties":{{{schema}}}}}"#);
    let written = serde_json::to_string(schema).unwrap().len();
    assert!((390_000..402_000).contains(&written), "{written}");
    let mut lines = vec![r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#.to_string()];
    for n in 0..7 {
        let call = serde_json::json!([{"type": "toolCall", "id": format!("c{n}"), "name": "gateway", "arguments": {}}]);
        for message in [
            serde_json::json!({"role": "user", "content": "show me the schema"}),
            serde_json::json!({"role": "assistant", "content": call, "stopReason": "toolUse"}),
            serde_json::json!({"role": "toolResult", "toolCallId": format!("c{n}"), "toolName": "gateway", "content": schema}),
            serde_json::json!({"role": "assistant", "content": "here it is", "stopReason": "stop"}),
            serde_json::json!({"role": "user", "content": "thanks"}),
        ] {
            let at = lines.len();
            let parent = if at == 1 { "null".into() } else { format!(r#""e{}""#, at - 1) };
            lines.push(format!(
                r#"{{"type":"message","id":"e{at}","parentId":{parent},"message":{message}}}"#
            ));
        }
    }
    assert_eq!(lines.len(), 36);
    let before = lines.join("\n") + "\n";
    assert!((2_750_000..2_850_000).contains(&before.len()), "{}", before.len());
    let path = dir.write("s.jsonl", &before);
    let run = dir.tailor(&["fix", "--settle", "0", "s.jsonl"]);
    assert_eq!(run.status, 0, "{}", run.text());
    let after = fs::metadata(&path).unwrap().len();
    assert!(after < 250_000, "{after}");
    // With stale results cleared as well, almost nothing remains of all but the newest.
    let again = dir.tailor(&["fix", "--settle", "0", "--profile", "agent-max", "s.jsonl"]);
    assert_eq!(again.status, 0, "{}", again.text());
    assert!(fs::metadata(&path).unwrap().len() < 100_000);
    assert_eq!(dir.tailor(&["scan", "--profile", "agent-max", "s.jsonl"]).status, 0);
}

/// A flag overrides the profile.
#[test]
fn flags_override_the_profile() {
    let dir = Dir::new();
    let text = "x".repeat(40_000);
    let result = format!(
        r#"{{"type":"message","id":"r","parentId":"a2","message":{{"role":"toolResult","toolCallId":"c","toolName":"bash","content":"{text}"}}}}"#
    );
    let session = BROKEN.replace(r#""parentId":"a2""#, r#""parentId":"r""#);
    let at = session.find(r#"{"type":"message","id":"a3""#).unwrap();
    dir.write("s.jsonl", format!("{}{result}\n{}", &session[..at], &session[at..]));
    let limit = |arguments: &[&str]| {
        let run = dir.tailor(&[&["scan", "--format", "json", "s.jsonl"], arguments].concat());
        run.file()["findings"][0]["message"].as_str().map(str::to_string)
    };
    let said = |limit: &str| Some(format!("result of 40000 characters (limit {limit})"));
    assert_eq!(limit(&[]), said("32000"));
    assert_eq!(limit(&["--profile", "chatcli"]), said("30000"));
    assert_eq!(limit(&["--profile", "CHATCLI", "--cut-tool-results", "bash=700"]), said("700"));
    assert_eq!(limit(&["--profile", "agent-max"]), said("10000"));
    assert_eq!(limit(&["--profile", "openclaw-10915", "--cut-results", "900"]), said("900"));
    assert_eq!(limit(&["--profile", "openclaw-5057"]), None);
    assert_eq!(limit(&["--profile", "chatcli", "--keep-tool", "ba*"]), None);
    let wrong = dir.tailor(&["scan", "--profile", "none", "s.jsonl"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("no such profile; there are default, chatcli, "), "{}", wrong.stderr);
}

/// A Claude Code session with a title, and this many bytes of conversation before and after it.
fn titled(before: usize, title: &str, behind: usize) -> String {
    let say = |number: usize, parent: &str, text: &str| {
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"S","type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"u{number}"}}"#
        ) + "\n"
    };
    let first = say(0, "null", &"x".repeat(before));
    first + title + &say(1, "\"u0\"", &"y".repeat(behind))
}

/// The title that the Agent SDK shows: it searches the last 64 KiB, then the first.
fn listed(text: &str) -> Option<&str> {
    const WINDOW: usize = 65_536;
    let last = |part: &'static str, text: &'_ str| text.rfind(part).map(|at| at + part.len());
    let (head, tail) = (&text[..text.len().min(WINDOW)], &text[text.len().saturating_sub(WINDOW)..]);
    for field in ["\"customTitle\":\"", "\"aiTitle\":\""] {
        for window in [tail, head] {
            if let Some(at) = last(field, window) {
                return window[at..].split('"').next();
            }
        }
    }
    None
}

#[test]
fn a_title_out_of_sight_is_written_again() {
    const TITLE: &str = "{\"type\":\"custom-title\",\"customTitle\":\"release work\",\"sessionId\":\"S\"}\n";
    const MADE: &str = "{\"type\":\"ai-title\",\"aiTitle\":\"Release\",\"sessionId\":\"S\"}\n";
    const FAR: usize = 70_000;
    let dir = Dir::new();
    for (before, title, behind, unseen) in [
        (FAR, TITLE, FAR, true),
        (FAR, MADE, FAR, true),
        // A user's title counts, wherever the model's is.
        (FAR, &[TITLE, MADE].concat(), FAR, true),
        (10, TITLE, FAR, false),
        (FAR, TITLE, 10, false),
        (10, TITLE, 10, false),
        (FAR, &TITLE.replace("release work", ""), FAR, false),
        (FAR, "", FAR, false),
    ] {
        let text = titled(before, title, behind);
        let path = dir.write("s.jsonl", &text);
        let wanted = title.split('"').nth(7).filter(|title| !title.is_empty() && unseen);
        let context = format!("{before} {title} {behind}");
        let codes = dir.tailor(&["scan", "--format", "json", "--select", "S11", "s.jsonl"]).codes();
        assert_eq!(codes, vec!["S11"; usize::from(unseen)], "{context}");
        dir.tailor(&["fix", "--settle", "0", "s.jsonl"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{context}");
        dir.tailor(&["fix", "--settle", "0", "--allow", "S11", "s.jsonl"]);
        let fixed = fs::read_to_string(&path).unwrap();
        let line = if unseen { title.split_inclusive('\n').next().unwrap() } else { "" };
        assert_eq!(fixed, text.clone() + line, "{context}");
        if unseen {
            assert_eq!((listed(&text), listed(&fixed)), (None, wanted), "{context}");
            assert!(
                dir.tailor(&["scan", "--format", "json", "--select", "S11", "s.jsonl"]).codes().is_empty()
            );
            assert_eq!(dir.tailor(&["undo", "s.jsonl"]).status, 0);
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{context}");
        }
    }
}

/// pi's branch ends at its last record: the record after a torn one is linked again, which restores the conversation.
#[test]
fn what_stands_behind_a_torn_record_is_linked_again() {
    let whole = concat!(
        r#"{"type":"session","version":3,"id":"5e55","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
        "\n",
        r#"{"type":"message","id":"a1","parentId":null,"timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"user","content":"go"}}"#,
        "\n",
    );
    for record in
        [r#""type":"custom","customType":"x","data":1"#, r#""type":"custom_message","content":"note""#]
    {
        let dir = Dir::new();
        let rest = |parent: &str| format!("{{{record},\"id\":\"a3\",\"parentId\":\"{parent}\"}}\n");
        let torn = r#"{"type":"message","id":"a2","parentId":"a1","mess"#;
        let path = dir.write("s.jsonl", format!("{whole}{torn}{}", rest("a2")));
        assert_eq!(dir.tailor(&["fix", "s.jsonl"]).status, 0);
        assert_eq!(fs::read_to_string(path).unwrap(), format!("{whole}{}", rest("a1")));
    }
}

/// A session whose branch begins after a missing parent, and before that an image that no provider accepts.
fn hides_an_image() -> String {
    let head = "iVBORw0KGgoAAAANSUhEUgAAIygAAABkCAIAAAA";
    let image = format!(r#"{{"type":"image","data":"{head}{}","mimeType":"image/png"}}"#, "A".repeat(401));
    let line = |id: &str, parent: &str, message: &str| {
        format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{{message}}}}}"#)
    };
    let said = r#""role":"assistant","content":[{"type":"text","text":"fine"}],"stopReason":"stop""#;
    let lines = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#.into(),
        line("a1", "null", &format!(r#""role":"user","content":[{image},{{"type":"text","text":"look"}}]"#)),
        line("a2", r#""a1""#, said),
        line("b1", r#""lost""#, r#""role":"user","content":"thanks""#),
        line("b2", r#""b1""#, said),
    ];
    lines.join("\n") + "\n"
}

#[test]
fn what_would_bring_an_error_is_left_and_the_command_for_both_is_named() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", hides_an_image());
    let fails = |status| assert_eq!(dir.tailor(&["scan", "--fail-on", "error", "s.jsonl"]).status, status);
    fails(1);
    let scan = dir.tailor(&["scan", "s.jsonl"]).text();
    let allow = "tailor fix --allow T1,S4 s.jsonl";
    assert!(scan.contains(allow) && scan.contains("the agent sees 2 of 4 messages"), "{scan}");
    let told =
        |arguments: &[&str]| dir.tailor(&[arguments, &["--format", "json", "s.jsonl"]].concat()).file();
    let (looked, dry, fixed) = (told(&["scan"]), told(&["fix", "--dry-run"]), told(&["fix"]));
    assert_eq!((&looked["findings"], &dry["findings"]), (&fixed["findings"], &fixed["findings"]));
    assert_eq!((&fixed["outcome"], &fixed["messages_in_context"]), (&"findings".into(), &2.into()));
    assert_eq!(fs::read_to_string(path).unwrap(), hides_an_image());
    fails(1);
    let both = told(&["fix", "--allow", "T1,S4"]);
    assert_eq!((&both["outcome"], &both["messages_in_context_after"]), (&"fixed".into(), &4.into()));
    fails(0);
}
