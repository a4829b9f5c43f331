//! `scan` in CI: output formats, limits, the baseline; the GitHub Action and the hooks of this repository.
//!
//! `tests/schemas/run` checks SARIF and JUnit against their schemas; these tests check the content.

use crate::support::{BROKEN, Dir, FinishedRun, WHOLE, codex_session, root, run, skipped};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// [`BROKEN`] with a result of this length after its call.
fn with_result(chars: usize) -> String {
    let result = r#"{"type":"message","id":"r","parentId":"a2","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":"@"}}"#;
    let lines: Vec<&str> = BROKEN.lines().collect();
    let last = lines[3].replace(r#""parentId":"a2""#, r#""parentId":"r""#);
    format!("{}\n{}\n{last}\n", lines[..3].join("\n"), result.replace('@', &"x".repeat(chars)))
}

/// Scans one file of each kind: broken, healthy, not a transcript, and missing.
fn four(dir: &Dir, more: &[&str]) -> FinishedRun {
    dir.write("b.jsonl", BROKEN);
    dir.write("w.jsonl", WHOLE);
    dir.write("x.jsonl", "no transcript\n");
    let paths = ["scan", "b.jsonl", "w.jsonl", "x.jsonl", "gone.jsonl"];
    dir.tailor(&[&paths[..], more].concat())
}

fn sarif(run: &FinishedRun) -> Value {
    serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.text()))
}

#[test]
fn sarif_has_a_result_a_finding_and_the_rules_of_the_registry() {
    let dir = Dir::new();
    let run = four(&dir, &["--format", "sarif"]);
    assert_eq!((run.status, run.stderr.as_str()), (2, ""));
    let log = sarif(&run);
    assert_eq!(log["version"], "2.1.0");
    let driver = &log["runs"][0]["tool"]["driver"];
    let ids: Vec<&str> =
        driver["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let codes: Vec<&str> = transcript::rule::RULES.iter().map(|rule| rule.code()).collect();
    assert_eq!(ids, codes);
    let [result] = &log["runs"][0]["results"].as_array().unwrap()[..] else { panic!("{log}") };
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("P1"), &json!("error")));
    assert_eq!(ids[result["ruleIndex"].as_u64().unwrap() as usize], "P1");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place, &json!({"artifactLocation": {"uri": "b.jsonl"}, "region": {"startLine": 3}}));
    assert_eq!(result["partialFingerprints"]["tailor/v1"].as_str().unwrap().len(), 32);
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let told = invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap();
    assert!(told.starts_with("gone.jsonl: no file or session"), "{told}");
}

#[test]
fn sarif_without_a_finding_is_whole() {
    let dir = Dir::new();
    dir.write("w.jsonl", WHOLE);
    let run = dir.tailor(&["scan", "w.jsonl", "--format", "sarif"]);
    assert_eq!(run.status, 0);
    let log = sarif(&run);
    assert_eq!(
        (&log["runs"][0]["results"], &log["runs"][0]["invocations"][0]["executionSuccessful"]),
        (&json!([]), &json!(true))
    );
}

