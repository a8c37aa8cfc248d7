"""The rivals: what an analyst pays for one count of the log, in the ways in which a good engineer would make it.

All read the files that `lookup evaluate` reads, and count rows by cluster, minute, namespace, bundle and properties; a
bundle is one of 64 by a hash of the topic. The groups are dropped, and nothing is decided or scored. `arrow` only reads
the five columns, which is the floor for anybody. A rival is loaded when it is asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

__all__ = ["RIVALS", "main"]

_BUNDLES = 64
_COLUMNS = ["ts", "cluster", "topic", "properties", "broker"]


def _arrow(lookups: str) -> int:
    """Read the five columns, file by file."""
    import pyarrow.dataset as pads  # noqa: PLC0415

    files = pads.dataset(lookups).files
    return sum(pads.dataset(file).to_table(columns=_COLUMNS).num_rows for file in files)


def _duckdb(lookups: str) -> int:
    """Return the number of groups."""
    import duckdb  # type: ignore[import-not-found]  # noqa: PLC0415  of the extra `test`

    groups = f"""
        select cluster, date_trunc('minute', ts), split_part(topic, '/', 3) || '/' || split_part(topic, '/', 4),
               hash(topic) % {_BUNDLES}, properties, count(*) as lookups
        from read_parquet('{lookups}/*.parquet') group by all
    """
    return int(duckdb.sql(f"select count(*) from ({groups}) where lookups > 0").fetchall()[0][0])


def _polars(lookups: str) -> int:
    """Return the number of groups."""
    import polars as pl  # type: ignore[import-not-found]  # noqa: PLC0415  of the extra `test`

    topic = pl.col("topic")
    keys = [
        pl.col("cluster"),
        pl.col("ts").dt.truncate("1m").alias("minute"),
        topic.str.extract(r"^[^/]*//([^/]*/[^/]*)/").alias("namespace"),
        (topic.hash() % _BUNDLES).alias("bundle"),
        pl.col("properties"),
    ]
    grouped = pl.scan_parquet(f"{lookups}/*.parquet").group_by(keys).agg(pl.len())
    return int(grouped.collect(engine="streaming").height)


def _spark(lookups: str) -> int:
    """Group on both cores of this machine, in a session as `lookup` starts it."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    from lookup.spark.session import create_session  # noqa: PLC0415

    spark = create_session("local[2]", "rival")
    grouped = (
        spark.read.parquet(lookups)
        .select(
            "cluster",
            F.date_trunc("minute", "ts").alias("minute"),
            F.substring_index(F.substring_index("topic", "://", -1), "/", 2).alias("namespace"),
            F.expr(f"crc32(topic) div {2**32 // _BUNDLES}").alias("bundle"),
            "properties",
        )
        .groupBy("cluster", "minute", "namespace", "bundle", "properties")
        .count()
    )
    grouped.write.format("noop").mode("overwrite").save()
    spark.stop()
    return 0


RIVALS: Mapping[str, Callable[[str], int]] = {"arrow": _arrow, "duckdb": _duckdb, "polars": _polars, "spark": _spark}


def main() -> None:
    """Run one of them once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rival", choices=list(RIVALS))
    parser.add_argument("lookups")
    options = parser.parse_args()
    print(RIVALS[options.rival](options.lookups))


if __name__ == "__main__":
    main()
