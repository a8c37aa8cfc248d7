"""The page that says of every key of Pulsar's load managers what implements it here, or why nothing does.

What implements a key is found, not listed: parts mark their parameters (`Conf`); fields and arguments of model, engine
and settings name their key where they are documented; settings read some keys by name. Only reasons are
written by hand, in one table. `python scripts/parity.py FILE` writes the page.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import lookup
from lookup.engine.plugins import Registry, load_plugins
from lookup.hooks.protocols import Conf
from lookup.settings.pulsar_keys import LOAD_MANAGER_KEYS

__all__ = ["CLASSES_BEGIN", "CLASSES_END", "KEYS", "REASONS", "implementations", "parity_page"]

#: Between them is the table of Pulsar's own classes, which needs their jars.
CLASSES_BEGIN, CLASSES_END = "<!-- classes: written by python -m tests.parity -->\n", "<!-- end of classes -->\n"
#: Every key of `docs/pulsar/configuration.md` by which load managers decide.
KEYS = tuple(
    sorted({*LOAD_MANAGER_KEYS, "failureDomainsEnabled", "loadManagerClassName", "lookupPropertyPrefix"}, key=str.lower)
)

_KNOWN = frozenset(KEYS)

_AT_ONCE = "a time or limit of changes of owners. In a replay bundles change owners at once"
_CAPACITY = "the speed of a machine's network. Set the `capacity` of brokers instead"
_RECORDS = "the storage of ownership records. A replay has none"
_SIMPLE = "of the simple load manager of early releases. Neither the modular nor the extensible manager reads it"

#: Why nothing here goes by a key.
REASONS: Mapping[str, str] = {
    "atLeastOneBundleSelected": "in Pulsar's documentation, but in no release from 4.0 to 5.0",
    "defaultNumberOfSystemNamespaceBundles": "bundles of `pulsar/system` in 5.0. You can list them in `[[namespaces]]`",
    "loadBalancerBrokerComfortLoadLevelPercentage": _SIMPLE,
    "loadBalancerBrokerUnderloadedThresholdPercentage": _SIMPLE,
    "loadBalancerHostUsageCheckIntervalMinutes": "sampling of a machine. Load comes from LOADS or the replay",
    "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis": _AT_ONCE,
    "loadBalancerMemoryResourceWeight": "heap has no effect since Pulsar 3.0. A value other than 0 gives a warning",
    "loadBalancerMultiPhaseBundleUnload": "the time at which clients disconnect. A replay has no connections",
    "loadBalancerOverrideBrokerNicSpeedGbps": _CAPACITY,
    "loadBalancerOverrideBrokerNics": _CAPACITY,
    "loadBalancerPlacementStrategy": _SIMPLE,
    "loadBalancerResourceQuotaUpdateIntervalMinutes": "the modular manager's quotas. A replay has none",
    "loadBalancerServiceUnitStateMaxConcurrentOverrides": _AT_ONCE,
    "loadBalancerServiceUnitStateMonitorIntervalInSeconds": _AT_ONCE,
    "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds": _RECORDS,
    "loadBalancerServiceUnitTableViewSyncer": _RECORDS,
    "loadBalancerSplitIntervalMinutes": (
        "a scenario has a split cycle in every minute, a replay has none. The modular manager does not read the key"
    ),
    "loadManagerMigrationEnabled": (
        "forwarding between brokers of two managers, in 5.0. Use the filter `load-manager-class` in a replay"
    ),
    "loadManagerServiceUnitStateTableViewClassName": _RECORDS,
    "namespaceBundleUnloadingTimeoutMs": _AT_ONCE,
    "supportedNamespaceBundleSplitAlgorithms": "a limit for administrators. A policy names its algorithm",
    "topicBundleAssignmentStrategy": "only Pulsar's own assignment of topics to bundles, by hash, is built in",
    **{key: "scalable topics of 5.0 are not modelled" for key in KEYS if key.startswith("scalableTopic")},
}

_LONG_RUN = (
    "`modular-split` compares long-run means like `BundleSplitterTask`. A scenario adds a sample to them each minute, "
    "Pulsar at every report of any broker, so its splits may come at other times"
)
#: What a row has to say beyond where the key acts.
NOTES: Mapping[str, str] = {
    "loadBalancerAutoUnloadSplitBundlesEnabled": (
        "for the modular manager. No unload if isolation permits no other broker. Pulsar also keeps children if their "
        "anti-affinity group would not gain. Here the next lookup decides"
    ),
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": _LONG_RUN,
    "loadBalancerNamespaceBundleMaxMsgRate": "see `loadBalancerNamespaceBundleMaxBandwidthMbytes`",
    "loadBalancerSheddingExcludedNamespaces": (
        "since 4.2 (PIP-380, PR 23549). Placement in turn is selector `by-namespace`. If that broker is overloaded, "
        "Pulsar's modular manager uses its placement strategy, and here the next in turn is chosen"
    ),
}

#: Rooms whose sources are searched, and modules there that only list keys.
_ROOMS = ("engine", "model", "settings")
_LISTS = frozenset({"pulsar_keys", "releases"})
_ROOT = Path(lookup.__file__).parent
_WORD = re.compile(r"(like )?([A-Za-z]+)")
_ARGUMENT = re.compile(r"^\s+(\w+): ")


def implementations(registry: Registry) -> dict[str, list[str]]:
    """Return what implements each key, in words; keys without any are absent."""
    found: dict[str, list[str]] = {}
    for key, place in [*_parts(registry), *_documented(), *_read_by_name()]:
        places = found.setdefault(key, [])
        if place not in places:
            places.append(place)
    return found


# Parts


def _parts(registry: Registry) -> Iterator[tuple[str, str]]:
    for kind, classes in registry.classes.items():
        for name, found in classes.items():
            for parameter, conf in _marked(found):
                scale = "" if conf.scale == 1.0 else f" (× {conf.scale:.10g})"
                yield conf.key, f"{kind.removesuffix('s').replace('_', ' ')} `{name}`: `{parameter}`{scale}"


def _marked(found: type[Any]) -> Iterator[tuple[str, Conf]]:
    hints = get_type_hints(found, include_extras=True)
    for entry in fields(found):
        for marker in getattr(hints[entry.name], "__metadata__", ()):
            if isinstance(marker, Conf):
                yield entry.name, marker


# Sources


@cache
def _sources() -> tuple[tuple[str, str, ast.Module], ...]:
    """Return module, text and syntax of every source that is searched and names a key at all."""
    paths = [path for room in _ROOMS for path in sorted((_ROOT / room).rglob("*.py")) if path.stem not in _LISTS]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return tuple(
        (".".join(path.relative_to(_ROOT.parent).with_suffix("").parts), text, ast.parse(text))
        for path, text in texts.items()
        if _keys_in(text)
    )


def _keys_in(text: str) -> list[str]:
    # "like loadBalancerX" names a key as an example.
    return [word for like, word in _WORD.findall(text) if word in _KNOWN and not like]


def _documented() -> Iterator[tuple[str, str]]:
    """Return keys that comments of fields, or docstrings, name."""
    for module, text, tree in _sources():
        for place, said in _said_in(tree, text.splitlines(), ""):
            for key in _keys_in(said):
                yield key, f"`{place}` in `{module}`"


def _said_in(node: ast.AST, lines: Sequence[str], outer: str) -> Iterator[tuple[str, str]]:
    body: Sequence[ast.stmt] = getattr(node, "body", ())
    before = ""
    for statement in body:
        name = _name_of(statement)
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            yield from _arguments(outer + statement.name, ast.get_docstring(statement, clean=False) or "")
            yield from _said_in(statement, lines, f"{outer}{statement.name}.")
        elif name is not None:
            yield outer + name, _comment_above(lines, statement.lineno)
        elif before and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            # A text below a field is what settings say of it.
            yield outer + before, str(statement.value.value)
        before = name or ""


def _name_of(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def _comment_above(lines: Sequence[str], lineno: int) -> str:
    said: list[str] = []
    for line in reversed(lines[: lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        said.append(line)
    return "\n".join(said)


def _arguments(place: str, docstring: str) -> Iterator[tuple[str, str]]:
    """Return what a docstring says, by argument where it is about one."""
    said: list[str] = []
    where = place
    for line in docstring.splitlines():
        found = _ARGUMENT.match(line)
        if found or not line.strip():
            yield where, "\n".join(said)
            said, where = [], f"{place}({found[1]})" if found else place
        said.append(line)
    yield where, "\n".join(said)


def _read_by_name() -> Iterator[tuple[str, str]]:
    """Return keys that settings look up by name."""
    for module, _, tree in _sources():
        if module.startswith("lookup.settings."):
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and node.value in _KNOWN:
                    yield str(node.value), f"read by `{module}`"


# The page

#: What a user calls the models of settings.
_DOCUMENTS = {"BrokerProfile": "the profile", "PolicySpec": "the policy", "ServingSection": "`[serving]`"}
_INTRODUCTION = """# Pulsar's keys

