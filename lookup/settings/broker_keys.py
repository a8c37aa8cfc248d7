"""Keys of Pulsar's `broker.conf` by which load managers are configured.

Source: `docs/pulsar/configuration.md` (ServiceConfiguration of Pulsar 4).
"""

from __future__ import annotations

from lookup.model.quoting import closest

__all__ = ["LOAD_MANAGER_KEYS", "MODULAR_MANAGER", "is_load_manager_key", "near_miss"]

#: What a broker runs whose configuration does not say otherwise.
MODULAR_MANAGER = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"

#: Keys known by name; others that begin with `loadBalancer` are kept as well, for later versions of Pulsar.
LOAD_MANAGER_KEYS = (
    "atLeastOneBundleSelected",
    "defaultNamespaceBundleSplitAlgorithm",
    "defaultNumberOfNamespaceBundles",
    "failureDomainsEnabled",
    "flowOrQpsDifferenceThresholdPercentage",
    "loadBalanceSheddingDelayInSeconds",
    "loadBalancerAutoBundleSplitEnabled",
    "loadBalancerAutoUnloadSplitBundlesEnabled",
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage",
    "loadBalancerAvgShedderHighThreshold",
    "loadBalancerAvgShedderHitCountHighThreshold",
    "loadBalancerAvgShedderHitCountLowThreshold",
    "loadBalancerAvgShedderLowThreshold",
    "loadBalancerBandwidthInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight",
    "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwithOutResourceWeight",
    "loadBalancerBrokerComfortLoadLevelPercentage",
    "loadBalancerBrokerLoadDataTTLInSeconds",
    "loadBalancerBrokerLoadTargetStd",
    "loadBalancerBrokerMaxTopics",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "loadBalancerBrokerThresholdShedderPercentage",
    "loadBalancerBrokerUnderloadedThresholdPercentage",
    "loadBalancerBundleUnloadMinThroughputThreshold",
    "loadBalancerCPUResourceWeight",
    "loadBalancerDebugModeEnabled",
    "loadBalancerDirectMemoryResourceWeight",
    "loadBalancerDistributeBundlesEvenlyEnabled",
    "loadBalancerEnabled",
    "loadBalancerHistoryResourcePercentage",
    "loadBalancerHostUsageCheckIntervalMinutes",
    "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis",
    "loadBalancerLoadPlacementStrategy",
    "loadBalancerLoadSheddingStrategy",
    "loadBalancerMaxNumberOfBrokerSheddingPerCycle",
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport",
    "loadBalancerMaxNumberOfBundlesToSplitPerCycle",
    "loadBalancerMemoryResourceWeight",
    "loadBalancerMsgRateDifferenceShedderThreshold",
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
    "loadBalancerMultiPhaseBundleUnload",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "loadBalancerNamespaceBundleMaxMsgRate",
    "loadBalancerNamespaceBundleMaxSessions",
    "loadBalancerNamespaceBundleMaxTopics",
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold",
    "loadBalancerNamespaceMaximumBundles",
    "loadBalancerOverrideBrokerNicSpeedGbps",
    "loadBalancerPlacementStrategy",
    "loadBalancerReportUpdateMaxIntervalMinutes",
    "loadBalancerReportUpdateMinIntervalMillis",
    "loadBalancerReportUpdateThresholdPercentage",
    "loadBalancerResourceQuotaUpdateIntervalMinutes",
    "loadBalancerServiceUnitStateMaxConcurrentOverrides",
    "loadBalancerServiceUnitStateMonitorIntervalInSeconds",
    "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds",
    "loadBalancerServiceUnitTableViewSyncer",
    "loadBalancerSheddingBundlesWithPoliciesEnabled",
    "loadBalancerSheddingConditionHitCountThreshold",
    "loadBalancerSheddingEnabled",
    "loadBalancerSheddingGracePeriodMinutes",
    "loadBalancerSheddingIntervalMinutes",
    "loadBalancerSplitIntervalMinutes",
    "loadBalancerTransferEnabled",
    "loadManagerServiceUnitStateTableViewClassName",
    "lowerBoundarySheddingEnabled",
    "maxUnloadBundleNumPerShedding",
    "maxUnloadPercentage",
    "minUnloadMessage",
    "minUnloadMessageThroughput",
    "namespaceBundleUnloadingTimeoutMs",
    "preferLaterVersions",
    "supportedNamespaceBundleSplitAlgorithms",
    "topicBundleAssignmentStrategy",
)


def is_load_manager_key(key: str) -> bool:
    """Tell the keys of the load manager from the rest of a `broker.conf`."""
    return key.startswith("loadBalancer") or key in LOAD_MANAGER_KEYS


def near_miss(key: str) -> str | None:
    """Return the known key that an unknown one was probably meant to be."""
    return None if key in LOAD_MANAGER_KEYS else closest(key, LOAD_MANAGER_KEYS, cutoff=0.8)
