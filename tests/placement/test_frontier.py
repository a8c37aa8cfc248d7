"""No placement beats a bound: all placements of small demand are tried, and linear programs solved exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from lookup.placement.frontier import (
    Locality,
    Multipliers,
    Reach,
    Stretch,
    crowding,
    evenness,
    frontier,
    is_too_crowded,
    is_too_much,
    split_prices,
    whole_unevenness,
)

N_LABELS = 2


@dataclass(frozen=True)
class Piece:
    """What comes for one bundle in one tick."""

    tick: int
    bundle: int
    near: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class Log:
    """Ticks with the label of each broker, -1 if it is not there, cells of two ticks, and pieces of two bundles."""

    labels: tuple[tuple[int, ...], ...]
    pieces: tuple[Piece, ...]
    #: by tick and bundle, the brokers it is kept to; None: each may be on any broker
    kept: tuple[tuple[tuple[bool, ...], ...], ...] | None = None

    def brokers(self, piece: Piece) -> list[int]:
        """Return the brokers that may have a piece: any that is there if none is that it is kept to."""
        there = [broker for broker, label in enumerate(self.labels[piece.tick]) if label >= 0]
        allowed = there if self.kept is None else [n for n in there if self.kept[piece.tick][piece.bundle][n]]
        return allowed or there

    def reach(self, pieces: Sequence[Piece]) -> Reach | None:
        """Return the brokers that pieces are kept to."""
        if self.kept is None or not pieces:
            return None
        sets = np.array([[n in self.brokers(one) for n in range(len(self.labels[0]))] for one in pieces])
        members, of = np.unique(sets, axis=0, return_inverse=True)
        return Reach(members, of.ravel())

    @property
    def cells(self) -> list[list[int]]:
        """Return the ticks of each cell."""
        return [[tick for tick in range(len(self.labels)) if tick // 2 == cell] for cell in (0, 1)]

    def present(self, ticks: Sequence[int]) -> list[int]:
        """Return the brokers that are there at any time in some ticks."""
        brokers = range(len(self.labels[0]))
        return [broker for broker in brokers if any(self.labels[tick][broker] >= 0 for tick in ticks)]

    def multipliers(self) -> Multipliers:
        """Return multipliers by the size of the demand."""
        return Multipliers.of(sum(sum(one.near) for one in self.pieces), sum(one.weight for one in self.pieces), 2)

    def bounds(self) -> Locality:
        """Add up the bounds of both cells."""
        locality = Locality(self.multipliers(), N_LABELS, 2)
        for ticks in self.cells:
            stretches = []
            for tick in ticks:
                of_tick = [one for one in self.pieces if one.tick == tick]
                near = np.array([one.near for one in of_tick], dtype=np.float64).reshape(-1, N_LABELS)
                weights = np.array([one.weight for one in of_tick])
                bundles = np.array([one.bundle for one in of_tick], dtype=np.int64)
                stretches.append(Stretch(np.array(self.labels[tick]), near, weights, bundles, self.reach(of_tick)))
            locality.add_cell(stretches, len(self.present(ticks)))
        return locality

    def placements(self, *, is_whole: bool = True) -> Iterator[tuple[float, tuple[float, float], int, float]]:
        """Yield near lookups, unevenness, moves and unserved weight of every placement.

        Unevenness is max x brokers, and deviation x brokers, summed over the cells.

        Args:
            is_whole: every piece is served.
        """
        present = [self.brokers(one) for one in self.pieces]
        for brokers in product(*(brokers if is_whole else [*brokers, -1] for brokers in present)):
            near, moves, last, served, missing = 0.0, 0, {}, np.zeros((2, len(self.labels[0]))), 0.0
            for one, broker in zip(self.pieces, brokers, strict=True):
                if broker < 0:
                    missing += one.weight
                    continue
                label = self.labels[one.tick][broker]
                near += one.near[label] if label < N_LABELS else 0
                served[one.tick // 2, broker] += one.weight
                moves += last.setdefault(one.bundle, broker) != broker
                last[one.bundle] = broker
            uneven = np.zeros(2)
            for cell, ticks in enumerate(self.cells):
                loads = served[cell, self.present(ticks)]
                uneven += loads.max() * len(loads), loads.std() * len(loads)
            yield near, tuple(uneven.tolist()), moves, missing


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Draw labels of two or three brokers in four ticks, always one there, and some pieces in order of time."""
    n_brokers = draw(st.integers(1, 3))
    row = st.tuples(*[st.sampled_from([-1, 0, 1, N_LABELS])] * n_brokers).filter(lambda of: max(of) >= 0)
    is_steady = draw(st.booleans())
    labels = (draw(row),) * 4 if is_steady else tuple(draw(row) for _ in range(4))
    places = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=5, unique=True))
    near, weight = st.tuples(*[st.integers(0, 4)] * N_LABELS), st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0])
    pieces = tuple(Piece(*place, draw(near), draw(weight)) for place in sorted(places))
    of_tick = st.tuples(*[st.tuples(*[st.booleans()] * n_brokers)] * 2)
    kept = draw(st.none() | (st.tuples(of_tick) if is_steady else st.tuples(*[of_tick] * 4)))
    return Log(labels, pieces, kept if kept is None or not is_steady else kept * 4)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(logs())
