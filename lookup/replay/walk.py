"""Walk over a cluster tick by tick, and keep the common state of walks, the registry, balance cells, and warm-up.

Rows are held by slices, a day or a part of a busy one (`days.py`). Days without lookups have ticks too, as time passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lookup.model import Roster
from lookup.model.request import LookupRequest
from lookup.replay.atoms import BundleMap
from lookup.replay.counted import CellLedger
from lookup.replay.days import (
    CodedPart,
    PartSlice,
    SliceRows,
    concat_slices,
    day_rows,
    days_of,
    last_row_per,
    rows_of,
    slices_of_day,
)
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.timeline import TickEvents
from lookup.replay.work import WorkDir

__all__ = [
    "ClusterWalk", "RegistryEpochs", "RequestMaker", "SliceReports", "Tick", "Walker", "walk_slices",
    "walk_together",
]  # fmt: skip

_NO_EVENTS = TickEvents()
_NO_ROWS = SliceRows({"ts": np.empty(0, np.int64)}, {})


@dataclass(frozen=True, slots=True)
class SliceReports:
    """The rows of LOADS and BUNDLES of a slice, None if the run has none. The first has earlier rows too."""

    loads: SliceRows | None = None
    bundles: SliceRows | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick and its rows, [low, high) of a slice."""

    number: int
    start_us: int
    end_us: int
    is_grid: bool
    events: TickEvents
    rows: SliceRows
    low: int
    high: int
    #: of the whole slice
    reports: SliceReports


class RegistryEpochs:
    """The rosters of a run's registry epochs, and the mask of the current one.

    An epoch is a stretch in which no broker comes, leaves, or changes its lookup data.
    """

    def __init__(self, roster: Roster) -> None:
        #: the roster of every epoch, in order
        self.rosters = [roster]
        self.registered: NDArray[np.bool_] = np.zeros(len(roster), dtype=bool)

    @property
    def epoch(self) -> int:
        """The number of the current roster."""
        return len(self.rosters) - 1

    def apply(self, registry: tuple[Roster, NDArray[np.bool_]]) -> None:
        """Begin a registry epoch."""
        roster, self.registered = registry
        self.rosters.append(roster)


class Walker(Protocol):
    """A walk over the slices of a cluster, in order."""

    def take(self, ticks: Sequence[Tick]) -> None:
        """Process the ticks of one slice, at least one. Rows of a slice are not kept beyond it."""


def walk_together(walkers: Sequence[Walker], cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> None:
    """Pass each slice to every walker before the next one is read."""
    for ticks in walk_slices(cluster, run, work):
        for walker in walkers:
            walker.take(ticks)
        # The rows of this slice, before the next one is read.
        del ticks


def walk_slices(cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> Iterator[list[Tick]]:
    """Yield the ticks of each slice in order, at least one. Only one slice's rows are held at a time."""
    timeline = cluster.timeline
    starts = timeline.bounds[:-1]
    days = days_of(starts, run.tick_us)
    walked = np.unique(days).tolist()
    reports = [None if table is None else table.days for table in (cluster.loads, cluster.bundle_loads)]
    for day in walked:
        first, stop = np.searchsorted(days, [day, day + 1]).tolist()
        parts = [cluster.days.get(day, ()), *(() if days is None else days.get(day, ()) for days in reports)]
        grid = starts[first:stop][timeline.is_grid[first:stop]]
        for piece in slices_of_day(work, parts, grid, most_rows=run.slice_rows):
            low, high = first, stop
            if piece.from_us is not None:
                low = int(np.searchsorted(starts, piece.from_us))
            if piece.until_us is not None:
                high = int(np.searchsorted(starts, piece.until_us))
            lookups, *reported = piece.tables
            earlier = None if low or day != walked[0] else day
            yield _build_ticks(
                cluster,
                rows_of(work, lookups) if lookups else _NO_ROWS,
                SliceReports(
                    *(
                        None if days is None else _read_reports(days, pieces, name, work, before=earlier)
                        for days, pieces, name in zip(reports, reported, ("broker", "bundle"), strict=True)
                    )
                ),
                range(low, high),
            )


def _build_ticks(cluster: ClusterPlan, rows: SliceRows, reports: SliceReports, numbers: range) -> list[Tick]:
    bounds, timeline = cluster.timeline.bounds, cluster.timeline
    borders = np.searchsorted(rows.ts, bounds[numbers.start : numbers.stop + 1]).tolist()
    return [
        Tick(
            number,
            int(bounds[number]),
            int(bounds[number + 1]),
            bool(timeline.is_grid[number]),
            timeline.events.get(number, _NO_EVENTS),
            rows,
            borders[place],
            borders[place + 1],
            reports,
        )
        for place, number in enumerate(numbers)
    ]


def _read_reports(
    days: Mapping[int, Sequence[CodedPart]],
    pieces: Sequence[PartSlice],
    name: str,
    work: WorkDir,
    *,
    before: int | None,
) -> SliceRows:
    """Build the reports of a slice. The first slice also gets the last report of each name from earlier days."""
    slices = [
        last_row_per(day_rows(work, parts), name)
        for day, parts in sorted(days.items())
        if before is not None and day < before
    ]
    return concat_slices([*slices, *([rows_of(work, pieces)] if pieces else [])])


class ClusterWalk:
    """The state of any walk over a cluster, its registry and the broker-time after the warm-up by balance cell."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        self._cluster, self._run = cluster, run
        self._registry = RegistryEpochs(cluster.timeline.roster)
        self._cells = CellLedger(cluster, run)
        #: ticks from here on are scored, and earlier ticks warm up
        self.scored_from = run.first_scored(int(cluster.timeline.bounds[0]))


class RequestMaker:
    """A builder of requests. Fields that no policy of the run reads are None."""

    def __init__(self, cluster: ClusterPlan, bundles: BundleMap) -> None:
        self._words, self._bundles = cluster.words, bundles
        self._fields = ("properties", *cluster.words.extras)

    def request(self, rows: SliceRows, row: int) -> LookupRequest:
        """Build the request of one row of a slice."""
        bundle: str = self._bundles.names[rows.value("atom", row)]
        codes = [rows.value(name, row) for name in self._fields]

        def make() -> LookupRequest:
            namespace, words = bundle.rpartition("/")[0], self._words
            extras = {name: words.extras[name][code] for name, code in zip(self._fields[1:], codes[1:], strict=True)}
            tenant, properties = namespace.partition("/")[0], words.properties[codes[0]]
            return LookupRequest(tenant=tenant, namespace=namespace, bundle=bundle, properties=properties, **extras)

        # The policies and replicates that share a slice have the same requests.
        return rows.once(("request", bundle, *codes), make)
