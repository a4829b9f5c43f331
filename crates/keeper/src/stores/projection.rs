//! OpenClaw's tables beside the events of a session: the type and parent of each event (`transcript_event_identities`), which
//! events are on the live branch and where (`session_transcript_active_events`), and how far these tables reach
//! (`session_transcript_index_state`). OpenClaw relies on them, so they are updated with the events.
//!
//! The live branch is not computed anew: live events stay live unless they are removed, and the new parent of an event comes
//! before it. If the result is inconsistent, nothing is written and the user is told to run OpenClaw's own rebuild.

use super::kind::{Around, PAGE_ROWS, Turned, Unlinked};
use super::kinds::openclaw::{ACTIVE, IDENTITIES, STATE, event_of, layout};
use super::rows::{RowCell, RowCells, RowEdit, first};
use jiff::Timestamp;
use rusqlite::{Connection, Result as SqlResult, Statement, params};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};

/// What to do if the tables are inconsistent.
const REBUILD: &str = "OpenClaw's index of the session does not fit its events; to have it rebuilt, start the gateway, or run: \
                       openclaw doctor --non-interactive";

/// Columns of an identity.
const ID: usize = 1;
const SEQ: usize = 2;
const TYPE: usize = 3;
const PARENT: usize = 4;

/// How many ancestors of an event are followed at most.
const ANCESTORS_MAX: usize = 1 << 20;

/// The changes to events.
#[derive(Default)]
struct EventChanges {
    around: Around,
    /// Removed events, and their ids.
    gone: HashMap<i64, String>,
    /// The new parents of events.
    parents: HashMap<i64, Option<String>>,
}

/// Finds the edits of the other tables.
pub(super) fn links(connection: &Connection, session: &str, turned: &[Turned]) -> Result<Around, Unlinked> {
    let mut turn = EventChanges::default();
    for event in turned {
        turn.take(connection, session, event)?;
    }
    let state = layout(STATE).rows(connection, "session_id = ?1", &[&session])?.pop();
    let state = state.filter(|state| state[3] == RowCell::Integer(0));
    let leaf = state.as_ref().map(|state| wrong_leaf(connection, session, state)).transpose()?.flatten();
    if turn.gone.is_empty() && turn.parents.is_empty() {
        if let (Some(state), Some((_, leaf))) = (state, leaf) {
            let mut now = state.clone();
            (now[2], now[6]) = (RowCell::text(&leaf), RowCell::Integer(Timestamp::now().as_millisecond()));
            turn.around.after.push(RowEdit { layout: STATE, old: Some(state), new: Some(now) });
        }
        return Ok(turn.around);
    }
    let state = state.ok_or(REBUILD)?;
    let order = "session_id = ?1 ORDER BY active_position";
    let old = layout(ACTIVE).rows(connection, order, &[&session])?;
    let live = turn.live(connection, session, &old)?.ok_or(REBUILD)?;
    Ok(turn.finish(connection, session, (state, old), leaf.is_some(), &live)?.ok_or(REBUILD)?)
}

impl EventChanges {
    /// Notes the change of an event and of its identity.
    fn take(&mut self, connection: &Connection, session: &str, event: &Turned) -> Result<(), Unlinked> {
        let seq = event.row.get(1).and_then(RowCell::as_integer).ok_or(REBUILD)?;
        let own =
            layout(IDENTITIES).rows(connection, "session_id = ?1 AND seq = ?2", &[&session, &seq])?.pop();
        let said = |name| event.new.as_ref().and_then(|new: &Value| new.get(name)?.as_str());
        let Some(own) = own else {
            // The header has no parent.
            if seq == 0 && said("type") == Some("session") {
                return Ok(());
            }
            let new = event.new.as_ref().ok_or(REBUILD)?;
            let new = identity(connection, session, seq, new)?.ok_or(REBUILD)?;
            self.around.after.push(RowEdit { layout: IDENTITIES, old: None, new: Some(new) });
            return Ok(());
        };
        if event.new.is_none() {
            self.gone.insert(seq, own[ID].as_text().unwrap_or_default().to_string());
            self.around.before.push(RowEdit { layout: IDENTITIES, old: Some(own), new: None });
            return Ok(());
        }
        if said("id") != own[ID].as_text() || said("type") != own[TYPE].as_text() {
            return Err("the repair would give an event another id or type".into());
        }
        let parent = said("parentId").map_or(RowCell::Null, RowCell::text);
        if parent != own[PARENT] {
            self.parents.insert(seq, parent.as_text().map(str::to_string));
            let mut new = own.clone();
            new[PARENT] = parent;
            self.around.after.push(RowEdit { layout: IDENTITIES, old: Some(own), new: Some(new) });
        }
        Ok(())
    }