def test_no_placement_is_beyond_a_bound(log: Log) -> None:
    """Neither in near lookups nor in these and balance at once, whatever it moves and with its own moves.

    What is left unserved widens a bound by the dearest price of its weight.
    """
    bounds, multipliers = log.bounds(), log.multipliers()
    assert bounds.few is not None
    for near, (most, _), moves, missing in log.placements(is_whole=False):
        reached = near - multipliers.balance * most - bounds.dearest * missing
        paid = (bounds.few + multipliers.moves * moves).min(axis=1)

        assert (reached <= bounds.free + 1e-9).all()
        assert (reached <= paid + 1e-9).all()


@settings(max_examples=300, derandomize=True, deadline=None)
@given(logs())
def test_no_placement_is_more_even_than_its_bound(log: Log) -> None:
    """Neither with pieces that go where they like, nor with whole bundles and its own moves."""
    least, paid = np.zeros(2), np.zeros((2, len(log.multipliers().splits)))
    for ticks in log.cells:
        pieces = [one for one in log.pieces if one.tick in ticks]
        whole = np.array([sum(one.weight for one in pieces if one.bundle == bundle) for bundle in (0, 1, 2)])
        n_brokers = len(log.present(ticks))
        of_cell = evenness(whole.sum(), max((one.weight for one in pieces), default=0.0), n_brokers)
        reach = log.reach(pieces)
        if reach is not None:
            of_set = np.bincount(reach.of, weights=[one.weight for one in pieces], minlength=len(reach.members))
            of_cell = tuple(np.maximum(of_cell, crowding(reach.members, of_set, whole.sum(), n_brokers)).tolist())
        least += of_cell
        for figure, left in enumerate(whole_unevenness(whole, *of_cell, n_brokers)):
            paid[figure] += split_prices(left, log.multipliers().splits)
    for _, uneven, moves, _ in log.placements():
        assert (uneven >= least - 1e-9).all()
        assert (uneven >= (paid - log.multipliers().splits * moves).max(axis=1) - 1e-9).all()


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 7.0]), min_size=1, max_size=6), st.integers(1, 4))
def test_whole_bundles_deviate_at_least_as_bounded(bundles: list[float], n_brokers: int) -> None:
    """Whatever is done with the bundles that move, here: divided evenly among the least loaded brokers."""
    _, left = whole_unevenness(np.array(bundles), 0.0, 0.0, n_brokers)
    assert (np.diff(left) <= 1e-9).all()
    for moving, bound in enumerate(left):
        whole = sorted(bundles, reverse=True)[moving:]
        found = []
        for brokers in product(range(n_brokers), repeat=len(whole)):
            loads = np.bincount(brokers, weights=whole, minlength=n_brokers)
            found.append(float(_filled_up(loads, sum(bundles) - sum(whole)).std()) * n_brokers)

        assert min(found) >= bound - 1e-6


def _filled_up(loads: NDArray[np.float64], rest: float) -> NDArray[np.float64]:
    """Give what is left to the least loaded brokers, so that these have the same."""
    ascending = np.sort(loads)
    for count in range(len(loads), 0, -1):
        level = (ascending[:count].sum() + rest) / count
        if level >= ascending[count - 1]:
            break
    return np.maximum(ascending, level)


