"""Which damage OpenClaw survives, and which repairs by SQL it accepts. Each trial edits a clone of a session that OpenClaw
wrote, with the gateway stopped; then one gateway resumes all of them, and the request that reaches the stub is the result:

    accepted 4/3/5/5, 1 image      so many prompts, replies, calls, results and images are in the request
    refused: …                     the API does not take the session any more
    nothing sent                   the gateway asked the model nothing

A session of OpenClaw cannot be forked whole, so rows.clone copies one; the trials named after a session, without an edit,
show that a clone is as good as it.
"""

import json
import time
import uuid

import agents
import rows
from pictures import png

SHORT = "[cut]"


# --- what is edited; db is in a transaction, s is the session ---


def at(db, s, tag, role="toolResult"):
    """The seq of the last message of a role that holds a tag."""
    found = [
        seq
        for seq, event in rows.events(db, s)
        if event["type"] == "message" and event["message"]["role"] == role and tag in json.dumps(event["message"]["content"])
    ]
    if not found:
        raise ValueError(f"no {role} holds {tag}")
    return found[-1]


def nothing(db, s):
    pass


def change(db, s, seq, edit):
    event = dict(rows.events(db, s))[seq]
    edit(event)
    rows.put(db, s, seq, event)
    rows.rotate(db, s)


def shorten(tag):
    def edit(event):
        event["message"]["content"] = [{"type": "text", "text": SHORT}]

    return lambda db, s: change(db, s, at(db, s, tag), edit)


def take(db, s, seqs, relinked=True):
    """Takes events out; what hung on them hangs on what they hung on. The projection stays true."""
    held, shown = dict(rows.events(db, s)), rows.active(db, s)
    parent = {held[seq]["id"]: held[seq].get("parentId") for seq in seqs}
    for seq in sorted(seqs):
        db.execute("DELETE FROM transcript_events WHERE session_id=? AND seq=?", (s, seq))
    for seq, event in held.items():
        if seq in seqs or event.get("parentId") not in parent or not relinked:
            continue
        new = event["parentId"]
        while new in parent:
            new = parent[new]
        rows.relink(db, s, seq, new)
    rows.project(db, s, [seq for seq in shown if seq not in seqs])
    rows.rotate(db, s)


def lose(tag, relinked=True):
    return lambda db, s: take(db, s, {at(db, s, tag)}, relinked)


def dangling(tag):
    """The result is gone, its follower hangs on nothing, and the owner's own rebuild has seen only what follows."""

    def edit(db, s):
        seq = at(db, s, tag)
        take(db, s, {seq}, relinked=False)
        rows.project(db, s, [n for n in rows.active(db, s) if n > seq])

    return edit


def rehang(tag):
    """The same, repaired: the follower hangs on what comes before it, and the projection has all of it."""

    def edit(db, s):
        shown, seq = rows.active(db, s), at(db, s, tag)
        dangling(tag)(db, s)
        before = dict(rows.events(db, s))[shown[shown.index(seq) - 1]]["id"]
        rows.relink(db, s, shown[shown.index(seq) + 1], before)
        rows.project(db, s, [n for n in shown if n != seq])
        rows.rotate(db, s)

    return edit


def answer(tag):
    """A result that was lost comes back: appended with the next seq, and in its place by parentId and in the projection."""

    def edit(db, s):
        lost = at(db, s, tag)
        held, shown = dict(rows.events(db, s)), rows.active(db, s)
        old, place = held[lost], shown.index(lost)
        created = db.execute("SELECT created_at FROM transcript_events WHERE session_id=? AND seq=?", (s, lost)).fetchone()[0]
        take(db, s, {lost})
        new = {**old, "id": str(uuid.uuid4())}
        new["message"] = {**old["message"], "content": [{"type": "text", "text": f"result-{tag} the [lost]"}], "isError": True}
        number = max(held) + 1
        rows.add(db, s, number, new, created)
        rows.relink(db, s, shown[place + 1], new["id"])
        rows.project(db, s, [*shown[:place], number, *shown[place + 1 :]])
        rows.rotate(db, s)

    return edit


