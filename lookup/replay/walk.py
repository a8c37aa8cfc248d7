"""Walk over a cluster tick by tick, and keep the state that every walk needs: registry, balance cells, warm-up.

Days without lookups have ticks too: time does not stop for a quiet cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lookup.engine.manager import LoadManager
from lookup.engine.policy import Policy
from lookup.engine.reporting import ReportBoard
from lookup.model import Load, Roster
from lookup.replay.atoms import BundleMap
from lookup.replay.cells import CellLedger
from lookup.replay.days import DayRows, Part, day_rows, days_of, joined, standing
from lookup.replay.plan import ClusterPlan, RunPlan, new_manager
from lookup.replay.requests import RequestMaker
from lookup.replay.timeline import TickEvents
from lookup.replay.work import WorkDir

__all__ = [
    "ClusterWalk", "PolicyWalk", "Publications", "Registry", "Reports", "Tick", "Walker", "walk_days", "walk_together",
]  # fmt: skip

_NO_EVENTS = TickEvents()
_NO_ROWS = DayRows({"ts": np.empty(0, np.int64)}, {})


@dataclass(frozen=True, slots=True)
class Reports:
    """The rows of LOADS and BUNDLES of a day, None if the run has none; those of the first day begin with what held."""

    loads: DayRows | None = None
    bundles: DayRows | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick and its rows, [low, high) of a day."""

    number: int
    start_us: int
    end_us: int
    is_grid: bool
    events: TickEvents
    rows: DayRows
    low: int
    high: int
    #: of the whole day
    reports: Reports


class Registry:
    """The rosters of a run's registry epochs, and the mask of the current one.

    An epoch is a stretch between changes of the registry: a broker comes, leaves, or changes its lookup data.
    """

    def __init__(self, roster: Roster) -> None:
        #: the roster of every epoch, in order
        self.rosters = [roster]
        self.registered: NDArray[np.bool_] = np.zeros(len(roster), dtype=bool)

    @property
    def epoch(self) -> int:
        """Return the number of the current roster."""
        return len(self.rosters) - 1

    def apply(self, registry: tuple[Roster, NDArray[np.bool_]]) -> None:
        """Begin a registry epoch."""
        roster, self.registered = registry
        self.rosters.append(roster)


class Walker(Protocol):
    """A walk over the days of a cluster, in order."""

    def day(self, ticks: Sequence[Tick]) -> None:
        """Process the ticks of one day, at least one."""


def walk_together(walkers: Sequence[Walker], cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> None:
    """Pass each day to every walker before the next day is read."""
    for ticks in walk_days(cluster, run, work):
        for walker in walkers:
            walker.day(ticks)


def walk_days(cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> Iterator[list[Tick]]:
    """Yield the ticks of each day in order; one day's rows are held at a time."""
    timeline = cluster.timeline
    starts = timeline.bounds[:-1]
    days = days_of(starts, run.tick_us)
    walked = np.unique(days).tolist()
    for day in walked:
        parts = cluster.days.get(day)
        rows = _NO_ROWS if parts is None else day_rows(work, parts)
        first, stop = np.searchsorted(days, [day, day + 1]).tolist()
        borders = np.searchsorted(rows.ts, timeline.bounds[first : stop + 1]).tolist()
        reports = Reports(
            *(
                None if table is None else _reported(table.days, name, day, work, is_first=day == walked[0])
                for table, name in ((cluster.loads, "broker"), (cluster.bundle_loads, "bundle"))
            )
        )
        yield [
            Tick(
                number,
                int(starts[number]),
                int(timeline.bounds[number + 1]),
                bool(timeline.is_grid[number]),
                timeline.events.get(number, _NO_EVENTS),
                rows,
                borders[number - first],
                borders[number - first + 1],
                reports,
            )
            for number in range(first, stop)
        ]


def _reported(days: Mapping[int, Sequence[Part]], name: str, day: int, work: WorkDir, *, is_first: bool) -> DayRows:
    """Return the reports of a day.

    Args:
        name: column of what a report is of.
        is_first: nothing was read before: reports of earlier days come along, the last one of each name.
    """
    held = [standing(day_rows(work, parts), name) for early, parts in sorted(days.items()) if is_first and early < day]
    return joined([*held, *([day_rows(work, days[day])] if day in days else [])])


class ClusterWalk:
    """The state of any walk over a cluster: its registry, and broker-time in the balance cells after the warm-up."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        self._cluster, self._run = cluster, run
        self._registry = Registry(cluster.timeline.roster)
        self._cells = CellLedger(run, len(cluster.timeline.roster))
        #: ticks from here on are scored; those before warm up
        self._scored_from = int(cluster.timeline.bounds[0]) + run.warmup_us


class Publications:
    """The load reports of one cluster under one policy; passes load on as it is if reports are instant.

    Policies then see simulated load as brokers last published it, at the policy's cadence; the arithmetic is the
    engine's. The ledger itself, and with it every metric, stays what was measured.

    Source: `docs/decisions/load-reports.md`; `docs/pulsar/load-managers.md`.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy) -> None:
        timeline = cluster.timeline
        board = ReportBoard(len(timeline.roster), int(timeline.bounds[0]), policy.cadence)
        self._board = board if run.is_published else None

    @property
    def is_kept(self) -> bool:
        """Return whether every grid instant has to be shown: reports depend on those before."""
        return self._board is not None

    def leave(self, gone: NDArray[np.bool_], now_us: int) -> None:
        """Note which brokers are not registered, shape (n_brokers,)."""
        if self._board is not None:
            self._board.leave(gone, now_us)

    def shown(self, load: Load, bundles: NDArray[np.int64], now_us: int) -> Load:
        """Return what policies see at a grid instant at which brokers measure some load.

        Args:
            bundles: how many bundles each broker owns, shape (n_brokers,).
        """
        return load if self._board is None else self._board.shown(load, bundles, now_us)


class PolicyWalk(ClusterWalk):
    """The state of a policy's walk: its load manager, the bundles, and load as it was reported."""

    def __init__(
        self, cluster: ClusterPlan, run: RunPlan, policy: Policy, *, seed: int, manager: LoadManager | None = None
    ) -> None:
        super().__init__(cluster, run)
        self.manager = manager or new_manager(cluster, run, policy, seed, LoadManager)
        self._bundles = BundleMap(cluster.words.atoms, cluster.timeline.initial_splits)
        self._requests = RequestMaker(cluster, self._bundles)
        self._reports = Publications(cluster, run, policy)
        self._usage = np.full(len(cluster.timeline.roster), np.nan)
        #: capacities are given, so that usage has a meaning and is counted in every tick
        self._has_usage = cluster.assumed_capacity is None

    def _begin_epoch(self, tick: Tick, registry: tuple[Roster, NDArray[np.bool_]]) -> None:
        """Apply a change of the registry at the start of a tick."""
        self._registry.apply(registry)
        self.manager.set_registry(*registry)
        self._reports.leave(~self._registry.registered, tick.start_us)

    def _add_time(self, tick: Tick) -> None:
        """Add the broker-time of a tick that is scored."""
        usage = self._usage if self._has_usage else None
        self._cells.add(tick.start_us, tick.end_us, self._registry.registered, usage)