def test_whole_bundles_heavier_than_the_rest_stand_alone() -> None:
    """6 and 3 leave 1 for the third of three brokers; without the first, 3 is no more than the mean."""
    _, left = whole_unevenness(np.array([1.0, 6.0, 3.0]), 0.0, 0.0, 3)

    assert left == pytest.approx([float(np.std([6.0, 3.0, 1.0])) * 3, 0.0])


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=6), st.integers(1, 4))
def test_no_placement_deviates_less_than_its_bound(pieces: list[float], n_brokers: int) -> None:
    """The standard deviation times brokers, over all ways to place some pieces."""
    _, least = evenness(sum(pieces), max(pieces), n_brokers)
    placed = [
        np.bincount(brokers, weights=pieces, minlength=n_brokers)
        for brokers in product(range(n_brokers), repeat=len(pieces))
    ]

    assert min(float(np.std(served)) for served in placed) * n_brokers >= least - 1e-6


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=5), st.lists(st.floats(0.0, 20.0), min_size=1, max_size=3))
def test_no_placement_keeps_within_its_room_what_is_too_much(loads: list[float], room: list[float]) -> None:
    """Over all ways to place some bundles; a whole bundle needs a broker, what is divided needs all of them."""
    fits = any(
        (np.bincount(brokers, weights=loads, minlength=len(room)) <= room).all()
        for brokers in product(range(len(room)), repeat=len(loads))
    )

    assert not (fits and is_too_much(sum(loads), max(loads), np.array(room)))
    assert is_too_much(sum(room) * 1.01 + 0.01, 0.0, np.array(room))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 5))
def test_no_placement_within_sets_of_brokers_is_more_even_than_its_bound(
    data: st.DataObject, n_brokers: int, n_pieces: int
) -> None:
    """Neither by the most loaded broker nor by the deviation; nor has it room where there is too little."""
    sets = st.lists(st.booleans(), min_size=n_brokers, max_size=n_brokers).filter(any)
    kept = np.array(data.draw(st.lists(sets, min_size=n_pieces, max_size=n_pieces)))
    weights = np.array(data.draw(st.lists(st.floats(0.0, 10.0), min_size=n_pieces, max_size=n_pieces)))
    room = np.array(data.draw(st.lists(st.floats(0.0, 20.0), min_size=n_brokers, max_size=n_brokers)))
    # Sets that several pieces share need not be put together.
    most, deviation = crowding(kept, weights, float(weights.sum()), n_brokers)
    served = [
        np.bincount(brokers, weights=weights, minlength=n_brokers)
        for brokers in product(*(np.flatnonzero(row).tolist() for row in kept))
    ]

    assert min(float(loads.max()) for loads in served) * n_brokers >= most - 1e-6
    assert min(float(np.std(loads)) for loads in served) * n_brokers >= deviation - 1e-6
    if any((loads <= room).all() for loads in served):
        assert not is_too_crowded(Reach(kept, np.arange(n_pieces)), weights, room)


def test_sets_of_brokers_are_as_even_as_they_can_be_beside_each_other() -> None:
    """12 on two of six brokers, 6 on another, and what may be anywhere fills up the rest: 6, 6, 6, 1, 1, 1."""
    members = np.array([[1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]], dtype=bool)
    most, deviation = crowding(members, np.array([9.0, 3.0, 6.0, 3.0]), 21.0, 6)

    assert most == 36.0
    assert deviation == pytest.approx(float(np.std([6, 6, 6, 1, 1, 1])) * 6)


def test_sets_with_less_than_the_others_leave_room_for_these() -> None:
    """9 on two of three brokers, 9 on another two, in small pieces: all three may have 6."""
    members = np.array([[True, True, False], [False, True, True]])

    assert crowding(members, np.array([9.0, 9.0]), 18.0, 3) == (13.5, 0.0)


def test_sets_of_brokers_can_have_too_little_room() -> None:
    """Though all brokers together have enough: for all that is kept to a set, or for one load of it."""
    reach = Reach(np.array([[True, True, False], [True, True, True]]), np.array([0, 0, 1]))
    loads = np.array([2.0, 3.0, 1.0])

    assert not is_too_crowded(reach, loads, np.array([3.0, 2.0, 9.0]))
    assert is_too_crowded(reach, loads, np.array([3.0, 1.9, 9.0]))
    assert is_too_crowded(reach, loads, np.array([2.9, 2.9, 9.0]))


