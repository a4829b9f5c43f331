# Asks Codex itself whether a repaired rollout still reads as the same conversation.
#
#   unshare -rn python3 codex_resume.py CODEX BEFORE AFTER FINDINGS
#
# Resumes both files with `codex exec resume` against a stub of the Responses API on loopback, in a network namespace
# that has nothing else, and compares the items that it would send to the model. There must be as many, and they must
# be equal, but for texts cut at a marker and for what the findings (`tailor fix --format json`) account for.
# Exit 0: equal. 1: the first difference, explained. 77: skipped, because Codex cannot resume BEFORE, and either AFTER
# cannot be resumed for the same reason or no repair was meant to help.

import difflib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

MARKER = re.compile(r"\n?\[tailor: \d+ of \d+ chars omitted[^\]\n]*\]\n?")
CODEX_CUT = re.compile(r"…\d+ (?:tokens|chars) truncated…")
CODEX_HEAD = re.compile(r"^Warning: truncated output \(original token count: \d+\)\nTotal output lines: \d+\n\n")
THREAD = "0198c0de-0000-7000-8000-000000000001"
READS_MORE = re.compile(r"B\d+$")  # lines that Codex skips become readable
PONG = [
    {"type": "response.created", "response": {"id": "resp_1"}},
    {
        "type": "response.output_item.done",
        "item": {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "pong"}]},
    },
    {
        "type": "response.completed",
        "response": {"id": "resp_1", "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}},
    },
]


class Stop(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def fail(text):
    raise Stop(1, f"FAILED: {text}")


# ---- the stub --------------------------------------------------------------------------------------------------------

asked = []


class Stub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer("application/json", b'{"models":[],"data":[]}')

    def do_POST(self):
        asked.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
        events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in PONG)
        self.answer("text/event-stream", events.encode())


# ---- one resume ------------------------------------------------------------------------------------------------------


def resume(codex, port, rollout, root):
    """The items that Codex would send; None, and what it said, if it cannot resume the file."""
    home, work = root / "home", root / "work"
    for folder in (home, work):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    first, _, rest = rollout.read_bytes().partition(b"\n")
    # A thread stays with the provider that it began with, and here that is the stub.
    first = re.sub(rb'"model_provider":\s*"[^"]*"', b'"model_provider":"stub"', first, count=1)
    found = re.search(rb'"id":\s*"([0-9a-f-]{36})"', first)
    thread = found.group(1).decode() if found else THREAD
    folder = home / "sessions/2026/08/01"
    folder.mkdir(parents=True)
    (folder / f"rollout-2026-08-01T10-00-00-{thread}.jsonl").write_bytes(first + b"\n" + rest if rest else first)
    (home / "config.toml").write_text(
        f"""model_provider = "stub"
model = "stub"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stub]
name = "stub"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
requires_openai_auth = false
"""
    )
    asked.clear()
    run = subprocess.run(
        [codex, "exec", "resume", thread, "ping", "--skip-git-repo-check"],
        env={"CODEX_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"], "RUST_LOG": "error"},
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if run.returncode != 0 or not asked:
        said = [line for line in run.stderr.splitlines() if "rror" in line]
        return None, (said or ["it said nothing"])[-1]
    items = json.loads(asked[-1])["input"]
    for item in items:
        if str(item.get("id", "")).startswith("msg_"):
            del item["id"]  # new in each run
    return items, ""


# ---- comparing -------------------------------------------------------------------------------------------------------


def same_text(before, after):
    """Whether a text is another one, cut at a marker or by Codex itself: what is left stands at its ends."""
    if before == after:
        return True
    if not MARKER.search(after) and not CODEX_CUT.search(after):
        return False
    ends = []
    for text in (before, after):
        text = CODEX_HEAD.sub("", text)
        cuts = [cut.span() for pattern in (MARKER, CODEX_CUT) for cut in pattern.finditer(text)]
        head = text[: min(start for start, _ in cuts)] if cuts else text
        tail = text[max(end for _, end in cuts) :] if cuts else text
        ends.append((head, tail))
    (head, tail), (cut_head, cut_tail) = ends
    heads = head.startswith(cut_head) or cut_head.startswith(head)
    return heads and (tail.endswith(cut_tail) or cut_tail.endswith(tail))


def same(before, after):
    if isinstance(before, str) and isinstance(after, str):
        return same_text(before, after)
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(same(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(same, before, after))
    return before == after


def name(item):
    return f"{item.get('type')} {item.get('role') or item.get('call_id') or ''}".strip()


def compare(before, after, findings):
    """What is different must be a result that a finding speaks of, or stand on a line that was unreadable."""
    more = any(READS_MORE.match(code) for code, _ in findings)
    doubled = {call for code, call in findings if code == "P5"}
    keys = [[json.dumps((item.get("type"), item.get("call_id"), item.get("role"))) for item in items] for items in (before, after)]
    cuts = 0
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if kind == "equal":
            for old, new in zip(before[a:b], after[c:d]):
                # For the output on a line that it cannot read, Codex puts this.
                found_again = more and old.get("output") == "aborted"
                if not same(old, new) and old.get("call_id") not in doubled and not found_again:
                    fail(f"{name(old)} is not the same: {json.dumps(old)[:300]} / {json.dumps(new)[:300]}")
                cuts += old != new
            continue
        for item in before[a:b]:
            if item.get("call_id") not in doubled or "call_id" not in item:
                fail(f"{name(item)} is gone")
        for item in after[c:d]:
            if not more:
                fail(f"{name(item)} is new")
    if not more and not doubled and len(before) != len(after):
        fail(f"{len(before)} items before, {len(after)} after")
    return f"same {len(after)} items, {cuts} of them cut"


def main(codex, before, after, findings):
    found = []
    for line in Path(findings).read_text().splitlines():
        report = json.loads(line)
        if report.get("type") == "file":
            found += [(each["code"], each.get("call")) for each in report["findings"]]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as root:
        old, why = resume(codex, server.server_port, Path(before), Path(root))
        new, why_not = resume(codex, server.server_port, Path(after), Path(root))
    if new is None and old is not None:
        fail(f"Codex cannot resume it any more: {why_not}")
    if old is None:
        raise Stop(77, f"skipped: Codex cannot resume the original: {why}")
    return compare(old, new, found)


if __name__ == "__main__":
    try:
        print(main(*sys.argv[1:5]))
    except Stop as stop:
        print(stop)
        sys.exit(stop.code)
