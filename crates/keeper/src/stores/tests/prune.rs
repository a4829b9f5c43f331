//! Superseded events go and come back, and the file is made smaller.

use super::OPENCODE;
use super::write::{fixed, options, rows, undone};
use crate::Extent;
use crate::Pruned;
use crate::Vault;
use crate::ask::deferral::Deferral;
use crate::ask::outcome::Ending;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::base::step::Step;
use crate::base::step::fault::{StepFault, with};
use crate::gone_sessions;
use crate::places::store::session_path;
use crate::prune;
use crate::undo;
use crate::vacuum;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::fs;
use std::path::{Path, PathBuf};

/// The log of events as OpenCode makes it, with 60 copies of each of three parts and 20 of a message, of `{TEXT}` bytes each.
const EVENTS: &str = "
CREATE TABLE event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text);
CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL,
  CONSTRAINT fk FOREIGN KEY (aggregate_id) REFERENCES event_sequence(aggregate_id) ON DELETE CASCADE);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX event_aggregate_type_seq_idx ON event (aggregate_id, type, seq);
INSERT INTO session VALUES ('ses_2', NULL, '/w', 'Other', '1.18.33', 1795578400000);
INSERT INTO message VALUES ('msg_9', 'ses_2', 1, 1, '{\"role\":\"user\",\"agent\":\"build\"}');
INSERT INTO event_sequence VALUES ('ses_1', 203, NULL), ('ses_2', 2, NULL), ('gone', 1, NULL);
WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 199)
INSERT INTO event SELECT 'evt_' || (199 - n), 'ses_1', n, iif(n < 180, 'message.part.updated.1', 'message.updated.1'),
  iif(n < 180, json_object('sessionID', 'ses_1', 'part', json_object('id', 'prt_' || (n % 3), 'n', n, 'text', hex(randomblob({TEXT} / 2)))),
  json_object('info', json_object('id', 'msg_1', 'n', n))) FROM n;
INSERT INTO event VALUES ('x1', 'ses_1', 200, 'message.part.updated.1', 'no JSON'), ('x2', 'ses_1', 201, 'message.part.removed.1', '{}'),
  ('x3', 'ses_1', 202, 'message.part.updated.2', '{\"part\":{\"id\":\"prt_1\"}}'), ('x4', 'ses_1', 203, 'message.updated.1', '{}'),
  ('y1', 'ses_2', 1, 'message.updated.1', '{\"info\":{\"id\":\"msg_1\"}}'), ('y2', 'ses_2', 2, 'message.updated.1', '{\"info\":{\"id\":\"msg_1\"}}'),
  ('z1', 'gone', 1, 'message.updated.1', '{\"info\":{\"id\":\"msg_1\"}}'), ('z2', 'gone', 2, 'message.updated.1', '{\"info\":{\"id\":\"msg_1\"}}');
";
/// What `tailor prune` removes, in one statement.
const TRIED: &str = "DELETE FROM event WHERE json_valid(data) AND type IN ('message.part.updated.1', 'message.updated.1') AND rowid NOT IN (
  SELECT rowid FROM (SELECT rowid, max(seq) FROM event WHERE json_valid(data) AND type IN ('message.part.updated.1', 'message.updated.1')
    GROUP BY aggregate_id, type, coalesce(json_extract(data, '$.part.id'), json_extract(data, '$.info.id'))))";

pub(super) fn store(dir: &Path, mode: &str, bytes: usize) -> PathBuf {
    let file = dir.join("opencode.db");
    let store = Connection::open(&file).unwrap();
    let events = EVENTS.replace("{TEXT}", &bytes.to_string());
    store.execute_batch(&format!("PRAGMA journal_mode = {mode}; {OPENCODE} {events}")).unwrap();
    file
}

/// All rows of all tables by their content, and the order of the events by themselves.
pub(super) fn all(file: &Path) -> Vec<Vec<Vec<Value>>> {
    let store = Connection::open(file).unwrap();
    let sorted = |table: &&str| {
        let mut rows = rows(&store, table);
        rows.sort_by_cached_key(|row| format!("{:?}", row[0]));
        rows
    };
    ["session", "message", "part", "migration", "event_sequence", "event"].iter().map(sorted).collect()
}

fn pruned(file: &Path, dir: &Path) -> Pruned {
    prune(file, Some(&Vault::new(dir.join("vault")))).unwrap()
}

fn undo_all(file: &Path, dir: &Path) {
    let gone = gone_sessions(file, &Vault::new(dir.join("vault"))).unwrap();
    for path in ["ses_1", "ses_2"].map(|session| session_path(file, session)).into_iter().chain(gone) {
        while undone(&path, dir, Extent::Whole).ending != Ending::Refused(Refusal::NothingToUndo) {}
    }
}

