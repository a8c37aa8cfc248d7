"""Assignments, moves and cycles of moves by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.hooks import Metric
from lookup.model.batch import Batch
from lookup.score.metrics import Assignments, CycleMoves, MovedWeight, Moves, NecessaryMoves, RedundantMoves, Unloads
from tests.score.oracle import Change, Happenings, measure_all
from tests.score.worlds import HOUR, SECOND, batch_of, labelled

BROKERS = [labelled(f"{name}:8080") for name in "xyz"]
MINUTE = 60 * SECOND


def walk(owners: str, *, minutes: int = 1, bundle: str = "b0", cause: str = "shed") -> list[Change]:
    """Let a bundle go from owner to owner, one letter each, so many minutes apart."""
    sources = [None, *owners]
    return [
        Change("c", step * minutes * MINUTE, bundle, source and f"{source}:8080", f"{owner}:8080", cause, weight=2.0)
        for step, (source, owner) in enumerate(zip(sources, owners, strict=False))
    ]


def batch(changes: list[Change] | None) -> Batch:
    """Build a batch of ownership changes; returns within half an hour are redundant."""
    ordered = None if changes is None else sorted(changes, key=lambda change: change.ts)
    return batch_of(Happenings([], ordered, {}, HOUR, window_s=1800), BROKERS)


def value(metric: Metric, changes: list[Change], key: str | None = None) -> float:
    """Measure ownership changes."""
    return float(metric.value(metric.accumulate(batch(changes), key).sum(axis=0)))


def test_an_unload_counts_wherever_the_bundle_goes() -> None:
    """One that comes back, one that moves and one that nobody asked for again; a lost broker unloads nothing."""
    back = [_unloaded(0), Change("c", 1, "b0", "x:8080", "x:8080", "shed")]
    moved = [_unloaded(2, cause="admin"), Change("c", 3, "b0", "x:8080", "y:8080", "admin")]
    lost = [Change("c", 4, "b0", "y:8080", "z:8080", "forced")]
    changes = [*back, *moved, *lost, _unloaded(5)]

    assert value(Unloads(), changes) == 3
    assert value(Moves(), changes) == 2


def _unloaded(ts: int, cause: str = "shed") -> Change:
    return Change("c", ts, "b0", "x:8080", None, cause, decided=False)


@pytest.mark.parametrize(
    ("owners", "redundant"), [("xy", 0), ("xyz", 0), ("xyx", 2), ("xyzx", 3), ("xyxy", 3), ("xyzy", 2), ("xyzyx", 4)]
)
def test_redundant_moves_lead_back(owners: str, redundant: int) -> None:
    """All moves from leaving an owner until returning to it count, each once."""
    assert value(RedundantMoves(), walk(owners)) == redundant


@pytest.mark.parametrize(("minutes", "redundant"), [(30, 2), (31, 0)])
def test_late_returns_are_not_redundant(minutes: int, redundant: int) -> None:
    """The window is closed: an owner left exactly 1800 s ago still counts."""
    assert value(RedundantMoves(), walk("xyx", minutes=minutes)) == redundant


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Assignments(), [2, 0, 2, 1]),
        (Moves(), [1, 0, 2, 1]),
        (RedundantMoves(), [1, 0, 1, 0]),
        (MovedWeight(), [1, 0, 5, 2]),
        (CycleMoves(), [1, 0, 1, 0]),
        (NecessaryMoves(), [0, 0, 1, 1]),
    ],
    ids=["assignments", "moves", "redundant", "weight", "cycles", "necessary"],
)
def test_what_an_event_caused_stands_in_its_row(metric: Metric, expected: list[float]) -> None:
    """Losing x moves two bundles, an unload one: two events; a first owner and a shedding count for their bundle."""
    changes = [
        Change("c", 0, "b0", None, "x:8080", "first"),
        Change("c", MINUTE, "b0", "x:8080", "y:8080", "forced", weight=2.0),
        Change("c", MINUTE, "b1", "x:8080", "y:8080", "forced", weight=3.0),
        Change("c", 2 * MINUTE, "b0", "y:8080", "x:8080", "shed", weight=1.0),
        Change("c", 3 * MINUTE, "b1", "y:8080", "z:8080", "admin", weight=2.0),
    ]

    b0, b1, *others, lost, unloaded = metric.accumulate(batch(changes), None)[:, 0].tolist()

    assert not any(others)
    assert [b0, b1, lost, unloaded] == expected


def test_order_of_time_survives_many_bundles() -> None:
    """Four hundred changes of eight bundles, in turn, each on its own way round three brokers."""
    ways = {"b0": "xyz", "b1": "xyxz", "b2": "xzyx", "b3": "xy", "b4": "yxzxy", "b5": "zzyx", "b6": "xyzzz", "b7": "zy"}
    walks = [walk((way * 50)[:50], minutes=9, bundle=bundle) for bundle, way in ways.items()]
    world = Happenings([], sorted((change for one in walks for change in one), key=lambda change: change.ts), {}, HOUR)

    sums = RedundantMoves().accumulate(batch_of(world, BROKERS), None)

    alone = [measure_all(replace(world, changes=one))["redundant_moves", None] for one in walks]
    assert sums[:, 0].tolist() == alone


SIX = [labelled(f"{name}:8080") for name in "uvwxyz"]


def moves(*edges: str) -> list[Change]:
    """Let a new bundle make each move, `xy` from x to y, one second after the other."""
    return [
        Change("c", second * SECOND, f"b{second % 8}", f"{source}:8080", f"{target}:8080", "shed", path=f"p{second}")
        for second, (source, target) in enumerate(edges)
    ]


def moves_batch(changes: list[Change] | None) -> Batch:
    """Build a moves_batch of ownership changes."""
    return batch_of(Happenings([], changes, {}, HOUR), SIX)


def counts(*edges: str) -> tuple[float, float]:
    """Count moves on cycles, and the others."""
    sums = [
        metric.accumulate(moves_batch(moves(*edges)), None).sum(axis=0) for metric in (CycleMoves(), NecessaryMoves())
    ]
    return float(CycleMoves().value(sums[0])), float(NecessaryMoves().value(sums[1]))


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ((), (0, 0)),
        (("xy",), (0, 1)),
        (("xy", "yz"), (0, 2)),
        (("xy", "yx"), (2, 0)),
        (("xy", "xy", "yx"), (2, 1)),
        (("xy", "yz", "zx"), (3, 0)),
        (("xy", "yz", "zx", "xz"), (2, 2)),
        (("xy", "yx", "yz", "zy"), (4, 0)),
        (("uv", "vw", "wu", "xy", "yx", "wx"), (5, 1)),
        (("xy", "xy", "yx", "uv"), (2, 2)),
        # From u the longer cycle is taken, though the swap of v and w is shorter.
        (("uv", "vw", "wu", "wv"), (3, 1)),
    ],
)
def test_moves_on_cycles_cancel_out(edges: Sequence[str], expected: tuple[int, int]) -> None:
    """Different bundles count alike: a swap leaves every broker with as many as before."""
    assert counts(*edges) == expected


def test_the_latest_moves_close_cycles() -> None:
    """Of three moves between two brokers, two one way, the earlier of these is the necessary one."""
    sums = CycleMoves().accumulate(moves_batch(moves("xy", "xy", "yx")), None)

    assert sums[:, 0].tolist() == [0, 1, 1, 0, 0, 0, 0, 0]


@given(st.lists(st.sampled_from([a + b for a in "uvwxyz" for b in "uvwxyz" if a != b]), max_size=40))
def test_cycles_leave_the_balance_of_every_broker_alone(edges: list[str]) -> None:
    """What remains has no cycle and brings every broker as many bundles as all moves; the plain loop says the same."""
    changes = moves(*edges)
    figures = measure_all(Happenings([], changes, {}, HOUR))
    on_cycles, others = counts(*edges)

    assert (on_cycles, others) == (figures["cycle_moves", None], figures["necessary_moves", None])
    assert on_cycles + others == len(edges)
    gains = [sum(edge[1] == broker for edge in edges) - sum(edge[0] == broker for edge in edges) for broker in "uvwxyz"]
    assert others >= sum(map(abs, gains)) / 2
