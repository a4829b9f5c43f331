//! Hermes: `state.db`, with a message of OpenAI's API in the columns of each row of `messages`. It is written as in Hermes' own
//! archives. Retracted messages (`active = 0`) are only in an export.

use crate::stores::kind::{EachRow, Query, RowKey, RowOrder, RowReader, RowTrouble, StoreKind};
use crate::stores::lines::RecordLines;
use rusqlite::Statement;

const SESSION: u8 = 0;
const MESSAGE: u8 = 1;

pub(super) const KIND: StoreKind = StoreKind {
    agent: "Hermes",
    tables: &[
        ("sessions", &["id", "source", "model", "started_at", "cwd", "title"]),
        (
            "messages",
            &["id", "session_id", "role", "content", "tool_call_id", "tool_calls", "timestamp", "active"],
        ),
    ],
    sessions: "SELECT id, CAST(1000 * (SELECT max(timestamp) FROM messages AS m WHERE m.session_id = s.id) AS INTEGER) \
               FROM sessions AS s WHERE EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id) ORDER BY id",
    sessions_by_rows: "SELECT DISTINCT session_id, NULL FROM messages ORDER BY session_id",
    mark: None,
    // It does not record when rows change.
    stamps: &[
        "SELECT octet_length(model), octet_length(title) FROM sessions WHERE rowid = ?1",
        "SELECT coalesce(octet_length(content), 0) * 2 + active, octet_length(tool_calls) FROM messages WHERE rowid = ?1",
    ],
    version: None,
    tried: &[],
    keys,
    reader: |connection| {
        let session = "SELECT json_object('role', 'session_meta', 'model', model, 'platform', source, 'cwd', cwd, \
                       'title', title) FROM sessions WHERE rowid = ?1";
        // Nulls are left out.
        let message = "SELECT json_patch('{}', json_object('role', role, 'content', coalesce(content, ''), 'tool_calls', \
                       CASE WHEN json_valid(tool_calls) THEN json(tool_calls) END, 'tool_call_id', tool_call_id, \
                       'timestamp', strftime('%Y-%m-%dT%H:%M:%f', timestamp, 'unixepoch'))) FROM messages WHERE rowid = ?1";
        Ok(Box::new(HermesRows {
            session: connection.prepare(session)?,
            message: connection.prepare(message)?,
        }))
    },
    fillers: &[],
    load: None,
    mend: None,
};

fn keys(query: &Query<'_>, each: EachRow<'_>) -> Result<(), RowTrouble> {
    // An export holds all of them.
    let rows = if query.salvages {
        "messages WHERE session_id = ?1"
    } else {
        "messages WHERE session_id = ?1 AND active = 1"
    };
    query.each(SESSION, &RowOrder::all("sessions WHERE id = ?1", &["id"]), each)?;
    query.each(MESSAGE, &RowOrder::all(rows, &["id"]), each)
}

struct HermesRows<'c> {
    session: Statement<'c>,
    message: Statement<'c>,
}

impl RowReader for HermesRows<'_> {
    fn row(&mut self, (table, row): RowKey, out: &mut RecordLines) -> Result<(), RowTrouble> {
        let statement = if table == SESSION { &mut self.session } else { &mut self.message };
        let mut rows = statement.query([row])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        Ok(out.record(&[row.get::<_, String>(0)?.as_bytes()])?)
    }
}
