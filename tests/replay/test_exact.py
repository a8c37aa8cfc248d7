"""The replay equals a plain loop over the load manager, row for row and figure for figure, however the log is divided."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings

from lookup.replay.outcome import LOGGED, MetricSums, ReplayOutcome
from lookup.replay.run import replay
from lookup.score.metrics import lookup_register_metrics
from lookup.settings.evaluation import EvaluationFile
from tests.replay.oracle import Tale, tell
from tests.replay.serial import SerialSession
from tests.replay.worlds import World, worlds

from hypothesis import Phase
PHASES = [Phase.generate]
_METRICS = {metric.name: metric() for metric in lookup_register_metrics()}
_DECISION = ("ts", "bundle", "key", "broker", "propensity", "declined", "count", "weight", "odds", "rejected", "margin")
_BY = ("tenant", "namespace", "rack")


def _rows(folder: Path, table: str) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for file in sorted((folder / table).glob("*.parquet")):
        with pq.ParquetFile(file) as parquet:
            for row in parquet.read().to_pylist():
                found[row["cluster"], row["policy"], row["seed"]].append(_plain(row))
    return found


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in row.items() if name not in ("cluster", "policy", "seed", "state")}
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
    for run, told in tale.runs.items():
        assert _sorted(decisions[run]) == _sorted(told.decisions), run
        assert _sorted(owners[run]) == _sorted(told.owners), run
        _assert_figures(figures[*run, ()], told.figures, run)
        for by, part in told.parts.items():
            _assert_figures(figures[*run, by], part, (run, by))
    for cluster, told_of_log in tale.logged.items():
        _assert_figures(figures[cluster, LOGGED, 0, ()], told_of_log, (cluster, LOGGED))
    assert bool(tale.logged) == (outcome.logged_reason is None)


def _assert_facts(outcome: ReplayOutcome, tale: Tale) -> None:
    inputs, facts = dict(outcome.inputs), tale.facts
    assert inputs["lookups"] == facts["lookups"]
    assert inputs["ticks"] == facts["ticks"]
    assert inputs["induced_ratio"] == facts["induced"] / facts["lookups"]
    assert (inputs["capacity"] == "assumed") == facts["assumed"]
    assert inputs["quarantined"] == sum(tale.quarantined.values())
    floors: Any = inputs["imbalance_floor"]
    _assert_figures(
        {name: math.nan if value is None else value for name, value in floors.items()},
        {name: math.nan if value is None else value for name, value in facts["floor"].items()},
        "floor",
    )


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for table in ("decisions", "owners") for file in sorted((folder / table).glob("*"))}


def _hours(settings_: EvaluationFile) -> tuple[str, ...]:
    return (*_BY, "hour") if 3600 % settings_.evaluation.balance_s == 0 else _BY


def _prove(session: Any, world: World, *, partitions: tuple[int, ...]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = world.written(folder)
        by = _hours(written)
        tale = tell(written, by=by)
        seen: list[tuple[dict[str, bytes], Any]] = []
        for count in partitions:
            output = folder / f"output-{count}"
            outcome = replay(session, written, str(output), by=by, partitions=count)
            if not seen:
                _assert_equal(outcome, output, tale)
                _assert_facts(outcome, tale)
            seen.append((_bytes(output), _exact(outcome)))
        for files, sums in seen[1:]:
            assert files == seen[0][0]
            assert sums == seen[0][1]


def _exact(outcome: ReplayOutcome) -> Any:
    names = [(one.cluster, one.policy, one.seed, one.metric, one.key, one.by, one.start_us, one.sums.tobytes()) for one in outcome.sums]
    return names, dict(outcome.inputs), outcome.logged_reason, outcome.rolled


@given(worlds())
@settings(max_examples=int(__import__("os").environ.get("N","100")), derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
def test_the_jobs_equal_a_plain_loop(world: World) -> None:
    """The jobs of a replay, run one after the other, decide and count what a loop over single lookups does."""
    _prove(SerialSession(), world, partitions=(1, 8, 64))