    /// An event: its `seq`, type, and new parent.
    fn event(
        &self,
        connection: &Connection,
        session: &str,
        id: &str,
    ) -> SqlResult<Option<(i64, String, Option<String>)>> {
        let own =
            layout(IDENTITIES).rows(connection, "session_id = ?1 AND event_id = ?2", &[&session, &id])?;
        let Some(own) = own.first() else { return Ok(None) };
        let Some(seq) = own[SEQ].as_integer().filter(|seq| !self.gone.contains_key(seq)) else {
            return Ok(None);
        };
        let parent = match self.parents.get(&seq) {
            Some(parent) => parent.clone(),
            None => own[PARENT].as_text().map(str::to_string),
        };
        Ok(Some((seq, own[TYPE].as_text().unwrap_or_default().to_string(), parent)))
    }

    fn parent_of(&self, connection: &Connection, session: &str, seq: i64) -> SqlResult<Option<String>> {
        const OWN: &str =
            "SELECT parent_id FROM transcript_event_identities WHERE session_id = ?1 AND seq = ?2";
        match self.parents.get(&seq) {
            Some(parent) => Ok(parent.clone()),
            None => first(connection, OWN, &[&session, &seq]),
        }
    }

    /// The new live branch; `None` if the tables are inconsistent.
    fn live(&self, connection: &Connection, session: &str, old: &[RowCells]) -> SqlResult<Option<Vec<i64>>> {
        let were: Vec<i64> = old.iter().filter_map(|row| row[2].as_integer()).collect();
        let mut live: Vec<i64> = were.iter().copied().filter(|seq| !self.gone.contains_key(seq)).collect();
        let mut known: HashSet<i64> = live.iter().copied().collect();
        let mut before = Vec::new();
        // If the first live event had no parent, its new ancestors are live too.
        let relinked = live.first().copied().filter(|seq| self.parents.contains_key(seq));
        let mut next = match relinked {
            Some(seq) => self.parent_of(connection, session, seq)?,
            None => None,
        };
        while let Some(id) = next {
            let Some((seq, kind, parent)) = self.event(connection, session, &id)? else { break };
            if kind == "leaf" || !known.insert(seq) || before.len() > ANCESTORS_MAX {
                return Ok(None);
            }
            before.push(seq);
            next = parent;
        }
        before.reverse();
        live.splice(0..0, before);
        let ids: HashSet<&String> = self.gone.values().collect();
        for pair in live.windows(2) {
            let parent = self.parent_of(connection, session, pair[1])?;
            if parent.as_ref().is_some_and(|parent| ids.contains(parent)) {
                return Ok(None);
            }
            let hangs = || -> SqlResult<bool> {
                let Some(parent) = &parent else { return Ok(false) };
                Ok(self.event(connection, session, parent)?.is_some_and(|(seq, ..)| seq == pair[0]))
            };
            if self.parents.contains_key(&pair[1]) && !hangs()? {
                return Ok(None);
            }
        }
        Ok(Some(live))
    }

