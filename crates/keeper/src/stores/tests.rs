//! Stores built here from their schemas, as far as they are read, with made-up content.

mod alone;
mod bad;
mod meanwhile;
mod others;
mod prune;
mod sent_texts;
mod slices;
mod write;

use super::{ExportedSession, export, sessions};
use crate::Sight;
use crate::Verdicts;
use crate::ask::outcome::{Ending, Outcome, Unsupported};
use crate::ask::stop::{Halt, Stop};
use crate::base::refusal::Refusal;
use crate::find;
use crate::is_in_use;
use crate::maintain;
use crate::options::{Mode, Options};
use crate::places::store::session_path;
use crate::read;
use rusqlite::{Connection, params};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use transcript::Severity;
use transcript::finding::{Held, Safety};

const OPENCLAW: &str = "
CREATE TABLE schema_meta (meta_key TEXT NOT NULL PRIMARY KEY, role TEXT NOT NULL, schema_version INTEGER NOT NULL) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23);
CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, updated_at INTEGER NOT NULL,
  transcript_updated_at INTEGER DEFAULT NULL, transcript_observed_at INTEGER DEFAULT NULL) STRICT;
CREATE TABLE transcript_rewrite_watermarks (session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL,
  updated_at INTEGER NOT NULL) STRICT;
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL,
  event_zstd BLOB, event_utf8_bytes INTEGER CHECK (event_utf8_bytes IS NULL OR event_utf8_bytes >= 0), navigation_json TEXT,
  PRIMARY KEY (session_id, seq), FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE,
  CHECK ((event_json IS NOT NULL AND event_zstd IS NULL) OR (event_json IS NULL AND event_zstd IS NOT NULL
    AND event_utf8_bytes BETWEEN 1 AND 4194304 AND navigation_json IS NOT NULL)),
  CHECK (navigation_json IS NULL OR octet_length(navigation_json) <= 16384)) STRICT;
";

const OPENCODE: &str = "
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL, version text NOT NULL,
  time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE migration (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO migration VALUES ('20260622202450_simplify_session_input', 1);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
INSERT INTO session VALUES ('ses_1', NULL, '/w', 'List files', '1.18.33', 1795578400000);
INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 1, '{\"role\":\"user\",\"agent\":\"build\"}');
INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 1, '{\"type\":\"text\",\"text\":\"list files\"}');
INSERT INTO message VALUES ('msg_2', 'ses_1', 2, 2, '{\"role\":\"assistant\",\"modelID\":\"claude-opus-4-6\"}');
INSERT INTO part VALUES ('prt_2', 'msg_2', 'ses_1', 2, 2,
  '{\"type\":\"tool\",\"tool\":\"ls\",\"callID\":\"c1\",\"state\":{\"status\":\"completed\",\"input\":{},\"output\":\"a.txt\"}}');
INSERT INTO part VALUES ('prt_3', 'msg_2', 'ses_1', 2, 2,
  '{\"type\":\"tool\",\"tool\":\"ls\",\"callID\":\"c2\",\"state\":{\"status\":\"completed\",\"input\":{},\"output\":\"b.txt\"}}');
INSERT INTO message VALUES ('msg_3', 'ses_1', 3, 3, '{\"role\":\"user\",\"agent\":\"build\"}');
INSERT INTO part VALUES ('prt_4', 'msg_3', 'ses_1', 3, 3, '{\"type\":\"text\",\"text\":\"thanks\"}');
";

