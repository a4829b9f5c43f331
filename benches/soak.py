# Lets `tailor watch` look after many sessions that grow, and prints a Markdown table.
#
#   python3 benches/soak.py [--sessions N] [--rate APPENDS] [--seconds S] [--settle S] [--known N] [--giant MB]
#                           [--profile NAME] [--program PATH]
#
# One writer opens, writes a line and closes, so many times a second, each time to a session chosen at random; every
# fourth line is a result that is too long. A turn is written to the end before the next one of that session begins.
# Measured are CPU, memory and watches of the daemon, how long the writer waits, and how long a long result stays: from
# the append after which its session could be settled to the moment at which the file is shorter. In the end each line
# that was written must be there once. `--known` sets a number of further sessions that nobody writes to. Before that
# the daemon is measured with nothing to do. Then another daemon looks after one session of `--giant` megabytes (1000; 0
# for none) under a profile, to which a line is appended now and then. Ten minutes: --seconds 600. Build first: cargo build
# --profile dist.

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 1000
LONG = "row of output\\n" * 300
IDLE_SECONDS = 10
GIANT_APPENDS = 50


def lines(number, turn):
    """The lines of one turn: a question, a call, its long result, an answer."""
    text = f'{{"type":"text","text":"{LONG}"}}'
    messages = [
        '"role":"user","content":"go on"',
        '"role":"assistant","model":"m","stopReason":"toolUse","content":'
        f'[{{"type":"toolCall","id":"c{turn}","name":"bash","arguments":{{}}}}]',
        f'"role":"toolResult","toolCallId":"c{turn}","toolName":"bash","isError":false,"content":[{text}]',
        '"role":"assistant","model":"m","stopReason":"stop","content":[{"type":"text","text":"done"}]',
    ]
    for part, message in enumerate(messages):
        entry = turn * 4 + part
        parent = f'"{number}-{entry - 1}"' if entry else "null"
        yield (
            f'{{"type":"message","id":"{number}-{entry}","parentId":{parent},'
            f'"timestamp":"2026-07-01T10:00:00.000Z","message":{{{message}}}}}\n'
        ).encode()


HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}\n'


class Session:
    def __init__(self, folder, number):
        self.path = os.path.join(folder, f"p{number % 50}", f"{number}.jsonl")
        self.number, self.turn, self.queue, self.ids = number, 0, [], []
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "wb") as file:
            file.write(HEADER)

    def append(self):
        """Writes the next line; gives how long that took and whether the turn is complete."""
        if not self.queue:
            self.queue = list(lines(self.number, self.turn))
            self.turn += 1
        data = self.queue.pop(0)
        self.ids.append(json.loads(data)["id"])
        before = time.perf_counter()
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(file, data)
        os.close(file)
        return time.perf_counter() - before, not self.queue


