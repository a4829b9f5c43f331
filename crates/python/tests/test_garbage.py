"""Whatever stands in a row, it ends no other row, and every row comes back."""

import json

import pyarrow as pa
import pytest
import session_tailor
from conftest import CHAT
from hypothesis import given, settings
from hypothesis import strategies as st

GOOD = b"".join(json.dumps(message).encode() + b"\n" for message in CHAT[:3])
BAD = b"".join(json.dumps(message).encode() + b"\n" for message in CHAT)
LINE = json.dumps({"messages": CHAT[:3]}).encode()
GARBAGE = [None, b"", b"\x00" * 99, b"\xff\xfe\xff", b"not JSON", b"[1, 2]", b"{}", b"12", b"null", b"{" * 100_000, b"\n" * 1000]
COLUMNS = [
    pa.array([GOOD, BAD], pa.binary()),
    pa.array([GOOD, BAD], pa.large_binary()),
    pa.array([GOOD.decode(), BAD.decode()], pa.string()),
    pa.array([GOOD.decode(), BAD.decode()], pa.large_string()),
    pa.array([GOOD.decode(), BAD.decode()], pa.string_view()),
    pa.array([GOOD, BAD], pa.binary_view()),
    pa.array([GOOD.decode(), BAD.decode()]).dictionary_encode(),
    pa.array(["x", GOOD.decode(), BAD.decode(), "y"]).slice(1, 2),
]
CODES = {"allow": ["P2"]}


def outcomes(table):
    return table.to_pyarrow()["tailor_outcome"].to_pylist()


def test_garbage_beside_good_rows():
    rows = [GOOD, *GARBAGE, BAD, GOOD]
    table = pa.table({"id": range(len(rows)), "session": pa.array(rows, pa.binary())})
    mended = session_tailor.mend(table, **CODES).to_pyarrow()
    assert mended["id"].to_pylist() == list(range(len(rows)))
    assert mended["session"].to_pylist() == [GOOD, *GARBAGE, GOOD, GOOD]
    said = mended["tailor_outcome"].to_pylist()
    assert (said[0], said[-2], said[-1]) == ("clean", "fixed", "clean")
    assert all(outcome == "unreadable" for outcome in said[1:-2])
    assert all(mended["tailor_reason"].to_pylist()[1:-2])
    findings = session_tailor.check(table).to_pylist()
    quarantined = {finding["row"] for finding in findings if finding["code"] is None}
    assert quarantined == set(range(1, len(GARBAGE) + 1))
    assert all(finding["message"] for finding in findings)
    for task in (session_tailor.weigh, session_tailor.chunk):
        told = task(table).to_pylist()
        assert {row["row"] for row in told} == set(range(len(rows)))
        assert all(row["error"] for row in told if row["row"] in quarantined)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_every_type_of_text(column):
    mended = session_tailor.mend(column, **CODES).to_pyarrow()
    assert mended.schema.field("session").type == column.type
    mended.validate(full=True)
    texts = [text.encode() if isinstance(text, str) else text for text in mended["session"].to_pylist()]
    assert texts == [GOOD, GOOD]
    assert {finding["row"] for finding in session_tailor.check(column).to_pylist()} == {1}


def test_nulls_of_a_type():
    table = session_tailor.check(pa.nulls(3)).to_pylist()
    assert [finding["message"] for finding in table] == ["the row is null"] * 3


def test_text_in_a_string_column_that_is_not_utf8():
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([BAD.replace(b"whose", b"who\xffe")], pa.binary()).buffers())
    (text,) = session_tailor.mend(broken, **CODES).to_pyarrow()["session"].cast(pa.binary()).to_pylist()
    assert text == GOOD
    left = pa.Array.from_buffers(pa.string(), 1, pa.array([BAD.replace(b"a.txt", b"a\xfftxt")], pa.binary()).buffers())
    mended = session_tailor.mend(left, **CODES).to_pyarrow()
    assert mended["tailor_outcome"].to_pylist()[0] in ("fixed", "refused")


NESTED = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
MESSAGES = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


@pytest.mark.parametrize("kind", [NESTED, pa.large_list(NESTED.value_type), pa.list_view(NESTED.value_type), pa.large_list_view(NESTED.value_type), pa.list_(NESTED.value_type, 2)], ids=str)
def test_lists_of_every_kind(kind):
    empty = [*MESSAGES, {"role": "user", "content": ""}, {"role": "assistant", "content": ""}][-2:]
    column = pa.array([MESSAGES, None, empty, MESSAGES], kind)
    whole = pa.record_batch({"messages": column})
    for batch in (whole, whole.slice(1, 3), pa.Table.from_batches([whole]).slice(1, 3)):
        mended = session_tailor.mend(batch).to_pyarrow()
        assert mended.schema.field("messages").type == kind
        assert mended.num_rows == batch.num_rows
        said = dict(zip([json.dumps(row) for row in batch["messages"].to_pylist()], outcomes(session_tailor.mend(batch))))
        assert said["null"] == "unreadable"
        assert said[json.dumps(MESSAGES)] == "clean"


