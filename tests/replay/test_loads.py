"""Loads at grid instants."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import RESOURCES, BundleLoad
from lookup.model.load import Load
from lookup.replay.atoms import BundleMap
from lookup.replay.days import SliceRows
from lookup.replay.loads import AtomLoads, BrokerLoads, Demand, ReportedLoads, set_spans
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned
from tests.replay.worlds import MICRO

OTHER = "persistent://t/o/x"


def _windows(plan: Planned) -> list[list[int] | None]:
    loads, found = AtomLoads(plan.cluster, plan.run), []
    for tick in plan.ticks:
        if tick.is_grid:
            loads.close_cell(tick.start_us)
            found.append(None if loads.window is None else loads.window.tolist())
        loads.add(tick.rows, tick.low, tick.high)
    return found


def test_load_ramps_up_during_the_first_session(tmp_path: Path) -> None:
    """One lookup per second counts as fewer, since the weight so far is divided by the whole of `session_s`."""
    plan = planned(tmp_path, [lookup(60 * minute, weight=60.0) for minute in range(7)], evaluation={"session_s": 240})
    loads, found = AtomLoads(plan.cluster, plan.run), []
    for tick in plan.ticks:
        loads.close_cell(tick.start_us)
        found.append(loads.weight_of(slice(0, 1)))
        loads.add(tick.rows, tick.low, tick.high)

    assert found == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cells_are_cut_by_events_but_close_on_the_grid(tmp_path: Path) -> None:
    """Lookups before and after a cut inside a cell are one cell's weight."""
    unload = {"ts": NOON + 30 * MICRO, "cluster": "east", "bundle": WHOLE, "event": "unloaded", "by": "admin"}
    plan = planned(tmp_path, [lookup(1), lookup(31), lookup(61)], tables={"ownership": [unload]})

    assert plan.bounds == [0, 30 * MICRO, 60 * MICRO, 120 * MICRO]
    assert _windows(plan) == [None, [2_000_000]]


def test_a_report_holds_until_the_next() -> None:
    """Brokers without a report are unknown; later rows take the place of earlier ones."""
    columns: dict[str, Any] = {"ts": [1, 5, 5], "broker": [0, 0, 1], "usage": [0.1, 0.2, 0.3], "load": [1.0, 2.0, 3.0]}
    reported = ReportedLoads.of({key: np.array(value) for key, value in columns.items()}, 3)

    before = reported.at(4)
    assert before["usage"][0] == 0.1
    assert np.isnan(before["usage"][1:]).all()
    after = reported.at(5)
    assert (after["usage"][:2].tolist(), after["load"][:2].tolist()) == ([0.2, 0.3], [2.0, 3.0])


def test_what_is_reported_takes_the_place_of_what_is_measured() -> None:
    """Topics of the log stand in where nobody reports any, resources are a table, the rest is unknown."""
    measured = replace(Load.unknown(2, np.array([8, 9])), demand={"rack": {"a": 1.0}})
    least: dict[str, Any] = {"ts": [1], "broker": [1], "usage": [0.1], "load": [1.0]}
    full = least | {"topics": [3.0], "rate": [70.0], "max_usage": [0.2], "smoothed_throughput": [4.0]}
    full |= {name: [float(place)] for place, name in enumerate(RESOURCES)}
    bare, rich = (
        ReportedLoads.of({key: np.array(value) for key, value in columns.items()}, 2).figures(1, measured)
        for columns in (least, full)
    )

    assert (bare.topics.tolist(), bare.resources, bare.max_usage, bare.rates) == ([8, 9], None, None, None)
    assert (bare.source, bare.demand) == ("reported", measured.demand)
    assert rich.topics.tolist() == [0, 3]
    assert rich.resources is not None
    assert rich.resources[1].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    shown = [rich.max_usage, rich.smoothed_throughput, rich.rates]
    assert [None if column is None else column[1] for column in shown] == [0.2, 4.0, 70.0]


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


def test_reports_are_taken_in_as_far_as_they_are_asked_for() -> None:
    """A day's last minute is held until the next day asks; what came before is not held."""
    reported = ReportedLoads(["usage"], 1)
    for first in (0, 100):
        columns: dict[str, Any] = {"ts": [first, first + 60, first + 70], "broker": [0, 0, -1], "usage": [first, 7, 9]}
        reported.begin_slice(SliceRows({key: np.array(value) for key, value in columns.items()}, {}), first - 50)

    assert [reported.at(instant)["usage"][0] for instant in (50, 60, 99, 100, 160)] == [0, 7, 7, 100, 7]


def test_demand_is_told_by_the_values_of_a_label(tmp_path: Path) -> None:
    """Weight per second of the given rows by value; labels that nobody sent are unknown."""
    rows = [
        lookup(n, properties=text, weight=3.0) for n, text in enumerate(['{"rack":"a"}', '{"rack":"a","z":"1"}', "{}"])
    ]
    plan = planned(tmp_path, rows)
    demand = Demand(plan.cluster, [(plan.rows, 0, 3)], 60.0)

    assert demand["rack"] == {"a": pytest.approx(0.1)}
    assert list(demand) == ["rack", "z"]
    assert "zone" not in demand
