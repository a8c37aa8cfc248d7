"""Pulsar's own defaults of the keys by which load managers decide, by release.

Source: `docs/pulsar/configuration.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from lookup.settings.broker import Scalar
from lookup.settings.broker_keys import MODULAR_MANAGER

__all__ = ["IMPL", "PULSAR_DEFAULTS", "Release"]

#: Releases whose defaults are known.
Release = Literal["4.x", "5.0"]

#: Package of the modular manager's strategies.
IMPL = "org.apache.pulsar.broker.loadbalance.impl."

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
