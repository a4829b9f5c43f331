"""What integrations/ promises, tried with the real agents: `tests/agents/run --hooks TAILOR`.

A session that lost a result is resumed with the hooks installed. The agent has to tell its user so; nothing that was in
the file may change while the agent lives, not even when it says that the session has ended; and the repair has to be there
soon after the process has gone, where Tailor repairs sessions of this agent.
"""

import os
import re
import subprocess
import time
from pathlib import Path

import damage

GOOD = "as promised"
AGENTS = ("claude", "codex", "pi")
SETTLED = 8  # seconds after which a file may be changed that nobody uses
REPAIRED = 45  # seconds after the end of the process


def run(bench):
    bench.fresh()
    bench.record()
    broken, said = prepare(bench)
    yield "install", GOOD if said is None else "failed", said or ""
    with bench.agent.live(resume=True) as wire:
        wire.say("prompt-9: calls=1 chars=100")
        heard = "".join(wire.heard)
    # Where messages come back, all of it is repaired.
    advice = r"tailor explain \1" if bench.agent.only_read else r"run: tailor fix (--select \1 )?"
    warned = re.search(rf"this session is broken \((\w+)[\w, ]*\)\. .*{advice}", heard)
    yield "start: says what is wrong", GOOD if warned else "not warned", heard[:3000]
    bodies = [str(asked.body) for asked in bench.stub.log if asked.prompt == 9]
    skilled = any("read-cut-text" in body and "repair-session" in body for body in bodies)
    yield "skill: the model is told", GOOD if skilled else "not in the request", ""
    if bench.agent.only_read:
        time.sleep(SETTLED)
        yield "end: changes nothing", GOOD if bench.path.read_bytes().startswith(broken) else "changed", ""
        return
    yield "end: repairs", *repaired(bench, broken)

    broken, _ = prepare(bench)
    with bench.agent.live(resume=True) as wire:
        wire.say("prompt-9: calls=1 chars=100")
        yield "end: leaves alone who lives on", *lives(bench, wire, broken)
    yield "end: repairs who lived on", *repaired(bench, broken)


def prepare(bench):
    """A broken session in a home with the integration: its bytes, and why it could not be installed."""
    # The agent that was resumed last has ended too, and left a repair behind: of a session that is broken again it would be one.
    while repairs(bench.path.name):
        time.sleep(0.1)
    bench.restore()
    said = install(bench)
    bench.path.write_bytes(damage.damaged(bench.path.read_bytes(), bench.agent, "lost"))
    bench.age()
    return bench.path.read_bytes(), said


def repairs(name):
    """Whether a repair of this session waits for its agent's end, or is at work."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "--after" in words and any(word.endswith(name) for word in words):
            return True
    return False


def install(bench):
    """Installs the integration in the agent's home, as its user does; what was said if that failed."""
    folder = bench.agent.home / "bin"
    folder.mkdir(exist_ok=True)
    os.symlink(bench.tailor, folder / "tailor")
    argv = bench.agent.integration
    done = subprocess.run(argv, cwd=bench.agent.work, env=bench.agent.env(), capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        return done.stdout + done.stderr
    bench.agent.trust()
    return None


def lives(bench, wire, broken):
    """Has the agent end the session and live on with another one."""
    wire.leave()
    for _ in range(SETTLED):
        time.sleep(1)
        if not bench.path.read_bytes().startswith(broken):
            return "changed while the agent lived", ""
    return (GOOD if wire.process.poll() is None else "the agent had ended"), ""


def repaired(bench, broken):
    since = time.monotonic()
    while time.monotonic() - since < REPAIRED:
        if not bench.path.read_bytes().startswith(broken):
            seconds = time.monotonic() - since
            outcome, _, detail = bench.resume(10)
            return GOOD if outcome.startswith("accepted") else outcome, f"after {seconds:.1f} s\n{detail}"
        time.sleep(0.2)
    said = subprocess.run([bench.tailor, "fix", bench.path], capture_output=True, text=True, env=bench.agent.env(), timeout=60, check=False)
    return "not repaired", said.stdout + said.stderr
