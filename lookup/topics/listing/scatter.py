"""Asking every owner of a namespace's bundles for the topics it has loaded, and putting the answers together.

`Gathering` is the coordinator of one request: a state machine without I/O and without a clock. It says whom to ask, is
told what came back, and at the end states what is missing. `loaded_topics` is what an owner answers.

| state   | `start()`           | `answered()`, `failed()`, `timed_out()`                         |
| ------- | ------------------- | --------------------------------------------------------------- |
| new     | -> asking: the asks | misuse                                                          |
| asking  | misuse              | asks that may follow; -> done if nobody is left to wait for  |
| done    | misuse              | nothing: an answer that comes too late                          |

Source: second draft of PIP-451. Topics that no broker has loaded are invisible to it, by design.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from lookup.errors import ArgumentError, StateError
from lookup.model.bundles import bundle_of
from lookup.model.catalog import CatalogView, Selector, TopicEntry
from lookup.topics.catalog.naming import prefixes_of, without_system_topics
from lookup.topics.rules import ScatterLimits

__all__ = [
    "Ask",
    "Failure",
    "Gathered",
    "Gathering",
    "OwnerAnswer",
    "ScatterQuery",
    "loaded_topics",
]

#: Why topics are missing; `moved`: the bundle changed hands while it was asked for; `unowned`: it has no owner yet.
Failure: TypeAlias = Literal["failed", "timed out", "not asked", "moved", "unowned"]


@dataclass(frozen=True, slots=True)
class ScatterQuery:
    """Which loaded topics of a namespace are asked for: those with all properties, or those a selector takes.

    Raises:
        ArgumentError: if nothing says which; everything is never the answer to a mistake.
    """

    namespace: str
    #: sorted by key
    properties: tuple[tuple[str, str], ...] = ()
    selector: Selector = ()
    #: ask the local broker alone, as an owner is asked by the coordinator
    only_local: bool = False

    def __post_init__(self) -> None:
        if not self.properties and not self.selector:
            raise ArgumentError(f"a query of {self.namespace!r} needs properties or a selector")

    def takes(self, entry: TopicEntry) -> bool:
        """Return whether a topic is asked for."""
        fits = all(entry.properties.get(key) == value for key, value in self.properties)
        return fits and all(term.matches(entry.labels) for term in self.selector)


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """What one owner found."""

    topics: Sequence[str]
    #: the bundles it owned when it looked, as `0x00000000_0x80000000`
    bundles: Iterable[str]
    #: it looked at loaded topics only
    active_only: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to send: `query` with `only_local` set."""

    broker: str
    query: ScatterQuery


@dataclass(frozen=True, slots=True)
class Gathered:
    """The answers put together."""

    #: sorted, each once
    topics: tuple[str, ...]
    #: broker, or range of a bundle that is unowned -> why its topics may be missing
    missing: Mapping[str, Failure]
    #: topics that are not loaded were not looked at, at one of the owners at least
    active_only: bool

    @property
    def is_partial_result(self) -> bool:
        """Return whether topics may be missing; such a result never removes a subscription."""
        return bool(self.missing)


