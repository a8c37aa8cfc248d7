"""Distances between the locations of clients and brokers, in milliseconds and in the price of a gigabyte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lookup.model.broker import Location

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["LEVELS", "Edge", "Topology"]

#: Levels of a location, outermost first.
LEVELS = ("region", "zone", "rack")


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two places of one level, with its own latency and price."""

    a: str
    b: str
    ms: float
    price_per_gb: float = 0.0


@dataclass(frozen=True)
class Topology:
    """Distances by the first level that differs, and links that replace them if given.

    `distance_ms` and `price_per_gb` are by `same` and level. A missing level costs as the next inner (0 below `same`).
    """

    distance_ms: Mapping[str, float] = field(
        default_factory=lambda: {"same": 0.05, "rack": 0.3, "zone": 1.0, "region": 30.0}
    )
    price_per_gb: Mapping[str, float] = field(default_factory=lambda: {"zone": 0.01, "region": 0.02})
    edges: Sequence[Edge] = ()

    def distance(self, a: Location, b: Location) -> float | None:
        """Find the milliseconds between two places, None if they do not share a known level to compare."""
        return self._look_up_figure(a, b, "ms", self.distance_ms)

    def price(self, a: Location, b: Location) -> float | None:
        """Find the price of a gigabyte between two places, None if they do not share a known level to compare."""
        return self._look_up_figure(a, b, "price_per_gb", self.price_per_gb)

    @cached_property
    def _links(self) -> nx.Graph[str]:
        # Few topologies have links, and networkx takes a sixth of the time in which a command starts.
        import networkx as nx  # noqa: PLC0415

        links: nx.Graph[str] = nx.Graph()
        links.add_edges_from(
            (edge.a, edge.b, {"ms": edge.ms, "price_per_gb": edge.price_per_gb}) for edge in self.edges
        )
        return links

    @cached_property
    def distances(self) -> tuple[float, ...]:
        """Every distance in ms that two places may have, ascending, each once."""
        linked: list[float] = []
        if self.edges:
            import networkx as nx  # noqa: PLC0415

            paths = nx.all_pairs_dijkstra_path_length(self._links, weight="ms")
            linked = [float(length) for _, lengths in paths for length in lengths.values()]
        return tuple(sorted({0.0, *self.distance_ms.values(), *linked}))

    @cached_property
    def _known(self) -> dict[tuple[Location, Location, str], float | None]:
        """Cache of computed figures, since there are few places and the search for a path is slow."""
        return {}

    def _look_up_figure(self, a: Location, b: Location, weight: str, figures: Mapping[str, float]) -> float | None:
        key = a, b, weight
        if key not in self._known:
            self._known[key] = self._find_figure(a, b, weight, figures)
        return self._known[key]

    def _find_figure(self, a: Location, b: Location, weight: str, figures: Mapping[str, float]) -> float | None:
        compared = [level for level in LEVELS if None not in (getattr(a, level), getattr(b, level))]
        if not compared:
            return None
        differing = next((level for level in compared if getattr(a, level) != getattr(b, level)), None)
        if differing is None:
            return _inherit_figure(figures, "same")
        # Links replace a level's distance even if the way leads over other places, as traffic does.
        ends = getattr(a, differing), getattr(b, differing)
        if self.edges:
            import networkx as nx  # noqa: PLC0415

            if all(end in self._links for end in ends) and nx.has_path(self._links, *ends):
                return float(nx.shortest_path_length(self._links, *ends, weight=weight))
        return _inherit_figure(figures, differing)


def _inherit_figure(figures: Mapping[str, float], level: str) -> float:
    inward = ("region", "zone", "rack", "same")
    return next((figures[name] for name in inward[inward.index(level) :] if name in figures), 0.0)
