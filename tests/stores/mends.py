"""`tailor fix` over sessions of a real store, which their owner then resumes, and `tailor undo`."""

import json
import os
import shutil
import signal
import subprocess
import time

import bench
import reads
import rows

MARKER = "[tailor: "
# A limit that somebody has chosen: what OpenClaw has shortened itself would stay with the default.
CUT = ("--cut-results", "30000")
RESUMED = {"opencode": "accepted 4/3/5/5, 1 image", "openclaw": "accepted 4/3/5/5, 1 image"}
GONE_ON = {"opencode": "accepted 5/4/5/5, 1 image", "openclaw": "accepted 5/4/5/5"}  # OpenClaw leaves old images out


def mended(tailor, tried, name, running):
    """What is wrong with a session that was fixed, and resumed by its owner: empty if nothing is."""
    # OpenClaw finds a session by its key; that of a copy is the copy's id.
    (session,) = tried.trials.copies(tried.agent, tried.sessions, [("mended", "plain", None, None)])
    bench.settle(tried.agent.path)
    path = f"{tried.agent.path}#{session}"
    vault = tried.folder / "vault"
    shutil.rmtree(vault, ignore_errors=True)
    export = lambda: reads.Told(tailor, "export", path).out
    fix = lambda: reads.Told(tailor, "fix", *CUT, "--json", "--settle", "0", "--vault", vault, path)
    before = export()
    if not running:
        told = fix()
    with tried.agent.live(session) as wire:
        if running:
            tried.resume(wire, session, 8)  # so that the program has the session in memory
            before = export()
            told = fix()
        if [file["outcome"] for file in told.lines() if file["type"] == "file"] != ["fixed"]:
            return f"fix exits {told.code}: {told.out[-300:]} {told.error[-300:]}"
        cut = export().count(MARKER.encode())
        came = tried.resume(wire, session)
    wanted = (GONE_ON if running else RESUMED)[name]
    sent = json.dumps(tried.stub.log[-1].body["messages"]).count(MARKER)
    wrong = [] if came == wanted else [f"{came}, not {wanted}"]
    wrong += [] if cut and sent else [f"{cut} texts were cut, and {sent} were sent cut"]
    told = reads.Told(tailor, "undo", "--settle", "0", "--vault", vault, path)
    after = export()
    wrong += [] if told.code == 0 else [f"undo exits {told.code}: {told.error[-300:]}"]
    wrong += [] if MARKER.encode() not in after and all(line in after for line in before.splitlines()[1:]) else ["undo does not give the rows back"]
    return "; ".join(wrong)


# --- with the owner stopped ---

# What becomes of damage that Tailor mends: of the result that was lost, all else is sent. Of a part of OpenCode's, an event knows
# what it was; without events it becomes an error, or a text.
DAMAGES = {
    "openclaw": {
        "dangling parentId": "accepted 4/3/5/4, 1 image",
        "length of a zstd row too large": "accepted 4/3/5/5, 1 image",
        "length of a zstd row too small": "accepted 4/3/5/5, 1 image",
        "row that is no JSON": "accepted 4/3/5/4, 1 image",
        "tool name ba sh<x>": "accepted 4/3/5/5, 1 image",
        "branched, dangling parentId": "accepted 3/2/3/2",
        "leaf is an older event": "accepted 4/3/5/5, 1 image",
        "identity of a result is gone": "accepted 4/3/5/5, 1 image",
        "compacted, dangling parentId": "accepted 5/3/2/1",
        "reset, dangling parentId": "accepted 2/1/1/0",
    },
    "opencode": {
        "completed without output": "accepted 4/3/5/5, 1 image",
        "completed without output, no events": "accepted 4/3/5/4, 1 image",
        "part that is no JSON": "accepted 4/3/5/5, 1 image",
        "part that is no JSON, no events": "accepted 4/3/4/4, 1 image",
        "tool name ba sh<x>": "accepted 4/3/5/5, 1 image",
        "an image that is too large": "accepted 4/3/5/5",
    },
}
OPTIONS = {"an image that is too large": ("--image-max-size", "1", "--allow", "S4")}
# What can be damaged once more in a session that was mended.
AGAIN = {"openclaw": "row that is no JSON", "opencode": "completed without output"}
# Told apart by readers with caches, so never as before.
ROTATED = ("transcript_rewrite_watermarks", "session_windows")


