//! `tailor hook`, which agents run, and `tailor fix --wait`, which waits until the repair may be made.
//! `tests/agents/run --hooks` tests the agents themselves.

use crate::doctor::claude;
use crate::support::{BROKEN, Dir, WHOLE};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const CLAUDE: &str = ".claude/projects/-w/7e57c1a0-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl";

/// A Claude Code session that lost a result, in the home folder.
fn claude_session(dir: &Dir) -> PathBuf {
    dir.write(dir.home().join(CLAUDE), claude("/w"))
}

/// What an agent sends to its hooks.
fn event(path: &Path) -> Vec<u8> {
    json!({ "session_id": "s", "transcript_path": path, "cwd": "/w", "hook_event_name": "SessionStart", "new": [1] })
        .to_string()
        .into_bytes()
}

/// Whether the file changes within so many seconds.
fn changes(path: &Path, was: &[u8], seconds: u64) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        if fs::read(path).unwrap() != was {
            return true;
        }
        sleep(Duration::from_millis(50));
    }
    false
}

#[test]
fn the_hook_at_the_start_says_what_is_wrong_and_changes_nothing() {
    let dir = Dir::new();
    let path = claude_session(&dir);
    let was = fs::read(&path).unwrap();
    let said = dir.pipe(&event(&path), &["hook", "start"]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(
        said["systemMessage"],
        format!(
            "Tailor: this session is broken (P1). Quit Claude Code and run: tailor fix --select P1 ~/{CLAUDE}; \
             claude --resume 7e57c1a0-1a2b-4c3d-8e4f-5a6b7c8d9e0f"
        )
    );
    assert_eq!(fs::read(&path).unwrap(), was);
}

#[test]
fn a_healthy_session_and_one_that_is_not_written_yet_are_not_worth_a_word() {
    let dir = Dir::new();
    let whole = dir.write("whole.jsonl", WHOLE);
    for (path, hook) in [(whole, "start"), (dir.path("new.jsonl"), "start"), (dir.path("new.jsonl"), "end")] {
        let said = dir.pipe(&event(&path), &["hook", hook]);
        assert_eq!((said.status, said.text().as_str(), said.stderr.as_str()), (0, "", ""), "{hook}");
    }
}

#[test]
fn a_hook_never_fails() {
    let dir = Dir::new();
    for input in ["", "no JSON", "7", r#"{"transcript_path":7}"#] {
        for hook in ["start", "end"] {
            let said = dir.pipe(input.as_bytes(), &["hook", hook]);
            assert_eq!((said.status, said.text().as_str()), (0, ""), "{input}");
            assert_eq!(said.stderr.lines().count(), 1, "{input}: {}", said.stderr);
        }
    }
    let said = dir.pipe(br#"{"transcript_path":null}"#, &["hook", "end"]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
}

#[test]
fn the_hook_at_the_end_returns_at_once_and_the_repair_comes_once_the_agent_is_gone() {
    let dir = Dir::new();
    let path = claude_session(&dir);
    let was = fs::read(&path).unwrap();
    fs::write(dir.path("event"), event(&path)).unwrap();
    // An agent is not a shell, so this shell has another name.
    let agent = dir.path("agent");
    symlink("/bin/sh", &agent).unwrap();
    let script =
        format!("'{}' hook end <event && touch returned && sleep 3; :", env!("CARGO_BIN_EXE_tailor"));
    let mut command = dir.command_of(&agent);
    let mut agent = command.env("PATH", "/usr/bin:/bin").args(["-c", &script]).spawn().unwrap();
    assert!(!changes(&path, &was, 2));
    assert!(dir.path("returned").exists() && agent.try_wait().unwrap().is_none());
    agent.wait().unwrap();
    assert!(changes(&path, &was, 30));
    // Lets the other process finish before its folder is deleted.
    sleep(Duration::from_millis(500));
    assert!(dir.tailor(&["scan", path.to_str().unwrap()]).text().contains("nothing wrong"));
}

#[test]
fn a_fix_that_waits_gives_up_in_the_end() {
    let dir = Dir::new();
    let path = dir.write("broken.jsonl", BROKEN);
    let agent = File::options().append(true).open(&path).unwrap();
    let began = Instant::now();
    let said = dir.tailor(&["fix", "--wait", "1500ms", path.to_str().unwrap()]);
    assert!(began.elapsed() >= Duration::from_millis(1500), "{:?}", began.elapsed());
    assert!(said.status == 1 && said.text().contains("deferred"), "{}", said.text());
    drop(agent);
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    // If the deferral asks for more time than allowed, and for nothing else, it does not wait at all.
    fs::write(&path, BROKEN).unwrap();
    let began = Instant::now();
    let said = dir.tailor(&["fix", "--settle", "300", "--wait", "60", path.to_str().unwrap()]);
    assert!(said.text().contains("modified") && began.elapsed() < Duration::from_secs(30), "{}", said.text());
}
