"""Measure what `rebalance` would gain if it knew the loads of the coming hour: the table of docs/forecasts.md.

    python benchmarks/foresight.py --nasa nasa_http_19950801.tsv

Each log is replayed with a table BUNDLES made of its own lookups: at each instant of the grid the weight per second of
every bundle over the past hour in one run, over the coming hour in the other; all else is equal. A third run has
sessions of an hour and no BUNDLES: that it has the figures of the first shows that policies see these loads.
"""

from __future__ import annotations

import argparse
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from lookup import generate, ingest
from lookup.engine.plugins import load_plugins
from lookup.logs.jobs import InProcess
from lookup.model.bundles import bundle_of
from lookup.model.names import TopicName
from lookup.replay.outcome import ReplayOutcome
from lookup.replay.run import replay
from lookup.replay.tasks import metrics_of
from lookup.score.scoring import Plan, score
from lookup.settings import EvaluationFile, load_evaluation
from lookup.settings.resolve import namespace_policies

__all__ = ["diurnal", "generated", "main", "nasa", "rows"]

_CONFIGS = Path(__file__).resolve().parents[1] / "configs"
_MICRO = 1_000_000
_HOUR_S = 3600
#: Seconds of a cycle: means over an hour change little in five minutes.
_TICK_S = 300
_SHIPPED = ("stock.toml", "rebalance.toml")
_SEEDS = [1, 2, 3, 4, 5]
_COMING = " (coming)"
_FIGURES = ("imbalance_max_mean", "moved_weight")