def chosen(name, trials, sessions):
    """[(damage, which session, the edit, what is sent once it is mended)]"""
    known = {trial: (base, edit) for trial, base, edit, _ in trials.TRIALS}
    if name == "openclaw":
        known |= {f"{base}, dangling parentId": (base, trials.dangling(tag)) for base, tag in trials.HANGS.items()}
    else:
        alone = ("completed without output", "part that is no JSON")
        known |= {"an image that is too large": ("plain", trials.nothing)}
        known |= {f"{trial}, no events": ("plain", without_events(trials, known[trial][1])) for trial in alone}
    made = [(damage, *known[damage], wanted) for damage, wanted in DAMAGES[name].items()]
    return [trial for trial in made if trial[1] in sessions]


def without_events(trials, edit):
    def both(db, s):
        edit(db, s)
        trials.all_events(db, s)

    return both


def whole(path):
    """All rows but the marks that always change. In which order they lie in the file is SQLite's own."""
    return {table: sorted(held, key=repr) for table, held in rows.dump(path).items() if table not in ROTATED}


def outcomes(told):
    return [file["outcome"] for file in told.lines() if file["type"] == "file"]


def stopped(tailor, tried, name):
    """[(damage, what is wrong)]: each is mended, taken back byte for byte, and mended again; then the owner resumes all of them."""
    tried.restore()
    cases = chosen(name, tried.trials, tried.sessions)
    again = next(edit for damage, _, edit, _ in cases if damage == AGAIN[name])
    made = tried.trials.copies(tried.agent, tried.sessions, cases)
    bench.settle(tried.agent.path)
    path, vault, wrong = tried.agent.path, tried.folder / "vault", {damage: [] for damage, *_ in cases}
    shutil.rmtree(vault, ignore_errors=True)
    run = lambda command, session, *more: reads.Told(tailor, command, "--settle", "0", "--vault", vault, *more, f"{path}#{session}")
    for (damage, _, edit, _), session in zip(cases, made):
        tried.edit(edit, session)
        before = whole(path)
        fix = lambda: run("fix", session, "--json", *OPTIONS.get(damage, ()))
        told = fix()
        if outcomes(told) != ["fixed"]:
            wrong[damage].append(f"fix exits {told.code}: {told.out[-300:]} {told.error[-300:]}")
            continue
        told = run("undo", session)
        after = whole(path)
        other = [table for table in before if before[table] != after.get(table)]
        if told.code or other:
            wrong[damage].append(f"undo exits {told.code}, and other rows are in {other}: {told.error[-300:]}")
        if outcomes(fix()) != ["fixed"]:
            wrong[damage].append("no second fix")
        left = [finding["code"] for finding in reads.findings(tailor, path, session) if finding["severity"] == "error"]
        wrong[damage] += [f"errors are left: {left}"] if left else []
    wrong["the owner's own look"] = [accepted(tried, name, made)]
    bench.settle(path)
    with tried.agent.live(made[0]) as wire:
        for (damage, _, _, wanted), session in zip(cases, made):
            came = tried.resume(wire, session)
            wrong[damage] += [f"{came}, not {wanted}"] if came != wanted else []
            told = run("fix", session, "--json")
            if outcomes(told) not in (["clean"], ["findings"], ["fixed"], ["deferred"]):
                wrong[damage].append(f"while it runs, fix exits {told.code}: {told.error[-300:]}")
        wrong["while the owner runs"] = [waits(tried, run, again, made[0])]
    wrong["a fix that is killed"] = [killed(tailor, tried, made[0], vault)]
    return [(damage, "; ".join(filter(None, all))) for damage, all in wrong.items()]


