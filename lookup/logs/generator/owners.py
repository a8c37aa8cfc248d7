"""Follow the owners of bundles under the logging policy: assignments with their true odds, losses, unloads, splits.

Ownership is sticky, as in Pulsar: the first lookup of an unowned bundle assigns it, and those that follow are hits.
"""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.traffic import Draw, Event
from lookup.logs.generator.world import BrokerSite, Clients, Topics, rack_name
from lookup.model.bundles import BundleRange, equal_boundaries

__all__ = ["SyntheticOwners"]

#: How much of the odds `rack-random` keeps for the brokers of the client's rack; the rest goes to all brokers evenly.
_RACK_SHARE = 0.8
#: An owner is written down this long after the lookup that asked for it, µs: the state channel takes a moment.
_CHANNEL_US = 1_500


class SyntheticOwners:
    """The owners of one cluster's bundles; it follows the events and answers the lookups in order of time."""

    def __init__(
        self,
        settings: GenerateSettings,
        topics: Topics,
        clients: Clients,
        brokers: tuple[BrokerSite, ...],
        events: tuple[Event, ...],
        dice: np.random.Generator,
    ) -> None:
        self._topics, self._brokers, self._dice = topics, brokers, dice
        self._policy, bundles_per_namespace = settings.logging_policy, settings.bundles_per_namespace
        self._rack = np.array([broker.rack for broker in brokers])
        self._racks = 1 + int(self._rack.max())
        numbers = {rack_name(rack): rack for rack in range(self._racks)}
        stated = [numbers.get(json.loads(text).get("rack"), self._racks) for text in clients.property_sets]
        #: rack that each client's properties state, the number of racks if they state none that exists
        self._client_rack = np.array(stated)[clients.properties]
        bounds = equal_boundaries(bundles_per_namespace)
        self._namespaces = [name for name in topics.namespaces for _ in range(bundles_per_namespace)]
        self._ranges = [BundleRange(low, high) for low, high in pairwise(bounds)] * len(topics.namespaces)
        # Clipped, since the last range includes the last hash.
        inside = np.clip(np.searchsorted(bounds, topics.hashes, side="right") - 1, 0, bundles_per_namespace - 1)
        #: number of its bundle by topic, shape (n_topics,)
        self._bundle: NDArray[np.int64] = topics.namespace.astype(np.int64) * bundles_per_namespace + inside
        # Heartbeat topics are bundles of their own behind the ordinary ones; their owner is the broker in their name.
        self._pinned = len(self._ranges)
        self._bundle[topics.ordinary :] = self._pinned + np.arange(len(brokers))
        self._namespaces += [f"pulsar/{broker.id}" for broker in brokers]
        self._ranges += [BundleRange(0, 0xFFFFFFFF)] * len(brokers)
        self._owner = np.full(len(self._ranges), -1, dtype=np.int32)
        self._propensity = np.full(len(self._ranges), np.nan)
        #: what each bundle carried in the last piece, by which the shedder chooses
        self._weight: NDArray[np.float64] = np.zeros(len(self._ranges))
        self._registered = np.zeros(len(brokers), dtype=bool)
        # A broker that will be updated has no rack until then.
        self._labelled = np.ones(len(brokers), dtype=bool)
        for event in events:
            if event.kind == "updated" and event.broker is not None:
                self._labelled[event.broker] = False
        self._odds = self._state_odds()
        #: OWNERSHIP without the cluster
        self.rows: list[dict[str, object]] = []

    @property
    def registered(self) -> NDArray[np.intp]:
        """Return the numbers of the registered brokers."""
        return np.flatnonzero(self._registered)

    def bundle_counts(self) -> NDArray[np.int64]:
        """Return how many bundles each broker owns, heartbeat bundles left out, shape (n_brokers,)."""
        owned = self._owner[self._given()]
        return np.bincount(owned, minlength=len(self._brokers))

    def _given(self) -> NDArray[np.intp]:
        """Return the numbers of the bundles that have an owner, heartbeat bundles left out."""
        numbers = np.flatnonzero(self._owner >= 0)
        return numbers[(numbers < self._pinned) | (numbers >= self._pinned + len(self._brokers))]

    def topic_counts(self) -> NDArray[np.int64]:
        """Return how many topics lie in the bundles each broker owns, shape (n_brokers,)."""
        owned = self._owner[self._bundle[: self._topics.ordinary]]
        return np.bincount(owned[owned >= 0], minlength=len(self._brokers))

    def apply(self, event: Event) -> NDArray[np.bool_]:
        """Let an event take place and return the topics that lost their broker, mask of shape (n_topics,)."""
        if event.kind == "split":
            return self._split(event.ts)
        if event.broker is None:
            return self._unload(event)
        before = self._owner.copy()
        self._registered[event.broker] = event.kind in ("registered", "updated")
        self._labelled[event.broker] |= event.kind == "updated"
        self._odds = self._state_odds()
        if not self._registered[event.broker]:
            self._owner[self._owner == event.broker] = -1
        pinned = self._pinned + event.broker
        self._owner[pinned] = event.broker if self._registered[event.broker] else -1
        return ((before >= 0) & (self._owner < 0))[self._bundle]

    def answer(
        self, draw: Draw, *, assigning: NDArray[np.bool_], weight: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Answer lookups in order of time; `assigning` says which may give an unowned bundle an owner.

        Returns:
            The number of each owner, -1 if the bundle had none, and the probability with which the policy chose it, NaN
            if it had no choice; both of shape (n,).
        """
        # Most lookups are hits, which arrays answer at once; only bundles without owner are gone through.
        bundle = self._bundle[draw.topic]
        broker = self._owner[bundle]
        propensity = self._propensity[bundle]
        waiting = np.flatnonzero(broker < 0)
        if len(waiting) and self._registered.any():
            since = self._assign(waiting[assigning[waiting]], bundle, draw)
            answered = waiting[since[bundle[waiting]] <= waiting]
            broker[answered] = self._owner[bundle[answered]]
            propensity[answered] = self._propensity[bundle[answered]]
        propensity[broker < 0] = np.nan
        self._weight = np.bincount(bundle, weights=weight, minlength=len(self._owner)).astype(np.float64)
        return broker, propensity

    def _assign(self, rows: NDArray[np.intp], bundle: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
        """Give every waiting bundle the owner its first assigning lookup draws; return, by bundle, that lookup's row.

        Rows before it stay unanswered; bundles without such a lookup have a row behind all others.
        """
        # A heartbeat bundle is not the policy's to give: without its own broker it has no owner.
        rows = rows[(bundle[rows] < self._pinned) | (bundle[rows] >= self._pinned + len(self._brokers))]
        _, indices = np.unique(bundle[rows], return_index=True)
        # In order of time again: rows of OWNERSHIP and the dice follow it.
        first = np.sort(rows[indices])
        label = self._client_rack[draw.client[first]]
        odds = self._odds[label]
        luck = self._dice.random(len(first))
        # Odds add up to 1 but for rounding, which luck close to 1 may fall into.
        drawn = np.minimum((np.cumsum(odds, axis=1) <= luck[:, None]).sum(axis=1), self.registered[-1])
        chosen = bundle[first]
        self._owner[chosen] = drawn
        self._propensity[chosen] = odds[np.arange(len(first)), drawn]
        for asked_at, number, broker in zip(draw.ts[first].tolist(), chosen.tolist(), drawn.tolist(), strict=True):
            self._note(asked_at + _CHANNEL_US, number, "owned", broker, by="policy")
        since = np.full(len(self._owner), np.iinfo(np.int64).max)
        since[chosen] = first
        return since

    def _state_odds(self) -> NDArray[np.float64]:
        """State the odds by the client's rack, the last row for clients without; shape (n_racks + 1, n_brokers)."""
        everyone = self._registered / max(1, self._registered.sum())
        odds = np.tile(everyone, (self._racks + 1, 1))
        if self._policy == "rack-random":
            for rack in range(self._racks):
                near = self._registered & self._labelled & (self._rack == rack)
                if near.any():
                    odds[rack] = _RACK_SHARE * near / near.sum() + (1.0 - _RACK_SHARE) * everyone
        return odds

    def _unload(self, event: Event) -> NDArray[np.bool_]:
        """Take a bundle from its owner: the shedder takes the hottest, an administrator any."""
        numbers = self._given()
        if not len(numbers):
            return np.zeros(len(self._bundle), dtype=bool)
        hottest = int(numbers[np.argmax(self._weight[numbers])])
        number = hottest if event.kind == "shed" else int(self._dice.choice(numbers))
        by = "policy" if event.kind == "shed" else "admin"
        self._note(event.ts, number, "unloaded", int(self._owner[number]), by=by)
        self._owner[number] = -1
        hit: NDArray[np.bool_] = self._bundle == number
        return hit

    def _split(self, ts: int) -> NDArray[np.bool_]:
        """Split the hottest bundle with two topics in the middle; both halves stay, so no topic loses its broker."""
        unharmed = np.zeros(len(self._bundle), dtype=bool)
        topics = np.bincount(self._bundle, minlength=len(self._owner))
        parent = int(np.argmax(np.where(topics > 1, self._weight, -1.0)))
        if topics[parent] < 2:
            return unharmed
        bounds = self._ranges[parent]
        middle = bounds.lower + (bounds.upper - bounds.lower) // 2
        children = BundleRange(bounds.lower, middle), BundleRange(middle, bounds.upper)
        hashes = [f"0x{bound:08x}" for bound in (bounds.lower, middle, bounds.upper)]
        self._note(ts, parent, "split", int(self._owner[parent]), by="admin", boundaries=hashes)
        inside = self._bundle == parent
        low = self._topics.hashes < middle
        number = len(self._owner)
        self._bundle[inside & low], self._bundle[inside & ~low] = number, number + 1
        self._namespaces += [self._namespaces[parent]] * 2
        self._ranges += children
        self._owner = np.append(self._owner, [self._owner[parent]] * 2)
        self._propensity = np.append(self._propensity, [self._propensity[parent]] * 2)
        self._weight = np.append(self._weight, [self._weight[parent] / 2] * 2)
        # The parent is no more: nothing points to it, nothing may count or choose it.
        self._owner[parent], self._weight[parent] = -1, 0.0
        return unharmed

    def _note(
        self, ts: int, bundle: int, event: str, broker: int, *, by: str, boundaries: list[str] | None = None
    ) -> None:
        row = {"ts": ts, "bundle": f"{self._namespaces[bundle]}/{self._ranges[bundle]}", "event": event, "by": by}
        owner = self._brokers[broker].id if broker >= 0 else None
        self.rows.append({**row, "broker": owner, "boundaries": boundaries})
