"""What a `broker.conf` makes Pulsar decide by, as a policy: "what I run today" in one line.

Classes of Pulsar are mapped to parts by the tables below, parameters come from the keys that the parts themselves name
(`Conf`), with the release's own defaults where the file is silent. Nothing here knows which parts exist.

Source: `docs/pulsar/load-managers.md`; the modular manager's order of filters and what it falls back
to, apache/pulsar at 009a9bf2, ModularLoadManagerImpl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookup.errors import SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.quoting import printable, shown, suggestion
from lookup.settings.broker import Scalar
from lookup.settings.broker_conf import read_broker_conf
from lookup.settings.broker_keys import MODULAR_MANAGER
from lookup.settings.pulsar_defaults import IMPL, PULSAR_DEFAULTS

__all__ = ["Today", "read_today"]

_EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."
_MANAGER, _PLACEMENT, _SHEDDER = (
    "loadManagerClassName",
    "loadBalancerLoadPlacementStrategy",
    "loadBalancerLoadSheddingStrategy",
)

#: Parts by class, for each manager: its placement strategies and its shedders.
_PLACEMENTS: Mapping[str, Mapping[str, Any]] = {
    MODULAR_MANAGER: {
        f"{IMPL}LeastLongTermMessageRate": "least-long-term-message-rate",
        f"{IMPL}LeastResourceUsageWithWeight": {"use": "least-resource-usage-with-weight", "rule": "average"},
        f"{IMPL}RoundRobinBrokerSelector": "round-robin",
        f"{IMPL}AvgShedder": "avg-placement",
    },
    EXTENSIBLE_MANAGER: {
        f"{_EXTENSIONS}strategy.LeastResourceUsageWithWeight": "least-resource-usage",
        f"{_EXTENSIONS}strategy.RoundRobinBrokerSelectionStrategy": "round-robin",
    },
}
_SHEDDERS: Mapping[str, Mapping[str, str]] = {
    MODULAR_MANAGER: {
        f"{IMPL}ThresholdShedder": "threshold",
        f"{IMPL}OverloadShedder": "overload",
        f"{IMPL}UniformLoadShedder": "uniform",
        f"{IMPL}AvgShedder": "avg",
    },
    EXTENSIBLE_MANAGER: {f"{_EXTENSIONS}scheduler.TransferShedder": "transfer"},
}
#: What each manager takes where the class is one of the other manager's.
_STAND_INS: Mapping[str, tuple[str, str]] = {
    MODULAR_MANAGER: ("least-long-term-message-rate", "overload"),
    EXTENSIBLE_MANAGER: ("least-resource-usage", "transfer"),
}
#: Filters in each manager's order; Pulsar's version filter fails on what it cannot read, and the others go on.
_VERSION: Mapping[str, Any] = {"use": "version", "unreadable": "fail"}
_FILTERS: Mapping[str, Sequence[Any]] = {
    EXTENSIBLE_MANAGER: ("load-manager-class", "max-topics", _VERSION, "anti-affinity", "isolation"),
    MODULAR_MANAGER: (
        "isolation",
        "max-topics",
        "anti-affinity",
        "even-distribution",
        "load-manager-class",
        _VERSION,
    ),
}
#: Pulsar's old spelling of two keys, by the new one; it counts where the new one is exactly 1.0.
_RESPELT = {
    "loadBalancerBandwidthInResourceWeight": "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight": "loadBalancerBandwithOutResourceWeight",
}


@dataclass(frozen=True)
class Today:
    """A policy as Pulsar's keys describe it, in the words of settings."""

    #: keys of a `[[policies]]` table, without its name
    table: Mapping[str, Any]
    #: a sentence for everything that Pulsar itself would only log
    warnings: tuple[str, ...] = ()


