//! Rows are written, lost, and put back.

use super::{OPENCODE, database, entries, exported, insert, openclaw};
use crate::Extent;
use crate::Vault;
use crate::ask::deferral::Deferral;
use crate::ask::outcome::{Ending, Guarantee, Outcome};
use crate::base::refusal::Refusal;
use crate::base::step::Step;
use crate::base::step::fault::{StepFault, meanwhile, with};
use crate::maintain;
use crate::options::{Mode, Options};
use crate::places::store::session_path;
use crate::undo;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use transcript::Severity;
use transcript::finding::{Held, Safety};

const LONG: &str =
    "SELECT event_zstd, event_utf8_bytes, navigation_json FROM transcript_events WHERE seq = 3";

pub(super) fn options(dir: &Path) -> Options {
    Options { mode: Mode::Fix, vault: Some(Vault::new(dir.join("vault"))), ..Options::default() }
}

pub(super) fn fixed(path: &Path, dir: &Path) -> Outcome {
    maintain(path, None, &options(dir)).unwrap()
}

pub(super) fn undone(path: &Path, dir: &Path, extent: Extent) -> Outcome {
    undo(path, None, &options(dir), None, extent).unwrap()
}

/// All rows of all tables but what a repair may touch beside the texts.
pub(super) fn rows(store: &Connection, table: &str) -> Vec<Vec<Value>> {
    let mut all = store.prepare(&format!("SELECT * FROM {table} ORDER BY rowid")).unwrap();
    let columns = all.column_count();
    let row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    all.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn beside_its_owner_a_long_result_is_shortened_in_its_row_and_comes_back() {
    for mode in ["WAL", "DELETE"] {
        let dir = tempfile::tempdir().unwrap();
        let (file, store) = openclaw(dir.path(), mode, "s1", &entries());
        let path = session_path(&file, "s1");
        let before = rows(&store, "transcript_events");
        let outcome = fixed(&path, dir.path());
        assert_eq!((&outcome.ending, outcome.guarantee), (&Ending::Fixed, Some(Guarantee::Transaction)));
        // As OpenClaw stores it: compressed, with the length that it looks up.
        let (packed, bytes, known): (Vec<u8>, i64, String) =
            store.query_row(LONG, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        let text = String::from_utf8(zstd::decode_all(&packed[..]).unwrap()).unwrap();
        assert!(
            bytes == super::number(text.len()) && bytes < 40_000 && text.contains("[tailor: "),
            "{bytes}"
        );
        let lengths = format!(
            r#"{{"version":1,"modelBytes":{bytes},"modelWithoutCheckpointBytes":{bytes},"withoutCustomDataBytes":{bytes}}}"#
        );
        assert_eq!(known, lengths);
        for kept in [
            r#""id":"e3""#,
            r#""parentId":"e2""#,
            r#""toolCallId":"c1""#,
            r#""timestamp":"2026-11-22T17:39:03.000Z""#,
        ] {
            assert!(text.contains(kept), "{kept}");
        }
        let after = rows(&store, "transcript_events");
        assert!(before.iter().zip(&after).enumerate().all(|(n, (old, new))| (n == 3) != (old == new)));
        let (generation, touched): (String, i64) = store
            .query_row("SELECT generation, transcript_updated_at FROM transcript_rewrite_watermarks JOIN session_windows USING (session_id)", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert!(generation.len() == 32 && touched > 1_700_000_000_000, "{generation} {touched}");
        assert_eq!(
            (outcome.bytes_after, fixed(&path, dir.path()).ending),
            (exported(&path).0.len() as u64, Ending::Clean)
        );
        // What the owner appends stays.
        insert(
            &store,
            "s1",
            6,
            "{\"type\":\"custom\",\"customType\":\"x\",\"id\":\"e6\",\"parentId\":\"e5\"}",
        );
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
        let back = rows(&store, "transcript_events");
        assert!(back[..before.len()] == before, "{mode}: the row is a compressed one again");
        assert_eq!(exported(&path).0.lines().count(), 7);
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Refused(Refusal::NothingToUndo));
    }
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (file, _store) = openclaw(dir.path(), "WAL", "s1", &entries());
    fixed(&session_path(&file, "s1"), dir.path());
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(dir.path().join("vault")).into_iter().map(Result::unwrap) {
        let wanted = if entry.file_type().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, wanted, "{:?}", entry.path());
        seen += 1;
    }
    assert!(seen > 3, "{seen}");
}

#[test]
fn whatever_fails_and_wherever_it_dies_the_rows_are_the_old_ones_or_the_new_ones() {
    let steps = {
        let dir = tempfile::tempdir().unwrap();
        let (file, _store) = openclaw(dir.path(), "WAL", "s1", &entries());
        with(None, || fixed(&session_path(&file, "s1"), dir.path())).1
    };
    assert!(steps.ends_with(&[Step::LockRows, Step::WriteRow, Step::CommitRows]), "{steps:?}");
    let old = entries().join("\n") + "\n";
    for at in 0..steps.len() {
        for fault in [StepFault::Death { at }, StepFault::Error { at, errno: 28 }] {
            let dir = tempfile::tempdir().unwrap();
            let (file, _store) = openclaw(dir.path(), "WAL", "s1", &entries());
            let path = session_path(&file, "s1");
            let (done, _) = with(Some(fault), || maintain(&path, None, &options(dir.path())));
            assert!(done.is_err() && exported(&path).0 == old, "{fault:?}");
            assert_eq!(
                undone(&path, dir.path(), Extent::Whole).ending,
                Ending::Refused(Refusal::NothingToUndo)
            );
            assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed, "{fault:?}");
            let new = exported(&path).0;
            let count = with(None, || undone(&path, dir.path(), Extent::Whole)).1.len();
            assert!(exported(&path).0 == old && count > 3, "{fault:?}");
            // The undo dies as well.
            fixed(&path, dir.path());
            let done = with(Some(StepFault::Death { at: at % count }), || {
                undo(&path, None, &options(dir.path()), None, Extent::Whole)
            })
            .0;
            let now = exported(&path).0;
            assert!(done.is_err() && now == new, "{fault:?}");
            assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{fault:?}");
            assert!(exported(&path).0 == old, "{fault:?}");
        }
    }
}