def no_branch(db, s):
    """Takes the abandoned branch out, and the mark that was left where it ended."""
    shown = rows.active(db, s)
    take(db, s, {seq for seq, _ in rows.events(db, s) if seq and seq not in shown}, relinked=False)


def before_boundary(kind):
    """Takes the results and what else the model does not see any more out, up to a compaction or a reset."""

    def edit(db, s):
        held = dict(rows.events(db, s))
        mark = next(seq for seq, event in held.items() if event["type"] == kind)
        kept = held[mark].get("firstKeptEntryId")
        first = next((seq for seq, event in held.items() if event["id"] == kept), mark)
        take(db, s, {seq for seq in held if 3 < seq < first})

    return edit


def size(change_by):
    def edit(db, s):
        db.execute(
            "UPDATE transcript_events SET event_utf8_bytes=event_utf8_bytes+? WHERE session_id=? AND seq=? AND event_zstd IS NOT NULL",
            (change_by, s, at(db, s, "result-1-1-1")),
        )

    return edit


def size_repaired(db, s):
    """The length is put right again."""
    seq = at(db, s, "result-1-1-1")
    size(7)(db, s)
    db.execute("UPDATE transcript_events SET event_utf8_bytes=event_utf8_bytes-7 WHERE session_id=? AND seq=?", (s, seq))
    rows.rotate(db, s)


def not_json(db, s):
    text = '{"type":"message","id":"x'
    db.execute(
        "UPDATE transcript_events SET event_json=?, event_zstd=NULL, event_utf8_bytes=?, navigation_json=NULL WHERE session_id=? AND seq=?",
        (text, len(text), s, at(db, s, "result-1-1-1")),
    )


def not_json_replaced(db, s):
    """What the row must have said, as far as the identities and the call know it, with another text."""
    seq = at(db, s, "result-1-1-1")
    old = dict(rows.events(db, s))[seq]
    not_json(db, s)
    id, parent = db.execute("SELECT event_id, parent_id FROM transcript_event_identities WHERE session_id=? AND seq=?", (s, seq)).fetchone()
    message = {"role": "toolResult", "content": [{"type": "text", "text": "[lost]"}], "isError": True}
    message |= {key: old["message"][key] for key in ("toolCallId", "toolName", "timestamp")}
    rows.put(db, s, seq, {"type": "message", "id": id, "parentId": parent, "timestamp": old["timestamp"], "message": message})
    rows.rotate(db, s)


def name(new):
    def rename(event):
        for block in event["message"]["content"]:
            if block.get("type") == "toolCall":
                block["name"] = new

    return lambda db, s: change(db, s, at(db, s, "call-1-1-1", "assistant"), rename)


def no_image(db, s):
    def edit(event):
        for block in event["message"]["content"]:
            if block["type"] == "image":
                block.clear()
                block.update(type="text", text="[image removed]")

    change(db, s, at(db, s, "prompt-1:", "user"), edit)


def empty(db, s):
    def edit(event):
        event["message"]["content"] = [{"type": "text", "text": ""}]

    change(db, s, at(db, s, "reply-2", "assistant"), edit)


def doubled(db, s):
    """The result stands there twice, one behind the other."""
    seq = at(db, s, "result-1-1-2")
    held, shown = dict(rows.events(db, s)), rows.active(db, s)
    new = {**held[seq], "id": str(uuid.uuid4()), "parentId": held[seq]["id"]}
    number = max(held) + 1
    rows.add(db, s, number, new, rows.now())
    place = shown.index(seq)
    rows.relink(db, s, shown[place + 1], new["id"])
    rows.project(db, s, [*shown[: place + 1], number, *shown[place + 1 :]])


def dirty(db, s):
    db.execute("UPDATE session_transcript_index_state SET needs_rebuild=1 WHERE session_id=?", (s,))


