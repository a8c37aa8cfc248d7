"""Make all calls of metrics, built-in or from plug-ins, and check their answers against the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.errors import PluginError
from lookup.hooks import Luck, Metric, Question
from lookup.hooks.raised import guard_call, read_bounded
from lookup.model.batch import Batch
from lookup.model.quoting import shown

__all__ = ["Sums", "bounds_of", "every_key_of", "keys_of", "luck_of", "question_of", "sums_of", "value_of"]

FloatArray = NDArray[np.float64]

#: Kinds of numpy's real numbers, which are truth values, integers and floating-point numbers.
_REAL = "biuf"


def every_key_of(metric: Metric) -> tuple[str, ...] | None:
    """Find the keys that a metric may have, None if they depend on the log."""
    return getattr(metric, "every_key", None)


def luck_of(metric: Metric) -> tuple[Luck, ...]:
    """Find the random sources of a metric's figure, by default those of its rows and the placement."""
    rows: tuple[Luck, ...] = ("events",) if metric.resample == "event" else ()
    declared: tuple[Luck, ...] | None = getattr(metric, "luck", None)
    return ("demand", "placement", *rows) if declared is None else declared


def bounds_of(metric: Metric) -> tuple[float, float] | None:
    """Find the smallest and the largest possible figure of a metric, None if it does not declare them."""
    return getattr(metric, "bounds", None)


def question_of(metric: Metric) -> Question:
    """Find the question of verdicts on a metric, by default demand like this."""
    return getattr(metric, "question", "demand")


def keys_of(metric: Metric, batches: Iterable[Batch]) -> tuple[str | None, ...]:
    """List the keys of a metric in some batches, each once, in the order of their first appearance.

    Raises:
        PluginError: if it raises, or its answer has other values than texts and None, or an undeclared key.
    """
    keys: dict[str | None, None] = {}
    every = every_key_of(metric)
    for batch in batches:
        with guard_call(f"metric {metric.name!r} raised "):
            answer: Any = metric.keys(batch)
            # A text is iterable as well, but its letters are no keys.
            batch_keys = (
                tuple(read_bounded(answer))
                if isinstance(answer, Iterable) and not isinstance(answer, str | bytes)
                else None
            )
        if batch_keys is None or not all(
            # Half of a surrogate pair cannot be written down.
            key is None or (isinstance(key, str) and key == key.encode(errors="ignore").decode())
            for key in batch_keys
        ):
            right = "a sequence of texts or None is asked for, (None,) for one number"
            raise _build_breach(metric, f"{shown(answer)} for its keys; {right}")
        unknown = [key for key in batch_keys if key is not None and every is not None and key not in every]
        if unknown:
            raise _build_breach(metric, f"the key {unknown[0]!r}, which is not in its every_key, {every}")
        keys |= dict.fromkeys(batch_keys)
    return tuple(keys)


@dataclass(frozen=True, eq=False)
class Sums:
    """A metric's sums for some batches, finite."""

    #: added up over the batches, shape (n_units, k)
    total: FloatArray
    #: added up over the units, shape (n_batches, k)
    by_batch: FloatArray


