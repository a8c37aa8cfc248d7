"""The sample that tells a log which is there twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookup.replay.repeats import Repeats, keys_of


def _keys(count: int, *, seed: int = 1) -> np.ndarray:
    dice = np.random.default_rng(seed)
    return keys_of(dice.integers(0, 1 << 50, count), dice.integers(0, 1 << 31, count))


@given(st.lists(st.integers(0, 5000), max_size=6), st.integers(0, 99))
def test_how_rows_are_divided_does_not_matter(cuts: list[int], seed: int) -> None:
    """Tasks that share the rows in any way, and put their counts together, count what one task does."""
    once = _keys(2500, seed=seed)
    rows = np.concatenate([once, once[:1200]])
    whole, merged = Repeats(), Repeats()
    whole.add(rows)
    for part in np.split(rows, sorted(cuts)):
        task = Repeats()
        for batch in np.array_split(part, 3):
            task.add(batch)
        merged.merge(task)

    assert merged.even_ratio == whole.even_ratio
    assert 0.4 < whole.even_ratio < 0.56


def test_all_of_a_copy_is_even() -> None:
    """And nothing of a log without copies, or with two of them."""
    ratios = []
    for copies in (1, 2, 3):
        sample = Repeats()
        for _ in range(copies):
            sample.add(_keys(30_000))
        ratios.append(sample.even_ratio)

    assert ratios == [0.0, 1.0, 0.0]


def test_a_few_rows_say_nothing() -> None:
    """Two lookups of one topic in one microsecond are no copy of a log."""
    sample = Repeats()
    sample.add(np.repeat(_keys(19), 2))

    assert sample.even_ratio == 0.0
