"""List Pulsar's keys of load managers, by name, with their defaults by release.

Source: `docs/pulsar/configuration.md` (ServiceConfiguration of Pulsar 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import PlainValidator

from lookup.model.quoting import closest, shown

__all__ = [
    "BUNDLES_KEY", "IMPL", "LOAD_MANAGER_KEYS", "MODULAR_MANAGER", "MOST_BUNDLES", "NOT_DYNAMIC", "NUMBERS",
    "PULSAR_DEFAULTS", "Release", "Scalar", "is_load_manager_key", "near_miss",
]  # fmt: skip


def _scalar(written: object) -> object:
    if isinstance(written, (bool, int, float, str)):
        return written
    raise ValueError(f"should be a text, a number, true or false, not {shown(written)}")


#: A value of a broker.conf.
Scalar = Annotated[bool | int | float | str, PlainValidator(_scalar, json_schema_input_type=bool | int | float | str)]

#: Releases whose defaults are known.
Release = Literal["4.x", "5.0"]

#: Package of the modular manager's strategies.
IMPL = "org.apache.pulsar.broker.loadbalance.impl."
#: The load manager of a broker whose configuration names none.
MODULAR_MANAGER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"

#: Bundles of a new namespace, and the most that the evaluation of a log may have.
BUNDLES_KEY, MOST_BUNDLES = "defaultNumberOfNamespaceBundles", 1 << 16

#: Keys that count only after a restart, in 4.x; all others of the load managers can be changed in a running cluster.
#: Brokers take two classes as well while they run: that of the shedder is read at the start, and another load manager
#: takes over in all brokers at once, which is for a restart, one broker after the other.
NOT_DYNAMIC = frozenset(
    {
        BUNDLES_KEY,
        "loadBalancerEnabled",
        "loadBalancerLoadPlacementStrategy",
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerSplitIntervalMinutes",
        "loadManagerClassName",
        "lowerBoundarySheddingEnabled",
    }
)

_FOUR: Mapping[str, Scalar] = {
    "atLeastOneBundleSelected": True,
    "defaultNamespaceBundleSplitAlgorithm": "range_equally_divide",
    "failureDomainsEnabled": False,
    "flowOrQpsDifferenceThresholdPercentage": 10,
    "loadBalanceSheddingDelayInSeconds": 180,
    "loadBalancerAutoBundleSplitEnabled": True,
    "loadBalancerAutoUnloadSplitBundlesEnabled": True,
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": 10,
    "loadBalancerAvgShedderHighThreshold": 40,
    "loadBalancerAvgShedderHitCountHighThreshold": 2,
    "loadBalancerAvgShedderHitCountLowThreshold": 8,
    "loadBalancerAvgShedderLowThreshold": 15,
    "loadBalancerBandwidthInResourceWeight": 1.0,
    "loadBalancerBandwidthOutResourceWeight": 1.0,
    "loadBalancerBrokerLoadDataTTLInSeconds": 1800,
    "loadBalancerBrokerLoadTargetStd": 0.25,
    "loadBalancerBrokerMaxTopics": 50_000,
    "loadBalancerBrokerOverloadedThresholdPercentage": 85,
    "loadBalancerBrokerThresholdShedderPercentage": 10,
    "loadBalancerBundleUnloadMinThroughputThreshold": 10,
    "loadBalancerCPUResourceWeight": 1.0,
    "loadBalancerDebugModeEnabled": False,
    "loadBalancerDirectMemoryResourceWeight": 0.0,
    "loadBalancerDistributeBundlesEvenlyEnabled": True,
    "loadBalancerEnabled": True,
    "loadBalancerHistoryResourcePercentage": 0.9,
    "loadBalancerLoadPlacementStrategy": f"{IMPL}LeastLongTermMessageRate",
    "loadBalancerLoadSheddingStrategy": f"{IMPL}ThresholdShedder",
    "loadBalancerMaxNumberOfBrokerSheddingPerCycle": 3,
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport": 10,
    "loadBalancerMaxNumberOfBundlesToSplitPerCycle": 10,
    "loadBalancerMemoryResourceWeight": 0.0,
    "loadBalancerMsgRateDifferenceShedderThreshold": 50,
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 4,
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": 100,
    "loadBalancerNamespaceBundleMaxMsgRate": 30_000,
    "loadBalancerNamespaceBundleMaxSessions": 1000,
    "loadBalancerNamespaceBundleMaxTopics": 1000,
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 3,
    "loadBalancerNamespaceMaximumBundles": 128,
    "loadBalancerSheddingBundlesWithPoliciesEnabled": False,
    "loadBalancerSheddingConditionHitCountThreshold": 3,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerTransferEnabled": True,
    "loadManagerClassName": MODULAR_MANAGER,
    "lowerBoundarySheddingEnabled": False,
    "maxUnloadBundleNumPerShedding": -1,
    "maxUnloadPercentage": 0.2,
    "minUnloadMessage": 1000,
    "minUnloadMessageThroughput": 1_048_576,
    "preferLaterVersions": False,
}
_FIVE: Mapping[str, Scalar] = {
    **_FOUR,
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
    "loadBalancerLoadPlacementStrategy": f"{IMPL}AvgShedder",
    "loadBalancerLoadSheddingStrategy": f"{IMPL}AvgShedder",
    "maxUnloadPercentage": 0.5,
}

#: Defaults by release, in Pulsar's units.
PULSAR_DEFAULTS: Mapping[str, Mapping[str, Scalar]] = {"4.x": _FOUR, "5.0": _FIVE}


#: Keys whose values are numbers: those with such a default above, and others.
NUMBERS = frozenset(
    {
        *(key for key, value in _FOUR.items() if not isinstance(value, str | bool)),
        BUNDLES_KEY,
        "loadBalancerBandwithInResourceWeight",
        "loadBalancerBandwithOutResourceWeight",
        "loadBalancerBrokerComfortLoadLevelPercentage",
        "loadBalancerBrokerUnderloadedThresholdPercentage",
        "loadBalancerHostUsageCheckIntervalMinutes",
        "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis",
        "loadBalancerOverrideBrokerNicSpeedGbps",
        "loadBalancerReportUpdateMaxIntervalMinutes",
        "loadBalancerReportUpdateMinIntervalMillis",
        "loadBalancerReportUpdateThresholdPercentage",
        "loadBalancerResourceQuotaUpdateIntervalMinutes",
        "loadBalancerServiceUnitStateMaxConcurrentOverrides",
        "loadBalancerServiceUnitStateMonitorIntervalInSeconds",
        "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds",
        "loadBalancerSheddingGracePeriodMinutes",
        "loadBalancerSheddingIntervalMinutes",
        "loadBalancerSplitIntervalMinutes",
        "namespaceBundleUnloadingTimeoutMs",
    }
)

#: Keys known by name; others that begin with `loadBalancer` are kept as well, for later versions of Pulsar.
LOAD_MANAGER_KEYS = frozenset(
    {
        *(key for key in _FOUR if key != "loadManagerClassName"),
        *NUMBERS,
        "loadBalancerMultiPhaseBundleUnload",
        "loadBalancerOverrideBrokerNics",
        "loadBalancerPlacementStrategy",
        "loadBalancerServiceUnitTableViewSyncer",
        "loadBalancerSheddingExcludedNamespaces",
        "loadManagerServiceUnitStateTableViewClassName",
        "supportedNamespaceBundleSplitAlgorithms",
        "topicBundleAssignmentStrategy",
    }
)


def is_load_manager_key(key: str) -> bool:
    """Return whether a key of a `broker.conf` belongs to the load manager."""
    return key.startswith("loadBalancer") or key in LOAD_MANAGER_KEYS


@lru_cache(maxsize=4096)
def near_miss(key: str) -> str | None:
    """Return the known key that an unknown one was probably meant to be.

    Of the keys of Pulsar's that are no load manager's, none is taken for a slip.
    """
    known = (*LOAD_MANAGER_KEYS, "loadManagerClassName")
    # The cutoff is stricter than that of other names: the keys share long beginnings, so that unlike ones look alike.
    return None if key in known else closest(key, known, cutoff=0.8)
