//! Somebody else does something between two steps, or has left something behind, and the rows are what they were.

use super::alone::{DANGLING, all, damaged};
use super::write::{fixed, options, rows, undone};
use super::{OPENCODE, database, entries, exported, insert, openclaw};
use crate::Extent;
use crate::Vault;
use crate::ask::deferral::Deferral;
use crate::ask::outcome::Ending;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::base::step::Step;
use crate::base::step::fault::meanwhile;
use crate::places::store::session_path;
use crate::prune;
use crate::stores::{Replacing, open};
use crate::undo;
use rusqlite::{Connection, params};
use std::fs;
use std::path::Path;
use transcript::Span;

/// What another connection does when the database is about to be locked for the transaction with this number, from 0.
fn before_transaction(file: &Path, number: usize, sql: &str) -> impl FnMut(usize, Step) + 'static {
    let (other, sql, mut transaction) = (Connection::open(file).unwrap(), sql.to_string(), 0);
    move |_, step| {
        if step == Step::LockRows {
            if transaction == number {
                other.execute_batch(&sql).unwrap();
            }
            transaction += 1;
        }
    }
}

/// The schema is one that was tried when the session is read, and another one when its rows are about to be written; or it always
/// was another one.
#[test]
fn rows_of_a_schema_that_was_not_tried_are_not_written() {
    const TRIGGER: &str = "CREATE TRIGGER tidy AFTER UPDATE ON transcript_events BEGIN \
                           DELETE FROM transcript_events WHERE seq = 0; END";
    for (change, why) in [
        ("UPDATE schema_meta SET schema_version = 24", "version 24"),
        (
            "ALTER TABLE session_windows DROP COLUMN transcript_observed_at",
            "transcript_observed_at is missing",
        ),
        (TRIGGER, "trigger that OpenClaw does not make (tidy)"),
        // By name one of the owner's, which would not act here.
        (&TRIGGER.replace("tidy", "session_windows_canonical_pending_after_update"), "by a trigger"),
        (
            "CREATE TRIGGER session_windows_canonical_pending_after_update AFTER UPDATE ON session_windows BEGIN \
             DELETE FROM transcript_events WHERE seq = 0; END",
            "a trigger would change other rows",
        ),
    ] {
        for is_meanwhile in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
            let path = session_path(&file, "s1");
            let before = rows(&store, "transcript_events");
            if !is_meanwhile {
                store.execute_batch(change).unwrap();
            }
            let others = before_transaction(&file, 0, if is_meanwhile { change } else { "" });
            let ending = meanwhile(None, others, || fixed(&path, dir.path())).0.ending;
            let Ending::Refused(Refusal::StoreStays(told)) = ending else { panic!("{change}: {ending:?}") };
            assert!(told.contains(why), "{change}: {told}");
            assert!(rows(&store, "transcript_events") == before, "{change}");
            let ending = undone(&path, dir.path(), Extent::Whole).ending;
            assert_eq!(ending, Ending::Refused(Refusal::NothingToUndo), "{change}");
        }
    }
    // Rows that this takes out are counted nowhere.
    let dir = tempfile::tempdir().unwrap();
    let schema =
        OPENCODE.replace("part (id text PRIMARY KEY,", "part (id text PRIMARY KEY ON CONFLICT REPLACE,");
    let (file, store) = database(dir.path(), "opencode.db", &schema, "WAL");
    let output = "one more line\\n".repeat(4_000);
    store.execute("UPDATE part SET data = replace(data, 'a.txt', ?1)", [output]).unwrap();
    let ending = fixed(&session_path(&file, "ses_1"), dir.path()).ending;
    assert!(
        matches!(&ending, Ending::Refused(Refusal::StoreStays(why)) if why.contains("part")),
        "{ending:?}"
    );
}

