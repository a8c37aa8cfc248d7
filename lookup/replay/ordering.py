"""From parts to days: the rows of one cluster and day, put together in the total order (ts, seq, file, row).

A day is made in the memory of the task that replays it, once for all policies of that task; everything downstream walks
or gathers its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from lookup.replay.parts import STEPPED, WrittenPart
from lookup.replay.vocabulary import Recoding
from lookup.replay.work import WorkDir

__all__ = ["DayRows", "Part", "day_rows"]

_Made = TypeVar("_Made")
_Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Part:
    """A part, and what the codes of the task that wrote it mean."""

    written: WrittenPart
    recoding: Recoding


class DayRows:
    """The demand of one cluster and day in total order; columns of shape (n_rows,).

    A column that holds one value only is kept as that value.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], constants: Mapping[str, int]) -> None:
        self._columns, self._constants = columns, constants
        self._made: dict[Hashable, object] = {}

    @property
    def ts(self) -> NDArray[np.int64]:
        """Return when each lookup came, µs."""
        return self._columns["ts"]

    def __len__(self) -> int:
        return len(self.ts)

    def column(self, name: str, rows: slice) -> NDArray[Any]:
        """Return some rows of a column."""
        held = self._columns.get(name)
        if held is not None:
            return held[rows]
        start, stop, _ = rows.indices(len(self))
        # Micro-units of weight are whole numbers below 2**53, exact as float64, which sums want.
        return np.full(stop - start, self._constants[name], dtype=np.float64 if name == "weight" else np.int64)

    def value(self, name: str, row: int) -> int:
        """Return the value of one row."""
        held = self._columns.get(name)
        return self._constants[name] if held is None else int(held[row])

    def constant(self, name: str) -> int | None:
        """Return the one value of a column, None where it varies."""
        return self._constants.get(name)

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return what was made of these rows under a key, made now if nobody asked before: policies share a day."""
        if key not in self._made:
            self._made[key] = make()
        return cast("_Made", self._made[key])


class _Read:
    """A part as its task wrote it, and its values in the cluster's codes."""

    def __init__(self, work: WorkDir, part: Part) -> None:
        self._columns, self._constants = work.read(part.written.name)
        self._first = dict(zip(STEPPED, part.written.first, strict=True))
        recoding = part.recoding
        self._maps = {
            "atom": recoding.atom,
            "properties": recoding.properties,
            "broker": recoding.broker,
            **recoding.extras,
        }

    def __len__(self) -> int:
        return len(self._columns["ts"])

    @property
    def names(self) -> list[str]:
        """Return the names of all columns."""
        return sorted({*self._columns, *self._constants})

    def constant(self, name: str) -> int | None:
        """Return the one value of a column, None where it varies."""
        value, codes = self._constants.get(name), self._maps.get(name)
        return value if value is None or codes is None else int(codes[value])

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the type that holds a column's values."""
        held = self._maps.get(name, self._columns.get(name))
        return np.dtype(np.int64) if held is None or name in STEPPED else held.dtype

    def write_to(self, target: NDArray[Any], name: str) -> None:
        """Write a column's values."""
        constant, codes = self.constant(name), self._maps.get(name)
        if constant is not None:
            target[:] = constant
        elif name in STEPPED:
            np.cumsum(self._columns[name], dtype=np.int64, out=target)
            target += self._first[name]
        elif codes is None:
            target[:] = self._columns[name]
        else:
            # -1 stands for the last code, as it does where a code is an index.
            np.take(codes.astype(target.dtype, copy=False), self._columns[name], out=target, mode="wrap")


def day_rows(work: WorkDir, parts: Sequence[Part]) -> DayRows:
    """Put the parts of one cluster and day together."""
    read = [_Read(work, part) for part in parts]
    is_ordered = _is_ordered(parts)
    found = {name: {one.constant(name) for one in read} for name in read[0].names}
    constants = {name: value for name, (value, *others) in found.items() if value is not None and not others}
    unused = {*constants, *(("seq",) if is_ordered else ())}
    columns = {name: _joined(read, name) for name in found if name not in unused}
    if not is_ordered:
        columns = _in_order(columns)
    return DayRows(columns, constants)


def _is_ordered(parts: Sequence[Part]) -> bool:
    # Parts come in order of their files, which breaks ties; so parts that do not overlap need no sort.
    return all(before.written.last <= after.written.first for before, after in pairwise(parts))


def _joined(read: Sequence[_Read], name: str) -> NDArray[Any]:
    joined = np.empty(sum(map(len, read)), dtype=np.result_type(*(one.dtype(name) for one in read)))
    low = 0
    for one in read:
        one.write_to(joined[low : low + len(one)], name)
        low += len(one)
    return joined


def _in_order(columns: _Columns) -> _Columns:
    seq = columns.pop("seq", None)
    keys = (columns["ts"],) if seq is None else (seq, columns["ts"])
    order = np.lexsort(keys)
    return {name: values[order] for name, values in columns.items()}
