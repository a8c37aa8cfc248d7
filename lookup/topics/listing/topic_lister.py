"""Answers requests for the topics of a namespace: asks a lister, checks what it says, filters, hashes.

A request passes through three steps, so that a server may run the second elsewhere: `ask` says what to look up, or that
it is being looked up already; `fetch` has the lister do it; `listed` makes the answers of everybody who waits. `answer`
is the three at once. Nothing here waits or knows a clock.

Source: `docs/pulsar/protocol.md`; PIP-452.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookup.errors import ArgumentError, ContractError, NotFoundError, PulsarLookupError, StateError
from lookup.hooks.protocols import Lister
from lookup.model.catalog import CatalogView, EventKind, Listing, Mode
from lookup.model.quoting import BREAKING, forbidden_character, shown
from lookup.topics.catalog.naming import fault_of, prefixes_of, schemes_of, without_system_topics
from lookup.topics.listing.listers import ReadOnlyCatalog, interests_of, lister_failing
from lookup.topics.listing.topic_list import TopicsPattern, pattern_length, topics_hash
from lookup.topics.rules import ListLimits

__all__ = ["ListAnswer", "ListRequest", "Query", "TopicLister", "checked_properties"]


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What a client asks: Pulsar's `CommandGetTopicsOfNamespace`."""

    namespace: str
    mode: Mode = "persistent"
    #: as the client wrote it; None: every topic
    pattern: str | None = None
    #: hash of the list the client has; None or empty: it has none
    topics_hash: str | None = None
    #: PIP-452: of the consumer; what they mean is the lister's business. None or empty: no filtering
    properties: Mapping[str, str] | None = None
    #: whether Pulsar's own topics are shown; the REST form asks so, clients never
    include_system: bool = False


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """What the client is told: Pulsar's `CommandGetTopicsOfNamespaceResponse`."""

    #: sorted, each once; empty if nothing has changed
    topics: tuple[str, ...]
    #: of the whole list, also if it is left out
    topics_hash: str
    #: whether the client's pattern was applied
    filtered: bool
    #: false only if the request held exactly this hash
    changed: bool


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of the lister; equal queries that overlap are asked once."""

    namespace: str
    mode: Mode
    #: sorted pairs
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is left of a list for everybody who narrows it in the same way."""

    topics: tuple[str, ...]
    topics_hash: str


@dataclass(frozen=True, slots=True)
class _Narrowing:
    """What the framework takes out of a list, whatever a lister makes of the request."""

    #: None: none is applied
    pattern: str | None
    include_system: bool

    def applied(self, topics: Sequence[str]) -> _Kept:
        shown = topics if self.include_system else without_system_topics(topics)
        kept = tuple(shown if self.pattern is None else TopicsPattern(self.pattern).filter(shown))
        return _Kept(kept, topics_hash(kept))


@dataclass(frozen=True, slots=True)
class _Waiting:
    ticket: Hashable
    #: of the list the client has
    has: str | None
    narrowing: _Narrowing


