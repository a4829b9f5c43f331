//! A session whose agent has quit: repaired, undone, and killed at any moment. On Linux as macOS and Windows do it as well: there
//! nobody is kept out, nothing says who has a file open, and names are not exchanged.

use super::{ONE_AT_A_TIME, program};
use crate::support::{BROKEN, Dir, FinishedRun, make_old, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The ways in which a file is replaced here: the system's own, and where that is Linux also with second names and with one only.
const WAYS: &[&str] = if cfg!(target_os = "linux") { &["", "linked", "one-name"] } else { &[""] };

fn plain(dir: &Dir, way: &str, arguments: &[&str]) -> Command {
    let mut command = dir.command_of(program());
    command.args(arguments).args(["--settle", "0", "--vault"]).arg(dir.home().join("vault"));
    if !way.is_empty() {
        command.env("TAILOR_PLAIN_SYSTEM", way);
    }
    command
}

/// Whether the old file steps aside, so that nothing is at the path if Tailor dies at that moment.
fn steps_aside(way: &str) -> bool {
    cfg!(windows) || way == "one-name"
}

fn said(dir: &Dir, way: &str, arguments: &[&str]) -> FinishedRun {
    run(&mut plain(dir, way, arguments), b"")
}

fn old_session(dir: &Dir) -> PathBuf {
    let path = dir.write("s.jsonl", BROKEN);
    make_old(&path);
    path
}

/// The old files in the vault.
fn wholes(dir: &Dir) -> Vec<PathBuf> {
    let runs = dir.home().join("vault/runs");
    let folders =
        fs::read_dir(runs).unwrap().flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let paths = folders.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "whole")).collect()
}

#[test]
fn a_repair_keeps_the_whole_old_file_and_is_undone() {
    // Another scenario may have the system refuse leases.
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for way in WAYS {
        let dir = Dir::new();
        let is_plain = !(way.is_empty() && cfg!(target_os = "linux"));
        let path = old_session(&dir);
        let fixed = said(&dir, way, &["fix", "s.jsonl", "--format", "json"]);
        assert_eq!(fixed.status, 0, "{}{}", fixed.text(), fixed.stderr);
        let guarantee = if is_plain { "quiet" } else { "lease" };
        assert!(fixed.text().contains(&format!(r#""guarantee":"{guarantee}""#)), "{}", fixed.text());
        let kept: Vec<String> = wholes(&dir).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!(kept, vec![BROKEN; usize::from(is_plain)], "{way}");
        assert_eq!(dir.names(), ["s.jsonl"]);
        let undone = said(&dir, way, &["undo", "--to-original", "s.jsonl"]);
        assert_eq!(undone.status, 0, "{}", undone.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    }
}

/// What takes out secrets leaves no old file, and none of an earlier run.
#[test]
fn no_old_file_keeps_a_secret() {
    for way in WAYS {
        let dir = Dir::new();
        let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let path = dir.write("s.jsonl", BROKEN.replace("well?", &format!("my token is {secret}")));
        make_old(&path);
        assert_eq!(said(&dir, way, &["fix", "s.jsonl"]).status, 0);
        let masked = said(&dir, way, &["fix", "--only", "secrets", "s.jsonl"]);
        assert_eq!(masked.status, 0, "{}{}", masked.text(), masked.stderr);
        assert!(!fs::read_to_string(&path).unwrap().contains(&secret), "{way}: {}", masked.text());
        assert!(wholes(&dir).is_empty(), "{way}");
    }
}

/// An old file of an earlier run goes if it holds a secret that is to be forgotten.
#[test]
fn a_forgotten_secret_is_in_no_old_file() {
    for way in WAYS {
        let dir = Dir::new();
        let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let path = dir.write("s.jsonl", BROKEN.replace("well?", &format!("my token is {secret}")));
        make_old(&path);
        let found =
            run(dir.command_of(program()).args(["scan", "--only", "secrets", "--json", "s.jsonl"]), b"");
        let hash = found.file()["findings"][0]["secret"]["secret_hash"].as_str().unwrap().to_string();
        assert_eq!(said(&dir, way, &["fix", "s.jsonl"]).status, 0);
        let kept = wholes(&dir).len();
        let vault = dir.home().join("vault");
        for (dry_run, left) in [(&["--dry-run"][..], kept), (&[], 0)] {
            let mut forget = dir.command_of(program());
            forget.args(["forget", "--secret", &hash, "--json", "--vault"]).arg(&vault).args(dry_run);
            assert_eq!(run(&mut forget, b"").json()[0]["runs"], u64::from(kept > 0), "{way}");
            assert_eq!(wholes(&dir).len(), left, "{way}");
        }
    }
}

/// A running agent is named, unless the user says that none runs.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_runs_is_waited_for() {
    let dir = Dir::new();
    let path = old_session(&dir);
    let agent = dir.home().join("pi");
    fs::copy("/bin/sleep", &agent).unwrap();
    let mut agent = Command::new(&agent).arg("60").spawn().unwrap();
    let waits =
        run(dir.command_of(program()).env("TAILOR_PLAIN_SYSTEM", "linked").args(["fix", "s.jsonl"]), b"");
    let asked = said(&dir, "linked", &["fix", "s.jsonl"]);
    agent.kill().unwrap();
    let pid = agent.id();
    agent.wait().unwrap();
    assert!(waits.text().contains(&format!("pi is running (process {pid})")), "{}", waits.text());
    assert!(waits.text().contains("quit pi first"), "{}", waits.text());
    assert_eq!(asked.status, 0, "{}{}", asked.text(), asked.stderr);
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
}

/// Killed at any moment, the old file or the new one is at the path, or comes back there with the next command.
#[test]
fn whenever_it_is_killed_old_or_new_is_there() {
    let kills = if std::env::var_os("TAILOR_THOROUGH").is_some() { 100 } else { 8 };
    for way in WAYS {
        let (new, takes) = repaired(way);
        for kill in 0..kills {
            let dir = Dir::new();
            let path = old_session(&dir);
            let mut command = plain(&dir, way, &["fix", "s.jsonl"]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(takes * kill / kills);
            child.kill().unwrap();
            child.wait().unwrap();
            if path.exists() {
                assert_is_one_of(&path, &new);
            } else {
                assert!(steps_aside(way), "{way}, {kill}");
            }
            let after = said(&dir, way, &["fix", "s.jsonl"]);
            assert_eq!(after.status, 0, "{way}, {kill}: {}{}", after.text(), after.stderr);
            assert_eq!(fs::read_to_string(&path).unwrap(), new, "{way}, {kill}");
            assert_eq!(dir.names(), ["s.jsonl"], "{way}, {kill}");
            let undone = said(&dir, way, &["undo", "s.jsonl"]);
            assert_eq!(undone.status, 0, "{way}, {kill}: {}{}", undone.text(), undone.stderr);
            assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN, "{way}, {kill}");
        }
    }
}

/// The repaired text, and how long that takes.
fn repaired(way: &str) -> (String, Duration) {
    let dir = Dir::new();
    let path = old_session(&dir);
    let began = Instant::now();
    assert_eq!(said(&dir, way, &["fix", "s.jsonl"]).status, 0);
    (fs::read_to_string(path).unwrap(), began.elapsed())
}

fn assert_is_one_of(path: &Path, new: &str) {
    let now = fs::read_to_string(path).unwrap();
    assert!(now == BROKEN || now == new, "{now}");
}
