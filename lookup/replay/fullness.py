"""Bound the broker-time that is overloaded whatever policy runs, from the demand of one cluster.

A policy may unload a bundle at any grid instant, and what has no owner weighs on no broker. So at a grid instant only
those bundles surely have an owner that a lookup has asked for since the one before, with nothing since that takes
owners away: no change of the registry, no unload of the log. If brokers within the threshold have no room for these,
one broker at least is above it; never more are proven to be, since one could have them all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO, capacities
from lookup.placement.frontier import Reach, is_too_crowded, is_too_much
from lookup.replay.counted import weights_of
from lookup.replay.days import SliceRows
from lookup.replay.loads import AtomLoads
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.walk import RegistryEpochs, Tick

__all__ = ["FullnessWalk"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class FullnessWalk:
    """Follows the load that surely weighs on brokers, over all ticks of a cluster with simulated load."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        self._run = run
        #: of bundles, not asked for if every lookup is decided alone
        self._loads = AtomLoads(cluster, run)
        #: usage is known from the first grid instant on that has load before it
        self._has_load = self._loads.are_bytes and not run.is_shared
        #: atoms that were asked for, and micro-units that were served, since owners were last taken away
        self._asked: Mask = np.zeros(cluster.words.atoms.count, dtype=bool)
        self._micro = 0.0
        self._capacity = capacities(cluster.timeline.roster, None)
        #: brokers of known usage since the last grid instant, and whether one of them is surely overloaded
        self._known: Mask = np.zeros(len(cluster.timeline.roster), dtype=bool)
        self._is_over = False
        #: by cell, seconds of brokers that are surely overloaded, and of brokers of known usage
        self._cells: dict[int, Floats] = {}

    def begin_slice(self, first: Tick) -> None:
        """Take in the reports of the slice that begins with a tick."""
        self._loads.begin_slice(first.reports, first.start_us)

    def take(
        self, tick: Tick, numbers: Ints, registry: RegistryEpochs, reach: Reach | None, *, is_scored: bool
    ) -> None:
        """Take in the next tick, whose events were applied.

        Args:
            numbers: bundle of each atom, shape (n_atoms,).
            reach: the brokers that bundles are kept to, None if each may be on any.
        """
        registered = registry.registered
        if tick.events.registry is not None or tick.events.unloads:
            self._forget()
        if tick.events.registry is not None:
            self._capacity = capacities(registry.rosters[registry.epoch], None)
            # The broker that was overloaded may be the one that left.
            self._is_over = False
        if tick.is_grid:
            self._loads.close_cell(tick.start_us)
            self._known = registered & ~np.isnan(self._capacity) & self._has_load
            self._is_over = self._has_load and self._is_overfull(numbers, registered, reach)
            self._has_load = True
            self._forget()
        self._loads.add(tick.rows, tick.low, tick.high)
        if not is_scored:
            return
        if tick.high > tick.low:
            atoms = tick.rows.column("atom", slice(tick.low, tick.high))
            weights = np.broadcast_to(weights_of(tick.rows, slice(tick.low, tick.high)), atoms.shape)
            # What weighs nothing may be left unanswered without a trace.
            self._asked[atoms[weights > 0]] = True
            self._micro += float(weights.sum())
        n_known = int((self._known & registered).sum())
        seconds = (tick.end_us - tick.start_us) / MICRO
        cell = self._run.cell_of(tick.start_us)
        added = np.array([seconds * min(n_known, self._is_over), seconds * n_known])
        self._cells[cell] = self._cells.get(cell, 0.0) + added

    def end_slice(self, rows: SliceRows) -> None:
        """Let go of a slice."""
        self._loads.end_slice(rows)

    def _forget(self) -> None:
        self._asked[:] = False
        self._micro = 0.0

    def _is_overfull(self, numbers: Ints, registered: Mask, reach: Reach | None) -> bool:
        """Return whether what surely has an owner is too much for the brokers it may be on."""
        # One of unknown capacity has room for all.
        room = np.nan_to_num(self._capacity, nan=np.inf) * self._run.overload_threshold
        if self._run.is_shared:
            # What was served before the last grid instant is left out: its broker may be gone.
            return is_too_much(self._micro / self._run.session_us, 0.0, room[registered])
        window = self._loads.window
        if window is None or not self._asked.any():
            return False
        asked = np.unique(numbers[self._asked])
        loads = np.bincount(numbers, weights=window)[asked] / (MICRO * self._loads.seconds)
        if is_too_much(float(loads.sum()), float(loads.max()), room[registered]):
            return True
        if reach is None:
            return False
        return is_too_crowded(Reach(reach.members, reach.of[asked]), loads, room)

    def seconds(self) -> Floats:
        """Return by scored cell the seconds of brokers surely overloaded, and of known usage, shape (n_cells, 2)."""
        return np.array(list(self._cells.values())).reshape(-1, 2)