/// A row goes, and others that refer to it would go with it.
#[test]
fn rows_that_no_plan_names_do_not_go() {
    let dir = tempfile::tempdir().unwrap();
    let file = super::prune::store(dir.path(), "WAL", 400);
    let store = Connection::open(&file).unwrap();
    let notes = "CREATE TABLE note (event_id text REFERENCES event(id) ON DELETE CASCADE); INSERT INTO note SELECT id FROM event";
    store.execute_batch(notes).unwrap();
    drop(store);
    let before = super::prune::all(&file);
    let stop = prune(&file, Some(&Vault::new(dir.path().join("vault")))).unwrap_err();
    let Stop::Refused(Refusal::StoreStays(told)) = stop else { panic!("{stop:?}") };
    assert!(told.contains("by a trigger or a foreign key"), "{told}");
    assert!(super::prune::all(&file) == before);
}

/// The owner has written a row that its own table forbids, which nobody notices until it is written again.
#[test]
fn a_row_that_could_not_be_written_back_stays() {
    const FORBIDDEN: &str = "PRAGMA ignore_check_constraints = ON; \
                             UPDATE transcript_events SET navigation_json = hex(zeroblob(9000)) WHERE seq = 3";
    for is_alone in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
        let path = session_path(&file, "s1");
        store.execute_batch(FORBIDDEN).unwrap();
        let before = rows(&store, "transcript_events");
        // Open in this process, it is as if the owner had it open.
        let _open = (!is_alone).then_some(store);
        let ending = fixed(&path, dir.path()).ending;
        let Ending::Refused(Refusal::StoreStays(told)) = ending else { panic!("{is_alone}: {ending:?}") };
        assert!(told.contains("undo could not write it back"), "{told}");
        assert!(rows(&Connection::open(&file).unwrap(), "transcript_events") == before);
    }
}

/// What was written in earlier transactions can be undone although a later one was not made.
#[test]
fn a_run_stays_undoable_if_its_second_transaction_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = database(dir.path(), "opencode.db", OPENCODE, "WAL");
    for n in 10..30 {
        let output = format!("line {n} of many more\\n").repeat(16_000);
        let part = format!(
            r#"{{"type":"tool","tool":"ls","callID":"d{n}","state":{{"status":"completed","input":{{}},"output":"{output}","time":{{"start":1,"end":2}}}}}}"#
        );
        let row = params![format!("prt_2{n}"), part];
        store.execute("INSERT INTO part VALUES (?1, 'msg_2', 'ses_1', 2, 2, ?2)", row).unwrap();
    }
    let path = session_path(&file, "ses_1");
    let mut before = rows(&store, "part");
    let own = "UPDATE part SET data = '{\"type\":\"text\",\"text\":\"own\"}' WHERE id = 'prt_229'";
    let others = before_transaction(&file, 1, own);
    let (outcome, steps) = meanwhile(None, others, || fixed(&path, dir.path()));
    assert_eq!(outcome.ending, Ending::Fixed);
    assert!(steps.iter().filter(|step| **step == Step::CommitRows).count() > 2, "{steps:?}");
    while undone(&path, dir.path(), Extent::Possible).ending == Ending::Undone {}
    store.execute_batch(own).unwrap();
    let now = rows(&store, "part");
    before
        .iter_mut()
        .zip(&now)
        .filter(|(old, _)| old[0] == "prt_229".to_string().into())
        .for_each(|(old, new)| old.clone_from(new));
    assert!(now == before);
}

/// Whether a commit that failed takes effect is known only after the next start, so what it would take out stays in the vault. Here
/// somebody begins to read at the last moment.
#[test]
fn a_run_whose_commit_fails_is_kept() {
    for (number, is_kept) in [(0, false), (1, true)] {
        let dir = tempfile::tempdir().unwrap();
        let (file, _store) = openclaw(dir.path(), "DELETE", "s1", &entries());
        let reader = Connection::open(&file).unwrap();
        let others = move |_, step| {
            if step == [Step::LockRows, Step::CommitRows][number] {
                let sql = ["BEGIN IMMEDIATE", "BEGIN; SELECT count(*) FROM sqlite_schema"][number];
                reader.execute_batch(sql).unwrap();
            }
        };
        let path = session_path(&file, "s1");
        let ending = meanwhile(None, others, || fixed(&path, dir.path())).0.ending;
        assert!(matches!(ending, Ending::Deferred(Deferral::Busy { .. })), "{ending:?}");
        let kept = Vault::new(dir.path().join("vault")).files().unwrap();
        assert_eq!(!kept.is_empty(), is_kept, "{kept:?}");
    }
}

