"""A model of one broker's end of the service-unit state channel: the records it knows, writes and acts on.

What Pulsar's examples are compared with; nothing in the package runs a channel. Messages go in by `receive` and by the
wishes of administrators and shedders (`assign`, `unload`); effects come out. There is no I/O and no clock: the caller
carries messages, and times are arguments. `lookups.py` has the lookups that select an owner.

Source: ServiceUnitStateChannelImpl (`docs/pulsar/load-managers.md`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lookup.engine.service_unit import (
    FIRST_VERSION,
    VERSION_MAX,
    VERSION_MIN,
    ChannelStorage,
    ServiceUnitState,
    ServiceUnitStateData,
    is_blank,
    should_keep_left,
    state_of,
)
from lookup.errors import ArgumentError, StateError

__all__ = [
    "ACTIVE", "IN_FLIGHT", "Channel", "Close", "Effect", "Message", "Serve", "Settled", "Waiting", "holder",
    "next_version",
]  # fmt: skip

_S = ServiceUnitState
#: States that a broker is expected to end soon.
IN_FLIGHT = frozenset({_S.ASSIGNING, _S.RELEASING, _S.SPLITTING})
#: States in which a broker serves the unit or is about to.
ACTIVE = IN_FLIGHT | {_S.OWNED}


@dataclass(frozen=True, slots=True)
class Message:
    """A record that is written for a service unit; None is a tombstone, which removes the record."""

    unit: str
    data: ServiceUnitStateData | None


@dataclass(frozen=True, slots=True)
class Serve:
    """The broker begins to serve a service unit; listeners hear of it as loaded."""

    unit: str


@dataclass(frozen=True, slots=True)
class Close:
    """The broker closes a service unit's topics; listeners hear of it as unloaded."""

    unit: str
    #: clients are disconnected; else they stay until the new owner serves the unit
    disconnects: bool = True


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer to all callers that asked for a service unit's owner."""

    unit: str
    #: None: no broker
    owner: str | None = None
    #: the wait ended without owner: the unit was deleted meanwhile, or time ran out before a broker confirmed
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """No answer yet: the caller gets the `Settled` of the service unit."""

    unit: str


Effect: TypeAlias = Message | Serve | Close | Settled


def next_version(data: ServiceUnitStateData | None) -> int:
    """Return the version of the record to follow; after the largest comes the smallest."""
    # A tombstone removes the version as well, so a unit that is used again begins anew.
    if data is None:
        return FIRST_VERSION
    return VERSION_MIN if data.version_id == VERSION_MAX else data.version_id + 1


def holder(data: ServiceUnitStateData | None) -> str | None:
    """Return the broker that a record names as owner, present or future; None if it names none."""
    if data is None or data.state in (_S.INIT, _S.FREE, _S.DELETED):
        return None
    broker = data.source_broker if data.state is _S.SPLITTING else data.dst_broker
    return None if is_blank(broker) else broker


