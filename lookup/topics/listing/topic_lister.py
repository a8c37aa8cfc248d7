"""Answer requests for the topics of a namespace: ask a lister, check its list, filter, hash.

A request passes through three parts, so that a server may run the second elsewhere: `ask` returns the query to look up,
unless it is being looked up already; `fetch` has the lister do it; `listed` makes the answers to all requests that wait
for it. `answer` is the three at once. Nothing here waits or knows a clock. `fetching`, `listing` and `answering` do the
same in steps, each of which looks at a bounded number of names.

A lister is asked for every query. If it answers with the names of last time, as it does while the catalog does not
change, their check, the filtered lists and their hashes are those of last time, too.

Source: `docs/pulsar/protocol.md`; PIP-452.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from sys import getsizeof
from threading import Lock
from typing import Any, Generic, TypeVar

from lookup.errors import ArgumentError, ContractError, NotFoundError, PulsarLookupError, StateError
from lookup.hooks.protocols import Lister
from lookup.model.catalog import CatalogView, EventKind, Listing
from lookup.model.quoting import BREAKING, forbidden_character, shown
from lookup.topics.catalog.naming import fault_of, prefixes_of, schemes_of
from lookup.topics.listing.listers import ReadOnlyCatalog, interests_of, lister_failing
from lookup.topics.listing.steps import ROWS_PER_STEP, Steps, are_equal, finished, paced, sorting
from lookup.topics.listing.topic_list import TopicList, TopicsPattern, hashing_each
from lookup.topics.listing.topic_query import TopicQuery, common_names, narrowed
from lookup.topics.rules import ListLimits

__all__ = ["ListAnswer", "ListRequest", "TopicLister", "checked_properties"]

#: Names that are kept of answers which may be asked for again, counted in each list they are in; eight bytes each.
_KEPT_NAMES = 4_000_000
#: A query that is kept takes the room of so many names.
_NAMES_OF_A_QUERY = 64
#: Bytes of the JSON texts that are kept of lists, which may be asked for again; one of a million topics fits.
_KEPT_TEXT_BYTES = 1 << 26

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ListRequest(TopicQuery):
    """A client's request: Pulsar's `CommandGetTopicsOfNamespace`."""

    #: hash of the list the client has; None or empty: it has none
    topics_hash: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """The answer to a client: Pulsar's `CommandGetTopicsOfNamespaceResponse`."""

    #: sorted, each once; empty if nothing has changed
    topics: TopicList
    #: of the whole list, also if it is left out
    topics_hash: str
    #: whether the client's pattern and selector were applied
    filtered: bool
    #: false only if the request held exactly this hash
    changed: bool


@dataclass(frozen=True, slots=True)
class _Waiting:
    ticket: Hashable
    #: of the list the client has
    topics_hash: str | None
    #: the request, without a pattern that is left to the client
    query: TopicQuery
    #: whether nothing is left to the client
    is_filtered: bool

    def answer(self, topics: TopicList) -> ListAnswer:
        is_known = self.topics_hash == topics.topics_hash
        return ListAnswer(
            topics=_NO_TOPICS if is_known else topics,
            topics_hash=topics.topics_hash,
            filtered=self.is_filtered,
            changed=not is_known,
        )