def accepted(tried, name, sessions):
    """What the owner says of a store that was mended."""
    if name == "opencode":
        for session in sessions:
            told = tried.agent.run("export", session)
            if told[0] or "Session not found" in told[1]:
                return f"opencode export {session} exits {told[0]}: {told[1][-200:]}"
        return ""
    code, said = tried.agent.run("doctor", "--non-interactive")
    return f"openclaw doctor exits {code}: {said[-300:]}" if code else ""


def own(path, session):
    """The rows of a session."""
    db = rows.connect(path, read_only=True)
    try:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        table, key = ("part", "id") if "part" in tables else ("transcript_events", "seq")
        return [tuple(row) for row in db.execute(f"SELECT * FROM {table} WHERE session_id=? ORDER BY {key}", (session,))]
    finally:
        db.close()


def fixed(tailor, path, vault):
    """Repairs all sessions of a database with its owner stopped."""
    subprocess.run([tailor, "fix", *CUT, "--settle", "0", "--vault", vault, path], capture_output=True, check=True, timeout=60)


def waits(tried, run, edit, session):
    """What needs the owner stopped is put off, and nothing is written."""
    tried.edit(edit, session)
    look = lambda: own(tried.agent.path, session)
    was = look()
    told = run("fix", session, "--json")
    if outcomes(told) != ["deferred"] or look() != was:
        return f"{outcomes(told)}, rows {'as they were' if look() == was else 'changed'}: {told.out[-300:]}"
    return ""


