"""The load manager, which runs one policy in one cluster without I/O in replays, simulations and tests alike.

It keeps owners, memory and random state. Callers report events (`set_registry`, `set_load`, `begin_tick`)
and read the results from `take_decisions` and `take_changes`.

Source: `docs/pulsar/load-managers.md`, `docs/decisions/brokers-by-id.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.answers import Failures
from lookup.engine.ballots import Ballot, Decided, Draws
from lookup.engine.cycles import IDLE_CYCLE, CycleReport, Unloading, run_sheds, run_splits
from lookup.engine.foreign import begin_foreign
from lookup.engine.ledger import capacities
from lookup.engine.ownership import Cause, OwnerBook, Ownership, OwnershipChange, ReportedOwnership
from lookup.engine.policy import Instant, Policy, Standing, memory_key
from lookup.engine.units import goes_by_bytes, in_bytes
from lookup.errors import ArgumentError, InputError, StateError
from lookup.hooks.protocols import Shedder
from lookup.model.broker import Broker, Candidates, Roster
from lookup.model.bundles import NamespacePolicies
from lookup.model.decision import Assigned, CycleReason, Decision, Reason, Split, Unanswered, Unload
from lookup.model.load import Load
from lookup.model.names import is_internal_topic, pinned_broker
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.model.topology import Topology
from lookup.model.view import ClusterView
from lookup.settings.evaluation import OwnerLoss

__all__ = ["Conditions", "LoadManager", "ManagerObserver"]


@dataclass(frozen=True, slots=True)
class ManagerObserver:
    """Callables that observe a load manager and do not change it. None is not called."""

    #: before an owner is chosen: the request, its time in µs, and whether it was declined before under the same
    #: fingerprint, so that it is only counted once more
    before_decision: Callable[[LoadManager, LookupRequest, int, bool], None] | None = None
    #: before the shedder is asked
    before_cycle: Callable[[LoadManager], None] | None = None
    #: the result of the cycle
    after_cycle: Callable[[CycleReport[Unload]], None] | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """Circumstances of a cluster that are the same whatever policy is at work there."""

    #: who re-assigns the bundles of a lost broker, either the next lookup or the leader at once
    owner_loss: OwnerLoss = "next-lookup"
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)
    topology: Topology = field(default_factory=Topology)
    #: weight per second at usage 1.0 of every broker, if no broker's own is known
    assumed_capacity: float | None = None
    #: bytes per 1.0 of a broker's load and of a bundle's load, for shedders with limits in bytes
    broker_bytes: float = 1.0
    bundle_bytes: float = 1.0
    #: the view's salt, "" in production
    salt: str = ""
    observer: ManagerObserver | None = None


_USUAL = Conditions()


class LoadManager:
    """A load manager that assigns bundles to brokers by one policy, like Pulsar's extensible load manager.

    Args:
        roster: the brokers known at first. None of them is registered before `set_registry`, which may add others.
        seed: seed of the random draws.
        conditions: circumstances of the cluster that do not depend on the policy.
    """

    def __init__(
        self, policy: Policy, cluster: str, roster: Roster, *, seed: int = 1, conditions: Conditions = _USUAL
    ) -> None:
        #: the policy in use, without filters that have no effect in this cluster
        self.policy = policy.in_use(conditions.namespaces)
        self.cluster, self.roster = cluster, roster
        self.ownership = Ownership(roster.ids)
        self.failures = Failures()
        #: memory by `memory_key`, JSON-able
        self.memory: dict[str, dict[str, Any]] = {}
        begin_foreign(policy, self.memory)
        self.registered: NDArray[np.bool_] = np.zeros(len(roster), dtype=bool)
        self._conditions, self._observer = conditions, conditions.observer or ManagerObserver()
        #: bytes per 1.0 of a broker's load and of a bundle's load, None if the shedder does not use them
        self._bytes: tuple[float, float] | None = None
        factors = conditions.broker_bytes, conditions.bundle_bytes
        if factors != (1.0, 1.0) and policy.shedder is not None and goes_by_bytes(policy.shedder):
            self._bytes = factors
        self.draws = Draws(policy.name, cluster, seed)
        self._book = OwnerBook(self.ownership)
        self._load = Load.unknown(len(roster)).read_only()
        #: weight per second at usage 1.0, shape (n_brokers,), NaN if unknown
        self.capacity = capacities(roster, conditions.assumed_capacity)
        self._epoch_us = self._tick_us = self._changes_in_tick = 0
        self._unloaded: dict[str, int] = {}
        #: start of the tick of the last cycle, before the first that of the first tick
        self._cycled_us: int | None = None
        #: numbers of the destinations drawn in the present cycle, by bundle
        self._drawn: dict[str, int] = {}
        #: numbers of the owners before, by bundle that a cycle of the modular manager has moved since the last report
        self._moved: dict[str, int] = {}
        self._decisions: list[Decided] = []
        self._instant: Instant | None = None
        self._fingerprint = ""
        self._ballots: dict[Hashable, Ballot] = {}
        self._declined: dict[Hashable, Decided] = {}
        self._standing: Standing = {}

    # Events of the world.

    def begin_tick(self, start_us: int) -> None:
        """Start a tick. The view's clock stays at its start until the next."""
        if self._cycled_us is None:
            self._cycled_us = start_us
        self._tick_us = start_us
        self._changes_in_tick = 0
        self._instant = None

    def set_registry(self, roster: Roster, registered: NDArray[np.bool_]) -> None:
        """Start a registry epoch at the start of this tick. Unregistered owners lose their bundles.

        Args:
            roster: the brokers of this epoch with their lookup data, registered or not. A broker with a known id is
                the same as before, and keeps its bundles and its load under its number in this roster.
            registered: shape (n_brokers,).

        Raises:
            ArgumentError: if there is not one value for each broker of the roster.
        """
        _require_column("the registry", registered, roster)
        present = {roster.ids[number] for number in np.flatnonzero(registered).tolist()}
        lost = [number for number in np.flatnonzero(self.registered).tolist() if self.roster.ids[number] not in present]
        # A leader re-selects in the order of the bundles, whichever broker had them.
        orphans = sorted(bundle for number in lost for bundle in self.ownership.bundles_of(number))
        self._forget_answers()
        self._standing.clear()
        # Before owners get new numbers, since a broker that left does not have a number in the new roster.
        for bundle in orphans:
            self._take(bundle, "forced", self._tick_us)
        if roster.ids != self.roster.ids:
            numbers = [self.roster.number(broker) for broker in roster.ids]
            self._load = self._load.renumber([-1 if number is None else number for number in numbers]).read_only()
            self._moved.clear()
            self.ownership.renumber(roster.ids)
        self.roster, self.registered = roster, registered.copy()
        self.registered.flags.writeable = False
        self.capacity = capacities(roster, self._conditions.assumed_capacity)
        self._epoch_us = self._tick_us
        if self._conditions.owner_loss == "leader":
            for bundle in orphans:
                self.select(request_of(None, bundle, LookupOptions()), self._tick_us)

    def set_load(self, load: Load) -> None:
        """Put the figures of a grid instant into the view.

        Raises:
            ArgumentError: if its columns do not have one value for each broker of the roster.
        """
        _require_column("a load", load.usage, self.roster)
        self._load = self.policy.weights.weigh(load).read_only()
        self._moved.clear()
        self._instant = None
        # Parts that do not read the load answer as before, so requests that were declined are not decided again.
        if "view.load" in self.policy.reads:
            self._forget_answers()

    def restore(self, owners: Mapping[str, str]) -> None:
        """Restore owners from before the run. Unregistered owners and pinned bundles are left out."""
        for bundle, broker in sorted(owners.items()):
            number = self._find_registered(broker)
            # A pinned bundle's owner is in its name. An owner in the book would remain after its registration ended.
            if number is not None and pinned_broker(bundle.rpartition("/")[0]) is None:
                self._give(bundle, number, self._tick_us)
        self._changes_in_tick = 0
        self._forget_answers()

    # Lookups.

    def assign(
        self,
        topic: str | None,
        bundle: str,
        options: LookupOptions | None = None,
        *,
        client: str | None = None,
        ts_us: int | None = None,
    ) -> Assigned | Unanswered:
        """Answer a lookup with the owner of the topic's bundle, which is assigned now if there is none.

        Args:
            topic: complete name, None for a request without topic.
            bundle: complete name of the topic's bundle.
            ts_us: time of the lookup, the start of the tick by default.

        Returns:
            `Unanswered` if no broker serves it, with the reason for which the policy declined. The reason is
                NO_CANDIDATES if no broker is registered, and NOT_REGISTERED if the broker in the bundle's name is
                not. If the bundle has no owner, it is READ_ONLY for a lookup that may not assign.

        Raises:
            PolicyError: if a part fails and `on_error` is stop, or it breaks its protocol.
        """
        options = options or LookupOptions()
        if topic is not None and is_internal_topic(topic):
            return self._answer(self.leader(), Reason.NO_CANDIDATES)
        pinned = pinned_broker(bundle.rpartition("/")[0])
        if pinned is not None:
            return self._answer(self._find_registered(pinned), Reason.NOT_REGISTERED)
        owner = self.ownership.owner(bundle)
        if owner is not None:
            return self._answer(owner, None)
        if options.read_only:
            return Unanswered(Reason.READ_ONLY)
        decision = self.select(request_of(topic, bundle, options, client), self._tick_us if ts_us is None else ts_us)
        return self._answer(self.ownership.owner(bundle), None if decision is None else decision.declined, decision)

    def select(self, request: LookupRequest, ts_us: int) -> Decision | None:
        """Choose an owner for an unowned bundle, and book it. Return None if no broker is registered.

        A decision key declined for this bundle under the same fingerprint is not evaluated again, only counted.
        """
        instant = self.instant()
        if not len(instant.offered):
            return None
        key = self.policy.decision_key(request)
        question = (request.bundle, key)
        repeated = self._declined.get(question)
        if self._observer.before_decision is not None:
            self._observer.before_decision(self, request, ts_us, repeated is not None)
        if repeated is not None:
            repeated.count += 1
            return repeated.decision
        ballot = self._decide(request, key, instant)
        decision = self.draws.decision(request.bundle, ballot, self.roster, self._fingerprint)
        entry = Decided(ts_us, decision)
        self._decisions.append(entry)
        if decision.broker is None:
            self._declined[question] = entry
        else:
            self._book_decision(request, decision, ts_us, ballot.offers, instant)
        return decision

    def decide(self, request: LookupRequest) -> tuple[Ballot, str]:
        """Compute the policy's ballot on a request now, and the fingerprint under which it holds, without booking."""
        return self._decide(request, self.policy.decision_key(request), self.instant()), self._fingerprint

    def _decide(self, request: LookupRequest, key: Hashable, instant: Instant) -> Ballot:
        # Every assignment may change the memory, so such a ballot holds for one request only.
        if "view.memory" in self.policy.reads:
            return self.policy.ballot(request, instant)
        ballot = self._ballots.get(key)
        if ballot is None:
            ballot = self.policy.ballot(request, instant)
            self._ballots[key] = ballot
        return ballot

    def leader(self) -> int | None:
        """Find the broker that serves the load manager's own topics, which is the first registered one.

        The result is its number. Pulsar elects a leader, and a log of lookups does not record which broker that was.
        """
        numbers = np.flatnonzero(self.registered)
        return int(numbers[0]) if len(numbers) else None

    # Bundles.

    def unload(self, bundle: str) -> None:
        """Take a bundle from its owner on an administrator's behalf.

        Raises:
            InputError: if the bundle does not have an owner.
        """
        if pinned_broker(bundle.rpartition("/")[0]) is not None:
            return
        if self.ownership.owner(bundle) is None:
            raise InputError(f"bundle {bundle} is not owned by any broker")
        self._move(bundle, "admin", None)

    def split(self, bundle: str, children: Sequence[str]) -> None:
        """Replace a bundle by its children, which keep its owner and its past."""
        self._book.split(bundle, children)
        # The grace period is the parent's, since a split must not bypass it.
        unloaded_us = self._unloaded.get(bundle)
        if unloaded_us is not None:
            for child in children:
                self._unloaded[child] = unloaded_us
        self._note_change()

    def shed(self) -> CycleReport[Unload] | None:
        """Run one cycle of the policy's shedder. Return None without a shedder, or if the cycle is not due yet."""
        if self.policy.shedder is None or not self._is_due():
            return None
        if self._observer.before_cycle is not None:
            self._observer.before_cycle(self)
        self._drawn.clear()
        report = self._run_cycle(self.policy.shedder)
        if self._observer.after_cycle is not None:
            self._observer.after_cycle(report)
        return report

    def _run_cycle(self, shedder: Shedder) -> CycleReport[Unload]:
        memory, instant = self._memory_of(shedder), self.instant()
        # In Pulsar no cycle takes place with one registered broker, since no other broker could take a bundle.
        if len(instant.offered) <= 1:
            return IDLE_CYCLE
        unloading = Unloading(self._book_unload, self._choose_destination if self.policy.destination_first else None)
        # Only a shedder with limits in bytes sees bytes. For all others the weight of lookups is the load.
        view = None if self._bytes is None else in_bytes(instant.view, *self._bytes)
        return run_sheds(self.policy, instant, memory, unloading, shown=view)

    def _is_due(self) -> bool:
        """Check whether a cycle is due. The first comes one interval after the first tick.

        With an interval below Pulsar's minute every tick has a cycle, since ticks are the only time of a run.

        Source: LoadSheddingTask.start, UnloadScheduler.start (Pulsar 4.2.4).
        """
        interval_us = self.policy.shedding_interval_us
        if interval_us > Policy.shedding_interval_us:
            if self._cycled_us is not None and self._tick_us < self._cycled_us + interval_us:
                return False
            self._cycled_us = self._tick_us
        return True

    def split_bundles(self) -> CycleReport[Split] | None:
        """Run one cycle of the policy's splitter. Return None without a splitter.

        Children stay with their parent's owner. Under `unload_children` they have none if another broker may own them.
        """
        if self.policy.splitter is None:
            return None
        memory = self._memory_of(self.policy.splitter)
        return run_splits(self.policy, self.instant(), memory, self._carry_out_split)

    def _carry_out_split(self, bundle: str, children: Sequence[str]) -> None:
        # Asked about the parent, as Pulsar does: ModularLoadManagerImpl.checkNamespaceBundleSplit.
        owner, request = self.ownership.owner(bundle), request_of(None, bundle, LookupOptions())
        are_unloaded = (
            self.policy.unload_children
            and owner is not None
            and self.policy.permits_other(owner, request, self.instant())
        )
        self.split(bundle, children)
        for child in children if are_unloaded else ():
            self._move(child, "split", None)

    # Results.

    def take_decisions(self) -> list[Decided]:
        """Return the decisions since the last call. A declined one is counted until its fingerprint ends.

        Decisions and changes are kept until they are taken, so a caller that runs for long has to take both.
        """
        decisions, self._decisions = self._decisions, []
        return decisions

    def take_changes(self) -> list[OwnershipChange]:
        """Return the changes of ownership since the last call."""
        return self._book.take_changes()

    def view(self) -> ClusterView:
        """Build the view as of now."""
        return self.instant().view

    def instant(self) -> Instant:
        """Build the instant on which decisions and cycles are computed now."""
        if self._instant is None:
            # Ownership, memory and unloads in the view are live, so an assignment changes them without a new view.
            view = ClusterView(
                cluster=self.cluster,
                brokers=self.roster,
                registered=self.registered,
                capacity=self.capacity,
                epoch_us=self._epoch_us,
                now_us=self._tick_us,
                load=self._load,
                ownership=ReportedOwnership(self.ownership, self._moved) if self._moved else self.ownership,
                unloaded=MappingProxyType(self._unloaded),
                memory=MappingProxyType(self.memory),
                namespaces=self._conditions.namespaces,
                topology=self._conditions.topology,
                salt=self._conditions.salt,
            )
            self._instant = Instant(self.policy, view, self.failures, standing=self._standing)
            self._refresh_fingerprint()
        return self._instant

    def _memory_of(self, part: object) -> dict[str, Any]:
        key = memory_key(part)
        if key not in self.memory:
            self.memory[key] = {}
            # A view that was prepared before shows an empty memory that will never be written to.
            self._instant = None
        return self.memory[key]

    def _forget_answers(self) -> None:
        self._instant = None
        self._ballots.clear()
        self._declined.clear()

    def _refresh_fingerprint(self) -> None:
        # Answers are kept as long as everything the policy reads stays the same, over any number of ticks.
        fingerprint = self.policy.fingerprint(self._epoch_us, self._tick_us, self._changes_in_tick)
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            self._ballots.clear()
            self._declined.clear()

    def _choose_destination(self, bundle: str) -> Decision:
        """Draw the destination of a bundle in case its owner gives it up. The draw is kept until it does."""
        request = request_of(None, bundle, LookupOptions())
        ballot, fingerprint = self.decide(request)
        decision = self.draws.decision(bundle, ballot, self.roster, fingerprint)
        if decision.broker is not None:
            number, instant = self._require_number(request, decision), self.instant()
            broker, offers = self.roster[number], ballot.offers
            observed = self.policy.observe(self.memory, request, broker, offers, instant, is_assigned=False)
            if self.policy.remember(self.memory, request, broker, instant.failures) or observed:
                self._instant = None
            self._drawn[bundle] = number
        return decision

    def _book_decision(
        self, request: LookupRequest, decision: Decision, ts_us: int, offers: Sequence[Candidates], instant: Instant
    ) -> None:
        number = self._require_number(request, decision)
        if not self.policy.is_stateful:
            self._give(request.bundle, number, ts_us, decided=True)
            return
        # Observed before the bundle is given away, since the view must be that of the decision.
        observed = self.policy.observe(self.memory, request, self.roster[number], offers, instant, is_assigned=True)
        self._give(request.bundle, number, ts_us, decided=True)
        if self.policy.remember(self.memory, request, self.roster[number], self.failures) or observed:
            self._instant = None

    def _book_unload(self, unload: Unload) -> None:
        self._unloaded[unload.bundle] = self._tick_us
        destination = self._drawn.get(unload.bundle)
        if destination is not None:
            owner = self.ownership.owner(unload.bundle)
            if owner is not None:
                self._moved[unload.bundle] = owner
            # The view shows true owners as long as no bundle has moved.
            self._instant = None
            self._take(unload.bundle, "shed", self._tick_us, reason=unload.reason)
            self._give(unload.bundle, destination, self._tick_us, decided=True)
            return
        number = None if unload.destination is None else self._find_registered(unload.destination)
        self._move(unload.bundle, "shed", number, unload.reason)

    def _move(self, bundle: str, cause: Cause, number: int | None, reason: CycleReason | None = None) -> None:
        self._take(bundle, cause, self._tick_us, reason=reason)
        if number is not None:
            self._give(bundle, number, self._tick_us)

    def _give(self, bundle: str, number: int, ts_us: int, *, decided: bool = False) -> None:
        self._book.give(bundle, number, ts_us, decided=decided)
        self._note_change()

    def _take(self, bundle: str, cause: Cause, ts_us: int, *, reason: CycleReason | None = None) -> None:
        if self._book.take(bundle, cause, ts_us, reason=reason):
            self._note_change()

    def _note_change(self) -> None:
        self._changes_in_tick += 1
        if "view.ownership" in self.policy.reads and self._instant is not None:
            self._refresh_fingerprint()

    def _answer(
        self, number: int | None, reason: Reason | None, decision: Decision | None = None
    ) -> Assigned | Unanswered:
        if number is None:
            # A lookup that no policy was asked about found no broker to ask about.
            return Unanswered(reason or Reason.NO_CANDIDATES, decision)
        broker: Broker = self.roster[number]
        return Assigned(broker.id, broker.lookup_data, decision)

    def _require_number(self, request: LookupRequest, decision: Decision) -> int:
        number = self._find_registered(str(decision.broker))
        # The policy received registered brokers only, so this happens if the registry changed within a decision.
        if number is None:
            raise StateError(f"broker {decision.broker} was chosen for {request.bundle} but has not been registered")
        return number

    def _find_registered(self, broker: str) -> int | None:
        number = self.roster.number(broker)
        return number if number is not None and self.registered[number] else None


def _require_column(noun: str, column: NDArray[Any], roster: Roster) -> None:
    if column.shape != (len(roster),):
        raise ArgumentError(
            f"{noun} has {column.size} values for the {len(roster)} brokers of the roster, not one for each"
        )
