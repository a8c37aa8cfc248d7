"""Answer requests for the topics of a namespace: ask a lister, check its list, filter, hash.

A request passes through three steps, so that a server may run the second elsewhere: `ask` returns the query to look up,
unless it is being looked up already; `fetch` has the lister do it; `listed` makes the answers to all requests that wait
for it. `answer` is the three at once. Nothing here waits or knows a clock.

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
    """A client's request: Pulsar's `CommandGetTopicsOfNamespace`."""

    namespace: str
    mode: Mode = "persistent"
    #: as the client wrote it; None: every topic
    pattern: str | None = None
    #: hash of the list the client has; None or empty: it has none
    topics_hash: str | None = None
    #: PIP-452: of the consumer; the lister gives them a meaning. None or empty: no filtering
    properties: Mapping[str, str] | None = None
    #: whether to list Pulsar's own topics; only the REST form of a request can ask for them
    include_system: bool = False


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """The answer to a client: Pulsar's `CommandGetTopicsOfNamespaceResponse`."""

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
    """A query of the lister; equal queries that overlap are looked up once."""

    namespace: str
    mode: Mode
    #: sorted pairs
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """The rest of a list, for all requests that narrow it in the same way."""

    topics: tuple[str, ...]
    topics_hash: str


@dataclass(frozen=True, slots=True)
class _Narrowing:
    """The filters of the framework, which apply whatever a lister makes of the request."""

    #: None: none is applied
    pattern: str | None
    include_system: bool

    def applied(self, topics: Sequence[str]) -> _Narrowed:
        # System topics go first, as in Pulsar: no pattern brings them back, and the hash is without them.
        users = topics if self.include_system else without_system_topics(topics)
        narrowed = tuple(users if self.pattern is None else TopicsPattern(self.pattern).filter(users))
        return _Narrowed(narrowed, topics_hash(narrowed))


@dataclass(frozen=True, slots=True)
class _Waiting:
    ticket: Hashable
    #: of the list the client has
    topics_hash: str | None
    narrowing: _Narrowing

    def answer(self, narrowed: _Narrowed) -> ListAnswer:
        is_known = self.topics_hash == narrowed.topics_hash
        return ListAnswer(
            topics=() if is_known else narrowed.topics,
            topics_hash=narrowed.topics_hash,
            filtered=self.narrowing.pattern is not None,
            changed=not is_known,
        )


