"""List Pulsar's keys of load managers by name; `releases.py` has their defaults.

Source: `docs/pulsar/configuration.md` (ServiceConfiguration).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from pydantic import PlainValidator

from lookup.model.quoting import closest, shown
from lookup.settings.releases import RELEASES

__all__ = [
    "BUNDLES_KEY", "LOAD_MANAGER_KEYS", "MOST_BUNDLES", "NOT_DYNAMIC", "NO_EFFECT_SINCE", "NUMBERS", "Scalar",
    "is_load_manager_key", "near_miss",
]  # fmt: skip


def _scalar(written: object) -> object:
    if isinstance(written, (bool, int, float, str)):
        return written
    raise ValueError(f"should be a text, a number, true or false, not {shown(written)}")


#: A value of a broker.conf.
Scalar = Annotated[bool | int | float | str, PlainValidator(_scalar, json_schema_input_type=bool | int | float | str)]

#: Bundles of a new namespace, and the most that the evaluation of a log may have.
BUNDLES_KEY, MOST_BUNDLES = "defaultNumberOfNamespaceBundles", 1 << 16

#: Keys that count only after a restart; all others of the load managers can be changed in a running cluster.
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

#: Keys that releases still know, and by which nothing goes any more: heap is no resource.
NO_EFFECT_SINCE = {"loadBalancerMemoryResourceWeight": "3.0"}

#: Keys whose values are numbers: those with such a default above, and others.
NUMBERS = frozenset(
    {
        *(key for key, value in RELEASES["5.0"].defaults.items() if not isinstance(value, str | bool)),
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
        *(key for release in RELEASES.values() for key in release.defaults.keys() | release.unknown),
        *NUMBERS,
        "loadBalancerMultiPhaseBundleUnload",
        "loadBalancerPlacementStrategy",
        "loadBalancerServiceUnitTableViewSyncer",
        "loadManagerServiceUnitStateTableViewClassName",
        "supportedNamespaceBundleSplitAlgorithms",
        "topicBundleAssignmentStrategy",
    }
) - {"loadManagerClassName"}


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