def test_nested_text_that_is_not_utf8():
    contents = pa.Array.from_buffers(pa.string(), 4, pa.array([b"hi", b"hello", b"\xff\xff", b"ok"], pa.binary()).buffers())
    messages = pa.StructArray.from_arrays([pa.array(["user", "assistant"] * 2), contents], ["role", "content"])
    column = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), messages)
    batch = pa.record_batch({"messages": column})
    assert outcomes(session_tailor.mend(batch)) == ["clean", "unreadable"]


CALL = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))])
MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(CALL)), ("tool_call_id", pa.string())])
NO_CALL = {"id": None, "type": None, "function": None}


def test_nested_rows_in_which_anything_is_null():
    said = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}
    rows = [
        CHAT[:3],
        None,
        [],
        [None],
        [None, None, CHAT[0]],
        [CHAT[0], None, said, CHAT[2]],
        [{"role": None, "content": None}],
        [{"role": "user", "content": None}, {"role": None, "content": "x"}],
        [CHAT[0], {**said, "tool_calls": [None]}],
        [CHAT[0], {**said, "tool_calls": [NO_CALL]}, {"role": "tool"}],
        [CHAT[0], {**said, "tool_calls": [{**said["tool_calls"][0], "function": {"name": None, "arguments": None}}]}, CHAT[2]],
        CHAT,
    ] * 20
    table = pa.table({"id": range(len(rows)), "messages": pa.array(rows, pa.list_(MESSAGE))})
    mended = session_tailor.mend(table, threads=2, **CODES).to_pyarrow()
    assert mended["id"].to_pylist() == list(range(len(rows)))
    found = {}
    for finding in session_tailor.check(table).to_pylist():
        found.setdefault(finding["row"], []).append(finding["message"])
    for before, after in zip(table.to_pylist(), mended.to_pylist()):
        outcome = after["tailor_outcome"]
        assert after["messages"] == before["messages"] or outcome == "fixed"
        assert outcome in ("clean", "fixed") or after["tailor_reason"]
        assert (outcome == "clean") == (before["id"] not in found), (before, after, found.get(before["id"]))
    assert mended["tailor_outcome"].to_pylist()[:2] == ["clean", "unreadable"]
    assert mended["tailor_reason"][11].as_py().startswith("P2")
    assert mended["tailor_outcome"].to_pylist()[:12] * 20 == mended["tailor_outcome"].to_pylist()
    (alone,) = session_tailor.mend(table.slice(5, 1), **CODES).to_pylist()
    assert alone["tailor_outcome"] == mended["tailor_outcome"][5].as_py(), "a row is the same beside others and alone"


@pytest.mark.parametrize(
    ("content", "kind"),
    [(12, pa.int64()), (float("nan"), pa.float64()), (True, pa.bool_()), ([None, 1], pa.list_(pa.int64())), ({"a": None}, pa.struct([("a", pa.null())])), (None, pa.null())],
    ids=lambda kind: str(kind),
)
def test_nested_rows_of_wrong_types(content, kind):
    messages = pa.list_(pa.struct([("role", pa.int64()), ("content", kind)]))
    rows = [[{"role": 1, "content": content}], None, [{"role": None, "content": None}]]
    mended = session_tailor.mend(pa.table({"messages": pa.array(rows, messages)})).to_pyarrow()
    assert mended.schema.field("messages").type == messages
    assert str(mended["messages"].to_pylist()) == str(rows)
    assert all(row["tailor_outcome"] != "clean" and row["tailor_reason"] for row in mended.to_pylist())


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct([("role", pa.string())]), pa.list_(pa.struct([("content", pa.binary())])), pa.timestamp("s")], ids=str)
def test_a_column_that_holds_no_sessions_is_refused_before_any_row(kind):
    with pytest.raises(TypeError, match="sessions are text or binary"):
        session_tailor.mend(pa.table({"messages": pa.nulls(2, kind)}), column="messages")


def test_100_megabytes_in_a_nested_row():
    long = [MESSAGES[0], {"role": "assistant", "content": "é" * 50_000_000}]
    table = pa.table({"messages": pa.array([MESSAGES, long, None, MESSAGES], pa.large_list(NESTED.value_type))})
    mended = session_tailor.mend(table).to_pyarrow()
    assert mended.num_rows == 4
    assert mended["tailor_outcome"].to_pylist()[0::3] == ["clean", "clean"]
    assert mended["messages"][1] == table["messages"][1] or mended["tailor_outcome"][1].as_py() == "fixed"


