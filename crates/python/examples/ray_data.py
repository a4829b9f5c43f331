"""Ray Data: check and mend in the workers; keep, or drop with the reason."""

import sys

import pyarrow as pa
import ray
import session_tailor

SOUND = ("clean", "fixed")


def check_batch(batch: pa.Table) -> pa.Table:
    found = pa.table(session_tailor.check(batch))
    return found.append_column("id", batch["id"].take(found["row"]))


def mend_batch(batch: pa.Table) -> pa.Table:
    return pa.table(session_tailor.mend(batch))


def check(data: ray.data.Dataset) -> ray.data.Dataset:
    return data.map_batches(check_batch, batch_format="pyarrow")


def mend(data: ray.data.Dataset) -> ray.data.Dataset:
    return data.map_batches(mend_batch, batch_format="pyarrow")


def main(source: str, target: str) -> None:
    mended = mend(ray.data.read_parquet(source)).materialize()
    mended.filter(lambda row: row["tailor_outcome"] in SOUND).write_parquet(f"{target}/kept")
    dropped = mended.filter(lambda row: row["tailor_outcome"] not in SOUND)
    dropped.select_columns(["id", "tailor_outcome", "tailor_reason"]).write_parquet(f"{target}/dropped")


if __name__ == "__main__":
    main(*sys.argv[1:])
