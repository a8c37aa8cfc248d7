"""Message rates in the long run, as the leader of Pulsar's modular load manager keeps them bundle by bundle."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LongRun"]

#: How many samples a mean in the long run is of; Pulsar: NUM_LONG_SAMPLES.
_SAMPLES = 1000


class LongRun:
    """The mean of each bundle's message rate over what was reported of it.

    With n samples so far the next one moves the mean by 1 / n of the difference: up to 1,000 samples it is their plain
    mean, from then on an exponential one that keeps 0.999 of the past. A bundle starts with its first report, and so do
    the children of a split, of which nothing is known until then.

    Source: TimeAverageMessageData, BundleData and ModularLoadManagerImpl.updateBundleData of apache/pulsar at 17c97eed.
    """

    def __init__(self) -> None:
        self._means: dict[str, tuple[int, float]] = {}

    @property
    def rates(self) -> dict[str, float]:
        """Return the mean message rate by bundle, messages per second, in and out together."""
        return {bundle: mean for bundle, (_, mean) in self._means.items()}

    def take(self, rates: Mapping[str, float]) -> None:
        """Take one report of every bundle in; a bundle that is not named keeps its mean."""
        for bundle, rate in rates.items():
            before, mean = self._means.get(bundle, (0, 0.0))
            count = min(before + 1, _SAMPLES)
            self._means[bundle] = count, ((count - 1) * mean + rate) / count
