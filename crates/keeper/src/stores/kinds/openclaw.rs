//! OpenClaw since 2026.8: `openclaw-agent.sqlite`, with an entry in pi's format in each row of `transcript_events`. Long entries
//! are compressed and their length is recorded. If it is wrong, OpenClaw does not load the session.

use crate::stores::alone::openclaws_lock;
use crate::stores::kind::{
    EachRow, LoadRule, Mend, Query, RowKey, RowOrder, RowPlace, RowReader, RowTrouble, StoreKind, WriteRow,
    blank_texts,
};
use crate::stores::lines::RecordLines;
use crate::stores::projection::{self, SessionIndex};
use crate::stores::rows::{self, RowCell, RowLayout};
use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Result as SqlResult, Row, Statement, params};
use serde_json::Value;
use std::io::{self, Read};

/// The longest entry that OpenClaw compresses.
const TEXT_BYTES_MAX: u64 = 4 << 20;

pub(super) const KIND: StoreKind = StoreKind {
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
    reader: |connection| {
        let beside = Beside { connection, session: String::new(), index: None };
        Ok(Box::new(Events { row: connection.prepare(&format!("{READ} rowid = ?1"))?, beside }))
    },
    fillers: &[(
        "trajectory_runtime_events",
        "a diagnostic log of each run, which no request needs. OPENCLAW_TRAJECTORY=0 in the gateway's environment ends it, and \
         session.maintenance.maxDiskBytes in OpenClaw's configuration limits what is kept",
    )],
    load: Some(&LOAD),
    mend: Some(&MEND),
};

/// OpenClaw 2026.9.6: `resolveEmbeddedSessionContextLimits`, `readSessionTranscriptBoundedActiveContextCore` and
/// `resolveAutoLiveToolResultMaxChars`. A session that
/// is not the current one of its key is not loaded.
const LOAD: LoadRule = LoadRule {
    window: "SELECT coalesce(json_extract(n.entry_json, '$.contextTokens'), \
             json_extract(n.entry_json, '$.contextBudgetStatus.contextTokenBudget')) \
             FROM session_windows AS w JOIN session_nodes AS n ON n.session_key = w.session_key \
             AND n.current_session_id = w.session_id WHERE w.session_id = ?1 AND json_valid(n.entry_json)",
    bytes_per_token: 8,
    bytes_max: 64 << 20,
    rows_max: 10_000,
    results: &[(200_000, 64_000), (100_000, 32_000), (0, 16_000)],
};

const MEND: Mend = Mend {
    snapshots: None,
    owner: "OpenClaw",
    tables: &[
        ("transcript_events", &["navigation_json", "created_at"]),
        ("session_windows", &["transcript_observed_at"]),
        ("transcript_rewrite_watermarks", &["updated_at"]),
    ],
    only: "while OpenClaw runs, only results of earlier turns are shortened; stop it, and tailor fix does the rest",
    no_rows: "OpenClaw answers such a call when it sends, and no row is added to its database (openclaw doctor --fix puts a \
              missing header back)",
    lock: openclaws_lock,
    layouts: LAYOUTS,
    // A space after the record is a mark, or means nothing.
    json: |record| Some(0..record.trim_ascii_end().len()),
    blank,
    read: |cells| {
        let said = said(&cells[1], &cells[2], &cells[3], &cells[4])?;
        Some(said.unwrap_or_else(|(why, _)| why.into_bytes()).trim_ascii_end().to_vec())
    },
    put,
    known,
    links: Some(projection::links),
    // Of OpenClaw 2026.9.6. They act on new and removed windows, and on new keys.
    triggers: &[
        "session_windows_canonical_pending_after_insert",
        "session_windows_canonical_pending_after_update",
        "session_windows_canonical_pending_after_delete",
    ],
    seal,
};

pub(super) const EVENTS: u8 = 0;
pub(in crate::stores) const IDENTITIES: u8 = 1;
pub(in crate::stores) const ACTIVE: u8 = 2;
pub(in crate::stores) const STATE: u8 = 3;

