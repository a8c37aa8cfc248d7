"""The replay equals a plain loop over the load manager, row for row and figure for figure, however the log is cut."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lookup.errors import InputError
from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.logs.ingest import ingest
from lookup.logs.jobs import InProcess
from lookup.logs.readers import DelimitedReader
from lookup.replay.outcome import LOGGED, MetricSums, ReplayOutcome
from lookup.replay.run import replay
from lookup.score.metrics import lookup_register_metrics
from lookup.settings.evaluation import EvaluationFile
from tests.replay.oracle import Tale, tell
from tests.replay.worlds import START_US, World, earlier, moving_world, world_of, worlds

_METRICS = {metric.name: metric() for metric in lookup_register_metrics()}
_BY = ("tenant", "namespace", "rack")
_PLUGIN = Path(__file__).parent.parent / "assets" / "sample_plugin" / "lookup_sample_plugin.py"
_RACK = {"use": "property-match", "key": "rack"}
_POLICIES = (
    {"name": "rack", "scorers": [_RACK], "selector": "best", "shedder": {"use": "threshold", "threshold": 0.05}},
    {"name": "stock", "filters": ["anti-affinity"], "selector": "least-resource-usage"},
)


def _rows(folder: Path, table: str) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for file in sorted((folder / table).glob("*.parquet")):
        with pq.ParquetFile(file) as parquet:
            for row in parquet.read().to_pylist():
                found[row["cluster"], row["policy"], row["seed"]].append(_plain(row))
    return found


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in row.items() if name not in ("cluster", "policy", "seed")}
    for name in ("ts", "from", "to"):
        if plain.get(name) is not None:
            plain[name] = round(plain[name].timestamp() * 1e6)
    return {name: sorted(value) if isinstance(value, list) else value for name, value in plain.items()}


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def _value(parts: list[MetricSums]) -> float:
    metric = _METRICS[parts[0].metric]
    sums = parts[0].sums
    return float(metric.value(sums if metric.resample == "none" else sums.sum(axis=0)))


def _figures(outcome: ReplayOutcome) -> dict[Any, dict[tuple[str, str | None], float]]:
    found: dict[Any, dict[tuple[str, str | None], float]] = defaultdict(dict)
    for one in outcome.sums:
        found[one.cluster, one.policy, one.seed, one.by][one.metric, one.key] = _value([one])
    return found


def _assert_figures(found: Mapping[Any, float], told: Mapping[Any, float], where: object) -> None:
    for name in sorted({*found, *told}, key=repr):
        a, b = found.get(name, math.nan), told.get(name, math.nan)
        same = (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
        assert same, f"{where}: {name}: the replay says {a}, the loop {b}"


def _assert_equal(outcome: ReplayOutcome, folder: Path, tale: Tale) -> None:
    decisions, owners, figures = _rows(folder, "decisions"), _rows(folder, "owners"), _figures(outcome)
    cycles = _rows(folder, "cycles")
    for run, told in tale.runs.items():
        assert _sorted(decisions[run]) == _sorted(told.decisions), run
        assert _sorted(owners[run]) == _sorted(told.owners), run
        assert _sorted(cycles[run]) == _sorted(told.cycles), run
        _assert_figures(figures[*run, ()], told.figures, run)
        for by, part in told.parts.items():
            _assert_figures(figures[*run, by], part, (run, by))
    for cluster, told_of_log in tale.logged.items():
        _assert_figures(figures[cluster, LOGGED, 0, ()], told_of_log, (cluster, LOGGED))
    assert bool(tale.logged) == (outcome.logged_reason is None)


def _assert_facts(outcome: ReplayOutcome, tale: Tale) -> None:
    inputs, facts = outcome.inputs, tale.facts
    assert inputs.lookups == facts["lookups"]
    assert inputs.ticks == facts["ticks"]
    assert inputs.induced_ratio == facts["induced"] / facts["lookups"]
    assert (inputs.capacity == "assumed") == facts["assumed"]
    assert inputs.quarantined == sum(tale.quarantined.values())
    cycles = {name: (of.cycles, of.accepted, of.refused.total()) for name, of in inputs.cycles.items()}
    assert cycles == tale.cycles
    _assert_figures(outcome.at_best, facts["at_best"], "at best")


def _assert_none_is_nearer(outcome: ReplayOutcome) -> None:
    """No policy that answers every lookup serves more of them nearby than freely moving owners could."""
    pooled: dict[Any, list[MetricSums]] = defaultdict(list)
    for one in outcome.sums:
        if not one.by:
            pooled[one.policy, one.seed, one.metric, one.key].append(one)
    for (policy, seed, metric, key), parts in pooled.items():
        best = outcome.at_best.get((policy, metric, key))
        answered = pooled[policy, seed, "answered_ratio", None]
        if metric == "match_ratio" and best is not None and _pooled(answered) == 1.0:
            assert _pooled(parts) <= best + 1e-12, (policy, seed, key)


def _pooled(parts: list[MetricSums]) -> float:
    return float(_METRICS[parts[0].metric].value(sum(part.sums.sum(axis=0) for part in parts)))


def _bytes(folder: Path) -> dict[str, bytes]:
    files = [
        file
        for table in ("decisions", "owners", "cycles", "cells", "flows")
        for file in sorted((folder / table).glob("*"))
    ]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _parts(file: EvaluationFile) -> tuple[str, ...]:
    return (*_BY, "hour") if 3600 % file.evaluation.balance_s == 0 else _BY


def _prove(session: Any, world: World, *, partitions: tuple[int, ...], whole: bool = False) -> None:
    with tempfile.TemporaryDirectory() as name:
        _prove_settings(session, world.written(Path(name)), Path(name), partitions=partitions, whole=whole)


def _prove_settings(
    session: Any, file: EvaluationFile, folder: Path, *, partitions: tuple[int, ...], whole: bool = False
) -> Tale:
    by = () if whole else _parts(file)
    tale = tell(file, by=by)
    seen: list[tuple[dict[str, bytes], Any]] = []
    for count in partitions:
        output = folder / f"output-{count}"
        outcome = _replayed(session, file, output, by=by, partitions=count)
        if not seen:
            _assert_equal(outcome, output, tale)
            _assert_facts(outcome, tale)
            _assert_none_is_nearer(outcome)
        seen.append((_bytes(output), _exact(outcome)))
    for files, sums in seen[1:]:
        assert files == seen[0][0]
        assert sums == seen[0][1]
    return tale


def _replayed(session: Any, file: EvaluationFile, output: Path, **given: Any) -> ReplayOutcome:
    try:
        return replay(session, file, str(output), **given)
    except InputError as error:
        # A short log may lie whole in its warm-up or without brokers, and a cluster may have no row in one of log and
        # table: refused.
        refusals = (
            "leaves nothing to score",
            "no lookup of the log is scored",
            "give both the same names",
            "no broker that is registered at any time",
        )
        if any(refusal in str(error) for refusal in refusals):
            reject()
        raise


def _exact(outcome: ReplayOutcome) -> Any:
    sums = [
        (one.cluster, one.policy, one.seed, one.metric, one.key, one.by, one.start_us, one.events, one.sums.tobytes())
        for one in outcome.sums
    ]
    return (
        sums,
        dict(outcome.at_best),
        outcome.inputs,
        outcome.logged_reason,
        dict(outcome.unsalted),
        dict(outcome.cannot_act),
    )


@given(worlds(), st.booleans())
@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_jobs_equal_a_plain_loop(world: World, whole: bool) -> None:
    """The jobs of a replay, run one after the other, decide and count what a loop over single lookups does."""
    _prove(InProcess(), world, partitions=(64,), whole=whole)


def test_reports_of_strangers_tell_nothing_of_a_cluster() -> None:
    """Topics are counted where only brokers that were never registered have reported how many they have."""
    _prove(InProcess(), world_of(4660, 20), partitions=(1,), whole=True)


@given(worlds())
@settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_figure_depends_on_how_the_log_is_divided(world: World) -> None:
    """Decisions, owners and sums are the same to the byte from 1, 8 and 64 tasks."""
    _prove(InProcess(), world, partitions=(1, 8, 64))


@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_moves_are_replayed_exactly(tmp_path: Path, owner_loss: str) -> None:
    """Under both kinds of owner loss; every way to lose a bundle is among the worlds."""
    endings: set[str] = set()
    for seed in (0, 2, 3, 4, 8, 20, 23):
        file = moving_world(seed, owner_loss).written(tmp_path / str(seed))
        tale = _prove_settings(InProcess(), file, tmp_path / str(seed), partitions=(8,))
        endings |= {row["ended_by"] for told in tale.runs.values() for row in told.owners}

    assert endings == {None, "admin", "forced", "shed", "split"}


@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_a_log_from_before_1970_is_replayed_exactly(tmp_path: Path, owner_loss: str) -> None:
    """Instants below 0 are instants like others."""
    file = earlier(moving_world(8, owner_loss), 2 * START_US).written(tmp_path)
    tale = _prove_settings(InProcess(), file, tmp_path, partitions=(8,))

    assert all(told.decisions and told.owners for told in tale.runs.values())


#: Policies that hash, alone and in a wrapper.
_HASHING: tuple[dict[str, Any], ...] = (
    {"name": "topics", "selector": {"use": "rendezvous", "key": "topic"}},
    {"name": "mixed", "selector": {"use": "explore", "epsilon": 0.3, "child": "rendezvous"}},
    {"name": "ring", "selector": {"use": "bounded-consistent-hash", "points": 5}},
    {"name": "moved", "selector": "rendezvous", "shedder": {"use": "restless", "every": 2}},
)


def _hashing_world(seed: int) -> World:
    """Make a world whose policies all hash, each replayed with two seeds."""
    world = world_of(seed, 100)
    section = {**world.settings["evaluation"], "incumbent": "mixed", "seeds": [7, 3]}
    return replace(world, settings={**world.settings, "evaluation": section, "policies": list(_HASHING)})


def test_replicates_of_policies_that_hash_are_replayed_exactly() -> None:
    """Each seed has the decisions, owners and figures of a loop with its salt, from 1, 8 and 64 tasks."""
    for seed in (0, 5, 23, 77):
        _prove(InProcess(), _hashing_world(seed), partitions=(1, 8, 64))


def test_replicates_of_a_hash_differ(tmp_path: Path) -> None:
    """A policy that only hashes rolls no dice, and still has another outcome with every seed."""
    file = _hashing_world(23).written(tmp_path)
    replay(InProcess(), file, str(tmp_path / "output"))
    brokers = {
        run: [(row["bundle"], row["broker"]) for row in rows]
        for run, rows in _rows(tmp_path / "output", "decisions").items()
    }

    for cluster in {cluster for cluster, _, _ in brokers}:
        assert brokers[cluster, "topics", 7] != brokers[cluster, "topics", 3]


@pytest.mark.spark
def test_spark_replays_hashes_the_same_from_1_8_and_64_partitions(spark: SparkSession) -> None:
    """Workers mix in the salt of each seed, however many of them there are."""
    _prove(spark, _hashing_world(23), partitions=(1, 8, 64))


@pytest.mark.spark
@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_spark_moves_the_same_from_1_8_and_64_partitions(spark: SparkSession, owner_loss: str) -> None:
    """Owners and the lookups that meet them do not depend on how the log is divided."""
    _prove(spark, moving_world(23, owner_loss), partitions=(1, 8, 64))


#: Numbers of bundles of which some divide each other, and some do not.
_COUNTS = (None, 1, 2, 3, 4, 6, 16)


def _mixed(world: World, counts: Sequence[int | None]) -> World:
    """Let the policies of a world begin with other bundles, without a table that has loads of the log's bundles."""
    written = zip(world.settings["policies"], counts, strict=False)
    policies = [policy if count is None else {**policy, "bundles": count} for policy, count in written]
    tables = {name: rows for name, rows in world.tables.items() if name != "bundles"}
    return replace(world, tables=tables, settings={**world.settings, "policies": policies})


