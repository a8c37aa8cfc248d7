"""Convert the messages of a live cluster to rows of its tables. The input is records and their times.

This module has no I/O and no clock. The reader of dumps, `lookup.logs.readers.system_topics`, interprets messages of
the state topic and the load topics. This module adds the parts of a live cluster. These are the registry, splits that
only the list of bundles shows, the continuation of an earlier record, and malformed messages, which are counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from lookup.engine.service_unit import ServiceUnitStateData
from lookup.errors import InputError, PulsarLookupError
from lookup.logs.columns import TABLES, check_row
from lookup.logs.readers.system_topics import OwnershipChanges, bundle_rows, load_row
from lookup.model.broker import BrokerLookupData
from lookup.model.bundles import HASH_END, BundleRange
from lookup.model.documents import TableName
from lookup.model.names import NamespaceName

__all__ = [
    "COLLECTED", "JOURNAL", "BrokerRegistry", "BrokerReport", "Bundles", "CaughtUp", "Observer", "Past",
    "Position", "Record", "SourceName", "SourceTrouble", "StateRecord", "TopBundles", "follow",
]  # fmt: skip

#: The canonical tables of a record.
COLLECTED: tuple[TableName, ...] = ("brokers", "loads", "bundles", "ownership")
#: Columns of the table with the record's history (start, stop, gaps, lost sources), in the form of `schema_of`.
JOURNAL = "ts:time cluster event source since:time detail"
#: Maximum number of rows of a table that wait to be written. They are many only while no file can be written.
_MOST_PENDING = 200_000

SourceName: TypeAlias = Literal["zookeeper", "admin", "state", "loads", "bundles"]
#: A message's place in a topic, which is ledger, entry, and index in a batch.
Position: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class StateRecord:
    """A message of the state topic. An empty text is a tombstone."""

    bundle: str
    text: str
    ts_us: int
    position: Position


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The whole state topic has been read. This is repeated while no message is written to it."""

    ts_us: int


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """A message of the topic of load reports. An empty text is a tombstone."""

    broker: str
    text: str
    ts_us: int


@dataclass(frozen=True, slots=True)
class TopBundles:
    """A message of the topic of top bundles. An empty text is a tombstone."""

    text: str
    ts_us: int
    #: id of the broker of these bundles, None if the source does not name it
    broker: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerRegistry:
    """All registered brokers and their published data, None if it is not known."""

    brokers: Mapping[str, str | None]
    ts_us: int


@dataclass(frozen=True, slots=True)
class Bundles:
    """The boundaries of a namespace's bundles, ascending."""

    namespace: str
    boundaries: tuple[int, ...]
    ts_us: int


@dataclass(frozen=True, slots=True)
class SourceTrouble:
    """A source cannot be read, or can be read again if there is no reason."""

    source: SourceName
    reason: str | None
    ts_us: int


Record: TypeAlias = StateRecord | CaughtUp | BrokerReport | TopBundles | BrokerRegistry | Bundles | SourceTrouble


@dataclass
class Past:
    """The end of an earlier record."""

    #: by bundle
    owners: dict[str, str] = field(default_factory=dict)
    #: lookup data of registered brokers, None where it was not known
    brokers: dict[str, str | None] = field(default_factory=dict)
    #: bundles when the namespace was first listed, by namespace, ascending
    boundaries: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: hashes at which a namespace's bundles were split since
    cuts: dict[str, set[int]] = field(default_factory=dict)
    #: last message of the state topic whose rows are recorded
    position: Position | None = None
    #: instant until which the record is complete, µs, None if there is no record
    until_us: int | None = None


