"""Give the bundles of a synthetic cluster traffic, and report it to the policy, in BUNDLES and in LOADS.

A policy sees load as in a replay of BUNDLES, of bundles as last reported, and of brokers by the bundles owned now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import LazyTopBundles
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.traffic import rate_at
from lookup.logs.generator.world import Topics
from lookup.model.load import Load

__all__ = ["CAPACITY", "BundleFigures", "BundleTraffic", "LoadsWriter"]

#: Bytes per second, in and out together, that a broker carries on average, and at which it is full.
_MEAN = 100_000_000.0
CAPACITY = 2.0 * _MEAN
#: Bytes of a message, and how many consumers each goes out to.
_BYTES = 4_096
_FAN_OUT = 2
#: How far the traffic of a bundle strays (deviation of the logarithm), and how much of that is left at the next report.
_STRAY, _MEMORY = 0.3, 0.8
#: Weight of the previous usage in a broker's usage (Pulsar: loadBalancerHistoryResourcePercentage).
_HISTORY = 0.9
_CORES = 8
_HEAP_MIB = 4_096.0
_NETWORK_KBIT = 10_000_000.0

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BundleFigures:
    """The traffic of bundles from one report to the next, in arrays of shape (n_bundles,)."""

    names: Sequence[str]
    #: incoming messages per second in whole 256ths, so that BUNDLES has exactly the values that the policy sees
    messages: Floats
    #: 0 for a bundle that was split
    topics: Ints

    @cached_property
    def rates(self) -> dict[str, float]:
        """Messages per second, in and out together, by bundle that has any."""
        some = np.flatnonzero(self.messages).tolist()
        return {self.names[number]: float(self.messages[number]) * (1 + _FAN_OUT) for number in some}

    def load(self, owner: Ints, registered: NDArray[np.bool_]) -> Load:
        """Build the load that a policy sees.

        Args:
            owner: number of each bundle's owner, -1 for none. It is not changed afterwards.
        """
        count = len(registered)

        def bundles(broker: int) -> Iterator[tuple[float, str, float]]:
            for number in np.flatnonzero((owner == broker) & (self.messages > 0)).tolist():
                rate = self.rates[self.names[number]]
                yield rate * _BYTES, self.names[number], rate

        sums = np.bincount(owner + 1, weights=self.messages, minlength=count + 1)[1:]
        rates = np.where(registered, sums * (1 + _FAN_OUT), np.nan)
        return Load(
            usage=rates * _BYTES / CAPACITY,
            throughput=rates * _BYTES,
            topics=np.bincount(owner + 1, weights=self.topics, minlength=count + 1)[1:].astype(np.int64),
            top_bundles=LazyTopBundles(count, bundles),
            rates=rates,
            long_term_bundle_rates=self.rates,
            bundle_unit="bytes/s",
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield each bundle with topics, and its `NamespaceBundleStats` as Pulsar prints it."""
        for name, messages, topics in zip(self.names, self.messages.tolist(), self.topics.tolist(), strict=True):
            if topics:
                out = messages * _FAN_OUT
                yield (
                    name,
                    (
                        f'{{"msgRateIn":{messages},"msgThroughputIn":{messages * _BYTES},"msgRateOut":{out},'
                        f'"msgThroughputOut":{out * _BYTES},"consumerCount":{topics * _FAN_OUT},'
                        f'"producerCount":{topics},"topics":{topics},"cacheSize":0}}'
                    ),
                )


