"""Make intervals on a scale that ends where a figure ends: a ratio at 0 and 1, a count at 0."""

from __future__ import annotations

import math

__all__ = ["around"]


def around(value: float, half: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the interval around a value, of half this width where the ends are far away.

    Towards each end the scale is straight for the first half of the way, and logarithmic from there: it comes ever
    nearer to the end and never to it. Intervals that keep away from the ends are what they would be without any.

    Args:
        bounds: the least and the largest the figure can be; infinite where there is no end.
    """
    least, most = bounds
    return value - _way(half, value - least), value + _way(half, most - value)


def _way(half: float, room: float) -> float:
    """Return how far it is to go towards an end that is so far away."""
    if room <= 0:
        return 0.0
    if half <= room / 2:
        return half
    return room * (1 - math.exp(1 - 2 * half / room) / 2)