#[test]
fn superseded_events_go_and_come_back_byte_for_byte() {
    for mode in ["WAL", "DELETE"] {
        let dir = tempfile::tempdir().unwrap();
        let file = store(dir.path(), mode, 400);
        let before = all(&file);
        let copy = dir.path().join("copy.db");
        Connection::open(&file).unwrap().execute(&format!("VACUUM INTO '{}'", copy.display()), []).unwrap();
        let by_hand = Connection::open(&copy).unwrap();
        let gone = by_hand.execute(TRIED, []).unwrap();
        let counted = prune(&file, None).unwrap();
        assert_eq!((counted.sessions, counted.rows), (3, gone as u64), "one of them is gone");
        assert!(all(&file) == before);
        let done = pruned(&file, dir.path());
        assert_eq!((done.rows, done.bytes, done.runs.len()), (counted.rows, counted.bytes, 3));
        assert!(all(&file) == all(&copy), "what is left is what the statement leaves");
        assert_eq!(pruned(&file, dir.path()).rows, 0);
        for session in ["ses_1", "ses_2", "gone"] {
            let path = session_path(&file, session);
            assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{mode}");
            let again = undone(&path, dir.path(), Extent::Whole).ending;
            assert_eq!(again, Ending::Refused(Refusal::NothingToUndo));
        }
        assert!(all(&file) == before, "{mode}");
        // One session alone.
        let one = pruned(&session_path(&file, "ses_2"), dir.path());
        assert_eq!((one.sessions, one.rows), (1, 1));
    }
}

/// What sessions had that were deleted goes too, and comes back under their names.
#[test]
fn without_any_session_superseded_events_go_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = store(dir.path(), "WAL", 400);
    let vault = Vault::new(dir.path().join("vault"));
    let gone = |count: usize| {
        let gone = gone_sessions(&file, &vault).unwrap();
        assert_eq!(gone.len(), count, "{gone:?}");
        gone
    };
    pruned(&session_path(&file, "ses_2"), dir.path());
    gone(0);
    let delete = "DELETE FROM part; DELETE FROM message; DELETE FROM session";
    Connection::open(&file).unwrap().execute_batch(delete).unwrap();
    let before = all(&file);
    let counted = prune(&file, None).unwrap();
    let done = pruned(&file, dir.path());
    assert_eq!((done.sessions, done.rows), (2, counted.rows));
    assert_eq!((done.runs.len(), all(&file)[5].len()), (2, 10));
    for path in gone(3) {
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{path:?}");
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Refused(Refusal::NothingToUndo));
    }
    assert_eq!(all(&file)[5].len(), before[5].len() + 1, "with what was pruned while it was there");
    let never = undo(&session_path(&file, "never"), None, &options(dir.path()), None, Extent::Whole);
    assert!(never.err().unwrap().to_string().contains("could not open the file"));
}

/// Long rows take several transactions; wherever it dies, what is gone is in the vault.
#[test]
fn wherever_it_dies_every_event_is_there_or_comes_back() {
    let run = |fault| {
        let dir = tempfile::tempdir().unwrap();
        let file = store(dir.path(), "WAL", 40_000);
        let before = all(&file);
        let vault = Vault::new(dir.path().join("vault"));
        let (done, steps) = with(fault, || prune(&file, Some(&vault)));
        if fault.is_some() {
            assert!(done.is_err(), "{fault:?}");
            undo_all(&file, dir.path());
            assert!(all(&file) == before, "{fault:?}: undone");
            pruned(&file, dir.path());
        }
        let after = all(&file);
        let undo_first =
            || undo(&session_path(&file, "ses_1"), None, &options(dir.path()), None, Extent::Whole);
        let (_, undoing) = with(None, undo_first);
        undo_all(&file, dir.path());
        assert!(all(&file) == before, "{fault:?}: undone at the end");
        (steps, undoing, after[5].len())
    };
    let (steps, undoing, left) = run(None);
    let commits = |steps: &[Step]| steps.iter().filter(|step| **step == Step::CommitRows).count();
    assert!(commits(&steps) > 3 && commits(&undoing) > 2 && left == 10, "{} {left}", commits(&steps));
    for at in (0..steps.len()).filter(|at| steps[*at] != Step::WriteRow || at % 60 == 0) {
        for fault in [StepFault::Death { at }, StepFault::Error { at, errno: 28 }] {
            // A name that stays says no more than that.
            if matches!(fault, StepFault::Error { .. }) && steps[at] == Step::Clean {
                continue;
            }
            assert_eq!(run(Some(fault)).2, left, "{fault:?}");
        }
    }
    // The undo dies as well.
    for at in (0..undoing.len()).filter(|at| undoing[*at] != Step::WriteRow || at % 60 == 0) {
        let dir = tempfile::tempdir().unwrap();
        let file = store(dir.path(), "WAL", 40_000);
        let before = all(&file);
        pruned(&file, dir.path());
        let path = session_path(&file, "ses_1");
        let undo = || undo(&path, None, &options(dir.path()), None, Extent::Whole);
        assert!(with(Some(StepFault::Death { at }), undo).0.is_err(), "{at}");
        undo_all(&file, dir.path());
        assert!(all(&file) == before, "{at}");
    }
}

