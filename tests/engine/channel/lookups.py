"""Answer lookups as a broker does: one of several concurrent ones selects an owner, and all of them get its addresses.

The policy selects, through filters and strategy; the channel publishes the choice.

Source: ExtensibleLoadManagerImpl.assign, BrokerLookupData.toLookupResult (`docs/pulsar/load-managers.md`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from lookup.errors import NotFoundError, StateError
from lookup.model import BrokerLookupData, LookupOptions
from tests.engine.channel.broker import Channel, Message, Settled, Waiting

__all__ = ["RESULT_TYPE", "Assigns", "Joined", "LookupResult", "Selecting", "lookup_result"]


@dataclass
class Counters:
    """Pulsar's assignment counters: selections made, lookups of owned bundles, selections that failed."""

    success: int = 0
    skip: int = 0
    failure: int = 0


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

    The counters are Pulsar's: a choice counts as success before a broker has confirmed it, so a failure may follow.
    """

    def __init__(self, channel: Channel, counters: Counters | None = None) -> None:
        self.channel = channel
        self.counters = counters or Counters()
        self._open: set[str] = set()

    def begin(self, unit: str, options: LookupOptions, *, registered: Collection[str], now_ms: int) -> Step:
        """Begin to answer a lookup.

        Returns:
            `Settled`: the answer. `Waiting`, `Joined`: it comes with the `Settled` of the unit. `Selecting`: the unit
            has no owner, so the caller selects.

        Raises:
            ArgumentError: if the unit was split.
            StateError: if its owner is not registered.
        """
        # Pulsar keeps one future per service unit: a caller that comes later gets it whatever its own options are.
        if unit in self._open:
            return Joined(unit)
        answer = self.channel.owner(unit, registered=registered, now_ms=now_ms)
        if isinstance(answer, Settled) and answer.owner is None:
            if options.read_only:
                return answer
            self._open.add(unit)
            return Selecting(unit, options)
        # Counted as skipped even if the caller has to wait: the unit has, or is about to have, an owner.
        self.counters.skip += 1
        if isinstance(answer, Waiting):
            self._open.add(unit)
            return answer
        return self._checked(answer, registered)

    def chosen(self, unit: str, broker: str | None, now_ms: int) -> Message | Settled:
        """Publish the broker that the selecting caller chose; without one, answer all callers that it has no owner."""
        if broker is None:
            # Nothing was written, so no message of the channel will end this assign.
            self._open.discard(unit)
            return Settled(unit)
        self.counters.success += 1
        return self.channel.assign(unit, broker, now_ms)

    def end(self, settled: Settled, registered: Collection[str]) -> Settled:
        """End an assign with the answer of the channel, for its caller and all that joined.

        Raises:
            StateError: if no broker confirmed in time, the unit was split meanwhile or its owner is not registered.
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


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The answer a client gets: addresses of the broker that serves the topic."""

    broker: str
    broker_url: str | None = None
    broker_url_tls: str | None = None
    http_url: str | None = None
    http_url_tls: str | None = None
    authoritative_redirect: bool = False


#: Answers name a broker's addresses; other types of Pulsar's are of proxies and redirects.
RESULT_TYPE = "BrokerUrl"


def lookup_result(broker: str, data: BrokerLookupData, options: LookupOptions) -> LookupResult:
    """Return the addresses of a broker as a client with these options gets them.

    A listener replaces the binary addresses only, and an address that it lacks is absent from the answer; web addresses
    are always the broker's own.

    Raises:
        NotFoundError: if the broker does not have the listener.
    """
    # A blank name is no name: clients that have none configured send an empty one.
    binary = data.pulsar_service_url, data.pulsar_service_url_tls
    name = options.advertised_listener_name
    if name is not None and name.strip():
        if name not in data.advertised_listeners:
            known = ", ".join(sorted(data.advertised_listeners)) or "none"
            raise NotFoundError(f"broker {broker} does not have a listener {name!r}; it has {known}")
        listener = data.advertised_listeners[name]
        binary = listener.broker_service_url, listener.broker_service_url_tls
    return LookupResult(broker, *binary, data.web_service_url, data.web_service_url_tls)
