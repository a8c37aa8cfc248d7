"""Places of names beside points."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from lookup.report.labels import Box, Point, extent, place

_POINTS = st.lists(
    st.builds(
        Point,
        st.text("abc-", min_size=1, max_size=25),
        st.floats(0, 720),
        st.floats(0, 360),
        st.floats(5, 17),
    ),
    max_size=20,
)


@given(_POINTS)
def test_no_name_covers_another_or_a_point(points: list[Point]) -> None:
    """Each name that has a place is inside the chart and apart from every other and from every point."""
    spots = place(points, 720, 360)

    assert len(spots) == len(points)
    boxes = [spot.box(point) for spot, point in zip(spots, points, strict=True) if spot.text]
    rims = [Box(p.x - p.radius, p.y - p.radius, p.x + p.radius, p.y + p.radius) for p in points]
    assert not any(first.meets(second) for first, second in combinations(boxes, 2))
    assert not any(box.meets(rim) for box in boxes for rim in rims)
    assert all(box.left >= 0 and box.right <= 720 and box.top >= 0 and box.bottom <= 360 for box in boxes)


def test_a_name_stands_beside_its_point_if_there_is_room() -> None:
    """To the right, or to the left at the right edge; of two points in one place one name is moved."""
    middle, edge = place([Point("a-policy", 300, 100, 8), Point("a-policy", 715, 300, 8)], 720, 360)
    first, second = place([Point("first", 300, 100, 8), Point("second", 302, 100, 8)], 720, 360)

    assert (middle.text, middle.align) == ("a-policy", "left")
    assert (edge.text, edge.align) == ("a-policy", "right")
    assert (first.text, second.text) == ("first", "second")
    assert (first.dx, first.dy) != (second.dx, second.dy)


def test_a_name_without_room_is_left_out() -> None:
    """Of many points in one place the first have their names."""
    spots = place([Point(f"policy-{number}", 300, 100, 8) for number in range(40)], 720, 360)

    assert spots[0].text == "policy-0"
    assert spots[-1].text == ""


def test_a_domain_has_room_around_all_intervals() -> None:
    """Also if all figures are the same."""
    assert extent([1.0, 2.0], [1.5, 3.0]) == (0.88, 3.12)
    assert extent([2.0], [2.0]) == (1.9, 2.1)
    assert extent([0.0], [0.0]) == (-1.0, 1.0)
