//! `tailor.toml` at the root of a repository: what it sets for `scan` and `fix` below it, and what it may not set.

use crate::support::{BROKEN, Dir, make_old, run};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A repository with broken sessions in `tests/` and `live/`, and this text as its `tailor.toml`.
fn repository(text: &str) -> Dir {
    let dir = Dir::new();
    for path in ["repo/tests/a.jsonl", "repo/live/b.jsonl", "elsewhere/c.jsonl"] {
        dir.write(path, BROKEN);
    }
    fs::create_dir(dir.path("repo/.git")).unwrap();
    fs::write(dir.path("repo/tailor.toml"), text).unwrap();
    dir
}

/// The files in which a run in this folder finds a lost result, in short.
fn broken(dir: &Dir, folder: &str, arguments: &[&str]) -> String {
    let done = run(dir.command().current_dir(dir.path(folder)).args(arguments).arg("--json"), b"");
    assert_ne!(done.status, 2, "{}", done.stderr);
    let lines = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |name: &str, line: &Value| {
        let path = line["path"].as_str().unwrap_or_default();
        let codes = line["findings"].as_array().into_iter().flatten();
        path.ends_with(name) && codes.into_iter().any(|finding| finding["code"] == "P1")
    };
    let is_broken = |name: &&str| lines.iter().any(|line| has(&format!("/{name}.jsonl"), &with_slash(line)));
    ["a", "b", "c"].iter().filter(|name| is_broken(name)).copied().collect()
}

/// A path that is a name alone begins with a slash then.
fn with_slash(line: &Value) -> Value {
    let mut line = line.clone();
    if let Some(path) = line["path"].as_str() {
        line["path"] = format!("/{path}").into();
    }
    line
}

#[test]
fn a_repository_says_which_rules_and_files_count_below_it() {
    let dir = repository("ignore = [\"P1\"]\n");
    assert_eq!(broken(&dir, "repo", &["scan", "."]), "");
    assert_eq!(broken(&dir, "repo/tests", &["scan", "a.jsonl", "../live"]), "");
    // The command line counts over it.
    assert_eq!(broken(&dir, "repo", &["scan", ".", "--select", "P1", "--ignore", "P2"]), "ab");
    assert_eq!(broken(&dir, "repo", &["scan", ".", "--no-config"]), "ab");

    fs::write(dir.path("repo/tailor.toml"), "exclude = [\"/tests/\"]\n").unwrap();
    assert_eq!(broken(&dir, "repo", &["scan", "."]), "b");
    assert_eq!(broken(&dir, "repo/live", &["scan", ".."]), "b");
    // A path that is named is read, and an option adds to the file.
    assert_eq!(broken(&dir, "repo", &["scan", "tests/a.jsonl", "live"]), "ab");
    let none = run(dir.command().current_dir(dir.path("repo")).args(["scan", ".", "--exclude", "live"]), b"");
    assert!(none.status == 2 && none.stderr.contains("tailor.toml"), "{}", none.stderr);

    fs::write(dir.path("repo/tailor.toml"), "[per-file-ignores]\n\"tests/**\" = [\"call-without-result\"]\n")
        .unwrap();
    assert_eq!(broken(&dir, "repo", &["scan", "."]), "b");
    assert_eq!(broken(&dir, "repo/tests", &["scan", "a.jsonl", "../live/b.jsonl"]), "b");
    assert_eq!(broken(&dir, "repo", &["scan", ".", "--select", "P1"]), "b");
}

#[test]
fn fix_leaves_alone_what_a_repository_ignores() {
    let dir = repository("[per-file-ignores]\n\"tests/*.jsonl\" = [\"P1\"]\n");
    let done = run(dir.command().current_dir(dir.path("repo")).args(["fix", "."]), b"");
    assert_eq!(fs::read_to_string(dir.path("repo/tests/a.jsonl")).unwrap(), BROKEN, "{}", done.stderr);
    assert_ne!(fs::read_to_string(dir.path("repo/live/b.jsonl")).unwrap(), BROKEN, "{}", done.stderr);
}

