"""Spark: check and mend in the partitions; keep, or drop with the reason."""

import sys
from collections.abc import Iterator

import pyarrow as pa
import session_tailor
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

FINDINGS = "row long, line long, code string, severity string, message string, fix string, saves_bytes long, more long, id long"
SOUND = "tailor_outcome in ('clean', 'fixed')"


def check_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = pa.table(session_tailor.check(batch))
        found = found.append_column("id", batch["id"].take(found["row"]))
        # Spark has no unsigned numbers.
        signed = [field.with_type(pa.int64()) if field.type == pa.uint64() else field for field in found.schema]
        yield from found.cast(pa.schema(signed)).to_batches()


def mend_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from pa.table(session_tailor.mend(batch)).to_batches()


def check(frame: DataFrame) -> DataFrame:
    return frame.mapInArrow(check_partition, FINDINGS)


def mend(frame: DataFrame) -> DataFrame:
    schema = StructType([*frame.schema.fields]).add("tailor_outcome", "string").add("tailor_reason", "string")
    return frame.mapInArrow(mend_partition, schema)


def main(source: str, target: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    mended = mend(spark.read.parquet(source)).cache()
    mended.where(SOUND).write.parquet(f"{target}/kept")
    mended.where(f"not {SOUND}").select("id", "tailor_outcome", "tailor_reason").write.parquet(f"{target}/dropped")


if __name__ == "__main__":
    main(*sys.argv[1:])
