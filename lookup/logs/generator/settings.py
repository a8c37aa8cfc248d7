"""Set size, shape and seed of a synthetic log, and refuse figures that make no sense."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from lookup.errors import Argument, Sentence, SettingsError
from lookup.model.time import US_PER_S, moment_at, to_us

__all__ = ["GenerateSettings"]

#: Brokers started a day before the log, and no timestamp is below zero.
_FIRST_START = moment_at(86_400 * US_PER_S)
#: Last moment at which a log may end, since later ones do not have a date.
_LAST_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def _declare_figure(default: float, least: float, most: float) -> Any:
    return field(default=default, metadata={"range": (least, most)})


@dataclass(frozen=True)
class GenerateSettings:
    """Size, shape and seed of a synthetic log. Counts of brokers, clients and events are per cluster.

    Upper ends of figures keep client addresses (10.x.y.z by cluster and rack) distinct and column codes within 32 bits.

    Raises:
        SettingsError: with every figure out of range and every impossible combination.
    """

    #: rows of LOOKUPS over all clusters, hops and reconnects included
    lookups: int = _declare_figure(300_000, 1, 10_000_000_000)
    clusters: int = _declare_figure(2, 1, 40)
    #: length of the log
    hours: float = _declare_figure(6.0, 0.02, 24.0 * 366)
    #: start of the log, in UTC if it does not have a zone
    start: datetime = datetime(2026, 1, 5, tzinfo=UTC)
    #: partitions count as topics
    topics: int = _declare_figure(2_000, 1, 1_000_000)
    tenants: int = _declare_figure(8, 1, 10_000)
    namespaces: int = _declare_figure(24, 1, 100_000)
    bundles_per_namespace: int = _declare_figure(16, 1, 4_096)
    #: brokers that are ever registered
    brokers: int = _declare_figure(12, 1, 3_000)
    racks: int = _declare_figure(3, 1, 26)
    clients: int = _declare_figure(900, 1, 50_000)
    #: distinct client property sets, the empty one among them
    property_sets: int = _declare_figure(12, 1, 200)
    #: brokers that vanish, of which all but the last come back
    losses: int = _declare_figure(2, 0, 1_000)
    #: brokers that register late
    joins: int = _declare_figure(1, 0, 1_000)
    #: brokers that leave for good
    leaves: int = _declare_figure(1, 0, 1_000)
    #: brokers that register without a rack and get it later, by an update
    updates: int = _declare_figure(1, 0, 1_000)
    #: bundles unloaded by an administrator
    unloads: int = _declare_figure(2, 0, 10_000)
    splits: int = _declare_figure(2, 0, 10_000)
    #: exponent of the popularity of topics, 0 is uniform. Partitions divide the lookups of their topic
    zipf: float = _declare_figure(0.7, 0.0, 3.0)
    #: share of a topic's lookups that come from the rack of its team, in addition to lookups from there by chance
    rack_affinity: float = _declare_figure(0.6, 0.0, 1.0)
    #: seconds between load reports, 0 writes none, and the policy sees no load
    load_report_s: int = _declare_figure(60, 0, 86_400)
    #: the policy that places and moves bundles, either shipped or a TOML file with one policy
    policy: str = "stock-modular-4.2"
    seed: int = _declare_figure(1, 0, 2**63 - 1)

    def __post_init__(self) -> None:
        ranges = {each.name: each.metadata["range"] for each in fields(self) if each.metadata}
        problems = [
            Sentence(Argument(name), f" is {getattr(self, name)}, it must lie between {least} and {most}")
            for name, (least, most) in ranges.items()
            if not least <= getattr(self, name) <= most
        ]
        # Without valid hours there is no latest start.
        if not any(problem.startswith("hours ") for problem in problems):
            latest = _LAST_END - timedelta(seconds=math.ceil(self.hours * 3600))
            if not to_us(_FIRST_START) <= self.start_us <= to_us(latest):
                limits = f"{_text(_FIRST_START)} and {_text(latest)}"
                rule = f"must lie between {limits}, so that the log (hours: {self.hours:g}) ends within the year 9999"
                problems.append(Sentence(Argument("start"), f" is {self.start.isoformat()}, it {rule}"))
            elif self.start.microsecond:
                problems.append(Sentence(Argument("start"), f" is {self.start.isoformat()}, it must be a whole second"))
        problems += self._find_contradictions()
        if problems:
            raise SettingsError(problems)

    @property
    def start_us(self) -> int:
        """The start of the log, µs since the Unix epoch."""
        zoned = self.start if self.start.tzinfo else self.start.replace(tzinfo=UTC)
        return to_us(zoned)

    @property
    def end_us(self) -> int:
        """The end of the log, µs since the Unix epoch. The last lookup comes before it."""
        return self.start_us + round(self.hours * 3_600_000_000)

    def _find_contradictions(self) -> Iterator[Sentence]:
        moving = self.losses + self.joins + self.leaves + self.updates
        if moving > self.brokers or moving - self.updates >= self.brokers:
            losses, joins, leaves, updates = map(Argument, ("losses", "joins", "leaves", "updates"))
            total, brokers = f" is {moving}, it must not exceed ", Argument("brokers")
            why = f" ({self.brokers}): each befalls another broker, and one at least has to stay"
            yield Sentence(losses, " + ", joins, " + ", leaves, " + ", updates, total, brokers, why)
        for name, limit in (
            ("racks", "brokers"),
            ("racks", "clients"),
            ("tenants", "namespaces"),
            ("namespaces", "topics"),
        ):
            value, most = getattr(self, name), getattr(self, limit)
            if value > most:
                why = f" ({most}): every {name.removesuffix('s')} has one"
                yield Sentence(Argument(name), f" is {value}, it must not exceed ", Argument(limit), why)
        if self.clusters * self.racks > 200:
            product = f" is {self.clusters * self.racks}, it must not exceed 200"
            yield Sentence(Argument("clusters"), " times ", Argument("racks"), product)
        if 0 < self.lookups < self.clusters:
            below, least = f" is {self.lookups}, it must not be below ", f" ({self.clusters})"
            yield Sentence(Argument("lookups"), below, Argument("clusters"), least)


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
