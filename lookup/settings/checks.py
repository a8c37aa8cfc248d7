"""What no single table of an evaluation can see: names that must meet, intervals that must not.

Every check names the tables and keys it needs, so that it still speaks where others are wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from lookup.model.quoting import shown, suggestion
from lookup.settings.broker import BrokerEntry
from lookup.settings.problems import Loc

__all__ = ["Named", "cross_problems"]

Found = Iterator[tuple[Loc, str]]
_ABSENT = object()


class Named(Protocol):
    """What of an entry matters where names are compared."""

    @property
    def name(self) -> str:
        """Return the entry's name."""


def cross_problems(tables: Mapping[str, Any]) -> list[tuple[Loc, str]]:
    """Return place and sentence of every mistake between tables.

    Args:
        tables: by its key in the file, every table that is right in itself; of a table that is not, an object with the
            keys that are.
    """
    given = ((check, [_value(tables, path) for path in needs]) for check, needs in _CHECKS)
    return [found for check, values in given if _ABSENT not in values for found in check(*values)]


def _value(tables: Mapping[str, Any], path: str) -> Any:
    table, _, key = path.partition(".")
    found = tables.get(table, _ABSENT)
    return getattr(found, key, _ABSENT) if key else found


def _policies_named_once(policies: Sequence[Named]) -> Found:
    for name, count in Counter(policy.name for policy in policies).items():
        if count > 1:
            yield ("policies",), f"{count} policies are named {shown(name)}; a name should occur once"


def _incumbent_known(incumbent: str, policies: Sequence[Named]) -> Found:
    names = [policy.name for policy in policies]
    if incumbent not in names:
        hint = suggestion(incumbent, names)
        yield ("evaluation", "incumbent"), f"there is no policy named {shown(incumbent)}; {hint}"


def _loads_given(load: str, loads: str | None) -> Found:
    if load == "reported" and loads is None:
        yield ("evaluation", "load"), '"reported" needs a LOADS table: give inputs.loads'


def _namespaces_named_once(namespaces: Sequence[Named]) -> Found:
    for name, count in Counter(entry.name for entry in namespaces).items():
        if count > 1:
            yield ("namespaces",), f"{count} entries are named {shown(name)}; a namespace should occur once"


def _domains_disjoint(domains: Mapping[str, Sequence[str]]) -> Found:
    for broker, count in Counter(broker for brokers in domains.values() for broker in brokers).items():
        if count > 1:
            yield ("failure_domains",), f"broker {shown(broker)} is listed {count} times; it can be in one domain only"


def _intervals_disjoint(brokers: Sequence[BrokerEntry]) -> Found:
    by_id: dict[str, list[tuple[int, BrokerEntry]]] = {}
    for place, entry in enumerate(brokers):
        for broker in entry.ids:
            by_id.setdefault(broker, []).append((place, entry))
    for broker, entries in by_id.items():
        for number, (place, entry) in enumerate(entries):
            clash = next((other for other, earlier in entries[:number] if _overlap(earlier, entry)), None)
            if clash is not None:
                yield ("brokers", place), f"{shown(broker)} is registered by brokers[{clash}] at the same time"


def _overlap(a: BrokerEntry, b: BrokerEntry) -> bool:
    together = a.clusters is None or b.clusters is None or bool(set(a.clusters) & set(b.clusters))
    return together and _before(a.from_, b.until) and _before(b.from_, a.until)


def _before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


_CHECKS: tuple[tuple[Callable[..., Found], tuple[str, ...]], ...] = (
    (_policies_named_once, ("policies",)),
    (_incumbent_known, ("evaluation.incumbent", "policies")),
    (_loads_given, ("evaluation.load", "inputs.loads")),
    (_namespaces_named_once, ("namespaces",)),
    (_domains_disjoint, ("failure_domains",)),
    (_intervals_disjoint, ("brokers",)),
)
