"""The BROKERS table for commands without Spark; needs Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.dataset as ds

from lookup.errors import InputError
from lookup.model.broker import BrokerLookupData
from lookup.replay.sources import locate
from lookup.replay.timeline import Registration

__all__ = ["read_registrations"]

_COLUMNS = ("ts", "cluster", "broker", "event", "lookup_data")


def read_registrations(path: str) -> Mapping[str, Sequence[Registration]]:
    """Return the registry's timeline of every cluster.

    Raises:
        InputError: where the path is absent or holds no such table.
    """
    system, inner = locate(path)
    try:
        table = ds.dataset(inner, filesystem=system, format="parquet").to_table(columns=list(_COLUMNS))
        stamps = table.column("ts").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    except FileNotFoundError:
        raise InputError(f"inputs.brokers: there is no {path}") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"inputs.brokers: {path} is no BROKERS table with {', '.join(_COLUMNS)}: {first}") from None
    found: dict[str, list[Registration]] = {}
    for ts_us, row in zip(stamps, table.to_pylist(), strict=True):
        data = None if row["lookup_data"] is None else BrokerLookupData.from_json(row["lookup_data"])
        found.setdefault(row["cluster"], []).append(Registration(ts_us, row["broker"], row["event"], data))
    return found
