//! Rows come, go and are linked anew while their owner is stopped.

use super::write::{fixed, options, rows, undone};
use super::{OPENCODE, database, entries, exported, found, insert, looked, number, openclaw, text};
use crate::Extent;
use crate::Policies;
use crate::ask::deferral::Deferral;
use crate::ask::outcome::Ending;
use crate::base::refusal::Refusal;
use crate::base::step::Step;
use crate::base::step::fault::{StepFault, meanwhile, with};
use crate::maintain;
use crate::places::store::session_path;
use crate::read_to_examine;
use crate::stores::kind::{Turned, Unlinked};
use crate::stores::projection::links;
use crate::stores::rows::RowCell;
use crate::undo;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use transcript::{Finding, Severity, examine_read};

/// The tables beside the events, as OpenClaw makes them.
const LINKED: &str = "
CREATE TABLE transcript_event_identities (session_id TEXT NOT NULL, event_id TEXT NOT NULL, seq INTEGER NOT NULL, event_type TEXT,
  parent_id TEXT, message_idempotency_key TEXT, created_at INTEGER NOT NULL, PRIMARY KEY (session_id, event_id),
  FOREIGN KEY (session_id, seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE) STRICT;
CREATE TABLE session_transcript_index_state (session_id TEXT NOT NULL PRIMARY KEY, indexed_seq INTEGER NOT NULL,
  leaf_event_id TEXT, needs_rebuild INTEGER NOT NULL DEFAULT 0, active_event_count INTEGER NOT NULL DEFAULT 0,
  active_message_count INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE) STRICT;
CREATE TABLE session_transcript_active_events (session_id TEXT NOT NULL, active_position INTEGER NOT NULL
  CHECK (active_position >= 0), event_seq INTEGER NOT NULL, message_position INTEGER CHECK (message_position IS NULL OR
  message_position >= 0), context_eligible INTEGER, PRIMARY KEY (session_id, active_position),
  FOREIGN KEY (session_id, event_seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE) STRICT;
CREATE UNIQUE INDEX idx_agent_transcript_active_event_seq ON session_transcript_active_events(session_id, event_seq);
CREATE UNIQUE INDEX idx_agent_transcript_active_messages ON session_transcript_active_events(session_id, message_position)
  WHERE message_position IS NOT NULL;
";
const TABLES: [&str; 4] = [
    "transcript_events",
    "transcript_event_identities",
    "session_transcript_active_events",
    "session_transcript_index_state",
];

/// A store with all that goes with its events, and a damage; nobody has it open.
pub(super) fn damaged(dir: &Path, mode: &str, damage: &str) -> (PathBuf, PathBuf) {
    let (file, store) = openclaw(dir, mode, "s1", &entries());
    store.execute_batch(LINKED).unwrap();
    for (seq, entry) in entries().iter().enumerate().skip(1) {
        let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
        let (id, parent) = (entry["id"].as_str(), entry["parentId"].as_str());
        let key = (entry["message"]["role"] == "user").then(|| format!("key-{seq}:user"));
        store
            .execute(
                "INSERT INTO transcript_event_identities VALUES ('s1', ?1, ?2, 'message', ?3, ?4, 0)",
                params![id, number(seq), parent, key],
            )
            .unwrap();
        store
            .execute(
                "INSERT INTO session_transcript_active_events VALUES ('s1', ?1, ?2, ?1, 1)",
                params![number(seq - 1), number(seq)],
            )
            .unwrap();
    }
    store
        .execute("INSERT INTO session_transcript_index_state VALUES ('s1', 5, 'e5', 0, 5, 5, 0)", [])
        .unwrap();
    store.execute_batch(&format!("PRAGMA foreign_keys = ON; {damage}")).unwrap();
    let path = session_path(&file, "s1");
    (path, file)
}

pub(super) fn all(file: &Path) -> BTreeMap<&'static str, Vec<Vec<Value>>> {
    let store = Connection::open(file).unwrap();
    // Their keys name rows; in which order they lie in the file is SQLite's own.
    let by_key = |table: &str| {
        let mut all = rows(&store, table);
        all.sort_by_key(|row| format!("{row:?}"));
        all
    };
    TABLES.iter().map(|table| (*table, by_key(table))).collect()
}

/// The result is gone, and so are the rows that hung on it.
pub(super) const DANGLING: &str = "DELETE FROM transcript_events WHERE seq = 3";
/// The same, once OpenClaw has built its index anew: only what follows the gap is in it.
const DANGLING_REBUILT: &str = "DELETE FROM transcript_events WHERE seq = 3; DELETE FROM session_transcript_active_events; \
    INSERT INTO session_transcript_active_events VALUES ('s1', 0, 4, 0, 1), ('s1', 1, 5, 1, 1); \
    UPDATE session_transcript_index_state SET active_event_count = 2, active_message_count = 2";
const LENGTH: &str = "UPDATE transcript_events SET event_utf8_bytes = event_utf8_bytes + 7 WHERE seq = 3";
const NO_JSON: &str = "UPDATE transcript_events SET event_json = '{\"type\":\"mess', event_zstd = NULL, navigation_json = NULL \
    WHERE seq = 3";
/// An empty text is no JSON either, and in a transcript it would be no record at all.
const NO_TEXT: &str =
    "UPDATE transcript_events SET event_json = ' ', event_zstd = NULL, navigation_json = NULL WHERE seq = 3";
const NO_FRAME: &str = "UPDATE transcript_events SET event_zstd = x'0102' WHERE seq = 3";

/// What is live, in its order, and how many events and messages that is said to be.
fn projected(file: &Path) -> (Vec<i64>, (i64, i64, i64, String)) {
    let store = Connection::open(file).unwrap();
    let mut live = store
        .prepare("SELECT event_seq FROM session_transcript_active_events ORDER BY active_position")
        .unwrap();
    let live = live.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let state = "SELECT active_event_count, active_message_count, needs_rebuild, leaf_event_id FROM session_transcript_index_state";
    let state =
        store.query_row(state, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    (live, state)
}

#[test]
fn what_keeps_openclaw_from_loading_a_session_is_mended_and_comes_back_byte_for_byte() {
    for mode in ["WAL", "DELETE"] {
        for (damage, live) in [
            (DANGLING, vec![1, 2, 4, 5]),
            (DANGLING_REBUILT, vec![1, 2, 4, 5]),
            (LENGTH, vec![1, 2, 3, 4, 5]),
            (NO_JSON, vec![1, 2, 3, 4, 5]),
            (NO_TEXT, vec![1, 2, 3, 4, 5]),
            (NO_FRAME, vec![1, 2, 3, 4, 5]),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let (path, file) = damaged(dir.path(), mode, damage);
            let before = all(&file);
            let outcome = fixed(&path, dir.path());
            assert_eq!(outcome.ending, Ending::Fixed, "{damage}");
            let count = i64::try_from(live.len()).unwrap();
            assert_eq!(projected(&file), (live, (count, count, 0, "e5".into())), "{damage}");
            let (text, lost) = exported(&path);
            assert_eq!(lost.lost, Vec::<String>::new(), "{damage}");
            let mut parent = serde_json::Value::Null;
            for line in text.lines().skip(1) {
                let entry: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(entry["parentId"], parent, "{damage}");
                parent = entry["id"].clone();
            }
            if [NO_JSON, NO_TEXT, NO_FRAME].contains(&damage) {
                assert!(
                    text.contains(r#""toolCallId":"c1""#) && text.contains("could not be read"),
                    "{text}"
                );
            }
            assert!(
                fixed(&path, dir.path())
                    .before
                    .unwrap()
                    .findings
                    .iter()
                    .all(|found| found.severity != transcript::Severity::Error)
            );
            assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{damage}");
            assert!(all(&file) == before, "{damage}");
        }
    }
}

#[test]
fn wherever_it_dies_all_rows_are_the_old_ones_or_the_new_ones() {
    for damage in [DANGLING, NO_JSON] {
        let (steps, new) = {
            let dir = tempfile::tempdir().unwrap();
            let (path, file) = damaged(dir.path(), "WAL", damage);
            let steps = with(None, || fixed(&path, dir.path())).1;
            (steps, exported(&path).0 + &format!("{:?}", projected(&file)))
        };
        assert!(steps.contains(&Step::LockRows) && steps.ends_with(&[Step::CommitRows]), "{steps:?}");
        for at in 0..steps.len() {
            for fault in [StepFault::Death { at }, StepFault::Error { at, errno: 28 }] {
                let dir = tempfile::tempdir().unwrap();
                let (path, file) = damaged(dir.path(), "WAL", damage);
                let before = all(&file);
                let (done, _) = with(Some(fault), || maintain(&path, None, &options(dir.path())));
                assert!(done.is_err() && all(&file) == before, "{fault:?}");
                assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed, "{fault:?}");
                assert!(exported(&path).0 + &format!("{:?}", projected(&file)) == new, "{fault:?}");
                let mended = all(&file);
                let undo = || undo(&path, None, &options(dir.path()), None, Extent::Whole);
                let (done, _) = with(Some(StepFault::Death { at: at % 4 }), undo);
                assert!(done.is_err() && all(&file) == mended, "{fault:?}");
                assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{fault:?}");
                assert!(all(&file) == before, "{fault:?}");
            }
        }
    }
}

#[test]
fn beside_another_program_nothing_but_results_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = damaged(dir.path(), "WAL", DANGLING);
    let before = all(&file);
    let mut other =
        Command::new("sleep").arg("60").stdin(Stdio::from(fs::File::open(&file).unwrap())).spawn().unwrap();
    let outcome = fixed(&path, dir.path());
    let pid = other.id();
    assert!(
        matches!(&outcome.ending, Ending::Deferred(Deferral::Open { pid: found, name }) if *found == pid && name == "sleep"),
        "{:?}",
        outcome.ending
    );
    other.kill().unwrap();
    other.wait().unwrap();
    // One that cannot be seen is in the way too: here it is this very process.
    let store = Connection::open(&file).unwrap();
    store.query_row("SELECT count(*) FROM transcript_events", [], |_| Ok(())).unwrap();
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Deferred(Deferral::HeldOpen));
    drop(store);
    assert!(all(&file) == before);
}

