"""Read a real `broker.conf`, Java properties with Java's rules: as a broker's profile, or as the policy it stands for.

The policy is "what I run today" in one line: classes of Pulsar are mapped to parts by the tables below, parameters come
from the keys that the parts themselves name (`Conf`). Defaults and rules are those of a release (`releases.py`).
Nothing here knows which parts exist.

Source: `docs/pulsar/configuration.md`; the modular manager's order of filters and its strategies,
`docs/pulsar/load-managers.md` and ModularLoadManagerImpl of 4.0.8, 4.2.4 and 5.0.1.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import javaproperties
from pydantic import ValidationError

from lookup.errors import SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER, published_properties
from lookup.model.documents import is_device
from lookup.model.quoting import printable, shown, suggestion
from lookup.settings.broker import BrokerProfile
from lookup.settings.problems import place, problems_of
from lookup.settings.pulsar_keys import (
    BUNDLES_KEY,
    MOST_BUNDLES,
    NO_EFFECT_SINCE,
    NUMBERS,
    Scalar,
    is_load_manager_key,
    near_miss,
)
from lookup.settings.releases import DEFAULT_RELEASE, IMPL, MODULAR_MANAGER, RELEASES, PulsarRelease

__all__ = ["CHOOSING_KEYS", "Today", "conf_values", "read_broker_conf", "read_today"]

#: Pulsar's keys by field of the profile; of the others only lookup properties and the load manager's are read.
_KEYS = {
    "lookup_property_prefix": "lookupPropertyPrefix",
    "load_manager_class_name": "loadManagerClassName",
    "advertised_address": "advertisedAddress",
    "advertised_listeners": "advertisedListeners",
    "internal_listener_name": "internalListenerName",
    "web_service_port": "webServicePort",
    "web_service_port_tls": "webServicePortTls",
    "broker_service_port": "brokerServicePort",
    "broker_service_port_tls": "brokerServicePortTls",
    "enable_persistent_topics": "enablePersistentTopics",
    "enable_non_persistent_topics": "enableNonPersistentTopics",
}
_TEXTS = (
    "lookup_property_prefix",
    "load_manager_class_name",
    "advertised_address",
    "advertised_listeners",
    "internal_listener_name",
)


_EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."
_MANAGER = "loadManagerClassName"
_PLACEMENT, _SHEDDER = "loadBalancerLoadPlacementStrategy", "loadBalancerLoadSheddingStrategy"
_EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
_UNLOAD_CHILDREN = "loadBalancerAutoUnloadSplitBundlesEnabled"

#: The modular manager's placement strategies by class.
_PLACEMENTS: Mapping[str, Mapping[str, Any]] = {
    f"{IMPL}LeastLongTermMessageRate": {"use": "least-long-term-message-rate"},
    f"{IMPL}LeastResourceUsageWithWeight": {"use": "least-resource-usage-with-weight", "rule": "average"},
    f"{IMPL}RoundRobinBrokerSelector": {"use": "round-robin"},
    f"{IMPL}AvgShedder": {"use": "avg-placement"},
}
#: The extensible manager has one placement, whatever class the file names.
_OWN_PLACEMENT = f"{_EXTENSIONS}strategy.LeastResourceUsageWithWeight"
_OTHER_PLACEMENT = f"{_EXTENSIONS}strategy.RoundRobinBrokerSelectionStrategy"
#: Shedders by class, for each manager.
_SHEDDERS: Mapping[str, Mapping[str, str]] = {
    MODULAR_MANAGER: {
        f"{IMPL}ThresholdShedder": "threshold",
        f"{IMPL}OverloadShedder": "overload",
        f"{IMPL}UniformLoadShedder": "uniform",
        f"{IMPL}AvgShedder": "avg",
    },
    EXTENSIBLE_MANAGER: {f"{_EXTENSIONS}scheduler.TransferShedder": "transfer"},
}
#: Placement and shedder in one; a shedder of the same class goes with no other placement, and 5.0 replaces it.
_AVG = f"{IMPL}AvgShedder"
_FALLBACK = f"{IMPL}LeastLongTermMessageRate"
#: Split algorithms whose rule is not the part's default in today's releases (Pulsar 4.0.4, 4.2.4).
_ALGORITHMS: Mapping[str, Mapping[str, str]] = {
    "flow-or-qps-equally-divide": {"use": "flow-or-qps-equally-divide", "rule": "from-second"},
}
_SPLITTERS: Mapping[str, str] = {MODULAR_MANAGER: "modular-split", EXTENSIBLE_MANAGER: "default-split"}
#: Bundles of Pulsar's own namespace are always distributed evenly (apache/pulsar #22953).
_ONLY_SYSTEM: Mapping[str, Any] = {"use": "even-distribution", "only": "pulsar/system"}
#: Usage that no broker has.
_NEVER = 1e9
#: Filters in each manager's order; Pulsar's version filter fails on what it cannot read, and the others go on.
_VERSION: Mapping[str, Any] = {"use": "version", "unreadable": "fail"}
_FILTERS: Mapping[str, Sequence[Any]] = {
    EXTENSIBLE_MANAGER: ("load-manager-class", "max-topics", _VERSION, "anti-affinity", "isolation"),
    MODULAR_MANAGER: (
        "isolation",
        {"use": "max-topics", "manager": "modular"},
        {"use": "anti-affinity", "counts": "namespaces"},
        "even-distribution",
        "load-manager-class",
        _VERSION,
    ),
}
#: Keys that choose the parts of a policy.
CHOOSING_KEYS = (
    _MANAGER,
    _PLACEMENT,
    _SHEDDER,
    "loadBalancerEnabled",
    "loadBalancerSheddingEnabled",
    "loadBalancerAutoBundleSplitEnabled",
    _UNLOAD_CHILDREN,
    "loadBalancerDistributeBundlesEvenlyEnabled",
    "defaultNamespaceBundleSplitAlgorithm",
)
#: Pulsar's old spelling of two keys, by the new one; it counts if the new one is exactly 1.0.
_RESPELT = {
    "loadBalancerBandwidthInResourceWeight": "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight": "loadBalancerBandwithOutResourceWeight",
}


def read_broker_conf(path: str | os.PathLike[str]) -> BrokerProfile:
    """Read a `broker.conf`.

    An empty value means Pulsar's default, except for a lookup property, which may be empty. Of a key given several
    times the last one counts, as in Java; the profile's `duplicates` names such keys. A key that Pulsar does not know
    is no mistake; the profile's `slips` names those that resemble one it knows.

    Raises:
        SettingsError: if the file is absent or a value is of the wrong kind; all mistakes together.
    """
    return _profile(path, _pairs(Path(path)))


def _profile(path: str | os.PathLike[str], pairs: Sequence[tuple[str, str]]) -> BrokerProfile:
    values = dict(pairs)
    given = {key: value for key, value in values.items() if value.strip()}
    fields: dict[str, Any] = {
        field: given[key].strip() if field in _TEXTS else _typed(given[key])
        for field, key in _KEYS.items()
        if key in given
    }
    fields.setdefault("load_manager_class_name", MODULAR_MANAGER)
    # All values, empty ones too: a lookup property may be empty.
    fields["properties"] = published_properties(values, fields.get("lookup_property_prefix", "lookup."))
    fields["load_balancer"] = _load_manager_keys(given)
    try:
        profile = BrokerProfile.model_validate({"file": str(path), **fields})
    except ValidationError as error:
        problems = []
        for loc, sentence in problems_of(error, BrokerProfile):
            # Users of a broker.conf know Pulsar's keys, not the fields of a profile.
            own = (_KEYS.get(str(loc[0]), loc[0]), *loc[1:]) if loc else ()
            problems.append(f"{path}: {place(own, sentence)}")
        raise SettingsError(problems) from None
    return profile.note_duplicates(tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1))


def conf_values(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return every key of a `broker.conf` with its text; of a key given several times the last one.

    Raises:
        SettingsError: if the file is absent or no file of Java properties.
    """
    return dict(_pairs(Path(path)))


