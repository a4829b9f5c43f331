//! `tailor undo`, `show` and `gc`: what was removed comes back, and is kept as long as it should be.

use crate::fixtures::{FixtureBatch, parsed, tell};
use crate::folder::real_files;
use crate::support::{BROKEN, Dir, WHOLE, give_to_powerless, is_root, list, make_old, run};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// A pi session with one result of this text.
fn result_of(text: &str) -> String {
    let broken = BROKEN.trim_end().rsplit_once('\n').unwrap().0;
    let result = format!(
        r#"{{"type":"message","id":"a3","parentId":"a2","message":{{"role":"toolResult","toolCallId":"c","toolName":"bash","content":"{text}"}}}}"#
    );
    let user = r#"{"type":"message","id":"a4","parentId":"a3","message":{"role":"user","content":"well?"}}"#;
    [broken, &result, user, ""].join("\n")
}

fn long() -> String {
    result_of(&r"a row of the \u00e9\ud83d log\n".repeat(4_000))
}

/// The ids in our markers in a text.
fn ids(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let after = text.split("full text: tailor show ").skip(1);
    after.filter_map(|rest| Some(rest.split_once([']', ' '])?.0.to_string())).collect()
}

fn append(path: &Path, text: &str) {
    File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    make_old(path);
}

/// Three runs over a session, each cutting more, with a line appended after the second.
fn three_runs(dir: &Dir, name: &str) -> (std::path::PathBuf, String) {
    let text = long();
    let path = dir.write(name, &text);
    let more = r#"{"type":"message","id":"a5","parentId":"a4","message":{"role":"user","content":"more"}}"#;
    for limit in ["30000", "20000", "10000"] {
        let fixed = dir.tailor(&["fix", "--settle", "0", "--result-chars-max", limit, name]);
        assert_eq!(fixed.status, 0, "{}", fixed.text());
        if limit == "20000" {
            append(&path, &format!("{more}\n"));
        }
    }
    (path, format!("{text}{more}\n"))
}

#[test]
fn all_runs_over_a_file_go_back_to_before_the_first() {
    let dir = Dir::new();
    let (path, original) = three_runs(&dir, "s.jsonl");
    let undo = ["undo", "--settle", "0", "--to-original", "s.jsonl"];
    let dry = dir.tailor(&[&undo[..], &["--dry-run"]].concat()).text();
    let undone = dir.tailor(&undo);
    assert_eq!(fs::read_to_string(&path).unwrap(), original);
    let begins = "s.jsonl: undone 3 runs: ";
    assert!(undone.status == 0 && undone.text().starts_with(begins), "{}", undone.text());
    assert!(undone.text().ends_with(": 3 runs undone\n"), "{}", undone.text());
    assert_eq!(dry.replace("would undo 3", "undone 3").lines().next(), undone.text().lines().next());
    let again = dir.tailor(&undo);
    assert!(again.status == 2 && again.text().contains("refused: no run to undo"), "{}", again.text());
}