def sums_of(metric: Metric, batches: Sequence[Batch], key: str | None) -> Sums:
    """Compute a metric's sums in each of some batches, at least one, and add them up in their order.

    The metric is not called for a batch without any change or cell to count, as most batches of a run.

    Raises:
        PluginError: if it raises, or its answer has other values than finite real numbers of that shape.
    """
    # If no batch has any, the metric is called for the last, since it determines the number of columns of the sums.
    places = [place for place, batch in enumerate(batches) if _is_counted(metric, batch)] or [len(batches) - 1]
    # A copy, since totals are added up in place and batches' sums may be views of the metric's own arrays.
    total = _compute_sums(metric, batches[places[0]], key).astype(np.float64)
    by_batch = np.zeros((len(batches), total.shape[1]))
    by_batch[places[0]] = total.sum(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are rejected below
        for place in places[1:]:
            sums = _compute_sums(metric, batches[place], key)
            if sums.shape != total.shape:
                raise _build_breach(
                    metric, f"sums of shape {sums.shape} cannot be added to sums of shape {total.shape}"
                )
            total += sums
            by_batch[place] = sums.sum(axis=0)
    if not np.isfinite(total).all():
        row, column = np.argwhere(~np.isfinite(total))[0].tolist()
        problem = f"the sum {total[row, column]} in row {row}, column {column} for key {key!r}"
        raise _build_breach(
            metric, f"{problem}; sums are finite, since they are added up over bundles, cells and clusters"
        )
    return Sums(total, by_batch)


def _is_counted(metric: Metric, batch: Batch) -> bool:
    """Check whether a batch has the rows that a metric counts, which are changes of owner or cells with a broker."""
    if metric.grain == "change":
        return batch.changes is not None and len(batch.changes.bundle) > 0
    return metric.grain != "cell" or bool(batch.cells.registered.any())


def value_of(metric: Metric, sums: FloatArray) -> FloatArray:
    """Compute the values of totals of shape (..., k), or the value of all rows if these are not units.

    Returns:
        Shape (...), or () for a metric whose rows are not units. Values are finite, or NaN without anything to measure.

    Raises:
        PluginError: if it raises, or returns another kind of value.
    """
    # A metric that divides by zero gets NaN, which stands for nothing to measure, so a warning would add nothing.
    with guard_call(f"metric {metric.name!r} raised "), np.errstate(all="ignore"):
        answer = metric.value(sums)
        values = _to_array(answer)
    shape = () if metric.resample == "none" else sums.shape[:-1]
    if values.dtype.kind not in _REAL or values.shape != shape:
        right = f"real numbers of shape {shape}" if shape else "one real number"
        raise _build_breach(
            metric, f"{_format_answer(answer)} for the value of sums of shape {sums.shape}; {right} would be right"
        )
    if np.isinf(values).any():
        raise _build_breach(
            metric, f"the value {values[np.isinf(values)][0]}; NaN says that there is nothing to measure"
        )
    return values.astype(np.float64, copy=False)


def _compute_sums(metric: Metric, batch: Batch, key: str | None) -> NDArray[Any]:
    with guard_call(f"metric {metric.name!r} raised "):
        answer = metric.accumulate(batch, key)
        sums = _to_array(answer)
    rows: int | None = len(batch.bundles) + (len(batch.events) if metric.resample == "event" else 0)
    if metric.resample in ("time", "none"):
        # If intervals do not vary its rows, their number is the metric's own business.
        rows = len(batch.cells.start) if metric.resample == "time" else None
    if sums.dtype.kind not in _REAL or sums.ndim != 2 or not sums.shape[1] or rows not in (None, len(sums)):
        right = f"real numbers of shape ({'n' if rows is None else rows}, k) would be right"
        raise _build_breach(
            metric, f"{_format_answer(answer)} for its sums of key {key!r}; {right}, {_ROWS[metric.resample]}"
        )
    return sums


#: The meaning of one row of a metric's sums, by its `resample`.
_ROWS = {
    "bundle": "a row per bundle",
    "time": "a row per cell",
    "event": "a row per bundle and event",
    "none": "k at least 1",
}


def _to_array(answer: Any) -> NDArray[Any]:
    if isinstance(answer, np.ma.MaskedArray) and answer.dtype.kind in _REAL:
        return np.asarray(np.ma.filled(answer.astype(np.float64), np.nan))
    try:
        return np.asarray(answer)
    except (TypeError, ValueError):  # rows of different lengths
        return np.empty((), dtype=np.object_)


def _format_answer(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"an array of {answer.dtype} of shape {answer.shape}"
    return shown(answer)


def _build_breach(metric: Metric, problem: str) -> PluginError:
    return PluginError(f"metric {metric.name!r} answered {problem}")
