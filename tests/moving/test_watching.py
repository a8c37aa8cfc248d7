"""Owners that the state topic names are those of a record, and since the same time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from lookup.collect.observing import Record, StateRecord
from lookup.moving.applying import TransferStep, obstacle
from lookup.moving.state import Owned
from lookup.moving.watching import OwnerWatch
from tests.moving.worlds import START_US, World, broker, bundle


def _record(name: str, after_us: int, position: int, version: int, **data: Any) -> StateRecord:
    text = json.dumps({"timestamp": START_US // 1000, "versionId": version, **data})
    return StateRecord(name, text, START_US + after_us, (2, position, -1))


def _split(parent: str, children: tuple[str, str]) -> list[StateRecord]:
    """Return what a broker writes when it splits a bundle: its children are owned a second after the split began."""
    ranges: Mapping[str, None] = dict.fromkeys(child.rpartition("/")[2] for child in children)
    split = {"state": "Splitting", "sourceBroker": broker(0), "splitServiceUnitToDestBroker": ranges}
    owned = [_record(child, 1_000_000, 1, 1, state="Owned", dstBroker=broker(0)) for child in children]
    return [
        _record(parent, 0, 0, 2, **split),
        *owned,
        _record(parent, 2_000_000, 2, 3, state="Deleted", sourceBroker=broker(0)),
        StateRecord(parent, "", START_US + 3_000_000, (2, 3, -1)),
    ]


def _watching(records: list[StateRecord]) -> OwnerWatch:
    queue: Queue[Record] = Queue()
    for record in records:
        queue.put(record)
    watch = OwnerWatch("east", queue)
    watch.look()
    return watch


@pytest.mark.parametrize("is_compacted", [True, False])
def test_children_of_a_split_are_owned_since_their_own_record(tmp_path: Path, *, is_compacted: bool) -> None:
    """A plan of a record moves them, whether the topic still has the record of the split or not."""
    world, children = World.crowded(), (bundle(0, of=128), bundle(1, of=128))
    world.later = _split(bundle(0), children)
    owners = world.state(tmp_path).owners

    watch = _watching(world.later[1:3] if is_compacted else world.later)

    for child in children:
        owned = owners[child]
        assert watch.owner(child) == owned == Owned(broker(0), START_US + 1_000_000)
        move = TransferStep(1, child, owned.broker, broker(1), owned.since_us)
        assert obstacle(move, watch, world.ids) is None


def test_a_bundle_that_left_and_came_back_is_somebody_elses_move() -> None:
    """Its latest record is later than the plan's; one that a slower clock stamped is the plan's own."""
    watch = _watching([_record(bundle(0), 5_000_000, 1, 1, state="Owned", dstBroker=broker(0))])

    planned = (TransferStep(1, bundle(0), broker(0), broker(1), START_US + s * 1_000_000) for s in (4, 5, 6))

    reasons = [obstacle(move, watch, [broker(1)]) for move in planned]
    assert reasons[1:] == [None, None]
    assert str(reasons[0]).endswith("somebody else has moved it and it came back")
