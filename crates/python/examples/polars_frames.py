"""Polars: check and mend data frames; keep, or drop with the reason."""

import sys

import polars as pl
import session_tailor


def check(frame: pl.DataFrame) -> pl.DataFrame:
    found = pl.DataFrame(session_tailor.check(frame))
    return found.with_columns(frame["id"].gather(found["row"]))


def mend(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(session_tailor.mend(frame))


def main(source: str, target: str) -> None:
    mended = mend(pl.read_parquet(source))
    sound = pl.col("tailor_outcome").is_in(["clean", "fixed"])
    mended.filter(sound).write_parquet(f"{target}.parquet")
    print(mended.filter(~sound).select("id", "tailor_outcome", "tailor_reason"))


if __name__ == "__main__":
    main(*sys.argv[1:])
