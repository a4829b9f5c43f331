"""DuckDB: check and mend as streams between two queries; keep, or drop with the reason."""

import sys
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import session_tailor

ROWS = 1000


def sessions(source: str) -> pa.RecordBatchReader:
    """Of a connection of its own: one that a stream is read from runs no other query."""
    return duckdb.connect().sql(f"from '{source}'").to_arrow_reader(ROWS)


def check(source: str) -> pa.Table:
    """A stream of findings with the ids of their rows."""

    def found() -> Iterator[pa.Table]:
        for batch in sessions(source):
            table = pa.table(session_tailor.check(batch))
            yield table.append_column("id", batch["id"].take(table["row"]))

    return pa.concat_tables(found())


def mend(source: str) -> pa.RecordBatchReader:
    """A stream: nothing is read before the query asks for it."""
    return pa.RecordBatchReader.from_stream(session_tailor.mend(sessions(source)))


def main(source: str, target: str) -> None:
    mended = mend(source)
    duckdb.sql("create table mended as from mended")
    duckdb.sql(f"copy (from mended where tailor_outcome in ('clean', 'fixed')) to '{target}.parquet'")
    duckdb.sql("select id, tailor_outcome, tailor_reason from mended where tailor_outcome not in ('clean', 'fixed')").show()


if __name__ == "__main__":
    main(*sys.argv[1:])
