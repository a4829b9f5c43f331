"""The examples of the functions, run as they stand, and what is written against the program; docstrings and types."""

import csv
import doctest
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import session_tailor
from conftest import FIXTURES, conversations, env, findings, line_of, of_finding

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))


def program(*words, text=b""):
    """What the program prints."""
    return subprocess.run([os.environ["TAILOR_PROGRAM"], *map(str, words)], input=text, capture_output=True, env=env(), check=False).stdout


@pytest.fixture
def sessions(tmp_path):
    """Files of some formats in a folder, and what they hold."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    paths = [path for path in FIXTURES if path.parts[-3] in ("pi", "claude-code", "openai-chat")]
    for n, path in enumerate([path for path in paths if not (path.parent / "policy.args").exists()][::9]):
        (folder / f"{n:03}.jsonl").write_bytes(path.read_bytes())
    return sorted(folder.iterdir())


def test_check(tailor, sessions, tmp_path, capsys):
    texts = [path.read_bytes().decode(errors="replace") for path in sessions]
    pq.write_table(pa.table({"session": texts}), tmp_path / "in.parquet", row_group_size=7)
    importlib.import_module("check").main(str(tmp_path / "in.parquet"), str(tmp_path / "out"))
    said = {}
    for finding in pq.read_table(tmp_path / "out.parquet").to_pylist():
        said.setdefault(finding["row"], []).append(of_finding(finding))
    for row, text in enumerate(texts):
        assert said.get(row, []) == findings(tailor("scan", text.encode())[0])
    assert capsys.readouterr().out.startswith(f"{len(texts)} rows, {len(said)} of them with problems")


def test_mend(tmp_path, capsys):
    lines = [line_of({"messages": row}) for row in conversations()]
    lines[3:3] = [b"not JSON\n", lines[0][:50] + b"\n"]
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    importlib.import_module("mend").main(str(tmp_path / "in.jsonl"), str(tmp_path / "out"))
    quarantine = tmp_path / "bad.jsonl"
    passed = program("fix", "--lines", "--fail-on", "note", "--quarantine", quarantine, "-", text=b"".join(lines))
    # A repaired line in which a problem remains is kept here, and set aside there.
    kept = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert set(passed.splitlines()) <= set(kept) and passed
    dropped = [json.loads(line) for line in (tmp_path / "out.dropped.jsonl").read_text().splitlines()]
    assert len(kept) + len(dropped) == len(lines)
    bad = set(quarantine.read_bytes().splitlines(True))
    assert all(lines[row["line"] - 1] in bad and row["reason"] for row in dropped)
    assert {4, 5} <= {row["line"] for row in dropped if row["outcome"] == "unreadable"}
    assert capsys.readouterr().out == "fixed None [{'role': 'user', 'content': 'list'}, {'role': 'assistant', 'content': 'ok'}]\n"


def test_weigh(sessions, tmp_path):
    importlib.import_module("weigh").main(str(sessions[0].parent), str(tmp_path / "out"))
    own = {row["path"]: row for row in csv.DictReader((tmp_path / "out.csv").open())}
    assert set(own) == set(map(str, sessions))
    told = [json.loads(line) for line in program("top", "--json", *sessions).splitlines()]
    told = {str(Path(row["path"]).resolve()): row for row in told if row["type"] == "top-file"}
    compared = 0
    for path in sessions:
        row, said = own[str(path)], told.get(str(path.resolve()))
        if said is None or said["outcome"] != "weighed":
            continue
        compared += 1
        assert (row["format"], int(row["bytes"]), int(row["context_tokens"])) == (said["format"], said["bytes"], said["context"]["tokens"])
        for part in said["parts"]:
            assert int(row[f"{part['name'].replace('-', '_')}_bytes"]) == part["bytes"], (path, part)
    assert compared > 10


def test_chunk(sessions, tmp_path):
    importlib.import_module("chunk").main(str(sessions[0].parent), str(tmp_path / "out"))
    own = {}
    for line in (tmp_path / "out.jsonl").read_text().splitlines():
        own.setdefault(json.loads(line)["path"], []).append(json.loads(line))
    for path in sessions:
        told = [json.loads(line) for line in program("chunk", "--json", "--max-tokens", "8000", path).splitlines()]
        told = [(chunk["chunk"], chunk["messages"][0]["line"], chunk["tokens"]) for chunk in told if chunk["type"] == "chunk"]
        assert [(chunk["chunk"], chunk["line"], chunk["tokens"]) for chunk in own[str(path)] if "error" not in chunk] == told


ERRORS = [
    "prompt is too long: 201234 tokens > 200000 maximum",
    "prompt is too long: 250000 tokens > 200000 maximum",
    "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_A",
    "exit code 137",
]


def test_explain(tmp_path, capsys):
    (tmp_path / "errors.txt").write_text("\n".join(ERRORS) + "\n")
    importlib.import_module("explain").main(str(tmp_path / "errors.txt"), str(tmp_path / "out"))
    own = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(kind["row_count"] for kind in own) == [1, 1, 2]
    for error in ERRORS[:3]:
        said = program("explain", error).decode()
        assert any(kind["what"] and " ".join(kind["what"].split())[:40] in " ".join(said.split()) for kind in own), said
    assert "1 × errors of other kinds" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in session_tailor.__all__ if callable(getattr(session_tailor, name)) and name != "Table"])
def test_docstrings(name):
    """What the documentation shows is what happens."""
    test = doctest.DocTestParser().get_doctest(getattr(session_tailor, name).__doc__, {}, name, None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_docstring_of_the_module():
    assert doctest.testmod(session_tailor).failed == 0
    assert doctest.testmod(session_tailor).attempted > 0


def test_all_columns_of_weigh_are_documented():
    (weight,) = session_tailor.weigh([{"role": "user", "content": "hi"}]).to_pylist()
    words = session_tailor.weigh.__doc__.replace(",", " ").replace(":", " ").replace(";", " ").split()
    assert set(weight) <= set(words), set(weight) - set(words)


def mypy(*words):
    pytest.importorskip("mypy")
    root = Path(session_tailor.__file__).parents[1]
    done = subprocess.run([sys.executable, "-m", *words], cwd=EXAMPLES, capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(root)}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_examples_fit_the_stubs(tmp_path):
    mypy("mypy", "--config-file", "../pyproject.toml", "--cache-dir", str(tmp_path), *sorted(path.name for path in EXAMPLES.glob("*.py")))


def test_the_stubs_are_what_there_is():
    mypy("mypy.stubtest", "--mypy-config-file", "../pyproject.toml", "--ignore-missing-stub", "session_tailor")
