"""Canonical rows: checking what a reader yields, and the Parquet layout that makes them fast to replay.

What the columns mean is in `schema.py`; who calls this, on which machine, in `ingest.py`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.errors import InvalidNameError
from lookup.logs.outputs import create_file
from lookup.logs.schema import (
    BROKER_EVENTS,
    CANONICAL,
    CAUSES,
    LOOKUP_DEFAULTS,
    MAX_WEIGHT,
    OWNERSHIP_EVENTS,
    REQUIRED,
    RESULTS,
)
from lookup.model.bundles import HASH_END, NamespaceBundle
from lookup.model.documents import NestingError, json_value
from lookup.model.names import TopicName, cluster_problem, looks_like_pattern
from lookup.model.quoting import shown, suggestion
from lookup.model.time import LAST_US

__all__ = ["ROWS_PER_FILE", "canonical_json", "check_row", "partition_of", "write_parquet"]

#: Rows of one file and of its row group: a task's share of the log is neither many files nor many gigabytes.
ROWS_PER_FILE = 1_000_000
# Parquet's default of 1 MiB holds fewer than 20,000 topics of 45 bytes; above it a column falls back to plain strings.
_DICTIONARY_PAGE_BYTES = 256 * 1024 * 1024
# Times and places in the source rise steadily: their differences take a fraction of the space.
_RISING = {"ts": "DELTA_BINARY_PACKED", "seq": "DELTA_BINARY_PACKED"}
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

#: Turns a value into what the column holds; raises ValueError with a clause that says what would be right.
_Check = Callable[[Any], Any]


def canonical_json(properties: Mapping[str, str]) -> str:
    """Write lookup properties as LOOKUPS has them: keys sorted, no spaces."""
    return _ENCODER.encode(dict(properties))


def check_row(table: str, values: Mapping[str, Any], cluster: str | None) -> dict[str, Any] | str:
    """Return the row that goes into the table, defaults filled in, or the reason why it cannot.

    Args:
        cluster: for rows that name none.
    """
    checks = _CHECKS.get(table)
    if checks is None:
        return f"there is no table {shown(table)}; {suggestion(table, CANONICAL)}"
    row = dict(LOOKUP_DEFAULTS) if table == "lookups" else {}
    if cluster is not None:
        row["cluster"] = cluster
    try:
        for name, value in values.items():
            if value is not None:
                row[name] = _checked(checks, name, value)
    except (ValueError, InvalidNameError) as error:
        return str(error)
    return _incomplete(table, row) or row


def partition_of(cluster: str, date: str) -> str:
    """Return the folder of a cluster's day, in Hive's manner."""
    return f"cluster={quote(cluster, safe='')}/date={date}"


def write_parquet(table: pa.Table, path: str) -> None:
    """Write a file of the canonical layout: dictionaries, zstd, one row group, no schema of Arrow's own."""
    with create_file(path) as sink:
        pq.write_table(
            table,
            sink,
            row_group_size=ROWS_PER_FILE,
            use_dictionary=[name for name in table.column_names if name not in _RISING],
            column_encoding={name: encoding for name, encoding in _RISING.items() if name in table.column_names},
            dictionary_pagesize_limit=_DICTIONARY_PAGE_BYTES,
            compression="zstd",
            store_schema=False,
        )


def _checked(checks: Mapping[str, _Check], name: str, value: Any) -> Any:
    check = checks.get(name)
    if check is None:
        raise ValueError(f"there is no column {shown(name)}; {suggestion(name, checks)}")
    try:
        return check(value)
    except (ValueError, InvalidNameError) as error:
        raise ValueError(f"{name}: {error}") from None


def _incomplete(table: str, row: Mapping[str, Any]) -> str | None:
    """Say what a row lacks; None where it is complete."""
    for name in REQUIRED[table]:
        if name not in row:
            hint = "; name one with --cluster" if name == "cluster" else ""
            return f"{name} is missing{hint}"
    if table == "ownership" and row["event"] == "owned" and "broker" not in row:
        return "an `owned` row names no broker; tell the reader whose log it is"
    if table == "ownership" and row["event"] == "split" and not _cuts(row):
        return f"a `split` row needs `boundaries` inside its bundle {row['bundle']}"
    return None


def _cuts(row: Mapping[str, Any]) -> list[str]:
    ends = NamespaceBundle.parse(row["bundle"]).range
    return [text for text in row.get("boundaries", ()) if ends.lower < int(text, 16) < ends.upper]