class Channel:
    """One broker's end of the channel.

    Args:
        broker: whose end it is.
        multi_phase: clients of a transferred unit stay until its new owner serves it
            (Pulsar: loadBalancerMultiPhaseBundleUnload).
    """

    def __init__(
        self, broker: str, storage: ChannelStorage = ChannelStorage.SYSTEM_TOPIC, *, multi_phase: bool = True
    ) -> None:
        self.broker = broker
        self.storage = storage
        #: record by service unit
        self.records: dict[str, ServiceUnitStateData] = {}
        self._multi_phase = multi_phase
        #: since when, in ms, callers have waited for a unit's owner
        self._waits: dict[str, int] = {}

    # Messages that others write.

    def restore(self, records: Mapping[str, ServiceUnitStateData], now_ms: int) -> list[Effect]:
        """Take over the records as they stand when this broker starts, and serve what it owns by them.

        What is in flight to this broker is left to the leader's monitor.
        """
        self.records.update(records)
        owned = [entry for entry in sorted(records.items()) if entry[1].state is _S.OWNED]
        mine = [(unit, data) for unit, data in owned if data.dst_broker == self.broker]
        return [effect for unit, data in mine for effect in self._act(unit, data, now_ms)]

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Read a message of the channel, this broker's own included, and return what follows from it here.

        A message that the conflict rule rejects changes nothing; callers that wait get the owner if there is one.
        """
        before = self.records.get(message.unit)
        if should_keep_left(before, message.data, self.storage):
            return self._settle(message.unit, holder(before)) if state_of(before) is _S.OWNED else []
        if message.data is None:
            self.records.pop(message.unit, None)
            return self._settle(message.unit, None)
        self.records[message.unit] = message.data
        return self._act(message.unit, message.data, now_ms)

    def _act(self, unit: str, data: ServiceUnitStateData, now_ms: int) -> list[Effect]:
        """Return the effects of a record on this broker; other brokers act when they read the same record."""
        match data.state:
            case _S.OWNED:
                settled = self._settle(unit, data.dst_broker)
                if data.dst_broker == self.broker:
                    return [Serve(unit), *settled]
                # After a transfer in phases the source closes only now, when clients can go to the new owner.
                closes = data.source_broker == self.broker and (self._multi_phase or data.force)
                return [Close(unit), *settled] if closes else settled
            case _S.ASSIGNING if data.dst_broker == self.broker:
                return [self._next(unit, _S.OWNED, data.dst_broker, data.source_broker, now_ms=now_ms)]
            case _S.RELEASING if data.source_broker == self.broker:
                is_transfer = not is_blank(data.dst_broker)
                state = _S.ASSIGNING if is_transfer else _S.FREE
                closed = Close(unit, disconnects=not (is_transfer and self._multi_phase))
                return [closed, self._next(unit, state, data.dst_broker, data.source_broker, now_ms=now_ms)]
            case _S.FREE if data.force and data.source_broker == self.broker:
                # After a plain unload the topics are closed already; an override finds them open if this broker lives.
                return [Close(unit), *self._settle(unit, None)]
            case _S.FREE | _S.INIT:
                return self._settle(unit, None)
            case _S.DELETED:
                # Lookups that wait for a bundle that was split cannot be answered: they have to ask for its child.
                return [Settled(unit, failed=True)] if self._waits.pop(unit, None) is not None else []
        return []

    def _settle(self, unit: str, owner: str | None) -> list[Effect]:
        return [Settled(unit, owner)] if self._waits.pop(unit, None) is not None else []

    # Messages that this broker writes.

    def assign(self, unit: str, broker: str, now_ms: int) -> Message:
        """Ask a broker to own a service unit; callers wait for the broker that owns it in the end."""
        self._waits.setdefault(unit, now_ms)
        return self._next(unit, _S.ASSIGNING, broker, None, now_ms=now_ms)

    def unload(self, unit: str, destination: str | None = None, *, now_ms: int) -> Message:
        """Ask a service unit's owner to give it up, to `destination` if one is named.

        Raises:
            StateError: if no broker owns the unit.
            ArgumentError: if `destination` owns it already, or the unit was split.
        """
        owner = self._required_owner(unit)
        # Upstream compares by the end of the id: `b1:8080` may not take over from `ab1:8080`.
        if destination is not None and owner.endswith(destination):
            raise ArgumentError(
                f'{unit} is owned by {owner} and "cannot be transfer to same broker", as Pulsar puts it: {destination}'
            )
        return self._next(unit, _S.RELEASING, destination, owner, now_ms=now_ms)

    def _required_owner(self, unit: str) -> str:
        data = self.records.get(unit)
        if state_of(data) is _S.DELETED:
            raise ArgumentError(f"{unit} is deleted: it was split, so look its topics up again")
        owner = holder(data)
        if owner is None:
            raise StateError(f"{unit} is not owned by any broker")
        return owner

    def _next(
        self, unit: str, state: ServiceUnitState, destination: str | None, source: str | None, *, now_ms: int
    ) -> Message:
        version = next_version(self.records.get(unit))
        return Message(unit, ServiceUnitStateData(state, destination, source, timestamp=now_ms, version_id=version))

    # Answers that this broker gives.

    def owner(self, unit: str, *, registered: Collection[str], now_ms: int) -> Settled | Waiting:
        """Return the owner of a service unit, now or when that is settled.

        Args:
            registered: the brokers in the registry. If this broker is missing itself, it has trouble with the registry,
                and recorded owners are believed.

        Raises:
            ArgumentError: if the unit was split.
        """
        data = self.records.get(unit)
        state = state_of(data)
        if state is _S.DELETED:
            raise ArgumentError(f"{unit} is deleted: it was split, so look its topics up again")
        broker = holder(data)
        if state in (_S.ASSIGNING, _S.RELEASING):
            is_settled = broker != self.broker
        else:
            # A caller that asks while others wait is answered with them, even if the owner has returned by now.
            is_settled = broker is None or (broker in registered and unit not in self._waits)
        if is_settled or self.broker not in registered:
            return Settled(unit, broker)
        self._waits.setdefault(unit, now_ms)
        return Waiting(unit)

    def destination(self, unit: str) -> str | None:
        """Return the broker that clients of a unit are sent to while it is unloaded; None if they must look it up."""
        return holder(self.records.get(unit))