/// Entries of a session in which a result is too long.
fn entries() -> Vec<String> {
    let entry = |n: usize, message: &str| {
        let parent = if n == 1 { "null".to_string() } else { format!("\"e{}\"", n - 1) };
        format!(
            r#"{{"type":"message","id":"e{n}","parentId":{parent},"timestamp":"2026-11-22T17:39:{n:02}.000Z","message":{message}}}"#
        )
    };
    let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"ls","arguments":{}}],"stopReason":"toolUse"}"#;
    let long = format!(
        r#"{{"role":"toolResult","toolCallId":"c1","toolName":"ls","content":[{{"type":"text","text":"{}"}}],"isError":false}}"#,
        "a line of a listing\\n".repeat(3_000)
    );
    vec![
        r#"{"type":"session","version":4,"id":"s1","timestamp":"2026-11-22T17:39:00.000Z","cwd":"/w"}"#
            .into(),
        entry(1, r#"{"role":"user","content":"list files"}"#),
        entry(2, call),
        entry(3, &long),
        entry(4, r#"{"role":"assistant","content":[{"type":"text","text":"Many."}],"stopReason":"stop"}"#),
        entry(5, r#"{"role":"user","content":"thanks"}"#),
    ]
}

fn database(dir: &Path, name: &str, schema: &str, mode: &str) -> (PathBuf, Connection) {
    let path = dir.join(name);
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!("PRAGMA journal_mode = {mode}; PRAGMA page_size = 4096; {schema}"))
        .unwrap();
    (path, connection)
}

/// A store of OpenClaw's, whose long rows are compressed.
fn openclaw(dir: &Path, mode: &str, session: &str, entries: &[String]) -> (PathBuf, Connection) {
    let (path, store) = database(dir, "openclaw-agent.sqlite", OPENCLAW, mode);
    store.execute("INSERT INTO session_windows VALUES (?1, 'agent:main', 7, 9000, NULL)", [session]).unwrap();
    store.execute("INSERT INTO transcript_rewrite_watermarks VALUES (?1, 'g1', 0)", [session]).unwrap();
    for (seq, entry) in entries.iter().enumerate() {
        insert(&store, session, seq, entry);
    }
    (path, store)
}

fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap()
}

fn insert(store: &Connection, session: &str, seq: usize, entry: &str) {
    let packed = (entry.len() > 1024).then(|| zstd::encode_all(entry.as_bytes(), 1).unwrap());
    let navigation = packed.as_ref().map(|_| r#"{"version":1}"#);
    let text = packed.is_none().then_some(entry);
    store
        .execute(
            "INSERT INTO transcript_events VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6)",
            params![session, number(seq), text, packed, number(entry.len()), navigation],
        )
        .unwrap();
}

fn looked(path: &Path) -> Outcome {
    maintain(path, None, &Options::default()).unwrap()
}

/// What is wrong: codes, lines and how bad it is.
fn found(path: &Path) -> Vec<(&'static str, u64, Severity)> {
    let found = looked(path).before.unwrap().findings;
    found.iter().map(|finding| (finding.rule.code(), finding.line, finding.severity)).collect()
}

/// What is read of a session that is not examined.
fn text(path: &Path) -> String {
    let bytes = |source: &dyn transcript::Source| {
        spans::source::read_span(source, transcript::Span::new(0, source.len()))
    };
    String::from_utf8(read(path, None, bytes).unwrap()).unwrap()
}

fn exported(path: &Path) -> (String, ExportedSession) {
    let export = export(path).unwrap().unwrap();
    let mut text = Vec::new();
    export.write(&mut text).unwrap();
    (String::from_utf8(text).unwrap(), export)
}

#[test]
fn a_session_is_its_rows_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    insert(&store, "s1", 6, "{\"type\":\"custom\",\n\"customType\":\"x\",\"id\":\"e6\",\"parentId\":\"e5\"}");
    let all = entries().join("\n")
        + "\n{\"type\":\"custom\", \"customType\":\"x\",\"id\":\"e6\",\"parentId\":\"e5\"}\n";
    let (text, done) = exported(&session_path(&path, "s1"));
    assert_eq!((text.as_str(), &done.lost, &done.remark), (all.as_str(), &Vec::new(), &None));
    // The only session needs no name.
    assert_eq!(exported(&path).0, all);
    let copy = dir.path().join("s1.jsonl");
    fs::write(&copy, &all).unwrap();
    let (stored, as_file) = (looked(&session_path(&path, "s1")), looked(&copy));
    assert_eq!(stored.agent(), Some("pi"));
    assert_eq!((stored.bytes, &stored.ending), (as_file.bytes, &as_file.ending));
    assert_eq!(found(&session_path(&path, "s1")), found(&copy));
    assert_eq!(found(&copy), [("S1", 4, Severity::Warning)]);
    let is_long = |source: &dyn transcript::Source| Ok::<_, Halt>(source.len());
    assert_eq!(read(&session_path(&path, "s1"), None, is_long).unwrap(), all.len() as u64);
}

