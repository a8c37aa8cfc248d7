"""Check a lister's interests, and convert its failures to sentences. `topic_lister.py` checks its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

from lookup.errors import ContractError, PolicyError, PulsarLookupError
from lookup.hooks.protocols import Lister
from lookup.hooks.raised import describe_error, read_bounded
from lookup.model.catalog import EventKind
from lookup.model.quoting import shown, suggestion

__all__ = ["interests_of", "lister_failing"]

_KINDS: tuple[EventKind, ...] = get_args(EventKind)


@contextmanager
def lister_failing(name: str, what: str) -> Iterator[None]:
    """Convert an error of a lister to a sentence about it. Errors that it raises on purpose stay as they are.

    Args:
        name: name of the lister.
        what: the failure, as in "failed on public/default".
    """
    try:
        yield
    except (PulsarLookupError, KeyboardInterrupt):
        raise
    # SystemExit is caught too, since a lister that exits must not end the command as if it had succeeded.
    except BaseException as error:
        raise PolicyError(f"lister {name!r} {what}: {describe_error(error)}") from error


def interests_of(lister: Lister) -> frozenset[EventKind]:
    """Read the kinds of events that a lister names.

    Raises:
        ContractError: with the first unknown kind and the most similar. The lister would never be called for it.
        PolicyError: if it fails to name them.
    """
    subject = f"lister {lister.name!r}"
    with lister_failing(lister.name, "could not say its interests"):
        interests: Any = lister.interests
        is_collection = isinstance(interests, Iterable) and not isinstance(interests, str | bytes)
        # An iterable may raise while it is read, so it is read once, inside this block.
        kinds: tuple[Any, ...] = tuple(read_bounded(interests)) if is_collection else ()
    if not is_collection:
        message = (
            f"{subject} has the interests {shown(interests)}, which is not a set of kinds of events like {{'created'}}"
        )
        raise ContractError(message)
    for kind in kinds:
        if kind not in _KINDS:
            hint = suggestion(str(kind), _KINDS)
            raise ContractError(
                f"{subject} has {shown(kind)} among its interests, which is not a kind of event; {hint}"
            )
    return frozenset(kinds)
