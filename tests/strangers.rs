//! Root among the files of other users: what they put in the way leads no further than they could go themselves.

use crate::support::{BROKEN, Dir, is_root, make_old, root, run, skipped};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two users whom the system need not know.
const MALLORY: u32 = 1234;
const ALICE: u32 = 5001;

/// A folder of mallory's files, made by `make`, and one beside it that is root's; `None` if we are not root.
fn of_mallory(make: impl FnOnce(&Dir, &Path)) -> Option<(Dir, PathBuf)> {
    if !is_root() {
        skipped("only root can be root among strangers");
        return None;
    }
    let dir = Dir::new();
    let roots = dir.home().join("roots");
    fs::create_dir(&roots).unwrap();
    make(&dir, &roots);
    dir.give_files_to(MALLORY, MALLORY);
    fs::set_permissions(dir.home(), Permissions::from_mode(0o755)).unwrap();
    Some((dir, roots))
}

fn names_in(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

const ROLLOUT: &str = ".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-evil.jsonl";

/// A Codex thread with a call without a result.
fn rollout() -> String {
    let line = |kind: &str, payload: &str| {
        format!("{{\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let said = |role: &str, kind: &str, text: &str| {
        line(
            "response_item",
            &format!(
                "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}\",\"text\":\"{text}\"}}]}}"
            ),
        )
    };
    [
        line("session_meta", "{\"id\":\"evil\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\",\"originator\":\"codex_cli_rs\",\"cli_version\":\"0.60.0\",\"instructions\":null}"),
        said("user", "input_text", "hi"),
        line("response_item", "{\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{}\",\"call_id\":\"c1\"}"),
        line("response_item", &format!("{{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"{}\"}}", "line of output\\n".repeat(5_000))),
        said("assistant", "output_text", "ok"),
        said("user", "input_text", "go on"),
    ]
    .concat()
}

#[test]
fn a_link_in_place_of_codexs_locks_leads_root_nowhere() {
    let put = |dir: &Dir, roots: &Path| {
        dir.write(ROLLOUT, rollout());
        symlink(roots, dir.path(".codex/thread-writer-locks")).unwrap();
    };
    let Some((dir, roots)) = of_mallory(put) else { return };
    assert_eq!(dir.tailor(&["fix", "--settle", "0", ".codex/sessions"]).status, 2);
    assert_eq!((names_in(&roots), fs::read_to_string(dir.path(ROLLOUT)).unwrap()), (vec![], rollout()));
    // Locks of mallory's own are taken, as mallory.
    fs::remove_file(dir.path(".codex/thread-writer-locks")).unwrap();
    fs::create_dir(dir.path(".codex/thread-writer-locks")).unwrap();
    lchown(dir.path(".codex/thread-writer-locks"), Some(MALLORY), Some(MALLORY)).unwrap();
    assert_eq!(dir.tailor(&["fix", "--settle", "0", ".codex/sessions"]).status, 0);
    assert!(fs::metadata(dir.path(ROLLOUT)).unwrap().len() < rollout().len() as u64);
    let locks = dir.path(".codex/thread-writer-locks");
    assert!(names_in(&locks).iter().all(|name| fs::metadata(locks.join(name)).unwrap().uid() == MALLORY));
}

#[test]
fn root_works_as_the_owner_and_keeps_the_originals_itself() {
    let Some((dir, _)) = of_mallory(|dir, _| drop(dir.write("agents/x/sessions/s.jsonl", BROKEN))) else {
        return;
    };
    let path = dir.path("agents/x/sessions/s.jsonl");
    let owner = |path: &Path| fs::metadata(path).unwrap().uid();
    assert_eq!(dir.tailor(&["fix", "."]).status, 0);
    assert_eq!((owner(&path), owner(&dir.home().join(".state/tailor/runs"))), (MALLORY, 0));
    assert_ne!(fs::read_to_string(&path).unwrap(), BROKEN);
    make_old(&path);
    assert_eq!(dir.tailor(&["undo", "."]).status, 0);
    assert_eq!((fs::read_to_string(&path).unwrap(), owner(&path)), (BROKEN.to_string(), MALLORY));
    assert_eq!(names_in(path.parent().unwrap()), ["s.jsonl"]);
    // A folder in which the owner may create nothing stays as it is.
    fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o555)).unwrap();
    make_old(&path);
    assert_ne!(dir.tailor(&["fix", "."]).status, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
}

/// Where they may create nothing, root creates nothing, and what was somebody else's does not become theirs.
#[test]
fn root_puts_sessions_back_as_the_owner_of_the_folder() {
    let Some((dir, _)) = of_mallory(|dir, _| drop(dir.write("p/q/s.jsonl", BROKEN))) else { return };
    let (above, path) = (dir.path("p"), dir.path("p/q/s.jsonl"));
    let lost = || {
        assert_eq!(dir.tailor(&["keep", "now", "p"]).status, 0);
        fs::remove_dir_all(dir.path("p/q")).unwrap();
    };
    let may = |mode| fs::set_permissions(&above, Permissions::from_mode(mode)).unwrap();
    let restored = || (dir.tailor(&["keep", "restore", "s.jsonl"]).status, path.exists());
    lost();
    may(0o555);
    assert_eq!((restored(), names_in(&above)), ((2, false), vec![]));
    may(0o755);
    assert_eq!(restored(), (0, true));
    assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    for made in [&path, path.parent().unwrap()] {
        assert_eq!(fs::metadata(made).unwrap().uid(), MALLORY);
    }
    lchown(&path, Some(ALICE), Some(ALICE)).unwrap();
    fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    lost();
    assert_eq!(restored(), (2, false));
}

/// An original that the owner of a copy may not see is still there.
#[test]
fn undoing_a_copy_leaves_another_users_run_as_it_is() {
    let Some((dir, _)) = of_mallory(|_, _| ()) else { return };
    let private = dir.home().join("alice");
    let (original, copy) = (private.join("s.jsonl"), dir.path("copy.jsonl"));
    fs::create_dir(&private).unwrap();
    fs::write(&original, BROKEN).unwrap();
    make_old(&original);
    for path in [&private, &original] {
        lchown(path, Some(ALICE), Some(ALICE)).unwrap();
    }
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(dir.tailor(&["fix", original.to_str().unwrap()]).status, 0);
    fs::copy(&original, &copy).unwrap();
    lchown(&copy, Some(MALLORY), Some(MALLORY)).unwrap();
    let runs = dir.home().join(".state/tailor/runs");
    let name = &names_in(&runs.join(&names_in(&runs)[0]))[0];
    let run = name.strip_suffix(".undo").unwrap();
    for (path, run) in [(&copy, &["--run", run][..]), (&original, &[])] {
        make_old(path);
        let undone = dir.tailor(&[&["undo"], run, &[path.to_str().unwrap()]].concat());
        assert_eq!(undone.status, 0, "{path:?}: {}{}", undone.text(), undone.stderr);
        assert_eq!(fs::read_to_string(path).unwrap(), BROKEN);
    }
}

/// A session in a folder into which nobody but alice can look, and a link to that folder among mallory's files; `None` if we are
/// not root.
fn private_of_alice() -> Option<(Dir, PathBuf, PathBuf)> {
    let (dir, _) = of_mallory(|dir, _| drop(dir.write("own/s.jsonl", BROKEN)))?;
    let private = dir.home().join("alice");
    let path = private.join("proj/s.jsonl");
    fs::create_dir_all(private.join("proj")).unwrap();
    fs::write(&path, BROKEN).unwrap();
    make_old(&path);
    for path in [private.clone(), private.join("proj"), path.clone()] {
        lchown(path, Some(ALICE), Some(ALICE)).unwrap();
    }
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    let link = dir.path("sessions");
    symlink(private.join("proj"), &link).unwrap();
    Some((dir, path, link))
}

#[test]
fn a_link_of_another_user_is_not_followed() {
    let Some((dir, path, link)) = private_of_alice() else { return };
    for (owner, status) in [(MALLORY, 2), (ALICE, 0)] {
        lchown(&link, Some(owner), Some(owner)).unwrap();
        let run = dir.tailor(&["fix", "--settle", "0", "sessions"]);
        let changed = fs::read_to_string(&path).unwrap() != BROKEN;
        assert_eq!((run.status, changed), (status, status == 0), "{}{}", run.text(), run.stderr);
    }
}

#[test]
fn nothing_is_kept_of_what_another_users_link_leads_to() {
    let Some((dir, _, link)) = private_of_alice() else { return };
    for (owner, status) in [(MALLORY, 2), (ALICE, 0)] {
        lchown(&link, Some(owner), Some(owner)).unwrap();
        let run = dir.tailor(&["keep", "now", "sessions"]);
        let list = dir.tailor(&["keep", "list"]);
        let is_listed = list.text().contains("alice");
        assert_eq!((run.status, is_listed), (status, status == 0), "{}{}", run.stderr, list.text());
    }
}

/// What lies beside sessions is read as the owner of the folder.
#[test]
fn a_link_in_place_of_an_ignore_file_is_not_followed() {
    let Some((dir, roots)) = of_mallory(|dir, _| drop(dir.write("repo/sub/s.jsonl", BROKEN))) else { return };
    fs::write(roots.join("secret"), "sub\n").unwrap();
    fs::set_permissions(&roots, Permissions::from_mode(0o700)).unwrap();
    let link = dir.path("repo/.gitignore");
    for to in [&roots.join("secret"), Path::new("/dev/zero")] {
        symlink(to, &link).unwrap();
        lchown(&link, Some(MALLORY), Some(MALLORY)).unwrap();
        let run = dir.tailor(&["fix", "--dry-run", "--settle", "0", "repo"]);
        let said = run.text() + &run.stderr;
        assert!(said.contains("sub/s.jsonl") && said.contains("could not obey"), "{said}");
        fs::remove_file(&link).unwrap();
    }
    // Not even a file of root's with a second name in mallory's folder.
    fs::hard_link(roots.join("secret"), &link).unwrap();
    fs::set_permissions(&link, Permissions::from_mode(0o600)).unwrap();
    let run = dir.tailor(&["fix", "--dry-run", "--settle", "0", "repo"]);
    assert!((run.text() + &run.stderr).contains("Permission denied"), "{}", run.stderr);
}

/// `sudo` with the user's own home.
#[test]
fn a_vault_lies_in_no_folder_of_a_third_user() {
    let Some((dir, _)) = of_mallory(|dir, _| drop(dir.write("s.jsonl", BROKEN))) else { return };
    for (owner, status) in [(ALICE, 2), (MALLORY, 0)] {
        let vault = dir.home().join(format!("vault-{owner}"));
        fs::create_dir(&vault).unwrap();
        lchown(&vault, Some(owner), Some(owner)).unwrap();
        let run = dir.tailor(&["fix", "--vault", vault.to_str().unwrap(), "s.jsonl"]);
        assert_eq!(run.status, status, "{}", run.stderr);
        let names = names_in(&vault);
        assert_eq!(names.contains(&"runs".to_string()), status == 0, "{names:?}");
        assert!(names.iter().all(|name| fs::metadata(vault.join(name)).unwrap().uid() == owner));
    }
}

/// `sudo -E tailor watch`: its notes lie in the user's home.
#[test]
fn links_in_a_daemons_state_are_not_followed() {
    let put = |dir: &Dir, roots: &Path| {
        fs::write(roots.join("victim"), "root's").unwrap();
        dir.write("sess/s.jsonl", BROKEN);
        dir.write("state/other", "");
    };
    let Some((dir, roots)) = of_mallory(put) else { return };
    let state = dir.path("state/tailor/watch");
    let watch = || {
        let mut command = dir.command_of("timeout");
        command.env("XDG_STATE_HOME", dir.path("state")).args(["5", env!("CARGO_BIN_EXE_tailor")]);
        run(command.args(["watch", "--mode", "observe", "sess"]), b"").status
    };
    assert_eq!(watch(), 124);
    let mut made = names_in(&state).into_iter().map(|name| state.join(name));
    let claim = made.find(|path| path.extension().is_some_and(|ending| ending == "pid")).unwrap();
    assert_eq!(fs::metadata(&claim).unwrap().uid(), MALLORY);
    fs::remove_file(&claim).unwrap();
    symlink(roots.join("victim"), &claim).unwrap();
    lchown(&claim, Some(MALLORY), Some(MALLORY)).unwrap();
    watch();
    assert_eq!(fs::read_to_string(roots.join("victim")).unwrap(), "root's");
    assert!(fs::symlink_metadata(&claim).unwrap().is_symlink());
}

#[test]
fn a_link_in_place_of_a_daemons_socket_leads_to_none_of_roots() {
    let Some((dir, roots)) = of_mallory(|dir, _| drop(dir.write("run/other", ""))) else { return };
    let listener = UnixListener::bind(roots.join("private.sock")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let link = dir.path("run/status.sock");
    symlink(roots.join("private.sock"), &link).unwrap();
    lchown(&link, Some(MALLORY), Some(MALLORY)).unwrap();
    fs::set_permissions(&roots, Permissions::from_mode(0o700)).unwrap();
    let done = dir.tailor(&["status", "--socket", link.to_str().unwrap()]);
    assert!(done.stderr.contains("Permission denied"), "{}", done.stderr);
    assert!(listener.accept().is_err(), "root was led to its own socket");
}

/// Names are swapped as fast as can be while root works, for a second each; `.ci/long` does so for minutes.
#[test]
fn names_that_are_swapped_meanwhile_lead_root_nowhere() {
    if !is_root() {
        return skipped("only root can be root among strangers");
    }
    let done = Command::new(root().join("tests/strangers/race"))
        .args([env!("CARGO_BIN_EXE_tailor"), "1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[done.stdout.clone(), done.stderr.clone()].concat()).into_owned();
    if done.status.code() == Some(77) {
        return skipped(said.trim());
    }
    assert!(done.status.success(), "{said}");
}

/// Ids are looked up before anything else is read, also in databases of other users, which takes threads.
#[cfg(feature = "stores")]
#[test]
fn root_finds_a_session_by_its_id_beside_another_users_database() {
    if !is_root() {
        skipped("only root can be root among strangers");
        return;
    }
    let dir = Dir::new();
    let put = |path: &str, text: &str| {
        let path = dir.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    put(
        ".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl",
        BROKEN,
    );
    let database = put(".data/opencode/opencode.db", "SQLite format 3\0");
    std::os::unix::fs::chown(&database, Some(MALLORY), Some(MALLORY)).unwrap();
    let done = dir.tailor(&["scan", "0d0f7b2c", "-j", "2"]);
    assert_eq!((done.status, done.stderr.contains("thread")), (1, false), "{}", done.stderr);
}
