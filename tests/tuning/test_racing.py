"""Which candidates go on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lookup.score.units import Sample
from lookup.tuning.racing import as_good, leaders
from tests.tuning.worlds import AIMS, IMBALANCE, MOVED

_VALUES = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(0, 5).map(float)))


@given(_VALUES, st.integers(1, 12))
def test_leaders_are_dominated_by_none_that_is_left_out(values: np.ndarray, count: int) -> None:
    """As many as are asked for, each once; a candidate that is better in everything goes first."""
    found = leaders(values, count)

    assert len(found) == len(set(found)) == min(count, len(values))
    for other in set(range(len(values))) - set(found):
        for one in found:
            assert not ((values[other] >= values[one]).all() and (values[other] > values[one]).any())


def test_of_a_large_front_the_ends_stay() -> None:
    """And what lies evenly between them."""
    values = np.array([[number, -number] for number in range(9)], dtype=float)

    assert leaders(values, 3) == [8, 4, 0]


def test_one_is_as_good_unless_it_is_shown_to_lose_more_than_the_tolerance() -> None:
    """In an objective: prices do not count, and a figure that is not known is as good as none."""

    def figures(imbalance: float, moved: float) -> list[tuple[tuple[str, None], Sample]]:
        return [(name, Sample(np.full(3, value))) for name, value in ((IMBALANCE, imbalance), (MOVED, moved))]

    names = {0: "today", 1: "best", 2: "near", 3: "far", 4: "unknown"}
    values = {
        "today": (2.0, 0.0),
        "best": (1.0, 1.0),
        "near": (1.09, 9.0),
        "far": (1.11, 0.0),
        "unknown": (np.nan, 0.0),
    }
    samples = {(policy, *name): sample for policy, of in values.items() for name, sample in figures(*of)}

    # 5 % of today's 2.0 is 0.1.
    assert as_good(samples, names, AIMS) == {1: [2], 2: [1, 3], 3: [1, 2], 4: []}