class TopicLister:
    """A lister at work, between clients and a catalog.

    Use it as a context: the lister is initialised on entry and closed on exit.

    Args:
        lister: the part that `[topics] lister` chose.
        catalog: the topics, which the lister can only read.

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
        #: ticket -> the query that its request waits for
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
            # The first error goes on; that closing failed as well stands below it in a traceback.
            error.add_note(str(failure))

    def answer(self, request: ListRequest) -> ListAnswer:
        """Answer one request at once, beside any that are under way.

        Raises:
            PulsarLookupError: as `ask` and `fetch` do.
        """
        waiting = self._checked(None, request)
        return waiting.answer(waiting.narrowing.applied(self.fetch(_query(request))))

    def ask(self, ticket: Hashable, request: ListRequest) -> Query | None:
        """Take a request in; return the query to fetch for it, None if an equal one is being fetched.

        Args:
            ticket: the name of the request, which `listed` gives its answer; one that waits may not ask again.

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
            StateError: if the list is partial: clients drop the subscriptions of topics that a list lacks.
            ContractError: if the lister answers no `Listing`, a topic of another namespace or mode, or a text that
                is no topic's name.
            PulsarLookupError: as the lister itself refuses, for a namespace that does not exist for example.
            PolicyError: if it fails with anything else.
        """
        name = self._lister.name
        with lister_failing(name, f"failed on {query.namespace}"):
            listing: Any = self._lister.list_topics(query.namespace, query.mode, dict(query.properties), self._catalog)
            # An iterable may raise while it is read: it is read once, inside this block.
            if isinstance(listing, Listing) and isinstance(listing.topics, Iterable):
                listing = Listing(tuple(listing.topics), bool(listing.partial))
        if not isinstance(listing, Listing):
            raise ContractError(f"lister {name!r} answered {shown(listing)}, which is no Listing")
        if not isinstance(listing.topics, tuple):
            raise ContractError(f"lister {name!r} answered {shown(listing.topics)}, which is no list of topics")
        if listing.partial:
            raise StateError(f"lister {name!r} has only a part of the topics of {query.namespace}; ask again")
        _check_names(name, query, listing.topics)
        return sorted(set(listing.topics))

    def listed(self, query: Query, topics: Sequence[str]) -> list[tuple[Hashable, ListAnswer]]:
        """Return the answers to all requests that wait for a query, in the order of asking, and forget them.

        Raises:
            NotFoundError: if no request waits for it.
        """
        group = self._taken(query)
        # Requests with the same filters share the work: a hash reads every name.
        narrowed = {narrowing: narrowing.applied(topics) for narrowing in {waiting.narrowing for waiting in group}}
        return [(waiting.ticket, waiting.answer(narrowed[waiting.narrowing])) for waiting in group]

    def failed(self, query: Query) -> list[Hashable]:
        """Return the tickets of all requests that wait for a query that could not be fetched, and forget them.

        Raises:
            NotFoundError: if no request waits for it.
        """
        return [waiting.ticket for waiting in self._taken(query)]

    def cancel(self, ticket: Hashable) -> None:
        """Forget a request whose client has gone, if it waits; its query stays under way."""
        query = self._queries.pop(ticket, None)
        if query is not None:
            self._waiting[query] = [waiting for waiting in self._waiting[query] if waiting.ticket != ticket]

    def _checked(self, ticket: Hashable, request: ListRequest) -> _Waiting:
        schemes_of(request.mode)
        limits, pattern = self._limits, request.pattern
        checked_properties(request.properties or {}, limits)
        # A pattern that is not applied here is no mistake: the client filters the whole list by itself.
        if not limits.pattern_filtering or (
            pattern is not None and pattern_length(pattern) > limits.pattern_max_length
        ):
            pattern = None
        # An empty pattern is one that no name matches; only a request without any lists everything.
        if pattern is not None:
            TopicsPattern(pattern)
        return _Waiting(ticket, request.topics_hash, _Narrowing(pattern, request.include_system))

    def _taken(self, query: Query) -> list[_Waiting]:
        if query not in self._waiting:
            raise NotFoundError(f"nobody waits for {query}")
        group = self._waiting.pop(query)
        for waiting in group:
            del self._queries[waiting.ticket]
        return group


def checked_properties(properties: Mapping[str, str], limits: ListLimits) -> Mapping[str, str]:
    """Return the properties of a request for topics.

    Raises:
        ArgumentError: for too many, and for one that is no text, is too long, has no key or holds characters that no
            property of a topic may have.
    """
    if len(properties) > limits.max_properties:
        message = f"{len(properties)} properties were sent; one request may have {limits.max_properties}"
        raise ArgumentError(message)
    for key, value in properties.items():
        if not key:
            raise ArgumentError(f"a property has no key; its value is {shown(value)}")
        for what, text in (("key", key), ("value", value)):
            fault = _fault_of_property(text, limits.max_property_length)
            if fault is not None:
                raise ArgumentError(f"property {shown(key)}: the {what} {fault}")
    return properties


def _fault_of_property(text: object, longest: int) -> str | None:
    """Return the fault of a key or value, as the end of a sentence; None: there is none."""
    if not isinstance(text, str):
        return "is no text"
    if len(text) > longest:
        return f"has {len(text):,} characters; {longest} are permitted"
    wrong = forbidden_character(text, categories=BREAKING)
    return None if wrong is None else f"holds the character {wrong!r}, which no property may have"


def _query(request: ListRequest) -> Query:
    return Query(request.namespace, request.mode, tuple(sorted((request.properties or {}).items())))


def _check_names(name: str, query: Query, topics: Sequence[object]) -> None:
    # A name too many is worse than an error: a client would subscribe to it.
    starts = prefixes_of(query.namespace, query.mode)
    for topic in topics:
        if not isinstance(topic, str) or not topic.startswith(starts) or topic in starts:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, no {query.mode} topic of {query.namespace}")
        fault = fault_of(topic)
        if fault is not None:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, which {fault}")