#[test]
fn a_repository_says_nothing_about_what_is_outside_it() {
    let dir = repository("ignore = [\"P1\"]\n");
    assert_eq!(broken(&dir, "repo", &["scan", "../elsewhere"]), "c");
    assert_eq!(broken(&dir, "repo", &["scan", ".", "../elsewhere"]), "abc");
    std::os::unix::fs::symlink(dir.path("elsewhere"), dir.path("repo/link")).unwrap();
    assert_eq!(broken(&dir, "repo", &["scan", "link/c.jsonl"]), "c");
    // All agents' sessions.
    let home = dir.home().join(".pi/agent/sessions/--w--/c.jsonl");
    fs::create_dir_all(home.parent().unwrap()).unwrap();
    fs::write(&home, BROKEN).unwrap();
    make_old(&home);
    assert_eq!(broken(&dir, "repo", &["scan"]), "c");
    // Without a repository, the file is none of ours.
    fs::remove_dir(dir.path("repo/.git")).unwrap();
    assert_eq!(broken(&dir, "repo", &["scan", "."]), "ab");
    // A file that is named is the user's own.
    assert_eq!(broken(&dir, "repo", &["scan", ".", "--config", "tailor.toml"]), "");
}

#[test]
fn a_repository_turns_nothing_on_that_acts_or_reaches_outside() {
    for (text, key) in [
        ("allow = [\"S9\"]\n", "allow"),
        ("mode = \"enforce\"\n", "mode"),
        ("vault = \"/tmp/v\"\n", "vault"),
        ("roots = [\"/\"]\n", "roots"),
        ("settle = 0\n", "settle"),
        ("thinking = \"strip\"\n", "thinking"),
        ("profile = \"chatcli\"\n", "profile"),
        ("[originals.keep]\ndays = 1\n", "originals"),
        ("[agents.pi]\nallow = [\"S9\"]\n", "allow"),
        ("[agents.pi]\nreloads = true\n", "reloads"),
    ] {
        let dir = repository(text);
        let done = run(dir.command().current_dir(dir.path("repo/live")).args(["fix", "b.jsonl"]), b"");
        assert_eq!(done.status, 2, "{text}{}", done.stderr);
        assert!(
            done.stderr.contains("tailor.toml") && done.stderr.contains(&format!("`{key}`")),
            "{}",
            done.stderr
        );
        assert_eq!(fs::read_to_string(dir.path("repo/live/b.jsonl")).unwrap(), BROKEN);
    }
    let dir = repository(
        "[stale]\nclear_turns = 2\n[agents.pi]\nresult_chars_max = 9\n[tools]\nkeep = [\"Read\"]\n",
    );
    assert_eq!(broken(&dir, "repo", &["scan", "."]), "ab");
}

#[test]
fn what_is_wrong_in_a_repository_is_told_with_its_line() {
    for (text, wanted) in [
        ("\nexclude = [\"a[\"]\n", "line 2: `a[`: "),
        ("\n[per-file-ignores]\n\"*.jsonl\" = [\"P99\"]\n", "line 3: `P99`: no such rule"),
        ("\nexcludes = []\n", "line 2: unknown key `excludes` (did you mean `exclude`?)"),
    ] {
        let dir = repository(text);
        let done = run(dir.command().current_dir(dir.path("repo")).args(["scan", "."]), b"");
        assert_eq!(done.status, 2, "{text}");
        assert!(done.stderr.contains(wanted), "{text}{}", done.stderr);
    }
    // Elsewhere such keys would silently do nothing.
    let dir = repository("");
    let own: PathBuf = dir.home().join(".config/tailor/config.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "exclude = [\"x\"]\n").unwrap();
    let done = dir.tailor(&["doctor"]);
    assert!(done.status == 2 && done.stderr.contains("tailor.toml"), "{}", done.stderr);
    assert_ne!(dir.tailor(&["doctor", "--no-config"]).status, 2);
}