class Observer:
    """A tracker of one cluster. `pending` collects rows, by table, in the order of the tables' columns.

    Args:
        past: the end of the continued record.
        has_state: whether the state topic is read, which is better for splits than lists of bundles.
    """

    def __init__(self, cluster: str, past: Past | None = None, *, has_state: bool = True) -> None:
        past = past or Past()
        self.cluster = cluster
        self.pending: dict[str, list[tuple[Any, ...]]] = {table: [] for table in (*COLLECTED, "journal")}
        #: messages that are not in Pulsar's form, by source, and the reason of the latest
        self.refused: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        #: rows that had no room because nothing could be written, by table
        self.lost: Counter[str] = Counter()
        #: last message of the state topic that was read
        self.position = past.position
        #: boundaries of each namespace when it was first listed
        self.first_boundaries = past.boundaries
        #: reason of each source that cannot be read
        self.troubles: dict[str, str] = {}
        self.registered = past.brokers
        self._changes = OwnershipChanges()
        #: owners in the state topic, and owners in the record before it was continued, which become None afterwards
        self._owners: dict[str, str] = {}
        self._recorded: dict[str, str] | None = past.owners
        self._old = past.position
        self._has_state = has_state
        #: latest list of each namespace, which waits for the splits in the state topic
        self._listed: dict[str, Bundles] = {}
        #: time of the latest record of each bundle
        self._latest_us: dict[str, int] = {}
        self._boundaries = {
            namespace: {*boundaries, *past.cuts.get(namespace, ())} for namespace, boundaries in past.boundaries.items()
        }

    def take(self, record: Record) -> None:
        """Process a record of the cluster. Records that are not in Pulsar's form are counted and left out."""
        try:
            match record:
                case StateRecord():
                    self._take_state(record)
                # A tombstone means that a broker is gone, which the registry records.
                case BrokerReport(broker, text, ts_us) if text:
                    self._add("loads", "loads", load_row(broker, text, ts_us))
                case TopBundles(text, ts_us) if text:
                    self._add("bundles", "bundles", *bundle_rows(text, ts_us))
                case BrokerRegistry(brokers, ts_us):
                    self._take_registry(brokers, ts_us)
                case Bundles():
                    self._take_list(record)
                case SourceTrouble():
                    self._take_trouble(record)
                case CaughtUp(ts_us) if self._recorded is not None:
                    self._settle_missed(ts_us)
        except PulsarLookupError as error:
            self._refuse(_SOURCES[type(record)], str(error))

    def note(
        self, event: str, ts_us: int, *, source: str = "", since_us: int | None = None, detail: str | None = None
    ) -> None:
        """Write a row of the journal."""
        # JSON of a server may hold half a surrogate pair, which Parquet cannot.
        detail = None if detail is None else detail.encode(errors="replace").decode()
        self._keep("journal", (ts_us, self.cluster, event, source or None, since_us, detail))

    # The state topic.

    def _take_state(self, record: StateRecord) -> None:
        is_recorded = self._recorded is not None and self._old is not None and record.position <= self._old
        if self.position is None or record.position > self.position:
            self.position = record.position
        data = ServiceUnitStateData.from_json(record.text) if record.text else None
        # Brokers' clocks differ by milliseconds. In topic order the times of a bundle's records must not decrease.
        ts_us = max(record.ts_us, self._latest_us.get(record.bundle, record.ts_us))
        row = self._changes.take(record.bundle, data, ts_us)
        if data is None:
            self._latest_us.pop(record.bundle, None)
        else:
            self._latest_us[record.bundle] = ts_us
        if row is None:
            return
        changes = follow(self._owners, row)
        if is_recorded:
            return
        if self._recorded is not None:
            changes = follow(self._recorded, row)
        # The bundle list may show a split before the topic is read. Until it is recorded, its parent has an owner.
        if row["event"] != "split" or self._take_boundaries(row) or changes:
            self._add("state", "ownership", row)

    def _settle_missed(self, ts_us: int) -> None:
        """Record changes that were missed while the record was stopped and that the topic no longer has."""
        recorded, self._recorded = self._recorded, None
        for bundle in sorted({*recorded, *self._owners} if recorded is not None else ()):
            owner, before = self._owners.get(bundle), (recorded or {}).get(bundle)
            if owner != before:
                event = (
                    {"event": "unloaded", "broker": before} if owner is None else {"event": "owned", "broker": owner}
                )
                self._add("state", "ownership", {"ts": ts_us, "bundle": bundle, **event})
        # A split that a list shows and the topic does not, read to its end, happened in the gap.
        for listed in self._listed.values():
            self._divide(listed)
        self._listed.clear()

    # Bundles.

    def _take_boundaries(self, row: Mapping[str, Any]) -> bool:
        """Add the boundaries of a split, and return whether any is new."""
        namespace = row["bundle"].rpartition("/")[0]
        boundaries = self._boundaries.get(namespace)
        if boundaries is None:
            return True
        cuts = {int(text, 16) for text in row["boundaries"]}
        is_new = not cuts <= boundaries
        boundaries |= cuts
        return is_new

    def _take_list(self, record: Bundles) -> None:
        NamespaceName.parse(record.namespace)
        ends = record.boundaries
        if len(ends) < 2 or ends[0] != 0 or ends[-1] != HASH_END or any(low >= high for low, high in pairwise(ends)):
            raise InputError(f"the bundles of {record.namespace} do not ascend from 0x00000000 to 0xffffffff")
        if record.namespace not in self._boundaries:
            self._boundaries[record.namespace] = set(ends)
            self.first_boundaries[record.namespace] = ends
        elif self._has_state:
            # A split's record may not be here yet, so a list counts when the next one comes, or the topic is read.
            before = self._listed.get(record.namespace)
            self._listed[record.namespace] = record
            if before is not None and self._recorded is None:
                self._divide(before)
        else:
            self._divide(record)

    def _divide(self, record: Bundles) -> None:
        boundaries, ends = self._boundaries[record.namespace], record.boundaries
        before = sorted(boundaries)
        parents: dict[BundleRange, list[int]] = {}
        for boundary in sorted(set(ends) - boundaries):
            place = bisect_right(before, boundary)
            parents.setdefault(BundleRange(before[place - 1], before[place]), []).append(boundary)
        for parent, cuts in parents.items():
            bundle = f"{record.namespace}/{parent}"
            row: dict[str, Any] = {"ts": record.ts_us, "bundle": bundle, "event": "split"}
            row |= {"broker": self._owners.get(bundle), "boundaries": [f"0x{boundary:08x}" for boundary in cuts]}
            follow(self._owners, row)
            self._add("admin", "ownership", row)
        boundaries.update(ends)

    # The registry.

    def _take_registry(self, brokers: Mapping[str, str | None], ts_us: int) -> None:
        for broker in sorted(self.registered.keys() - brokers.keys()):
            del self.registered[broker]
            self._add("zookeeper", "brokers", {"ts": ts_us, "broker": broker, "event": "unregistered"})
        for broker, text in sorted(brokers.items()):
            is_known = broker in self.registered
            before = self.registered.get(broker)
            if is_known and text in (before, None):
                continue
            row = {"ts": ts_us, "broker": broker, "lookup_data": text}
            try:
                data = None if text is None else BrokerLookupData.from_json(text)
            except PulsarLookupError as error:
                # The broker is registered, whatever it publishes.
                self._refuse("zookeeper", str(error))
                if is_known:
                    continue
                row["lookup_data"] = text = data = None
            self.registered[broker] = text
            event = "updated" if is_known else "registered"
            started = None if before is None else BrokerLookupData.from_json(before).start_timestamp
            if data is not None and started not in (None, data.start_timestamp):
                # The broker was gone and came back between two reads. A broker that starts again has lost its bundles.
                self._add("zookeeper", "brokers", {"ts": ts_us, "broker": broker, "event": "unregistered"})
                event = "registered"
            self._add("zookeeper", "brokers", row | {"event": event})

    def _take_trouble(self, record: SourceTrouble) -> None:
        is_known = record.source in self.troubles
        if record.reason is None and is_known:
            del self.troubles[record.source]
            self.note("back", record.ts_us, source=record.source)
        elif record.reason is not None and not is_known:
            self.troubles[record.source] = record.reason
            self.note("lost", record.ts_us, source=record.source, detail=record.reason)

    # Rows.

    def _add(self, source: str, table: TableName, *rows: Mapping[str, Any]) -> None:
        for values in rows:
            row = check_row(table, values, self.cluster)
            if isinstance(row, str):
                self._refuse(source, row)
            else:
                self._keep(table, tuple([row.get(column.name) for column in TABLES[table]]))

    def _keep(self, table: str, row: tuple[Any, ...]) -> None:
        if len(self.pending[table]) < _MOST_PENDING:
            self.pending[table].append(row)
        else:
            self.lost[table] += 1

    def _refuse(self, source: str, reason: str) -> None:
        self.refused[source] += 1
        self.reasons[source] = reason


