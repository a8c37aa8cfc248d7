"""Proof that a replay equals a plain loop over the load manager, however its log is cut and whatever runs it."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import reject

from lookup.errors import InputError
from lookup.replay.outcome import LOGGED, MetricSums, ReplayOutcome
from lookup.replay.run import replay
from lookup.score.metrics import lookup_register_metrics
from lookup.settings.evaluation import EvaluationFile
from tests.replay.oracle import Tale, tell
from tests.replay.worlds import World, world_of

__all__ = [
    "POLICIES", "assert_figures", "assert_none_is_nearer", "bytes_of", "exact", "figures_of", "hashing_world", "mixed",
    "parts_of", "prove", "prove_mixed", "prove_settings", "replayed", "rows_of",
]  # fmt: skip

_METRICS = {metric.name: metric() for metric in lookup_register_metrics()}
_BY = ("tenant", "namespace", "rack")
_RACK = {"use": "property-match", "key": "rack"}
#: One with a shedder, and one that goes by load.
POLICIES = (
    {"name": "rack", "scorers": [_RACK], "selector": "best", "shedder": {"use": "threshold", "threshold": 0.05}},
    {"name": "stock", "filters": ["anti-affinity"], "selector": "least-resource-usage"},
)


def rows_of(folder: Path, table: str) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    """Return the rows of a table by run, times in µs."""
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


def figures_of(outcome: ReplayOutcome) -> dict[Any, dict[tuple[str, str | None], float]]:
    """Return every figure by run and part of the demand."""
    found: dict[Any, dict[tuple[str, str | None], float]] = defaultdict(dict)
    for one in outcome.sums:
        found[one.cluster, one.policy, one.seed, one.by][one.metric, one.key] = _value([one])
    return found


def assert_figures(found: Mapping[Any, float], told: Mapping[Any, float], where: object) -> None:
    """Compare figures, those of the loop second."""
    for name in sorted({*found, *told}, key=repr):
        a, b = found.get(name, math.nan), told.get(name, math.nan)
        same = (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
        assert same, f"{where}: {name}: the replay says {a}, the loop {b}"


def _assert_equal(outcome: ReplayOutcome, folder: Path, tale: Tale) -> None:
    decisions, owners, figures = rows_of(folder, "decisions"), rows_of(folder, "owners"), figures_of(outcome)
    cycles = rows_of(folder, "cycles")
    for run, told in tale.runs.items():
        assert _sorted(decisions[run]) == _sorted(told.decisions), run
        assert _sorted(owners[run]) == _sorted(told.owners), run
        assert _sorted(cycles[run]) == _sorted(told.cycles), run
        assert_figures(figures[*run, ()], told.figures, run)
        for by, part in told.parts.items():
            assert_figures(figures[*run, by], part, (run, by))
    for cluster, told_of_log in tale.logged.items():
        assert_figures(figures[cluster, LOGGED, 0, ()], told_of_log, (cluster, LOGGED))
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
    assert_figures(outcome.at_best, facts["at_best"], "at best")


def assert_none_is_nearer(outcome: ReplayOutcome) -> None:
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


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return the tables of a run as they are on the disk."""
    files = [
        file
        for table in ("decisions", "owners", "cycles", "cells", "flows")
        for file in sorted((folder / table).glob("*"))
    ]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def parts_of(file: EvaluationFile) -> tuple[str, ...]:
    """Return the dimensions that figures are also told apart by."""
    return (*_BY, "hour") if 3600 % file.evaluation.balance_s == 0 else _BY


def prove(session: Any, world: World, *, partitions: tuple[int, ...], whole: bool = False) -> None:
    """Replay a world and compare it with the loop."""
    with tempfile.TemporaryDirectory() as name:
        prove_settings(session, world.written(Path(name)), Path(name), partitions=partitions, whole=whole)


def prove_settings(
    session: Any, file: EvaluationFile, folder: Path, *, partitions: tuple[int, ...], whole: bool = False
) -> Tale:
    """Replay an evaluation in so many tasks, and compare it with the loop and with itself."""
    by = () if whole else parts_of(file)
    tale = tell(file, by=by)
    seen: list[tuple[dict[str, bytes], Any]] = []
    for count in partitions:
        output = folder / f"output-{count}"
        outcome = replayed(session, file, output, by=by, partitions=count)
        if not seen:
            _assert_equal(outcome, output, tale)
            _assert_facts(outcome, tale)
            assert_none_is_nearer(outcome)
        seen.append((bytes_of(output), exact(outcome)))
    for files, sums in seen[1:]:
        assert files == seen[0][0]
        assert sums == seen[0][1]
    return tale


def replayed(session: Any, file: EvaluationFile, output: Path, **given: Any) -> ReplayOutcome:
    """Replay an evaluation; pass over a log that has nothing to score."""
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


def exact(outcome: ReplayOutcome) -> Any:
    """Return all that a replay returns, to the last bit."""
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


#: Policies that hash, alone and in a wrapper.
_HASHING: tuple[dict[str, Any], ...] = (
    {"name": "topics", "selector": {"use": "rendezvous", "key": "topic"}},
    {"name": "mixed", "selector": {"use": "explore", "epsilon": 0.3, "child": "rendezvous"}},
    {"name": "ring", "selector": {"use": "bounded-consistent-hash", "points": 5}},
    {"name": "moved", "selector": "rendezvous", "shedder": {"use": "restless", "every": 2}},
)


def hashing_world(seed: int) -> World:
    """Make a world whose policies all hash, each replayed with two seeds."""
    world = world_of(seed, 100)
    section = {**world.settings["evaluation"], "incumbent": "mixed", "seeds": [7, 3]}
    return replace(world, settings={**world.settings, "evaluation": section, "policies": list(_HASHING)})


def mixed(world: World, counts: Sequence[int | None]) -> World:
    """Let the policies of a world begin with other bundles, without a table that has loads of the log's bundles."""
    written = zip(world.settings["policies"], counts, strict=False)
    policies = [policy if count is None else {**policy, "bundles": count} for policy, count in written]
    tables = {name: rows for name, rows in world.tables.items() if name != "bundles"}
    return replace(world, tables=tables, settings={**world.settings, "policies": policies})


def prove_mixed(session: Any, world: World, *, partitions: tuple[int, ...]) -> None:
    """Each policy decides and counts in company what it does alone, where all namespaces have its bundles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = world.written(folder)
        by, seen = parts_of(file), []
        for count in partitions:
            outcome = replayed(session, file, folder / f"mixed-{count}", by=by, partitions=count)
            seen.append((bytes_of(folder / f"mixed-{count}"), exact(outcome)))
        assert all(one == seen[0] for one in seen[1:])
        assert_none_is_nearer(outcome)
        mixed, figures = folder / f"mixed-{partitions[0]}", figures_of(outcome)
        for spec in file.policies:
            section = file.evaluation.model_copy(update={"incumbent": spec.name, "seeds": outcome.seeds, "draw": 0})
            if spec.bundles is not None:
                section = section.model_copy(update={"default_bundles": spec.bundles})
            policies = (spec.model_copy(update={"bundles": None}),)
            alone = file.model_copy(update={"evaluation": section, "policies": policies})
            own, output = replayed(session, alone, folder / spec.name, by=by), folder / spec.name
            for table in ("decisions", "owners", "cycles"):
                rows = rows_of(mixed, table)
                for run, expected in rows_of(output, table).items():
                    assert rows[run] == expected, (run, table)
            for run, expected in figures_of(own).items():
                if run[1] == spec.name:
                    assert_figures(figures[run], expected, run)