#[test]
fn sessions_are_found_in_a_folder_and_dated_by_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    store
        .execute_batch(
            "INSERT INTO session_windows VALUES ('empty', 'k', 1, 1, NULL), ('s2', 'k', 5, NULL, NULL)",
        )
        .unwrap();
    insert(&store, "s2", 0, &entries()[0]);
    let paths = |found: Vec<Result<crate::FoundFile, _>>| -> Vec<(PathBuf, u64)> {
        let since =
            |found: &crate::FoundFile| found.written.unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        found
            .into_iter()
            .map(|found| found.unwrap())
            .map(|f| (f.path.clone(), since(&f).as_millis() as u64))
            .collect()
    };
    let both = [(session_path(&path, "s1"), 9_000), (session_path(&path, "s2"), 5)];
    assert_eq!(paths(find(&[dir.path()])), both);
    assert_eq!(paths(find(&[&path])), both);
    assert!(matches!(export(&path), Err(Stop::Refused(Refusal::NamesNoSession(2)))));
    let error = export(&session_path(&path, "s3")).err().unwrap().to_string();
    assert!(error.contains("s3: could not open the file"), "{error}");
}

#[test]
fn a_row_that_its_owner_cannot_read_is_an_error_and_exported_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    let path = session_path(&path, "s1");
    store.execute_batch("UPDATE transcript_events SET event_utf8_bytes = 17 WHERE seq = 3").unwrap();
    assert!(found(&path).contains(&("B9", 4, Severity::Error)), "{:?}", found(&path));
    let (text, done) = exported(&path);
    assert_eq!((text, done.lost.len()), (entries().join("\n") + "\n", 1));
    assert!(done.lost[0].contains("event 3: ") && done.lost[0].contains("is 17"), "{:?}", done.lost);
    store.execute_batch("UPDATE transcript_events SET event_zstd = x'0102' WHERE seq = 3").unwrap();
    let (text, done) = exported(&path);
    assert_eq!((text.lines().count(), done.lost.len()), (5, 1));
    store.execute_batch("UPDATE schema_meta SET schema_version = 24").unwrap();
    assert!(exported(&path).1.remark.unwrap().contains("version 24"));
}

