"""Plans held to account in a simulated cluster, which goes on after its moves and is measured.

    python -m tests.calibration.plans --plans 100

prints the table of docs/calibration.md, in some minutes on one core; 1 if fewer than nine in ten predictions of
`imbalance` are right in a kind of cluster.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lookup import plan, verify
from tests.calibration.markdown import state, table
from tests.moving.worlds import START_US, World, broker, bundle, carried_out

__all__ = ["CLUSTERS", "Drawn", "main", "planned"]

_MINUTE_US = 60_000_000
#: Minutes from the last report that a plan has seen to its last move, and of reports after that.
_MOVING, _AFTER = 1, 3
#: Share of predictions that is to be right.
_RIGHT = 0.9
#: Bytes per second of all bundles, for each broker.
_LOAD = 8e6


@dataclass(frozen=True)
class Drawn:
    """A kind of cluster, and what is planned in it."""

    brokers: int
    bundles: int
    #: bundles that each broker lists at most, None: all
    listed: int | None = None
    #: reports of each broker, once a minute, before the plan
    reports: int = 10
    #: how loads of bundles vary from minute to minute, as a standard deviation of their logarithm
    sway: float = 0.15
    #: correlation of a load with that of the minute before
    memory: float = 0.0
    what: Literal["level", "drain"] = "level"

    @property
    def name(self) -> str:
        """Write it down in a few words."""
        listed = "all listed" if self.listed is None else f"{self.listed} listed of each broker"
        memory = f", correlated by {self.memory:g} from minute to minute" if self.memory else ""
        goal = "to drain one" if self.what == "drain" else "to level them"
        return (
            f"{self.brokers} brokers, {self.bundles} bundles, {listed}, {self.reports} reports, "
            f"loads vary by {self.sway:.0%}{memory}, {goal}"
        )


#: Kinds of clusters.
CLUSTERS = (
    Drawn(3, 60),
    Drawn(3, 60, sway=0.4),
    Drawn(6, 120, reports=4),
    Drawn(6, 120, memory=0.8),
    Drawn(3, 90, listed=10, what="drain"),
    Drawn(12, 600, listed=10),
)


@dataclass
class _Cluster(World):
    """A world whose loads are drawn; one minute of the drawing is one of its record."""

    #: shape (n_minutes, n_bundles), bundles in order of their names
    drawn: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    #: minute of the drawing at which the record begins
    first: int = 0

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(sorted(self.loads))}

    def load(self, name: str, minute: int) -> float:
        """Return the load of a bundle in a minute."""
        return float(self.drawn[self.first + minute, self._places[name]])

    def goes_on(self, after: int) -> None:
        """Go on some minutes after the beginning of the record, with a record of its own."""
        self.first, self.minutes, self.start_us = after, _AFTER, self.start_us + after * _MINUTE_US


def planned(kind: Drawn, seed: int) -> dict[str, bool] | None:
    """Plan in a cluster, let it go on with the bundles moved, and say which figures were measured in their interval.

    None: nothing was to be moved.
    """
    cluster = _drawn(kind, np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        drained = broker(0) if kind.what == "drain" else ()
        made = plan(cluster.write(before), drain=drained).plan
        if not made.steps:
            return None
        for step in made.steps:
            cluster.owners[step.bundle] = step.destination
        moved_us = START_US + (kind.reports - 1 + _MOVING) * _MINUTE_US
        journal = carried_out(made, Path(folder, "plan.json.journal"), at_us=moved_us)
        cluster.goes_on(kind.reports + _MOVING)
        measured = verify(journal, cluster.write(after))
    return {name: bool(figure.is_inside) for name, figure in measured.figures.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how often figures were measured in their intervals; return 1 if that is too seldom."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.calibration.plans",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--plans", type=int, default=100, help="clusters of each kind (default: 100)")
    given = parser.parse_args(arguments)
    rows, are_kept = list[tuple[str, ...]](), list[bool]()
    for kind in CLUSTERS:
        judged, inside = 0, Counter[str]()
        for seed in range(given.plans):
            found = planned(kind, seed)
            if found is not None:
                judged += 1
                inside.update([name for name, is_inside in found.items() if is_inside])
                inside["both"] += all(found.values())
        are_kept.append(inside["imbalance"] >= _RIGHT * judged)
        counts = (str(inside[name]) for name in ("imbalance", "deviation", "both"))
        rows.append((kind.name, str(judged), *counts, state(are_kept[-1])))
    head = ("cluster", "plans", "`imbalance` inside", "`deviation` inside", "both", "kept (90 of 100)")
    sys.stdout.write("\n".join(table(head, rows)) + "\n")
    return 0 if all(are_kept) else 1


def _drawn(kind: Drawn, dice: np.random.Generator) -> _Cluster:
    """Draw a cluster: owners by lot, the first broker with twice its share, and loads that differ widely."""
    names = [bundle(number, of=1 << (kind.bundles - 1).bit_length()) for number in range(kind.bundles)]
    shares = np.array([2.0, *[1.0] * (kind.brokers - 1)])
    owners = dice.choice(kind.brokers, kind.bundles, p=shares / shares.sum())
    means = dice.lognormal(0.0, 1.0, kind.bundles)
    means *= _LOAD * kind.brokers / means.sum()
    factors = np.stack(list(_factors(kind, dice)))
    return _Cluster(
        brokers=kind.brokers,
        owners={name: broker(owner) for name, owner in zip(names, owners.tolist(), strict=True)},
        loads=dict(zip(names, means.tolist(), strict=True)),
        listed=kind.listed,
        minutes=kind.reports,
        drawn=(means * factors)[:, np.argsort(names)],
    )


def _factors(kind: Drawn, dice: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield by what the load of each bundle is more than its mean, minute by minute, each of shape (n_bundles,)."""
    level = dice.standard_normal(kind.bundles)
    for _ in range(kind.reports + _MOVING + _AFTER):
        yield np.exp(kind.sway * level - kind.sway**2 / 2)
        level = kind.memory * level + math.sqrt(1 - kind.memory**2) * dice.standard_normal(kind.bundles)


if __name__ == "__main__":
    sys.exit(main())
