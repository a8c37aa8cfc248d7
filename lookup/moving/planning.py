"""Build a plan from a cluster's state, a policy and limits.

It drains brokers, lets the shedder move bundles, and sorts the moves. The engine judges every move as in a cycle of a
replay. Limits appear to the shedder as refusals, and bundles that it may not move are hidden from it. Limits that are
given for a plan replace the shedder's own limits for one cycle. Hit counts do not stop it. It is called again with the
same state until it acts, ends for another reason or returns the same again, as if the cluster had been unchanged for so
many cycles. Means over a history are those of one report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.engine.answers import checked_reads
from lookup.engine.build import parameters_of, part_table
from lookup.engine.cycles import IDLE_CYCLE, Unloading, run_sheds
from lookup.engine.ownership import Ownership
from lookup.engine.policy import Instant, Policy
from lookup.errors import Argument, InputError, PolicyError
from lookup.hooks import Shedder
from lookup.hooks.raised import guard_call
from lookup.model import (
    Candidates,
    ClusterView,
    CycleOutcome,
    CycleReason,
    LookupOptions,
    Probe,
    Reason,
    Ruling,
    Unload,
)
from lookup.model.decision import CYCLE_WORDS
from lookup.model.load import Load, ascending
from lookup.model.load_data import bundle_stats_from_json
from lookup.model.names import endpoint_problem, is_system_bundle
from lookup.model.quoting import join_names, quantity, shown, suggestion
from lookup.model.request import request_of
from lookup.model.time import moment_at
from lookup.moving.balance import Balance, Move
from lookup.moving.plan import Fingerprint, Limits, MoveCosts, MovePlan, PlannedBroker, PlannedFigure, RefusedMove, Step
from lookup.moving.state import ClusterState

__all__ = ["make_plan"]

Floats = NDArray[np.float64]

#: Reason of the moves of a drained broker, and of moves that limits refuse.
DRAIN, MAX_MOVES, MAX_WEIGHT = "drain", "max-moves", "max-weight"
#: Reasons of moves that no shedder proposes, for owners that must not keep the bundle.
_MUST_LEAVE = frozenset({DRAIN, str(Reason.ISOLATION)})
#: Maximum number of calls of a shedder that counts hits.
_CYCLES = 100
#: Unit and better direction of each figure.
_FIGURES: Mapping[str, tuple[str, Literal["up", "down"]]] = {
    "imbalance": ("ratio", "down"),
    "deviation": ("ratio", "down"),
    "outside_isolation": ("bundles", "down"),
    "near": ("ratio", "up"),
}
#: Sums of the same numbers in another order differ by less, as a ratio.
_ROUND_OFF = 1e-9
#: Moves below are left out, by the load of a bundle over the mean broker's, and that of the lightest moves over all.
_LEAST, _LEAST_TOGETHER = 0.001, 0.01


def make_plan(state: ClusterState, policy: Policy, limits: Limits) -> MovePlan:
    """Plan the moves to make now.

    Args:
        policy: has a shedder. Its filters decide where bundles may go.
        limits: brokers to drain by their ids, or by their hosts if these name one broker.

    Raises:
        InputError: if the policy has no shedder, or a limit names an unknown broker or namespace.
        PolicyError: if a part of the policy fails.
    """
    if policy.shedder is None:
        raise InputError(f"policy {policy.name!r} has no shedder, which plans the moves; name one with a shedder")
    limits = limits.model_copy(update={"drain": tuple(_resolve_drain(state, name) for name in limits.drain)})
    namespaces = {bundle.rpartition("/")[0] for bundle in state.owners}
    for name in limits.only:
        if name not in namespaces:
            hint = suggestion(name, namespaces)
            raise InputError(Argument("only"), f": no bundle of namespace {shown(name)} has an owner; {hint}")
    planner = _Planner(state, policy, limits)
    planner.drain()
    outcome = planner.shed()
    planner.leave_out()
    return planner.plan(outcome)


def _resolve_drain(state: ClusterState, name: str) -> str:
    brokers = state.view.brokers
    if brokers.number(name) is not None:
        return name
    ids = [broker.id for broker in brokers if broker.host == name]
    if len(ids) == 1:
        return ids[0]
    candidates = ids or brokers.ids
    raise InputError(Argument("drain"), f": there is no broker {shown(name)}; {suggestion(name, candidates)}")


@dataclass(frozen=True)
class _Bounded:
    """A shedder within limits, which records refused unloads."""

    name: str
    reads: frozenset[str]
    shedder: Shedder
    #: returns why a limit forbids an unload, None if none does
    objection: Callable[[Unload], str | None]
    #: takes a refused unload and its reason
    note: Callable[[Unload, str], None]

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[Unload | Probe, Ruling, CycleOutcome]:
        """Pass proposals on, except those forbidden by a limit."""
        cycle = self.shedder.propose(view, memory)
        try:
            proposal = next(cycle)
            while True:
                unload: Any = proposal.unload if isinstance(proposal, Probe) else proposal
                # The engine rejects any other object.
                why = self.objection(unload) if isinstance(unload, Unload) else None
                ruling = Ruling(accepted=False, reason=Reason.FILTERED) if why else (yield proposal)
                if not ruling.accepted and isinstance(unload, Unload):
                    self.note(unload, why or str(ruling.reason))
                proposal = cycle.send(ruling)
        except StopIteration as ended:
            outcome: CycleOutcome = ended.value
            return outcome


class _Planner:
    """The moves of one plan, as they are found."""

    def __init__(self, state: ClusterState, policy: Policy, limits: Limits) -> None:
        self._state, self._limits = state, limits
        # A filter that fails refuses a move, since it is not known whether the move is allowed.
        self._policy = policy.with_errors_raised
        view = state.fresh_view()
        self.balance, self._start = Balance(state, limits.drain), Balance(state, limits.drain)
        if not self.balance.staying.any():
            raise InputError(Argument("drain"), ": no broker with a load report is left that could take anything")
        # Drained brokers do not get bundles.
        self._view = replace(view, registered=view.registered & ~self.balance.drained)
        self._instant = Instant(self._policy, self._view)
        assert isinstance(view.ownership, Ownership)
        self._owners = view.ownership
        self._least = _LEAST * float(self._start.loads[self._start.counted].mean())
        self.moves: list[Move] = []
        self._moved_weight = 0.0
        #: bundles without report, by the number of their broker
        self._quiet = Counter(
            self._number(owned.broker) for bundle, owned in state.owners.items() if bundle not in state.loads
        )
        #: by bundle, its intended destination, and the reason why it may not move
        self._refused: dict[str, tuple[str | None, str]] = {}

    # Limits.

    @property
    def _weight_left(self) -> float:
        most = math.inf if self._limits.max_weight is None else self._limits.max_weight
        return most - self._moved_weight

    @property
    def _moves_left(self) -> float:
        return (math.inf if self._limits.max_moves is None else self._limits.max_moves) - len(self.moves)

    def _find_limit(self, weight: float) -> str | None:
        if self._moves_left < 1:
            return MAX_MOVES
        return MAX_WEIGHT if weight > self._weight_left * (1.0 + _ROUND_OFF) else None

    def _may_move(self, bundle: str) -> bool:
        return not self._limits.only or bundle.rpartition("/")[0] in self._limits.only

    def _carry_out(self, move: Move) -> None:
        self._owners.take(move.bundle)
        self._owners.give(move.bundle, move.destination)
        self.balance.move([move])
        self.moves.append(move)
        self._moved_weight += move.weight

    # Brokers to drain.

    def drain(self) -> None:
        leaving = {
            bundle: reason for bundle in self._state.owners if (reason := self._explain_leaving(bundle)) is not None
        }
        weights = {bundle: self._weight(bundle) for bundle in leaving if self._may_move(bundle)}
        for bundle, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
            place = self._choose_place(bundle, weight)
            if isinstance(place, str):
                self._refused[bundle] = None, place
            else:
                source = self._number(self._state.owners[bundle].broker)
                self._carry_out(Move(bundle, source, place, weight, leaving[bundle]))

    def _explain_leaving(self, bundle: str) -> str | None:
        """Explain why a bundle cannot stay. Its broker is drained, or a filter always refuses it the bundle."""
        owner = self._state.owners[bundle].broker
        if owner in self._limits.drain:
            return DRAIN
        number = self._view.brokers.number(owner)
        if number is None or number not in self._instant.offered.index:
            return None
        request, brokers = request_of(None, bundle, LookupOptions()), self._instant.offered
        for index, part in enumerate(self._policy.filters):
            may_admit = getattr(part, "may_admit", None)
            if may_admit is None:
                continue
            with guard_call(f"filter {part.name!r} raised "):
                mask = np.asarray(may_admit(self._policy.cuts[index](request), brokers, self._instant.seen_by(index)))
            if not mask[brokers.index == number].all():
                return str(part.reason)
        return None

    def _number(self, broker: str) -> int:
        number = self._view.brokers.number(broker)
        assert number is not None
        return number

    def _weight(self, bundle: str) -> float:
        """Look up the load of a bundle, by default an equal share of its broker's load outside reported bundles."""
        load = self._state.loads.get(bundle)
        if load is not None:
            return load
        source = self._number(self._state.owners[bundle].broker)
        return float(self.balance.besides[source] / self._quiet[source])

    def _choose_place(self, bundle: str, weight: float) -> int | str:
        """Choose the broker with the least load after it gets a bundle, or return why there is none."""
        if is_system_bundle(bundle):
            return Reason.SYSTEM_NAMESPACE
        objection = self._find_limit(weight)
        if objection is not None:
            return objection
        source = self._number(self._state.owners[bundle].broker)
        if not self._state.view.registered[source]:
            return Reason.LOAD_MANAGER_CLASS
        admitted = self._instant.offered.index
        for brokers, reason in self._iter_filtered(bundle):
            if not len(brokers):
                return str(reason)
            admitted = brokers.index
        # A broker of which no load is known may be full.
        admitted = admitted[self.balance.staying[admitted] & (admitted != source)]
        if not len(admitted):
            return Reason.NO_CANDIDATES
        filled = (self.balance.loads[admitted] + weight) / self.balance.capacities[admitted]
        return int(admitted[int(np.argmin(filled))])

    def _iter_filtered(self, bundle: str) -> Iterator[tuple[Candidates, Reason]]:
        """Yield the brokers that are left after each of the policy's filters, and the filter's reason."""
        policy, request = self._policy, request_of(None, bundle, LookupOptions())
        brokers = self._instant.offered
        for index, part in enumerate(policy.filters):
            try:
                brokers = brokers.subset(policy.apply_filter(index, request, brokers, self._instant))
            except PolicyError:
                yield brokers.subset(np.zeros(len(brokers), dtype=np.bool_)), Reason.POLICY_ERROR
                return
            yield brokers, part.reason

    # The shedder.

    def shed(self) -> CycleOutcome:
        """Run the shedder on the cluster after the drain, and return the outcome."""
        shedder = self._policy.shedder
        assert shedder is not None
        if self._moves_left < 1 or not self._weight_left > 0.0:
            return IDLE_CYCLE.outcome
        # A name is that of a class elsewhere, and here an object's own.
        bounded: Any = _Bounded(
            shedder.name,
            checked_reads(shedder),
            self._with_plan_budget(shedder),
            self._exceeds_limit,
            self._record_refusal,
        )
        policy = replace(self._policy, shedder=bounded)
        instant = self._instant = Instant(policy, replace(self._view, load=self._build_shown_load()))
        memory: dict[str, Any] = {}

        def carry_out(unload: Unload) -> None:
            """Record a move. The default destination is the emptiest broker that may have the bundle."""
            source, weight = self._number(unload.source), self._weight(unload.bundle)
            place = self._choose_place(unload.bundle, weight) if unload.destination is None else unload.destination
            number = self._view.brokers.number(place) if isinstance(place, str) else place
            if number is not None and unload.destination is None and not self._relieves(source, number, weight):
                place, number = Reason.OWNER_CHOSEN, None
            if number is None:
                self._refused[unload.bundle] = None, str(place)
                return
            self._carry_out(Move(unload.bundle, source, number, weight, str(unload.reason)))

        unloading = Unloading(carry_out)
        report, short = IDLE_CYCLE, None
        for _ in range(_CYCLES if len(instant.offered) > 1 else 0):
            report, before = run_sheds(policy, instant, memory, unloading), short
            short = report.outcome.short
            # A shedder that counts hits lacks fewer each time. For a balanced cluster it returns the same again.
            is_said_again = short is not None and short == before
            if report.accepted or report.outcome.reason is not CycleReason.HIT_COUNT or is_said_again:
                break
        return report.outcome

    def _relieves(self, source: int, destination: int, weight: float) -> bool:
        """Check whether the destination after a move is emptier than its source is now."""
        loads, capacities = self.balance.loads, self.balance.capacities
        return bool((loads[destination] + weight) / capacities[destination] < loads[source] / capacities[source])

    def _exceeds_limit(self, unload: Unload) -> str | None:
        # The engine rejects unowned bundles.
        return self._find_limit(self._weight(unload.bundle)) if unload.bundle in self._state.owners else None

    def _with_plan_budget(self, shedder: Shedder) -> Shedder:
        """Replace a shedder's own budget for a cycle, if it has one, by the limits of the plan."""
        limits = self._limits
        if limits.max_moves is None and limits.max_weight is None:
            return shedder
        has = {entry.name for entry in parameters_of(type(shedder))}
        total = float(self.balance.loads.sum())
        budget = {
            "max_moves": int(min(self._moves_left, len(self._state.owners))),
            "max_share": min(1.0, self._weight_left / total) if total > 0.0 else 1.0,
        }
        part: Any = shedder
        return replace(part, **{name: value for name, value in budget.items() if name in has})  # type: ignore[no-any-return]

    def _build_shown_load(self) -> Load:
        """Build the load that the shedder sees after the drain, with only the bundles that it may move."""
        load, moved = self._view.load, {move.bundle for move in self.moves}
        bundles = [
            ascending(
                entry
                for entry in entries
                if entry.bundle not in moved and self._may_move(entry.bundle) and entry.load >= self._least
            )
            for entries in load.top_bundles
        ]
        before, after = self._start.loads, self.balance.loads
        grown = np.divide(after, before, out=np.ones(len(after)), where=before > 0.0)
        throughput = np.where(np.isnan(load.throughput), np.nan, after)
        # Resources are taken to be used as load is.
        scaled = (None if column is None else column * grown for column in (load.max_usage, load.smoothed_throughput))
        max_usage, smoothed = scaled
        return replace(
            load,
            top_bundles=bundles,
            throughput=throughput,
            usage=load.usage * grown,
            max_usage=max_usage,
            smoothed_throughput=smoothed,
        ).read_only()

    def _record_refusal(self, unload: Unload, reason: str) -> None:
        if unload.bundle in self._refused:
            return
        if reason == Reason.DESTINATION_FILTERED and unload.destination is not None:
            number = self._number(unload.destination)
            refusing = (str(why) for brokers, why in self._iter_filtered(unload.bundle) if number not in brokers.index)
            reason = next(refusing, reason)
        self._refused[unload.bundle] = unload.destination, reason

    def leave_out(self) -> None:
        """Remove the shedder's moves with almost no gain, for which clients would reconnect as for others."""
        optional = sorted((move for move in self.moves if move.reason not in _MUST_LEAVE), key=lambda move: move.weight)
        together = np.cumsum([move.weight for move in optional])
        for move, weight in zip(optional, together, strict=True):
            if move.weight < self._least or weight < _LEAST_TOGETHER * together[-1]:
                self.moves.remove(move)
        self.balance = Balance(self._state, self._limits.drain)
        self.balance.move(self.moves)

    # The plan.

    def plan(self, outcome: CycleOutcome) -> MovePlan:
        state, view = self._state, self._state.view
        moved = {move.bundle: move.destination for move in self.moves}
        before, after = self._start.figures() | state.figures({}), self.balance.figures() | state.figures(moved)
        refused = [
            RefusedMove(bundle=bundle, source=state.owners[bundle].broker, destination=destination, reason=reason)
            for bundle, (destination, reason) in sorted(self._refused.items())
            if bundle not in moved
        ]
        counts = Counter(of.broker for of in state.owners.values())
        is_known = ~np.isnan(view.load.throughput)
        brokers = tuple(
            PlannedBroker(
                id=broker.id,
                web_url=None if url is None or endpoint_problem("admin", url) else url,
                load=float(self._start.loads[number]) if is_known[number] else None,
                load_after=float(self.balance.loads[number]) if is_known[number] else None,
                bundles=counts[broker.id],
            )
            for number, broker in enumerate(view.brokers)
            for url in [broker.lookup_data.web_service_url or broker.lookup_data.web_service_url_tls]
        )
        assert self._policy.shedder is not None
        return MovePlan(
            cluster=view.cluster,
            made=moment_at(state.rows.at_us),
            policy={"policy": self._policy.name, "shedder": part_table(self._policy.shedder)},
            limits=self._limits,
            brokers=brokers,
            steps=tuple(self._order_steps()),
            refused=tuple(refused),
            figures=tuple(
                PlannedFigure(metric=of[0], key=of[1], value=value, unit=unit, better=better, before=before[of])
                for of, value in after.items()
                for unit, better in [_FIGURES[of[0]]]
            ),
            why=self._explain_plan(outcome),
            missing=(*state.missing, *self._list_unread()),
        )

    def _list_unread(self) -> Iterable[str]:
        shedder = self._policy.shedder
        assert shedder is not None
        if "view.load.origins" in checked_reads(shedder) and not self._view.load.origins:
            unknown = "brings load near its clients, but no lookups locate them"
            yield f"{shedder.name} {unknown}: it only evens it out"

    def _explain_plan(self, outcome: CycleOutcome) -> str:
        drained = sum(move.reason == DRAIN for move in self.moves)
        parts = []
        if self._limits.drain:
            owned = sum(owned.broker in self._limits.drain for owned in self._state.owners.values())
            names = join_names(self._limits.drain)
            parts.append(
                f"{drained:,} of {quantity(owned, 'bundle')} can leave {names}" if owned else f"{names} owns nothing"
            )
        strays = sum(move.reason == Reason.ISOLATION for move in self.moves)
        if strays:
            parts.append(f"{quantity(strays, 'bundle')} can leave brokers that isolation does not permit")
        assert self._policy.shedder is not None
        words = CYCLE_WORDS.get(outcome.reason, str(outcome.reason))
        if len(self.moves) == drained + strays:
            is_spent = self._moves_left < 1 or not self._weight_left > 0.0
            short = "" if outcome.short is None else f" ({outcome.short})"
            words = "the limits leave no more" if is_spent else f"{words}{short}"
        return "; ".join([*parts, f"{self._policy.shedder.name}: {words}", *self._explain_ends()])

    def _explain_ends(self) -> Iterator[str]:
        """Yield the limits without which the plan would go on."""
        shedder, limits, balance = self._policy.shedder, self._limits, self.balance
        assert shedder is not None
        refusals = {reason for _, reason in self._refused.values()}
        filled = np.where(balance.counted, balance.loads / balance.capacities, -np.inf)
        fullest, aim = int(np.argmax(filled)), getattr(shedder, "max_imbalance", 1.0) * (1.0 + _ROUND_OFF)
        is_uneven = filled[fullest] > aim * balance.mean
        loads = [entry.load for entry in self._build_shown_load().top_bundles[fullest]]
        own = [move.weight for move in self.moves if move.reason not in _MUST_LEAVE]
        names, moves_left, weight_left = ("max_moves", "max_weight"), self._moves_left, self._weight_left
        if limits.max_moves is None and limits.max_weight is None:
            names = f"{shedder.name}.max_moves", f"{shedder.name}.max_share"
            moves_left = getattr(shedder, "max_moves", math.inf) - len(own)
            weight_left = getattr(shedder, "max_share", math.inf) * balance.loads.sum() - sum(own)
        if MAX_MOVES in refusals or (is_uneven and moves_left < 1):
            yield f"ended by {names[0]}"
        elif MAX_WEIGHT in refusals or (is_uneven and loads and min(loads) > weight_left):
            yield f"ended by {names[1]}"
        silent = [broker.id for broker, known in zip(self._view.brokers, balance.counted, strict=True) if not known]
        if silent:
            yield f"ended by the age of reports: {join_names(silent)} can take nothing"

    def _order_steps(self) -> Iterable[Step]:
        """Yield the moves in order, required ones first, and then by the most gain for each reconnect."""
        balance, state, ids = Balance(self._state, self._limits.drain), self._state, self._view.brokers.ids
        most, number = balance.figures()["imbalance", None], 0
        for is_drain in (True, False):
            moves = [move for move in self.moves if (move.reason in _MUST_LEAVE) is is_drain]
            costs = [self._costs(move) for move in moves]
            clients = np.array([max(1, (cost.producers or 0) + (cost.consumers or 0)) for cost in costs])
            nearer = np.array([self._compute_near_gain(move) for move in moves])
            weights = np.array([move.weight for move in moves])
            ends = np.array([(move.source, move.destination) for move in moves], dtype=np.int64).reshape(-1, 2).T
            is_left = np.ones(len(moves), dtype=np.bool_)
            for _ in moves:
                gains = (balance.gains(ends[0], ends[1], weights) + nearer) / clients
                place = int(np.argmax(np.where(is_left, gains, -np.inf)))
                move, is_left[place] = moves[place], False
                balance.move([move])
                number += 1
                imbalance = balance.figures()["imbalance", None]
                owned = state.owners[move.bundle]
                yield Step(
                    number=number,
                    bundle=move.bundle,
                    source=ids[move.source],
                    destination=ids[move.destination],
                    weight=state.loads.get(move.bundle),
                    reason=move.reason,
                    fingerprint=Fingerprint(since=moment_at(owned.since_us), epoch=state.epoch_of(owned.broker)),
                    costs=costs[place],
                    imbalance=imbalance,
                    worse=imbalance > most * (1.0 + _ROUND_OFF),
                )

    def _costs(self, move: Move) -> MoveCosts:
        report = self._state.reports.get(move.bundle)
        if report is None:
            return MoveCosts()
        stats = bundle_stats_from_json(report)
        return MoveCosts(topics=stats.topics, producers=stats.producer_count, consumers=stats.consumer_count)

    def _compute_near_gain(self, move: Move) -> float:
        """Compute the load that a move brings near its clients, bytes per second, 0 if it does not count."""
        key, brokers = getattr(self._policy.shedder, "near", None) or "", self._view.brokers
        loads = self._view.load.origins.get(key, {}).get(move.bundle, {})
        shares = [loads.get(str(brokers[number].property_of(key)), 0.0) for number in (move.source, move.destination)]
        return move.weight * (shares[1] - shares[0]) / sum(loads.values()) if loads else 0.0
