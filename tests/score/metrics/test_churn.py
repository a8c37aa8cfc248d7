"""Cycles of moves and swinging load by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model.batch import Batch, Cells
from lookup.model.broker import Roster
from lookup.score.metrics import CycleMoves, LoadVariation, NecessaryMoves
from lookup.score.metrics.churn import _graph
from tests.score.oracle import Change, Happenings, measure_all
from tests.score.worlds import HOUR, SECOND, batch_of, labelled

BROKERS = [labelled(f"{name}:8080") for name in "uvwxyz"]


def moves(*edges: str) -> list[Change]:
    """Let a new bundle make each move, `xy` from x to y, one second after the other."""
    return [
        Change("c", second * SECOND, f"b{second % 8}", f"{source}:8080", f"{target}:8080", "shed", path=f"p{second}")
        for second, (source, target) in enumerate(edges)
    ]


def batch(changes: list[Change] | None) -> Batch:
    """Build a batch of ownership changes."""
    return batch_of(Happenings([], changes, {}, HOUR), BROKERS)


def counts(*edges: str) -> tuple[float, float]:
    """Count moves on cycles, and the others."""
    sums = [metric.accumulate(batch(moves(*edges)), None).sum(axis=0) for metric in (CycleMoves(), NecessaryMoves())]
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
    ],
    ids=["none", "one", "chain", "swap", "swap-and-one", "triangle", "short-before-long", "two-swaps", "apart", "docs"],
)
def test_moves_on_cycles_cancel_out(edges: Sequence[str], expected: tuple[int, int]) -> None:
    """Different bundles count alike: a swap leaves every broker with as many as before."""
    assert counts(*edges) == expected


def test_the_graph_of_moves_is_looked_at_once() -> None:
    """The epochs of a run before the last, which have no changes, do not make the second metric look again."""
    batches = [*(batch([]) for _ in range(20)), batch(moves("xy", "yx"))]
    before = _graph.cache_info().misses

    sums = [sum(metric.accumulate(one, None).sum() for one in batches) for metric in (CycleMoves(), NecessaryMoves())]

    assert sums == [2, 0]
    assert _graph.cache_info().misses == before + 1


def test_cycles_through_the_first_broker_go_first() -> None:
    """From u the longer cycle is taken though the swap of v and w is shorter, for u comes first."""
    assert counts("uv", "vw", "wu", "wv") == (3, 1)


def test_the_latest_moves_close_cycles() -> None:
    """Of three moves between two brokers, two one way, the earlier of these is the necessary one."""
    sums = CycleMoves().accumulate(batch(moves("xy", "xy", "yx")), None)

    assert sums[:, 0].tolist() == [0, 1, 1, 0, 0, 0, 0, 0]


def test_going_back_to_the_last_owner_is_no_move() -> None:
    """Neither is a first assignment."""
    first = Change("c", 0, "b0", None, "x:8080", "first")
    same = Change("c", 1, "b0", "x:8080", "x:8080", "shed")

    assert not CycleMoves().accumulate(batch([first, same]), None).any()
    assert not NecessaryMoves().accumulate(batch([first, same]), None).any()


@pytest.mark.parametrize("metric", [CycleMoves(), NecessaryMoves()], ids=lambda one: one.name)
def test_without_owners_there_are_no_such_figures(metric: CycleMoves | NecessaryMoves) -> None:
    """Shared ownership has no keys, and sums of zero where somebody asks all the same."""
    assert metric.keys(batch(None)) == ()
    assert not metric.accumulate(batch(None), None).any()


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


def cells(*series: Sequence[float | None]) -> Batch:
    """Lay out what brokers served cell by cell; None where one was not registered."""
    served = np.array([[np.nan if load is None else load for load in loads] for loads in series]).T
    laid = Cells(np.arange(len(served)) * HOUR, np.nan_to_num(served), ~np.isnan(served), None, None)
    empty = batch_of(Happenings([], None, {}, HOUR), BROKERS[: len(series)])
    return Batch(
        empty.cluster,
        Roster(BROKERS[: len(series)]),
        empty.bundles,
        empty.clients,
        empty.served,
        empty.logged,
        empty.agreed,
        None,
        laid,
        empty.topology,
    )


def variation(*series: Sequence[float | None]) -> float:
    """Measure without dividing by the weight."""
    return float(LoadVariation().accumulate(cells(*series), None)[:, 0].sum())


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([1, 2, 3, 4], 0),
        ([4, 3, 1, 1], 0),
        ([1, 2, 1], 2),
        ([2, 1, 2], 2),
        ([10, 8, 4, 2, 1, 2, 4, 8, 10], 18),
        ([0, 0, 5, 5], 0),
        ([1, 9, 5], 0.5**0.8 * 12 + (1 - 0.5**0.8) * 4),
        ([None, 3, 5, None, 3], 4),
        ([], 0),
        ([7], 0),
    ],
    ids=["grows", "shrinks", "hump", "dip", "bathtub", "late", "mostly-up", "absent", "no-cells", "one-cell"],
)
def test_only_variation_against_the_trend_counts_in_full(series: Sequence[float | None], expected: float) -> None:
    """As in CockroachDB's `asim`: a trend alone is nothing, to and fro is everything, and between is between."""
    assert variation(series) == pytest.approx(expected)


def test_brokers_vary_apart() -> None:
    """Load that changes sides each time is variation of both, though their sum stands still."""
    assert variation([4, 0, 4], [1, 5, 1]) == 16


def test_the_value_is_a_ratio_of_the_load() -> None:
    """Twice the load that swings twice as far is the same ratio."""
    metric = LoadVariation()
    one, two = (metric.accumulate(cells([k, 2 * k, k], [k, k, k]), None).sum(axis=0) for k in (1.0, 2.0))

    assert float(metric.value(one)) == float(metric.value(two)) == 2 / 7


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=20), st.floats(0.1, 10))
def test_bounds_and_symmetries(series: list[float], factor: float) -> None:
    """At least the lesser direction and at most all steps; neither mirror nor unit make a difference."""
    up = sum(max(after - before, 0.0) for before, after in pairwise(series))
    down = sum(max(before - after, 0.0) for before, after in pairwise(series))
    found = variation(series)

    assert min(up, down) - 1e-9 <= found <= up + down + 1e-9
    assert variation(series[::-1]) == pytest.approx(found)
    assert variation([factor * load for load in series]) == pytest.approx(factor * found)
