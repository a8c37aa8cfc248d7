"""Keep the modular manager's leader data of each bundle, which are a short and a long mean of its traffic.

Source: BundleData, TimeAverageMessageData and ModularLoadManagerImpl.updateBundleData of Pulsar 4.2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["BundleMeans", "TrafficRates"]

#: Samples of the two means (Pulsar: NUM_SHORT_SAMPLES, NUM_LONG_SAMPLES).
_SHORT, _LONG = 10, 1000


class TrafficRates(NamedTuple):
    """Traffic of a bundle, in and out together."""

    #: per second
    messages: float
    bytes: float


class BundleMeans:
    """The mean traffic of each bundle over its last reports, once of about ten and once of about a thousand.

    With n samples so far the next one moves a mean by 1 / n of the difference. Up to the number of samples that is
    their plain mean, and then an exponential one. A bundle starts with its first report, and so do a split's children.

    Args:
        forgets: whether a bundle without a report is dropped, as in the modular manager. For example, its owner was
            lost. Its traffic is then unknown until the next report.
    """

    def __init__(self, *, forgets: bool) -> None:
        self._forgets = forgets
        self._samples: dict[str, int] = {}
        #: by bundle
        self.short: dict[str, TrafficRates] = {}
        self.long: dict[str, TrafficRates] = {}

    def take(self, reported: Mapping[str, TrafficRates]) -> None:
        """Add one report of every bundle that a broker owns."""
        if self._forgets:
            for bundle in [bundle for bundle in self._samples if bundle not in reported]:
                del self._samples[bundle], self.short[bundle], self.long[bundle]
        for bundle, rates in reported.items():
            # A count that stays at the limit makes the mean exponential, as Pulsar's does.
            count = self._samples[bundle] = min(self._samples.get(bundle, 0) + 1, _LONG)
            self.short[bundle] = _update_mean(self.short.get(bundle), rates, min(count, _SHORT))
            self.long[bundle] = _update_mean(self.long.get(bundle), rates, count)


def _update_mean(mean: TrafficRates | None, sample: TrafficRates, count: int) -> TrafficRates:
    if mean is None:
        return sample
    messages = ((count - 1) * mean.messages + sample.messages) / count
    return TrafficRates(messages, ((count - 1) * mean.bytes + sample.bytes) / count)
