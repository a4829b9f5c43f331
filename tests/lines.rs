//! `--lines`: many sessions on one standard input. Each line is told of and repaired as in a file, packed or not, and what is
//! no session goes to the quarantine.

use crate::support::{Dir, root, run};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// A data set with broken rows among 2,000 sound ones.
fn rows() -> String {
    let sound = |n| {
        format!(r#"{{"messages":[{{"role":"user","content":"{n}"}},{{"role":"assistant","content":"ok"}}]}}"#)
    };
    let mut rows: Vec<String> = (0..2000).map(sound).collect();
    rows[7] = "not JSON".to_string();
    rows.insert(9, String::new());
    rows.join("\n") + "\n"
}

fn objects(text: &[u8]) -> Vec<Value> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn findings(text: &[u8]) -> Vec<(u64, String)> {
    let row = |found: &Value| found["row"].as_u64().unwrap();
    let code = |found: &Value| found["code"].as_str().unwrap_or_default().to_string();
    objects(text).iter().map(|found| (row(found), code(found))).collect()
}

/// A finding of a line as a finding of the file: where it is, all that is said of it, but not what recognises it there.
fn in_file(mut found: Value) -> Value {
    let fields = found.as_object_mut().unwrap();
    assert_eq!(fields.remove("type").unwrap(), "row");
    let (row, line) = (fields.remove("row").unwrap(), fields["line"].as_u64().unwrap());
    fields["line"] = json!(row.as_u64().unwrap() + line);
    without_fingerprint(found)
}

fn without_fingerprint(mut found: Value) -> Value {
    found.as_object_mut().unwrap().remove("fingerprint").unwrap();
    found
}

#[test]
fn each_line_says_what_a_scan_of_the_file_says() {
    for folder in fs::read_dir(root().join("fixtures/openai-dataset")).unwrap() {
        let file = folder.unwrap().path().join("in.jsonl");
        let Ok(text) = fs::read(&file) else { continue };
        if file.with_file_name("policy.args").exists() {
            continue;
        }
        let dir = Dir::new();
        let path = dir.write("s.jsonl", &text);
        let scan = dir.tailor(&["scan", "--format", "json", path.to_str().unwrap()]);
        let of_file: Vec<Value> =
            scan.file()["findings"].as_array().unwrap().iter().cloned().map(without_fingerprint).collect();
        let lines = dir.pipe(&text, &["scan", "--lines", "-"]);
        let lines: Vec<Value> = objects(&lines.stdout).into_iter().map(in_file).collect();
        assert_eq!(lines, of_file, "{}", file.display());
    }
}

#[test]
fn what_is_passed_on_is_what_fix_makes_of_the_file() {
    let (dir, text) = (Dir::new(), rows());
    let path = dir.write("s.jsonl", &text);
    let lines = dir.pipe(text.as_bytes(), &["fix", "--lines", "-"]);
    assert_eq!(lines.status, 1, "{}", lines.stderr);
    assert!(lines.stderr.contains("2001 rows"), "{}", lines.stderr);
    dir.tailor(&["fix", "--settle", "0", path.to_str().unwrap()]);
    let of_file = fs::read_to_string(&path).unwrap();
    let lines = String::from_utf8(lines.stdout).unwrap();
    // Of a file the original is kept elsewhere, so the line that is no session may go.
    let (passed, sound): (Vec<&str>, Vec<&str>) =
        (lines.lines().collect(), lines.lines().filter(|line| *line != "not JSON").collect());
    assert_eq!(passed.len(), text.lines().count());
    assert_eq!(sound, of_file.lines().filter(|line| *line != "not JSON").collect::<Vec<_>>());
}

/// Torn, empty, of another kind: `scan` and `fix` call the same lines unreadable, and both fail.
#[test]
fn scan_and_fix_agree_on_what_is_unreadable() {
    let sound = rows();
    let sound = sound.lines().next().unwrap();
    for junk in ["not JSON", "{", "{}", "[1]", "12", r#"{"messages":12}"#, "\u{0}", &sound[..sound.len() / 2]]
    {
        let (dir, text) = (Dir::new(), format!("{sound}\n{junk}\n{sound}\n"));
        let unreadable = |command: &str| {
            let said = dir.pipe(text.as_bytes(), &[command, "--lines", "-"]);
            (said.status, said.stderr.contains("1 unreadable"))
        };
        let scan = unreadable("scan");
        assert_eq!(scan, unreadable("fix"), "{junk:?}");
        assert!(scan.0 == 1 || !scan.1, "{junk:?}");
    }
    let dir = Dir::new();
    let text = format!("{sound}\nnot JSON\n");
    for command in ["scan", "fix"] {
        let said = dir.pipe(text.as_bytes(), &[command, "--lines", "-"]);
        assert!(said.status == 1 && said.stderr.contains("1 unreadable"), "{}", said.stderr);
        let said = dir.pipe(text.as_bytes(), &[command, "--lines", "--exit-zero", "-"]);
        assert_eq!(said.status, 0, "{}", said.stderr);
    }
}

#[test]
fn what_is_bad_goes_to_the_quarantine_and_is_told_of() {
    let (dir, text) = (Dir::new(), rows());
    let bad = dir.path("bad.jsonl");
    let found = dir.path("found.jsonl.zst");
    let options = ["--quarantine", bad.to_str().unwrap(), "--findings", found.to_str().unwrap()];
    let lines = dir.pipe(text.as_bytes(), &[&["fix", "--lines"], &options[..], &["-"]].concat());
    assert_eq!(lines.status, 0, "what remains is in the quarantine: {}", lines.stderr);
    assert_eq!(fs::read(&bad).unwrap(), b"not JSON\n");
    let rest: Vec<&str> = text.lines().filter(|line| *line != "not JSON").collect();
    assert_eq!(String::from_utf8(lines.stdout).unwrap().lines().collect::<Vec<_>>(), rest);
    let told = findings(&zstd::decode_all(&fs::read(&found).unwrap()[..]).unwrap());
    assert_eq!(told, [(7, "B9".to_string())]);
    let private = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&bad).unwrap().permissions());
    assert_eq!(private & 0o077, 0, "rows are somebody's words");
}