class BundleTraffic:
    """A generator of bundle traffic, from the popularity of topics, the day's wave, and correlated noise."""

    def __init__(self, settings: GenerateSettings, number: int, topics: Topics) -> None:
        self._dice = np.random.default_rng([settings.seed, number, 1])
        shares = np.bincount(topics.popularity)[: topics.ordinary]
        wave = [rate_at(int(ts)) for ts in np.linspace(settings.start_us, settings.end_us, 100)]
        mean = settings.brokers * _MEAN / (_BYTES * (1 + _FAN_OUT))
        #: messages per second of each topic, where the wave is 1.0
        self._messages = shares / shares.sum() * mean / np.mean(wave)
        self._stray = np.empty(0)

    def usual(self, bundle: Ints, count: int) -> Floats:
        """Compute the mean traffic of each bundle, in incoming messages per second.

        Args:
            bundle: number of each topic's bundle, shape (n_topics,).
        """
        weights = np.bincount(bundle[: len(self._messages)], weights=self._messages, minlength=count)
        return weights.astype(np.float64, copy=False)

    def draw(self, ts: int, names: Sequence[str], bundle: Ints) -> BundleFigures:
        """Draw the figures of a report."""
        chance = self._dice.normal(0.0, _STRAY, len(names))
        before = np.append(self._stray, chance[len(self._stray) :])
        self._stray = _MEMORY * before + np.sqrt(1.0 - _MEMORY**2) * chance
        messages = self.usual(bundle, len(names)) * rate_at(ts) * np.exp(self._stray)
        topics = np.bincount(bundle[: len(self._messages)], minlength=len(names))
        return BundleFigures(names, np.round(messages * 256) / 256, topics)


class LoadsWriter:
    """A writer of LOADS without the cluster, with the traffic of registered brokers and Pulsar's averages."""

    def __init__(self, brokers: Sequence[str]) -> None:
        self._brokers = brokers
        self._usage = np.full(len(brokers), np.nan)
        self._throughput = np.full(len(brokers), np.nan)

    def rows(self, ts: int, load: Load, bundles: Ints) -> Iterator[dict[str, object]]:
        """Yield the rows of an instant.

        Args:
            bundles: number of bundles that each broker owns, shape (n_brokers,).
        """
        usage = np.minimum(1.0, load.usage)
        # NaN in a new value means that the broker is away. It loses its averages, as a restarted process does.
        self._usage = _move_average(self._usage, usage)
        self._throughput = _move_average(self._throughput, load.throughput)
        for number in np.flatnonzero(~np.isnan(usage)).tolist():
            used, bytes_in = float(usage[number]), float(load.throughput[number]) / (1 + _FAN_OUT)
            kbit_in = bytes_in * 8 / 1000
            # Names, order and units as `BrokerLoadData` is printed, cpu in percent of a core and bandwidth in kbit/s.
            report = {
                "cpu": _resource(used * _CORES * 100, _CORES * 100),
                "memory": _resource((0.3 + 0.4 * used) * _HEAP_MIB, _HEAP_MIB),
                "directMemory": _resource(0.5 * used * _HEAP_MIB, _HEAP_MIB),
                "bandwidthIn": _resource(min(kbit_in, _NETWORK_KBIT), _NETWORK_KBIT),
                "bandwidthOut": _resource(min(kbit_in * _FAN_OUT, _NETWORK_KBIT), _NETWORK_KBIT),
                "msgThroughputIn": bytes_in,
                "msgThroughputOut": bytes_in * _FAN_OUT,
                "msgRateIn": bytes_in / _BYTES,
                "msgRateOut": bytes_in / _BYTES * _FAN_OUT,
                "maxResourceUsage": round(used, 6),
                "weightedMaxEMA": round(float(self._usage[number]), 6),
                "msgThroughputEMA": round(float(self._throughput[number]), 3),
                "bundleCount": int(bundles[number]),
                "topics": int(load.topics[number]),
                "updatedAt": ts // 1000,
                "reportedAt": ts // 1000,
            }
            yield {"ts": ts, "broker": self._brokers[number], "load": json.dumps(report)}


def _move_average(average: Floats, value: Floats) -> Floats:
    return np.where(np.isnan(average), value, average * _HISTORY + value * (1.0 - _HISTORY))


def _resource(usage: float, limit: float) -> dict[str, float]:
    return {"usage": round(usage, 3), "limit": limit}
