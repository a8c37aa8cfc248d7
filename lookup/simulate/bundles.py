"""The bundles of a scenario's namespaces: their boundaries, which splits change, and what they carry in a minute."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookup.model.bundles import NamespaceBundle, bundle_ranges, equal_boundaries
from lookup.model.decision import Split
from lookup.model.load import NamespaceBundleStats
from lookup.model.traffic import Traffic, topic_traffic
from lookup.simulate.load import TopicLoads
from lookup.simulate.scenario import NamespaceLoad

__all__ = ["BundleTable", "MinuteLoad"]


@dataclass(frozen=True)
class MinuteLoad:
    """What one minute brings."""

    #: bytes per second by bundle name, in the order of names' namespaces and ranges
    loads: dict[str, float]
    #: messages per second by bundle name
    rates: dict[str, float]
    #: how many topics, by bundle name
    topics: dict[str, int]
    #: one of them, for bundles that have any; a name to look up, which stands for any other in the bundle
    examples: dict[str, str]
    traffic: Traffic


class BundleTable:
    """Boundaries by namespace, changed by splits.

    Args:
        with_topics: whether splitters need to know single topics.
    """

    def __init__(self, namespaces: Sequence[NamespaceLoad], seed: int, *, with_topics: bool) -> None:
        self._loads = {spec.name: TopicLoads(spec, seed) for spec in namespaces}
        self._boundaries = {spec.name: list(equal_boundaries(spec.bundles)) for spec in namespaces}
        self._with_topics = with_topics

    @property
    def topics(self) -> Iterator[TopicLoads]:
        """Yield the topics of each namespace."""
        yield from self._loads.values()

    def names(self) -> list[str]:
        """Return the names of all bundles, by namespace and range."""
        return [name for namespace in self._boundaries for name in self._names(namespace)]

    def split(self, split: Split) -> None:
        """Cut a bundle."""
        namespace = str(NamespaceBundle.parse(split.bundle).namespace)
        for boundary in split.boundaries:
            insort(self._boundaries[namespace], boundary)

    def at(self, minute: int) -> MinuteLoad:
        """Add up what every bundle carries in a minute."""
        found = MinuteLoad({}, {}, {}, {}, Traffic(bundle_counts=self._counts()))
        stats: dict[str, NamespaceBundleStats] = {}
        tables: dict[str, NDArray[np.void]] = {}
        for namespace, topics in self._loads.items():
            loads = topics.at(minute)
            for name, inside in self._runs(namespace):
                self._add(found, name, topics, loads[inside], inside.start)
                if self._with_topics:
                    stats[name], tables[name] = _traffic_of(topics, inside, loads[inside])
        return replace(found, traffic=replace(found.traffic, stats=stats, topics=tables))

    def _counts(self) -> dict[str, int]:
        return {namespace: len(boundaries) - 1 for namespace, boundaries in self._boundaries.items()}

    def _names(self, namespace: str) -> list[str]:
        return [f"{namespace}/{one}" for one in bundle_ranges(self._boundaries[namespace])]

    def _runs(self, namespace: str) -> Iterator[tuple[str, slice]]:
        # Topics ascend by hash, so those of a bundle are a run.
        starts = np.searchsorted(self._loads[namespace].hashes, self._boundaries[namespace]).tolist()
        for name, (first, after) in zip(self._names(namespace), pairwise(starts), strict=True):
            yield name, slice(first, after)

    def _add(self, found: MinuteLoad, name: str, topics: TopicLoads, carried: NDArray[np.float64], first: int) -> None:
        load = float(carried.sum())
        found.loads[name], found.rates[name] = load, load / topics.spec.message_bytes
        found.topics[name] = len(carried)
        if len(carried):
            found.examples[name] = f"persistent://{topics.spec.name}/topic-{first}"


def _traffic_of(
    topics: TopicLoads, inside: slice, carried: NDArray[np.float64]
) -> tuple[NamespaceBundleStats, NDArray[np.void]]:
    size = topics.spec.message_bytes
    rows = zip(topics.hashes[inside].tolist(), carried.tolist(), strict=True)
    table = topic_traffic((hashed, load / size, load) for hashed, load in rows)
    return _stats(float(carried.sum()), size, len(carried), topics.spec.clients), table


def _stats(load: float, size: float, topics: int, clients: int) -> NamespaceBundleStats:
    # Half of what a topic carries comes in, half goes out.
    half, rate, connected = load / 2.0, load / size / 2.0, topics * clients
    return NamespaceBundleStats(
        msg_rate_in=rate,
        msg_rate_out=rate,
        msg_throughput_in=half,
        msg_throughput_out=half,
        producer_count=connected,
        consumer_count=connected,
        topics=topics,
    )
