"""Which watched sets an event may concern, found without asking each of them.

A set with a selector is filed under one requirement of it: an event of a topic that neither had nor has a fitting label
cannot change the set. Deletions and what only listers hear go to every set of the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lookup.model.catalog import Equals, Exists, In, Selector, TopicEvent
from lookup.topics.naming import namespace_of
from lookup.topics.watched import WatchedSet

__all__ = ["Routes"]

#: (label key, value), with None for any value.
_Address = tuple[str, str | None]


class Routes:
    """The watched sets by namespace and by the label that an event must have to concern them."""

    def __init__(self) -> None:
        #: namespace -> its sets; dicts because they keep the order of registration
        self._all: dict[str, dict[WatchedSet, None]] = {}
        #: namespace -> its sets that no label finds
        self._plain: dict[str, dict[WatchedSet, None]] = {}
        self._labelled: dict[tuple[str, _Address], dict[WatchedSet, None]] = {}

    def __iter__(self) -> Iterator[WatchedSet]:
        return (found for sets in self._all.values() for found in sets)

    def add(self, found: WatchedSet, *, by_label: bool) -> None:
        """File a set, by its selector if that decides alone."""
        for sets in self._places(found, by_label=by_label):
            sets[found] = None

    def remove(self, found: WatchedSet, *, by_label: bool) -> None:
        """Take a set out again."""
        for sets in self._places(found, by_label=by_label):
            sets.pop(found, None)
        namespace = found.query.namespace
        for by_namespace in (self._all, self._plain):
            if not by_namespace.get(namespace):
                by_namespace.pop(namespace, None)
        for address in _addresses(found.query.selector or ()):
            if not self._labelled.get((namespace, address)):
                self._labelled.pop((namespace, address), None)

    def _places(self, found: WatchedSet, *, by_label: bool) -> list[dict[WatchedSet, None]]:
        namespace = found.query.namespace
        addresses = _addresses(found.query.selector or ()) if by_label else []
        places = [self._labelled.setdefault((namespace, address), {}) for address in addresses]
        return [self._all.setdefault(namespace, {}), *(places or [self._plain.setdefault(namespace, {})])]

    def concerned(self, event: TopicEvent) -> Iterable[WatchedSet]:
        """Return the sets of the topic's namespace that the event may concern, each once."""
        namespace = namespace_of(event.topic)
        if event.kind not in ("created", "labels"):
            return tuple(self._all.get(namespace, ()))
        concerned = dict(self._plain.get(namespace, ()))
        for labels in (event.old, event.new):
            for key, value in labels.items():
                concerned |= self._labelled.get((namespace, (key, value)), {})
                concerned |= self._labelled.get((namespace, (key, None)), {})
        return tuple(concerned)


def _addresses(selector: Selector) -> list[_Address]:
    """Return under which labels to file a selector: those of the requirement with the fewest."""
    offers = [_labels_of(requirement) for requirement in selector]
    return min(offers, key=lambda offer: (any(value is None for _, value in offer), len(offer)), default=[])


def _labels_of(requirement: Equals | In | Exists) -> list[_Address]:
    match requirement:
        case Equals(key, value):
            return [(key, value)]
        case In(key, values):
            return [(key, value) for value in values]
        case Exists(key):
            return [(key, None)]