/// The vault may never learn that the rows were written.
#[test]
fn a_run_that_died_after_its_commit_is_undone_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let (file, _store) = openclaw(dir.path(), "WAL", "s1", &entries());
    let path = session_path(&file, "s1");
    fixed(&path, dir.path());
    for entry in walkdir::WalkDir::new(dir.path().join("vault")).into_iter().map(Result::unwrap) {
        if entry.path().extension().is_some_and(|end| end == "undo") {
            fs::rename(entry.path(), entry.path().with_extension("kept")).unwrap();
        }
    }
    assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
    assert_eq!(exported(&path).0, entries().join("\n") + "\n");
}

#[test]
fn a_row_that_its_owner_writes_meanwhile_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let (file, _store) = openclaw(dir.path(), "WAL", "s1", &entries());
    let path = session_path(&file, "s1");
    let owners = entries()[3].replacen("a line of", "another line of", 1);
    let (other, text) = (Connection::open(&file).unwrap(), owners.clone());
    let owner = move |_, step| {
        if step == Step::LockRows {
            other
                .execute(
                    "UPDATE transcript_events SET event_json = ?1, event_zstd = NULL WHERE seq = 3",
                    [&text],
                )
                .unwrap();
        }
    };
    let (outcome, steps) = meanwhile(None, owner, || fixed(&path, dir.path()));
    assert_eq!(steps.iter().filter(|step| **step == Step::LockRows).count(), 2);
    assert_eq!(outcome.ending, Ending::Fixed);
    assert!(exported(&path).0.contains("another line of"));
    undone(&path, dir.path(), Extent::Whole);
    assert_eq!(exported(&path).0.lines().nth(3), Some(owners.as_str()));
}

#[test]
fn a_store_that_is_locked_for_long_is_left_for_later() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    let path = session_path(&file, "s1");
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    let since = Instant::now();
    let outcome = fixed(&path, dir.path());
    assert!(
        matches!(outcome.ending, Ending::Deferred(Deferral::Busy { .. }))
            && since.elapsed() < Duration::from_secs(30)
    );
    store.execute_batch("COMMIT").unwrap();
    assert_eq!(exported(&path).0, entries().join("\n") + "\n");
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed);
}

