"""Read a real `broker.conf`, in any form of `conf_forms.py`, as a broker's profile or as the policy it configures.

The policy is the present configuration in one line. The tables below map classes of Pulsar to parts, and
parameters come from the keys that the parts themselves name (`Conf`). Defaults and rules are those of a
release (`releases.py`). This module does not know which parts exist.

Source: `docs/pulsar/configuration.md`. For the modular manager's order of filters and its strategies,
`docs/pulsar/load-managers.md` and ModularLoadManagerImpl of 4.0.8, 4.2.4 and 5.0.1.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lookup.errors import SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER, published_properties
from lookup.model.quoting import printable, shown, suggestion
from lookup.settings.broker import BrokerProfile
from lookup.settings.conf_forms import ConfText, read_conf
from lookup.settings.problems import place, problems_of
from lookup.settings.pulsar_keys import (
    BOOLEANS,
    BUNDLES_KEY,
    DEFAULTS,
    KEYS,
    MOST_BUNDLES,
    NO_EFFECT_SINCE,
    NOT_MODELLED,
    NUMBERS,
    Scalar,
    is_load_manager_key,
    near_miss,
    parse_value,
)
from lookup.settings.releases import DEFAULT_RELEASE, IMPL, MODULAR_MANAGER, RELEASES, PulsarRelease

__all__ = ["ACTS", "CHOOSING_KEYS", "PAIR", "Today", "read_broker_conf", "read_today"]

#: Pulsar's keys by field of the profile. Of the others only lookup properties and the load manager's are read.
_KEYS = {
    "lookup_property_prefix": "lookupPropertyPrefix",
    "load_manager_class_name": "loadManagerClassName",
    "advertised_address": "advertisedAddress",
    "web_service_port": "webServicePort",
    "web_service_port_tls": "webServicePortTls",
    "broker_service_port": "brokerServicePort",
    "broker_service_port_tls": "brokerServicePortTls",
    "enable_persistent_topics": "enablePersistentTopics",
    "enable_non_persistent_topics": "enableNonPersistentTopics",
}
_TEXTS = ("lookup_property_prefix", "load_manager_class_name", "advertised_address")
#: Keys that Java reads as false unless they are true, in any case.
_TRUTHS = BOOLEANS | {"enablePersistentTopics", "enableNonPersistentTopics"}

_EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."
_MANAGER = "loadManagerClassName"
_PLACEMENT, _SHEDDER = "loadBalancerLoadPlacementStrategy", "loadBalancerLoadSheddingStrategy"
#: Keys that choose the two strategies of the modular manager, which have to go together.
PAIR = (_SHEDDER, _PLACEMENT)
_EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
_UNLOAD_CHILDREN = "loadBalancerAutoUnloadSplitBundlesEnabled"

#: The modular manager's placement strategies by class.
_PLACEMENTS: Mapping[str, Mapping[str, Any]] = {
    f"{IMPL}LeastLongTermMessageRate": {"use": "least-long-term-message-rate"},
    f"{IMPL}LeastResourceUsageWithWeight": {"use": "least-resource-usage-with-weight"},
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
#: Placement and shedder in one. A shedder of the same class requires this placement, and 5.0 replaces it.
_AVG = f"{IMPL}AvgShedder"
_FALLBACK = f"{IMPL}LeastLongTermMessageRate"
#: Split algorithms whose rule is not the part's default in today's releases (Pulsar 4.0.4, 4.2.4).
_ALGORITHMS: Mapping[str, Mapping[str, str]] = {
    "flow-or-qps-equally-divide": {"use": "flow-or-qps-equally-divide", "rule": "from-second"}
}
_SPLITTERS: Mapping[str, str] = {MODULAR_MANAGER: "modular-split", EXTENSIBLE_MANAGER: "default-split"}
#: Bundles of Pulsar's own namespace are always distributed evenly (apache/pulsar #22953).
_ONLY_SYSTEM: Mapping[str, Any] = {"use": "even-distribution", "only": "pulsar/system"}
#: Usage that no broker has.
_NEVER = 1e9
#: Filters in each manager's order. Pulsar's version filter fails on unreadable versions, and the others continue.
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
#: Pulsar's old spelling of two keys, by the new one. It counts if the new one is exactly 1.0.
_RESPELT = {
    "loadBalancerBandwidthInResourceWeight": "loadBalancerBandwithInResourceWeight",
    "loadBalancerBandwidthOutResourceWeight": "loadBalancerBandwithOutResourceWeight",
}


def read_broker_conf(path: str | os.PathLike[str]) -> BrokerProfile:
    """Read a `broker.conf`.

    An empty value means Pulsar's default, except for a lookup property, which may be empty. The last of several values
    of a key counts, as in Java. A key that Pulsar does not know is not a mistake. The profile's `warnings` have values
    that Java reads differently from people, and its `slips` the keys that resemble a known one.
    """
    text = read_conf(Path(path))
    own = [key for key in text.differing if key in _KEYS.values() or key.startswith("lookup.")]
    if own:
        raise SettingsError([f"{path}: its brokers differ in {key}; give each a file of its own" for key in own])
    return _build_profile(path, text)


def _build_profile(path: str | os.PathLike[str], text: ConfText) -> BrokerProfile:
    values = dict(text.pairs)
    texts = {key: value for key, value in values.items() if value.strip()}
    fields: dict[str, Any] = {
        field: texts[key].strip() if field in _TEXTS else _read_value(key, texts[key])
        for field, key in _KEYS.items()
        if key in texts
    }
    fields.setdefault("load_manager_class_name", MODULAR_MANAGER)
    # All values, including empty ones, since a lookup property may be empty.
    fields["properties"] = published_properties(values, fields.get("lookup_property_prefix", "lookup."))
    fields["load_balancer"] = _select_manager_keys(texts)
    try:
        profile = BrokerProfile.model_validate({"file": str(path), **fields})
    except ValidationError as error:
        problems = []
        for loc, sentence in problems_of(error, BrokerProfile):
            # Users of a broker.conf know Pulsar's keys, not the fields of a profile.
            own = (_KEYS.get(str(loc[0]), loc[0]), *loc[1:]) if loc else ()
            problems.append(f"{path}: {place(own, sentence)}")
        raise SettingsError(problems) from None
    return profile.note_warnings(tuple(f"{path}: {sentence}" for sentence in _iter_cautions(text)))


def _iter_cautions(text: ConfText) -> Iterator[str]:
    yield from text.warnings
    counts = Counter(key for key, _ in text.pairs)
    for key, value in dict(text.pairs).items():
        if key in KEYS and key not in _KEYS.values() and not is_load_manager_key(key):
            continue
        if counts[key] > 1:
            yield f"{key} is given more than once; the last one counts, as in Pulsar"
        comment = "; in Java's properties a comment has a line of its own" if re.search(r"\s#", value) else ""
        if key in _TRUTHS and value.strip().lower() not in ("true", "false", ""):
            yield f"{key} = {shown(value.strip())} is neither true nor false, and Java reads it as false{comment}"
        elif comment:
            yield f"{key} = {shown(value.strip())} is its whole value{comment}"


@dataclass(frozen=True)
class Today:
    """A policy as Pulsar's keys describe it, in the words of settings."""

    #: keys of a `[[policies]]` table, without its name
    table: Mapping[str, Any]
    #: every key with its value, including the keys that chose parts
    keys: Mapping[str, Scalar]
    #: a sentence for everything that Pulsar itself would only log
    warnings: tuple[str, ...] = ()
    #: a sentence for every mistake. A wrong value is ignored
    problems: tuple[str, ...] = ()
    #: why no broker of the release has such a load manager, a sentence each
    refusals: tuple[str, ...] = ()
    #: bundles of a new namespace, if the file names them
    bundles: int | None = None
    #: the release whose rules count, and the reason as the end of a sentence, empty if the caller names it
    release: tuple[str, str] = (DEFAULT_RELEASE, "")
    #: the effect of each key of the load manager in the file, as the rest of a sentence
    fates: Mapping[str, str] = field(default_factory=dict)


