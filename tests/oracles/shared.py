# What the comparisons share: how one ends, what `tailor fix --format json` found and did, and what a cut looks like.

import difflib
import json
import os
import re

MARKER = re.compile(r"\[tailor: \d+ of \d+ chars omitted[^\]\n]*; full text: tailor show [0-9a-f]{8,64}\]")
GUARDED = ("guarded", "held", "none")
LINES = ("B1", "B2", "B3", "B4", "B7", "B8", "B9", "B10", "T5")  # mended before the rest is judged


class Stop(Exception):
    """The end of a comparison that is not passed."""


class Failed(Stop):
    pass


class Skipped(Stop):
    """Nothing was proven: by reason, which is counted, and by what is true of this file alone."""

    def __init__(self, reason, detail=""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class Findings:
    """What was found in one file, and which of it `fix` mended. `allowed` are the codes of guarded fixes that it made.

    What is held while lines are damaged is judged again once they are mended, and nobody is told; it counts as mended.
    """

    def __init__(self, report, allowed=()):
        self.outcome = report.get("outcome")
        self.all = report.get("findings", [])
        again = any(f["code"] in LINES and f.get("fix") == "safe" for f in self.all)
        made = lambda f: (
            f.get("fix") not in GUARDED
            or (f["fix"] == "guarded" and f["code"] in allowed)
            or (f["fix"] == "held" and again)
        )
        self.applied = [f for f in self.all if made(f)]
        self.left = [f for f in self.all if not made(f)]

    def mended(self, *codes):
        return any(f["code"] in codes for f in self.applied)

    def names_written_over(self):
        """What names were of which some bytes were written over, as the findings say."""
        said = (re.match(r"`(\w+)` was overwritten", f["message"]) for f in self.applied)
        return {name[1] for name in said if name}

    def refused(self, entry):
        """The fields of an entry that the API's error names (E1), as the findings say."""
        return self._named(entry, r"the field (\w+),")

    def refused_blocks(self, entry):
        """The kinds of an entry's blocks that the API's error names."""
        return self._named(entry, r"a block of kind (\w+),")

    def _named(self, entry, words):
        own = (f for f in self.applied if f["code"] == "E1" and f.get("entry") == entry)
        said = (re.match(words, f["message"]) for f in own)
        return {name[1] for name in said if name}

    def calls(self, *codes):
        return {f["call"] for f in self.applied if f["code"] in codes and f.get("call")}

    def entries(self, *codes):
        return {f["entry"] for f in self.applied if f["code"] in codes and f.get("entry")}

    def touch(self, entry, *codes):
        """Whether one of these is about the entry; entries without an id (pi's first version) are all the same."""
        return any(f["code"] in codes and f.get("entry") == entry for f in self.applied)


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


def readable(data, findings):
    """What a file would say if its damaged lines (B2 glued, B3 NULs, B4 not UTF-8) and names were readable."""
    names = findings.names_written_over()
    if not findings.mended("B2", "B3", "B4") and not names:
        return data
    text = data.decode("utf-8", "replace" if findings.mended("B4") else "surrogateescape")
    if findings.mended("B3"):
        text = text.replace("\0", "")
    if findings.mended("B2"):
        whole = lambda line: not line.strip() or parse(line) is not None
        lines = ([line] if whole(line) else unglue(line) for line in text.split("\n"))
        text = "\n".join(piece for pieces in lines for piece in pieces)
    for name in names:
        text = KEY.sub(lambda key: f'"{name}"' if is_damaged(key[1], name) else key[0], text)
    return text.encode("utf-8", "surrogateescape")


KEY = re.compile(r'"([^"\\]*)"(?=\s*:)')


def is_damaged(key, name):
    """Whether a key holds what no name does, and is else about this one."""
    return re.search(r"[^\w. $:/@-]", key) and difflib.SequenceMatcher(None, key, name).ratio() > 0.3


def well_formed(value):
    """Lone surrogates become U+FFFD."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [well_formed(v) for v in value]
    return {well_formed(k): well_formed(v) for k, v in value.items()} if isinstance(value, dict) else value


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
    raise Failed(f"{where} {why}\n  before: {show(before)}\n  after:  {show(after)}")


def same(where, before, after, may_cut=False):
    """Deep equality; with `may_cut`, string leaves may have been cut. How many were."""
    if type(before) is not type(after):
        differ(where, before, after, "has another type")
    if isinstance(before, dict):
        if before.keys() != after.keys():
            differ(where, list(before), list(after), "has other keys")
        return sum(same(f"{where}.{key}", before[key], after[key], may_cut) for key in before)
    if isinstance(before, list):
        if len(before) != len(after):
            differ(where, before, after, f"had {len(before)} members, has {len(after)}")
        return sum(same(f"{where}[{i}]", b, a, may_cut) for i, (b, a) in enumerate(zip(before, after)))
    if before == after:
        return 0
    if not (may_cut and isinstance(before, str) and is_cut(before, after)):
        differ(where, before, after, "differs and is no cut at a marker" if may_cut else "differs")
    return 1