#[test]
fn a_schema_that_was_not_tried_is_only_read() {
    for (change, why) in [
        ("UPDATE schema_meta SET schema_version = 24", "version 24"),
        (
            "ALTER TABLE session_windows DROP COLUMN transcript_observed_at",
            "session_windows.transcript_observed_at is missing",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
        let path = session_path(&file, "s1");
        fixed(&path, dir.path());
        store.execute_batch(change).unwrap();
        let before = rows(&store, "transcript_events");
        for outcome in [undone(&path, dir.path(), Extent::Whole), {
            store
                .execute(
                    "UPDATE transcript_events SET event_json = ?1, event_zstd = NULL WHERE seq = 3",
                    [&entries()[3]],
                )
                .unwrap();
            fixed(&path, dir.path())
        }] {
            let Ending::Refused(Refusal::StoreStays(told)) = outcome.ending else {
                panic!("{:?}", outcome.ending)
            };
            assert!(told.contains(why), "{told}");
        }
        assert_ne!(before, rows(&store, "transcript_events"), "the long one is back by hand");
        assert!(exported(&path).0 == entries().join("\n") + "\n");
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, _store) = openclaw(dir.path(), "WAL", "s1", &entries());
    fs::hard_link(&file, dir.path().join("other.sqlite")).unwrap();
    let ending = fixed(&session_path(&file, "s1"), dir.path()).ending;
    assert!(
        matches!(&ending, Ending::Refused(Refusal::StoreStays(why)) if why.contains("2 hard links")),
        "{ending:?}"
    );
}

#[test]
fn the_newest_turn_and_other_repairs_wait_for_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries()[..5]);
    let path = session_path(&file, "s1");
    let before = rows(&store, "transcript_events");
    let outcome = fixed(&path, dir.path());
    assert_eq!(outcome.ending, Ending::Deferred(Deferral::HeldOpen), "it is open here");
    let held: Vec<_> =
        outcome.remaining().iter().map(|found| (found.rule.code(), found.fix.safety)).collect();
    assert!(matches!(held[..], [("S1", Safety::Held(Held::SettledOnly(_)))]), "{held:?}");
    assert_eq!(rows(&store, "transcript_events"), before);
    // A row that nobody can read stays as it is, and the others are shortened.
    insert(&store, "s1", 5, &entries()[5]);
    store.execute("UPDATE transcript_events SET event_json = '{\"type\":' WHERE seq = 4", []).unwrap();
    let outcome = fixed(&path, dir.path());
    let held: Vec<_> = outcome
        .remaining()
        .iter()
        .map(|found| (found.rule.code(), found.severity, found.fix.safety))
        .collect();
    assert!(
        outcome.ending == Ending::Fixed
            && held.iter().any(|(code, how, safety)| *code == "B9"
                && *how == Severity::Error
                && *safety != Safety::Safe),
        "{held:?}"
    );
    let now = rows(&store, "transcript_events");
    assert_eq!(now[4][2], Value::Text("{\"type\":".into()));
}

/// A turn that is under way is signed over the texts that it was sent.
#[test]
fn while_a_turn_is_under_way_what_its_model_binds_stays() {
    let binds = r#""role":"assistant","model":"a-model-of-tomorrow""#;
    let own: Vec<String> =
        entries().iter().map(|entry| entry.replace(r#""role":"assistant""#, binds)).collect();
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &own);
    let path = session_path(&file, "s1");
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    store.execute("UPDATE session_windows SET transcript_updated_at = ?1", [now]).unwrap();
    let options = Options { settle: Duration::from_secs(5), ..options(dir.path()) };
    let outcome = maintain(&path, None, &options).unwrap();
    assert!(matches!(outcome.ending, Ending::Deferred(Deferral::Running { .. })), "{:?}", outcome.ending);
    let answer = r#"{"type":"message","id":"e6","parentId":"e5","timestamp":"2026-11-22T17:39:06.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Welcome."}],"stopReason":"stop"}}"#;
    insert(&store, "s1", 6, &answer.replace(r#""role":"assistant""#, binds));
    assert_eq!(maintain(&path, None, &options).unwrap().ending, Ending::Fixed);
}

/// A store of OpenCode's, whose first result is too long, as is the copy of it.
fn opencode(dir: &Path) -> (std::path::PathBuf, Connection, String) {
    let (file, store) = database(dir, "opencode.db", OPENCODE, "WAL");
    let (output, copy) = ("one more line\\n".repeat(4_000), "one more line\\n".repeat(2_000));
    let part = format!(
        r#"{{"type":"tool","tool":"ls","callID":"c1","state":{{"status":"completed","input":{{}},"output":"{output}","metadata":{{"output":"{copy}","exit":0}},"time":{{"start":1,"end":2}}}}}}"#
    );
    store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_2'", [&part]).unwrap();
    (session_path(&file, "ses_1"), store, part)
}

fn data(store: &Connection, part: &str) -> String {
    store.query_row("SELECT data FROM part WHERE id = ?1", [part], |row| row.get(0)).unwrap()
}

#[test]
fn a_result_of_opencode_is_shortened_with_its_copy_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store, part) = opencode(dir.path());
    let before = rows(&store, "part");
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed);
    let state = &serde_json::from_str::<serde_json::Value>(&data(&store, "prt_2")).unwrap()["state"];
    for (text, most) in [(&state["output"], 32_000), (&state["metadata"]["output"], 8_000)] {
        let text = text.as_str().unwrap();
        assert!(text.chars().count() < most + 200 && text.contains("[tailor: "));
    }
    assert_eq!((&state["metadata"]["exit"], &state["time"]["end"]), (&0.into(), &2.into()));
    let after = rows(&store, "part");
    assert_eq!(before.iter().zip(&after).filter(|(old, new)| old != new).count(), 1);
    assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
    assert!(data(&store, "prt_2") == part && rows(&store, "part") == before);
}