@dataclass(frozen=True)
class Today:
    """A policy as Pulsar's keys describe it, in the words of settings."""

    #: keys of a `[[policies]]` table, without its name
    table: Mapping[str, Any]
    #: every key with its value, those that chose parts as well
    keys: Mapping[str, Scalar]
    #: a sentence for everything that Pulsar itself would only log
    warnings: tuple[str, ...] = ()
    #: a sentence for every mistake; what is wrong is as if it were not written
    problems: tuple[str, ...] = ()
    #: why no broker of the release has such a load manager, a sentence each
    refusals: tuple[str, ...] = ()
    #: bundles of a new namespace, if the file names them
    bundles: int | None = None


def read_today(path: str, pulsar: str | None = None, beside: Mapping[str, Scalar] = {}) -> Today:
    """Read a `broker.conf` as a policy; its mistakes are noted, so that those of its parts can be found beside them.

    Args:
        pulsar: release whose defaults and rules count; None is `DEFAULT_RELEASE`.
        beside: keys that count before those of the file, as if they stood in it.

    Raises:
        SettingsError: if the file cannot be read.
    """
    problems = []
    if pulsar is not None and pulsar not in RELEASES:
        problems.append(f"pulsar: there is no release {shown(pulsar)}; {_nearest(pulsar)}")
    name = pulsar if pulsar is not None and pulsar in RELEASES else DEFAULT_RELEASE
    release = RELEASES[name]
    pairs = _pairs(Path(path))
    values = dict(pairs)
    profile = BrokerProfile(file=path, load_balancer=_load_manager_keys(values))
    given = {_MANAGER: values.get(_MANAGER, "").strip() or MODULAR_MANAGER, **profile.load_balancer, **beside}
    sources = {key: "broker_conf" if key in beside else path for key in (*release.defaults, *given)}
    ignored = [f"{sources[key]}: Pulsar {name} does not know {key}" for key in given if key in release.unknown]
    given = {key: value for key, value in given.items() if key not in release.unknown}
    try:
        _profile(path, pairs)
    except SettingsError as error:
        problems += error.problems
    mistakes = _mistakes({**release.defaults, **given})
    problems += [f"{sources[key]}: {key}{sentence}" for key, sentence in mistakes.items()]
    for key in mistakes:
        given.pop(key, None)
    keys = {**release.defaults, **given}
    for new, old in _RESPELT.items():
        if keys[new] == 1.0 and old in keys:
            keys[new] = keys[old]
    refusals, warnings = _strategies(keys, given, release)
    # Without what has chosen parts; the part `load-manager-class` compares managers that brokers registered.
    chosen = (*CHOOSING_KEYS, *_RESPELT.values(), BUNDLES_KEY)
    conf = {key: value for key, value in keys.items() if key not in chosen}
    table = {**_parts(keys, str(keys[_MANAGER]), release), "broker_conf": conf}
    slips = {key: (path, meant) for key, meant in profile.slips.items()}
    slips |= {key: ("broker_conf", meant) for key in beside if (meant := near_miss(key)) is not None}
    ignored += [
        f"{source}: Pulsar would ignore {printable(key)}, which it does not know; did you mean {meant!r}?"
        for key, (source, meant) in slips.items()
    ]
    ignored += [
        f"{sources[key]}: {key} has no effect since Pulsar {since}"
        for key, since in NO_EFFECT_SINCE.items()
        if given.get(key, 0) != 0
    ]
    if problems:
        # Warnings are those of a policy, and there will be none: a misspelt key is said with the mistakes.
        return Today(table, keys, problems=(*problems, *ignored))
    bundles = given.get(BUNDLES_KEY)
    return Today(
        table,
        keys,
        (*ignored, *warnings),
        refusals=tuple(refusals),
        bundles=bundles if isinstance(bundles, int) else None,
    )


