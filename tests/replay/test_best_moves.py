"""What was possible at an instant: by capacity, of what has an owner, and a sentence if nothing can be placed."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from lookup.model import ClusterView, Unload
from lookup.replay.best_moves import BestMove, PossibleMoves, possible_moves
from lookup.testing.clusters import broker, cluster

_NAMES = [f"t/n/0x{number}0000000_0x{number + 1}0000000" for number in range(4)]


def _crowded(*, capacity: float | None = None, **figures: Any) -> ClusterView:
    """Return a view of two brokers, of which the first has all four bundles; the second has the capacity given."""
    brokers = broker("b1:8080", capacity=None if capacity is None else 10.0), broker("b2:8080", capacity=capacity)
    loads = dict(zip(_NAMES, (4.0, 3.0, 2.0, 1.0), strict=True))
    return cluster(*brokers, **{"owned": dict.fromkeys(_NAMES, "b1:8080"), "bundle_loads": loads} | figures)


def _possible(view: ClusterView, *unloads: Unload) -> PossibleMoves:
    found = possible_moves(view, unloads)
    assert isinstance(found, PossibleMoves)
    return found


def test_a_cycle_that_did_nothing_is_held_against_one_move() -> None:
    """Brokers whose capacity is unknown count alike; the best move takes most of the half that is too much."""
    found = _possible(_crowded())

    assert (found.before, found.after, found.moves, found.few, found.free) == pytest.approx((2.0, 2.0, 1, 1.2, 1.0))
    assert found.best_moves == (BestMove(_NAMES[0], "b1:8080", "b2:8080", 4.0),)


def test_load_is_put_where_capacity_is() -> None:
    """A broker four times as large carries eight of ten at best, and three moves suffice for it."""
    moved = [Unload(name, "b1:8080", "b2:8080") for name in _NAMES[:3]]
    found = _possible(_crowded(capacity=40.0), *moved)

    assert (found.before, found.after, found.few, found.free) == pytest.approx((5.0, 1.125, 1.0, 1.0))
    assert [move.load for move in found.best_moves] == [4.0, 3.0, 1.0]


def test_a_broker_without_capacity_is_given_nothing() -> None:
    """It is registered, but a load of it has no scale; the other one has no choice then."""
    view = _crowded(capacity=0.0, usage={"b1:8080": 1.0})

    assert possible_moves(view, ()) == "one broker is registered that can carry load: no bundle can move"


def test_what_is_taken_away_without_a_destination_is_undecided() -> None:
    """The rest is a limit, which is no lower than what any placement reaches with as many moves."""
    found = _possible(_crowded(), *(Unload(name, "b1:8080") for name in _NAMES[:3]))

    assert (found.undecided, found.moves, found.after) == (3, 3, found.few_bound)
    assert _possible(_crowded(), Unload(_NAMES[3], "b1:8080")).after == pytest.approx(1.8)


def test_bundles_without_an_owner_are_left_out() -> None:
    """Reports may name bundles that nothing owns any longer; their first placement is no move."""
    owned = {_NAMES[0]: "b1:8080", _NAMES[1]: "b2:8080"}
    found = _possible(replace(_crowded(), ownership=_crowded(owned=owned).ownership))

    assert found.bundles == 2
    assert (found.before, found.best_moves) == (pytest.approx(8 / 7), ())


def test_no_cycle_is_better_than_the_best_moves() -> None:
    """The best placement is sought, not enumerated: a pair of moves that one finds by trying all of them is kept."""
    names = [f"t/n/0x{number:08x}_0x{number + 1:08x}" for number in range(18)]
    loads = dict(zip(names, np.random.default_rng(19).integers(1, 100, 18).tolist(), strict=True))
    owned = {name: "b1:8080" if number < 13 else "b2:8080" for number, name in enumerate(names)}
    view = _crowded(owned=owned, bundle_loads=loads)
    others = {"b1:8080": "b2:8080", "b2:8080": "b1:8080"}
    pairs = ([Unload(name, owned[name], others[owned[name]]) for name in pair] for pair in combinations(names, 2))
    best = min((_possible(view, *pair) for pair in pairs), key=lambda found: found.after)

    assert best.few == best.after == 1.0
    assert best.few_bound <= best.few


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({"registered": []}, "no broker is registered that can carry load: no bundle can move"),
        ({"registered": ["b1:8080"]}, "one broker is registered that can carry load: no bundle can move"),
        ({"bundle_loads": {}, "throughput": {}}, "no broker has reported its load"),
        ({"bundle_loads": dict.fromkeys(_NAMES, 0.0)}, "no bundle with load has an owner"),
        ({"owned": {}, "throughput": {"b1:8080": 1.0}}, "no bundle with load has an owner"),
    ],
)
def test_if_nothing_can_be_placed_a_sentence_says_why(figures: dict[str, Any], sentence: str) -> None:
    """No exception comes out of an instant at which there is nothing to compare."""
    assert possible_moves(_crowded(**figures), ()) == sentence