/// The model may sign what is appended over what an undo puts back.
#[test]
fn an_undo_waits_if_the_session_goes_on_before_it_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let binds = r#""role":"assistant","model":"a-model-of-tomorrow""#;
    let own: Vec<String> =
        entries().iter().map(|entry| entry.replace(r#""role":"assistant""#, binds)).collect();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &own);
    let path = session_path(&file, "s1");
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed);
    let after = rows(&store, "transcript_events");
    let row = "INSERT INTO transcript_events VALUES ('s1', 6, '{\"type\":\"custom\",\"id\":\"e6\",\"parentId\":\"e5\"}', 0, NULL, 55, NULL)";
    let others = before_transaction(&file, 0, row);
    let undoing = || undo(&path, None, &options(dir.path()), None, Extent::Whole).unwrap().ending;
    assert_eq!(meanwhile(None, others, undoing).0, Ending::Deferred(Deferral::Changed));
    assert!(rows(&store, "transcript_events")[..6] == after[..]);
    insert(&store, "s1", 7, "{\"type\":\"custom\",\"id\":\"e7\",\"parentId\":\"e6\"}");
    assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
    assert_eq!(exported(&path).0.lines().nth(3), Some(own[3].as_str()));
}

/// Rows that refer to nothing are there already in a table that is to be written.
#[test]
fn a_table_that_would_not_be_whole_is_not_written() {
    let ghost = "PRAGMA foreign_keys = OFF; \
                 INSERT INTO transcript_event_identities VALUES ('s2', 'ghost', 99, 'message', NULL, NULL, 0)";
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = damaged(dir.path(), "WAL", &format!("{DANGLING}; {ghost}"));
    let before = all(&file);
    let ending = fixed(&path, dir.path()).ending;
    assert!(
        matches!(&ending, Ending::Refused(Refusal::StoreStays(why)) if why.contains("rows that are not there")),
        "{ending:?}"
    );
    assert!(all(&file) == before);
}

/// Whatever text is to be written: another file is at the path by now, the file has another name by now, or a row would not be a
/// record any more.
#[test]
fn only_the_file_that_was_read_is_written_and_only_with_records() {
    type Meanwhile = fn(&Path);
    let copy: Meanwhile = |file| {
        fs::copy(file, file.with_extension("copy")).unwrap();
        fs::rename(file.with_extension("copy"), file).unwrap();
    };
    let link: Meanwhile = |file| fs::hard_link(file, file.with_extension("other")).unwrap();
    let changed = Stop::from(Deferral::Changed).to_string();
    let none: Meanwhile = |_| {};
    for (meanwhile, record, wanted) in [
        (copy, "{}", changed.as_str()),
        (link, "{}", changed.as_str()),
        (none, "{\"type\":", "more than what rows hold"),
        (none, "{\n}", "more than what rows hold"),
        (none, &entries()[4].replace("Many", "Few"), "kept"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = damaged(dir.path(), "DELETE", "");
        let before = all(&file);
        let stored = open(&path, None).unwrap().unwrap();
        meanwhile(&file);
        let old = exported(&path).0;
        let at = old.find(&entries()[4]).unwrap();
        let new = old.replace(&entries()[4], record);
        let rest = Span::new((at + entries()[4].len()) as u64, old.len() as u64);
        let parts = vec![
            (at as u64, Some(Span::new(0, at as u64))),
            (record.len() as u64, None),
            (rest.len(), Some(rest)),
        ];
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let texts = Replacing { old: &old, new: &new, parts, only_if_still: false, made: None };
        let keep = |_| Err(Refusal::StoreStays("kept".into()).into());
        let stop = stored.replace(texts, keep).unwrap_err().to_string();
        assert!(stop.contains(wanted), "{record}: {stop}");
        assert!(all(&file) == before, "{record}");
    }
}
