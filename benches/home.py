# What a home full of sessions costs: two scans, and a daemon that knows it already. Prints a Markdown table.
#
#   python3 benches/home.py [--sessions 5000] [--bytes 4000000000] [--known 10000] [--idle 20] [--folder DIR] [--program PATH]
#
# Makes that many sessions of pi with that many bytes in all, which takes as much disk, and removes them in the end. With
# strace, a further scan counts the bytes that are read from transcripts. Then a daemon starts beside so many small sessions,
# for the second time: the first one has filled the index of verdicts. Its CPU and memory are read while nothing happens. Build
# first: cargo build --profile dist.

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OLD = time.time() - 30 * 24 * 3600
HEADER = '{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}\n'
RESULT = "row of output\\n" * 1500
TICKS = os.sysconf("SC_CLK_TCK")


def session(path, size):
    """A healthy session of about so many bytes: turns of a question, a call, its result and an answer."""
    with open(path, "w") as file:
        written, parent, n = file.write(HEADER), "null", 0
        while written < size:
            call = f"c{n}"
            for message in (
                '"role":"user","content":"go on"',
                f'"role":"assistant","model":"m","stopReason":"toolUse","content":[{{"type":"toolCall","id":"{call}","name":"bash","arguments":{{}}}}]',
                f'"role":"toolResult","toolCallId":"{call}","toolName":"bash","isError":false,"content":[{{"type":"text","text":"{RESULT}"}}]',
                '"role":"assistant","model":"m","stopReason":"stop","content":[{"type":"text","text":"done"}]',
            ):
                written += file.write(
                    f'{{"type":"message","id":"{n}","parentId":{parent},"timestamp":"2026-07-01T10:00:00.000Z","message":{{{message}}}}}\n'
                )
                parent, n = f'"{n}"', n + 1
    os.utime(path, (OLD, OLD))


def home(folder, sessions, size):
    for number in range(sessions):
        place = os.path.join(folder, f"p{number % 100}")
        os.makedirs(place, exist_ok=True)
        session(os.path.join(place, f"{number}.jsonl"), size)
    # What has just changed is not remembered.
    time.sleep(3)


def scan(program, files, environment, prefix=()):
    start = time.monotonic()
    done = subprocess.run([*prefix, program, "scan", "--format", "json", files], env=environment, capture_output=True)
    seconds = time.monotonic() - start
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["errors"] == 0, summary
    return seconds, summary


def bytes_read(program, files, environment, folder):
    """What a scan reads of transcripts, by strace."""
    trace = os.path.join(folder, "trace")
    calls = "trace=read,pread64,readv,preadv,mmap"
    scan(program, files, environment, ("strace", "-f", "-y", "-e", calls, "-o", trace))
    with open(trace, errors="replace") as lines:
        found = (re.search(r"(\w+)\(\d+<[^>]*\.jsonl>.*\) = (\d+)$", line) for line in lines)
        return sum(int(match[2]) for match in found if match)


def usage(pid):
    """Seconds of CPU and MiB of memory."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status") as status:
        kib = int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])
    return (int(fields[11]) + int(fields[12])) / TICKS, kib / 1024


def daemon(program, files, environment, idle):
    """Starts it and waits until it has nothing to do: seconds until then, CPU and memory by then, CPU of `idle` seconds."""
    start = time.monotonic()
    process = subprocess.Popen([program, "watch", files], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        settled = start
        before = -1.0
        while True:
            time.sleep(0.25)
            cpu, memory = usage(process.pid)
            if cpu == before:
                if time.monotonic() - settled > 3:
                    break
            else:
                settled, before = time.monotonic(), cpu
        started, at_start = settled - start, before
        time.sleep(idle)
        cpu, memory = usage(process.pid)
        return started, at_start, cpu - at_start, memory
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--bytes", type=int, default=4_000_000_000)
    parser.add_argument("--known", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=20)
    parser.add_argument("--folder")
    parser.add_argument("--program", default=os.path.join(HERE, "../target/dist/tailor"))
    asked = parser.parse_args()
    program = os.path.abspath(asked.program)
    folder = tempfile.mkdtemp(dir=asked.folder)
    try:
        files, known = os.path.join(folder, "files"), os.path.join(folder, "known")
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "XDG_CACHE_HOME": os.path.join(folder, "cache")}
        environment["XDG_RUNTIME_DIR"] = folder
        home(files, asked.sessions, asked.bytes // asked.sessions)
        rows = []
        for name in ("first scan", "second scan", "third scan"):
            seconds, summary = scan(program, files, environment)
            rows.append((name, f"{seconds:.2f} s", f"{summary['files']} sessions, {summary['bytes'] / 1e9:.2f} GB"))
        if shutil.which("strace"):
            rows.append(("read of transcripts by a further scan", f"{bytes_read(program, files, environment, folder)} bytes", "strace"))
        shutil.rmtree(files)
        home(known, asked.known, 20_000)
        for name in ("first start of a daemon", "second start"):
            started, cpu, idle, memory = daemon(program, known, environment, asked.idle)
            rows.append((name, f"{started:.1f} s", f"{asked.known} sessions, {cpu:.2f} s of CPU"))
        rows.append(("a daemon with nothing to do", f"{100 * idle / asked.idle:.2f} % CPU", f"{memory:.0f} MiB"))
        print("| | | |\n|---|---|---|")
        for row in rows:
            print(f"| {' | '.join(row)} |")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
