"""The messages of a broker's log that tell of lookups and ownership, and the rows they make.

Every function takes an event and says whether it was its own; ValueError means that it was, but cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lookup.errors import InvalidNameError
from lookup.logs.readers.layouts import LogEvent
from lookup.logs.readers.pairing import Pairing
from lookup.logs.readers.records import BrokerNames
from lookup.model.documents import Row, Unreadable
from lookup.model.names import NamespaceName, looks_like_pattern, pinned_broker
from lookup.model.quoting import shown

__all__ = ["FIRST_WORDS", "MESSAGES", "BrokerLog"]

#: A line without any of these is not read any further.
FIRST_WORDS = (
    "Received Lookup ",
    r"\] Lookup result ",
    "Failed to lookup",
    "Failed lookup due to too many lookup-requests",
    "Lookup succeeded for topic",
    "Redirect lookup for topic",
    "No broker was found available for topic",
    "Successfully acquired ownership of",
    "Selected new owner broker",
    "Successfully unloaded namespace bundle",
    "Unloading bundle: ",
    r"ServiceUnitStateData\[",
)

_TOPIC = r"(?P<topic>(?:non-)?persistent://.*?)"
_BUNDLE = re.compile(r"(?<![-=:.\w/])(?:\w+=)?(?P<bundle>[-=:.\w]+(?:/[-=:.\w]+)+/0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8})")
_RANGE = re.compile(r"0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8}")
_ASKED = re.compile(rf"(?:\[{_TOPIC}\] )?Received Lookup from (?P<client>\S+)(?: for (?P<rest>.+))?")
_RESULT = re.compile(rf"\[{_TOPIC}\] Lookup result (?P<result>.*)")
_FAILED = re.compile(r"Failed to lookup (?P<client>.*?) for topic (?P<topic>.+?) with error")
_THROTTLED = re.compile(r"Failed lookup due to too many lookup-requests(?: (?P<topic>.+))?")
_SUCCEEDED = re.compile(r"Lookup succeeded for topic(?: (?P<topic>.+?) -- broker: (?P<broker>.+))?")
_REDIRECTED = re.compile(r"Redirect lookup for topic(?: (?P<topic>.+) to (?P<broker>\S+))?")
_NOBODY = re.compile(r"No broker was found available for topic(?: (?P<topic>.+))?")
_ACQUIRED = re.compile(r"Successfully acquired ownership of\b")
_SELECTED = re.compile(r"Selected new owner broker(?:: (?P<broker>\S+) for bundle: )?")
_UNLOADED = re.compile(r"Successfully unloaded namespace bundle\b")
_SHED = re.compile(r"Unloading bundle: .*?(?:from broker (?P<broker>\S+)|sourceBroker=(?P<source>[^,\]\s]+)|$)")
_STATE = re.compile(r"ServiceUnitStateData\[state=(?P<state>\w+)(?P<rest>.*)")
_BROKER_URL = re.compile(r"brokerUrl=(?P<url>[^,\]})\s]+)|(?P<bare>pulsar(?:\+ssl)?://[^,\]})\s]+)")
_ADDRESS = re.compile(r"(?:.*/)?(?P<host>\[[^\]]+\]|[^/]+?)(?::\d+)?\Z")
#: The admin call by which a shedder carries out its decision ends within this time after the decision.
_SHED_LASTS_US = 60_000_000

_Match = re.Match[str]


class BrokerLog:
    """What one log has told so far: rows on their way out, and what later lines depend on."""

    def __init__(self, names: BrokerNames, broker: str | None, fixed: Mapping[str, str]) -> None:
        self.rows = Pairing()
        self.names = names
        #: the broker whose log it is
        self.broker = broker
        self._fixed = fixed
        #: when a shedder last named a bundle, µs
        self.shed: dict[str, int] = {}
        #: last printed state of each bundle; a record is printed by everyone who sees it
        self.states: dict[str, tuple[str, str | None]] = {}

    def refuse(self, record: Unreadable) -> None:
        """Report a record that cannot be used."""
        self.rows.put(record)

    def lookup(self, line: int, event: LogEvent, topic: str | None, **values: Any) -> Row:
        """Make a LOOKUPS row; ValueError where the topic is none."""
        if not topic:
            raise ValueError("the line names no topic")
        if looks_like_pattern(topic):
            raise ValueError(f"{shown(topic)} is a regular expression of a topic list watcher, not a topic")
        values |= {"ts": event.ts, "topic": topic, "asked_broker": self.broker, **self._fixed}
        return Row("lookups", line, {name: value for name, value in values.items() if value is not None})

    def ownership(self, line: int, ts: int, values: Mapping[str, Any]) -> None:
        """Put an OWNERSHIP row."""
        present = {name: value for name, value in values.items() if value is not None}
        self.rows.put(Row("ownership", line, {"ts": ts, **present, **self._fixed}))


def _asked(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take `[T] Received Lookup from X`, or 5.0's request with attributes."""
    if event.message.startswith("Received Lookup request"):
        topic, client = event.attributes.get("topic"), event.attributes.get("remoteAddress")
    else:
        found = _ASKED.search(event.message)
        if found is None:
            return False
        topic, client = found["topic"], found["client"]
        if not topic and "://" in (found["rest"] or ""):
            topic = found["rest"]
    listener = event.attributes.get("advertisedListenerName") or None
    log.rows.ask(log.lookup(line, event, topic, client=_address(client), listener=listener))
    return True


