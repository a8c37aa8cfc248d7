"""Read batches of LOOKUPS by column, with the defaults of `columns.py`, and refuse rows that break its rules.

The rules are those of `check_row`, for arrays, since calls for hundreds of millions of rows would take longest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import InputError
from lookup.logs.columns import MAX_WEIGHT
from lookup.logs.readers.values import LATIN_1
from lookup.model.time import FIRST_US, LAST_US

__all__ = ["Checks", "LogBatch", "Quarantined", "flags", "places_by_code", "sequence", "text_column", "texts_of"]

Ints = NDArray[np.int64]

#: The `seq` of a row without one, before all numbers.
_UNNUMBERED = np.iinfo(np.int64).min


@dataclass(frozen=True)
class LogBatch:
    """Some rows of LOOKUPS, their source, and their cluster if the path names it."""

    rows: pa.RecordBatch
    source: str
    first_row: int
    cluster: str | None
    #: number of each row in its source, from 1, if they are not consecutive
    lines: Ints | None = None

    @property
    def line_numbers(self) -> Ints:
        """The number of each row in its source, from 1."""
        return np.arange(self.rows.num_rows) + self.first_row + 1 if self.lines is None else self.lines

    def take(self, rows: NDArray[np.bool_]) -> LogBatch:
        """Select some of the rows, which keep their numbers."""
        if rows.all():
            return self
        return replace(self, rows=self.rows.filter(pa.array(rows)), lines=self.line_numbers[rows])

    def split_by_code(self, codes: NDArray[np.integer[Any]]) -> Iterator[tuple[int, LogBatch]]:
        """Yield each code that occurs, ascending, with its rows in their order."""
        if not len(codes) or codes.min() == codes.max():
            # Most batches have only one code, so their rows need not be copied.
            yield from ((int(code), self) for code in codes[:1])
            return
        lines = self.line_numbers
        for code, places in places_by_code(codes):
            yield code, replace(self, rows=self.rows.take(pa.array(places)), lines=lines[places])

    def within(self, since_us: int, until_us: int) -> LogBatch:
        """Select the rows from an instant on and before another, and rows without a time."""
        column = self.rows.column("ts")
        times = _convert_times(column)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        return self.take(missing | ((times >= since_us) & (times < until_us)))


def places_by_code(codes: NDArray[np.integer[Any]]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each code that occurs, ascending, with its places in their order. There is at least one code."""
    order = np.argsort(codes, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        yield int(codes[places[0]]), places


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that cannot be used."""

    source: str
    line: int
    reason: str
    text: str


class Checks:
    """The checks of a batch, which find the rows that cannot be used."""

    def __init__(self, batch: LogBatch) -> None:
        self.usable = np.ones(batch.rows.num_rows, dtype=bool)
        self.quarantined: list[Quarantined] = []
        self._batch = batch

    def refuse(self, wrong: NDArray[np.bool_], reason: Callable[[str | None], str], column: str) -> None:
        """Quarantine rows. Each row is reported once, for its first mistake."""
        wrong = wrong & self.usable
        if not wrong.any():
            return
        rows, lines = self._batch.rows, self._batch.line_numbers
        for row in np.flatnonzero(wrong).tolist():
            text = None
            if column in rows.schema.names:
                cell = rows.column(column).slice(row, 1)
                if pa.types.is_timestamp(cell.type):
                    # As a number: Python has no name for instants beyond its calendar.
                    cell = cell.cast(pa.int64())
                (value,) = texts_of(cell.dictionary_decode() if pa.types.is_dictionary(cell.type) else cell)
                text = None if value is None else str(value)
            self.quarantined.append(Quarantined(self._batch.source, int(lines[row]), reason(text), (text or "")[:200]))
        self.usable &= ~wrong

    def timestamps(self) -> Ints:
        """Read the time of each row, µs since the epoch, and refuse rows without a usable time."""
        column = self._batch.rows.column("ts")
        values = _convert_times(column)
        beyond = (values < FIRST_US) | (values > LAST_US)
        self.refuse(beyond, lambda _: "the timestamp is in no year from 1 to 9999; is its unit right?", "ts")
        if column.null_count:
            self.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: "the timestamp is missing", "ts")
        return values

    def weights(self) -> Ints:
        """Read each row's weight in micro-units, by default that of 1.0, and refuse weights out of range."""
        names = self._batch.rows.schema.names
        if "weight" not in names or self._batch.rows.column("weight").null_count == self._batch.rows.num_rows:
            return np.full(self._batch.rows.num_rows, MICRO, dtype=np.int64)
        weights = _convert_figures(self._batch.rows.column("weight"))
        if weights.min() >= 0.0 and weights.max() <= MAX_WEIGHT:
            return np.rint(weights * MICRO).astype(np.int64)
        wrong = ~((weights >= 0.0) & (weights < np.inf))
        self.refuse(wrong, lambda text: f"weight {text} is not a finite number of at least 0", "weight")
        heavy = weights > MAX_WEIGHT
        self.refuse(heavy, lambda text: f"weight {text} is above {MAX_WEIGHT:g}; a larger unit would do", "weight")
        wrong |= heavy
        micro: Ints = np.rint(np.where(wrong, 0.0, weights) * MICRO).astype(np.int64)
        return micro


def _convert_figures(column: pa.Array) -> NDArray[np.float64]:
    """Convert numbers to floats, 1.0 for missing ones."""
    values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).fill_null(1.0).to_numpy(zero_copy_only=False)
    return values


