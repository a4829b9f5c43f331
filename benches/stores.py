# What a scan of a large database costs, beside the same rows as a transcript. Prints a Markdown table.
#
#   python3 benches/stores.py [--bytes 200000000,2000000000] [--sessions 1] [--owner openclaw|opencode] [--program PATH]
#
# Makes databases of that many bytes of text in all, in so many sessions, which takes as much disk twice, and removes them in
# the end. With strace, a further scan of one session says how long its longest read transaction is: it begins and ends with
# a lock on the database's -shm. Build first: cargo build --release -p session-tailor --features stores.

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
IDS = re.compile(r'\{"type":"(?:session"|[^"]+","id":"([^"]+)","parentId":(?:null|"([^"]+)"))')
OPENCLAW = """
CREATE TABLE schema_meta (meta_key TEXT NOT NULL PRIMARY KEY, role TEXT NOT NULL, schema_version INTEGER NOT NULL) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23);
CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, updated_at INTEGER NOT NULL,
  transcript_updated_at INTEGER, transcript_observed_at INTEGER) STRICT;
CREATE TABLE transcript_rewrite_watermarks (session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL, updated_at INTEGER NOT NULL) STRICT;
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL,
  event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq)) STRICT;
CREATE TABLE transcript_event_identities (session_id TEXT NOT NULL, event_id TEXT NOT NULL, seq INTEGER NOT NULL, event_type TEXT,
  parent_id TEXT, message_idempotency_key TEXT, created_at INTEGER NOT NULL, PRIMARY KEY (session_id, event_id)) STRICT;
CREATE INDEX idx_sequence ON transcript_event_identities(session_id, seq);
CREATE TABLE session_transcript_index_state (session_id TEXT NOT NULL PRIMARY KEY, indexed_seq INTEGER NOT NULL, leaf_event_id TEXT,
  needs_rebuild INTEGER NOT NULL, active_event_count INTEGER NOT NULL, active_message_count INTEGER NOT NULL, updated_at INTEGER NOT NULL) STRICT;
CREATE TABLE session_transcript_active_events (session_id TEXT NOT NULL, active_position INTEGER NOT NULL, event_seq INTEGER NOT NULL,
  message_position INTEGER, context_eligible INTEGER, PRIMARY KEY (session_id, active_position)) STRICT;
"""
OPENCODE = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL, version text NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE migration (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
INSERT INTO migration VALUES ('20260622202450_simplify_session_input', 1);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""


def openclaw(db, session, entries):
    """One event for each entry; the first is the header."""
    db.execute("INSERT INTO session_windows VALUES (?, 'k', 7, 9000, NULL)", (session,))
    last = 0
    for seq, (id, parent, entry) in enumerate(entries):
        db.execute("INSERT INTO transcript_events VALUES (?,?,?,0,NULL,?,NULL)", (session, seq, entry, len(entry.encode())))
        if id:
            db.execute("INSERT INTO transcript_event_identities VALUES (?,?,?,'message',?,NULL,0)", (session, id, seq, parent))
            db.execute("INSERT INTO session_transcript_active_events VALUES (?,?,?,?,1)", (session, seq - 1, seq, seq - 1))
            last = (seq, id)
    db.execute("INSERT INTO session_transcript_index_state VALUES (?,?,?,0,?,?,0)", (session, last[0], last[1], last[0], last[0]))


def opencode(db, session, entries):
    """A message with one part for each entry."""
    db.execute("INSERT INTO session VALUES (?, NULL, '/w', 't', '1.18.33', 9000)", (session,))
    for n, (id, _, entry) in enumerate(entries):
        if not id:
            continue
        message = f"msg_{session}_{n:08}"
        role = "user" if n % 2 else "assistant"
        db.execute("INSERT INTO message VALUES (?,?,?,9000,?)", (message, session, n, json.dumps({"role": role, "agent": "build"})))
        text = json.dumps({"type": "text", "text": json.dumps(json.loads(entry).get("message"))})
        db.execute("INSERT INTO part VALUES (?,?,?,?,9000,?)", (f"prt_{session}_{n:08}", message, session, n, text))


def entries(session, size):
    """Id, parent and text of each entry, as benches/generate.py makes them."""
    generate = [sys.executable, os.path.join(HERE, "generate.py"), "pi", str(size), session[1:]]
    with subprocess.Popen(generate, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        for line in process.stdout:
            id, parent = IDS.match(line).groups()
            yield id, parent, line[:-1]


def make(folder, owner, size, sessions):
    """The database, and the folder of transcripts with the same entries."""
    path = os.path.join(folder, "openclaw-agent.sqlite" if owner == "openclaw" else "opencode.db")
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;" + (OPENCLAW if owner == "openclaw" else OPENCODE))
    os.mkdir(os.path.join(folder, "files"))
    for number in range(sessions):
        session = f"s{number}"
        db.execute("BEGIN")
        (openclaw if owner == "openclaw" else opencode)(db, session, entries(session, size // sessions))
        db.execute("COMMIT")
        with open(os.path.join(folder, "files", f"{session}.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(entry + "\n" for _, _, entry in entries(session, size // sessions))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return path, os.path.join(folder, "files")


def scan(program, path):
    """CPU seconds and the most memory, in MB, of the cheapest of four scans: files may still be written back meanwhile."""
    return min(once(program, path) for _ in range(4))


def once(program, path):
    process = subprocess.Popen([program, "scan", "--no-cache", "--format", "json", path], stdout=subprocess.PIPE)
    last = process.stdout.read().splitlines()[-1]
    _, _, used = os.wait4(process.pid, 0)
    assert json.loads(last)["errors"] == 0, last
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def longest(program, path, folder):
    """How long the longest read transaction of a scan is, and how many there are."""
    log = os.path.join(folder, "locks")
    subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-ttt", "-e", "trace=fcntl", "-o", log, program, "scan", "--no-cache", path], capture_output=True, check=False
    )
    held, found = {}, []
    # Bytes 123 to 127 are those of readers.
    for at, kind, start in re.findall(r"^\d+ +(\S+) fcntl\(\d+, F_SETLK, \{l_type=(F_\w+), l_whence=SEEK_SET, l_start=(12[3-7]), .*= 0$", open(log).read(), re.M):
        if kind == "F_RDLCK":
            held[start] = float(at)
        elif kind == "F_UNLCK" and start in held:
            found.append(float(at) - held.pop(start))
    return max(found, default=0), len(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", default="200000000,2000000000")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--owner", default="openclaw", choices=("openclaw", "opencode"))
    parser.add_argument("--program", default=os.path.join(HERE, "../target/release/tailor"))
    options = parser.parse_args()
    print("| bytes | sessions | CPU, database | CPU, transcripts | ratio | memory, database | memory, transcripts | longest transaction |")
    print("|---|---|---|---|---|---|---|---|")
    for size in map(int, options.bytes.split(",")):
        folder = tempfile.mkdtemp(prefix="tailor-stores-")
        try:
            path, files = make(folder, options.owner, size, options.sessions)
            (cpu, memory), (file_cpu, file_memory) = scan(options.program, path), scan(options.program, files)
            told = "not measured"
            if options.sessions == 1 and shutil.which("strace"):
                seconds, count = longest(options.program, path, folder)
                told = f"{seconds:.2f} s of {count}"
            print(
                f"| {size:,} | {options.sessions} | {cpu:.1f} s | {file_cpu:.1f} s | {cpu / file_cpu:.2f} | {memory:.0f} MB | {file_memory:.0f} MB | {told} |",
                flush=True,
            )
        finally:
            shutil.rmtree(folder)


main()
