//! Few threads, little memory, users that a container does not know: the work is done, or the message says why not, but
//! the program never panics. The tests' runner checks that for each run.

use crate::support::{BROKEN, Dir, FinishedRun, give_to_powerless, is_root, run, skipped};
use std::os::unix::fs::chown;

/// Memory limit for a damaged session of 800 kB with a record every two bytes.
const DAMAGED_DATA_MAX: u64 = 112 << 20;

/// Repairs a session under limits of `prlimit`; `None` if limits cannot be set here.
fn fix_under(limits: &[&str], text: &str) -> Option<FinishedRun> {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", text);
    give_to_powerless(&path);
    give_to_powerless(&dir.files());
    let mut command = dir.powerless_under(&[&["prlimit"], limits].concat());
    let run = run(command.args(["fix", "--settle", "0", "--format", "json", "."]), b"");
    if run.stderr.starts_with("prlimit:") {
        skipped(&format!("no limit may be set here: {}", run.stderr));
        return None;
    }
    Some(run)
}

#[test]
fn one_thread_is_enough() {
    for limit in ["--nproc=1", "--nproc=2", "--nproc=3"] {
        let Some(run) = fix_under(&[limit], BROKEN) else { return };
        assert_eq!(run.file()["outcome"], "fixed", "{limit}: {}", run.stderr);
    }
}

/// There may be no memory for another thread's stack.
#[test]
fn little_room_for_stacks_is_enough() {
    for megabytes in [64_u64, 72, 96, 256] {
        let Some(run) = fix_under(&[&format!("--as={}", megabytes << 20)], BROKEN) else { return };
        assert_eq!(run.file()["outcome"], "fixed", "{megabytes} MiB: {}", run.stderr);
    }
}

/// What is remembered of a record is hundreds of times as long as the shortest record.
#[test]
fn a_line_of_a_million_records_fits_into_64_megabytes() {
    for line in ["{}".repeat(1_000_000), "{}".repeat(1_000_000) + "x"] {
        let text = format!("{BROKEN}{line}\n");
        let Some(run) = fix_under(&[&format!("--data={}", 64_u64 << 20)], &text) else { return };
        let file = run.file();
        assert_eq!(file["outcome"], "fixed", "{}", run.stderr);
        assert_eq!(file["remaining"], 1, "{file}");
        let found = file["findings"].as_array().unwrap();
        assert!(found.iter().any(|found| found["code"] == "B9" && found["fix"] == "none"), "{file}");
    }
}

#[test]
fn junk_of_hundreds_of_thousands_of_lines_fits_into_64_megabytes() {
    let text = format!("{BROKEN}{}", "abc\n".repeat(200_000));
    let Some(run) = fix_under(&[&format!("--data={}", 64_u64 << 20)], &text) else { return };
    assert_eq!(run.file()["outcome"], "fixed", "{}", run.stderr);
    assert_eq!(run.file()["remaining"], 0, "{}", run.stderr);
}

/// Scans a session and repairs it in as many runs as necessary, each with little memory. Returns the result.
fn mend_in_little_memory(text: &str, findings: u64) -> Option<String> {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", text);
    give_to_powerless(&path);
    give_to_powerless(&dir.files());
    let limited = |arguments: &[&str]| {
        let mut command = dir.powerless_under(&["prlimit", &format!("--data={DAMAGED_DATA_MAX}")]);
        run(command.args(arguments).args(["--format", "json", "."]), b"")
    };
    let scanned = limited(&["scan"]);
    if scanned.stderr.starts_with("prlimit:") {
        skipped(&format!("no limit may be set here: {}", scanned.stderr));
        return None;
    }
    assert_eq!(scanned.file()["outcome"], "findings", "{}", scanned.stderr);
    assert_eq!(count(&scanned.file()["findings"]), findings);
    let tried = limited(&["fix", "--settle", "0", "--dry-run"]);
    assert_eq!(tried.file()["outcome"], "would-fix", "{}", tried.stderr);
    let mut remaining = findings;
    while remaining > 0 {
        let mended = limited(&["fix", "--settle", "0"]);
        let file = mended.file();
        assert_eq!(file["outcome"], "fixed", "{}", mended.stderr);
        assert_eq!(count(&file["findings"]), remaining, "as many as the last run has left");
        let left = file["remaining"].as_u64().unwrap();
        assert!(left < remaining, "each run makes some of the changes");
        let again = file["reason"].as_str().is_some_and(|reason| reason.contains("run tailor fix again"));
        assert_eq!(again, left > 0, "{}", file["reason"]);
        remaining = left;
    }
    Some(std::fs::read_to_string(path).unwrap())
}

/// How many findings a list stands for. Repeated findings are listed once.
fn count(findings: &serde_json::Value) -> u64 {
    let listed = findings.as_array().unwrap();
    assert!(listed.len() < 10_000);
    listed.iter().map(|finding| 1 + finding["more"].as_u64().unwrap_or(0)).sum()
}

#[test]
fn junk_between_a_hundred_thousand_records_is_mended_in_little_memory() {
    let text = format!("{BROKEN}{}", "abc\n{}\n".repeat(114_000));
    let Some(after) = mend_in_little_memory(&text, 114_001) else { return };
    assert!(!after.contains("abc"));
    assert_eq!(after.matches("\n{}").count(), 114_000);
}

#[test]
fn lines_of_a_thousand_records_are_mended_in_little_memory() {
    // As many records as may be held in so little memory.
    let lines = 100;
    let text = format!("{BROKEN}{}", ("{}".repeat(1000) + "\n").repeat(lines));
    let Some(after) = mend_in_little_memory(&text, lines as u64 * 999 + 1) else { return };
    assert!(!after.contains("{}{}"));
    assert_eq!(after.matches("\n{}").count(), lines * 1000);
}

#[test]
fn a_group_that_the_container_does_not_know_is_named() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    if !is_root() || chown(&path, None, Some(4321)).is_err() {
        skipped("only root can give a file to a group that a user namespace does not know");
        return;
    }
    let mut command = dir.command_of("unshare");
    command.env("PATH", "/usr/bin:/bin").args([
        "-r",
        env!("CARGO_BIN_EXE_tailor"),
        "fix",
        "--settle",
        "0",
        "s.jsonl",
    ]);
    let run = run(&mut command, b"");
    if run.stderr.starts_with("unshare:") {
        skipped(&format!("there are no user namespaces here: {}", run.stderr));
        return;
    }
    assert_eq!(run.status, 2, "{}{}", run.text(), run.stderr);
    assert!(run.stderr.contains("group 65534") && run.stderr.contains("--copy-to DIR"), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), BROKEN);
    assert_eq!(dir.names(), ["s.jsonl"]);
}
