"""A writer at full speed on a store, and whether a reader beside it makes it wait. Runs alone as

    python3 beside.py STORE KIND SECONDS

which writes to STORE as its owner does, one event a transaction, and prints as JSON how many commits there were, how long the
slowest took in ms, how often the store was locked, and how large the WAL grew."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import rows

SHARES = (0.5, 0.99, 0.999, 1.0)
KILLED_AFTER = 0.2  # seconds at most
REOPEN = 200  # commits after which the writer opens the store again, as a new process of its owner would


def statement(db, kind):
    """What one transaction does: a function of a number."""
    if kind == "openclaw":
        session, last = db.execute("SELECT session_id, max(seq) FROM transcript_events GROUP BY 1 ORDER BY 2 DESC LIMIT 1").fetchone()
        text = json.dumps({"type": "custom", "customType": "filler", "data": "x" * 2000, "id": "%d"})
        return lambda n: db.execute(
            "INSERT INTO transcript_events(session_id,seq,event_json,created_at) VALUES(?,?,?,?)", (session, last + 1 + n, text.replace("%d", str(n)), n)
        )
    id, data = db.execute("SELECT id, data FROM part ORDER BY length(data) DESC LIMIT 1").fetchone()
    aggregate, last = db.execute("SELECT aggregate_id, seq FROM event_sequence ORDER BY seq DESC LIMIT 1").fetchone()

    def write(n):
        db.execute("UPDATE part SET time_updated=? WHERE id=?", (n, id))
        db.execute("INSERT INTO event VALUES(?,?,?,?,?)", (f"evt_{os.getpid()}_{n}", aggregate, last + 1 + n, "message.part.updated.1", data[:4000]))

    return write


def write(path, kind, seconds):
    """With the owner's settings (WAL, synchronous NORMAL), but no lock is waited for: each wait would be a `busy`."""
    db, took, busy, wal = opened(path), [], 0, 0
    step, end = statement(db, kind), time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        try:
            if len(took) % REOPEN == REOPEN - 1:
                wal = max(wal, os.path.getsize(f"{path}-wal"))
                db, last = opened(path), db
                last.close()
                step = statement(db, kind)
            db.execute("BEGIN IMMEDIATE")
            step(len(took))
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            busy += 1
            if db.in_transaction:
                db.execute("ROLLBACK")
        took.append(time.perf_counter() - began)
    db.close()
    return took, busy, wal


def opened(path):
    """The first to open a store after a crash locks it for as long as it reads the WAL, and the owner waits up to 5 s then."""
    db = rows.connect(path)
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    db.execute("PRAGMA busy_timeout=0")
    return db


def measure(path, kind, seconds, reader=None, killed=False):
    """Lets the writer run in a process of its own, with or without a reader that is started again and again, and perhaps
    killed at any time; `reader` is its arguments. Also how often the reader ran, and how often it said that it could not."""
    argv = [sys.executable, __file__, str(path), kind, str(seconds)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    ran, failed, over = 0, 0, threading.Event()

    def read():
        nonlocal ran, failed
        while not over.is_set():
            one = subprocess.Popen(reader, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if killed:
                time.sleep(random.uniform(0, KILLED_AFTER))
                one.kill()
            ran, failed = ran + 1, failed + (one.wait() not in ((0, 1, -signal.SIGKILL) if killed else (0, 1)))

    thread = threading.Thread(target=read, daemon=True)
    if reader:
        thread.start()
    said = json.loads(process.communicate()[0])
    over.set()
    if reader:
        thread.join()
    return {**said, "reads": ran, "reads_failed": failed}


def stolen():
    """How long a process that only computes stands still here, in ms: what a busy machine does to everybody."""
    worst, last, end = 0.0, time.perf_counter(), time.monotonic() + 1
    while time.monotonic() < end:
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
    return worst * 1000


def main():
    path, kind, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    took, busy, wal = write(path, kind, seconds)
    took.sort()
    ms = {f"{share:g}": round(took[min(len(took) - 1, int(share * len(took)))] * 1000, 3) for share in SHARES}
    slow = sum(1 for one in took if one > 0.005)
    print(json.dumps({"commits": len(took), "ms": ms, "over_5_ms": slow, "busy": busy, "wal": wal}))


if __name__ == "__main__":
    main()
