"""`tailor fix` over a session of a real store, which its owner then resumes, and `tailor undo`."""

import json
import os
import shutil
import signal
import subprocess
import time

import bench
import reads

MARKER = "[tailor: "
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
    fix = lambda: reads.Told(tailor, "fix", "--json", "--settle", "0", "--vault", vault, path)
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
    ways = ["--settle", "1", "--set", 'stores.mode="enforce"', "--set", "result_chars_max=8000"]
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
