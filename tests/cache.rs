//! The index of verdicts: unchanged files are not read again, changed ones are, and results do not depend on the index.

use crate::support::{BROKEN, Dir, FinishedRun, WHOLE, root, run};
use crate::trace::{SystemCall, calls, can_trace};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// More recent changes are not entered in the index, and only the kernel can set the time of a change.
const FRESH: Duration = Duration::from_millis(2_100);

fn wait_until_old() {
    std::thread::sleep(FRESH);
}

fn folder(dir: &Dir) -> PathBuf {
    dir.home().join(".cache/tailor")
}

/// The files of the index.
fn index(dir: &Dir) -> Vec<PathBuf> {
    let found = fs::read_dir(folder(dir)).map(|found| found.map(|entry| entry.unwrap().path()).collect());
    found.unwrap_or_default()
}

fn entries(dir: &Dir) -> usize {
    index(dir).iter().map(|file| fs::read_to_string(file).unwrap().lines().count()).sum()
}

/// The lines about files, without the summary.
fn told(run: &FinishedRun) -> Vec<serde_json::Value> {
    assert_ne!(run.status, 2, "{}\n{}", run.text(), run.stderr);
    let mut lines = run.json();
    // The summary holds the time that the run took.
    lines.pop();
    lines
}

fn scan(dir: &Dir, more: &[&str]) -> Vec<serde_json::Value> {
    told(&dir.tailor(&[&["scan", ".", "--format", "json"], more].concat()))
}

/// The selected system calls of a scan.
fn traced(dir: &Dir, which: &str) -> Vec<SystemCall> {
    let mut command = dir.command_of("strace");
    command.env("PATH", "/usr/bin:/bin:/usr/local/bin").args(["-f", "-y", "-qq", "-e"]).arg(which);
    command.arg("-o").arg(dir.home().join("trace")).arg(env!("CARGO_BIN_EXE_tailor"));
    command.args(["scan", "."]).stdin(Stdio::null());
    assert_ne!(run(&mut command, b"").status, 2);
    calls(&fs::read_to_string(dir.home().join("trace")).unwrap())
}

/// What a scan opens below the folder of files, other than folders.
fn opened(dir: &Dir) -> Vec<String> {
    let files = dir.files();
    // With O_PATH, root looks whose a folder is, and nothing can be read.
    let is_file =
        |call: &SystemCall| !call.arguments.contains("O_DIRECTORY") && !call.arguments.contains("O_PATH");
    let opens = traced(dir, "trace=/open.*").into_iter().filter(is_file);
    opens.filter(|call| call.result.contains(files.to_str().unwrap())).map(|call| call.result).collect()
}

/// How many bytes of a file a scan reads.
fn read_bytes(dir: &Dir, path: &Path) -> u64 {
    let reads =
        traced(dir, "trace=read,pread64,readv,preadv,mmap").into_iter().filter(|call| call.is_on(path));
    reads.map(|call| call.result.parse::<u64>().expect("a file is read, and not mapped")).sum()
}

/// A line of a pi session whose parent is the line before.
fn pi(number: usize, message: &str) -> String {
    let parent = number.checked_sub(1).map_or("null".into(), |before| format!("\"m{before}\""));
    format!(
        r#"{{"type":"message","id":"m{number}","parentId":{parent},"timestamp":"2026-07-01T10:00:00.000Z","message":{message}}}"#
    ) + "\n"
}

