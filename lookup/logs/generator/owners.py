"""Track the owners of a synthetic cluster's bundles, which a load manager places and moves. Arrays answer hits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.policy import Policy
from lookup.logs.generator.loads import CAPACITY
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.traffic import Draw, Event, registered_data
from lookup.logs.generator.world import GeneratedCluster
from lookup.model.broker import Broker, Roster
from lookup.model.bundles import BundleRange, NamespacePolicies, equal_boundaries
from lookup.model.load import Load
from lookup.model.request import LookupOptions

__all__ = ["SyntheticOwners"]

#: An owner is recorded this long after the lookup that caused the choice, µs, since the state channel needs some time.
_CHANNEL_US = 1_500
_NONE = BundleRange(0, 0xFFFFFFFF)


class SyntheticOwners:
    """The owners of one cluster's bundles, which handle events and answer lookups in order of time."""

    def __init__(
        self,
        settings: GenerateSettings,
        policy: Policy,
        world: GeneratedCluster,
        events: tuple[Event, ...],
        dice: np.random.Generator,
    ) -> None:
        self._topics, self._clients, self._sites, self._dice = world.topics, world.clients, world.brokers, dice
        topics, clients, brokers = world.topics, world.clients, world.brokers
        self._options = [LookupOptions(properties=json.loads(text)) for text in clients.property_sets]
        count = settings.bundles_per_namespace
        bounds = equal_boundaries(count)
        ranges = [BundleRange(low, high) for low, high in pairwise(bounds)]
        # Heartbeat topics are bundles of their own after the ordinary ones. Their owner is the broker in their name.
        self.names = [f"{name}/{ends}" for name in topics.namespaces for ends in ranges]
        self._pinned = np.arange(len(brokers)) + len(self.names)
        self.names += [f"pulsar/{broker.id}/{_NONE}" for broker in brokers]
        self._number = {name: number for number, name in enumerate(self.names)}
        # Clipped, since the last range includes the last hash.
        inside = np.clip(np.searchsorted(bounds, topics.hashes, side="right") - 1, 0, count - 1)
        #: number of its bundle by topic, shape (n_topics,)
        self.bundle: NDArray[np.int64] = topics.namespace.astype(np.int64) * count + inside
        self.bundle[topics.ordinary :] = self._pinned
        #: by bundle
        self.owner = np.full(len(self.names), -1)
        self._propensity = np.full(len(self.names), np.nan)
        self._mislabelled = {event.broker for event in events if event.kind == "updated"}
        self.registered = np.zeros(len(brokers), dtype=bool)
        roster = Roster([Broker(site.id, site.data, CAPACITY) for site in brokers])
        namespaces = NamespacePolicies(default_bundles=count)
        self._manager = LoadManager(
            policy, world.cluster, roster, seed=settings.seed, conditions=Conditions(namespaces=namespaces)
        )
        #: OWNERSHIP without the cluster
        self.rows: list[dict[str, object]] = []

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of bundles that each broker owns, without heartbeat bundles, shape (n_brokers,)."""
        return self._manager.ownership.bundles()

    def take(self, ts: int, events: Sequence[Event], weight: NDArray[np.float64] | None) -> NDArray[np.bool_]:
        """Begin a tick with events, in the order of a replay, and return the topics that lost their broker.

        Args:
            weight: traffic of each bundle, which determines the hottest bundle to split, None if it is unknown.
        """
        before = self.owner.copy()
        self._manager.begin_tick(ts)
        brokers = list(self._manager.roster)
        for event in events:
            if event.broker is not None:
                number = event.broker
                self.registered[number] = event.kind in ("registered", "updated")
                if self.registered[number]:
                    data = registered_data(event, self._sites[number], is_mislabelled=number in self._mislabelled)
                    brokers[number] = Broker(self._sites[number].id, data, CAPACITY)
                self.owner[self._pinned[number]] = number if self.registered[number] else -1
        if any(event.broker is not None for event in events):
            self._manager.set_registry(Roster(brokers), self.registered)
            self._record_changes()
        for event in events:
            if event.kind == "split":
                self._split_hottest(ts, weight)
            elif event.kind == "unload" and len(owned := self._find_owned()):
                self._manager.unload(self.names[int(self._dice.choice(owned))])
                self._record_changes()
        return self._find_lost_topics(before)

    def place(self, bundles: Sequence[int]) -> None:
        """Let the policy place some bundles that no client has looked up yet."""
        for number in bundles:
            self._manager.assign(None, self.names[number])
        self._record_changes()

    def shed(self, load: Load) -> NDArray[np.bool_]:
        """Show the policy a load, let it unload bundles, and return the topics that lost their broker."""
        before = self.owner.copy()
        self._manager.set_load(load)
        self._manager.shed()
        self._record_changes()
        return self._find_lost_topics(before)

    def answer(self, draw: Draw, *, assigning: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Answer lookups in order of time. Only those in `assigning` may give an unowned bundle an owner.

        Returns:
            The number of each owner, -1 if the bundle had none, and the probability with which the policy chose it,
            NaN if the owner was not a random choice, both of shape (n,).
        """
        # Most lookups are hits, which arrays answer at once. The loop covers only bundles without owner.
        bundle = self.bundle[draw.topic]
        broker = self.owner[bundle]
        waiting = np.flatnonzero(broker < 0)
        if len(waiting) and self.registered.any():
            #: the row that gave each bundle its owner, before which rows stay unanswered
            since = np.zeros(len(self.names), np.int64)
            for row in waiting[assigning[waiting] & ~np.isin(bundle[waiting], self._pinned)].tolist():
                number = int(bundle[row])
                if self.owner[number] < 0:
                    since[number] = row
                    self._assign(draw, row, number)
            answered = waiting[since[bundle[waiting]] <= waiting]
            broker[answered] = self.owner[bundle[answered]]
        return broker, np.where(broker < 0, np.nan, self._propensity[bundle])

    def _assign(self, draw: Draw, row: int, number: int) -> None:
        client = int(draw.client[row])
        self._manager.assign(
            self._topics.names[int(draw.topic[row])],
            self.names[number],
            self._options[int(self._clients.properties[client])],
            client=self._clients.ids[client],
            ts_us=int(draw.ts[row]),
        )
        self._record_changes()

    def _record_changes(self) -> None:
        odds = {each.decision.bundle: each.decision.propensity for each in self._manager.take_decisions()}
        for change in self._manager.take_changes():
            number = self._number[change.bundle]
            if change.broker is not None:
                self.owner[number] = self._manager.roster.number(change.broker)
                self._propensity[number] = odds.get(change.bundle, np.nan)
                self._add_row(change.ts_us + _CHANNEL_US, change.bundle, "owned", change.broker, by="policy")
                continue
            self.owner[number] = -1
            # The bundles that a broker lost follow from the registry.
            if change.cause != "forced":
                by = "admin" if change.cause == "admin" else "policy"
                self._add_row(change.ts_us, change.bundle, "unloaded", change.source, by=by)

    def _find_lost_topics(self, before: NDArray[np.int64]) -> NDArray[np.bool_]:
        # Bundles that a split has made are new, and their topics stay where they were.
        gone = np.zeros(len(self.owner), dtype=bool)
        gone[: len(before)] = (before >= 0) & (self.owner[: len(before)] != before)
        return gone[self.bundle]

    def _find_owned(self) -> NDArray[np.intp]:
        return np.setdiff1d(np.flatnonzero(self.owner >= 0), self._pinned)

    def _split_hottest(self, ts: int, weight: NDArray[np.float64] | None) -> None:
        """Split the hottest bundle with two topics in the middle. Both halves stay, so no topic loses its broker."""
        topics = np.bincount(self.bundle, minlength=len(self.names))
        heat = topics if weight is None else np.append(weight, np.zeros(len(self.names) - len(weight)))
        parent = int(np.argmax(np.where(topics > 1, heat, -1)))
        if topics[parent] < 2:
            return
        namespace, _, ends = self.names[parent].rpartition("/")
        whole = BundleRange.parse(ends)
        middle = whole.lower + (whole.upper - whole.lower) // 2
        children = [
            f"{namespace}/{half}" for half in (BundleRange(whole.lower, middle), BundleRange(middle, whole.upper))
        ]
        hashes = [f"0x{bound:08x}" for bound in (whole.lower, middle, whole.upper)]
        owner = int(self.owner[parent])
        self._add_row(ts, self.names[parent], "split", self._sites[owner].id if owner >= 0 else None, "admin", hashes)
        self._manager.split(self.names[parent], children)
        self._manager.take_changes()
        inside, number = self.bundle == parent, len(self.names)
        self.bundle = np.where(inside, np.where(self._topics.hashes < middle, number, number + 1), self.bundle)
        self.names = [*self.names, *children]
        self._number.update({child: number + half for half, child in enumerate(children)})
        self.owner = np.append(self.owner, [owner] * 2)
        self._propensity = np.append(self._propensity, [self._propensity[parent]] * 2)
        # The parent no longer exists, so it must not be counted or chosen.
        self.owner[parent] = -1

    def _add_row(
        self, ts: int, bundle: str, event: str, broker: str | None, by: str, boundaries: list[str] | None = None
    ) -> None:
        row = {"ts": ts, "bundle": bundle, "event": event, "by": by}
        self.rows.append({**row, "broker": broker, "boundaries": boundaries})
