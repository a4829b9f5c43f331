"""Rows of stores, read and written by a program that is neither Tailor nor the owner: Python's sqlite3."""

import contextlib
import json
import sqlite3
import time
import uuid


def connect(path, read_only=False):
    """A connection that a gate of the owner's schema does not stop: SQLite before 3.43 has no octet_length()."""
    db = sqlite3.connect(f"file:{path}{'?mode=ro' if read_only else ''}", uri=True, isolation_level=None, timeout=5)
    db.row_factory = sqlite3.Row
    if sqlite3.sqlite_version_info < (3, 43):
        length = lambda value: None if value is None else len(value if isinstance(value, bytes) else str(value).encode())
        db.create_function("octet_length", 1, length, deterministic=True)
    db.execute("PRAGMA foreign_keys=ON")
    return db


@contextlib.contextmanager
def writing(path):
    """One transaction on a store; nothing of it is left if anything fails, or if a foreign key hangs."""
    db = connect(path)
    try:
        db.execute("BEGIN IMMEDIATE")
        yield db
        hanging = db.execute("PRAGMA foreign_key_check").fetchall()
        if hanging:
            raise ValueError(f"foreign keys hang: {[tuple(row) for row in hanging[:3]]}")
        db.execute("COMMIT")
    finally:
        db.close()


def dump(path):
    """All rows of all tables, for comparison."""
    db = connect(path, read_only=True)
    try:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")]
        return {name: [tuple(row) for row in db.execute(f'SELECT * FROM "{name}"')] for name in tables}
    finally:
        db.close()


# --- OpenClaw ---


def text(row):
    """The event of a row as it was stored, as bytes."""
    if row["event_json"] is not None:
        return row["event_json"].encode()
    import zstandard

    decoded = zstandard.ZstdDecompressor().decompressobj().decompress(row["event_zstd"])
    if len(decoded) != row["event_utf8_bytes"]:
        raise ValueError(f"seq {row['seq']} decodes to {len(decoded)} bytes, not {row['event_utf8_bytes']}")
    return decoded


def events(db, session):
    """[(seq, event)] in the order of the rows."""
    found = db.execute("SELECT * FROM transcript_events WHERE session_id=? ORDER BY seq", (session,))
    return [(row["seq"], json.loads(text(row))) for row in found]


def put(db, session, seq, event):
    """Writes an event over another as a text row."""
    new = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    changed = db.execute(
        "UPDATE transcript_events SET event_json=?, event_zstd=NULL, event_utf8_bytes=?, navigation_json=NULL WHERE session_id=? AND seq=?",
        (new, len(new.encode()), session, seq),
    )
    if changed.rowcount != 1:
        raise ValueError(f"no row {seq} of {session}")


def identity(event):
    """What transcript_event_identities has of an event, without the session, seq and time."""
    return {"event_id": event["id"], "event_type": event["type"], "parent_id": event.get("parentId")}


def add(db, session, seq, event, created_at):
    new = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    db.execute(
        "INSERT INTO transcript_events(session_id,seq,event_json,event_utf8_bytes,created_at) VALUES(?,?,?,?,?)",
        (session, seq, new, len(new.encode()), created_at),
    )
    db.execute(
        "INSERT INTO transcript_event_identities VALUES(?,?,?,?,?,NULL,?)",
        (session, event["id"], seq, event["type"], event.get("parentId"), created_at),
    )


def relink(db, session, seq, parent):
    """Hangs an event on another parent, in its text and among the identities."""
    event = dict(events(db, session))[seq]
    put(db, session, seq, {**event, "parentId": parent})
    db.execute("UPDATE transcript_event_identities SET parent_id=? WHERE session_id=? AND seq=?", (parent, session, seq))


def active(db, session):
    """The seqs that are in the projection, in its order."""
    found = db.execute("SELECT event_seq FROM session_transcript_active_events WHERE session_id=? ORDER BY active_position", (session,))
    return [seq for (seq,) in found]


def project(db, session, seqs):
    """Writes the projection anew: these events, in this order; the last one is the leaf."""
    held = dict(events(db, session))
    eligible = dict(db.execute("SELECT event_seq, context_eligible FROM session_transcript_active_events WHERE session_id=?", (session,)).fetchall())
    db.execute("DELETE FROM session_transcript_active_events WHERE session_id=?", (session,))
    messages = 0
    for position, seq in enumerate(seqs):
        message = held[seq]["type"] == "message"
        row = (session, position, seq, messages if message else None, eligible.get(seq, 1))
        db.execute("INSERT INTO session_transcript_active_events VALUES(?,?,?,?,?)", row)
        messages += message
    db.execute(
        "UPDATE session_transcript_index_state SET indexed_seq=?, leaf_event_id=?, active_event_count=?, active_message_count=?, needs_rebuild=0, updated_at=? "
        "WHERE session_id=?",
        (max(held), held[seqs[-1]]["id"], len(seqs), messages, now(), session),
    )


def rotate(db, session):
    """Tells readers with caches that events were rewritten."""
    db.execute(
        "INSERT INTO transcript_rewrite_watermarks(session_id,generation,updated_at) VALUES(?,?,?) "
        "ON CONFLICT(session_id) DO UPDATE SET generation=excluded.generation, updated_at=excluded.updated_at",
        (session, uuid.uuid4().hex, now()),
    )
    db.execute(
        "UPDATE session_windows SET transcript_updated_at=max(?,coalesce(transcript_updated_at,-1)+1,coalesce(transcript_observed_at,-1)+1) WHERE session_id=?",
        (now(), session),
    )


def clone(db, session, key, new):
    """A copy of a session under a key and an id of its own, in all tables that have either."""
    was_key = db.execute("SELECT session_key FROM session_windows WHERE session_id=?", (session,)).fetchone()[0]
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE '%VIRTUAL%' AND name NOT LIKE 'session_transcript_fts_%'")]
    first = ["session_nodes", "session_windows", "transcript_events"]
    renamed = {was_key: key, session: new}
    for table in first + [name for name in tables if name not in first]:
        columns = [row["name"] for row in db.execute(f"PRAGMA table_info({table})")]
        owner = "session_id" if "session_id" in columns else "session_key" if "session_key" in columns else None
        if owner is None or table == "session_canonical_validation_pending":
            continue
        held = db.execute(f"SELECT * FROM {table} WHERE {owner}=?", (session if owner == "session_id" else was_key,)).fetchall()
        for row in held:
            values = [renamed.get(value, value) if name.startswith(("session_", "current_session", "leaf_", "event_id")) else value for name, value in zip(columns, row)]
            if "entry_json" in columns:
                at = columns.index("entry_json")
                values[at] = json.dumps({**json.loads(values[at]), "sessionId": new})
            db.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(values))})", values)
    header = db.execute("SELECT event_json FROM transcript_events WHERE session_id=? AND seq=0", (new,)).fetchone()[0]
    put(db, new, 0, header.replace(f'"id":"{session}"', f'"id":"{new}"', 1))


def now():
    return int(time.time() * 1000)