#[test]
fn a_run_that_cannot_go_back_ends_it_and_says_how_far_it_went() {
    let dir = Dir::new();
    let open = r#"{"type":"message","id":"a5","parentId":"a4","message":{"role":"assistant","content":[{"type":"toolCall","id":"d","name":"bash","arguments":{}}],"stopReason":"toolUse"}}"#;
    let user = r#"{"type":"message","id":"a6","parentId":"a5","message":{"role":"user","content":"and?"}}"#;
    let path = dir.write("s.jsonl", format!("{}{open}\n{user}\n", long()));
    for code in ["P1", "S1"] {
        let fixed = dir.tailor(&["fix", "--settle", "0", "--select", code, "s.jsonl"]);
        assert!(fixed.text().contains("fixed 1 problem"), "{}", fixed.text());
    }
    let text = fs::read_to_string(&path).unwrap();
    // Another program changes what the first run wrote.
    fs::write(&path, text.replace("tool result missing", "tool result MISSING")).unwrap();
    make_old(&path);
    let run = dir.tailor(&["undo", "--settle", "0", "--to-original", "s.jsonl"]);
    let said = run.text();
    assert!(run.status == 2 && said.starts_with("s.jsonl: refused: "), "{said}");
    assert!(said.contains("(1 later run undone)") && said.contains(": 1 run undone, 1 refused\n"), "{said}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("[tailor: 1") && text.contains("tool result MISSING"), "{said}");
}

#[test]
fn without_a_path_the_newest_runs_are_listed_and_all_can_be_undone() {
    let dir = Dir::new();
    let none = dir.tailor(&["undo"]);
    assert!(none.status == 0 && none.stderr.contains("no runs to undo"), "{}", none.stderr);
    let (one, one_before) = (dir.write("one.jsonl", BROKEN), BROKEN);
    let two = dir.write("two.jsonl", BROKEN);
    dir.write("whole.jsonl", WHOLE);
    assert_eq!(dir.tailor(&["fix", "."]).status, 0);
    let list = dir.tailor(&["undo"]);
    let text = list.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((list.status, lines.len()), (0, 2), "{text}");
    assert!(lines.iter().all(|line| line.ends_with("edits, 551 B → 874 B")), "{text}");
    assert!(list.stderr.contains("tailor undo --all"), "{}", list.stderr);
    let json = dir.tailor(&["undo", "--format", "json"]).json();
    // Fractions of seconds only sort as text if their trailing zeros and the `Z` are removed.
    let times = [0, 1].map(|n| json[n]["time"].as_str().unwrap().trim_end_matches('Z'));
    assert!(times[0] >= times[1], "the newest comes first: {json:?}");
    fs::remove_file(&two).unwrap();
    let all = dir.tailor(&["undo", "--all", "--settle", "0"]);
    assert!(all.status == 0 && all.text().ends_with(": 1 run undone\n"), "{}", all.text());
    assert_eq!(fs::read_to_string(one).unwrap(), one_before);
    let mixed = dir.tailor(&["undo", "--all", "one.jsonl"]);
    assert_eq!(mixed.status, 2);
}

/// What `undo` must restore besides the bytes.
fn facts(path: &Path) -> (u32, i64, i64) {
    let facts = fs::metadata(path).unwrap();
    (facts.mode(), facts.mtime(), facts.mtime_nsec())
}

/// Runs `show` for each new marker.
fn shows_what_stood(dir: &Dir, before: &[u8], after: &[u8]) -> Result<(), String> {
    for id in ids(after).iter().filter(|id| !ids(before).contains(id)) {
        let shown = dir.tailor(&["show", "--raw", id]);
        let stood =
            shown.status == 0 && before.windows(shown.stdout.len()).any(|bytes| bytes == shown.stdout);
        if !stood && !re_cut(before, &shown.stdout) {
            return Err(format!("show {id} prints what did not stand there: {}", shown.stderr));
        }
    }
    Ok(())
}

/// Checks the result of `undo` after `fix`, both as lines of `--format json`: it is refused if there was nothing to
/// undo.
fn is_undone(fixed: &Value, undone: &Value) -> Result<(), String> {
    let wanted = if fixed["outcome"] == "fixed" { "undone" } else { "refused" };
    if undone["outcome"] == wanted {
        return Ok(());
    }
    Err(format!("undo after {}: {} {}", fixed["outcome"], undone["outcome"], undone["reason"]))
}

fn is_as_before(path: &Path, before: &[u8], old: (u32, i64, i64)) -> Result<(), String> {
    if fs::read(path).unwrap() == before && facts(path) == old {
        return Ok(());
    }
    Err("it is not what it was".into())
}

/// Fixes `s.jsonl`, shows what was removed, and undoes the fix.
fn there_and_back(dir: &Dir, before: &[u8], fix: &[&str]) -> Result<(), String> {
    let path = dir.path("s.jsonl");
    let old = facts(&path);
    let fixed = dir.tailor(&[fix, &["--format", "json", "s.jsonl"]].concat()).file();
    shows_what_stood(dir, before, &fs::read(&path).unwrap())?;
    let undone = dir.tailor(&[UNDO, &["s.jsonl"]].concat());
    is_undone(&fixed, &undone.file())?;
    let status = if fixed["outcome"] == "fixed" { 0 } else { 2 };
    if undone.status != status {
        return Err(format!("undo after {} ends with {}", fixed["outcome"], undone.status));
    }
    is_as_before(&path, before, old)
}

const UNDO: &[&str] = &["undo", "--settle", "0", "--format", "json"];

/// Whether a text holds a marker of the same plan, so that it never was in the file.
fn re_cut(before: &[u8], text: &[u8]) -> bool {
    let named = ids(text);
    !named.is_empty() && named.iter().any(|id| !ids(before).contains(id))
}

#[test]
fn fix_and_undo_give_every_fixture_back() {
    let batches = FixtureBatch::all(|fixture| fixture.for_fix(&["--format", "json"]));
    let wrong = batches.flat_map(|batch| {
        let old: Vec<_> = batch.fixtures.iter().map(|(_, path)| facts(path)).collect();
        let fixed = batch.run();
        let mut wrong = batch.wrong(&fixed, |fixture, path, _| {
            shows_what_stood(&batch.dir, &fixture.input, &fs::read(path).unwrap())
        });
        let both = fixed.iter().zip(batch.run_with(UNDO)).zip(old);
        let found: Vec<_> =
            both.map(|((fixed, undone), old)| (parsed(fixed), parsed(&undone), old)).collect();
        wrong.extend(batch.wrong(&found, |fixture, path, (fixed, undone, old)| {
            is_undone(fixed, undone)?;
            is_as_before(path, &fixture.input, *old)
        }));
        wrong
    });
    tell(&wrong.collect::<Vec<_>>());
}

#[test]
fn fix_and_undo_give_real_transcripts_back() {
    let Some(files) = real_files() else { return };
    let mut wrong = Vec::new();
    for path in files {
        let before = fs::read(&path).unwrap();
        for limit in ["2000", "32000"] {
            let dir = Dir::new();
            dir.write("s.jsonl", &before);
            let fix = ["fix", "--settle", "0", "--thinking", "strip", "--result-chars-max", limit];
            if let Err(why) = there_and_back(&dir, &before, &fix) {
                wrong.push(format!("{} at {limit}: {why}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn undo_takes_back_the_newest_run_and_leaves_what_was_appended() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", long());
    dir.tailor(&["fix", "s.jsonl"]);
    let once = fs::read_to_string(&path).unwrap();
    dir.tailor(&["fix", "--result-chars-max", "1000", "s.jsonl"]);
    assert_ne!(fs::read_to_string(&path).unwrap(), once);
    let line = r#"{"type":"message","id":"a5","parentId":"a4","message":{"role":"user","content":"more"}}"#;
    append(&path, &format!("{line}\n"));
    let dry = dir.tailor(&["undo", "--dry-run", "s.jsonl"]);
    assert!(dry.text().contains("s.jsonl: would undo: 1 edit put back, "), "{}", dry.text());
    let undone = dir.tailor(&["undo", "s.jsonl"]);
    assert_eq!((undone.status, undone.stderr.as_str()), (0, ""), "{}", undone.text());
    assert!(undone.text().ends_with(": 1 run undone\n"), "{}", undone.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{once}{line}\n"));
    assert_eq!(dir.tailor(&["undo", "s.jsonl"]).status, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}{line}\n", long()));
    let none = dir.tailor(&["undo", "s.jsonl"]);
    assert_eq!(none.status, 2);
    assert!(none.text().contains("refused: no run to undo"), "{}", none.text());
}

#[test]
fn an_older_run_waits_for_those_that_came_after_it() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", long());
    let name = |run: crate::support::FinishedRun| run.file()["run"].as_str().unwrap().to_string();
    let first = name(dir.tailor(&["fix", "--format", "json", "s.jsonl"]));
    let second = name(dir.tailor(&["fix", "--format", "json", "--result-chars-max", "1000", "s.jsonl"]));
    let now = fs::read_to_string(&path).unwrap();
    let listed = dir.tailor(&["undo", "--list", "s.jsonl"]).text();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains(&first) && lines[1].contains(&second), "{listed}");
    let refused = dir.tailor(&["undo", "--run", &first, "s.jsonl"]);
    assert_eq!(refused.status, 2);
    assert!(
        refused.text().contains(&format!("a later run, {second}, changed the same place")),
        "{}",
        refused.text()
    );
    let unknown = dir.tailor(&["undo", "--run", "20000101T000000.000Z-00000000", "s.jsonl"]);
    assert!(unknown.status == 2 && unknown.text().contains("no run 2000"), "{}", unknown.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), now);
    assert_eq!(dir.tailor(&["undo", "--run", &second, "s.jsonl"]).status, 0);
    assert_eq!(dir.tailor(&["undo", "--run", &first, "s.jsonl"]).status, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), long());
    let listed = dir.tailor(&["undo", "--list", "--format", "json", "s.jsonl"]).json();
    assert!(listed.iter().all(|line| line["outcome"] == "undone" && line["type"] == "run"), "{listed:?}");
}

#[test]
fn a_file_that_was_moved_is_undone_by_the_name_of_the_run() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", long());
    let run = dir.tailor(&["fix", "--format", "json", "s.jsonl"]).file()["run"].as_str().unwrap().to_string();
    fs::rename(&path, dir.path("archived.jsonl")).unwrap();
    assert_eq!(dir.tailor(&["undo", "archived.jsonl"]).status, 2);
    assert_eq!(dir.tailor(&["undo", "--run", &run, "archived.jsonl"]).status, 0);
    assert_eq!(fs::read_to_string(dir.path("archived.jsonl")).unwrap(), long());
}

#[test]
fn a_folder_means_the_files_that_have_a_run() {
    let dir = Dir::new();
    for name in ["in/a.jsonl", "in/b/c.jsonl"] {
        dir.write(name, BROKEN);
    }
    dir.write("in/whole.jsonl", WHOLE);
    dir.tailor(&["fix", "in"]);
    let lines = dir.tailor(&["undo", "--format", "json", "in"]).json();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!((&lines[2]["files"], &lines[2]["undone"]), (&2.into(), &2.into()));
    for name in ["in/a.jsonl", "in/b/c.jsonl"] {
        assert_eq!(fs::read_to_string(dir.path(name)).unwrap(), BROKEN);
    }
    let again = dir.tailor(&["undo", "in"]);
    assert_eq!(again.status, 0, "nothing to undo is no error in a folder");
    assert_eq!(again.text(), "0 files, 0 B: nothing to do\n");
}

#[test]
fn what_keeps_fix_away_keeps_undo_away() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    dir.tailor(&["fix", "s.jsonl"]);
    let fixed = fs::read_to_string(&path).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    let run = dir.tailor(&["undo", "--settle", "86400", "s.jsonl"]);
    assert!(run.status == 1 && run.text().contains("deferred: modified "), "{}", run.text());
    make_old(&path);
    fs::hard_link(&path, dir.path("other")).unwrap();
    let run = dir.tailor(&["undo", "s.jsonl"]);
    assert!(run.status == 2 && run.text().contains("2 hard links"), "{}", run.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), fixed);
}

