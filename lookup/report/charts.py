"""Build the charts of the page as Vega-Lite specifications without data.

They are written out, since Altair's import and checks would take longer than the rest. The suite checks with Altair.

Colours are names after an @, such as `@better`. The page's script replaces them by the colour of the light or dark
theme. Blue and orange, which colour-blind readers can distinguish, are better and worse, cold and hot.

Vega-Lite does not separate overlapping texts. So names of points are placed here, in pixels of a chart with known
scales, and a name without room is left out. The tooltip and the table have it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from lookup.model.quoting import quantity
from lookup.report.blocks import Chart

__all__ = [
    "NARROW", "TRADE_SIZES", "WIDE", "Box", "NamedPoint", "Shape", "Spot", "extent", "heat_spec",
    "matrix_spec", "moves_spec", "place", "trade_chart", "trade_spec",
]  # fmt: skip

#: The version that the page's scripts draw.
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
#: Data of every chart, filled by the page's script.
_ROWS = {"name": "rows"}
_CATEGORIES = [f"@series{number}" for number in range(1, 9)]
#: Width of a chart in pixels, without the names of brokers next to it.
_CHART_WIDTH = 720
#: Colours of points by their role.
_ROLES = {"incumbent": "@ink", "candidate": "@series3"}
#: Areas of the smallest and the largest point of the chart of two aims, square pixels.
TRADE_SIZES = (90, 900)


class Shape(NamedTuple):
    """The size of a drawing for one kind of screen, in pixels."""

    screen: Literal["wide", "narrow"]
    width: int
    height: int


#: The chart of two aims next to the first card, and between two cards on a phone.
WIDE, NARROW = Shape("wide", 470, 400), Shape("narrow", 290, 165)


def trade_spec(
    titles: tuple[str, str],
    domains: Sequence[tuple[float, float]],
    most: float | None,
    shape: Shape,
    best: float | None = None,
) -> dict[str, Any]:
    """Build the chart of one aim against another, with a point per policy, both intervals and the number of moves.

    Dashed lines go through the incumbent. The size of a point is the number of moves.

    Names are placed by the rows' `label`, `dx`, `dy` and `align`, which depend on the given scales.

    Args:
        titles: titles of the vertical and the horizontal axis.
        domains: domains of both axes, the horizontal one first.
        most: moves of the largest point. With None they are not known, and all points have the smallest size.
        best: vertical bound of all points, drawn as a line of long dashes, None if unknown.
    """
    scales = [{"domain": list(domain), "nice": False, "zero": False} for domain in domains]
    axis = {"tickCount": 5, "titleLimit": shape.width}
    x = _encode_amount("x", scale=scales[0], title=titles[1], axis=axis)
    y = _encode_amount("y", scale=scales[1], title=titles[0], axis={**axis, "titleLimit": shape.height})
    sizes = {"domain": [0, most or 1.0], "nice": False, "range": list(TRADE_SIZES)}
    point = {
        "color": _encode_name("role", scale={"domain": list(_ROLES), "range": list(_ROLES.values())}, legend=None),
        "size": _encode_amount("size", scale=sizes, legend=None),
        "tooltip": [_encode_name(name) for name in ("policy", "up", "across", "moved")],
        "x": x,
        "y": y,
    }
    place = {name: {"expr": f"datum.{name}"} for name in ("align", "dx", "dy")}
    rims, words = _build_labels("label", x, y, {**place, "baseline": "middle"})
    incumbent = {"filter": "datum.role == 'incumbent'"}
    at_best = {
        **_build_layer(_build_mark("rule", color="@ink", strokeDash=[10, 4]), {"y": y}),
        "data": {"values": [{"y": best}]},
    }
    layers = [
        *([] if best is None else [at_best]),
        _build_layer(_build_mark("rule", color="@quiet", strokeDash=[4, 4]), {"x": x}, incumbent),
        _build_layer(_build_mark("rule", color="@quiet", strokeDash=[4, 4]), {"y": y}, incumbent),
        _build_layer(
            _build_mark("rule", color="@quiet"),
            {"x": x, "x2": {"field": "x_high"}, "y": y},
            _calculate("x", "datum.x_low"),
        ),
        _build_layer(
            _build_mark("rule", color="@quiet"),
            {"x": x, "y": y, "y2": {"field": "y_high"}},
            _calculate("y", "datum.y_low"),
        ),
        rims,
        # Without a number of moves a point has the least size.
        _build_layer(
            _build_mark("circle", opacity=0.75), point, _calculate("size", "isValid(datum.moves) ? datum.moves : 0")
        ),
        words,
    ]
    return {"layer": layers, "data": _ROWS, "height": shape.height, "width": shape.width, "$schema": _SCHEMA}


_TRADE_FIELDS = "policy role x x_low x_high y y_low y_high moves up across moved label dx dy align".split()


def trade_chart(  # noqa: PLR0913  what is drawn, and how large
    name: str,
    title: str,
    rows: Sequence[Sequence[Any]],
    domains: Sequence[tuple[float, float]],
    *,
    titles: tuple[str, str],
    shape: Shape,
    best: float | None = None,
) -> Chart:
    """Build the chart.

    Args:
        rows: policy, role, x, least, most, y, least, most, moves, and y, x, moves as texts. The first are always named.
        domains: ends of the horizontal axis, then of the vertical one.
        titles: titles of the vertical and the horizontal axis.
        best: vertical bound of all points.
    """
    most = max((row[8] for row in rows if row[8] is not None), default=None)
    (left, right), (bottom, top) = domains
    least, largest = TRADE_SIZES
    points = [
        NamedPoint(
            row[0],
            (row[2] - left) / (right - left) * shape.width,
            (top - row[5]) / (top - bottom) * shape.height,
            math.sqrt((least + (largest - least) * (row[8] or 0.0) / (most or 1.0)) / math.pi),
        )
        for row in rows
    ]
    spots = place(points, shape.width, shape.height)
    return Chart(
        name,
        title,
        f"A scatter plot of {quantity(len(rows), 'policy', 'policies')} with 95 % intervals.",
        trade_spec(titles, domains, most, shape, best),
        _TRADE_FIELDS,
        # The first ones are drawn last, so that no other point hides them.
        [[*row, spot.text, spot.dx, spot.dy, spot.align] for row, spot in zip(rows, spots, strict=True)][::-1],
        screen=shape.screen,
    )


def heat_spec(title: str, time_format: str) -> dict[str, Any]:
    """Brokers over time, relative (1 is even), a row per broker, a panel per policy, marks where they came and left."""
    scale = {"clamp": True, "domain": [0, 1, 2], "interpolate": "rgb", "range": ["@cold", "@even", "@hot"]}
    x, y = _encode_time(format=time_format), _encode_row("y")
    cell = {
        "color": _encode_amount("value", scale=scale, title=title),
        "tooltip": [_encode_name("y", title="broker"), _encode_name("since"), _encode_amount("value", title=title)],
        "x": x,
        "x2": {"field": "x2"},
        "y": y,
    }
    # Brokers come at the start of a column and leave at the end of one, or at an instant that has no cell of its own.
    mark = _build_mark("point", color="@ink", filled=True, opacity=1, size=40)
    since = _calculate("since", "utcFormat(datum.x, '%Y-%m-%d %H:%M')")
    layers = [
        _build_layer(_build_mark("rect"), cell, {"filter": "isValid(datum.value)"}, since),
        _build_layer(mark, {"shape": {"value": "triangle-right"}, "x": x, "y": y}, {"filter": "datum.comes"}),
        _build_layer(
            mark,
            {"shape": {"value": "cross"}, "x": {"field": "x2", "type": "temporal"}, "y": y},
            {"filter": "datum.leaves"},
        ),
    ]
    return _repeat_by_policy({"layer": layers, "height": {"step": 12}, "width": _CHART_WIDTH})


def moves_spec(causes: Sequence[str], time_format: str) -> dict[str, Any]:
    """Bundles that lost their owner over time, stacked by cause, one panel per policy."""
    scale = {"domain": list(causes), "range": _CATEGORIES[: len(causes)]}
    encoding = {
        "color": _encode_name("y", scale=scale, title="cause"),
        "x": _encode_time(format=time_format),
        "x2": {"field": "x2"},
        "y": _encode_amount("low", title="bundles"),
        "y2": {"field": "high"},
    }
    # A bar with start and end on both axes is not stacked by itself. Rows of 0 stay, since an empty panel is not drawn.
    stacked = {"groupby": ["policy", "x"], "stack": "value", "sort": [{"field": "y"}], "as": ["low", "high"]}
    return _repeat_by_policy(
        {
            "mark": _build_mark("rect", stroke="@paper", strokeWidth=0.5),
            "encoding": encoding,
            "height": 110,
            "transform": [stacked],
            "width": _CHART_WIDTH,
        }
    )


def matrix_spec(row: str, column: str, value: str) -> dict[str, Any]:
    """Shares of a matrix with its names as both axes, one panel per policy, each share written into its cell."""
    x, y = {"axis": {"orient": "top", "labelAngle": 0}, **_encode_row("x", title=column)}, _encode_row("y", title=row)
    colour = _encode_amount("value", scale={"range": ["@empty", "@full"], "domain": [0, 1]}, title=value)
    share = {
        "color": {"condition": {"test": "datum.value > 0.5", "value": "@on_full"}, "value": "@ink"},
        "text": _encode_amount("value", format=".0%"),
        "x": x,
        "y": y,
    }
    layers = [
        _build_layer(_build_mark("rect"), {"color": colour, "x": x, "y": y}),
        _build_layer(_build_mark("text"), share),
    ]
    panel = {"layer": layers, "height": {"step": 18}, "width": {"step": 78}}
    return _repeat_panel("policy", panel, columns=2, resolve={"axis": {"x": "independent"}})


def _encode_amount(field: str, **channel: object) -> dict[str, Any]:
    return {"field": field, **channel, "type": "quantitative"}


def _encode_name(field: str, **channel: object) -> dict[str, Any]:
    return {"field": field, **channel, "type": "nominal"}


def _encode_row(field: str, title: str | None = None) -> dict[str, Any]:
    return _encode_name(field, sort=None, title=title)


def _encode_time(**axis: object) -> dict[str, Any]:
    axis = {**axis, "grid": False, "labelOverlap": True}
    return {"axis": axis, "field": "x", "scale": {"type": "utc"}, "title": None, "type": "temporal"}


def _build_mark(kind: str, **look: object) -> dict[str, Any]:
    return {"type": kind, **look}


def _calculate(name: str, expression: str) -> dict[str, Any]:
    return {"calculate": expression, "as": name}


def _build_layer(
    mark: Mapping[str, Any], encoding: Mapping[str, Any], *transforms: Mapping[str, Any]
) -> dict[str, Any]:
    return {"mark": mark, "encoding": encoding, **({"transform": list(transforms)} if transforms else {})}


def _build_labels(
    field: str, x: Mapping[str, Any], y: Mapping[str, Any], place: Mapping[str, Any], rim: int = 4
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build texts next to points, with a rim in the colour of the paper so that lines do not cross them."""
    encoding = {"text": _encode_name(field), "x": x, "y": y}
    stroke = {"stroke": "@paper", "strokeJoin": "round", "strokeWidth": rim}
    return _build_layer(_build_mark("text", **place, **stroke), encoding), _build_layer(
        _build_mark("text", **place), encoding
    )