def _prove_mixed(session: Any, world: World, *, partitions: tuple[int, ...]) -> None:
    """Each policy decides and counts in company what it does alone, where all namespaces have its bundles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = world.written(folder)
        by, seen = _parts(file), []
        for count in partitions:
            outcome = _replayed(session, file, folder / f"mixed-{count}", by=by, partitions=count)
            seen.append((_bytes(folder / f"mixed-{count}"), _exact(outcome)))
        assert all(one == seen[0] for one in seen[1:])
        _assert_none_is_nearer(outcome)
        mixed, figures = folder / f"mixed-{partitions[0]}", _figures(outcome)
        for spec in file.policies:
            section = file.evaluation.model_copy(update={"incumbent": spec.name, "seeds": outcome.seeds, "draw": 0})
            if spec.bundles is not None:
                section = section.model_copy(update={"default_bundles": spec.bundles})
            policies = (spec.model_copy(update={"bundles": None}),)
            alone = file.model_copy(update={"evaluation": section, "policies": policies})
            own, output = _replayed(session, alone, folder / spec.name, by=by), folder / spec.name
            for table in ("decisions", "owners", "cycles"):
                rows = _rows(mixed, table)
                for run, expected in _rows(output, table).items():
                    assert rows[run] == expected, (run, table)
            for run, expected in _figures(own).items():
                if run[1] == spec.name:
                    _assert_figures(figures[run], expected, run)


@given(worlds(), st.lists(st.sampled_from(_COUNTS), min_size=3, max_size=3))
@settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck))
def test_policies_with_other_bundles_are_as_if_alone(world: World, counts: list[int | None]) -> None:
    """Decisions, owners, cycles and figures are those of a run of its own whose namespaces have these bundles."""
    _prove_mixed(InProcess(), _mixed(world, counts), partitions=(1, 8))


@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_other_bundles_are_shed_as_if_alone(owner_loss: str) -> None:
    """Shedders that move bundles in most ticks, splits and unloads, with bundles that cross each other."""
    for seed in (0, 2, 3):
        _prove_mixed(InProcess(), _mixed(moving_world(seed, owner_loss), (4, 6)), partitions=(8,))


@pytest.mark.spark
def test_spark_replays_other_bundles_as_if_alone(spark: SparkSession) -> None:
    """Workers know the bundles of every policy."""
    _prove_mixed(spark, _mixed(world_of(23, 100), (None, 6, 4)), partitions=(1, 8))


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(10))
def test_spark_equals_a_plain_loop(spark: SparkSession, seed: int) -> None:
    """A replay on Spark decides and counts what a loop over single lookups does."""
    _prove(spark, world_of(seed, 100), partitions=(8,), whole=seed % 2 == 0)


@pytest.mark.spark
def test_spark_gives_the_same_from_1_8_and_64_partitions(spark: SparkSession) -> None:
    """Spark's answer is the same to the byte however many tasks read the log."""
    _prove(spark, world_of(77, 100), partitions=(1, 8, 64))


