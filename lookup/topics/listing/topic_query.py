"""Query topics by mode, pattern, labels and properties, in one way for listings, watches, owners and clients.

A `TopicQuery` is answered in two parts. A lister looks its names up, and gives the properties a meaning. Labels are
applied there, since names alone do not have them. Then `narrow` keeps the names of its mode and pattern. `matcher`
checks one topic in the same way, so that a list may be looked up once and updated by events.

Source: PIP-145, PIP-451, PIP-452, `docs/pulsar/protocol.md`. Lists are without system topics since Pulsar's #25188.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from lookup.model.catalog import Mode, Selector, selects
from lookup.topics.catalog.naming import is_system_topic, prefixes_of, without_system_topics
from lookup.topics.listing.topic_list import TopicList, TopicsPattern

__all__ = ["Matcher", "TopicQuery"]

#: (topic, its labels) -> is it one of the query's.
Matcher: TypeAlias = Callable[[str, Mapping[str, str]], bool]

#: The properties of most queries.
_NONE: Mapping[str, str] = MappingProxyType({})
_NO_PAIRS: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicQuery:
    """A query for topics of a namespace that match every given part. Equal queries share one lookup, list and hash."""

    namespace: str
    mode: Mode = "persistent"
    #: as the client wrote it, None for every name
    pattern: str | None = None
    #: labels that a topic must have (PIP-451), empty for any
    selector: Selector = ()
    #: properties of the consumer (PIP-452), to which the lister gives a meaning. None or empty for no filtering
    properties: Mapping[str, str] = field(default_factory=dict, compare=False)
    #: whether Pulsar's own topics are included. Only the REST form of a request can include them
    include_system: bool = False
    #: hash of the client's list, None or empty if it does not have one
    topics_hash: str | None = field(default=None, compare=False, kw_only=True)
    #: the properties as queries are compared by them
    pairs: frozenset[tuple[str, str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Copied, because a query is compared with others as long as it is watched.
        object.__setattr__(self, "properties", MappingProxyType(dict(self.properties)) if self.properties else _NONE)
        object.__setattr__(self, "pairs", frozenset(self.properties.items()) if self.properties else _NO_PAIRS)
        object.__setattr__(self, "selector", tuple(self.selector or ()))

    def looked_up(self) -> TopicQuery:
        """Build the query that must be looked up for this one, equal for queries that differ only in `narrow`."""
        return TopicQuery(self.namespace, self.mode, None, self.selector, self.properties, include_system=True)

    def narrow(self, names: Sequence[str]) -> TopicList:
        """Select the names of the query's mode and pattern.

        Args:
            names: looked up for the query, including labels and properties, sorted, each once.

        Raises:
            ArgumentError: for a mode that does not exist.
            PatternError: if the pattern cannot be used.
        """
        topics = self.among(names)
        # A list of all names is no copy of them.
        return TopicList(names if len(topics) == len(names) else topics)

    def among(self, names: Iterable[str]) -> list[str]:
        """Select the names that `narrow` would keep, from any order and in that order. Errors are the same."""
        prefixes = prefixes_of(self.namespace, self.mode)
        topics = [topic for topic in names if topic.startswith(prefixes)]
        # System topics are removed first, as in Pulsar. No pattern includes them again, and the hash is without them.
        if not self.include_system:
            topics = without_system_topics(topics)
        return topics if self.pattern is None else TopicsPattern(self.pattern).filter(topics)

    def matcher(self) -> Matcher:
        """Build a function that checks whether a topic with its labels belongs to the query, without properties.

        Raises:
            ArgumentError: for a mode that does not exist.
            PatternError: if the pattern cannot be used.
        """
        prefixes, selector, is_open = prefixes_of(self.namespace, self.mode), self.selector, self.include_system
        pattern = None if self.pattern is None else TopicsPattern(self.pattern)

        # The cheapest test comes first, and for most events of a busy namespace it is the only one.
        def belongs(topic: str, labels: Mapping[str, str]) -> bool:
            return (
                topic.startswith(prefixes)
                and (not selector or selects(selector, labels))
                and (pattern is None or pattern.matches(topic))
                and (is_open or not is_system_topic(topic))
            )

        return belongs
