"""Which candidates go on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lookup.tuning.racing import leaders

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