def _repeat_panel(field: str, panel: Mapping[str, Any], *, columns: int, resolve: Mapping[str, Any]) -> dict[str, Any]:
    header, order = {"labelAnchor": "start", "labelFontWeight": "bold"}, {"field": "order", "op": "min"}
    facet = _encode_name(field, header=header, sort=order, title=None)
    return {
        "data": _ROWS, "facet": facet, "spec": panel, "columns": columns, "resolve": resolve, "$schema": _SCHEMA
    }  # fmt: skip


def _repeat_by_policy(panel: Mapping[str, Any]) -> dict[str, Any]:
    return _repeat_panel("policy", panel, columns=1, resolve={"axis": {"x": "shared"}})


#: Pixels of a character and of a line of text, rather too many than too few.
_CHARACTER, _LINE = 6.6, 13.0


class Box(NamedTuple):
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Check whether two rectangles share a pixel."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def is_inside(self, other: Box) -> bool:
        """Check whether another rectangle has all of its pixels."""
        is_beside = other.left <= self.left and self.right <= other.right
        return is_beside and other.top <= self.top and self.bottom <= other.bottom


class NamedPoint(NamedTuple):
    """A point with its name, in pixels, y downwards."""

    name: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of a name next to its point. `text` is empty if there is no room for it."""

    text: str
    #: pixels from the point to the text's middle line, and to the end that `align` names
    dx: float = 0.0
    dy: float = 0.0
    align: Literal["left", "right", "center"] = "left"

    def box(self, point: NamedPoint) -> Box:
        """Compute the rectangle that the text covers."""
        width = len(self.text) * _CHARACTER
        left = point.x + self.dx - {"left": 0.0, "center": width / 2, "right": width}[self.align]
        return Box(left, point.y + self.dy - _LINE / 2, left + width, point.y + self.dy + _LINE / 2)


def extent(ends: Sequence[float]) -> tuple[float, float]:
    """Compute the domain of a scale with room for intervals with these ends, and a margin around them."""
    least, most = min(ends), max(ends)
    margin = 0.06 * (most - least) or 0.05 * abs(least) or 1.0
    return least - margin, most + margin


def place(points: Sequence[NamedPoint], width: float, height: float) -> list[Spot]:
    """Choose a spot for each point's name, the first points' first."""
    boxes = [
        Box(each.x - each.radius, each.y - each.radius, each.x + each.radius, each.y + each.radius) for each in points
    ]
    chart, spots = Box(0, 0, width, height), list[Spot]()
    for point in points:
        inside = [spot for spot in _list_spots(point) if spot.box(point).is_inside(chart)]
        free = [spot for spot in inside if not any(spot.box(point).meets(other) for other in boxes)]
        # The first point, the incumbent, has its name for certain, over other points if need be.
        choice = next(iter(free if spots else [*free, *inside]), Spot(""))
        if choice.text:
            boxes.append(choice.box(point))
        spots.append(choice)
    return spots


def _list_spots(point: NamedPoint) -> list[Spot]:
    """List the possible spots of a name, the best first, beside the point and off its lines, then above and below.

    A name farther away would be taken for another point's.
    """
    beside, half = point.radius + 2.0, _LINE / 2 + 2.0
    above = point.radius + half
    return [
        Spot(point.name, beside, -half),
        Spot(point.name, beside, half),
        Spot(point.name, -beside, -half, "right"),
        Spot(point.name, -beside, half, "right"),
        Spot(point.name, 0.0, -above, "center"),
        Spot(point.name, 0.0, above, "center"),
    ]
