"""One life of an agent: many turns with long results, with or without `tailor watch` beside it.

The plan: each turn has two tool calls of 400,000 characters (an agent keeps what its own limit leaves), one turn has twelve
batches of them. The agent is restarted after half of the turns, and whenever it has not answered twice, with a pause; at
the end another process resumes the session. An agent that answers nothing after a restart is dead. The daemon is there from the
beginning.
"""

import collections
import contextlib
import json
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import agents
import cases
import packages
import rows
import rules
import stub
import windows

BATCH_SECONDS = 0.2  # how far apart the calls of a batch end, so that their results come in order
UNANSWERED_MAX = 2  # then somebody restarts the agent
RESTART_SECONDS = 10
LOOK_SECONDS = 8  # how long the daemon may take to look at a turn
LAST = (98, 99)  # the prompts of the last process
WORDS_BYTES = 70_000_000
LOCKED = re.compile(rb"database is locked|SQLITE_BUSY", re.IGNORECASE)
LEFT = re.compile(r"\d+ of \d+ edits? put back")  # of a run of which some places were not found
LINE = re.compile(r"^\d{7} [a-z ]{40,}$")
SUMMARY = "SUMMARY-7f3a"
SUMMARY_TEXT = (
    f"<analysis>looked at it</analysis>\n<summary>{SUMMARY}: The user has the assistant run commands that print long outputs. All results were "
    f"looked at, and nothing is left to do but to answer the next prompt.</summary>\n<state_snapshot><overall_goal>{SUMMARY} list files"
    "</overall_goal><key_knowledge>none</key_knowledge></state_snapshot>"
)
WANTS_SUMMARY = re.compile(
    r"(create|write|generate|provide|produce)[^.]{0,120}(summary|snapshot)|summari[sz]e|CHECKPOINT COMPACTION|state_snapshot", re.IGNORECASE
)
KINDS = {"prompts": "prompt", "replies": "reply", "calls": "call"}


class Model:
    """What the stub says. It counts rounds itself, so that a compaction in the middle of a turn does no harm."""

    def __init__(self, words, chars):
        self.words, self.chars, self.turn, self.orders = words, chars, 0, {}
        self.given, self.replied, self.summaries = collections.Counter(), set(), 0

    def begin(self, turn, **orders):
        self.turn, self.orders = turn, orders

    def answer(self, asked):
        asked.size = 4 * rules.tokens(asked.body)  # what it counts is what it refuses by
        if self.is_summary(asked):
            self.summaries += 1
            return None, SUMMARY_TEXT, []
        name = next((name for name in stub.SHELLS if name in asked.tools), None)
        if self.given[self.turn] >= self.orders.get("rounds", 1) or not self.orders.get("calls") or name is None:
            self.replied.add(self.turn)
            return None, f"reply-{self.turn}", []
        self.given[self.turn] += 1
        tags = [f"{self.turn}-{self.given[self.turn]}-{call}" for call in range(1, self.orders["calls"] + 1)]
        return None, f"step-{self.turn}-{self.given[self.turn]}", [self.call(tag, asked.tools[name], name) for tag in tags]

    def is_summary(self, asked):
        tail = next((text for kind, text in reversed(asked.parts) if kind == "user"), "")
        asked.summary = not asked.tools or bool(WANTS_SUMMARY.search(tail) and SUMMARY not in tail and f"prompt-{self.turn}:" not in tail)
        return asked.summary

    def call(self, tag, schema, name):
        turn, batch, call = map(int, tag.split("-"))
        start = (turn * 2 + (batch - 1) * 14 + call) * (windows.RESULT_CHARS + 1000) % (WORDS_BYTES - windows.RESULT_CHARS)
        read = self.orders.get("print") or f"tail -c +{start} {self.words} | head -c {self.orders.get('chars', self.chars)}"
        command = f"echo result-{tag} the start; {read}; sleep {(call - 1) * BATCH_SECONDS:.1f} # call-{tag}"
        return f"call_{tag.replace('-', '_')}_{time.monotonic_ns() % 10**9}", name, stub.arguments(schema, command)


