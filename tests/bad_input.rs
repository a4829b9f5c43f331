//! Files that are broken, huge, hostile or not ours: a clear outcome, and no byte lost.
//!
//! `support` checks for each run that the program ends by itself and does not panic.

use crate::support::{BROKEN, Dir, FinishedRun, WHOLE, give_to_powerless, is_root, make_old, run, skipped};
use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

/// Arguments that repair at once.
const FIX: &[&str] = &["fix", "--settle", "0", "--json"];

fn fix(dir: &Dir, path: &Path) -> FinishedRun {
    let mut command = dir.command();
    run(command.args(FIX).arg(path), b"")
}

/// Checks that a file of these bytes has this outcome and these codes, and that fixing it gives `after`.
#[track_caller]
fn check(bytes: impl AsRef<[u8]>, outcome: &str, codes: &[&str], after: impl AsRef<[u8]>) {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", &bytes);
    let run = dir.tailor(&["scan", "--json", "s.jsonl"]);
    assert_eq!(run.file()["outcome"], outcome, "{}", run.text());
    assert_eq!(run.codes(), codes, "{}", run.text());
    assert_eq!(fs::read(&path).unwrap(), bytes.as_ref(), "scan changes nothing");
    fix(&dir, &path);
    assert_eq!(fs::read(&path).unwrap(), after.as_ref());
    fix(&dir, &path);
    assert_eq!(fs::read(&path).unwrap(), after.as_ref(), "a second fix changes nothing");
}

/// The same for a file that a fix does not change.
#[track_caller]
fn check_untouched(bytes: impl AsRef<[u8]>, outcome: &str, codes: &[&str]) {
    check(&bytes, outcome, codes, &bytes);
}

/// Checks the reason given for the only file.
#[track_caller]
fn assert_reason(run: &FinishedRun, outcome: &str, reason: &str) {
    let file = run.file();
    assert_eq!(file["outcome"], outcome, "{file}");
    let said = file["reason"].as_str().unwrap_or_default();
    assert!(said.contains(reason), "{said}");
}

fn header() -> &'static str {
    &WHOLE[..=WHOLE.find('\n').unwrap()]
}

#[test]
fn an_empty_file() {
    check_untouched("", "unsupported", &[]);
}

#[test]
fn nothing_but_a_header() {
    check_untouched(header(), "clean", &[]);
}

#[test]
fn nothing_but_half_a_header() {
    check_untouched(&header()[..40], "unsupported", &[]);
}

#[test]
fn nothing_but_line_breaks() {
    check_untouched("\n\n\r\n", "unsupported", &[]);
}

#[test]
fn no_line_break_at_the_end() {
    check(WHOLE.trim_end(), "findings", &["B1"], WHOLE);
}

#[test]
fn windows_line_breaks() {
    check_untouched(WHOLE.replace('\n', "\r\n"), "clean", &[]);
}

#[test]
fn a_byte_order_mark() {
    check(format!("\u{feff}{WHOLE}"), "findings", &["B7"], WHOLE);
}

#[test]
fn runs_of_nul() {
    let nul = "\0".repeat(100_000);
    check(format!("{WHOLE}{nul}\n"), "findings", &["B3"], WHOLE);
    let (first, rest) = WHOLE.split_at(header().len());
    check(format!("{first}{nul}{rest}"), "findings", &["B3"], WHOLE);
    check_untouched(&nul, "unsupported", &[]);
    // In a text, and before a record with a line break inside. The reader's windows end among the NUL bytes.
    for count in [1, 63, 255, 300, 60_000] {
        let nul = &nul[..count];
        check(WHOLE.replacen("go", &format!("g{nul}o"), 1), "findings", &["B3"], WHOLE);
        let cut = rest.replacen("go", "g\no", 1);
        check(format!("{first}{nul}{cut}"), "findings", &["B8"], WHOLE.replacen("go", r"g\no", 1));
    }
}