#[test]
fn it_waits_for_the_owner_and_leaves_what_was_not_tried() {
    let dir = tempfile::tempdir().unwrap();
    let file = store(dir.path(), "WAL", 400);
    let vault = Vault::new(dir.path().join("vault"));
    let owner = Connection::open(&file).unwrap();
    owner.query_row("SELECT count(*) FROM event", [], |_| Ok(())).unwrap();
    let before = all(&file);
    for done in [prune(&file, Some(&vault)), vacuum(&file)] {
        assert!(matches!(done, Err(Stop::Deferred(Deferral::HeldOpen))), "{done:?}");
    }
    assert!(prune(&file, None).unwrap().rows > 0, "to count needs nobody to stop");
    assert!(all(&file) == before);
    for (change, why) in [
        ("INSERT INTO migration VALUES ('20991231000000_newer', 2)", "20991231000000_newer"),
        ("DELETE FROM migration WHERE id LIKE '2099%'; ALTER TABLE event ADD COLUMN more text", "columns"),
        ("DROP TABLE event", "event.id is missing"),
    ] {
        owner.execute_batch(change).unwrap();
        let Err(Stop::Refused(Refusal::StoreStays(told))) = prune(&file, None) else { panic!("{change}") };
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn vacuum_makes_the_file_smaller_and_undo_still_works() {
    for mode in ["WAL", "DELETE"] {
        let dir = tempfile::tempdir().unwrap();
        let file = store(dir.path(), mode, 40_000);
        let (before, long) = (all(&file), fs::metadata(&file).unwrap().len());
        let done = pruned(&file, dir.path());
        assert!(done.size >= done.free && done.free > long * 8 / 10, "{done:?} {long}");
        let after = all(&file);
        let small = vacuum(&file).unwrap();
        let length = fs::metadata(&file).unwrap().len();
        assert_eq!((small.free, small.size), (0, length));
        assert!(length < long / 5, "{mode}: {length} {long}");
        assert!(all(&file) == after);
        assert_eq!(
            fs::read_dir(dir.path())
                .unwrap()
                .filter(|entry| {
                    let name = entry.as_ref().unwrap().file_name();
                    !["opencode.db", "opencode.db-wal", "opencode.db-shm", "vault"]
                        .contains(&name.to_str().unwrap())
                })
                .count(),
            0
        );
        undo_all(&file, dir.path());
        assert!(all(&file) == before, "{mode}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn vacuum_is_refused_where_there_is_no_room_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("media");
    fs::create_dir(&at).unwrap();
    let Some(_mount) = super::bad::TestMount::tmpfs(&at, "size=20m") else { return };
    let file = store(&at, "DELETE", 40_000);
    let before = all(&file);
    fs::write(at.join("ballast"), vec![0; 10 << 20]).unwrap();
    let done = vacuum(&file);
    assert!(matches!(done, Err(Stop::Refused(Refusal::NoRoom { .. }))), "{done:?}");
    assert!(all(&file) == before);
    // What stays after a prune is so little that there is room.
    pruned(&file, dir.path());
    vacuum(&file).unwrap();
    assert!(fs::metadata(&file).unwrap().len() < 1 << 20);
}

/// What other runs kept of the session goes as a whole, because it may hold a part of the text; what was kept of another session
/// goes if it holds the text.
#[test]
fn a_text_that_is_forgotten_is_gone_from_the_events_that_are_kept() {
    for in_fork in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let file = store(dir.path(), "WAL", 40);
        let output = "a line \\\"quoted\\\"\\n".repeat(4_000);
        let part = format!(
            r#"{{"type":"tool","tool":"ls","callID":"c1","state":{{"status":"completed","input":{{}},"output":"{output}"}}}}"#
        );
        let events = Connection::open(&file).unwrap();
        events.execute("UPDATE part SET data = ?1 WHERE id = 'prt_2'", [&part]).unwrap();
        let held = if in_fork { part } else { "{}".to_string() };
        for (n, id) in [(3, "f1"), (4, "f2")] {
            let event = format!(r#"{{"part":{{"id":"prt_9","state":{held}}}}}"#);
            let add = "INSERT INTO event VALUES (?1, 'ses_2', ?2, 'message.part.updated.1', ?3)";
            events.execute(add, params![id, n, event]).unwrap();
        }
        drop(events);
        pruned(&file, dir.path());
        assert_eq!(fixed(&session_path(&file, "ses_1"), dir.path()).ending, Ending::Fixed);
        let cut = format!("{:?}", all(&file)[2]);
        let id: String =
            cut.split("tailor show ").nth(1).unwrap().chars().take_while(char::is_ascii_hexdigit).collect();
        let vault = Vault::new(dir.path().join("vault"));
        assert_eq!(vault.forget(&id).unwrap().runs, if in_fork { 3 } else { 2 });
        assert_eq!(vault.forget(&id).unwrap().runs, 0);
        let other = undo(&session_path(&file, "ses_2"), None, &options(dir.path()), None, Extent::Whole);
        match other {
            Err(error) => {
                assert!(in_fork && error.to_string().contains("tailor forget removed it"), "{error}");
            }
            Ok(outcome) => assert!(!in_fork && outcome.ending == Ending::Undone, "{:?}", outcome.ending),
        }
    }
}