def test_chunked_and_empty():
    empty = pa.table({"session": pa.array([], pa.string())})
    assert len(session_tailor.check(empty).to_pyarrow()) == 0
    assert outcomes(session_tailor.mend(empty)) == []
    assert session_tailor.mend(pa.record_batch({"session": pa.array([], pa.string())})).to_pyarrow().num_rows == 0
    chunked = pa.chunked_array([[GOOD], [], [BAD, GOOD]], pa.binary())
    assert outcomes(session_tailor.mend(chunked, **CODES)) == ["clean", "fixed", "clean"]
    assert {finding["row"] for finding in session_tailor.check(chunked).to_pylist()} == {1}


def test_a_stream_is_read_as_it_is_asked_for():
    taken = []

    def batches():
        for n in range(10):
            taken.append(n)
            yield pa.record_batch({"session": pa.array([BAD], pa.binary())})

    schema = pa.schema([("session", pa.binary())])
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    mended = pa.RecordBatchReader.from_stream(session_tailor.mend(reader, **CODES))
    assert taken == []
    assert mended.read_next_batch()["tailor_outcome"].to_pylist() == ["fixed"]
    assert len(taken) <= 2
    assert mended.read_all().num_rows == 9


def test_an_error_of_the_stream_arrives():
    def batches():
        yield pa.record_batch({"session": pa.array([GOOD], pa.binary())})
        raise RuntimeError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("session", pa.binary())]), batches())
    with pytest.raises(Exception, match="the disk is gone"):
        session_tailor.check(reader).to_pyarrow()


def test_100_megabytes_in_a_row():
    long = json.dumps({"role": "tool", "tool_call_id": "c", "content": "x" * 100_000_000}).encode() + b"\n"
    text = b"".join(GOOD.splitlines(True)[:2]) + long
    column = pa.array([GOOD, text, b"y" * 100_000_000], pa.large_binary())
    mended = session_tailor.mend(column, threads=2).to_pyarrow()
    assert mended["tailor_outcome"].to_pylist() == ["clean", "fixed", "unreadable"]
    assert len(mended["session"][1].as_py()) < 100_000


def test_what_nobody_can_mean():
    with pytest.raises(TypeError, match="which column"):
        session_tailor.check(pa.table({"a": ["x"], "b": ["y"]}))
    with pytest.raises(TypeError, match="no column"):
        session_tailor.check(pa.table({"a": ["x"]}), column="c")
    with pytest.raises(TypeError, match="Int64"):
        session_tailor.check(pa.array([1, 2]), column="session")
    with pytest.raises(TypeError, match="no option"):
        session_tailor.check(b"", colum="c")
    with pytest.raises(ValueError, match="no such rule"):
        session_tailor.check(b"x", select=["Q99"])
    with pytest.raises(TypeError, match="expected"):
        session_tailor.check(12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=300), st.sampled_from([GOOD, BAD, LINE]), st.builds(lambda at, byte: GOOD[:at] + bytes([byte]) + GOOD[at:], st.integers(0, len(GOOD)), st.integers(0, 255))), max_size=20), st.integers(0, 5), st.integers(1, 3))
def test_any_rows(rows, offset, threads):
    column = pa.array(rows, pa.binary()).slice(min(offset, len(rows)))
    mended = session_tailor.mend(column, threads=threads).to_pyarrow()
    assert mended.num_rows == len(column)
    for before, after in zip(column.to_pylist(), mended.to_pylist()):
        alone = session_tailor.mend(pa.array([before], pa.binary())).to_pylist()[0]
        assert after == alone
        assert (after["session"] == before) or after["tailor_outcome"] == "fixed"


json_values = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "id", "function", "arguments", "type"]), inner, max_size=4), max_leaves=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", "", "x"]), "content": json_values}), max_size=4))
def test_any_messages(messages):
    given_messages = json.loads(json.dumps(messages))
    mended, outcome, _ = session_tailor.mend(messages)
    assert messages == given_messages
    assert outcome == "fixed" or mended == messages


def test_weigh_chunk_explain():
    (weight,) = session_tailor.weigh(GOOD).to_pylist()
    assert (weight["format"], weight["lines"], weight["calls"], weight["results"], weight["bytes"]) == ("openai-chat", 3, 1, 1, len(GOOD))
    parts = ("results", "calls", "assistant", "thinking", "user", "notes", "images", "side_copies", "envelope", "bookkeeping")
    assert sum(weight[f"{part}_bytes"] for part in parts) == len(GOOD)
    (chunk,) = session_tailor.chunk(GOOD).to_pylist()
    assert chunk["text"] == "[user]\nlist\n\n[assistant]\n[calls ls] {}\n\n[tool ls]\na.txt\n\n"
    assert (chunk["chunk"], chunk["messages"], chunk["error"]) == (1, 3, None)
    assert "P2" in session_tailor.explain("P2").split()
    assert session_tailor.explain("no such thing") is None
    errors = pa.array(["prompt is too long: 201234 tokens > 200000 maximum", "no idea", None])
    assert [row["known"] for row in session_tailor.explain(errors).to_pylist()] == [True, False, False]