#[test]
fn what_another_program_changed_is_not_undone() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", long());
    dir.tailor(&["fix", "s.jsonl"]);
    let other = fs::read_to_string(&path).unwrap().replace("chars omitted", "chars 0mitted");
    fs::write(&path, &other).unwrap();
    make_old(&path);
    let run = dir.tailor(&["undo", "s.jsonl"]);
    assert_eq!(run.status, 2);
    assert!(run.text().contains("another program has changed line 4 since this run"), "{}", run.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), other);
}

#[test]
fn show_prints_the_text_decoded_or_as_it_was_written() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", long());
    dir.tailor(&["fix", "s.jsonl"]);
    let id = ids(&fs::read(&path).unwrap()).pop().unwrap();
    assert_eq!(dir.tailor(&["show", &id]).text(), "a row of the é\u{fffd} log\n".repeat(4_000));
    assert_eq!(dir.tailor(&["show", "--raw", &id]).text(), r"a row of the \u00e9\ud83d log\n".repeat(4_000));
    assert_eq!(dir.tailor(&["show", &id.to_uppercase()[..8]]).status, 0);
}

#[test]
fn show_says_what_is_wrong_with_an_id() {
    let dir = Dir::new();
    for id in ["0123456", "0123456g", &"0".repeat(65), "00000000", "../../..", ""] {
        let run = dir.tailor(&["show", id]);
        assert_eq!((run.status, run.text().as_str()), (2, ""), "{id}");
        assert!(run.stderr.contains("could not open the text: "), "{}", run.stderr);
    }
    dir.write("s.jsonl", long());
    dir.tailor(&["fix", "s.jsonl"]);
    let fixed = fs::read(dir.path("s.jsonl")).unwrap();
    let id = &ids(&fixed)[0][..8];
    assert_eq!(dir.tailor(&["show", id]).status, 0);
    let runs = dir.home().join(".state/tailor/runs");
    let mut names = Vec::new();
    list(&runs, &runs, &mut names);
    let run = runs.join(&names[0]);
    let whole = fs::read(&run).unwrap();
    // A damaged original is never printed without a warning.
    let mut damaged = whole.clone();
    damaged[1_545] ^= 1;
    fs::write(&run, damaged).unwrap();
    let shown = dir.tailor(&["show", id]);
    assert!(shown.status == 2 && shown.stderr.contains("is not to be trusted"), "{}", shown.stderr);
    // The text may have been in an unreadable run.
    fs::write(&run, &whole[..whole.len() - 1]).unwrap();
    let shown = dir.tailor(&["show", id]);
    assert!(shown.status == 2 && shown.stderr.contains("which cannot be read: "), "{}", shown.stderr);
}