def not_projected(db, s):
    """The projection lacks a result, and its counts say so."""
    seq = at(db, s, "result-2-1-1")
    rows.project(db, s, [n for n in rows.active(db, s) if n != seq])


def wrong_leaf(db, s):
    db.execute(
        "UPDATE session_transcript_index_state SET leaf_event_id=? WHERE session_id=?", (dict(rows.events(db, s))[at(db, s, "reply-2", "assistant")]["id"], s)
    )


def no_identity(db, s):
    db.execute("DELETE FROM transcript_event_identities WHERE session_id=? AND seq=?", (s, at(db, s, "result-2-1-1")))


def identity_back(db, s):
    seq = at(db, s, "result-2-1-1")
    event = dict(rows.events(db, s))[seq]
    no_identity(db, s)
    row = (s, event["id"], seq, event["type"], event["parentId"], rows.now())
    db.execute("INSERT INTO transcript_event_identities VALUES(?,?,?,?,?,NULL,?)", row)


def leaf_right(db, s):
    wrong_leaf(db, s)
    rows.project(db, s, rows.active(db, s))
    rows.rotate(db, s)


def header_gone(db, s):
    db.execute("DELETE FROM transcript_events WHERE session_id=? AND seq=0", (s,))


def empty_notes(db, s):
    """Takes the texts out of all notes of what was sent but the newest, which alone is read."""
    notes = [(seq, event) for seq, event in rows.events(db, s) if event.get("customType") == "openclaw.cache-ttl"]
    for seq, event in notes[:-1]:
        for item in event["data"]["frozenToolResults"]:
            item.pop("texts", None)
        rows.put(db, s, seq, event)
    rows.rotate(db, s)


# --- the sessions ---


def record(agent, only_plain=False):
    """Has the gateway write sessions: {name: id}."""
    with agent.live() as wire:

        def talk(key, *calls, image=None, first=1):
            for number, count in enumerate(calls, first):
                wire.say(f"prompt-{number}: calls={count} chars=46000", key, image if number == 1 else None)

        talk("plain", 2, 2, 1, image=png())
        if only_plain:
            return sessions(agent)
        talk("branched", 2, 2)
        wire.call("sessions.rewind", sessionKey="agent:main:branched", entryId=prompt_of(agent, "branched", 2))
        talk("branched", 1, first=3)
        talk("compacted", 2, 2, 1)
        wire.call("sessions.compact", key="agent:main:compacted")
        talk("compacted", 1, first=4)
        talk("reset", 2, 1)
        wire.call("sessions.reset", key="agent:main:reset")
        talk("reset", 1, first=3)
        # OpenClaw cuts such results and notes them whole after each batch: more than it loads of a session.
        wire.say("prompt-1: calls=1 rounds=12 chars=400000", "noted")
    return sessions(agent)


def sessions(agent):
    db = rows.connect(agent.path, read_only=True)
    try:
        found = db.execute("SELECT session_key, current_session_id FROM session_nodes").fetchall()
        return {key.rpartition(":")[2]: session for key, session in found}
    finally:
        db.close()


def prompt_of(agent, key, number):
    """The id of the entry that holds a prompt."""
    db = rows.connect(agent.path, read_only=True)
    try:
        session = sessions(agent)[key]
        return dict(rows.events(db, session))[at(db, session, f"prompt-{number}:", "user")]["id"]
    finally:
        db.close()


def copies(agent, held, trials):
    """A session for each trial."""
    made = [f"trial-{n}" for n, _ in enumerate(trials)]
    with rows.writing(agent.path) as db:
        for (_, base, _, _), new in zip(trials, made):
            rows.clone(db, held[base], f"agent:main:{new}", new)
    return made


def kept_down(agent, session, edit):
    """Whether one row of a session whose index is to be rebuilt keeps the gateway from starting, and what doctor does about it.

    If the index is whole, the gateway starts: it reads such rows only to rebuild it.
    """
    with rows.writing(agent.path) as db:
        edit(db, session)
        dirty(db, session)
    was = rows.dump(agent.path)["transcript_events"]
    before = starts(agent)
    code, _ = agent.run("doctor", "--fix", "--non-interactive")
    same = "leaves the rows" if rows.dump(agent.path)["transcript_events"] == was else "changes rows"
    return f"{before}; doctor --fix exits {code} and {same}; {starts(agent)}"