#[test]
fn a_row_that_changed_since_is_named_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store, part) = opencode(dir.path());
    let second = part.replace("\"c1\"", "\"c2\"");
    store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_3'", [&second]).unwrap();
    fixed(&path, dir.path());
    let owners =
        r#"{"type":"tool","tool":"ls","callID":"c1","state":{"status":"error","input":{},"error":"gone"}}"#;
    store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_2'", params![owners]).unwrap();
    let ending = undone(&path, dir.path(), Extent::Whole).ending;
    assert!(matches!(ending, Ending::Refused(Refusal::ChangedSince { edits: 4, back: 2, .. })), "{ending:?}");
    let outcome = undone(&path, dir.path(), Extent::Possible);
    assert_eq!((outcome.ending, outcome.places_restored, outcome.places_left), (Ending::Undone, 2, 2));
    assert_eq!(data(&store, "prt_2"), owners);
    assert!(data(&store, "prt_3") == second);
    store.execute("INSERT INTO migration VALUES ('20991231000000_new', 1)", []).unwrap();
    store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_2'", [&part]).unwrap();
    let ending = fixed(&path, dir.path()).ending;
    assert!(matches!(ending, Ending::Refused(Refusal::StoreStays(_))), "{ending:?}");
}

/// A transaction beside the owner writes only so much; a run of several can be undone from wherever it died.
#[test]
fn many_rows_are_written_in_several_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let long = |n: usize| {
        let output = format!("line {n} of many more\\n").repeat(16_000);
        format!(
            r#"{{"type":"tool","tool":"ls","callID":"d{n}","state":{{"status":"completed","input":{{}},"output":"{output}","time":{{"start":1,"end":2}}}}}}"#
        )
    };
    let made = |dir: &Path| {
        let (file, store) = database(dir, "opencode.db", OPENCODE, "WAL");
        for n in 10..30 {
            store
                .execute(
                    "INSERT INTO part VALUES (?1, 'msg_2', 'ses_1', 2, 2, ?2)",
                    params![format!("prt_2{n}"), long(n)],
                )
                .unwrap();
        }
        (session_path(&file, "ses_1"), store)
    };
    let (path, store) = made(dir.path());
    let (before, (outcome, steps)) = (rows(&store, "part"), with(None, || fixed(&path, dir.path())));
    let new = rows(&store, "part");
    let commits = steps.iter().filter(|step| **step == Step::CommitRows).count();
    assert!(outcome.ending == Ending::Fixed && commits > 2, "{steps:?}");
    assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
    assert!(rows(&store, "part") == before);
    let last = steps.iter().rposition(|step| *step == Step::LockRows).unwrap();
    for at in [last - 1, last, last + 1, steps.len() - 1] {
        let dir = tempfile::tempdir().unwrap();
        let (path, store) = made(dir.path());
        let (done, _) = with(Some(StepFault::Death { at }), || maintain(&path, None, &options(dir.path())));
        let now = rows(&store, "part");
        assert!(
            done.is_err()
                && now.iter().zip(&before).zip(&new).all(|((now, old), new)| now == old || now == new)
        );
        assert!(now != before && now != new, "{at}");
        assert_eq!(undone(&path, dir.path(), Extent::Possible).ending, Ending::Undone, "{at}");
        assert!(rows(&store, "part") == before, "{at}");
    }
}

/// What is to be forgotten is not kept with its row either; the other texts still go back.
#[test]
fn a_text_that_is_forgotten_is_gone_from_the_rows_that_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store, part) = opencode(dir.path());
    let second = part.replace("\"c1\"", "\"c2\"").replace("one more line", "another line");
    store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_3'", [&second]).unwrap();
    fixed(&path, dir.path());
    let cut = data(&store, "prt_2");
    let id = cut.split("tailor show ").nth(1).unwrap();
    let id: String = id.chars().take_while(char::is_ascii_hexdigit).collect();
    let vault = Vault::new(dir.path().join("vault"));
    assert_eq!(vault.forget(&id).unwrap().runs, 1);
    let ending = undone(&path, dir.path(), Extent::Whole).ending;
    assert!(matches!(ending, Ending::Refused(Refusal::Forgotten { .. })), "{ending:?}");
    assert_eq!(undone(&path, dir.path(), Extent::Possible).ending, Ending::Undone);
    assert!(data(&store, "prt_3") == second && data(&store, "prt_2").contains("[tailor: "));
}