#[test]
fn junit_has_a_case_a_file() {
    let dir = Dir::new();
    let run = four(&dir, &["--format", "junit"]);
    assert_eq!(run.status, 2);
    let text = run.text();
    assert!(text.contains(r#"<testsuites name="tailor" tests="4" failures="1" errors="2" time="#), "{text}");
    for part in [
        r#"<failure message="1 finding" type="call-without-result">line 3: error P1 call-without-result: "#,
        r#"<testcase name="w.jsonl" classname="tailor" time="0"/>"#,
        r#"<error message="not a transcript"#,
        r#"<error message="gone.jsonl: no file or session"#,
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let lenient = four(&dir, &["--format", "junit", "--fail-on", "S1"]);
    assert!(lenient.text().contains(r#"failures="0""#), "{}", lenient.text());
    assert!(lenient.text().contains("<system-out>line 3: error P1"), "{}", lenient.text());
}

#[test]
fn gitlab_gets_a_report_of_code_quality() {
    let dir = Dir::new();
    let run = four(&dir, &["--format", "gitlab"]);
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let [finding, failed, strange] = &report.as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!(
        (run.status, &finding["severity"], &finding["check_name"]),
        (2, &json!("major"), &json!("P1"))
    );
    assert_eq!(finding["location"], json!({"path": "b.jsonl", "lines": {"begin": 3}}));
    assert!(finding["description"].as_str().unwrap().starts_with("P1 call-without-result: no result"));
    assert_eq!((&failed["severity"], &failed["location"]["path"]), (&json!("blocker"), &json!("gone.jsonl")));
    assert_eq!((&strange["severity"], &strange["location"]["path"]), (&json!("blocker"), &json!("x.jsonl")));
    let prints = [finding, failed].map(|one| one["fingerprint"].as_str().unwrap());
    assert!(prints.iter().all(|print| print.len() == 32) && prints[0] != prints[1], "{report}");
    let whole = dir.tailor(&["scan", "w.jsonl", "--format", "gitlab"]);
    assert_eq!((whole.status, whole.text().as_str()), (0, "[]\n"));
}

/// A repeated finding is one result with a count.
#[test]
fn repetitions_are_one_result_in_every_shape_but_json() {
    let dir = Dir::new();
    dir.write("s.jsonl", format!("{WHOLE}undefined\nundefined\nundefined\n"));
    for n in 0..3 {
        dir.write(format!("x{n}.jsonl"), "no transcript\n");
    }
    let print = |format: &str| dir.tailor(&["scan", ".", "--format", format, "--fail-on", "B9"]).text();
    let log: Value = serde_json::from_str(&print("sarif")).unwrap();
    let [result] = &log["runs"][0]["results"].as_array().unwrap()[..] else { panic!("{log}") };
    assert_eq!(
        (
            &result["occurrenceCount"],
            &result["relatedLocations"][1]["physicalLocation"]["region"]["startLine"]
        ),
        (&json!(3), &json!(5))
    );
    let text = result["message"]["text"].as_str().unwrap();
    assert!(text.starts_with("3 times, lines 3–5: "), "{text}");
    let junit = print("junit");
    assert!(junit.contains("lines 3–5: warning B9 unreadable-line ×3: "), "{junit}");
    assert!(junit.contains(r#"tests="2" failures="1""#), "{junit}");
    assert!(junit.contains(r#"<skipped message="3 files are not transcripts"#), "{junit}");
    let github = print("github");
    assert_eq!(github.lines().count(), 2, "{github}");
    assert!(github.contains("title=B9 unreadable-line ×3 (lines 3–5)::"), "{github}");
    let report: Value = serde_json::from_str(&print("gitlab")).unwrap();
    let [_, strangers] = &report.as_array().unwrap()[..] else { panic!("{report}") };
    let told = strangers["description"].as_str().unwrap();
    assert!(told.starts_with("3 files are not transcripts") && strangers["severity"] == "info", "{report}");
    let notified = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!((&notified[0]["message"]["text"], &notified[1]), (&json!(told), &Value::Null), "{log}");
    assert_eq!(print("json").matches("\"B9\"").count(), 3);
}

/// Named as pre-commit does it: what makes the run fail is one line that names some, what was to be ignored a number.
#[test]
fn many_named_files_that_are_not_transcripts_are_one_count() {
    let dir = Dir::new();
    dir.write("w.jsonl", WHOLE);
    let names: Vec<String> = (0..72).map(|n| format!("x{n}.jsonl")).collect();
    for name in &names {
        drop(dir.write(name, "no transcript\n"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["w.jsonl"]).collect();
    let run = |more: &[&str]| dir.tailor(&[&["scan"], &names[..], more].concat());
    for (format, most) in [("human", 2), ("github", 2), ("sarif", 1), ("junit", 12), ("gitlab", 1)] {
        let failed = run(&["--format", format]);
        let told = "72 files are not transcripts: x0.jsonl, x1.jsonl, x2.jsonl and 69 more";
        assert_eq!((failed.status, failed.text().matches(told).count()), (2, 1), "{}", failed.text());
        let ignored = run(&["--format", format, "--if-any"]);
        let (text, count) = (
            ignored.text(),
            format!("72 {}", if format == "human" || format == "github" { "not" } else { "files are not" }),
        );
        assert_eq!((ignored.status, text.matches(&count).count()), (0, 1), "{format}: {text}");
        assert!(!text.contains("x1.jsonl") && text.lines().count() <= most, "{format}: {text}");
    }
    let all = run(&["--show", "all", "--if-any"]);
    assert!(all.status == 0 && all.text().contains("x71.jsonl: unsupported: "), "{}", all.text());
    let one = dir.tailor(&["scan", "x7.jsonl", "w.jsonl"]);
    assert!(one.status == 2 && one.text().starts_with("x7.jsonl: unsupported: not a tra"), "{}", one.text());
}

/// From the working directory if it lies below that, without `./`; otherwise absolute, where text for people has `~`.
#[test]
fn every_shape_names_a_file_alike() {
    let dir = Dir::new();
    dir.write("d/b.jsonl", BROKEN);
    let far = dir.home().join("far.jsonl");
    std::fs::write(&far, BROKEN).unwrap();
    let far = far.to_str().unwrap();
    for (format, far_in_it) in [
        ("human", "~/far.jsonl"),
        ("json", far),
        ("sarif", far),
        ("junit", far),
        ("github", far),
        ("gitlab", far),
    ] {
        let run = dir.tailor(&["scan", "./d//b.jsonl", far, "./gone.jsonl", "--format", format]);
        let all = run.text() + &run.stderr;
        for path in ["d/b.jsonl", far_in_it, "gone.jsonl"] {
            assert!(all.contains(path), "{format}: {path}: {all}");
        }
        assert!(!all.contains("./") && !all.contains("d//b"), "{format}: {all}");
    }
}

#[test]
fn what_fails_comes_first_in_the_summary_and_among_the_cases() {
    let dir = Dir::new();
    dir.write("a.jsonl", WHOLE.trim_end());
    dir.write("b.jsonl", format!("undefined\n{WHOLE}"));
    dir.write("c.jsonl", BROKEN);
    let summary = dir.path("summary.md");
    let mut command = dir.command();
    command.args(["scan", ".", "--format", "github"]);
    run(command.env("GITHUB_STEP_SUMMARY", &summary), b"");
    let text = fs::read_to_string(summary).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let kinds: Vec<&str> = rows.map(|(kind, _)| kind).filter(|kind| !kind.starts_with('|')).collect();
    assert_eq!(kinds, ["error", "warning", "notice"], "{text}");
    let junit = dir.tailor(&["scan", ".", "--format", "junit"]).text();
    let names = junit.split("<testcase name=\"").skip(1).filter_map(|case| case.split('"').next());
    assert_eq!(names.collect::<Vec<_>>(), ["c.jsonl", "a.jsonl", "b.jsonl"], "{junit}");
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let dir = Dir::new();
    let summary = dir.path("summary.md");
    fs::write(&summary, "before\n").unwrap();
    dir.write("b.jsonl", BROKEN);
    let mut command = dir.command();
    command.args(["scan", "b.jsonl", "gone.jsonl", "--format", "github"]);
    let run = run(command.env("GITHUB_STEP_SUMMARY", &summary), b"");
    let text = run.text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("::error file=b.jsonl,line=3,title=P1 call-without-result::no result"));
    assert!(
        lines[1].starts_with("::error file=gone.jsonl,line=1,title=error::gone.jsonl: no file or session")
    );
    assert_eq!((run.status, lines.len()), (2, 3), "{text}");
    let text = fs::read_to_string(summary).unwrap();
    assert!(text.starts_with("before\n### Tailor\n\n2 files"), "{text}");
    assert!(
        text.contains("\n| error | b.jsonl | 3 | P1 call-without-result | no result for this call"),
        "{text}"
    );
}

/// GitHub shows ten annotations of each kind. The others are plain log lines, and no file name turns one into a
/// command.
#[test]
fn no_more_annotations_than_github_shows_and_no_command_but_ours() {
    let dir = Dir::new();
    for n in 0..12 {
        dir.write(format!("::error file=x::{n} ##[add-path] | <b>\n::debug::y.jsonl"), BROKEN);
    }
    let summary = dir.path("summary.md");
    let mut command = dir.command();
    command.args(["scan", ".", "--format", "github"]);
    let run = run(command.env("GITHUB_STEP_SUMMARY", &summary), b"");
    let text = run.text();
    let commands: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("::")).collect();
    assert_eq!((text.lines().count(), commands.len()), (13, 10), "{text}");
    assert!(commands.iter().all(|line| line.starts_with("::error file=%3A%3Aerror file=x%3A%3A")), "{text}");
    assert_eq!(text.lines().filter(|line| !line.starts_with("::") && line.contains("##[")).count(), 0);
    let rows = fs::read_to_string(summary).unwrap();
    assert_eq!(rows.lines().filter(|line| line.starts_with("| error |")).count(), 12, "{rows}");
    assert!(
        !rows.contains("<b>")
            && rows.lines().filter(|row| row.starts_with('|')).all(|row| row.matches('|').count() == 6)
    );
}

#[test]
fn limits_of_a_check_and_their_tolerance() {
    let dir = Dir::new();
    let text = with_result(1_000);
    dir.write("s.jsonl", &text);
    let longest = text.lines().map(str::len).max().unwrap();
    let codes = |arguments: &[&str]| {
        let run = dir.tailor(&[&["scan", "s.jsonl", "--format", "json"], arguments].concat());
        let file = run.file();
        let findings = file["findings"].as_array().unwrap();
        let found = |finding: &Value| format!("{}:{}", finding["code"], finding["severity"]).replace('"', "");
        (run.status, findings.iter().map(found).collect::<Vec<_>>().join(" "))
    };
    for (limit, code, size) in [
        ("--max-file-size", "L1", text.len()),
        ("--max-line-size", "L2", longest),
        ("--max-result-chars", "L3", 1_000),
        ("--max-turn-chars", "L4", 1_000),
    ] {
        let at = |size: usize| size.to_string();
        assert_eq!(codes(&[limit, &at(size)]), (0, String::new()), "{limit}");
        assert_eq!(codes(&[limit, &at(size - 1)]), (1, format!("{code}:error")), "{limit}");
        let within = [limit, &at(size - size / 20), "--tolerance", "10%"];
        assert_eq!(codes(&within), (0, format!("{code}:note")), "{limit}");
        assert_eq!(codes(&[&within[..], &["--fail-on", code]].concat()).0, 1, "{limit}");
        let beyond = [limit, &at(size - size / 5), "--tolerance", "10%"];
        assert_eq!(codes(&beyond), (1, format!("{code}:error")), "{limit}");
        assert_eq!(codes(&[limit, "0"]), (0, String::new()), "0 is switched off");
    }
    assert_eq!(codes(&["--max-context-tokens", "100"]), (1, "L5:error".to_string()));
    assert_eq!(codes(&["--max-context-tokens", "10000"]), (0, String::new()));
    assert_eq!(codes(&["--max-context-tokens", "100", "--ignore", "L5"]), (0, String::new()));
}

#[test]
fn a_limit_may_be_the_window_of_each_session() {
    let dir = Dir::new();
    dir.write("roomy.jsonl", codex_session(249_000, 272_000));
    dir.write("full.jsonl", codex_session(250_000, 200_000));
    let check = |file: &str| {
        let arguments = ["scan", file, "--select", "L5", "--max-context-tokens", "window"];
        dir.tailor(&[&arguments[..], &["--fail-on", "L5"]].concat())
    };
    assert_eq!(check("roomy.jsonl").status, 0);
    let full = check("full.jsonl");
    assert!(full.status == 1 && full.text().contains("250000 tokens (limit 200000)"), "{}", full.text());
    let word = dir.tailor(&["scan", "full.jsonl", "--max-context-tokens", "windows"]);
    assert!(word.status == 2 && word.stderr.contains("`window`"), "{}", word.stderr);
}

#[test]
fn a_rule_that_never_fails_is_not_waited_for() {
    let dir = Dir::new();
    dir.write("w.jsonl", WHOLE);
    for (code, option) in [
        ("L1", "--max-file-size"),
        ("L2", "--max-line-size"),
        ("L3", "--max-result-chars"),
        ("L4", "--max-turn-chars"),
        ("L5", "--max-context-tokens"),
    ] {
        for command in ["scan", "fix"] {
            let run = dir.tailor(&[command, "w.jsonl", "--fail-on", code]);
            assert!(run.status == 2 && run.stderr.contains(option), "{code}: {}", run.stderr);
        }
        let run = dir.tailor(&["scan", "w.jsonl", "--fail-on", code, option, "1000000"]);
        assert_eq!(run.status, 0, "{code}: {}", run.stderr);
    }
}

#[test]
fn json_is_short_for_its_format() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    for arguments in [&["scan", "b.jsonl"][..], &["fix", "b.jsonl", "--dry-run"]] {
        let run = |more: &[&str]| dir.tailor(&[arguments, more].concat());
        assert_eq!(run(&["--json"]).file(), run(&["--format", "json"]).file(), "{arguments:?}");
    }
    let run = dir.pipe(BROKEN.as_bytes(), &["scan", "-", "--json"]);
    assert_eq!(run.file()["outcome"], "findings", "{}", run.stderr);
}

#[test]
fn exit_zero_is_about_findings_and_not_about_errors() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    assert_eq!(dir.tailor(&["scan", "b.jsonl", "--exit-zero"]).status, 0);
    assert_eq!(dir.tailor(&["scan", "b.jsonl", "gone.jsonl", "--exit-zero"]).status, 2);
}

#[test]
fn if_any_passes_over_what_is_no_transcript() {
    let dir = Dir::new();
    dir.write("x.jsonl", "no transcript\n");
    assert_eq!(dir.tailor(&["scan", "x.jsonl"]).status, 2);
    assert_eq!(dir.tailor(&["scan", "x.jsonl", "--if-any"]).status, 0);
    assert_eq!(dir.tailor(&["scan"]).status, 2);
    let nothing = dir.tailor(&["scan", "--if-any"]);
    assert_eq!((nothing.status, nothing.text().as_str()), (0, "0 files, 0 B: nothing to do\n"));
    assert_eq!(dir.tailor(&["scan", "gone.jsonl", "--if-any"]).status, 2, "what is not there is an error");
}

#[test]
fn a_file_of_results_appears_whole_and_private() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    let to_out = ["scan", "b.jsonl", "--format", "json", "-o", "out.json"];
    let run = dir.tailor(&to_out);
    assert_eq!((run.status, run.text().as_str()), (1, ""));
    assert!(run.stderr.starts_with("tailor: out.json: 1 file, "), "{}", run.stderr);
    let out = dir.path("out.json");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&out), 0o600);
    let plain = dir.tailor(&["scan", "b.jsonl", "--format", "json"]).text();
    assert_eq!(fs::read_to_string(&out).unwrap().lines().next(), plain.lines().next());
    // An existing file is replaced, also through a link, and keeps its mode.
    fs::set_permissions(&out, fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink("out.json", dir.path("link")).unwrap();
    fs::write(&out, "old").unwrap();
    assert_eq!(dir.tailor(&["scan", "b.jsonl", "--format", "json", "-o", "link"]).status, 1);
    assert!(fs::read_to_string(&out).unwrap().starts_with("{\"type\":\"file\""));
    assert_eq!(mode(&out), 0o644);
    assert!(dir.path("link").is_symlink());
    assert_eq!(dir.names(), ["b.jsonl", "link", "out.json"]);
    // A device cannot be replaced.
    let run = dir.tailor(&["scan", "b.jsonl", "--format", "json", "-o", "/dev/stdout"]);
    assert_eq!(run.json().len(), 2);
}

/// The output in a pipe that has only one reader.
fn through_a_pipe(dir: &Dir, arguments: &[&str]) -> String {
    let pipe = dir.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut reader = dir.command_of("/bin/cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    let mut program = dir.command().args(arguments).arg(&pipe).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while program.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            program.kill().and_then(|()| reader.kill()).unwrap();
            panic!("it hangs: {arguments:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let is_pipe = fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo();
    if !is_pipe {
        reader.kill().unwrap();
    }
    assert!(is_pipe, "it is not replaced: {arguments:?}");
    fs::remove_file(&pipe).unwrap();
    String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn results_go_into_a_pipe() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    assert!(through_a_pipe(&dir, &["scan", "b.jsonl", "-o"]).contains(": 1 error"));
    assert!(through_a_pipe(&dir, &["report", "b.jsonl", "-o"]).ends_with("</html>\n"));
    assert_eq!(dir.names(), ["b.jsonl"]);
}

/// Uses a device node of our own that takes everything, because the real one is shared.
#[test]
fn a_device_takes_results_and_stays() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    let null = dir.path("null");
    let made = std::process::Command::new("mknod").arg(&null).args(["c", "1", "3"]).output();
    if !made.is_ok_and(|made| made.status.success()) || fs::write(&null, "x").is_err() {
        return skipped("device nodes cannot be made or used here; what -o does to one was not looked at");
    }
    let is_device = || fs::symlink_metadata(&null).unwrap().file_type().is_char_device();
    std::os::unix::fs::symlink("null", dir.path("link")).unwrap();
    for name in ["null", "link"] {
        assert_eq!(dir.tailor(&["scan", "b.jsonl", "-o", name]).status, 1);
        assert!(is_device(), "scan {name}");
        let run = dir.tailor(&["report", "b.jsonl", "-o", name]);
        assert_eq!((run.status, is_device()), (0, true), "report {name}: {}", run.stderr);
    }
    assert_eq!(dir.names(), ["b.jsonl", "link", "null"]);
}

#[test]
fn a_minus_is_standard_output_and_no_file() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    let plain = dir.tailor(&["scan", "b.jsonl"]);
    let minus = dir.tailor(&["scan", "b.jsonl", "-o", "-"]);
    assert_eq!((minus.status, minus.text(), minus.stderr), (1, plain.text(), plain.stderr));
    let page = dir.tailor(&["report", "b.jsonl", "-o", "-"]);
    assert!(page.status == 0 && page.text().ends_with("</html>\n"), "{}", page.stderr);
    assert_eq!(page.stderr, "tailor: standard output: a report on 1 session\n");
    // The results would be in the middle of the transcript.
    let stream = dir.pipe(BROKEN.as_bytes(), &["fix", "-", "-o", "-"]);
    assert_eq!((stream.status, stream.text().as_str()), (2, ""));
    assert!(stream.stderr.contains("standard output carries the transcript"), "{}", stream.stderr);
    assert_eq!(dir.names(), ["b.jsonl"]);
}

/// `-o /dev/stdout >> log` keeps what the log had.
#[test]
fn our_own_standard_output_is_written_from_where_it_stands() {
    for arguments in [["scan", "b.jsonl", "-o", "/dev/stdout"], ["report", "b.jsonl", "-o", "/dev/stdout"]] {
        let dir = Dir::new();
        dir.write("b.jsonl", BROKEN);
        fs::write(dir.path("log"), "what was there\n").unwrap();
        let log = fs::File::options().append(true).open(dir.path("log")).unwrap();
        dir.command().args(arguments).stdout(log).stderr(Stdio::null()).status().unwrap();
        let text = fs::read_to_string(dir.path("log")).unwrap();
        assert!(text.starts_with("what was there\n") && text.len() > 50, "{arguments:?}: {text}");
        assert_eq!(dir.names(), ["b.jsonl", "log"]);
    }
}

#[test]
fn a_link_that_leads_nowhere_is_not_replaced() {
    let dir = Dir::new();
    dir.write("b.jsonl", BROKEN);
    std::os::unix::fs::symlink("gone", dir.path("link")).unwrap();
    for command in ["scan", "report"] {
        let run = dir.tailor(&[command, "b.jsonl", "-o", "link"]);
        assert!(run.status == 2 && run.stderr.contains("a link that leads nowhere"), "{}", run.stderr);
        assert!(dir.path("link").is_symlink());
    }
}

#[test]
fn a_file_of_results_that_cannot_be_written_stops_before_any_work() {
    let dir = Dir::new();
    let path = dir.write("b.jsonl", BROKEN);
    let run = dir.tailor(&["fix", "--settle", "0", "b.jsonl", "-o", "no/such/folder.json"]);
    assert_eq!(run.status, 2);
    assert!(
        run.stderr.starts_with("tailor: no/such/folder.json: could not write results: "),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read_to_string(path).unwrap(), BROKEN);
}

/// A project with findings that does not want any new ones.
#[test]
fn only_what_is_new_fails() {
    let dir = Dir::new();
    let path = dir.write("a/s.jsonl", BROKEN);
    let check = |arguments: &[&str]| dir.tailor(&[&["scan", "--baseline", "known.json"], arguments].concat());
    assert_eq!(dir.tailor(&["scan", "a", "--format", "json", "-o", "known.json"]).status, 1);
    let known = check(&["a"]);
    assert_eq!((known.status, known.text().lines().count()), (0, 1), "{}", known.text());
    assert!(known.text().contains(": 1 known"), "{}", known.text());
    for spelling in ["./a", "a/s.jsonl", "a//", path.to_str().unwrap()] {
        assert_eq!(check(&[spelling]).status, 0, "{spelling}");
    }
    // The session continues, and the same problem occurs again further down.
    let more = BROKEN.lines().skip(2).collect::<Vec<_>>().join("\n");
    let more = more.replace("a2", "b2").replace("a3", "b3").replace(r#""id":"c""#, r#""id":"d""#);
    dir.write("a/s.jsonl", format!("{BROKEN}{}\n", more.replace(r#""parentId":"a1""#, r#""parentId":"a3""#)));
    let file = check(&["a", "--format", "json"]).json().remove(0);
    let states: Vec<(&Value, &Value)> = file["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (&finding["line"], &finding["known"]))
        .collect();
    assert_eq!(states, [(&json!(3), &json!(true)), (&json!(5), &Value::Null)]);
    let run = check(&["a"]);
    assert_eq!(run.status, 1);
    let begins = "a/s.jsonl\n  error   P1 call-without-result (line 5): ";
    assert!(run.text().starts_with(begins), "{}", run.text());
    let log = sarif(&check(&["a", "--format", "sarif"]));
    let results = log["runs"][0]["results"].as_array().unwrap();
    let states: Vec<&Value> = results.iter().map(|result| &result["baselineState"]).collect();
    assert_eq!(states, ["unchanged", "new"]);
    // The same finding in another file is new.
    dir.write("b/s.jsonl", BROKEN);
    assert_eq!(check(&["b"]).status, 1);
}

#[test]
fn a_baseline_that_is_none_says_how_to_make_one() {
    let dir = Dir::new();
    dir.write("s.jsonl", BROKEN);
    dir.write("known.json", "[]\n");
    for (name, line) in [("known.json", "line 1: "), ("s.jsonl", "line 1: "), ("gone.json", "No such file")] {
        let run = dir.tailor(&["scan", "s.jsonl", "--baseline", name]);
        assert_eq!((run.status, run.text().as_str()), (2, ""));
        let said = format!("tailor: {name}: could not read the baseline: {line}");
        assert!(run.stderr.starts_with(&said), "{}", run.stderr);
        assert!(run.stderr.contains("--format json -o FILE"), "{}", run.stderr);
    }
}

/// Output formats for programs never hold content of a transcript.
#[test]
fn no_content_in_any_shape() {
    let dir = Dir::new();
    dir.write("s.jsonl", with_result(50_000).replace("xxxxx", "hush "));
    for format in ["human", "json", "sarif", "junit", "github"] {
        for command in ["scan", "fix"] {
            let run = dir.tailor(&[command, "s.jsonl", "--format", format]);
            assert!(command == "fix" || run.text().contains("S1"), "{format}: {}", run.text());
            assert!(!run.text().contains("hush") && !run.stderr.contains("hush"), "{format}");
            dir.write("s.jsonl", with_result(50_000).replace("xxxxx", "hush "));
        }
    }
}

/// After a fix, output formats for CI report what remains.
#[test]
fn what_was_fixed_fails_nothing() {
    let dir = Dir::new();
    dir.write("s.jsonl", BROKEN);
    let run = dir.tailor(&["fix", "s.jsonl", "--settle", "0", "--format", "sarif"]);
    assert_eq!((run.status, &sarif(&run)["runs"][0]["results"]), (0, &json!([])));
}

/// The script of a step in the GitHub Action.
fn step(name: &str) -> String {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let (_, step) = text.split_once(&format!("- name: {name}\n")).unwrap();
    let (_, script) = step.split_once("run: |\n").unwrap();
    let indent = "        ";
    let lines = script.lines().map_while(|line| line.strip_prefix(indent));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_action_annotates_and_writes_sarif() {
    let dir = Dir::new();
    dir.write("ses sions/b.jsonl", BROKEN);
    dir.write("data.jsonl", "{\"rows\":1}\n");
    let program = Path::new(env!("CARGO_BIN_EXE_tailor")).parent().unwrap();
    let act = |paths: &str, arguments: &str| {
        let mut shell = dir.command_of("/bin/bash");
        shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
        shell.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step("Scan")]);
        shell.env("GITHUB_STEP_SUMMARY", dir.path("summary.md"));
        run(shell.env("PATHS", paths).env("ARGUMENTS", arguments).env("SARIF", "tailor.sarif"), b"")
    };
    let run = act("ses sions\ndata.jsonl\n", "");
    assert_eq!(run.status, 1, "{}\n{}", run.text(), run.stderr);
    assert!(run.text().starts_with("::error file=ses sions/b.jsonl,line=3,"), "{}", run.text());
    let log: Value = serde_json::from_slice(&fs::read(dir.path("tailor.sarif")).unwrap()).unwrap();
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "P1");
    assert!(fs::read_to_string(dir.path("summary.md")).unwrap().contains("### Tailor"));
    assert_eq!(act(".", "--ignore\nP1").status, 0);
    assert_eq!(act("gone", "").status, 2);
}

/// The hooks' commands, with the arguments that pre-commit passes.
#[test]
fn the_hooks_run() {
    let dir = Dir::new();
    let hooks = fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    let entries: Vec<&str> =
        hooks.lines().filter_map(|line| line.trim().strip_prefix("entry: packages/hook ")).collect();
    let [staged, home] = entries[..] else { panic!("{hooks}") };
    let hook = |entry: &str, files: &[&str]| {
        let arguments: Vec<&str> = entry.split_whitespace().chain(files.iter().copied()).collect();
        dir.tailor(&arguments).status
    };
    dir.write("b.jsonl", BROKEN);
    dir.write("w.jsonl", WHOLE);
    dir.write("data.jsonl", "{\"rows\":1}\n");
    assert_eq!(hook(staged, &["w.jsonl", "data.jsonl"]), 0);
    assert_eq!(hook(staged, &["b.jsonl", "data.jsonl"]), 1);
    assert_eq!(hook(home, &[]), 0, "no agent is here");
    let session = dir.home().join(".claude/projects/-w/s.jsonl");
    fs::create_dir_all(session.parent().unwrap()).unwrap();
    fs::write(session, BROKEN).unwrap();
    assert_eq!(hook(home, &[]), 1);
}
