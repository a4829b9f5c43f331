//! Stores that are only read: of Goose, Crush and Zed, with rows as these programs write them.

use super::{database, exported, found, looked};
use crate::ask::outcome::Ending;
use crate::find;
use crate::maintain;
use crate::places::store::session_path;
use rusqlite::params;
use std::path::{Path, PathBuf};
use transcript::Severity;

/// The sessions of a file, and when they were written, in milliseconds.
fn listed(file: &Path) -> Vec<(PathBuf, u128)> {
    let since =
        |found: &crate::FoundFile| found.written.unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    find(&[file])
        .into_iter()
        .map(Result::unwrap)
        .map(|found| (found.path.clone(), since(&found).as_millis()))
        .collect()
}

fn facts(path: &Path) -> (usize, usize, usize) {
    let seen = looked(path);
    assert_eq!(seen.agent(), Some("openai-chat"));
    let facts = seen.before.unwrap().facts;
    (facts.entries, facts.calls, facts.results)
}

const LONG: &str = "a line of a listing ";

#[test]
fn messages_of_goose_are_put_together() {
    const GOOSE: &str = r#"
        CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
        INSERT INTO schema_version (version) VALUES (15);
        CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL,
          created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
        CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL REFERENCES sessions(id),
          role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
          timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);
        INSERT INTO sessions VALUES ('20261120_1', 'List files', '/w', '2026-11-20 10:00:00', '2026-11-20 10:00:07');
        INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) VALUES
          ('20261120_1', 'user', '[{"type":"text","text":"list files"}]', 1, '{"userVisible":true,"agentVisible":true}'),
          ('20261120_1', 'assistant', '[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"Yes."},
            {"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}]', 2, NULL),
          ('20261120_1', 'user', '[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":[
            {"type":"text","text":"a.txt"},{"type":"text","text":"for people","annotations":{"audience":["user"]}}],"isError":false}}}]', 3, '{}'),
          ('20261120_1', 'assistant', '[{"type":"toolRequest","id":"c2","toolCall":{"status":"success","value":{"name":"shell","arguments":{}}}}]', 4, '{}'),
          ('20261120_1', 'user', '[{"type":"toolResponse","id":"c2","toolResult":{"status":"error","error":"no such tool"}}]', 4, '{}'),
          ('20261120_1', 'assistant', '[{"type":"text","text":"compacted away"}]', 5, '{"userVisible":true,"agentVisible":false}'),
          ('20261120_1', 'user', '[{"type":"text","text":"thanks"}]', 6, '{}');"#;
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = database(dir.path(), "sessions.db", GOOSE, "WAL");
    let path = session_path(&file, "20261120_1");
    assert_eq!(listed(&file), [(path.clone(), 1_795_168_807_000)]);
    assert_eq!(facts(&path), (6, 2, 2));
    assert_eq!(found(&path), []);
    let text = exported(&path).0;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..3],
        [
            r#"{"content":"list files","role":"user"}"#,
            r#"{"content":"Yes.","reasoning_content":"Hm.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"command\":\"ls\"}","name":"shell"},"id":"c1","type":"function"}]}"#,
            r#"{"content":[{"text":"a.txt","type":"text"},{"text":"for people","type":"text"}],"role":"tool","tool_call_id":"c1"}"#,
        ]
    );
    assert_eq!(lines[4], r#"{"content":"no such tool","role":"tool","tool_call_id":"c2"}"#);
    assert!(lines.len() == 7 && lines[5].contains("compacted away"), "{text}");
    let long = format!(
        r#"[{{"type":"toolResponse","id":"c1","toolResult":{{"status":"success","value":[{{"type":"text","text":"{}"}}]}}}}]"#,
        LONG.repeat(3_000)
    );
    store.execute("UPDATE messages SET content_json = ?1 WHERE id = 3", [long]).unwrap();
    store.execute_batch("UPDATE messages SET content_json = '[' WHERE id = 7").unwrap();
    let codes: Vec<_> = found(&path).into_iter().map(|(code, line, _)| (code, line)).collect();
    assert!(
        codes.contains(&("S1", 3)) && codes.iter().any(|(code, line)| code.starts_with('B') && *line == 6),
        "{codes:?}"
    );
    assert_eq!(exported(&path).1.lost.len(), 1);
    // Nothing of it is written.
    let fix = crate::Options { mode: crate::Mode::Fix, ..crate::Options::default() };
    let outcome = maintain(&path, None, &fix).unwrap();
    assert!(matches!(outcome.ending, Ending::Refused(_) | Ending::Unsupported(_)), "{:?}", outcome.ending);
}

