"""`summary.json`: the scored comparison as plain data, for machines; `schema` counts changes of the structure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lookup.hooks import Metric
from lookup.score.estimates import Estimate
from lookup.score.fidelity import Fidelity
from lookup.score.luck import LEVEL
from lookup.score.scoring import Scored
from lookup.score.verdict import Verdict, family

__all__ = ["SCHEMA", "metric_rows", "summary", "to_json"]

#: Version of the structure.
SCHEMA = 1


def summary(scored: Scored) -> dict[str, Any]:
    """Return the whole summary; what is NaN becomes None."""
    together, alone = family(scored.verdicts)
    return {
        "schema": SCHEMA,
        "metrics": metric_rows(scored),
        "verdicts": [_verdict_row(verdict) for verdict in scored.verdicts],
        "comparisons": {"together": together, "alone": alone, "expected_by_chance": round(LEVEL * alone, 2)},
        "fidelity": [_fidelity_row(one) for one in scored.fidelity],
        "inputs": _inputs(scored),
    }


def to_json(content: Mapping[str, Any]) -> str:
    """Write a summary as JSON text: the same content gives the same bytes."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def metric_rows(scored: Scored) -> list[dict[str, Any]]:
    """Return one row per policy, metric, key, part of the demand and cluster; cluster None is pooled.

    A metric that could not be computed for the whole demand has a row without a value.
    """
    policies, metrics = list(scored.plan.policies), [metric.name for metric in scored.metrics]
    rows = [_metric_row(one) for one in scored.estimates] + [*_absent_rows(scored)]
    return sorted(rows, key=lambda row: (policies.index(row["policy"]), metrics.index(row["metric"]), *_part(row)))


def _metric_row(one: Estimate) -> dict[str, Any]:
    row = _row((one.series.policy, one.cluster, one.series.metric), key=one.series.key, by=one.series.by)
    return row | {"value": _plain(one.value), "low": _plain(one.low), "high": _plain(one.high)}


def _row(
    what: tuple[str, str | None, Metric], *, key: str | None = None, by: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    policy, cluster, metric = what
    return {
        "policy": policy,
        "cluster": cluster,
        "metric": metric.name,
        "key": key,
        "by": dict(by) or None,
        "value": None,
        "low": None,
        "high": None,
        "unit": metric.unit,
        "direction": metric.better,
    }


def _absent_rows(scored: Scored) -> Iterator[dict[str, Any]]:
    known = {(one.series.policy, one.cluster, one.series.metric.name) for one in scored.estimates if not one.series.by}
    for policy in scored.plan.policies:
        for metric in scored.metrics:
            for cluster in (None, *scored.clusters):
                if (policy, cluster, metric.name) not in known:
                    yield _row((policy, cluster, metric))


def _part(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["key"] or "", tuple((row["by"] or {}).items()), row["cluster"] or ""


def _verdict_row(verdict: Verdict) -> dict[str, Any]:
    return {
        "policy": verdict.policy,
        "against": verdict.against,
        "metric": verdict.metric,
        "key": verdict.key,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "delta": _plain(verdict.delta),
        "low": _plain(verdict.low),
        "high": _plain(verdict.high),
        "primary": verdict.primary,
        "holds_for": verdict.holds_for,
        "p_value": _plain(verdict.p_value),
        "p_family": _plain(verdict.p_family),
    }


def _fidelity_row(one: Fidelity) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "key": one.key,
        "logged": _plain(one.logged),
        "resimulated": _plain(one.resimulated),
        "low": _plain(one.low),
        "high": _plain(one.high),
        "gap": _plain(one.gap),
        "seeds": list(one.seeds),
        "reason": one.reason,
    }


def _inputs(scored: Scored) -> dict[str, Any]:
    notes = {"placed_once": dict(scored.placed_once), "cannot_act": dict(scored.cannot_act)}
    return {str(name): _plain(value) for name, value in {**scored.inputs, **notes}.items()}


def _plain(value: Any) -> Any:
    """Turn a value into what JSON knows, numpy's numbers and arrays included; NaN and infinities into None."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return [_plain(entry) for entry in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value
