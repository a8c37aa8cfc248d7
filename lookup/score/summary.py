"""Write the scored comparison for machines: `summary.json` as plain data, `metrics.parquet` as an Arrow table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lookup.engine.measuring import question_of
from lookup.hooks import Metric
from lookup.score.luck import LEVEL
from lookup.score.scoring import Scored
from lookup.score.verdict import family

__all__ = ["METRICS", "SCHEMA", "metric_rows", "metrics_table", "summary", "to_json"]

#: Version of the structure of `summary.json`; it counts changes that break readers.
SCHEMA = 1
#: One row per policy, metric, key, part of the demand and cluster.
METRICS = pa.schema(
    [(name, pa.string()) for name in ("policy", "cluster", "metric", "key")]
    + [("by", pa.map_(pa.string(), pa.string()))]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
    + [(name, pa.string()) for name in ("unit", "direction")]
)
_VERDICT_KEYS = (
    "policy against metric key verdict reason delta low high margin primary holds_for p_value p_family alone question "
    "guard units on_log for_demand clusters"
).split()
_WINNER_KEYS = "metric key candidates value advantage".split()
_FIDELITY_KEYS = "metric key logged resimulated low high gap seeds reason".split()


def summary(scored: Scored) -> dict[str, Any]:
    """Return the whole summary; NaN becomes None."""
    together, alone, figures = family(scored.verdicts, scored.plan.rules)
    notes = {name: getattr(scored, name) for name in ("placed_once", "cannot_act", "label_of_tenants")}
    return {
        "schema": SCHEMA,
        "metrics": metric_rows(scored),
        # Keys are listed, not taken from the classes: a new field of a class must not change the file by itself.
        "verdicts": [{key: _plain(getattr(verdict, key)) for key in _VERDICT_KEYS} for verdict in scored.verdicts],
        "comparisons": {"together": together, "alone": alone, "expected_by_chance": round(LEVEL * figures, 2)},
        "units": _plain(scored.units),
        "guarded": sorted(metric.name for metric in scored.metrics if question_of(metric) == "log"),
        "winners": [{key: _plain(getattr(winner, key)) for key in _WINNER_KEYS} for winner in scored.winners],
        "fidelity": [{key: _plain(getattr(figure, key)) for key in _FIDELITY_KEYS} for figure in scored.fidelity],
        "at_best": [_plain(best) for best in scored.at_best],
        "inputs": _plain({**scored.inputs.document(), **notes}),
    }


def to_json(content: Mapping[str, Any]) -> str:
    """Write a summary as JSON text: the same content gives the same bytes."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def metrics_table(scored: Scored) -> pa.Table:
    """Return the `metrics` of a summary in METRICS' columns and in its order, for further calculations."""
    rows = [row | {"by": None if row["by"] is None else list(row["by"].items())} for row in metric_rows(scored)]
    return pa.Table.from_pylist(rows, schema=METRICS)


def metric_rows(scored: Scored) -> list[dict[str, Any]]:
    """Return one row per policy, metric, key, part of the demand and cluster; cluster None is pooled.

    A metric that could not be computed for the whole demand has a row without a value.
    """
    rows, measured = [], set()
    for figure in scored.estimates:
        series = figure.series
        row = _row(series.policy, figure.cluster, series.metric) | {"key": series.key, "by": dict(series.by) or None}
        rows.append(row | {key: _plain(getattr(figure, key)) for key in ("value", "low", "high")})
        if not series.by:
            measured.add((series.policy, figure.cluster, series.metric.name))
    rows += [
        _row(policy, cluster, metric)
        for policy in scored.plan.policies
        for metric in scored.metrics
        for cluster in (None, *scored.clusters)
        if (policy, cluster, metric.name) not in measured
    ]
    policies, metrics = list(scored.plan.policies), [metric.name for metric in scored.metrics]

    def order(row: Mapping[str, Any]) -> tuple[object, ...]:
        by = tuple((row["by"] or {}).items())
        policy, metric = policies.index(row["policy"]), metrics.index(row["metric"])
        return policy, metric, row["key"] or "", by, row["cluster"] or ""

    return sorted(rows, key=order)


def _row(policy: str, cluster: str | None, metric: Metric) -> dict[str, Any]:
    known = {"policy": policy, "cluster": cluster, "metric": metric.name}
    return dict.fromkeys(METRICS.names) | known | {"unit": metric.unit, "direction": metric.better}


def _plain(value: Any) -> Any:
    """Turn a value into JSON's types, numpy's numbers and arrays included; NaN and infinities become None."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        # JSON has no word for them, and `allow_nan` would write one that most readers refuse.
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    return value