class Gathering:
    """One request on its way to the owners and back.

    Args:
        query: what is asked for.
        owners: bundle range -> its owner, None if it has none at the moment: its topics are missing then.
        local: the broker that coordinates.
        limits: how many are asked, and how many at once.

    Raises:
        ArgumentError: if no bundles are given; every namespace has some, so nobody knows them yet.
    """

    def __init__(
        self,
        query: ScatterQuery,
        owners: Mapping[str, str | None],
        *,
        local: str,
        limits: ScatterLimits | None = None,
    ) -> None:
        if not owners and not query.only_local:
            raise ArgumentError(f"no bundles of {query.namespace!r} are given, so there is no owner to ask")
        self._query = query
        self._limits = limits or ScatterLimits()
        self._prefixes = prefixes_of(query.namespace, "all")
        self._bundles = _bundles_by_owner(owners, local if query.only_local else None)
        # The local broker first: it is asked whatever the limit, and its answer costs no connection.
        self._waiting = deque(sorted(self._bundles, key=lambda broker: (broker != local, broker)))
        unowned = [] if query.only_local else [bundle for bundle, owner in owners.items() if owner is None]
        self._missing: dict[str, Failure] = dict.fromkeys(unowned, "unowned")
        self._asked: set[str] = set()
        self._answers: dict[str, OwnerAnswer] = {}
        self._is_started = False

    @property
    def is_done(self) -> bool:
        """Return whether nobody is left to wait for."""
        return self._is_started and not self._asked and not self._waiting

    @property
    def pending(self) -> tuple[str, ...]:
        """Return the brokers whose answers are awaited, sorted."""
        return tuple(sorted(self._asked))

    def start(self) -> tuple[Ask, ...]:
        """Return whom to ask first.

        Raises:
            StateError: if it was started before.
        """
        if self._is_started:
            raise StateError(f"the owners of {self._query.namespace!r} are being asked already")
        self._is_started = True
        while len(self._waiting) > self._limits.owners:
            self._missing[self._waiting.pop()] = "not asked"
        return self._go_on()

    def answered(self, broker: str, answer: OwnerAnswer) -> tuple[Ask, ...]:
        """Take an owner's answer; return whom to ask now.

        An answer with a topic of another namespace is no answer to this question, and counts as a failure.
        """
        if not self._ends(broker):
            return ()
        if all(topic.startswith(self._prefixes) for topic in answer.topics):
            self._answers[broker] = OwnerAnswer(answer.topics, frozenset(answer.bundles), answer.active_only)
        else:
            self._missing[broker] = "failed"
        return self._go_on()

    def failed(self, broker: str) -> tuple[Ask, ...]:
        """Note that an owner could not be asked, or refused; return whom to ask now."""
        return self._lose(broker, "failed")

    def timed_out(self, broker: str) -> tuple[Ask, ...]:
        """Note that an owner did not answer in time; return whom to ask now."""
        return self._lose(broker, "timed out")

    def _lose(self, broker: str, failure: Failure) -> tuple[Ask, ...]:
        if not self._ends(broker):
            return ()
        self._missing[broker] = failure
        return self._go_on()

    def _ends(self, broker: str) -> bool:
        """Return whether an owner's answer was still awaited, which it is no longer.

        Raises:
            StateError: if nobody was asked yet.
        """
        if not self._is_started:
            raise StateError(f"the owners of {self._query.namespace!r} were not asked yet")
        was_awaited = broker in self._asked
        self._asked.discard(broker)
        return was_awaited

    def _go_on(self) -> tuple[Ask, ...]:
        asks = []
        while self._waiting and len(self._asked) < self._limits.at_once:
            broker = self._waiting.popleft()
            self._asked.add(broker)
            asks.append(Ask(broker, _locally(self._query)))
        return tuple(asks)

    def result(self) -> Gathered:
        """Put the answers together.

        Raises:
            StateError: while answers are awaited.
        """
        if not self.is_done:
            raise StateError(
                f"the owners of {self._query.namespace!r} have not all answered: {', '.join(self.pending)}"
            )
        topics = sorted({topic for answer in self._answers.values() for topic in answer.topics})
        missing = dict(sorted({**self._moved(), **self._missing}.items()))
        active_only = bool(missing) or any(answer.active_only for answer in self._answers.values())
        return Gathered(tuple(topics), MappingProxyType(missing), active_only)

    def _moved(self) -> dict[str, Failure]:
        """Return the owners that had lost a bundle they were asked for, and nobody else who answered had it."""
        covered = {bundle for answer in self._answers.values() for bundle in answer.bundles}
        return {broker: "moved" for broker in self._answers if self._bundles[broker] - covered}


def _bundles_by_owner(owners: Mapping[str, str | None], only: str | None) -> dict[str, frozenset[str]]:
    """Turn the ownership round; with `only`, leave that broker alone in it, whatever it owns."""
    if only is not None:
        return {only: frozenset()}
    named = {owner for owner in owners.values() if owner is not None}
    return {broker: frozenset(bundle for bundle, owner in owners.items() if owner == broker) for broker in named}


def _locally(query: ScatterQuery) -> ScatterQuery:
    return ScatterQuery(query.namespace, query.properties, query.selector, only_local=True)


def loaded_topics(
    catalog: CatalogView, query: ScatterQuery, *, boundaries: Sequence[int], owned: Iterable[str]
) -> OwnerAnswer:
    """Answer for one owner: the users' topics asked for that are loaded and in its bundles, sorted.

    Args:
        catalog: the topics the owner knows of.
        boundaries: of the namespace's bundles, rising from 0.
        owned: ranges of the bundles it owns.
    """
    mine = frozenset(owned)
    names = without_system_topics(catalog.topics(query.namespace, "all"))
    entries = map(catalog.entry, names)
    found = (entry.name for entry in entries if entry is not None and entry.is_loaded and query.takes(entry))
    return OwnerAnswer([name for name in found if str(bundle_of(name, boundaries)) in mine], mine)