#: Source of each record that can be refused.
_SOURCES: Mapping[type[Record], SourceName] = {
    StateRecord: "state",
    BrokerReport: "loads",
    TopBundles: "bundles",
    BrokerRegistry: "zookeeper",
    Bundles: "admin",
}


def follow(owners: dict[str, str], row: Mapping[str, Any]) -> dict[str, str | None]:
    """Apply a row of OWNERSHIP to the owners of bundles. A split leaves the owner to children without an owner.

    Returns:
        The bundles that have another owner now, or none.
    """
    bundle = row["bundle"]
    if row["event"] == "owned":
        owners[bundle] = row["broker"]
        return {bundle: row["broker"]}
    owner = owners.pop(bundle, None)
    if owner is None:
        return {}
    changes: dict[str, str | None] = {bundle: None}
    if row["event"] == "split":
        namespace, _, bounds = bundle.rpartition("/")
        ends = BundleRange.parse(bounds)
        # A boundary at an end of the bundle cuts nothing off.
        cuts = {edge for edge in (int(text, 16) for text in row["boundaries"]) if ends.lower < edge < ends.upper}
        for pair in pairwise((ends.lower, *sorted(cuts), ends.upper)):
            child = f"{namespace}/{BundleRange(*pair)}"
            if child not in owners:
                owners[child] = changes[child] = owner
    return changes
