"""The tables that flow through a replay: canonical inputs, quarantine, DECISIONS, OWNERS and CYCLES.

One definition in Arrow's terms; every writer and reader of these tables takes its columns from here.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

__all__ = [
    "BROKER_EVENTS",
    "CANONICAL",
    "CAUSES",
    "CYCLES",
    "DECISIONS",
    "LOOKUP_DEFAULTS",
    "MAX_WEIGHT",
    "OWNERS",
    "OWNERSHIP_EVENTS",
    "QUARANTINE",
    "REQUIRED",
    "RESULTS",
]

_TS = pa.timestamp("us", tz="UTC")

#: What `result` of a lookup may be; `redirect` rows are hops and no demand.
RESULTS = ("connect", "redirect", "failed", "unknown")
#: What `event` of a row of BROKERS may be, and of OWNERSHIP; and who may have caused the latter, if that is known.
BROKER_EVENTS = ("registered", "updated", "unregistered")
OWNERSHIP_EVENTS = ("owned", "unloaded", "split")
CAUSES = ("policy", "admin")

#: Canonical tables by name.
CANONICAL: Mapping[str, pa.Schema] = {
    "lookups": pa.schema(
        [
            ("ts", _TS),
            ("seq", pa.int64()),
            ("cluster", pa.string()),
            ("topic", pa.string()),
            ("client", pa.string()),
            ("properties", pa.string()),
            ("asked_broker", pa.string()),
            ("broker", pa.string()),
            ("result", pa.string()),
            ("read_only", pa.bool_()),
            ("authoritative", pa.bool_()),
            ("listener", pa.string()),
            ("weight", pa.float64()),
            ("propensity", pa.float64()),
            ("latency_ms", pa.float64()),
        ]
    ),
    "brokers": pa.schema(
        [
            ("ts", _TS),
            ("cluster", pa.string()),
            ("broker", pa.string()),
            ("event", pa.string()),
            ("lookup_data", pa.string()),
        ]
    ),
    "loads": pa.schema([("ts", _TS), ("cluster", pa.string()), ("broker", pa.string()), ("load", pa.string())]),
    "bundles": pa.schema([("ts", _TS), ("cluster", pa.string()), ("bundle", pa.string()), ("stats", pa.string())]),
    "ownership": pa.schema(
        [
            ("ts", _TS),
            ("cluster", pa.string()),
            ("bundle", pa.string()),
            ("event", pa.string()),
            ("broker", pa.string()),
            ("by", pa.string()),
            ("boundaries", pa.list_(pa.string())),
        ]
    ),
}

#: Columns a row must have in each table; the others may be null or absent.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "lookups": ("ts", "cluster", "topic"),
    "brokers": ("ts", "cluster", "broker", "event"),
    "loads": ("ts", "cluster", "broker", "load"),
    "bundles": ("ts", "cluster", "bundle", "stats"),
    "ownership": ("ts", "cluster", "bundle", "event"),
}

#: What an absent or null column of LOOKUPS means.
LOOKUP_DEFAULTS: Mapping[str, object] = {
    "properties": "{}",
    "result": "unknown",
    "read_only": False,
    "authoritative": False,
    "weight": 1.0,
}

#: Greatest weight of a lookup, and greatest load of a bundle per second: in micro-units, hundreds of them still add up
#: in 64 bits.
MAX_WEIGHT = 1e10

#: What could not be used: where it stood, why, and the beginning of the record.
QUARANTINE = pa.schema(
    [
        ("table", pa.string()),
        ("source", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("text", pa.string()),
    ]
)

#: One row per decision; under shared ownership one per tick and decision key (`key`, with `weight` and without
#: `bundle`).
DECISIONS = pa.schema(
    [
        ("cluster", pa.string()),
        ("policy", pa.string()),
        ("seed", pa.int64()),
        ("ts", _TS),
        ("bundle", pa.string()),
        ("key", pa.string()),
        ("broker", pa.string()),
        ("propensity", pa.float64()),
        ("declined", pa.string()),
        ("count", pa.int64()),
        ("weight", pa.float64()),
        ("odds", pa.map_(pa.string(), pa.float64())),
        ("rejected", pa.map_(pa.string(), pa.int64())),
        ("margin", pa.float64()),
        ("ties", pa.int64()),
        ("fingerprint", pa.string()),
    ]
)

#: Intervals of ownership, `to` null where it outlasts the log.
OWNERS = pa.schema(
    [
        ("cluster", pa.string()),
        ("policy", pa.string()),
        ("seed", pa.int64()),
        ("bundle", pa.string()),
        ("broker", pa.string()),
        ("from", _TS),
        ("to", _TS),
        ("state", pa.string()),
        ("ended_by", pa.string()),
    ]
)

#: One row per cycle of a policy's shedder, whether it unloaded anything or not.
CYCLES = pa.schema(
    [
        ("cluster", pa.string()),
        ("policy", pa.string()),
        ("seed", pa.int64()),
        ("ts", _TS),
        ("role", pa.string()),
        ("label", pa.string()),
        ("reason", pa.string()),
        ("average", pa.float64()),
        ("deviation", pa.float64()),
        ("modelled_deviation", pa.float64()),
        ("over", pa.int64()),
        ("excess", pa.float64()),
        ("accepted", pa.int64()),
        ("rejected", pa.map_(pa.string(), pa.int64())),
    ]
)
