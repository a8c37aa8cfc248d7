"""What the walks of both ownership modes share: the ticks of a cluster with their rows, day by day, and the registry.

Days without lookups have ticks too: time does not stop for a quiet cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Roster
from lookup.replay.coding import DAY_US
from lookup.replay.ordering import DayRows, read_day
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.timeline import TickEvents
from lookup.replay.work import WorkDir

__all__ = ["Registry", "Tick", "walk_ticks"]

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
    #: the next tick belongs to another day, or there is none
    is_last_of_day: bool


class Registry:
    """The rosters of a run's registry epochs, and the mask of the current one."""

    def __init__(self, roster: Roster) -> None:
        #: every roster of the run in order; only those that change lookup data are kept apart
        self.rosters = [roster]
        self.registered: NDArray[np.bool_] = np.zeros(len(roster), dtype=bool)

    @property
    def epoch(self) -> int:
        """Return the number of the current roster."""
        return len(self.rosters) - 1

    def apply(self, registry: tuple[Roster, NDArray[np.bool_]]) -> None:
        """Begin a registry epoch."""
        roster, self.registered = registry
        if list(roster) != list(self.rosters[-1]):
            self.rosters.append(roster)


def walk_ticks(cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> Iterator[Tick]:
    """Yield every tick in order; one day's rows are held at a time."""
    timeline = cluster.timeline
    starts = timeline.bounds[:-1]
    days = starts // run.tick_us * run.tick_us // DAY_US
    for day in np.unique(days).tolist():
        name = cluster.days.get(day)
        rows = _NO_ROWS if name is None else read_day(work, name)
        first, stop = np.searchsorted(days, [day, day + 1]).tolist()
        places = np.searchsorted(rows.ts, timeline.bounds[first : stop + 1]).tolist()
        for number in range(first, stop):
            yield Tick(
                number,
                int(starts[number]),
                int(timeline.bounds[number + 1]),
                bool(timeline.is_grid[number]),
                timeline.events.get(number, _NOTHING),
                rows,
                places[number - first],
                places[number - first + 1],
                number + 1 == stop,
            )
