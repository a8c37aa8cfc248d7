"""Write the leader's overrides of records that no other broker would end: those of a lost broker, and stuck ones.

Only the records to write are determined here. The caller knows the leader and whether a broker is really lost (Pulsar
checks its health first), and passes in a function that selects a new owner.

Source: ServiceUnitStateChannelImpl (`docs/pulsar/load-managers.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from lookup.engine.service_unit import ServiceUnitState, ServiceUnitStateData, is_blank
from lookup.model.names import is_system_bundle
from tests.engine.channel.broker import ACTIVE, IN_FLIGHT, Message, holder, next_version

__all__ = ["STUCK_MS", "TOMBSTONE_MS", "clean_up", "monitor"]

_S = ServiceUnitState
#: States whose records are kept for a while and then removed.
_SEMI_TERMINAL = frozenset({_S.FREE, _S.DELETED})

#: How long a state may be in flight before the monitor ends it; Pulsar:
#: loadBalancerInFlightServiceUnitStateWaitingTimeInMillis.
STUCK_MS = 30_000
#: How long the record of a unit without owner is kept; Pulsar:
#: loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds.
TOMBSTONE_MS = 3_600_000

#: Chooses a broker for a service unit that is none of those excluded; None if there is none.
Select: TypeAlias = Callable[[str, frozenset[str]], str | None]

_Records: TypeAlias = Mapping[str, ServiceUnitStateData]


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Overrides for the bundles of a lost broker."""

    first: tuple[Message, ...]
    #: those of system namespaces, to be written when the others have settled
    last: tuple[Message, ...]


def clean_up(records: _Records, lost: str, select: Select, *, now_ms: int, gracefully: bool = False) -> Cleanup:
    """Return the overrides that take every bundle from a lost broker.

    Args:
        gracefully: the broker is shutting down and can still release what it owns.
    """
    messages = []
    for unit, data in sorted(records.items()):
        # In flight, the source is involved as well: no other broker would close its topics or create the children.
        is_owner = data.dst_broker == lost and data.state in ACTIVE
        if is_owner or (data.source_broker == lost and data.state in IN_FLIGHT):
            messages.append(_override(unit, data, lost, select, now_ms=now_ms, gracefully=gracefully))
    # System namespaces hold the channel's own topic: while their bundles move, nothing else could be written.
    last = [message for message in messages if is_system_bundle(message.unit)]
    return Cleanup(tuple(message for message in messages if message not in last), tuple(last))


def _override(
    unit: str,
    data: ServiceUnitStateData,
    lost: str | None,
    select: Select,
    *,
    now_ms: int,
    gracefully: bool = False,
) -> Message:
    """Return the record that ends an active state by force, one version above all that brokers have read.

    Match -> Result, `new` being the broker that `select` chooses:
        * no broker to choose -> Free, from the owner there was
        * Splitting -> Splitting, done by `new`
        * Owned, gracefully, by another than `new` -> Releasing to `new`
        * Owned -> Owned by `new`, from its owner unless that is `new`
        * Assigning, Releasing -> Owned by `new`, from its source unless that is `new`

    Args:
        lost: the broker that must not be chosen; None if a state is only stuck.
    """
    new = select(unit, frozenset() if lost is None else frozenset({lost}))
    forced = replace(data, force=True, timestamp=now_ms, version_id=next_version(data))
    if new is None:
        owner = lost or holder(data) or data.source_broker
        return Message(unit, replace(forced, state=_S.FREE, dst_broker=None, source_broker=owner, split={}))
    if data.state is _S.SPLITTING:
        return Message(unit, replace(forced, source_broker=new))
    source = data.dst_broker if data.state is _S.OWNED else data.source_broker
    source = None if source == new else source
    state = _S.RELEASING if gracefully and data.state is _S.OWNED and source is not None else _S.OWNED
    # A stuck Releasing or Assigning becomes Owned at once: another step might get stuck like the one before.
    return Message(unit, replace(forced, state=state, dst_broker=new, source_broker=source))


def monitor(
    records: _Records,
    registered: Collection[str],
    select: Select,
    *,
    now_ms: int,
    stuck_ms: int = STUCK_MS,
    tombstone_ms: int = TOMBSTONE_MS,
) -> list[Message]:
    """Return the overrides and tombstones that the leader writes when it periodically checks all records.

    Match -> Result:
        * active, of a broker that is not registered -> overridden, without that broker
        * in flight for more than `stuck_ms` -> overridden
        * Free or Deleted for more than `tombstone_ms` -> removed
    """
    messages = []
    for unit, data in sorted(records.items()):
        age = now_ms - data.timestamp
        # An owned unit's source is history; that it is gone matters only while it still has a part to play.
        named = (data.dst_broker, data.source_broker if data.state in IN_FLIGHT else None)
        missing = [broker for broker in named if broker and not is_blank(broker) and broker not in registered]
        lost = missing[0] if missing and data.state in ACTIVE else None
        if lost is not None or (data.state in IN_FLIGHT and age > stuck_ms):
            messages.append(_override(unit, data, lost, select, now_ms=now_ms))
        elif data.state in _SEMI_TERMINAL and age > tombstone_ms:
            messages.append(Message(unit, None))
    return messages
