"""What a thread of Codex with a paginated history takes: edits of the rollout, with what Codex keeps beside it in
thread_history_1.sqlite left alone, deleted or moved along. Each trial edits a thread that Codex wrote, and Codex resumes it
twice. The result is what the stub got, and whether what Codex shows of the thread is what it would show of a rollout of
which it had never kept anything:

    accepted 4/3/5/4; shown as it is      so many prompts, replies, calls and results in the request
"""

import json
import shutil
import sqlite3

import agents
import reads

HISTORY = ".codex/thread_history_1.sqlite"
KEPT = ("thread_turns", "thread_items", "thread_realtime_items", "thread_history_projection_state")
KINDS = ("prompts", "replies", "calls", "results")
CUT = "[cut]"


# --- the rollout ---


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def find(lines, kind, tag):
    """The line of this kind that holds a tag; `kind` is the type of its payload."""
    return next(n for n, line in enumerate(lines) if tag.encode() in line and json.loads(line)["payload"].get("type") == kind)


def set_line(lines, n, edit):
    record = json.loads(lines[n])
    edit(record)
    lines[n] = json.dumps(record, separators=(",", ":")).encode() + b"\n"


def cut(lines):
    """Shortens a result where the model gets it."""
    set_line(lines, find(lines, "function_call_output", "result-1-1-1"), lambda record: record["payload"].update(output=CUT))


def padded(edit):
    """The same edit, but each line stays as long as it was: spaces after the record are no part of it. Lines that are gone
    become spaces after the line before them."""

    def kept_long(lines):
        starts, end = {}, 0
        for line in lines:
            starts[json.loads(line)["ordinal"]] = end
            end += len(line)
        edit(lines)
        numbers = [json.loads(line)["ordinal"] for line in lines]
        for n, following in enumerate([*(starts[number] for number in numbers[1:]), end]):
            room = following - starts[numbers[n]]
            lines[n] = lines[n][:-1] + b" " * (room - len(lines[n])) + b"\n"

    return kept_long


def cut_shown(lines):
    cut(lines)

    def edit(record):
        record["payload"]["item"].update(aggregated_output=CUT)

    set_line(lines, find(lines, "item_completed", "result-1-1-1"), edit)


def take_out(lines):
    """A result is gone, and the numbers have a hole."""
    del lines[find(lines, "function_call_output", "result-2-1-1")]


def double(lines):
    n = find(lines, "function_call_output", "result-2-1-1")
    lines.insert(n, lines[n])


def undouble(lines):
    double(lines)
    del lines[find(lines, "function_call_output", "result-2-1-1")]


def answer(lines):
    """The result of a call is lost; another one stands in its place, with its number."""
    n = find(lines, "function_call_output", "result-2-1-1")
    set_line(lines, n, lambda record: record["payload"].update(output="result-2-1-1 the [lost]"))


def answer_without_number(lines):
    """As `answer`, but the line is new: it repeats the number of the line before it."""
    n = find(lines, "function_call_output", "result-2-1-1")
    before = json.loads(lines[n - 1])["ordinal"]
    answer(lines)
    set_line(lines, n, lambda record: record.update(ordinal=before))


# --- what Codex keeps beside it ---


def leave(thread, db, old, new):
    pass


def delete(thread, db, old, new):
    for table in KEPT:
        db.execute(f"DELETE FROM {table} WHERE thread_id=?", (thread,))


def move(thread, db, old, new):
    """Moves the byte offsets along with the lines, by their numbers."""
    starts, end = {}, 0
    for line in new:
        starts[json.loads(line)["ordinal"]] = end
        end += len(line)
    numbers = sorted(starts)
    start = lambda ordinal: None if ordinal is None else next((starts[n] for n in numbers if n >= ordinal), end)
    turns = db.execute("SELECT turn_id, rollout_ordinal, rollout_end_ordinal FROM thread_turns WHERE thread_id=?", (thread,)).fetchall()
    for turn, first, last in turns:
        after = None if last is None else start(last + 1)
        db.execute(
            "UPDATE thread_turns SET rollout_byte_offset=?, rollout_end_byte_offset=? WHERE thread_id=? AND turn_id=?", (start(first), after, thread, turn)
        )
    db.execute("UPDATE thread_history_projection_state SET next_rollout_byte_offset=? WHERE thread_id=?", (end, thread))


# --- one trial ---


def thread_of(path):
    return path.stem[-36:]


