"""From parts to days: one task per cluster and day puts the parts together in the total order (ts, seq, file, row).

A day holds the log as codes in the order in which lookups happened; everything downstream walks or gathers these
columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.replay.vocabulary import Recoding
from lookup.replay.work import WorkDir

__all__ = ["DayRows", "Part", "day_name", "order_day", "read_day"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part file and the maps of the task that wrote it."""

    name: str
    first_us: int
    last_us: int
    recoding: Recoding


@dataclass(frozen=True)
class DayRows:
    """The demand of one cluster and day in total order; columns of shape (n_rows,).

    A column that holds one value only is kept as that value.
    """

    columns: Mapping[str, NDArray[Any]]
    constants: Mapping[str, int]
    #: tells the rows of one run and day from all others
    name: str = ""

    @property
    def ts(self) -> NDArray[np.int64]:
        """Return when each lookup came, µs."""
        return self.columns["ts"]

    def __len__(self) -> int:
        return len(self.columns["ts"])

    def column(self, name: str, rows: slice) -> NDArray[Any]:
        """Return some rows of a column."""
        held = self.columns.get(name)
        if held is not None:
            return held[rows]
        start, stop, _ = rows.indices(len(self))
        # Micro-units of weight are whole numbers below 2**53, exact as float64, which sums want.
        return np.full(stop - start, self.constants[name], dtype=np.float64 if name == "weight" else np.int64)

    def constant(self, name: str) -> int | None:
        """Return the one value of a column, None where it varies."""
        return self.constants.get(name)


def day_name(place: int, day: int) -> str:
    """Return the name of a day's file; `place` is the cluster's in the sorted clusters of the run."""
    return f"days/{place}/{day}.arrow"


def order_day(work: WorkDir, name: str, parts: Sequence[Part]) -> int:
    """Put the parts of one cluster and day together; return the number of rows."""
    read = [_recoded(work, part) for part in parts]
    is_ordered = _is_ordered(parts)
    names = [column for column in read[0] if not (is_ordered and column == "seq")]
    columns = {column: np.concatenate([part[column] for part in read]) for column in names}
    if not is_ordered:
        order = np.lexsort((columns["seq"], columns["ts"]))
        columns = {column: values[order] for column, values in columns.items()}
        del columns["seq"]
    constants = {
        column: int(values[0]) for column, values in columns.items() if column != "ts" and _is_constant(values)
    }
    work.write(name, {column: values for column, values in columns.items() if column not in constants}, constants)
    return len(columns["ts"])


def read_day(work: WorkDir, name: str) -> DayRows:
    """Read a day's rows."""
    columns, constants = work.read(name)
    return DayRows(columns, constants, f"{work.root}/{name}")


def _is_ordered(parts: Sequence[Part]) -> bool:
    # Parts come in order of their files, so parts that do not overlap in time need no sort.
    return all(before.last_us < after.first_us for before, after in pairwise(parts))


def _recoded(work: WorkDir, part: Part) -> dict[str, NDArray[Any]]:
    columns, constants = work.read(part.name)
    full = {name: np.full(len(columns["ts"]), value) for name, value in constants.items()}
    maps = {
        "atom": part.recoding.atom,
        "properties": part.recoding.properties,
        "broker": part.recoding.broker,
        **part.recoding.extras,
    }
    merged = {**columns, **full}
    for name, codes in maps.items():
        if name in merged:
            merged[name] = codes[merged[name]]
    merged.update({name: values.astype(np.float64) for name, values in merged.items() if name == "weight"})
    return dict(sorted(merged.items()))


def _is_constant(values: NDArray[Any]) -> bool:
    return bool(values[0] == values[-1] and (values == values[0]).all())