def words_file():
    """Numbered lines of words: no two are alike, and they can be packed about as well as source text."""
    path = packages.CACHE / "words.txt"
    if not path.exists():
        chosen = random.Random(7)
        words = ["".join(chosen.choices("etaoinshrdlucmfwyp", k=chosen.randint(2, 9))) for _ in range(3000)]
        making = path.with_suffix(f".{time.monotonic_ns()}")
        with making.open("w") as out:
            for number in range(WORDS_BYTES // 70):
                out.write(f"{number:07} {' '.join(chosen.choices(words, k=11))}\n")
        making.rename(path)
    return path


class Daemon:
    """`tailor watch` with the settings it comes with, and what its log says of each turn."""

    def __init__(self, tailor, agent, log, settings):
        self.log, self.read_bytes, self.process = log, 0, None
        self.sockets = tempfile.mkdtemp()  # a socket's name may not be long
        chosen = [f"--set={setting}" for setting in settings]
        self.socket = f"{self.sockets}/s"
        self.argv = [tailor, "watch", "--mode=enforce", f"--socket={self.socket}", "--log-format=json", "-v", *chosen]
        self.agent, self.seen, self.events = agent, False, collections.Counter()

    def start(self):
        for root in self.agent.roots or [Path(self.agent.store).parent]:
            (self.agent.home / root).mkdir(parents=True, exist_ok=True)
        self.process = self.agent.start(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log.open("ab"))

    def take(self):
        """What it did since the last time: {what: how often}."""
        told = collections.Counter()
        with self.log.open("rb") as log:
            log.seek(self.read_bytes)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self.read_bytes += len(line)
                told.update(self.words_of(cases.json_line(line)))
        self.events.update(told)
        return told

    def words_of(self, event):
        name = event.get("event")
        if name in ("fixed", "recovered"):  # said twice, once with the run
            return [f"{name} {event.get('found_codes') or ''}".strip()] if event.get("run") else []
        if name in ("deferred", "refused", "error", "tripped", "too-long", "trouble"):
            return [f"{name}: {re.sub(r'[0-9]+', 'N', str(event.get('reason') or ''))[:100]}".removesuffix(": ")]
        return [f"{name} {event.get('found_codes') or ''}".strip()] if name in ("clean", "findings") else []

    def look(self):
        """Waits until it has looked at what was written last, and gives what it did since the turn began."""
        during, told, end = self.take(), collections.Counter(), time.monotonic() + LOOK_SECONDS
        while not told and time.monotonic() < end:
            time.sleep(0.5)
            told = self.take()
        time.sleep(0.5)
        return during + told + self.take()

    def end(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            agents.end_group(self.process)
        shutil.rmtree(self.sockets, ignore_errors=True)


class Life:
    """A run: `turns` has a row for each prompt, `outcome()` what came of it."""

    def __init__(self, setup, install, folder, tailor, daemon, settings=(), say=None):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.setup, self.folder, self.tailor, self.say = setup, folder, tailor, say or (lambda row: None)
        self.model = Model(words_file(), setup.chars)
        self.stub = stub.Stub(window=setup.api_tokens, answer=self.model.answer, **setup.driver.settings)
        self.agent = setup.agent(install, folder, self.stub)
        self.daemon = Daemon(tailor, self.agent, folder / "watch.log", settings) if daemon else None
        self.turns, self.ever, self.texts = [], {kind: set() for kind in KINDS}, {}
        self.refusals = collections.Counter()
        self.session, self.restarts, self.revived, self.doctor, self.undone = False, 0, None, "", ""

    def run(self):
        try:
            if self.daemon:
                self.daemon.start()
            self.live()
            self.judge()
            if self.daemon:
                self.daemon.end()
                self.undo()
        finally:
            if self.daemon:
                self.daemon.end()
            self.stub.close()
            (self.folder / "turns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.turns))
        return self

    # --- the plan ---

    def live(self):
        plan = list(enumerate(self.setup.plan, 1))
        half = len(plan) // 2
        while plan:
            answered = self.process(plan, half if len(plan) > half else 0)
            self.restart()
            if not answered and self.restarts > 1:
                break
        self.revived = self.process([(turn, {"calls": 0}) for turn in LAST], 0)

    def process(self, plan, left):
        """One process of the agent, which takes prompts off the plan until so many are left; whether it answered any."""
        answered, unanswered = 0, 0
        try:
            with self.agent.live(self.session) as wire:
                while len(plan) > left and unanswered < UNANSWERED_MAX:
                    row = self.turn(wire, *plan.pop(0))
                    answered, unanswered = answered + row["answered"], 0 if row["answered"] else unanswered + 1
                self.session = getattr(wire, "session", True)
        except agents.Stuck as stuck:
            self.turns.append({"turn": 0, "answered": False, "error": str(stuck)[:300]})
        return answered > 0

    def restart(self):
        self.restarts += 1
        time.sleep(RESTART_SECONDS)
        if self.daemon and self.turns:
            told = self.daemon.take()
            self.turns[-1]["at_restart"] = dict(told)

    def turn(self, wire, turn, orders):
        self.model.begin(turn, **orders)
        asked_before, began = len(self.stub.log), time.monotonic()
        row = {"turn": turn, "error": ""}
        try:
            wire.say(f"prompt-{turn}: calls={orders['calls']}")
        except agents.Stuck as stuck:
            row["error"] = str(stuck)[:300]
        row["seconds"] = round(time.monotonic() - began, 1)
        row |= self.asked(asked_before)
        row["answered"] = turn in self.model.replied and not row["error"]
        if self.daemon:
            row["daemon"] = dict(self.daemon.look())
        row["store_bytes"] = self.store_bytes()
        self.turns.append(row)
        self.say(row)
        return row

    def asked(self, before):
        """What reached the stub since; the bodies are dropped."""
        row = {"requests": 0, "request_bytes": 0, "refused": "", "summaries": 0}
        for asked in self.stub.log[before:]:
            if asked.body is None:
                continue
            row["requests"] += 1
            row["summaries"] += getattr(asked, "summary", False)
            if asked.refused:
                row["refused"] = cases.plain(asked.refused)
                self.refusals[row["refused"]] += 1
            elif asked.tools and not getattr(asked, "summary", False):
                row["request_bytes"] = asked.size_bytes
            self.remember(asked)
            asked.body, asked.parts = None, []
        return row

    def remember(self, asked):
        held = asked.held()
        for kind in KINDS:
            self.ever[kind] |= held[kind]
        for kind, text in asked.parts:
            tag = re.search(r"result-(\d+-\d+-\d+) the", text) if kind == "result" else None
            if tag and "[tailor:" not in text and len(text) > len(self.texts.get(tag[1], "")):
                self.texts[tag[1]] = text

    # --- the store ---

    def files(self):
        """The files that hold the session now."""
        with contextlib.suppress(agents.Stuck, OSError):
            path = self.agent.path if hasattr(self.agent, "store") else self.agent.session()
            return [file for file in path.parent.glob(f"{path.name}*") if file.is_file()]
        return []

    def store_bytes(self):
        with contextlib.suppress(OSError):
            return sum(file.stat().st_size for file in self.files())
        return 0

    def all_text(self):
        """Everything that the stores hold: of a database the texts of its rows, unpacked."""
        if not hasattr(self.agent, "store"):
            found = [file for pattern in self.agent.transcripts for file in self.agent.home.glob(pattern) if file.is_file()]
            return b"\n".join(file.read_bytes() for file in found)
        if not self.agent.path.exists():
            return b""
        db = rows.connect(self.agent.path, read_only=True)
        try:
            if isinstance(self.agent, windows.owners.OpenClaw):
                return b"\n".join(rows.text(row) for row in db.execute("SELECT * FROM transcript_events"))
            return b"\n".join(row[0].encode() for table in ("message", "part") for row in db.execute(f"SELECT data FROM {table}"))
        except sqlite3.Error as failed:
            raise agents.Stuck(f"the store cannot be read: {failed}") from None
        finally:
            db.close()

    # --- the end ---

    def tell(self, *arguments):
        env = self.agent.env() | ({"TAILOR_SOCKET": self.daemon.socket} if self.daemon else {})
        said = subprocess.run([self.tailor, *arguments], env=env, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
        return said.stdout, said.stderr, said.returncode

    def judge(self):
        time.sleep(agents.END_SECONDS if self.daemon else 6)
        if self.daemon:
            self.turns[-1]["at_end"] = dict(self.daemon.take())
        out, _, _ = self.tell("doctor", "--json")
        sessions = [cases.json_line(line) for line in out.splitlines()]
        sessions = [row for row in sessions if row.get("type") == "session"]
        self.doctor = sessions[0].get("state", "?") if sessions else "nothing"
        text = self.all_text()
        self.lost = sorted(
            f"{word}-{tag}" for kind, word in KINDS.items() for tag in self.ever[kind] if not re.search(rf"{word}-{tag}\b".encode(), text)
        )
        self.locked = sum(len(LOCKED.findall(file.read_bytes())) for file in self.agent.home.glob("*.log"))

    def undo(self):
        """Puts everything back: all edits are, and each line that the model once got is there. A mark that is left is in what the
        agent has copied from a text that was cut."""
        before = b"[tailor:" in self.all_text()
        out, error, code = self.tell("undo", "--all", "--to-original", "--settle=0")
        text = self.all_text()
        held = set(re.split(r"\\n|\n", text.decode("utf-8", "replace")))
        missing = sum(1 for told in self.texts.values() for line in told.splitlines()[1:-1] if LINE.match(line) and line not in held)
        left = " ".join(LEFT.findall(out))
        copies = len(re.findall(rb"\[tailor: \d+ of", text))
        (self.folder / "undo.txt").write_text(f"exit {code}\n{out}\n{error}\n{missing} lines missing, {copies} marks in copies\n")
        faults = ", ".join(filter(None, (f"{missing} lines missing" * bool(missing), left, f"exit code {code}" * bool(code))))
        self.undone = faults or ("whole" if before or self.fixes() else "nothing to undo")

    def fixes(self):
        return sum(count for what, count in self.daemon.events.items() if what.startswith(("fixed", "recovered"))) if self.daemon else 0
