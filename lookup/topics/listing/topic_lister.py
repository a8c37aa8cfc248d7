"""Answer requests for the topics of a namespace. Call a lister, check its list, filter, hash.

A lister is called for every query. If it returns the same names as last time, as it does while the catalog does not
change, the check, the filtered lists and the hashes of last time are used again.

Source: `docs/pulsar/protocol.md`, PIP-452.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, Generic, TypeVar

from lookup.errors import ArgumentError, ContractError, PulsarLookupError, StateError
from lookup.hooks.protocols import Lister
from lookup.hooks.raised import read_bounded
from lookup.model.catalog import CatalogView, Listing
from lookup.model.quoting import BREAKING, forbidden_character, shown
from lookup.settings import ListingSection
from lookup.topics.catalog.naming import fault_of, prefixes_of, schemes_of
from lookup.topics.listing.listers import interests_of, lister_failing
from lookup.topics.listing.topic_list import TopicList, TopicsPattern, is_among
from lookup.topics.listing.topic_query import TopicQuery

__all__ = ["ListAnswer", "SizedCache", "TopicLister"]

#: Names kept of reusable answers, counted in each list. A name takes eight bytes, about sixty if it was sent as JSON.
_KEPT_NAMES = 2_000_000
#: A query that is kept takes the room of so many names.
_NAMES_OF_A_QUERY = 64


_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """The answer to a client: Pulsar's `CommandGetTopicsOfNamespaceResponse`."""

    #: sorted, each once, empty if the list has not changed
    topics: TopicList
    #: of the whole list, also if it is left out
    topics_hash: str
    #: false only if the request held exactly this hash
    changed: bool


class SizedCache(Generic[_Value]):
    """Values by key, for any number of threads. The least recently used are removed first, the newest never."""

    def __init__(self) -> None:
        #: the most recently used value is the last one
        self._values: dict[Hashable, tuple[_Value, int]] = {}
        self._size = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> _Value | None:
        """Look up the value of a key, None if there is none."""
        with self._lock:
            entry = self._values.pop(key, None)
            if entry is None:
                return None
            self._values[key] = entry
            return entry[0]

    def put(self, key: Hashable, value: _Value, size: int, *, room: int) -> None:
        """Keep a value, at the cost of others if the sizes of all together exceed the room."""
        with self._lock:
            self._size += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = value, size
            while self._size > room and len(self._values) > 1:
                self._size -= self._values.pop(next(iter(self._values)))[1]


