//! What OpenClaw notes of what it sent is taken out where it is not read any more, and counted against what it loads.

use super::write::{fixed, rows, undone};
use super::{OPENCLAW, database, found, insert, number, text};
use crate::Extent;
use crate::ask::outcome::{Ending, Guarantee};
use crate::places::store::session_path;
use rusqlite::Connection;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use transcript::Severity;

const NODES: &str = "
CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL) STRICT;
INSERT INTO session_nodes VALUES ('agent:main', 's1', '{\"contextTokens\":19500}');
";

/// A chain of events, each given without its id and parent.
fn chain(events: &[String]) -> Vec<String> {
    let mut all = vec![
        r#"{"type":"session","version":4,"id":"s1","timestamp":"2026-11-22T17:39:00.000Z","cwd":"/w"}"#
            .to_string(),
    ];
    for (n, event) in events.iter().enumerate() {
        let parent = if n == 0 { "null".to_string() } else { format!("\"e{}\"", n - 1) };
        all.push(format!(
            r#"{{{event},"id":"e{n}","parentId":{parent},"timestamp":"2026-11-22T17:39:{n:02}.000Z"}}"#
        ));
    }
    all
}

fn message(message: &str) -> String {
    format!(r#""type":"message","message":{message}"#)
}

fn prompt() -> String {
    message(r#"{"role":"user","content":"go on"}"#)
}

fn reply() -> String {
    message(r#"{"role":"assistant","content":[{"type":"text","text":"Yes."}],"stopReason":"stop"}"#)
}

fn output(n: usize) -> String {
    format!("line {n} of a long listing; ").repeat(700)
}

/// A batch of one call, and what OpenClaw notes of all results so far.
fn batch(n: usize) -> [String; 3] {
    let call = format!(
        r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"call_{n}","name":"ls","arguments":{{}}}}],"stopReason":"toolUse"}}"#
    );
    let result = format!(
        r#"{{"role":"toolResult","toolCallId":"call_{n}","toolName":"ls","content":[{{"type":"text","text":"{}"}}],"isError":false,"timestamp":1}}"#,
        output(n)
    );
    [message(&call), message(&result), note(&items(n, true))]
}

