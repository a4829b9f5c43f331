"""Check: what is wrong with a data set, as Parquet for later questions, and as a table of rules."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import session_tailor


def main(source: str, target: str) -> None:
    # Row groups are read as they are needed, so a set of any size goes through.
    sessions = pq.ParquetFile(source)
    batches = pa.RecordBatchReader.from_batches(sessions.schema_arrow, sessions.iter_batches(1000))
    found = pa.RecordBatchReader.from_stream(session_tailor.check(batches, threads=0))
    with pq.ParquetWriter(f"{target}.parquet", found.schema) as out:
        for batch in found:
            out.write_batch(batch)

    found = pq.read_table(f"{target}.parquet")
    print(f"{sessions.metadata.num_rows} rows, {len(found['row'].unique())} of them with problems")
    # Without a code, the row is no session at all; `message` says why.
    rules = found.group_by(["code", "severity"]).aggregate([("row", "count_distinct"), ("saves_bytes", "sum")])
    for rule in rules.sort_by([("row_count_distinct", "descending")]).to_pylist():
        name = (session_tailor.explain(rule["code"]) or "").splitlines()[0] if rule["code"] else "no session"
        print(f"{rule['row_count_distinct']:>8} rows  {rule['severity']:<8} {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
