"""Hold a lister to its contract: give it a read-only catalog, check its interests, turn its failures into sentences.

`topic_lister.py` checks its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NoReturn, get_args

from lookup.errors import ContractError, PolicyError, PulsarLookupError
from lookup.hooks.protocols import Lister
from lookup.hooks.raised import bounded, raised
from lookup.model.catalog import CatalogView, EventKind, Mode, Selector, TopicEntry
from lookup.model.quoting import shown, suggestion

__all__ = ["ReadOnlyCatalog", "interests_of", "lister_failing"]

_KINDS: tuple[EventKind, ...] = get_args(EventKind)


class ReadOnlyCatalog:
    """A catalog as a lister is handed it: `CatalogView` and nothing else, with answers that cannot be changed.

    It keeps mistakes out, not malice: a plug-in is code of the same process.
    """

    __slots__ = ("__catalog",)

    __catalog: CatalogView

    def __init__(self, catalog: CatalogView) -> None:
        object.__setattr__(self, "_ReadOnlyCatalog__catalog", catalog)

    @property
    def revision(self) -> int:
        """Return the revision of the last event, which is the number of events so far."""
        return self.__catalog.revision

    def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces, sorted."""
        return tuple(self.__catalog.namespaces())

    # A tuple is not copied by `tuple`: of a million names nothing is touched here.

    def topics(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """Return every topic of a namespace, sorted: system topics too, partitions one by one."""
        return tuple(self.__catalog.topics(namespace, mode))

    def entry(self, topic: str) -> TopicEntry | None:
        """Return one topic, None if there is no such topic."""
        entry = self.__catalog.entry(topic)
        if entry is None:
            return None
        properties, labels = MappingProxyType(entry.properties), MappingProxyType(entry.labels)
        return TopicEntry(entry.name, properties, labels)

    def with_properties(self, namespace: str, mode: Mode, properties: Mapping[str, str]) -> Sequence[str]:
        """Return the topics that have all of these properties, sorted, from an index; all topics for none."""
        return tuple(self.__catalog.with_properties(namespace, mode, properties))

    def selected(self, namespace: str, selector: Selector) -> Sequence[str]:
        """Return the topics that a selector selects, persistent and non-persistent, sorted, from an index."""
        return tuple(self.__catalog.selected(namespace, selector))

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""
        labels = self.__catalog.labels_in(namespace)
        return MappingProxyType({key: tuple(values) for key, values in labels.items()})

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a lister can only read the catalog, by {_READABLE}; it has no {name!r}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a lister can only read the catalog; it may not set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a lister can only read the catalog; it may not delete {name!r}")


_READABLE = ", ".join(name for name in vars(ReadOnlyCatalog) if not name.startswith("_"))


@contextmanager
def lister_failing(name: str, what: str) -> Iterator[None]:
    """Turn an error of a lister into a sentence about it; errors that it raises on purpose stay as they are.

    Args:
        name: of the lister.
        what: the failure, as in "failed on public/default".

    Raises:
        PolicyError: naming it, with file and line of its code.
    """
    try:
        yield
    except (PulsarLookupError, KeyboardInterrupt):
        raise
    # SystemExit too: a lister that exits must not end the command as if it had succeeded.
    except BaseException as error:
        raise PolicyError(f"lister {name!r} {what}: {raised(error)}") from error


def interests_of(lister: Lister) -> frozenset[EventKind]:
    """Return the kinds of events a lister names.

    Raises:
        ContractError: naming the first that does not exist, with the one that was probably meant: no event would ever
            have this kind, and the lister would never be asked again.
        PolicyError: if it fails to name them.
    """
    subject = f"lister {lister.name!r}"
    with lister_failing(lister.name, "could not say its interests"):
        given: Any = lister.interests
        is_collection = isinstance(given, Iterable) and not isinstance(given, str | bytes)
        # An iterable may raise while it is read: it is read once, inside this block.
        kinds: tuple[Any, ...] = tuple(bounded(given)) if is_collection else ()
    if not is_collection:
        message = f"{subject} has the interests {shown(given)}, which is no set of kinds of events like {{'created'}}"
        raise ContractError(message)
    for kind in kinds:
        if kind not in _KINDS:
            hint = suggestion(str(kind), _KINDS)
            raise ContractError(f"{subject} has {shown(kind)} among its interests, which is no kind of event; {hint}")
    return frozenset(kinds)
