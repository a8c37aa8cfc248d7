"""Record the decisions and counts of a replay, and build the tables DECISIONS, OWNERS, CYCLES, CELLS and FLOWS.

A run leaves one file of each. Intervals of ownership come from the changes that a load manager made. Decisions and
cycles are written as they were taken. CELLS and FLOWS are the added-up input of metrics, small enough to be drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.engine.ballots import Decided
from lookup.engine.cycles import CycleReport
from lookup.engine.ownership import OwnershipChange
from lookup.engine.service_unit import ServiceUnitState
from lookup.logs.schema import CELLS, CYCLES, DECISIONS, FLOWS, OWNERS
from lookup.model import CycleReason, Unload
from lookup.model.batch import Batch
from lookup.model.broker import Location
from lookup.model.topology import LEVELS
from lookup.replay.grouping import column_keys, ranges

__all__ = [
    "Cycle", "OwnerInterval", "OwnerIntervals", "RunName", "cell_table", "cycle_table", "decision_table", "flow_table",
    "owner_table",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunName:
    """The replay that rows belong to."""

    cluster: str
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a shedder, and when it took place."""

    ts_us: int
    report: CycleReport[Unload]


@dataclass(slots=True)
class OwnerInterval:
    """An interval [from_us, to_us) in which one broker owned one bundle. `to_us` is None if it outlasts the log."""

    bundle: str
    broker: str
    from_us: int
    to_us: int | None = None
    #: why it ended: "forced", "shed", "admin" or "split"
    ended_by: str | None = None
    #: why a shedder ended it, if that distinguishes its unloads
    reason: CycleReason | None = None


class OwnerIntervals:
    """A collector of the intervals of one replay."""

    def __init__(self) -> None:
        #: in the order in which they began
        self.rows: list[OwnerInterval] = []
        #: the current interval of each bundle with an owner
        self._open: dict[str, OwnerInterval] = {}

    def note(self, change: OwnershipChange) -> None:
        """Begin or end an interval."""
        if change.broker is None:
            self._end_interval(change.bundle, change.ts_us, change.cause, change.reason)
        else:
            self._begin_interval(change.bundle, change.broker, change.ts_us)

    def split(self, parent: str, children: Sequence[str], ts_us: int) -> None:
        """End the parent's interval, and begin intervals of its owner for the children."""
        ended = self._end_interval(parent, ts_us, "split")
        if ended is not None:
            for child in children:
                self._begin_interval(child, ended.broker, ts_us)

    def _begin_interval(self, bundle: str, broker: str, ts_us: int) -> None:
        begun = self._open[bundle] = OwnerInterval(bundle, broker, ts_us)
        self.rows.append(begun)

    def _end_interval(
        self, bundle: str, ts_us: int, ended_by: str, reason: CycleReason | None = None
    ) -> OwnerInterval | None:
        """End the interval of a bundle and return it, None if the bundle does not have an owner."""
        ended = self._open.pop(bundle, None)
        if ended is not None:
            ended.to_us, ended.ended_by, ended.reason = ts_us, ended_by, reason
        return ended


def decision_table(name: RunName, decisions: Sequence[Decided]) -> pa.Table:
    """Build DECISIONS of a replay, one row per decision."""
    answers = [entry.decision for entry in decisions]
    columns = {
        "ts": [entry.ts_us for entry in decisions],
        "bundle": [answer.bundle for answer in answers],
        "broker": [answer.broker for answer in answers],
        "propensity": [answer.propensity for answer in answers],
        "count": [entry.count for entry in decisions],
        "fingerprint": [answer.fingerprint for answer in answers],
        "declined": [answer.declined for answer in answers],
        "odds": _convert_maps([answer.odds for answer in answers], DECISIONS.field("odds").type),
        "rejected": _convert_maps([answer.rejected for answer in answers], DECISIONS.field("rejected").type),
        "margin": [answer.margin for answer in answers],
        "ties": [answer.ties for answer in answers],
    }
    return _build_table(DECISIONS, name, len(answers), columns)


def owner_table(name: RunName, intervals: Sequence[OwnerInterval]) -> pa.Table:
    """Build OWNERS of a replay. The state of every interval is Owned."""
    columns = {
        "bundle": [interval.bundle for interval in intervals],
        "broker": [interval.broker for interval in intervals],
        "from": [interval.from_us for interval in intervals],
        "to": [interval.to_us for interval in intervals],
        "state": [str(ServiceUnitState.OWNED)] * len(intervals),
        "ended_by": [interval.ended_by for interval in intervals],
        "reason": [interval.reason for interval in intervals],
    }
    return _build_table(OWNERS, name, len(intervals), columns)


