"""What is tried with each agent, and what came of it.

Offline: a session of three prompts is copied, damaged or trimmed, and resumed by a new process of its agent. Live:
`tailor watch` mends while the agent works, and the session is resumed afterwards. What the stub then gets is the result:

    accepted 3/3/7/7 smaller      three prompts, three replies, seven calls and seven results are in the request
    refused: …                    the API does not take the session any more
    nothing sent                  the agent asked the model nothing
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import agents
import damage
import rules
from stub import PROMPT, Asked, Stub

KINDS = ("prompts", "replies", "calls", "results")
LONG_AGO = 8 * 24 * 3600
WIDE = 2_000_000  # tokens: nothing is too long, but where that is tried
BOUND = "claude-opus-5-5"  # binds thinking to what comes before it
SUMMARISE = "cat >/dev/null; echo Files were listed."
CUT = 8000  # characters of a result that stay, where something is to be cut of every agent
TRIMS = {
    "default": [],
    **{name: [f"--profile={name}"] for name in ("chatcli", "chatcli-head", "agent-max", "openclaw-5057", "openclaw-10915")},
}
READERS = ("Read", "read", "read_file")
REASONING = ("lost", "glue", "tornappend")  # damages that break the chain before signed thinking


class Bench:
    """One agent, one stub and one folder; `run` gives (case, outcome, detail) one after the other."""

    def __init__(self, name, driver, install, folder, tailor, quick):
        self.name, self.driver, self.install, self.tailor, self.quick = name, driver, install, tailor, quick
        self.folder = Path(folder)
        self.stub = Stub(**{"window": WIDE, **driver.settings})
        self.agent = None

    def run(self):
        try:
            yield from self.offline()
            if self.driver.keeps_thinking and not self.quick:
                yield from self.bound()
            yield from self.live()
        finally:
            self.stub.close()

    # --- sessions ---

    def fresh(self, model=None):
        """The agent in an empty home."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.stub.log.clear()
        self.agent = self.driver(self.install, self.folder, self.stub, model)

    def record(self, orders=""):
        """Has the agent write a session of three prompts and keeps a copy of its home."""
        with self.agent.live() as wire:
            for number, calls in ((1, 2), (2, 2), (3, 3)):
                wire.say(f"prompt-{number}: calls={calls} chars={self.agent.chars}{orders}")
        if not any(kind == "result" and len(text) > CUT for kind, text in self.stub.log[-1].parts):
            raise agents.Stuck("the agent shortens results itself, so that there is nothing to cut")
        self.whole = self.stub.log[-1].held()
        self.whole["replies"] = {"1", "2", "3"}
        self.path = self.agent.session()
        shutil.copytree(self.agent.home, self.folder / "kept", symlinks=True)

    def restore(self):
        shutil.rmtree(self.agent.home)
        shutil.copytree(self.folder / "kept", self.agent.home, symlinks=True)
        shutil.rmtree(self.folder / "vault", ignore_errors=True)
        self.age()

    def age(self):
        if self.agent.aged:
            then = time.time() - LONG_AGO
            os.utime(self.path, (then, then))

    def tell(self, *arguments):
        """Runs Tailor on the session; what it said."""
        command, *rest = arguments
        argv = [self.tailor, command, "--settle=0", f"--vault={self.folder / 'vault'}", *rest, str(self.path)]
        said = ran(argv, env=self.agent.env())
        return f"tailor {command} exits {said.returncode}: {(said.stdout + said.stderr).strip()[-600:]}"

    def resume(self, number=9):
        """Has a new process go on, and says what the API got: (outcome, size, detail)."""
        before = len(self.stub.log)
        said = self.agent.once(f"prompt-{number}: calls=0", resume=True)
        asked = [a for a in self.stub.log[before:] if a.prompt == number and a.tools]
        good = next((a for a in asked if not a.refused), None)
        if good is None:
            refused = asked[0].refused if asked else None
            return (f"refused: {plain(refused)}" if refused else "nothing sent"), 0, refused or said
        held = good.held()
        counts = "/".join(str(len(held[kind] & self.whole[kind])) for kind in KINDS)
        return f"accepted {counts}", good.size, ""

    # --- offline ---

    def offline(self):
        self.fresh()
        self.record()
        self.restore()
        outcome, self.size, detail = self.resume()
        self.tokens = rules.tokens(self.stub.log[-1].body)
        yield "untouched", outcome, detail
        if self.driver.same_program:
            return
        few = self.quick or self.driver.slow
        for name in damage.QUICK if few else damage.DAMAGES:
            yield from self.damaged(name, {"raw": None, "fix": []})
        if self.driver.aged and not few and os.geteuid() == 0:
            yield self.ordinary_user("dup")
        for name, arguments in list(TRIMS.items())[: 1 if few else None]:
            yield self.trimmed(f"fix {name}", ["fix", *arguments])
        if not self.quick:
            for level in "123":
                yield self.trimmed(f"recover {level}", ["recover", f"--level={level}"])
            yield self.trimmed("compact", ["compact", f"--with={SUMMARISE}"])
            yield from self.too_long()
        yield self.undone()
        if self.driver.reads:
            yield self.read_again()
        if self.driver.head and not self.quick:
            yield self.stale_head()

    def damaged(self, name, ways, prefix=""):
        """The damage in each way: left as it is, or mended with these arguments."""
        raw = None
        for way, arguments in ways.items():
            self.restore()
            case = f"{prefix}{way} {name}"
            try:
                self.path.write_bytes(damage.damaged(self.path.read_bytes(), self.agent, name))
            except damage.NotHere as missing:
                yield case, "not possible", str(missing)
                return
            self.age()
            told = "" if arguments is None else self.tell("fix", *arguments)
            outcome, _, detail = self.resume()
            if way == "raw":
                raw = outcome
            elif raw is not None and score(outcome) < score(raw):
                outcome += ", worse than unfixed"
            yield case, outcome, f"{detail}\n{told}"

    def ordinary_user(self, name):
        """As somebody who may not see what the processes of others have open, on a file that was just written."""
        self.restore()
        nobody = 65534
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            tailor = shutil.copy(self.tailor, folder)
            home = Path(folder) / "home"
            home.mkdir()
            copy = home / self.path.name
            copy.write_bytes(damage.damaged(self.path.read_bytes(), self.agent, name))
            for path in (home, copy):
                os.chown(path, nobody, nobody)
            argv = [tailor, "fix", "--settle=0", f"--vault={home / 'vault'}", copy]
            said = ran(argv, user=nobody, group=nobody, extra_groups=[], env={"HOME": str(home)})
            self.path.write_bytes(copy.read_bytes())
        outcome, _, detail = self.resume()
        return f"fix {name} as an ordinary user", outcome, f"{detail}\n{said.stdout}{said.stderr}"

    def trimmed(self, case, arguments):
        self.restore()
        told = self.tell(*arguments)
        outcome, size, detail = self.resume()
        return case, outcome + self.relation(size), f"{detail}\n{told}"

    def relation(self, size):
        if not size:
            return ""
        return " smaller" if size < self.size * 0.97 else " larger" if size > self.size * 1.03 else " same"

    def too_long(self):
        """The window is smaller than the session; `recover` learns that from the API's error."""
        self.restore()
        self.stub.settings["window"] = self.tokens * 3 // 4
        outcome, _, error = self.resume()
        yield "too long", outcome, error
        told = ""
        if "refused" in outcome:
            self.restore()
            told = self.tell("recover", f"--error={error}")
            outcome, size, error = self.resume()
            yield "too long, recover", outcome + self.relation(size), f"{error}\n{told}"
        self.stub.settings["window"] = WIDE

    def undone(self):
        self.restore()
        was = self.path.read_bytes()
        told = self.tell("fix", f"--cut-results={CUT}")
        cut = self.path.read_bytes() != was
        told += "\n" + self.tell("undo") if cut else ""
        back = "as it was" if self.path.read_bytes() == was else "NOT as it was"
        outcome, size, detail = self.resume()
        return "undo", f"{'cut' if cut else 'not cut'}, {back}, {outcome}{self.relation(size)}", f"{detail}\n{told}"

    def read_again(self):
        """The model reads a file three times, and each time it holds something else; of that, only the last stays."""
        self.fresh()
        rows = self.agent.work / "rows.txt"
        usual, self.stub.answer = self.stub.answer, reading(rows)
        try:
            with self.agent.live() as wire:
                for number in (1, 2, 3):
                    rows.write_text(f"edition {number} of the rows\n" * 200)
                    wire.say(f"prompt-{number}:")
        finally:
            self.stub.answer = usual
        self.whole = {**self.stub.log[-1].held(), "replies": {"1", "2", "3"}}
        self.path = self.agent.session()
        self.age()
        was = self.path.read_bytes()
        told = self.tell("fix", "--select=S24", "--allow=S24")
        told += "\n" + self.tell("undo")
        back = "as it was" if self.path.read_bytes() == was else "NOT as it was"
        self.age()
        told += "\n" + self.tell("fix", "--select=S24", "--allow=S24")
        outcome, _, detail = self.resume()
        shown = {n for kind, text in self.stub.log[-1].parts if kind == "result" for n in re.findall(r"edition (\d)", text)}
        return "read again", f"{outcome}, editions {''.join(sorted(shown))} are sent, undone {back}", f"{detail}\n{told}"

    def stale_head(self):
        """Claude Code's resume-head.jsonl: a repair moves what its offsets point at, and costs no more than a whole load."""
        self.fresh()
        self.agent.more_env = self.driver.head
        with self.agent.live() as wire:
            for number in range(1, 6):
                wire.say(f"prompt-{number}: calls=8 rounds=2 chars={self.agent.chars}")
            wire.compact()
        self.path = self.agent.session()
        self.path.write_text("".join(map(plain_boundary, self.path.read_text().splitlines(True))))
        self.agent.once("prompt-6: calls=0", resume=self.path.stem)
        heads = list(self.path.parent.glob("*/resume-head.jsonl"))
        if not heads:
            return "stale head", "none was written", ""
        was, kept = self.path.read_bytes(), heads[0].read_bytes()
        told = self.tell("fix")
        fixed, head = self.path.read_bytes(), heads[0].read_bytes()
        asked = []
        for stale in (True, False):
            self.path.write_bytes(fixed)
            if not stale:
                heads[0].unlink()
            self.agent.once("prompt-7: calls=0", resume=self.path.stem)
            last = next(a for a in reversed(self.stub.log) if a.prompt == 7 and a.tools)
            asked.append((last.refused, [part for part in last.parts if "prompt-7" not in part[1]]))
        words = ("cut" if fixed != was else "not cut", "head as it was" if head == kept else "head CHANGED")
        same = "same request as without it" if asked[0] == asked[1] else "ANOTHER request than without it"
        return "stale head", ", ".join((*words, same, "refused" if asked[0][0] else "accepted")), told

    # --- thinking that is bound to what comes before it ---

    def bound(self):
        self.fresh(BOUND)
        self.record(" think")
        self.restore()
        outcome, self.size, detail = self.resume()
        yield "bound: untouched", outcome, detail
        yield self.trimmed("bound: fix cut", ["fix", f"--cut-results={CUT}"])
        yield self.trimmed("bound: fix cut strip", ["fix", f"--cut-results={CUT}", "--thinking=strip"])
        for level in "12":
            yield self.trimmed(f"bound: recover {level}", ["recover", f"--level={level}"])
        yield self.trimmed("bound: compact", ["compact", f"--with={SUMMARISE}"])
        for name in REASONING:
            yield from self.damaged(name, {"raw": None, "fix": [], "strip": ["--thinking=strip"]}, "bound: ")
        yield self.signed_then_undone()

    def signed_then_undone(self):
        """What was cut is to come back after the model has signed a turn over what was left."""
        self.fresh(BOUND)
        self.record()
        self.restore()
        _, self.size, _ = self.resume()
        self.restore()
        told = self.tell("fix", f"--cut-results={CUT}")
        self.agent.once("prompt-8: calls=0 think", resume=True)
        told += "\n" + self.tell("undo")
        outcome, size, detail = self.resume()
        return "bound: cut, signed, undo", outcome + self.relation(size), f"{detail}\n{told}"

    # --- beside the living agent ---

    def live(self):
        yield self.beside("live", 8, (0, 4, 0.5, 5))
        if self.quick:
            return
        yield self.beside("live long", 24, (0, 0.3, 1, 4), settle=0.5)
        if self.driver.compacts:
            yield self.beside("live own compaction", 12, (0, 4), compact_at=6)
        if self.driver.keeps_thinking:
            yield self.beside("live bound", 8, (4,), model=BOUND, think_from=5)
            yield self.beside("live bound undo", 8, (4,), model=BOUND, think_from=5, undo=True)

    def beside(self, case, turns, pauses, settle=2, compact_at=None, model=None, think_from=None, undo=False):
        self.fresh(model)
        log = self.folder / "watch.log"
        with self.watching(settle, log):
            try:
                cut_live = self.converse(turns, pauses, compact_at, think_from, log)
            except agents.Stuck as stuck:
                return case, f"stuck: {plain(str(stuck))}", tail(log)
            self.whole = told(self.stub.log)
            self.path = self.agent.session()
            quiet(log, settle + 6)
        was = self.path.read_bytes()
        after = self.tell("fix", f"--cut-results={CUT}")
        cut_after = self.path.read_bytes() != was
        missing = lost_tags(self.whole, self.path.read_bytes())
        self.size = self.stub.log[-1].size
        undone = ""
        if undo:
            undone = self.tell("undo")
            while "exits 0" in (again := self.tell("undo")):
                undone += again
        outcome, size, detail = self.resume(99)
        if compact_at or turns > self.driver.whole_turns:  # how much its summary leaves is not for us to judge
            outcome = outcome.partition(" ")[0] if "accepted" in outcome else outcome
        else:
            outcome += self.relation(size)
        words = [f"lost {len(missing)}", outcome]
        words.append("cut while it lived" if cut_live else "cut afterwards" if cut_after or mended(log) else "nothing cut")
        return case, ", ".join(words), f"{detail}\nmissing: {sorted(missing)}\n{after}\n{undone}\n{tail(log)}"

    def converse(self, turns, pauses, compact_at, think_from, log):
        """Talks to the agent, and says whether it was cut before the agent ended."""
        with self.agent.live() as wire:
            for turn in range(1, turns + 1):
                think = " think" if think_from and turn >= think_from else ""
                wire.say(f"prompt-{turn}: calls={1 + turn % 2} chars={self.agent.chars}{think}")
                if turn == compact_at:
                    wire.compact()
                time.sleep(pauses[turn % len(pauses)])
            time.sleep(pauses[-1])
            return mended(log)

    @contextlib.contextmanager
    def watching(self, settle, log):
        roots = [self.agent.home / root for root in self.agent.roots]
        for root in roots:
            root.mkdir(parents=True, exist_ok=True)
        sockets = tempfile.mkdtemp()  # a socket's name may not be long
        argv = [
            self.tailor, "watch", "--mode=enforce", f"--settle={settle}", f"--vault={self.folder / 'vault'}",
            f"--socket={sockets}/socket", f"--set=result_chars_max={CUT}", "--log-format=json", *map(str, roots),
        ]  # fmt: skip
        with log.open("wb") as out:
            daemon = subprocess.Popen(argv, env=self.agent.env(), stdout=out, stderr=out, start_new_session=True)
            try:
                time.sleep(0.5)
                yield
                if daemon.poll() is not None:
                    raise Misused(f"tailor watch ended with {daemon.returncode}: {tail(log)}")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    daemon.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    daemon.wait(20)
                agents.end_group(daemon)
                shutil.rmtree(sockets)