/// A conversation, from one line to another.
fn talk(lines: Range<usize>, chars: usize) -> String {
    let said = "word ".repeat(chars / 5);
    let line = |number: usize| {
        pi(
            number,
            &if number.is_multiple_of(2) {
                format!(r#"{{"role":"user","content":"{said}"}}"#)
            } else {
                format!(
                    r#"{{"role":"assistant","model":"claude-opus-4-5","content":[{{"type":"text","text":"{said}"}}],"usage":{{"input":{},"output":9,"cacheRead":0,"cacheWrite":0}},"stopReason":"stop"}}"#,
                    // As many at each line, however long the lines are: a number that falls is one that only a look can judge.
                    5_000 * (number + 1)
                )
            },
        )
    };
    lines.map(line).collect()
}

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n";

fn append(path: &Path, text: &str) {
    File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Copies every fixture below the folder of files.
fn fixtures(dir: &Dir) -> usize {
    let formats = fs::read_dir(root().join("fixtures")).unwrap();
    let cases = formats.flat_map(|format| fs::read_dir(format.unwrap().path()).into_iter().flatten());
    let inputs = cases.map(|case| case.unwrap().path()).filter(|case| case.join("in.jsonl").exists());
    let copy = |case: PathBuf| {
        let name = case.strip_prefix(root()).unwrap().join("s.jsonl");
        dir.write(name, fs::read(case.join("in.jsonl")).unwrap());
    };
    inputs.map(copy).count()
}

/// All rules and formats: the results are the same to the last field.
#[test]
fn an_unchanged_home_is_not_read_again_and_nobody_can_tell() {
    let dir = Dir::new();
    let files = fixtures(&dir);
    assert!(files > 100, "{files}");
    wait_until_old();
    let first = scan(&dir, &[]);
    let lines = entries(&dir);
    // Two fixtures are empty files.
    assert!(lines + 5 > files, "{lines} of {files}");
    assert_eq!(scan(&dir, &["--no-cache"]), first);
    assert_eq!(scan(&dir, &[]), first);
    assert_eq!(entries(&dir), lines, "nothing is entered twice");
    if can_trace() {
        let opened = opened(&dir);
        assert!(opened.len() <= files - lines, "{opened:#?}");
    }
}

#[test]
fn an_edit_in_the_middle_is_seen_although_its_time_was_put_back() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", WHOLE);
    dir.write("other.jsonl", WHOLE);
    wait_until_old();
    assert!(scan(&dir, &[]).iter().all(|file| file["outcome"] == "clean"));
    assert_eq!(entries(&dir), 2);
    let before = fs::metadata(&path).unwrap();
    // A line is broken in a file with the same length, name, inode and time.
    let edited = WHOLE.replacen(r#""content":"go"}}"#, r#""content":"go"}]"#, 1);
    assert!(edited != WHOLE && edited.len() == WHOLE.len());
    fs::write(&path, edited).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.ino(), after.len(), after.mtime()), (before.ino(), before.len(), before.mtime()));
    let files = scan(&dir, &[]);
    assert_eq!((&files[0]["outcome"], &files[1]["outcome"]), (&"clean".into(), &"findings".into()));
}

/// Of a long file only the new bytes are read as long as they suffice, and the whole file once they do not.
#[test]
fn an_append_costs_its_new_bytes() {
    let dir = Dir::new();
    let lines = 2_500;
    let path = dir.write("s.jsonl", HEADER.to_string() + &talk(0..lines, 20_000));
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes > 50_000_000, "{bytes}");
    wait_until_old();
    let first = scan(&dir, &[]);
    assert_eq!(first[0]["outcome"], "clean");
    append(&path, &talk(lines..lines + 4, 1_000));
    wait_until_old();
    if can_trace() {
        let read = read_bytes(&dir, &path);
        eprintln!("{read} bytes read of {bytes}");
        assert!(read < 100_000, "{read}");
    }
    let known = scan(&dir, &[]);
    assert_eq!(known[0]["entries"], lines + 5);
    assert_eq!(known, scan(&dir, &["--no-cache"]));
    // The verdict entered after that append serves the next one.
    append(&path, &talk(lines + 4..lines + 6, 1_000));
    wait_until_old();
    if can_trace() {
        assert!(read_bytes(&dir, &path) < 100_000);
    }
    // A call without a result.
    let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}}],"stopReason":"toolUse"}"#;
    append(&path, &(pi(lines + 6, call) + &talk(lines + 7..lines + 9, 10)));
    wait_until_old();
    let broken = scan(&dir, &[]);
    assert_eq!(broken[0]["findings"][0]["code"], "P1");
    assert_eq!(broken, scan(&dir, &["--no-cache"]));
}

