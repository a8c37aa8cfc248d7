"""Prices prove a bound that no placement within the limits passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given

from lookup.placement.alike import alike
from lookup.placement.prices import Market, found_prices
from lookup.placement.problem import problem_of
from lookup.placement.rounding import rounded
from tests.placement.test_solving import best_by_loop, made, small, value_of


@given(small())
def test_no_placement_is_nearer_than_the_bound(drawn: tuple[list[float], dict[str, Any]]) -> None:
    """A plain loop over all placements finds none above it; what the prices lead to keeps the limits."""
    weights, asked = drawn
    assume(asked["near"] is not None)
    problem = problem_of(weights, **asked).scaled()
    bound, prices = found_prices(Market(problem, alike(problem)), 0.0, 60)
    best = best_by_loop(weights, asked)
    if best is not None:
        assert bound / len(weights) >= best - 1e-9
    owners = rounded(Market(problem, alike(problem)), prices)
    if owners is not None:
        assert best is not None
        worth = value_of(weights, asked, owners.tolist())
        assert worth is not None
        assert worth <= bound / len(weights) + 1e-9


def test_more_steps_prove_more() -> None:
    """The bound falls with the steps, and stops above what was found."""
    weights, owners, near = made(2, 1_000, 20, 4)
    problem = problem_of(
        weights, np.ones(20), owners, near, None, max_imbalance=1.05, max_moved_weight=None, max_moves=None
    ).scaled()
    market = Market(problem, alike(problem))
    bounds = [found_prices(market, 0.0, steps)[0] for steps in (5, 150)]
    assert bounds[0] > bounds[1] >= 1_000 * problem.locality(owners)
