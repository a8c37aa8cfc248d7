"""Columns of rows as they are read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lookup.errors import InputError
from lookup.logs.rows import Checks, LogBatch, sequence, texts_of
from tests.replay.worlds import MICRO


def _batch(**columns: pa.Array) -> LogBatch:
    return LogBatch(pa.RecordBatch.from_pydict(columns), "file", 10, None)


def test_a_number_beyond_64_bits_is_one_sentence() -> None:
    """Unsigned numbers are as good as others, as long as they fit; the sentence names the file and the number."""
    assert sequence(_batch(seq=pa.array([7, 2**63 - 1], pa.uint64()))).tolist() == [7, 2**63 - 1]
    with pytest.raises(InputError, match=r"^file: column 'seq' .* 9223372036854775808"):
        sequence(_batch(seq=pa.array([2**63], pa.uint64())))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", None])
def test_timestamps_of_every_unit_are_microseconds(unit: str, zone: str | None) -> None:
    """For any unit and zone of a column, instants are µs since the epoch; without zone they are UTC."""
    ts = pa.array([5], pa.timestamp("s")).cast(pa.timestamp(unit)).view(pa.timestamp(unit, tz=zone))

    assert Checks(_batch(ts=ts)).timestamps().tolist() == [5 * MICRO]


@pytest.mark.parametrize("unit", ["us", "ms"])
def test_instants_beyond_the_calendar_are_refused(unit: str) -> None:
    """Nanoseconds that were written as µs, or µs as ms, are no instants; the row says so."""
    ts = pa.array([5, 1_767_571_200_000_000_000 // (1000 if unit == "ms" else 1)], pa.timestamp(unit, tz="UTC"))
    checks = Checks(_batch(ts=ts))

    checks.timestamps()

    (row,) = checks.quarantined
    assert row.line == 12
    assert row.reason.startswith("the timestamp ")


def test_a_row_is_refused_once_with_its_line() -> None:
    """The first thing that is wrong with a row is told; lines count from 1."""
    checks = Checks(_batch(ts=pa.array([None, 1], pa.int64()), weight=pa.array([-1.0, -2.0])))
    checks.timestamps()
    checks.weights()

    assert [(row.line, row.reason.partition(" ")[0]) for row in checks.quarantined] == [(11, "the"), (12, "weight")]
    assert not checks.usable.any()


def test_bytes_that_are_no_utf_8_are_latin_1() -> None:
    """So texts that differ stay apart, as in logs; nulls stay null."""
    raw = pa.array([b"a\xff", None, b"b"], pa.binary())
    texts = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2], raw.buffers()[0])

    assert texts_of(texts) == ["aÿ", None, "b"]
