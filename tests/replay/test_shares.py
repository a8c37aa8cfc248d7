"""DataFrames as logs, and the codes of tasks put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lookup.errors import InputError
from lookup.replay.outcome import ReplayOutcome
from lookup.replay.run import replay
from tests.replay.layouts import Layout, write_lookups
from tests.replay.plans import lookup, settings
from tests.replay.worlds import world_of

pytestmark = pytest.mark.spark


def _sums(outcome: ReplayOutcome) -> list[Any]:
    return [(one.cluster, one.policy, one.seed, one.metric, one.key, one.sums.tobytes()) for one in outcome.sums]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.glob("[do]*/*.parquet"))}


def _frame(spark: SparkSession, folder: Path) -> DataFrame:
    write_lookups([lookup(0, seq=1, weight=1.0), lookup(1, seq=2, weight=2.0)], folder / "log", Layout(True))
    return spark.read.parquet(str(folder / "log"))


@pytest.mark.parametrize("seed", [3, 14])
def test_a_frame_gives_the_same_as_its_files(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Rows that come through Spark, in any order, are decided and counted like rows read from files."""
    world = world_of(seed, 100)
    rows = [{**row, "seq": place} for place, row in enumerate(world.lookups)]
    layout = Layout(with_seq=True, file_rows=10, group_rows=3)
    written = type(world)(rows, world.settings, layout, world.tables).written(tmp_path)
    frame = spark.read.parquet(str(tmp_path / "lookups")).orderBy(F.desc("ts")).repartition(3)

    files = replay(spark, written, str(tmp_path / "files"))
    frames = replay(spark, written, str(tmp_path / "frames"), lookups=frame)

    assert _sums(frames) == _sums(files)
    assert frames.inputs == files.inputs
    assert _files(tmp_path / "frames") == _files(tmp_path / "files") != {}


def test_a_frame_without_order_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A DataFrame needs `seq`: its rows have no place in a file."""
    frame = _frame(spark, tmp_path).drop("seq")

    with pytest.raises(InputError, match=r"^lookups: column seq .* ts, cluster, topic, seq; "):
        replay(spark, settings(), str(tmp_path / "output"), lookups=frame)


def test_a_frame_of_wrong_types_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A column that cannot hold what the table says is named before anything runs."""
    frame = _frame(spark, tmp_path).withColumn("ts", F.col("ts").cast("string"))

    with pytest.raises(InputError, match=r"'ts' of the table lookups .*string"):
        replay(spark, settings(), str(tmp_path / "output"), lookups=frame)


def test_a_frame_without_rows_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """An empty DataFrame is as little of a log as an empty file."""
    frame = _frame(spark, tmp_path).limit(0)

    with pytest.raises(InputError, match=r"^lookups: none of the 0 rows"):
        replay(spark, settings(), str(tmp_path / "output"), lookups=frame)