    /// The edits of the projection.
    fn finish(
        mut self,
        connection: &Connection,
        session: &str,
        (state, old): (RowCells, Vec<RowCells>),
        is_wrong: bool,
        live: &[i64],
    ) -> SqlResult<Option<Around>> {
        const OWN: &str =
            "SELECT event_id FROM transcript_event_identities WHERE session_id = ?1 AND seq = ?2";
        const LAST: &str =
            "SELECT seq FROM transcript_events WHERE session_id = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1";
        let mut was: HashMap<i64, &RowCells> = HashMap::new();
        was.extend(old.iter().filter_map(|row| Some((row[2].as_integer()?, row))));
        let (mut new, mut messages): (Vec<RowCells>, usize) = (Vec::new(), 0);
        for (position, seq) in live.iter().enumerate() {
            let (is_message, eligible) = if let Some(row) = was.get(seq) {
                (row[3] != RowCell::Null, row[4].clone())
            } else {
                let Some(event) = event_of(connection, session, *seq)? else { return Ok(None) };
                let hidden = event["message"]["excludeFromContext"] == Value::Bool(true);
                (event.get("message").is_some(), RowCell::Integer(i64::from(!hidden)))
            };
            let place = if is_message { RowCell::integer(messages) } else { RowCell::Null };
            messages += usize::from(is_message);
            new.push(vec![
                RowCell::text(session),
                RowCell::integer(position),
                RowCell::Integer(*seq),
                place,
                eligible,
            ]);
        }
        let mut leaf = state[2].clone();
        if is_wrong || self.gone.values().any(|id| leaf.as_text() == Some(id)) {
            let last = old.last().and_then(|row| row[2].as_integer());
            let own =
                live.last().filter(|_| is_wrong || last.is_some_and(|last| self.gone.contains_key(&last)));
            let Some(id) =
                own.map(|seq| first::<String>(connection, OWN, &[&session, seq])).transpose()?.flatten()
            else {
                return Ok(None);
            };
            leaf = RowCell::text(&id);
        }
        let mut last = first(connection, LAST, &[&session, &i64::MAX])?;
        while let Some(seq) = last.filter(|seq| self.gone.contains_key(seq)) {
            last = first(connection, LAST, &[&session, &(seq - 1)])?;
        }
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let edit = |old: Option<&RowCells>, new: Option<&RowCells>| RowEdit {
            layout: ACTIVE,
            old: old.cloned(),
            new: new.cloned(),
        };
        let goes: Vec<RowEdit> = old[same..].iter().map(|row| edit(Some(row), None)).collect();
        self.around.before.splice(0..0, goes);
        self.around.after.extend(new[same..].iter().map(|row| edit(None, Some(row))));
        let mut now = state.clone();
        now[1] = RowCell::Integer(last.unwrap_or(-1));
        now[2] = leaf;
        (now[4], now[5]) = (RowCell::integer(new.len()), RowCell::integer(messages));
        if now != state {
            now[6] = RowCell::Integer(Timestamp::now().as_millisecond());
            self.around.after.push(RowEdit { layout: STATE, old: Some(state), new: Some(now) });
        }
        Ok(Some(self.around))
    }
}

/// Reconstructs an unreadable event: its identity has its type and parent, and a result belongs to the call without a result.
/// `None` if that is not enough.
pub(super) fn remembered(
    connection: &Connection,
    session: &str,
    event: &[RowCell],
) -> SqlResult<Option<Value>> {
    let (seq, created) = (event[1].as_integer().unwrap_or(-1), event[6].as_integer().unwrap_or(0));
    let own = layout(IDENTITIES).rows(connection, "session_id = ?1 AND seq = ?2", &[&session, &seq])?.pop();
    let Some(own) = own else { return Ok(None) };
    let time = Timestamp::from_millisecond(created).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut new = serde_json::json!({
        "type": own[TYPE].as_text(), "id": own[ID].as_text(), "parentId": own[PARENT].as_text(),
        "timestamp": format!("{time:.3}"),
    });
    let is_prompt = own[5].as_text().is_some_and(|key| key.ends_with(":user"));
    match own[TYPE].as_text() {
        Some("custom") => new["customType"] = "tailor.lost".into(),
        Some("message") if is_prompt => {
            new["message"] = serde_json::json!({"role": "user", "content": LOST, "timestamp": created});
        }
        Some("message") => match open_call(connection, session, &own)? {
            Some((id, name)) => {
                new["message"] = serde_json::json!({
                    "role": "toolResult", "toolCallId": id, "toolName": name,
                    "content": [{"type": "text", "text": LOST}], "isError": true, "timestamp": created,
                });
            }
            None => return Ok(None),
        },
        _ => return Ok(None),
    }
    Ok(Some(new))
}

