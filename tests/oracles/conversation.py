# Compares two conversations as pi or Claude Code read them (read_pi.mjs, read_claude.py). They must be equal, but for what the
# findings account for, each at the entry and the call that it names.
#
# A conversation is {"messages": [{"id", "message", …}], …}. pi's results are messages, Claude Code's are blocks of messages;
# here all are blocks.

import json

from shared import MARKER, Failed, Findings, differ, same, well_formed

PAIRING = ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8")  # may add, remove or move the results of the calls they name
SERVER_PAIRING = ("P13", "M11")  # the same of the calls of a server's tools
DROPS_CALLS = ("P3", "P6")  # may also remove the call itself
DROPS_TURNS = ("M1", "M10", "T9")  # remove the entry that they name
DROPS_THINKING = ("M3", "M4", "M5")  # may remove thinking of the entry that they name
MEDIA = {"image": "S4", "document": "S20"}  # what may be mended, or be a line of text, of these blocks
CUTS = ("S1", "S2", "S5", "S15", "S24")  # cut results of the calls that they name
# Make the reader reach what it did not reach before: nothing of what it had reached may be lost.
REWIRES = ("B7", "B8", "B9", "B10", "T1", "T2", "T3", "T4", "T5", "T12")
THINKING = ("thinking", "redacted_thinking")
BLANK = "\t\n\v\f\r "


def blocks(row):
    content = row["message"].get("content") if isinstance(row["message"], dict) else None
    return content if isinstance(content, list) else []


def with_blocks(row, content):
    return {**row, "message": {**row["message"], "content": content}}


def call(block):
    return block.get("id") if block.get("type") in ("toolCall", "tool_use") else None


def result(block):
    return block.get("tool_use_id", "") if block.get("type") == "tool_result" else None


def of_server(block):
    """The call that a block of a server's tool is of."""
    kind = block.get("type", "")
    if kind in ("server_tool_use", "mcp_tool_use"):
        return block.get("id")
    return block.get("tool_use_id") if kind.endswith("_tool_result") else None


def role(row):
    return row["message"].get("role") if isinstance(row["message"], dict) else None


def name(row):
    return f"{role(row)} {row['id'] or ''}".strip()


def rows(read):
    """The messages, with pi's results as blocks."""
    return [as_block(row) if role(row) == "toolResult" else row for row in read["messages"]]


def as_block(row):
    own = ("role", "timestamp")
    message = row["message"]
    block = {key: value for key, value in message.items() if key not in own and key != "toolCallId"}
    block |= {"type": "tool_result", "tool_use_id": message.get("toolCallId", "")}
    return {**row, "message": {key: message[key] for key in own if key in message} | {"content": [block]}}


# ---- what the findings say will have become of BEFORE ----------------------------------------------------------------


def expected(before, after, findings):
    """BEFORE with the repairs in it of which only one outcome is right."""
    gone = findings.entries(*DROPS_TURNS)
    nameless = sum(f["code"] == "M1" and not f.get("entry") for f in findings.applied)  # pi's first version
    stay = {row["id"] for row in after}
    blank = [f for f in findings.applied if f["code"] == "M2" and not f.get("call")]
    for row in before:
        if row["id"] in gone:
            continue
        # pi's notes reach the model without an id.
        if findings.mended("M1") and role(row) == "custom" and row["message"].get("content") is None:
            continue
        if nameless and row["id"] is None and role(row) == "assistant" and row["message"]["content"] == []:
            nameless -= 1
            continue
        if findings.mended("B5"):
            row = {**row, "message": well_formed(row["message"])}
        if row["id"] in findings.entries("P12"):
            row = {**row, "message": {**row["message"], "stopReason": "stop"}}
        if blocks(row):
            content = [block_expected(row, block, findings) for block in blocks(row)]
            if blank:
                content = [block for block in content if not is_blank(block)] or (content if row["id"] in stay else [])
            if row["id"] in findings.entries(*DROPS_THINKING) and row["id"] not in stay:
                content = [block for block in content if block.get("type") not in THINKING]
            if not content:
                continue
            row = with_blocks(row, content)
        yield row


