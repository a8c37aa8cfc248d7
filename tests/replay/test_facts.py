"""Facts that no policy changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookup.replay.clusters import marks_of
from lookup.replay.facts import ClusterFacts, FactsWalk
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned
from tests.replay.worlds import MICRO


def _event(second: int, event: str, **values: Any) -> dict[str, Any]:
    return {"ts": NOON + second * MICRO, "cluster": "east", "bundle": WHOLE, "event": event, **values}


def _facts(plan: Planned, *, has_log: bool = False) -> ClusterFacts:
    marks = marks_of(plan.cluster, plan.work)
    return plan.shown_to(FactsWalk(plan.cluster, plan.run, marks, 30 * MICRO, has_log=has_log, bundles=[None])).facts()


def test_lookups_soon_after_a_logged_unload_are_induced(tmp_path: Path) -> None:
    """From the unload's own µs up to `reconnect_s` later, whoever unloaded, in that bundle only."""
    rows = [lookup(second) for second in (9, 10, 39, 40)] + [lookup(11, topic="persistent://t/o/x")]
    facts = _facts(planned(tmp_path, rows, tables={"ownership": [_event(10, "unloaded", by="policy")]}))

    assert (facts.induced, facts.demand) == (2, 5)
