"""How near lookups could be served if owners moved freely; `test_exact.py` compares it with a plain loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lookup.replay.clusters import marks_of
from lookup.replay.facts import FactsWalk
from tests.replay.plans import lookup, planned
from tests.replay.worlds import MICRO

_PLACE = {"region": "r", "zone": "z"}


def _at_best(
    folder: Path, racks: list[tuple[float, str]], *bundles: int | None, **given: Any
) -> list[tuple[str | None, float, float]]:
    """Return key and sums of each figure for lookups of some seconds and racks, by number of bundles."""
    rows = [
        lookup(second, topic=f"persistent://t/n/{second}", properties=json.dumps(_PLACE | {"rack": rack}))
        for second, rack in racks
    ]
    plan = planned(folder, rows, **given)
    marks = marks_of(plan.cluster, plan.work)
    walk = FactsWalk(plan.cluster, plan.run, marks, 30 * MICRO, has_log=False, bundles=bundles or (None,))
    return [(each.key, each.best, each.counted) for each in plan.shown_to(walk).facts().at_best]


def test_more_bundles_come_nearer(tmp_path: Path) -> None:
    """Policies that begin with more bundles have a bound of their own."""
    policies = [{"name": "p", "selector": "best"}, {"name": "q", "selector": "best", "bundles": 16}]
    found = _at_best(tmp_path, [(second, "ab"[second % 2]) for second in range(8)], None, 16, policies=policies)
    whole, parted = (best for key, best, _ in found if key == "rack")

    assert whole == 4.0
    assert parted == 8.0


def test_only_racks_with_a_broker_count(tmp_path: Path) -> None:
    """Once the only broker of rack b has left, its clients are served from elsewhere."""
    brokers = [{"id": f"{rack}:1", "properties": {"lookup.rack": rack}} for rack in "ab"]
    brokers[1]["until"] = "2026-01-01T12:01:00Z"  # type: ignore[assignment]

    assert ("rack", 1.0, 2.0) in _at_best(tmp_path, [(0, "b"), (60, "b")], brokers=brokers)


def test_distances_are_the_shortest_that_one_broker_has(tmp_path: Path) -> None:
    """A bundle goes where weight x ms is least over its lookups of the tick."""
    published = {f"lookup.{level}": name for level, name in _PLACE.items()}
    brokers = [{"id": f"{rack}:1", "properties": published | {"lookup.rack": rack}} for rack in "ab"]
    topology = {"distance_ms": {"same": 0.5, "rack": 2.0}}
    found = _at_best(tmp_path, [(0, "a"), (1, "a"), (2, "b")], topology=topology, brokers=brokers)

    assert (None, 2 * 0.5 + 2.0, 3.0) in found


def test_an_unknown_distance_counts_as_the_shortest_of_its_client(tmp_path: Path) -> None:
    """A broker that says no place might be as near as any, and a bound must hold for it too."""
    published = {f"lookup.{level}": name for level, name in _PLACE.items()}
    brokers = [{"id": f"{rack}:1", "properties": published | {"lookup.rack": rack}} for rack in "ab"]
    brokers.append({"id": "c:1", "properties": {}})
    topology = {"distance_ms": {"same": 0.5, "rack": 2.0}}
    found = _at_best(tmp_path, [(0, "a"), (1, "a"), (2, "b")], topology=topology, brokers=brokers)

    assert (None, 3 * 0.5, 3.0) in found
