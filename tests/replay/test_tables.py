"""Rows of tables, and what cannot be used of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.errors import InputError
from lookup.model.time import FIRST_US
from lookup.replay.tables import registrations
from tests.replay.plans import NOON


def test_a_list_of_brokers_registers_them_for_all_time(tmp_path: Path) -> None:
    """Without `ts` and `event` a broker is registered before any log begins, and `id` is as good a name."""
    data = '{"brokerVersion":"4.2.4"}'
    rows = pa.table({"id": ["b1:8080", "b2:8080"], "cluster": ["east", "east"], "lookup_data": [data, None]})
    pq.write_table(rows, tmp_path / "a.parquet")

    first, second = registrations(str(tmp_path)).of("east")

    assert (first.broker, first.event, second.broker) == ("b1:8080", "registered", "b2:8080")
    assert first.lookup_data is not None
    assert first.lookup_data.broker_version == "4.2.4"
    assert first.ts_us == second.ts_us == FIRST_US


def test_no_path_is_no_row() -> None:
    """A table that is not given has no rows and nothing wrong."""
    assert registrations(None).rows == {}
    assert registrations(None).of("east") == []


def test_bytes_that_are_no_text_refuse_the_table(tmp_path: Path) -> None:
    """A table with bytes that are no UTF-8 is named."""
    raw = pa.array([b"\xff"], pa.binary())
    broken = pa.StringArray.from_buffers(1, raw.buffers()[1], raw.buffers()[2])
    table = pa.table({"ts": [NOON], "cluster": ["east"], "broker": broken, "event": ["registered"]})
    pq.write_table(table, tmp_path / "x.parquet")

    with pytest.raises(InputError, match=r"x\.parquet: .* UTF-8: "):
        registrations(str(tmp_path / "x.parquet"))