/// The text in place of an unreadable one.
const LOST: &str = "[tailor: what stood here could not be read any more]";

/// How far back the call of a result is searched for.
const TURN_EVENTS_MAX: usize = 1_000;

/// The first call without a result in the turn before an event: its id and tool.
fn open_call(connection: &Connection, session: &str, own: &RowCells) -> SqlResult<Option<(String, String)>> {
    const OF: &str = "session_id = ?1 AND event_id = ?2";
    const CHILDREN: &str = "session_id = ?1 AND parent_id = ?2";
    let mut answered = HashSet::new();
    let answers = |event: &Value| {
        let message = event.get("message")?;
        let is_result = message["role"] == "toolResult";
        is_result.then(|| message["toolCallId"].as_str().map(str::to_string)).flatten()
    };
    // The results after it.
    let mut after = own[ID].as_text().map(str::to_string);
    for _ in 0..TURN_EVENTS_MAX {
        let Some(id) = &after else { break };
        let children = layout(IDENTITIES).rows(connection, CHILDREN, &[&session, id])?;
        let Some(child) = children.first() else { break };
        let event = event_of(connection, session, child[SEQ].as_integer().unwrap_or(-1))?.unwrap_or_default();
        if event.get("message").is_some_and(|message| message["role"] != "toolResult") {
            break;
        }
        answered.extend(answers(&event));
        after = child[ID].as_text().map(str::to_string);
    }
    // Those before it, up to the calls.
    let mut before = own[PARENT].as_text().map(str::to_string);
    for _ in 0..TURN_EVENTS_MAX {
        let Some(id) = &before else { break };
        let Some(parent) = layout(IDENTITIES).rows(connection, OF, &[&session, id])?.pop() else { break };
        let event =
            event_of(connection, session, parent[SEQ].as_integer().unwrap_or(-1))?.unwrap_or_default();
        answered.extend(answers(&event));
        if event["message"]["role"] == "assistant" {
            let calls = event["message"]["content"].as_array().cloned().unwrap_or_default();
            let mut calls = calls.iter().filter(|block| block["type"] == "toolCall").filter_map(|call| {
                Some((call["id"].as_str()?.to_string(), call["name"].as_str()?.to_string()))
            });
            return Ok(calls.find(|(id, _)| !answered.contains(id)));
        }
        if event["message"]["role"] == "user" {
            break;
        }
        before = parent[PARENT].as_text().map(str::to_string);
    }
    Ok(None)
}

/// What the tables beside the events say of a session. One whose tables are built anew has none.
pub(super) struct SessionIndex<'c> {
    identity: Statement<'c>,
    identities: Statement<'c>,
    /// A page of events that have an identity, read ahead.
    known: VecDeque<i64>,
    /// The last live event, if OpenClaw takes another one for it.
    wrong_leaf: Option<i64>,
    /// How many more bytes of events without identity may be reported.
    left: usize,
}

/// How many bytes of events without identity are reported, because they are held in memory. The rest is reported once these
/// have been repaired.
const UNKNOWN_BYTES_MAX: usize = 16 << 20;

/// The least that one of them counts.
const UNKNOWN_BYTES_MIN: usize = 16 << 10;

