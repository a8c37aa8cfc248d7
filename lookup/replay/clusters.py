"""Plan each cluster of a run from settings, small tables and the tasks' vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookup.engine.ledger import MICRO
from lookup.errors import InputError
from lookup.model.quoting import quantity
from lookup.replay import tables
from lookup.replay.atoms import AtomRule
from lookup.replay.coding import Share
from lookup.replay.days import Part
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.tables import SmallTable
from lookup.replay.timeline import (
    ClusterEvents,
    OwnershipEvent,
    Registration,
    Timeline,
    build_timeline,
    cut_points,
    registrations_of,
)
from lookup.replay.vocabulary import merge_words, recoding_of
from lookup.replay.work import WorkDir, write_quarantine
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import broker_intervals

__all__ = ["SmallInputs", "broker_names", "plan_cluster", "read_small_inputs", "require_scored"]

#: Quiet times have ticks too, so a replay would walk for years to one timestamp that is wrong by millennia.
_MOST_TICKS = 5_000_000


@dataclass(frozen=True)
class SmallInputs:
    """The tables that are read whole, on the driver."""

    settings: EvaluationFile
    brokers: SmallTable
    ownership: SmallTable
    loads: SmallTable
    bundles: SmallTable

    @property
    def quarantined(self) -> int:
        """Return how many rows of the small tables could not be used."""
        return sum(len(table.quarantined) for table in (self.brokers, self.ownership, self.loads, self.bundles))

    def registrations(self, cluster: str) -> list[Registration]:
        """Return a cluster's registry: from BROKERS if that table is given, else from broker profiles."""
        if self.settings.inputs.brokers is not None:
            return [row["value"] for row in self.brokers.of(cluster)]
        return registrations_of(broker_intervals(self.settings, cluster))

    def ownership_events(self, cluster: str) -> list[OwnershipEvent]:
        """Return a cluster's log of owners, in order of time."""
        return [row["value"] for row in self.ownership.of(cluster)]

    def cuts(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Return the hashes at which bundles are split, by cluster and namespace."""
        cuts: dict[str, dict[str, tuple[int, ...]]] = {}
        for cluster in self.ownership.rows:
            by_namespace = cuts.setdefault(cluster, {})
            for event in self.ownership_events(cluster):
                if event.event == "split":
                    namespace = event.bundle.rpartition("/")[0]
                    by_namespace[namespace] = tuple(sorted({*by_namespace.get(namespace, ()), *cut_points(event)}))
        return cuts


def read_small_inputs(settings: EvaluationFile, quarantine: str) -> SmallInputs:
    """Read BROKERS, OWNERSHIP, LOADS and BUNDLES, as far as they are given.

    Args:
        quarantine: folder for what cannot be used.
    """
    paths = settings.inputs
    by_name = {
        "brokers": tables.registrations(paths.brokers),
        "ownership": tables.ownership_events(paths.ownership),
        "loads": tables.load_rows(paths.loads if settings.evaluation.load == "reported" else None),
        "bundles": tables.bundle_rows(paths.bundles),
    }
    for name, table in by_name.items():
        write_quarantine(table.quarantined, name, quarantine, f"{name}.parquet")
    return SmallInputs(settings, **by_name)


def plan_cluster(
    cluster: str, place: int, shares: Sequence[Share], *, inputs: SmallInputs, run: RunPlan, work: WorkDir
) -> ClusterPlan:
    """Put together everything about one cluster but its rows.

    Raises:
        InputError: if neither a table nor the settings give the cluster a broker, or the log spans too many ticks.
    """
    words = merge_words(cluster, AtomRule(run.namespaces, inputs.cuts().get(cluster, {})), shares)
    intervals = broker_intervals(inputs.settings, cluster)
    events = ClusterEvents(
        registrations=inputs.registrations(cluster),
        ownership=inputs.ownership_events(cluster),
        brokers={interval.broker.id: interval.broker for interval in intervals},
    )
    if not events.registrations:
        raise InputError(f"cluster {cluster!r} of the log has no broker: {_why_no_broker(inputs)}")
    ticks = (words.last_us - words.first_us) // run.tick_us
    if ticks > _MOST_TICKS:
        first, last = (
            str(np.datetime64(ts_us, "us").astype("datetime64[D]")) for ts_us in (words.first_us, words.last_us)
        )
        raise InputError(
            f"cluster {cluster!r} of the log has lookups from {first} to {last}, "
            f"{ticks:,} ticks of {run.tick_us // MICRO} s: more than {_MOST_TICKS:,}; is a timestamp wrong?"
        )
    timeline = build_timeline(events, first_us=words.first_us, last_us=words.last_us, tick_us=run.tick_us)
    loads, bundles = f"loads/{place}.arrow", f"bundles/{place}.arrow"
    if run.is_reported:
        work.write(loads, tables.broker_numbers(inputs.loads.of(cluster), timeline.roster))
    if inputs.settings.inputs.bundles is not None:
        work.write(bundles, tables.bundle_numbers(inputs.bundles.of(cluster), words.atoms))
    brokers = broker_names(timeline)
    days: dict[int, list[Part]] = {}
    for share in shares:
        # Shares come in order of the log's files, which breaks ties between rows of one instant.
        recoding = recoding_of(words, share, brokers)
        for part in share.parts:
            days.setdefault(part.day, []).append(Part(part, recoding))
    return ClusterPlan(
        place=place,
        words=words,
        timeline=timeline,
        days=days,
        assumed_capacity=_assumed(timeline, words.counts["micro"]),
        logged=sum(words.by_broker.get(name, 0) for name in brokers),
        loads=loads if run.is_reported else None,
        bundle_loads=bundles if inputs.settings.inputs.bundles is not None else None,
    )


def require_scored(clusters: Sequence[ClusterPlan], warmup_us: int) -> None:
    """Refuse a warm-up that leaves no lookup of any cluster to score.

    Raises:
        InputError: naming the warm-up and the longest time there are lookups for.
    """
    last = []
    for cluster in clusters:
        bounds = cluster.timeline.bounds
        tick = int(np.searchsorted(bounds, cluster.words.last_us, side="right")) - 1
        last.append(int(bounds[tick] - bounds[0]))
    if any(after >= warmup_us for after in last):
        return
    raise InputError(
        f"warmup_s = {warmup_us // MICRO} leaves nothing to score: the last lookup of the log comes in the tick that "
        f"begins {max(last) // MICRO} s after the first one; a shorter warm-up or a longer log would do"
    )


def broker_names(timeline: Timeline) -> dict[str, int]:
    """Return roster numbers by every name that a log may have for a broker: its id and the addresses it ever had."""
    names = {broker.id: number for number, broker in enumerate(timeline.roster)}
    rosters = [events.registry[0] for events in timeline.events.values() if events.registry is not None]
    for roster in rosters:
        for number, broker in enumerate(roster):
            data = broker.lookup_data
            web = data.web_service_url, data.web_service_url_tls
            for url in (data.pulsar_service_url, data.pulsar_service_url_tls, *web):
                # The first broker keeps an address that a later one takes over.
                if url is not None:
                    names.setdefault(url, number)
    return names


def _why_no_broker(inputs: SmallInputs) -> str:
    if inputs.settings.inputs.brokers is None:
        return "no [[brokers]] entry is for it"
    unusable = inputs.brokers.quarantined
    if not unusable:
        return "the BROKERS table has no row of it"
    # The quarantine table goes with the output of a run that fails, so the sentence has the first row.
    first = unusable[0]
    count = quantity(len(unusable), "row that cannot be used", "rows that cannot be used")
    where = f"{first.source}, row {first.line}"
    return f"the BROKERS table has no usable row of it and {count}, first {where}: {first.reason}"


def _assumed(timeline: Timeline, micro: int) -> float | None:
    """Return the capacity that makes mean usage over the run 0.5, None if brokers have capacities of their own."""
    rosters = [events.registry[0] for events in timeline.events.values() if events.registry is not None]
    if any(broker.capacity is not None for roster in rosters for broker in roster):
        return None
    broker_us, registered = 0, np.zeros(len(timeline.roster), dtype=bool)
    for tick in range(timeline.n_ticks):
        events = timeline.events.get(tick)
        if events is not None and events.registry is not None:
            registered = events.registry[1]
        broker_us += int(registered.sum()) * int(timeline.bounds[tick + 1] - timeline.bounds[tick])
    return 2 * micro / broker_us if micro and broker_us else 1.0
