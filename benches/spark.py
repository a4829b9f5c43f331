#!/usr/bin/env python3
"""Where Spark's time goes: `session_tailor.check` in the partitions with one core and with two, as a Markdown table.

    PYTHONPATH=target/python target/python/venv/bin/python benches/spark.py [ROWS] [TURNS]

Seconds of CPU of the JVM, of the Python workers, and of the module within them, while one Parquet file of a column of text is
checked; the median turn of each. JVM, Python and the module share the cores, so that seconds of time say how it scales only on
a quiet machine. `crates/python/engines` installs what it needs.
"""

import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TICKS = os.sysconf("SC_CLK_TCK")
BATCH_ROWS = 1000


def conversations(folder, rows):
    spec = importlib.util.spec_from_file_location("of_python", Path(__file__).with_name("python.py"))
    of_python = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(of_python)
    pool = [" ".join(of_python.WORDS * 30) for _ in range(97)]
    distinct = [json.dumps(of_python.conversation(pool, n), ensure_ascii=False) for n in range(min(rows, of_python.DISTINCT_ROWS))]
    path, schema = folder / "rows.parquet", pa.schema([("session", pa.string())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as out:
        for start in range(0, rows, BATCH_ROWS):
            block = [distinct[n % len(distinct)] for n in range(start, min(start + BATCH_ROWS, rows))]
            out.write_batch(pa.record_batch([pa.array(block)], schema=schema), row_group_size=BATCH_ROWS)
    return path


def check(batches):
    import time

    import session_tailor

    for batch in batches:
        before = time.thread_time()
        found = pa.table(session_tailor.check(batch)).num_rows
        spent = time.thread_time() - before
        yield pa.record_batch([[batch.num_rows], [found], [spent]], ["rows", "findings", "seconds"])


def family():
    """Seconds of CPU of the JVM below this process, and of the Python below that."""
    parents, spent, names = {}, {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields, pid = fields.split(), int(stat.parent.name)
        parents[pid], names[pid] = int(fields[1]), name
        # Python's daemon waits for its workers; what the JVM has waited for is no part of it.
        spent[pid] = sum(map(int, fields[11 : 13 if name == "java" else 15])) / TICKS
    below = lambda pid: pid == os.getpid() or (pid in parents and below(parents[pid]))
    own = [pid for pid in parents if pid != os.getpid() and below(pid)]
    java = sum(spent[pid] for pid in own if names[pid] == "java")
    return java, sum(spent[pid] for pid in own if names[pid].startswith("python"))


def measure(spark, path, rows):
    began, (java, python) = time.perf_counter(), family()
    told = spark.read.parquet(str(path)).mapInArrow(check, "rows long, findings long, seconds double").groupBy().sum().collect()[0]
    took, (java_now, python_now) = time.perf_counter() - began, family()
    assert told[0] == rows and told[1] > 0, told
    return took, java_now - java, python_now - python, told[2]


def main(rows=200_000, turns=3):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    rows = int(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = conversations(Path(folder), rows)
        size = path.stat().st_size
        print(f"{rows} conversations, {size / 1e6:.0f} MB, in the median of {turns}\n")
        print("| | seconds | MB/s | CPU of the JVM | of Python | of it the module | the module's share |\n|---|---:|---:|---:|---:|---:|---:|")
        for cores in (1, 2):
            builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.files.maxPartitionBytes", "32m")
            spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS)).getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            measure(spark, path, rows)
            took, java, python, module = map(statistics.median, zip(*(measure(spark, path, rows) for _ in range(int(turns)))))
            spark.stop()
            print(f"| `local[{cores}]` | {took:.1f} | {size / took / 1e6:.0f} | {java:.1f} s | {python:.1f} s | {module:.1f} s | {module / (java + python):.0%} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
