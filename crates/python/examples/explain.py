"""Explain: a log of API errors by kind, and what to do about each."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import session_tailor


def main(source: str, target: str) -> None:
    errors = pa.table({"error": Path(source).read_text(encoding="utf-8").splitlines()})
    known = pa.table(session_tailor.explain(errors, column="error"))
    kinds = known.group_by(["known", "what", "codes", "fix"]).aggregate([("row", "count")]).sort_by([("row_count", "descending")])
    with open(f"{target}.jsonl", "w", encoding="utf-8") as out:
        for kind in kinds.to_pylist():
            print(json.dumps(kind), file=out)

    for kind in kinds.to_pylist():
        print(f"{kind['row_count']} × {kind['what'] or 'errors of other kinds'}")
        # The rules that find the cause in a session, each in a line.
        for code in filter(None, (kind["codes"] or "").split(",")):
            print(f"    {(session_tailor.explain(code) or code).splitlines()[0]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