#[test]
fn the_vault_is_for_its_owner_alone() {
    let dir = Dir::new();
    dir.write("s.jsonl", long());
    let run = dir.tailor(&["fix", "--vault", "v", "--spill", "plain", "s.jsonl"]);
    assert_eq!(run.status, 0, "{}", run.text());
    assert!(!dir.home().join(".state").exists(), "--vault is somewhere else");
    let mut seen = 0;
    for top in ["v", "plain"] {
        let mut folders = vec![dir.path(top)];
        while let Some(folder) = folders.pop() {
            assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700, "{}", folder.display());
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600, "{}", path.display());
                    seen += 1;
                }
            }
        }
    }
    assert_eq!(seen, 3, "lock, run and plain file");
}

#[test]
fn a_spilled_text_lies_where_its_marker_says() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", long());
    assert_eq!(dir.tailor(&["fix", "--spill", "plain", "s.jsonl"]).status, 0);
    let fixed = fs::read_to_string(&path).unwrap();
    let (_, place) = fixed.split_once(" or /").unwrap();
    let file = format!("/{}", place.split_once(']').unwrap().0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a row of the é\u{fffd} log\n".repeat(4_000));
    let again = dir.tailor(&["fix", "--spill", "plain", "--format", "json", "s.jsonl"]);
    assert_eq!(again.file()["outcome"], "findings");
    let odd = dir.tailor(&["fix", "--spill", "a[b]", "s.jsonl"]);
    assert!(odd.status == 2 && odd.stderr.contains("cannot stand in a marker"), "{}", odd.stderr);
}

