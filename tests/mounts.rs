//! Files that containers mount by another path than their folder: a new file could not replace them there, so none is
//! written. And a home on a network, and a disk that ignores case, which are served by programs here.
//!
//! Each case has a mount namespace of its own. Skipped with a message where that is not permitted.

use crate::support::{BROKEN, Dir, FinishedRun, is_root, root, run, skipped};
use std::fs;
use std::path::Path;

/// Runs a script with the program as `$1` and the repository as `$2` in a mount namespace of its own; `None` if that is not possible.
fn in_own_mounts(dir: &Dir, script: &str) -> Option<FinishedRun> {
    let space: &[&str] = if is_root() { &["-m"] } else { &["-r", "-m"] };
    let mut command = dir.command_of("unshare");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").args(space).args(["sh", "-ec", script, "sh"]);
    let run = run(command.arg(env!("CARGO_BIN_EXE_tailor")).arg(root()), b"");
    if run.status == CANNOT_MOUNT || run.stderr.starts_with("unshare:") {
        skipped(&format!("nothing may be mounted here, so that no mount was seen: {}", run.stderr));
        return None;
    }
    assert_eq!(run.status, 0, "{}{}", run.text(), run.stderr);
    Some(run)
}

/// The script's exit code if it may not mount.
const CANNOT_MOUNT: i32 = 77;

/// A folder with the same broken session under each of these names.
fn sessions(names: &[&str]) -> Dir {
    let dir = Dir::new();
    for name in names {
        dir.write(name, BROKEN);
    }
    dir
}

