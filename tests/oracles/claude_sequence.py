# Asks the vendor's SDK whether a repaired Claude Code session still reads as the same conversation.
#
#   python3 claude_sequence.py BEFORE AFTER FINDINGS
#
# Loads both files with claude_agent_sdk.get_session_messages and compares uuids and contents. They must be equal, but
# for texts cut at a marker and for what the findings (`tailor fix --format json`) account for.
# Exit 0: equal. 1: the first difference, explained. 77: skipped, because the SDK finds no conversation in BEFORE or
# because a named repair is meant to change it.

import json
import os
import re
import sys
import tempfile
from pathlib import Path

PAIRING = re.compile(r"P[1-8]$")  # may add, remove or move the results of the calls they name
DROPS_CALLS = re.compile(r"P[36]$")  # may also remove the call itself
REWIRES = re.compile(r"(B8|B10|T[1-4])$")  # make the SDK see rows that it could not reach before
MARKER = re.compile(r"\[tailor: \d+ of \d+ chars omitted; full text: tailor show [0-9a-f]{8,64}\]")
THINKING = ("thinking", "redacted_thinking")
STEM = "00000000-0000-4000-8000-000000000000"
cuts = 0


class Stop(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def fail(text):
    raise Stop(1, f"FAILED: {text}")


def skip(text):
    raise Stop(77, f"skipped: {text}")


# ---- loading ---------------------------------------------------------------------------------------------------------


def parse(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


def unglue(line):
    """The whole objects on a damaged line; fragments between them are left out."""
    pieces, start, decoder = [], line.find("{"), json.JSONDecoder()
    while start >= 0:
        try:
            _, end = decoder.raw_decode(line, start)
            rest = line[end:].lstrip()
        except ValueError:
            rest = "fragment"
        if rest == "" or rest.startswith("{"):
            pieces.append(line[start:end])
            start = line.find("{", end)
        else:
            start = line.find('{"', start + 1)
    return pieces


def readable(data, mended):
    """What BEFORE would say if its damaged lines (B2 glued, B3 NULs, B4 not UTF-8) were readable."""
    text = data.decode("utf-8", "replace" if mended("B4") else "strict")
    if mended("B3"):
        text = text.replace("\0", "")
    if not mended("B2"):
        return text
    whole = lambda line: not line.strip() or parse(line) is not None
    return "\n".join(piece for line in text.split("\n") for piece in ([line] if whole(line) else unglue(line)))


def load(text):
    """The conversation as the SDK reads it, and each row's toolUseResult by uuid (the last row wins, as in the SDK)."""
    from claude_agent_sdk import get_session_messages

    with tempfile.TemporaryDirectory(prefix="claude-sequence-") as home:
        project = Path(home, "projects", "p")
        project.mkdir(parents=True)
        (project / f"{STEM}.jsonl").write_text(text, encoding="utf-8", newline="")
        os.environ["CLAUDE_CONFIG_DIR"] = home
        messages = get_session_messages(STEM)
    rows = [row for row in map(parse, text.split("\n")) if isinstance(row, dict)]
    extras = {row["uuid"]: row.get("toolUseResult") for row in rows if isinstance(row.get("uuid"), str)}
    return messages, extras


def well_formed(value):
    """Lone surrogates become U+FFFD."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [well_formed(v) for v in value]
    return {well_formed(k): well_formed(v) for k, v in value.items()} if isinstance(value, dict) else value


# ---- comparing -------------------------------------------------------------------------------------------------------


def is_cut(before, after):
    """Is `after` what is left of `before` when a middle part gives way to a marker?"""
    for m in MARKER.finditer(after):
        head, tail = after[: m.start()], after[m.end() :]
        for h in {head, head.removesuffix("\n")}:
            for t in {tail, tail.removeprefix("\n")}:
                if len(h) + len(t) <= len(before) and before.startswith(h) and before.endswith(t):
                    return True
                # BEFORE was cut earlier: compare up to its own markers.
                for old in MARKER.finditer(before):
                    oh, ot = before[: old.start()].rstrip(), before[old.end() :].lstrip()
                    if (h.startswith(oh) or oh.startswith(h)) and (t.endswith(ot) or ot.endswith(t)):
                        return True
    return False


def show(value):
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:160]}… ({len(text)} chars)"


def differ(where, before, after, why="differs"):
    if isinstance(before, str) and isinstance(after, str):
        at = len(os.path.commonprefix([before, after]))
        why += f" from char {at} of {len(before)} (after: {len(after)})"
        before, after = before[max(0, at - 20) : at + 80], after[max(0, at - 20) : at + 80]
    fail(f"{where} {why}\n  before: {show(before)}\n  after:  {show(after)}")


def same(where, before, after, may_cut=False):
    """Deep equality; with `may_cut`, string leaves may have been cut."""
    global cuts
    if type(before) is not type(after):
        differ(where, before, after, "has another type")
    if isinstance(before, dict):
        if before.keys() != after.keys():
            differ(where, list(before), list(after), "has other keys")
        for key in before:
            same(f"{where}.{key}", before[key], after[key], may_cut)
    elif isinstance(before, list):
        if len(before) != len(after):
            differ(where, before, after, f"had {len(before)} members, has {len(after)}")
        for i, (b, a) in enumerate(zip(before, after)):
            same(f"{where}[{i}]", b, a, may_cut)
    elif before != after:
        if not (may_cut and isinstance(before, str) and is_cut(before, after)):
            differ(where, before, after, "differs and is no cut at a marker" if may_cut else "differs")
        cuts += 1


def blocks(message):
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def same_blocks(where, before, after):
    """Tool results may be cut in their texts; every other block must be the same."""
    if len(before) != len(after):
        differ(where, [b.get("type") for b in before], [b.get("type") for b in after], "has other blocks")
    for i, (b, a) in enumerate(zip(before, after)):
        here = f"{where}[{i}]"
        if b.get("type") != "tool_result" or a.get("type") != "tool_result":
            same(here, b, a)
            continue
        same(here, {**b, "content": None}, {**a, "content": None})
        b, a = b.get("content"), a.get("content")
        if isinstance(b, list) and isinstance(a, list) and len(b) == len(a):
            for j, (part, other) in enumerate(zip(b, a)):
                same(f"{here}.content[{j}]", part, other, isinstance(part, dict) and part.get("type") == "text")
        else:
            same(f"{here}.content", b, a, True)


# ---- the check -------------------------------------------------------------------------------------------------------


def main(args):
    if len(args) != 3:
        raise Stop(2, "usage: python3 claude_sequence.py BEFORE AFTER FINDINGS")
    before_bytes, after_bytes = Path(args[0]).read_bytes(), Path(args[1]).read_bytes()
    report = [json.loads(line) for line in Path(args[2]).read_text(encoding="utf-8").split("\n") if line]
    file = next((line for line in report if line.get("type") == "file"), None)
    if file is None:
        fail('the findings have no line of type "file"')
    if file.get("outcome") != "fixed" and before_bytes != after_bytes:
        fail(f"outcome is {file.get('outcome')}, but the bytes changed")

    findings = file.get("findings", [])
    applied = [f for f in findings if f.get("fix") not in ("guarded", "held", "none")]
    has = lambda code: any(f["code"] == code for f in findings)
    mended = lambda code: any(f["code"] == code for f in applied)
    named = lambda codes, key: {f[key] for f in findings if codes.match(f["code"]) and f.get(key)}

    try:
        before, before_extras = load(readable(before_bytes, mended))
    except UnicodeDecodeError as error:
        skip(f"the SDK cannot read BEFORE: {error}")
    if not before:
        skip("the SDK finds no conversation in BEFORE")
    rewires = next((f["code"] for f in applied if REWIRES.match(f["code"])), None)
    if rewires:
        skip(f"{rewires} is meant to change what the SDK can reach")
    after, after_extras = load(after_bytes.decode("utf-8"))
    if not after:
        fail("AFTER has no messages left")

    # Every call that P1 names is still there, with exactly one result.
    def count(messages, kind, key, id):
        return sum(b.get("type") == kind and b.get(key) == id for m in messages for b in blocks(m.message))

    for id in {f["call"] for f in applied if f["code"] == "P1" and f.get("call")}:
        if count(before, "tool_use", "id", id):
            calls, results = count(after, "tool_use", "id", id), count(after, "tool_result", "tool_use_id", id)
            if not calls or results != 1:
                fail(f"call {id} (P1) has {results} results, not one" if calls else f"call {id} (P1) is gone")

    # Take out what pairing (and M4: thinking) may add, remove or move; compare the rest in order.
    results, calls, entries = named(PAIRING, "call"), named(DROPS_CALLS, "call"), named(PAIRING, "entry")
    apart = set()

    def leaves(block):
        kind = block.get("type")
        return (
            (kind == "tool_result" and block.get("tool_use_id") in results)
            or (kind == "tool_use" and block.get("id") in calls)
            or (kind in THINKING and has("M4"))
        )

    def rest(messages):
        kept = []
        for m in messages:
            left = [b for b in blocks(m.message) if not leaves(b)]
            only_results = bool(left) and all(b.get("type") == "tool_result" for b in left)
            if (blocks(m.message) and not left) or (m.uuid in entries and only_results):
                apart.add(m.uuid)
            if m.uuid not in apart:
                kept.append((m, left))
        return kept

    was, is_ = rest(before), rest(after)
    if len(is_) == len(was) + 1 and has("B1"):
        is_.pop()  # a completed last line
    for i in range(max(len(was), len(is_))):
        b, a = (rows[i][0].uuid if i < len(rows) else "nothing" for rows in (was, is_))
        if a != b:
            fail(f"row {i} of {len(was)} (after: {len(is_)}) was {b}, is {a}")
    for i, ((b, b_left), (a, a_left)) in enumerate(zip(was, is_)):
        where = f"row {i} ({b.type} {b.uuid})"
        if mended("B5"):
            b.message = well_formed(b.message)
            b_left = well_formed(b_left)
        same(where, [b.type, b.session_id], [a.type, a.session_id])
        if isinstance(b.message, dict) and isinstance(a.message, dict) and b_left and a_left:
            same(f"{where}.message", {**b.message, "content": None}, {**a.message, "content": None})
            if has("M4"):
                spared = [x for x in blocks(a.message) if x.get("type") in THINKING]
                if any(x not in b.message["content"] for x in spared):
                    fail(f"{where} has a thinking block that was not there before")
            same_blocks(f"{where}.message.content", b_left, a_left)
        else:
            same(f"{where}.message", b.message, a.message)
    for uuid in before_extras.keys() & after_extras.keys():
        extra = before_extras[uuid]
        same(f"row {uuid}.toolUseResult", well_formed(extra) if mended("B5") else extra, after_extras[uuid], True)
    print(f"ok {len(after)} rows, {len(was)} compared, {cuts} texts cut, {len(apart)} set apart by findings")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Stop as stop:
        print(str(stop).encode("utf-8", "replace").decode())
        sys.exit(stop.code)