/// In a state directory OpenClaw's own lock counts, and it is held while rows are written.
#[test]
fn openclaws_own_lock_keeps_us_out_and_is_left_free() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let agent = home.join("agents/main/agent");
    fs::create_dir_all(&agent).unwrap();
    fs::create_dir_all(home.join("state")).unwrap();
    fs::write(home.join("state/openclaw.sqlite"), "").unwrap();
    let (path, file) = damaged(&agent, "WAL", DANGLING);
    let lock = crate::stores::alone::openclaws_lock(&file).unwrap();
    assert!(lock.starts_with("/tmp"), "{lock:?}");
    assert!(lock.file_name().unwrap().to_str().unwrap().starts_with("gateway-lifecycle."));
    // Private, as OpenClaw makes it.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(lock.parent().unwrap()).unwrap();
    let gateway = Connection::open(&lock).unwrap();
    gateway.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let before = all(&file);
    let ending = fixed(&path, &home).ending;
    assert!(matches!(ending, Ending::Deferred(Deferral::Busy { agent: "OpenClaw", .. })), "{ending:?}");
    assert!(all(&file) == before);
    gateway.execute_batch("ROLLBACK").unwrap();
    let ours = lock.clone();
    let held = move |_, step| {
        if step == Step::CommitRows {
            let gateway = Connection::open(&ours).unwrap();
            gateway.busy_timeout(std::time::Duration::ZERO).unwrap();
            assert!(gateway.execute_batch("BEGIN EXCLUSIVE").is_err(), "we hold it");
        }
    };
    let (outcome, steps) = meanwhile(None, held, || fixed(&path, &home));
    assert!(outcome.ending == Ending::Fixed && steps.contains(&Step::CommitRows));
    gateway.execute_batch("BEGIN EXCLUSIVE; ROLLBACK").unwrap();
    drop(gateway);
    fs::remove_file(lock).unwrap();
}