/// The markers of a copy work, and the copy can be undone like any file.
#[test]
fn what_is_cut_out_of_a_copy_is_kept_too() {
    let dir = Dir::new();
    dir.write("s.jsonl", long());
    dir.tailor(&["fix", "--out", "out", "s.jsonl"]);
    let copy = dir.path("out/s.jsonl");
    let id = ids(&fs::read(&copy).unwrap()).pop().unwrap();
    assert_eq!(dir.tailor(&["show", &id]).status, 0);
    assert_eq!(dir.tailor(&["undo", "--settle", "0", "out/s.jsonl"]).status, 0);
    assert_eq!(fs::read_to_string(copy).unwrap(), long());
}

#[test]
fn what_is_cut_out_of_a_stream_is_kept_too() {
    let dir = Dir::new();
    let fixed = dir.pipe(long().as_bytes(), &["fix", "-"]);
    let id = ids(&fixed.stdout).pop().unwrap();
    assert_eq!(dir.tailor(&["show", &id]).text(), "a row of the é\u{fffd} log\n".repeat(4_000));
    let run = dir.pipe(long().as_bytes(), &["fix", "--vault", "/proc/self/nowhere", "-"]);
    assert_eq!((run.status, run.text().as_str()), (2, ""), "no marker that leads nowhere");
    assert!(run.stderr.contains("could not keep the originals"), "{}", run.stderr);
}

