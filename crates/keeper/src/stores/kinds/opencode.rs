//! OpenCode, and Kilo, which is built on it: rows of `message`, and rows of `part` with the parts of each message. The JSON of a
//! row is in `data` of its record, unchanged; the other columns identify the row.

use crate::stores::kind::{
    EachRow, Mend, Query, RowKey, RowOrder, RowPlace, RowReader, RowTrouble, Snapshots, StoreKind,
    blank_texts,
};
use crate::stores::lines::RecordLines;
use crate::stores::rows::{self, RowCell, RowLayout};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Result as SqlResult, Row, Statement};
use serde_json::Value;

const SESSION: u8 = 0;
const MESSAGE: u8 = 1;
const PART: u8 = 2;
/// Holds nothing that is read of a session.
const EVENT: u8 = 3;

pub(super) const KIND: StoreKind = StoreKind {
    agent: "OpenCode",
    tables: &[
        ("session", &["id", "parent_id", "directory", "title", "version", "time_updated"]),
        ("message", &["id", "session_id", "time_created", "time_updated", "data"]),
        ("part", &["id", "message_id", "session_id", "time_created", "time_updated", "data"]),
    ],
    // The session's time is set when a turn begins; later writes show in its newest message.
    sessions: "SELECT s.id, max(s.time_updated, m.time_updated, \
               coalesce((SELECT max(p.time_updated) FROM part AS p WHERE p.message_id = m.id), 0)) \
               FROM session AS s JOIN message AS m ON m.id = (SELECT n.id FROM message AS n WHERE n.session_id = s.id \
               ORDER BY n.time_created DESC, n.id DESC LIMIT 1) ORDER BY s.id",
    sessions_by_rows: "SELECT DISTINCT session_id, NULL FROM message ORDER BY session_id",
    mark: None,
    stamps: &[
        "SELECT time_updated, octet_length(title) FROM session WHERE rowid = ?1",
        "SELECT time_updated, octet_length(data) FROM message WHERE rowid = ?1",
        "SELECT time_updated, octet_length(data) FROM part WHERE rowid = ?1",
    ],
    version: Some("SELECT max(id) FROM migration"),
    tried: &["20260622202450_simplify_session_input"],
    keys,
    reader: |connection| {
        Ok(Box::new(OpenCodeRows {
            session: connection.prepare(
                "SELECT json_object('store', 'opencode', 'table', 'session', 'id', id, 'parent_id', parent_id, \
                 'cwd', directory, 'title', title, 'version', version) FROM session WHERE rowid = ?1",
            )?,
            message: connection.prepare(
                "SELECT id, session_id, time_created, data FROM message WHERE rowid = ?1",
            )?,
            speaks: connection.prepare(
                "SELECT CASE WHEN json_valid(data) THEN json_object('role', json_extract(data, '$.role'), 'model', \
                 json_extract(data, '$.modelID')) END FROM message WHERE id = ?1",
            )?,
            part: connection
                .prepare("SELECT id, session_id, time_created, data, message_id FROM part WHERE rowid = ?1")?,
            speaker: (String::new(), None),
        }))
    },
    fillers: &[(
        "event",
        "a copy of a part or a message for each change of it, of which OpenCode needs none to go on; with OpenCode stopped, \
         tailor prune FILE takes out all but the newest of each",
    )],
    load: None,
    mend: Some(&MEND),
};

