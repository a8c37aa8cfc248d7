"""Writes what was decided: DECISIONS, OWNERS and CYCLES, one file each per cluster, policy and seed, and quarantine.

Odds are written column by column: ballots are shared by thousands of decisions and are converted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lookup.engine.ballots import Ballot, Decided
from lookup.logs.outputs import create_file
from lookup.logs.rows import Quarantined
from lookup.logs.schema import CYCLES, DECISIONS, OWNERS, QUARANTINE
from lookup.model.decision import Decision
from lookup.replay.cycles import Cycle
from lookup.replay.owners import OwnerInterval
from lookup.replay.shared import KeyDecision

__all__ = [
    "RunName",
    "cycle_table",
    "decision_table",
    "key_decision_table",
    "owner_table",
    "write_quarantine",
    "write_table",
]


@dataclass(frozen=True, slots=True)
class RunName:
    """Which replay rows belong to."""

    cluster: str
    policy: str
    seed: int


def decision_table(name: RunName, decisions: Sequence[Decided]) -> pa.Table:
    """Return DECISIONS of a replay under exclusive ownership, one row per decision."""
    made = [entry.decision for entry in decisions]
    return _table(
        DECISIONS,
        name,
        len(made),
        {
            "ts": [entry.ts_us for entry in decisions],
            "bundle": [decision.bundle for decision in made],
            "broker": [decision.broker for decision in made],
            "propensity": [decision.propensity for decision in made],
            "count": [entry.count for entry in decisions],
            "fingerprint": [decision.fingerprint for decision in made],
            **_said(made),
        },
    )


def key_decision_table(name: RunName, decisions: Sequence[KeyDecision]) -> pa.Table:
    """Return DECISIONS of a replay under shared ownership, one row per tick and decision key."""
    rows = np.repeat(np.arange(len(decisions)), [len(decision.ts_us) for decision in decisions])
    said = {
        "key": [decision.key for decision in decisions],
        "fingerprint": [decision.fingerprint for decision in decisions],
        **_said([decision.ballot for decision in decisions]),
    }
    return _table(
        DECISIONS,
        name,
        len(rows),
        {
            "ts": _in_a_row([decision.ts_us for decision in decisions]),
            "count": _in_a_row([decision.count for decision in decisions]),
            "weight": _in_a_row([decision.weight for decision in decisions]),
            **{key: _array(values, DECISIONS.field(key).type).take(rows) for key, values in said.items()},
        },
    )


def owner_table(name: RunName, intervals: Sequence[OwnerInterval]) -> pa.Table:
    """Return OWNERS of a replay; where hand-overs take no time every interval's state is Owned."""
    return _table(
        OWNERS,
        name,
        len(intervals),
        {
            "bundle": [interval.bundle for interval in intervals],
            "broker": [interval.broker for interval in intervals],
            "from": [interval.from_us for interval in intervals],
            "to": [interval.to_us for interval in intervals],
            "state": [interval.state for interval in intervals],
            "ended_by": [interval.ended_by for interval in intervals],
        },
    )


def cycle_table(name: RunName, cycles: Sequence[Cycle]) -> pa.Table:
    """Return CYCLES of a replay, one row per cycle of the policy's shedder."""
    outcomes = [cycle.report.outcome for cycle in cycles]
    said = ("label", "reason", "average", "deviation", "modelled_deviation", "over", "excess")
    return _table(
        CYCLES,
        name,
        len(cycles),
        {
            "ts": [cycle.ts_us for cycle in cycles],
            "role": ["shedder"] * len(cycles),
            **{column: [getattr(outcome, column) for outcome in outcomes] for column in said},
            "accepted": [len(cycle.report.accepted) for cycle in cycles],
            "rejected": _maps([cycle.report.rejected for cycle in cycles], CYCLES.field("rejected").type),
        },
    )


def write_table(table: pa.Table, folder: str, file: str) -> None:
    """Write a table as one Parquet file of a folder."""
    with create_file(f"{folder}/{file}") as sink:
        pq.write_table(table, sink, compression="zstd")


def write_quarantine(found: Sequence[Quarantined], table: str, folder: str, file: str) -> None:
    """Write what could not be used; nothing where there is nothing."""
    if found:
        columns = [[table] * len(found)] + [[getattr(row, key) for row in found] for key in QUARANTINE.names[1:]]
        write_table(pa.table(columns, schema=QUARANTINE), folder, file)


def _said(made: Sequence[Decision | Ballot]) -> dict[str, Any]:
    """Return the columns that say how policies decided, whoever then got what."""
    return {
        "declined": [one.declined for one in made],
        "odds": _maps([one.odds for one in made], DECISIONS.field("odds").type),
        "rejected": _maps([one.rejected for one in made], DECISIONS.field("rejected").type),
        "margin": [one.margin for one in made],
        "ties": [one.ties for one in made],
    }


def _table(schema: pa.Schema, name: RunName, count: int, columns: Mapping[str, Any]) -> pa.Table:
    fixed = {"cluster": name.cluster, "policy": name.policy, "seed": name.seed}
    arrays = []
    for entry in schema:
        values = [fixed[entry.name]] * count if entry.name in fixed else columns.get(entry.name, [None] * count)
        arrays.append(_array(values, entry.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _in_a_row(parts: Sequence[NDArray[Any]]) -> NDArray[Any] | list[Any]:
    return np.concatenate(parts) if parts else []


def _maps(mappings: Sequence[Mapping[Any, Any]], kind: pa.MapType) -> pa.Array:
    """Convert mappings of which most are one object many times over."""
    distinct = {id(mapping): mapping for mapping in mappings}
    spans: dict[int, tuple[int, int]] = {}
    keys: list[Any] = []
    values: list[Any] = []
    for number, mapping in distinct.items():
        spans[number] = len(keys), len(mapping)
        keys.extend(mapping)
        values.extend(mapping.values())
    starts = np.array([spans[id(mapping)][0] for mapping in mappings], dtype=np.int64)
    sizes = np.array([spans[id(mapping)][1] for mapping in mappings], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    names = pa.array(keys, pa.string()).take(pa.array(places))
    held = pa.array(values, kind.item_type).take(pa.array(places))
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, held)