/// What is noted of so many results, with their texts or without.
fn items(results: usize, has_texts: bool) -> String {
    let mut items = String::new();
    for n in 1..=results {
        let comma = if n > 1 { "," } else { "" };
        let texts = if has_texts { format!(r#","texts":["{}"]"#, output(n)) } else { String::new() };
        write!(items, r#"{comma}{{"key":"tool:call_{n}:1","sourceHash":"h{n}"{texts}}}"#).unwrap();
    }
    items
}

fn note(items: &str) -> String {
    format!(
        r#""type":"custom","customType":"openclaw.cache-ttl","data":{{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{items}]}}"#
    )
}

fn store(dir: &Path, events: &[String]) -> (PathBuf, Connection) {
    let (path, store) = database(dir, "openclaw-agent.sqlite", &format!("{OPENCLAW}{NODES}"), "WAL");
    store.execute("INSERT INTO session_windows VALUES ('s1', 'agent:main', 7, 9000, NULL)", []).unwrap();
    store.execute("INSERT INTO transcript_rewrite_watermarks VALUES ('s1', 'g1', 0)", []).unwrap();
    for (seq, event) in chain(events).iter().enumerate() {
        insert(&store, "s1", seq, event);
    }
    (path, store)
}

/// A blank at the end of a row is not kept when the row is changed. Everything behind it stays where the run's record has it.
#[test]
fn an_undo_is_exact_behind_a_row_that_ended_with_a_blank() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = store(dir.path(), &turn());
    let path = session_path(&file, "s1");
    let note = format!("{} ", text(&path).lines().nth(4).unwrap());
    let set = "UPDATE transcript_events SET event_json = ?1, event_zstd = NULL, navigation_json = NULL WHERE seq = 4";
    assert_eq!(store.execute(set, [note]).unwrap(), 1);
    let before = rows(&store, "transcript_events");
    assert_eq!(fixed(&path, dir.path()).ending, Ending::Fixed);
    assert_ne!(rows(&store, "transcript_events"), before);
    assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
    assert_eq!(rows(&store, "transcript_events"), before);
}

/// A turn of three batches, and the next prompt.
fn turn() -> Vec<String> {
    [prompt()].into_iter().chain((1..=3).flat_map(batch)).chain([reply(), prompt()]).collect()
}

/// How many bytes the events of a store have there.
fn packed_bytes(store: &Connection) -> u64 {
    let sum = "SELECT sum(coalesce(length(event_zstd), length(event_json))) FROM transcript_events";
    store.query_row(sum, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
}

#[test]
fn what_is_not_read_goes_beside_the_owner_and_the_session_is_loaded_whole_again() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = store(dir.path(), &turn());
    let path = session_path(&file, "s1");
    let before = (rows(&store, "transcript_events"), text(&path));
    let there = found(&path);
    assert!(
        there.contains(&("S23", 1, Severity::Error)) && there.iter().any(|(code, ..)| *code == "S22"),
        "{there:?}"
    );
    let packed = packed_bytes(&store);
    let outcome = fixed(&path, dir.path());
    assert_eq!((&outcome.ending, outcome.guarantee), (&Ending::Fixed, Some(Guarantee::Transaction)));
    let saved = outcome.rows_saved_bytes.unwrap();
    assert!(saved.abs_diff(packed - packed_bytes(&store)) < 100, "{saved}, not what the texts have");
    let there = found(&path);
    assert!(
        there.iter().all(|(code, _, severity)| *code != "S22" && *severity < Severity::Error),
        "{there:?}"
    );
    // The two older notes are empty; everything else is as it was.
    let mut wanted = turn();
    (wanted[3], wanted[6]) = (note(""), note(""));
    let wanted = chain(&wanted).join("\n") + "\n";
    assert_eq!(text(&path), wanted);
    let run = fixed(&path, dir.path());
    assert!(run.run.is_none(), "a second run changes nothing: {:?}", run.ending);
    assert_eq!(undone(&path, dir.path(), Extent::Whole).ending, Ending::Undone);
    assert_eq!((rows(&store, "transcript_events"), text(&path)), before);
    drop(store);
}

#[test]
fn the_newest_note_is_the_last_valid_one_after_a_reset() {
    let gone = |events: &[String]| {
        let dir = tempfile::tempdir().unwrap();
        let (file, _store) = store(dir.path(), events);
        let path = session_path(&file, "s1");
        let before = text(&path);
        fixed(&path, dir.path());
        let after = text(&path);
        let pairs = before.lines().zip(after.lines()).enumerate();
        pairs.filter(|(_, (old, new))| old != new).map(|(n, _)| n).collect::<Vec<_>>()
    };
    let (mut invalid, mut reset) = (turn(), turn());
    invalid.push(note(r#"{"key":"tool:call_3:1","texts":["no hash"]}"#));
    assert_eq!(gone(&invalid), [4, 7, 13]);
    reset.push(r#""type":"reset","reason":"new""#.to_string());
    assert_eq!(gone(&reset), [4, 7, 10]);
}

/// A result that Tailor cut is noted with the whole text, also in the newest note, which OpenClaw then ignores.
#[test]
fn what_was_noted_of_a_cut_result_goes_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut events = turn();
    let (secret, long) = ("a secret in the middle", "a long line; ".repeat(2_000));
    let whole = format!("{long}{secret}{long}");
    events = events.iter().map(|event| event.replace(&output(2), &whole)).collect();
    let (file, store) = store(dir.path(), &events);
    let path = session_path(&file, "s1");
    let fix_with_window = |tokens: u64| {
        let set = format!("UPDATE session_nodes SET entry_json = json_object('contextTokens', {tokens})");
        store.execute_batch(&set).unwrap();
        fixed(&path, dir.path());
        text(&path)
    };
    assert_eq!(text(&path).matches(secret).count(), 3);
    // OpenClaw keeps 64,000 characters with this window, and 32,000 with a smaller one.
    assert_eq!(fix_with_window(200_000).matches(secret).count(), 2, "the result and the newest note");
    let after = fix_with_window(199_999);
    assert!(!after.contains(secret) && after.contains("[tailor: ") && after.contains(&output(3)));
    assert_eq!(after.matches(&output(1)).count(), 2, "the result and the newest note");
    assert!(fixed(&path, dir.path()).run.is_none());
    let count: i64 = store
        .query_row("SELECT count(*) FROM transcript_events WHERE event_zstd IS NOT NULL", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(count, number(4), "three results and the newest note are compressed");
}

#[test]
fn how_many_turns_are_left_is_told_before_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = store(dir.path(), &turn());
    let path = session_path(&file, "s1");
    let told = |tokens: u64| {
        let set = format!(
            "UPDATE session_nodes SET entry_json = json_set(entry_json, '$.contextTokens', {tokens})"
        );
        store.execute_batch(&set).unwrap();
        super::looked(&path).before.unwrap().facts.turns_left
    };
    assert_eq!([17_000, 30_000, 70_000, 10_000_000].map(told), [Some(0), Some(1), Some(5), None]);
    // A session that is not the current one of its key is not loaded.
    store.execute_batch("UPDATE session_nodes SET current_session_id = 's2'").unwrap();
    assert_eq!(told(17_000), None);
}