def read_today(
    path: str, pulsar: str | None = None, beside: Mapping[str, Scalar] = {}, replaced_keys: Collection[str] = ()
) -> Today:
    """Read a `broker.conf` as a policy. Its mistakes are noted and reported together with those of its parts.

    Args:
        pulsar: release whose defaults and rules count. None is `DEFAULT_RELEASE`.
        beside: keys that take precedence over those of the file, in the same form.
        replaced_keys: those of `PAIR` that a written part replaces. Their classes may be unknown.

    Raises:
        SettingsError: if the file cannot be read.
    """
    problems = []
    if pulsar is not None and pulsar not in RELEASES:
        problems.append(f"pulsar: there is no release {shown(pulsar)}; {_suggest_release(pulsar)}")
    text = read_conf(Path(path))
    values = dict(text.pairs)
    name, why = _release_of(values) if pulsar is None else (pulsar if pulsar in RELEASES else DEFAULT_RELEASE, "")
    release = RELEASES[name]
    written = _select_manager_keys(values)
    own_keys = {_MANAGER: values.get(_MANAGER, "").strip() or MODULAR_MANAGER, **written, **beside}
    sources = {key: "broker_conf" if key in beside else path for key in (*release.defaults, *values, *own_keys)}
    own_keys = {key: value for key, value in own_keys.items() if key not in release.unknown}
    warnings: list[str] = []
    try:
        warnings += _build_profile(path, text).warnings
    except SettingsError as error:
        problems += error.problems
    mistakes = _find_mistakes({**release.defaults, **own_keys})
    problems += [f"{sources[key]}: {key}{each}" for key, each in mistakes.items() if key not in replaced_keys]
    for key in mistakes:
        own_keys.pop(key, None)
    keys = {**release.defaults, **own_keys}
    for new, old in _RESPELT.items():
        if keys[new] == 1.0 and old in keys:
            keys[new] = keys[old]
    refusals, replaced = ([], []) if replaced_keys else _check_strategies(keys, release)
    # Without the keys that have chosen parts. The part `load-manager-class` compares managers that brokers registered.
    chosen = (*CHOOSING_KEYS, *_RESPELT.values(), BUNDLES_KEY)
    conf = {key: value for key, value in keys.items() if key not in chosen}
    table = {**_build_parts(keys, str(keys[_MANAGER]), release), "broker_conf": conf}
    # Misspelt keys too.
    named = [key for key in (*values, *beside) if key == _MANAGER or is_load_manager_key(key) or near_miss(key)]
    fates = {key: _describe_effect(key, keys, _find_used_classes(keys, table), name) for key in named}
    sentences = {
        key: f"{sources[key]}: {printable(key[:80])} {fate}"
        for key, fate in fates.items()
        # Of a shedder that is off the class alone is no news.
        if fate != ACTS and key != _SHEDDER and not _is_default(key, {**written, **beside}.get(key, ""), release)
    }
    if not named:
        sentences[""] = f"{path}: has no key of the load manager, so that Pulsar's defaults count"
    # A misspelt key is reported with the mistakes, if there are any.
    slips = [sentences.pop(key) for key in named if problems and key in sentences and near_miss(key)]
    bundles = own_keys.get(BUNDLES_KEY)
    return Today(
        table,
        keys,
        (*warnings, *sentences.values(), *replaced),
        problems=(*problems, *slips),
        refusals=tuple(refusals),
        bundles=bundles if isinstance(bundles, int) else None,
        release=(name, why),
        fates=fates,
    )


