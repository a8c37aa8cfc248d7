"""Find changes of bundle ownership in the events of a broker's log.

Each change is read from one line of one broker's log, though several print it. A first assignment and an override are
read from the deciding broker, a release and a split from the owner, the end of a transfer from the new owner.

Source: `docs/pulsar/logs.md`, "Ownership in a broker's log".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from lookup.engine.service_unit import ServiceUnitState, ServiceUnitStateData
from lookup.errors import InvalidNameError
from lookup.logs.readers.layouts import LogEvent, LogOrigin
from lookup.logs.readers.pairing import Pairing
from lookup.logs.readers.system_topics import ownership_change, split_boundaries
from lookup.model.documents import Refuted, Row
from lookup.model.names import NamespaceName, pinned_broker
from lookup.model.quoting import shown

__all__ = ["OWNERSHIP_MESSAGES", "OWNERSHIP_WORDS", "BrokerLog", "OwnershipLog"]

#: Patterns, of which each line that is read here has at least one. Each begins with a letter outside a group. Only then
#: does `re` skip the places in a line at which no pattern can begin, which halves the time for a whole log.
OWNERSHIP_WORDS = (
    "Successfully acquired ownership of",
    "Selected new owner broker",
    "Skipped the message",
    "Unloading namespace bundle",
    "Successfully unloaded namespace bundle",
    "Failed to unload namespace bundle",
    "Namespace bundle is not owned by any broker",
    "Unloading bundle:",
    "Unloaded bundle topics",
    "Handled event for serviceUnit",
    "handled Transfer:(?:Owned|Releasing) event for serviceUnit",
    "Overriding inactiveBroker",
    r"Successfully split (?:\S+ )?parent namespace-bundle",
)

# `bundle=` or `serviceUnit:` may come right before the name, which itself may contain `=` and `:`.
_BUNDLE = re.compile(
    r"(?<![-=:.\w/])(?:\w+=|(?:bundle|serviceUnit):)?(?P<bundle>[-=:.\w]+(?:/[-=:.\w]+)+/0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8})"
)
_RANGE = re.compile(r"0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8}")
# Service unit states as Java prints them, `ServiceUnitStateData[state=Owned, dstBroker=B, ..., versionId=2]`. The
# children of a split are `{0x00000000_0x20000000=Optional.empty, ...}`.
_RECORD = re.compile(r"ServiceUnitStateData\[(?P<fields>(?:[^\[\]]++|\[[^\[\]]*\])*)\]")
_FIELD = re.compile(r"(\w+)=(\{[^}]*\}|[^,]*)")
_CHILD = re.compile(r"(0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8})=(?:Optional\[((?:[^\[\]]|\[[^\[\]]*\])*)\])?")
#: Attributes that name a bundle. A range is completed by the namespace in another attribute.
_NAMED_BY = ("bundle", "serviceUnit", "parentBundle", "bundleRange", "key")
#: An admin's request to unload a bundle ends within this time, and so does that of a shedder through the same API, µs.
_UNLOAD_LASTS_US = 60_000_000
#: A broker publishes the record of a choice within this time, some ms on 4.2.4.
_RECORD_FOLLOWS_MS = 500

_Match = re.Match[str]


@dataclass(slots=True)
class _Unload:
    ts: int
    #: `asked`, `closed` after its topics were closed, `unowned` without an owner, `booked` if the release has a row
    state: str


class BrokerLog:
    """One log whose events become rows.

    Args:
        source: the path of the log.
        rows: destination of the rows.
    """

    def __init__(self, origin: LogOrigin, source: str, rows: Pairing) -> None:
        self.rows = rows
        self.origin = origin
        #: the broker whose log it is
        self.broker = origin.broker_of(source)
        #: columns that all rows have
        self.fixed = origin.cluster_of(source)


class OwnershipLog(BrokerLog):
    """A builder of the rows of OWNERSHIP from one log."""

    def __init__(self, origin: LogOrigin, source: str, rows: Pairing) -> None:
        super().__init__(origin, source, rows)
        #: when a shedder last named a bundle, µs
        self.shed_at: dict[str, int] = {}
        #: admins' requests to unload bundles in the order of their lines, by bundle
        self.unloads: dict[str, _Unload] = {}

    def ownership(self, line: int, ts: int, values: Mapping[str, Any], claim: str | None = None) -> None:
        """Add a row of OWNERSHIP."""
        present = {name: value for name, value in values.items() if value is not None}
        self.rows.put(Row("ownership", line, {"ts": ts, **present, **self.fixed}), claim)

    def read_acquisition(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Successfully acquired ownership of OwnedBundle(bundle=b, ...)` in the log of the new owner."""
        bundle, broker = _bundle(event), self.broker
        if not broker:
            # A heartbeat or SLA namespace names its broker. For others the line does not have more information.
            try:
                broker = pinned_broker(str(NamespaceName.parse(bundle.rpartition("/")[0])))
            except InvalidNameError:
                broker = None
        self.ownership(line, event.ts, {"bundle": bundle, "event": "owned", "broker": broker})

    def read_selection(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Selected new owner broker: B for bundle: b.`, which another broker's choice may turn out to precede."""
        broker, bundle = self.origin.id_of(event.attributes.get("broker") or match["broker"] or ""), _bundle(event)
        values = {"bundle": bundle, "event": "owned", "broker": broker, "by": "policy"}
        self.ownership(line, event.ts, values, claim=f"{bundle} {broker}")

    def read_skipped(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Skipped the message from topic T. key=b value=RECORD prev=RECORD`. The first record is not valid.

        5.0 has all four in attributes, and prints it for other topics too.

        All brokers print the late one of simultaneous choices. Only the log of its broker has a row to withdraw.
        """
        value, prev = (match[name] or event.attributes.get(name, "") for name in ("value", "prev"))
        if not value.startswith("ServiceUnitStateData[") or not prev.startswith("ServiceUnitStateData["):
            return
        late, valid = _record(value), _record(prev)
        claim = f"{_bundle(event)} {self.origin.id_of(late.dst_broker or '')}"
        chosen_us = self.rows.claimed_at(claim)
        if late.state is not ServiceUnitState.ASSIGNING or chosen_us is None:
            return
        # A broker publishes the record of a choice at once, and never before it. If both records name the same owner,
        # either may be that of this choice, unless the valid one is older than the choice.
        chosen_ms = chosen_us // 1_000
        follows = 0 <= late.timestamp - chosen_ms < _RECORD_FOLLOWS_MS
        if follows and (valid.dst_broker != late.dst_broker or valid.timestamp < chosen_ms):
            self.rows.withdraw(claim)

    def read_handled(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `B handled Transfer:S event for serviceUnit:b, cur:RECORD, ...`.

        A release begins or a transfer ends. Both brokers print the latter, which is read from the new owner's log.
        """
        tag = match["tag"] or event.attributes.get("event")
        # Others are first assignments and splits, which have lines of their own, and are printed in debug mode only.
        if tag not in ("Transfer:Owned", "Transfer:Releasing"):
            return
        data = _record(event.attributes.get("cur") or event.message)
        is_release = data.state is ServiceUnitState.RELEASING
        handler = match["broker"] or event.attributes.get("broker")
        # The leader prints the records that it writes over others, with the previous records.
        if data.force or handler != (data.source_broker if is_release else data.dst_broker):
            return
        bundle, by = _bundle(event), None
        if is_release:
            request = self.unloads.get(bundle)
            by = "policy"
            if request is not None and request.state != "booked" and event.ts - request.ts <= _UNLOAD_LASTS_US:
                request.state, by = "booked", "admin"
        self._change(line, event, bundle, ownership_change(data.source_broker, data), by)

    def overridden(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Overriding inactiveBroker:B, ownership serviceUnit:b from orphanData:RECORD to overrideData:RECORD`.

        A broker overrides the ownership of an inactive one. A chosen broker that had not become the owner never was it.
        The row of that choice, mostly of another broker's log, is refuted.
        """
        before, after = _record(match["before"]), _record(match["after"])
        # A broker that had died a moment ago was chosen, and never owned the bundle.
        if before.state is ServiceUnitState.ASSIGNING:
            broker = self.origin.id_of(before.dst_broker or "")
            values = {"bundle": _bundle(event), "event": "owned", "broker": broker, "by": "policy", **self.fixed}
            from_us, until_us = ((before.timestamp + ms) * 1_000 for ms in (-_RECORD_FOLLOWS_MS, _RECORD_FOLLOWS_MS))
            self.rows.put(Refuted("ownership", line, from_us, until_us, values))
        owner = before.dst_broker if before.state is ServiceUnitState.OWNED else None
        # A split that another broker takes over is printed when it ends.
        if after.state is not ServiceUnitState.SPLITTING:
            self._change(line, event, _bundle(event), ownership_change(owner, after))

    def _change(
        self, line: int, event: LogEvent, bundle: str, change: Mapping[str, Any] | None, by: str | None = None
    ) -> None:
        if change is not None:
            broker = self.origin.id_of(change["broker"] or "")
            self.ownership(line, event.ts, {**change, "bundle": bundle, "broker": broker, "by": by})

    def read_split(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Successfully split b parent namespace-bundle to [b1, b2] in M ms` in the owner's log."""
        ranges = _RANGE.findall(event.attributes.get("childBundles") or match["children"] or "")
        values = {"event": "split", "broker": self.broker, "boundaries": split_boundaries(ranges)}
        self.ownership(line, event.ts, {"bundle": _bundle(event), **values})

    def asked_to_unload(self, line: int, event: LogEvent, match: _Match, *, state: str) -> None:
        """Read a line on the way from an admin's request to unload a bundle to its end, which the request waits for.

        A broker that does not own the bundle sends the request on, and prints no end.
        """
        bundle = _bundle(event)
        if state == "asked":
            for other in [other for other, past in self.unloads.items() if event.ts - past.ts > _UNLOAD_LASTS_US]:
                del self.unloads[other]
            self.unloads.pop(bundle, None)
            self.unloads[bundle] = _Unload(event.ts, state)
        elif state == "failed":
            self.unloads.pop(bundle, None)
        elif bundle in self.unloads and self.unloads[bundle].state == "asked":
            self.unloads[bundle].state = state

    def read_unload(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Successfully unloaded namespace bundle RANGE`, an admin's unload unless a shedder just chose it."""
        bounds = _RANGE.search(event.attributes.get("bundle") or event.message)
        if _names_bundle(event) or bounds is None:
            bundle = _bundle(event)
        else:
            # Without a namespace it is the bundle whose topics were closed, else the last with a request to unload.
            bundles = [name for name in self.unloads if name.endswith(f"/{bounds[0]}")]
            closed = [name for name in bundles if self.unloads[name].state in ("closed", "booked")]
            if not bundles:
                raise ValueError(f"the line has no namespace, and no line before asks to unload a bundle {bounds[0]}")
            bundle = closed[0] if closed else bundles[-1]
        request = self.unloads.pop(bundle, None)
        # Without an owner nothing happened, and a release has a row already.
        if request is not None and request.state in ("unowned", "booked"):
            return
        is_shed = event.ts - self.shed_at.get(bundle, -_UNLOAD_LASTS_US) < _UNLOAD_LASTS_US
        by = "policy" if is_shed else "admin"
        self.ownership(line, event.ts, {"bundle": bundle, "event": "unloaded", "broker": self.broker, "by": by})

    def read_shedding(self, line: int, event: LogEvent, match: _Match) -> None:
        """Read `Unloading bundle: b from broker B`, or an unload that prints its record."""
        # With a destination it is a transfer, whose release the owner prints.
        if match["destination"] is not None:
            return
        bundle = _bundle(event)
        self.shed_at[bundle] = event.ts
        broker = self.origin.id_of(match["broker"] or match["source"] or event.attributes.get("broker") or "")
        self.ownership(line, event.ts, {"bundle": bundle, "event": "unloaded", "broker": broker, "by": "policy"})


def _record(text: str) -> ServiceUnitStateData:
    match = _RECORD.search(text)
    if match is None:
        raise ValueError("the line has no whole record ServiceUnitStateData[...]")
    printed = dict(_FIELD.findall(match["fields"]))
    record: dict[str, Any] = {key: value for key, value in printed.items() if value != "null"}
    record["splitServiceUnitToDestBroker"] = {
        child: destination or None for child, destination in _CHILD.findall(match["fields"])
    }
    record["force"] = printed.get("force") == "true"
    for key in ("timestamp", "versionId"):
        if not re.fullmatch(r"-?\d{1,19}", printed.get(key, "0")):
            raise ValueError(f"{key} of the record is {shown(printed[key])}, no whole number")
        record[key] = int(printed.get(key, "0"))
    return ServiceUnitStateData.from_json(json.dumps(record))


def _bundle(event: LogEvent) -> str:
    match = _names_bundle(event)
    if match is None:
        raise ValueError("the line names no bundle of the form tenant/namespace/0x00000000_0x40000000")
    return match["bundle"]


def _names_bundle(event: LogEvent) -> _Match | None:
    attributes = event.attributes
    names = [attributes[name] for name in _NAMED_BY if attributes.get(name)]
    if not names:
        return _BUNDLE.search(event.message)
    # Of an unload to an inactive broker Pulsar 5.0 calls the namespace `bundle`.
    namespace = attributes.get("namespace") or attributes.get("bundle")
    whole = (f"{namespace}/{name}" if _RANGE.fullmatch(name) else name for name in names)
    return next(filter(None, map(_BUNDLE.search, whole)), None)


#: Every message that is read, with its pattern, and the function that builds its row, in the order of trials.
OWNERSHIP_MESSAGES: tuple[tuple[re.Pattern[str], Callable[[OwnershipLog, int, LogEvent, _Match], None]], ...] = (
    (re.compile(r"Successfully acquired ownership of\b"), OwnershipLog.read_acquisition),
    (re.compile(r"Selected new owner broker(?:: (?P<broker>\S+) for bundle: )?"), OwnershipLog.read_selection),
    (re.compile(r"Successfully unloaded namespace bundle\b"), OwnershipLog.read_unload),
    (
        re.compile(
            r"\ASkipped the message\Z|"
            r"Skipped the message from topic \S+loadbalancer-service-unit-state\. key=\S+ "
            r"value=(?P<value>ServiceUnitStateData\[.*) prev=(?P<prev>ServiceUnitStateData\[.*)"
        ),
        OwnershipLog.read_skipped,
    ),
    (
        re.compile(r"(?:(?P<broker>\S+) )?[hH]andled (?:(?P<tag>\S+) )?event for serviceUnit\b"),
        OwnershipLog.read_handled,
    ),
    (
        re.compile(r"Overriding inactiveBroker:.* from orphanData:(?P<before>.*) to overrideData:(?P<after>.*)"),
        OwnershipLog.overridden,
    ),
    (
        re.compile(r"Successfully split (?:\S+ )?parent namespace-bundle(?: to \[(?P<children>[^\]]*)\])?"),
        OwnershipLog.read_split,
    ),
    (re.compile(r"(?:\A|\] )Unloading namespace bundle\b"), partial(OwnershipLog.asked_to_unload, state="asked")),
    (
        re.compile(r"(?:\A|\] )Failed to unload namespace bundle\b"),
        partial(OwnershipLog.asked_to_unload, state="failed"),
    ),
    (
        re.compile(r"Namespace bundle is not owned by any broker\b"),
        partial(OwnershipLog.asked_to_unload, state="unowned"),
    ),
    (
        re.compile(r"Unloading bundle:\S+ with \d+ topics completed|Unloaded bundle topics\b"),
        partial(OwnershipLog.asked_to_unload, state="closed"),
    ),
    (
        re.compile(
            r"Unloading bundle: .*?(?:from broker (?P<broker>\S+)|sourceBroker=(?P<source>(?:\[[^\]]*\]|[^,\]\s])+)"
            r"(?:.*destBroker=(?P<destination>Optional\[[^\]]))?|$)"
        ),
        OwnershipLog.read_shedding,
    ),
)
