"""Mend: lines of a data set, repaired; what cannot be is set aside with the reason."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import session_tailor


def main(source: str, target: str) -> None:
    lines = Path(source).read_bytes().splitlines()
    # One session a row; `format` says that each is a line of such a set, also where a line is too damaged to show it.
    table = pa.table({"line": range(len(lines)), "session": pa.array(lines, pa.large_binary())})
    mended = session_tailor.mend(table, column="session", format="openai-dataset").to_pylist()

    with open(f"{target}.jsonl", "wb") as kept, open(f"{target}.dropped.jsonl", "w", encoding="utf-8") as dropped:
        for row in mended:
            if row["tailor_outcome"] in ("clean", "fixed"):
                kept.write(row["session"] + b"\n")
            else:
                why = {"line": row["line"] + 1, "outcome": row["tailor_outcome"], "reason": row["tailor_reason"]}
                print(json.dumps(why), file=dropped)

    # One conversation, such as the next request, needs no Arrow.
    asked = [{"role": "user", "content": "list"}, {"role": "assistant", "content": "ok"}]
    orphan = {"role": "tool", "tool_call_id": "x", "content": "whose?"}
    messages, outcome, reason = session_tailor.mend([*asked, orphan], allow=["P2"])
    print(outcome, reason, messages)


if __name__ == "__main__":
    main(*sys.argv[1:])
