"""Clusters as `lookup collect` records them: brokers, owners, and reports once a minute."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.collect.folder import RecordFolder
from lookup.collect.observing import BrokerRegistry, BrokerReport, CaughtUp, Observer, Record, StateRecord, TopBundles
from lookup.logs.schema import CANONICAL
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.bundles import BundleRange, NamespaceBundle, bundle_ranges, equal_boundaries, topic_hash
from lookup.model.time import time_text
from lookup.moving.journal import Journal
from lookup.moving.plan import MovePlan
from lookup.moving.reading import Rows, read_record
from lookup.moving.state import ClusterState, state_of

__all__ = [
    "START_US", "World", "broker", "bundle", "carried_out", "lookup_row", "topics_of", "with_owners", "write_lookups",
]  # fmt: skip

#: 26 November 2026, 12:00 UTC.
START_US = 1_795_694_400_000_000
_MINUTE_US = 60_000_000
#: Bytes per second at which a broker is full.
_FULL = 2e7


def broker(number: int) -> str:
    """Return the id of a broker."""
    return f"broker-{number}:8080"


def bundle(number: int, namespace: str = "shop/orders", of: int = 64) -> str:
    """Return the name of a bundle of a namespace with so many."""
    ranges: tuple[BundleRange, ...] = bundle_ranges(equal_boundaries(of))
    return f"{namespace}/{ranges[number]}"


@dataclass
class World:
    """A cluster; what a test wants otherwise it changes before it is recorded."""

    brokers: int = 3
    #: by bundle
    owners: dict[str, str] = field(default_factory=dict)
    #: bytes per second by bundle; one that is not there is on no list of top bundles
    loads: dict[str, float] = field(default_factory=dict)
    #: bytes per second that brokers carry besides these
    besides: dict[str, float] = field(default_factory=dict)
    #: producers of a bundle, 2 unless it is here
    producers: dict[str, int] = field(default_factory=dict)
    #: load manager by broker
    managers: dict[str, str] = field(default_factory=dict)
    #: minutes after the beginning at which brokers have started, if later
    started: dict[str, int] = field(default_factory=dict)
    #: brokers that never report
    silent: set[str] = field(default_factory=set)
    #: bundles that each broker lists at most, the most loaded ones; None: all
    listed: int | None = None
    minutes: int = 10
    #: by how much loads vary from minute to minute, as a ratio
    sway: float = 0.1
    cluster: str = "east"
    #: of the record
    start_us: int = START_US
    #: what the state topic has after the first owners
    later: list[StateRecord] = field(default_factory=list)

    @classmethod
    def crowded(cls) -> World:
        """Return three brokers, of which the first owns nearly all of 24 bundles of 1 MB/s each."""
        world = cls()
        for number in range(24):
            world.owners[bundle(number)] = broker(0 if number < 18 else 1 + number % 2)
            world.loads[bundle(number)] = 1e6
        return world

    @property
    def ids(self) -> list[str]:
        """Return the brokers' ids."""
        return [broker(number) for number in range(self.brokers)]

    def load(self, name: str, minute: int) -> float:
        """Return the load of a bundle in a minute; each sways at its own pace."""
        pace = 1.0 + sum(name.encode()) % 7
        return self.loads[name] * (1.0 + self.sway * math.sin(minute * pace))

    def records(self) -> Iterator[Record]:
        """Yield what the cluster publishes."""
        registry: Mapping[str, str] = {name: self._lookup_data(name) for name in self.ids}
        yield BrokerRegistry(registry, self.start_us)
        for place, (name, owner) in enumerate(sorted(self.owners.items())):
            state = {"state": "Owned", "dstBroker": owner, "timestamp": self.start_us // 1000, "versionId": 1}
            yield StateRecord(name, json.dumps(state), self.start_us, (1, place, -1))
        yield from self.later
        yield CaughtUp(self.start_us)
        for minute in range(self.minutes):
            for name in self.ids:
                if name not in self.silent:
                    yield from self._reports(name, minute)

    def _lookup_data(self, name: str) -> str:
        host = name.partition(":")[0]
        data = {
            "webServiceUrl": f"http://{name}",
            "pulsarServiceUrl": f"pulsar://{host}:6650",
            "loadManagerClassName": self.managers.get(name, EXTENSIBLE_MANAGER),
            "startTimestamp": self.start_us // 1000 + 60_000 * self.started.get(name, 0),
            "properties": {"lookup.rack": f"rack-{host[-1]}"},
        }
        return json.dumps(data)

    def _reports(self, name: str, minute: int) -> Iterator[Record]:
        ts_us = self.start_us + minute * _MINUTE_US
        loads = {one: self.load(one, minute) for one in self.loads if self.owners.get(one) == name}
        total = sum(loads.values()) + self.besides.get(name, 0.0)
        half, usage = total / 2, min(1.0, total / _FULL)
        figures = {
            "msgThroughputIn": half,
            "msgThroughputOut": half,
            "msgRateIn": half / 1000,
            "msgRateOut": half / 1000,
        }
        figures |= {"weightedMaxEMA": usage, "maxResourceUsage": usage, "msgThroughputEMA": total}
        yield BrokerReport(name, json.dumps(figures), ts_us)
        top = [
            {
                "bundleName": one,
                "stats": {
                    "msgThroughputIn": load / 2,
                    "msgThroughputOut": load / 2,
                    "msgRateIn": 10.0,
                    "msgRateOut": 10.0,
                    "topics": 3,
                    "producerCount": self.producers.get(one, 2),
                    "consumerCount": 1,
                },
            }
            for one, load in sorted(loads.items(), key=lambda of: -of[1])[: self.listed]
        ]
        yield TopBundles(json.dumps({"topBundlesLoadData": top}), ts_us, name)

    def write(self, folder: Path) -> Path:
        """Record the cluster into a folder, and return it."""
        observer = Observer(self.cluster)
        with RecordFolder(str(folder)) as into:
            observer.note("started", self.start_us)
            for record in self.records():
                observer.take(record)
            assert not observer.refused, observer.reasons
            for table, rows in observer.pending.items():
                if rows:
                    into.write(table, rows, until_us=self.start_us, position=observer.position)
        return folder

    def state(self, folder: Path) -> ClusterState:
        """Return the state at the end of the record."""
        return state_of(read_record(str(self.write(folder))))


def carried_out(
    plan: MovePlan, path: Path, *, at_us: int = START_US + 3 * _MINUTE_US, skipped: int = 0, is_back: bool = False
) -> Path:
    """Write the journal of a plan that was carried out at an instant, but for its first steps.

    Args:
        skipped: how many of these were left out.
        is_back: one of the others was taken back.
    """
    with Journal(path) as journal:
        journal.begin(plan)
        for step in plan.steps:
            event = "skipped" if step.number <= skipped else "moved"
            journal.write(event, at=time_text(at_us), step=step.number, bundle=step.bundle)
        if is_back:
            journal.write("moved", at=time_text(at_us), step=step.number, bundle=step.bundle, back=True)
    return path


def topics_of(name: str) -> Iterator[str]:
    """Yield topics of a bundle of `shop/orders`."""
    bounds = NamespaceBundle.parse(name).range
    topics = (f"persistent://shop/orders/topic-{number}" for number in range(100_000))
    return (topic for topic in topics if topic_hash(topic) in bounds)


def lookup_row(topic: str, rack: str | None, **columns: Any) -> dict[str, Any]:
    """Return a row of LOOKUPS as of the beginning of a world, with the client's rack if it says so."""
    properties = None if rack is None else json.dumps({"rack": rack})
    return {"ts": START_US, "cluster": "east", "topic": topic, "properties": properties, "weight": 1.0, **columns}


def write_lookups(rows: Iterable[Mapping[str, Any]], folder: Path) -> str:
    """Write LOOKUPS into a new folder, and return it."""
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([*rows], schema=CANONICAL["lookups"]), folder / "part-000001.parquet")
    return str(folder)


def with_owners(rows: Rows, *changes: Mapping[str, Any]) -> Rows:
    """Return rows with more of OWNERSHIP; columns but for the cluster, the times in minutes after the beginning."""
    table = rows.tables["ownership"]
    added = [{"cluster": rows.cluster, **change, "ts": START_US + change["ts"] * _MINUTE_US} for change in changes]
    joined = pa.concat_tables([table, pa.Table.from_pylist(added, schema=table.schema)])
    return replace(rows, tables={**rows.tables, "ownership": joined})