/// Each fixture is appended in steps to a known session: findings and tokens are those of a full look.
#[test]
fn what_every_fixture_says_is_judged_behind_a_known_session() {
    let dir = Dir::new();
    let claude = |number: usize| {
        let (role, parent) = if number.is_multiple_of(2) {
            ("user", number.wrapping_sub(1))
        } else {
            ("assistant", number - 1)
        };
        let parent = if number == 0 { "null".into() } else { format!("\"c{parent}\"") };
        let text = "word ".repeat(200);
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"S","cwd":"/w","type":"{role}","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}},"uuid":"c{number}","timestamp":"2026-07-01T10:00:00.000Z"}}"#
        ) + "\n"
    };
    let chat = "{\"role\":\"user\",\"content\":\"go\"}\n{\"role\":\"assistant\",\"content\":\"done\"}\n";
    let long = [
        ("pi", HEADER.to_string() + &talk(0..80, 1_000)),
        ("claude-code", (0..80).map(claude).collect()),
        ("openai-chat", chat.repeat(1_300)),
    ];
    let mut more = Vec::new();
    for (format, before) in long {
        assert!(before.len() > 66_000, "{}", before.len());
        for case in fs::read_dir(root().join("fixtures").join(format)).into_iter().flatten() {
            let case = case.unwrap();
            let Ok(text) = fs::read_to_string(case.path().join("in.jsonl")) else { continue };
            let name = format!("{format}-{}.jsonl", case.file_name().display());
            more.push((dir.write(name, &before), text));
        }
    }
    assert!(more.len() > 100, "{}", more.len());
    wait_until_old();
    scan(&dir, &[]);
    for step in 0..3 {
        for (path, text) in &more {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (from, to) = (lines.len() * step / 3, lines.len() * (step + 1) / 3);
            append(path, &lines[from..to].concat());
        }
        wait_until_old();
        let known = scan(&dir, &[]);
        assert_eq!(known, scan(&dir, &["--no-cache"]), "step {step}");
    }
}

/// A rewritten file that is longer is noticed by its beginning or by where it ended.
#[test]
fn a_file_that_was_written_anew_is_looked_at_as_a_whole() {
    let dir = Dir::new();
    let text = HEADER.to_string() + &talk(0..80, 1_000);
    let path = dir.write("s.jsonl", &text);
    wait_until_old();
    scan(&dir, &[]);
    let places = [text.find("\"go").unwrap_or(200), text.rfind("stopReason").unwrap()];
    for at in places {
        let mut edited = text.clone() + &talk(80..82, 1_000);
        edited.replace_range(at..=at, "\u{1}");
        fs::write(&path, &edited).unwrap();
        wait_until_old();
        let looked = scan(&dir, &[]);
        assert_eq!(looked, scan(&dir, &["--no-cache"]));
        assert_ne!(looked[0]["outcome"], "clean", "{at}");
    }
}

#[test]
fn what_changed_just_now_is_not_entered() {
    let dir = Dir::new();
    dir.write("s.jsonl", WHOLE);
    scan(&dir, &[]);
    assert_eq!(entries(&dir), 0);
}

#[test]
fn another_policy_looks_for_itself_and_a_limit_of_time_is_never_entered() {
    let dir = Dir::new();
    dir.write("s.jsonl", WHOLE);
    wait_until_old();
    scan(&dir, &[]);
    let strict = scan(&dir, &["--max-file-size", "10"]);
    assert_eq!(strict[0]["findings"][0]["code"], "L1");
    assert_eq!((index(&dir).len(), entries(&dir)), (2, 2));
    assert_eq!(scan(&dir, &["--max-file-size", "10"]), strict);
    // Whether a prompt cache is warm depends on the time of the run.
    scan(&dir, &["--crowded-cache-ttl", "60"]);
    assert_eq!(entries(&dir), 2);
    // With many policies, only some verdicts stay.
    for bytes in 20..40 {
        scan(&dir, &["--max-file-size", &bytes.to_string()]);
    }
    assert!(index(&dir).len() <= 8, "{:?}", index(&dir));
}