def cycle_table(name: RunName, cycles: Sequence[Cycle]) -> pa.Table:
    """Build CYCLES of a replay, one row per cycle of the policy's shedder."""
    outcomes = [cycle.report.outcome for cycle in cycles]
    of_outcome = ("label", "reason", "average", "deviation", "modelled_deviation", "over", "excess")
    columns = {
        "ts": [cycle.ts_us for cycle in cycles],
        "role": ["shedder"] * len(cycles),
        **{column: [getattr(outcome, column) for outcome in outcomes] for column in of_outcome},
        "accepted": [len(cycle.report.accepted) for cycle in cycles],
        "rejected": _convert_maps([cycle.report.rejected for cycle in cycles], CYCLES.field("rejected").type),
    }
    return _build_table(CYCLES, name, len(cycles), columns)


def cell_table(name: RunName, batches: Sequence[Batch]) -> pa.Table:
    """Build CELLS of a replay.

    Args:
        batches: batches of the whole demand, one per registry epoch.
    """
    cells, roster = batches[-1].cells, batches[-1].brokers
    # A broker's place is its last reported place, and a broker that has not registered does not have one.
    places = {broker.id: broker.location for batch in batches for broker in batch.brokers if broker.location}
    rows, numbers = np.nonzero(cells.registered)
    located = [places.get(broker.id, Location()) for broker in roster]
    columns = {
        "ts": cells.start[rows],
        "broker": pa.array([broker.id for broker in roster], pa.string()).take(pa.array(numbers)),
        **{
            level: pa.array([getattr(place, level) for place in located], pa.string()).take(pa.array(numbers))
            for level in LEVELS
        },
        "weight": cells.served[rows, numbers],
    }
    return _build_table(CELLS, name, len(rows), columns)


def flow_table(name: RunName, batches: Sequence[Batch]) -> pa.Table:
    """Build FLOWS of a replay, sorted by place.

    Args:
        batches: batches of the whole demand, one per registry epoch.
    """
    # Hundreds of clients and brokers are at a few places. None is the place of unanswered lookups.
    numbers: dict[Location | None, int] = {None: 0}

    def number_places(places: Iterable[Location | None]) -> NDArray[np.int64]:
        return np.array([numbers.setdefault(place, len(numbers)) for place in places], dtype=np.int64)

    parts = []
    for batch in batches:
        sums = [np.bincount(batch.pairs, weights=column) for column in (batch.served.lookups, batch.served.weight)]
        clients = number_places(client.location for client in batch.clients)
        brokers = number_places([None, *(broker.location for broker in batch.brokers)])
        pairs = np.flatnonzero(sums[0])
        parts.append((clients[pairs % len(clients)], brokers[pairs // len(clients)], *(each[pairs] for each in sums)))
    client, broker, *figures = map(np.concatenate, zip(*parts, strict=True))
    keys, totals = column_keys(client).by(broker, size=len(numbers)).sum_values(*figures)
    places = [astuple(place or Location()) for place in numbers]
    rows = [
        (*places[client], broker > 0, *places[broker], *total)
        for client, broker, *total in zip(*(column.tolist() for column in (*keys, *totals)), strict=True)
    ]
    # The first seven columns name the places.
    rows.sort(key=lambda row: [(value is not None, str(value)) for value in row[:7]])
    columns = {column: [row[number] for row in rows] for number, column in enumerate(FLOWS.names[3:])}
    return _build_table(FLOWS, name, len(rows), columns)


def _build_table(schema: pa.Schema, name: RunName, count: int, columns: Mapping[str, Any]) -> pa.Table:
    fixed = {"cluster": name.cluster, "policy": name.policy, "seed": name.seed}
    arrays = []
    for entry in schema:
        values = [fixed[entry.name]] * count if entry.name in fixed else columns.get(entry.name, [None] * count)
        arrays.append(values if isinstance(values, pa.Array) else pa.array(values, entry.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _convert_maps(mappings: Sequence[Mapping[Any, Any]], kind: pa.MapType) -> pa.Array:
    """Convert mappings of which most are the same object, since thousands of decisions share a ballot."""
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
    entries = pa.array(ranges(starts, sizes))
    names, items = pa.array(keys, pa.string()).take(entries), pa.array(values, kind.item_type).take(entries)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, items)
