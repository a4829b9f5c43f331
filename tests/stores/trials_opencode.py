"""Which damage OpenCode survives, and which repairs by SQL it accepts; see trials_openclaw.py. Each trial edits a fork that
`opencode serve` made of a session of its own."""

import json

from pictures import png


def parts(db, s, kind=None, tag=""):
    """[(id, data)] of a session, in the order in which they are sent."""
    found = db.execute("SELECT id, data FROM part WHERE session_id=? ORDER BY message_id, id", (s,)).fetchall()
    held = [(row["id"], json.loads(row["data"])) for row in found if tag in row["data"]]
    return [(id, data) for id, data in held if kind in (None, data["type"])]


def write(db, id, data):
    db.execute("UPDATE part SET data=? WHERE id=?", (data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":")), id))


def change(kind, tag, edit):
    def changed(db, s):
        id, data = parts(db, s, kind, tag)[-1]
        new = edit(data)
        write(db, id, data if new is None else new)

    return changed


def nothing(db, s):
    pass


def cut(data):
    data["state"]["output"] = "[cut]"
    data["state"]["metadata"]["output"] = "[cut]"


def cleared(data):
    data["state"]["time"]["compacted"] = data["state"]["time"]["end"]


def status(new):
    def edit(data):
        state = {"status": new, "input": data["state"]["input"]}
        data["state"] = {**state, "raw": ""} if new == "pending" else {**state, "time": {"start": 1}, "metadata": {"output": ""}}

    return edit


def as_error(data):
    data["state"] = {"status": "error", "input": data["state"]["input"], "error": "[lost]", "time": data["state"]["time"]}


def no_output(data):
    del data["state"]["output"]


def repaired(damage, repair):
    def edit(data):
        damage(data)
        repair(data)

    return edit


def tool(name):
    return lambda data: data.update(tool=name)


def text(new):
    return lambda data: data.update(text=new)


def remove(kind, tag):
    def edit(db, s):
        db.execute("DELETE FROM part WHERE id=?", (parts(db, s, kind, tag)[-1][0],))

    return edit


def remove_message(tag):
    """A message and, by the foreign key, its parts."""

    def edit(db, s):
        id = parts(db, s, None, tag)[-1][0]
        db.execute("DELETE FROM message WHERE id=(SELECT message_id FROM part WHERE id=?)", (id,))

    return edit


def superseded(db, s):
    """Of the snapshots of a part or message, all but the last."""
    db.execute(
        "DELETE FROM event WHERE aggregate_id=?1 AND type IN ('message.part.updated.1','message.updated.1') AND seq < ("
        "SELECT max(later.seq) FROM event AS later WHERE later.aggregate_id=?1 AND later.type=event.type AND "
        "coalesce(json_extract(later.data,'$.part.id'),json_extract(later.data,'$.info.id'))="
        "coalesce(json_extract(event.data,'$.part.id'),json_extract(event.data,'$.info.id')))",
        (s,),
    )


def all_events(db, s):
    db.execute("DELETE FROM event WHERE aggregate_id=?", (s,))


def events_and_sequence(db, s):
    db.execute("DELETE FROM event_sequence WHERE aggregate_id=?", (s,))


def cut_and_prune(db, s):
    """A result is shortened, and the events that hold it in full are gone."""
    change("tool", "result-1-1-1", cut)(db, s)
    db.execute("DELETE FROM event WHERE aggregate_id=? AND data LIKE '%result-1-1-1 the%'", (s,))


# --- the sessions ---


def record(agent, only_plain=False):
    """Has `opencode serve` write sessions: {name: id}."""
    with agent.live() as wire:
        image = {"type": "file", "mime": "image/png", "filename": "a.png", "url": f"data:image/png;base64,{png()}"}
        for number, calls in ((1, 2), (2, 2), (3, 1)):
            wire.say(f"prompt-{number}: calls={calls} chars=46000", *([image] if number == 1 else []))
        made = {"plain": wire.session}
        if only_plain:
            return made
        made["compacted"] = wire.session = fork(wire, made["plain"])
        wire.compact()
        wire.say("prompt-4: calls=1 chars=46000")
        made["reverted"] = fork(wire, made["plain"])
        revert(wire, made["reverted"])
    return made


def fork(wire, session):
    return wire.ask("POST", f"/session/{session}/fork", {})["id"]


def revert(wire, session):
    """Goes back to before the second prompt."""
    prompts = [message["info"]["id"] for message in wire.ask("GET", f"/session/{session}/message") if message["info"]["role"] == "user"]
    wire.ask("POST", f"/session/{session}/revert", {"messageID": prompts[1]})


def copies(agent, held, trials):
    """A session for each trial."""
    with agent.live(next(iter(held.values()))) as wire:
        made = [fork(wire, held[base]) for _, base, _, _ in trials]
        for (_, base, _, _), new in zip(trials, made):
            if base == "reverted":  # a fork has all messages again
                revert(wire, new)
    return made


def say(wire, session, text):
    wire.session = session
    wire.say(text)


