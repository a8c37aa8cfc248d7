"""Define type, unit, rule and meaning of each column of the canonical tables, and check rows against them.

Everything else is derived from here. These are the Arrow schemas (`schema.py`), the columns that readers of text accept
(`readers/canonical.py`), the rows that `ingest` and a replay refuse, and the table in `docs/getting-lookups.md`.
Readers import this module, and they must load without Arrow.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from lookup.errors import InvalidNameError
from lookup.model.bundles import HASH_END, NamespaceBundle
from lookup.model.documents import NestingError, json_value
from lookup.model.names import TopicName, cluster_problem, looks_like_pattern
from lookup.model.quoting import shown, suggestion
from lookup.model.time import FIRST_US, LAST_US

__all__ = [
    "LOOKUP_DEFAULTS", "MAX_WEIGHT", "REQUIRED", "RESULTS", "TABLES", "Bounds", "Column", "Kind", "canonical_json",
    "check_row",
]  # fmt: skip

#: Greatest weight of a lookup, and load of a bundle per second. Hundreds of them, in micro-units, add up in 64 bits.
MAX_WEIGHT = 1e10

#: Values of `result` in LOOKUPS. Rows with `redirect` are hops and not demand.
RESULTS = ("connect", "redirect", "failed", "unknown")

#: Types of columns. `json` is Pulsar's JSON and `properties` a mapping of texts, both kept as text in files.
Kind = Literal["time", "integer", "number", "flag", "text", "json", "properties", "texts"]

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(properties: Mapping[str, str]) -> str:
    """Write lookup properties in the form of LOOKUPS, with sorted keys and without spaces."""
    return _ENCODER.encode(dict(properties))


def check_row(
    table: str, values: Mapping[str, Any], cluster: str | None = None, *, reads_json: bool = True
) -> dict[str, Any] | str:
    """Build the row for the table, with defaults filled in, or return the reason why it cannot be used.

    Args:
        values: by column. None counts as absent, and so does an empty text where a lookup may lack the column.
        cluster: for rows without a cluster.
        reads_json: whether columns of JSON are checked. A caller that parses them anyway does not need the check.
    """
    columns = _BY_NAME.get(table)
    if columns is None:
        return f"there is no table {shown(table)}; {suggestion(table, TABLES)}"
    row = dict(LOOKUP_DEFAULTS) if table == "lookups" else {}
    if cluster is not None:
        row["cluster"] = cluster
    for name, value in values.items():
        if value is None:
            continue
        column = columns.get(name)
        if column is None:
            return f"there is no column {shown(name)}; {suggestion(name, columns)}"
        # As a replay reads the table. An empty name of a cluster is a mistake of its own.
        if value == "" and table == "lookups" and not column.is_required and name != "cluster":
            continue
        try:
            row[name] = column.check(value) if reads_json or column.kind != "json" else value
        except (ValueError, InvalidNameError) as error:
            return f"{name}: {error}"
    return _find_missing(table, row) or row


def _find_missing(table: str, row: Mapping[str, Any]) -> str | None:
    for name in REQUIRED[table]:
        if name not in row:
            return f"{name} is missing"
    if table == "ownership" and row["event"] == "owned" and "broker" not in row:
        return "an `owned` row names no broker"
    if table == "ownership" and row["event"] == "split":
        ends = NamespaceBundle.parse(row["bundle"]).range
        # A boundary at an end of the bundle cuts nothing off.
        if not any(ends.lower < int(text, 16) < ends.upper for text in row.get("boundaries", ())):
            return f"a `split` row needs `boundaries` inside its bundle {row['bundle']}"
    return None


def _time(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{shown(value)} is not an integer of µs")
    if not FIRST_US <= value <= LAST_US:
        raise ValueError(f"{value} µs is not between the years 1 and 9999")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{shown(value)} is not an integer from -2^63 to 2^63 - 1")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{shown(value)} is not text")
    # Parquet's strings are UTF-8, which cannot hold half of a surrogate pair.
    return value if value.isascii() else value.encode(errors="replace").decode()


def _cluster(value: Any) -> str:
    # The empty name has a sentence of its own, the same in ingest and replay.
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """The check of a finite number in [low, high], or (low, high]."""

    low: float
    high: float
    excludes_low: bool = False

    def __call__(self, value: Any) -> float:
        """Check that a number is within the bounds, and return it."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{shown(value)} is not a number")
        # The value is also compared with the greatest float, since an integer of 400 digits is finite but not a float.
        if not self.low <= value <= min(self.high, sys.float_info.max) or (self.excludes_low and value == self.low):
            least = f"above {self.low:g}" if self.excludes_low else f"{self.low:g} or more"
            most = f" and at most {self.high:g}" if self.high < math.inf else ""
            raise ValueError(f"{shown(value)} is not a finite number, {least}{most}")
        return float(value)


