"""The plan of a cluster, and what is taken out of its log of owners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.errors import InputError
from lookup.replay.clusters import marks_of
from tests.replay.plans import NOON, WHOLE, lookup, planned
from tests.replay.worlds import MICRO

REGISTERED = {"ts": NOON, "cluster": "east", "broker": "a:1", "event": "registered"}


def test_one_known_capacity_is_enough_to_assume_none(tmp_path: Path) -> None:
    """A single broker's capacity says that the others are unknown, not equal."""
    brokers = [{"id": "a:1", "capacity": 5.0}, {"id": "b:1"}]

    cluster = planned(tmp_path, [lookup()], brokers=brokers).cluster

    assert cluster.assumed_capacity is None
    assert cluster.without_capacity == ["b:1"]


def test_only_registered_brokers_lack_a_capacity(tmp_path: Path) -> None:
    """An entry of the settings whose broker the table BROKERS does not name carries nothing."""
    brokers = [{"id": "a:1", "capacity": 5.0}, {"id": "b:1"}]
    tables = {"brokers": [REGISTERED]}

    assert planned(tmp_path, [lookup()], tables=tables, brokers=brokers).cluster.without_capacity == []


def test_a_bundle_pinned_to_a_broker_is_told_by_its_namespace(tmp_path: Path) -> None:
    """Heartbeats of a known broker have its number, those of an unknown one -2, all others -1."""
    names = ("pulsar/a:1", "pulsar/zz:9", "t/n")
    plan = planned(tmp_path, [lookup(topic=f"persistent://{name}/x") for name in names])

    assert plan.cluster.pinned.tolist() == [0, -2, -1]


def test_a_log_of_too_many_ticks_is_refused(tmp_path: Path) -> None:
    """Two lookups thousands of years apart are a mistake, not a quiet time."""
    with pytest.raises(InputError, match=r"from 2026-01-01 to 5194-11-16, "):
        planned(tmp_path, [lookup(0), lookup(1e11)])


def test_a_broker_whose_row_cannot_be_used_is_told(tmp_path: Path) -> None:
    """A table of nothing but unusable rows is not said to have none: the first one's place and reason are named."""
    row = {**REGISTERED, "lookup_data": "{"}

    with pytest.raises(InputError, match=r"1 row that cannot be used, .*brokers\.parquet, row 1: "):
        planned(tmp_path, [lookup()], tables={"brokers": [row]}, brokers=[])


HALVES = ("t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff")
DAY = 86_400 * MICRO


def _event(ts_us: int, event: str, **values: Any) -> dict[str, Any]:
    return {"ts": ts_us, "cluster": "east", "bundle": WHOLE, "event": event, **values}


@pytest.mark.parametrize("backwards", [False, True])
def test_a_log_of_owners_is_read_over_days_and_in_order_of_time(tmp_path: Path, *, backwards: bool) -> None:
    """Days before the log count, whatever the order of the file; the timeline has owners, splits and unloads."""
    log = [
        _event(NOON - 3 * DAY, "owned", broker="b:1"),
        _event(NOON - DAY, "unloaded", by="policy"),
        _event(NOON - DAY + 1, "owned", broker="a:1"),
        _event(NOON - DAY + 2, "split", boundaries=["0x80000000"]),
        _event(NOON, "unloaded", bundle=HALVES[0], by="admin"),
        _event(NOON + MICRO, "unloaded", bundle=HALVES[1], by="admin"),
        _event(NOON + 2 * MICRO, "split", bundle=HALVES[0], boundaries=["0x40000000"]),
    ]
    plan = planned(tmp_path, [lookup(0), lookup(90)], tables={"ownership": log[::-1] if backwards else log})
    timeline = plan.cluster.timeline

    assert timeline.owners == {HALVES[1]: "a:1"}
    assert timeline.initial_splits == ((WHOLE, HALVES),)
    assert timeline.ignored_unloads == 1
    assert [event.unloads for event in timeline.events.values() if event.unloads] == [(HALVES[1],)]
    assert [parent for event in timeline.events.values() for parent, _ in event.splits] == [HALVES[0]]
    assert (marks_of(plan.cluster, plan.work).ts - NOON).tolist() == [-DAY, 0, MICRO]