#[test]
fn parts_of_opencode_are_records() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store) = database(dir.path(), "opencode.db", OPENCODE, "WAL");
    let path = session_path(&path, "ses_1");
    assert_eq!((looked(&path).agent(), found(&path)), (Some("opencode"), Vec::new()));
    let facts = looked(&path).before.unwrap().facts;
    assert_eq!((facts.entries, facts.calls, facts.results), (8, 2, 2));
    let (text, _) = exported(&path);
    let part = r#"{"store":"opencode","table":"part","id":"prt_2","session_id":"ses_1","message_id":"msg_2","role":"assistant","model":"claude-opus-4-6","timestamp":2,"data":{"type":"tool","tool":"ls","callID":"c1","state":{"status":"completed","input":{},"output":"a.txt"}}}"#;
    assert_eq!(text.lines().nth(4), Some(part));
    let set = |data: &str| store.execute("UPDATE part SET data = ?1 WHERE id = 'prt_2'", [data]).unwrap();
    for (data, wrong) in [
        // What OpenCode puts right when it sends it.
        (
            r#"{"type":"tool","tool":"ls","callID":"c1","state":{"status":"running","input":{}}}"#,
            Some(("P1", Severity::Note)),
        ),
        // What ends the session for good.
        (
            r#"{"type":"tool","tool":"ls","callID":"c1","state":{"status":"completed","input":{}}}"#,
            Some(("B9", Severity::Error)),
        ),
        (
            r#"{"type":"tool","tool":"b sh<x>","callID":"c1","state":{"status":"error","input":{},"error":"no"}}"#,
            Some(("P10", Severity::Error)),
        ),
        (r#"{"type":"tool","tool":"ls","#, Some(("B9", Severity::Error))),
        (
            r#"{"type":"tool","tool":"ls","callID":"c1","state":{"status":"error","input":{},"error":"no"}}"#,
            None,
        ),
    ] {
        set(data);
        let there = found(&path);
        match wrong {
            None => assert_eq!(there, [], "{data}"),
            Some((code, how)) => assert!(there.contains(&(code, 5, how)), "{data}: {there:?}"),
        }
    }
    let output = "x".repeat(50_000);
    let long = |time: &str| {
        format!(
            r#"{{"type":"tool","tool":"ls","callID":"c1","state":{{"status":"completed","input":{{}},"output":"{output}","time":{time}}}}}"#
        )
    };
    set(&long(r#"{"start":1}"#));
    assert_eq!(found(&path)[0].0, "S1");
    // It is not sent any more.
    set(&long(r#"{"start":1,"compacted":2}"#));
    assert!(found(&path).iter().all(|(code, ..)| *code != "S1"), "{:?}", found(&path));
}

#[test]
fn messages_of_hermes_are_put_together() {
    const HERMES: &str = "
        CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, started_at REAL NOT NULL, cwd TEXT, title TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,
          tool_call_id TEXT, tool_calls TEXT, timestamp REAL NOT NULL, active INTEGER NOT NULL DEFAULT 1);
        INSERT INTO sessions VALUES ('h1', 'telegram', 'hermes-4', 1.0, '/w', NULL);
        INSERT INTO messages VALUES (1, 'h1', 'user', 'list files', NULL, NULL, 1.5, 1);
        INSERT INTO messages VALUES (2, 'h1', 'assistant', NULL, NULL,
          '[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]', 2.0, 1);
        INSERT INTO messages VALUES (3, 'h1', 'tool', 'a.txt', 'c1', NULL, 3.0, 1);
        INSERT INTO messages VALUES (4, 'h1', 'user', 'taken back', NULL, NULL, 4.0, 0);
        INSERT INTO messages VALUES (5, 'h1', 'assistant', 'One.', NULL, NULL, 5.0, 1);";
    let dir = tempfile::tempdir().unwrap();
    let (file, _store) = database(dir.path(), "state.db", HERMES, "WAL");
    let path = session_path(&file, "h1");
    let seen = looked(&path);
    let facts = seen.before.as_ref().unwrap().facts;
    assert_eq!((seen.agent(), seen.ending), (Some("hermes"), Ending::Clean));
    assert_eq!((facts.entries, facts.calls, facts.results), (5, 1, 1));
    let (text, done) = exported(&path);
    assert_eq!((text.lines().count(), done.lost.len()), (6, 0));
    let tool =
        r#"{"role":"tool","content":"a.txt","tool_call_id":"c1","timestamp":"1970-01-01T00:00:03.000"}"#;
    assert_eq!(text.lines().nth(3), Some(tool));
}

#[test]
fn only_a_repair_in_place_changes_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "DELETE", "s1", &entries());
    drop(store);
    let before = fs::read(&file).unwrap();
    let path = session_path(&file, "s1");
    let copy = Mode::CopyTo(dir.path().join("copy"));
    let outcome = maintain(&path, None, &Options { mode: copy, ..Options::default() }).unwrap();
    assert_eq!(outcome.ending, Ending::Unsupported(Unsupported::Stored));
    let found = outcome.before.unwrap();
    let held = |finding: &transcript::Finding| matches!(finding.fix.safety, Safety::Held(Held::ReadOnly(_)));
    assert!(found.findings.len() == 1 && found.findings.iter().all(held));
    assert_eq!(found.bytes_after, found.facts.bytes);
    let dry = Options { mode: Mode::DryRun, ..Options::default() };
    assert_eq!(maintain(&path, None, &dry).unwrap().ending, Ending::WouldFix);
    let recovery = crate::Recovery::default();
    let options = Options { mode: Mode::Fix, ..Options::default() };
    let recovered = crate::recover(&path, None, &recovery, &options).unwrap();
    assert_eq!(recovered.outcome.ending, Ending::Clean, "it is not too long");
    assert_eq!(fs::read(&file).unwrap(), before);
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["openclaw-agent.sqlite"]);
}

