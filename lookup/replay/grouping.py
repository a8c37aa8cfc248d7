"""Group rows by several integer columns at once, by one packed key per row.

Columns are packed into keys, added up by key, and unpacked. Numpy counts by one integer per row (`bincount`), so
columns are digits of a number. Weights of a key add up in order of rows, so float sums do not depend on the packing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowKeys", "column_keys", "compact", "ranges"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Keys are counted into an array if that has at most this many times as many entries as there are rows.
_SPARSE = 16


@dataclass(frozen=True, eq=False, slots=True)
class RowKeys:
    """One key per row for several integer columns. Keys ascend with the first column, then the second, ...

    Example:
        >>> keys = column_keys(np.array([1, 0, 1])).by(np.array([-1, 4, -1]), size=6, low=-1)
        >>> columns, (sums,) = keys.sum_values(np.array([1.0, 2.0, 4.0]))
        >>> [column.tolist() for column in columns], sums.tolist()
        ([[0, 1], [4, -1]], [2.0, 5.0])
    """

    #: shape (n_rows,), 0 or more
    rows: NDArray[np.integer[Any]]
    #: exclusive upper bound of the keys, None if it is not known
    bound: int | None
    #: unpacks keys to their columns
    columns: Callable[[Ints], tuple[Ints, ...]]

    def by(self, column: NDArray[np.integer[Any]], *, size: int, low: int = 0) -> RowKeys:
        """Add one more column to the keys, as the last one.

        Args:
            column: shape (n_rows,), in [low, low + size).
        """
        before = self.columns
        # Codes are narrow integers, which a product would overflow.
        keys = self.rows * np.int64(size)
        keys += column
        if low:
            keys -= low
        bound = None if self.bound is None else self.bound * size
        # numpy divides many times faster than it finds remainders.
        return RowKeys(keys, bound, lambda keys: (*before(keys // size), keys - keys // size * size + low))

    def compact(self) -> RowKeys:
        """Number the keys that occur, if they are few of the possible ones, so that counts by key stay small."""
        before = self.columns
        present, numbers = compact(self.rows)
        return RowKeys(numbers, len(present), lambda numbers: before(present[numbers]))

    def number_keys(self) -> tuple[tuple[Ints, ...], Ints]:
        """List the columns of each key that occurs, ascending, and the number of each row's key in that list."""
        present, numbers = compact(self.rows)
        return self.columns(present), numbers

    def count_keys(self, weights: Floats | float, *, sparse: int = _SPARSE) -> tuple[tuple[Ints, ...], Floats, Floats]:
        """List the columns of each key that occurs, ascending, with its number of rows and the sum of its weights.

        Args:
            weights: shape (n_rows,), or one number for every row.
            sparse: maximum entries per row of the array in which keys are counted.
        """
        bound = int(self.rows.max()) + 1 if self.bound is None else self.bound
        keys, present = self.rows, None
        # An array of all possible keys is the fastest way to count, unless most of it would be empty.
        if bound > sparse * max(len(keys), 1 << 16):
            present, keys = np.unique(keys, return_inverse=True)
            bound = len(present)
        counts = np.bincount(keys, minlength=bound)
        # Equal weights need no second pass over the rows.
        by_row = not isinstance(weights, float)
        sums = (np.bincount(keys, weights=weights, minlength=bound) if by_row else counts * weights).astype(np.float64)
        if present is None:
            present = np.flatnonzero(counts)
            counts, sums = counts[present], sums[present]
        return self.columns(present), counts.astype(np.float64), sums

    def sum_values(self, *values: Floats) -> tuple[tuple[Ints, ...], list[Floats]]:
        """List the columns of each key that occurs, ascending, and the sums of one or more values of the rows.

        Args:
            values: each of shape (n_rows,).
        """
        columns, numbers = self.number_keys()
        return columns, [np.bincount(numbers, weights=column).astype(np.float64) for column in values]


def column_keys(column: NDArray[np.integer[Any]], *, size: int | None = None, low: int = 0) -> RowKeys:
    """Build keys from one column alone.

    Args:
        column: shape (n_rows,), in [low, low + size).
        size: None if it is not known.
    """
    # Codes are narrow integers, which a difference would overflow.
    return RowKeys(column - np.int64(low) if low else column, size, lambda keys: (keys + low,))


def compact(codes: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
    """Number the codes that occur, and return these codes, ascending, and each row's number."""
    largest = int(codes.max(initial=0))
    if largest > _SPARSE * max(len(codes), 1 << 16):
        present, numbers = np.unique(codes, return_inverse=True)
        return present, numbers
    # Without a sort, and without a pass over the numbers of codes that do not occur, which are most.
    occurs = np.zeros(largest + 1, dtype=bool)
    occurs[codes] = True
    present = np.flatnonzero(occurs)
    numbers = np.empty(largest + 1, dtype=np.int64)
    numbers[present] = np.arange(len(present))
    return present, numbers.take(codes)


def ranges(starts: Ints, sizes: Ints) -> Ints:
    """Concatenate the numbers of some ranges, shape (sum of sizes,).

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    # Numbers count upwards, and jump back at each range by the size of the range before.
    numbers: Ints = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return numbers