def resume(agent, path, number):
    """Has a new process go on: what the stub got, and what Codex shows of the thread."""
    before = len(agent.stub.log)
    shown, trouble = [], ""
    try:
        wire = agents.CodexWire(agent, ["codex", "app-server"])
        try:
            wire.greet()
            wire.thread = thread_of(path)
            wire.call("thread/resume", {"threadId": wire.thread, "excludeTurns": True})
            page = wire.call("thread/turns/list", {"threadId": wire.thread, "itemsView": "full"})
            shown = [item for turn in page["data"][::-1] for item in turn["items"]]
            wire.say(f"prompt-{number}: calls=0")
        finally:
            wire.close()
    except agents.Stuck as stuck:
        trouble = str(stuck)
    asked = [a for a in agent.stub.log[before:] if a.prompt == number and a.tools]
    good = next((a for a in asked if not a.refused), None)
    if good is None:
        return (f"refused: {asked[0].refused}" if asked else f"nothing sent: {trouble}"), shown
    return "accepted " + "/".join(str(len(good.held()[kind])) for kind in KINDS), shown


def tried(agent, kept_home, edit, beside):
    """The outcome of one trial."""
    restore(agent, kept_home)
    path = agent.session()
    old, new = edited(agent, path, edit, beside)
    first, _ = resume(agent, path, 8)
    second, shown = resume(agent, path, 9)
    forget(agent, lambda db: delete(thread_of(path), db, old, new))
    _, afresh = resume(agent, path, 10)
    if first.startswith("accepted") != second.startswith("accepted"):
        first += f", then {second}"
    # Each resume adds a prompt and what came of it, after the list was asked for.
    added = [item for item in afresh if "prompt-9:" in str(item)]
    whole = afresh[: afresh.index(added[0])] if added else afresh
    if plainly(shown) == plainly(whole):
        return f"{first}; shown as it is"
    return f"{first}; shown otherwise: {len(shown)} items of {len(whole)}"


def edited(agent, path, edit, beside):
    """Edits a rollout and what is kept beside it; the lines before and after."""
    old = lines_of(path)
    new = list(old)
    edit(new)
    path.write_bytes(b"".join(new))
    forget(agent, lambda db: beside(thread_of(path), db, old, new))
    return old, new


def forked(agent, kept_home, edit, beside):
    """What comes of a fork of the thread: its history is that of the edited rollout, up to a byte offset that it keeps."""
    restore(agent, kept_home)
    path = agent.session()
    with agent.live(resume=True) as wire:
        wire.thread = wire.call("thread/fork", {"threadId": wire.thread})["thread"]["id"]
        wire.say("prompt-4: calls=0")
    child = next(agent.home.glob(f".codex/sessions/**/*{wire.thread}.jsonl"))
    edited(agent, path, edit, beside)
    return resume(agent, child, 9)[0].partition(" /")[0]  # the rest is a path


def mended(tailor, agent, kept_home):
    """What is wrong with a thread that `tailor fix` shortens, and with a fork that was made before: empty if nothing is. Both
    go on, and the API gets the shortened texts; `tailor undo` gives the lines back."""
    restore(agent, kept_home)
    path, vault = agent.session(), agent.home / "vault"
    with agent.live(resume=True) as wire:
        wire.thread = wire.call("thread/fork", {"threadId": wire.thread})["thread"]["id"]
        wire.say("prompt-4: calls=0")
    child = next(agent.home.glob(f".codex/sessions/**/*{wire.thread}.jsonl"))
    before = lines_of(path)
    run = lambda command, *rest: reads.Told(tailor, command, "--settle", "0", "--vault", vault, *rest, path)
    told = run("fix", "--json", "--cut-results", "2000")
    if [file["outcome"] for file in told.lines() if file["type"] == "file"] != ["fixed"]:
        return f"fix exits {told.code}: {told.out[-300:]} {told.error[-300:]}"
    after, wrong = lines_of(path), []
    if list(map(len, after)) != list(map(len, before)):
        wrong.append("lines have moved")
    for what, thread, number, wanted in (("thread", path, 8, "accepted 4/3/5/5"), ("fork", child, 9, "accepted 5/4/5/5")):
        came = resume(agent, thread, number)[0].partition(" /")[0]
        sent = json.dumps(agent.stub.log[-1].body).count("[tailor: ")
        wrong += [] if (came, sent) == (wanted, 5) else [f"{what}: {came}, {sent} sent cut, not {wanted}, 5"]
    told = run("undo")
    wrong += [] if told.code == 0 and lines_of(path)[: len(before)] == before else [f"undo exits {told.code}: {told.error[-300:]}"]
    return "; ".join(wrong)


