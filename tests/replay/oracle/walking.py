"""One policy, cluster and seed: its load, and its figures, whole and by part; owners are in `exclusive`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.policy import Policy
from lookup.engine.reporting import Measured, ReportBoard
from lookup.model.broker import Broker
from lookup.model.load import Load
from lookup.model.load_data import broker_load_from_json
from tests.replay.oracle.bundles import bundle_at
from tests.replay.oracle.reading import MICRO, Demand, Row
from tests.replay.oracle.world import Tick, World
from tests.score.oracle import Change, Happenings, Lookup, measure_all

__all__ = ["Figures", "Told", "Walk", "counted"]

Figures = dict[tuple[str, str | None], float]
#: What LOADS may tell besides usage and throughput: the keys that do, and the figure.
_REPORTED: dict[str, tuple[tuple[str, ...], Any]] = {
    "max_usage": (("maxResourceUsage",), lambda data: data.max_resource_usage),
    "smoothed_throughput": (("msgThroughputEMA",), lambda data: data.msg_throughput_ema),
    "rate": (("msgRateIn", "msgRateOut"), lambda data: data.msg_rate_in + data.msg_rate_out),
    "topics": (("topics",), lambda data: data.topics),
}
_RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")


@dataclass
class Told:
    """What one policy with one seed did in one cluster."""

    decisions: list[Row]
    owners: list[Row]
    figures: Figures
    #: by part of the demand, `(("tenant", "t1"),)`
    parts: dict[tuple[tuple[str, str], ...], Figures] = field(default_factory=dict)
    #: broker of each lookup, None for unanswered, as one line per lookup
    answers: list[str | None] = field(default_factory=list)
    #: what came of every cycle of the shedder; empty for a policy without shedder
    cycles: list[Row] = field(default_factory=list)


class Walk:
    """One policy, cluster and seed, without its owners."""

    def __init__(self, world: World, policy: Policy, seed: int) -> None:
        self.world, self.policy, self.seed = world, policy, seed
        section = world.section
        per_weight = section.bytes_per_weight or 1.0
        conditions = Conditions(
            owner_loss=section.owner_loss,
            namespaces=world.namespaces,
            topology=world.topology,
            assumed_capacity=world.assumed,
            broker_bytes=per_weight if world.loads is None and world.bundles is None else 1.0,
            bundle_bytes=per_weight if world.bundles is None else 1.0,
            salt=str(seed),
        )
        self.manager = LoadManager(policy, world.name, world.roster, seed=seed, conditions=conditions)
        self.boundaries = {name: list(known) for name, known in world.first_boundaries.items()}
        #: lookups of the complete cells, newest last, and of the open one
        self.cells: list[list[Demand]] = []
        self.open: list[Demand] = []
        self.lookups: list[Lookup] = []
        self.usage = [float("nan")] * len(world.roster)
        self.usage_s: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.decisions: list[Row] = []
        self.registered: list[bool] = [False] * len(world.roster)
        #: the last report of each broker, and those to come, the next one last
        self.reports: dict[str, Row] = {}
        self.unread = list(reversed(world.loads or ()))
        #: where brokers publish their load now and then
        self.board = ReportBoard(len(world.roster), world.start, policy.cadence)

    def register(self, tick: Tick) -> None:
        """Begin a registry epoch where a tick does; who is not registered has no report."""
        if tick.registry is not None:
            roster, self.registered = tick.registry
            self.manager.set_registry(roster, np.array(self.registered))
            self.board.leave(~np.array(self.registered), tick.start)

    def show(self, figures: Load, bundles: Sequence[int], now: int) -> None:
        """Put what brokers measure, or what they published of it, into the view."""
        self.usage = figures.usage.tolist()
        if self.world.section.load_reports == "published":
            rate = figures.throughput if figures.rates is None else figures.rates
            measured = Measured(figures.usage, figures.throughput, rate, np.array(bundles), figures.topics)
            seen = self.board.measure(measured, now)
            figures = Load(
                seen.usage,
                seen.throughput,
                seen.topics,
                figures.top_bundles,
                figures.demand,
                max_usage=seen.max_usage,
                smoothed_throughput=seen.throughput_ema,
                updated_us=seen.reported_us,
                rates=None if figures.rates is None else seen.rate,
                long_term_rates=figures.long_term_rates,
                long_term_bundle_rates=figures.long_term_bundle_rates,
                bundle_unit=figures.bundle_unit,
            )
        self.manager.set_load(figures)

    def bundle(self, one: Demand) -> str:
        """Return the bundle of a lookup as of now."""
        return bundle_at(one.namespace, one.hashed, self.boundaries[one.namespace])

    def note_usage(self, tick: Tick) -> None:
        """Book a tick's broker-time."""
        for number, broker in enumerate(self.manager.roster):
            if self.registered[number] and self.usage[number] == self.usage[number]:
                booked = self.usage_s[self.world.cell(tick.start), broker.id]
                seconds = (tick.end - tick.start) / MICRO
                booked[0] += seconds
                booked[1] += seconds * (self.usage[number] > self.world.section.overload_threshold)

    def demand_by_label(self) -> dict[str, dict[str, float]]:
        """Return the weight per second of the last cell by value of every label."""
        sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for one in self.cells[-1] if self.cells else ():
            for key, value in one.properties.items():
                sums[key][value] += one.micro
        per_second = {
            key: {
                value: micro / (MICRO * self.world.section.tick_s) for value, micro in sorted(values.items()) if micro
            }
            for key, values in sums.items()
        }
        return {key: values for key, values in per_second.items() if values}

    def reported_at(self, now: int, topics: Sequence[int]) -> Load:
        """Return what brokers last reported; of messages and resources only where any row of LOADS tells.

        Args:
            topics: by broker, where no row tells any.
        """
        while self.unread and self.unread[-1]["ts"] <= now:
            row = self.unread.pop()
            if self.world.roster.number(row["broker"]) is not None:
                self.reports[row["broker"]] = json.loads(row["load"])
        columns = {name: self._column(keys, figure) for name, (keys, figure) in _REPORTED.items()}
        found = [self._column((resource,), _percent(resource), among=_RESOURCES) for resource in _RESOURCES]
        told = columns["topics"]
        return Load(
            self._column((), lambda data: data.weighted_max_ema, among=None),
            self._column((), lambda data: data.msg_throughput_in + data.msg_throughput_out, among=None),
            np.array(topics) if told is None else np.nan_to_num(told).astype(np.int64),
            [()] * len(self.world.roster),
            self.demand_by_label(),
            "reported",
            max_usage=columns["max_usage"],
            smoothed_throughput=columns["smoothed_throughput"],
            resources=None if found[0] is None else np.array(found).T,
            rates=columns["rate"],
        )

    def _column(self, keys: Sequence[str], figure: Any, *, among: Sequence[str] | None = ()) -> Any:
        """Return a figure by broker, NaN where its last report has none of some keys; None where no row has any."""
        wanted = set(among or keys)
        rows = [
            json.loads(row["load"])
            for row in self.world.loads or ()
            if self.world.roster.number(row["broker"]) is not None
        ]
        if among is not None and not any(wanted & row.keys() for row in rows):
            return None
        told = [self.reports.get(broker.id) for broker in self.world.roster]
        return np.array(
            [
                float("nan")
                if row is None or (among is not None and not wanted & row.keys())
                else figure(broker_load_from_json(json.dumps(row)))
                for row in told
            ],
            dtype=np.float64,
        )

    def window(self) -> list[Demand]:
        """Return the lookups of the last `session_s`."""
        size = self.world.section.session_s // self.world.section.tick_s
        return [one for cell in self.cells[-size:] for one in cell]

    def happenings(self, lookups: Sequence[Lookup], changes: Sequence[Change] | None, hour: int | None) -> Happenings:
        """Put together what metrics are about, in the whole run or in one hour of it."""
        world = self.world
        cells = {cell: ids for cell, ids in world.registered_cells().items() if hour is None or _hour(cell[1]) == hour}
        usage = [
            (known, over) for (cell, _), (known, over) in self.usage_s.items() if hour is None or _hour(cell) == hour
        ]
        return world.happenings(lookups, cells, changes=changes, usage_s=None if world.assumed is not None else usage)

    def parts(self, by: Sequence[str], changes: Sequence[Change] | None) -> dict[Any, Figures]:
        """Return the figures of every part of the demand."""
        return {
            ((dimension, value),): _figures_of(self, dimension, value, changes)
            for dimension in by
            for value in sorted({_value_of(dimension, one) for one in self.lookups} - {None})
        }


