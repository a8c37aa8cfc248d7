"""What a log reader yields: rows tagged with the table they belong to, and what could not be read.

Tables and columns: `lookup.logs.schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Row", "TableName", "Unreadable"]

TableName = Literal["lookups", "brokers", "loads", "bundles", "ownership"]


@dataclass(frozen=True, slots=True)
class Row:
    """One canonical row.

    `values` has the table's column names; timestamps are integers in µs since the Unix epoch (UTC), `properties` a
    mapping, `lookup_data`, `load` and `stats` Pulsar's JSON as text. Absent columns take the table's defaults.
    """

    table: TableName
    #: line or record number in the source, from 1
    line: int
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is one of the reader's own but cannot be used; other lines are not reported."""

    line: int
    #: what is wrong and what would be right, one clause
    reason: str
    #: the beginning of the record, at most 200 characters
    text: str
