"""What the tests share: the program, fixtures as rows, and what `tailor scan` says of them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = sorted((ROOT / "fixtures").glob("*/*/in.jsonl"))
DATASETS = [path for path in FIXTURES if path.parts[-3] in ("openai-dataset", "anthropic-dataset", "sharegpt", "gemini-dataset")]

CHAT = [
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "a.txt"},
    {"role": "tool", "tool_call_id": "x", "content": "whose?"},
]


def corpus():
    folder = os.environ.get("TAILOR_CORPUS")
    return sorted(Path(folder).rglob("*.jsonl")) if folder else []


def env():
    """Without the settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAILOR_")}
    return kept | {"XDG_CONFIG_HOME": "/nowhere", "XDG_STATE_HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere"}


@pytest.fixture(scope="session")
def tailor():
    """Runs the program on one text as standard input: what it printed, and the text that it gave back."""
    program = os.environ.get("TAILOR_PROGRAM")
    if not program:
        pytest.skip("TAILOR_PROGRAM names no program")

    def run(command, text, *options):
        words = [program, command, "-", "--format", "json", "--exit-zero", "--if-any", *options]
        done = subprocess.run(words, input=text, capture_output=True, env=env(), check=False)
        assert done.returncode in (0, 1), done.stderr
        said = done.stdout if command == "scan" else done.stderr
        report = json.loads(said.splitlines()[0])
        return report, done.stdout

    return run


def findings(report):
    keys = ("line", "code", "severity", "message", "fix", "saves_bytes")
    return [tuple(finding.get(key) for key in keys) for finding in report["findings"]]


def found(table, row=None):
    keys = ("line", "code", "severity", "message", "fix", "saves_bytes")
    rows = table.to_pylist()
    return [tuple(one[key] for key in keys) for one in rows if row is None or one["row"] == row]