_NO_TOPICS = TopicList()


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The names of a lookup, checked, and what they were made of."""

    #: as the lister answered
    answered: tuple[str, ...]
    #: None: there was no selector
    selected: tuple[str, ...] | None
    #: sorted, each once
    names: Sequence[str]
    #: of these names; other names of the same lookup have another number
    number: int

    def is_made_of(self, answered: tuple[str, ...], selected: tuple[str, ...] | None, rows: int) -> Steps[bool]:
        # A catalog that did not change answers with the same object, which takes no step.
        if not (yield from are_equal(self.answered, answered, rows=rows)):
            return False
        if self.selected is None or selected is None:
            return self.selected is selected
        return (yield from are_equal(self.selected, selected, rows=rows))


class _Run:
    """A look-up under way, whose steps are done by all callers that wait for it, one at a time.

    Args:
        revision: of the catalog when it began.
    """

    def __init__(self, revision: int, steps: Steps[Sequence[str]]) -> None:
        self.revision = revision
        self._steps = steps
        self._names: Sequence[str] | None = None
        self._error: BaseException | None = None
        self._step = Lock()

    def is_over(self) -> bool | None:
        """Do the next step; return whether there is none left, None if another thread is in a step now."""
        if not self._step.acquire(blocking=False):
            return None
        try:
            if self._names is None and self._error is None:
                next(self._steps)
        except StopIteration as end:
            self._names = end.value
        # Every caller that waits gets the error, an interruption too: the steps cannot go on after it.
        except BaseException as error:  # noqa: BLE001
            self._error = error
        finally:
            self._step.release()
        return self._names is not None or self._error is not None

    def names(self) -> Sequence[str]:
        """Return the names that were looked up, or raise what went wrong."""
        if self._error is not None:
            raise self._error
        return self._names or ()


class _Recent(Generic[_Value]):
    """Values by query, up to a number of names or bytes in all; those that were not used for longest go first.

    Locked, because a lister at work is used by threads.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: dict[TopicQuery, tuple[_Value, int]] = {}
        self._lock = Lock()

    def get(self, query: TopicQuery) -> _Value | None:
        """Return the value of a query, None if there is none."""
        with self._lock:
            entry = self._values.pop(query, None)
            if entry is None:
                return None
            self._values[query] = entry
            return entry[0]

    def put(self, query: TopicQuery, value: _Value, size: int) -> None:
        """Keep a value, at the cost of others."""
        with self._lock:
            self._room += self._values.pop(query, (None, 0))[1]
            # Some for the query itself: many empty lists take room as well.
            self._values[query] = value, size + _NAMES_OF_A_QUERY
            self._room -= size + _NAMES_OF_A_QUERY
            while self._room < 0 and len(self._values) > 1:
                self._room += self._values.pop(next(iter(self._values)))[1]


@dataclass(frozen=True, slots=True)
class _KeptText:
    """The place of the JSON text of a query's list; satisfies `KeptText`.

    Args:
        made_of: number of the names that the list was made of; other names make another list.
    """

    texts: _Recent[tuple[int, str]]
    query: TopicQuery
    made_of: int

    def get(self) -> str | None:
        kept = self.texts.get(self.query)
        return kept[1] if kept is not None and kept[0] == self.made_of else None

    def put(self, text: str) -> None:
        self.texts.put(self.query, (self.made_of, text), getsizeof(text))


