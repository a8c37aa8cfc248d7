"""Loads at grid instants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import BundleLoad
from lookup.model.load import Load
from lookup.replay.atoms import BundleMap
from lookup.replay.loads import AtomLoads, BrokerLoads, Demand, set_spans
from tests.replay.plans import NOON, WHOLE, lookup, planned


def _figures_of_one(folder: Path, *, load: dict[str, float] | None = None, rate: float | None = None) -> Load:
    """Return the figures of a broker that owns a bundle of 5 bytes per second, as LOADS and BUNDLES tell them."""
    stats = {"msgThroughputIn": 5.0} | ({} if rate is None else {"msgRateOut": rate})
    tables = {"bundles": [{"ts": NOON, "cluster": "east", "bundle": WHOLE, "stats": json.dumps(stats)}]}
    if load is not None:
        tables["loads"] = [{"ts": NOON, "cluster": "east", "broker": "a:1", "load": json.dumps(load)}]
    source = {"load": "simulated" if load is None else "reported"}
    plan = planned(folder, [lookup(0)], tables=tables, evaluation=source)
    loads = AtomLoads(plan.cluster, plan.run)
    brokers = BrokerLoads(plan.cluster, loads, BundleMap(plan.cluster.words.atoms))
    brokers.begin_slice(plan.ticks[0].reports, NOON)
    loads.close_cell(NOON)
    known = {"capacity": np.array([10.0, 10.0]), "registered": np.array([True, True])}
    return brokers.at(NOON, np.array([0], np.int32), demand=Demand(plan.cluster, [], 60.0), **known)


def _first(column: Any) -> float | None:
    return None if column is None else float(column[0])


@pytest.mark.parametrize(
    ("given", "rates", "long_term_rates", "bundles"),
    [
        ({}, None, None, {WHOLE: 5.0}),
        ({"rate": 7.0}, 7.0, None, {WHOLE: 7.0}),
        ({"load": {}}, None, None, {WHOLE: 5.0}),
        ({"load": {}, "rate": 7.0}, None, None, {WHOLE: 5.0}),
        ({"load": {"msgRateIn": 9.0}}, None, 9.0, {}),
        ({"load": {"msgRateIn": 9.0}, "rate": 7.0}, 9.0, None, {WHOLE: 7.0}),
    ],
)
def test_rates_of_brokers_and_bundles_are_in_one_unit(
    tmp_path: Path, given: Any, rates: float | None, long_term_rates: float | None, bundles: dict[str, float]
) -> None:
    """Messages where both are known, else load; brokers' alone do not count for shedding."""
    found = _figures_of_one(tmp_path, **given)

    assert (_first(found.rates), _first(found.long_term_rates)) == (rates, long_term_rates)
    assert dict(found.long_term_bundle_rates) == bundles
    assert list(found.top_bundles[0]) == [BundleLoad(WHOLE, 5.0, given.get("rate", 0.0))]
    assert found.bundle_unit == "bytes/s"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(0, 9)), max_size=6))
def test_values_of_spans_are_set_one_after_the_other(rows: list[tuple[int, int, int]]) -> None:
    """Whether spans are alike, apart or overlap: the last one counts, and its first atom carries the value."""
    spans = [(first, min(first + size, 6), value) for first, size, value in rows]
    expected = [7] * 6
    for first, stop, value in spans:
        expected[first:stop] = [value, *([0] * (stop - first - 1))]

    found = np.full(6, 7)
    set_spans(found, *np.array(spans, dtype=np.int64).reshape(-1, 3).T)

    assert found.tolist() == expected
