"""Chunk: sessions in pieces that a summariser can take; calls and their results stay together."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import session_tailor


def summarise(text: str) -> str:
    """Where a model would be asked."""
    first = next((line for line in text.splitlines() if line and not line.startswith("[")), "")
    return f"{len(text)} characters, beginning with {first[:60]!r}"


def main(source: str, target: str) -> None:
    paths = sorted(Path(source).rglob("*.jsonl"))
    sessions = pa.array([path.read_bytes() for path in paths], pa.large_binary())
    with open(f"{target}.jsonl", "w", encoding="utf-8") as out:
        for chunk in session_tailor.chunk(sessions, max_tokens=8000).to_pylist():
            told = {"path": str(paths[chunk["row"]])}
            if chunk["error"]:
                told |= {"error": chunk["error"]}
            else:
                told |= {"chunk": chunk["chunk"], "line": chunk["line"], "tokens": chunk["tokens"], "summary": summarise(chunk["text"])}
            print(json.dumps(told), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
