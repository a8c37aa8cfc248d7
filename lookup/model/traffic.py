"""Traffic by bundle and topic, as splitters look at it: what each bundle carries, and the topics inside it.

A snapshot of one grid instant; who owns a bundle is not told here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lookup.model.load import NamespaceBundleStats

__all__ = ["NO_TRAFFIC", "TOPIC_TRAFFIC", "Traffic", "topic_traffic"]

#: One row per topic: its hash, messages per second and bytes per second, each in + out.
TOPIC_TRAFFIC = np.dtype([("hash", np.int64), ("rate", np.float64), ("throughput", np.float64)])


def topic_traffic(rows: Iterable[tuple[int, float, float]]) -> NDArray[np.void]:
    """Return rows (hash, rate, throughput) as an array of `TOPIC_TRAFFIC`, shape (n_topics,), read-only."""
    table = np.array(list(rows), dtype=TOPIC_TRAFFIC)
    table.setflags(write=False)
    return table


_NO_TOPICS = topic_traffic(())


@dataclass(frozen=True, eq=False)
class Traffic:
    """What bundles carry at one instant; bundles and namespaces that are not named carry nothing anybody knows of."""

    #: by bundle name, in the order in which a broker goes over its bundles
    stats: Mapping[str, NamespaceBundleStats] = field(default_factory=dict)
    #: by bundle name: arrays of `TOPIC_TRAFFIC`, shape (n_topics,), in any order
    topics: Mapping[str, NDArray[np.void]] = field(default_factory=dict)
    #: bundles by namespace; a namespace that is not there could not be counted
    bundle_counts: Mapping[str, int] = field(default_factory=dict)
    #: names of the bundles that are being split at this instant (Pulsar: state Splitting)
    splitting: frozenset[str] = frozenset()

    def topics_of(self, bundle: str) -> NDArray[np.void]:
        """Return the topics of a bundle as an array of `TOPIC_TRAFFIC`, empty where none is known."""
        return self.topics.get(bundle, _NO_TOPICS)


#: Nothing is known of any bundle.
NO_TRAFFIC = Traffic()
