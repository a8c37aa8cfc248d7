"""Convert a view to the reports of brokers that Pulsar's load manager passes to its shedder and its placement.

Of figures that are known only as a sum, half comes in and half goes out. A broker without report has none
here either, except for placements of the modular manager, whose brokers report before any placement.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from lookup.model import BundleLoad, ClusterView, Load

__all__ = ["extensible_state", "modular_state"]

#: Messages per second, in and out, of an unknown bundle (ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE).
_UNKNOWN_RATE = 100.0
#: Names of the columns of `Load.resources`.
_KEYS = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")


def modular_state(view: ClusterView, counts: Sequence[int] | None) -> dict[str, Any]:
    """Build the modular manager's data of brokers and bundles.

    Args:
        counts: bundles by broker, for a shedder. None for a placement.
    """
    load, ids = view.load, view.brokers.ids
    numbers = np.flatnonzero(view.registered if counts is None else view.registered & ~np.isnan(load.usage)).tolist()
    rates = _figures(load.rates, len(ids))
    columns = (load.long_term_rates, load.rates, load.throughput)
    long_rates = _figures(next(column for column in columns if column is not None), len(ids))
    throughput = _figures(load.throughput, len(ids))
    tops = [load.top_bundles[number] for number in range(len(ids))]
    brokers, (place, sums) = {}, _collect_bundles(load, tops)
    for number, resources in zip(numbers, _iter_resources(view, numbers), strict=True):
        bundles = [place[entry.bundle] for entry in tops[number]]
        brokers[ids[number]] = {
            **resources,
            **_split_in_halves(throughput[number], rates[number]),
            "longRate": long_rates[number],
            "bundles": bundles,
            # Classes count all bundles of a broker, including unknown ones.
            "unknown": 0 if counts is None else counts[number] - len(bundles),
            "version": view.brokers[number].lookup_data.broker_version,
        }
    return {"brokers": brokers, "names": list(place), "sums": b64encode(np.array(sums, "<f8").tobytes()).decode()}


def _collect_bundles(load: Load, tops: Iterable[Sequence[BundleLoad]]) -> tuple[dict[str, int], list[float]]:
    """Find the place of each bundle, and in these places the messages and bytes of its short and its long mean.

    Numbers are sent in their binary form, since texts would take most of the time.
    """
    long_rates, long_throughputs = dict(load.long_term_bundle_rates), load.long_term_bundle_throughputs
    place: dict[str, int] = {}
    sums: list[float] = []
    for entry in chain.from_iterable(tops):
        place[entry.bundle] = len(place)
        rate, throughput = long_rates.get(entry.bundle, _UNKNOWN_RATE), long_throughputs.get(entry.bundle, entry.load)
        sums += (entry.rate, entry.load, rate, throughput)
    # Bundles without an owner.
    for name in sorted(long_rates.keys() - place.keys()):
        place[name] = len(place)
        throughput = long_throughputs.get(name, 0.0)
        sums += (long_rates[name], throughput) * 2
    return place, sums


def extensible_state(view: ClusterView, conf: Mapping[str, Any]) -> dict[str, Any]:
    """Build the data that the brokers of the extensible manager have published.

    Args:
        conf: keys of a `broker.conf`.
    """
    load, ids = view.load, view.brokers.ids
    top = int(conf.get("loadBalancerMaxNumberOfBundlesInBundleLoadReport", 10))
    with_policies = bool(conf.get("loadBalancerSheddingBundlesWithPoliciesEnabled", False))
    numbers = np.flatnonzero(~np.isnan(load.usage)).tolist()
    measured, throughput, rates = load.measured, _figures(load.throughput, len(ids)), _figures(load.rates, len(ids))
    smoothed = _figures(load.smoothed_throughput, len(ids)) if load.smoothed_throughput is not None else throughput
    brokers = {}
    for number, resources in zip(numbers, _iter_resources(view, numbers), strict=True):
        updated = view.now_us if load.updated_us is None else int(load.updated_us[number])
        named = load.reported_bundles(number, top, policies=view.namespaces, with_policies=with_policies)
        about = view.brokers[number].lookup_data
        lookup = {
            "startTimestamp": about.start_timestamp,
            "brokerVersion": about.broker_version,
            "loadManagerClassName": about.load_manager_class_name,
            "properties": dict(about.properties),
        }
        brokers[ids[number]] = {
            **resources,
            **_split_in_halves(throughput[number], rates[number]),
            **{key: value for key, value in lookup.items() if value},
            "maxResourceUsage": float(measured[number]),
            "weightedMaxEMA": float(load.usage[number]),
            "msgThroughputEMA": smoothed[number],
            "updatedAt": (view.now_us - updated) / 1_000_000,
            "topics": int(load.topics[number]),
            "bundles": [[entry.bundle, _split_in_halves(entry.load, entry.rate)] for entry in named],
        }
    return {"brokers": brokers, "available": [ids[number] for number in np.flatnonzero(view.registered).tolist()]}


def _iter_resources(view: ClusterView, numbers: Sequence[int]) -> Iterator[dict[str, list[float]]]:
    load = view.load
    if load.resources is None:
        for used in np.nan_to_num(load.measured)[numbers].tolist():
            yield {"cpu": [100.0 * used, 100.0]}
    else:
        for row in np.nan_to_num(load.resources)[numbers].tolist():
            yield {key: [used, 100.0] for key, used in zip(_KEYS, row, strict=True)}


def _split_in_halves(throughput: float, rate: float) -> dict[str, float]:
    return {
        "msgRateIn": rate / 2,
        "msgRateOut": rate / 2,
        "msgThroughputIn": throughput / 2,
        "msgThroughputOut": throughput / 2,
    }


def _figures(column: Any, count: int) -> list[float]:
    return [0.0] * count if column is None else list(np.nan_to_num(column).tolist())