/// The owner keeps the database open, with what it wrote last in its log.
#[test]
fn beside_its_owner_what_is_committed_is_read_and_nobody_waits() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    store.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA busy_timeout = 0; BEGIN IMMEDIATE").unwrap();
    insert(&store, "s1", 6, "{}");
    let log = dir.path().join("openclaw-agent.sqlite-wal");
    let before = (fs::read(&file).unwrap(), fs::metadata(&log).unwrap().len());
    let path = session_path(&file, "s1");
    assert_eq!(exported(&path).0.lines().count(), 6);
    store.execute_batch("COMMIT").unwrap();
    assert_eq!(exported(&path).0.lines().count(), 7);
    assert_eq!(fs::read(&file).unwrap(), before.0);
    assert!(fs::metadata(&log).unwrap().len() >= before.1);
    // A reader that stays would be in the way of this.
    let busy: i64 = store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
}

#[test]
fn of_a_damaged_database_the_rest_is_exported_and_it_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..400)
        .map(|n| format!(r#"{{"type":"custom","id":"x{n}","data":"{}"}}"#, "y".repeat(800)))
        .collect();
    let (file, store) = openclaw(dir.path(), "DELETE", "s1", &many);
    let page: i64 = store
        .query_row("SELECT pageno FROM dbstat WHERE name = 'transcript_events' AND pagetype = 'leaf' LIMIT 1 OFFSET 20", [], |row| row.get(0))
        .or_else(|_| Ok::<i64, rusqlite::Error>(40))
        .unwrap();
    drop(store);
    let mut bytes = fs::read(&file).unwrap();
    let at = (usize::try_from(page).unwrap() - 1) * 4096;
    bytes[at..at + 4096].fill(0x5a);
    fs::write(&file, &bytes).unwrap();
    let path = session_path(&file, "s1");
    let error = maintain(&path, None, &Options::default()).err().unwrap().to_string();
    assert!(error.contains("malformed") && error.contains("tailor export"), "{error}");
    let (text, done) = exported(&path);
    let (kept, lost) = (text.lines().count(), done.lost.len());
    assert!(kept > 350 && kept + lost == 400 && lost > 0, "{kept} {lost}");
    assert!(text.lines().all(|line| many.iter().any(|own| own == line)));
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

/// Nothing can be found without the list of tables, and the error says what else there is.
#[test]
fn a_database_whose_list_of_tables_is_damaged_is_not_a_dead_end() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "DELETE", "s1", &entries());
    drop(store);
    let mut bytes = fs::read(&file).unwrap();
    bytes[100..4096].fill(0x5a);
    fs::write(&file, &bytes).unwrap();
    let path = session_path(&file, "s1");
    let export = export(&path).err().unwrap().to_string();
    let look = maintain(&path, None, &Options::default()).err().unwrap().to_string();
    let list = find(&[&file]).remove(0).err().unwrap().to_string();
    for error in [export, look, list] {
        assert!(error.contains(".recover") && !error.contains("tailor export"), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn what_is_no_store_is_left_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _store) =
        database(dir.path(), "notes.db", "CREATE TABLE notes (id INTEGER, text TEXT)", "WAL");
    assert_eq!(sessions(&path, None)[0].as_ref().unwrap().path, path);
    assert!(export(&path).unwrap().is_none());
    assert_eq!(looked(&path).ending, Ending::Unsupported(Unsupported::UnknownFormat));
    let text = dir.path().join("text.db");
    fs::write(&text, "no database, but long enough to be asked".repeat(40)).unwrap();
    assert_eq!(sessions(&text, None)[0].as_ref().unwrap().path, text);
    // Of a view nobody knows what it does.
    let view = OPENCODE
        .replace("CREATE TABLE part", "CREATE TABLE parts")
        .replace("INTO part ", "INTO parts ")
        .replace("ON part ", "ON parts ")
        + "CREATE VIEW part AS SELECT * FROM parts;";
    let (path, _store) = database(dir.path(), "opencode.db", &view, "WAL");
    assert!(export(&path).unwrap().is_none());
    assert!(matches!(looked(&path).ending, Ending::Unsupported(Unsupported::Store(_))));
    let session = session_path(&path, "ses_1");
    assert!(matches!(looked(&session).ending, Ending::Unsupported(Unsupported::Store(_))));
    let gone = dir.path().join("gone").join("opencode.db");
    assert!(maintain(&gone, None, &Options::default()).err().unwrap().is_missing());
    let other = dir.path().join("other.db");
    fs::copy(&path, &other).unwrap();
    let session = session_path(&other, "ses_1");
    assert_eq!(looked(&session).ending, Ending::Unsupported(Unsupported::UnknownFormat));
}

/// The name of the variable by which the next test knows that it is the other process.
const OTHER: &str = "TAILOR_TEST_STORE";

#[test]
fn another_process_takes_the_store() {
    let Some(path) = std::env::var_os(OTHER) else { return };
    let store = Connection::open(path).unwrap();
    store.busy_timeout(Duration::ZERO).unwrap();
    let busy: i64 = store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0, "a reader is there");
    store.execute_batch("BEGIN EXCLUSIVE; COMMIT").unwrap();
}

