"""Hugging Face datasets: check and mend in batches; keep, or drop with the reason."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
import session_tailor
from datasets import Dataset

SOUND = pa.array(["clean", "fixed"])


def check(data: Dataset) -> Dataset:
    def found(batch: pa.Table) -> pa.Table:
        table = pa.table(session_tailor.check(batch))
        return table.append_column("id", batch["id"].take(table["row"]))

    return data.with_format("arrow").map(found, batched=True, remove_columns=data.column_names)


def mend(data: Dataset) -> Dataset:
    return data.with_format("arrow").map(lambda batch: pa.table(session_tailor.mend(batch)), batched=True)


def keep(mended: Dataset) -> Dataset:
    return mended.filter(lambda batch: pc.is_in(batch["tailor_outcome"], SOUND).to_pylist(), batched=True)


def dropped(mended: Dataset) -> Dataset:
    left = mended.filter(lambda batch: pc.invert(pc.is_in(batch["tailor_outcome"], SOUND)).to_pylist(), batched=True)
    return left.select_columns(["id", "tailor_outcome", "tailor_reason"])


def main(source: str, target: str) -> None:
    mended = mend(Dataset.from_parquet(source))
    keep(mended).to_parquet(f"{target}.parquet")
    dropped(mended).to_parquet(f"{target}.dropped.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
