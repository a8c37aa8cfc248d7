"""Ask for topics: by mode, pattern, labels and properties, in one way for listings, watches, owners and clients.

A `TopicQuery` is answered in two parts. Its names are looked up: by a lister, which gives the properties a meaning, or
as Pulsar lists them, `look_up`; labels are applied there, since names alone do not have them. Then `narrowed` leaves
the names of its mode and pattern, for any number of queries in one pass. `TopicQuery.matcher` says the same of one
topic, so that a list may be looked up once and kept right by events.

Source: PIP-145, PIP-451, PIP-452; `docs/pulsar/protocol.md`; lists are without system topics since Pulsar's #25188.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from lookup.model.catalog import CatalogView, Mode, Selector, selects
from lookup.topics.catalog.naming import is_system_topic, prefixes_of, without_system_topics
from lookup.topics.listing.pattern_set import PatternSet
from lookup.topics.listing.topic_list import TopicList, TopicsPattern

__all__ = [
    "ROWS_PER_STEP", "Matcher", "Steps", "TopicQuery", "common_names", "finished", "look_up",
    "narrowed", "topics_of",
]  # fmt: skip

#: Names that one step of a listing looks at: some ten milliseconds if each is matched against many patterns.
ROWS_PER_STEP = 2_000
#: Patterns that one step compiles, or lists that it completes, in about the same time.
_QUERIES_PER_STEP = 256

_Result = TypeVar("_Result")
#: Work that holds its caller for one step at a time; its result is the generator's.
Steps: TypeAlias = Generator[None, None, _Result]

#: (topic, its labels) -> is it one of the query's.
Matcher: TypeAlias = Callable[[str, Mapping[str, str]], bool]


@dataclass(frozen=True, slots=True)
class TopicQuery:
    """The topics of a namespace that are asked for; every part that is given must fit.

    Two equal queries have equal answers, so they are looked up once and share list and hash.
    """

    namespace: str
    mode: Mode = "persistent"
    #: as the client wrote it; None: every name
    pattern: str | None = None
    #: labels that a topic must have (PIP-451); none: any
    selector: Selector = ()
    #: PIP-452: of the consumer; the lister gives them a meaning. None or empty: no filtering
    properties: Mapping[str, str] = field(default_factory=dict, compare=False)
    #: whether Pulsar's own topics are among them; only the REST form of a request can ask for them
    include_system: bool = False
    #: the properties as queries are compared by them
    pairs: frozenset[tuple[str, str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Copied, because a query is compared with others as long as it is watched.
        object.__setattr__(self, "properties", MappingProxyType(dict(self.properties or {})))
        object.__setattr__(self, "pairs", frozenset(self.properties.items()))
        object.__setattr__(self, "selector", tuple(self.selector or ()))

    def plain(self) -> TopicQuery:
        """Return the query by itself, without what a message has beside it; these are compared across messages."""
        return TopicQuery(
            self.namespace, self.mode, self.pattern, self.selector, self.properties, include_system=self.include_system
        )

    def looked_up(self) -> TopicQuery:
        """Return the query that must be looked up for this one, equal for all that differ by what `narrowed` does."""
        return TopicQuery(self.namespace, self.mode, None, self.selector, self.properties, include_system=True)

    def narrow(self, names: Sequence[str]) -> TopicList:
        """Return those of some names, in their order, that are left of them as `narrowed` leaves them.

        Raises:
            ArgumentError, PatternError: as `narrowed` does.
        """
        return finished(narrowed([self], names))[self]

    def matcher(self) -> Matcher:
        """Return a function that says of a topic with its labels whether it belongs to the query, properties aside.

        Raises:
            ArgumentError: for a mode that does not exist.
            PatternError: if the pattern cannot be used.
        """
        prefixes, selector, is_open = prefixes_of(self.namespace, self.mode), self.selector, self.include_system
        pattern = None if self.pattern is None else TopicsPattern(self.pattern)

        # The cheapest test first: for most events of a busy namespace it is the only one.
        def belongs(topic: str, labels: Mapping[str, str]) -> bool:
            return (
                topic.startswith(prefixes)
                and (not selector or selects(selector, labels))
                and (pattern is None or pattern.matches(topic))
                and (is_open or not is_system_topic(topic))
            )

        return belongs


def look_up(catalog: CatalogView, query: TopicQuery) -> Sequence[str]:
    """Return the names to narrow for a query, sorted, as Pulsar's own listing has them: properties change nothing.

    Raises:
        PulsarLookupError: as the catalog raises it for the namespace.
    """
    if not query.selector:
        return catalog.topics(query.namespace, query.mode)
    prefixes = prefixes_of(query.namespace, query.mode)
    return tuple(topic for topic in catalog.selected(query.namespace, query.selector) if topic.startswith(prefixes))


def topics_of(catalog: CatalogView, query: TopicQuery) -> TopicList:
    """Return the topics of a query as Pulsar's own listing has them: properties change nothing.

    Raises:
        PulsarLookupError: as `look_up` and `narrowed` do.
    """
    return query.narrow(look_up(catalog, query))


def common_names(names: Sequence[str], selected: Iterable[str]) -> Sequence[str]:
    """Return those names of a sorted list that are among others, which may be far fewer; in the order of the others."""

    def is_among(topic: str) -> bool:
        place = bisect_left(names, topic)
        return place < len(names) and names[place] == topic

    return tuple(filter(is_among, selected))


def narrowed(
    queries: Collection[TopicQuery], names: Sequence[str], *, rows: int = ROWS_PER_STEP
) -> Steps[dict[TopicQuery, TopicList]]:
    """Leave each query its names, in one pass for all of them and in the order of the names.

    Args:
        queries: of one namespace and mode.
        names: looked up for all of these queries, labels and properties included; of other namespaces and modes none
            is left.
        rows: names that one step looks at.

    Raises:
        ArgumentError: for a mode that does not exist.
        PatternError: if a pattern cannot be used.
    """
    if not queries:
        return {}
    some = next(iter(queries))
    prefixes = prefixes_of(some.namespace, some.mode)
    # System topics go first, as in Pulsar: no pattern brings them back, and the hash is without them.
    sieves = [_Sieve([query for query in queries if query.include_system == is_open]) for is_open in (0, 1)]
    for sieve in sieves:
        yield from sieve.preparing(some.namespace)
    for start in range(0, len(names), rows):
        if start:
            yield
        part = [topic for topic in names[start : start + rows] if topic.startswith(prefixes)]
        for is_open, sieve in enumerate(sieves):
            if sieve.is_used:
                sieve.take(part if is_open else without_system_topics(part))
    lists: dict[TopicQuery, TopicList] = {}
    for query, kept in chain.from_iterable(sieve.kept.items() for sieve in sieves):
        lists[query] = TopicList(kept)
        if len(lists) % _QUERIES_PER_STEP == 0:
            yield
    return lists


class _Sieve:
    """The queries that differ by their patterns alone, and the names that each of them is left."""

    def __init__(self, queries: Iterable[TopicQuery]) -> None:
        self.kept: dict[TopicQuery, list[str]] = {query: [] for query in queries}
        #: lists of the queries without a pattern
        self._whole: list[list[str]] = []
        self._by_pattern: dict[str, list[list[str]]] = {}
        self._pattern: TopicsPattern | None = None
        self._patterns: PatternSet | None = None
        for query, kept in self.kept.items():
            (self._whole if query.pattern is None else self._by_pattern.setdefault(query.pattern, [])).append(kept)

    @property
    def is_used(self) -> bool:
        """Return whether there is any query."""
        return bool(self.kept)

    def preparing(self, namespace: str) -> Steps[None]:
        """Compile the patterns, some in each step."""
        # One pattern takes less by itself than a set of one does.
        if len(self._by_pattern) == 1:
            self._pattern = TopicsPattern(*self._by_pattern)
        elif self._by_pattern:
            self._patterns = PatternSet(namespace)
            for number, text in enumerate(self._by_pattern, 1):
                self._patterns.add(text)
                if number % _QUERIES_PER_STEP == 0:
                    yield

    def take(self, names: Sequence[str]) -> None:
        """Look at some names."""
        for kept in self._whole:
            kept += names
        if self._pattern is not None:
            matching = self._pattern.filter(names)
            for kept in self._by_pattern[self._pattern.text]:
                kept += matching
        elif self._patterns is not None:
            for topic in names:
                for text in self._patterns.matching(topic):
                    for kept in self._by_pattern[text]:
                        kept.append(topic)


def finished(steps: Steps[_Result]) -> _Result:
    """Do all steps of some work at once, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result
