"""Read a real `broker.conf`, Java properties with Java's rules: as a broker's profile, or as the policy it stands for.

The policy is "what I run today" in one line: classes of Pulsar are mapped to parts by the tables below, parameters come
from the keys that the parts themselves name (`Conf`), with the release's own defaults if the file is silent. Nothing
here knows which parts exist.

Source: `docs/pulsar/configuration.md`; the modular manager's order of filters and what it falls back to,
`docs/pulsar/load-managers.md` and apache/pulsar at 009a9bf2, ModularLoadManagerImpl.
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
    IMPL,
    MODULAR_MANAGER,
    NUMBERS,
    PULSAR_DEFAULTS,
    Scalar,
    is_load_manager_key,
    near_miss,
)

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
#: Placement and shedder that each manager takes if the class is one of the other manager's.
_STAND_INS: Mapping[str, tuple[str, str]] = {
    MODULAR_MANAGER: ("least-long-term-message-rate", "overload"),
    EXTENSIBLE_MANAGER: ("least-resource-usage", "transfer"),
}
#: Split algorithms whose rule is not the part's default in today's releases (Pulsar 4.0.4, 4.2.4).
_ALGORITHMS: Mapping[str, Mapping[str, str]] = {
    "flow-or-qps-equally-divide": {"use": "flow-or-qps-equally-divide", "rule": "from-second"},
}
_SPLITTERS: Mapping[str, str] = {MODULAR_MANAGER: "modular-split", EXTENSIBLE_MANAGER: "default-split"}
#: Bundles of Pulsar's own namespace are always distributed evenly (apache/pulsar #22953).
_ONLY_SYSTEM: Mapping[str, Any] = {"use": "even-distribution", "only": "pulsar/system"}
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
_OLD_RELEASE = re.compile(r"[0-3](\.|\Z)")
#: What is known of releases whose rules are not built.
_MORE = "unloaded 1,000 messages/s, or bytes/s, more than the difference asks for (apache/pulsar #21906)"
_OLDER = (
    f"rules of releases before 4.0 differ, among them UniformLoadShedder's, which in 3.0 {_MORE}; the nearest is 4.x"
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


def read_today(path: str, pulsar: str | None = None, beside: Mapping[str, Scalar] = {}) -> Today:
    """Read a `broker.conf` as a policy; its mistakes are noted, so that those of its parts can be found beside them.

    Args:
        pulsar: release whose defaults count if the file says nothing; None is 4.x, with a hint where it matters.
        beside: keys that count before those of the file, as if they stood in it.

    Raises:
        SettingsError: if the file cannot be read.
    """
    problems = []
    if pulsar is not None and pulsar not in PULSAR_DEFAULTS:
        is_older = _OLD_RELEASE.match(pulsar) is not None
        hint = _OLDER if is_older else suggestion(pulsar, list(PULSAR_DEFAULTS))
        problems.append(f"pulsar: there is no release {shown(pulsar)}; {hint}")
    defaults = PULSAR_DEFAULTS.get(pulsar or "4.x", PULSAR_DEFAULTS["4.x"])
    pairs = _pairs(Path(path))
    values = dict(pairs)
    profile = BrokerProfile(file=path, load_balancer=_load_manager_keys(values))
    given = {_MANAGER: values.get(_MANAGER, "").strip() or MODULAR_MANAGER, **profile.load_balancer, **beside}
    sources = {key: "broker_conf" if key in beside else path for key in (*defaults, *given)}
    try:
        _profile(path, pairs)
    except SettingsError as error:
        problems += error.problems
    mistakes = _mistakes({**defaults, **given})
    problems += [f"{sources[key]}: {key}{sentence}" for key, sentence in mistakes.items()]
    for key in mistakes:
        given.pop(key, None)
    keys = {**defaults, **given}
    for new, old in _RESPELT.items():
        if keys[new] == 1.0 and old in keys:
            keys[new] = keys[old]
    # Without what has chosen parts; the part `load-manager-class` compares managers that brokers registered.
    conf = {key: value for key, value in keys.items() if key not in (*CHOOSING_KEYS, *_RESPELT.values())}
    table = {**_parts(keys, str(keys[_MANAGER])), "broker_conf": conf}
    slips = {key: (path, meant) for key, meant in profile.slips.items()}
    slips |= {key: ("broker_conf", meant) for key in beside if (meant := near_miss(key)) is not None}
    ignored = [
        f"{source}: Pulsar would ignore {printable(key)}, which it does not know; did you mean {meant!r}?"
        for key, (source, meant) in slips.items()
    ]
    if problems:
        # Warnings are those of a policy, and there will be none: a misspelt key is said with the mistakes.
        return Today(table, keys, problems=(*problems, *ignored))
    warnings = [*ignored, *_misplaced(keys, given, str(keys[_MANAGER]))]
    if pulsar is None and table.get("shedder") == "uniform":
        warnings.append(
            f'UniformLoadShedder is taken to be that of Pulsar 4.x; in 3.0 it {_MORE}; write pulsar = "4.x" if it is'
        )
    return Today(table, keys, tuple(warnings))


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
    for key, parts in ((_PLACEMENT, _PLACEMENTS), (_SHEDDER, _SHEDDERS)):
        classes_of[key] = [name for classes in parts.values() for name in classes]
    wrong = {
        key: f": there is no class {shown(keys[key])} that can be built; {suggestion(str(keys[key]), classes)}"
        for key, classes in classes_of.items()
        if keys[key] not in classes
    }
    return wrong | {
        key: f" = {shown(value)}: should be a valid number"
        for key, value in keys.items()
        if isinstance(value, str | bool) and key in NUMBERS
    }


def _parts(keys: Mapping[str, Scalar], manager: str) -> dict[str, Any]:
    """Return the parts of a manager, with what it falls back to if a class is the other manager's."""
    placement, shedder = _STAND_INS[manager]
    is_even = _is_on(keys, "loadBalancerDistributeBundlesEvenlyEnabled")
    # Pulsar separates the members of a set by commas.
    excluded = [*filter(None, map(str.strip, str(keys.get(_EXCLUDED, "")).split(",")))]
    placed = _PLACEMENTS[manager].get(str(keys[_PLACEMENT]), placement)
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
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerSheddingEnabled"):
        table["shedder"] = _SHEDDERS[manager].get(str(keys[_SHEDDER]), shedder)
        if manager == MODULAR_MANAGER:
            table["destination_first"] = True
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerAutoBundleSplitEnabled"):
        algorithm = str(keys["defaultNamespaceBundleSplitAlgorithm"]).replace("_", "-")
        table["splitter"] = {"use": _SPLITTERS[manager], "algorithm": _ALGORITHMS.get(algorithm, algorithm)}
        # The extensible manager does not read the key: its children stay with the owner of their parent.
        table["unload_children"] = manager == MODULAR_MANAGER and _is_on(keys, _UNLOAD_CHILDREN)
    return table


def _misplaced(keys: Mapping[str, Scalar], given: Mapping[str, Scalar], manager: str) -> list[str]:
    # A placement that the file does not name is a default, and no mistake of its author.
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