/// Closing any descriptor of a file gives back all locks that a process has on it.
#[test]
fn nothing_of_ours_gives_back_the_locks_of_an_open_connection() {
    for mode in ["DELETE", "WAL"] {
        let dir = tempfile::tempdir().unwrap();
        let (file, store) = openclaw(dir.path(), mode, "s1", &entries());
        let path = session_path(&file, "s1");
        let is_free = || {
            let test = "stores::tests::another_process_takes_the_store";
            let mut other = Command::new(std::env::current_exe().unwrap());
            other.args(["--exact", test]).env(OTHER, &file).output().unwrap().status.success()
        };
        let reader = Connection::open(&file).unwrap();
        let read_on = || {
            reader.execute_batch("BEGIN").unwrap();
            reader
                .query_row("SELECT count(*) FROM transcript_events", [], |row| row.get::<_, i64>(0))
                .unwrap();
        };
        read_on();
        assert!(!is_free(), "{mode}: the reader holds no lock");
        let options = Options::default();
        let verdicts = Verdicts::open(&dir.path().join("cache"), &options, &[dir.path().to_path_buf()]).ok();
        find(&[dir.path()]);
        find(&[&file]);
        export(&path).unwrap();
        let facts = looked(&path).before.unwrap().facts;
        looked(&file);
        is_in_use(&path, &facts);
        assert!(Sight::now(&path).is_some());
        verdicts.map(|verdicts| verdicts.maintain(&path, None, &options).unwrap());
        let vault = Some(crate::Vault::new(dir.path().join("vault")));
        let fix = Options { mode: Mode::Fix, vault, ..Options::default() };
        maintain(&path, None, &fix).unwrap();
        crate::recover(&path, None, &crate::Recovery::default(), &fix).unwrap();
        assert!(!is_free(), "{mode}: the lock is gone");
        // That is what it would look like.
        drop(File::open(&file));
        if mode == "WAL" {
            drop(File::open(dir.path().join("openclaw-agent.sqlite-shm")));
        }
        assert!(is_free(), "{mode}: this test sees nothing");
        drop((reader, store));
    }
}