const fn table(table: &'static str, columns: &'static [&'static str], keys: usize) -> RowLayout {
    RowLayout { table, columns, keys }
}

const LAYOUTS: &[(u8, RowLayout)] = &[
    (EVENTS, table("transcript_events", EVENT, 2)),
    (IDENTITIES, table("transcript_event_identities", IDENTITY, 2)),
    (ACTIVE, table("session_transcript_active_events", PLACE, 2)),
    (STATE, table("session_transcript_index_state", INDEX, 1)),
];
const EVENT: &[&str] =
    &["session_id", "seq", "event_json", "event_zstd", "event_utf8_bytes", "navigation_json", "created_at"];
const IDENTITY: &[&str] =
    &["session_id", "event_id", "seq", "event_type", "parent_id", "message_idempotency_key", "created_at"];
const PLACE: &[&str] =
    &["session_id", "active_position", "event_seq", "message_position", "context_eligible"];
const INDEX: &[&str] = &[
    "session_id",
    "indexed_seq",
    "leaf_event_id",
    "needs_rebuild",
    "active_event_count",
    "active_message_count",
    "updated_at",
];

pub(in crate::stores) fn layout(number: u8) -> &'static RowLayout {
    &LAYOUTS[usize::from(number)].1
}

/// An event of a session, if it can be read.
pub(in crate::stores) fn event_of(
    connection: &Connection,
    session: &str,
    seq: i64,
) -> SqlResult<Option<Value>> {
    let rows = layout(EVENTS).rows(connection, "session_id = ?1 AND seq = ?2", &[&session, &seq])?;
    Ok(rows.first().and_then(|cells| whole(cells)))
}

/// The event in a row, whatever its recorded length.
fn whole(cells: &[RowCell]) -> Option<Value> {
    let (Ok(text) | Err((_, Some(text)))) = said(&cells[1], &cells[2], &cells[3], &cells[4])? else {
        return None;
    };
    serde_json::from_slice(&text).ok()
}

/// Reconstructs an unreadable row: its readable text if that is the event which other tables name, or else what they say of it.
fn known(at: &RowPlace<'_>) -> SqlResult<Option<String>> {
    const ID: &str = "SELECT event_id FROM transcript_event_identities WHERE session_id = ?1 AND seq = ?2";
    let (_, row) = at.key;
    let Some(cells) = rows::at(layout(EVENTS), at.connection, at.session, row)? else { return Ok(None) };
    let id: Option<String> =
        rows::first(at.connection, ID, &[&at.session, &cells[1].as_integer().unwrap_or(-1)])?;
    let is_own = |event: &Value| id.as_ref().is_none_or(|id| event["id"] == id.as_str());
    if let Some(Ok(text) | Err((_, Some(text)))) = said(&cells[1], &cells[2], &cells[3], &cells[4])
        && whole(&cells).is_some_and(|event| is_own(&event))
    {
        return Ok(String::from_utf8(text).ok());
    }
    Ok(projection::remembered(at.connection, at.session, &cells)?.map(|event| event.to_string()))
}

fn blank(event: &mut Value) -> Option<()> {
    if event["customType"] == "openclaw.cache-ttl" {
        event.get_mut("data")?.get_mut("frozenToolResults")?.as_array_mut()?.clear();
        return Some(());
    }
    let message =
        event.get_mut("message").filter(|message| message["role"] == "toolResult")?.as_object_mut()?;
    if let Some(details) = message.get_mut("details") {
        blank_texts(details);
    }
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    blocks.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|block| {
        block.remove("text");
    });
    Some(())
}

fn put(connection: &Connection, cells: &mut [RowCell], text: &str) -> SqlResult<()> {
    (cells[2], cells[3], cells[5]) = match packed(connection, cells, text)? {
        Some((packed, navigation)) => (RowCell::Null, RowCell::Blob(packed), RowCell::text(&navigation)),
        None => (RowCell::text(text), RowCell::Null, RowCell::Null),
    };
    cells[4] = RowCell::integer(text.len());
    Ok(())
}

