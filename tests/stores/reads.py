"""What Tailor says of the stores that real programs wrote: what it lists, what it exports byte for byte, what it finds once
rows are damaged. What it must find was written down by hand, from what these damages do to their owners."""

import json
import subprocess

import rows

# damage -> (the code it must be reported with, whether it is an error). What its owner heals when it sends is no error.
OPENCLAW = {
    "result lost, chain whole": ("P1", False),
    "result twice": ("P5", False),
    "dangling parentId": ("T1", True),
    "length of a zstd row too large": ("B9", True),
    "length of a zstd row too small": ("B9", True),
    "row that is no JSON": ("B9", True),
    "tool name ba sh<x>": ("P10", True),
    "header is gone": ("B10", True),
    "leaf is an older event": ("B9", True),
    "identity of a result is gone": ("B9", True),
}
OPENCODE = {
    "completed to running": ("P1", False),
    "completed to pending": ("P1", False),
    "completed without output": ("B9", True),
    "part that is no JSON": ("B9", True),
    "tool name ba sh<x>": ("P10", True),
}
# What Tailor does not say yet, or says otherwise. A gap that closes fails, so that this stays true.
GAPS = {
    ("openclaw", "result twice"),  # an error, as in a transcript of pi; OpenClaw sends it once
}


class Told:
    """What `tailor COMMAND` said."""

    def __init__(self, tailor, *arguments):
        done = subprocess.run([tailor, *map(str, arguments)], capture_output=True, check=False)
        self.code, self.out, self.error = done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def lines(self):
        return [json.loads(line) for line in self.out.splitlines() if line.startswith(b"{")]


def knows_stores(tailor):
    return Told(tailor, "export", "--help").code == 0 and "built without" not in Told(tailor, "export", "none.db#s").error


def openclaw_lines(db, session):
    found = db.execute("SELECT * FROM transcript_events WHERE session_id=? ORDER BY seq", (session,))
    return [rows.text(row) for row in found]


def opencode_lines(db, session):
    """What rows hold, in the order in which OpenCode loads them; the session itself comes first and is left out."""
    held = []
    for id, data in db.execute("SELECT id, data FROM message WHERE session_id=? ORDER BY time_created, id", (session,)):
        held.append(data.encode())
        held += [part.encode() for (part,) in db.execute("SELECT data FROM part WHERE message_id=? ORDER BY id", (id,))]
    return held


def exported(tailor, path, kind, session):
    """What is wrong with the export of a session: a list of lines."""
    db = rows.connect(path, read_only=True)
    wanted = (openclaw_lines if kind == "openclaw" else opencode_lines)(db, session)
    db.close()
    told = Told(tailor, "export", f"{path}#{session}")
    if told.code != 0:
        return [f"export of {session} exits {told.code}: {told.error.strip()[-300:]}"]
    got = told.out.split(b"\n")[:-1]
    if kind == "openclaw":
        return [] if got == wanted else [f"export of {session}: {different(got, wanted)}"]
    got = got[1:]
    bad = [n for n, (line, data) in enumerate(zip(got, wanted)) if data not in line]
    if len(got) != len(wanted) or bad:
        return [f"export of {session}: {len(got)} rows, not {len(wanted)}; what is stored is not in rows {bad[:5]}"]
    return []


def compared(tailor, path, session, folder):
    """What is wrong with `tailor diff` of a session and its export, whole and with one record gone, added or another one."""
    if Told(tailor, "diff", "--help").code:
        return ["diff is not built in"]
    lines = Told(tailor, "export", f"{path}#{session}").out.splitlines(keepends=True)
    middle = len(lines) // 2
    other = lines[middle].replace(b'"', b'"other', 1) if b'"text"' not in lines[middle] else lines[middle].replace(b'"text"', b'"texts"', 1)
    copies = {
        "whole": (lines, 0),
        "a record short": (lines[:middle] + lines[middle + 1 :], 1),
        "the last record short": (lines[:-1], 1),
        "with another record": ([*lines[:middle], other, *lines[middle + 1 :]], 1),
    }
    wrong = []
    for name, (held, wanted) in copies.items():
        copy = folder / "copy.jsonl"
        copy.write_bytes(b"".join(held))
        told = Told(tailor, "diff", copy, f"{path}#{session}")
        if told.code != wanted:
            wrong.append(f"diff with a copy {name} exits {told.code}: {told.error.strip()[-200:]}")
    return wrong


def different(got, wanted):
    at = next((n for n, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
    return f"{len(got)} lines, {len(wanted)} rows; the first that differs is line {at + 1}"


def findings(tailor, path, session):
    told = Told(tailor, "scan", "--json", f"{path}#{session}")
    return [finding for file in told.lines() if file["type"] == "file" for finding in file.get("findings", [])]


def found(tailor, path, session, wanted, before):
    """What is wrong with what is said of a damaged session; `before` is what was found before the damage."""
    code, is_error = wanted
    known = {finding["fingerprint"] for finding in before}
    new = [finding for finding in findings(tailor, path, session) if finding["fingerprint"] not in known]
    mine = [finding for finding in new if code in ("", finding["code"])]
    if not mine:
        return f"{code or 'the damage'} is not reported; new are {[(f['code'], f['severity']) for f in new]}"
    if any((finding["severity"] == "error") != is_error for finding in mine):
        return f"{code} is {mine[0]['severity']}, and should {'be' if is_error else 'not be'} an error"
    return None


def unreadable(tailor, path, sessions):
    """What is wrong with what is said of whole sessions: that their owner could not go on from a row."""
    said = {label: [f["message"] for f in findings(tailor, path, session) if f["code"] == "B9"] for label, session in sessions.items()}
    wrong = {label: messages for label, messages in said.items() if messages}
    return f"rows are said to be unreadable: {wrong}" if wrong else ""
