"""Holds what every command prints with --json against the schema that ships, and the schema against what is printed.

    output.py TAILOR FOLDER_OF_SESSIONS EMPTY_FOLDER [CORPUS]

A field that the schema does not have is an error here, although the schema allows it for what comes later; so is a field
of the schema that no command has printed. The sessions are changed; those of the corpus are only read.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

from jsonschema import Draft202012Validator

tailor, sessions, home, *corpus = map(Path, sys.argv[1:])
home.mkdir(exist_ok=True)
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home)}

# What a test would have to wait ten minutes for, be lucky with, or need a dying database of OpenClaw's for.
UNSEEN = {"log.bytes_kept", "log.late", "status.keep_error", "session.turns_left"}

schema = json.loads(subprocess.run([tailor, "schema"], check=True, capture_output=True).stdout)
Draft202012Validator.check_schema(schema)
definitions = schema["$defs"]


def close(part):
    """Makes a field that is not named an error, all over a part of the schema."""
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, (dict, list)):
            close(inner)
    if isinstance(part, dict) and "properties" in part and isinstance(part.get("type"), str):
        part["additionalProperties"] = False


close(schema)
validators = {
    name: Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})
    for name, part in definitions.items()
    if "properties" in part
}
seen, lines, wrong = set(), Counter(), []


def referred(part):
    return unquote(part["$ref"].rpartition("/")[2])


def note(name, value):
    """Notes which fields of a definition there are."""
    for key, inner in value.items():
        seen.add(f"{name}.{key}")
        part = definitions[name].get("properties", {}).get(key, {})
        part, values = (part["items"], inner) if part.get("type") == "array" else (part, [inner])
        if "$ref" in part and referred(part) in validators:
            for one in values:
                note(referred(part), one)


def types(kind):
    return kind.get("enum") or [kind["const"]]


def check(command, line, arguments):
    lines[command] += 1
    if command.endswith("schema"):
        Draft202012Validator.check_schema(line)
        return
    names = [referred(one) for one in definitions[f"tailor {command}".strip()]["oneOf"]]
    # The log has no type.
    kinds = {name: definitions[name]["properties"].get("type") for name in names}
    names = [name for name, kind in kinds.items() if (line.get("type") in types(kind) if kind else "type" not in line)]
    if len(names) != 1:
        wrong.append(f"{arguments}: a line of type {line.get('type')}")
        return
    errors = list(validators[names[0]].iter_errors(line))
    wrong.extend(f"{arguments}: {error.json_path}: {error.message[:200]}" for error in errors[:3])
    if not errors:
        note(names[0], line)


def parsed(command, words, text):
    """The lines of a text, each held against the schema."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError as error:
            wrong.append(f"{words}: {error}: {line[:100]}")
            continue
        check(command, found[-1], words)
    return found


def run(command, *arguments, at=sessions, stdin="", may_be_silent=False, stream="stdout"):
    words = [*command.split(), "--json", *map(str, arguments)]
    done = subprocess.run([tailor, *words], cwd=at, env=ENVIRONMENT, input=stdin, capture_output=True, text=True)
    if done.returncode not in (0, 1, 2):
        wrong.append(f"{words}: exit code {done.returncode}: {done.stderr[-300:]}")
    printed = getattr(done, stream)
    if not printed and not may_be_silent:
        wrong.append(f"{words}: nothing was printed: {done.stderr[-300:]}")
    return parsed(command, words, printed)


def read_only(paths, at):
    """Everything that changes nothing, over many files."""
    found = run("scan", ".", "--no-cache", at=at)
    run("scan", ".", "--statistics", "--max-file-size", "1k", "--max-result-chars", "100", "--tolerance", "10%", at=at)
    run("fix", ".", "--dry-run", "--settle", "0", at=at)
    run("top", ".", "--show-content", at=at)
    run("doctor", ".", "--titles", at=at)
    run("report", ".", at=at)
    for path in paths:
        run("scan", "--for", "gemini/gemini-3-pro", path, at=at, may_be_silent=True)
        run("scan", "--for", "trl", path, at=at, may_be_silent=True)
        run("chunk", path, "--max-message-chars", 100, at=at, may_be_silent=True)
        run("recover", path, "--dry-run", "--settle", "0", "--level", 2, at=at, may_be_silent=True)
        run("compact", path, "--dry-run", "--settle", "0", at=at, may_be_silent=True)
    return found