def cpu(pid):
    """In seconds, as the scheduler counts; without threads that have ended."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def memory(pid, what):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(what))


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


class Lag(threading.Thread):
    """Sees when the files that have a complete turn with a long result become shorter."""

    def __init__(self, settle):
        super().__init__(daemon=True)
        self.settle, self.pending, self.seen, self.lock, self.stop = settle, {}, [], threading.Lock(), False

    def wait_for(self, session, at, counts=True):
        with self.lock:
            self.pending[session] = (at, os.stat(session.path).st_ino, counts)

    def run(self):
        while not self.stop:
            now = time.perf_counter()
            with self.lock:
                due = [item for item in self.pending.items() if now >= item[1][0] + self.settle * 0.9]
            for session, (at, inode, counts) in due:
                if os.stat(session.path).st_ino != inode:
                    with self.lock:
                        if self.pending.get(session) == (at, inode, counts):
                            del self.pending[session]
                            if counts:
                                self.seen.append(time.perf_counter() - at - self.settle)
            time.sleep(0.005)


def status(program, socket):
    """What the daemon says; nothing before it listens."""
    asked = subprocess.run([program, "status", "--json", "--socket", socket], capture_output=True)
    return json.loads(asked.stdout) if asked.returncode == 0 else {}


def until(what, is_so, seconds=120):
    deadline = time.time() + seconds
    while not is_so():
        if time.time() > deadline:
            sys.exit(f"in vain: {what}")
        time.sleep(0.2)


def write(sessions, args, lag):
    waits, start, chance = [], time.perf_counter(), random.Random(1)
    open_turns = []
    for n in range(int(args.rate * args.seconds)):
        pause = start + n / args.rate - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        if len(open_turns) < 50:
            idle = chance.choice(sessions)
            if idle not in open_turns and idle not in lag.pending:
                open_turns.append(idle)
        if not open_turns:
            continue
        session = chance.choice(open_turns)
        waited, complete = session.append()
        waits.append(waited)
        if complete:
            open_turns.remove(session)
            lag.wait_for(session, time.perf_counter())
    for session in open_turns:
        complete = False
        while not complete:
            waited, complete = session.append()
            waits.append(waited)
        # All of them at once: that is another load than the one that is measured.
        lag.wait_for(session, time.perf_counter(), counts=False)
    return waits


def lost(sessions):
    wrong = 0
    for session in sessions:
        with open(session.path, "rb") as file:
            found = [json.loads(line)["id"] for line in file][1:]
        wrong += found != session.ids
    return wrong


def start(args, folder, root, more):
    socket = os.path.join(folder, "socket")
    env = {"HOME": folder, "PATH": os.environ["PATH"]}
    command = [args.program, "watch", root, "--mode", "enforce", "--socket", socket, *more]
    with open(os.path.join(folder, "log"), "ab") as log:
        return subprocess.Popen(command, env=env, stderr=log), socket


def giant(args, folder):
    """What an append to a very long session costs, in seconds of CPU and in bytes that are read."""
    root = os.path.join(folder, "giant")
    session = Session(root, 0)
    with open(session.path, "ab") as file:
        written = 0
        while written < args.giant * 1_000_000:
            session.queue = list(lines(session.number, session.turn))
            session.turn += 1
            written += file.write(b"".join(session.queue))
    session.queue = []
    daemon, socket = start(args, folder, root, ["--settle", "0.1", "--set", f"profile='{args.profile}'"])
    try:
        until("it is looked at", lambda: status(args.program, socket).get("looks"), 600)
        found = status(args.program, socket)
        before = cpu(daemon.pid)
        for _ in range(GIANT_APPENDS):
            session.append()
            time.sleep(0.3)
        spent = (cpu(daemon.pid) - before) / GIANT_APPENDS
        after = status(args.program, socket)
        read = (after["read_bytes"] - found["read_bytes"]) / GIANT_APPENDS
        same = after["same"] - found["same"]
        resident = memory(daemon.pid, "VmRSS")
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
    return [
        (f"an append to {args.giant} MB, profile {args.profile}: CPU, bytes read", f"{spent * 1000:.2f} ms, {read:,.0f}"),
        ("of that judged without a look; RSS", f"{same} of {GIANT_APPENDS}; {resident:.1f} MiB"),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--known", type=int, default=8000)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=1)
    parser.add_argument("--giant", type=int, default=1000)
    parser.add_argument("--profile", default="default")
    parser.add_argument("--program", default=os.path.join(HERE, "..", "target", "dist", "tailor"))
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tailor-soak-")
    root = os.path.join(folder, "root")
    sessions = [Session(root, number) for number in range(args.sessions + args.known)]
    daemon, socket = start(
        args, folder, root, ["--settle", str(args.settle), "--set", f"result_chars_max={LIMIT}", "--set", "memory_settle='0s'"]
    )
    try:
        idle = lambda: (found := status(args.program, socket)) and not found["waiting"] and found["files"]
        until("all sessions are known", lambda: idle() == len(sessions))
        before = cpu(daemon.pid)
        time.sleep(IDLE_SECONDS)
        idle_cpu = (cpu(daemon.pid) - before) / IDLE_SECONDS
        lag = Lag(args.settle)
        lag.start()
        before, began = cpu(daemon.pid), time.perf_counter()
        waits = write(sessions[: args.sessions], args, lag)
        until("all is cut", lambda: not lag.pending)
        busy_cpu = (cpu(daemon.pid) - before) / (time.perf_counter() - began)
        resident, peak = memory(daemon.pid, "VmRSS"), memory(daemon.pid, "VmHWM")
        found = status(args.program, socket)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
    millis = lambda seconds: f"{seconds * 1000:.1f} ms"
    rows = [
        ("sessions known; written to", f"{len(sessions)}; {args.sessions}"),
        ("appends a second, seconds, settle", f"{args.rate:g}, {args.seconds:g}, {args.settle:g} s"),
        ("CPU idle; busy", f"{idle_cpu:.3%}; {busy_cpu:.2%} of one core"),
        ("RSS now; highest", f"{resident:.1f} MiB; {peak:.1f} MiB"),
        ("watches", str(sum(one["folders"] for one in found["roots"]))),
        ("looks; runs; read", f'{found["looks"]}; {found["fixed"]}; {found["read_bytes"] / 1e6:.1f} MB'),
        ("settled to cut: p50, p99, max", ", ".join(millis(share(lag.seen, part)) for part in (0.5, 0.99, 1))),
        ("writer's wait: p50, p99, max", ", ".join(millis(share(waits, part)) for part in (0.5, 0.99, 1))),
        ("sessions with a line lost, doubled or moved", str(lost(sessions))),
    ]
    shutil.rmtree(root)
    rows += giant(args, folder) if args.giant else []
    print("| measured | |\n|---|---|")
    for what, value in rows:
        print(f"| {what} | {value} |")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
