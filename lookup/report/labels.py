"""Place the names of points in a scatter chart so that they cover neither each other nor a point.

Vega-Lite does not move texts apart. So places are found here, in pixels of a chart whose scales are known, and a name
for which there is no room is left out: the tooltip and the table have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["Box", "Point", "Spot", "extent", "place"]

#: Pixels of a character and of a line of text, rather too many than too few.
_CHARACTER, _LINE = 6.6, 12.0


class Box(NamedTuple):
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Return whether two rectangles have a pixel in common."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


class Point(NamedTuple):
    """A point with its name, in pixels, y downwards."""

    name: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a name stands beside its point; `text` is empty if there is no room for it."""

    text: str
    #: pixels from the point to the text's middle line, and to the end that `align` names
    dx: float = 0.0
    dy: float = 0.0
    align: Literal["left", "right", "center"] = "left"

    def box(self, point: Point) -> Box:
        """Return the rectangle that the text covers."""
        width = len(self.text) * _CHARACTER
        left = point.x + self.dx - {"left": 0.0, "center": width / 2, "right": width}[self.align]
        return Box(left, point.y + self.dy - _LINE / 2, left + width, point.y + self.dy + _LINE / 2)


def extent(lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float]:
    """Return the domain of a scale that has room for all intervals, and some around them."""
    least, most = min(lows), max(highs)
    margin = 0.06 * (most - least) or 0.05 * abs(least) or 1.0
    return least - margin, most + margin


def place(points: Sequence[Point], width: float, height: float) -> list[Spot]:
    """Return a spot for each point's name, the first points' first.

    Args:
        width: of the chart, in pixels; no name goes beyond it.
        height: the same.
    """
    taken = [
        Box(each.x - each.radius, each.y - each.radius, each.x + each.radius, each.y + each.radius) for each in points
    ]
    chart, spots = Box(0, 0, width, height), []
    for point in points:
        found = Spot("")
        for spot in _spots(point):
            box = spot.box(point)
            is_inside = chart.left <= box.left and box.right <= chart.right
            is_inside &= chart.top <= box.top and box.bottom <= chart.bottom
            if is_inside and not any(box.meets(other) for other in taken):
                found = spot
                taken.append(box)
                break
        spots.append(found)
    return spots


def _spots(point: Point) -> list[Spot]:
    """Return the spots that a name may have, the best first: beside the point and off its lines, then above and below.

    Farther ones follow.
    """
    spots = []
    beside, half = point.radius + 2.0, _LINE / 2 + 2.0
    for gap in (0.0, 12.0, 24.0):
        above = point.radius + half + gap
        spots += [
            Spot(point.name, beside, -half - gap),
            Spot(point.name, beside, half + gap),
            Spot(point.name, -beside, -half - gap, "right"),
            Spot(point.name, -beside, half + gap, "right"),
            Spot(point.name, 0.0, -above, "center"),
            Spot(point.name, 0.0, above, "center"),
        ]
    return spots
