"""Intervals on scales that end where figures do."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookup.score.scales import around

SHARE, COUNT, RATIO, FREE = (0.0, 1.0), (0.0, math.inf), (1.0, math.inf), (-math.inf, math.inf)
Figure = tuple[float, tuple[float, float]]
BOUNDS = st.sampled_from([SHARE, COUNT, RATIO, FREE, (-2.0, 5.0)])


@st.composite
def figures(draw: st.DrawFn) -> Figure:
    """Draw a value between its bounds, the ends and their neighbours included."""
    least, most = draw(BOUNDS)
    low, high = max(least, -1e6), min(most, 1e6)
    ends = [low, high, low + 1e-9, high - 1e-9, math.nextafter(high, low)]
    # a root of so small a number has no square that is one
    inner = st.floats(low, high).filter(lambda value: value == low or value - low > 1e-100)
    return draw(inner | st.sampled_from(ends)), (least, most)


@given(figures(), st.just(0.0) | st.floats(1e-12, 1e6))
@example((1.0, SHARE), 0.3)
@example((0.0, SHARE), 0.3)
@example((0.0, COUNT), 0.3)
def test_it_contains_the_value_and_stays_within_the_ends(figure: Figure, half: float) -> None:
    """Whatever the width."""
    value, bounds = figure
    low, high = around(value, half, bounds)

    assert bounds[0] <= low <= value <= high <= bounds[1]


@given(figures(), st.floats(1e-6, 1e3), st.floats(1.0, 9.0))
def test_a_wider_interval_holds_a_narrower_one(figure: Figure, half: float, times: float) -> None:
    """More luck never means that less is possible."""
    value, bounds = figure
    (low, high), (lower, higher) = around(value, half, bounds), around(value, times * half, bounds)

    assert lower <= low + 1e-9 * abs(low)
    assert higher >= high - 1e-9 * abs(high)


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


class TestRoots:
    """Figures with a lower end only."""

    @pytest.mark.parametrize("bounds", [COUNT, RATIO])
    def test_by_hand(self, bounds: tuple[float, float]) -> None:
        """Four above the end with a half of one: roots of 2 - 1/4 and 2 + 1/4, as far apart as twice the half."""
        low, high = around(bounds[0] + 4.0, 1.0, bounds)

        assert (low - bounds[0], high - bounds[0]) == pytest.approx((1.75**2, 2.25**2))
        assert high - low == pytest.approx(2.0)

    def test_it_ends_where_the_figure_does(self) -> None:
        """A half of eight is the root's own size, and more cannot go lower."""
        assert around(4.0, 8.0, COUNT) == (0.0, 16.0)
        assert around(4.0, 12.0, COUNT) == (0.0, 25.0)

    def test_at_the_end_it_goes_up_only(self) -> None:
        """By the half that was given: the root has no slope there."""
        assert around(0.0, 3.0, COUNT) == (0.0, 3.0)
        assert around(1.0, 3.0, RATIO) == (1.0, 4.0)


class TestAngles:
    """Shares."""

    @pytest.mark.parametrize("angle", [0.3, 0.5, math.pi / 4, 1.2])
    def test_by_hand(self, angle: float) -> None:
        """The squared sines of an angle 0.1 smaller and larger, with the sine's slope at it."""
        half = 0.1 * math.sin(2 * angle)
        low, high = around(math.sin(angle) ** 2, half, SHARE)

        assert (low, high) == pytest.approx((math.sin(angle - 0.1) ** 2, math.sin(angle + 0.1) ** 2))

    @given(st.floats(1e-3, 1 - 1e-3), st.floats(1e-6, 2))
    def test_shares_and_what_they_leave_are_mirrored(self, share: float, half: float) -> None:
        """What is answered and what is not have the same interval."""
        (low, high), (left_low, left_high) = around(share, half, SHARE), around(1 - share, half, SHARE)

        assert (left_low, left_high) == pytest.approx((1 - high, 1 - low), abs=1e-6)

    def test_near_an_end_it_is_narrower_there(self) -> None:
        """With 0.98 and a half of 0.05 more than 1 is not possible, and it is farther down than up."""
        low, high = around(0.98, 0.05, SHARE)

        assert 0.98 - low > 0.05 > high - 0.98 > 0

    def test_at_an_end_it_is_cut(self) -> None:
        """The angle has no slope there."""
        assert around(1.0, 0.25, SHARE) == (0.75, 1.0)
        assert around(0.0, 0.25, SHARE) == (0.0, 0.25)

    @pytest.mark.parametrize("share", [0.1, 0.2, 0.29, 0.57, 0.93, 0.99])
    def test_next_to_no_luck_it_still_holds_the_value(self, share: float) -> None:
        """The way to the scale and back may end an ulp away."""
        low, high = around(share, 1e-18, SHARE)

        assert low <= share <= high

    def test_other_ends_are_other_units(self) -> None:
        """A figure from -10 to 10 is a share of twenty."""
        low, high = around(0.3, 0.1, SHARE)

        assert around(-10 + 20 * 0.3, 2.0, (-10.0, 10.0)) == pytest.approx((-10 + 20 * low, -10 + 20 * high))
