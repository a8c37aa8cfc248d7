"""Facts that no policy changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookup.replay.clusters import marks_of
from lookup.replay.facts import ClusterFacts, FactsWalk
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned
from tests.replay.worlds import MICRO

HALVES = ("t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff")


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


def test_a_lost_broker_induces_lookups_of_what_it_owned_by_then(tmp_path: Path) -> None:
    """Bundles it had given up, or that others took over, do not count; children of a split do."""
    registry = [
        {"ts": NOON - MICRO, "cluster": "east", "broker": "a:1", "event": "registered"},
        {"ts": NOON + 20 * MICRO, "cluster": "east", "broker": "a:1", "event": "unregistered"},
    ]
    owned = [_event(0, "owned", broker="a:1"), _event(1, "split", boundaries=["0x80000000"])]
    taken = [_event(2, "owned", bundle=half, broker="b:1") for half in HALVES]
    rows = [lookup(5), lookup(21)]
    tables = {"brokers": registry, "ownership": owned}

    assert _facts(planned(tmp_path / "kept", rows, tables=tables)).induced == 1
    assert _facts(planned(tmp_path / "taken", rows, tables={**tables, "ownership": owned + taken})).induced == 0


def test_the_logged_choice_is_counted_by_broker(tmp_path: Path) -> None:
    """Lookups count under the broker the log says; a stranger's count as unanswered."""
    rows = [lookup(0, broker="b:1"), lookup(1, broker="nobody"), lookup(2, broker="b:1")]
    logged = _facts(planned(tmp_path, rows), has_log=True).logged
    assert logged is not None
    (batch,) = logged.batches

    assert dict(zip(batch.served.broker.tolist(), batch.served.lookups.tolist(), strict=True)) == {-1: 1.0, 1: 2.0}
    assert batch.changes is None
