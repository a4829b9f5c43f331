//! No transaction reads many rows, however many there are: SQLite itself tells of each one.

use super::{OPENCLAW, OPENCODE, database, entries, insert, openclaw};
use crate::places::store::session_path;
use crate::stores::database::Database;
use crate::stores::kinds::KINDS;
use crate::stores::lines::{RecordLines, Want};
use crate::stores::slices::{SLICE_ROWS, fill};
use crate::stores::{PAGE_ROWS, listed, open_to_scan};
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, params};
use std::cell::Cell;
use std::path::Path;

thread_local! {
    /// The rows that the transaction has read, and the most that one has read.
    static ROWS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// What one step reads beyond the limit: a page, and a few rows to go on with.
const MOST: usize = SLICE_ROWS + PAGE_ROWS + 20;

#[expect(clippy::needless_pass_by_value, reason = "this is what rusqlite calls")]
fn note(event: TraceEvent<'_>) {
    let (rows, most) = ROWS.get();
    match event {
        TraceEvent::Row(_) => ROWS.set((rows + 1, most.max(rows + 1))),
        // Outside of a transaction each statement is one.
        TraceEvent::Stmt(_, sql) if sql == "ROLLBACK" || sql.starts_with("WITH s(id, written)") => {
            ROWS.set((0, most));
        }
        _ => {}
    }
}

/// A database in which the rows of each transaction are counted.
fn counted(file: &Path) -> Database {
    let mut database = Database::open(file).unwrap();
    let codes = TraceEventCodes::SQLITE_TRACE_ROW | TraceEventCodes::SQLITE_TRACE_STMT;
    database.connection.trace_v2(codes, Some(note)).unwrap();
    ROWS.set((0, 0));
    database
}

/// How many rows of a session are read, and the most that one transaction read of anything.
fn read(file: &Path, session: &str) -> (usize, usize) {
    let database = counted(file);
    let kind = database.kind(KINDS).unwrap().unwrap();
    let mut lines = RecordLines::new(Want::Records).unwrap();
    fill(&database, kind, session, &mut lines).unwrap();
    (lines.rows.len(), ROWS.get().1)
}

#[test]
fn no_transaction_reads_many_rows_of_a_session() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    store.execute_batch("BEGIN").unwrap();
    (6..3_000).for_each(|seq| insert(&store, "s1", seq, "{}"));
    store.execute_batch("COMMIT").unwrap();
    let (rows, most) = read(&file, "s1");
    assert_eq!(rows, 3_000);
    assert!(most > SLICE_ROWS / 2 && most <= MOST, "{most} rows of a session of OpenClaw's");

    let (file, store) = database(dir.path(), "opencode.db", OPENCODE, "WAL");
    opencode(&store);
    let (rows, most) = read(&file, "ses_1");
    assert_eq!(rows, 8 + 1_500 + 1_500 + 700 + 700);
    assert!(most > SLICE_ROWS / 2 && most <= MOST, "{most} rows of a session of OpenCode's");
}

/// A message with many parts, many messages with one each, and parts without a message.
fn opencode(store: &Connection) {
    store.execute_batch("BEGIN").unwrap();
    let part = |id: String, message: &str| {
        let values = params![id, message];
        store
            .execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', 3, 3, '{\"type\":\"text\"}')", values)
            .unwrap();
    };
    for n in 0..1_500 {
        part(format!("prt_4_{n:06}"), "msg_3");
        part(format!("prt_9_{n:06}"), "msg_none");
    }
    for n in 0..700 {
        let message = format!("msg_5_{n:06}");
        let values = params![message];
        store
            .execute("INSERT INTO message VALUES (?1, 'ses_1', 9, 9, '{\"role\":\"user\"}')", values)
            .unwrap();
        part(format!("prt_5_{n:06}"), &message);
    }
    store.execute_batch("COMMIT").unwrap();
}

#[test]
fn no_transaction_lists_many_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = database(dir.path(), "openclaw-agent.sqlite", OPENCLAW, "WAL");
    store.execute_batch("BEGIN").unwrap();
    for n in 0..PAGE_ROWS * 3 {
        let session = format!("s{n:05}");
        store.execute("INSERT INTO session_windows VALUES (?1, 'k', 7, 9000, NULL)", [&session]).unwrap();
        insert(&store, &session, 0, "{}");
    }
    store.execute_batch("COMMIT").unwrap();
    let database = counted(&file);
    let sessions = listed(&database, KINDS.iter().find(|kind| kind.agent == "OpenClaw").unwrap()).unwrap();
    assert!(sessions.len() == PAGE_ROWS * 3 && sessions.is_sorted(), "{} sessions", sessions.len());
    assert_eq!(ROWS.get().1, PAGE_ROWS);
}

#[test]
fn entries_that_are_read_ahead_are_those_of_the_whole_text() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = openclaw(dir.path(), "WAL", "s1", &entries());
    store.execute_batch("BEGIN").unwrap();
    let long = "a line\\\\n".repeat(90);
    for n in 6..600 {
        let entry = format!(
            r#"{{"type":"message","id":"e{n}","parentId":"e{}","timestamp":"2026-11-22T17:40:00.000Z","message":{{"role":"user","content":"{long}"}}}}"#,
            n - 1
        );
        insert(&store, "s1", n, if n == 300 { "{\"type\":" } else { &entry });
    }
    store.execute_batch("COMMIT").unwrap();
    let stored = open_to_scan(&session_path(&file, "s1"), None).unwrap().unwrap();
    let ahead = stored.content.scanned.lock().unwrap().take().unwrap().transcript;
    let whole = stored.content.read(transcript::scan::scan).unwrap().transcript;
    assert_eq!((ahead.entries.len(), ahead.damage.len()), (599, 1));
    assert_eq!((ahead.bytes, ahead.lines), (whole.bytes, whole.lines));
    assert_eq!(format!("{:?}", ahead.entries), format!("{:?}", whole.entries));
}
