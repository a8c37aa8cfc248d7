"""Counts lookups by their odds: under shared ownership a lookup is served by each broker with some probability.

Lookups are counted by bundle, client class and decision key over stretches in which no key's odds change, and spread
over the brokers once per stretch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.tally import Groups, grouped
from lookup.replay.walk import Tick

__all__ = ["ExpectedTally"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ExpectedTally:
    """Counts rows of one cluster under one policy's odds."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        n_units = len(cluster.units[0])
        self.logged, self.agreed = np.zeros(n_units), np.zeros(n_units)
        self._run = run
        self._unit = cluster.units[1]
        self._n_clients = max(len(cluster.clients), 1)
        self._n_groups = n_units * self._n_clients
        self._n_brokers = len(cluster.timeline.roster)
        self._has_log = cluster.logged > 0
        self._groups: list[Groups] = []
        #: of the open stretch: where it lies, its odds by key, and its rows' (group, key) and weights
        self._place: tuple[int, int] | None = None
        self._odds, self._asked = np.empty((0, 0)), np.empty(0, dtype=bool)
        self._keys: list[Ints] = []
        self._weights: list[Floats] = []

    def add(self, tick: Tick, epoch: int, codes: Ints, odds: Floats, answers: Ints | None) -> None:
        """Add the lookups of a tick.

        Args:
            codes: decision key of each row, shape (n_rows,).
            odds: by key and broker, the last column for no answer, shape (n_keys, n_brokers + 1); a key that nobody
                used has only zeros.
            answers: broker that answers without a policy, -1 for nobody, -2 where a policy is asked; None: always
                asked.
        """
        span = slice(tick.low, tick.high)
        units, clients = self._unit[tick.rows.column("atom", span)], tick.rows.column("properties", span)
        cell = tick.start_us // self._run.balance_us * self._run.balance_us
        if answers is not None:
            codes, odds = _with_pinned(codes, odds, answers)
        if self._has_log:
            self._compare(tick.rows.column("broker", span), units, codes, odds)
        asked = odds.sum(axis=1) > 0.0
        if self._place != (cell, epoch) or not self._fits(odds, asked):
            self._flush()
            self._place, self._odds, self._asked = (cell, epoch), odds, asked
        else:
            self._merge(odds, asked)
        self._keys.append(codes * self._n_groups + units * self._n_clients + clients)
        self._weights.append(tick.rows.column("weight", span))

    def finish(self) -> list[Groups]:
        """Return all counts."""
        self._flush()
        return self._groups

    def _fits(self, odds: Floats, asked: NDArray[np.bool_]) -> bool:
        """Tell whether no key that was asked in both the stretch and the tick was given other odds."""
        both = min(len(odds), len(self._odds))
        twice = self._asked[:both] & asked[:both]
        return bool((self._odds[:both][twice] == odds[:both][twice]).all())

    def _merge(self, odds: Floats, asked: NDArray[np.bool_]) -> None:
        """Add the keys of a tick that the stretch has not met."""
        grown = max(len(odds) - len(self._odds), 0)
        if grown:
            self._odds = np.vstack([self._odds, np.zeros((grown, odds.shape[1]))])
            self._asked = np.append(self._asked, np.zeros(grown, dtype=bool))
        fresh = np.flatnonzero(asked & ~self._asked[: len(asked)])
        self._odds = self._odds.copy() if len(fresh) else self._odds
        self._odds[fresh] = odds[fresh]
        self._asked[: len(asked)] |= asked

    def _flush(self) -> None:
        if self._place is None or not self._keys:
            return
        keys, weights = np.concatenate(self._keys), np.concatenate(self._weights)
        found, lookups, weight = grouped(keys, weights, len(self._odds) * self._n_groups)
        spread = self._odds[found // self._n_groups]
        row, broker = np.nonzero(spread)
        share, group = spread[row, broker], found[row] % self._n_groups
        self._groups.append(
            Groups(
                *self._place,
                unit=group // self._n_clients,
                broker=np.where(broker == self._n_brokers, -1, broker),
                client=group % self._n_clients,
                lookups=lookups[row] * share,
                weight=weight[row] * share,
            )
        )
        self._keys, self._weights = [], []

    def _compare(self, logged: NDArray[np.int16], units: Ints, codes: Ints, odds: Floats) -> None:
        known = logged != -1
        answered = 1.0 - odds[codes[known], -1]
        same = np.where(logged[known] >= 0, odds[codes[known], np.maximum(logged[known], 0)], 0.0)
        self.logged += np.bincount(units[known], weights=answered, minlength=len(self.logged))
        self.agreed += np.bincount(units[known], weights=same, minlength=len(self.agreed))


def _with_pinned(codes: Ints, odds: Floats, answers: Ints) -> tuple[Ints, Floats]:
    """Give each broker that answers without a policy a key of its own, before those of the policy."""
    width = odds.shape[1]
    # answer -1 is the last column (no answer), answer b is column b
    return np.where(answers == -2, codes + width, answers % width), np.vstack([np.eye(width), odds])