def _result(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take `[T] Lookup result R`."""
    found = _RESULT.search(event.message)
    if found is None:
        return False
    url = _BROKER_URL.search(found["result"])
    broker = log.names.id_of(url["url"] or url["bare"]) if url else None
    log.rows.answer(log.lookup(line, event, found["topic"], broker=broker, result=_outcome(found["result"], url)))
    return True


def _outcome(result: str, url: _Match | None) -> str:
    """Tell a redirect from an answer by the type that a lookup result prints."""
    if "Redirect" in result or "redirect=true" in result:
        return "redirect"
    if url is None:
        return "failed" if "empty" in result else "unknown"
    return "connect" if "BrokerUrl" in result or "redirect=false" in result else "unknown"


def _failed(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take `Failed to lookup CLIENT for topic T with error E`, and lookups refused because there were too many."""
    found = _FAILED.search(event.message) or _THROTTLED.search(event.message)
    if found is None and not event.message.startswith("Failed to lookup"):
        return False
    groups = found.groupdict() if found else {}
    topic = event.attributes.get("topic") or groups.get("topic")
    # Without authentication the client's id is the word null.
    client = groups.get("client") or event.attributes.get("authRole")
    client = None if client in (None, "", "null") else client
    log.rows.answer(log.lookup(line, event, topic, client=client, result="failed"))
    return True


def _answered(result: str, pattern: re.Pattern[str]) -> Callable[[BrokerLog, int, LogEvent], bool]:
    """Take a line about a lookup over HTTP, which says everything at once."""

    def take(log: BrokerLog, line: int, event: LogEvent) -> bool:
        """Take a line that the pattern fits; others are left to other messages."""
        found = pattern.search(event.message)
        if found is None:
            return False
        groups = found.groupdict()
        topic = event.attributes.get("topic") or groups.get("topic")
        text = event.attributes.get("broker") or groups.get("broker") or ""
        url = _BROKER_URL.search(text)
        broker = log.names.id_of((url["url"] or url["bare"]) if url else text)
        log.rows.put(log.lookup(line, event, topic, broker=broker, result=result))
        return True

    return take


def _acquired(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take `Successfully acquired ownership of OwnedBundle(bundle=b, ...)`: by the broker whose log it is."""
    if _ACQUIRED.search(event.message) is None:
        return False
    bundle = _bundle(event)
    log.ownership(line, event.ts, {"bundle": bundle, "event": "owned", "broker": log.broker or _pinned(bundle)})
    return True


def _selected(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take `Selected new owner broker: B for bundle: b.`."""
    found = _SELECTED.search(event.message)
    if found is None:
        return False
    broker = log.names.id_of(event.attributes.get("broker") or found["broker"] or "")
    values = {"bundle": _bundle(event), "event": "owned", "broker": broker, "by": "policy"}
    log.ownership(line, event.ts, values)
    return True


def _unloaded(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take `Successfully unloaded namespace bundle b`: an admin's, unless a shedder had just named the bundle."""
    if _UNLOADED.search(event.message) is None:
        return False
    bundle = _bundle(event)
    is_shed = event.ts - log.shed.get(bundle, -_SHED_LASTS_US) < _SHED_LASTS_US
    by = "policy" if is_shed else "admin"
    log.ownership(line, event.ts, {"bundle": bundle, "event": "unloaded", "broker": log.broker, "by": by})
    return True


def _shed(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take `Unloading bundle: b from broker B`, or an unload that prints its record."""
    found = _SHED.search(event.message)
    if found is None:
        return False
    bundle = _bundle(event)
    log.shed[bundle] = event.ts
    broker = log.names.id_of(found["broker"] or found["source"] or event.attributes.get("broker") or "")
    log.ownership(line, event.ts, {"bundle": bundle, "event": "unloaded", "broker": broker, "by": "policy"})
    return True


def _state(log: BrokerLog, line: int, event: LogEvent) -> bool:
    """Take a service unit's state record where the state changes who owns the bundle: Owned, Free, Splitting."""
    found = _STATE.search(event.message)
    if found is None:
        return False
    state, rest = found["state"], found["rest"]
    if state not in ("Owned", "Free", "Splitting"):
        return True
    bundle = _bundle(event)
    owner = _named(rest, "dstBroker")
    if log.states.get(bundle) == (state, owner):
        return True
    log.states[bundle] = (state, owner)
    log.ownership(line, event.ts, {"bundle": bundle, **_change(state, rest)})
    return True


def _change(state: str, rest: str) -> dict[str, Any]:
    """Return what a state means for the ownership of its bundle."""
    if state == "Owned":
        return {"event": "owned", "broker": _named(rest, "dstBroker")}
    if state == "Free":
        return {"event": "unloaded", "broker": _named(rest, "sourceBroker")}
    return {"event": "split", "broker": _named(rest, "dstBroker"), "boundaries": _cuts(rest)}


def _named(rest: str, name: str) -> str | None:
    found = re.search(rf"{name}=([^,\]]+)", rest)
    return None if found is None or found[1] == "null" else found[1]


def _cuts(rest: str) -> list[str]:
    """Return the boundaries of the children that a splitting record names, both ends included."""
    ends = {end for bounds in _RANGE.findall(rest) for end in bounds.split("_")}
    return sorted(ends, key=lambda end: int(end, 16))


def _bundle(event: LogEvent) -> str:
    """Return the bundle an event names; ValueError where it names none."""
    given = event.attributes.get("bundle") or event.message
    found = _BUNDLE.search(given)
    if found is None:
        raise ValueError("the line names no bundle of the form tenant/namespace/0x00000000_0x40000000")
    return found["bundle"]


def _pinned(bundle: str) -> str | None:
    """Return the broker that a heartbeat or SLA bundle names."""
    try:
        return pinned_broker(str(NamespaceName.parse(bundle.rpartition("/")[0])))
    except InvalidNameError:
        return None


def _address(text: str | None) -> str | None:
    """Return the host of a socket address as Java prints it, `/10.1.2.3:51234`; the port names no client."""
    found = _ADDRESS.match(text or "")
    return found["host"] if found else None


#: What takes an event, in this order.
MESSAGES: tuple[Callable[[BrokerLog, int, LogEvent], bool], ...] = (
    _asked,
    _result,
    _answered("connect", _SUCCEEDED),
    _answered("redirect", _REDIRECTED),
    _answered("failed", _NOBODY),
    _failed,
    _acquired,
    _selected,
    _unloaded,
    _shed,
    _state,
)
