"""The least imbalance there can be is never overstated, and brokers are balanced within their budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lookup.placement.balance import balanced, least_imbalance
from lookup.placement.problem import problem_of
from tests.placement.test_solving import best_by_loop, small


@given(small())
def test_no_placement_is_more_balanced_than_the_bound(drawn: tuple[list[float], dict[str, Any]]) -> None:
    """A plain loop over all placements finds none below it; what the moves lead to keeps the limits."""
    weights, asked = drawn
    asked |= {"near": None, "max_imbalance": None}
    problem = problem_of(weights, **asked)
    best, bound = best_by_loop(weights, asked), least_imbalance(problem)
    owners = balanced(problem, bound)
    if best is None:
        assert owners is None
    else:
        assert bound <= best * (1 + 1e-9)
    if owners is not None:
        assert problem.is_kept_by(owners)
        assert bound <= problem.imbalance(owners) * (1 + 1e-9)


def test_equal_bundles_are_balanced_to_the_last_one() -> None:
    """Seven of one weight on three brokers leave three on one of them, and that is proven."""
    problem = problem_of(
        np.ones(7), np.ones(3), [0] * 7, None, None, max_imbalance=None, max_moved_weight=None, max_moves=None
    )
    bound = least_imbalance(problem)
    owners = balanced(problem, bound)
    assert owners is not None
    assert problem.imbalance(owners) == bound == 3 / (7 / 3)


def test_bundles_that_only_some_brokers_may_have_share_those() -> None:
    """Four of ten bundles have one broker of five to themselves: it has twice the mean, whatever the others do."""
    admitted = np.ones((10, 5), dtype=bool)
    admitted[:4] = [True, False, False, False, False]
    problem = problem_of(
        np.ones(10), np.ones(5), None, None, admitted, max_imbalance=None, max_moved_weight=None, max_moves=None
    )
    assert least_imbalance(problem) == 2.0


def test_a_budget_of_one_move_is_enough_for_the_heaviest_bundle() -> None:
    """It alone leaves the broker that has all four: then it is what the busier broker carries."""
    problem = problem_of(
        [4, 1, 1, 1], np.ones(2), [0] * 4, None, None, max_imbalance=None, max_moved_weight=None, max_moves=1
    )
    bound = least_imbalance(problem)
    owners = balanced(problem, bound)
    assert bound == pytest.approx(4 / 3.5)
    assert owners is not None
    assert owners.tolist() == [1, 0, 0, 0]


def test_a_bundle_goes_back_if_the_move_balances_more_elsewhere() -> None:
    """The first two moves that help leave 54 on one of two brokers; two others leave 52 on both."""
    weights = [5, 5, 5, 6, 5, 7, 8, 3, 1, 5, 9, 9, 9, 7, 2, 9, 8, 1]
    owners = [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1]
    problem = problem_of(
        weights, np.ones(2), owners, None, None, max_imbalance=None, max_moved_weight=None, max_moves=2
    )
    found = balanced(problem, least_imbalance(problem))
    assert found is not None
    assert problem.loads(found).tolist() == [52, 52]


def test_a_budget_of_weight_leaves_what_it_cannot_move() -> None:
    """One of four may leave the broker that has all four, so three stay together, and that is proven."""
    problem = problem_of(
        np.ones(4), np.ones(2), [0] * 4, None, None, max_imbalance=None, max_moved_weight=1.0, max_moves=None
    )
    bound = least_imbalance(problem)
    owners = balanced(problem, bound)
    assert owners is not None
    assert problem.imbalance(owners) == pytest.approx(bound) == 1.5
