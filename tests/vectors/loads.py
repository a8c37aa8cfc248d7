"""Areas of load figures: section 4 of the vectors' README, and how other groups read the same figures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from lookup.engine.ballots import roll
from lookup.engine.reporting import Cadence, percent_change
from lookup.model.bundles import IsolationPolicy, NamespacePolicies, bundle_name_parts
from lookup.model.load import top_bundles
from lookup.model.load_data import (
    BrokerLoadData,
    NamespaceBundleStats,
    ResourceUsage,
    broker_load_from_json,
    bundle_stats_from_json,
)
from tests.engine.reporter import LoadSample, ResourceWeights, SystemResourceUsage, publication, updated_load
from tests.vectors.reading import CONFIG_DEFAULTS, Handler, configuration, only, usage

__all__ = ["AREAS", "RESOURCES", "UPDATE_KEYS", "bundle_stats", "load_sample", "resource_usage", "resource_weights"]

#: Keys of usage pairs.
RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
_TRAFFIC = ("msgThroughputIn", "msgThroughputOut", "msgRateIn", "msgRateOut", "bundleCount", "topics")
_STATS = (*_TRAFFIC[:4], "topics", "consumerCount", "producerCount", "cacheSize")
_HISTORY = "loadBalancerHistoryResourcePercentage"
#: Keys that say how a sample becomes a report.
UPDATE_KEYS = (
    "loadBalancerCPUResourceWeight",
    "loadBalancerMemoryResourceWeight",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    _HISTORY,
)
_WITH_POLICIES = "loadBalancerSheddingBundlesWithPoliciesEnabled"
#: How often a property in words is tried.
_TRIES = 100
#: Equal and not zero: bundles without throughput are no candidates.
_SOME_TRAFFIC = NamespaceBundleStats(msg_throughput_in=1.0, msg_throughput_out=1.0)


# What an input's figures are in the model


def resource_usage(given: Mapping[str, Any]) -> SystemResourceUsage:
    """Read usage pairs by resource; absent ones are empty."""
    cpu, memory, direct, bandwidth_in, bandwidth_out = (
        usage(given[name]) if name in given else ResourceUsage() for name in RESOURCES
    )
    return SystemResourceUsage(cpu, memory, direct, bandwidth_in, bandwidth_out)


def resource_weights(given: Mapping[str, Any]) -> ResourceWeights:
    """Read the weights of resources and the share of history from an input's configuration."""
    config = configuration(given)
    return ResourceWeights(
        cpu=config["loadBalancerCPUResourceWeight"],
        memory=config["loadBalancerMemoryResourceWeight"],
        direct_memory=config["loadBalancerDirectMemoryResourceWeight"],
        bandwidth_in=config["loadBalancerBandwidthInResourceWeight"],
        bandwidth_out=config["loadBalancerBandwidthOutResourceWeight"],
        history=config[_HISTORY],
    )


def load_sample(given: Mapping[str, Any]) -> LoadSample:
    """Read everything a broker measures; absent numbers are 0."""
    only(given, *RESOURCES, *_TRAFFIC)
    return LoadSample(resource_usage(given), *(given.get(name, 0) for name in _TRAFFIC))


def bundle_stats(given: Mapping[str, Any]) -> NamespaceBundleStats:
    """Read partial `NamespaceBundleStats`; absent numbers are 0."""
    only(given, *_STATS)
    return bundle_stats_from_json(json.dumps(given))


def _updates(samples: Sequence[LoadSample], weights: ResourceWeights) -> list[BrokerLoadData]:
    """Return one fresh object after each of its updates."""
    states = [BrokerLoadData()]
    for now_ms, sample in enumerate(samples, start=1):
        states.append(updated_load(states[-1], sample, now_ms, weights=weights))
    return states[1:]


# Areas


def _copy(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "action")
    # Records are frozen; what copies one between brokers is its message.
    source = _populated()
    return {"all fields equal to the source object": broker_load_from_json(_to_json(source)) == source}


def _to_json(data: BrokerLoadData) -> str:
    return json.dumps(_written(data))


def _written(record: BrokerLoadData | ResourceUsage) -> dict[str, Any]:
    named = ((_json_name(entry.name), getattr(record, entry.name)) for entry in fields(record))
    return {key: _written(value) if isinstance(value, ResourceUsage) else value for key, value in named}


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("EMA" if part == "ema" else part.capitalize() for part in rest)


def _populated() -> BrokerLoadData:
    """Return a report without a single default, each figure another."""
    return BrokerLoadData(
        **{entry.name: _FILLINGS[str(entry.type)](n) for n, entry in enumerate(fields(BrokerLoadData))}
    )


#: By a field's type: some value for the n-th field that is no field's default.
_FILLINGS: Mapping[str, Callable[[int], Any]] = {
    "ResourceUsage": lambda n: ResourceUsage(n + 0.25, n + 0.5),
    "float": lambda n: n + 0.75,
    "int": lambda n: n + 100,
}


def _defaults(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "action")
    return _by_json_name(BrokerLoadData())


