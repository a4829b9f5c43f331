"""Weigh: which sessions do not fit a context window, and what fills them."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import session_tailor

WINDOW_TOKENS = 128_000
PARTS = ("results", "calls", "assistant", "thinking", "user", "notes", "images", "side_copies", "envelope", "bookkeeping")


def main(source: str, target: str) -> None:
    paths = sorted(Path(source).rglob("*.jsonl"))
    sessions = pa.array([path.read_bytes() for path in paths], pa.large_binary())
    weights = pa.table(session_tailor.weigh(sessions, threads=0))
    weights = weights.append_column("path", pa.array([str(path) for path in paths]).take(weights["row"]))
    weights = weights.sort_by([("context_tokens", "descending")])

    print(f"{weights.num_rows} sessions, {pc.sum(weights['context_tokens']).as_py() or 0} tokens in context")
    for row in weights.filter(pc.greater(weights["context_tokens"], WINDOW_TOKENS)).to_pylist():
        most = max(PARTS, key=lambda part: row[f"{part}_bytes"] or 0)
        print(f"{row['context_tokens']:>9} tokens, mostly {most}: {row['path']}")
    columns = ["path", "format", "error", "bytes", "context_tokens", *(f"{part}_bytes" for part in PARTS)]
    pyarrow.csv.write_csv(weights.select(columns), f"{target}.csv")


if __name__ == "__main__":
    main(*sys.argv[1:])
