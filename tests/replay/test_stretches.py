"""Counting the rows of a stretch by key and tick."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from lookup.replay.stretches import Stretch, classes_of, count_stretch, demand_by_key
from tests.replay.plans import Planned, lookup, planned

#: Seconds after noon, property `k` and weight of lookups in two minutes.
ROWS = [(0, "x", 1.0), (1, "y", 2.0), (2, "x", 4.0), (61, "z", 8.0), (62, "x", 16.0), (63, "y", 32.0)]


def _stretch(folder: Path) -> tuple[Planned, Stretch]:
    plan = planned(folder, [lookup(at, properties=f'{{"k":"{k}"}}', weight=weight) for at, k, weight in ROWS])
    return plan, Stretch(plan.ticks, 0, 0)


def test_demand_adds_up_the_classes_of_a_key_tick_by_tick(tmp_path: Path) -> None:
    """Whatever classes share a key, lookups and weight are those of the rows, and a key without rows is not there."""
    plan, stretch = _stretch(tmp_path)
    classes = classes_of(plan.cluster, stretch)
    # The first two client classes share key 5; the third has key 2.
    keys = np.where(classes.client < 2, 5, 2)

    demand = demand_by_key(count_stretch(plan.cluster, stretch, classes), keys, len(stretch.ticks))

    starts = [tick.low for tick in stretch.ticks]
    lookups, weight = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for row, (client, (_, _, each)) in enumerate(zip(classes.client[classes.codes], ROWS, strict=True)):
        key, tick = (5 if client < 2 else 2), int(np.searchsorted(starts, row, side="right")) - 1
        lookups[key, tick] += 1
        weight[key, tick] += round(each * 1e6)
    assert set(demand.pairs) == {2, 5}
    assert [
        (key, tick, count, micro)
        for key, pairs in demand.pairs.items()
        for tick, count, micro in zip(demand.tick[pairs], demand.lookups[pairs], demand.micro[pairs], strict=True)
    ] == [(key, tick, lookups[key, tick], weight[key, tick]) for key, tick in sorted(lookups)]
