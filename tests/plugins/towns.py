"""Towns: drawn clusters whose bundles weigh something else in every tick, and whose brokers come and go."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.policy import Policy
from lookup.hooks import Filter, Selector, Shedder
from lookup.model import Broker, BundleLoad, Roster
from lookup.model.load import Load
from lookup.settings.evaluation import OwnerLoss

__all__ = ["CAPACITY", "Town", "pairs", "towns"]

#: Of every broker whose capacity is not drawn.
CAPACITY = 100.0


@dataclass(frozen=True)
class Town:
    """A cluster and what its bundles weigh, tick by tick; bundles without owner get one before every tick."""

    n_brokers: int
    registered: tuple[bool, ...]
    #: namespace and first owner by bundle's number
    bundles: tuple[tuple[str, int], ...]
    #: weight per second by tick, then bundle
    loads: tuple[tuple[float, ...], ...]
    closed: frozenset[tuple[str, str]]
    #: brokers without report in the first tick
    silent: frozenset[int] = frozenset()
    capacities: tuple[float, ...] = ()
    seed: int = 1
    #: brokers that are away in a tick, by tick; nobody where the tick is not there
    lost: tuple[frozenset[int], ...] = ()
    owner_loss: OwnerLoss = "next-lookup"

    @property
    def roster(self) -> Roster:
        """Return the brokers."""
        return Roster([Broker(f"b{number}:8080") for number in range(self.n_brokers)])

    def there(self, tick: int) -> NDArray[np.bool_]:
        """Return who is registered in a tick, shape (n_brokers,)."""
        lost = self.lost[tick] if tick < len(self.lost) else frozenset()
        return np.array([good and number not in lost for number, good in enumerate(self.registered)])

    def names(self) -> list[str]:
        """Return the bundles' names."""
        return [f"{namespace}/{place:#010x}_{place + 1:#010x}" for place, (namespace, _) in enumerate(self.bundles)]

    def figures(self, tick: int, manager: LoadManager) -> Load:
        """Return what brokers report of the bundles they own."""
        tops: list[list[BundleLoad]] = [[] for _ in range(self.n_brokers)]
        for load, bundle in sorted(zip(self.loads[tick], self.names(), strict=True)):
            owner = manager.ownership.owner(bundle)
            if owner is not None and load:
                tops[owner].append(BundleLoad(bundle, load))
        sums = np.array([math.fsum(entry.load for entry in top) for top in tops])
        sums[~manager.registered] = np.nan
        if tick == 0:
            sums[list(self.silent)] = np.nan
        capacities = np.array(self.capacities or [CAPACITY] * self.n_brokers)
        return Load(sums / capacities, sums, np.zeros(self.n_brokers, dtype=np.int64), tops)

    def managed(self, shedder: Shedder, placement: Selector, gate: Filter) -> LoadManager:
        """Return a load manager at work here."""
        policy = Policy("tested", placement, filters=(gate,), shedder=shedder)
        conditions = Conditions(owner_loss=self.owner_loss)
        manager = LoadManager(policy, "town", self.roster, seed=self.seed, conditions=conditions)
        manager.set_registry(self.roster, np.array(self.registered))
        owners = zip(self.names(), self.bundles, strict=True)
        manager.restore({name: f"b{first}:8080" for name, (_, first) in owners})
        return manager


@st.composite
def towns(draw: st.DrawFn, *, alike: bool = False, everybody: bool = False) -> Town:
    """Draw a town: brokers that are away, silent or closed to a namespace, bundles of very different weight.

    Args:
        alike: all brokers have one capacity.
        everybody: all brokers are registered and report.
    """
    n_brokers = draw(st.integers(1, 7))
    numbers = st.integers(0, n_brokers - 1)
    bundles = draw(st.lists(st.tuples(st.sampled_from(["t/a", "t/b", "pulsar/system"]), numbers), max_size=25))
    weights = st.sampled_from([0.0, 1.0, 5.0]) | st.floats(0, 60)
    one = st.lists(weights, min_size=len(bundles), max_size=len(bundles)).map(tuple)
    closed = st.frozensets(st.tuples(numbers.map("b{}:8080".format), st.sampled_from(["t/a", "t/b"])), max_size=4)
    flags = st.just(True) if everybody else st.sampled_from([True, True, True, False])
    away = st.frozensets(numbers, max_size=0 if everybody else 2)
    return Town(
        n_brokers,
        tuple(draw(flags) for _ in range(n_brokers)),
        tuple(bundles),
        tuple(draw(st.lists(one, min_size=1, max_size=4))),
        draw(closed),
        frozenset() if everybody else draw(st.frozensets(numbers, max_size=1)),
        () if alike else tuple(draw(st.sampled_from([20.0, 100.0, 400.0])) for _ in range(n_brokers)),
        draw(st.integers(0, 3)),
        tuple(draw(st.lists(away, max_size=4))),
        draw(st.sampled_from(["next-lookup", "leader"])),
    )


@st.composite
def pairs(draw: st.DrawFn) -> Town:
    """Draw two or three brokers, all rather full of bundles that hardly fit: swaps are what helps, or does not."""
    n_brokers = draw(st.integers(2, 3))
    bundles = [("t/a", number) for number in range(n_brokers) for _ in range(draw(st.integers(1, 4)))]
    loads = draw(st.lists(st.integers(1, 60).map(float), min_size=len(bundles), max_size=len(bundles)))
    sums = [
        math.fsum(load for load, (_, owner) in zip(loads, bundles, strict=True) if owner == number)
        for number in range(n_brokers)
    ]
    capacities = tuple(total / draw(st.floats(0.6, 1.0)) for total in sums)
    return Town(n_brokers, (True,) * n_brokers, tuple(bundles), (tuple(loads),), frozenset(), capacities=capacities)