def without_nuls(value):
    if isinstance(value, str):
        return value.replace("\0", "\u2400")
    if isinstance(value, list):
        return [without_nuls(v) for v in value]
    return {key: without_nuls(v) for key, v in value.items()} if isinstance(value, dict) else value


def is_blank(block):
    return block.get("type") == "text" and not block.get("text", "").strip(BLANK)


def block_expected(row, block, findings):
    if call(block) in findings.calls("P9"):
        block = {("input" if block["type"] == "tool_use" else "arguments"): {}} | block
        block = {key: {} if key in ("input", "arguments") and not value else value for key, value in block.items()}
    if call(block) in findings.calls("P10"):
        block = {**block, "name": block["name"].strip("\0" + BLANK)}
    if result(block) in findings.calls("P10") and "toolName" in block:
        block = {**block, "toolName": block["toolName"].strip("\0" + BLANK)}
    if result(block) in findings.calls("M2"):
        block = {**block, "content": without_blanks(block["content"])}
    if result(block) is not None and row["id"] in findings.entries("B11"):
        block = without_nuls(block)
    return block


def without_blanks(content):
    """A result's content: what is all blank says so."""
    if isinstance(content, str):
        return content if content.strip(BLANK) else "(no output)"
    left = [part for part in content if not is_blank(part)]
    return left or [{**content[0], "text": "(no output)"}]


# ---- what is set apart on both sides ---------------------------------------------------------------------------------


def set_apart(before, after, findings):
    """Takes out what pairing may add, remove or move."""
    results, calls = findings.calls(*PAIRING), findings.calls(*DROPS_CALLS)
    entries = findings.entries(*PAIRING)
    if findings.mended("P6"):
        told = sum(f["code"] == "P6" for f in findings.applied)
        ids = [{call(block) for row in side for block in blocks(row)} for side in (before, after)]
        fresh = ids[1] - ids[0]
        if len(fresh) <= told:
            calls, results = calls | fresh, results | fresh
    of_servers = findings.calls(*SERVER_PAIRING)
    leaves = lambda block: result(block) in results or call(block) in calls or of_server(block) in of_servers
    apart = set()

    def rest(side):
        for row in side:
            left = [block for block in blocks(row) if not leaves(block)]
            only_results = bool(left) and all(result(block) is not None for block in left)
            if (blocks(row) and not left) or (row["id"] in entries and only_results):
                apart.add(row["id"])
            elif blocks(row):
                yield with_blocks(row, left)
            elif row["id"] not in apart or row["message"].get("content") != []:
                yield row

    return list(rest(before)), list(rest(after))


def are_paired(before, after, findings):
    """What pairing may add, remove or move is compared nowhere else: what it named is in order now.

    No result stands without a call before it; a call has one result before its id comes again; and that is one
    that was there before, but where there was none. Of calls about which a finding stays, nothing is asked.
    """
    stays = {f.get("call") for f in findings.left if f["code"] in PAIRING}
    for id in findings.calls("P1", "P2", "P3", "P4", "P5", "P8") - stays:
        counts, stray = [], False
        for row in after:
            for block in blocks(row):
                if call(block) == id:
                    counts.append(0)
                elif result(block) == id and counts:
                    counts[-1] += 1
                elif result(block) == id:
                    stray = True
            waits = counts and counts[-1] == 0 and id not in findings.calls("P2", "P3")
            if waits and role(row) == "user" and not any(result(block) for block in blocks(row)):
                raise Failed(f"{name(row)} stands between the call {id} and its result")
        there = any(call(block) == id for row in before for block in blocks(row))
        if there and id not in findings.calls("P2", "P3") and (not counts or set(counts) != {1}):
            raise Failed(f"call {id} has {counts or 'gone'} results, not one")
        if stray or max(counts, default=0) > 1:
            raise Failed(f"a result of {id} stands without its call, or beside another")
    for id in findings.calls("P3", "P4", "P5", "P8") - findings.calls("P1") - stays:
        old = [(row, block) for row in before for block in blocks(row) if result(block) == id]
        for row, block in ((row, block) for row in after for block in blocks(row) if result(block) == id):
            if not any(is_same_block(other, block, findings, (row["id"], was["id"])) for was, other in old):
                raise Failed(f"the result of {id} is none of those that were there")


