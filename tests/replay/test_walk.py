"""Ticks with their rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lookup.model.broker import Broker, BrokerLookupData, Roster
from lookup.replay.walk import Registry, walk_days
from tests.replay.plans import lookup, planned
from tests.replay.worlds import MICRO


def test_every_row_is_in_the_tick_of_its_time(tmp_path: Path) -> None:
    """Ticks run without gaps, an instant on a border belongs to the tick that begins there."""
    plan = planned(tmp_path, [lookup(0), lookup(59.9), lookup(60), lookup(200)])
    ticks = plan.ticks

    assert [tick.rows.ts[tick.low : tick.high].tolist() for tick in ticks] == [
        [lookup(0)["ts"], lookup(59.9)["ts"]],
        [lookup(60)["ts"]],
        [],
        [lookup(200)["ts"]],
    ]
    assert [tick.end_us for tick in ticks[:-1]] == [tick.start_us for tick in ticks[1:]]


def test_quiet_days_have_ticks_and_no_rows(tmp_path: Path) -> None:
    """Between two days with lookups time goes on."""
    plan = planned(tmp_path, [lookup(0), lookup(2 * 86_400)], evaluation={"tick_s": 3600, "session_s": 3600})
    days = list(walk_days(plan.cluster, plan.run, plan.work))

    assert [len(ticks) for ticks in days] == [12, 24, 13]
    assert [[tick.number for tick in ticks if tick.high > tick.low] for ticks in days] == [[0], [], [48]]


def test_a_cell_that_crosses_midnight_stays_whole(tmp_path: Path) -> None:
    """Where tick_s does not divide a day, rows after midnight are in the cell that began before it."""
    midnight = 12 * 3600
    section = {"tick_s": 7, "session_s": 7, "balance_s": 7}
    plan = planned(tmp_path, [lookup(midnight - 1), lookup(midnight), lookup(midnight + 7)], evaluation=section)
    ticks = plan.ticks

    assert [tick.high - tick.low for tick in ticks] == [2, 1]
    assert all(tick.start_us % (7 * MICRO) == 0 for tick in ticks)


def test_every_change_of_the_registry_begins_an_epoch() -> None:
    """Joins and leaves change the mask, changed lookup data the roster: either may change what a policy can choose."""
    first = Roster([Broker("a")])
    registry = Registry(first)
    registry.apply((Roster([Broker("a")]), np.array([True])))
    assert (registry.epoch, registry.registered.tolist()) == (1, [True])

    registry.apply((Roster([Broker("a", BrokerLookupData(properties={"lookup.rack": "x"}))]), np.array([True])))
    assert registry.epoch == 2