#[test]
fn where_the_index_does_not_fit_openclaw_has_to_build_it() {
    for more in [
        "UPDATE session_transcript_index_state SET needs_rebuild = 1",
        "DELETE FROM session_transcript_index_state",
        "ALTER TABLE session_transcript_active_events ADD COLUMN other INTEGER",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = damaged(dir.path(), "WAL", &format!("{DANGLING}; {more}"));
        let before = all(&file);
        let ending = fixed(&path, dir.path()).ending;
        let Ending::Refused(Refusal::StoreStays(why)) = ending else { panic!("{more}: {ending:?}") };
        assert!(why.contains("openclaw doctor") || why.contains("columns"), "{why}");
        assert!(all(&file) == before, "{more}");
    }
}

#[test]
fn once_the_session_went_on_a_link_is_not_taken_away_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = damaged(dir.path(), "WAL", DANGLING);
    fixed(&path, dir.path());
    let store = Connection::open(&file).unwrap();
    insert(
        &store,
        "s1",
        6,
        r#"{"type":"message","id":"e6","parentId":"e5","message":{"role":"assistant","content":[]}}"#,
    );
    store
        .execute_batch(
            "INSERT INTO transcript_event_identities VALUES ('s1', 'e6', 6, 'message', 'e5', NULL, 0); \
             INSERT INTO session_transcript_active_events VALUES ('s1', 4, 6, 4, 1); \
             UPDATE session_transcript_index_state SET indexed_seq = 6, leaf_event_id = 'e6', active_event_count = 5",
        )
        .unwrap();
    drop(store);
    let before = all(&file);
    let ending = undone(&path, dir.path(), Extent::Whole).ending;
    assert!(
        matches!(&ending, Ending::Refused(Refusal::StoreStays(why)) if why.contains("goes on")),
        "{ending:?}"
    );
    assert!(all(&file) == before);
}