#[test]
fn a_vault_that_cannot_be_written_is_an_error_and_the_file_stays() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", BROKEN);
    fs::set_permissions(dir.files(), Permissions::from_mode(0o777)).unwrap();
    give_to_powerless(&path);
    fs::create_dir(dir.path("v")).unwrap();
    fs::set_permissions(dir.path("v"), Permissions::from_mode(0o555)).unwrap();
    for vault in ["v", "s.jsonl", "/proc/self/nowhere"] {
        let run = run(dir.powerless().args(["fix", "--format", "json", "--vault", vault, "s.jsonl"]), b"");
        assert_eq!(run.status, 2, "{vault}: {}", run.text());
        let file = run.file();
        let reason = file["reason"].as_str().unwrap();
        assert_eq!(file["outcome"], "error");
        assert!(
            reason.contains("could not keep the originals") && reason.contains("--vault DIR"),
            "{reason}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), BROKEN);
    }
    let mut command = dir.command();
    command.env_remove("HOME").env_remove("XDG_STATE_HOME");
    // Without `HOME`, the user's home folder may be known to the system.
    if !is_root() {
        assert!(run(command.args(["fix", "s.jsonl"]), b"").status <= 2);
    }
}

#[test]
fn gc_keeps_the_newest_run_and_says_what_it_removed() {
    let dir = Dir::new();
    let path = dir.write("s.jsonl", long());
    let empty = dir.tailor(&["gc"]);
    assert_eq!((empty.status, empty.text().as_str()), (0, "removed 0 runs, 0 B; kept 0 runs, 0 B\n"));
    dir.tailor(&["fix", "s.jsonl"]);
    let once = fs::read_to_string(&path).unwrap();
    dir.tailor(&["fix", "--result-chars-max", "1000", "s.jsonl"]);
    let kept = dir.tailor(&["gc"]).text();
    assert!(kept.starts_with("removed 0 runs, 0 B; kept 2 runs, "), "{kept}");
    let would = dir.tailor(&["gc", "--dry-run", "--older-than", "0", "--max-bytes", "0"]).text();
    assert!(would.starts_with("would remove 1 run, "), "{would}");
    let gone = dir.tailor(&["gc", "--older-than", "0", "--max-bytes", "0"]).text();
    assert_eq!(gone, would.replace("would remove", "removed"));
    assert_eq!(dir.tailor(&["undo", "s.jsonl"]).status, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), once);
    assert_eq!(dir.tailor(&["undo", "s.jsonl"]).status, 2);
    assert_eq!(dir.tailor(&["gc", "--max-bytes", "much"]).status, 2);
}