def starts(agent):
    """The port may be open before it is clear whether the gateway starts, so its log decides."""
    log = agent.home / "gateway.log"
    ready = lambda: log.read_text().count("[gateway] ready") if log.exists() else 0
    before = ready()
    try:
        with agent.live() as wire:
            end = time.monotonic() + agents.TURN_SECONDS
            while ready() == before and wire.process.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
    except agents.Stuck:
        pass  # it has ended
    return "starts" if ready() > before else "does not start"


def moved(agent, lines):
    """Has doctor move a transcript of the time before databases: the session, its file (a copy) and what is wrong."""
    session = str(uuid.uuid4())
    header = {**json.loads(lines[0]), "id": session, "version": 3}
    lines = [json.dumps(header, separators=(",", ":")).encode(), *lines[1:]]
    folder = agent.home / ".openclaw/agents/main/sessions"
    folder.mkdir(parents=True)
    file = folder / f"{session}.jsonl"
    file.write_bytes(b"\n".join(lines) + b"\n")
    copy = agent.home / "moved.jsonl"
    copy.write_bytes(file.read_bytes())
    index = {"agent:main:moved": {"sessionId": session, "updatedAt": rows.now(), "sessionFile": str(file)}}
    (folder / "sessions.json").write_text(json.dumps(index))
    code, said = agent.run("doctor", "--fix", "--non-interactive")
    if code:
        return session, copy, f"doctor exits {code}: {said[-300:]}"
    db = rows.connect(agent.path, read_only=True)
    got = [rows.text(row) for row in db.execute("SELECT * FROM transcript_events WHERE session_id=? ORDER BY seq", (session,))]
    db.close()
    return session, copy, "" if got == lines else f"{len(got)} rows of {len(lines)} lines, or others"


def say(wire, session, text):
    wire.say(text, session)


# A row that cannot be read may keep the gateway from starting, so it is damaged once it runs. The same row keeps
# `openclaw doctor --fix` from going on.
LATE = ("length of a zstd row too large", "length of a zstd row too small", "row that is no JSON")
# A result of each session whose loss leaves its follower hanging on nothing.
HANGS = {"branched": "result-1-1-2", "compacted": "result-3-1-1", "reset": "result-3-1-1"}
QUICK = ("plain", "result shortened", "result answered at the end of the rows", "dangling parentId", "dangling parentId, rehung")

FIRST = 'refused: messages: first message must use the "user" role'