def errors_and_rules(path):
    run("explain")
    for what in ("P1", "chatcli", "gibberish that nobody knows"):
        run("explain", what)
    for what in ("P1", "prompt is too long: 234743 tokens > 200000 maximum", "messages.2: `tool_use` ids were found"):
        run("explain", what, path)


class Daemon:
    """A daemon with a socket and a log of its own."""

    def __init__(self, name, *arguments):
        self.socket, self.log = home / f"{name}.socket", home / f"{name}.log"
        words = [tailor, "watch", "--json", "-v", "--socket", self.socket, *arguments]
        self.child = subprocess.Popen(words, cwd=sessions, env=ENVIRONMENT, stderr=self.log.open("w"))

    def __enter__(self):
        self.until("it has its roots", lambda status: status["roots"])
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()
        if not parsed("watch", [f"the log {self.log.name}"], self.log.read_text()):
            wrong.append(f"{self.log.name}: nothing was logged")

    def until(self, what, is_so):
        """Waits until its status is like that."""
        for _ in range(300):
            time.sleep(0.1)
            if self.socket.exists():
                status = run("status", "--socket", self.socket, may_be_silent=True)
                if status and status[0]["type"] == "status" and is_so(status[0]):
                    return
        wrong.append(f"{self.log.name}: in vain: {what}: {self.log.read_text()[-400:]}")


def daemons(path, broken):
    """Daemons that have looked around, repaired, put off, and been told of a wrong configuration."""
    run("status", "--socket", home / "none.socket")
    config, own = home / "watch.toml", home / "watched"
    config.write_text('mode = "enforce"\nsettle = "0.1"\nrecover = true\n')
    own.mkdir()
    in_use, healed = own / "in-use.jsonl", own / "healed.jsonl"
    old(in_use, broken.read_text())
    # An error is repaired however often it comes back; long results are not. A branch that nobody goes on with needs --allow.
    *first, last = long_session(healed).read_text().replace("words " * 900, "words " * 9_000).splitlines(True)
    branch = {"type": "message", "id": "left", "parentId": "a1", "message": {"role": "user", "content": "and this?"}}
    damaged = "".join([*first, f"{json.dumps(branch)}\n", last])
    old(healed, damaged)
    too_long(own / "too-long.jsonl")
    # The second finds that the first has a root already.
    with Daemon("first", path), in_use.open("a"), Daemon("second", "--config", config, own, path) as second:
        second.until("one is put off, and a root is taken", lambda status: status["troubles"] and any("reason" in root for root in status["roots"]))
        second.until("one is shortened", lambda _: '"recovered"' in second.log.read_text())
        repairs = lambda: second.log.read_text().count('"event":"fixed"')
        while '"tripped"' not in second.log.read_text() and repairs() < 9:
            done = repairs()
            old(healed, damaged)
            second.until("it is repaired again", lambda _: repairs() > done)
        config.write_text("settel = 5\n")
        second.child.send_signal(signal.SIGHUP)
        second.until("the configuration is refused", lambda status: "config_error" in status)
    in_use.unlink()


def old(path, text):
    """A file that was written some time ago, so that nobody is at work on it."""
    path.write_text(text)
    os.utime(path, (time.time() - 9_000, time.time() - 9_000))


def too_long(path):
    """A session that was refused as too long, and can be shortened."""
    long_session(path)
    with path.open("a") as file:
        message = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "prompt is too long: 19000 tokens > 15000 maximum"}
        line = {"type": "message", "id": "refused", "parentId": "e8", "timestamp": "2026-07-01T10:00:01.000Z", "message": message}
        file.write(f"{json.dumps(line)}\n")
    old(path, path.read_text())