/// A secret is removed from the vault; undo restores what else the run cut.
#[test]
fn what_was_forgotten_stays_cut_and_the_rest_comes_back() {
    let dir = Dir::new();
    let long = |word: &str| word.repeat(20_000);
    let text = TWO_RESULTS.replace("ONE", &long("secret ")).replace("TWO", &long("public "));
    let path = dir.write("s.jsonl", &text);
    assert_eq!(dir.tailor(&["fix", "s.jsonl", "--settle", "0", "--select", "S1"]).status, 0);
    let cut = fs::read_to_string(&path).unwrap();
    let ids: Vec<&str> = cut.split("tailor show ").skip(1).map(|rest| &rest[..12]).collect();
    assert_eq!(ids.len(), 2, "{cut}");
    assert_eq!(dir.tailor(&["doctor", "."]).status, 0);
    let indexes = || fs::read_dir(dir.home().join(".cache/tailor")).unwrap().count();
    assert_eq!(indexes(), 1, "titles are in it");
    let run = dir.tailor(&["forget", ids[0]]);
    assert!(run.status == 0 && run.text().contains("removed from 1 run"), "{}", run.text());
    assert_eq!(indexes(), 0);
    assert!(dir.tailor(&["forget", ids[0]]).text().contains("already forgotten"));
    let shown = dir.tailor(&["show", ids[0]]);
    assert!(shown.status == 2 && shown.stderr.contains("tailor forget removed it"), "{}", shown.stderr);
    assert_eq!(dir.tailor(&["show", ids[1]]).text(), long("public "));
    assert_eq!(dir.tailor(&["forget", "00000000"]).status, 2);
    let whole = dir.tailor(&["undo", "s.jsonl", "--settle", "0"]);
    assert!(whole.status == 2 && whole.text().contains("--partly"), "{}", whole.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), cut);
    assert_eq!(dir.tailor(&["undo", "s.jsonl", "--settle", "0", "--partly"]).status, 0);
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.contains(&long("public ")) && !now.contains(&long("secret ")), "{}", now.len());
    assert_eq!(now.lines().nth(3), cut.lines().nth(3), "the marker stays");
}

/// What an undo leaves out does not shift the places of older runs.
#[test]
fn an_older_run_goes_back_after_a_later_one_did_in_part() {
    let dir = Dir::new();
    let open = r#"{"type":"message","id":"h","parentId":"g","message":{"role":"assistant","content":[{"type":"toolCall","id":"o","name":"ls","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","id":"i","parentId":"h","message":{"role":"user","content":"and?"}}
"#;
    let long = |word: &str| word.repeat(20_000);
    let text = TWO_RESULTS.replace("ONE", &long("secret ")).replace("TWO", &long("public ")) + open;
    let path = dir.write("s.jsonl", &text);
    for code in ["P1", "S1"] {
        assert_eq!(dir.tailor(&["fix", "s.jsonl", "--settle", "0", "--select", code]).status, 0, "{code}");
    }
    let id = ids(&fs::read(&path).unwrap()).remove(0);
    assert_eq!(dir.tailor(&["forget", &id]).status, 0);
    let partly = dir.tailor(&["undo", "s.jsonl", "--settle", "0", "--partly"]);
    assert!(
        partly.status == 0 && partly.text().contains("undone: 1 of 2 edits put back"),
        "{}",
        partly.text()
    );
    let undone = dir.tailor(&["undo", "s.jsonl", "--settle", "0"]);
    assert_eq!(undone.status, 0, "{}", undone.text());
    let now = fs::read_to_string(&path).unwrap();
    assert_eq!(now.lines().skip(4).collect::<Vec<_>>(), text.lines().skip(4).collect::<Vec<_>>());
}

/// Half of an undone repair would break what the other half repaired; cuts are independent.
#[test]
fn what_is_no_cut_goes_back_as_a_whole_or_not_at_all() {
    let dir = Dir::new();
    let long = |word: &str| word.repeat(20_000);
    let text = TWO_RESULTS.replace("ONE", &long("first ")).replace("TWO", &long("second ")) + OPEN_CALL;
    let path = dir.write("s.jsonl", &text);
    assert_eq!(dir.tailor(&["fix", "s.jsonl", "--settle", "0"]).status, 0);
    let changed = fs::read_to_string(&path).unwrap().replace("tool result missing", "tool result MISSING");
    fs::write(&path, &changed).unwrap();
    make_old(&path);
    let partly = dir.tailor(&["undo", "s.jsonl", "--settle", "0", "--partly"]);
    assert!(
        partly.status == 0 && partly.text().contains("undone: 2 of 4 edits put back"),
        "{}",
        partly.text()
    );
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.lines().take(6).eq(text.lines().take(6)), "the cuts are gone");
    assert!(now.lines().skip(6).eq(changed.lines().skip(6)), "the repair of the open call stays");
}