#[test]
fn messages_of_crush_are_put_together() {
    const CRUSH: &str = r#"
        CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0,
          updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL);
        CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts BLOB NOT NULL default '[]',
          model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER,
          FOREIGN KEY (session_id) REFERENCES sessions (id) ON DELETE CASCADE);
        INSERT INTO sessions VALUES ('k1', NULL, 'List files', 4, 1795168807, 1795168800);
        INSERT INTO messages VALUES
          ('m1', 'k1', 'user', '[{"type":"text","data":{"text":"list files"}},{"type":"finish","data":{"reason":"stop","time":0}}]', NULL, 1, 1, NULL),
          ('m2', 'k1', 'assistant', '[{"type":"reasoning","data":{"thinking":"Hm.","signature":"s"}},{"type":"text","data":{"text":""}},
            {"type":"tool_call","data":{"id":"c1","name":"bash","input":"{\"command\":\"ls\"}","finished":true}},
            {"type":"finish","data":{"reason":"tool_use","time":2}}]', 'gpt-5', 1, 2, 2),
          ('m3', 'k1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"c1","name":"bash","content":"a.txt","metadata":"","is_error":false}}]', NULL, 3, 3, NULL),
          ('m4', 'k1', 'assistant', '[{"type":"text","data":{"text":"One."}},{"type":"finish","data":{"reason":"end_turn","time":4}}]', 'gpt-5', 4, 4, 4);"#;
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = database(dir.path(), "crush.db", CRUSH, "WAL");
    let path = session_path(&file, "k1");
    assert_eq!(listed(&file), [(path.clone(), 1_795_168_807_000)]);
    let text = [
        r#"{"content":"list files","role":"user"}"#,
        r#"{"content":"","reasoning_content":"Hm.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"command\":\"ls\"}","name":"bash"},"id":"c1","type":"function"}]}"#,
        r#"{"content":"a.txt","role":"tool","tool_call_id":"c1"}"#,
        r#"{"content":"One.","role":"assistant"}"#,
    ];
    assert_eq!(exported(&path).0.lines().collect::<Vec<_>>(), text);
    assert_eq!(facts(&path), (4, 1, 1));
    assert_eq!(found(&path), []);
    store.execute_batch("DELETE FROM messages WHERE id = 'm3'").unwrap();
    assert!(found(&path).contains(&("P1", 2, Severity::Error)), "{:?}", found(&path));
    // What a summary replaces is not sent.
    store
        .execute_batch("ALTER TABLE sessions ADD COLUMN summary_message_id TEXT; UPDATE sessions SET summary_message_id = 'm4'")
        .unwrap();
    assert_eq!(facts(&path), (1, 0, 0));
    assert_eq!(exported(&path).0.lines().count(), 3);
}

#[test]
fn threads_of_zed_are_put_together() {
    const ZED: &str = "
        CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, data_type TEXT NOT NULL,
          data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT, folder_paths_order TEXT, created_at TEXT)";
    const THREAD: &str = r#"{"title":"List files","messages":[
        {"User":{"id":"u1","content":[{"Text":"list "},{"Mention":{"uri":"file:///w","content":"files"}}]}},
        {"Agent":{"content":[{"Thinking":{"text":"Hm.","signature":"s"}},{"Text":"Yes."},{"ToolUse":{"id":"c1","name":"list",
          "raw_input":"{}","input":{"path":"/w"},"is_input_complete":true,"thought_signature":null}}],
          "tool_results":{"c1":{"tool_use_id":"c1","tool_name":"list","is_error":false,"content":[{"Text":"a.txt"}],"output":null}},
          "reasoning_details":null}},
        "Resume",
        {"Agent":{"content":[{"Text":"One."}],"tool_results":{},"reasoning_details":null}}],
        "updated_at":"2026-11-20T10:00:07Z","version":"0.3.0"}"#;
    const OLDER: &str = r#"{"version":"0.2.0","summary":"Old","updated_at":"2025-05-01T00:00:00Z","messages":[
        {"id":0,"role":"user","segments":[{"type":"text","text":"list files"}],"tool_uses":[],"tool_results":[]},
        {"id":1,"role":"assistant","segments":[],"tool_uses":[{"id":"c1","name":"list","input":{}}],
         "tool_results":[{"tool_use_id":"c1","is_error":false,"content":"a.txt","output":null}]}]}"#;
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = database(dir.path(), "threads.db", ZED, "DELETE");
    let insert = |id: &str, kind: &str, data: &[u8]| {
        let values = params![id, "2026-11-20T10:00:07.123456789+00:00", kind, data];
        store
            .execute(
                "INSERT INTO threads (id, summary, updated_at, data_type, data) VALUES (?1, 's', ?2, ?3, ?4)",
                values,
            )
            .unwrap();
    };
    insert("t1", "zstd", &zstd::encode_all(THREAD.as_bytes(), 3).unwrap());
    insert("t2", "json", OLDER.as_bytes());
    insert("t3", "zstd", b"torn");
    let path = session_path(&file, "t1");
    assert_eq!(listed(&file)[0], (path.clone(), 1_795_168_807_000));
    let text = [
        r#"{"content":[{"text":"list ","type":"text"},{"text":"files","type":"text"}],"role":"user"}"#,
        r#"{"content":"Yes.","reasoning_content":"Hm.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"path\":\"/w\"}","name":"list"},"id":"c1","type":"function"}]}"#,
        r#"{"content":"a.txt","role":"tool","tool_call_id":"c1"}"#,
        r#"{"content":"One.","role":"assistant"}"#,
    ];
    assert_eq!(exported(&path).0.lines().collect::<Vec<_>>(), text);
    assert_eq!((facts(&path), found(&path)), ((4, 1, 1), Vec::new()));
    assert_eq!(facts(&session_path(&file, "t2")), (3, 1, 1));
    let lost = exported(&session_path(&file, "t3")).1.lost;
    assert!(lost.len() == 1 && lost[0].contains("the thread cannot be read"), "{lost:?}");
}