impl<'c> SessionIndex<'c> {
    pub(super) fn read(connection: &'c Connection, session: &str) -> SqlResult<Option<Self>> {
        const TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE name IN ('transcript_event_identities', \
             'session_transcript_active_events', 'session_transcript_index_state')";
        if connection.query_row(TABLES, [], |row| row.get::<_, i64>(0))? < 3 {
            return Ok(None);
        }
        let state =
            layout(STATE).rows(connection, "session_id = ?1 AND needs_rebuild = 0", &[&session])?.pop();
        let Some(state) = state else { return Ok(None) };
        let identity = connection.prepare(
            "SELECT 1 FROM transcript_event_identities WHERE session_id = ?1 AND seq = ?2 LIMIT 1",
        )?;
        let identities = connection.prepare(&format!(
            "SELECT seq FROM transcript_event_identities WHERE session_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT {PAGE_ROWS}"
        ))?;
        let wrong_leaf = wrong_leaf(connection, session, &state)?.map(|(seq, _)| seq);
        Ok(Some(Self { identity, identities, known: VecDeque::new(), wrong_leaf, left: UNKNOWN_BYTES_MAX }))
    }

    /// Why OpenClaw cannot go on from an event although its row, of so many bytes, is whole.
    pub(super) fn flaw(&mut self, session: &str, seq: i64, bytes: usize) -> SqlResult<Option<String>> {
        let is_unknown = seq > 0 && self.left > 0 && !self.has_identity(session, seq)?;
        let what = if is_unknown {
            self.left = self.left.saturating_sub(bytes.max(UNKNOWN_BYTES_MIN));
            "it is not in transcript_event_identities, so nothing that came before it is sent"
        } else if self.wrong_leaf == Some(seq) {
            "it is the last live event, but leaf_event_id in session_transcript_index_state names another one, so every turn fails"
        } else {
            return Ok(None);
        };
        Ok(Some(format!("event {seq}: {what}")))
    }

    /// Whether an event has an identity. Events usually come in order.
    fn has_identity(&mut self, session: &str, seq: i64) -> SqlResult<bool> {
        while self.known.front().is_some_and(|known| *known < seq) {
            self.known.pop_front();
        }
        if self.known.is_empty() {
            let known = self.identities.query_map(params![session, seq], |row| row.get(0))?;
            self.known = known.collect::<SqlResult<_>>()?;
        }
        // The event may have been added after the page was read.
        Ok(self.known.front() == Some(&seq) || self.identity.exists(params![session, seq])?)
    }
}

/// The last live event and its id, if OpenClaw takes another one for it.
fn wrong_leaf(connection: &Connection, session: &str, state: &RowCells) -> SqlResult<Option<(i64, String)>> {
    const LAST: &str = "SELECT event_seq FROM session_transcript_active_events WHERE session_id = ?1 \
                        ORDER BY active_position DESC LIMIT 1";
    let Some(last) = first::<i64>(connection, LAST, &[&session])? else { return Ok(None) };
    let event = event_of(connection, session, last)?;
    let id = event.as_ref().and_then(|event| event["id"].as_str());
    Ok(id.filter(|id| state[2].as_text() != Some(id)).map(|id| (last, id.to_string())))
}

/// The identity of an event that has none; `None` if it cannot get one.
fn identity(connection: &Connection, session: &str, seq: i64, event: &Value) -> SqlResult<Option<RowCells>> {
    const CREATED: &str = "SELECT created_at FROM transcript_events WHERE session_id = ?1 AND seq = ?2";
    let said = |value: &Value| value.as_str().map_or(RowCell::Null, RowCell::text);
    let (id, kind) = (said(&event["id"]), said(&event["type"]));
    let taken = layout(IDENTITIES).rows(connection, "session_id = ?1 AND event_id = ?2", &[&session, &id])?;
    if id == RowCell::Null || kind == RowCell::Null || !taken.is_empty() {
        return Ok(None);
    }
    let created = first::<i64>(connection, CREATED, &[&session, &seq])?.unwrap_or(0);
    let key = said(&event["message"]["idempotencyKey"]);
    let (parent, seq) = (said(&event["parentId"]), RowCell::Integer(seq));
    Ok(Some(vec![RowCell::text(session), id, seq, kind, parent, key, RowCell::Integer(created)]))
}