def _percent(key: str) -> Any:
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
    return lambda data: getattr(data, name).percent_usage


def counted(world: World, one: Demand, broker: Broker | None) -> Lookup:
    """Return a lookup as metrics see it, answered by a broker or nobody."""
    logged = world.roster_id(one.logged) or one.logged
    return Lookup(world.name, one.ts, world.unit(one), broker, one.client_class, one.micro / MICRO, logged=logged)


def _hour(ts: int) -> int:
    return ts // (3600 * MICRO)


def _value_of(dimension: str, one: Lookup | Change) -> Any:
    if dimension == "hour":
        return datetime.fromtimestamp(_hour(one.ts) * 3600, tz=UTC).strftime("%Y-%m-%dT%H:00Z")
    if dimension == "rack":
        return one.client.properties.get("rack") if isinstance(one, Lookup) else None
    namespace = one.bundle.rpartition("/")[0]
    return namespace if dimension == "namespace" else namespace.partition("/")[0]


def _figures_of(walk: Walk, dimension: str, value: Any, changes: Sequence[Change] | None) -> Figures:
    lookups = [one for one in walk.lookups if _value_of(dimension, one) == value]
    kept = None if changes is None or dimension == "rack" else [c for c in changes if _value_of(dimension, c) == value]
    hour = _hour(lookups[0].ts) if dimension == "hour" else None
    figures = measure_all(walk.happenings(lookups, kept, hour))
    if dimension in ("rack", "hour"):
        figures.pop(("agreement_ratio", None))
    if dimension != "hour":
        figures.pop(("overload_ratio", None), None)
    return figures