class TopicLister:
    """A lister at work, between clients and a catalog.

    Use it as a context: the lister is initialised on entry and closed on exit.

    Threads: any number may use it between entry and exit, and none waits for a step of another; a lister is then asked
    by several at the same time. Each listing in steps is done by one thread at a time. Every question to the catalog
    waits while another thread is in a block of its `together`.

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
        #: what is looked up -> the requests that wait for it
        self._waiting: dict[TopicQuery, list[_Waiting]] = {}
        #: ticket -> what its request waits for
        self._lookups: dict[Hashable, TopicQuery] = {}
        self._runs: dict[TopicQuery, _Run] = {}
        self._fetched: _Recent[_Fetched] = _Recent(_KEPT_NAMES)
        #: filtered lists, each with the number of the names it was made of
        self._lists: _Recent[tuple[int, TopicList]] = _Recent(_KEPT_NAMES)
        #: the JSON texts of such lists, likewise; they take more room, and are needed for fewer of the answers
        self._texts: _Recent[tuple[int, str]] = _Recent(_KEPT_TEXT_BYTES)
        self._numbers = count()
        #: for requests that wait and runs; held for no step
        self._lock = Lock()

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

    def answer(self, request: TopicQuery) -> ListAnswer:
        """Answer one request at once, beside any that are under way.

        Raises:
            PulsarLookupError: as `ask` and `fetch` do.
        """
        return finished(self.answering(request))

    def answering(self, request: TopicQuery, *, rows: int = ROWS_PER_STEP) -> Steps[ListAnswer]:
        """Answer one request as `answer` does, in steps that look at a number of names each."""
        waiting = self._checked(None, request)
        lookup = request.looked_up()
        names = yield from self.fetching(lookup, rows=rows)
        lists = yield from self.narrowed(lookup, {waiting.query}, names, rows=rows)
        return waiting.answer(lists[waiting.query])

    def ask(self, ticket: Hashable, request: TopicQuery) -> TopicQuery | None:
        """Take a request in; return the query to fetch for it, None if an equal one is being fetched.

        Requests that differ only by their patterns, and by whether they want system topics, share a query.

        Args:
            ticket: the name of the request, which `listed` gives its answer; one that waits may not ask again.

        Raises:
            ArgumentError: for an unknown mode, too many or too long properties, or a ticket that waits.
            PatternError: for a pattern that cannot be compiled. Nothing is kept of a request that is refused.
        """
        waiting, lookup = self._checked(ticket, request), request.looked_up()
        with self._lock:
            if ticket in self._lookups:
                message = f"request {ticket!r} is still waiting for its answer; tickets are used once at a time"
                raise ArgumentError(message)
            is_new = lookup not in self._waiting
            self._waiting.setdefault(lookup, []).append(waiting)
            self._lookups[ticket] = lookup
        return lookup if is_new else None

    def fetch(self, query: TopicQuery) -> Sequence[str]:
        """Have the lister look up a query, and apply its selector; return the names, sorted, each once.

        Raises:
            StateError: if the list is partial: clients drop the subscriptions of topics that a list lacks.
            ContractError: if the lister answers no `Listing`, a topic of another namespace or mode, or a text that
                is no topic's name.
            PulsarLookupError: as the lister itself refuses, for a namespace that does not exist for example.
            PolicyError: if it fails with anything else.
        """
        return finished(self._fetching(query.looked_up(), ROWS_PER_STEP))

    def fetching(self, query: TopicQuery, *, rows: int = ROWS_PER_STEP) -> Steps[Sequence[str]]:
        """Fetch as `fetch` does, in steps: the first asks lister and catalog, each one checks a number of names.

        Callers that fetch the same query at the same time, and at the same revision of the catalog, share the steps;
        one that meets another thread in a step goes on by itself.
        """
        lookup, revision = query.looked_up(), self._catalog.revision
        with self._lock:
            run = self._runs.get(lookup)
            if run is None or run.revision != revision:
                run = self._runs[lookup] = _Run(revision, self._fetching(lookup, rows))
        try:
            while not (is_over := run.is_over()):
                if is_over is None:
                    # Not waited for: the step may be long, or wait for this thread, as in a transaction.
                    return (yield from self._fetching(lookup, rows))
                yield
        finally:
            with self._lock:
                if self._runs.get(lookup) is run:
                    del self._runs[lookup]
        return run.names()

    def _fetching(self, lookup: TopicQuery, rows: int) -> Steps[Sequence[str]]:
        name, query = self._lister.name, lookup
        answered = self._answered(lookup)
        selected = tuple(self._catalog.selected(query.namespace, query.selector)) if query.selector else None
        known = self._fetched.get(lookup)
        if known is not None and (yield from known.is_made_of(answered, selected, rows)):
            return known.names
        is_sorted = True
        for start in range(0, len(answered), rows):
            if start:
                yield
            # One name of the part before, so that no two neighbours are left out.
            part = answered[max(0, start - 1) : start + rows]
            _check_names(name, lookup, part, self._catalog)
            is_sorted = is_sorted and all(before < after for before, after in pairwise(part))
        names = answered if is_sorted else (yield from sorting(answered, rows=rows))
        if selected is not None:
            names = yield from common_names(names, selected, rows=rows)
        self._fetched.put(lookup, _Fetched(answered, selected, names, next(self._numbers)), len(answered))
        return names

    def _answered(self, query: TopicQuery) -> tuple[str, ...]:
        """Return the lister's answer, as far as it is a complete list of anything."""
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
        return listing.topics

    def listed(self, query: TopicQuery, topics: Sequence[str]) -> list[tuple[Hashable, ListAnswer]]:
        """Return the answers to all requests that wait for a query, in the order of asking, and forget them.

        Raises:
            NotFoundError: if no request waits for it.
        """
        return finished(self.listing(query, topics))

    def listing(
        self, query: TopicQuery, topics: Sequence[str], *, rows: int = ROWS_PER_STEP
    ) -> Steps[list[tuple[Hashable, ListAnswer]]]:
        """Make the answers as `listed` does, in steps; requests that come meanwhile wait for a query of their own."""
        group = self._taken(query)
        # Requests with the same filters share the work, and all of them share one pass.
        lists = yield from self.narrowed(query, {waiting.query for waiting in group}, topics, rows=rows)
        return [(waiting.ticket, waiting.answer(lists[waiting.query])) for waiting in group]

    def narrowed(
        self, lookup: TopicQuery, queries: Collection[TopicQuery], names: Sequence[str], *, rows: int = ROWS_PER_STEP
    ) -> Steps[Mapping[TopicQuery, TopicList]]:
        """Narrow the names of a lookup for many queries, except those whose lists are known already; hash the lists."""
        fetched = self._fetched.get(lookup)
        made_of = fetched.number if fetched is not None and fetched.names is names else None
        lists: dict[TopicQuery, TopicList] = {}
        unknown: list[TopicQuery] = []
        for query, ends_step in paced(queries, rows):
            if ends_step:
                yield
            known = self._lists.get(query)
            if known is not None and known[0] == made_of:
                lists[query] = known[1]
            else:
                unknown.append(query)
        made = yield from narrowed(unknown, names, rows=rows)
        for (query, topics), ends_step in paced(made.items(), rows):
            if ends_step:
                yield
            if made_of is not None:
                topics.kept_text = _KeptText(self._texts, query, made_of)
                self._lists.put(query, (made_of, topics), len(topics))
        lists |= made
        yield from hashing_each(lists.values(), rows=rows)
        return lists

    def failed(self, query: TopicQuery) -> list[Hashable]:
        """Return the tickets of all requests that wait for a query that could not be fetched, and forget them.

        Raises:
            NotFoundError: if no request waits for it.
        """
        return [waiting.ticket for waiting in self._taken(query)]

    def cancel(self, ticket: Hashable) -> None:
        """Forget a request whose client has gone, if it waits; its query stays under way."""
        with self._lock:
            lookup = self._lookups.pop(ticket, None)
            if lookup is not None:
                self._waiting[lookup] = [waiting for waiting in self._waiting[lookup] if waiting.ticket != ticket]

    def _checked(self, ticket: Hashable, request: TopicQuery) -> _Waiting:
        schemes_of(request.mode)
        checked_properties(request.properties, self._limits)
        query = request.plain().permitted(self._limits)
        # An empty pattern is one that no name matches; only a request without any lists everything.
        if query.pattern is not None:
            TopicsPattern(query.pattern)
        is_filtered = query.pattern is not None if request.pattern is not None else bool(request.selector)
        topics_hash = request.topics_hash if isinstance(request, ListRequest) else None
        return _Waiting(ticket, topics_hash, query, is_filtered)

    def _taken(self, query: TopicQuery) -> list[_Waiting]:
        with self._lock:
            if query not in self._waiting:
                raise NotFoundError(f"no request waits for {query}")
            group = self._waiting.pop(query)
            for waiting in group:
                del self._lookups[waiting.ticket]
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


def _check_names(name: str, query: TopicQuery, topics: Sequence[object], catalog: CatalogView) -> None:
    # A name too many is worse than an error: a client would subscribe to it.
    starts = prefixes_of(query.namespace, query.mode)
    for topic in topics:
        if not isinstance(topic, str) or not topic.startswith(starts) or topic in starts:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, no {query.mode} topic of {query.namespace}")
        fault = fault_of(topic)
        # Of a topic that exists the list must have the name, whatever it is: without it clients would unsubscribe.
        if fault is not None and catalog.entry(topic) is None:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, which {fault}")
