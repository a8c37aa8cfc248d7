"""A placement to be found: bundles with weights, brokers with capacities, and the limits it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookup.errors import InputError

__all__ = ["TOLERANCE", "Bools", "Floats", "Ints", "Problem", "problem_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: How far a sum may exceed a limit, as a ratio: sums of the same numbers in another order differ by less.
TOLERANCE = 1e-9
#: What sums are within: numbers hold the ratios and products of three of them.
_LEAST, _MOST = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class Problem:
    """A checked problem; what is no limit is infinite, and what is not given is None."""

    #: shape (n_bundles,), not all 0
    weights: Floats
    #: weight that each broker carries at the same degree of use, shape (n_brokers,), above 0
    capacities: Floats
    #: number of each bundle's broker, -1 for none, shape (n_bundles,)
    owners: Ints
    #: how near each broker is to the clients of a bundle, in [0, 1], shape (n_bundles, n_brokers)
    near: Floats | None
    #: which brokers may have a bundle, shape (n_bundles, n_brokers)
    admitted: Bools | None
    #: most weight of each broker, shape (n_brokers,)
    room: Floats
    max_moved_weight: float
    max_moves: float

    @property
    def is_placed(self) -> Bools:
        """Return which bundles have a broker that may have them, shape (n_bundles,)."""
        owned: Bools = self.owners >= 0
        if self.admitted is None:
            return owned
        return owned & self.admitted[np.arange(len(owned)), self.owners]

    def loads(self, owners: Ints) -> Floats:
        """Return the weight of each broker under a placement, shape (n_brokers,)."""
        placed = owners >= 0
        loads: Floats = np.bincount(owners[placed], self.weights[placed], len(self.capacities)).astype(np.float64)
        return loads

    def imbalance(self, owners: Ints) -> float:
        """Return the most weight over capacity of a broker / total weight over total capacity."""
        return float((self.loads(owners) / self.capacities).max()) / self.mean

    def locality(self, owners: Ints) -> float:
        """Return the share of the weight that is near; `near` must be given."""
        assert self.near is not None
        nearness = self.near[np.arange(len(owners)), owners]
        return float(self.weights @ nearness) / float(self.weights.sum())

    @property
    def mean(self) -> float:
        """Return total weight / total capacity."""
        return float(self.weights.sum()) / float(self.capacities.sum())

    def moved(self, owners: Ints) -> Bools:
        """Return which bundles have left their broker, shape (n_bundles,)."""
        moved: Bools = (self.owners >= 0) & (owners != self.owners)
        return moved

    def is_kept_by(self, owners: Ints) -> bool:
        """Return whether a placement keeps all limits."""
        if self.admitted is not None and not self.admitted[np.arange(len(owners)), owners].all():
            return False
        moved = self.moved(owners)
        weight_moved = float(self.weights[moved].sum())
        return (
            not (self.loads(owners) > self.room * (1 + TOLERANCE)).any()
            and weight_moved <= self.max_moved_weight * (1 + TOLERANCE)
            and int(moved.sum()) <= self.max_moves
        )

    def scaled(self) -> Problem:
        """Return the same problem with a mean weight of 1, in whose units weights and moves are of one size."""
        factor = len(self.weights) / float(self.weights.sum())
        return replace(
            self,
            weights=self.weights * factor,
            room=self.room * factor,
            max_moved_weight=self.max_moved_weight * factor,
        )


def problem_of(  # noqa: PLR0913  those of `best_placement`
    weights: ArrayLike,
    capacities: ArrayLike,
    owners: Sequence[int] | Ints | None,
    near: ArrayLike | None,
    admitted: ArrayLike | None,
    *,
    max_imbalance: float | None,
    max_moved_weight: float | None,
    max_moves: int | None,
) -> Problem:
    """Check what a caller gives.

    Raises:
        InputError: if anything has another shape, is no number or out of its range, or if no placement can keep the
            limits whatever it is; the sentence names the argument and the place in it.
    """
    weight, capacity = _column("weights", weights), _column("capacities", capacities)
    if not len(capacity):
        raise InputError("capacities: there is no broker; give one number above 0 for each")
    _refuse(
        "capacities", capacity, ~(capacity > 0), "is no capacity; give the weight that the broker can carry, above 0"
    )
    _refuse("weights", weight, ~(weight >= 0), "is no weight; give a number that is 0 or more")
    if not weight.any():
        raise InputError("weights: no bundle has any weight, so there is nothing to place")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
        sums = (("weights", "sum", total), ("capacities", "sum", float(capacity.sum())))
    for name, what, figure in (*sums, ("capacities", "least", float(capacity.min()))):
        if not _LEAST <= figure <= _MOST:
            raise InputError(
                f"{name}: their {what} is {figure:g}, so that sums and ratios are beyond what numbers hold; give them "
                f"in a unit in which it is from {_LEAST:g} to {_MOST:g}"
            )
    shape = (len(weight), len(capacity))
    room = np.full(len(capacity), np.inf)
    if max_imbalance is not None:
        if near is None:
            raise InputError(
                "max_imbalance is a limit for placements near the clients; without near, imbalance itself "
                "is what becomes least: leave it out, or give near"
            )
        _refuse_type("max_imbalance", max_imbalance)
        if not max_imbalance >= 1:
            raise InputError(
                f"max_imbalance is {max_imbalance}, below which no placement comes; 1.05 allows 5 % above the mean"
            )
        room = max_imbalance * total / float(capacity.sum()) * capacity
    return Problem(
        weights=weight,
        capacities=capacity,
        owners=_owners(owners, shape),
        near=None if near is None else _near(near, shape),
        admitted=None if admitted is None else _admitted(admitted, shape),
        room=room,
        max_moved_weight=_budget("max_moved_weight", max_moved_weight),
        max_moves=_budget("max_moves", max_moves),
    )


def _column(name: str, values: ArrayLike) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not numbers ({error})") from None
    if column.ndim != 1:
        raise InputError(f"{name} has shape {column.shape}; give one number each, in one row")
    _refuse(name, column, ~np.isfinite(column), "is no finite number")
    return column


def _refuse(name: str, column: Floats, wrong: Bools, why: str) -> None:
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InputError(f"{name}[{place}] is {float(column[place])}, which {why}")


def _owners(owners: Sequence[int] | Ints | None, shape: tuple[int, int]) -> Ints:
    if owners is None:
        return np.full(shape[0], -1, dtype=np.int64)
    right = f"give one broker for each of the {shape[0]} bundles, -1 for none"
    given = _array("owners", owners, right)
    if given.shape != shape[:1]:
        raise InputError(f"owners has shape {given.shape}; {right}")
    if given.dtype.kind not in "iu":
        raise InputError(f"owners are of type {given.dtype}; give numbers of brokers, whole, from 0 on, -1 for none")
    wrong = (given < -1) | (given >= shape[1])
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InputError(
            f"owners[{place}] is {given[place]}; brokers have the numbers 0 to {shape[1] - 1}, and -1 is none"
        )
    return given.astype(np.int64)


def _near(near: ArrayLike, shape: tuple[int, int]) -> Floats:
    table = _table("near", near, shape)
    if table.dtype.kind not in "fiub":
        raise InputError(f"near is of type {table.dtype}; give numbers in [0, 1], or truths")
    # not all at once: a table of the size of the largest clusters is not to be held twice
    for row, values in enumerate(table):
        if not ((values >= 0) & (values <= 1)).all():
            column = int(np.argmin((values >= 0) & (values <= 1)))
            raise InputError(f"near[{row}, {column}] is {values[column]}; give a number in [0, 1]")
    return table


def _admitted(admitted: ArrayLike, shape: tuple[int, int]) -> Bools:
    table = _table("admitted", admitted, shape)
    if table.dtype != np.bool_:
        raise InputError(f"admitted is of type {table.dtype}; give truths")
    alone = ~table.any(axis=1)
    if alone.any():
        raise InputError(f"admitted[{int(np.argmax(alone))}] leaves no broker to this bundle")
    return table


def _table(name: str, values: ArrayLike, shape: tuple[int, int]) -> NDArray[Any]:
    right = f"give one row for each of the {shape[0]} bundles, in it one value for each of the {shape[1]} brokers"
    table = _array(name, values, right)
    if table.shape != shape:
        raise InputError(f"{name} has shape {table.shape}; {right}")
    return table


def _array(name: str, values: ArrayLike, right: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; {right}") from None


def _refuse_type(name: str, value: object) -> None:
    if not isinstance(value, Real):
        raise InputError(f"{name} is {value!r}, of type {type(value).__name__}; give a number, or None for no limit")


def _budget(name: str, value: float | None) -> float:
    if value is None:
        return np.inf
    _refuse_type(name, value)
    if not value >= 0:
        raise InputError(f"{name} is {value}; give a number that is 0 or more, or None for no limit")
    return float(value)