def _solved(near: NDArray[np.float64], weights: NDArray[np.float64], labels: NDArray[np.int64], slope: float) -> float:
    """Return the most that near lookups less slope x max x brokers can be if pieces may be divided."""
    classes, sizes = np.unique(labels, return_counts=True)
    values = np.column_stack([near, np.zeros(len(near))])[:, classes]
    n_pieces, n_classes = values.shape
    shares = np.kron(np.eye(n_pieces), np.ones(n_classes))
    loads = np.kron(weights, np.eye(n_classes))
    answer = linprog(
        -np.append(values.ravel(), -slope * len(labels)),
        A_ub=np.column_stack([loads, -sizes]),
        b_ub=np.zeros(n_classes),
        A_eq=np.column_stack([shares, np.zeros(n_pieces)]),
        b_eq=np.ones(n_pieces),
    )
    return -float(answer.fun)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_near_to_the_best_that_pieces_can_do(seed: int) -> None:
    """Within one percent of all lookups, as a linear program says that divides pieces; never below it."""
    dice = np.random.default_rng(seed)
    counts = dice.integers(1, 6, 150)
    near = np.array([dice.multinomial(count, dice.dirichlet([0.7] * 3)) for count in counts], dtype=np.float64)
    weights = counts * dice.lognormal(0.0, 0.5, 150)
    labels = dice.integers(0, 4, 9)
    multipliers = Multipliers.of(float(counts.sum()), float(weights.sum()), 10)
    locality = Locality(multipliers, 3, None)
    locality.add_cell([Stretch(labels, near, weights, np.zeros(150, dtype=np.int64))], 9)
    gaps = [
        (bound - _solved(near, weights, labels, slope)) / counts.sum()
        for bound, slope in zip(locality.free, multipliers.balance, strict=True)
    ]

    assert min(gaps) > -1e-9
    assert max(gaps) < 0.01
    assert locality.few is None


def test_few_moves_keep_a_bundle_near_half_of_its_lookups() -> None:
    """Its clients change racks once: without a move half of them are far, with one none."""
    multipliers = Multipliers.of(20.0, 20.0, 1)
    locality = Locality(multipliers, 2, 1)
    for near in ([[10.0, 0.0]], [[0.0, 10.0]]):
        locality.add_cell([Stretch(np.array([0, 1]), np.array(near), np.array([10.0]), np.array([0]))], 2)
    assert locality.few is not None
    by_moves = [float((locality.few[0] + multipliers.moves * moves).min()) for moves in (0, 1, 2)]

    assert by_moves == pytest.approx([10.0, 20.0, 20.0])


def test_a_bundle_follows_a_broker_that_changes_its_label() -> None:
    """That is no move: all of its lookups may be near without any."""
    locality = Locality(Multipliers.of(20.0, 20.0, 1), 2, 1)
    for labels, near in (([0, -1], [[10.0, 0.0]]), ([1, 0], [[0.0, 10.0]])):
        locality.add_cell([Stretch(np.array(labels), np.array(near), np.array([10.0]), np.array([0]))], 2)
    assert locality.few is not None

    assert locality.few[0, -1] == pytest.approx(20.0)


def test_what_no_broker_can_serve_is_left_out() -> None:
    """A stretch without brokers, or without demand, adds nothing."""
    locality = Locality(Multipliers.of(0.0, 0.0, 0), 1, 1)
    nothing = np.zeros((0, 1)), np.zeros(0), np.zeros(0, dtype=np.int64)
    locality.add_cell([Stretch(np.array([-1]), np.ones((1, 1)), np.ones(1), np.array([0]))], 0)
    locality.add_cell([Stretch(np.array([0]), *nothing)], 1)

    assert not locality.free.any()


def test_no_moves_are_bounded_for_too_many_bundles() -> None:
    """The table of their paths would not fit; free moves are bounded all the same."""
    locality = Locality(Multipliers.of(1.0, 1.0, 1), 3, 1_000_000)
    locality.add_cell([Stretch(np.array([0]), np.ones((1, 3)), np.ones(1), np.array([999_999]))], 1)

    assert locality.few is None
    assert locality.free[0] == 1.0


def test_the_curve_begins_where_nothing_is_near() -> None:
    """Left of it less than nothing would have to be: there is no placement."""
    assert frontier(np.array([0.5, -2.0, -3.5]), np.array([0.0, 1.0, 2.0]), 1.0) == [(2.0, 0.0), (2.5, 0.5)]


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.01, 3.0)), max_size=5), st.floats(1.0, 2.0))
def test_the_curve_is_the_lowest_of_its_lines(lines: list[tuple[float, float]], least: float) -> None:
    """Between its corners by a straight line, level behind the last one, and it never falls."""
    offsets, slopes = np.array([(0.9, 0.0), *lines]).T
    corners = frontier(offsets, slopes, least)
    at = np.linspace(least, corners[-1][0] + 1.0, 50)
    lowest = (offsets[:, None] + slopes[:, None] * at).min(axis=0)

    assert corners[0][0] == least
    assert np.interp(at, *np.array(corners).T) == pytest.approx(lowest, abs=1e-9)
    assert (np.diff([corner[1] for corner in corners]) >= -1e-12).all()