def reading(path):
    """A model that reads a file at each prompt, by the tool that its agent has for that."""

    def answer(asked):
        asks = [n for n, (kind, text) in enumerate(asked.parts) if kind == "user" and PROMPT.search(text)]
        name = next((name for name in READERS if name in asked.tools), None)
        if not asks or name is None or any(kind == "result" for kind, _ in asked.parts[asks[-1] :]):
            return Asked.answer(asked)
        key = next(key for key in ("file_path", "filePath", "path") if key in asked.tools[name]["properties"])
        return None, f"step-{asked.prompt}", [(f"read_{asked.prompt}_{time.monotonic_ns() % 10**9}", name, {key: str(path)})]

    return answer


class Misused(Exception):
    """Tailor was called in a way that it does not know, or broke down: what it was to show was not tried."""


def ran(argv, **options):
    """Runs Tailor to its end. What it may say of a file is for the case to judge; that it did not look at it is not."""
    said = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, **options)
    if said.returncode not in (0, 1, 2) or "try '--help'" in said.stderr:
        raise Misused(f"{' '.join(map(str, argv))} exits {said.returncode}: {said.stderr.strip()[-600:]}")
    return said


def told(log):
    """All that was said, as the requests of a process and its last answer show."""
    whole = {kind: set() for kind in KINDS}
    for asked in log:
        for kind, tags in asked.held().items():
            whole[kind] |= tags
    whole["replies"] |= {str(log[-1].prompt)} if log else set()
    return whole


