"""Concurrent lookups of one broker: which of them selects an owner, who joins it, and what all of them are answered.

Selecting itself, through filters and strategy, is the policy's business; how the choice is published is the channel's.

Source: ExtensibleLoadManagerImpl.assign (`docs/pulsar/load-managers.md`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from lookup.engine.booking import Counters
from lookup.engine.channel import Channel, Message, Settled, Waiting
from lookup.errors import StateError
from lookup.model.request import LookupOptions

__all__ = ["Assigns", "Joined", "Selecting"]


@dataclass(frozen=True, slots=True)
class Selecting:
    """The caller is to select a broker with these options and to hand it to `Assigns.chosen`."""

    unit: str
    options: LookupOptions


@dataclass(frozen=True, slots=True)
class Joined:
    """An assign of the same service unit is in progress; the caller gets its answer, whatever its own options are."""

    unit: str


Step: TypeAlias = Settled | Waiting | Selecting | Joined


class Assigns:
    """The assigns of one broker that are in progress, one for each service unit.

    The counters are Pulsar's: a choice counts as success before anybody has confirmed it, so that a failure may follow.
    """

    def __init__(self, channel: Channel, counters: Counters | None = None) -> None:
        self.channel = channel
        self.counters = counters or Counters()
        self._open: set[str] = set()

    def begin(self, unit: str, options: LookupOptions, *, registered: Collection[str], now_ms: int) -> Step:
        """Begin to answer a lookup.

        Returns:
            `Settled`: the answer. `Waiting`, `Joined`: it comes with the service unit's `Settled`. `Selecting`: nobody
            owns the unit, so the caller selects.

        Raises:
            ArgumentError: where the unit was split.
            StateError: where its owner is not registered.
        """
        if unit in self._open:
            return Joined(unit)
        answer = self.channel.owner(unit, registered=registered, now_ms=now_ms)
        if isinstance(answer, Settled) and answer.owner is None:
            if options.read_only:
                return answer
            self._open.add(unit)
            return Selecting(unit, options)
        self.counters.skip += 1
        if isinstance(answer, Waiting):
            self._open.add(unit)
            return answer
        return self._checked(answer, registered)

    def chosen(self, unit: str, broker: str | None, now_ms: int) -> Message | Settled:
        """Publish the choice of the caller that was told to select; without one everybody is answered with nobody."""
        if broker is None:
            self._open.discard(unit)
            return Settled(unit)
        self.counters.success += 1
        return self.channel.assign(unit, broker, now_ms)

    def end(self, settled: Settled, registered: Collection[str]) -> Settled:
        """End an assign with what the channel settled on, for its caller and all who joined.

        Raises:
            StateError: where nobody confirmed in time, the unit was split meanwhile or its owner is not registered.
        """
        self._open.discard(settled.unit)
        return self._checked(settled, registered)

    def _checked(self, answer: Settled, registered: Collection[str]) -> Settled:
        if answer.failed:
            self.counters.failure += 1
            raise StateError(f"{answer.unit} has no owner: it was deleted meanwhile, or nobody confirmed in time")
        if answer.owner is not None and answer.owner not in registered:
            self.counters.failure += 1
            raise StateError(f"{answer.unit} is owned by {answer.owner}, but that broker has not been registered")
        return answer