/// After a crash, the length of a file may be on disk while its bytes are not. The next appended line must not be glued
/// to the NUL bytes.
#[test]
fn nul_at_the_end_of_the_file() {
    check(format!("{WHOLE}{}", "\0".repeat(9000)), "findings", &["B3"], WHOLE);
}

#[test]
fn bytes_that_are_not_utf8() {
    let bytes =
        WHOLE.replace("go", "@").bytes().map(|b| if b == b'@' { 0xff } else { b }).collect::<Vec<u8>>();
    check(bytes, "findings", &["B4"], WHOLE.replace("go", "\u{fffd}"));
    check_untouched([0xff; 4096], "unsupported", &[]);
}

#[test]
fn lone_surrogates() {
    check_untouched(WHOLE.replace("go", r"\ud83d \udc00\udc00"), "findings", &["B5"]);
}

fn run_in_64_mib(dir: &Dir, arguments: &[&str], path: &Path) -> FinishedRun {
    let mut shell = dir.command_of("/bin/sh");
    shell.args(["-c", "ulimit -d 65536 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_tailor")]);
    run(shell.args(arguments).arg(path), b"")
}

/// What follows the first fault of a line is not kept in memory either.
#[test]
fn a_damaged_line_of_two_hundred_megabytes() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", format!("{}{{\"a\":x", header()));
    let mut file = File::options().append(true).open(&path).unwrap();
    file.set_len(200_000_000).unwrap();
    file.write_all(b"\n").unwrap();
    let run = run_in_64_mib(&dir, &["scan", "--json"], &path);
    assert_eq!(run.file()["outcome"], "findings", "{}", run.stderr);
    assert_eq!(run.codes(), ["B9"]);
}

/// The huge result is cut in less memory than the line takes.
#[test]
fn a_line_of_two_hundred_megabytes() {
    const ROW: &[u8] = br"a row of the log that the tool printed, fifty long\n";
    const ROWS: usize = 200_000_000 / ROW.len();
    let dir = Dir::new();
    let path = dir.path("s.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let call = BROKEN.lines().take(3).collect::<Vec<_>>().join("\n");
    let result = r#"{"type":"message","id":"r","parentId":"a2","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","isError":false,"content":[{"type":"text","text":""#;
    write!(file, "{call}\n{result}").unwrap();
    let rows = ROW.repeat(1000);
    for _ in 0..ROWS / 1000 {
        file.write_all(&rows).unwrap();
    }
    let rest = r#""}]}}
{"type":"message","id":"a4","parentId":"r","message":{"role":"user","content":"well?"}}
"#;
    file.write_all(rest.as_bytes()).unwrap();
    drop(file);
    let run = run_in_64_mib(&dir, FIX, &path);
    assert_eq!(run.file()["outcome"], "fixed", "{}{}", run.text(), run.stderr);
    assert_eq!(run.codes(), ["S1", "S3"]);
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.len() < 40_000, "{} bytes stay", after.len());
    assert!(after.starts_with(&format!("{call}\n{result}a row of the log")), "what stands before stays");
    assert!(after.ends_with(&format!(r"fifty long\n{rest}")), "what stands behind stays");
}

