"""Spark over an object store: each task reads one Parquet object, mends it and writes one, through pyarrow.fs.

`spark-submit spark_s3.py BUCKET/IN BUCKET/OUT`, with the store in S3_ENDPOINT, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of
the driver and of the workers (`--conf spark.executorEnv.S3_ENDPOINT=...` where they do not inherit the driver's).

An object appears under OUT only once it is whole: it is written under OUT/_parts, counted, and copied. So a task that dies in
the middle is done again by Spark, and a run that dies is started again with the same command: what is there is not done twice,
and what a dead run has left in OUT/_parts is removed. One run at a time works on an OUT.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import session_tailor
from pyspark.sql import DataFrame, SparkSession

REPORT = "object string, rows long, fixed long, dropped long"
ROWS = 256


def store() -> Any:
    endpoint = urlsplit(os.environ["S3_ENDPOINT"])
    keys = {"access_key": os.environ["AWS_ACCESS_KEY_ID"], "secret_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
    return fs.S3FileSystem(endpoint_override=endpoint.netloc, scheme=endpoint.scheme, region="us-east-1", allow_bucket_creation=False, **keys)


def mend_object(files: Any, source: str, target: str) -> tuple[int, int, int]:
    """Mends an object: how many rows it has, how many were mended, and how many are no sessions or have problems left."""
    folder, name = os.path.split(target)
    # Attempts at the same object have files of their own, on whichever host.
    part = f"{folder}/_parts/{name}.{uuid4().hex}"
    counts: dict[str, int] = {}
    with files.open_input_file(source) as opened:
        given = pq.ParquetFile(opened)
        reader = pa.RecordBatchReader.from_batches(given.schema_arrow, given.iter_batches(ROWS))
        mended = pa.RecordBatchReader.from_stream(session_tailor.mend(reader))
        with files.open_output_stream(part) as out, pq.ParquetWriter(out, mended.schema) as writer:
            for batch in mended:
                writer.write_batch(batch)
                for outcome in batch["tailor_outcome"].to_pylist():
                    counts[outcome] = counts.get(outcome, 0) + 1
        expected = given.metadata.num_rows
    rows = sum(counts.values())
    if rows != expected or pq.read_metadata(part, filesystem=files).num_rows != expected:
        raise RuntimeError(f"{source}: {expected} rows were read and {rows} written")
    files.copy_file(part, target)
    files.delete_file(part)
    return rows, counts.get("fixed", 0), rows - counts.get("clean", 0) - counts.get("fixed", 0)


def mend_objects(target: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = store()
        for batch in batches:
            for source in batch["object"].to_pylist():
                told = [source, *mend_object(files, source, f"{target}/{os.path.basename(source)}")]
                yield pa.record_batch([[one] for one in told], ["object", "rows", "fixed", "dropped"])

    return run


def mend(spark: SparkSession, source: str, target: str) -> DataFrame:
    """What is not mended yet, an object a task."""
    files = store()
    files.delete_dir_contents(f"{target}/_parts", missing_dir_ok=True)
    listed = files.get_file_info(fs.FileSelector(source))
    done = {info.base_name for info in files.get_file_info(fs.FileSelector(target, allow_not_found=True))}
    objects = [(info.path,) for info in listed if info.extension == "parquet" and info.base_name not in done]
    # As many slices as objects: Spark cuts a list by position, so that each slice has one.
    rows = spark.sparkContext.parallelize(objects, max(len(objects), 1))
    return spark.createDataFrame(rows, "object string").mapInArrow(mend_objects(target), REPORT)


def main(source: str, target: str) -> None:
    mend(SparkSession.builder.getOrCreate(), source, target).show(truncate=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
