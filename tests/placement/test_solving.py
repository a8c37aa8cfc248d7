"""Placements are the best of all where all can be looked at, and near a proven bound elsewhere."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lookup import best_placement
from lookup.errors import InputError
from lookup.placement import Placement
from lookup.placement.problem import Floats, Ints


@st.composite
def small(draw: st.DrawFn, bundles: int = 5, brokers: int = 3) -> tuple[list[float], dict[str, Any]]:
    """A problem so small that a plain loop can look at every placement of it."""
    n, m = draw(st.integers(1, bundles)), draw(st.integers(1, brokers))
    number = st.integers(0, 20).map(float)
    weights = draw(st.lists(number, min_size=n, max_size=n))
    assume(any(weights))
    asked = {
        "capacities": draw(st.lists(st.sampled_from([1.0, 2.0, 3.5]), min_size=m, max_size=m)),
        "owners": draw(st.none() | st.lists(st.integers(-1, m - 1), min_size=n, max_size=n)),
        "near": draw(
            st.none()
            | st.lists(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=m, max_size=m), min_size=n, max_size=n)
        ),
        "admitted": draw(st.none() | st.lists(st.lists(st.booleans(), min_size=m, max_size=m), min_size=n, max_size=n)),
        "max_moved_weight": draw(st.none() | number),
        "max_moves": draw(st.none() | st.integers(0, n)),
    }
    assume(asked["admitted"] is None or all(map(any, asked["admitted"])))
    asked["max_imbalance"] = None if asked["near"] is None else draw(st.none() | st.sampled_from([1.0, 1.3, 2.0]))
    return weights, asked


def value_of(weights: list[float], asked: dict[str, Any], owners: Sequence[int]) -> float | None:
    """Return the value of a placement, None if it breaks a limit: a plain loop."""
    capacities = asked["capacities"]
    loads, moved, moves, near = [0.0] * len(capacities), 0.0, 0, 0.0
    for bundle, broker in enumerate(owners):
        loads[broker] += weights[bundle]
        near += weights[bundle] * (asked["near"][bundle][broker] if asked["near"] is not None else 0.0)
        if asked["admitted"] is not None and not asked["admitted"][bundle][broker]:
            return None
        if asked["owners"] is not None and asked["owners"][bundle] not in (-1, broker):
            moved, moves = moved + weights[bundle], moves + 1
    most = max(load / capacity for load, capacity in zip(loads, capacities, strict=True))
    imbalance = most * sum(capacities) / sum(weights)
    limits = ((imbalance, "max_imbalance"), (moved, "max_moved_weight"), (moves, "max_moves"))
    if any(asked[name] is not None and figure > asked[name] * (1 + 1e-9) for figure, name in limits):
        return None
    return imbalance if asked["near"] is None else near / sum(weights)


def best_by_loop(weights: list[float], asked: dict[str, Any]) -> float | None:
    """Return the best value of all placements that keep the limits, None if there is none."""
    every = product(range(len(asked["capacities"])), repeat=len(weights))
    values = [value for value in (value_of(weights, asked, owners) for owners in every) if value is not None]
    return (max if asked["near"] is not None else min)(values, default=None)


@given(small())
def test_a_small_problem_is_solved_and_its_bound_is_the_optimum(problem: tuple[list[float], dict[str, Any]]) -> None:
    """Every placement is looked at, so the gap is closed, and a plain loop finds none better."""
    weights, asked = problem
    best = best_by_loop(weights, asked)
    if best is None:
        with pytest.raises(InputError):
            best_placement(weights, **asked)
        return
    found = best_placement(weights, **asked)
    assert found.value == pytest.approx(best)
    assert value_of(weights, asked, found.owners.tolist()) == pytest.approx(best)
    assert found.bound == found.value
    assert found.gap == 0.0


def test_small_gains_of_few_bundles_are_found_too() -> None:
    """What is near is a billionth of the weight of all: it is compared with what is possible, not with that weight."""
    found = best_placement([1e9, 1.0, 2.0], [1.0, 1.0], near=[[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], owners=[0, 0, 1])

    assert found.owners.tolist() == [0, 1, 0]
    assert found.value == found.bound == pytest.approx(3e-9)


def made(seed: int, bundles: int, brokers: int, racks: int, *, skew: float = 0.5) -> tuple[Floats, Ints, Floats]:
    """A cluster in balance: weights, owners, and the share of each bundle's lookups from each broker's rack."""
    dice = np.random.default_rng(seed)
    weights = 1 / np.arange(1, bundles + 1) ** skew
    dice.shuffle(weights)
    owners = np.zeros(bundles, dtype=int)
    loads = np.zeros(brokers)
    for bundle in np.argsort(-weights):
        owners[bundle] = dice.choice(np.flatnonzero(loads <= loads.min() * 1.03))
        loads[owners[bundle]] += weights[bundle]
    near = dice.dirichlet(np.full(racks, 0.5), bundles)[:, np.arange(brokers) % racks]
    return weights, owners, near


def assert_kept(
    found: Placement,
    weights: Floats,
    near: Floats,
    owners: Ints,
    *,
    max_imbalance: float,
    max_moved_weight: float = np.inf,
) -> None:
    """A placement keeps its limits and is worth what it says."""
    loads = np.bincount(found.owners, weights, near.shape[1])
    moved = found.owners != owners
    assert loads.max() / loads.mean() <= max_imbalance * (1 + 1e-9)
    assert weights[moved].sum() <= max_moved_weight * (1 + 1e-9)
    assert found.value == pytest.approx(weights @ near[np.arange(len(near)), found.owners] / weights.sum())
    assert found.value <= found.bound


@pytest.mark.parametrize(("bundles", "brokers"), [(24, 4), (40, 8), (200, 10)])
def test_brokers_of_two_sizes_are_balanced_to_a_quarter_of_a_percent(bundles: int, brokers: int) -> None:
    """The bound proves it."""
    weights, _, _ = made(1, bundles, brokers, 1)
    capacities = np.random.default_rng(1).choice([1.0, 2.0], brokers)
    found = best_placement(weights, capacities)
    loads = np.bincount(found.owners, weights, brokers)
    assert found.value == pytest.approx((loads / capacities).max() / (weights.sum() / capacities.sum()))
    assert found.bound <= found.value <= found.bound * 1.0025


@pytest.mark.parametrize(
    ("racks", "share", "most"), [(3, 0.05, 0.002), (12, 0.2, 0.008), (12, None, 0.015)], ids=["few", "some", "free"]
)
def test_large_clusters_come_near_the_bound(racks: int, share: float | None, most: float) -> None:
    """10,000 bundles on 100 brokers keep their limits, and little more is possible."""
    weights, owners, near = made(1, 10_000, 100, racks)
    budget = None if share is None else share * weights.sum()
    found = best_placement(weights, np.ones(100), owners=owners, near=near, max_imbalance=1.05, max_moved_weight=budget)
    assert found.gap <= most
    assert_kept(found, weights, near, owners, max_imbalance=1.05, max_moved_weight=budget or np.inf)


def test_brokers_that_are_too_full_are_relieved_first() -> None:
    """A start above the limit of imbalance uses some of its moves to get below it."""
    weights, _, near = made(1, 2_000, 20, 4)
    owners = np.random.default_rng(3).integers(0, 20, 2_000)
    budget = 0.3 * weights.sum()
    found = best_placement(weights, np.ones(20), owners=owners, near=near, max_imbalance=1.05, max_moved_weight=budget)
    assert np.bincount(owners, weights).max() / weights.sum() * 20 > 1.05
    assert_kept(found, weights, near, owners, max_imbalance=1.05, max_moved_weight=budget)
    assert found.gap < 0.01


def test_a_budget_of_moves_balances_as_far_as_it_goes() -> None:
    """More moves balance better, and the bound knows how many there are."""
    weights, _, _ = made(1, 2_000, 20, 1)
    owners = np.random.default_rng(3).integers(0, 20, 2_000)
    few, many = (best_placement(weights, np.ones(20), owners=owners, max_moves=moves) for moves in (10, 200))
    assert (few.owners != owners).sum() <= 10
    assert 1 <= many.value < few.value
    assert many.gap < 0.01
    assert few.bound > 1


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_the_unit_of_the_weights_does_not_matter(unit: float) -> None:
    """A few bundles of gigabytes are balanced like a few of single lookups."""
    found = best_placement([unit, 2 * unit, 3 * unit], [1, 1], owners=[0, 0, 0])

    assert (found.owners.tolist(), found.value) == ([0, 0, 1], pytest.approx(1.0))


@pytest.mark.parametrize("near", [None, np.ones((100, 1))], ids=["even", "near"])
def test_one_broker_has_all_bundles_however_many(near: Floats | None) -> None:
    """There is one placement, and numpy has no dimension for each bundle of it."""
    found = best_placement([1.0] * 100, [1.0], near=near)

    assert (found.owners.tolist(), found.value, found.bound) == ([0] * 100, 1.0, 1.0)


def test_one_bundle_among_many_brokers_takes_little_memory() -> None:
    """Few placements of many brokers have many loads: a table of them would take half a gigabyte."""
    tracemalloc.start()
    found = best_placement([1.0], np.ones(8_000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (found.value, found.bound) == (8_000.0, 8_000.0)
    assert most < 50e6


@pytest.mark.parametrize("capacity", [1e-14, 2e-14])
def test_a_tiny_broker_keeps_its_limit_too(capacity: float) -> None:
    """What fits beside the mean bundle may be many times its room."""
    dice = np.random.default_rng(0)
    weights, capacities = np.append(np.ones(4_080), np.full(20, 4e-11)), np.array([1.0, 1.0, capacity])
    near = np.zeros((4_100, 3))
    near[:, :2] = dice.random((4_100, 2)) / 2
    near[-20:, 2] = 1.0

    found = best_placement(weights, capacities, near=near, max_imbalance=1.1)

    loads = np.bincount(found.owners, weights, 3)
    assert (loads / capacities).max() <= 1.1 * loads.sum() / capacities.sum() * (1 + 1e-9)


def test_the_same_arguments_give_the_same_placement() -> None:
    """There is no luck in it."""
    weights, owners, near = made(4, 500, 10, 3)
    asked = {"owners": owners, "near": near, "max_imbalance": 1.05, "max_moves": 60}
    one, other = (best_placement(weights, np.ones(10), **asked) for _ in range(2))
    assert (one.owners == other.owners).all()
    assert (one.value, one.bound) == (other.value, other.bound)


@pytest.mark.parametrize(
    ("weights", "capacities", "asked", "sentence"),
    [
        ([1.0, float("nan")], [1.0], {}, r"weights\[1\] is nan, which is no finite number"),
        ([1.0, -2.0], [1.0], {}, r"weights\[1\] is -2.0, which is no weight; give a number that is 0 or more"),
        ([0.0], [1.0], {}, "no bundle has any weight"),
        ([], [1.0], {}, "no bundle has any weight"),
        ([[1.0]], [1.0], {}, r"weights has shape \(1, 1\)"),
        (["a"], [1.0], {}, "weights: not numbers"),
        ([1.0], [], {}, "there is no broker"),
        ([1.0], [1.0, 0.0], {}, r"capacities\[1\] is 0.0, which is no capacity"),
        ([1.0], [1.0], {"owners": [1]}, r"owners\[0\] is 1; brokers have the numbers 0 to 0"),
        ([1.0], [1.0], {"owners": [0.5]}, "owners are of type float64"),
        ([1.0], [1.0], {"owners": [0, 0]}, r"owners has shape \(2,\)"),
        ([1.0], [1.0], {"near": [[1.5]]}, r"near\[0, 0\] is 1.5; give a number in \[0, 1\]"),
        ([1.0], [1.0], {"near": [1.0]}, r"near has shape \(1,\)"),
        ([1.0], [1.0, 1.0], {"admitted": [[False, False]]}, r"admitted\[0\] leaves no broker"),
        ([1.0], [1.0], {"admitted": [[2]]}, "admitted is of type int64; give truths"),
        ([1.0], [1.0], {"near": [[1.0]], "max_imbalance": 0.9}, "max_imbalance is 0.9, below which no placement comes"),
        ([1.0], [1.0], {"max_imbalance": 1.1}, "leave it out, or give near"),
        ([1.0], [1.0], {"max_moves": -1}, "max_moves is -1; give a number that is 0 or more"),
        ([1.0], [1.0], {"max_moves": "3"}, "max_moves is '3', of type str; give a number, or None for no limit"),
        ([1.0], [1.0], {"near": [[1.0]], "max_imbalance": "1.2"}, "max_imbalance is '1.2', of type str; give a number"),
        ([1.0, 1.0], [1.0], {"near": [[1.0], [1.0, 0.0]]}, "near has rows of different lengths; give one row for each"),
        ([1.0, 1.0], [1.0], {"admitted": [[True], [True, False]]}, "admitted has rows of different lengths"),
        (
            [1.0, 1.0],
            [1.0],
            {"owners": [[0], [0, 0]]},
            "owners has rows of different lengths; give one broker for each",
        ),
        (
            [1e308] * 2,
            [1.0],
            {},
            r"weights: their sum is inf, .* give them in a unit in which it is from 1e-100 to 1e\+100",
        ),
        ([5e-324] * 40, [1.0] * 3, {}, "weights: their sum is 1.97626e-322, so that sums and ratios are beyond what"),
        (
            [1.0] * 40,
            [1e308] * 3,
            {},
            "capacities: their sum is inf, so that sums and ratios are beyond what numbers hold",
        ),
        ([1.0] * 40, [1.0, 1e-310], {}, "capacities: their least is 1e-310, so that"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named_with_its_value(
    weights: list[Any], capacities: list[float], asked: dict[str, Any], sentence: str
) -> None:
    """The sentence says which one, where, and what would be right."""
    with pytest.raises(InputError, match=sentence):
        best_placement(weights, capacities, **asked)


def test_limits_that_no_placement_keeps_are_said_to_be_too_tight() -> None:
    """The sentence says how far one could come, and which bundle is in the way."""
    weights, owners, near = made(1, 100, 10, 2)
    weights[7] = weights.sum()
    with pytest.raises(InputError, match=r"max_imbalance is 1.05, but .* comes below 5\.\d+ .*number 7, has 50.56%"):
        best_placement(weights, np.ones(10), owners=owners, near=near, max_imbalance=1.05)


def test_bundles_that_have_to_leave_their_brokers_need_a_budget() -> None:
    """Brokers that may not have their bundles lose them, or it is said that the budget is too small."""
    weights, owners, _ = made(1, 100, 10, 2)
    admitted = np.ones((100, 10), dtype=bool)
    admitted[np.arange(5), owners[:5]] = False
    with pytest.raises(InputError, match=r"5 bundles, .* have to leave brokers that may not have them"):
        best_placement(weights, np.ones(10), owners=owners, admitted=admitted, max_moves=4)
    assert (
        best_placement(weights, np.ones(10), owners=owners, admitted=admitted, max_moves=5).owners != owners
    ).sum() == 5
