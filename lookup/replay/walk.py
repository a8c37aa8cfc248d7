"""What all walks over a cluster share: its ticks with their rows, day by day, and the registry.

Days without lookups have ticks too: time does not stop for a quiet cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Roster
from lookup.replay.days import DAY_US, DayRows, day_rows
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.timeline import TickEvents
from lookup.replay.work import WorkDir

__all__ = ["Registry", "Tick", "Walker", "walk_days", "walk_together"]

_NOTHING = TickEvents()
_NO_ROWS = DayRows({"ts": np.empty(0, np.int64)}, {})


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
    """Somebody who wants to see every day of a cluster, in order."""

    def day(self, ticks: Sequence[Tick]) -> None:
        """See the ticks of one day, of which there is at least one."""


def walk_together(walkers: Sequence[Walker], cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> None:
    """Show every day to every walker before the next day is read."""
    for ticks in walk_days(cluster, run, work):
        for walker in walkers:
            walker.day(ticks)


def walk_days(cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> Iterator[list[Tick]]:
    """Yield the ticks of each day in order; one day's rows are held at a time."""
    timeline = cluster.timeline
    starts = timeline.bounds[:-1]
    days = starts // run.tick_us * run.tick_us // DAY_US
    for day in np.unique(days).tolist():
        parts = cluster.days.get(day)
        rows = _NO_ROWS if parts is None else day_rows(work, parts)
        first, stop = np.searchsorted(days, [day, day + 1]).tolist()
        places = np.searchsorted(rows.ts, timeline.bounds[first : stop + 1]).tolist()
        yield [
            Tick(
                number,
                int(starts[number]),
                int(timeline.bounds[number + 1]),
                bool(timeline.is_grid[number]),
                timeline.events.get(number, _NOTHING),
                rows,
                places[number - first],
                places[number - first + 1],
            )
            for number in range(first, stop)
        ]