def _convert_times(column: pa.Array) -> Ints:
    """Convert times to µs since the epoch, 0 for missing ones."""
    if pa.types.is_timestamp(column.type):
        # The cast is not safe, since it cuts off nanoseconds. Overflowing values are beyond the calendar and refused.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values: Ints = column.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False)
    return values


def sequence(batch: LogBatch) -> Ints:
    """Read each row's number among those of its instant. Rows without one get a number below all others."""
    rows = batch.rows
    # A row without number comes first at its instant, whatever file it is in. File and row break the tie.
    if "seq" not in rows.schema.names or rows.column("seq").null_count == rows.num_rows:
        return np.full(rows.num_rows, _UNNUMBERED)
    try:
        values: Ints = rows.column("seq").cast(pa.int64()).fill_null(_UNNUMBERED).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"{batch.source}: column 'seq' needs numbers of 64 bits with a sign: {error}") from None
    return values


def flags(rows: pa.RecordBatch, name: str) -> NDArray[np.bool_]:
    """Read a column of truth values, false if absent."""
    if name not in rows.schema.names or rows.column(name).null_count == rows.num_rows:
        return np.zeros(rows.num_rows, dtype=bool)
    values: NDArray[np.bool_] = rows.column(name).fill_null(False).to_numpy(zero_copy_only=False)
    return values


def texts_of(column: pa.Array) -> list[str | None]:
    """Convert texts to Python. Bytes that are not UTF-8 are read as Latin-1, as in logs that are read as text."""
    try:
        texts: list[str | None] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if text is None else text.decode(errors=LATIN_1) for text in raw]
    return texts


def text_column(rows: pa.RecordBatch, name: str) -> pa.DictionaryArray | None:
    """Read a column of texts as a dictionary, None if it is missing. An empty text is null, as in an ingest."""
    if name not in rows.schema.names:
        return None
    column = rows.column(name)
    if column.null_count == rows.num_rows and rows.num_rows:
        return None
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    empty = pa.scalar("", encoded.dictionary.type)
    if encoded.dictionary.index(empty).as_py() < 0:
        return encoded
    # It takes 20 ms to load, which commands that only check settings would wait for.
    import pyarrow.compute as pc  # noqa: PLC0415

    texts = encoded.dictionary_decode()
    return pc.if_else(pc.equal(texts, empty), None, texts).dictionary_encode()
