"""Write the rows of one task in parts, and merge the parts of a day in the total order (ts, seq, file, row).

A part holds some rows of one table, cluster and day in order of (ts, seq, row), in the codes of the task that wrote it.
Maps from these codes to the cluster's come with the part. A day is built in the memory of the task that replays it,
once for all policies of that task. Everything downstream walks or gathers its columns.

A busy day is cut into slices that a task can hold. A slice has whole cells of the grid, with a limited number of rows
of all tables. Its end depends only on the tables, not on the number of tasks or the memory, since sums of fractions are
added up slice by slice. Owners, load and all other state of a walk pass from slice to slice, as from day to day.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, cast
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from lookup.logs.rows import places_by_code
from lookup.model.documents import TableName
from lookup.replay.work import WorkDir

__all__ = [
    "CodedPart", "PartSlice", "PartWriter", "Slice", "SliceRows", "WrittenPart", "concat_slices", "day_rows", "days_of",
    "last_row_per", "narrow", "order_of", "rows_of", "slices_of_day",
]  # fmt: skip

_DAY_US = 86_400_000_000
#: Rows that a writer holds before it writes them. Row groups of about a million are written as they come.
_HELD_ROWS = 500_000
#: Columns that are written as steps from row to row, since steps are short. `WrittenPart.first` holds the first values.
_STEPPED = ("ts", "seq")

_NO_TS = np.empty(0, dtype=np.int64)

_Made = TypeVar("_Made")
Ints = NDArray[np.int64]
_Columns = dict[str, NDArray[Any]]
#: Codes in the smallest integers that hold them.
Codes = NDArray[Any]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """The file of a part, and the (ts, seq) of its first and last row."""

    name: str
    #: days since the epoch
    day: int
    rows: int
    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CodedPart:
    """A part, and the meaning of the codes of the task that wrote it."""

    written: WrittenPart
    #: the cluster's code by the task's, for each column that a task coded
    codes: Mapping[str, Codes]


class PartWriter:
    """A writer of one task's rows of one table and cluster. Its number is part of the names of its files."""

    def __init__(self, work: WorkDir, table: TableName, cluster: str, task: int, *, tick_us: int) -> None:
        self.parts: list[WrittenPart] = []
        self._work, self._task, self._tick_us = work, task, tick_us
        self._folder = f"parts/{table}/{quote(cluster, safe='')}"
        self._held: dict[int, list[_Columns]] = {}
        self._rows = 0

    def add(self, columns: _Columns) -> None:
        """Add rows in the order of their source. Every call has the same columns, among them `ts` and `seq`."""
        ts = columns["ts"]
        first, last = days_of(np.array([ts.min(), ts.max()]), self._tick_us).tolist()
        if first == last:
            self._held.setdefault(first, []).append(columns)
        else:
            for day, places in places_by_code(days_of(ts, self._tick_us)):
                self._held.setdefault(day, []).append({name: values[places] for name, values in columns.items()})
        self._rows += len(ts)
        if self._rows >= _HELD_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the held rows, one part per day."""
        for day, chunks in sorted(self._held.items()):
            columns = chunks[0]
            if len(chunks) > 1:
                columns = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in columns}
            columns = _sort_rows(columns)
            first, last = ((int(columns["ts"][row]), int(columns["seq"][row])) for row in (0, -1))
            name = f"{self._folder}/{day}/{self._task:05d}-{len(self.parts):04d}.arrow"
            # The ends are compared first, since they already differ in most columns that vary.
            constants = {
                key: values[0].item() if values.dtype.kind == "f" else int(values[0])
                for key, values in columns.items()
                if key != "ts" and values[0] == values[-1] and (values == values[0]).all()
            }
            written = {key: values for key, values in columns.items() if key not in constants}
            # Steps too wide for 64 bits wrap around, and do so once more when they are added up.
            written |= {key: np.diff(written[key], prepend=written[key][:1]) for key in _STEPPED if key in written}
            self._work.write(name, {key: narrow(values) for key, values in written.items()}, constants)
            self.parts.append(WrittenPart(name, day, len(columns["ts"]), first, last))
        self._held, self._rows = {}, 0


def days_of(ts_us: NDArray[np.int64], tick_us: int) -> NDArray[np.int64]:
    """Compute the day of each instant, since the epoch. It is the day in which the instant's cell begins.

    So no tick lies in two days, even if cells do not divide a day.
    """
    return ts_us // tick_us * tick_us // _DAY_US


def _sort_rows(columns: _Columns) -> _Columns:
    """Sort rows by (ts, seq). Most logs are sorted already and skip the sort."""
    ts, seq = columns["ts"], columns["seq"]
    later, equal = ts[1:] > ts[:-1], ts[1:] == ts[:-1]
    if (later | (equal & (seq[1:] >= seq[:-1]))).all():
        return columns
    order = np.lexsort((seq, ts))
    return {name: values[order] for name, values in columns.items()}


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Convert numbers to the smallest integers that hold them, since half the bytes take half the time."""
    if values.dtype.kind != "i" or not len(values):
        return values
    least, most = int(values.min()), int(values.max())
    kinds = (np.int8, np.int16, np.int32)
    holding = (kind for kind in kinds if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return values.astype(next(holding, values.dtype), copy=False)


class SliceRows:
    """One cluster's rows of a slice in total order, by column, shape (n_rows,), or one value if all are equal."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], constants: Mapping[str, Any]) -> None:
        self._columns, self._constants = columns, constants
        self._made: dict[Hashable, object] = {}

    @property
    def ts(self) -> NDArray[np.int64]:
        """The time of each lookup, µs."""
        return self._columns["ts"]

    def __len__(self) -> int:
        return len(self.ts)

    def column(self, name: str, rows: slice) -> NDArray[Any]:
        """Read some rows of a column."""
        values = self._columns.get(name)
        if values is not None:
            return values[rows]
        start, stop, _ = rows.indices(len(self))
        constant = self._constants[name]
        # Micro-units of weight are whole numbers below 2**53, exact as float64, which sums need.
        return np.full(stop - start, constant, dtype=np.float64 if name == "weight" else type(constant))

    def value(self, name: str, row: int) -> int:
        """Read one row of a column of whole numbers."""
        values = self._columns.get(name)
        return int(self._constants[name] if values is None else values[row])

    def constant(self, name: str) -> Any:
        """Look up the one value of a column, None if it varies."""
        return self._constants.get(name)

    def after(self, row: int) -> SliceRows:
        """Copy the rows from a given one on, so that the rows before need not be kept."""
        return SliceRows({name: values[row:].copy() for name, values in self._columns.items()}, self._constants)

    @property
    def names(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset((*self._columns, *self._constants))

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Call `make` once per key and keep its result, so that the policies that share a slice share it as well."""
        if key not in self._made:
            self._made[key] = make()
        return cast("_Made", self._made[key])


@dataclass(frozen=True, slots=True)
class PartSlice:
    """Rows [low, high) of a part, at least one, and the (ts, seq) of the first and the last of them."""

    part: CodedPart
    low: int
    high: int
    first: tuple[int, int]
    last: tuple[int, int]

    @classmethod
    def whole(cls, part: CodedPart) -> PartSlice:
        """Select all rows of a part."""
        return cls(part, 0, part.written.rows, part.written.first, part.written.last)


def order_of(work: WorkDir, part: CodedPart) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read ts and seq of every row of a part, in their order."""
    read = _ReadPart(work, PartSlice.whole(part))
    ts, seq = (np.empty(len(read), dtype=np.int64) for _ in _STEPPED)
    for name, target in zip(_STEPPED, (ts, seq), strict=True):
        read.write_to(target, name)
    return ts, seq


class _ReadPart:
    def __init__(self, work: WorkDir, piece: PartSlice) -> None:
        self._columns, self._constants = work.read(piece.part.written.name, slice(piece.low, piece.high))
        self._first = dict(zip(_STEPPED, piece.first, strict=True))
        self._maps = piece.part.codes

    def __len__(self) -> int:
        return len(self._columns["ts"])

    @property
    def names(self) -> list[str]:
        return sorted({*self._columns, *self._constants})

    def constant(self, name: str) -> Any:
        """Look up the one value of a column, None if it varies."""
        value, codes = self._constants.get(name), self._maps.get(name)
        return value if value is None or codes is None else int(codes[value])

    def dtype(self, name: str) -> np.dtype[Any]:
        if name in _STEPPED:
            return np.dtype(np.int64)
        values = self._maps.get(name, self._columns.get(name))
        return np.dtype(type(self._constants[name])) if values is None else values.dtype

    def write_to(self, target: NDArray[Any], name: str) -> None:
        constant, codes = self.constant(name), self._maps.get(name)
        if constant is not None:
            target[:] = constant
        elif name in _STEPPED:
            np.cumsum(self._columns[name], dtype=np.int64, out=target)
            # The step to the first of these rows is left out. Arrays wrap around, as the steps did.
            target -= target[0]
            target += self._first[name]
        elif codes is None:
            target[:] = self._columns[name]
        else:
            # -1 selects the last code, as it does for a code that is an index.
            np.take(codes.astype(target.dtype, copy=False), self._columns[name], out=target, mode="wrap")


def day_rows(work: WorkDir, parts: Sequence[CodedPart]) -> SliceRows:
    """Merge the parts of one cluster and day."""
    return rows_of(work, [PartSlice.whole(part) for part in parts])


def rows_of(work: WorkDir, pieces: Sequence[PartSlice]) -> SliceRows:
    """Merge pieces of one cluster, at least one, in order of their parts."""
    read = [_ReadPart(work, piece) for piece in pieces]
    # Parts are in the order of their files, which breaks ties, so parts that do not overlap need no sort.
    is_ordered = all(before.last <= after.first for before, after in pairwise(pieces))
    values = {name: {part.constant(name) for part in read} for name in read[0].names}
    constants = {name: value for name, (value, *others) in values.items() if value is not None and not others}
    unused = {*constants, *(("seq",) if is_ordered else ())}
    columns: _Columns = {}
    for name in values:
        if name not in unused:
            # The parts are written into one array, since concatenating decoded parts would hold every column twice.
            dtype = np.result_type(*(part.dtype(name) for part in read))
            joined = columns[name] = np.empty(sum(map(len, read)), dtype=dtype)
            low = 0
            for part in read:
                part.write_to(joined[low : low + len(part)], name)
                low += len(part)
    if not is_ordered:
        seq = columns.pop("seq", None)
        # lexsort is stable, so file and row break the remaining ties.
        order = np.lexsort((columns["ts"],) if seq is None else (seq, columns["ts"]))
        columns = {name: column[order] for name, column in columns.items()}
    return SliceRows(columns, constants)


#: Rows [low, high) of a slice.
Span = tuple[SliceRows, int, int]


def copy_tail(rows: SliceRows, held: Sequence[list[Span]]) -> None:
    """Point spans, in place, to a copy of the last rows of an ending slice, so that the slice is not kept."""
    lows = [low for spans in held for of, low, _ in spans if of is rows]
    if not lows:
        return
    first = min(lows)
    tail = rows.once(("tail", first), partial(rows.after, first))
    for spans in held:
        spans[:] = [(tail, low - first, high - first) if of is rows else (of, low, high) for of, low, high in spans]


def last_row_per(rows: SliceRows, name: str) -> SliceRows:
    """Select the last row of each value of a column, in order."""
    everything = slice(0, len(rows))
    _, from_end = np.unique(rows.column(name, everything)[::-1], return_index=True)
    places = np.sort(len(rows) - 1 - from_end)
    return SliceRows({column: rows.column(column, everything)[places] for column in rows.names}, {})


def concat_slices(days: Sequence[SliceRows]) -> SliceRows:
    """Concatenate the rows of several days of one table, in order of time. Without days the result has no rows."""
    if len(days) == 1:
        return days[0]
    names = days[0].names if days else frozenset(("ts",))
    columns = {
        name: np.concatenate([rows.column(name, slice(None)) for rows in days]) if days else _NO_TS for name in names
    }
    return SliceRows(columns, {})


@dataclass(frozen=True, slots=True)
class Slice:
    """A day, or a part of a busy day, with instants [from_us, until_us), None where the day has no end."""

    from_us: int | None
    until_us: int | None
    #: of each table its rows, in order of their parts
    tables: tuple[tuple[PartSlice, ...], ...]


def slices_of_day(
    work: WorkDir, tables: Sequence[Sequence[CodedPart]], grid: Ints, *, most_rows: int
) -> Iterator[Slice]:
    """Yield the slices of one day in order.

    Args:
        tables: the parts of each table on the day.
        grid: instants at which it may be cut, µs, ascending.
        most_rows: maximum rows of all tables in a slice, unless a single cell of the grid has more.
    """
    rows = sum(part.written.rows for parts in tables for part in parts)
    if rows <= most_rows or not len(grid):
        yield Slice(None, None, tuple(tuple(map(PartSlice.whole, parts)) for parts in tables))
        return
    # Rows before the first instant of the grid belong to its cell, which begins with the day.
    places = sum(np.searchsorted(order_of(work, part)[0], grid[1:]) for parts in tables for part in parts)
    ends = np.append(places, rows)
    cuts = [int(grid[place]) for place in _find_cuts(ends, most_rows)]
    pieces = [[_slice_part(work, part, cuts) for part in parts] for parts in tables]
    for number, (from_us, until_us) in enumerate(pairwise([None, *cuts, None])):
        of_tables = ([part[number] for part in table] for table in pieces)
        yield Slice(from_us, until_us, tuple(tuple(filter(None, of_table)) for of_table in of_tables))


def _find_cuts(ends: Ints, most_rows: int) -> Iterator[int]:
    before = 0
    while ends[-1] - before > most_rows:
        # The slice has all cells that end within it, and at least one cell with rows.
        place = int(
            np.searchsorted(ends, max(before + most_rows, ends[np.searchsorted(ends, before, side="right")]), "right")
        )
        if place >= len(ends):
            return
        yield place
        before = int(ends[place - 1])


def _slice_part(work: WorkDir, part: CodedPart, cuts: Sequence[int]) -> list[PartSlice | None]:
    """Cut a part into the rows of each slice, None for a slice without rows."""
    ts, seq = order_of(work, part)
    bounds = [0, *np.searchsorted(ts, cuts).tolist(), len(ts)]
    return [
        None if low == high else PartSlice(part, low, high, *((int(ts[row]), int(seq[row])) for row in (low, high - 1)))
        for low, high in pairwise(bounds)
    ]
