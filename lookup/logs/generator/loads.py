"""Load reports that follow the traffic: what each broker served since the last report, as Pulsar's `BrokerLoadData`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["LoadReports"]

#: How a broker's usage remembers (Pulsar: loadBalancerHistoryResourcePercentage).
_HISTORY = 0.9
#: One unit of weight stands for this many messages a second in, and this many bytes of each.
_MESSAGES = 50.0
_BYTES = 1_024.0
#: Every message goes out to this many consumers.
_FAN_OUT = 2.0
_CORES = 8
_HEAP_MIB = 4_096.0
_NETWORK_KBIT = 10_000_000.0


class LoadReports:
    """The load of one cluster's brokers: sums since the last report, and the averages Pulsar keeps.

    Args:
        capacity: weight per second at which a broker is full.
    """

    def __init__(self, brokers: tuple[str, ...], capacity: float) -> None:
        self._brokers = brokers
        self._capacity = capacity
        self._served = np.zeros(len(brokers))
        self._usage_average = np.full(len(brokers), np.nan)
        self._throughput_average = np.full(len(brokers), np.nan)

    def add(self, broker: NDArray[np.int32], weight: NDArray[np.float64]) -> None:
        """Count lookups served: brokers by number, -1 for none."""
        answered = broker >= 0
        self._served += np.bincount(broker[answered], weights=weight[answered], minlength=len(self._brokers))

    def report(
        self,
        ts: int,
        seconds: float,
        *,
        registered: NDArray[np.intp],
        bundles: NDArray[np.int64],
        topics: NDArray[np.int64],
    ) -> Iterator[dict[str, object]]:
        """Yield LOADS rows, without the cluster, of the registered brokers and begin to count anew.

        Args:
            ts: the instant, µs.
            seconds: since the last report.
            bundles: owned by each broker, shape (n_brokers,).
            topics: served by each broker, shape (n_brokers,).
        """
        rate = self._served / seconds
        usage = np.minimum(1.0, rate / self._capacity)
        throughput = rate * _MESSAGES * _BYTES
        self._usage_average = _moved(self._usage_average, usage)
        self._throughput_average = _moved(self._throughput_average, throughput * (1.0 + _FAN_OUT))
        for number in registered.tolist():
            load = self._load(number, float(usage[number]), float(rate[number]))
            counts = {"bundleCount": int(bundles[number]), "topics": int(topics[number])}
            times = {"updatedAt": ts // 1000, "reportedAt": ts // 1000}
            yield {"ts": ts, "broker": self._brokers[number], "load": json.dumps({**load, **counts, **times})}
        gone = np.setdiff1d(np.arange(len(self._brokers)), registered)
        self._usage_average[gone] = self._throughput_average[gone] = np.nan
        self._served[:] = 0.0

    def _load(self, number: int, usage: float, rate: float) -> dict[str, object]:
        messages = rate * _MESSAGES
        kbit_in = messages * _BYTES * 8 / 1000
        return {
            "cpu": _resource(usage * _CORES * 100, _CORES * 100),
            "memory": _resource((0.3 + 0.4 * usage) * _HEAP_MIB, _HEAP_MIB),
            "directMemory": _resource(0.5 * usage * _HEAP_MIB, _HEAP_MIB),
            "bandwidthIn": _resource(min(kbit_in, _NETWORK_KBIT), _NETWORK_KBIT),
            "bandwidthOut": _resource(min(kbit_in * _FAN_OUT, _NETWORK_KBIT), _NETWORK_KBIT),
            "msgThroughputIn": round(messages * _BYTES, 3),
            "msgThroughputOut": round(messages * _BYTES * _FAN_OUT, 3),
            "msgRateIn": round(messages, 3),
            "msgRateOut": round(messages * _FAN_OUT, 3),
            "maxResourceUsage": round(usage, 6),
            "weightedMaxEMA": round(float(self._usage_average[number]), 6),
            "msgThroughputEMA": round(float(self._throughput_average[number]), 3),
        }


def _moved(average: NDArray[np.float64], value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move averages towards new values; an average that has not begun takes the value."""
    return np.where(np.isnan(average), value, average * _HISTORY + value * (1.0 - _HISTORY))


def _resource(usage: float, limit: float) -> dict[str, float]:
    return {"usage": round(usage, 3), "limit": limit}
