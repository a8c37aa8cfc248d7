"""What an operator has decided about namespaces: isolation, anti-affinity groups, failure domains, bundle boundaries.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lookup.model.bundles import FULL_RANGE, equal_boundaries
from lookup.model.names import pinned_broker

__all__ = ["IsolationPolicy", "NamespacePolicies"]


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """Which hosts a namespace may use: primary ones, and secondary ones when too few primaries are left.

    Both are regular expressions that must match a whole host name.
    """

    primary: tuple[str, ...]
    secondary: tuple[str, ...] = ()
    #: below this many primaries the secondaries join
    min_limit: int = 1


@dataclass(frozen=True)
class NamespacePolicies:
    """Everything configured by namespace; a namespace that is not named has the defaults."""

    isolation: Mapping[str, tuple[IsolationPolicy, ...]] = field(default_factory=dict)
    #: group by namespace; groups compare without regard to case
    anti_affinity_group: Mapping[str, str] = field(default_factory=dict)
    #: domain by broker id
    failure_domains: Mapping[str, str] = field(default_factory=dict)
    #: boundaries by namespace
    boundaries: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: bundles of a namespace without boundaries (Pulsar: defaultNumberOfNamespaceBundles)
    default_bundles: int = 4

    def boundaries_of(self, namespace: str) -> tuple[int, ...]:
        """Return the boundaries a namespace starts with, ascending, first 0, last 0xffffffff.

        The namespaces of heartbeats and SLA monitors have one bundle (`pulsar/broker-0:8080/0x00000000_0xffffffff` in
        real logs): its owner is in the name.
        """
        if pinned_broker(namespace) is not None:
            return FULL_RANGE
        return self.boundaries.get(namespace) or equal_boundaries(self.default_bundles)

    def group_members(self, group: str) -> tuple[str, ...]:
        """Return the namespaces of an anti-affinity group, sorted."""
        wanted = group.casefold()
        return tuple(sorted(name for name, own in self.anti_affinity_group.items() if own.casefold() == wanted))