def read_today(path: str, pulsar: str = "4.x") -> Today:
    """Read a `broker.conf` as a policy.

    Args:
        pulsar: release whose defaults count where the file says nothing.

    Raises:
        SettingsError: where the file cannot be read, or names a class or a release nobody here knows.
    """
    if pulsar not in PULSAR_DEFAULTS:
        hint = suggestion(pulsar, list(PULSAR_DEFAULTS))
        raise SettingsError(f"pulsar: there is no release {shown(pulsar)}; {hint}")
    profile = read_broker_conf(path)
    given = {**profile.load_balancer, _MANAGER: profile.load_manager_class_name}
    try:
        return _policy_of_keys(given, pulsar)
    except SettingsError as error:
        raise SettingsError([f"{path}: {problem}" for problem in error.problems]) from None


def _policy_of_keys(given: Mapping[str, Scalar], pulsar: str) -> Today:
    """Return the policy that keys of a `broker.conf` describe.

    Raises:
        SettingsError: where a class is unknown; all of them together.
    """
    keys = _completed(given, pulsar)
    problems = _unknown(keys)
    if problems:
        raise SettingsError(problems)
    manager = str(keys[_MANAGER])
    # Which manager brokers run is what each of them registered: `load-manager-class` goes by that.
    own = {key: value for key, value in keys.items() if key not in (_MANAGER, *_RESPELT.values())}
    return Today({**_parts(keys, manager), "broker_conf": own}, tuple(_misplaced(keys, given, manager)))


def _parts(keys: Mapping[str, Scalar], manager: str) -> dict[str, Any]:
    """Return the parts of a manager, with what it falls back to where a class is the other manager's."""
    placement, shedder = _STAND_INS[manager]
    table: dict[str, Any] = {
        "filters": [part for part in _FILTERS[manager] if part != "even-distribution" or _is_on(keys, _EVENLY)],
        "selector": _PLACEMENTS[manager].get(str(keys[_PLACEMENT]), placement),
        "on_error": "skip",
    }
    if manager == MODULAR_MANAGER:
        # Only the isolation policies, its first filter, hold in any case.
        table["second_choice"] = {"filters": 1}
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerSheddingEnabled"):
        table["shedder"] = _SHEDDERS[manager].get(str(keys[_SHEDDER]), shedder)
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerAutoBundleSplitEnabled"):
        algorithm = str(keys["defaultNamespaceBundleSplitAlgorithm"]).replace("_", "-")
        table["splitter"] = {"use": "default-split", "algorithm": algorithm}
    return table


_EVENLY = "loadBalancerDistributeBundlesEvenlyEnabled"


def _completed(given: Mapping[str, Scalar], pulsar: str) -> dict[str, Scalar]:
    keys = {**PULSAR_DEFAULTS[pulsar], **given}
    for new, old in _RESPELT.items():
        if keys[new] == 1.0 and old in keys:
            keys[new] = keys[old]
    return keys


def _is_on(keys: Mapping[str, Scalar], key: str) -> bool:
    # Java reads every text but "true", in any case, as false.
    return str(keys[key]).lower() == "true"


def _unknown(keys: Mapping[str, Scalar]) -> list[str]:
    known = {_MANAGER: list(_FILTERS), _PLACEMENT: _classes(_PLACEMENTS), _SHEDDER: _classes(_SHEDDERS)}
    return [
        f"{key}: there is no class {shown(keys[key])} that can be built; {suggestion(str(keys[key]), classes)}"
        for key, classes in known.items()
        if keys[key] not in classes
    ]


def _classes(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [name for classes in parts.values() for name in classes]


def _misplaced(keys: Mapping[str, Scalar], given: Mapping[str, Scalar], manager: str) -> list[str]:
    # What Pulsar only logs: a class of the other manager. Of a placement nobody named nothing is to be said.
    placement, shedder = _STAND_INS[manager]
    own = manager.rpartition(".")[2]
    sentences = {
        _PLACEMENT: (_PLACEMENTS, placement, _PLACEMENT in given),
        _SHEDDER: (_SHEDDERS, shedder, _is_on(keys, "loadBalancerSheddingEnabled")),
    }
    return [
        f"{key}: {printable(str(keys[key]))} is not for {own}, which falls back to {stand_in!r}"
        for key, (parts, stand_in, matters) in sentences.items()
        if matters and keys[key] not in parts[manager]
    ]