After this page you know which key of `broker.conf` has an effect here, and on which part. If your policy does not set a
parameter, it has the value of the `broker.conf` in the brokers' profile, times the factor in parentheses. You find
defaults, units and Pulsar's own rules in [configuration](pulsar/configuration.md) and
[load managers](pulsar/load-managers.md). `python scripts/parity.py docs/pulsar-parity.md` writes this page.
"""


def parity_page(registry: Registry, before: str) -> str:
    """Return the page as Markdown, with the table that `python -m tests.parity` wrote as it stood before."""
    found = implementations(registry)
    here = {key: _places(found[key], NOTES.get(key, "")) for key in KEYS if key in found}
    reasons: dict[str, list[str]] = {}
    for key in KEYS:
        if key not in found:
            reasons.setdefault(REASONS[key], []).append(f"`{key}`")
    without = {", ".join(keys): reason for reason, keys in reasons.items()}
    _, begin, rest = before.partition(CLASSES_BEGIN)
    table, end, _ = rest.partition(CLASSES_END)
    sections = [
        _INTRODUCTION,
        f"{begin}{table}{end}" if end else f"{CLASSES_BEGIN}{CLASSES_END}",
        f"## Keys with an effect\n\n{_table('effect', {f'`{key}`': places for key, places in here.items()})}",
        f"## Keys without an effect\n\n{_table('why', without)}",
    ]
    return "\n".join(sections)


def _places(places: Sequence[str], note: str) -> str:
    """Keep the places that a user can set, if there are any: parameters of parts, and settings."""
    named = [place for place in places if not place.startswith("read by")]
    outside = [place for place in named if "`lookup.engine" not in place and "`lookup.model" not in place]
    texts = [re.sub(r"^`(\w+)\.(\w+)` in `lookup\.settings\..*", _setting, place) for place in outside]
    return "<br>".join(filter(None, (*(texts or named or ["the parts of the policy"]), note)))


def _setting(found: re.Match[str]) -> str:
    return f"`{found[2]}` of {_DOCUMENTS.get(found[1], found[1])}"


def _table(heading: str, rows: Mapping[str, str]) -> str:
    lines = ["| key | " + heading + " |", "|---|---|", *(f"| {keys} | {text} |" for keys, text in rows.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(parity_page(load_plugins(), page.read_text(encoding="utf-8")), encoding="utf-8")