/// A text as OpenClaw compresses it, and the column for what it looks up without decompressing it: `prepareTranscriptPayload`
/// (transcript-payload.ts). `None` if it would not compress it, or if the row was not compressed or more than its texts
/// changes: only OpenClaw knows what else belongs to it.
fn packed(connection: &Connection, cells: &[RowCell], text: &str) -> SqlResult<Option<(Vec<u8>, String)>> {
    let length = text.len();
    let fits = length >= PACKED_BYTES_MIN && length as u64 <= TEXT_BYTES_MAX;
    let Some(known) = cells[5].as_text().filter(|_| fits && !text.contains("\\u") && !text.contains('\0'))
    else {
        return Ok(None);
    };
    let texts_gone = |event: Option<Value>| {
        let mut event = event?;
        blank(&mut event)?;
        Some(event)
    };
    let old = texts_gone(whole(cells));
    if old.is_none() || old != texts_gone(serde_json::from_str(text).ok()) {
        return Ok(None);
    }
    let Ok(packed) = pack(text.as_bytes()) else { return Ok(None) };
    let length_max = length - PACKED_SAVED_MIN.max(length.div_ceil(10));
    let navigation: String = match connection.query_row(NAVIGATION, [known, text], |row| row.get(0)) {
        Ok(navigation) => navigation,
        // What was looked up is no JSON. The row is then left alone, because undo could not write it back.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_short = navigation.len() <= NAVIGATION_BYTES_MAX && packed.len() + navigation.len() <= length_max;
    Ok(is_short.then_some((packed, navigation)))
}

/// OpenClaw's level, with a checksum.
fn pack(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = zstd::bulk::Compressor::new(1)?;
    packer.include_checksum(true)?;
    packer.compress(text)
}

/// The shortest text that OpenClaw compresses, how much that has to save besides a tenth, and how long what it looks up may be.
const PACKED_BYTES_MIN: usize = 1024;
const PACKED_SAVED_MIN: usize = 64;
const NAVIGATION_BYTES_MAX: usize = 16 << 10;

/// What OpenClaw looks up (`?1`) with the lengths of another event (`?2`): as it is sent, without what providers replay, and
/// without the data of a custom event (`projectModelContextEventSql`).
const NAVIGATION: &str = "WITH sent(event) AS (SELECT CASE WHEN json_extract(?2, '$.message.role') = 'toolResult' \
     THEN json_remove(?2, '$.message.__openclaw.upstreamUserText', '$.message.details') \
     ELSE json_remove(?2, '$.message.__openclaw.upstreamUserText') END) \
     SELECT json_set(?1, '$.modelBytes', octet_length(event), \
     '$.modelWithoutCheckpointBytes', octet_length(json_remove(event, '$.message.providerReplay')), \
     '$.withoutCustomDataBytes', octet_length(json_remove(?2, '$.data'))) FROM sent";

/// Makes programs that have rows of the session in memory read them again.
fn seal(connection: &Connection, session: &str) -> SqlResult<usize> {
    const ROTATE: &str = "INSERT INTO transcript_rewrite_watermarks (session_id, generation, updated_at) \
                          VALUES (?1, lower(hex(randomblob(16))), ?2) ON CONFLICT (session_id) DO UPDATE SET \
                          generation = excluded.generation, updated_at = excluded.updated_at";
    const TOUCH: &str = "UPDATE session_windows SET transcript_updated_at = max(?2, coalesce(transcript_updated_at, -1) + 1, \
         coalesce(transcript_observed_at, -1) + 1) WHERE session_id = ?1";
    let now = Timestamp::now().as_millisecond();
    Ok(connection.execute(ROTATE, params![session, now])?
        + connection.execute(TOUCH, params![session, now])?)
}

const READ: &str =
    "SELECT rowid, seq, event_json, event_zstd, event_utf8_bytes, session_id FROM transcript_events WHERE";

fn keys(query: &Query<'_>, each: EachRow<'_>) -> Result<(), RowTrouble> {
    query.each(EVENTS, &RowOrder::all("transcript_events WHERE session_id = ?1", &["seq"]), each)
}

struct Events<'c> {
    row: Statement<'c>,
    beside: Beside<'c>,
}