/// What a turn writes is read as it is at one instant, although it is written all the time: in each commit the first part and
/// the last one hold the same number, and one part comes.
#[test]
fn a_long_session_is_read_beside_a_turn() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = database(dir.path(), "opencode.db", OPENCODE, "WAL");
    let filler = "a line of a listing ".repeat(500);
    store.execute_batch("BEGIN").unwrap();
    for n in 0..3_000 {
        let part = format!(r#"{{"type":"text","text":"{filler}"}}"#);
        let values = params![format!("prt_4_{n:06}"), part];
        store.execute("INSERT INTO part VALUES (?1, 'msg_3', 'ses_1', 3, 3, ?2)", values).unwrap();
    }
    store.execute_batch("COMMIT").unwrap();
    let path = session_path(&file, "ses_1");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &stop;
        let writer = scope.spawn(move || {
            let (set, add) = (
                "UPDATE part SET data = ?1, time_updated = time_updated + 1 WHERE id IN ('prt_1', 'prt_4_002999')",
                "INSERT INTO part VALUES (?1, 'msg_3', 'ses_1', 3, 3, '{\"type\":\"text\",\"text\":\"new\"}')",
            );
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                count += 1;
                store.execute_batch("BEGIN IMMEDIATE").unwrap();
                store.execute(set, [format!(r#"{{"type":"text","text":"count {count:09}"}}"#)]).unwrap();
                store.execute(add, [format!("prt_9_{count:09}")]).unwrap();
                store.execute("DELETE FROM part WHERE id = ?1", [format!("prt_4_{:06}", count % 2_000)]).unwrap();
                store.execute_batch("COMMIT").unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            count
        });
        let exports: Vec<String> = (0..3).map(|_| exported(&path).0).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 10, "it has to be slow enough to be read in several slices");
        for text in exports {
            let counts: Vec<&str> =
                text.match_indices("count ").map(|(at, _)| &text[at + 6..at + 15]).collect();
            assert!(counts.len() == 2 && counts[0] == counts[1], "{counts:?}");
            // As many parts came as were counted, and they are in order.
            let added = text.matches(r#""id":"prt_9_"#).count();
            assert_eq!(added, counts[0].parse::<usize>().unwrap());
            let ids: Vec<&str> = text.lines().skip(1).map(|line| line.split('"').nth(11).unwrap()).collect();
            let parts: Vec<_> = ids.iter().filter(|id| id.starts_with("prt_")).collect();
            assert!(parts.is_sorted() && parts.len() > 1_000, "{} parts", parts.len());
        }
    });
}

/// A database and its log that are as they were need not be read again; whatever is written to either shows.
#[test]
fn what_was_told_of_a_session_holds_until_its_database_or_log_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    let path = session_path(&file, "s1");
    let log = dir.path().join("openclaw-agent.sqlite-wal");
    let age = |path: &Path, hours: u64| {
        let time = std::time::SystemTime::now() - Duration::from_secs(3_600 * hours);
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    };
    let (options, cache) = (Options::default(), dir.path().join("cache"));
    let open = || Verdicts::open(&cache, &options, &[dir.path().to_path_buf()]).unwrap();
    let look = |verdicts: &Verdicts| {
        let before = crate::bytes_read();
        let outcome = verdicts.maintain(&path, None, &options).unwrap();
        let found: Vec<_> =
            outcome.before.as_ref().unwrap().findings.iter().map(|f| (f.rule.code(), f.line)).collect();
        (outcome.ending, outcome.bytes, found, crate::bytes_read() > before)
    };
    let (ending, bytes, found, was_read) = look(&open());
    assert!(was_read && found == [("S1", 4)]);
    // What has just been written may be written again without other times.
    assert!(look(&open()).3);
    age(&file, 1);
    age(&log, 1);
    std::thread::sleep(Duration::from_millis(2_100));
    assert!(look(&open()).3);
    assert_eq!(look(&open()), (ending, bytes, found.clone(), false));
    // The database itself may be what was asked for.
    let named = Verdicts::open(&cache, &options, std::slice::from_ref(&file)).unwrap();
    assert!(!look(&named).3);
    let other = Verdicts::open(&cache, &options, &[dir.path().join("openclaw-agent")]).unwrap();
    assert!(look(&other).3);
    assert_eq!(
        find(&[&path])[0].as_ref().unwrap().written,
        Some(std::time::UNIX_EPOCH + Duration::from_secs(9))
    );
    insert(&store, "s1", 6, &entries()[5].replace("e5", "e6").replace("e4", "e5"));
    let (_, more, _, was_read) = look(&open());
    assert!(was_read && more > bytes);
    // Also if somebody puts the times back.
    age(&log, 1);
    std::thread::sleep(Duration::from_millis(2_100));
    assert!(look(&open()).3 && !look(&open()).3);
    store.execute_batch("UPDATE transcript_events SET created_at = 9 WHERE seq = 1").unwrap();
    age(&log, 1);
    assert!(look(&open()).3);
}