/// An agent that drops compacted messages and rewrites the rest.
#[test]
fn after_a_rewrite_undo_says_what_can_be_put_back() {
    let dir = Dir::new();
    let long = |word: &str| word.repeat(20_000);
    let text = TWO_RESULTS.replace("ONE", &long("first ")).replace("TWO", &long("second "));
    let path = dir.write("s.jsonl", &text);
    assert_eq!(dir.tailor(&["fix", "s.jsonl", "--settle", "0", "--select", "S1"]).status, 0);
    let cut = fs::read_to_string(&path).unwrap();
    let id = ids(cut.as_bytes()).remove(0);
    let without = |text: &str| -> String {
        let kept = text.lines().enumerate().filter(|(n, _)| *n != 3);
        kept.map(|(_, line)| line.replace(r#""parentId":"e""#, r#""parentId":"b""#) + "\n").collect()
    };
    let rewritten = without(&cut);
    fs::write(&path, &rewritten).unwrap();
    make_old(&path);
    let undo = ["undo", "s.jsonl", "--settle", "0"];
    let whole = dir.tailor(&undo);
    let said = whole.text();
    assert_eq!(whole.status, 2, "{said}");
    assert!(said.contains("another program has changed line 4 since this run"), "{said}");
    assert!(said.contains("1 of 2 edits can still be put back with --partly"), "{said}");
    assert!(said.contains(&format!("tailor show {id} prints the text of the other")), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), rewritten);
    let partly = dir.tailor(&[&undo[..], &["--partly"]].concat());
    assert!(
        partly.status == 0 && partly.text().contains("undone: 1 of 2 edits put back"),
        "{}",
        partly.text()
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), without(&text));
    assert_eq!(dir.tailor(&["show", &id]).text(), long("first "));
}

const OPEN_CALL: &str = r#"{"type":"message","id":"h","parentId":"g","message":{"role":"assistant","content":[{"type":"toolCall","id":"o","name":"ls","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","id":"i","parentId":"h","message":{"role":"user","content":"and?"}}
"#;

const TWO_RESULTS: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"go"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}},{"type":"toolCall","id":"d","name":"ls","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","id":"e","parentId":"b","message":{"role":"toolResult","toolCallId":"c","toolName":"ls","content":[{"type":"text","text":"ONE"}],"isError":false}}
{"type":"message","id":"f","parentId":"e","message":{"role":"toolResult","toolCallId":"d","toolName":"ls","content":[{"type":"text","text":"TWO"}],"isError":false}}
{"type":"message","id":"g","parentId":"f","message":{"role":"assistant","content":[{"type":"text","text":"ok"}],"stopReason":"stop"}}
"#;

/// A thread of Codex's with a paginated history, into which its database and forks hold byte offsets.
#[test]
fn every_line_of_a_paginated_thread_stays_where_it_is() {
    let dir = Dir::new();
    let name = ".codex/sessions/2026/08/01/rollout-x.jsonl";
    let original = fs::read(crate::support::root().join("fixtures/codex/s1-paginated/in.jsonl")).unwrap();
    let path = dir.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &original).unwrap();
    let lines =
        || -> Vec<usize> { fs::read(&path).unwrap().split(|byte| *byte == b'\n').map(<[u8]>::len).collect() };
    let before = lines();
    let fix = |limit| dir.tailor(&["fix", "--settle", "0", "--result-chars-max", limit, name]);
    for limit in ["400", "300", "200"] {
        let (was, fixed) = (fs::read(&path).unwrap(), fix(limit));
        // A call without a result stays: a line for it would move the others.
        assert_eq!((fixed.status, lines()), (1, before.clone()), "{}", fixed.text());
        assert!(fs::read(&path).unwrap() != was, "nothing was cut to {limit}");
    }
    let mended = fs::read(&path).unwrap();
    fix("200");
    assert_eq!(fs::read(&path).unwrap(), mended);
    let undone = dir.tailor(&["undo", "--settle", "0", "--to-original", name]);
    assert_eq!((undone.status, fs::read(&path).unwrap()), (0, original), "{}", undone.text());
}
