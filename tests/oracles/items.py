# Compares what Codex would send of two rollouts (read_codex.py), item by item. They must be equal, but for texts cut at a
# marker and for what the findings account for.

import difflib
import json
import re

from shared import Failed, show

MARKER = re.compile(r"\n?\[tailor: \d+ of \d+ chars omitted[^\]\n]*\]\n?")
CODEX_CUT = re.compile(r"…\d+ (?:tokens|chars) truncated…")
CODEX_HEAD = re.compile(r"^Warning: truncated output \(original token count: \d+\)\nTotal output lines: \d+\n\n")
READS_MORE = ("B1", "B7", "B8")  # lines that Codex skips become readable; the others are, when this compares


def same_text(before, after):
    """Whether a text is another one, cut at a marker or by Codex itself: what is left stands at its ends."""
    if before == after:
        return True
    if not MARKER.search(after) and not CODEX_CUT.search(after):
        return False
    ends = []
    for text in (before, after):
        text = CODEX_HEAD.sub("", text)
        cuts = [cut.span() for pattern in (MARKER, CODEX_CUT) for cut in pattern.finditer(text)]
        head = text[: min(start for start, _ in cuts)] if cuts else text
        tail = text[max(end for _, end in cuts) :] if cuts else text
        ends.append((head, tail))
    (head, tail), (cut_head, cut_tail) = ends
    heads = head.startswith(cut_head) or cut_head.startswith(head)
    return heads and (tail.endswith(cut_tail) or cut_tail.endswith(tail))


def blank(part):
    return isinstance(part, dict) and isinstance(part.get("text"), str) and not part["text"].strip()


def empty(item):
    """Whether nothing but white space is said in a message."""
    parts = item.get("content") if item.get("type") == "message" else ["-"]
    return isinstance(parts, list) and all(map(blank, parts))


def without_blanks(item):
    """The item without texts of nothing but white space, as `fix` leaves it."""
    item = dict(item)
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            kept = [part for part in item[key] if not blank(part)]
            item[key] = kept or [{"type": "input_text", "text": "(no output)"}]
    return item


def image(url):
    """What is in an address that holds an image, whatever kind it says that it is."""
    return url.partition(",")[2] if isinstance(url, str) and url.startswith("data:") else None


def same_image(before, after):
    """Whether a part is an image, and the other one is that, of another kind, or what stands in its place."""
    parts = [part for part in (before, after) if isinstance(part, dict)]
    if len(parts) < 2 or before.get("type") != "input_image":
        return False
    if after.get("type") == "input_text":
        return bool(MARKER.fullmatch(after.get("text", "")))
    other = {key: value for key, value in before.items() if key != "image_url"}
    same_otherwise = other == {key: value for key, value in after.items() if key != "image_url"}
    return same_otherwise and image(before["image_url"]) == image(after.get("image_url"))


def same(before, after):
    if same_image(before, after):
        return True
    if isinstance(before, str) and isinstance(after, str):
        return same_text(before, after)
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(same(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(same, before, after))
    return before == after


def name(item):
    return f"{item.get('type')} {item.get('role') or item.get('call_id') or ''}".strip()


def items(read):
    return [row["message"] for row in read["messages"]]


def same_items(before, after, findings):
    """What is different must be a result that a finding speaks of, or stand on a line that was unreadable."""
    before, after = items(before), items(after)
    # An item with a block that Codex does not know is none to it.
    more = findings.mended(*READS_MORE, "E1")
    told = findings.calls("P5", "P6")
    renamed = {item.get("call_id") for item in after} - {item.get("call_id") for item in before}
    if len(renamed) <= sum(f["code"] == "P6" for f in findings.applied):
        told |= renamed
    key = lambda item: json.dumps((item.get("type"), item.get("call_id"), item.get("role")))
    matcher = difflib.SequenceMatcher(None, list(map(key, before)), list(map(key, after)), autojunk=False)
    cuts = 0
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            for old, new in zip(before[a:b], after[c:d]):
                if findings.mended("B11") and isinstance(old.get("output"), str):
                    old = old | {"output": old["output"].replace("\0", "\u2400")}
                # For the output on a line that it cannot read, Codex puts this.
                found_again = more and old.get("output") == "aborted"
                if findings.mended("M2"):
                    old = without_blanks(old)
                if not same(old, new) and old.get("call_id") not in told and not found_again:
                    raise Failed(f"{name(old)} is not the same\n  before: {show(old)}\n  after:  {show(new)}")
                cuts += old != new
            continue
        for item in before[a:b]:
            gone = (empty(item) and findings.mended("M1")) or (
                item.get("type") == "reasoning" and findings.mended("M5")
            ) or ("encrypted_content" in item and findings.mended("M14"))
            if item.get("call_id", "") not in told and not gone:
                raise Failed(f"{name(item)} is gone")
        for item in after[c:d]:
            if not more and item.get("call_id", "") not in told:
                raise Failed(f"{name(item)} is new")
    return f"same {len(after)} items, {cuts} cut"


def exactly_same(before, after):
    """Nothing at all may have changed for Codex."""
    before, after = items(before), items(after)
    for old, new in zip(before, after):
        if old != new:
            raise Failed(f"{name(old)} is not the same\n  before: {show(old)}\n  after:  {show(new)}")
    if len(before) != len(after):
        raise Failed(f"{len(before)} items before, {len(after)} after")
    return f"same {len(after)} items"
