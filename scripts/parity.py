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

#: Why nothing here goes by a key.
REASONS: Mapping[str, str] = {
    "atLeastOneBundleSelected": ("no release from 4.0 to 5.0 has it: it is in a page of Pulsar's documentation only"),
    "defaultNumberOfSystemNamespaceBundles": "bundles of `pulsar/system` in 5.0; `[[namespaces]]` can name them",
    "loadBalancerBrokerComfortLoadLevelPercentage": (
        "of the simple load manager of early releases; neither the modular nor the extensible manager reads it"
    ),
    "loadBalancerBrokerUnderloadedThresholdPercentage": (
        "of the simple load manager of early releases; neither the modular nor the extensible manager reads it"
    ),
    "loadBalancerHostUsageCheckIntervalMinutes": (
        "how often a broker looks at its own machine; load comes from LOADS or from the replay, a figure per grid cell"
    ),
    "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis": (
        "how long a lookup waits for an owner, and a state may last; in a replay bundles change hands at once"
    ),
    "loadBalancerMemoryResourceWeight": "heap is no resource since Pulsar 3.0; a value other than 0 is warned of",
    "loadBalancerMultiPhaseBundleUnload": (
        "when clients of a transferred bundle are disconnected; a replay follows lookups, not connections"
    ),
    "loadBalancerOverrideBrokerNicSpeedGbps": (
        "makes up for machines that do not tell the speed of their network; here a broker's `capacity` says what it "
        "carries"
    ),
    "loadBalancerOverrideBrokerNics": (
        "names the network cards whose speed counts; here a broker's `capacity` says what it carries"
    ),
    "loadBalancerPlacementStrategy": (
        "of the simple load manager of early releases; today's key is `loadBalancerLoadPlacementStrategy`"
    ),
    "loadBalancerResourceQuotaUpdateIntervalMinutes": (
        "how often the modular manager writes quotas to the metadata store; a replay writes none"
    ),
    "loadBalancerServiceUnitStateMaxConcurrentOverrides": (
        "bounds how many overrides the leader has under way; here they take no time, so none waits for another"
    ),
    "loadBalancerServiceUnitStateMonitorIntervalInSeconds": (
        "how often the leader looks for states that are stuck; in a replay bundles change hands at once"
    ),
    "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds": (
        "how long records of bundles without owner are kept; a replay keeps no records"
    ),
    "loadBalancerServiceUnitTableViewSyncer": (
        "copies records from one storage into the other while a cluster is moved; a replay has neither"
    ),
    "loadBalancerSplitIntervalMinutes": (
        "a scenario has a split cycle in every minute, a replay has none; the modular manager does not read the key "
        "and looks at every report"
    ),
    "loadManagerMigrationEnabled": (
        "whether brokers of one manager send lookups to those of the other, in 5.0; what a replay does by the brokers' "
        "classes does the filter `load-manager-class`"
    ),
    "loadManagerServiceUnitStateTableViewClassName": (
        "where records are kept; what differs in the rules is `ChannelStorage` of `lookup.engine.service_unit`, and a "
        "replay keeps none"
    ),
    "namespaceBundleUnloadingTimeoutMs": "how long an operation waits for brokers to answer; nothing here has to wait",
    "supportedNamespaceBundleSplitAlgorithms": (
        "a list of what administrators may ask for; a policy names the algorithm it splits by"
    ),
    "topicBundleAssignmentStrategy": (
        "a class that maps topics to bundles; only Pulsar's own, by hash, is built in, and what another one decided "
        "cannot be read from its name"
    ),
    **{key: "scalable topics of 5.0 are not modelled" for key in KEYS if key.startswith("scalableTopic")},
}

_LONG_RUN = (
    "`modular-split` compares means of the long run, as `BundleSplitterTask` does (4.0.4, 4.2.4). A scenario adds a "
    "sample to them in every minute; Pulsar adds one at every report of any broker, and forgets a bundle that no "
    "report names, so there a split may come sooner or later"
)
#: What a row has to say beyond where the key acts.
NOTES: Mapping[str, str] = {
    "loadBalancerAutoUnloadSplitBundlesEnabled": (
        "the modular manager's (`ModularLoadManagerImpl.checkNamespaceBundleSplit`, 4.0.4, 4.2.4): not if isolation "
        "permits no other broker. Pulsar does not unload either if the anti-affinity group would not gain; here the "
        "next lookup of a child decides"
    ),
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": _LONG_RUN,
    "loadBalancerNamespaceBundleMaxMsgRate": _LONG_RUN,
    "loadBalancerSheddingExcludedNamespaces": (
        "PIP-380 (PR 23549), not in 4.0.4, in 4.2.4: `TopKBundles`, `TransferShedder`, "
        "`ModularLoadManagerImpl.doLoadShedding`. Placement in turn (`ModularLoadManagerImpl.selectBroker`, "
        "`ExtensibleLoadManagerImpl.getBrokerSelectionStrategy`) is selector `by-namespace`. If the choice in turn is "
        "overloaded, Pulsar's modular manager asks its placement strategy; here the second choice is in turn as well"
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

_INTRODUCTION = """# Pulsar's keys, and what does the same here

Every key of `broker.conf` by which Pulsar's load managers decide: what goes by it here, or why nothing does. A part's
parameter takes its value from the `broker.conf` of the brokers' profile unless the policy says otherwise, times the
factor in parentheses where units differ. This page is written by
`python scripts/parity.py docs/pulsar-parity.md`; what goes by a key is found in the parts and in the sources, and a
test compares page and code. Defaults, units and Pulsar's own rules:
[configuration](pulsar/configuration.md), [load managers](pulsar/load-managers.md).
"""


def parity_page(registry: Registry, before: str) -> str:
    """Return the page as Markdown, with the table that `python -m tests.parity` wrote as it stood before."""
    found = implementations(registry)
    here = {key: "<br>".join((*found[key], *filter(None, [NOTES.get(key)]))) for key in KEYS if key in found}
    reasons = {key: REASONS[key] for key in KEYS if key in REASONS and key not in found}
    _, begin, rest = before.partition(CLASSES_BEGIN)
    table, end, _ = rest.partition(CLASSES_END)
    sections = [
        _INTRODUCTION,
        f"{begin}{table}{end}" if end else f"{CLASSES_BEGIN}{CLASSES_END}",
        f"## What goes by a key\n\n{_table('what goes by it', here)}",
        f"## What deliberately does not\n\n{_table('why', reasons)}",
    ]
    return "\n".join(sections)


def _table(heading: str, rows: Mapping[str, str]) -> str:
    lines = ["| key | " + heading + " |", "|---|---|", *(f"| `{key}` | {said} |" for key, said in rows.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(parity_page(load_plugins(), page.read_text(encoding="utf-8")), encoding="utf-8")