def _check_choice(*choices: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{shown(value)} is none of {', '.join(choices)}")
        return str(value)

    return check


def _properties(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise ValueError(f"{shown(value)} is not a mapping")
    for key, label in value.items():
        if not isinstance(key, str) or not isinstance(label, str):
            raise ValueError(f"property {shown(key)} is {shown(label)}, which is not text")
    return canonical_json(value)


def _json(value: Any) -> str:
    try:
        record = json_value(_text(value))
    except NestingError:
        raise
    except ValueError:
        raise ValueError(f"{shown(str(value))} is not JSON") from None
    if not isinstance(record, dict):
        raise ValueError(f"{shown(str(value))} is not a JSON object")
    return str(value)


def _check_by_parsing(parse: Callable[[str], str], most: int) -> Callable[[Any], str]:
    """Build the check of a text that `parse` accepts. The latest `most` texts are cached."""
    # Parsing a name takes longer than all other checks of a row together, and a log repeats its names.
    remembered = lru_cache(maxsize=most)(parse)
    return lambda value: remembered(_text(value))


def _topic(topic: str) -> str:
    if looks_like_pattern(topic):
        raise ValueError(f"{shown(topic)} is a regular expression of a topic list watcher, not a topic")
    TopicName.parse(topic)
    # The text is kept as it was written, since a replay counts topics by their text.
    return topic


def _boundaries(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{shown(value)} is not a list of hash texts")
    try:
        hashes = sorted({int(text, 16) for text in value})
    except (ValueError, TypeError):
        raise ValueError(f"{shown(value)} has an entry that is not a hash text like '0x40000000'") from None
    if hashes and not 0 <= hashes[0] <= hashes[-1] <= HASH_END:
        raise ValueError(f"{shown(value)} does not lie within 0x00000000 to 0xffffffff")
    return [f"0x{hashed:08x}" for hashed in hashes]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a canonical table."""

    name: str
    #: meaning, unit and range, in Markdown
    meaning: str
    #: meaning of an absent or null value, in Markdown, or, for a required column, its alternative sources
    absent: str = ""
    kind: Kind = "text"
    #: converts a value to that of the column, or raises ValueError with a clause about the right value
    check: Callable[[Any], Any] = _text
    #: a row for which nothing gives a value is refused
    is_required: bool = False
    #: value that `ingest` writes for an absent one, None for null
    default: object = None


_required = partial(Column, is_required=True)
_flag_of = partial(Column, kind="flag", check=_flag, default=False)
_json_of = partial(Column, kind="json", check=_json)
_number_of = partial(Column, kind="number")

_TS = _required("ts", "µs since the Unix epoch in UTC, years 1 to 9999", kind="time", check=_time)
_CLUSTER = _required(
    "cluster", "name of the cluster", "that of the folder `cluster=...`, or given to `ingest`", check=_cluster
)
_BROKER = _required("broker", "broker, as `host:port`")
# In one spelling: Pulsar's tools also write hashes in upper case and without leading zeros.
_bundle = _check_by_parsing(lambda text: str(NamespaceBundle.parse(text)), 1 << 16)
_BUNDLE = _required("bundle", "bundle, as `tenant/namespace/0x00000000_0x40000000`", check=_bundle)

#: Columns of each canonical table, in the order of its files.
TABLES: Mapping[str, tuple[Column, ...]] = {
    "lookups": (
        _TS,
        Column(
            "seq",
            "decides between lookups of one instant, 64 bits",
            "the order of files and rows; a DataFrame must have it",
            kind="integer",
            check=_integer,
        ),
        _CLUSTER,
        _required("topic", "full name, with domain, tenant and namespace", check=_check_by_parsing(_topic, 1 << 18)),
        Column("client", "address or name of the client"),
        Column(
            "properties",
            "lookup properties: a mapping of texts, as JSON",
            "none",
            kind="properties",
            check=_properties,
            default="{}",
        ),
        Column("asked_broker", "broker that was asked"),
        Column("broker", "broker that was answered, as `host:port`"),
        Column(
            "result",
            "`connect`, `redirect`, `failed` or `unknown`",
            "`unknown`",
            check=_check_choice(*RESULTS),
            default="unknown",
        ),
        _flag_of("read_only", "lookup of a read-only client", "false"),
        _flag_of("authoritative", "a redirect told the broker to answer itself", "false"),
        Column("listener", "name of the advertised listener that was asked for", "the broker's default"),
        _number_of(
            "weight", f"demand of the row, 0 to {MAX_WEIGHT:g}", "1", check=Bounds(0.0, MAX_WEIGHT), default=1.0
        ),
        _number_of(
            "propensity",
            "probability with which the logging policy chose the broker, above 0 and at most 1",
            check=Bounds(0.0, 1.0, excludes_low=True),
        ),
        _number_of("latency_ms", "time until the answer, ms, 0 or more", check=Bounds(0.0, math.inf)),
    ),
    "brokers": (
        _TS,
        _CLUSTER,
        _BROKER,
        _required(
            "event",
            "`registered`, `updated` or `unregistered`",
            check=_check_choice("registered", "updated", "unregistered"),
        ),
        _json_of("lookup_data", "Pulsar's `BrokerLookupData`", "every key has its default"),
    ),
    "loads": (_TS, _CLUSTER, _BROKER, _json_of("load", "Pulsar's `BrokerLoadData`", is_required=True)),
    "bundles": (_TS, _CLUSTER, _BUNDLE, _json_of("stats", "Pulsar's `NamespaceBundleStats`", is_required=True)),
    "ownership": (
        _TS,
        _CLUSTER,
        _BUNDLE,
        _required("event", "`owned`, `unloaded` or `split`", check=_check_choice("owned", "unloaded", "split")),
        Column("broker", "owner, as `host:port`", "not known; refused if the event is `owned`"),
        Column("by", "cause of the event: `policy` or `admin`", check=_check_choice("policy", "admin")),
        Column(
            "boundaries",
            "hashes at which a bundle is split, like `0x40000000`",
            "none; a `split` needs one inside its bundle",
            kind="texts",
            check=_boundaries,
        ),
    ),
}

#: Columns a row must have in each table. The others may be null or absent.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    table: tuple(column.name for column in columns if column.is_required) for table, columns in TABLES.items()
}
#: Values of absent or null columns of LOOKUPS.
LOOKUP_DEFAULTS: Mapping[str, object] = {
    column.name: column.default for column in TABLES["lookups"] if column.default is not None
}
_BY_NAME = {table: {column.name: column for column in columns} for table, columns in TABLES.items()}
