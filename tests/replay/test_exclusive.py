"""One policy under exclusive ownership, in small worlds with known outcomes."""

from __future__ import annotations

from collections.abc import Generator, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lookup.engine.manager import LoadManager, ManagerObserver
from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, LookupRequest, Probe, Ruling, Unload
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
    for batch in replay.counted().batches:
        for broker, lookups in zip(batch.served.broker.tolist(), batch.served.lookups.tolist(), strict=True):
            served[broker] = served.get(broker, 0.0) + lookups
    return replay, served


def _owners(replay: ExclusiveReplay) -> list[tuple[str | None, float, float | None, str | None]]:
    return [
        (one.broker, (one.from_us - NOON) / MICRO, one.to_us and (one.to_us - NOON) / MICRO, one.ended_by)
        for one in replay.owners
    ]


def test_cells_and_flows_are_what_brokers_served(tmp_path: Path) -> None:
    """One row per registered broker, if it served nothing as well; one per place of clients and of brokers."""
    rows = [lookup(0, properties=B, read_only=True), lookup(1, properties=A, weight=2.0), lookup(2, properties=B)]
    replay, _ = _replayed(planned(tmp_path, rows))
    batches, name = replay.counted().batches, RunName("east", "p", 7)

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
    batch = replay.counted().batches[-1]
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
    changes = replay.counted().batches[-1].changes
    assert changes is not None

    assert set(changes.event[changes.cause == "forced"].tolist()) == {0}
    assert (changes.cause == "forced").sum() == 3


@dataclass(frozen=True)
class Eager:
    """A shedder that proposes to unload the whole bundle in every cycle."""

    name: ClassVar[str] = "eager"
    reads: ClassVar[frozenset[str]] = frozenset({"view.ownership"})

    destination: str | None = None

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[Unload | Probe, Ruling, CycleOutcome]:
        """Propose to unload the bundle from its owner, whoever that is."""
        owner = view.ownership.owner(WHOLE)
        if owner is not None:
            yield Unload(WHOLE, view.brokers[owner].id, self.destination)
        return CycleOutcome(CycleLabel.SUCCESS, CycleReason.OVERLOADED)


@pytest.mark.parametrize(("destination", "after"), [("b:1", [0.0, 0.5]), (None, [0.0, 0.0])])
def test_a_shed_bundle_counts_for_its_old_broker_until_the_next_instant(
    tmp_path: Path, destination: str | None, after: list[float]
) -> None:
    """Then all its load, of lookups before the unload too, is the new owner's, or nobody's while it has none."""
    brokers = [{"id": f"{rack}:1", "capacity": 1.0, "properties": {"lookup.rack": rack}} for rack in ("a", "b")]
    others = [lookup(second, topic=f"persistent://t/n{second}/x", weight=0.0) for second in (90, 121)]
    rows = [lookup(0, properties=A, weight=60.0), *others]
    section = {"session_s": 120, "overload_threshold": 0.4}
    plan = planned(tmp_path, rows, brokers=brokers, evaluation=section)
    seen: list[list[float]] = []

    def look(manager: LoadManager, request: LookupRequest, ts_us: int, is_repeated: bool) -> None:
        if request.bundle != WHOLE:
            seen.append(manager.view().load.throughput.tolist())

    shedding = replace(policy(**RACK), shedder=Eager(destination))
    replay = ExclusiveReplay(plan.cluster, plan.run, shedding, seed=1, observer=ManagerObserver(before_decision=look))
    cells = plan.shown_to(replay).counted().batches[0].cells
    assert cells is not None
    assert cells.overloaded_s is not None

    assert _owners(replay)[0] == ("a:1", 0, 60, "shed")
    assert seen == [[0.5, 0.0], after]
    assert cells.overloaded_s.tolist() == [[60.0, 60.0 if destination else 0.0]]