def are_server_pairs_whole(after, findings):
    """Of a server's call that a repair is about, the result follows in the same turn of the model, or neither is there."""
    left = {f.get("call") for f in findings.left}
    for id in findings.calls(*SERVER_PAIRING) - left:
        found = [(n, block) for n, row in enumerate(after) for block in blocks(row) if of_server(block) == id]
        kinds = ["call" if "id" in block else "result" for _, block in found]
        if kinds not in ([], ["call", "result"]):
            raise Failed(f"the server's call {id} has {kinds}")
        if found and any(role(row) == "user" for row in after[found[0][0] : found[1][0] + 1]):
            raise Failed(f"somebody speaks between the server's call {id} and its result")


def is_same_block(before, after, findings, ids):
    for id in ids:
        try:
            same_block("", id, before, after, findings)
            return True
        except Failed:
            pass
    return False


# ---- comparing -------------------------------------------------------------------------------------------------------


def same_row(where, before, after, findings):
    """How many texts were cut; fails at what no finding accounts for."""
    id, cuts = before["id"], 0
    same(where, before.get("head"), after.get("head"))
    b, a = before["message"], after["message"]
    if findings.mended("B3", "B9"):
        b = with_names(b, a)
        before = {**before, "message": b}
    if not (isinstance(b, dict) and isinstance(a, dict)):
        return same(where, b, a)
    cut_here = findings.touch(id, *CUTS, "S16")
    if isinstance(b.get("content"), list) and isinstance(a.get("content"), list):
        same(where, {**b, "content": None}, {**a, "content": None})
        b, a = blocks(before), blocks(after)
        # What was signed over a line that was lost, or over a text that was changed (M4 names the first), is not valid.
        if findings.touch(id, *DROPS_THINKING) or findings.mended("M4", *REWIRES):
            spared = [block for block in a if block.get("type") in THINKING]
            b = [block for block in b if block.get("type") not in THINKING or block in spared]
        refused = findings.refused_blocks(id)
        b = [block for block in b if block.get("type") not in refused]
        if len(b) != len(a):
            differ(where, [x.get("type") for x in b], [x.get("type") for x in a], "has other blocks")
        return sum(same_block(f"{where}.content[{i}]", id, *pair, findings) for i, pair in enumerate(zip(b, a)))
    for key in ("content", "output"):  # text of a person; of a command in pi
        if cut_here and key in b and key in a and (key == "output" or role(before) == "assistant"):
            cuts += same(f"{where}.{key}", b[key], a[key], True)
            b, a = {**b, key: None}, {**a, key: None}
    return cuts + same(where, b, a)