/// What other tables say of the session of the row before.
struct Beside<'c> {
    connection: &'c Connection,
    session: String,
    index: Option<SessionIndex<'c>>,
}

impl RowReader for Events<'_> {
    fn row(&mut self, (_, row): RowKey, out: &mut RecordLines) -> Result<(), RowTrouble> {
        let mut rows = self.row.query([row])?;
        rows.next()?.map_or(Ok(()), |row| self.beside.write(row, out))
    }

    fn all(&mut self) -> Option<(String, WriteRow<'_>)> {
        let all = format!("{READ} session_id = ?1 AND seq > ?2 ORDER BY seq");
        Some((all, Box::new(|row, out| self.beside.write(row, out))))
    }
}

impl Beside<'_> {
    fn write(&mut self, row: &Row<'_>, out: &mut RecordLines) -> Result<(), RowTrouble> {
        let (seq, session) = (row.get(1)?, row.get_ref(5)?.as_str().unwrap_or_default());
        if out.want.is_examined() && session != self.session {
            self.session = session.to_string();
            // What cannot be asked is not said.
            self.index = SessionIndex::read(self.connection, session).unwrap_or(None);
        }
        let mut write = |text: &[u8]| -> Result<(), RowTrouble> {
            let flaw =
                self.index.as_mut().and_then(|index| index.flaw(session, seq, text.len()).unwrap_or(None));
            // A changed row is written without blanks at its end, and its record has to be what is planned.
            let text = if out.want.is_examined() { text.trim_ascii_end() } else { text };
            match flaw {
                Some(why) => out.useless(text, why)?,
                None => out.record(&[text])?,
            }
            Ok(())
        };
        if let ValueRef::Text(text) = row.get_ref(2)?
            && !is_blank(text)
        {
            return write(text);
        }
        let cell = |at| row.get_ref(at).map(RowCell::from);
        match said(&cell(1)?, &RowCell::Null, &cell(3)?, &cell(4)?) {
            Some(Ok(text)) => write(&text)?,
            Some(Err((why, text))) => out.unreadable(why, text.as_deref())?,
            None => {}
        }
        Ok(())
    }
}

/// The text of a row, or why its owner cannot read it, and its readable part.
type RowReading = Result<Vec<u8>, (String, Option<Vec<u8>>)>;

fn said(seq: &RowCell, text: &RowCell, packed: &RowCell, recorded: &RowCell) -> Option<RowReading> {
    let seq = seq.as_integer()?;
    Some(match (text, packed) {
        (RowCell::Text(text), _) if !is_blank(text) => Ok(text.clone()),
        (_, RowCell::Blob(packed)) => match unpack(packed) {
            Ok(text) if *recorded == RowCell::integer(text.len()) => Ok(text),
            Ok(text) => {
                let recorded = recorded.as_integer().map_or("none".to_string(), |bytes| bytes.to_string());
                let why = format!("event {seq}: {} bytes, and event_utf8_bytes is {recorded}", text.len());
                Err((why, Some(text)))
            }
            Err(error) => Err((format!("event {seq}: event_zstd does not decode: {error}"), None)),
        },
        _ => Err((format!("event {seq}: neither event_json nor event_zstd holds anything"), None)),
    })
}

/// Whether there is nothing in a text. As a line it would not be a record, and nothing would be said of it.
fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii_start().is_empty()
}

/// The text of a compressed row. The result is limited: a few bytes can claim any length.
fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    zstd::Decoder::with_buffer(packed)?.take(TEXT_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(io::Error::other("it holds more than 4 MiB"));
    }
    Ok(text)
}