@pytest.mark.spark
def test_the_parts_of_a_plug_in_are_replayed_exactly(spark: SparkSession) -> None:
    """Parts of a plug-in file, one of which keeps memory, decide on workers as they do in a loop."""
    world = world_of(5, 100)
    policies = [{"name": "p0", "filters": ["not-drained"], "scorers": ["tenant-home"], "selector": "sticky-tenant"}]
    plugged = replace(world, settings={**world.settings, "policies": policies, "plugin_files": [str(_PLUGIN)]})

    _prove(spark, plugged, partitions=(8,))


@pytest.mark.spark
def test_a_generated_log_is_replayed_exactly(spark: SparkSession, tmp_path: Path) -> None:
    """The replay of a log of `lookup generate`, with joins, losses, splits and unloads, equals the loop."""
    shape = GenerateSettings(lookups=3000, hours=1.0, topics=60, namespaces=6, tenants=3, clients=40, brokers=8)
    generate(shape, tmp_path / "sample")
    tables = {name: str(tmp_path / "sample" / name) for name in ("lookups", "brokers", "ownership")}
    file = {"evaluation": {"incumbent": "rack", "seeds": [1]}, "inputs": tables, "policies": list(_POLICIES)}

    _prove_settings(spark, EvaluationFile.model_validate(file), tmp_path, partitions=(8,))


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
    file = {"evaluation": evaluation, "inputs": {"lookups": lookups}, "brokers": brokers, "policies": list(_POLICIES)}
    return EvaluationFile.model_validate(file)


def _assert_somebody_lost_bundles(output: Path) -> None:
    """A log in which nobody leaves proves nothing about leaving."""
    left = round(datetime.fromisoformat(_LEAVES).timestamp() * 1e6)
    for run, rows in _rows(output, "owners").items():
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

    _prove_settings(spark, file, tmp_path, partitions=(1, 8, 64))
    _assert_somebody_lost_bundles(tmp_path / "output-1")


@pytest.mark.thorough
@pytest.mark.spark
def test_the_whole_real_trace_is_replayed_exactly(
    spark: SparkSession, tmp_path: Path, trace: list[str], nasa_reader: DelimitedReader
) -> None:
    """All 30,969 requests of the NASA trace equal the loop."""
    file = _real_evaluation(_real_trace(spark, tmp_path, trace, nasa_reader))

    _prove_settings(spark, file, tmp_path, partitions=(8,), whole=True)
    _assert_somebody_lost_bundles(tmp_path / "output-8")