/// Neither waits for a line that may come in an hour; a damaged line at the beginning waits for the first one that shows its
/// format.
#[test]
fn a_line_is_passed_on_while_the_next_one_is_not_there() {
    let text = rows();
    let lines: Vec<&str> = text.lines().collect();
    for (command, sent) in [("fix", [lines[7], lines[0]]), ("scan", [lines[0], lines[7]])] {
        let dir = Dir::new();
        let mut child = dir.command();
        child
            .args([command, "--lines", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let (mut stdin, mut stdout) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        for again in 0..3 {
            for line in sent {
                writeln!(stdin, "{line}").unwrap();
            }
            let mut read = String::new();
            // Nothing is closed yet: this would wait for ever.
            stdout.read_line(&mut read).unwrap();
            if command == "fix" {
                assert_eq!(read.trim_end(), sent[0]);
                read.clear();
                stdout.read_line(&mut read).unwrap();
                assert_eq!(read.trim_end(), sent[1]);
            } else {
                assert_eq!(serde_json::from_str::<Value>(&read).unwrap()["row"], 2 * again + 1);
            }
        }
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

/// However the input is cut into pieces, the format is that of the first line that shows one.
#[test]
fn what_comes_in_pieces_is_what_comes_at_once() {
    let (dir, text) = (Dir::new(), format!("not JSON\n\n{}", rows()));
    let at_once = dir.pipe(text.as_bytes(), &["scan", "--lines", "-"]);
    let mut child = dir.command();
    let child = child.args(["scan", "--lines", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for piece in text.as_bytes().chunks(997).take(40) {
        stdin.write_all(piece).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    stdin.write_all(&text.as_bytes()[40 * 997..]).unwrap();
    drop(stdin);
    let said = child.wait_with_output().unwrap();
    assert_eq!(objects(&said.stdout), objects(&at_once.stdout));
}

/// Sessions of several lines, of several formats, each ended by a NUL.
#[test]
fn sessions_of_several_lines_end_with_nul() {
    let names =
        ["fixtures/pi/p1-lost-result", "fixtures/pi/s1-head-and-tail", "fixtures/claude/p1-lost-result"];
    let names = names.map(|name| root().join(name)).into_iter().filter(|name| name.join("in.jsonl").exists());
    let texts: Vec<Vec<u8>> = names.map(|name| fs::read(name.join("in.jsonl")).unwrap()).collect();
    assert!(texts.len() > 1);
    let dir = Dir::new();
    let joined: Vec<u8> = texts.iter().flat_map(|text| [text, &b"\0"[..]].concat()).collect();
    let scan = objects(&dir.pipe(&joined, &["scan", "--lines", "-0", "-"]).stdout);
    let fix = dir.pipe(&joined, &["fix", "--lines", "--null", "-"]).stdout;
    let fixed: Vec<&[u8]> = fix.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0).collect();
    assert_eq!(fixed.len(), texts.len());
    for (row, text) in texts.iter().enumerate() {
        let alone = dir.pipe(text, &["scan", "--json", "-"]);
        let alone: Vec<Value> =
            alone.file()["findings"].as_array().unwrap().iter().cloned().map(without_fingerprint).collect();
        let own = scan.iter().filter(|found| found["row"] == row).map(|found| {
            let mut found = without_fingerprint(found.clone());
            found.as_object_mut().unwrap().retain(|name, _| name != "type" && name != "row");
            found
        });
        assert_eq!(own.collect::<Vec<_>>(), alone);
        assert_eq!(fixed[row], dir.pipe(text, &["fix", "-"]).stdout);
    }
}

/// A block, what waits behind it, and what is made of it are all.
#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_stream() {
    let dir = Dir::new();
    let sound = rows().lines().next().unwrap().replace(r#""ok""#, &format!(r#""{}""#, "ok ".repeat(20_000)));
    let peak = |times: u32| {
        let mut child = dir.command();
        child.args(["fix", "--lines", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for _ in 0..times {
            writeln!(stdin, "{sound}").unwrap();
        }
        // It reads as fast as it works, so it has seen nearly all of it.
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let (some, more) = (peak(800), peak(3200));
    assert!(more < some + (16 << 10), "{some} kB of 48 MB, {more} kB of 192 MB");
    assert!(more < 160 << 10, "{more} kB");
}

#[test]
fn what_has_no_effect_is_refused() {
    let dir = Dir::new();
    for words in [
        &["scan", "--lines", "--format", "sarif", "-"][..],
        &["fix", "--lines", "--format", "junit", "-"],
        &["scan", "--lines", "-o", "x", "-"],
        &["scan", "--lines", "--baseline", "x", "-"],
        &["scan", "--lines", "--statistics", "-"],
        &["fix", "--lines", "--diff", "-"],
        &["fix", "--lines", "--copy-to", "x", "-"],
    ] {
        let refused = dir.pipe(b"", words);
        assert!(refused.status == 2 && refused.stderr.contains("--lines"), "{words:?}: {}", refused.stderr);
    }
    assert_eq!(dir.pipe(b"", &["scan", "--lines", "--json", "-"]).status, 0);
    assert_eq!(dir.pipe(b"", &["scan", "-0", "-"]).status, 2, "only with --lines");
}

#[test]
fn what_comes_packed_goes_packed() {
    let (dir, text) = (Dir::new(), rows());
    let plain = dir.pipe(text.as_bytes(), &["fix", "--lines", "-"]);
    let packed = dir.pipe(&zstd::encode_all(text.as_bytes(), 1).unwrap(), &["fix", "--lines", "-"]);
    assert_eq!(zstd::decode_all(&packed.stdout[..]).unwrap(), plain.stdout);
    let gzip = |arguments: &[&str], input: &[u8]| run(Command::new("gzip").args(arguments), input).stdout;
    // Two members, as `cat a.gz b.gz` makes them.
    let (one, other) = text.as_bytes().split_at(text.len() / 2);
    let packed = dir.pipe(&[gzip(&["-c"], one), gzip(&["-c"], other)].concat(), &["fix", "--lines", "-"]);
    assert_eq!(gzip(&["-dc"], &packed.stdout), plain.stdout);
    let torn = dir.pipe(&zstd::encode_all(text.as_bytes(), 1).unwrap()[..999], &["fix", "--lines", "-"]);
    assert_eq!(torn.status, 2, "{}", torn.stderr);
}

#[test]
fn lines_are_those_of_standard_input() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", rows());
    for arguments in [&["scan", "--lines", path.to_str().unwrap()][..], &["fix", "--lines"]] {
        let refused = dir.tailor(arguments);
        assert!(refused.status == 2 && refused.stderr.contains("pass `-`"), "{}", refused.stderr);
    }
    assert_eq!(dir.tailor(&["scan", "--quarantine", "q", "-"]).status, 2, "only with --lines");
    assert_eq!(dir.pipe(b"", &["fix", "--lines", "-"]).status, 0);
}