/// Stores that the real programs wrote: `TAILOR_STORES` names the folder.
#[test]
fn real_stores_are_read() {
    let Some(folder) = std::env::var_os("TAILOR_STORES") else {
        // Not captured by the harness, which hides the output of tests that pass.
        let _ = std::io::stderr().write_all(b"SKIPPED: real stores: TAILOR_STORES is not set\n");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for (name, session, facts, codes) in [
        ("openclaw-2026.9.6.sqlite", "s1", (33, 7, 7), &["S1", "S1", "S1", "S1"][..]),
        ("opencode-1.18.33.db", "ses_dfbac0375ffe6ela1apq4asvfp", (62, 8, 8), &["S1", "S1", "S1", "S1"][..]),
    ] {
        let file = dir.path().join(name);
        fs::copy(Path::new(&folder).join(name), &file).unwrap();
        let path = session_path(&file, session);
        assert_eq!(
            find(&[&file]).into_iter().map(|found| found.unwrap().path).collect::<Vec<_>>(),
            std::slice::from_ref(&path)
        );
        let seen = looked(&path).before.unwrap().facts;
        assert_eq!((seen.entries, seen.calls, seen.results), facts, "{name}");
        let own: Vec<_> = found(&path).into_iter().map(|(code, ..)| code).collect();
        assert_eq!(own.iter().filter(|code| **code == "S1").count(), codes.len(), "{name}: {own:?}");
        let copy = dir.path().join("copy.jsonl");
        fs::write(&copy, exported(&path).0).unwrap();
        assert_eq!(found(&path), found(&copy), "{name}");
    }
}

/// A long session, beside a writer at full speed: `TAILOR_STORE_BYTES` makes it longer. Prints what it costs.
#[test]
fn a_long_session_costs_little_more_than_a_file_and_keeps_nobody_waiting() {
    let bytes =
        std::env::var("TAILOR_STORE_BYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(4 << 20);
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    let copy = dir.path().join("s1.jsonl");
    let mut text = std::io::BufWriter::new(File::create(&copy).unwrap());
    for entry in entries() {
        writeln!(text, "{entry}").unwrap();
    }
    let (mut seq, mut length) = (6, 0);
    store.execute_batch("BEGIN").unwrap();
    while length < bytes {
        let body = format!("{seq} lines of a listing ").repeat(if seq % 10 == 0 { 1_200 } else { 20 });
        let entry = format!(
            r#"{{"type":"message","id":"e{seq}","parentId":"e{}","timestamp":"2026-11-22T17:40:00.000Z","message":{{"role":"user","content":"{body}"}}}}"#,
            seq - 1
        );
        writeln!(text, "{entry}").unwrap();
        let values = params![seq, entry, number(entry.len())];
        store
            .execute("INSERT INTO transcript_events VALUES ('s1', ?1, ?2, 0, NULL, ?3, NULL)", values)
            .unwrap();
        length += entry.len() + 1;
        seq += 1;
    }
    store.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(text);
    let path = session_path(&file, "s1");
    let timed = |path: &Path| {
        let since = Instant::now();
        let found = found(path);
        (since.elapsed(), found)
    };
    timed(&copy);
    let (as_file, of_file) = timed(&copy);
    let (stored, of_store) = timed(&path);
    assert_eq!(of_store, of_file);
    let stop = AtomicBool::new(false);
    let (commits, longest, beside, log) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let other = Connection::open(&file).unwrap();
            other.busy_timeout(Duration::ZERO).unwrap();
            other.execute_batch("INSERT INTO session_windows VALUES ('s2', 'k', 1, 1, NULL)").unwrap();
            let (mut commits, mut longest) = (0, Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let since = Instant::now();
                insert(&other, "s2", commits, "{}");
                longest = longest.max(since.elapsed());
                commits += 1;
            }
            (commits, longest)
        });
        let (beside, _) = timed(&path);
        stop.store(true, Ordering::Relaxed);
        let log = fs::metadata(dir.path().join("openclaw-agent.sqlite-wal")).unwrap().len();
        let (commits, longest) = writer.join().unwrap();
        (commits, longest, beside, log)
    });
    println!(
        "{length} bytes: {as_file:?} as a file, {stored:?} as a store, {beside:?} beside {commits} commits of at most \
         {longest:?}; the log has {log} bytes"
    );
}
