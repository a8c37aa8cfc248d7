"""Counts, and the batches of metrics they become, whole and in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.errors import SettingsError
from lookup.model.batch import Batch
from lookup.replay.counted import Groups, GroupSums, added_up, check_by
from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.run import run_plan
from tests.replay.plans import NOON, lookup, planned, policy, settings

_COLUMNS = ("unit", "broker", "client", "lookups", "weight")


def test_what_is_held_does_not_grow_with_a_day(tmp_path: Path) -> None:
    """Many rows are added up before the day ends, to the same sums, also where these are no whole numbers."""
    sums, each = GroupSums(planned(tmp_path, [lookup()]).run), np.arange(1 << 16)
    cells = [Groups(NOON + cell, 0, each, each % 7, each % 3, each * 0.1, each * 0.7 + cell) for cell in range(8)]
    held = []
    for group in cells:
        sums.add(group)
        held.append(len(sums.all))
    sums.settle()

    assert held == [1, 2, 1, 2, 3, 1, 2, 3]
    expected = added_up(cells)
    assert [getattr(sums.all[0], name).tolist() for name in _COLUMNS] == [
        getattr(expected, name).tolist() for name in _COLUMNS
    ]


def test_demand_is_told_apart_by_what_there_is() -> None:
    """An unknown dimension, or hours that cells do not divide, is refused."""
    check_by(("tenant", "hour"), 1_800_000_000)
    with pytest.raises(SettingsError, match=r"by='city': .* tenant, namespace, rack, hour"):
        check_by(("city",), 1)
    with pytest.raises(SettingsError, match=r"by='hour': .*evaluation\.balance_s .* 7200"):
        check_by(("hour",), 7_200_000_000)


def test_cells_are_counted_without_one_sender_after_the_other(tmp_path: Path) -> None:
    """What is left is the whole less what each namespace was served, also where that is nothing; parts have it too."""
    rows = [lookup(700 * number, topic=f"persistent://t/n{number % 9}/x", weight=1.5 + number) for number in range(40)]
    plan = planned(tmp_path, rows)
    replay = plan.shown_to(ExclusiveReplay(plan.cluster, run_plan(settings(), ("namespace", "hour")), policy(), seed=1))
    served: dict[Any, Any] = {}
    left: dict[Any, list[Any]] = {}
    for name, batches, rest in replay.collect_counts().parts():
        served[name] = _served(batches[-1])
        left[name] = [None if batch is None else _served(batch) for batch in rest]

    namespaces = [served[("namespace", f"t/n{number}"),] for number in range(9)]
    assert len(left[()]) == 9
    np.testing.assert_allclose(served[()] - namespaces, left[()], atol=1e-9)
    # Of its own part a namespace leaves nothing, and is missed in no other.
    assert [rest is None for rest in left[("namespace", "t/n3"),]] == [number != 3 for number in range(9)]
    assert not np.any(left[("namespace", "t/n3"),][3])
    hours = [name for name in left if name and name[0][0] == "hour"]
    for number, whole in enumerate(left[()]):
        parts = [served[name] if left[name][number] is None else left[name][number] for name in hours]
        np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-9)


def _served(batch: Batch) -> Any:
    assert batch.cells is not None
    return batch.cells.served