def _policies() -> list[dict[str, Any]]:
    """Return `threshold` for scale, the shipped `rebalance`, and one that goes by the last cycle alone."""
    stock, shipped = (tomllib.loads((_CONFIGS / "policies" / name).read_text()) for name in _SHIPPED)
    # The shipped 60 cycles are an hour if they take a minute each.
    hour = {**shipped, "shedder": {**shipped["shedder"], "history": _HOUR_S // _TICK_S}}
    at_once = {**shipped, "name": "rebalance-at-once", "shedder": {**shipped["shedder"], "history": 1}}
    return [{**stock, "name": "threshold"}, hour, at_once]


def generated(folder: Path) -> EvaluationFile:
    """Return the demo's evaluation of a generated log without splits: new bundles would need rows of their own."""
    generate(folder, splits=0)
    tables = {f"inputs.{name}": str(folder / name) for name in ("lookups", "brokers", "ownership")}
    return _settings(_CONFIGS / "evaluation.toml", {**tables, "inputs.loads": None})


def nasa(folder: Path, source: Path) -> EvaluationFile:
    """Return the shipped evaluation of the NASA trace."""
    ingest(source, folder, mapping=_CONFIGS / "nasa.toml", workers=InProcess())
    return _settings(_CONFIGS / "nasa-evaluation.toml", {"inputs.lookups": str(folder / "lookups")})


def diurnal(folder: Path) -> EvaluationFile:
    """Return the evaluation of a log of daily waves: three days, 600 topics in 200 bundles, ten brokers.

    Each topic has a mean, log-normal with sigma 1, an amplitude, 0.5 to 1 of the mean, and a phase anywhere in the day:
    at each hour some bundles grow while others shrink.
    """
    dice, lookups = np.random.default_rng(1), 200_000
    means, amplitudes, phases = dice.lognormal(0.0, 1.0, 600), dice.uniform(0.5, 1.0, 600), dice.random(600)
    topics = dice.choice(600, lookups, p=means / means.sum())
    seconds, left = np.empty(lookups), np.arange(lookups)
    while len(left):
        seconds[left] = dice.uniform(0.0, 72 * _HOUR_S, len(left))
        height = amplitudes[topics[left]] * np.sin(2 * np.pi * (seconds[left] / (24 * _HOUR_S) + phases[topics[left]]))
        left = left[dice.uniform(0.0, 2.0, len(left)) > 1.0 + height]
    order = np.argsort(seconds)
    # From 5 January 2026 on, as the logs of `generate`.
    ts = ((1_767_571_200 + seconds[order]) * _MICRO).astype(np.int64)
    columns: dict[str, Any] = {"ts": ts, "seq": np.arange(lookups), "cluster": ["waves"] * lookups}
    columns["topic"] = [f"persistent://waves/daily/topic-{number}" for number in topics[order].tolist()]
    columns["weight"] = np.ones(lookups)
    (folder / "lookups").mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "lookups" / "log.parquet")
    base = {"evaluation": {"default_bundles": 200}, "brokers": [{"id": "broker-{n}:8080", "count": 10}]}
    return _settings(base, {"evaluation.warmup_s": 2 * _HOUR_S, "inputs.lookups": str(folder / "lookups")})


def _settings(base: Path | Mapping[str, object], overrides: Mapping[str, object]) -> EvaluationFile:
    # Sessions of an hour: where clients come from, and loads without BUNDLES, are those of the past hour.
    grid = {"evaluation.tick_s": _TICK_S, "evaluation.session_s": _HOUR_S, "evaluation.seeds": _SEEDS}
    same = {"policies": _policies(), "evaluation.incumbent": "threshold", **grid}
    settings = load_evaluation(base, {**same, **overrides}, {})
    for path in Path(str(settings.inputs.lookups)).rglob("*.parquet"):
        log = pq.read_table(path).to_pandas()
        # BUNDLES holds whole micro-units per second; means over an hour are such if weights are multiples of 0.0036.
        log["weight"] = np.maximum(1, np.rint(log["weight"] * _MICRO / _HOUR_S)) * _HOUR_S / _MICRO
        log.to_parquet(path, index=False)
    return settings


def _bundle_loads(settings: EvaluationFile, *, ahead_s: int) -> pd.DataFrame:
    """Return BUNDLES: at each instant of the grid the weight per second over the hour that ends `ahead_s` later.

    What would reach beyond the log is the last hour of the log. There are rows for what has changed.
    """
    tick_s, namespaces = settings.evaluation.tick_s, namespace_policies(settings)
    log = pq.read_table(str(settings.inputs.lookups)).to_pandas()
    if "result" in log:
        log = log[log["result"] != "redirect"]
    moments = log["ts"] if log["ts"].dtype.kind == "i" else log["ts"].astype("datetime64[us, UTC]").astype("int64")
    of_topic = {}
    for topic in log["topic"].unique():
        namespace = str(TopicName.parse(topic).namespace)
        of_topic[topic] = f"{namespace}/{bundle_of(topic, namespaces.boundaries_of(namespace))}"
    log = log[["cluster", "weight"]].assign(tick=moments // (tick_s * _MICRO), bundle=log["topic"].map(of_topic))
    tables = []
    for cluster, rows in log.groupby("cluster", observed=True):
        sums = rows.pivot_table("weight", "tick", "bundle", aggfunc="sum", fill_value=0.0, observed=True)
        first, stop = sums.index[0], sums.index[-1] + 1
        before = sums.reindex(range(first - 1, stop), fill_value=0.0).cumsum().to_numpy()
        ends = np.minimum(np.arange(1, len(before)) + ahead_s // tick_s, len(before) - 1)
        loads = (before[ends] - before[np.maximum(0, ends - _HOUR_S // tick_s)]) / _HOUR_S
        instants, bundles = np.nonzero(np.diff(loads, axis=0, prepend=-1.0))
        stats = [f'{{"msgThroughputIn": {load!r}}}' for load in loads[instants, bundles].tolist()]
        tables.append(pd.DataFrame({"cluster": cluster, "bundle": sums.columns[bundles], "stats": stats}))
        tables[-1]["ts"] = (first + 1 + instants) * tick_s * _MICRO
    return pd.concat(tables)


def rows(log: str, settings: EvaluationFile) -> Iterator[str]:
    """Replay by the past hour and by the coming one, and yield a row of the table for each policy and figure.

    Raises:
        ValueError: if loads of the past hour out of BUNDLES have other figures than those of the lookups themselves.
    """
    past, coming = _replayed(settings, 0), _replayed(settings, _HOUR_S, bounds=False)
    names = [policy.name for policy in settings.policies]
    # Of the one without means over cycles, whose last digits may decide between equals.
    seen = {(of.cluster, of.seed, of.metric, of.key): of.sums for of in past.sums if of.policy == names[-1]}
    for plain in _replayed(settings, None, bounds=False, seeds=tuple(_SEEDS[:1])).sums:
        key = plain.cluster, plain.seed, plain.metric, plain.key
        is_asked = plain.policy == names[-1] and plain.metric in _FIGURES
        if is_asked and not np.allclose(plain.sums, seen[key], rtol=1e-9):
            raise ValueError(f"{log}: {plain.metric} is not that of the same loads without BUNDLES")
    both = replace(past, sums=[*past.sums, *(replace(of, policy=of.policy + _COMING) for of in coming.sums)])
    everything, metrics = tuple(name + when for name in names for when in ("", _COMING)), metrics_of(load_plugins())
    sections = {name: settings.evaluation.model_copy(update={"incumbent": name}) for name in names}
    scored = {name: score(both, metrics, Plan(everything, of, settings.verdict)) for name, of in sections.items()}
    possible = scored["threshold"].possible
    shares = {} if possible is None else {(of.policy, of.metric): f"{of.share:.2f}" for of in possible.shares}
    for name, figure in product(names, _FIGURES):
        ahead = name + _COMING
        (verdict,) = (of for of in scored[name].verdicts if (of.policy, of.metric, of.key) == (ahead, figure, None))
        past_value, value = (scored[name].pooled[of, figure, None].value for of in (name, ahead))
        percent = 100.0 * (past_value - value) / past_value
        less = f"{verdict.delta:.3f} ({verdict.low:.3f} to {verdict.high:.3f}) | {percent:.1f} %"
        of_possible = " | ".join(shares.get((of, figure), "–") for of in (name, ahead))
        yield f"| {log} | `{name}` | `{figure}` | {past_value:.3f} | {value:.3f} | {less} | {of_possible} |"


def _replayed(settings: EvaluationFile, ahead_s: int | None, **section: object) -> ReplayOutcome:
    with tempfile.TemporaryDirectory(prefix="foresight-") as folder:
        path = None if ahead_s is None else f"{folder}/bundles.parquet"
        if ahead_s is not None:
            _bundle_loads(settings, ahead_s=ahead_s).to_parquet(path, index=False)
        inputs = settings.inputs.model_copy(update={"bundles": path})
        changed = {"inputs": inputs, "evaluation": settings.evaluation.model_copy(update=section)}
        return replay(InProcess(), settings.model_copy(update=changed), f"{folder}/run")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nasa", type=Path, help="the trace as it was published; without it its rows are left out")
    source = parser.parse_args().nasa
    print("| log | policy | figure | past hour | coming hour | less by (95 %) | gain | possible, past | coming |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="foresight-") as name:
        folder = Path(name)
        of_trace = [] if source is None else rows("NASA", nasa(folder / "nasa", source))
        made = rows("generated", generated(folder / "generated")), rows("diurnal", diurnal(folder / "diurnal"))
        for row in chain(*made, of_trace):
            print(row, flush=True)


if __name__ == "__main__":
    main()
