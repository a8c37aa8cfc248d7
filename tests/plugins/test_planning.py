"""Plans of moves: what they keep, and how near they come to the best of all placements."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookup_policies._planning import Placement, Problem


def _problem(seed: int, n_bundles: int, n_brokers: int, **limits: Any) -> Problem:
    """Draw bundles with clients in three racks and a home each, some of which may not leave it."""
    rng = np.random.default_rng(seed)
    weights = rng.pareto(1.5, n_bundles) + 0.1
    near = rng.dirichlet([0.4] * 3, n_bundles)[:, np.arange(n_brokers) % 3]
    owners = rng.integers(0, n_brokers, n_bundles)
    admitted = rng.random(near.shape) < 0.8
    admitted[np.arange(n_bundles), owners] = True
    capacities = rng.choice([1.0, 2.0], n_brokers)
    terms: dict[str, Any] = {"max_imbalance": 1.2, "max_moves": 5, "max_weight": 0.3 * weights.sum(), **limits}
    return Problem(weights, capacities, owners, near, admitted, 0.2 * weights, **terms)


def _planned(problem: Problem) -> NDArray[np.int64]:
    plan = Placement(problem)
    plan.even_out()
    plan.bring_near()
    return plan.owners


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_bundles=st.integers(1, 30),
    n_brokers=st.integers(1, 6),
    max_imbalance=st.floats(1.0, 3.0),
    max_moves=st.integers(0, 10),
)
def test_a_plan_keeps_what_was_agreed(
    seed: int, n_bundles: int, n_brokers: int, max_imbalance: float, max_moves: int
) -> None:
    """Its budget, what may not move, and balance: the fullest broker is even enough, or no fuller than before."""
    problem = _problem(seed, n_bundles, n_brokers, max_imbalance=max_imbalance, max_moves=max_moves)
    owners = _planned(problem)
    moved = owners != problem.owners

    assert problem.admitted[np.arange(n_bundles), owners].all()
    assert moved.sum() <= max_moves
    assert moved.sum() <= 1 or problem.weights[moved].sum() <= problem.max_weight * (1 + 1e-9)
    assert problem.relative_loads(owners).max() <= max(max_imbalance, problem.relative_loads(problem.owners).max()) * (
        1 + 1e-6
    )


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_comes_near_is_worth_its_costs_and_no_more_than_was_said(seed: int) -> None:
    """In a cluster that is even enough no plan makes it worse, and none passes what `distant` says at most."""
    problem = _problem(seed, 20, 5, max_imbalance=10.0)

    assert 0.0 <= problem.nearness(_planned(problem)) <= problem.distant() + 1e-9


def test_plans_come_near_the_best_of_all_placements() -> None:
    """Of small problems all placements are tried: most of what could come near does, and no plan is beyond it."""
    ours, best = 0.0, 0.0
    for seed in range(80):
        problem = _problem(seed, 6, 3, max_imbalance=1.6, max_moves=4, max_weight=np.inf)
        if problem.relative_loads(problem.owners).max() > problem.max_imbalance:
            continue
        most = max(map(problem.nearness, filter(_keeps(problem), map(np.array, product(range(3), repeat=6)))))
        found = problem.nearness(_planned(problem))
        assert found <= most + 1e-9
        ours, best = ours + found, best + most

    assert ours > 0.75 * best > 0.0


def _keeps(problem: Problem) -> Callable[[NDArray[np.int64]], bool]:
    """Return the test whether owners keep all limits of a problem."""

    def keeps(owners: NDArray[np.int64]) -> bool:
        return bool(
            problem.admitted[np.arange(len(owners)), owners].all()
            and (owners != problem.owners).sum() <= problem.max_moves
            and problem.relative_loads(owners).max() <= problem.max_imbalance * (1 + 1e-9)
        )

    return keeps


def test_full_brokers_exchange_bundles() -> None:
    """Each of two brokers has what the other's clients want, and room for nothing more."""
    near = np.array([[0.0, 1.0], [1.0, 0.0]])
    problem = Problem(
        weights=np.ones(2),
        capacities=np.ones(2),
        owners=np.array([0, 1]),
        near=near,
        admitted=np.ones((2, 2), np.bool_),
        costs=np.full(2, 0.1),
        max_imbalance=1.0,
        max_moves=2,
        max_weight=2.0,
    )

    assert _planned(problem).tolist() == [1, 0]
