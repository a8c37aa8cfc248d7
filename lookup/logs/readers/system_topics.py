"""Read the load manager's system topics, with ownership, brokers' load and top bundles.

The engine's conflict rule decides which records of the state topic are valid. This module converts valid records to
OWNERSHIP, LOADS and BUNDLES. It serves dumps in JSON Lines, brokers' logs, which print such records, and live clusters.

Source: `docs/pulsar/load-managers.md`, `docs/pulsar/logs.md`, "State records beside the log".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from lookup.engine.service_unit import ChannelStorage, ServiceUnitState, ServiceUnitStateData, should_keep_left
from lookup.errors import InputError, PulsarLookupError
from lookup.logs.readers.values import unreadable
from lookup.model.bundles import BundleRange, NamespaceBundle
from lookup.model.documents import Row, Unreadable, mapping, parsed_object, text, whole_number
from lookup.model.load_data import broker_load_from_json, bundle_stats_from_json
from lookup.model.names import INTERNAL_TOPICS
from lookup.model.quoting import shown

__all__ = [
    "BROKER_LOAD_TOPIC", "STATE_TOPIC", "TOP_BUNDLES_TOPIC", "OwnershipChanges", "SystemTopicsReader", "bundle_rows",
    "load_row", "ownership_change", "split_boundaries",
]  # fmt: skip

BROKER_LOAD_TOPIC, TOP_BUNDLES_TOPIC, STATE_TOPIC = INTERNAL_TOPICS

_S = ServiceUnitState


@dataclass(frozen=True)
class SystemTopicsReader:
    """A reader of OWNERSHIP, LOADS and BUNDLES in messages of the load manager's system topics, in JSON Lines.

    A line is one message with the keys `topic`, `key`, `publish_time_ms` and `value`, null for a tombstone. Other keys
    are not read. A source has the records of the state topic in the topic's order.
    """

    name: ClassVar[str] = "pulsar-system-topics"
    expects: ClassVar[str] = (
        "one JSON object per line with topic, key, publish_time_ms and value of a message in a system topic of the "
        "extensible load manager"
    )
    #: lines are objects of JSON
    reads_objects: ClassVar[bool] = True

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield changes of ownership and the load that brokers report. Messages of other topics are skipped."""
        changes = OwnershipChanges()
        for number, line in lines:
            if not line.strip():
                continue
            try:
                # A message is used whole or not at all.
                yield from list(_rows(number, parsed_object(line, "the line"), changes))
            except PulsarLookupError as error:
                yield unreadable(number, str(error), line)


def _rows(line: int, record: dict[str, Any], changes: OwnershipChanges) -> Iterator[Row]:
    topic = text(record.get("topic"), "topic")
    if topic not in (BROKER_LOAD_TOPIC, STATE_TOPIC, TOP_BUNDLES_TOPIC):
        return
    key, ts_us = text(record.get("key"), "key"), whole_number(record.get("publish_time_ms"), "publish_time_ms") * 1_000
    value = record.get("value")
    message = None if value is None else json.dumps(mapping(value, "value"), separators=(",", ":"))
    if topic == STATE_TOPIC:
        change = changes.take(key, None if message is None else ServiceUnitStateData.from_json(message), ts_us)
        if change is not None:
            yield Row("ownership", line, change)
    # A tombstone means that a broker is gone, which the registry records.
    elif message is not None and topic == BROKER_LOAD_TOPIC:
        yield Row("loads", line, load_row(key, message, ts_us))
    elif message is not None:
        yield from (Row("bundles", line, row) for row in bundle_rows(message, ts_us))


