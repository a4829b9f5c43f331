//! A full file system: the file stays unchanged, the message says what to do, and the next run works.
//!
//! Each case has a small file system in a mount namespace of its own. Skipped with a message where that is not
//! permitted.

use crate::support::{Dir, is_root, skipped};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Fills the file system except for some bytes, runs the program, makes room, and runs it again. Results go to the home
/// folder, because the file system disappears with the script.
const SCRIPT: &str = r#"
top=$1 on_full=$2 free=$3
shift 3
full=$top/full kept=$top/home
mount -t tmpfs -o size=4m none "$full" || exit 77
cp -p "$top/files/s.jsonl" "$full/s.jsonl"
cat /dev/zero > "$full/filler" 2> /dev/null
[ "$free" = 0 ] || truncate -s "-$free" "$full/filler"
for run in 1 2; do
    (cd "$top/$on_full" && exec "$@") > "$kept/said.$run" 2>&1
    echo $? > "$kept/code.$run"
    cp "$top/$on_full/s.jsonl" "$kept/s.$run"
    ls -A "$top/$on_full" > "$kept/names.$run"
    rm -f "$full/filler"
done
"#;

/// What a run left behind.
struct LeftBehind {
    said: String,
    code: String,
    text: String,
    names: Vec<String>,
}

fn seen(home: &Path, run: usize) -> LeftBehind {
    let read = |name: &str| fs::read_to_string(home.join(format!("{name}.{run}"))).unwrap();
    let names = read("names").lines().map(String::from).collect();
    LeftBehind { said: read("said"), code: read("code").trim().to_string(), text: read("s"), names }
}

/// A session so large that neither its new text nor the result's original fits into the remaining space.
pub(crate) fn session() -> String {
    let opening = fs::read_to_string(crate::support::root().join("fixtures/pi/s1-head-and-tail/in.jsonl"));
    let more = r#"{"type":"custom","id":"z","parentId":"a3","customType":"x","data":""#;
    // Rows that cannot be compressed well.
    let mut state = 1_u64;
    let rows = (0..20_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:016x}\\n")
    });
    let opening = opening.unwrap().replacen("row 01 done\\n", &rows.collect::<String>(), 1);
    format!("{opening}{more}{}\"}}\n", "x".repeat(300_000))
}

/// Runs the script with these arguments in `on_full`, `files` or `full`; `None` if that is not possible.
fn on_a_full_disk(dir: &Dir, on_full: &str, free: usize, arguments: &[String]) -> Option<[LeftBehind; 2]> {
    let home = dir.home();
    let top = home.parent().unwrap();
    let space = if is_root() { "-m" } else { "-rm" };
    let mut command = dir.command_of("unshare");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").args([space, "sh", "-c", SCRIPT, "sh"]);
    command.arg(top).arg(on_full).arg(free.to_string()).arg(env!("CARGO_BIN_EXE_tailor"));
    command.args(arguments);
    let output = command.stdin(Stdio::null()).output();
    if !output.as_ref().is_ok_and(|output| output.status.success()) {
        skipped(&format!("no file system of our own may be mounted here, so that none was full: {output:?}"));
        return None;
    }
    Some([seen(&home, 1), seen(&home, 2)])
}

/// Checks that the first run changes nothing and says what to do, and that the second, with room, repairs.
#[track_caller]
fn check(on_full: &str, free: usize, more: impl Fn(&Path) -> Vec<String>) {
    let dir = Dir::new();
    let old = session();
    dir.write("s.jsonl", &old);
    let full: PathBuf = dir.home().parent().unwrap().join("full");
    fs::create_dir(&full).unwrap();
    let fix = ["fix", "s.jsonl", "--settle", "0", "--result-chars-max", "200"].map(String::from);
    let arguments = [&fix[..], &more(&full)].concat();
    let Some([first, second]) = on_a_full_disk(&dir, on_full, free, &arguments) else { return };
    assert_eq!(first.code, "2", "{}", first.said);
    let named = ["free some space", "--vault DIR"].iter().any(|way| first.said.contains(way));
    assert!(named, "the way out is not named: {}", first.said);
    assert!(first.text == old, "the file was changed: {} bytes", first.text.len());
    let temporary: Vec<&String> = first.names.iter().filter(|name| name.starts_with(".tailor-")).collect();
    assert!(temporary.is_empty(), "{temporary:?} left over");
    assert_eq!(second.code, "0", "{}", second.said);
    assert!(second.said.contains("  fixed "), "{}", second.said);
    assert!(second.text.len() < old.len() && second.text.contains("[tailor: "), "not mended");
}

#[test]
fn a_file_stays_as_it_is_where_nothing_can_be_written() {
    check("full", 0, |_| Vec::new());
}

#[test]
fn a_file_stays_as_it_is_where_only_half_of_it_can_be_written() {
    check("full", 200_000, |_| Vec::new());
}

/// Nothing is cut unless its original can be stored.
#[test]
fn a_file_stays_as_it_is_if_its_originals_cannot_be_kept() {
    for free in [0, 20_000] {
        check("files", free, |full| vec!["--vault".to_string(), full.join("vault").display().to_string()]);
    }
}

/// The message names the file that the user named, and no incomplete file is left.
#[test]
fn results_that_find_no_room_are_named_as_they_were_asked_for() {
    for (arguments, verb) in [
        (&["scan", "s.jsonl", "--format", "json", "-o"][..], "write results"),
        (&["report", "s.jsonl", "-o"], "write the report"),
    ] {
        let dir = Dir::new();
        dir.write("s.jsonl", session());
        let full: PathBuf = dir.home().parent().unwrap().join("full");
        fs::create_dir(&full).unwrap();
        let arguments = arguments.iter().map(|word| (*word).to_string()).chain(["out".to_string()]);
        let Some([first, second]) = on_a_full_disk(&dir, "full", 0, &arguments.collect::<Vec<_>>()) else {
            return;
        };
        assert_eq!(
            first.said,
            format!("tailor: out: could not {verb}: No space left on device (os error 28)\n")
        );
        assert_eq!((&first.code[..], first.names), ("2", vec!["filler".to_string(), "s.jsonl".to_string()]));
        assert!(second.code != "2" && second.names.contains(&"out".to_string()), "{}", second.said);
    }
}
