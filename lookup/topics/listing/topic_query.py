"""Ask for topics: by mode, pattern, labels and properties, in one way for listings, watches, owners and clients.

A `TopicQuery` is answered in two parts. Its names are looked up: by a lister, which gives the properties a meaning, or
as Pulsar lists them, `look_up`; labels are applied there, since names alone do not have them. Then `narrowed` leaves
the names of its mode and pattern, for any number of queries in one pass. `TopicQuery.matcher` says the same of one
topic, so that a list may be looked up once and kept right by events.

Source: PIP-145, PIP-451, PIP-452; `docs/pulsar/protocol.md`; lists are without system topics since Pulsar's #25188.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from lookup.model.catalog import CatalogView, Mode, Selector, selects
from lookup.topics.catalog.naming import is_system_topic, prefixes_of, without_system_topics
from lookup.topics.listing.pattern_set import PatternSet
from lookup.topics.listing.steps import ROWS_PER_STEP, Steps, finished, is_among, paced
from lookup.topics.listing.topic_list import TopicList, TopicsPattern, pattern_length
from lookup.topics.rules import ListLimits

__all__ = ["Matcher", "TopicQuery", "common_names", "look_up", "narrowed", "topics_of"]

#: (topic, its labels) -> is it one of the query's.
Matcher: TypeAlias = Callable[[str, Mapping[str, str]], bool]

_List = TypeVar("_List")

#: Patterns of which a name is asked in the time of one look at a name.
_ASKED_PER_LOOK = 2

#: The properties of most queries.
_NONE: Mapping[str, str] = MappingProxyType({})


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
        object.__setattr__(self, "properties", MappingProxyType(dict(self.properties)) if self.properties else _NONE)
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

    def permitted(self, limits: ListLimits) -> TopicQuery:
        """Return the query without its pattern if a server with these limits leaves that to its client, as Pulsar does.

        Patterns may be off, or this one too long. It is no mistake: the client filters the whole list by itself.
        """
        pattern = self.pattern
        if pattern is None or (limits.pattern_filtering and pattern_length(pattern) <= limits.pattern_max_length):
            return self
        return replace(self, pattern=None)

    def narrow(self, names: Sequence[str]) -> TopicList:
        """Return the list that `narrowed` leaves of some names.

        Args:
            names: sorted, each once.

        Raises:
            ArgumentError, PatternError: as `narrowed` does.
        """
        return finished(narrowed([self], names))[self]

    def among(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of some names, in any order and that order, that `narrow` would leave.

        Raises:
            ArgumentError, PatternError: as `narrowed` does.
        """
        return finished(_sifting([self], names, ROWS_PER_STEP, tuple))[self]

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


def common_names(names: Sequence[str], selected: Sequence[str], *, rows: int = ROWS_PER_STEP) -> Steps[tuple[str, ...]]:
    """Return those names of a sorted list that are among others, which may be far fewer; in the order of the others."""
    common: list[str] = []
    for start in range(0, len(selected), rows):
        if start:
            yield
        common += [topic for topic in selected[start : start + rows] if is_among(topic, names)]
    return tuple(common)


def narrowed(
    queries: Collection[TopicQuery], names: Sequence[str], *, rows: int = ROWS_PER_STEP
) -> Steps[dict[TopicQuery, TopicList]]:
    """Leave each query its names, in one pass for all of them and in the order of the names.

    Args:
        queries: of one namespace and mode.
        names: looked up for all of these queries, labels and properties included, sorted, each once; of other
            namespaces and modes none is left.
        rows: names that one step looks at; fewer if each is asked of many patterns.

    Raises:
        ArgumentError: for a mode that does not exist.
        PatternError: if a pattern cannot be used.
    """
    return (yield from _sifting(queries, names, rows, TopicList))


def _sifting(
    queries: Collection[TopicQuery], names: Sequence[str], rows: int, as_list: Callable[[Sequence[str]], _List]
) -> Steps[dict[TopicQuery, _List]]:
    """Leave each query its names, as `narrowed` does."""
    if not queries:
        return {}
    some = next(iter(queries))
    prefixes = prefixes_of(some.namespace, some.mode)
    # System topics go first, as in Pulsar: no pattern brings them back, and the hash is without them.
    without_system, open_to_system = sieves = _Sieve(some.namespace), _Sieve(some.namespace)
    for query, ends_step in paced(queries, rows):
        if ends_step:
            yield
        sieves[query.include_system].add(query)
    for start in range(0, len(names), rows):
        if start:
            yield
        part = [topic for topic in names[start : start + rows] if topic.startswith(prefixes)]
        if open_to_system.kept:
            yield from open_to_system.taking(part, rows)
        if without_system.kept:
            yield from without_system.taking(without_system_topics(part), rows)
    lists: dict[TopicQuery, _List] = {}
    for (query, kept), ends_step in paced(chain.from_iterable(sieve.lists(names) for sieve in sieves), rows):
        if ends_step:
            yield
        lists[query] = as_list(kept)
    return lists


class _Sieve:
    """Queries that differ by their patterns alone, and the names that each of them is left."""

    def __init__(self, namespace: str) -> None:
        self.kept: dict[TopicQuery, list[str]] = {}
        #: None: of the queries without a pattern
        self._by_pattern: dict[str | None, list[list[str]]] = {}
        self._patterns = PatternSet(namespace)
        #: the latest
        self._pattern: TopicsPattern | None = None

    def add(self, query: TopicQuery) -> None:
        """Add a query, and compile its pattern."""
        kept = self.kept[query] = []
        self._by_pattern.setdefault(query.pattern, []).append(kept)
        if query.pattern is not None:
            self._patterns.add(query.pattern)
            self._pattern = TopicsPattern(query.pattern)

    def taking(self, names: Sequence[str], rows: int) -> Steps[None]:
        """Look at the names of one step; what they are asked of may make it several, of as many looks as rows."""
        for kept in self._by_pattern.get(None, ()):
            kept += names
        if len(self._patterns) == 1 and self._pattern is not None:
            # One pattern takes less by itself than a set of one does.
            matching = self._pattern.filter(names)
            for kept in self._by_pattern[self._pattern.text]:
                kept += matching
        elif self._patterns:
            begun = self._patterns.n_asked
            for topic in names:
                if self._patterns.n_asked - begun > rows * _ASKED_PER_LOOK:
                    begun = self._patterns.n_asked
                    yield
                for text in self._patterns.matching(topic):
                    for kept in self._by_pattern[text]:
                        kept.append(topic)

    def lists(self, names: Sequence[str]) -> Iterator[tuple[TopicQuery, Sequence[str]]]:
        """Yield every query with its names, and forget it: to let go of a million names at once takes long as well.

        Args:
            names: all that were looked at; a list of all of them is no copy.
        """
        self._by_pattern.clear()
        while self.kept:
            query, kept = self.kept.popitem()
            if query.pattern is not None:
                self._patterns.remove(query.pattern)
            yield query, names if len(kept) == len(names) else kept
