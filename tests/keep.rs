//! `tailor keep`: what was deleted, emptied or rewritten comes back, as it was when it is asked for.

use crate::support::{BROKEN, Dir, FinishedRun, WHOLE};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

const NAME: &str = "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl";

/// Keeps what there is, later than the times of the files can tell.
fn now(dir: &Dir) -> Value {
    std::thread::sleep(Duration::from_millis(25));
    let run = dir.tailor(&["keep", "now", ".", "--json"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.json().remove(0)
}

fn ok(run: &FinishedRun) -> String {
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.text()
}

#[test]
fn a_session_comes_back_whatever_became_of_it() {
    let dir = Dir::new();
    let path = dir.write(NAME, BROKEN);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert_eq!(now(&dir)["grown"], 1);
    assert_eq!(now(&dir)["grown"], 0);
    fs::write(&path, WHOLE).unwrap();
    assert_eq!(now(&dir)["generations_ended"], 1);
    fs::write(&path, "").unwrap();
    now(&dir);
    fs::remove_file(&path).unwrap();
    assert_eq!(now(&dir)["generations_ended"], 1);
    let listed = dir.tailor(&["keep", "list", "--gone", "--json"]).json();
    let ends: Vec<&str> = listed.iter().map(|line| line["end"].as_str().unwrap()).collect();
    assert_eq!(ends, ["truncated", "emptied"]);
    assert!(listed[0]["title"].is_string(), "{listed:?}");
    let text = ok(&dir.tailor(&["keep", "restore", "0d0f7b2c"]));
    assert!(text.contains("restored, "), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), WHOLE);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let again = dir.tailor(&["keep", "restore", "0d0f7b2c"]);
    assert!(again.status == 2 && again.stderr.contains("--to PATH"), "{}", again.stderr);
    let first = listed[0]["seen"].as_str().unwrap();
    ok(&dir.tailor(&["keep", "restore", "0d0f7b2c", "--at", first, "--to", "new/folder/copy.jsonl"]));
    assert_eq!(fs::read_to_string(dir.path("new/folder/copy.jsonl")).unwrap(), BROKEN);
    assert!(!ok(&dir.tailor(&["keep", "list"])).contains("there now"));
    ok(&dir.tailor(&["keep", "check"]));
}

#[test]
fn what_cannot_be_looked_at_is_not_gone() {
    let dir = Dir::new();
    dir.write("a/one.jsonl", BROKEN);
    now(&dir);
    fs::remove_dir_all(dir.path("a")).unwrap();
    symlink("a", dir.path("a")).unwrap();
    assert!(dir.tailor(&["keep", "list", "--gone", "--json"]).json().is_empty());
    fs::remove_file(dir.path("a")).unwrap();
    assert_eq!(dir.tailor(&["keep", "list", "--gone", "--json"]).json().len(), 1);
}

#[test]
fn a_folder_comes_back_as_it_was_at_a_time() {
    let dir = Dir::new();
    dir.write("a/one.jsonl", BROKEN);
    dir.write("b/two.jsonl", WHOLE);
    now(&dir);
    let listed = dir.tailor(&["keep", "list", "two", "--json"]).json();
    let time = listed[0]["seen"].as_str().unwrap().to_string();
    std::thread::sleep(Duration::from_millis(25));
    fs::remove_dir_all(dir.path("a")).unwrap();
    dir.write("b/two.jsonl", BROKEN);
    now(&dir);
    let restore = ["keep", "restore", "--all", "--at", &time, "--to", "then"];
    assert_eq!(ok(&dir.tailor(&restore)).lines().count(), 2);
    let below = dir.files().canonicalize().unwrap();
    let then = dir.path("then").join(below.strip_prefix("/").unwrap());
    assert_eq!(fs::read_to_string(then.join("a/one.jsonl")).unwrap(), BROKEN);
    assert_eq!(fs::read_to_string(then.join("b/two.jsonl")).unwrap(), WHOLE);
}

/// What Tailor changed is told from what others changed, and each can be had again.
#[test]
fn a_repair_of_tailor_is_named() {
    let dir = Dir::new();
    dir.write(NAME, BROKEN);
    now(&dir);
    assert_eq!(dir.tailor(&["fix", ".", "--settle", "0"]).status, 0);
    now(&dir);
    let listed = dir.tailor(&["keep", "list", "--json"]).json();
    assert_eq!(listed[0]["end"], "mended by tailor");
    ok(&dir.tailor(&[
        "keep",
        "restore",
        "0d0f7b2c",
        "--at",
        listed[0]["seen"].as_str().unwrap(),
        "--to",
        "c",
    ]));
    assert_eq!(fs::read_to_string(dir.path("c")).unwrap(), BROKEN);
}

#[test]
fn nobody_else_can_read_it_and_no_link_is_followed() {
    let dir = Dir::new();
    dir.write("real/one.jsonl", WHOLE);
    now(&dir);
    let kept = dir.home().join(".state/tailor/kept");
    for folder in ["", "packs", "sessions"] {
        let folder = kept.join(folder);
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        for entry in
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
        {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        }
    }
    // The folder of the session has become a link to one of somebody else.
    fs::remove_dir_all(dir.path("real")).unwrap();
    now(&dir);
    fs::create_dir(dir.path("other")).unwrap();
    symlink(dir.path("other"), dir.path("real")).unwrap();
    ok(&dir.tailor(&["keep", "restore", "one.jsonl", "--to", "back.jsonl"]));
    assert_eq!(fs::read_to_string(dir.path("back.jsonl")).unwrap(), WHOLE);
    let there = dir.tailor(&["keep", "restore", "one.jsonl"]);
    assert_eq!(there.status, 2, "{}", there.text());
    assert!(fs::read_dir(dir.path("other")).unwrap().next().is_none());
}

#[test]
fn damage_is_found_and_the_rest_comes_back() {
    let dir = Dir::new();
    dir.write("one.jsonl", WHOLE);
    now(&dir);
    let packs = dir.home().join(".state/tailor/kept/packs");
    let pack = fs::read_dir(packs).unwrap().next().unwrap().unwrap().path();
    let mut text = fs::read(&pack).unwrap();
    let middle = text.len() / 2 + 30;
    text[middle] ^= 0xff;
    fs::write(&pack, text).unwrap();
    let check = dir.tailor(&["keep", "check", "--json"]);
    let lines = check.json();
    assert_eq!((check.status, lines.last().unwrap()["damaged_chunks"].as_u64()), (1, Some(1)));
    let refused = dir.tailor(&["keep", "restore", "one.jsonl", "--to", "back.jsonl"]);
    assert!(refused.status == 2 && refused.stderr.contains("--partly"), "{}", refused.stderr);
    assert!(!dir.path("back.jsonl").exists());
    let partly = dir.tailor(&["keep", "restore", "one.jsonl", "--to", "back.jsonl", "--partly", "--json"]);
    assert_eq!(partly.json()[0]["lost_bytes"], WHOLE.len());
}

#[test]
fn nothing_is_kept_until_somebody_asks() {
    let dir = Dir::new();
    dir.write("one.jsonl", WHOLE);
    for command in ["list", "check"] {
        let run = dir.tailor(&["keep", command]);
        assert!(run.status == 0 && run.stderr.contains("tailor keep now"), "{}", run.stderr);
    }
    assert_eq!(dir.tailor(&["keep", "restore", "one.jsonl"]).status, 2);
    assert!(!dir.home().join(".state/tailor/kept").exists());
}

/// `doctor` says what can come back, and `explain` the command for the session that an agent misses.
#[test]
fn what_can_come_back_is_said() {
    let dir = Dir::new();
    let path = dir.write(NAME, WHOLE);
    let error = "No conversation found with session ID: 0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f";
    now(&dir);
    fs::remove_file(&path).unwrap();
    // Nobody has looked since.
    let text = ok(&dir.tailor(&["explain", error]));
    assert!(text.contains("It is on the disk no more, and is kept."), "{text}");
    assert!(ok(&dir.tailor(&["keep", "list", "--gone"])).contains("gone since"));
    now(&dir);
    let text = ok(&dir.tailor(&["explain", error]));
    let command = text.lines().find_map(|line| line.strip_prefix("tailor keep restore ")).unwrap();
    assert_eq!(
        dir.tailor(&["explain", error, "--json"]).json()[0]["command"],
        format!("tailor keep restore {command}")
    );
    let text = ok(&dir.tailor(&["doctor", "."]));
    assert!(
        text.contains("and kept: 1 session") && text.contains(&format!("tailor keep restore {command}")),
        "{text}"
    );
    // It lies elsewhere now.
    fs::create_dir(dir.path("moved")).unwrap();
    fs::write(dir.path("moved").join(NAME), WHOLE).unwrap();
    assert!(!ok(&dir.tailor(&["doctor", "."])).contains("and kept"));
}

#[test]
fn a_forgotten_text_is_kept_nowhere() {
    let dir = Dir::new();
    let long = BROKEN.trim_end().rsplit_once('\n').unwrap().0.to_string();
    let text = "a row with a secret; ".repeat(40);
    let result = format!(
        r#"{{"type":"message","id":"a3","parentId":"a2","message":{{"role":"toolResult","toolCallId":"c","toolName":"bash","content":"{text}"}}}}"#
    );
    dir.write(NAME, format!("{long}\n{result}\n"));
    now(&dir);
    let fix = dir.tailor(&["fix", ".", "--settle", "0", "--cut-results", "200"]);
    assert!(fix.text().contains("fixed 1 problem"), "{} {}", fix.text(), fix.stderr);
    now(&dir);
    let fixed = fs::read_to_string(dir.path(NAME)).unwrap();
    let id = &fixed.split("tailor show ").nth(1).unwrap()[..12];
    let forgotten = dir.tailor(&["forget", id, "--json"]).json().remove(0);
    assert_eq!(forgotten["generations"], 1, "{forgotten}");
    let seen = dir.tailor(&["keep", "list", "--json"]).json()[0]["seen"].as_str().unwrap().to_string();
    ok(&dir.tailor(&["keep", "restore", "0d0f7b2c", "--at", &seen, "--to", "back.jsonl"]));
    let back = fs::read_to_string(dir.path("back.jsonl")).unwrap();
    assert!(
        !back.contains("secret") && back.contains("****") && back.lines().all(|line| line.starts_with('{'))
    );
}
