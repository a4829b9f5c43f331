# Measures what a program that appends to a session feels of `tailor fix`, and prints a Markdown table.
#
#   python3 benches/latency.py [--bytes BYTES] [--seconds SECONDS] [--program PATH]
#
# One pi session of 100 MB and one writer that opens, writes a line and closes, every 1 ms and every 100 ms; some of the
# lines hold a result that is too long. Beside it runs nothing, or `tailor fix` again and again, or a naive rewriter that
# reads all, writes a temporary file and renames it. Each pair runs for ten seconds. In the end, each line that the
# writer has logged must be in the file once. Build first: cargo build --profile dist.

import argparse
import collections
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RESULT_CHARS_MAX = 1000  # for the tool of this writer; all others stay as they are, and with them the size of the file
LONG = "row of output\\n" * 300
SHORT = "row of output\\n" * 3
TURN = 4  # lines
LONG_EVERY_SECONDS = 0.1
ID = re.compile(rb'"id":"(live-\d+)"')


def line(number, is_long):
    """A question, a call, its result or an answer."""
    parent = f'"live-{number - 1}"' if number else "null"
    text = f'{{"type":"text","text":"live-{number} %s"}}'
    call = f"call-live-{number // TURN}"
    message = [
        f'"role":"user","content":[{text % SHORT}]',
        '"role":"assistant","model":"m","stopReason":"toolUse","content":'
        f'[{{"type":"toolCall","id":"{call}","name":"live","arguments":{{}}}}]',
        f'"role":"toolResult","toolCallId":"{call}","toolName":"live","isError":false,'
        f'"content":[{text % (LONG if is_long else SHORT)}]',
        f'"role":"assistant","model":"m","stopReason":"stop","content":[{text % SHORT}]',
    ][number % TURN]
    entry = f'{{"type":"message","id":"live-{number}","parentId":{parent},"timestamp":"2026-07-01T10:00:00.000Z",'
    return f'{entry}"message":{{{message}}}}}\n'.encode()


def write(path, pause, seconds, answer):
    """Appends by path at a steady pace; tells how long each append took, in seconds."""
    waits, number, long_at = [], 0, 0.0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds or number % TURN:
        now = time.perf_counter()
        is_long = number % TURN == 2 and now >= long_at
        if is_long:
            long_at = now + LONG_EVERY_SECONDS
        data = line(number, is_long)
        before = time.perf_counter()
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, data)
        os.close(file)
        after = time.perf_counter()
        waits.append(after - before)
        number += 1
        # What was missed is not made up for: that would hide a long wait behind many short ones.
        time.sleep(max(0.0, pause - (after - now)))
    answer.send(waits)


class Nothing:
    """Nothing runs beside the writer."""

    name = "nothing"

    def run(self, path):
        time.sleep(0.05)
        return None


class Tailor:
    """`tailor fix`, as anybody would call it."""

    name = "`tailor fix`"

    def __init__(self, program, home):
        self.environment = {"HOME": home, "PATH": os.environ["PATH"], "TMPDIR": home}
        self.command = [program, "fix", "--settle", "0", "--format", "json", "--select", "S1"]
        self.command += ["--cut-results", "0", "--cut-tool-results", f"live={RESULT_CHARS_MAX}"]

    def say(self, command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True).stdout

    def run(self, path):
        lines = self.say([*self.command, path]).splitlines()
        return json.loads(lines[0])["outcome"] if lines else "error"


class Naive:
    """What everybody writes first."""

    name = "naive rewriter"

    def run(self, path):
        with open(path, "rb") as file:
            text = file.read()
        lines = [self.mend(line) for line in text.split(b"\n")]
        mended = b"\n".join(lines)
        if mended == text:
            return "clean"
        with open(path + ".tmp", "wb") as file:
            file.write(mended)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".tmp", path)
        return "fixed"

    def mend(self, line):
        if b'"toolName":"live"' not in line or len(line) < RESULT_CHARS_MAX:
            return line
        try:
            entry = json.loads(line)
        except ValueError:
            return line
        block = entry["message"]["content"][0]
        block["text"] = block["text"][:RESULT_CHARS_MAX // 2]
        return json.dumps(entry).encode()


def beside(rewriter, path, pause, seconds):
    """Runs the rewriter beside a writer; gives the writer's waits and how often each outcome came."""
    receive, send = multiprocessing.Pipe(duplex=False)
    writer = multiprocessing.Process(target=write, args=(path, pause, seconds, send))
    writer.start()
    outcomes = collections.Counter()
    # The answer is taken while the writer is still there: it can be longer than a pipe.
    while not receive.poll():
        outcomes[rewriter.run(path)] += 1
    waits = receive.recv()
    writer.join()
    for _ in range(20):  # what a run has left to the next one
        if rewriter.run(path) in ("clean", None):
            break
    return waits, outcomes


def lost(path, written):
    """How many of the written lines are missing, doubled or out of order."""
    with open(path, "rb") as file:
        found = [int(match[1][5:]) for match in map(ID.search, file) if match]
    missing = len(set(range(written)) - set(found))
    return missing, len(found) - len(set(found)), sum(b < a for a, b in zip(found, found[1:]))


def row(original, folder, rewriter, pause, seconds):
    path = os.path.join(folder, "session.jsonl")
    shutil.copy(original, path)
    subprocess.run(["sync", path], check=True)
    waits, outcomes = beside(rewriter, path, pause, seconds)
    missing, doubled, disordered = lost(path, len(waits))
    waits.sort()
    milliseconds = [1e3 * waits[min(len(waits) - 1, int(len(waits) * share))] for share in (0.5, 0.99, 1.0)]
    runs = sum(outcomes.values()) - outcomes[None]
    landed = outcomes["fixed"]
    # A run that finds nothing to do is no try.
    tries = f"{(runs - outcomes['clean']) / landed:.1f}" if landed else ""
    cells = [f"{pause * 1e3:.0f} ms", rewriter.name, str(len(waits)), *(f"{ms:.2f}" for ms in milliseconds)]
    cells += [str(landed), tries, f"{missing}" + (f" (+ {doubled} doubled)" if doubled else "")]
    print("| " + " | ".join([*cells, str(disordered)]) + " |", flush=True)
    for outcome, count in sorted((str(outcome), count) for outcome, count in outcomes.items()):
        print(f"  {rewriter.name}: {count} × {outcome}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="What a writer feels of `tailor fix`.")
    parser.add_argument("--bytes", type=int, default=100_000_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--program", default=os.path.join(HERE, "../target/dist/tailor"))
    arguments = parser.parse_args()
    program = os.path.realpath(arguments.program)
    if not os.access(program, os.X_OK):
        sys.exit(f"no {program}: cargo build --profile dist")
    with tempfile.TemporaryDirectory(prefix="latency.") as folder:
        original = os.path.join(folder, "original")
        with open(original, "wb") as file:
            generate = [sys.executable, os.path.join(HERE, "generate.py"), "pi", str(arguments.bytes), "1"]
            subprocess.run(generate, stdout=file, check=True)
        rewriters = [Nothing(), Tailor(program, folder), Naive()]
        print(f"A pi session of {os.path.getsize(original)} bytes; times of an append in ms.\n")
        print("| a line every | beside it | lines | p50 | p99 | max | landed | tries per landing | lost | disordered |")
        print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for pause in (0.001, 0.1):
            for rewriter in rewriters:
                row(original, folder, rewriter, pause, arguments.seconds)


if __name__ == "__main__":
    main()
