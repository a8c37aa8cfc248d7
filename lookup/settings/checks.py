"""What no single table of an evaluation can see: names that must meet, intervals that must not.

Every check names the tables it needs, so that it still speaks where other tables are wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from lookup.settings.broker import BrokerEntry
from lookup.settings.namespace import NamespaceEntry
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import Loc, suggestion
from lookup.settings.sections import EvaluationSection, InputsSection

__all__ = ["cross_problems"]

Found = Iterator[tuple[Loc, str]]


def cross_problems(tables: Mapping[str, Any]) -> list[tuple[Loc, str]]:
    """Return place and sentence of every mistake between tables.

    Args:
        tables: by its key in the file, every table that is right in itself.
    """
    due = ((check, needs) for check, needs in _CHECKS if all(name in tables for name in needs))
    return [found for check, needs in due for found in check(*(tables[name] for name in needs))]


def _policies_named_once(policies: Sequence[PolicySpec]) -> Found:
    for name, count in Counter(policy.name for policy in policies).items():
        if count > 1:
            yield ("policies",), f"{count} policies are named {name!r}; a name should occur once"


def _incumbent_known(evaluation: EvaluationSection, policies: Sequence[PolicySpec]) -> Found:
    names = [policy.name for policy in policies]
    if evaluation.incumbent not in names:
        hint = suggestion(evaluation.incumbent, names)
        yield ("evaluation", "incumbent"), f"there is no policy named {evaluation.incumbent!r}; {hint}"


def _loads_given(evaluation: EvaluationSection, inputs: InputsSection) -> Found:
    if evaluation.load == "reported" and inputs.loads is None:
        yield ("evaluation", "load"), '"reported" needs a LOADS table: give inputs.loads'


def _namespaces_named_once(namespaces: Sequence[NamespaceEntry]) -> Found:
    for name, count in Counter(entry.name for entry in namespaces).items():
        if count > 1:
            yield ("namespaces",), f"{count} entries are named {name!r}; a namespace should occur once"


def _domains_disjoint(domains: Mapping[str, Sequence[str]]) -> Found:
    for broker, count in Counter(broker for brokers in domains.values() for broker in brokers).items():
        if count > 1:
            yield ("failure_domains",), f"broker {broker!r} is listed {count} times; it can be in one domain only"


def _intervals_disjoint(brokers: Sequence[BrokerEntry]) -> Found:
    by_id: dict[str, list[tuple[int, BrokerEntry]]] = {}
    for place, entry in enumerate(brokers):
        for broker in entry.ids:
            by_id.setdefault(broker, []).append((place, entry))
    for broker, entries in by_id.items():
        for number, (place, entry) in enumerate(entries):
            clash = next((other for other, earlier in entries[:number] if _overlap(earlier, entry)), None)
            if clash is not None:
                yield ("brokers", place), f"{broker!r} is registered by brokers[{clash}] at the same time"


def _overlap(a: BrokerEntry, b: BrokerEntry) -> bool:
    together = a.clusters is None or b.clusters is None or bool(set(a.clusters) & set(b.clusters))
    return together and _before(a.from_, b.until) and _before(b.from_, a.until)


def _before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


_CHECKS: tuple[tuple[Callable[..., Found], tuple[str, ...]], ...] = (
    (_policies_named_once, ("policies",)),
    (_incumbent_known, ("evaluation", "policies")),
    (_loads_given, ("evaluation", "inputs")),
    (_namespaces_named_once, ("namespaces",)),
    (_domains_disjoint, ("failure_domains",)),
    (_intervals_disjoint, ("brokers",)),
)
