"""Write tables and whether bounds are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

__all__ = ["state", "table", "unkept"]


def state(kept: bool | None) -> str:
    """Say whether a bound is kept; None: that is not known."""
    return "too few logs" if kept is None else "yes" if kept else "**no**"


def unkept(kept: bool | None) -> str:
    """Return what follows a figure whose bound is not kept, nothing if it is."""
    return "" if kept else f", {'too few logs' if kept is None else '**not kept**'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
