"""Model the rest of a cluster as written, with namespaces, labels of clients, and distances of locations."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from lookup.errors import InvalidNameError
from lookup.model.bundles import HASH_END
from lookup.model.names import NamespaceName
from lookup.model.quoting import shown
from lookup.settings.base import Count, Positive, Share, Strict, refuse

__all__ = [
    "ClientEntry", "ClientMatch", "EdgeEntry", "IsolationEntry", "NamespaceEntry", "TopologyFile", "TopologySection",
]  # fmt: skip

Level = Literal["region", "zone", "rack"]
Difference = Literal["same", "rack", "zone", "region"]


class IsolationEntry(Strict):
    """Hosts that a namespace may use, as regular expressions that match a whole host name."""

    primary: tuple[str, ...] = Field(min_length=1)
    """Hosts to use."""
    secondary: tuple[str, ...] = ()
    """Hosts to use as well where too few primaries are left."""
    min_limit: Count = 1
    """Below this many primaries the secondaries join."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        for key, patterns in (("primary", self.primary), ("secondary", self.secondary)):
            for index, pattern in enumerate(patterns):
                try:
                    re.compile(pattern)
                except re.error as error:
                    problems.append(f"{key}[{index}]: {shown(pattern)} is not a regular expression: {error}")
        refuse(problems)
        return self


class NamespaceEntry(Strict):
    """One namespace. Namespaces without an entry have `evaluation.default_bundles` bundles and no policies."""

    name: str
    """`tenant/namespace`."""
    bundles: Positive | None = Field(default=None, le=1 << 16)
    """Number of bundles, equal shares of the hash circle."""
    boundaries: tuple[str, ...] | None = None
    """Boundaries in place of `bundles`, as hexadecimal texts from 0x00000000 to 0xffffffff."""
    anti_affinity_group: str | None = None
    """Group of namespaces that should not share a broker or failure domain."""
    isolation: tuple[IsolationEntry, ...] = ()
    """Isolation policies."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        try:
            NamespaceName.parse(self.name)
        except InvalidNameError as error:
            problems.append(f"name: {error}")
        if self.bundles is not None and self.boundaries is not None:
            problems.append("bundles: give bundles or boundaries, not both")
        if self.boundaries is not None:
            rule = "should ascend from 0x00000000 to 0xffffffff"
            try:
                numbers = [int(text, 16) for text in self.boundaries]
            except ValueError:
                problems.append(f"boundaries: {rule}, hexadecimal, not {list(self.boundaries)}")
            else:
                is_ascending = len(numbers) > 1 and all(low < high for low, high in pairwise(numbers))
                # Bundles share the whole circle, since a hash outside of them would not have an owner.
                if not is_ascending or numbers[0] != 0 or numbers[-1] != HASH_END:
                    problems.append(f"boundaries: {rule}, not {list(self.boundaries)}")
        refuse(problems)
        return self


class ClientMatch(Strict):
    """A choice of clients, by network or by a glob over the client's name."""

    cidr: str | None = None
    """A network like 10.1.0.0/16, which matches clients that are addresses, with or without port."""
    client: str | None = None
    """A glob like `*.example.com` for the whole client or its host, with regard to case."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.cidr is None) == (self.client is None):
            raise ValueError('should say either cidr = "10.1.0.0/16" or client = "glob"')
        if self.cidr is not None:
            try:
                ipaddress.ip_network(self.cidr)
            except ValueError as error:
                raise ValueError(f"cidr: should be a network like 10.1.0.0/16: {error}") from None
        return self


class ClientEntry(Strict):
    """Labels for some clients. The first matching entry counts, and properties of the log take precedence."""

    match: ClientMatch
    """Clients that get the properties."""
    properties: Mapping[str, str] = Field(min_length=1)
    """Lookup properties, without prefix."""


class EdgeEntry(Strict):
    """A link between two places of one level, which replaces the level's figures. Several links make a path."""

    a: str
    """One end, which is a region, zone or rack."""
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
    """Milliseconds between places that first differ in this level. An absent level has the value of the next inner
    one."""
    price_per_gb: Mapping[Difference, Share] = {"zone": 0.01, "region": 0.02}
    """Currency per gigabyte between such places."""
    edges: tuple[EdgeEntry, ...] = ()
    """Links with figures of their own, of which the shortest path counts."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        order = [level for level in ("region", "zone", "rack") if level in self.levels]
        problems = []
        if list(self.levels) != order or not order:
            right = '"region", "zone" and "rack", outermost first, each at most once, at least one'
            problems.append(f"levels: should be {right}")
        problems += [
            f"edges[{n}]: joins {shown(edge.a)} with itself" for n, edge in enumerate(self.edges) if edge.a == edge.b
        ]
        costs = {name: getattr(self, name) for name in ("distance_ms", "price_per_gb") if name in self.model_fields_set}
        for name, figures in costs.items():
            unused = [level for level in figures if level not in (*self.levels, "same")]
            problems += [f"{name}.{level}: is not one of `levels`" for level in unused]
        refuse(problems)
        return self


class TopologySection(TopologyFile):
    """The `[topology]` table, with a file, keys of such a file, or both. A key written here takes precedence."""

    file: str | None = None
    """Path of a topology file."""