/// The script leaves the output of `fix --format json` in `answer`. It must refuse with a reason that names this and a
/// solution, and nothing may be written.
#[track_caller]
fn assert_refused(dir: &Dir, name: &str, reason: &str) {
    let answer = fs::read_to_string(dir.path("answer")).unwrap();
    assert!(answer.contains(r#""outcome":"refused""#), "{answer}");
    assert!(answer.contains(reason) && answer.contains("--copy-to DIR"), "{answer}");
    assert!(fs::read_to_string(dir.path(name)).unwrap().starts_with(BROKEN), "the file was changed");
    let folder = dir.path(name);
    let beside = fs::read_dir(folder.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(beside.into_iter().all(|name| !name.to_string_lossy().starts_with(".tailor-")));
}

const MOUNTED_ALONE: &str = "mounted as a single file";

/// The container would go on writing to the old file.
#[test]
fn a_file_that_is_mounted_by_itself_is_refused_under_both_names() {
    let script = r#"
        mkdir 'con tainer'; : > 'con tainer/t.jsonl'
        mount --bind 'ho st/s.jsonl' 'con tainer/t.jsonl' || exit 77
        "$1" fix --settle 0 --format json "$NAME" > answer || :
        echo '{"type":"custom","id":"z","parentId":"a3"}' >> 'con tainer/t.jsonl'
    "#;
    for name in ["ho st/s.jsonl", "con tainer/t.jsonl"] {
        let dir = sessions(&["ho st/s.jsonl"]);
        let script = script.replace("$NAME", name);
        if in_own_mounts(&dir, &script).is_none() {
            return;
        }
        assert_refused(&dir, "ho st/s.jsonl", MOUNTED_ALONE);
        assert_eq!(fs::read_to_string(dir.path("ho st/s.jsonl")).unwrap().lines().count(), 5);
    }
}

#[test]
fn a_mount_in_the_namespace_of_another_process_counts_too() {
    let dir = sessions(&["s.jsonl"]);
    let script = r#"
        : > inside; mkfifo ready
        unshare -m sh -c 'mount --bind s.jsonl inside && echo yes > ready || echo no > ready; exec sleep 60' &
        holder=$!
        [ "$(cat ready)" = yes ] || exit 77
        "$1" fix --settle 0 --format json s.jsonl > answer || :
        kill $holder
    "#;
    if in_own_mounts(&dir, script).is_some() {
        assert_refused(&dir, "s.jsonl", MOUNTED_ALONE);
    }
}

#[test]
fn a_layer_of_a_container_is_refused_from_outside_and_mended_from_inside() {
    let dir = sessions(&[]);
    fs::write(dir.path("text"), BROKEN).unwrap();
    let script = r#"
        mkdir layers; mount -t tmpfs none layers || exit 77
        cd layers; mkdir lower upper work merged
        cp ../text upper/s.jsonl
        mount -t overlay -o lowerdir=lower,upperdir="$PWD/upper",workdir=work none merged || exit 77
        "$1" fix --settle 0 --format json upper > ../answer || :
        cp upper/s.jsonl ../s.jsonl; ls -A upper > ../names
        "$1" fix --settle 0 --format json merged > ../inside
    "#;
    if in_own_mounts(&dir, script).is_some() {
        assert_refused(&dir, "s.jsonl", "a container's writable layer");
        assert_eq!(fs::read_to_string(dir.path("names")).unwrap(), "s.jsonl\n");
        let inside = fs::read_to_string(dir.path("inside")).unwrap();
        assert!(inside.contains(r#""outcome":"fixed""#), "{inside}");
    }
}

#[test]
fn a_folder_may_be_mounted_anywhere() {
    let dir = sessions(&["host/s.jsonl"]);
    let script = r#"
        mkdir inside
        mount --bind host inside || exit 77
        "$1" fix --settle 0 --format json inside > answer
    "#;
    if in_own_mounts(&dir, script).is_some() {
        let answer = fs::read_to_string(dir.path("answer")).unwrap();
        assert!(answer.contains(r#""outcome":"fixed""#), "{answer}");
        assert!(Path::new(&dir.path("host/s.jsonl")).exists());
        assert!(fs::read_to_string(dir.path("host/s.jsonl")).unwrap() != BROKEN);
    }
}

/// Undo replaces files in the same way, so it makes the same checks.
#[test]
fn undo_is_refused_as_well() {
    let dir = sessions(&["s.jsonl"]);
    let script = r#"
        "$1" fix --settle 0 s.jsonl
        cp s.jsonl fixed; : > inside
        mount --bind s.jsonl inside || exit 77
        "$1" undo --settle 0 --json s.jsonl > answer || :
        cmp s.jsonl fixed
    "#;
    if in_own_mounts(&dir, script).is_some() {
        let answer = fs::read_to_string(dir.path("answer")).unwrap();
        assert!(answer.contains(MOUNTED_ALONE), "{answer}");
    }
}

/// A home on a network (FUSE): others may write to it without being seen, and `bindfs` does not exchange names. Both is named.
#[test]
fn on_a_network_that_cannot_exchange_names_the_guarantee_is_quiet() {
    let dir = sessions(&["real/s.jsonl"]);
    let script = r#"
        command -v bindfs > tool || exit 77
        mkdir net; bindfs real net || exit 77
        "$1" fix --settle 0 --format json net > answer || :
        cp net/s.jsonl fixed
        "$1" undo --settle 0 --json net/s.jsonl > undone || :
        ls -A net > names
        umount net
    "#;
    if in_own_mounts(&dir, script).is_some() {
        let said = |name| fs::read_to_string(dir.path(name)).unwrap();
        for (answer, outcome) in [("answer", "fixed"), ("undone", "undone")] {
            let answer: serde_json::Value =
                serde_json::from_str(said(answer).lines().next().unwrap()).unwrap();
            assert_eq!(
                (&answer["outcome"], &answer["guarantee"]),
                (&outcome.into(), &"quiet".into()),
                "{answer}"
            );
        }
        assert!(said("fixed") != BROKEN && said("real/s.jsonl") == BROKEN);
        assert_eq!(said("names"), "s.jsonl\n");
    }
}

/// A disk on which `S.jsonl` and `s.jsonl` are one file: the session keeps the name that it has, and its runs are found under
/// any spelling. The file system here cannot exchange names, so the guarantee is `quiet`.
#[test]
fn on_a_disk_that_ignores_case_a_session_has_one_name() {
    let dir = sessions(&["real/Room/Session.jsonl"]);
    let script = r#"
        export PYTHONPATH="$2/target/tools/fuse"
        python3 -c 'import fuse' || exit 77
        mkdir disk; "$2/tests/mounts/ignorecase" real disk || exit 77
        "$1" fix --settle 0 --format json disk/ROOM/session.JSONL > fixed || :
        "$1" fix --settle 0 --format json disk/room disk/Room > again || :
        ls -A real/Room > names
        "$1" undo --settle 0 --json disk/room/SESSION.jsonl > undone || :
        # Two files elsewhere, and a vault on such a disk.
        cp -p real/Room/Session.jsonl s.jsonl; cp -p real/Room/Session.jsonl S.jsonl
        "$1" fix --settle 0 --format json --vault disk/vault s.jsonl S.jsonl > both || :
        cp S.jsonl both-fixed
        "$1" undo --settle 0 --json --vault disk/Vault s.jsonl S.jsonl > both-undone || :
        umount disk
    "#;
    if in_own_mounts(&dir, script).is_none() {
        return;
    }
    let outcomes = |name: &str| -> Vec<(String, Option<String>)> {
        let text = |value: &serde_json::Value| value.as_str().map(String::from);
        let said = fs::read_to_string(dir.path(name)).unwrap();
        let lines = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let files = lines.filter(|line| line["type"] == "file");
        files.map(|line| (text(&line["outcome"]).unwrap(), text(&line["guarantee"]))).collect()
    };
    let quiet = |outcome: &str| (outcome.to_string(), Some("quiet".to_string()));
    assert_eq!(outcomes("fixed"), [quiet("fixed")]);
    // Both looks are at the same time: the one waits for no other.
    let is_left = |outcome: &str| ["clean", "deferred"].contains(&outcome);
    let again = outcomes("again");
    assert!(!again.is_empty() && again.iter().all(|(outcome, _)| is_left(outcome)), "{again:?}");
    assert_eq!(fs::read_to_string(dir.path("names")).unwrap(), "Session.jsonl\n");
    assert_eq!(outcomes("undone"), [quiet("undone")]);
    let left: Vec<_> =
        fs::read_dir(dir.path("real/Room")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["Session.jsonl"]);
    for (name, outcome) in [("both", "fixed"), ("both-undone", "undone")] {
        let found = outcomes(name);
        assert!(found.len() == 2 && found.iter().all(|(each, _)| each == outcome), "{name}: {found:?}");
    }
    assert!(fs::read_to_string(dir.path("both-fixed")).unwrap() != BROKEN);
    for name in ["real/Room/Session.jsonl", "s.jsonl", "S.jsonl"] {
        assert_eq!(fs::read_to_string(dir.path(name)).unwrap(), BROKEN, "{name}");
    }
}

/// A copy that changes nothing shares its blocks where the file system can do that.
#[test]
fn a_copy_of_a_clean_session_is_a_clone_on_btrfs() {
    let dir = sessions(&["s.jsonl"]);
    let script = r#"
        truncate -s 128M image; mkfs.btrfs -q image > made || exit 77
        mkdir disk; mount -o loop image disk || exit 77
        cp s.jsonl disk/s.jsonl; "$1" fix --settle 0 disk/s.jsonl
        i=0; while [ $i -lt 2000 ]; do
            echo '{"type":"custom","id":"z'$i'","parentId":"a3","data":"............................"}'; i=$((i + 1))
        done >> disk/s.jsonl
        sync; "$1" fix --settle 0 --copy-to disk/out disk/s.jsonl > said
        copy=$(find disk/out -name s.jsonl); cmp disk/s.jsonl "$copy"
        stat -c %a "$copy" > mode; filefrag -v "$copy" > extents || exit 77
        umount disk
    "#;
    if in_own_mounts(&dir, script).is_some() {
        assert_eq!(fs::read_to_string(dir.path("mode")).unwrap(), "600\n");
        let extents = fs::read_to_string(dir.path("extents")).unwrap();
        assert!(extents.contains("shared"), "{extents}");
    }
}
