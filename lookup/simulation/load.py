"""Compute the load of topics and bundles of a scenario in every minute, and split bundles.

Topics have even hashes, sizes by Zipf's law, swings and jitter, fixed by scenario and seed, equal for all policies.
"""

from __future__ import annotations

import hashlib
import math
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookup.model import NamespaceBundle, NamespaceBundleStats, Split, Traffic, topic_traffic
from lookup.model.bundles import HASH_END, bundle_ranges, equal_boundaries
from lookup.simulation.scenario import NamespaceLoad, ScenarioEvent

__all__ = ["MIB", "BundleTable", "MinuteLoad", "TopicLoads"]

MIB = 1024 * 1024

Floats = NDArray[np.float64]


class TopicLoads:
    """The topics of one namespace and their load over time.

    Args:
        seed: determines which topics are large, and the jitter.
    """

    def __init__(self, spec: NamespaceLoad, seed: int) -> None:
        self.spec = spec
        #: position of each topic on the hash circle, ascending, shape (n_topics,)
        self.hashes: NDArray[np.int64] = (np.arange(spec.topics) * 2 + 1) * (HASH_END + 1) // (2 * spec.topics)
        # The name keeps namespaces of one scenario from having the same jitter.
        self._seed = f"{seed}\x1f{spec.name}"
        self._factors = np.ones(spec.topics)
        shares = 1.0 / np.arange(1, spec.topics + 1) ** spec.skew
        # Large topics are at random places, since by hash the first bundle would be the hottest in every scenario.
        ranks = np.argsort(np.argsort(_draw_uniform(spec.topics, self._seed, 0), kind="stable"), kind="stable")
        self._base = (shares / shares.sum())[ranks] * spec.load * MIB

    def change(self, event: ScenarioEvent) -> None:
        """Apply an event to the load, if it is about this namespace."""
        if event.factor is not None and event.namespace in (None, self.spec.name):
            # Factors apply to the load at the start (see the page on scenarios), so a second replaces the first.
            self._factors[list(event.topics) or slice(None)] = event.factor

    def at(self, minute: int) -> Floats:
        """Compute bytes per second of every topic in a minute, shape (n_topics,)."""
        swing = 1.0 + self.spec.wave * math.sin(2.0 * math.pi * minute / self.spec.period)
        loads: Floats = self._base * self._factors * swing
        if self.spec.jitter:
            # Stream 0 has decided the order of sizes.
            noise = _draw_uniform(self.spec.topics, self._seed, minute + 1)
            loads = loads * (1.0 + self.spec.jitter * (2.0 * noise - 1.0))
        return loads


def _draw_uniform(count: int, seed: str, stream: int) -> Floats:
    """Compute numbers in [0, 1) from their index, the seed and the stream alone, shape (count,)."""
    # numpy.random is banned here, since its streams may change with a release, and the files of scenarios pin their
    # output. Streams begin at random places of one long sequence, so that they do not overlap.
    start = int.from_bytes(hashlib.blake2b(f"{seed}\x1f{stream}".encode(), digest_size=8).digest(), "big")
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    # Two rounds of SplitMix64's finaliser make neighbours unrelated.
    for _ in range(2):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words = words ^ (words >> np.uint64(31))
    # A double holds 53 bits exactly.
    scaled: Floats = (words >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return scaled


@dataclass(frozen=True)
class MinuteLoad:
    """The load of one minute by bundle name. Names are ordered by namespace and range."""

    #: bytes per second
    loads: dict[str, float]
    #: messages per second
    rates: dict[str, float]
    #: one topic of every bundle that has any, which is the name to look up for the bundle
    examples: dict[str, str]
    traffic: Traffic


class BundleTable:
    """The bundles of a scenario's namespaces, with load, and boundaries that splits change.

    Args:
        with_topics: whether splitters need single topics.
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
        """List the names of all bundles, by namespace and range."""
        return [name for namespace in self._boundaries for name in self._list_names(namespace)]

    def split(self, split: Split) -> None:
        """Cut a bundle at the boundaries of the split."""
        namespace = str(NamespaceBundle.parse(split.bundle).namespace)
        for boundary in split.boundaries:
            insort(self._boundaries[namespace], boundary)

    def at(self, minute: int) -> MinuteLoad:
        """Add up the load of every bundle in a minute."""
        counts = {namespace: len(boundaries) - 1 for namespace, boundaries in self._boundaries.items()}
        stats: dict[str, NamespaceBundleStats] = {}
        tables: dict[str, NDArray[np.void]] = {}
        minute_load = MinuteLoad({}, {}, {}, Traffic(stats, tables, counts))
        for namespace, topics in self._loads.items():
            loads, size = topics.at(minute), topics.spec.message_bytes
            # Topics ascend by hash, so those of a bundle are a run.
            starts = np.searchsorted(topics.hashes, self._boundaries[namespace]).tolist()
            for name, (first, after) in zip(self._list_names(namespace), pairwise(starts), strict=True):
                carried = loads[first:after]
                load = float(carried.sum())
                minute_load.loads[name], minute_load.rates[name] = load, load / size
                if len(carried):
                    minute_load.examples[name] = f"persistent://{namespace}/topic-{first}"
                stats[name] = _bundle_stats(topics.spec, load, len(carried))
                # Single topics cost more than all the rest of a minute, and without a splitter no part reads them.
                if self._with_topics:
                    rows = zip(topics.hashes[first:after].tolist(), carried.tolist(), strict=True)
                    tables[name] = topic_traffic((hashed, load / size, load) for hashed, load in rows)
        return minute_load

    def _list_names(self, namespace: str) -> list[str]:
        return [f"{namespace}/{bounds}" for bounds in bundle_ranges(self._boundaries[namespace])]


def _bundle_stats(spec: NamespaceLoad, load: float, topics: int) -> NamespaceBundleStats:
    # Half of a topic's load comes in, half goes out.
    half, rate, connected = load / 2.0, load / spec.message_bytes / 2.0, topics * spec.clients
    return NamespaceBundleStats(
        msg_rate_in=rate,
        msg_rate_out=rate,
        msg_throughput_in=half,
        msg_throughput_out=half,
        producer_count=connected,
        consumer_count=connected,
        topics=topics,
    )
