"""The topology file: what lies between two places, in milliseconds and in money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import model_validator

from lookup.model.quoting import shown
from lookup.settings.base import Share, Strict, refuse

__all__ = ["EdgeEntry", "Level", "TopologyFile", "TopologySection"]

Level = Literal["region", "zone", "rack"]
Difference = Literal["same", "rack", "zone", "region"]


class EdgeEntry(Strict):
    """A link between two places of one level, which replaces the level's figures; several links make a path."""

    a: str
    """One end: a region, zone or rack."""
    b: str
    """The other end, of the same level."""
    ms: Share
    """Latency, milliseconds."""
    price_per_gb: Share = 0.0
    """Currency per gigabyte."""


class TopologyFile(Strict):
    """Distances and prices by the first level that differs."""

    levels: tuple[Level, ...] = ("region", "zone", "rack")
    """Levels of a location, outermost first."""
    distance_ms: Mapping[Difference, Share] = {"same": 0.05, "rack": 0.3, "zone": 1.0, "region": 30.0}
    """Milliseconds between places that first differ in this level; a level left out takes the next inner one's."""
    price_per_gb: Mapping[Difference, Share] = {"zone": 0.01, "region": 0.02}
    """Currency per gigabyte between such places."""
    edges: tuple[EdgeEntry, ...] = ()
    """Links with figures of their own; the shortest path counts."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        order = [level for level in ("region", "zone", "rack") if level in self.levels]
        problems = [] if list(self.levels) == order and order else [_LEVELS_WRONG]
        problems += [
            f"edges[{n}]: joins {shown(edge.a)} with itself" for n, edge in enumerate(self.edges) if edge.a == edge.b
        ]
        given = {name: getattr(self, name) for name in ("distance_ms", "price_per_gb") if name in self.model_fields_set}
        for name, figures in given.items():
            unused = [level for level in figures if level not in (*self.levels, "same")]
            problems += [f"{name}.{level}: is not one of `levels`" for level in unused]
        refuse(problems)
        return self


_LEVELS_WRONG = 'levels: should be "region", "zone" and "rack", outermost first, each at most once, at least one'


class TopologySection(TopologyFile):
    """The `[topology]` table: a file, keys of such a file, or both; a key written here counts."""

    file: str | None = None
    """Path of a topology file."""
