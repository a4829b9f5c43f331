# Resumes Codex's rollouts with Codex itself, and does nothing else.
#
#   unshare -rn python3 read_codex.py CODEX < PATHS
#
# Of each path, one a line, it writes to PATH.read the items that `codex exec resume` would send to the model, as JSON:
# {"messages": [{"id": null, "message": item}]}; or {"problem"}, if Codex cannot resume the file. What it asks is a stub of the
# Responses API on loopback, in a network namespace that has nothing else.

import concurrent.futures
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

THREAD = "0198c0de-0000-7000-8000-000000000001"
AT_ONCE = 2  # a resume mostly waits
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


# ---- the stub --------------------------------------------------------------------------------------------------------


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
        self.server.asked.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
        events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in PONG)
        self.answer("text/event-stream", events.encode())


# ---- one resume ------------------------------------------------------------------------------------------------------


def resume(codex, server, rollout, root):
    """The items that Codex would send; or what it said, if it cannot resume the file."""
    port, asked = server.server_port, server.asked
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
        timeout=300,
        check=False,
    )
    if run.returncode != 0 or not asked:
        said = [line for line in run.stderr.splitlines() if "rror" in line]
        return {"problem": (said or ["it said nothing"])[-1].replace(str(root), "")}
    # Codex tells the model where its skills are.
    items = json.loads(asked[-1].replace(str(root).encode(), b"/root"))["input"]
    for item in items:
        if str(item.get("id", "")).startswith("msg_"):
            del item["id"]  # new in each run
    return {"messages": [{"id": None, "message": item} for item in items]}


def read_some(codex, paths):
    """Resumes these, one after the other, with a server of their own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="read-codex-") as root:
        for path in paths:
            Path(f"{path}.read").write_text(json.dumps(resume(codex, server, Path(path), Path(root))))


def main(codex):
    paths = sys.stdin.read().splitlines()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda n: read_some(codex, paths[n::AT_ONCE]), range(AT_ONCE)))


if __name__ == "__main__":
    main(sys.argv[1])
