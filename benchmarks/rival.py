"""The rival: one Spark job that groups the log, as a good engineer would who wants load by minute, bundle and client.

It reads the same files as `lookup evaluate`, computes namespace and bundle from the topic with Spark's own functions,
counts rows by (cluster, minute, namespace, bundle, properties), and drops the groups. Nothing is decided or scored.
"""

from __future__ import annotations

import argparse
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lookup.spark.session import create_session

__all__ = ["grouped", "main"]


def grouped(spark: SparkSession, lookups: str, bundles: int) -> DataFrame:
    """Group a canonical log: one row per (cluster, minute, namespace, bundle, properties) with its number of lookups.

    Args:
        bundles: of every namespace; a power of two, so that a bundle is a prefix of the CRC-32.
    """
    log = spark.read.parquet(lookups)
    local = F.substring_index("topic", "://", -1)
    return (
        log.select(
            "cluster",
            F.date_trunc("minute", "ts").alias("minute"),
            F.substring_index(local, "/", 2).alias("namespace"),
            F.expr(f"crc32(topic) div {2**32 // bundles}").alias("bundle"),
            "properties",
        )
        .groupBy("cluster", "minute", "namespace", "bundle", "properties")
        .count()
    )


def main() -> None:
    """Run the job once and print the seconds of the job alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lookups", required=True)
    parser.add_argument("--bundles", type=int, default=64)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    spark = create_session(options.master, "rival")
    begin = time.perf_counter()
    grouped(spark, options.lookups, options.bundles).write.format("noop").mode("overwrite").save()
    print(f"job_s={time.perf_counter() - begin:.2f}")
    spark.stop()


if __name__ == "__main__":
    main()