def _nearest(pulsar: str) -> str:
    if pulsar == "4.x":
        return 'write "4.0" or "4.2", whose rules differ'
    if re.match(r"[0-3](\.|\Z)", pulsar):
        return 'rules of releases before 4.0 differ, and the nearest is "4.0"'
    return suggestion(pulsar, list(RELEASES))


def _load_manager_keys(values: Mapping[str, str]) -> dict[str, Scalar]:
    """Return the keys of the load manager, misspelt ones too, which the profile's `slips` names."""
    return {
        key: _typed(value)
        for key, value in values.items()
        if value.strip() and (is_load_manager_key(key) or near_miss(key) is not None)
    }


def _mistakes(keys: Mapping[str, Scalar]) -> dict[str, str]:
    """Return by key what is wrong with its value, as the rest of a sentence: no class, or no number."""
    classes_of = {_MANAGER: list(_FILTERS)}
    classes_of[_PLACEMENT] = [*_PLACEMENTS, _OWN_PLACEMENT, _OTHER_PLACEMENT]
    classes_of[_SHEDDER] = [name for classes in _SHEDDERS.values() for name in classes]
    wrong = {
        key: f": there is no class {shown(keys[key])} that can be built; {suggestion(str(keys[key]), classes)}"
        for key, classes in classes_of.items()
        if keys[key] not in classes
    }
    wrong |= {
        key: f" = {shown(value)}: should be a valid number"
        for key, value in keys.items()
        if isinstance(value, str | bool) and key in NUMBERS
    }
    bundles = keys[BUNDLES_KEY]
    if BUNDLES_KEY not in wrong and not (isinstance(bundles, int) and 1 <= bundles <= MOST_BUNDLES):
        wrong[BUNDLES_KEY] = f" = {shown(bundles)}: should be a whole number from 1 to {MOST_BUNDLES}"
    return wrong


