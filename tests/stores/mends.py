"""`tailor fix` over a session of a real store, which its owner then resumes, and `tailor undo`."""

import json
import shutil

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
