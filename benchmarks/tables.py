"""BUNDLES of a large cluster: read by the tasks of a replay, in turns with a Spark job that adds up the same figures.

Both read the same file in one session, whole: the rival parses the JSON of each row and groups by bundle, to get the
traffic of each; ours checks every row and writes it as numbers, a part for each day. Then a whole
evaluation by the same table, of which the driver's memory is looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lookup.logs.schema import CANONICAL
from lookup.replay.reports import read_tables
from lookup.replay.run import replay
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile
from lookup.spark.session import create_session

__all__ = ["grouped", "main", "write_tables"]

#: Bundles, of 64 in a namespace, each of which reports once a minute.
BUNDLES = 10_000
_PER_NAMESPACE = 64
_FIRST_US = 1_767_225_600_000_000
_MINUTE_US = 60_000_000
_LOOKUPS = 200_000
_FIGURES = ("msgThroughputIn", "msgThroughputOut", "msgRateIn", "msgRateOut")


def write_tables(folder: Path, hours: int) -> None:
    """Write BUNDLES of some hours, a row group a minute, and LOOKUPS for the same bundles."""
    dice = np.random.default_rng(1)
    step = 2**32 // _PER_NAMESPACE
    ends = [(low, min(low + step, 0xFFFFFFFF)) for low in range(0, 2**32, step)]
    namespaces = [f"tenant-{number % 20:02d}/ns-{number:03d}" for number in range(-(-BUNDLES // _PER_NAMESPACE))]
    names = [f"{name}/0x{low:08x}_0x{high:08x}" for name in namespaces for low, high in ends][:BUNDLES]
    folder.mkdir(parents=True)
    with pq.ParquetWriter(folder / "bundles.parquet", CANONICAL["bundles"], compression="zstd") as writer:
        for minute in range(hours * 60):
            ts = pa.array(np.full(BUNDLES, _FIRST_US + minute * _MINUTE_US), CANONICAL["bundles"].field("ts").type)
            stats = [_stats(*row) for row in dice.gamma(2, 50_000, (BUNDLES, 4)).tolist()]
            columns = [ts, pa.array(["main"] * BUNDLES), pa.array(names), pa.array(stats)]
            writer.write_table(pa.table(columns, schema=CANONICAL["bundles"]))
    ts = np.sort(dice.integers(0, hours * 60 * _MINUTE_US, _LOOKUPS)) + _FIRST_US
    topics = [
        f"persistent://{namespaces[of]}/topic-{number}"
        for of, number in zip(
            dice.integers(0, len(namespaces), _LOOKUPS).tolist(), dice.integers(0, 256, _LOOKUPS).tolist(), strict=True
        )
    ]
    log = {"ts": pa.array(ts, CANONICAL["lookups"].field("ts").type), "cluster": ["main"] * _LOOKUPS, "topic": topics}
    pq.write_table(pa.table(log), folder / "lookups.parquet")


def _stats(bytes_in: float, bytes_out: float, producers: float, consumers: float) -> str:
    """Return `NamespaceBundleStats` as Pulsar writes it."""
    return json.dumps(
        {
            "msgRateIn": round(bytes_in / 1_000, 3),
            "msgThroughputIn": round(bytes_in, 1),
            "msgRateOut": round(bytes_out / 1_000, 3),
            "msgThroughputOut": round(bytes_out, 1),
            "consumerCount": int(consumers) % 9,
            "producerCount": int(producers) % 5,
            "topics": int(producers) % 20,
            "cacheSize": int(consumers),
        }
    )


def grouped(spark: SparkSession, path: str) -> DataFrame:
    """Return by bundle how many rows it has, and the sums of its throughput and rates."""
    kind = ", ".join(f"{name} DOUBLE" for name in _FIGURES)
    rows = spark.read.parquet(path).select("bundle", F.from_json("stats", kind).alias("stats"))
    return rows.groupBy("bundle").agg(F.count("*"), *(F.sum(f"stats.{name}") for name in _FIGURES))


def _settings(folder: Path) -> EvaluationFile:
    return EvaluationFile.model_validate(
        {
            "evaluation": {"incumbent": "least-used", "seeds": 1, "default_bundles": _PER_NAMESPACE},
            "inputs": {"lookups": str(folder / "lookups.parquet"), "bundles": str(folder / "bundles.parquet")},
            "brokers": [{"id": "broker-{n}:8080", "count": 20}],
            "policies": [{"name": "least-used", "selector": "least-resource-usage"}],
        }
    )


@dataclass(frozen=True)
class _Round:
    ours_s: float
    rival_s: float


def _rounds(spark: SparkSession, folder: Path, rounds: int) -> Iterator[_Round]:
    """Yield how long both took, in turns; the first pays for starting Python workers and is left out."""
    settings = _settings(folder)
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory(prefix="bench-") as work:
            begin = time.perf_counter()
            read_tables(spark, settings, tick_us=_MINUTE_US, work=WorkDir(work), quarantine=f"{work}/quarantine")
            ours = time.perf_counter() - begin
        begin = time.perf_counter()
        grouped(spark, str(folder / "bundles.parquet")).write.format("noop").mode("overwrite").save()
        if number:
            yield _Round(ours, time.perf_counter() - begin)


def main() -> None:
    """Print the seconds of both, or the peak memory of this process and of its JVM, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder for the tables, which are written once")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--driver", action="store_true", help="replay by the table, and look at the driver's memory")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    folder = options.data / f"bundles-{options.hours}h"
    if not folder.exists():
        print(f"... writing {folder}", file=sys.stderr, flush=True)
        write_tables(folder, options.hours)
    rows = options.hours * 60 * BUNDLES
    if options.driver:
        # A small heap, since Java fills any; what is not garbage has to fit.
        spark = create_session(options.master, "tables", settings={"spark.driver.memory": "512m"})
        with tempfile.TemporaryDirectory(prefix="bench-") as output:
            replay(spark, _settings(folder), output)
        javas = [child for child in psutil.Process().children() if child.name().startswith("java")]
        sizes = {"python_bytes": _peak(psutil.Process().pid), "java_bytes": sum(_peak(java.pid) for java in javas)}
        found = {"rows": rows, **sizes}
    else:
        spark = create_session(options.master, "tables")
        measured = list(_rounds(spark, folder, options.rounds))
        seconds = {"ours_s": [each.ours_s for each in measured], "rival_s": [each.rival_s for each in measured]}
        found = {"rows": rows, **seconds}
    spark.stop()
    print(json.dumps(found))


def _peak(process: int) -> int:
    """Return the largest memory that a process had resident, bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