const MEND: Mend = Mend {
    owner: "OpenCode",
    tables: &[("part", &["data"])],
    only: "while OpenCode runs, only results of earlier turns are shortened; stop it, and tailor fix does the rest",
    no_rows: "OpenCode answers such a call when it sends, and no row is added to its database",
    lock: |_| None,
    layouts: &[
        (MESSAGE, RowLayout { table: "message", columns: &["id", "session_id", "data"], keys: 1 }),
        (PART, RowLayout { table: "part", columns: &["id", "session_id", "data"], keys: 1 }),
        (
            EVENT,
            RowLayout { table: "event", columns: &["id", "aggregate_id", "seq", "type", "data"], keys: 1 },
        ),
    ],
    // The strings before it are escaped, so they cannot contain this.
    json: |record| {
        let from = memchr::memmem::find(record, DATA.as_bytes())? + DATA.len();
        Some(from..record.len().checked_sub(1)?)
    },
    blank,
    read: |cells| match &cells[2] {
        RowCell::Text(data) | RowCell::Blob(data) => Some(data.clone()),
        _ => Some(b"null".to_vec()),
    },
    put: |_, cells, text| {
        cells[2] = RowCell::text(text);
        Ok(())
    },
    known,
    links: None,
    snapshots: Some(&Snapshots {
        layout: EVENT,
        types: &[("message.part.updated.1", "$.part.id"), ("message.updated.1", "$.info.id")],
    }),
    triggers: &[],
    seal: |_, _| Ok(0),
};

const DATA: &str = ",\"data\":";

fn blank(part: &mut Value) -> Option<()> {
    let state =
        part.get_mut("state").filter(|state| state["status"] == "completed" || state["status"] == "error")?;
    let state = state.as_object_mut()?;
    for text in ["output", "error", "metadata"] {
        state.get_mut(text).into_iter().for_each(blank_texts);
    }
    Some(())
}

/// Reconstructs an unreadable row: from the last event about it, or as something that OpenCode can load and send.
fn known(at: &RowPlace<'_>) -> SqlResult<Option<String>> {
    // An event about a part repeats its columns.
    const PART_EVENT: &str = "SELECT json_remove(json_extract(data, '$.part'), '$.id', '$.messageID', '$.sessionID') FROM event \
         WHERE aggregate_id = ?1 AND type = 'message.part.updated.1' AND json_valid(data) AND json_extract(data, '$.part.id') = \
         (SELECT id FROM part WHERE rowid = ?2) ORDER BY seq DESC LIMIT 1";
    const MESSAGE_EVENT: &str = "SELECT json_remove(json_extract(data, '$.info'), '$.id', '$.sessionID') FROM event \
         WHERE aggregate_id = ?1 AND type = 'message.updated.1' AND json_valid(data) AND json_extract(data, '$.info.id') = \
         (SELECT id FROM message WHERE rowid = ?2) ORDER BY seq DESC LIMIT 1";
    const AS_ERROR: &str = "SELECT json_set(data, '$.state', json_object('status', 'error', 'input', \
         json(coalesce(data -> '$.state.input', '{}')), 'error', ?3, 'time', \
         json_object('start', coalesce(data ->> '$.state.time.start', time_created), \
         'end', coalesce(data ->> '$.state.time.end', time_created)))) \
         FROM part WHERE session_id = ?1 AND rowid = ?2 AND json_valid(data) AND data ->> '$.type' = 'tool'";
    const LOST: &str = "[tailor: what stood here could not be read any more]";
    let ((kind, row), session) = (at.key, at.session);
    let has_events =
        rows::first::<i64>(at.connection, "SELECT 1 FROM sqlite_schema WHERE name = 'event'", &[])?;
    let event = if kind == PART { PART_EVENT } else { MESSAGE_EVENT };
    let ask = || rows::first::<String>(at.connection, event, &[&session, &row]);
    let said = has_events.map(|_| ask()).transpose()?.flatten();
    if let Some(said) = said.filter(|said| kind != PART || is_sendable(said)) {
        return Ok(Some(said));
    }
    if kind != PART {
        return Ok(None);
    }
    let as_error = rows::first::<String>(at.connection, AS_ERROR, &[&session, &row, &LOST])?;
    Ok(as_error
        .or_else(|| Some(serde_json::json!({"type": "text", "text": LOST, "synthetic": true}).to_string())))
}