class TopicLister:
    """A running lister, between clients and a catalog.

    Use it as a context. The lister is initialised on entry and closed on exit.

    Threads: any number may use it between entry and exit, and a lister is then called by several at the same time.

    Args:
        lister: the part that `[topics] lister` chose.
        catalog: the topics.

    Raises:
        ContractError: for interests that are no kinds of events.
        PolicyError: on entry and exit, if the lister fails to begin or to end.
    """

    def __init__(self, lister: Lister, catalog: CatalogView, limits: ListingSection | None = None) -> None:
        self._lister = lister
        #: kinds of events after which the lister's answers may be others
        self.interests = interests_of(lister)
        self._catalog = catalog
        self.limits = limits or ListingSection()
        #: checked names, sorted, each once, with the answer and the selected names that they were made of
        self._look_ups: SizedCache[tuple[object, Sequence[str]]] = SizedCache()
        #: filtered lists, each with the names it was made of
        self._lists: SizedCache[tuple[Sequence[str], TopicList]] = SizedCache()

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
            # The first error is raised. A failure to close is below it in the traceback.
            error.add_note(str(failure))

    def answer(self, request: TopicQuery) -> ListAnswer:
        """Answer one request.

        Raises:
            ArgumentError: for an unknown mode, and too many or too long properties.
            PatternError: for a pattern that cannot be compiled.
            StateError: if the list is partial, since clients drop the subscriptions of topics that a list lacks.
            ContractError: if it returns no `Listing`, topics of another namespace or mode, or texts that name none.
            PulsarLookupError: raised by the lister itself, for a namespace that does not exist for example.
            PolicyError: if it fails with anything else.
        """
        schemes_of(request.mode)
        _check_properties(request.properties, self.limits)
        # No name matches an empty pattern. Only a request without a pattern lists everything.
        if request.pattern is not None:
            TopicsPattern(request.pattern)
        names = self._look_up_names(request.looked_up())
        entry = self._lists.get(request)
        if entry is not None and entry[0] is names:
            topics = entry[1]
        else:
            topics = request.narrow(names)
            self._lists.put(request, (names, topics), len(topics) + _NAMES_OF_A_QUERY, room=_KEPT_NAMES)
        is_known = request.topics_hash == topics.topics_hash
        return ListAnswer(_NO_TOPICS if is_known else topics, topics.topics_hash, changed=not is_known)

    def _look_up_names(self, query: TopicQuery) -> Sequence[str]:
        answered = self._call_lister(query)
        selected = tuple(self._catalog.select(query.namespace, query.selector)) if query.selector else None
        entry = self._look_ups.get(query)
        # A catalog that did not change returns the same objects, whose names are not checked again.
        if entry is not None and entry[0] == (answered, selected):
            return entry[1]
        _check_names(self._lister.name, query, answered, self._catalog)
        names = answered if all(before < after for before, after in pairwise(answered)) else sorted({*answered})
        if selected is not None:
            names = tuple(topic for topic in selected if is_among(topic, names))
        size = len(answered) + _NAMES_OF_A_QUERY
        self._look_ups.put(query, ((answered, selected), names), size, room=_KEPT_NAMES)
        return names

    def _call_lister(self, query: TopicQuery) -> tuple[str, ...]:
        name = self._lister.name
        with lister_failing(name, f"failed on {query.namespace}"):
            listing: Any = self._lister.list_topics(query.namespace, query.mode, dict(query.properties), self._catalog)
            # An iterable may raise while it is read, so it is read once, inside this block.
            if isinstance(listing, Listing) and isinstance(listing.topics, Iterable):
                topics = (
                    listing.topics if isinstance(listing.topics, tuple) else read_bounded(listing.topics, _MOST_TOPICS)
                )
                listing = Listing(tuple(topics), bool(listing.partial))
        if not isinstance(listing, Listing):
            raise ContractError(f"lister {name!r} answered {shown(listing)}, which is not a Listing")
        if not isinstance(listing.topics, tuple):
            raise ContractError(f"lister {name!r} answered {shown(listing.topics)}, which is not a list of topics")
        if listing.partial:
            raise StateError(f"lister {name!r} has only a part of the topics of {query.namespace}; ask again")
        return listing.topics


_NO_TOPICS = TopicList()
#: Names in an answer after which a lister is taken to have no end.
_MOST_TOPICS = 10_000_000


def _check_properties(properties: Mapping[str, str], limits: ListingSection) -> None:
    if len(properties) > limits.max_properties:
        message = f"{len(properties)} properties were sent; one request may have {limits.max_properties}"
        raise ArgumentError(message)
    for key, value in properties.items():
        if not key:
            raise ArgumentError(f"a property has no key; its value is {shown(value)}")
        for noun, text in (("key", key), ("value", value)):
            fault = _fault_of_property(text, limits.max_property_length)
            if fault is not None:
                raise ArgumentError(f"property {shown(key)}: the {noun} {fault}")


def _fault_of_property(text: object, longest: int) -> str | None:
    if not isinstance(text, str):
        return "is not text"
    if len(text) > longest:
        return f"has {len(text):,} characters; {longest} are permitted"
    wrong = forbidden_character(text, categories=BREAKING)
    return None if wrong is None else f"holds the character {wrong!r}, which no property may have"


def _check_names(name: str, query: TopicQuery, topics: Sequence[object], catalog: CatalogView) -> None:
    # An additional name is worse than an error, since a client would subscribe to it.
    starts = prefixes_of(query.namespace, query.mode)
    for topic in topics:
        if not isinstance(topic, str) or not topic.startswith(starts) or topic in starts:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, no {query.mode} topic of {query.namespace}")
        fault = fault_of(topic)
        # The list must have the name of an existing topic, whatever it is, since clients would otherwise unsubscribe.
        if fault is not None and catalog.entry(topic) is None:
            raise ContractError(f"lister {name!r} answered {shown(topic)}, which {fault}")