def with_names(before, after):
    """BEFORE with the name that AFTER has for the same value, where one character of it was written over or lost."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return before
    lost, come = [key for key in before if key not in after], [key for key in after if key not in before]
    if len(lost) != 1 or len(come) != 1:
        return before
    was, now = lost[0], come[0]
    written_over = len(was) == len(now) and sum(b != a for b, a in zip(was, now)) == 1
    shorter = len(was) + 1 == len(now) and any(now[:i] + now[i + 1 :] == was for i in range(len(now)))
    if not (written_over or shorter):
        return before
    return {now if key == was else key: value for key, value in before.items()}


def same_block(where, id, before, after, findings):
    if findings.touch(id, MEDIA.get(before.get("type"))):
        return same_image(where, before, after)
    if before.get("type") == "tool_search_tool_result" and findings.touch(id, "M12"):
        before = without_references(before, after, findings)
    before = without(findings.refused(id), before)
    if result(before) is None:
        return same(where, before, after, before.get("type") == "text" and findings.touch(id, "S16"))
    # What a later stage shortens, once calls are paired, is not among the findings.
    texts = result(before) in findings.calls(*CUTS) or (findings.mended("S15") and findings.mended(*PAIRING))
    sides = findings.touch(id, "S5")
    own = ("content", "details")
    bare = [{key: value for key, value in block.items() if key not in own} for block in (before, after)]
    cuts = same(where, *bare) + same(f"{where}.details", before.get("details"), after.get("details"), sides)
    b, a = before.get("content"), after.get("content")
    if not (isinstance(b, list) and isinstance(a, list) and len(b) == len(a)):
        return cuts + same(f"{where}.content", b, a, texts)
    for i, (part, other) in enumerate(zip(b, a)):
        if findings.touch(id, MEDIA.get(part.get("type"))):
            cuts += same_image(f"{where}.content[{i}]", part, other)
        else:
            cuts += same(f"{where}.content[{i}]", part, other, texts and part.get("type") in ("text", None))
    return cuts


def without(names, value):
    """A value without the fields of these names, at any depth."""
    if isinstance(value, list):
        return [without(names, item) for item in value]
    return {k: without(names, v) for k, v in value.items() if k not in names} if isinstance(value, dict) else value


def without_references(before, after, findings):
    """BEFORE with the references that AFTER has: one may go for each that a finding names."""
    was, now = ((block.get("content") or {}).get("tool_references") for block in (before, after))
    if not (isinstance(was, list) and isinstance(now, list)):
        return before
    left = [reference for reference in was if reference in now]
    if len(was) - len(left) > sum(f["code"] == "M12" for f in findings.applied):
        return before
    return {**before, "content": {**before["content"], "tool_references": left}}


def same_image(where, before, after):
    """The same image, of its own media type now; or one line of text in its place."""
    if after.get("type") == "text" and after.keys() <= {"type", "text", "cache_control"}:
        if MARKER.fullmatch(after["text"]):
            return 1
        differ(where, "an image", after, "is no marker")
    typed = lambda value: (
        {key: None if key in ("media_type", "mimeType") else typed(value[key]) for key in value}
        if isinstance(value, dict)
        else value
    )
    return same(where, typed(before), typed(after))


def same_conversation(before, after, findings, more=None):
    """Holds AFTER against BEFORE; says what was compared. With `more`, AFTER may have more messages."""
    old, new = rows(before), rows(after)
    if not new:
        raise Failed("no messages are left")
    ids = [row["id"] for row in new if row["id"]]
    if len(set(ids)) < len(ids):
        raise Failed("a message stands there twice")
    are_paired(list(expected(old, new, findings)), new, findings)
    are_server_pairs_whole(new, findings)
    was, now = set_apart(list(expected(old, new, findings)), new, findings)
    apart, extra = len(old) - len(was), 0
    if more if more is not None else reaches_more(findings):
        now, extra = in_order(was, now)
    elif len(now) == len(was) + 1 and findings.mended("B1"):
        now.pop()  # a completed last line
    for i in range(max(len(was), len(now))):
        b, a = (name(side[i]) if i < len(side) else "nothing" for side in (was, now))
        if a != b:
            raise Failed(f"message {i} of {len(was)} (after: {len(now)}) was {b}, is {a}")
    cuts = sum(same_row(f"message {i} ({name(b)})", b, a, findings) for i, (b, a) in enumerate(zip(was, now)))
    cuts += same_extras(before, after, findings)
    last = lambda side: next((row["id"] for row in reversed(side) if role(row) == "assistant"), None)
    if "settings" in before and not extra:
        here, there = dict(before["settings"]), dict(after["settings"])
        if last(old) != last(new):  # pi takes the model from the last message of the model
            here["model"] = there["model"] = None
        same("settings", here, there)
    counts = [f"{len(new)} messages", f"{len(was)} compared", f"{cuts} cut", f"{apart} set apart", f"{extra} reached again"]
    return "same " + ", ".join(counts)


def reaches_more(findings):
    """Whether a repair lets the reader reach more, or a compaction keep more, than before."""
    kept = lambda f: f["code"] == "P2" and "compacted away" in f["message"]
    return findings.mended(*REWIRES) or any(map(kept, findings.applied))


def in_order(was, now):
    """Those of AFTER that BEFORE has, in order; and how many more there are."""
    key = lambda row: row["id"] or json.dumps(row["message"])
    found, at = [], 0
    for row in was:
        place = next((i for i in range(at, len(now)) if key(now[i]) == key(row)), None)
        if place is None:
            raise Failed(f"{name(row)} was reached, and is not any more, or not in its place")
        found.append(now[place])
        at = place + 1
    return found, len(now) - len(found)


def same_extras(before, after, findings):
    """What Claude Code shows of results beside what the model sees."""
    cuts, old, new = 0, before.get("extras", {}), after.get("extras", {})
    for id in old.keys() & new.keys():
        extra = well_formed(old[id]) if findings.mended("B5") else old[id]
        cuts += same(f"{id}.toolUseResult", extra, new[id], findings.touch(id, "S5", "S4"))
    return cuts


# ---- dead weight and compaction --------------------------------------------------------------------------------------


def exactly_same(before, after):
    """Nothing at all may have changed for the reader."""
    for i in range(max(len(before["messages"]), len(after["messages"]))):
        b, a = (name(side[i]) if i < len(side) else "nothing" for side in (before["messages"], after["messages"]))
        if a != b:
            raise Failed(f"message {i} of {len(before['messages'])} (after: {len(after['messages'])}) was {b}, is {a}")
    same("messages", before["messages"], after["messages"])
    same("settings", before.get("settings"), after.get("settings"))
    shown = {row["id"] for row in after["messages"]}
    sides = lambda read: {id: extra for id, extra in read.get("extras", {}).items() if id in shown}
    same("toolUseResult", sides(before), sides(after))
    return f"same {len(after['messages'])} messages"


def without_usage(row):
    """A recovery sets the numbers to 0 by which Claude Code would go on to refuse the session."""
    return {**row, "message": {key: value for key, value in row["message"].items() if key != "usage"}}


def compacted(before, after, report, findings):
    """AFTER must be our summary and the last messages of BEFORE, as many as were told.

    What `fix` held back while it was the newest (pairing), and thinking that is bound to what is left out, may have gone.
    """
    if not after["messages"]:
        raise Failed("no messages are left")
    summary, *kept = after["messages"]
    text = summary["message"].get("summary", summary["message"].get("content"))
    text = text if isinstance(text, str) else "".join(block.get("text", "") for block in text or [])
    if not text.startswith(f"[tailor: {report['left_out']} earlier message"):
        raise Failed(f"the conversation begins with {name(summary)}, not with the summary")
    turns = len({row["message"].get("id") or number for number, row in enumerate(kept)})
    if not 0 <= report["kept"] - turns <= after.get("unseen", 0):
        raise Failed(f"{turns} messages stay, {report['kept']} were told")
    held = Findings({"findings": [{**f, "fix": "safe"} for f in findings.left if f["code"] in PAIRING]})
    thoughtless = lambda side: [without_usage(without_thinking(row)) for row in side]
    was, now = set_apart(thoughtless(rows(before)), thoughtless(rows({"messages": kept})), held)
    was, now = ([row for row in side if row["message"].get("content") != []] for side in (was, now))
    if not kept:
        raise Failed("nothing stays")
    if len(now) >= len(was):
        raise Failed("nothing is left out")
    tail = was[len(was) - len(now) :]
    for i, (b, a) in enumerate(zip(tail, now)):
        same(f"message {i} of {len(now)}", b, a)
    return f"summary and {len(kept)} messages, {len(was) - len(now)} left out"


def without_thinking(row):
    return with_blocks(row, [b for b in blocks(row) if b.get("type") not in THINKING]) if blocks(row) else row
