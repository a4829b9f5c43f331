"""The module says and does what the program does, row by row."""

import json

import pyarrow as pa
import pytest
import session_tailor
from conftest import CHAT, DATASETS, FIXTURES, MESSAGE, conversations, corpus, drop_null, findings, found, line_of, of_finding

NESTED_FORMATS = {"openai-dataset": "messages", "anthropic-dataset": "messages", "sharegpt": "conversations", "gemini-dataset": "contents"}


def by_row(table):
    rows = {}
    for finding in table.to_pylist():
        rows.setdefault(finding["row"], []).append(finding)
    return rows


def compare(tailor, paths):
    texts = [path.read_bytes() for path in paths]
    column = pa.array(texts, pa.large_binary())
    checked = by_row(session_tailor.check(column, threads=2))
    mended = session_tailor.mend(column, threads=2).to_pylist()
    assert len(mended) == len(texts)
    changed = 0
    for row, (path, text) in enumerate(zip(paths, texts)):
        report, _ = tailor("scan", text)
        own = checked.get(row, [])
        if report["outcome"] == "unsupported" and report.get("lines") is not None and not report["findings"]:
            # A format that is only read is looked at all the same.
            assert all(finding["code"] is None for finding in own), path
        else:
            assert [of_finding(finding) for finding in own] == findings(report), path
        report, out = tailor("fix", text)
        assert mended[row]["session"] == out, (path, mended[row]["tailor_outcome"], report["outcome"])
        if report["outcome"] in ("clean", "fixed", "findings", "refused"):
            same = {"would-fix": "fixed"}.get(report["outcome"], report["outcome"])
            assert mended[row]["tailor_outcome"] == same, path
        changed += out != text
    return changed


def test_fixtures(tailor):
    paths = [path for path in FIXTURES if not (path.parent / "policy.args").exists()]
    assert len(paths) > 300
    assert compare(tailor, paths) > 100


