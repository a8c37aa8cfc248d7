"""Brokers that no bundle can tell apart are one class."""

from __future__ import annotations

import numpy as np

from lookup.placement.alike import alike
from lookup.placement.problem import problem_of


def test_brokers_are_of_one_class_if_all_bundles_see_the_same_in_them() -> None:
    """Three racks, and one broker of the first that some bundles may not have, make four classes."""
    dice = np.random.default_rng(1)
    near = dice.random((1_000, 3))[:, [0, 1, 2, 0, 1, 2, 0]]
    admitted = np.ones((1_000, 7), dtype=bool)
    admitted[700, 3] = False
    problem = problem_of(
        np.ones(1_000), np.ones(7), None, near, admitted, max_imbalance=1.4, max_moved_weight=None, max_moves=None
    )
    classes = alike(problem)
    assert classes.of_broker.tolist() == [0, 1, 2, 3, 1, 2, 0]
    assert [members.tolist() for members in classes.members] == [[0, 6], [1, 4], [2, 5], [3]]
    assert classes.room.tolist() == [400.0, 400.0, 400.0, 200.0]
    assert (classes.near == near[:, :4][:, [0, 1, 2, 0]]).all()
