#!/usr/bin/env python3
"""`session_tailor.check` beside `tailor scan`: bytes for each second of CPU, on the same conversations, and peak memory.

    PYTHONPATH=target/python target/python/venv/bin/python benches/python.py target/dist/tailor [ROWS] [PAIRS]

Both get one core, in turns. The module reads an Arrow file batch by batch, the program the same lines. Seconds are of CPU,
so that other work on the machine disturbs little; what is quoted is the ratio. The file is read, not mapped: its mapped pages would count
as memory, and so would this program's own size in `ru_maxrss`.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

MODULE = r"""
import re, sys, resource, pyarrow as pa, session_tailor
before = resource.getrusage(resource.RUSAGE_SELF)
batches = pa.ipc.open_stream(pa.OSFile(sys.argv[1]))
found = pa.RecordBatchReader.from_stream(session_tailor.check(batches, format=FORMAT, column=COLUMN))
rows = sum(batch.num_rows for batch in found)
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(re.search(r'VmHWM:\s+(\d+)', open('/proc/self/status').read())[1]), rows)
"""


def conversation(pool, n):
    """About 4 kB: a question, a call, a result, an answer. One in a hundred has something wrong."""
    call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": f"/src/{n}.py"})}}
    text = pool[n % len(pool)]
    arguments = "{" if n % 100 == 0 else call["function"]["arguments"]
    call["function"]["arguments"] = arguments
    return {
        "messages": [
            {"role": "system", "content": "You are a careful engineer."},
            {"role": "user", "content": f"What does {n}.py do?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": text[:2800]},
            {"role": "assistant", "content": text[:900] + "\\n" + '"quoted"'},
        ]
    }


# So many conversations differ; a larger set repeats them.
DISTINCT_ROWS = 20_000

# Python, pyarrow, a batch of 1000 rows and what is made of it take some 60 MB, whether there are 32,000 rows or a million.
PEAK_BYTES_MAX = 120e6

WORDS = ["def", "return", "self.value", "the", "request", "of", "naïve", "list", "=", "None,", "if", "not", "error:", "raise", "ValueError(", '"name"', "\n    "]


def write(folder, rows):
    """The same conversations as lines, as Arrow texts, and as nested messages."""
    source = random.Random(7)
    pool = [" ".join(source.choices(WORDS, k=520)) for _ in range(997)]
    lines, texts, nested = folder / "rows.jsonl", folder / "texts.arrow", folder / "nested.arrow"
    schema = pa.schema([("session", pa.string())])
    blocks = []
    for start in range(0, min(rows, DISTINCT_ROWS), 1000):
        made = [conversation(pool, n) for n in range(start, min(start + 1000, rows))]
        block = [json.dumps(one, ensure_ascii=False) for one in made]
        text = pa.record_batch([pa.array(block)], schema=schema)
        blocks.append(("".join(line + "\n" for line in block).encode(), text, pa.RecordBatch.from_pylist(made)))
    with lines.open("wb") as out, pa.ipc.new_stream(texts, schema) as of_text, pa.ipc.new_stream(nested, blocks[0][2].schema) as of_nested:
        for n in range(-(-rows // 1000)):
            block, text, messages = blocks[n % len(blocks)]
            out.write(block)
            of_text.write_batch(text)
            of_nested.write_batch(messages)
    return lines, texts, nested


def program(tailor, words, lines):
    """Seconds of CPU, and bytes of memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with lines.open("rb") as stdin:
        subprocess.run([tailor, *words], stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def module(path, column):
    code = MODULE.replace("FORMAT", repr("openai-dataset")).replace("COLUMN", repr(column))
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    seconds, peak, rows = done.stdout.split()
    return float(seconds), int(peak) * 1024, int(rows)


def main(tailor, rows=1_000_000, pairs=3):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ["RAYON_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        lines, texts, nested = write(Path(folder), int(rows))
        total = lines.stat().st_size
        print(f"{rows} conversations, {total / 1e9:.2f} GB")
        for _ in range(int(pairs)):
            scan = program(tailor, ["scan", "--no-cache", "--format", "json", str(lines)], lines)
            flow = program(tailor, ["scan", "--lines", "-"], lines)
            own, peak, found = module(texts, "session")
            inner, inner_peak, _ = module(nested, "messages")
            rate = {"scan FILE": total / scan, "scan --lines -": total / flow, "check, text": total / own, "check, nested": total / inner}
            said = ", ".join(f"{name} {speed / 1e6:.0f} MB/s ({speed * scan / total:.0%})" for name, speed in rate.items())
            print(f"{said}; peak {peak / 1e6:.0f} MB and {inner_peak / 1e6:.0f} MB, {found} findings", flush=True)
            assert max(peak, inner_peak) < PEAK_BYTES_MAX, "memory should not grow with the rows"


if __name__ == "__main__":
    main(*sys.argv[1:])