def signed_session(path):
    """A session in which the model signed its thinking over what comes before it."""
    rows, above = [], None
    for turn in range(9):
        thinking = {"type": "thinking", "thinking": "so", "signature": "U2lnbmVkIGJ5IHRoZSBtb2RlbA=="}
        for name, content in (("user", "words " * 900), ("assistant", [thinking, {"type": "text", "text": "done"}])):
            message = {"role": name, "content": content} | ({"model": "claude-opus-5-5", "type": "message"} if name == "assistant" else {})
            row = {"type": name, "uuid": f"{name}-{turn}", "parentUuid": above, "sessionId": "s", "message": message}
            rows.append(row | {"timestamp": "2026-07-01T10:00:01.000Z", "isSidechain": False, "cwd": "/w", "version": "2.1.0"})
            above = row["uuid"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def many_calls(path):
    """A session with more results in one turn than a chunk has room to name."""
    calls = [{"type": "toolCall", "id": f"c{n}", "name": "bash", "arguments": {}} for n in range(90)]
    results = [{"role": "toolResult", "toolCallId": call["id"], "toolName": "bash", "content": "words " * 90} for call in calls]
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": calls, "stopReason": "toolUse"}, *results]
    rows, above = [{"type": "session", "version": 3, "id": "s", "timestamp": "2026-07-01T10:00:00.000Z", "cwd": "/w"}], None
    for n, message in enumerate(messages):
        rows.append({"type": "message", "id": f"e{n}", "parentId": above, "timestamp": "2026-07-01T10:00:01.000Z", "message": message})
        above = f"e{n}"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def long_session(path):
    """A session of many turns, each with a long result."""
    path.write_text('{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}\n')
    above = None
    with path.open("a") as file:
        for turn in range(9):
            call = {"type": "toolCall", "id": f"c{turn}", "name": "bash", "arguments": {}}
            for name, message in (
                ("u", {"role": "user", "content": "go on"}),
                ("a", {"role": "assistant", "content": [call], "stopReason": "toolUse"}),
                ("r", {"role": "toolResult", "toolCallId": f"c{turn}", "toolName": "bash", "content": "words " * 900}),
                ("e", {"role": "assistant", "content": [{"type": "text", "text": "done"}], "stopReason": "stop"}),
            ):
                line = {"type": "message", "id": f"{name}{turn}", "parentId": above, "message": message}
                line["timestamp"] = "2026-07-01T10:00:01.000Z"
                above = line["id"]
                file.write(f"{json.dumps(line)}\n")
    return path


def changes(broken, long):
    """Everything that changes sessions, and takes it back."""
    agent = home / ".pi/agent/sessions/--w--"
    agent.mkdir(parents=True)
    (agent / "2026-07-01T10-00-00-000Z_0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl").write_text(broken.read_text())
    old(agent / "2026-07-01T09-00-00-000Z_1d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl", "\0" * 100)
    run("doctor", "--titles")
    run("explain", "messages.2: `tool_use` ids were found without `tool_result` blocks")
    run("resume", "pi", "--no-start", "--settle", "0")
    run("scan", "-", stdin=broken.read_text())
    run("scan", "gone.jsonl")
    run("top", "gone.jsonl")
    (home / "known.json").write_text("".join(f"{json.dumps(line)}\n" for line in run("scan", broken)))
    run("scan", broken, "--baseline", home / "known.json")
    (home / "copy.jsonl").write_text("".join(broken.read_text().replace("name", "nome").splitlines(True)[1:]) + '{"id":"new"}\n')
    run("diff", broken, home / "copy.jsonl")
    run("fix", ".", "--settle", "0", "--cut-results", 200)
    run("undo")
    run("undo", ".", "--list")
    text = "".join(path.read_text(errors="replace") for path in sessions.rglob("*.jsonl"))
    ids = sorted(set(re.findall(r"tailor show ([0-9a-f]{8,})", text)))
    # Fixtures have markers whose texts were never kept here.
    ids = [one for one in ids if run("show", one, may_be_silent=True)]
    run("gc", "--dry-run", "--older-than", "0", "--max-size", "0")
    run("undo", ".", "--dry-run", "--settle", "0")
    run("undo", ".", "--to-original", "--settle", "0")
    run("recover", long, "--settle", "0", "--error", "prompt is too long: 234743 tokens > 200000 maximum")
    run("recover", long_session(home / "long.jsonl"), "--settle", "0", "--target-tokens", "5k")
    run("recover", broken, "--settle", "0", "--error", "413 request_too_large", may_be_silent=True)
    run("compact", long, "--settle", "0", "--with", "echo a summary", "--keep", 2)
    run("forget", ids[0])
    secrets(broken)
    run("gc", "--older-than", "1w")
    run("keep now", agent)
    for path in agent.iterdir():
        path.unlink()
    run("keep now", agent)
    run("keep list", "--gone")
    run("keep restore", "0d0f7b2c")
    run("keep check")


def secrets(session):
    """A token in a session, which no text of this file looks like."""
    path = home / "secret.jsonl"
    path.write_text(session.read_text().replace("build it", "ghp" + "_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"))
    line = next(line for line in run("scan", "--only", "secrets", path) if line["type"] == "file")
    run("forget", "--secret", line["findings"][0]["secret"]["secret_hash"])


def seldom():
    """What takes more than a fixture: many findings, a file in use, an interrupted run, sessions that an agent has lost."""
    folder = home / "seldom"
    folder.mkdir()
    open_call = folder / "open.jsonl"
    open_call.write_text(broken.read_text())
    with open_call.open("a"):
        run("fix", open_call)
        run("compact", open_call, "--with", "echo a summary", "--keep", 1)
        run("recover", long_session(folder / "young.jsonl"), "--settle", "1h", "--target-tokens", "5k")
    cut = long_session(folder / "cut-off.jsonl")
    answer = {"role": "assistant", "content": [{"type": "text", "text": "so"}], "stopReason": "length", "usage": {"output": 4096}}
    with cut.open("a") as file:
        line = {"type": "message", "id": "cut", "parentId": "e8", "timestamp": "2026-07-01T10:00:01.000Z", "message": answer}
        file.write(f"{json.dumps(line)}\n")
    run("recover", cut, "--settle", "0", "--output-tokens", "4k", "--max-output-tokens", "64k")
    run("recover", signed_session(folder / "signed.jsonl"), "--settle", "0", "--target-tokens", "2k")
    run("chunk", many_calls(folder / "calls.jsonl"), "--max-tokens", 256, "--max-message-chars", 100)
    (folder / "other.jsonl").write_text("".join(broken.read_text().splitlines(True)[::-1]))
    run("diff", broken, folder / "other.jsonl")
    data_sets(folder)
    lost = home / ".openclaw/agents/main/sessions"
    lost.mkdir(parents=True)
    old(lost / "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e01.jsonl", broken.read_text())
    old(lost / "sessions.json", '{"agent:main:a": {"sessionId": "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e02"}}')
    run("doctor")
    run("")
    run("export", home / ".local/share/opencode/opencode.db", stream="stderr")
    run("report", broken, "-o", home / "page.html")
    for n in range(2_000):
        (folder / f"copy-{n}.jsonl").write_text(broken.read_text())
    child = subprocess.Popen([tailor, "scan", "--json", folder], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    # Its output does not fit into a pipe, so it has not ended by itself.
    first = child.stdout.read(1)
    child.send_signal(signal.SIGINT)
    parsed("scan", ["an interrupted scan"], first + child.stdout.read())
    child.wait()


def data_sets(folder):
    """Sessions that are lines: of all formats that are, one with more findings than are listed, and one that is none."""
    lines = [path.read_text(errors="replace") for path in sorted(sessions.glob("*-dataset/*/in.jsonl"))]
    stray = [{"role": "tool", "tool_call_id": f"c{n}", "content": ""} for n in range(5_000)]
    many = json.dumps({"messages": [{"role": "user", "content": "go"}, *stray]}) + "\n"
    (folder / "many.jsonl").write_text(many)
    run("scan", folder / "many.jsonl")
    text = many + "undefined\n" + "".join(lines)
    limits = ("--cut-results", "10", "--max-result-chars", "10", "--cut-replies", "10", "--cut-turns", "20")
    run("scan", "-", "--lines", *limits, stdin=text)
    whole = [path.read_text(errors="replace") for path in sorted((sessions / "pi").glob("*/in.jsonl"))]
    run("scan", "-", "--lines", "--null", stdin="\0".join(whole))
    store = home / ".local/share/opencode/opencode.db"
    database(store)
    run("prune", store, "--dry-run")
    run("prune", store, "--vacuum")
    run("prune", folder / "none.db")


def database(path):
    """Sessions in a database of OpenCode; not looked into by a build without the feature."""
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.executescript("""
            CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL,
              version text NOT NULL, time_updated integer NOT NULL);
            CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
              time_updated integer NOT NULL, data text NOT NULL);
            CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
              time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
            CREATE TABLE migration (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
            INSERT INTO migration VALUES ('20260622202450_simplify_session_input', 1);
            INSERT INTO session VALUES ('ses_1', NULL, '/w', 'List files', '1.18.33', 1795578400000);
            INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 1, '{"role":"user","agent":"build"}');
            INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 1, '{"type":"text","text":"list files"}');
            CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL,
              data text NOT NULL);
            INSERT INTO event VALUES ('evt_1', 'ses_1', 1, 'message.updated.1', '{"info":{"id":"msg_1"}}'),
              ('evt_2', 'ses_1', 2, 'message.updated.1', '{"info":{"id":"msg_1"}}');
        """)
    connection.close()


def configuration():
    (home / "right.toml").write_text("settle = 5\n")
    (home / "wrong.toml").write_text("settel = 5\nroots = [ \n")
    run("config check", "--config", home / "right.toml")
    run("config check", "--config", home / "wrong.toml")
    run("config print", "--config", home / "right.toml")
    run("config init", home / "initial.toml")
    run("config init", "-")
    run("config schema")
    run("schema")
    for shell in ("bash", "elvish", "fish", "powershell", "zsh"):
        run("completions", shell)


printed = subprocess.run([tailor, "help"], check=True, capture_output=True, text=True).stdout
commands = set(re.findall(r"^  (\S+)", printed.partition("Commands:\n")[2].partition("\n\n")[0], re.M))
broken, long = sessions / "pi/p1-lost-result/in.jsonl", sessions / "pi/ok-reused-ids-pair-by-turn/in.jsonl"
every = sorted(path.relative_to(sessions) for path in sessions.rglob("in.jsonl"))
read_only(every[::7], sessions)
errors_and_rules(broken)
configuration()
seldom()
daemons(sessions / "pi", broken)
changes(broken, long)
of_fixtures = sum(lines.values())
for folder in corpus:
    read_only([path for path in sorted(folder.rglob("*.jsonl")) if path.stat().st_size < 200_000][::5], folder)

for command in sorted(commands - {"config", "help"} - set(lines)):
    wrong.append(f"{command}: no line of it was looked at")
fields = {f"{name}.{key}" for name in validators for key in definitions[name]["properties"]}
wrong.extend(f"{field}: in the schema, and never printed" for field in sorted(fields - seen - UNSEEN))
for error in list(dict.fromkeys(wrong))[:50]:
    print(error, file=sys.stderr)
print(f"{of_fixtures} lines of --json, {sum(lines.values()) - of_fixtures} over real transcripts: {len(wrong)} errors")
sys.exit(bool(wrong))