class TopicLister:
    """A lister at work, between clients and a catalog.

    Use it as a context: the lister is initialised on entry and closed on exit.

    Args:
        lister: the part that `[topics] lister` chose.
        catalog: what it lists from; it can only read it.

    Raises:
        ContractError: for interests that are no kinds of events.
        PolicyError: on entry and exit, if the lister fails to begin or to end.
    """

    def __init__(self, lister: Lister, catalog: CatalogView, limits: ListLimits | None = None) -> None:
        self._lister = lister
        self._interests = interests_of(lister)
        self._catalog = ReadOnlyCatalog(catalog)
        self._limits = limits or ListLimits()
        self._waiting: dict[Query, list[_Waiting]] = {}
        #: what each request that waits is waiting for
        self._queries: dict[Hashable, Query] = {}

    @property
    def interests(self) -> frozenset[EventKind]:
        """Return the kinds of events after which the lister's answers may be others."""
        return self._interests

    def __enter__(self) -> TopicLister:
        with lister_failing(self._lister.name, "could not be prepared"):
            self._lister.initialize(self._catalog)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            with lister_failing(self._lister.name, "could not be closed"):
                self._lister.close()
        except PulsarLookupError as failure:
            if error is None:
                raise
            # What failed first is told; that closing failed as well stands below it in a traceback.
            error.add_note(str(failure))

    def answer(self, request: ListRequest) -> ListAnswer:
        """Answer one request at once, beside any that are under way.

        Raises:
            PulsarLookupError: as `ask` and `fetch` do.
        """
        waiting = self._checked(None, request)
        return _answer(waiting, waiting.narrowing.applied(self.fetch(_query(request))))

    def ask(self, ticket: Hashable, request: ListRequest) -> Query | None:
        """Take a request in; return what to fetch for it, None if the same is being fetched for somebody else.

        Args:
            ticket: by which `listed` tells the answers apart; one that waits already may not ask again.

        Raises:
            ArgumentError: for an unknown mode, too many or too long properties, or a ticket that waits.
            PatternError: for a pattern that cannot be compiled. Nothing is kept of a request that is refused.
        """
        if ticket in self._queries:
            raise ArgumentError(f"request {ticket!r} is still waiting for its answer; tickets are used once at a time")
        waiting, query = self._checked(ticket, request), _query(request)
        is_new = query not in self._waiting
        self._waiting.setdefault(query, []).append(waiting)
        self._queries[ticket] = query
        return query if is_new else None

    def fetch(self, query: Query) -> Sequence[str]:
        """Have the lister look up a query; return the names, sorted, each once.

        Raises:
            StateError: if the list is partial: clients drop subscriptions on what a list lacks.
            ContractError: if the lister answers no `Listing`, a topic of another namespace or mode, or a text that
                is no topic's name.
            PulsarLookupError: what the lister itself refuses, a namespace that the catalog does not have for one.
            PolicyError: if it fails with anything else.
        """
        name, found = self._lister.name, self._asked(query)
        if not isinstance(found, Listing):
            raise ContractError(f"lister {name!r} answered {shown(found)}, which is no Listing")
        if not isinstance(found.topics, tuple):
            raise ContractError(f"lister {name!r} answered {shown(found.topics)}, which is no list of topics")
        if found.partial:
            raise StateError(f"lister {name!r} has only a part of the topics of {query.namespace}; ask again")
        _check_names(name, query, found.topics)
        return sorted(set(found.topics))

    def listed(self, query: Query, topics: Sequence[str]) -> list[tuple[Hashable, ListAnswer]]:
        """Return the answers to everybody who waits for a query, in the order of asking, and forget them.

        Raises:
            NotFoundError: if nobody waits for it.
        """
        group = self._taken(query)
        # Requests that want the same of the list share the work, a hash of every name among it.
        kept = {narrowing: narrowing.applied(topics) for narrowing in {one.narrowing for one in group}}
        return [(one.ticket, _answer(one, kept[one.narrowing])) for one in group]

    def failed(self, query: Query) -> list[Hashable]:
        """Return the tickets of everybody whose query could not be fetched, and forget them.

        Raises:
            NotFoundError: if nobody waits for it.
        """
        return [one.ticket for one in self._taken(query)]

    def cancel(self, ticket: Hashable) -> None:
        """Forget a request whose client has gone, if it waits; its query stays under way."""
        query = self._queries.pop(ticket, None)
        if query is not None:
            self._waiting[query] = [one for one in self._waiting[query] if one.ticket != ticket]

    def _checked(self, ticket: Hashable, request: ListRequest) -> _Waiting:
        schemes_of(request.mode)
        checked_properties(request.properties or {}, self._limits)
        return _Waiting(ticket, request.topics_hash, _Narrowing(self._pattern(request.pattern), request.include_system))

    def _asked(self, query: Query) -> Any:
        """Return what the lister answers, of whatever type."""
        with lister_failing(self._lister.name, f"failed on {query.namespace}"):
            found: Any = self._lister.list_topics(query.namespace, query.mode, dict(query.properties), self._catalog)
            # Names may be made as they are read: they are read once, here, where they may still fail.
            can_be_read = isinstance(found, Listing) and isinstance(found.topics, Iterable)
            return Listing(tuple(found.topics), bool(found.partial)) if can_be_read else found

    def _pattern(self, text: str | None) -> str | None:
        """Return a pattern that is applied here, and can be; None: everything is listed.

        Raises:
            PatternError: if it cannot be compiled.
        """
        limits = self._limits
        # An empty pattern is one that no name matches; only a request without any lists everything.
        if text is None or not limits.pattern_filtering or pattern_length(text) > limits.pattern_max_length:
            return None
        return TopicsPattern(text).text

    def _taken(self, query: Query) -> list[_Waiting]:
        if query not in self._waiting:
            raise NotFoundError(f"nobody waits for {query}")
        group = self._waiting.pop(query)
        for one in group:
            del self._queries[one.ticket]
        return group


def checked_properties(properties: Mapping[str, str], limits: ListLimits) -> Mapping[str, str]:
    """Return what a client sends with a request for topics.

    Raises:
        ArgumentError: for too many, and for one that is no text, is too long, has no key or holds characters that no
            property of a topic may have.
    """
    if len(properties) > limits.max_properties:
        message = f"{len(properties)} properties were sent; one request may have {limits.max_properties}"
        raise ArgumentError(message)
    for key, value in properties.items():
        _check_property(key, value, limits.max_property_length)
    return properties


def _check_property(key: str, value: str, longest: int) -> None:
    if not key:
        raise ArgumentError(f"a property has no key; its value is {shown(value)}")
    for what, text in (("key", key), ("value", value)):
        fault = _fault_of_property(text, longest)
        if fault is not None:
            raise ArgumentError(f"property {shown(key)}: the {what} {fault}")


def _fault_of_property(text: object, longest: int) -> str | None:
    """Return what is wrong with a key or value, as the end of a sentence."""
    if not isinstance(text, str):
        return "is no text"
    if len(text) > longest:
        return f"has {len(text):,} characters; {longest} are permitted"
    wrong = forbidden_character(text, categories=BREAKING)
    return None if wrong is None else f"holds the character {wrong!r}, which no property may have"


def _query(request: ListRequest) -> Query:
    return Query(request.namespace, request.mode, tuple(sorted((request.properties or {}).items())))


def _check_names(name: str, query: Query, topics: Sequence[object]) -> None:
    starts = prefixes_of(query.namespace, query.mode)
    for topic in topics:
        if not isinstance(topic, str) or not topic.startswith(starts) or topic in starts:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, no {query.mode} topic of {query.namespace}")
        fault = fault_of(topic)
        if fault is not None:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, which {fault}")


def _answer(waiting: _Waiting, kept: _Kept) -> ListAnswer:
    is_known = waiting.has == kept.topics_hash
    return ListAnswer(
        topics=() if is_known else kept.topics,
        topics_hash=kept.topics_hash,
        filtered=waiting.narrowing.pattern is not None,
        changed=not is_known,
    )
