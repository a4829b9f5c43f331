"""Holds what every command prints with --json against the schema that ships, and the schema against what is printed.

    output.py TAILOR FOLDER_OF_SESSIONS EMPTY_FOLDER [CORPUS]

A field that the schema does not have is an error here, although the schema allows it for what comes later; so is a field
of the schema that no command has printed. The sessions are changed; those of the corpus are only read.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from jsonschema import Draft202012Validator

tailor, sessions, home, *corpus = map(Path, sys.argv[1:])
home.mkdir(exist_ok=True)
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home)}

# Commands that print no JSON: a page, scripts for a shell, a schema, and a daemon, whose log is no result.
WITHOUT = {"report", "export", "completions", "schema", "watch", "help"}
# Fields that need what a test cannot have at will, such as a disk without room or a store that lost a session.
UNSEEN = {
    "stray.type", "stray.agent", "stray.id", "stray.path", "stray.lacks", "stray.remedy",
    "file.more", "finding.more", "summary.not_looked_at", "root.reason", "status.config_error",
    "trouble.path", "trouble.outcome", "trouble.reason", "trouble.looked_seconds_ago", "file.retry_seconds",
    "recovery.retry_seconds", "compaction.retry_seconds", "compaction.reason", "file.uncovered",
    "recovery.thinking_removed", "advice.max_tokens", "advice.retry_seconds", "message.stands_for", "tool_share.image_tokens",
}

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
    return part["$ref"].rpartition("/")[2]


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
    names = [referred(one) for one in definitions[f"tailor {command}"]["oneOf"]]
    names = [name for name in names if line.get("type") in types(definitions[name]["properties"]["type"])]
    if len(names) != 1:
        wrong.append(f"{arguments}: a line of type {line.get('type')}")
        return
    errors = list(validators[names[0]].iter_errors(line))
    wrong.extend(f"{arguments}: {error.json_path}: {error.message[:200]}" for error in errors[:3])
    if not errors:
        note(names[0], line)


def run(command, *arguments, at=sessions, stdin="", may_be_silent=False):
    words = [*command.split(), "--json", *map(str, arguments)]
    done = subprocess.run([tailor, *words], cwd=at, env=ENVIRONMENT, input=stdin, capture_output=True, text=True)
    if done.returncode not in (0, 1, 2):
        wrong.append(f"{words}: exit code {done.returncode}: {done.stderr[-300:]}")
    if not done.stdout and not may_be_silent:
        wrong.append(f"{words}: nothing was printed: {done.stderr[-300:]}")
    found = []
    for line in done.stdout.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError as error:
            wrong.append(f"{words}: {error}: {line[:100]}")
            continue
        check(command, found[-1], words)
    return found


def read_only(paths, at):
    """Everything that changes nothing, over many files."""
    found = run("scan", ".", "--no-cache", at=at)
    run("scan", ".", "--statistics", "--max-file-size", "1k", "--max-result-chars", "100", "--tolerance", "10%", at=at)
    run("fix", ".", "--dry-run", "--settle", "0", at=at)
    run("top", ".", "--show-content", at=at)
    run("doctor", ".", "--titles", at=at)
    for path in paths:
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


def daemon(path):
    """The state of a daemon that has looked around."""
    socket = home / "socket"
    watch = [tailor, "watch", path, "--socket", socket, "--quiet"]
    child = subprocess.Popen(watch, cwd=sessions, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            time.sleep(0.1)
            if socket.exists() and run("status", "--socket", socket, may_be_silent=True):
                break
        run("status", "--socket", socket)
    finally:
        child.terminate()
        child.wait()


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
    run("gc", "--older-than", "1w")


def configuration():
    (home / "right.toml").write_text("settle = 5\n")
    (home / "wrong.toml").write_text("settel = 5\nroots = [ \n")
    run("config check", "--config", home / "right.toml")
    run("config check", "--config", home / "wrong.toml")
    run("config print", "--config", home / "right.toml")


printed = subprocess.run([tailor, "help"], check=True, capture_output=True, text=True).stdout
commands = set(re.findall(r"^  (\S+)", printed.partition("Commands:\n")[2].partition("\n\n")[0], re.M))
broken, long = sessions / "pi/p1-lost-result/in.jsonl", sessions / "pi/ok-reused-ids-pair-by-turn/in.jsonl"
every = sorted(path.relative_to(sessions) for path in sessions.rglob("in.jsonl"))
read_only(every[::7], sessions)
errors_and_rules(broken)
configuration()
daemon(sessions / "pi")
changes(broken, long)
of_fixtures = sum(lines.values())
for folder in corpus:
    read_only([path for path in sorted(folder.rglob("*.jsonl")) if path.stat().st_size < 200_000][::5], folder)

for command in sorted(commands - WITHOUT - {"config"} - set(lines)):
    wrong.append(f"{command}: no line of it was looked at")
fields = {f"{name}.{key}" for name in validators for key in definitions[name]["properties"]}
wrong.extend(f"{field}: in the schema, and never printed" for field in sorted(fields - seen - UNSEEN))
for error in wrong[:50]:
    print(error, file=sys.stderr)
print(f"{of_fixtures} lines of --json, {sum(lines.values()) - of_fixtures} over real transcripts: {len(wrong)} errors")
sys.exit(bool(wrong))
