"""Find the shortest ways over the links of a topology; apart from it, since the import of networkx takes long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import networkx as nx

__all__ = ["Links"]


class Links:
    """Links between places; a way's length is the sum of one of their figures."""

    def __init__(self, links: Iterable[tuple[str, str, dict[str, float]]]) -> None:
        """Take links as their two ends and their figures by name."""
        self._graph: nx.Graph[str] = nx.Graph()
        self._graph.add_edges_from(links)

    def lengths(self, figure: str) -> Iterator[float]:
        """Yield the length of the shortest way between any two places that have one."""
        paths = nx.all_pairs_dijkstra_path_length(self._graph, weight=figure)
        return chain.from_iterable(map(float, lengths.values()) for _, lengths in paths)

    def shortest(self, a: str, b: str, figure: str) -> float | None:
        """Return the length of the shortest way between two places, None if there is no way."""
        try:
            return float(nx.shortest_path_length(self._graph, a, b, weight=figure))
        except (nx.NodeNotFound, nx.NetworkXNoPath):
            return None