# (name, which session, the edit, what comes of it)
TRIALS = [
    ("plain", "plain", nothing, "accepted 4/3/5/5, 1 image"),
    ("result shortened", "plain", shorten("result-1-1-1"), "accepted 4/3/5/4, 1 image"),
    ("image replaced by a text", "plain", no_image, "accepted 4/3/5/5"),
    ("result lost, chain whole", "plain", lose("result-2-1-1"), "accepted 4/3/5/4, 1 image"),
    ("result answered at the end of the rows", "plain", answer("result-2-1-1"), "accepted 4/3/5/5, 1 image"),
    ("result twice", "plain", doubled, "accepted 4/3/5/5, 1 image"),
    ("dangling parentId", "plain", dangling("result-2-1-2"), FIRST),
    ("dangling parentId, rehung", "plain", rehang("result-2-1-2"), "accepted 4/3/5/4, 1 image"),
    ("length of a zstd row too large", "plain", size(7), "nothing sent"),
    ("length of a zstd row too small", "plain", size(-7), "nothing sent"),
    ("length of a zstd row, repaired", "plain", size_repaired, "accepted 4/3/5/5, 1 image"),
    ("row that is no JSON", "plain", not_json, "nothing sent"),
    ("row that is no JSON, replaced", "plain", not_json_replaced, "accepted 4/3/5/4, 1 image"),
    ("tool name ba sh<x>", "plain", name("ba sh<x>"), "accepted 4/3/3/3, 1 image"),
    ("tool name invalid", "plain", name("invalid"), "accepted 4/3/5/5, 1 image"),
    ("reply with an empty text", "plain", empty, "accepted 4/2/5/5, 1 image"),
    ("needs_rebuild=1", "plain", dirty, "accepted 4/3/5/5, 1 image"),
    ("projection lacks a result", "plain", not_projected, "accepted 4/3/5/4, 1 image"),
    ("leaf is an older event", "plain", wrong_leaf, "nothing sent"),
    ("identity of a result is gone", "plain", no_identity, FIRST),
    ("identity of a result, put back", "plain", identity_back, "accepted 4/3/5/5, 1 image"),
    ("leaf put right", "plain", leaf_right, "accepted 4/3/5/5, 1 image"),
    ("header is gone", "plain", header_gone, "nothing sent"),
    ("branched", "branched", nothing, "accepted 3/2/3/3"),
    ("branched, result of the live branch shortened", "branched", shorten("result-1-1-1"), "accepted 3/2/3/2"),
    ("branched, result of the abandoned branch shortened", "branched", shorten("result-2-1-1"), "accepted 3/2/3/3"),
    ("branched, result answered", "branched", answer("result-3-1-1"), "accepted 3/2/3/3"),
    ("branched, dangling parentId rehung", "branched", rehang("result-1-1-2"), "accepted 3/2/3/2"),
    ("branched, abandoned branch taken out", "branched", no_branch, "accepted 3/2/3/3"),
    ("compacted", "compacted", nothing, "accepted 5/3/2/2"),
    ("compacted, result before the boundary shortened", "compacted", shorten("result-1-1-1"), "accepted 5/3/2/2"),
    ("compacted, result after the boundary shortened", "compacted", shorten("result-3-1-1"), "accepted 5/3/2/1"),
    ("compacted, result answered", "compacted", answer("result-3-1-1"), "accepted 5/3/2/2"),
    ("compacted, what is before the kept part taken out", "compacted", before_boundary("compaction"), "accepted 5/3/2/2"),
    ("reset", "reset", nothing, "accepted 2/1/1/1"),
    ("reset, result before it shortened", "reset", shorten("result-1-1-1"), "accepted 2/1/1/1"),
    ("reset, result after it shortened", "reset", shorten("result-3-1-1"), "accepted 2/1/1/0"),
    ("reset, result answered", "reset", answer("result-3-1-1"), "accepted 2/1/1/1"),
    ("reset, what is before it taken out", "reset", before_boundary("reset"), "accepted 2/1/1/1"),
    ("notes of what was sent, more than is loaded", "noted", nothing, FIRST),
    ("notes of what was sent, emptied where they are not read", "noted", empty_notes, "accepted 2/1/12/0"),
    # OpenClaw itself leaves the image out by then.
    ("untouched, while it runs", "plain", nothing, "accepted 5/4/5/5"),
    ("result shortened, while it runs", "plain", shorten("result-1-1-1"), "accepted 5/4/5/4"),
    ("image replaced by a text, while it runs", "plain", no_image, "accepted 5/4/5/5"),
    ("result answered, while it runs", "plain", answer("result-2-1-1"), "accepted 5/4/5/5"),
    ("result lost, chain whole, while it runs", "plain", lose("result-2-1-1"), "accepted 5/4/5/4"),
    ("dangling parentId rehung, while it runs", "plain", rehang("result-2-1-2"), "accepted 5/4/5/4"),
    ("notes of what was sent, emptied where they are not read, while it runs", "noted", empty_notes, "accepted 2/1/12/0"),
    ("abandoned branch taken out, while it runs", "branched", no_branch, "accepted 4/3/3/3"),
    ("what is before the kept part taken out, while it runs", "compacted", before_boundary("compaction"), "accepted 6/4/2/2"),
]