def test_real_sessions(tailor):
    paths = [path for path in corpus() if path.stat().st_size < 2_000_000]
    if not paths:
        pytest.skip("TAILOR_CORPUS is not set")
    compare(tailor, paths)


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_lines_of_data_sets(tailor, path):
    """Each line alone, in the format of its file, gives what a scan of the file says about that line."""
    if (path.parent / "policy.args").exists():
        pytest.skip("has a policy of its own")
    text = path.read_bytes()
    report, _ = tailor("scan", text)
    lines = text.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    own = session_tailor.check(pa.array(lines, pa.binary()), format=report["format"]).to_pylist()
    blank = {row for row, line in enumerate(lines) if not line}
    own = [(finding["row"] + finding["line"], *of_finding(finding)[1:]) for finding in own if finding["row"] not in blank]
    assert own == findings(report)


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_nested(tailor, path):
    """Rows of a Parquet data set say what their lines say, and come back in their type."""
    format_name = path.parts[-3]
    column = NESTED_FORMATS[format_name]
    rows = []
    for line in path.read_bytes().split(b"\n"):
        try:
            row = json.loads(line)
            rows.append({column: row[column]})
        except (ValueError, KeyError, TypeError):
            continue
    try:
        batch = pa.RecordBatch.from_pylist(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        pytest.skip("rows that have no common type")
    if batch.num_rows == 0:
        pytest.skip("no whole conversation in the fields of a data set")
    mended = session_tailor.mend(batch, format=format_name).to_pyarrow()
    assert mended.schema.field(column).type == batch.schema.field(column).type
    without_null = [line_of(drop_null(row))[:-1] for row in batch.to_pylist()]
    own = session_tailor.check(batch, format=format_name).to_pylist()
    of_lines = session_tailor.check(pa.array(without_null), format=format_name).to_pylist()
    without_column = [[{**finding, "column": None} for finding in found] for found in (own, of_lines)]
    assert without_column[0] == without_column[1]
    for before, after in zip(batch.to_pylist(), mended.to_pylist()):
        if after["tailor_outcome"] != "fixed":
            assert after[column] == before[column]
        else:
            assert after[column] != before[column]


def test_nested_rows_against_the_program(tailor):
    """A nested row says what `tailor scan` says of the line that it was, and is mended to what `tailor fix` makes of it."""
    rows = conversations()
    table = pa.table({"messages": pa.array(rows, pa.list_(MESSAGE))})
    checked = by_row(session_tailor.check(table, threads=2))
    mended = session_tailor.mend(table, threads=2).to_pylist()
    codes = set()
    for n, row in enumerate(rows):
        line = line_of({"messages": row})
        report, out = tailor("scan", line)[0], tailor("fix", line)[1]
        assert report["format"] == "openai-dataset"
        assert [of_finding(finding) for finding in checked.get(n, [])] == findings(report), row
        assert {"messages": drop_null(mended[n]["messages"])} == json.loads(out), mended[n]
        codes |= {finding["code"] for finding in report["findings"]}
    assert len(codes) > 4, codes


def test_messages_and_bytes(tailor):
    text = b"".join(json.dumps(message).encode() + b"\n" for message in CHAT)
    report, out = tailor("fix", text, "--allow", "P2")
    assert found(session_tailor.check(CHAT, allow=["P2"])) == findings(report)
    assert found(session_tailor.check(text, allow=["P2"])) == findings(report)
    messages, outcome, reason = session_tailor.mend(CHAT, allow=["P2"])
    assert (outcome, reason) == ("fixed", None)
    assert messages == [json.loads(line) for line in out.splitlines()] == CHAT[:3]
    assert session_tailor.mend(text, allow=["p2"]) == (out, "fixed", None)
    assert session_tailor.mend(text.decode(), allow=["P2"])[0] == out


def test_a_list_of_conversations_is_rows():
    """As a column of them is, not one session; and so is a list of rows."""
    rows = conversations()[:10]
    column = [{**finding, "column": None} for finding in session_tailor.check(pa.table({"messages": pa.array(rows, pa.list_(MESSAGE))})).to_pylist()]
    for given in (rows, [{"messages": row} for row in rows]):
        found = session_tailor.check(given).to_pylist()
        assert [{**finding, "column": None} for finding in found] == column
        assert {finding["row"] for finding in found} > {1, 2} and all(finding["column"] for finding in found)
    mended = session_tailor.mend([[CHAT[0], CHAT[1], CHAT[2]], [CHAT[0]]]).to_pylist()
    assert [row["tailor_outcome"] for row in mended] == ["clean", "findings"], mended
    assert json.loads(mended[1]["row"]) == {"messages": [CHAT[0]]}
    assert len(session_tailor.weigh(rows)) == 10


def test_messages_name_the_place_in_a_row():
    twice = [CHAT[0], {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]
    (finding,) = session_tailor.check([twice]).to_pylist()
    assert (finding["row"], finding["column"], finding["code"]) == (0, "messages[2]", "D3")
    table = pa.table({"messages": pa.array([twice, [CHAT[0]]], pa.list_(MESSAGE))})
    assert [finding["column"] for finding in session_tailor.check(table).to_pylist()] == ["messages[2]", "messages"]
    reasons = session_tailor.mend(table).to_pyarrow()["tailor_reason"].to_pylist()
    assert reasons == ["D3 messages[2]: two assistant messages in a row", "D4: no assistant message in this row"]


def test_a_trainer_says_of_rows_what_the_program_says(tailor):
    rows = [{"messages": row, "source": None} for row in conversations()[:10]] + [{"messages": None, "source": "web"}]
    table = pa.Table.from_pylist(rows, pa.schema([("source", pa.string()), ("messages", pa.list_(MESSAGE))]))
    for trainer in ("openai-finetune", "together", "llamafactory", "swift"):
        report, _ = tailor("scan", b"".join(line_of(drop_null(row)) for row in rows), "--for", trainer)
        told = {(row - 1, own["place"], own["about"], own["what"]) for own in report["row_objections"] for row in own["rows"]}
        for given in (table, table.to_reader(3), pa.array([line_of(drop_null(row)) for row in rows]), [drop_null(row) for row in rows]):
            found = session_tailor.check(given, trainer=trainer).to_pylist()
            assert {(one["row"], one["column"], one["code"], one["message"]) for one in found} == told, trainer
    with pytest.raises(ValueError, match="no such trainer"):
        session_tailor.check(table, trainer="nobody")
    with pytest.raises(TypeError, match="an option of check"):
        session_tailor.mend(table, trainer="trl")


def test_a_data_set_of_hugging_face_is_its_rows():
    class DataSet:
        """What is asked of one: test_engines.py has a real one."""

        _indices = None

        def with_format(self, kind):
            assert kind == "arrow"
            return self

        def __getitem__(self, rows):
            assert rows == slice(None)
            return pa.table({"messages": pa.array([[CHAT[0]]], pa.list_(MESSAGE))})

    assert [finding["code"] for finding in session_tailor.check(DataSet()).to_pylist()] == ["D4"]
    with pytest.raises(TypeError, match="pass one split"):
        session_tailor.check(object())