def _strategies(
    keys: dict[str, Scalar], given: Mapping[str, Scalar], release: PulsarRelease
) -> tuple[list[str], list[str]]:
    """Replace strategies that the manager does not use, and return why it cannot start, and what it would log."""
    placement, shedder = keys[_PLACEMENT], keys[_SHEDDER]
    is_foreign = shedder not in _SHEDDERS[str(keys[_MANAGER])]
    foreign = f"{_SHEDDER}: {printable(str(shedder))} is not for {str(keys[_MANAGER]).rpartition('.')[2]}"
    refusals: list[str] = []
    warnings: list[str] = []
    if keys[_MANAGER] == EXTENSIBLE_MANAGER:
        if given.get(_PLACEMENT, _OWN_PLACEMENT) != _OWN_PLACEMENT:
            warnings.append(f"{_PLACEMENT}: the extensible manager does not read it")
        if is_foreign and _is_on(keys, "loadBalancerSheddingEnabled"):
            warnings.append(f"{foreign}, which falls back to TransferShedder")
        return refusals, warnings
    if is_foreign:
        refusals.append(f"{foreign}: {release.without_strategy}")
    if placement not in _PLACEMENTS:
        refusals.append(f"{_PLACEMENT}: {placement} is not for ModularLoadManagerImpl: {release.without_strategy}")
    if refusals or (placement == _AVG) == (shedder == _AVG):
        return refusals, warnings
    placed_by, shed_by = (str(name).rpartition(".")[2] for name in (placement, shedder))
    what = f"{_PLACEMENT}: {placed_by} does not go with {shed_by}"
    if shedder == _AVG:
        warnings.append(f"{_PLACEMENT}: {placed_by} places bundles elsewhere than {shed_by} planned")
    elif release.replaces_placement:
        keys[_PLACEMENT] = _FALLBACK
        warnings.append(f"{what}, and LeastLongTermMessageRate takes its place")
    else:
        refusals.append(f"{what}: {release.without_strategy}")
    return refusals, warnings


def _parts(keys: Mapping[str, Scalar], manager: str, release: PulsarRelease) -> dict[str, Any]:
    """Return the parts of a manager, with the rules of a release."""
    is_even = _is_on(keys, "loadBalancerDistributeBundlesEvenlyEnabled")
    # Pulsar separates the members of a set by commas.
    excluded = [*filter(None, map(str.strip, str(keys.get(_EXCLUDED, "")).split(",")))]
    placed: Mapping[str, Any] = {"use": "least-resource-usage"}
    if manager == MODULAR_MANAGER:
        placed = _PLACEMENTS.get(str(keys[_PLACEMENT]), _PLACEMENTS[_FALLBACK])
    placed = {**placed, **release.parts.get(placed["use"], {})}
    table: dict[str, Any] = {
        "filters": [
            _ONLY_SYSTEM if part == "even-distribution" and not is_even else part for part in _FILTERS[manager]
        ],
        # Bundles of namespaces that are not shed are given to brokers in turn (PIP-380).
        "selector": {"use": "by-namespace", "namespaces": excluded, "child": placed} if excluded else placed,
        "on_error": "skip",
    }
    if manager == MODULAR_MANAGER:
        # Only the isolation policies, its first filter, hold in any case.
        table["second_choice"] = {"filters": 1}
        if placed["use"] == "avg-placement" and placed.get("plan") != "bundle":
            # Asked again, it answers what it has just remembered, overloaded or not.
            table["second_choice"]["overloaded"] = _NEVER
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerSheddingEnabled"):
        shedder = _SHEDDERS[manager].get(str(keys[_SHEDDER]), "transfer")
        table["shedder"] = {"use": shedder, **release.parts.get(shedder, {})}
        if manager == MODULAR_MANAGER:
            table["destination_first"] = True
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerAutoBundleSplitEnabled"):
        algorithm = str(keys["defaultNamespaceBundleSplitAlgorithm"]).replace("_", "-")
        table["splitter"] = {"use": _SPLITTERS[manager], "algorithm": _ALGORITHMS.get(algorithm, algorithm)}
        # The extensible manager does not read the key: its children stay with the owner of their parent.
        table["unload_children"] = manager == MODULAR_MANAGER and _is_on(keys, _UNLOAD_CHILDREN)
    return table


def _is_on(keys: Mapping[str, Scalar], key: str) -> bool:
    # Java reads every text but "true", in any case, as false.
    return str(keys[key]).lower() == "true"


def _pairs(path: Path) -> list[tuple[str, str]]:
    if is_device(path):
        raise SettingsError(f"{path}: is a device; expected a file of Java properties")
    try:
        # Java reads Latin-1, whatever an editor wrote.
        text = path.read_text(encoding="latin-1")
        elements = list(javaproperties.parse(text))
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # of a malformed \u escape
        raise SettingsError(f"{path}: cannot be read as Java properties: {error}") from None
    if "\0" in text:  # Latin-1 has a character for every byte, and a line of anything is a key
        raise SettingsError(f"{path}: is no text; a broker.conf has lines like webServicePort=8080")
    return [(pair.key, pair.value) for pair in elements if isinstance(pair, javaproperties.KeyValue)]


def _typed(text: str) -> bool | int | float | str:
    bare = text.strip()
    if bare.lower() in ("true", "false"):  # in any case, as Java has it
        return bare.lower() == "true"
    for number in (int, float):
        try:
            return number(bare)
        except ValueError:
            continue
    return bare