def _time(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{shown(value)} is no integer of µs")
    if not 0 <= value <= LAST_US:
        raise ValueError(f"{value} µs is not between the years 1970 and 9999")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"{shown(value)} is no integer from 0 to 2^63 - 1")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{shown(value)} is no text")
    # Parquet's strings are UTF-8, which cannot hold half of a surrogate pair.
    return value if value.isascii() else value.encode(errors="replace").decode()


def _cluster(value: Any) -> str:
    if value != "":
        value = _text(value)
    problem = cluster_problem(value)
    if problem is not None:
        raise ValueError(problem)
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)} is neither true nor false")
    return value


def _number(low: float, high: float, *, excludes_low: bool = False) -> _Check:
    """Return the check of a finite number in [low, high], or (low, high]."""
    bounds = (f"above {low:g}" if excludes_low else f"{low:g} or more") + (
        f" and at most {high:g}" if high < math.inf else ""
    )

    def check(value: Any) -> float:
        """Return a number within the bounds."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{shown(value)} is no number")
        if not low <= value <= high or abs(value) > sys.float_info.max or (excludes_low and value == low):
            raise ValueError(f"{shown(value)} is not a finite number, {bounds}")
        return float(value)

    return check


def _one_of(*known: str) -> _Check:
    def check(value: Any) -> str:
        """Return a text that is one of those known."""
        if value not in known:
            raise ValueError(f"{shown(value)} is none of {', '.join(known)}")
        return str(value)

    return check


def _properties(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise ValueError(f"{shown(value)} is no mapping")
    for key, label in value.items():
        if not isinstance(key, str) or not isinstance(label, str):
            raise ValueError(f"property {shown(key)} is {shown(label)}, which is no text")
    return canonical_json(value)


def _json(value: Any) -> str:
    try:
        record = json_value(_text(value))
    except NestingError:
        raise
    except ValueError:
        raise ValueError(f"{shown(str(value))} is no JSON") from None
    if not isinstance(record, dict):
        raise ValueError(f"{shown(str(value))} is no JSON object")
    return str(value)


def _topic(value: Any) -> str:
    problem = _topic_problem(_text(value))
    if problem:
        raise ValueError(problem)
    return str(value)


@lru_cache(maxsize=1 << 18)
def _topic_problem(topic: str) -> str | None:
    """Say why a text cannot be a topic; remembered, because a log repeats its topics."""
    if looks_like_pattern(topic):
        return f"{shown(topic)} is a regular expression of a topic list watcher, not a topic"
    try:
        TopicName.parse(topic)
    except InvalidNameError as error:
        return str(error)
    return None


def _bundle(value: Any) -> str:
    return str(NamespaceBundle.parse(_text(value)))


def _boundaries(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{shown(value)} is no list of hash texts")
    try:
        hashes = [int(text, 16) for text in value]
    except (ValueError, TypeError):
        raise ValueError(f"{shown(value)} has an entry that is no hash text like '0x40000000'") from None
    if sorted(set(hashes)) != hashes or (hashes and not 0 <= hashes[0] <= hashes[-1] <= HASH_END):
        raise ValueError(f"{shown(value)} does not ascend within 0x00000000 to 0xffffffff")
    return [f"0x{hashed:08x}" for hashed in hashes]


_ANY_NUMBER_FROM_0 = _number(0.0, math.inf)

#: What each column may hold, by table.
_CHECKS: Mapping[str, Mapping[str, _Check]] = {
    "lookups": {
        "ts": _time,
        "seq": _integer,
        "cluster": _cluster,
        "topic": _topic,
        "client": _text,
        "properties": _properties,
        "asked_broker": _text,
        "broker": _text,
        "result": _one_of(*RESULTS),
        "read_only": _flag,
        "authoritative": _flag,
        "listener": _text,
        "weight": _number(0.0, MAX_WEIGHT),
        "propensity": _number(0.0, 1.0, excludes_low=True),
        "latency_ms": _ANY_NUMBER_FROM_0,
    },
    "brokers": {
        "ts": _time,
        "cluster": _cluster,
        "broker": _text,
        "event": _one_of(*BROKER_EVENTS),
        "lookup_data": _json,
    },
    "loads": {"ts": _time, "cluster": _cluster, "broker": _text, "load": _json},
    "bundles": {"ts": _time, "cluster": _cluster, "bundle": _bundle, "stats": _json},
    "ownership": {
        "ts": _time,
        "cluster": _cluster,
        "bundle": _bundle,
        "event": _one_of(*OWNERSHIP_EVENTS),
        "broker": _text,
        "by": _one_of(*CAUSES),
        "boundaries": _boundaries,
    },
}
