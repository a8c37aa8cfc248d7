"""Test the specifications of the page's charts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.report import charts
from lookup.report.charts import Box, NamedPoint, extent, place

SPECIFICATIONS = {
    "trade": charts.trade_spec(("match_ratio", "imbalance"), [(1.0, 2.0), (0.2, 0.4)], 7.0, charts.WIDE),
    "trade without moves": charts.trade_spec(
        ("match_ratio", "imbalance"), [(1.0, 2.0), (0.2, 0.4)], None, charts.NARROW
    ),
    "trade with a best": charts.trade_spec(
        ("match_ratio", "imbalance"), [(0.9, 2.0), (0.2, 0.8)], 7.0, charts.WIDE, 0.7
    ),
    "heat": charts.heat_spec("load / mean", "%H:%M"),
    "moves": charts.moves_spec(["broker lost", "split"], "%H:%M"),
    "matrix": charts.matrix_spec("from", "to", "share"),
}


def test_points_have_sizes_without_moves_as_well() -> None:
    """If nothing moves, all points have the least size."""
    sizes = [_sizes(SPECIFICATIONS[name]) for name in ("trade", "trade without moves")]

    assert [size["scale"]["domain"] for size in sizes] == [[0, 7.0], [0, 1.0]]
    assert all(size["scale"]["range"][0] >= 79 for size in sizes)


def test_the_best_figure_is_a_dashed_line() -> None:
    """It has data of its own, one point."""
    (layer,) = [layer for layer in SPECIFICATIONS["trade with a best"]["layer"] if "data" in layer]

    assert layer["mark"]["type"] == "rule"
    assert layer["mark"]["strokeDash"]
    assert layer["data"]["values"] == [{"y": 0.7}]


def _sizes(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    (found,) = [layer["encoding"]["size"] for layer in spec["layer"] if "size" in layer["encoding"]]
    return found


@pytest.mark.parametrize("spec", SPECIFICATIONS.values(), ids=SPECIFICATIONS)
def test_altair_reads_and_writes_a_specification_as_it_is(spec: Mapping[str, Any]) -> None:
    """It keeps to the schema of Vega-Lite, whose version is the one that Altair writes."""
    written = alt.Chart.from_dict(dict(spec)).to_dict()

    assert {key: value for key, value in written.items() if key != "config"} == spec


_POINTS = st.lists(
    st.builds(
        NamedPoint, st.text("abc-", min_size=1, max_size=25), st.floats(0, 720), st.floats(0, 360), st.floats(5, 17)
    ),
    max_size=20,
)


@given(_POINTS)
def test_no_name_covers_another_or_a_point(points: list[NamedPoint]) -> None:
    """Each name that has a place is inside the chart and apart from the others; that of the first may cover points."""
    spots = place(points, 720, 360)

    assert len(spots) == len(points)
    boxes = [spot.box(point) for spot, point in zip(spots, points, strict=True) if spot.text]
    others = boxes[bool(spots and spots[0].text) :]
    rims = [Box(p.x - p.radius, p.y - p.radius, p.x + p.radius, p.y + p.radius) for p in points]
    assert not any(first.meets(second) for first, second in combinations(boxes, 2))
    assert not any(box.meets(rim) for box in others for rim in rims)
    assert all(box.left >= 0 and box.right <= 720 and box.top >= 0 and box.bottom <= 360 for box in boxes)


def test_a_name_stands_beside_its_point_if_there_is_room() -> None:
    """To the right, or to the left at the right edge; of two points in one place one name is moved."""
    middle, edge = place([NamedPoint("a-policy", 300, 100, 8), NamedPoint("a-policy", 715, 300, 8)], 720, 360)
    first, second = place([NamedPoint("first", 300, 100, 8), NamedPoint("second", 302, 100, 8)], 720, 360)

    assert (middle.text, middle.align) == ("a-policy", "left")
    assert (edge.text, edge.align) == ("a-policy", "right")
    assert (first.text, second.text) == ("first", "second")
    assert (first.dx, first.dy) != (second.dx, second.dy)


def test_a_name_without_room_is_left_out() -> None:
    """Of many points in one place the first have their names."""
    spots = place([NamedPoint(f"policy-{number}", 300, 100, 8) for number in range(40)], 720, 360)

    assert spots[0].text == "policy-0"
    assert spots[-1].text == ""


def test_a_domain_has_room_around_all_intervals() -> None:
    """Also if all figures are the same."""
    assert extent([1.0, 2.0, 1.5, 3.0]) == (0.88, 3.12)
    assert extent([2.0]) == (1.9, 2.1)
    assert extent([0.0]) == (-1.0, 1.0)
