"""Daft: check and mend as functions over batches of a column; keep, or drop with the reason."""

import sys
from typing import Any

import daft
import pyarrow as pa
import session_tailor

FINDING = pa.struct([("line", pa.uint64()), ("code", pa.string()), ("severity", pa.string()), ("message", pa.string()), ("fix", pa.string()), ("saves_bytes", pa.uint64()), ("more", pa.uint64())])
OUTCOMES = pa.struct([("tailor_outcome", pa.string()), ("tailor_reason", pa.string())])


def check(frame: Any, column: str = "session") -> Any:
    @daft.func.batch(return_dtype=daft.DataType.from_arrow_type(pa.list_(FINDING)))
    def found(sessions: Any) -> Any:
        rows: list[list[dict[str, Any]]] = [[] for _ in range(len(sessions))]
        for finding in session_tailor.check(pa.table({column: sessions.to_arrow()})).to_pylist():
            rows[finding.pop("row")].append(finding)
        return pa.array(rows, pa.list_(FINDING))

    found_in = frame.select("id", found(daft.col(column)).alias("found")).explode("found").where(daft.col("found").not_null())
    return found_in.select("id", *(daft.col("found").get(field.name).alias(field.name) for field in FINDING))


def mend(frame: Any, column: str = "session") -> Any:
    kind = frame.schema()[column].dtype
    fields = [pa.field(column, kind.to_arrow_dtype()), *OUTCOMES]

    @daft.func.batch(return_dtype=daft.DataType.from_arrow_type(pa.struct(fields)), unnest=True)
    def mended(sessions: Any) -> Any:
        made = pa.table(session_tailor.mend(pa.table({column: sessions.to_arrow()})))
        return made.to_struct_array().combine_chunks().cast(pa.struct(fields))

    return frame.select("id", mended(daft.col(column)))


def main(source: str, target: str) -> None:
    mended = mend(daft.read_parquet(source)).collect()
    sound = daft.col("tailor_outcome").is_in(["clean", "fixed"])
    mended.where(sound).write_parquet(target)
    mended.where(~sound).select("id", "tailor_outcome", "tailor_reason").show()


if __name__ == "__main__":
    main(*sys.argv[1:])
