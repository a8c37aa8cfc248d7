"""A model of brokers joined by a service-unit state channel, step by step in any order or until nothing is left to do.

Messages of a broker first go to its outbox. `publish` appends the oldest of them to the one sequence all brokers read,
`deliver` lets a broker read its next message; `settle` does both until all is read. With real brokers network and
threads decide which broker is next, here the test does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lookup.engine.service_unit import ChannelStorage, ServiceUnitStateData, should_keep_left
from tests.engine.channel.broker import Channel, Close, Effect, Message, Serve, Settled

__all__ = ["ChannelBroker", "Channels"]


@dataclass(eq=False)
class ChannelBroker:
    """One broker: its end of the channel, what it has written and not published, and what it did."""

    channel: Channel
    #: how many messages of the sequence it has read
    read: int = 0
    outbox: deque[Message] = field(default_factory=deque)
    #: service units it serves
    serving: set[str] = field(default_factory=set)
    #: calls of ownership listeners
    loads: int = 0
    unloads: int = 0
    #: answers to callers of this broker, in order
    settled: list[Settled] = field(default_factory=list)

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Apply the effects that the channel returned."""
        for effect in effects:
            match effect:
                case Message():
                    self.outbox.append(effect)
                case Serve(unit):
                    self.loads += 1
                    self.serving.add(unit)
                case Close(unit):
                    self.unloads += 1
                    self.serving.discard(unit)
                case Settled():
                    self.settled.append(effect)


class Channels:
    """Several brokers and the sequence of messages between them.

    Args:
        options: of every broker's `Channel`.
    """

    def __init__(
        self, brokers: Iterable[str], storage: ChannelStorage = ChannelStorage.SYSTEM_TOPIC, *, multi_phase: bool = True
    ) -> None:
        self.storage = storage
        self.log: list[Message] = []
        #: the brokers that run, by id
        self.brokers: dict[str, ChannelBroker] = {}
        #: the current time, ms; only `now_ms += ...` advances it
        self.now_ms = 0
        self._multi_phase = multi_phase
        for broker in sorted(brokers):
            self.start(broker)

    def start(self, broker: str) -> ChannelBroker:
        """Let a broker begin with the records as they stand."""
        channel = Channel(broker, self.storage, multi_phase=self._multi_phase)
        started = self.brokers[broker] = ChannelBroker(channel, read=len(self.log))
        started.carry_out(channel.restore(self.records(), self.now_ms))
        return started

    def records(self) -> Mapping[str, ServiceUnitStateData]:
        """Return the records as compaction of the whole sequence leaves them."""
        records: dict[str, ServiceUnitStateData] = {}
        for message in self.log:
            if should_keep_left(records.get(message.unit), message.data, self.storage):
                continue
            if message.data is None:
                records.pop(message.unit, None)
            else:
                records[message.unit] = message.data
        return records

    def publish(self, broker: str) -> None:
        """Publish the oldest message of a broker's outbox."""
        self.log.append(self.brokers[broker].outbox.popleft())

    def deliver(self, broker: str) -> None:
        """Let a broker read its next message and do what follows."""
        reader = self.brokers[broker]
        message = self.log[reader.read]
        reader.read += 1
        reader.carry_out(reader.channel.receive(message, self.now_ms))

    def settle(self) -> None:
        """Publish and deliver until everything is read, broker by broker."""
        while busy := self.busy():
            broker, has_unread = busy[0]
            self.deliver(broker) if has_unread else self.publish(broker)

    def busy(self) -> list[tuple[str, bool]]:
        """Return the brokers that have a message to read (true), or else one to publish (false)."""
        return [
            (name, broker.read < len(self.log))
            for name, broker in self.brokers.items()
            if broker.read < len(self.log) or broker.outbox
        ]