#[test]
fn a_hundred_thousand_levels() {
    const LEVELS: usize = 100_000;
    let deep = format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS));
    let entry = |data: &str| format!(r#"{{"type":"custom","id":"x","parentId":"a1","data":{data}}}"#);
    check_untouched(format!("{WHOLE}{}\n", entry(&deep)), "clean", &[]);
    check(format!("{WHOLE}{}\n", "[".repeat(LEVELS)), "findings", &["B9"], WHOLE);
    check(format!("{WHOLE}{}", r#"{"a":"#.repeat(LEVELS)), "findings", &["B1"], WHOLE);
    // Such an entry does not prevent the repair of what is around it.
    let dir = Dir::new();
    let path =
        dir.write("s.jsonl", BROKEN.replace(r#""arguments":{}"#, &format!(r#""arguments":{{"x":{deep}}}"#)));
    assert_eq!(fix(&dir, &path).file()["outcome"], "fixed");
}

/// The last of several equal keys counts, as in every agent.
#[test]
fn keys_that_occur_twice() {
    let twice = BROKEN
        .replace(r#""id":"c","name""#, r#""id":"b","id":"c","name""#)
        .replace(r#""id":"a2","parentId":"a1""#, r#""id":"a1","id":"a2","parentId":"ghost","parentId":"a1""#);
    check_untouched(
        twice.replace(
            r#""id":"a3","parentId":"a2","timestamp":"2026-07-01T10:00:03.000Z","message":{"role":"user","content":"well?"}"#,
            r#""id":"a3","parentId":"a2","message":{"role":"user","role":"toolResult","toolCallId":"c","content":"ok"}"#,
        ),
        "clean",
        &[],
    );
}

#[test]
fn parents_in_a_circle_and_parents_that_do_not_exist() {
    let talk = BROKEN
        .replace(r#""toolCall","#, r#""text","text":"hm","#)
        .replace(r#""stopReason":"toolUse""#, r#""stopReason":"stop""#);
    for parent in ["a1", "a3"] {
        let circle = talk.replace(r#""parentId":null"#, &format!(r#""parentId":"{parent}""#));
        check(circle, "findings", &["T2"], &talk);
    }
    let lost = talk.replace(r#""parentId":"a2""#, r#""parentId":"ghost""#);
    check(lost, "findings", &["S18", "T1"], &talk);
}

#[test]
fn a_file_that_does_not_exist() {
    let dir = Dir::new();
    let run = dir.tailor(&["scan", "--json", "gone.jsonl"]);
    assert_eq!(run.status, 2);
    assert_reason(&run, "error", "gone.jsonl: no file or session id of this name");
    for command in [
        &["chunk"][..],
        &["compact", "--with", "cat"],
        &["doctor"],
        &["explain", "prompt is too long"],
        &["recover"],
        &["report", "--output", "r.html"],
        &["top"],
        &["undo"],
        &["undo", "--list"],
    ] {
        let run = dir.tailor(&[command, &["gone.jsonl"]].concat());
        assert!(
            run.stderr.contains("gone.jsonl: no file or session id of this name"),
            "{command:?}: {}",
            run.stderr
        );
    }
    let human = dir.tailor(&["scan", "gone.jsonl"]);
    assert!(
        human.stderr.starts_with("tailor: gone.jsonl: no file or session id of this name"),
        "{}",
        human.stderr
    );
}

#[test]
fn a_file_with_two_names() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    fs::hard_link(&path, dir.path("other.txt")).unwrap();
    let run = fix(&dir, &path);
    assert_reason(&run, "refused", "it has 2 hard links");
    assert_eq!(run.status, 1, "the finding is still there");
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    assert_eq!(dir.names(), ["other.txt", "s.jsonl"]);
}

#[test]
fn a_link_that_leads_out_of_the_folder() {
    let dir = Dir::new();
    let outside = dir.home().join("s.jsonl");
    fs::write(&outside, BROKEN).unwrap();
    make_old(&outside);
    let link = dir.path("link.jsonl");
    symlink(&outside, &link).unwrap();
    for path in [link.clone(), dir.files()] {
        assert_reason(&fix(&dir, &path), "refused", "points outside its folder");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), BROKEN);
    assert!(link.is_symlink());
}

#[test]
fn a_link_within_the_folder() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    let link = dir.path("link.jsonl");
    symlink("s.jsonl", &link).unwrap();
    assert_eq!(fix(&dir, &link).file()["outcome"], "fixed");
    assert!(link.is_symlink() && !path.is_symlink(), "the file behind the link is mended, the link stays");
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
}

#[test]
fn a_link_that_leads_nowhere() {
    let dir = Dir::new();
    symlink("gone.jsonl", dir.path("link.jsonl")).unwrap();
    let run = fix(&dir, &dir.path("link.jsonl"));
    assert_eq!(run.status, 2);
    assert_reason(&run, "error", "No such file");
}

#[test]
fn folders_linked_in_a_circle() {
    let dir = Dir::new();
    dir.write("a/s.jsonl", WHOLE);
    symlink("..", dir.path("a/up")).unwrap();
    symlink(".", dir.path("a/here.jsonl")).unwrap();
    let run = dir.tailor(&["scan", "--json", "."]);
    let looked_at = |name: &str| {
        run.json().iter().filter(|line| line["path"].as_str().unwrap_or("").ends_with(name)).count()
    };
    assert_eq!(looked_at("s.jsonl"), 1, "{}", run.text());
}

#[test]
fn a_folder_with_the_name_of_a_transcript() {
    let dir = Dir::new();
    dir.write("folder.jsonl/s.jsonl", WHOLE);
    let run = dir.tailor(&["scan", "--json", "."]);
    assert_eq!(run.file()["outcome"], "clean");
}

#[test]
fn a_named_pipe() {
    let dir = Dir::new();
    let path = dir.path("pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let run = fix(&dir, &path);
    assert_eq!(run.status, 2);
    assert_reason(&run, "refused", "it is not a regular file");
}

#[test]
fn a_device() {
    let dir = Dir::new();
    assert_reason(&fix(&dir, Path::new("/dev/null")), "refused", "it is not a regular file");
}

#[test]
fn a_folder_that_cannot_be_read() {
    let dir = Dir::new();
    dir.write("open/s.jsonl", WHOLE);
    dir.write("shut/s.jsonl", WHOLE);
    fs::set_permissions(dir.path("shut"), Permissions::from_mode(0o000)).unwrap();
    let run = run(dir.powerless().args(["scan", "--json", "."]), b"");
    assert_eq!(run.status, 2, "{}", run.text());
    let lines = run.json();
    let outcomes: Vec<_> = lines.iter().filter_map(|line| line["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["clean", "error"], "what can be read is looked at all the same");
    assert!(run.text().contains("shut: could not read the folder: Permission denied"), "{}", run.text());
    fs::set_permissions(dir.path("shut"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written() {
    let dir = Dir::new();
    let path = dir.write("shut/s.jsonl", BROKEN);
    let set_mode = |mode| fs::set_permissions(dir.path("shut"), Permissions::from_mode(mode)).unwrap();
    set_mode(0o555);
    give_to_powerless(&path);
    let run = run(dir.powerless().args(FIX).arg(&path), b"");
    assert_eq!(run.status, 2, "{}", run.text());
    assert_reason(&run, "error", "Permission denied");
    assert!(
        run.text().contains("shut/s.jsonl: could not "),
        "it is not the vault that fails: {}",
        run.text()
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    set_mode(0o755);
    assert_eq!(dir.names(), ["shut/s.jsonl"]);
}

#[test]
fn a_file_of_somebody_else() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    if !is_root() {
        skipped("only root has files of two users");
        return;
    }
    fs::set_permissions(dir.files(), Permissions::from_mode(0o777)).unwrap();
    let run = run(dir.powerless().args(FIX).arg(&path), b"");
    assert_reason(&run, "refused", "it belongs to user 0");
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    assert_eq!(dir.names(), ["s.jsonl"]);
}

#[test]
fn lines_that_are_no_transcript() {
    check_untouched("{\"level\":\"info\",\"msg\":\"up\"}\n".repeat(50), "unsupported", &[]);
    check_untouched("{\n  \"role\": \"user\"\n}\n", "unsupported", &[]);
    check_untouched("plain text\n", "unsupported", &[]);
    // Naming such a file is an error; finding it in a folder is not.
    let dir = Dir::new();
    dir.write("log.jsonl", "{\"level\":\"info\"}\n");
    assert_eq!(dir.tailor(&["scan", "log.jsonl"]).status, 2);
    assert_eq!(dir.tailor(&["scan", "."]).status, 0);
}

#[test]
fn one_document_is_told_as_that() {
    let pretty = "{\n  \"sessionId\": \"s\",\n  \"messages\": [\n    {\n      \"type\": \"user\",\n      \"content\": \"a\"\n    }\n  ]\n}\n";
    let unclear = "[\n{\"role\":\"user\",\"content\":\"list files\",\"topic\":1}\n]\n";
    // Longer than what is read at a time.
    let long = format!("[{}{{\"a\":1}}]", "{\"role\":\"user\"},\n".repeat(200_000));
    for document in [pretty, unclear, "[]", "\n [1, 2]\n", &long] {
        check_untouched(document, "unsupported", &[]);
        let dir = Dir::new();
        dir.write("s.jsonl", document);
        let run = dir.tailor(&["scan", "--json", "s.jsonl"]);
        assert_reason(&run, "unsupported", "one JSON document");
        assert_eq!(run.status, 2);
    }
    // A row of data, several values, an incomplete one, or nothing that holds records.
    for other in [
        "{\"sessionId\":\"s\",\"messages\":[{\"id\":\"1\",\"type\":\"user\",\"content\":\"list files\"}]}",
        "\n{\"a\":1}",
        "{\"a\":1}\n",
        "{\"a\":1}\n{\"b\":2}\n",
        "{\"a\":\n{\"b\":2}\n",
        "[1],\"b\":[2]",
        "[1]]",
        "7\n",
        "{\"a\":1}}",
    ] {
        let dir = Dir::new();
        dir.write("s.jsonl", other);
        let run = dir.tailor(&["scan", "--json", "s.jsonl"]);
        assert_reason(&run, "unsupported", "not a transcript of a known format");
    }
}

/// As tables of conversations have them that were exported as text. The command that is named makes rows that are read.
#[test]
fn conversations_that_are_texts_are_named_with_their_column() {
    let dir = Dir::new();
    let text = r#"[{\"role\":\"user\",\"content\":\"hi\"}]"#;
    dir.write("s.jsonl", format!("{{\"conversations\":\"{text}\"}}\n"));
    let run = dir.tailor(&["scan", "--json", "s.jsonl"]);
    assert_reason(&run, "unsupported", "jq -c '{messages: (.conversations | fromjson)}'");
}

#[test]
fn a_file_that_is_still_being_written() {
    let dir = Dir::new();
    // The run only proves something if the program was quick enough.
    for _ in 0..20 {
        let path = dir.write("s.jsonl", BROKEN);
        let written = Instant::now();
        File::options().append(true).open(&path).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
        let run = dir.tailor(&["fix", "--json", "s.jsonl"]);
        if written.elapsed() < Duration::from_secs(5) {
            assert_reason(&run, "deferred", "waiting for 5 s without writes");
            assert_eq!(run.status, 1, "the finding is still there");
            assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
            assert_eq!(dir.names(), ["s.jsonl"]);
            return;
        }
    }
    panic!("twenty runs of the program took more than five seconds each");
}

#[test]
fn a_rule_that_does_not_exist() {
    let dir = Dir::new();
    dir.write("s.jsonl", BROKEN);
    for (command, flag) in
        [("scan", "--select"), ("scan", "--ignore"), ("scan", "--fail-on"), ("fix", "--allow")]
    {
        let run = dir.tailor(&[command, flag, "Z9", "s.jsonl"]);
        assert_eq!(run.status, 2, "{flag}");
        assert!(run.stderr.contains("no such rule") || run.stderr.contains("nor a rule"), "{}", run.stderr);
    }
    let run = dir.tailor(&["explain", "Z9"]);
    assert_eq!((run.status, run.text().as_str()), (2, ""));
    assert!(run.stderr.contains("Z9: no such rule"), "{}", run.stderr);
}

/// Nothing from a file reaches a terminal unescaped.
#[test]
fn names_that_would_move_a_cursor() {
    let dir = Dir::new();
    let evil = "\u{1b}]52;c;ZXZpbA==\u{7}\u{202e}";
    let name = format!("a{evil}\nb.jsonl");
    let tool = r"\u001b]0;evil\u0007\u009b31m\u202e";
    let path =
        dir.write(&name, BROKEN.replace("bash", tool).replace(r#""id":"c""#, &format!(r#""id":"{tool}""#)));
    dir.write(std::ffi::OsStr::from_bytes(b"not\xffutf8\x1b.jsonl"), BROKEN);
    let gone = path.with_extension("gone");
    let (path, gone) = (path.to_str().unwrap(), gone.to_str().unwrap());
    let runs = [
        dir.tailor(&["scan", "."]),
        dir.tailor(&["scan", path, gone]),
        dir.tailor(&["fix", "--dry-run", "--diff", "--show-content", "."]),
        dir.tailor(&["fix", "--settle", "0", "."]),
        dir.tailor(&["explain", evil]),
    ];
    for run in runs {
        for text in [run.text(), run.stderr] {
            let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(bad), "{text:?}");
        }
    }
}

/// A path of 300 characters and the longest name that there can be are like any other.
#[test]
fn long_paths() {
    let dir = Dir::new();
    let deep = Path::new(&"d".repeat(150)).join("e".repeat(150)).join("s.jsonl");
    for name in [deep, format!("{}.jsonl", "n".repeat(249)).into()] {
        let path = dir.write(&name, BROKEN);
        let fixed = fix(&dir, &path);
        assert_eq!(fixed.file()["outcome"], "fixed", "{}", fixed.text());
        let undone = dir.tailor(&["undo", "--settle", "0", "--json", path.to_str().unwrap()]);
        assert_eq!(undone.file()["outcome"], "undone", "{}", undone.text());
        assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    }
}

/// Longer ones end in an error that names them, wherever they come from, and what is beside them is done.
#[test]
fn paths_that_are_too_long() {
    let dir = Dir::new();
    let [name, deep] = [format!("{}.jsonl", "m".repeat(300)), format!("{}s.jsonl", "x/".repeat(2100))];
    for (path, why) in [(name, "File name too long"), (deep, "no file or session id of this name")] {
        let run = fix(&dir, Path::new(&path));
        assert_eq!(run.status, 2);
        assert_reason(&run, "error", why);
    }
    let whole = dir.write("s.jsonl", BROKEN);
    let script = "for n in $(seq 22); do mkdir $1; cd -P $1; done; : > s.jsonl";
    let made = dir
        .command_of("sh")
        .env("PATH", "/usr/bin:/bin")
        .args(["-c", script, "sh", &"x".repeat(200)])
        .status();
    assert!(made.unwrap().success());
    let run = fix(&dir, Path::new("."));
    let told = run.json();
    let outcome = |of: &str| told.iter().any(|line| line["outcome"] == of);
    assert!(run.status == 2 && outcome("error") && outcome("fixed"), "{}", run.text());
    assert!(run.text().contains("File name too long") && fs::read_to_string(whole).unwrap() != BROKEN);
}

#[test]
fn a_folder_is_no_session() {
    let dir = Dir::new();
    fs::create_dir(dir.path("in")).unwrap();
    for (arguments, verb) in [
        (&["recover", "in"][..], "recover it"),
        (&["compact", "in", "--with", "cat"], "compact it"),
        (&["chunk", "in"], "read the conversation"),
    ] {
        let run = dir.tailor(arguments);
        let wanted = format!("tailor: in: could not {verb}: it is a folder (name the file of one session)\n");
        assert_eq!((run.status, run.stderr), (2, wanted));
    }
}
