"""Ask every owner of a namespace's bundles for the topics it has loaded, and put the answers together.

`Gathering` is the coordinator of one request: a state machine without I/O and without a clock. It returns the
questions to ask, takes in the answers, and at the end states what is missing. `loaded_topics` makes an owner's answer.

| state   | `start()`           | `answered()`, `failed()`, `timed_out()`                         |
| ------- | ------------------- | --------------------------------------------------------------- |
| new     | -> asking: the asks | misuse                                                          |
| asking  | misuse              | asks that may follow; -> done if no answer is awaited any more  |
| done    | misuse              | nothing: an answer that comes too late                          |

Source: second draft of PIP-451. Topics that no broker has loaded are invisible to it, by design.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from lookup.errors import ArgumentError, StateError
from lookup.model.bundles import bundle_of
from lookup.model.catalog import CatalogView, Mode
from lookup.topics.catalog.naming import prefixes_of
from lookup.topics.listing.topic_query import TopicQuery, topics_of
from lookup.topics.rules import ScatterLimits

__all__ = [
    "Ask", "Failure", "Gathered", "Gathering", "OwnerAnswer", "ScatterQuery", "loaded_topics",
]  # fmt: skip

#: Why topics are missing; `moved`: the bundle changed hands while it was asked for; `unowned`: it has no owner yet.
Failure: TypeAlias = Literal["failed", "timed out", "not asked", "moved", "unowned"]


@dataclass(frozen=True, slots=True)
class ScatterQuery(TopicQuery):
    """A query of the loaded topics of a namespace; its properties are those that a topic must have.

    Raises:
        ArgumentError: if there are neither properties nor a selector; a mistake is never answered with every topic.
    """

    mode: Mode = "all"
    #: ask the local broker alone, as an owner is asked by the coordinator
    only_local: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        # Not `super()`: with slots the class is made a second time, and is another one here.
        TopicQuery.__post_init__(self)
        if not self.properties and not self.selector:
            raise ArgumentError(f"a query of {self.namespace!r} needs properties or a selector")


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """The answer of one owner."""

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
    topics: Sequence[str]
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
        query: the topics to ask for.
        owners: bundle range -> its owner, None if it has none at the moment and its topics will be missing.
        local: the broker that coordinates.
        limits: how many are asked, and how many at once.

    Raises:
        ArgumentError: if no bundles are given; every namespace has some, so they are not known yet.
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
        #: owner -> the bundles it is asked for
        self._bundles: dict[str, frozenset[str]] = {local: frozenset()}
        if not query.only_local:
            # Asked for its own topics alone, a broker answers for whatever it owns.
            named = {owner for owner in owners.values() if owner is not None}
            bundles = {name: frozenset(bundle for bundle, owner in owners.items() if owner == name) for name in named}
            self._bundles = bundles
        # The local broker first: it is asked whatever the limit, and its answer costs no connection.
        self._waiting = deque(sorted(self._bundles, key=lambda broker: (broker != local, broker)))
        unowned = [] if query.only_local else [bundle for bundle, owner in owners.items() if owner is None]
        self._missing: dict[str, Failure] = dict.fromkeys(unowned, "unowned")
        self._asked: set[str] = set()
        self._answers: dict[str, OwnerAnswer] = {}
        self._is_started = False

    @property
    def is_done(self) -> bool:
        """Return whether no answer is awaited any more."""
        return self._is_started and not self._asked and not self._waiting

    @property
    def pending(self) -> tuple[str, ...]:
        """Return the brokers whose answers are awaited, sorted."""
        return tuple(sorted(self._asked))

    def start(self) -> tuple[Ask, ...]:
        """Return the first questions.

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
        """Take in an owner's answer; return the questions to ask now.

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
        """Note that an owner could not be asked, or refused; return the questions to ask now."""
        return self._lose(broker, "failed")

    def timed_out(self, broker: str) -> tuple[Ask, ...]:
        """Note that an owner did not answer in time; return the questions to ask now."""
        return self._lose(broker, "timed out")

    def _lose(self, broker: str, failure: Failure) -> tuple[Ask, ...]:
        if not self._ends(broker):
            return ()
        self._missing[broker] = failure
        return self._go_on()

    def _ends(self, broker: str) -> bool:
        """Return whether an owner's answer was still awaited, which it is no longer.

        Raises:
            StateError: before the first question.
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
            # An owner answers for itself: asked in the same words, it would ask all owners in turn.
            asks.append(Ask(broker, replace(self._query, only_local=True)))
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
        names = sorted({topic for answer in self._answers.values() for topic in answer.topics})
        # An owner may be of a release that does not know every part of the query.
        topics = self._query.narrow(names)
        # A bundle that its owner had lost was asked of the wrong broker, unless another that answered has it by now.
        covered = {bundle for answer in self._answers.values() for bundle in answer.bundles}
        moved: dict[str, Failure] = {broker: "moved" for broker in self._answers if self._bundles[broker] - covered}
        missing = dict(sorted({**moved, **self._missing}.items()))
        # Topics of an owner that did not answer were not looked at, loaded or not.
        active_only = bool(missing) or any(answer.active_only for answer in self._answers.values())
        return Gathered(topics, MappingProxyType(missing), active_only)


def loaded_topics(
    catalog: CatalogView, query: ScatterQuery, *, boundaries: Sequence[int], owned: Iterable[str]
) -> OwnerAnswer:
    """Answer for one owner: the users' topics asked for that are loaded and in its bundles, sorted.

    Args:
        catalog: the topics the owner knows of.
        boundaries: of the namespace's bundles, rising from 0.
        owned: ranges of the bundles it owns.
    """
    bundles, wanted = frozenset(owned), query.pairs
    entries = map(catalog.entry, topics_of(catalog, query))
    names = (e.name for e in entries if e is not None and e.is_loaded and wanted <= e.properties.items())
    # The bundle comes last: it takes a hash of the name.
    return OwnerAnswer([name for name in names if str(bundle_of(name, boundaries)) in bundles], bundles)
