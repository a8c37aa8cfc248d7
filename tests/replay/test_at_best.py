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
