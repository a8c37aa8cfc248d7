"""Pulsar's releases, one table each, with defaults, ignored keys, and rules that differ from the others'.

A rule is a parameter of a part. A policy that is read from a `broker.conf` has those of its release.

Source: class files of 4.0.8, 4.2.4 and 5.0.1 (ServiceConfiguration, LoadManager, ModularLoadManagerImpl, the shedders).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lookup.settings.pulsar_keys import DEFAULTS, FILLED, KEYS

__all__ = [
    "DEFAULT_RELEASE", "IMPL", "MODULAR_MANAGER", "NO_VERSION", "RELEASES", "PulsarRelease", "Release",
    "release_of_all",
]  # fmt: skip

#: Releases whose rules are known.
Release = Literal["4.0", "4.2", "5.0"]
#: The release of a policy if neither it nor the brokers name one.
DEFAULT_RELEASE: Release = "4.2"
#: Why it counts then.
NO_VERSION = "because no broker names its version"

#: Package of the modular manager's strategies.
IMPL = "org.apache.pulsar.broker.loadbalance.impl."
#: The load manager of a broker whose configuration names none.
MODULAR_MANAGER = f"{IMPL}ModularLoadManagerImpl"


@dataclass(frozen=True)
class PulsarRelease:
    """Defaults and rules of a release."""

    #: defaults by key of a `broker.conf`, in Pulsar's units
    defaults: Mapping[str, bool | int | float | str]
    #: keys of the load manager that other releases know
    unknown: frozenset[str]
    #: reaction of brokers if a strategy cannot be created, or two are incompatible
    without_strategy: str
    #: whether the modular manager replaces a placement that does not go with the shedder
    replaces_placement: bool = False
    #: parameters by name of the part
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


#: Keys that differ between releases. `atLeastOneBundleSelected` is only in documentation.
_SINCE_4_2 = frozenset({"loadBalancerOverrideBrokerNics", "loadBalancerSheddingExcludedNamespaces"})
_SINCE_5_0 = frozenset(key for key in DEFAULTS if "5.0" in KEYS[key])
_NOWHERE = frozenset({"atLeastOneBundleSelected"})

RELEASES: Mapping[str, PulsarRelease] = {
    "4.0": PulsarRelease(
        defaults=FILLED,
        unknown=_SINCE_4_2 | _SINCE_5_0 | _NOWHERE,
        without_strategy="4.0 goes on with SimpleLoadManagerImpl in place of the load manager",
        # 1000 messages/s, and as many bytes/s (apache/pulsar #21906).
        parts={"uniform": {"extra": 1000.0}},
    ),
    "4.2": PulsarRelease(
        defaults=FILLED,
        unknown=_SINCE_5_0 | _NOWHERE,
        without_strategy="a broker of 4.2 does not start (4.0 goes on with SimpleLoadManagerImpl)",
    ),
    "5.0": PulsarRelease(
        defaults={
            **FILLED,
            "defaultNumberOfNamespaceBundles": 32,
            "defaultNumberOfSystemNamespaceBundles": 64,
            "loadBalancerDistributeBundlesEvenlyEnabled": False,
            "loadBalancerLoadPlacementStrategy": f"{IMPL}AvgShedder",
            "loadBalancerLoadSheddingStrategy": f"{IMPL}AvgShedder",
            "loadManagerMigrationEnabled": False,
            "maxUnloadPercentage": 0.5,
        },
        unknown=_NOWHERE,
        # Plans are kept by the bundle's name (apache/pulsar #26246).
        parts={"avg-placement": {"plan": "bundle"}},
        without_strategy="a broker of 5.0 does not start",
        replaces_placement=True,
    ),
}


def release_of_all(versions: Iterable[str | None]) -> tuple[Release, str]:
    """Find the release of a cluster, the nearest that is not newer, and the reason as the end of a sentence.

    Args:
        versions: versions of its brokers, such as `4.2.4`, None for a broker that does not name it.
    """
    matches = [match for text in versions if (match := re.match(r"(\d+)\.(\d+)(?:\.|-|\Z)", text or ""))]
    numbers = sorted({(int(match[1]), int(match[2])) for match in matches})
    # Of releases before 4.0, whose rules are not built, 4.0 is the nearest.
    releases: set[Release] = {"5.0" if n >= (5, 0) else "4.2" if n >= (4, 2) else "4.0" for n in numbers}
    spelt = " and ".join(f"{major}.{minor}" for major, minor in numbers)
    if len(releases) == 1:
        (release,) = releases
        return release, f"because the brokers run {spelt}"
    return DEFAULT_RELEASE, f"because the brokers run {spelt}" if numbers else NO_VERSION
