"""Rows of LOOKUPS as they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lookup.replay.rows import Checks, LogBatch, flags, sequence, text_column


def batch(**columns: Any) -> LogBatch:
    """Build a batch of one file, its first row the eleventh."""
    return LogBatch(pa.RecordBatch.from_pydict(columns), "log.parquet", 10, None)


def test_a_row_is_refused_once() -> None:
    """For the first thing that is wrong with it, under its number in its source."""
    checks = Checks(batch(ts=pa.array([1, None, 3]), weight=pa.array([1.0, -1.0, float("nan")])))
    checks.timestamps()
    checks.weights()

    assert checks.usable.tolist() == [True, False, False]
    assert [(one.line, one.reason) for one in checks.quarantined] == [
        (12, "the timestamp is missing"),
        (13, "weight nan is not a finite number of at least 0"),
    ]


def test_numbers_of_a_source_may_have_gaps() -> None:
    """Where lines are given they are reported; else they are counted from the first row."""
    rows = batch(ts=pa.array([1, 2])).rows

    assert LogBatch(rows, "s", 10, None).line_numbers.tolist() == [11, 12]
    assert LogBatch(rows, "s", 0, None, np.array([3, 9])).line_numbers.tolist() == [3, 9]


def test_timestamps_are_microseconds() -> None:
    """Whatever unit their column has."""
    seconds = Checks(batch(ts=pa.array([1, 2], pa.timestamp("s")))).timestamps()

    assert seconds.tolist() == [1_000_000, 2_000_000]
    assert Checks(batch(ts=pa.array([1, 2]))).timestamps().tolist() == [1, 2]


def test_weights_are_one_where_they_are_absent() -> None:
    """In micro-units, for a row as for a column."""
    assert Checks(batch(ts=pa.array([1]))).weights().tolist() == [1_000_000]
    assert Checks(batch(ts=pa.array([1, 2]), weight=pa.array([None, 0.5]))).weights().tolist() == [1_000_000, 500_000]


def test_rows_without_number_come_first() -> None:
    """Below every number, in a column of them as in one without any."""
    some = sequence(pa.RecordBatch.from_pydict({"seq": pa.array([-5, None])}))
    none = sequence(pa.RecordBatch.from_pydict({"ts": pa.array([1])}))

    assert some[1] == none[0] < some[0]


def test_absent_columns_take_their_defaults() -> None:
    """False, and no texts; a column of nulls is absent too."""
    rows = pa.RecordBatch.from_pydict({"a": pa.array([None, True]), "b": pa.array([None, None], pa.string())})

    assert (flags(rows, "a").tolist(), flags(rows, "x").tolist()) == ([False, True], [False, False])
    assert text_column(rows, "b") is text_column(rows, "x") is None


def test_texts_become_a_dictionary() -> None:
    """Written as one or not."""
    texts = pa.array(["x", "y", "x"])
    columns = [text_column(pa.RecordBatch.from_pydict({"a": a}), "a") for a in (texts, texts.dictionary_encode())]

    assert [column.dictionary.to_pylist() for column in columns if column is not None] == [["x", "y"]] * 2
