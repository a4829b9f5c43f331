"""Spark over an object store: each task reads one Parquet object, mends it and writes one, through pyarrow.fs.

`spark-submit spark_s3.py BUCKET/IN BUCKET/OUT`, with the store in S3_ENDPOINT, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. An
object appears under OUT only once it is whole: it is written under OUT/_parts, counted, and copied. So a task that dies in the
middle is done again by Spark, and a run that dies is started again with the same command: what is there is not done twice.
"""

import os
import sys
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import session_tailor
from pyspark.sql import SparkSession

REPORT = "object string, rows long, fixed long, dropped long"
ROWS = 256


def store():
    endpoint = urlsplit(os.environ["S3_ENDPOINT"])
    keys = {"access_key": os.environ["AWS_ACCESS_KEY_ID"], "secret_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
    return fs.S3FileSystem(endpoint_override=endpoint.netloc, scheme=endpoint.scheme, region="us-east-1", allow_bucket_creation=False, **keys)


def mend_object(files, source, target):
    """Mends an object: how many rows it has, how many were mended, and how many are no sessions or have problems left."""
    part = f"{os.path.dirname(target)}/_parts/{os.path.basename(target)}.{os.getpid()}"
    rows, counts = 0, {}
    with files.open_input_file(source) as opened:
        given = pq.ParquetFile(opened)
        reader = pa.RecordBatchReader.from_batches(given.schema_arrow, given.iter_batches(ROWS))
        mended = pa.RecordBatchReader.from_stream(session_tailor.mend(reader))
        with files.open_output_stream(part) as out, pq.ParquetWriter(out, mended.schema) as writer:
            for batch in mended:
                writer.write_batch(batch)
                rows += batch.num_rows
                for outcome in batch["tailor_outcome"].to_pylist():
                    counts[outcome] = counts.get(outcome, 0) + 1
        expected = given.metadata.num_rows
    if rows != expected or pq.read_metadata(part, filesystem=files).num_rows != expected:
        raise RuntimeError(f"{source}: {expected} rows were read and {rows} written")
    files.copy_file(part, target)
    files.delete_file(part)
    return rows, counts.get("fixed", 0), rows - counts.get("clean", 0) - counts.get("fixed", 0)


def mend_objects(target):
    def run(batches):
        files = store()
        for batch in batches:
            for source in batch["object"].to_pylist():
                done = f"{target}/{os.path.basename(source)}"
                if files.get_file_info(done).type == fs.FileType.NotFound:
                    told = [source, *mend_object(files, source, done)]
                    yield pa.record_batch([[one] for one in told], ["object", "rows", "fixed", "dropped"])

    return run


def mend(spark, source, target):
    listed = store().get_file_info(fs.FileSelector(source))
    objects = [(info.path,) for info in listed if info.path.endswith(".parquet")]
    frame = spark.createDataFrame(objects, "object string").repartition(max(len(objects), 1), "object")
    return frame.mapInArrow(mend_objects(target), REPORT)


def main(source, target):
    mend(SparkSession.builder.getOrCreate(), source, target).show(truncate=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
