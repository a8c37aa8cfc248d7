"""Loads at grid instants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.replay.bundle_map import BundleMap
from lookup.replay.loads import AtomLoads, BrokerLoads, Demand, ReportedLoads
from tests.replay.plans import NOON, TOPIC, WHOLE, Planned, lookup, planned
from tests.replay.worlds import MICRO

OTHER = "persistent://t/o/x"


def _windows(plan: Planned) -> list[list[int] | None]:
    loads, found = AtomLoads(plan.cluster, plan.run, plan.work), []
    for tick in plan.ticks:
        if tick.is_grid:
            loads.close_cell(tick.start_us)
            found.append(None if loads.window is None else loads.window.tolist())
        loads.add(tick.rows, tick.low, tick.high)
    return found


def test_load_is_the_weight_of_the_last_session_s(tmp_path: Path) -> None:
    """Nothing is known before the first complete cell; then the window slides by cells."""
    rows = [lookup(minute * 60, weight=minute + 1.0, topic=OTHER if minute == 1 else TOPIC) for minute in range(4)]
    section = {"session_s": 120}

    # Bundles in order: t/n, t/o.
    assert _windows(planned(tmp_path, rows, evaluation=section)) == [
        None,
        [1_000_000, 0],
        [1_000_000, 2_000_000],
        [3_000_000, 2_000_000],
    ]


def test_cells_are_cut_by_events_but_close_on_the_grid(tmp_path: Path) -> None:
    """Lookups before and after a cut inside a cell are one cell's weight."""
    unload = {"ts": NOON + 30 * MICRO, "cluster": "east", "bundle": WHOLE, "event": "unloaded", "by": "admin"}
    plan = planned(tmp_path, [lookup(1), lookup(31), lookup(61)], tables={"ownership": [unload]})

    assert plan.bounds == [0, 30 * MICRO, 60 * MICRO, 120 * MICRO]
    assert _windows(plan) == [None, [2_000_000]]


def test_reported_bundles_take_the_place_of_weights(tmp_path: Path) -> None:
    """With BUNDLES the latest row at or before the instant holds, per second."""
    stats = [json.dumps({"msgThroughputIn": value}) for value in (7.0, 9.0)]
    rows = [
        {"ts": NOON + at * MICRO, "cluster": "east", "bundle": WHOLE, "stats": text}
        for at, text in zip((0, 60), stats, strict=True)
    ]
    plan = planned(tmp_path, [lookup(0), lookup(119)], tables={"bundles": rows})
    loads = AtomLoads(plan.cluster, plan.run, plan.work)
    found = []
    for instant in (NOON, NOON + 60 * MICRO):
        loads.close_cell(instant)
        found.append(loads.weight_of(slice(0, 1)))

    assert found == [7.0, 9.0]


def test_a_report_holds_until_the_next() -> None:
    """Brokers without a report are unknown; later rows take the place of earlier ones."""
    columns: dict[str, Any] = {"ts": [1, 5, 5], "broker": [0, 0, 1], "usage": [0.1, 0.2, 0.3], "load": [1.0, 2.0, 3.0]}
    reported = ReportedLoads(
        {**{key: np.array(value) for key, value in columns.items()}, "topics": np.array([4, 5, 6])}, 3
    )

    usage, _, _ = reported.at(4)
    assert usage[0] == 0.1
    assert np.isnan(usage[1:]).all()
    usage, load, topics = reported.at(5)
    assert (usage[:2].tolist(), load[:2].tolist(), topics.tolist()) == ([0.2, 0.3], [2.0, 3.0], [5, 6, 0])


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


def test_a_broker_carries_what_its_bundles_weigh(tmp_path: Path) -> None:
    """Load goes with the owner; topics are the log's in the bundles it owns; top bundles ascend."""
    rows = [lookup(0, weight=6.0), lookup(1, topic=OTHER, weight=12.0), lookup(60)]
    plan = planned(tmp_path, rows)
    bundles, loads = BundleMap(plan.cluster.words.atoms), AtomLoads(plan.cluster, plan.run, plan.work)
    brokers = BrokerLoads(plan.cluster, loads, bundles, plan.work)
    loads.close_cell(NOON)
    loads.add(plan.rows, 0, 2)
    loads.close_cell(NOON + 60 * MICRO)
    known = {"capacity": np.array([1.0, 1.0]), "registered": np.array([True, False])}
    figures = brokers.at(NOON + 60 * MICRO, np.array([0, 0], np.int32), demand=Demand(plan.cluster, [], 60.0), **known)

    assert (figures.broker_load[0], figures.usage[0]) == (pytest.approx(0.3), pytest.approx(0.3))
    assert np.isnan(figures.broker_load[1])
    assert figures.topics.tolist() == [2, 0]
    assert [entry.load for entry in figures.top_bundles[0]] == [pytest.approx(0.1), pytest.approx(0.2)]