/// A store of OpenCode's whose second part says this.
fn opencode(dir: &Path, part: &str) -> (PathBuf, PathBuf) {
    let (file, store) = database(dir, "opencode.db", OPENCODE, "WAL");
    store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_2'", [part]).unwrap();
    (session_path(&file, "ses_1"), file)
}

fn part(file: &Path) -> serde_json::Value {
    let store = Connection::open(file).unwrap();
    let data: String =
        store.query_row("SELECT data FROM part WHERE id = 'prt_2'", [], |row| row.get(0)).unwrap();
    serde_json::from_str(&data).unwrap()
}

#[test]
fn what_keeps_opencode_from_sending_a_session_is_mended_and_comes_back() {
    const EVENTS: &str = "CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, \
        data text NOT NULL); \
        INSERT INTO event VALUES ('evt_1', 'ses_1', 1, 'message.part.updated.1', '{\"sessionID\":\"ses_1\",\"part\":{\"id\":\"prt_2\",\
        \"messageID\":\"msg_2\",\"sessionID\":\"ses_1\",\"type\":\"tool\",\"tool\":\"ls\",\"callID\":\"c1\",\"state\":{\"status\":\"completed\",\
        \"input\":{},\"output\":\"a.txt\",\"time\":{\"start\":1,\"end\":2}}}}')";
    let tool = |name: &str, state: &str| {
        format!(r#"{{"type":"tool","tool":"{name}","callID":"c1","state":{state}}}"#)
    };
    let lost = r#"{"status":"completed","input":{"path":"."},"time":{"start":5,"end":6}}"#;
    for (damage, has_events, wanted) in [
        (tool("ls", lost), false, ("tool", "error", "ls")),
        (tool("ls", lost), true, ("tool", "completed", "ls")),
        (r#"{"type":"tool","#.to_string(), false, ("text", "", "")),
        (r#"{"type":"tool","#.to_string(), true, ("tool", "completed", "ls")),
        (
            tool("ba sh<x>", r#"{"status":"completed","input":{},"output":"x"}"#),
            false,
            ("tool", "completed", "ba_sh_x_"),
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = opencode(dir.path(), &damage);
        let all = || rows(&Connection::open(&file).unwrap(), "part");
        if has_events {
            Connection::open(&file).unwrap().execute_batch(EVENTS).unwrap();
        }
        let before = all();
        assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed, "{damage}");
        let now = part(&file);
        let said = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
        let found = (said(&now["type"]), said(&now["state"]["status"]), said(&now["tool"]));
        assert_eq!((found.0.as_str(), found.1.as_str(), found.2.as_str()), wanted, "{now}");
        assert!(
            now.get("messageID").is_none() && now["state"]["error"].is_null() != (wanted.1 == "error"),
            "{now}"
        );
        assert_eq!(all().iter().zip(&before).filter(|(new, old)| new != old).count(), 1);
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{damage}");
        assert!(all() == before, "{damage}");
    }
}

const LEAF: &str = "UPDATE session_transcript_index_state SET leaf_event_id = 'e2'";
const IDENTITY: &str = "DELETE FROM transcript_event_identities WHERE seq = 3";

/// In the record of a part is the role that its message says, so once a message is put right the records behind it stand elsewhere.
#[test]
fn rows_come_back_wherever_their_records_stand_by_then() {
    const EVENT: &str = "CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, \
        data text NOT NULL); INSERT INTO event VALUES ('evt_1', 'ses_1', 1, 'message.updated.1', '{\"sessionID\":\"ses_1\",\"info\":\
        {\"id\":\"msg_2\",\"sessionID\":\"ses_1\",\"role\":\"assistant\",\"modelID\":\"claude-opus-4-6\"}}'); \
        UPDATE message SET data = '{' WHERE id = 'msg_2'";
    for extent in [Extent::Whole, Extent::Possible] {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = opencode(dir.path(), r#"{"type":"tool","#);
        Connection::open(&file).unwrap().execute_batch(EVENT).unwrap();
        let all = || ["message", "part"].map(|table| rows(&Connection::open(&file).unwrap(), table));
        let before = all();
        assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed);
        let mended = all();
        assert!(mended[0] != before[0] && mended[1] != before[1]);
        assert!(found(&path).iter().all(|(code, ..)| *code != "B9"), "{:?}", found(&path));
        // A row that somebody has changed since stays, and the others with it.
        let change = |data: &str| {
            let store = Connection::open(&file).unwrap();
            store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_2'", [data]).unwrap();
        };
        let own = part(&file).to_string();
        change(r#"{"type":"text","text":"other"}"#);
        let other = all();
        assert!(matches!(undone(&path, dir.path(), extent).ending, Ending::Refused(_)));
        assert!(all() == other);
        change(&own);
        assert!(all() == mended);
        let outcome = undone(&path, dir.path(), extent);
        assert_eq!((outcome.ending, outcome.places_left), (Ending::Undone, 0));
        assert!(all() == before);
    }
}

/// What OpenClaw believes of a session is compared with its events, said, put right, and comes back.
#[test]
fn a_wrong_leaf_and_a_lost_identity_are_said_and_mended() {
    for (damage, lines) in [
        (LEAF.to_string(), vec![6]),
        (IDENTITY.to_string(), vec![4]),
        (format!("{IDENTITY}; DELETE FROM transcript_event_identities WHERE seq = 2; {LEAF}"), vec![3, 4, 6]),
        (format!("UPDATE session_transcript_index_state SET needs_rebuild = 1; {LEAF}; {IDENTITY}"), vec![]),
    ] {
        let (whole, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (_, whole) = damaged(whole.path(), "WAL", "");
        let (path, file) = damaged(dir.path(), "WAL", &damage);
        let before = all(&file);
        let said: Vec<_> = found(&path).into_iter().filter(|(.., how)| *how == Severity::Error).collect();
        let wanted: Vec<_> = lines.iter().map(|line| ("B9", *line, Severity::Error)).collect();
        assert_eq!(said, wanted, "{damage}");
        assert_eq!(text(&path), entries().join("\n") + "\n", "its rows are read as they are: {damage}");
        let told = looked(&path).before.unwrap().findings;
        for finding in told.iter().filter(|finding| finding.rule.code() == "B9") {
            let (of, begin) = if finding.line == 6 {
                ("leaf_event_id", "event 5: ".to_string())
            } else {
                ("transcript_event_identities", format!("event {}: ", finding.line - 1))
            };
            assert!(
                finding.message.starts_with(&begin) && finding.message.contains(of),
                "{}",
                finding.message
            );
        }
        let other = read_to_examine(
            &path,
            None,
            &Policies::default(),
            &transcript::Situation::default(),
            |reading, case| examine_read(reading, case),
        )
        .unwrap()
        .findings;
        let messages =
            |found: &[Finding]| -> Vec<_> { found.iter().map(|one| one.message.clone()).collect() };
        assert_eq!(messages(&other), messages(&told), "{damage}");
        let (copy, lost) = exported(&path);
        assert_eq!(
            (copy.lines().map(str::to_string).collect(), lost.lost),
            (entries(), Vec::new()),
            "{damage}"
        );
        if lines.is_empty() {
            continue;
        }
        let outcome = fixed(&path, dir.path());
        assert_eq!(outcome.ending, Ending::Fixed, "{damage}");
        let (now, wanted) = (all(&file), all(&whole));
        for table in &TABLES[1..3] {
            assert_eq!(now[table], wanted[table], "{damage}");
        }
        assert_eq!(projected(&file), projected(&whole), "{damage}");
        assert!(found(&path).iter().all(|(.., severity)| *severity != Severity::Error), "{damage}");
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{damage}");
        assert!(all(&file) == before, "{damage}");
    }
}

/// Beside its owner the text of such a row is shortened like others, and the row is still said to be of no use.
#[test]
fn a_result_without_identity_is_shortened_beside_its_owner_and_mended_once_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = damaged(dir.path(), "WAL", IDENTITY);
    let before = all(&file);
    let store = Connection::open(&file).unwrap();
    store.query_row("SELECT count(*) FROM transcript_events", [], |_| Ok(())).unwrap();
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed);
    let (row, bytes): (Vec<u8>, usize) = store
        .query_row("SELECT event_zstd, event_utf8_bytes FROM transcript_events WHERE seq = 3", [], |row| {
            Ok((row.get(0)?, row.get::<_, u32>(1)? as usize))
        })
        .unwrap();
    let row = String::from_utf8(zstd::decode_all(&row[..]).unwrap()).unwrap();
    assert!(row.contains("[tailor: ") && row.ends_with('}') && row.len() == bytes, "{bytes}");
    assert_eq!(all(&file)[TABLES[1]], before[TABLES[1]]);
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Deferred(Deferral::HeldOpen));
    drop(store);
    assert_eq!(found(&path), [("B9", 4, Severity::Error)]);
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed);
    assert_eq!((found(&path), all(&file)[TABLES[1]].len()), (Vec::new(), 5));
    for _ in 0..2 {
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
    }
    assert!(all(&file) == before);
}

/// What a row holds is not printed, however it begins.
#[test]
fn a_row_that_looks_like_a_reason_is_a_line_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let line = "event 3: it is not in transcript_event_identities, and a secret";
    let (path, _) = damaged(
        dir.path(),
        "WAL",
        &format!("UPDATE transcript_events SET event_json = '{line}' WHERE seq = 4"),
    );
    let told = looked(&path).before.unwrap().findings;
    let own = told.iter().filter(|finding| finding.rule.code() == "B9").map(|finding| &finding.message);
    let own: Vec<_> = own.collect();
    assert!(own.len() == 1 && !own[0].contains("secret"), "{own:?}");
}

/// The same together with a repair that links rows anew.
#[test]
fn a_wrong_leaf_and_a_lost_identity_are_mended_with_links() {
    for more in [LEAF, "DELETE FROM transcript_event_identities WHERE seq = 4"] {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = damaged(dir.path(), "WAL", &format!("{DANGLING}; {more}"));
        let before = all(&file);
        assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed, "{more}");
        let (live, (.., leaf)) = projected(&file);
        assert!(leaf == "e5" && live.last() == Some(&5), "{live:?} {leaf}");
        assert!(found(&path).iter().all(|(.., severity)| *severity != Severity::Error), "{more}");
        assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone, "{more}");
        assert!(all(&file) == before, "{more}");
    }
}

/// An event goes, and another one still names it as its parent: there the index would not be right any more.
#[test]
fn no_event_goes_that_a_live_one_hangs_on() {
    let dir = tempfile::tempdir().unwrap();
    let (_, file) = damaged(dir.path(), "WAL", "");
    let store = Connection::open(&file).unwrap();
    let gone = |seq: i64| Turned { row: vec![RowCell::text("s1"), RowCell::Integer(seq)], new: None };
    let stays = links(&store, "s1", &[gone(3)]);
    assert!(matches!(stays, Err(Unlinked::Stays(why)) if why.contains("openclaw doctor")));
    // Nothing hangs on the last one.
    assert!(links(&store, "s1", &[gone(5)]).is_ok());
}
