"""A load manager that shows what it is about to do, and tries its shedder's next cycle without carrying it out.

For explanations: a run is replayed once more with such a manager, which decides as any other does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from lookup.engine.ballots import Ballot, roll
from lookup.engine.cycles import CycleReport, Unloading, run_sheds
from lookup.engine.explain import Explanation, explain
from lookup.engine.manager import LoadManager
from lookup.engine.ownership import ASSIGNMENT, Course, Ownership
from lookup.engine.policy import Instant, Policy, memory_key
from lookup.engine.units import in_bytes
from lookup.model import Decision, LookupOptions, LookupRequest, Unload
from lookup.model.request import request_of

__all__ = ["SeenBroker", "WatchedDecision", "WatchedManager"]


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """One registered broker as a policy could see it at an instant."""

    broker: str
    properties: Mapping[str, str]
    #: load / capacity, and weight per second; NaN if it has not reported
    usage: float
    throughput: float
    #: how many bundles it owns
    bundles: int


@dataclass(frozen=True)
class WatchedDecision:
    """A decision with all that led to it."""

    ts_us: int
    request: LookupRequest
    seen: tuple[SeenBroker, ...]
    explanation: Explanation
    decision: Decision
    #: how often dice were rolled for the bundle before, and what they gave; None if none were needed
    rolls: int | None
    dice: float | None


class WatchedManager(LoadManager):
    """A load manager whose decisions and cycles can be looked at while they are taken."""

    #: number, among all of the run, of the decision that is looked at; None: no decision is
    wanted: int | None = None
    #: decision key of the ballots that are looked at, under shared ownership; None: none is
    wanted_key: tuple[Hashable, ...] | None = None
    #: that decision, once it is taken; of ballots the last one
    watched: WatchedDecision | None = None
    #: called at every instant at which a shedder is asked, before it is
    before_cycle: Callable[[WatchedManager], None] | None = None
    _taken = 0

    def take_decisions(self) -> list[Any]:
        """Return the decisions since the last call, and count them."""
        taken = super().take_decisions()
        self._taken += len(taken)
        return taken

    def select(self, request: LookupRequest, ts_us: int, *, course: Course = ASSIGNMENT) -> Decision | None:
        """Choose an owner, and keep all that leads to it if this is the decision that is wanted."""
        number = self._taken + len(self._decisions)
        if number != self.wanted or not len(self._prepared().offered):
            return super().select(request, ts_us, course=course)
        # Looked at before: an assignment changes owners and memory, which the policy may read.
        explanation, seen = explain(self.policy, request, self._prepared()), self.seen()
        rolls = self._draws.rolls(request.bundle)
        decision = super().select(request, ts_us, course=course)
        # A request that was declined before is only counted once more: the wanted decision comes later.
        if decision is not None and self._taken + len(self._decisions) > number:
            has_dice = len(decision.odds) > 1
            dice = roll(self._draws.seed, self.cluster, request.bundle, rolls) if has_dice else None
            self.watched = WatchedDecision(
                ts_us, request, seen, explanation, decision, rolls if has_dice else None, dice
            )
        return decision

    def decide(self, request: LookupRequest) -> tuple[Ballot, str]:
        """Return the policy's ballot, and keep all that leads to it if it is one for the wanted key."""
        ballot, fingerprint = super().decide(request)
        if self.policy.decision_key(request) == self.wanted_key:
            explanation = explain(self.policy, request, self._prepared())
            decision = Decision(
                policy=self.policy.name,
                bundle=request.bundle,
                broker=None,
                declined=ballot.declined,
                propensity=None,
                odds=ballot.odds,
                rejected=ballot.rejected,
                margin=ballot.margin,
                ties=ballot.ties,
                fingerprint=fingerprint,
            )
            self.watched = WatchedDecision(self._tick_us, request, self.seen(), explanation, decision, None, None)
        return ballot, fingerprint

    def shed(self, *, registry_known: bool = True) -> CycleReport[Unload] | None:
        """Run one cycle of the shedder, after it was shown."""
        if self.before_cycle is not None and self.policy.shedder is not None:
            self.before_cycle(self)
        return super().shed(registry_known=registry_known)

    def seen(self) -> tuple[SeenBroker, ...]:
        """Return the registered brokers as they are now."""
        view = self._prepared().view
        bundles = view.ownership.bundles()
        return tuple(
            SeenBroker(
                broker.id,
                {key.removeprefix(broker.property_prefix): text for key, text in broker.lookup_data.properties.items()},
                float(view.load.usage[number]),
                float(view.load.throughput[number]),
                int(bundles[number]),
            )
            for number, broker in enumerate(self.roster)
            if self.registered[number]
        )

    def rehearsed(self, policy: Policy) -> CycleReport[Unload]:
        """Return how a cycle would end now if the shedder were a policy's; owners and memory stay as they are.

        Args:
            policy: this manager's, with other settings of its shedder.
        """
        view = self._prepared().view
        owners = Ownership(self.ownership.ids)
        for bundle, number in self.ownership:
            owners.give(bundle, number)
        unloaded, memory = dict(view.unloaded), copy.deepcopy(self.memory)
        view = replace(view, ownership=owners, unloaded=unloaded, memory=MappingProxyType(memory))

        def carry_out(unload: Unload) -> None:
            """Change the copies as the manager changes its own."""
            unloaded[unload.bundle] = view.now_us
            owners.take(unload.bundle)
            number = None if unload.destination is None else self._registered_number(unload.destination)
            if number is not None:
                owners.give(unload.bundle, number)

        kept = memory.setdefault(memory_key(policy.shedder), {})
        shown = in_bytes(view, *self._bytes) if self._bytes is not None else None
        instant, draws = Instant(policy, view), copy.deepcopy(self._draws)

        def choose(bundle: str) -> Decision:
            """Draw a destination as the manager would, with the dice it would roll."""
            ballot = policy.ballot(request_of(None, bundle, LookupOptions()), instant)
            return draws.decision(bundle, ballot, self.roster, self._fingerprint)

        unloading = Unloading(carry_out, self.in_flight, choose if policy.destination_first else None)
        return run_sheds(policy, instant, kept, unloading, shown=shown)
