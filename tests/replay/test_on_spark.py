"""A replay on Spark equals the loop, and so the one in this process, from any number of partitions."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.logs.ingest import ingest
from lookup.logs.readers import DelimitedReader
from lookup.settings.evaluation import EvaluationFile
from tests.replay.proving import POLICIES, hashing_world, mixed, prove, prove_mixed, prove_settings, rows_of
from tests.replay.worlds import moving_world, world_of

_PLUGIN = Path(__file__).parent.parent / "assets" / "sample_plugin" / "lookup_sample_plugin.py"


@pytest.mark.spark
def test_spark_replays_hashes_the_same_from_1_8_and_64_partitions(spark: SparkSession) -> None:
    """Workers mix in the salt of each seed, however many of them there are."""
    prove(spark, hashing_world(23), partitions=(1, 8, 64))


@pytest.mark.spark
@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_spark_moves_the_same_from_1_8_and_64_partitions(spark: SparkSession, owner_loss: str) -> None:
    """Owners and the lookups that meet them do not depend on how the log is divided."""
    prove(spark, moving_world(23, owner_loss), partitions=(1, 8, 64))


@pytest.mark.spark
def test_spark_replays_other_bundles_as_if_alone(spark: SparkSession) -> None:
    """Workers know the bundles of every policy."""
    prove_mixed(spark, mixed(world_of(23, 100), (None, 6, 4)), partitions=(1, 8))


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(4))
def test_spark_equals_a_plain_loop(spark: SparkSession, seed: int) -> None:
    """A replay on Spark decides and counts what a loop over single lookups does."""
    prove(spark, world_of(seed, 100), partitions=(8,), whole=seed % 2 == 0)


@pytest.mark.path
@pytest.mark.spark
def test_spark_gives_the_same_from_1_8_and_64_partitions(spark: SparkSession) -> None:
    """Spark's answer is the same to the byte however many tasks read the log."""
    prove(spark, world_of(77, 100), partitions=(1, 8, 64))


@pytest.mark.spark
def test_the_parts_of_a_plug_in_are_replayed_exactly(spark: SparkSession) -> None:
    """Parts of a plug-in file, one of which keeps memory, decide on workers as they do in a loop."""
    world = world_of(5, 100)
    policies = [{"name": "p0", "filters": ["not-drained"], "scorers": ["tenant-home"], "selector": "sticky-tenant"}]
    plugged = replace(world, settings={**world.settings, "policies": policies, "plugin_files": [str(_PLUGIN)]})

    prove(spark, plugged, partitions=(8,))


@pytest.mark.spark
def test_a_generated_log_is_replayed_exactly(spark: SparkSession, tmp_path: Path) -> None:
    """The replay of a log of `lookup generate`, with joins, losses, splits and unloads, equals the loop."""
    shape = GenerateSettings(lookups=3000, hours=1.0, topics=60, namespaces=6, tenants=3, clients=40, brokers=8)
    generate(shape, tmp_path / "sample")
    tables = {name: str(tmp_path / "sample" / name) for name in ("lookups", "brokers", "ownership")}
    file = {"evaluation": {"incumbent": "rack", "seeds": [1]}, "inputs": tables, "policies": list(POLICIES)}

    prove_settings(spark, EvaluationFile.model_validate(file), tmp_path, partitions=(8,))


#: When a broker of the real trace leaves, an hour and a half after its first request.
_LEAVES = "1995-08-01T07:30:00+00:00"


def _real_trace(spark: SparkSession, folder: Path, lines: list[str], reader: DelimitedReader) -> str:
    """Ingest lines of the trace; return the LOOKUPS table, in row groups of 100, which several tasks can share."""
    (folder / "nasa.tsv").write_text("".join(lines), encoding="latin-1")
    ingest(spark, [str(folder / "nasa.tsv")], reader, str(folder / "nasa"))
    for file in sorted((folder / "nasa" / "lookups").rglob("*.parquet")):
        pq.write_table(pq.ParquetFile(file).read(), file, row_group_size=100)
    return str(folder / "nasa" / "lookups")


def _real_evaluation(lookups: str) -> EvaluationFile:
    """Compare two policies over three brokers, one of which leaves."""
    brokers: list[dict[str, Any]] = [
        {"id": f"b{n}:8080", "properties": {"lookup.rack": rack}} for n, rack in enumerate(("com", "edu", "net"))
    ]
    brokers[2]["until"] = _LEAVES
    # With the four bundles of the default `stock` gives the third broker none to lose.
    evaluation = {"incumbent": "rack", "default_bundles": 16, "seeds": [1]}
    file = {"evaluation": evaluation, "inputs": {"lookups": lookups}, "brokers": brokers, "policies": list(POLICIES)}
    return EvaluationFile.model_validate(file)


def _assert_somebody_lost_bundles(output: Path) -> None:
    """A log in which nobody leaves proves nothing about leaving."""
    left = round(datetime.fromisoformat(_LEAVES).timestamp() * 1e6)
    for run, rows in rows_of(output, "owners").items():
        ended = {(row["broker"], row["to"]) for row in rows if row["ended_by"] == "forced"}
        assert ended == {("b2:8080", left)}, run


@pytest.fixture
def trace(shared_data: Path) -> list[str]:
    """Return the lines of the NASA trace, the first of which is its head."""
    return (shared_data / "nasa_http_19950801.tsv").read_text(encoding="latin-1").splitlines(keepends=True)


@pytest.mark.spark
def test_the_real_trace_is_replayed_exactly(
    spark: SparkSession, tmp_path: Path, trace: list[str], nasa_reader: DelimitedReader
) -> None:
    """The first 3,000 requests of the NASA trace equal the loop, with 1, 8 and 64 tasks; a broker leaves meanwhile."""
    file = _real_evaluation(_real_trace(spark, tmp_path, trace[:3001], nasa_reader))

    prove_settings(spark, file, tmp_path, partitions=(1, 8, 64))
    _assert_somebody_lost_bundles(tmp_path / "output-1")


@pytest.mark.thorough
@pytest.mark.spark
def test_the_whole_real_trace_is_replayed_exactly(
    spark: SparkSession, tmp_path: Path, trace: list[str], nasa_reader: DelimitedReader
) -> None:
    """All 30,969 requests of the NASA trace equal the loop."""
    file = _real_evaluation(_real_trace(spark, tmp_path, trace, nasa_reader))

    prove_settings(spark, file, tmp_path, partitions=(8,), whole=True)
    _assert_somebody_lost_bundles(tmp_path / "output-8")
