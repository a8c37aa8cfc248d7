"""Cut the days of a cluster into slices that a task can hold: whole cells of the grid, so many rows of all tables.

A day of most clusters is one slice.

Where a slice ends depends on what is in the tables and on nothing else, neither on how many tasks read them nor on the
memory there is: sums of fractions are added up slice by slice. Owners, load and all else that a walk keeps are handed
on from one slice to the next, as from day to day.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookup.errors import InputError
from lookup.model.quoting import quantity
from lookup.model.time import time_text
from lookup.replay.days import Part, PartSlice, order_of
from lookup.replay.work import WorkDir

__all__ = ["BYTES_PER_ROW", "Slice", "slices_of_day", "task_memory"]

Ints = NDArray[np.int64]
#: What a row of a slice takes of a task's memory at most, while it is replayed: it was 42 bytes where all weights are
#: the same (measured: docs/benchmarks.md), and every coded column adds some.
BYTES_PER_ROW = 120
#: The limit of a container's memory, by either version of Linux's control groups.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class Slice:
    """A day, or a part of a busy one: instants [from_us, until_us), None where the day has no end."""

    from_us: int | None
    until_us: int | None
    #: of each table its rows, in order of their parts
    tables: tuple[tuple[PartSlice, ...], ...]


def slices_of_day(
    work: WorkDir, tables: Sequence[Sequence[Part]], grid: Ints, *, most_rows: int, cluster: str
) -> Iterator[Slice]:
    """Yield the slices of one day in order.

    Args:
        tables: the parts that each table has of the day.
        grid: instants at which it may be cut, µs, ascending.
        most_rows: rows of all tables that a slice has at most, unless a single cell of the grid has more.

    Raises:
        InputError: if a single cell, or a slice, has more rows than fit into a task's memory.
    """
    rows = sum(part.written.rows for parts in tables for part in parts)
    if rows <= most_rows or not len(grid):
        _require_slices_fit(rows, cluster)
        yield Slice(None, None, tuple(tuple(map(PartSlice.whole, parts)) for parts in tables))
        return
    # Rows before the first instant of the grid belong to its cell, which begins with the day.
    places = sum(np.searchsorted(order_of(work, part)[0], grid[1:]) for parts in tables for part in parts)
    ends = np.append(places, rows)
    _require_cells_fit(np.diff(ends, prepend=0), grid, cluster)
    _require_slices_fit(most_rows, cluster)
    cuts = [int(grid[place]) for place in _cut_places(ends, most_rows)]
    pieces = [[_cut(work, part, cuts) for part in parts] for parts in tables]
    for number, (from_us, until_us) in enumerate(pairwise([None, *cuts, None])):
        of_tables = ([part[number] for part in table] for table in pieces)
        yield Slice(from_us, until_us, tuple(tuple(filter(None, of_table)) for of_table in of_tables))


def _cut_places(ends: Ints, most_rows: int) -> Iterator[int]:
    """Yield the cells with which slices begin, but the first.

    Args:
        ends: how many rows there are up to the end of each cell, shape (n_cells,).
    """
    before = 0
    while ends[-1] - before > most_rows:
        # All cells that end within the slice, and at least one that has rows.
        place = int(
            np.searchsorted(ends, max(before + most_rows, ends[np.searchsorted(ends, before, side="right")]), "right")
        )
        if place >= len(ends):
            return
        yield place
        before = int(ends[place - 1])


def _cut(work: WorkDir, part: Part, cuts: Sequence[int]) -> list[PartSlice | None]:
    """Return the rows of a part in each slice, None for none."""
    ts, seq = order_of(work, part)
    bounds = [0, *np.searchsorted(ts, cuts).tolist(), len(ts)]
    return [
        None if low == high else PartSlice(part, low, high, *((int(ts[row]), int(seq[row])) for row in (low, high - 1)))
        for low, high in pairwise(bounds)
    ]


def _require_slices_fit(rows: int, cluster: str) -> None:
    """Refuse slices that are more than a task can hold."""
    memory = task_memory()
    most = memory // BYTES_PER_ROW
    if rows > most:
        raise InputError(
            f"cluster {cluster!r} would be replayed in slices of {quantity(rows, 'row')}: more than the {most:,} that "
            f"fit into {memory / 2**30:.1f} GiB, the memory of a task, at {BYTES_PER_ROW} bytes each; make "
            "evaluation.slice_rows smaller, or give tasks more memory"
        )


def _require_cells_fit(rows: Ints, grid: Ints, cluster: str) -> None:
    """Refuse a day of which a single cell, which cannot be cut, is more than a task can hold."""
    fullest, memory = int(np.argmax(rows)), task_memory()
    most = memory // BYTES_PER_ROW
    if rows[fullest] > most:
        raise InputError(
            f"cluster {cluster!r} has {quantity(int(rows[fullest]), 'row')} in the tick that begins at "
            f"{time_text(int(grid[fullest]))}: more than the {most:,} that fit into {memory / 2**30:.1f} GiB, "
            f"the memory of a task, at {BYTES_PER_ROW} bytes each; a shorter evaluation.tick_s cuts the tick, or give "
            "tasks more memory"
        )


def task_memory() -> int:
    """Return how much memory this process may use, bytes: by its own limit, its container's, or the machine's."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), resource.getrlimit(resource.RLIMIT_AS)[0]]
    for name in _CONTAINER_LIMITS:
        # Elsewhere than on Linux there is none of them; "max" is no limit.
        with suppress(OSError, ValueError):
            limits.append(int(Path(name).read_text()))
    return min(limit for limit in limits if limit > 0)
