//! OpenClaw since 2026.8: `openclaw-agent.sqlite`, with an entry of pi's in each row of `transcript_events`. Longer ones are
//! compressed, and their length is beside them: if it is wrong, OpenClaw does not load the session.

use super::kind::{Key, Kind, Mend, Place, Query, Reader, Trouble};
use super::lines::Lines;
use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Result as SqlResult, Row, Statement, params};
use serde_json::Value;
use std::io::{self, Read};

/// OpenClaw compresses no longer ones.
const TEXT_BYTES_MAX: u64 = 4 << 20;

pub(super) const KIND: Kind = Kind {
    agent: "OpenClaw",
    tables: &[
        ("transcript_events", &["session_id", "seq", "event_json", "event_zstd", "event_utf8_bytes"]),
        ("session_windows", &["session_id", "updated_at", "transcript_updated_at"]),
        ("transcript_rewrite_watermarks", &["session_id", "generation"]),
        ("schema_meta", &["schema_version"]),
    ],
    sessions: "SELECT session_id, max(updated_at, coalesce(transcript_updated_at, 0)) FROM session_windows AS w \
               WHERE EXISTS (SELECT 1 FROM transcript_events AS e WHERE e.session_id = w.session_id) ORDER BY session_id",
    sessions_by_rows: "SELECT DISTINCT session_id, NULL FROM transcript_events ORDER BY session_id",
    mark: Some("SELECT generation FROM transcript_rewrite_watermarks WHERE session_id = ?1"),
    stamps: &[],
    version: Some("SELECT CAST(schema_version AS TEXT) FROM schema_meta WHERE meta_key = 'primary'"),
    tried: &["23"],
    keys,
    reader: |connection| Ok(Box::new(Events { row: connection.prepare(ROW)? })),
    fillers: &[(
        "trajectory_runtime_events",
        "a diagnostic log of each run, which no request needs. OPENCLAW_TRAJECTORY=0 in the gateway's environment ends it, and \
         session.maintenance.maxDiskBytes in OpenClaw's configuration limits what is kept",
    )],
    mend: Some(&MEND),
};

const MEND: Mend = Mend {
    tables: &[
        ("transcript_events", &["navigation_json"]),
        ("session_windows", &["transcript_observed_at"]),
        ("transcript_rewrite_watermarks", &["updated_at"]),
    ],
    only: "OpenClaw may be running: beside it only results of earlier turns are shortened (openclaw doctor --fix puts a missing \
           header back; of a copy, tailor export prints one, everything can be repaired)",
    json: |record| Some(0..record.len()),
    blank,
    write,
    seal,
};

fn blank(event: &mut Value) -> Option<()> {
    let message =
        event.get_mut("message").filter(|message| message["role"] == "toolResult")?.as_object_mut()?;
    message.remove("details");
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    blocks.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|block| {
        block.remove("text");
    });
    Some(())
}

/// The row becomes one of text, whatever it was: only OpenClaw knows what else goes with a compressed one.
fn write(at: &Place<'_>, old: &[u8], new: &str) -> SqlResult<bool> {
    const NOW: &str =
        "SELECT event_json, event_zstd FROM transcript_events WHERE rowid = ?1 AND session_id = ?2";
    const SET: &str = "UPDATE transcript_events SET event_json = ?3, event_zstd = NULL, event_utf8_bytes = ?4, \
                       navigation_json = NULL WHERE rowid = ?1 AND session_id = ?2";
    let (_, row) = at.key;
    let is_old = |found: &Row<'_>| {
        Ok(match (found.get_ref(0)?, found.get_ref(1)?) {
            (ValueRef::Text(text), _) => text == old,
            (_, ValueRef::Blob(packed)) => unpack(packed).is_ok_and(|text| text == old),
            _ => false,
        })
    };
    let is_old = at.connection.prepare(NOW)?.query_row(params![row, at.session], is_old).optional()?;
    let bytes = i64::try_from(new.len()).unwrap_or(i64::MAX);
    let mut set = at.connection.prepare(SET)?;
    Ok(is_old == Some(true) && set.execute(params![row, at.session, new, bytes])? == 1)
}

/// Who has rows of the session in memory reads them again.
fn seal(connection: &Connection, session: &str) -> SqlResult<()> {
    const ROTATE: &str = "INSERT INTO transcript_rewrite_watermarks (session_id, generation, updated_at) \
                          VALUES (?1, lower(hex(randomblob(16))), ?2) ON CONFLICT (session_id) DO UPDATE SET \
                          generation = excluded.generation, updated_at = excluded.updated_at";
    const TOUCH: &str = "UPDATE session_windows SET transcript_updated_at = max(?2, coalesce(transcript_updated_at, -1) + 1, \
         coalesce(transcript_observed_at, -1) + 1) WHERE session_id = ?1";
    let now = Timestamp::now().as_millisecond();
    connection.execute(ROTATE, params![session, now])?;
    connection.execute(TOUCH, params![session, now]).map(drop)
}

const ROW: &str =
    "SELECT seq, event_json, event_zstd, event_utf8_bytes FROM transcript_events WHERE rowid = ?1";

fn keys(query: &Query<'_>) -> SqlResult<Vec<Key>> {
    let rows = query.rows("SELECT rowid FROM transcript_events WHERE session_id = ?1 ORDER BY seq ASC")?;
    Ok(rows.into_iter().map(|row| (0, row)).collect())
}

struct Events<'c> {
    row: Statement<'c>,
}

impl Reader for Events<'_> {
    fn row(&mut self, (_, row): Key, out: &mut Lines) -> Result<(), Trouble> {
        let mut rows = self.row.query([row])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        let seq: i64 = row.get(0)?;
        if let ValueRef::Text(text) = row.get_ref(1)? {
            return Ok(out.record(&[text])?);
        }
        let recorded: Option<i64> = row.get(3)?;
        let ValueRef::Blob(packed) = row.get_ref(2)? else {
            return Ok(out.unreadable(format!("event {seq}: neither event_json nor event_zstd"), None)?);
        };
        match unpack(packed) {
            Ok(text) if recorded.is_some_and(|bytes| u64::try_from(bytes) == Ok(text.len() as u64)) => {
                out.record(&[&text])?;
            }
            Ok(text) => {
                let recorded = recorded.map_or("none".to_string(), |bytes| bytes.to_string());
                let why = format!("event {seq}: {} bytes, and event_utf8_bytes is {recorded}", text.len());
                out.unreadable(why, Some(&text))?;
            }
            Err(error) => {
                out.unreadable(format!("event {seq}: event_zstd does not decode: {error}"), None)?;
            }
        }
        Ok(())
    }
}

/// The text of a compressed row. A few bytes can say that they hold anything.
fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    zstd::Decoder::with_buffer(packed)?.take(TEXT_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(io::Error::other("it holds more than 4 MiB"));
    }
    Ok(text)
}