def killed(tailor, tried, session, vault):
    """kill -9 in the middle leaves the old rows or the new ones, and no lock that keeps the owner from starting."""
    path = tried.agent.path
    bench.settle(path)
    old, seen = own(path, session), []
    for attempt in range(8):
        process = subprocess.Popen([tailor, "fix", *CUT, "--settle", "0", "--vault", vault, f"{path}#{session}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.01 * attempt)
        process.kill()
        process.wait()
        seen.append(own(path, session))
    told = reads.Told(tailor, "fix", *CUT, "--settle", "0", "--vault", vault, f"{path}#{session}")
    new = own(path, session)
    between = [held for held in seen if held not in (old, new)]
    with tried.agent.live(session):
        pass
    if old == new:
        return f"nothing was mended: {told.out[-300:]} {told.error[-300:]}"
    return f"{len(between)} of {len(seen)} times the rows were neither the old nor the new ones" if between else ""


def pruned(tailor, tried):
    """What is wrong with a store of OpenCode's whose superseded events were taken out: empty if nothing is. What stays is what the
    statement of `superseded` leaves, undo gives every row back, and OpenCode goes on with the smaller file."""
    (session,) = tried.trials.copies(tried.agent, tried.sessions, [("pruned", "plain", None, None)])
    bench.settle(tried.agent.path)
    path, vault, wrong = tried.agent.path, tried.folder / "vault", []
    shutil.rmtree(vault, ignore_errors=True)
    prune = lambda *more: reads.Told(tailor, "prune", "--json", "--vault", vault, *more, path)
    ending = lambda told: [line["outcome"] for line in told.lines()]
    before, long = whole(path), path.stat().st_size
    copy = tried.folder / "by-hand.db"
    copy.unlink(missing_ok=True)
    shutil.copyfile(path, copy)
    with rows.writing(copy) as db:
        for (one,) in db.execute("SELECT id FROM session").fetchall():
            tried.trials.superseded(db, one)
    wanted = whole(copy)
    told = prune()
    if ending(told) != ["removed"]:
        return f"prune exits {told.code}: {told.out[-300:]} {told.error[-300:]}"
    wrong += [] if whole(path) == wanted else ["other rows are left than by hand"]
    wrong += [] if ending(prune()) == ["clean"] else ["a second prune finds something"]
    told = reads.Told(tailor, "undo", "--settle", "0", "--vault", vault, path)
    wrong += [] if told.code == 0 and whole(path) == before else [f"undo exits {told.code}, or other rows are there: {told.error[-300:]}"]
    told = prune("--vacuum")
    small = path.stat().st_size
    wrong += [] if ending(told) == ["removed"] and small < long else [f"{small} bytes, not fewer than {long}: {told.out[-300:]}"]
    wrong += [accepted(tried, "opencode", [session])]
    with tried.agent.live(session) as wire:
        came = tried.resume(wire, session)
        wrong += [] if came == RESUMED["opencode"] else [f"{came}, not {RESUMED['opencode']}"]
        told = prune()
        wrong += [] if ending(told) == ["deferred"] else [f"while it runs: {told.out[-300:]}"]
    return "; ".join(filter(None, wrong))


LIVE_TURNS = {True: 2, False: 6}  # quick, or not
PATIENCE = 60  # seconds


def watched(tailor, tried, quick):
    """What is wrong with a session that its owner works on while `tailor watch` mends it: empty if nothing is. No turn fails, what
    was cut is sent cut, and `tailor undo` gives the texts back."""
    (session,) = tried.trials.copies(tried.agent, tried.sessions, [("watched", "plain", None, None)])
    bench.settle(tried.agent.path)
    path, home = f"{tried.agent.path}#{session}", tried.folder / "watch"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    vault, turns = home / "vault", LIVE_TURNS[quick]
    export = lambda: reads.Told(tailor, "export", path).out
    cuts = lambda: sum(MARKER.encode() in line for line in export().splitlines())
    ways = ["--mode", "enforce", "--settle", "1", "--set", "result_chars_max=8000"]
    argv = [tailor, "watch", tried.agent.path, *ways, "--vault", vault, "--socket", home / "socket"]
    before, asked, wrong = export(), len(tried.stub.log), []
    log = (home / "log").open("ab")
    daemon = subprocess.Popen(list(map(str, argv)), stderr=log, env={**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")})
    try:
        with tried.agent.live(session) as wire:
            for turn in range(turns):
                tried.trials.say(wire, session, f"prompt-{11 + turn}: calls=1 chars=46000")
                # Now and then the next turn begins while Tailor still waits.
                wanted = results(before) + turn
                if turn % 2 == 1 and not until(lambda: cuts() >= wanted):
                    wrong.append(f"{cuts()} of {wanted} results were cut after turn {turn + 1}")
            came = tried.resume(wire, session, 8)
            there = cuts()
            sent = json.dumps(tried.stub.log[-1].body["messages"]).count(MARKER)
    finally:
        daemon.send_signal(signal.SIGTERM)
        code = daemon.wait(PATIENCE)
        log.close()
    refused = [request.refused for request in tried.stub.log[asked:] if request.refused]
    held = f"accepted {4 + turns}/"
    wrong += [f"refused: {refused[0]}"] if refused else []
    wrong += [] if came.startswith(held) else [f"{came}, not {held}…"]
    wrong += [] if 0 < sent <= there else [f"{there} results are cut, and {sent} were sent cut"]
    wrong += [] if code == 0 else [f"the daemon exits {code}: {(home / 'log').read_text()[-300:]}"]
    runs = 0
    while cuts() and runs < 4 * turns + 4:  # one for each run of the daemon's
        runs += 1
        told = reads.Told(tailor, "undo", "--settle", "0", "--vault", vault, path)
    after = export()
    whole = not cuts() and all(line in after for line in before.splitlines()[1:])
    return "; ".join(wrong + ([] if whole else [f"undo, {runs} times, does not give the rows back: {told.error[-300:]}"]))


def results(lines):
    """How many results are long enough to be cut."""
    return sum(1 for line in lines.splitlines() if len(line) > 20_000 and b"result-" in line)


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True