def _release_of(values: Mapping[str, str]) -> tuple[str, str]:
    added = next((key for key in values if "5.0" in KEYS.get(key, ())), None)
    if added is None:
        return DEFAULT_RELEASE, "which counts where no release is known"
    return "5.0", f"because the file has {added}, which earlier releases do not know"


#: The effect of a key that changes something.
ACTS = "acts"


def _find_used_classes(keys: Mapping[str, Scalar], table: Mapping[str, Any]) -> Mapping[str, str]:
    """Find the configured classes, in the words of `broker_keys.txt`, by the end of the names of their kind."""
    manager, placement, shedder = (str(keys[key]).rpartition(".")[2] for key in (_MANAGER, _PLACEMENT, _SHEDDER))
    is_modular = keys[_MANAGER] == MODULAR_MANAGER
    in_use = {"LoadManagerImpl": manager, "Weight": placement if is_modular else manager}
    if "shedder" in table:
        in_use |= {"Shedder": shedder if is_modular else "TransferShedder", "any": "*Shedder"}
    if "splitter" in table:
        in_use |= {"splits": "splits", "divide": str(keys["defaultNamespaceBundleSplitAlgorithm"])}
    return in_use


def _describe_effect(key: str, keys: Mapping[str, Scalar], in_use: Mapping[str, str], release: str) -> str:
    """Describe the effect of a key, which acts, has no effect here, or is not modelled, with the reason."""
    words = KEYS.get(key, ())
    readers = [word for word in words if word[0] not in "=:~-" and word not in ("5.0", "unlisted", "splits")]
    if (guess := near_miss(key)) is not None:
        return f"has no effect: Pulsar does not know it; did you mean {guess!r}?"
    if key in RELEASES[release].unknown:
        return f"has no effect: Pulsar {release} does not know it"
    if key not in KEYS:
        return "is not modelled: no release from 4.0 to 5.0 knows it"
    if key in NO_EFFECT_SINCE:
        return f"has no effect since Pulsar {NO_EFFECT_SINCE[key]}"
    if any(key == old and keys[new] != keys[old] for new, old in _RESPELT.items()):
        return "has no effect beside the key without the slip"
    if "splits" in words and "splits" not in in_use:
        return "has no effect without automatic splits"
    if f"-{in_use['LoadManagerImpl']}" in words:
        return f"is not modelled under {in_use['LoadManagerImpl']}"
    if readers and not {*readers} & {*in_use.values()}:
        kind = next(kind for kind in ("Shedder", "LoadManagerImpl", "Weight", "divide") if readers[0].endswith(kind))
        only = "" if readers == ["*Shedder"] else f"; it is for {' or '.join(readers)}"
        return f"has no effect {f'under {in_use[kind]}' if kind in in_use else 'without shedding'}{only}"
    return "is not modelled" if key in NOT_MODELLED else ACTS


