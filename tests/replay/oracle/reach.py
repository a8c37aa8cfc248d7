"""Where the bundles of a namespace may be in each tick: by isolation, by what they may have kept, or anywhere."""

from __future__ import annotations

import re
from collections import defaultdict

from lookup.model.names import pinned_broker
from lookup.settings.policy import PolicySpec
from tests.replay.oracle.world import World

__all__ = ["reaches"]


def reaches(world: World) -> list[dict[str, frozenset[str]]]:
    """Return by tick and namespace the brokers that may have its bundles under some policy."""
    are_isolated = all(map(_is_isolated, world.settings.policies))
    kept, restored, present = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set), set[str]()
    for bundle, broker in world.initial.items():
        restored[bundle.rpartition("/")[0]].add(broker)
    found = []
    for tick in world.ticks:
        if tick.registry is not None:
            present = {broker.id for broker, is_in in zip(*tick.registry, strict=True) if is_in}
        of_tick = {}
        for namespace in world.first_boundaries:
            admitted = {broker for broker in present if not are_isolated or _admits(world, namespace, broker)}
            if world.section.ownership == "exclusive":
                # What has stayed since it was admitted, or was there before the run.
                kept[namespace] = (kept[namespace] | admitted) & present
                admitted = (kept[namespace] | restored[namespace]) & present
            is_pinned = pinned_broker(namespace) is not None
            of_tick[namespace] = frozenset(present if is_pinned or not admitted else admitted)
        found.append(of_tick)
    return found


def _is_isolated(policy: PolicySpec) -> bool:
    filters = policy.filters
    if policy.second_choice is not None:
        filters = filters[: policy.second_choice.get("filters", 0)]
    return any(part.use == "isolation" for part in filters)


def _admits(world: World, namespace: str, broker: str) -> bool:
    """Return whether the isolation policies let a namespace on a broker, whichever others there are."""
    rules = {entry.name: entry.isolation for entry in world.settings.namespaces}
    patterns = [
        pattern
        for name, of_namespace in rules.items()
        for rule in of_namespace
        for pattern in ((*rule.primary, *rule.secondary) if name == namespace else rule.primary)
        if name == namespace or not rules.get(namespace)
    ]
    is_named = any(re.fullmatch(pattern, broker.rpartition(":")[0]) for pattern in patterns)
    return is_named == bool(rules.get(namespace))
