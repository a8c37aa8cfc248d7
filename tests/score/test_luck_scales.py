"""Intervals on scales that end where figures do."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookup.score.luck import around

SHARE, COUNT, RATIO, FREE = (0.0, 1.0), (0.0, math.inf), (1.0, math.inf), (-math.inf, math.inf)
Figure = tuple[float, tuple[float, float]]
BOUNDS = st.sampled_from([SHARE, COUNT, RATIO, FREE, (-2.0, 5.0)])


@st.composite
def figures(draw: st.DrawFn) -> Figure:
    """Draw a value between its bounds, the ends and their neighbours included."""
    least, most = draw(BOUNDS)
    low, high = max(least, -1e6), min(most, 1e6)
    ends = [low, high, low + 1e-9, high - 1e-9, math.nextafter(high, low)]
    return draw(st.floats(low, high) | st.sampled_from(ends)), (least, most)


@given(figures(), st.just(0.0) | st.floats(1e-12, 1e6))
@example((1.0, SHARE), 0.3)
@example((0.0, SHARE), 0.3)
@example((0.0, COUNT), 0.3)
def test_it_contains_the_value_and_stays_within_the_ends(figure: Figure, half: float) -> None:
    """Whatever the width."""
    value, bounds = figure
    low, high = around(value, half, bounds)

    assert bounds[0] <= low <= value <= high <= bounds[1]


@given(figures())
def test_without_luck_it_is_the_value(figure: Figure) -> None:
    """At the ends too."""
    value, bounds = figure

    assert around(value, 0.0, bounds) == (value, value)


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_without_ends_it_is_symmetric(value: float, half: float) -> None:
    """There is no scale to be on."""
    assert around(value, half, FREE) == (value - half, value + half)


@pytest.mark.parametrize(("value", "bounds"), [(0.5, SHARE), (0.3, SHARE), (400.0, COUNT), (31.0, RATIO)])
def test_far_from_the_ends_it_is_as_wide_as_given(value: float, bounds: tuple[float, float]) -> None:
    """To either side, within a hundredth."""
    half = 0.001 * (value - bounds[0])
    low, high = around(value, half, bounds)

    assert (value - low, high - value) == pytest.approx((half, half), rel=0.01)


@pytest.mark.parametrize("bounds", [COUNT, RATIO])
def test_it_is_straight_for_half_of_the_way(bounds: tuple[float, float]) -> None:
    """Four above the end a half of two is what it was given as."""
    assert around(bounds[0] + 4.0, 2.0, bounds) == (bounds[0] + 2.0, bounds[0] + 6.0)


def test_from_there_it_is_logarithmic() -> None:
    """What is left of the way after its half shrinks by e whenever the width grows by as much as that half is."""
    for steps in range(1, 4):
        low, high = around(4.0, 2.0 + 2.0 * steps, COUNT)

        assert (low, high) == pytest.approx((2.0 * math.exp(-steps), 6.0 + 2.0 * steps))


def test_upper_ends_are_like_lower_ones() -> None:
    """What is answered and what is not have mirrored intervals."""
    low, high = around(0.98, 0.05, SHARE)

    assert (1 - high, 1 - low) == pytest.approx(around(0.02, 0.05, SHARE))
    assert 0.98 - low == pytest.approx(0.05)
    assert 0 < high - 0.98 < 0.02


def test_at_an_end_it_goes_to_the_other_side_only() -> None:
    """By the half that was given."""
    assert around(0.0, 3.0, COUNT) == (0.0, 3.0)
    assert around(1.0, 0.25, SHARE) == (0.75, 1.0)


def test_there_is_no_jump_next_to_an_end() -> None:
    """The other side does not depend on how near the end is."""
    assert around(1e-9, 0.5, SHARE) == pytest.approx(around(0.0, 0.5, SHARE), abs=1e-8)
    assert around(1e-300, 1.0, COUNT)[1] == 1.0
