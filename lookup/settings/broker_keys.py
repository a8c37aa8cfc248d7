"""Keys of Pulsar's `broker.conf` by which load managers are configured.

Source: `facts/loadmanager.md` section 13.
"""

from __future__ import annotations

__all__ = ["LOAD_MANAGER_KEYS", "MODULAR_MANAGER", "is_load_manager_key"]

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
    "loadBalancerBrokerLoadDataTTLInSeconds",
    "loadBalancerBrokerLoadTargetStd",
    "loadBalancerBrokerMaxTopics",
    "loadBalancerBrokerOverloadedThresholdPercentage",
    "loadBalancerBrokerThresholdShedderPercentage",
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
    "loadBalancerReportUpdateMaxIntervalMinutes",
    "loadBalancerReportUpdateMinIntervalMillis",
    "loadBalancerReportUpdateThresholdPercentage",
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
