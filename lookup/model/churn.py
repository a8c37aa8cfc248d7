"""Count churn, which is moves that cancel each other out among brokers and series that swing against their trend.

Metrics (`lookup.score`) and scenarios (`lookup.simulation`) choose the moves and series to count. TiKV's `pd-analysis`
and CockroachDB's `asim` leave some points open, which are settled here and in `docs/scoring.md`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["discount_trend", "on_cycles"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.int64]

#: CockroachDB's exponent, which sets how fast variation counts in full as the lesser direction approaches the greater.
_TREND_EXPONENT = 0.8


def on_cycles(source: IndexArray, target: IndexArray) -> BoolArray:
    """Mark the moves that lie on cycles of the graph of moves between brokers, shape (n_moves,).

    Without them every broker would hold as many bundles as with them. The graph does not distinguish moves
    between the same two brokers. The latest of them are marked, as they closed the cycles.

    Args:
        source: number of the broker each move leaves, >= 0, shape (n_moves,), in order of time.
        target: number of the broker it goes to, another one, shape (n_moves,).

    Source: TiKV's `pd-analysis`, transfer counter. It follows paths depth first, which takes time that grows
    with the number of paths. Here the shortest cycle goes first, which takes time that grows with the moves.
    """
    size = int(max(source.max(initial=0), target.max(initial=0))) + 1
    edges = source * size + target
    flow = np.bincount(edges, minlength=size * size)
    necessary = _remove_cycles(flow.reshape(size, size)).ravel()
    order = np.argsort(edges, kind="stable")
    # The rank of each move among those between the same two brokers. A stable sort keeps the order of time.
    rank = np.arange(len(source)) - np.searchsorted(edges[order], edges[order])
    marks = np.zeros(len(source), dtype=np.bool_)
    marks[order] = rank >= necessary[edges[order]]
    return marks


def _remove_cycles(flow: IndexArray) -> IndexArray:
    """Remove cycles from a graph, broker by broker, the shortest through it first, until none is left.

    Args:
        flow: moves from each broker (row) to each (column), shape (n_brokers, n_brokers).
    """
    rest = flow.copy()
    for start in np.flatnonzero(rest.any(axis=1)).tolist():
        while (cycle := _find_shortest_cycle(rest, start)) is not None:
            steps = cycle, np.roll(cycle, -1)
            # As often as the rarest step allows, which takes one pass for a thousand moves to and fro.
            rest[steps] -= rest[steps].min()
    return rest


def _find_shortest_cycle(flow: IndexArray, start: int) -> IndexArray | None:
    came_from = np.full(len(flow), -1)
    came_from[start] = start
    level = np.array([start])
    while len(level):
        closing = level[flow[level, start] > 0]
        if len(closing):
            path = [int(closing[0])]
            while came_from[path[-1]] != path[-1]:
                path.append(int(came_from[path[-1]]))
            return np.array(path[::-1])
        reached = (flow[level] > 0) & (came_from < 0)
        following = np.flatnonzero(reached.any(axis=0))
        # A path continues from a level's first broker that reaches the next, so equal paths stay in order of numbers.
        parent = reached[:, following].argmax(axis=0)
        came_from[following] = level[parent]
        level = following[np.lexsort((following, parent))]
    return None


def discount_trend(steps: FloatArray) -> FloatArray:
    """Discount the variation of each series by its trend, step by step, shape (n_steps, n_series).

    With u and d the sums of all steps up and down, m the lesser and a = (m / the greater) ^ 0.8, a series varies by a
    (u + d) + (1 - a) m. That is a sum over steps, each counted a times, those in the lesser direction in full.

    Args:
        steps: differences from one instant to the next, shape (n_steps, n_series).

    Source: CockroachDB's `asim`, trend-discounting total variation.
    """
    ups, downs = np.maximum(steps, 0.0), np.maximum(-steps, 0.0)
    up, down = ups.sum(axis=0), downs.sum(axis=0)
    lesser, greater = np.minimum(up, down), np.maximum(up, down)
    share = np.divide(lesser, greater, out=np.zeros_like(lesser), where=greater > 0) ** _TREND_EXPONENT
    against = np.where(up <= down, ups, downs)
    variation: FloatArray = share * (ups + downs) + (1.0 - share) * against
    return variation
