"""One policy under exclusive ownership, in small worlds with known outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.records import RunName, cell_table, flow_table
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned, policy
from tests.replay.worlds import MICRO

RACK = {"scorers": [{"use": "property-match", "key": "rack"}], "selector": {"use": "best", "min_score": 1.0}}
A, B = '{"rack":"a"}', '{"rack":"b"}'


def _replayed(plan: Planned, **parts: Any) -> tuple[ExclusiveReplay, dict[int, float]]:
    made = policy(**(parts or RACK))
    replay = plan.shown_to(ExclusiveReplay(plan.cluster, plan.run, made, seed=1))
    served: dict[int, float] = {}
    for batch in replay.collect_counts().batches:
        for broker, lookups in zip(batch.served.broker.tolist(), batch.served.lookups.tolist(), strict=True):
            served[broker] = served.get(broker, 0.0) + lookups
    return replay, served


def test_cells_and_flows_are_what_brokers_served(tmp_path: Path) -> None:
    """One row per registered broker, if it served nothing as well; one per place of clients and of brokers."""
    rows = [lookup(0, properties=B, read_only=True), lookup(1, properties=A, weight=2.0), lookup(2, properties=B)]
    replay, _ = _replayed(planned(tmp_path, rows))
    batches, name = replay.collect_counts().batches, RunName("east", "p", 7)

    cells = cell_table(name, batches).to_pylist()
    flows = flow_table(name, batches).to_pylist()

    assert {(row["cluster"], row["policy"], row["seed"]) for row in (*cells, *flows)} == {("east", "p", 7)}
    assert [(row["broker"], row["rack"], row["weight"]) for row in cells] == [("a:1", "a", 3.0), ("b:1", "b", 0.0)]
    assert [
        (row["client_rack"], row["answered"], row["broker_rack"], row["lookups"], row["weight"]) for row in flows
    ] == [("a", True, "a", 1.0, 2.0), ("b", False, None, 1.0, 1.0), ("b", True, "a", 1.0, 1.0)]


def _event(event: str, second: float, bundle: str = WHOLE, **fields: Any) -> dict[str, Any]:
    place = {"ts": NOON + round(second * MICRO), "cluster": "east", "bundle": bundle, "event": event, "by": "admin"}
    return {**place, **fields}


def _split(second: float, bundle: str, *boundaries: str) -> dict[str, Any]:
    return _event("split", second, bundle, boundaries=list(boundaries))


ALL = "0x00000000_0xffffffff"


def _events(replay: ExclusiveReplay) -> list[tuple[str, str | None]]:
    """Return the cause of every change, and that of the event that led to it."""
    batch = replay.collect_counts().batches[-1]
    assert batch.changes is not None
    changes = zip(batch.changes.cause.tolist(), batch.changes.event.tolist(), strict=True)
    return [(cause, None if event < 0 else batch.events[event]) for cause, event in changes]


@pytest.mark.parametrize("loss", ["leader", "next-lookup"])
def test_changes_know_the_event_that_led_to_them(tmp_path: Path, loss: str) -> None:
    """A first owner has none; a lost broker and an unload have numbers of their own."""
    brokers = [{"id": "a:1", "until": "2026-01-01T12:00:07Z"}, {"id": "b:1"}]
    rows = [lookup(second) for second in (0, 20, 40)]
    plan = planned(
        tmp_path,
        rows,
        brokers=brokers,
        tables={"ownership": [_event("owned", 0, broker="a:1"), _event("unloaded", 30)]},
        evaluation={"owner_loss": loss},
    )
    replay, _ = _replayed(plan, selector={"use": "rendezvous"})

    # The unload, and the assignment after it.
    assert _events(replay) == [("first", None), ("forced", "forced"), ("admin", "admin"), ("admin", "admin")]


def test_children_of_a_split_know_what_took_their_parent(tmp_path: Path) -> None:
    """Its owner was lost before the split; the child that is asked for next moves because of that."""
    brokers = [{"id": "a:1", "until": "2026-01-01T12:00:07Z"}, {"id": "b:1"}]
    tables = {"ownership": [_event("owned", 0, broker="a:1"), _split(10, WHOLE, "0x80000000")]}
    plan = planned(tmp_path, [lookup(0), lookup(20)], brokers=brokers, tables=tables)
    replay, _ = _replayed(plan, selector={"use": "rendezvous"})

    assert _events(replay) == [("first", None), ("forced", "forced")]


def test_one_lost_broker_is_one_event_for_all_its_bundles(tmp_path: Path) -> None:
    """They move together, whichever lookup comes first."""
    brokers = [{"id": "a:1", "until": "2026-01-01T12:00:07Z"}, {"id": "b:1"}]
    topics = [f"persistent://t/n{number}/topic" for number in range(3)]
    rows = [lookup(second + place, topic=topic) for second in (0, 20) for place, topic in enumerate(topics)]
    owned = [_event("owned", 0, f"t/n{number}/{ALL}", broker="a:1") for number in range(3)]
    replay, _ = _replayed(planned(tmp_path, rows, brokers=brokers, tables={"ownership": owned}), selector="random")
    changes = replay.collect_counts().batches[-1].changes
    assert changes is not None

    assert set(changes.event[changes.cause == "forced"].tolist()) == {0}
    assert (changes.cause == "forced").sum() == 3
