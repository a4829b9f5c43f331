"""Ray Data: check and mend in the workers; keep, or drop with the reason."""

import sys

import pyarrow as pa
import ray
import session_tailor


def check_batch(batch):
    found = pa.table(session_tailor.check(batch))
    return found.append_column("id", batch["id"].take(found["row"]))


def mend_batch(batch):
    return pa.table(session_tailor.mend(batch))


def check(data):
    return data.map_batches(check_batch, batch_format="pyarrow")


def mend(data):
    return data.map_batches(mend_batch, batch_format="pyarrow")


def main(source, target):
    mended = mend(ray.data.read_parquet(source))
    mended.filter(lambda row: row["tailor_outcome"] in ("clean", "fixed")).write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