def _is_default(key: str, value: Scalar, release: PulsarRelease) -> bool:
    plain = re.sub(r"\s", "", value) if isinstance(value, str) else value
    return plain in ("", release.defaults.get(key, DEFAULTS.get(key)))


def _suggest_release(pulsar: str) -> str:
    if pulsar == "4.x":
        return 'write "4.0" or "4.2", whose rules differ'
    if re.match(r"[0-3](\.|\Z)", pulsar):
        return 'rules of releases before 4.0 differ, and the nearest is "4.0"'
    return suggestion(pulsar, list(RELEASES))


def _select_manager_keys(values: Mapping[str, str]) -> dict[str, Scalar]:
    """Select the keys of the load manager, including misspelt ones, which the profile's `slips` names."""
    return {
        key: _read_value(key, value)
        for key, value in values.items()
        if value.strip() and (is_load_manager_key(key) or near_miss(key) is not None)
    }


def _find_mistakes(keys: Mapping[str, Scalar]) -> dict[str, str]:
    """Describe by key the mistake in its value as the rest of a sentence, for a missing class or number."""
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
    wrong |= {
        key: f" = {shown(value)}: should be a whole number"
        for key, value in keys.items()
        if isinstance(value, float) and isinstance(DEFAULTS.get(key), int)
    }
    bundles = keys[BUNDLES_KEY]
    if BUNDLES_KEY not in wrong and not (isinstance(bundles, int) and 1 <= bundles <= MOST_BUNDLES):
        wrong[BUNDLES_KEY] = f" = {shown(bundles)}: should be a whole number from 1 to {MOST_BUNDLES}"
    return wrong


def _check_strategies(keys: dict[str, Scalar], release: PulsarRelease) -> tuple[list[str], list[str]]:
    placement, shedder = keys[_PLACEMENT], keys[_SHEDDER]
    is_foreign = shedder not in _SHEDDERS[str(keys[_MANAGER])]
    foreign = f"{_SHEDDER}: {printable(str(shedder))} is not for {str(keys[_MANAGER]).rpartition('.')[2]}"
    refusals: list[str] = []
    warnings: list[str] = []
    if keys[_MANAGER] == EXTENSIBLE_MANAGER:
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
    problem = f"{_PLACEMENT}: {placed_by} does not go with {shed_by}"
    if shedder == _AVG:
        warnings.append(f"{_PLACEMENT}: {placed_by} places bundles elsewhere than {shed_by} planned")
    elif release.replaces_placement:
        keys[_PLACEMENT] = _FALLBACK
        warnings.append(f"{problem}, and LeastLongTermMessageRate takes its place")
    else:
        refusals.append(f"{problem}: {release.without_strategy}")
    return refusals, warnings


def _build_parts(keys: Mapping[str, Scalar], manager: str, release: PulsarRelease) -> dict[str, Any]:
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
            # At a second call it returns the value it has just remembered, overloaded or not.
            table["second_choice"]["overloaded"] = _NEVER
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerSheddingEnabled"):
        shedder = _SHEDDERS[manager].get(str(keys[_SHEDDER]), "transfer")
        table["shedder"] = {"use": shedder, **release.parts.get(shedder, {})}
        if manager == MODULAR_MANAGER:
            table["destination_first"] = True
    if _is_on(keys, "loadBalancerEnabled") and _is_on(keys, "loadBalancerAutoBundleSplitEnabled"):
        algorithm = str(keys["defaultNamespaceBundleSplitAlgorithm"]).replace("_", "-")
        table["splitter"] = {"use": _SPLITTERS[manager], "algorithm": _ALGORITHMS.get(algorithm, algorithm)}
        # The extensible manager does not read the key. Its children stay with the owner of their parent.
        table["unload_children"] = manager == MODULAR_MANAGER and _is_on(keys, _UNLOAD_CHILDREN)
    return table


def _is_on(keys: Mapping[str, Scalar], key: str) -> bool:
    # Java reads every text but "true", in any case, as false.
    return str(keys[key]).lower() == "true"


def _read_value(key: str, text: str) -> Scalar:
    return text.strip().lower() == "true" if key in _TRUTHS else parse_value(text)
