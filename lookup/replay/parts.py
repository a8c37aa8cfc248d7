"""Parts: what coding writes and replaying reads, some rows of one cluster and day as codes, in order of (ts, seq, row).

Codes are those of the task that wrote a part; `ordering.py` makes them the cluster's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from lookup.replay.work import WorkDir

__all__ = ["DAY_US", "STEPPED", "PartWriter", "WrittenPart", "narrowed"]

DAY_US = 86_400_000_000
#: Rows a writer holds before it writes them; row groups of about a million are written as they come.
_HELD_ROWS = 500_000
_NARROW = (np.int8, np.int16, np.int32)
#: Columns that are written as steps from row to row, which are short; `WrittenPart.first` holds where they begin.
STEPPED = ("ts", "seq")

_Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """Where a part lies, and the (ts, seq) of its first and last row."""

    name: str
    #: days since the epoch
    day: int
    first: tuple[int, int]
    last: tuple[int, int]


class PartWriter:
    """Writes the rows that one task has of one cluster.

    Args:
        task: number of the task, part of the names of its files.
    """

    def __init__(self, work: WorkDir, cluster: str, task: int, *, tick_us: int) -> None:
        self.parts: list[WrittenPart] = []
        self._work, self._task, self._tick_us = work, task, tick_us
        self._folder = f"parts/{quote(cluster, safe='')}"
        self._held: dict[int, list[_Columns]] = {}
        self._rows = 0

    def add(self, columns: _Columns) -> None:
        """Take rows, in the order of their source; every call brings the same columns, among them `ts` and `seq`."""
        for day, chunk in self._by_day(columns):
            self._held.setdefault(day, []).append(chunk)
        self._rows += len(columns["ts"])
        if self._rows >= _HELD_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the held rows, one part per day."""
        for day, chunks in sorted(self._held.items()):
            columns = _sorted({name: _joined([chunk[name] for chunk in chunks]) for name in chunks[0]})
            first, last = ((int(columns["ts"][row]), int(columns["seq"][row])) for row in (0, -1))
            name = f"{self._folder}/{day}/{self._task:05d}-{len(self.parts):04d}.arrow"
            constants = _drop_constants(columns)
            columns |= {key: _steps(columns[key]) for key in STEPPED if key in columns}
            self._work.write(name, {key: narrowed(values) for key, values in columns.items()}, constants)
            self.parts.append(WrittenPart(name, day, first, last))
        self._held, self._rows = {}, 0

    def _by_day(self, columns: _Columns) -> Iterator[tuple[int, _Columns]]:
        # A tick belongs to the day in which its cell of the grid begins, also where tick_s does not divide a day.
        ts, grid = columns["ts"], self._tick_us
        first, last = (int(end) // grid * grid // DAY_US for end in (ts.min(), ts.max()))
        if first == last:
            yield first, columns
            return
        days = ts // grid * grid // DAY_US
        for day in np.unique(days).tolist():
            mask = days == day
            yield day, {name: values[mask] for name, values in columns.items()}


def narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the smallest integers that hold them: half the bytes is half the time to write and read."""
    if values.dtype.kind != "i" or not len(values):
        return values
    least, most = int(values.min()), int(values.max())
    holding = (kind for kind in _NARROW if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return values.astype(next(holding, values.dtype), copy=False)


def _steps(values: NDArray[np.int64]) -> NDArray[np.int64]:
    # Steps too wide for 64 bits wrap around, and do so once more when they are added up.
    return np.diff(values, prepend=values[:1])


def _joined(chunks: list[NDArray[Any]]) -> NDArray[Any]:
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


def _sorted(columns: _Columns) -> _Columns:
    ts, seq = columns["ts"], columns["seq"]
    later, equal = ts[1:] > ts[:-1], ts[1:] == ts[:-1]
    if (later | (equal & (seq[1:] >= seq[:-1]))).all():
        return columns
    order = np.lexsort((seq, ts))
    return {name: values[order] for name, values in columns.items()}


def _drop_constants(columns: _Columns) -> dict[str, int]:
    """Take out the columns that hold one value only, and return these values."""
    constant = {
        name: int(values[0])
        for name, values in columns.items()
        if name != "ts" and values[0] == values[-1] and (values == values[0]).all()
    }
    for name in constant:
        del columns[name]
    return constant
