//! `--lines`: many sessions on one standard input. Each line is told of and repaired as in a file, packed or not, and what is
//! no session goes to the quarantine.

use crate::support::{Dir, root, run};
use serde_json::Value;
use std::fs;
use std::process::Command;

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

fn findings(text: &[u8]) -> Vec<(u64, String)> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    read.map(|found| (found["row"].as_u64().unwrap(), found["code"].as_str().unwrap_or_default().to_string()))
        .collect()
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
        let of_file = scan.file()["findings"].as_array().unwrap().clone();
        let of_file: Vec<(u64, String)> = of_file
            .iter()
            .map(|found| (found["line"].as_u64().unwrap() - 1, found["code"].as_str().unwrap().to_string()))
            .collect();
        let lines = dir.pipe(&text, &["scan", "--lines", "-"]);
        assert_eq!(findings(&lines.stdout), of_file, "{}", file.display());
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
    let of_file = fs::read(&path).unwrap();
    let made = |text: &[u8]| text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{")).count();
    assert_eq!(made(&lines.stdout), made(&of_file));
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
    let passed = lines.stdout.split(|byte| *byte == b'\n').count();
    assert_eq!(passed, text.split('\n').count() - 1, "no other row is lost");
    let told = findings(&zstd::decode_all(&fs::read(&found).unwrap()[..]).unwrap());
    assert!(told.iter().any(|(row, _)| *row == 7), "{told:?}");
    let private = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&bad).unwrap().permissions());
    assert_eq!(private & 0o077, 0, "rows are somebody's words");
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
