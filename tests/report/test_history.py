"""Tables of a run, added up to be drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lookup.engine.ownership import CAUSE_WORDS
from lookup.model.broker import Location
from lookup.report.history import ClusterHistory, read_flows, read_history, read_rejections
from tests.report.runs import CELL_US, START_US, write_table


def _cells(*weights: tuple[str, int, float]) -> list[dict[str, object]]:
    return [
        {"ts": START_US + hour * CELL_US, "broker": broker, "rack": broker[0], "weight": weight}
        for broker, hour, weight in weights
    ]


def _history(folder: Path, most: int = 1000) -> ClusterHistory:
    history = read_history(str(folder), policies=["stock"], seed=1, cell_us=CELL_US, most=most)
    assert history is not None
    return history.clusters["c"]


def test_load_is_relative_to_the_brokers_that_were_there(tmp_path: Path) -> None:
    """In an hour alone a broker has its share, whatever it served; where it was not registered there is nothing."""
    write_table(tmp_path, "cells", _cells(("a", 0, 3.0), ("b", 0, 1.0), ("a", 1, 9.0)))

    load = _history(tmp_path).load["stock"]

    assert load.tolist()[0] == [1.5, 1.0]
    assert load[1, 0] == 0.5
    assert np.isnan(load[1, 1])


def test_columns_grow_wider_to_stay_few(tmp_path: Path) -> None:
    """A broker that was there for half of a column is held to half of a share."""
    write_table(tmp_path, "cells", _cells(*(("a", hour, 1.0) for hour in range(4)), ("b", 0, 1.0)))

    cluster = _history(tmp_path, most=4)

    assert cluster.width_us == 2 * CELL_US
    assert cluster.starts.tolist() == [START_US, START_US + 2 * CELL_US]
    assert cluster.load["stock"].tolist()[0] == [1.0, 1.0]
    assert cluster.load["stock"][1, 0] == 1.0


def test_lost_bundles_are_counted_by_cause(tmp_path: Path) -> None:
    """What ends with a column counts in it, what begins then counts in the next."""
    write_table(tmp_path, "cells", _cells(*(("a", hour, 1.0) for hour in range(3)), *(("b", h, 1.0) for h in range(3))))
    intervals = [("x", "a", 0.2, 2, "shed"), ("x", "b", 2, None, None)]
    rows = [
        {
            "bundle": bundle,
            "broker": broker,
            "from": START_US + int(first * CELL_US),
            "to": None if last is None else START_US + last * CELL_US,
            "state": "Owned",
            "ended_by": cause,
        }
        for bundle, broker, first, last, cause in intervals
    ]
    write_table(tmp_path, "owners", rows)

    cluster = _history(tmp_path)

    assert cluster.lost["stock"][list(CAUSE_WORDS).index("shed")].tolist() == [0, 0, 1]


def test_a_lost_broker_is_known_by_its_owners(tmp_path: Path) -> None:
    """One that was back within a column has no empty cell, but it lost what it owned."""
    write_table(tmp_path, "cells", _cells(("a", 0, 1.0), ("a", 1, 1.0)))
    at = START_US + CELL_US // 2
    lost = {"broker": "a", "from": START_US, "to": at, "state": "Owned", "ended_by": "forced"}
    write_table(tmp_path, "owners", [{**lost, "bundle": bundle} for bundle in "xy"])

    assert _history(tmp_path).losses == ((0, at),)


def test_another_replicate_is_not_drawn(tmp_path: Path) -> None:
    """Of two seeds the one that is asked for is read."""
    write_table(tmp_path, "cells", _cells(("a", 0, 1.0)), seed=1)
    write_table(tmp_path, "cells", _cells(("b", 0, 1.0)), seed=11)

    assert _history(tmp_path).brokers == ("a",)


def test_flows_are_means_and_the_small_ones_are_one_row(tmp_path: Path) -> None:
    """Places come in order of their lookups, and what was not answered stands last."""
    for seed in (1, 2):
        rows = [
            {
                "client_rack": client,
                "answered": client != "d",
                "broker_rack": None if client == "d" else "a",
                "lookups": n,
            }
            for client, n in (("a", 8.0 * seed), ("b", 4.0), ("c", 1.0), ("d", 2.0))
        ]
        write_table(tmp_path, "flows", rows, seed=seed)

    flows = read_flows(str(tmp_path), seeds=2, most=2)["c"]

    assert flows.clients == (Location(rack="a"), Location(rack="b"), None)
    assert flows.brokers == (Location(rack="a"), None)
    assert flows.lookups["stock"].tolist() == [[12.0, 0.0], [4.0, 0.0], [1.0, 2.0]]


def test_rejections_are_added_up_by_reason(tmp_path: Path) -> None:
    """Over all decisions, the mean of all replicates; decisions without any count as nothing."""
    rows = [
        {"ts": START_US, "rejected": rejected} for rejected in ({"version": 2, "isolated": 1}, {"version": 1}, {}, None)
    ]
    write_table(tmp_path, "decisions", rows, seed=1)
    write_table(tmp_path, "decisions", rows[1:], seed=2)

    assert read_rejections(str(tmp_path), seeds=2) == {"stock": {"version": 2.0, "isolated": pytest.approx(0.5)}}