LATE = ()
QUICK = ("plain", "result shortened", "completed without output", "completed without output, made an error", "superseded events deleted")
BAD_NAME = "refused: messages.1.content.1.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
IMAGE = {"type": "text", "text": "[image removed]"}

# (name, which session, the edit, what comes of it)
TRIALS = [
    ("plain", "plain", nothing, "accepted 4/3/5/5, 1 image"),
    ("result shortened", "plain", change("tool", "result-1-1-1", cut), "accepted 4/3/5/4, 1 image"),
    ("result cleared in the owner's way", "plain", change("tool", "result-1-1-1", cleared), "accepted 4/3/5/4, 1 image"),
    ("completed to running", "plain", change("tool", "result-1-1-1", status("running")), "accepted 4/3/5/4, 1 image"),
    ("completed to pending", "plain", change("tool", "result-1-1-1", status("pending")), "accepted 4/3/5/4, 1 image"),
    ("completed to error", "plain", change("tool", "result-1-1-1", as_error), "accepted 4/3/5/4, 1 image"),
    ("completed without output", "plain", change("tool", "result-1-1-1", no_output), "nothing sent"),
    ("completed without output, made an error", "plain", change("tool", "result-1-1-1", repaired(no_output, as_error)), "accepted 4/3/5/4, 1 image"),
    ("part that is no JSON", "plain", change("tool", "result-1-1-1", lambda data: '{"type":"tool"'), "nothing sent"),
    ("part of an unknown type", "plain", change("tool", "result-1-1-1", lambda data: data.update(type="foo")), "accepted 4/3/4/4, 1 image"),
    ("part without a type", "plain", change("tool", "result-1-1-1", lambda data: data.pop("type") and None), "accepted 4/3/4/4, 1 image"),
    ("tool name ba sh<x>", "plain", change("tool", "result-1-1-1", tool("ba sh<x>")), BAD_NAME),
    ("tool name invalid", "plain", change("tool", "result-1-1-1", repaired(tool("ba sh<x>"), tool("invalid"))), "accepted 4/3/5/5, 1 image"),
    ("reply with an empty text", "plain", change("text", "reply-2", text("")), "accepted 4/2/5/5, 1 image"),
    ("image replaced by a text", "plain", change("file", "", lambda data: IMAGE), "accepted 4/3/5/5"),
    ("image part deleted", "plain", remove("file", ""), "accepted 4/3/5/5"),
    ("tool part deleted", "plain", remove("tool", "result-2-1-1"), "accepted 4/3/4/4, 1 image"),
    ("reply deleted with its message", "plain", remove_message("reply-2"), "accepted 4/2/5/5, 1 image"),
    ("prompt deleted with its message", "plain", remove_message("prompt-2:"), "accepted 3/3/5/5, 1 image"),
    ("superseded events deleted", "plain", superseded, "accepted 4/3/5/5, 1 image"),
    ("all events deleted", "plain", all_events, "accepted 4/3/5/5, 1 image"),
    ("all events and event_sequence deleted", "plain", events_and_sequence, "accepted 4/3/5/5, 1 image"),
    ("result shortened, its events deleted", "plain", cut_and_prune, "accepted 4/3/5/4, 1 image"),
    ("compacted", "compacted", nothing, "accepted 3/3/2/2"),
    ("compacted, result before the boundary shortened", "compacted", change("tool", "result-1-1-1", cut), "accepted 3/3/2/2"),
    ("compacted, result after the boundary shortened", "compacted", change("tool", "result-3-1-1", cut), "accepted 3/3/2/1"),
    ("compacted, superseded events deleted", "compacted", superseded, "accepted 3/3/2/2"),
    ("reverted", "reverted", nothing, "accepted 2/1/2/2, 1 image"),
    ("reverted, result that is sent shortened", "reverted", change("tool", "result-1-1-1", cut), "accepted 2/1/2/1, 1 image"),
    ("reverted, result that is reverted shortened", "reverted", change("tool", "result-2-1-1", cut), "accepted 2/1/2/2, 1 image"),
    ("untouched, while it runs", "plain", nothing, "accepted 5/4/5/5, 1 image"),
    ("result shortened, while it runs", "plain", change("tool", "result-1-1-1", cut), "accepted 5/4/5/4, 1 image"),
    ("result cleared in the owner's way, while it runs", "plain", change("tool", "result-1-1-1", cleared), "accepted 5/4/5/4, 1 image"),
    ("image replaced by a text, while it runs", "plain", change("file", "", lambda data: IMAGE), "accepted 5/4/5/5"),
    ("completed to error, while it runs", "plain", change("tool", "result-1-1-1", as_error), "accepted 5/4/5/4, 1 image"),
    ("tool part deleted, while it runs", "plain", remove("tool", "result-2-1-1"), "accepted 5/4/4/4, 1 image"),
    ("superseded events deleted, while it runs", "plain", superseded, "accepted 5/4/5/5, 1 image"),
    ("all events deleted, while it runs", "plain", all_events, "accepted 5/4/5/5, 1 image"),
    ("reverted, result that is sent shortened, while it runs", "reverted", change("tool", "result-1-1-1", cut), "accepted 3/2/2/1, 1 image"),
]