def undoubled(tailor, agent, kept_home):
    """What is wrong with a thread in which a result stands twice, with one number, once `tailor fix` has put spaces in the
    place of the second: empty if nothing is. Codex, which could not go on before, goes on, also with what it kept of the
    thread while the line was there; `tailor undo` gives the line back."""
    restore(agent, kept_home)
    path, vault = agent.session(), agent.home / "vault"
    edited(agent, path, double, delete)
    wrong = []
    refused, _ = resume(agent, path, 7)
    wrong += [] if refused.startswith("refused: Duplicate item found") else [f"twice: {refused}"]
    before = lines_of(path)
    run = lambda command: reads.Told(tailor, command, "--settle", "0", "--vault", vault, path)
    told = run("fix")
    after = lines_of(path)
    if told.code or len(after) != len(before) - 1 or sum(map(len, after)) != sum(map(len, before)):
        return f"fix exits {told.code}: {told.out[-300:]} {told.error[-300:]}"
    came, _ = resume(agent, path, 8)
    _, shown = resume(agent, path, 9)
    wrong += [] if came == "accepted 5/3/5/5" else [f"mended: {came}"]
    forget(agent, lambda db: delete(thread_of(path), db, before, after))
    _, afresh = resume(agent, path, 10)
    wrong += [] if plainly(shown) == plainly(afresh)[: len(shown)] else [f"{len(shown)} items are shown, not {len(afresh)}"]
    told = run("undo")
    wrong += [] if told.code == 0 and lines_of(path)[: len(before)] == before else [f"undo exits {told.code}: {told.error[-300:]}"]
    return "; ".join(wrong)


def while_loaded(agent, kept_home, edit, beside):
    """A Codex that has the thread open goes on with what it has in memory; the next one gets what is in the rollout."""
    restore(agent, kept_home)
    path = agent.session()
    with agent.live(resume=True) as wire:
        wire.say("prompt-7: calls=0")
        edited(agent, path, edit, beside)
        wire.say("prompt-8: calls=0")
        held = agent.stub.log[-1].held()
    outcome, shown = resume(agent, path, 9)
    return f"held {'/'.join(str(len(held[kind])) for kind in KINDS)}, then {outcome}; {len(shown)} items shown"


def forget(agent, write):
    """Writes to what Codex keeps beside the rollout."""
    db = sqlite3.connect(agent.home / HISTORY, isolation_level=None)
    try:
        db.execute("BEGIN IMMEDIATE")
        write(db)
        db.execute("COMMIT")
    finally:
        db.close()


def plainly(items):
    return [(item["type"], item.get("aggregatedOutput"), item.get("text"), str(item.get("content"))) for item in items]


def restore(agent, kept_home):
    shutil.rmtree(agent.home)
    shutil.copytree(kept_home, agent.home, symlinks=True)


QUICK = (
    "result shortened, spaces after it",
    "result shortened for people too, history left",
    "result shortened for people too, history deleted",
    "fork, result shortened, spaces after it",
)

# (name, the edit, what is done beside it, what comes of it)
TRIALS = [
    ("untouched", lambda lines: None, leave, "accepted 4/3/5/5; shown as it is"),
    ("untouched, history deleted", lambda lines: None, delete, "accepted 4/3/5/5; shown as it is"),
    ("result shortened, spaces after it", padded(cut), leave, "accepted 4/3/5/4; shown as it is"),
    ("result shortened, history left", cut, leave, "accepted 4/3/5/4; shown otherwise: 14 items of 16"),
    ("result shortened, history deleted", cut, delete, "accepted 4/3/5/4; shown as it is"),
    ("result shortened, offsets moved", cut, move, "accepted 4/3/5/4; shown as it is"),
    ("result shortened for people too, history left", cut_shown, leave, "accepted 4/3/5/4; shown otherwise: 14 items of 16"),
    ("result shortened for people too, history deleted", cut_shown, delete, "accepted 4/3/5/4; shown as it is"),
    ("result shortened for people too, offsets moved", cut_shown, move, "accepted 4/3/5/4; shown otherwise: 16 items of 16"),
    ("result gone, history left", take_out, leave, "accepted 4/3/5/4; shown otherwise: 14 items of 16"),
    ("result gone, history deleted", take_out, delete, "accepted 4/3/5/4; shown as it is"),
    ("result gone, spaces in its place", padded(take_out), leave, "accepted 4/3/5/4; shown as it is"),
    ("result twice, history left", double, leave, "refused: Duplicate item found"),
    ("result twice, history deleted", double, delete, "refused: Duplicate item found"),
    ("result twice, taken out, history deleted", undouble, delete, "accepted 4/3/5/5; shown as it is"),
    ("result answered, history deleted", answer, delete, "accepted 4/3/5/5; shown as it is"),
    ("result answered without a number of its own, history deleted", answer_without_number, delete, "accepted 4/3/5/5; shown as it is"),
]
FORKED = [
    ("fork, untouched", lambda lines: None, leave, "accepted 5/4/5/5"),
    ("fork, result shortened, spaces after it", padded(cut), leave, "accepted 5/4/5/4"),
    ("fork, result gone, spaces in its place", padded(take_out), leave, "accepted 5/4/5/4"),
    ("fork, result shortened, history deleted", cut, delete, "nothing sent"),
]
LOADED = [
    ("while it is loaded, result shortened, spaces after it", padded(cut), leave, "held 5/4/5/5, then accepted 6/5/5/4; 18 items shown"),
    ("while it is loaded, result shortened, history deleted", cut, delete, "held 5/4/5/5, then accepted 6/5/5/4; 18 items shown"),
]
