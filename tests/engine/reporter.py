"""One broker's load reports, sample by sample: the oracle of `ReportBoard`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lookup.engine.reporting import Cadence, Publication
from lookup.model import BrokerLoadData, LoadSample, ResourceWeights, updated_load


@dataclass
class LoadReporter:
    """One broker's reporting in closed loop: it takes every sample, and `published` is what the others see.

    Every sample moves the averages, published or not. A metrics scrape of Pulsar's takes a sample as well: hand it over
    like any other, and the averages move as upstream's do.

    Args:
        cadence: when to publish.
        weights: of resources, and the share of history.
    """

    cadence: Cadence = Cadence()
    weights: ResourceWeights = ResourceWeights()
    #: the broker's own figures as of its last sample
    current: BrokerLoadData = BrokerLoadData()
    #: what the other brokers see; a broker that never published looks full
    published: BrokerLoadData = BrokerLoadData()

    def take(self, sample: LoadSample, now_ms: int, *, forced: bool = False) -> Publication | None:
        """Take one sample in and publish where it is due; return why, None where it is not.

        Args:
            now_ms: ms since the epoch, not before that of the last sample.
        """
        self.current = updated_load(self.current, sample, now_ms, weights=self.weights)
        why = self.cadence.reason(self.published, self.current, now_ms, forced=forced)
        if why is not None:
            self.current = self.published = replace(self.current, reported_at=now_ms)
        return why