def lost_tags(whole, data):
    """What was said and is not in the file."""
    words = {"prompts": "prompt", "replies": "reply", "calls": "call"}
    return {f"{word}-{tag}" for kind, word in words.items() for tag in whole[kind] if not re.search(rf"{word}-{tag}\b".encode(), data)}


def mended(log):
    return any(json_line(line).get("event") == "fixed" for line in log.read_text().splitlines())


def quiet(log, seconds):
    """Waits until the daemon has said nothing for a while."""
    end = time.monotonic() + 75
    size, since = -1, time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < seconds:
        if log.stat().st_size != size:
            size, since = log.stat().st_size, time.monotonic()
        time.sleep(0.3)


def plain_boundary(line):
    """Without what a compaction keeps: with that, Claude Code writes no side file."""
    row = json_line(line)
    if not isinstance(row, dict) or row.get("subtype") != "compact_boundary":
        return line
    row["compactMetadata"] = {key: value for key, value in row["compactMetadata"].items() if not key.startswith("preserved")}
    return json.dumps(row, separators=(",", ":")) + "\n"


def json_line(line):
    try:
        value = json.loads(line)
        return value if isinstance(value, dict) else {}
    except ValueError:
        return {}


def tail(log):
    return log.read_text("utf-8", "replace")[-1500:]


def plain(message):
    """An error without what differs from run to run."""
    message = re.sub(r"\b[a-z]+_[\w-]*\d[\w-]*(?:, [a-z]+_[\w-]*\d[\w-]*)*", "ID", message)
    message = re.sub(r"^messages\.\d+(\.content\.\d+)?: ", "", message)
    return re.sub(r"\d+", "N", message).replace(",", ";")[:100].strip()


def score(outcome):
    """How good an outcome is, to compare two of one case."""
    counts = re.search(r"accepted ([\d/]+)", outcome)
    size = 2 if "smaller" in outcome else 0 if "larger" in outcome else 1
    lost = re.search(r"lost (\d+)", outcome)
    cut = 2 if "cut while it lived" in outcome else 1 if "cut afterwards" in outcome else 0
    bad = ("NOT as it was" in outcome) + ("worse than" in outcome) + ("stuck" in outcome)
    return (
        -bad, -int(lost[1]) if lost else 0, 2 if counts else 1 if "refused" in outcome else 0,
        [int(n) for n in counts[1].split("/")] if counts else [], cut, size,
    )  # fmt: skip
