"""What the tests share: the program, fixtures as rows, and what `tailor scan` says of them."""

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa
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
    """Runs the program on one row as standard input: what it printed, and the text that it gave back. A row is no file that
    grows: it is given with the line break that may be missing at its end, and comes back without it."""
    program = os.environ.get("TAILOR_PROGRAM")
    if not program:
        pytest.skip("TAILOR_PROGRAM names no program")

    def run(command, text, *options):
        words = [program, command, "-", "--format", "json", "--exit-zero", "--if-any", *options]
        added = bool(text) and not text.endswith(b"\n")
        done = subprocess.run(words, input=text + b"\n" * added, capture_output=True, env=env(), check=False)
        assert done.returncode in (0, 1), done.stderr
        said = done.stdout if command == "scan" else done.stderr
        report = json.loads(said.splitlines()[0])
        return report, done.stdout.removesuffix(b"\n") if added else done.stdout

    return run


FINDING = ("line", "code", "severity", "message", "fix", "saves_bytes")


def findings(report):
    """All that a report says, in its order; what it leaves out is null, or no more."""
    return [(*(finding.get(key) for key in FINDING), finding.get("more", 0)) for finding in report["findings"]]


def of_finding(finding):
    """The same of a row of the module's table."""
    return tuple(finding[key] for key in (*FINDING, "more"))


def found(table):
    return [of_finding(finding) for finding in table.to_pylist()]


def drop_null(value):
    """As the module reads nested rows."""
    if isinstance(value, dict):
        return {key: drop_null(inner) for key, inner in value.items() if inner is not None}
    return [drop_null(inner) for inner in value] if isinstance(value, list) else value


def line_of(row):
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def conversations():
    """Conversations as a Parquet data set holds them: some sound, and some of each kind of broken ones."""
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}
    torn = json.loads(json.dumps(call))
    torn["tool_calls"][0]["function"]["arguments"] = '{"path": '
    user, result, last = CHAT[0], CHAT[2], {"role": "assistant", "content": "naïve \"quoted\"\n\t\u0001 \U0001f600"}
    kinds = [
        [user, call, result, last],
        [user, torn, result, last],
        [user, call, result, CHAT[3], last],
        [user, call],
        [user, call, last],
        [user, {**call, "tool_calls": call["tool_calls"] * 2}, result, last],
        [user],
        [last, user],
        [user, last, {"role": "user", "content": "x" * 120_000}, last],
        [user, call, {**result, "content": "é" * 120_000}, last],
    ]
    return [[*kind[:-1], {**kind[-1], "content": f"{kind[-1]['content']} {n}"}] for n in range(6) for kind in kinds]


MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("tool_calls", pa.list_(pa.struct([("id", pa.string()), ("type", pa.string()), ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))]))),
        ("tool_call_id", pa.string()),
    ]
)