#[test]
fn ci_keeps_nothing_unless_asked_and_a_key_switches_it_off() {
    let dir = Dir::new();
    dir.write("s.jsonl", WHOLE);
    wait_until_old();
    let scan = |variable: (&str, &str), more: &[&str]| {
        let mut command = dir.command();
        run(command.env(variable.0, variable.1).args(["scan", "."]).args(more), b"");
        entries(&dir)
    };
    assert_eq!(scan(("CI", "true"), &[]), 0);
    assert_eq!(scan(("TAILOR_CACHE", "false"), &[]), 0);
    assert_eq!(scan(("CI", "false"), &["--no-cache"]), 0);
    assert!(!folder(&dir).exists());
    assert_eq!(scan(("CI", "true"), &["--cache"]), 1);
}

#[test]
fn entries_of_files_that_are_gone_go_with_the_next_run_over_their_folder() {
    let dir = Dir::new();
    for name in ["a/gone.jsonl", "a/there.jsonl", "b/gone.jsonl"] {
        dir.write(name, WHOLE);
    }
    wait_until_old();
    scan(&dir, &[]);
    fs::remove_file(dir.path("a/gone.jsonl")).unwrap();
    fs::remove_file(dir.path("b/gone.jsonl")).unwrap();
    let about = |what: &str| fs::read_to_string(&index(&dir)[0]).unwrap().contains(what);
    dir.tailor(&["scan", "a"]);
    assert!(about("a/there") && !about("a/gone") && about("b/gone"));
    assert_eq!(index(&dir).len(), 1, "no file is left that was being written");
}

/// A damaged index costs a look, but is never an error.
#[test]
fn a_damaged_index_is_thrown_away_and_another_ones_is_not_used() {
    let dir = Dir::new();
    dir.write("s.jsonl", BROKEN);
    wait_until_old();
    let first = scan(&dir, &[]);
    let file = index(&dir).remove(0);
    let whole = fs::read(&file).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&folder(&dir)), mode(&file)), (0o700, 0o600));
    // Without a check, the missing finding would be believed.
    let at = whole.windows(4).position(|window| window == b"\"P1\"").unwrap();
    for damaged in [
        &b"\xff\n\n{}\t[]\t\n"[..],
        &whole[..whole.len() / 2],
        &[&whole[..at], b"\"P2\"", &whole[at + 4..]].concat(),
    ] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(scan(&dir, &[]), first);
        assert!(fs::read(&file).unwrap().ends_with(&whole), "it is entered again");
    }
    // Other users could have written it.
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    assert_eq!(scan(&dir, &[]), first);
    assert_eq!(mode(&index(&dir)[0]), 0o600);
    fs::set_permissions(folder(&dir), Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(scan(&dir, &[]), first);
    assert_eq!(entries(&dir), 0);
    // A link may lead anywhere.
    fs::remove_dir(folder(&dir)).unwrap();
    fs::create_dir(dir.home().join("elsewhere")).unwrap();
    fs::set_permissions(dir.home().join("elsewhere"), Permissions::from_mode(0o700)).unwrap();
    symlink(dir.home().join("elsewhere"), folder(&dir)).unwrap();
    assert_eq!(scan(&dir, &[]), first);
    assert_eq!(entries(&dir), 0);
}

#[test]
fn two_scans_at_once_leave_an_index_that_can_be_read() {
    let dir = Dir::new();
    for n in 0..200 {
        dir.write(format!("{n}.jsonl"), if n % 2 == 0 { WHOLE } else { BROKEN });
    }
    wait_until_old();
    let start = || {
        let mut command = dir.command();
        command.args(["scan", ".", "--format", "json"]).stdout(Stdio::piped()).spawn().unwrap()
    };
    let runs = [start(), start(), start()];
    let first = runs.map(|run| run.wait_with_output().unwrap().stdout.len() > 10_000);
    assert_eq!(first, [true; 3]);
    let lines = entries(&dir);
    assert!((200..=600).contains(&lines), "{lines}");
    assert_eq!(scan(&dir, &[]), scan(&dir, &["--no-cache"]));
    assert_eq!(entries(&dir), lines, "all of them are known");
}
