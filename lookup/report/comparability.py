"""Say which figures of two runs mean the same: some settings of an evaluation are part of what a figure is.

A setting that changes what policies do, such as a bundle count, is no such part: the figure then shows its effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["why_incomparable"]

_EVERY: frozenset[str] = frozenset()
_BALANCE = frozenset({"imbalance_cv", "imbalance_max_mean", "load_variation"})
#: Figures that are about load, the weight of recent lookups.
_LOAD = frozenset({"moved_weight", "overload_ratio"})
_NETWORK = frozenset({"network_covered_ratio", "network_cost", "network_ms_mean", "network_ms_p95"})
#: By key of `[evaluation]` the metrics that mean something else if it differs; all of them for the empty set.
_MEANINGS: Mapping[str, frozenset[str]] = {
    "ownership": _EVERY,
    "warmup_s": _EVERY,
    "balance_s": _BALANCE,
    "load": _LOAD,
    "session_s": _LOAD,
    "tick_s": _LOAD,
    "overload_threshold": frozenset({"overload_ratio"}),
    "window_s": frozenset({"redundant_moves"}),
    "bytes_per_weight": frozenset({"network_cost"}),
    "handover_s": frozenset({"in_transition", "in_transition_weight"}),
}
#: The same by table, of which every key counts.
_TABLES: Mapping[str, frozenset[str]] = {"topology": _NETWORK, "clients": _NETWORK | {"match_ratio"}}


def why_incomparable(metric: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Return why a metric does not mean the same in two runs, one clause; an empty text if it does.

    Args:
        metric: its name, without a key.
        first: settings of a run, as in its manifest; what one of both does not have is not compared.
        second: those of the other.
    """
    before, after = first.get("evaluation", {}), second.get("evaluation", {})
    clauses = [
        f"{key} differs ({json.dumps(before[key])}, {json.dumps(after[key])})"
        for key in _concerning(metric, _MEANINGS)
        if key in before and key in after and before[key] != after[key]
    ]
    clauses += [
        f"the table {table} differs"
        for table in _concerning(metric, _TABLES)
        if table in first and table in second and _content(first[table]) != _content(second[table])
    ]
    return " and ".join(clauses)


def _concerning(metric: str, meanings: Mapping[str, frozenset[str]]) -> Iterable[str]:
    return (key for key, metrics in meanings.items() if metrics is _EVERY or metric in metrics)


def _content(table: Any) -> Any:
    """Return a table without the name of its file: where it was read from does not matter."""
    return {key: value for key, value in table.items() if key != "file"} if isinstance(table, Mapping) else table