/// Whether OpenCode can send a part: a completed tool needs an output.
fn is_sendable(part: &str) -> bool {
    let part: Value = serde_json::from_str(part).unwrap_or_default();
    let state = &part["state"];
    part["type"].is_string() && (state["status"] != "completed" || state["output"].is_string())
}

fn keys(query: &Query<'_>, each: EachRow<'_>) -> Result<(), RowTrouble> {
    const OWN: RowOrder = RowOrder::all("session WHERE id = ?1", &["id"]);
    const MESSAGES: RowOrder = RowOrder::all("message WHERE session_id = ?1", &["time_created", "id"]);
    const PARTS: RowOrder =
        RowOrder::all("part WHERE message_id = (SELECT id FROM message WHERE rowid = ?1)", &["id"]);
    // Parts whose message is gone.
    const ALONE: RowOrder = RowOrder {
        rows: "part WHERE session_id = ?1",
        by: &["rowid"],
        only: "NOT EXISTS (SELECT 1 FROM message WHERE message.id = part.message_id)",
    };
    query.each(SESSION, &OWN, each)?;
    query.each(MESSAGE, &MESSAGES, &mut |message| {
        each(message)?;
        query.rows_of(&PARTS, &message.1, &mut |row| each((PART, row)))
    })?;
    let mut alone: Vec<(Option<String>, i64)> = Vec::new();
    query.each(PART, &ALONE, &mut |(_, row)| {
        (query.pause)(1)?;
        let id = rows::first(query.connection, "SELECT id FROM part WHERE rowid = ?1", &[&row]);
        alone.push((if query.salvages { id.unwrap_or(None) } else { id? }, row));
        Ok(())
    })?;
    alone.sort_unstable();
    alone.into_iter().try_for_each(|(_, row)| each((PART, row)))
}

struct OpenCodeRows<'c> {
    session: Statement<'c>,
    message: Statement<'c>,
    part: Statement<'c>,
    speaks: Statement<'c>,
    /// A message, and its role and model.
    speaker: (String, Option<String>),
}

impl RowReader for OpenCodeRows<'_> {
    fn row(&mut self, (table, row): RowKey, out: &mut RecordLines) -> Result<(), RowTrouble> {
        let statement = match table {
            SESSION => &mut self.session,
            MESSAGE => &mut self.message,
            _ => &mut self.part,
        };
        let mut rows = statement.query([row])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        if table == SESSION {
            return Ok(out.record(&[row.get::<_, String>(0)?.as_bytes()])?);
        }
        let data = match row.get_ref(3)? {
            ValueRef::Text(data) | ValueRef::Blob(data) => data,
            _ => b"null",
        };
        let (name, more) = if table == MESSAGE {
            ("message", String::new())
        } else {
            let (message, own) = (quoted(row, 4)?, row.get::<_, Option<String>>(4)?.unwrap_or_default());
            if own != self.speaker.0 {
                let found =
                    self.speaks.query_row([&own], |row| row.get::<_, Option<String>>(0)).optional()?;
                self.speaker = (own, found.flatten());
            }
            let speaker =
                self.speaker.1.as_deref().and_then(|speaker| speaker.strip_prefix('{')?.strip_suffix('}'));
            let speaker = speaker.unwrap_or(r#""role":null,"model":null"#);
            ("part", format!(r#","message_id":{message},{speaker}"#))
        };
        let (id, session, time) = (quoted(row, 0)?, quoted(row, 1)?, row.get::<_, i64>(2)?);
        let open = format!(
            r#"{{"store":"opencode","table":"{name}","id":{id},"session_id":{session}{more},"timestamp":{time}{DATA}"#
        );
        Ok(out.record(&[open.as_bytes(), data, b"}"])?)
    }
}

/// A text as JSON.
fn quoted(row: &Row<'_>, column: usize) -> SqlResult<String> {
    let text: Option<String> = row.get(column)?;
    Ok(serde_json::Value::from(text).to_string())
}
