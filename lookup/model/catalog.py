"""The topics of a catalog as data, such as entries, events, selectors, listings, and the view of listers.

The catalog itself and the parser of selectors are in the room `topics`. Watchers read the same view as listers.

Source: PIP-451 (labels, selectors), PIP-452 (listings), `docs/pulsar/protocol.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from lookup.errors import ArgumentError

__all__ = [
    "CatalogView", "Equals", "EventKind", "Exists", "In", "Listing", "Mode", "Selector", "Term", "TopicEntry",
    "TopicEvent", "selects",
]  # fmt: skip

#: Domains of the topics that a listing is about.
Mode = Literal["persistent", "non-persistent", "all"]

#: Changes of a topic, and of a namespace. "labels" and "properties" are sent only if something differs afterwards. The
#: set of existing topics changes only with "created" and "deleted", so the other kinds cannot change a list by names.
EventKind = Literal["created", "deleted", "labels", "properties", "namespace-created", "namespace-deleted"]


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """One topic of a catalog. A partition is an entry of its own, with its `-partition-N`."""

    #: the full name, with scheme
    name: str
    #: used by `indexed` and `-p`
    properties: Mapping[str, str]
    #: used by selectors
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """One change of one topic or namespace. Revisions increase by one, without gaps, over the whole catalog."""

    revision: int
    kind: EventKind
    #: the full name, with scheme and partition suffix, or `tenant/namespace` for an event of a namespace
    topic: str
    #: labels before ("labels", "deleted"), properties before ("properties"), else empty
    old: Mapping[str, str] = field(default_factory=dict)
    #: the same afterwards, and for "created" the labels
    new: Mapping[str, str] = field(default_factory=dict)
    #: of "created" the properties
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Equals:
    """The condition that a label has one value, as in `env=prod`."""

    key: str
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Check whether a topic with these labels meets the condition."""
        return labels.get(self.key) == self.value

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


@dataclass(frozen=True, slots=True)
class In:
    """The condition that a label has one of several values, as in `tier in (gold,silver)`."""

    key: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        values: object = self.values
        if isinstance(values, str):
            raise ArgumentError(f"the values of {self.key!r} are the text {values!r}; give a tuple of texts")

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Check whether a topic with these labels meets the condition."""
        return labels.get(self.key) in self.values

    def __str__(self) -> str:
        return f"{self.key} in ({','.join(self.values)})"


@dataclass(frozen=True, slots=True)
class Exists:
    """The condition that a label is present with any value, as in `team`."""

    key: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Check whether a topic with these labels meets the condition."""
        return self.key in labels

    def __str__(self) -> str:
        return self.key


#: One condition of a selector.
Term: TypeAlias = Equals | In | Exists

#: Conditions that must all hold. An empty selector is refused wherever topics are selected. Plug-ins know a `Selector`
#: as the part that chooses brokers, so `lookup.model` does not re-export this one.
Selector: TypeAlias = tuple[Term, ...]


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Check whether a topic with these labels meets every condition. An empty selector selects nothing."""
    return bool(selector) and all(term.matches(labels) for term in selector)


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer of a lister, with names in any order and whether there may be more."""

    topics: Sequence[str]
    #: True if some source did not answer. A partial list is never used as the complete one
    partial: bool = False


class CatalogView(Protocol):
    """A catalog as listers, watchers and commands may read it. Every answer is of one revision.

    Unknown namespaces raise `NotFoundError`. A returned sequence does not change when the catalog does.
    """

    @property
    def revision(self) -> int:
        """The number of events so far, which is the revision of the last one."""

    def namespaces(self) -> Sequence[str]:
        """List the names of all namespaces, sorted."""

    def topics(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """List every topic of a namespace, sorted, including system topics and single partitions."""

    def entry(self, topic: str) -> TopicEntry | None:
        """Find one topic, None if it does not exist."""

    def with_properties(self, namespace: str, mode: Mode, properties: Mapping[str, str]) -> Sequence[str]:
        """List the topics that have all of these properties, sorted, from an index. Without any, all are listed."""

    def select(self, namespace: str, selector: Selector) -> Sequence[str]:
        """List the topics, persistent or not, that a selector selects, sorted, from the index of labels."""
