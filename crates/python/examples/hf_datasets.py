"""Hugging Face datasets: check and mend in batches; keep, or drop with the reason."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
import session_tailor
from datasets import Dataset


def check(data):
    def found(batch):
        table = pa.table(session_tailor.check(batch))
        return table.append_column("id", batch["id"].take(table["row"]))

    return data.with_format("arrow").map(found, batched=True, remove_columns=data.column_names)


def mend(data):
    return data.with_format("arrow").map(lambda batch: pa.table(session_tailor.mend(batch)), batched=True)


def keep(mended):
    sound = pa.array(["clean", "fixed"])
    return mended.filter(lambda batch: pc.is_in(batch["tailor_outcome"], sound).to_pylist(), batched=True)


def main(source, target):
    mended = mend(Dataset.from_parquet(source))
    keep(mended).to_parquet(f"{target}.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
