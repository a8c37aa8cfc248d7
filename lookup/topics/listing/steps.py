"""Do work on long lists in steps, each of which looks at a bounded number of names.

A step is what happens between two `yield`s of a generator; between two steps its caller does other work. Copies of
whole lists are no looks at names: they move eight bytes for each, a million in the time of some thousand looks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from heapq import merge
from typing import TypeAlias, TypeVar

__all__ = [
    "ROWS_PER_STEP", "Budget", "Steps", "are_equal", "differences", "finished", "is_among", "paced", "queries_per_step",
    "sorting",
]  # fmt: skip

#: Names that one step looks at: some ten milliseconds if each is matched against many patterns.
ROWS_PER_STEP = 2_000
#: Looks that take as long as what is done once for a query, such as compiling its pattern or handing over its list.
_ROWS_OF_A_QUERY = 20

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
#: Work that holds its caller for one step at a time; its result is the generator's.
Steps: TypeAlias = Generator[None, None, _Result]


def finished(steps: Steps[_Result]) -> _Result:
    """Do all steps of some work at once, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _Result = end.value
            return result


class Budget:
    """The looks that are left in a step, for work of several kinds in the same steps.

    Args:
        rows: names that one step looks at.
    """

    def __init__(self, rows: int = ROWS_PER_STEP) -> None:
        self.rows = rows
        self._spent = 0

    def ends_step(self, n_rows: int = 0) -> bool:
        """Take the looks of what is done once for an item, and some more; return whether the step must end before."""
        taken = _ROWS_OF_A_QUERY + n_rows
        is_over = 0 < self._spent > self.rows - taken
        self._spent = taken if is_over else self._spent + taken
        return is_over


def paced(queries: Iterable[_Item], rows: int) -> Iterator[tuple[_Item, bool]]:
    """Yield each item with whether the caller should end its step first; an item counts as 20 names."""
    budget = Budget(rows)
    return ((query, budget.ends_step()) for query in queries)


def queries_per_step(rows: int) -> int:
    """Return the number of queries that one step may do something for."""
    return max(1, rows // _ROWS_OF_A_QUERY)


def sorting(
    names: Sequence[str], *, key: Callable[[str], bytes] | None = None, rows: int = ROWS_PER_STEP
) -> Steps[tuple[str, ...]]:
    """Sort names and leave each once: some names at a time, which are merged then."""
    runs: list[list[str]] = []
    for start in range(0, len(names), rows):
        runs.append(sorted(names[start : start + rows], key=key))
        yield
    in_order: list[str] = []
    for number, name in enumerate(merge(*runs, key=key), 1):
        if in_order[-1:] != [name]:
            in_order.append(name)
        if number % rows == 0:
            yield
    return tuple(in_order)


def are_equal(names: Sequence[str], others: Sequence[str], *, rows: int = ROWS_PER_STEP) -> Steps[bool]:
    """Compare two lists."""
    if names is others or len(names) != len(others):
        return names is others
    for start in range(0, len(names), rows):
        if names[start : start + rows] != others[start : start + rows]:
            return False
        yield
    return True


def differences(
    before: Sequence[str], after: Sequence[str], *, rows: int = ROWS_PER_STEP
) -> Steps[tuple[list[str], list[str]]]:
    """Return the names that only the first of two sorted lists has, and those that only the second has."""
    gone: list[str] = []
    come: list[str] = []
    n_before = n_after = 0
    while before is not after and (n_before < len(before) or n_after < len(after)):
        old, new = before[n_before : n_before + rows], after[n_after : n_after + rows]
        if old and new:
            # As far as both parts reach: what is behind may be in the next part of the other list.
            last = min(old[-1], new[-1])
            old, new = old[: bisect_right(old, last)], new[: bisect_right(new, last)]
        if old != new:
            gone += sorted(set(old).difference(new))
            come += sorted(set(new).difference(old))
        n_before, n_after = n_before + len(old), n_after + len(new)
        yield
    return gone, come


def is_among(name: str, names: Sequence[str]) -> bool:
    """Return whether a sorted list has a name."""
    place = bisect_left(names, name)
    return place < len(names) and names[place] == name
