"""Draw one aim against another: a point for each policy, with intervals, and names where there is room for them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from lookup.model.quoting import quantity
from lookup.report.blocks import Chart
from lookup.report.charts import TRADE_SIZES, Point, Shape, place, trade_spec

__all__ = ["trade_chart"]

_FIELDS = "policy role x x_low x_high y y_low y_high moves up across moved label dx dy align".split()


def trade_chart(  # noqa: PLR0913  what is drawn, and how large
    name: str,
    title: str,
    rows: Sequence[Sequence[Any]],
    domains: Sequence[tuple[float, float]],
    *,
    titles: tuple[str, str],
    shape: Shape,
    best: float | None = None,
    named: Collection[str] | None = None,
) -> Chart:
    """Return the chart.

    Args:
        rows: policy, role, (x, least, most), (y, least, most) in one row, moves, and y, x and moves as texts; the first
            ones have their names for certain.
        domains: ends of the axis to the right, then of that upwards.
        titles: of the axis upwards and of that to the right.
        best: figure upwards that no point is beyond.
        named: policies whose names are written beside them; default: all.
    """
    most = max((row[8] for row in rows if row[8] is not None), default=None)
    (left, right), (bottom, top) = domains
    least, largest = TRADE_SIZES
    points = [
        Point(
            row[0] if named is None or row[0] in named else "",
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
        _FIELDS,
        # The first ones are drawn last, so that no other point hides them.
        [[*row, spot.text, spot.dx, spot.dy, spot.align] for row, spot in zip(rows, spots, strict=True)][::-1],
        screen=shape.screen,
    )