def _by_json_name(data: BrokerLoadData) -> dict[str, Any]:
    named: dict[str, Any] = json.loads(_to_json(data))
    return named


def _throughput_ema(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", "msgThroughput_in_plus_out", *CONFIG_DEFAULTS)
    samples = [LoadSample(msg_throughput_in=value) for value in given["msgThroughput_in_plus_out"]]
    return {"msgThroughputEMA": [state.msg_throughput_ema for state in _updates(samples, resource_weights(given))]}


def _update(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", "updates", *CONFIG_DEFAULTS)
    states = _updates([load_sample(sample) for sample in given["updates"]], resource_weights(given))
    return {f"after_{count}": _by_json_name(state) for count, state in enumerate(states, start=1)}


def _compare(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "a", "b")
    one, other = bundle_stats(given["a"]).rank, bundle_stats(given["b"]).rank
    return {"sign": (one > other) - (one < other)}


def _print(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, *RESOURCES)
    return {"text": str(resource_usage(given))}


def _percent_change(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "old", "new")
    published, current = (BrokerLoadData(msg_rate_in=given[name]) for name in ("old", "new"))
    return {
        "percent": float(percent_change(given["old"], given["new"])),
        "publishes_with_default_threshold_10": publication(Cadence(), published, current, 0) is not None,
    }


def _percent(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "usage", "limit")
    percent = ResourceUsage(given["usage"], given["limit"]).percent_usage
    return {"percentUsage": percent, "percentUsage_div_100": percent / 100}


def _topk(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    if "msgRateIn" in given:
        return _topk_ranking(given)
    if "values" in given:
        only(given, "values")
        return {"invariant": all(map(_selects_the_greatest, range(_TRIES)))}
    only(given, "bundles", "k", "stats")
    stats = {f"t/n/{index}": _close_to_thresholds(index) for index in range(given["bundles"])}
    return {"must_not_raise": len(top_bundles(stats, given["k"])) <= given["k"]}


def _topk_ranking(given: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", "msgRateIn", "k", "isolation_policy_namespaces", "anti_affinity_namespaces", _WITH_POLICIES)
    stats = {bundle: replace(_SOME_TRAFFIC, msg_rate_in=rate) for bundle, rate in given["msgRateIn"].items()}
    chosen = top_bundles(
        stats, given["k"], policies=_policies(given), with_policies=configuration(given)[_WITH_POLICIES]
    )
    return {"order": chosen}


def _policies(given: Mapping[str, Any]) -> NamespacePolicies:
    namespaces = {bundle_name_parts(bundle)[0] for bundle in given["msgRateIn"]}
    patterns = given.get("isolation_policy_namespaces", ())
    isolated = {name for name in namespaces for pattern in patterns if re.fullmatch(pattern, name)}
    return NamespacePolicies(
        isolation={name: (IsolationPolicy(primary=(".*",)),) for name in isolated},
        anti_affinity_group=dict.fromkeys(given.get("anti_affinity_namespaces", ()), "group"),
    )


def _selects_the_greatest(attempt: int) -> bool:
    """Tell whether the selection from a short random list equals the start of the whole list in descending order."""
    values = [_drawn(attempt, f"value{index}", 10) for index in range(_drawn(attempt, "length", 10) + 1)]
    k = _drawn(attempt, "k", len(values)) + 1
    # One more message per 100 is one step of the order.
    stats = {f"t/n/{index}": replace(_SOME_TRAFFIC, msg_rate_in=100.0 * value) for index, value in enumerate(values)}
    chosen = top_bundles(stats, k)
    return [stats[bundle].msg_rate_in / 100 for bundle in reversed(chosen)] == sorted(values, reverse=True)[:k]


def _close_to_thresholds(index: int) -> NamespaceBundleStats:
    """Draw figures that differ by about one step of the order."""
    return NamespaceBundleStats(
        msg_throughput_in=1e5 * (1 + roll(0, "in", str(index), 0)),
        msg_throughput_out=1e5 * (1 + roll(0, "out", str(index), 0)),
        msg_rate_in=100 * roll(0, "rate", str(index), 0),
        msg_rate_out=100 * roll(0, "rate", str(index), 1),
        consumer_count=_drawn(0, f"consumers{index}", 1000),
        producer_count=_drawn(0, f"producers{index}", 1000),
        topics=_drawn(0, f"topics{index}", 1000),
        cache_size=_drawn(0, f"cache{index}", 200_000),
    )


def _drawn(attempt: int, what: str, below: int) -> int:
    return int(roll(attempt, "topk", what, 0) * below)


AREAS: Mapping[str, Handler] = {
    "broker_load_data.copy": _copy,
    "broker_load_data.defaults": _defaults,
    "broker_load_data.throughput_ema": _throughput_ema,
    "broker_load_data.update": _update,
    "bundle_stats.compare": _compare,
    "local_broker_data.print": _print,
    "reporter.percent_change": _percent_change,
    "resource_usage.percent": _percent,
    "topk": _topk,
}