def ownership_change(owner: str | None, data: ServiceUnitStateData) -> dict[str, Any] | None:
    """Build the columns `event`, `broker` and `boundaries` of a record, None if the owner stays.

    A bundle loses its owner when the release begins. A split leaves it to the children, from their first record on.

    Args:
        owner: the bundle's owner until now, None if it has none.

    Raises:
        InvalidNameError: if a child of a split has no range.
    """
    match data.state:
        case _S.OWNED:
            return None if data.dst_broker == owner else {"event": "owned", "broker": data.dst_broker}
        case _S.SPLITTING:
            return {"event": "split", "broker": owner, "boundaries": split_boundaries(data.split)}
        case _S.DELETED:
            return None
        case _:
            return None if owner is None else {"event": "unloaded", "broker": owner}


def split_boundaries(children: Iterable[str]) -> list[str]:
    """Build the column `boundaries` of a split, the ends of the children's ranges and so the parent's.

    Raises:
        InvalidNameError: if a child has no range.
    """
    ranges = [BundleRange.parse(child) for child in children]
    return [f"0x{end:08x}" for end in sorted({end for bounds in ranges for end in (bounds.lower, bounds.upper)})]


class OwnershipChanges:
    """A tracker of the state topic, whose records come in the topic's order, that finds the changes of ownership.

    It may begin at any record. The previous owner in the first record of a bundle is accepted.
    """

    def __init__(self) -> None:
        self._records: dict[str, ServiceUnitStateData] = {}
        self._owners: dict[str, str | None] = {}

    def take(self, bundle: str, data: ServiceUnitStateData | None, ts_us: int) -> dict[str, Any] | None:
        """Build the row of OWNERSHIP for a record, without the cluster, None if the owner stays.

        Args:
            data: None for a tombstone.

        Raises:
            InvalidNameError: if the bundle or a child is malformed, and then the record is left out.
        """
        name = NamespaceBundle.parse(bundle)
        children = [f"{name.namespace}/{BundleRange.parse(child)}" for child in (data.split if data else ())]
        # Tools write hashes in several spellings, but a bundle has only one.
        bundle = str(name)
        before = self._records.get(bundle)
        if should_keep_left(before, data, ChannelStorage.SYSTEM_TOPIC):
            return None
        owner = self._owners.pop(bundle, None)
        change: dict[str, Any] | None
        if data is None:
            self._records.pop(bundle, None)
            change = None if owner is None else {"event": "unloaded", "broker": owner}
        else:
            self._records[bundle] = data
            if before is None and data.state in (_S.RELEASING, _S.SPLITTING):
                owner = data.source_broker
            is_repeated = before is not None and before.state is data.state is _S.SPLITTING
            # A reader that begins later knows the child of a split by this record alone, and since when it is owned.
            previous = None if before is None and data.state is _S.OWNED else owner
            change = None if is_repeated else ownership_change(previous, data)
            if data.state is _S.OWNED:
                self._owners[bundle] = data.dst_broker
            elif data.state is _S.SPLITTING and not is_repeated:
                self._owners |= dict.fromkeys(children, owner)
        if change is None:
            return None
        return {"ts": ts_us, "bundle": bundle} | {key: value for key, value in change.items() if value is not None}


def load_row(broker: str, value: str, ts_us: int) -> dict[str, Any]:
    """Build the row of LOADS for a broker's report, without the cluster.

    Raises:
        InputError: if the report is not valid.
    """
    broker_load_from_json(value)
    return {"ts": ts_us, "broker": broker, "load": value}


def bundle_rows(value: str, ts_us: int) -> list[dict[str, Any]]:
    """Build the rows of BUNDLES for a broker's list of its most loaded bundles, without the cluster."""
    entries = parsed_object(value, "the list of top bundles").get("topBundlesLoadData", [])
    if not isinstance(entries, list):
        raise InputError(f"topBundlesLoadData is {shown(entries)}, not a list")
    rows = []
    for entry in entries:
        bundle = text(mapping(entry, "topBundlesLoadData").get("bundleName"), "bundleName")
        stats = json.dumps(mapping(entry.get("stats"), "stats"), separators=(",", ":"))
        bundle_stats_from_json(stats)
        rows.append({"ts": ts_us, "bundle": bundle, "stats": stats})
    return rows
