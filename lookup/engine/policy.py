"""A policy: filters, scorers and a selector composed into one function from a request and a view to odds.

Nothing is rolled and nothing is remembered here; `manager.py` does both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.engine.answers import (
    Failures,
    checked_mask,
    checked_odds,
    checked_reads,
    checked_scores,
    listed,
    one_by_one,
)
from lookup.engine.ballots import Ballot, Kept, SecondChoice, tallied
from lookup.engine.facets import field_of, fields_in, request_facet, view_facet
from lookup.engine.reporting import Cadence
from lookup.errors import ContractError, PolicyError
from lookup.hooks.protocols import Filter, Offer, Scorer, Selector, Shedder, Splitter
from lookup.hooks.raised import raised
from lookup.model.broker import Broker, Candidates
from lookup.model.decision import Reason
from lookup.model.request import LookupRequest
from lookup.model.view import ClusterView

__all__ = ["Instant", "OnError", "Policy", "WeightedScorer", "memory_key", "shared_problems"]

#: What every assignment may change.
_UNSETTLED: Final = frozenset({"view.ownership", "view.memory"})

OnError = Literal["stop", "fail-closed", "skip"]
#: Stands for the answer of a part that raised; a part that answers None breaks its protocol.
_FAILED: Final = object()


@dataclass(frozen=True, slots=True)
class WeightedScorer:
    """A scorer and the weight its scores have in the sum."""

    scorer: Scorer
    weight: float = 1.0


class _ClosedError(Exception):
    """A part failed and the policy fails closed; never leaves this module."""

    #: what the filters before the failing part rejected
    rejected: Mapping[Reason, int] = MappingProxyType({})


@dataclass(frozen=True)
class Policy:
    """The thing with a name in a report."""

    name: str
    selector: Selector
    filters: tuple[Filter, ...] = ()
    scorers: tuple[WeightedScorer, ...] = ()
    shedder: Shedder | None = None
    on_error: OnError = "stop"
    splitter: Splitter | None = None
    #: µs for which what the shedder unloaded is left in peace; loadBalancerSheddingGracePeriodMinutes, by default 30
    grace_us: int = 30 * 60 * 1_000_000
    #: how brokers publish their load, where that is simulated
    cadence: Cadence = Cadence()
    #: whom it asks about where the first choice is none, or overloaded
    second_choice: SecondChoice | None = None

    @cached_property
    def parts(self) -> tuple[Filter | Scorer | Selector, ...]:
        """Return the parts that decide, in the order they are asked."""
        return (*self.filters, *(term.scorer for term in self.scorers), self.selector)

    @cached_property
    def reads(self) -> frozenset[str]:
        """Return everything the deciding parts declare to read, and what a second choice goes by."""
        own = frozenset[str]() if self.second_choice is None else frozenset({"view.load"})
        return own.union(*self.part_reads)

    @cached_property
    def unforgiving(self) -> Policy:
        """Return the same policy, of which every part that fails raises."""
        return replace(self, on_error="stop")

    @cached_property
    def part_reads(self) -> tuple[frozenset[str], ...]:
        """Return what each of `parts` declares to read.

        Raises:
            ContractError: where a part declares something that does not exist.
        """
        return tuple(checked_reads(part) for part in self.parts)

    @cached_property
    def request_reads(self) -> tuple[str, ...]:
        """Return the fields of a request that make its decision key, sorted; `properties` swallows single ones."""
        return fields_in(self.reads)

    @cached_property
    def is_stateful(self) -> bool:
        """Tell whether a part keeps memory between decisions."""
        return "view.memory" in self.reads or bool(self._keepers or self._observers)

    def decision_key(self, request: LookupRequest) -> tuple[Hashable, ...]:
        """Return what the odds of a request depend on, apart from the instant."""
        return tuple([field_of(request, name) for name in self.request_reads])

    def fingerprint(self, epoch_us: int, tick_us: int, changes: int) -> str:
        """Name the instant the odds depend on.

        Args:
            changes: ownership changes since the tick began.
        """
        if "view.ownership" in self.reads:
            return f"{epoch_us}/{tick_us}/{changes}"
        if self.reads & {"view.load", "view.now", "view.memory"}:
            return f"{epoch_us}/{tick_us}"
        return str(epoch_us)

    def ballot(self, request: LookupRequest, instant: Instant) -> Ballot:
        """State the odds of a request over the registered brokers.

        Raises:
            PolicyError: where a part raises and `on_error` is stop.
            ContractError: where a part breaks its protocol.
        """
        try:
            kept = self._filtered(request, instant)
            if self.second_choice is None:
                return self._among(request, instant, kept)
            return self._second(self.second_choice, request, instant, kept)
        except _ClosedError as closed:
            return Ballot(rejected=closed.rejected, declined=Reason.POLICY_ERROR)
        except ContractError as breach:
            raise type(breach)(f"policy {self.name!r}: {breach}") from breach

    def _second(self, choice: SecondChoice, request: LookupRequest, instant: Instant, kept: Kept) -> Ballot:
        few, everybody = range(choice.filters), Kept(instant.offered, {})
        fewer = partial(self._narrowed, few, request, everybody, instant)
        among = partial(self._among, request, instant)
        return choice.made(kept, instant.view, among, lambda: among(fewer()))

    def _among(self, request: LookupRequest, instant: Instant, kept: Kept) -> Ballot:
        if not len(kept.brokers):
            return Ballot(rejected=kept.rejected, declined=Reason.NO_CANDIDATES)
        try:
            chosen = self._chosen(request, kept.brokers, instant)
        except _ClosedError as closed:
            closed.rejected = kept.rejected
            raise
        if self._observers:
            chosen = replace(chosen, offered=kept.brokers)
        return chosen.after(kept.rejected) if kept.rejected else chosen

    def _chosen(self, request: LookupRequest, brokers: Candidates, instant: Instant) -> Ballot:
        """Ask scorers and selector about those the filters left; once per instant where only a filter sees changes."""
        if self._choice_reads is None:
            return self._choice(request, brokers, instant)
        key = tuple([field_of(request, name) for name in self._choice_reads]), brokers.index.tobytes()
        known = instant.chosen.get(key)
        if known is None:
            known = instant.chosen[key] = self._choice(request, brokers, instant)
        return known

    def _choice(self, request: LookupRequest, brokers: Candidates, instant: Instant) -> Ballot:
        scores = self.scores(request, brokers, instant)
        odds = self.odds(request, brokers, scores, instant)
        return tallied(brokers, scores, odds, are_scored=bool(self.scorers))

    @cached_property
    def _choice_reads(self) -> tuple[str, ...] | None:
        """Return what scorers and selector read of a request; None where an assignment changes their answers.

        Also None where it changes no filter's: then whole ballots are kept, by decision key.
        """
        reads = frozenset[str]().union(*self.part_reads[len(self.filters) :])
        keeps = self._settled < len(self.filters) and not reads & _UNSETTLED
        return fields_in(reads) if keeps else None

    def _filtered(self, request: LookupRequest, instant: Instant) -> Kept:
        """Ask the filters in order, until one leaves nobody; once per instant those no assignment can change."""
        known = self._settled
        key = tuple([field_of(request, name) for name in self._settled_reads])
        kept = instant.kept.get(key)
        if kept is None:
            kept = instant.kept[key] = self._narrowed(range(known), request, Kept(instant.offered, {}), instant)
        return self._narrowed(range(known, len(self.filters)), request, kept, instant)

    def _narrowed(self, places: Iterable[int], request: LookupRequest, kept: Kept, instant: Instant) -> Kept:
        brokers, rejected, is_unsure = kept
        before = instant.failures.count
        for place in places:
            if not len(brokers):
                break
            try:
                mask = self.admitted(place, request, brokers, instant)
            except _ClosedError as closed:
                closed.rejected = rejected
                raise
            refused = len(mask) - int(np.count_nonzero(mask))
            if refused:
                reason = self.filters[place].reason
                rejected = {**rejected, reason: rejected.get(reason, 0) + refused}
                brokers = brokers.subset(mask)
        return Kept(brokers, rejected, is_unsure or instant.failures.count > before)

    @cached_property
    def _settled(self) -> int:
        """Return how many filters come before the first whose answer an assignment can change."""
        reads = [bool(part & _UNSETTLED) for part in self.part_reads[: len(self.filters)]]
        return reads.index(True) if True in reads else len(reads)

    @cached_property
    def _settled_reads(self) -> tuple[str, ...]:
        return fields_in(frozenset[str]().union(*self.part_reads[: self._settled]))

    def admitted(self, place: int, request: LookupRequest, brokers: Candidates, instant: Instant) -> NDArray[np.bool_]:
        """Ask one filter, by its place; return a mask of shape (n_candidates,)."""
        part, view = self.filters[place], instant.views[place]
        answers: list[Any] = []
        try:
            answer = part.admit(self._cuts[place](request), brokers, view)
            if isinstance(answer, np.ndarray) and answer.ndim:
                return checked_mask(part.name, answer, brokers)
            for admitted in one_by_one(part.name, answer, len(brokers)):
                answers.append(admitted)  # noqa: PERF402  a generator that raises half way keeps its answers so far
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a third party's code may raise anything; on_error decides
            self._failed(part.name, request, error, instant.failures)
            answers.extend([True] * (len(brokers) - len(answers)))
        return checked_mask(part.name, answers, brokers)

    def scores(self, request: LookupRequest, brokers: Candidates, instant: Instant) -> NDArray[np.float64]:
        """Return the weighted sum of the scorers, shape (n_candidates,), all 1.0 where there are none."""
        if not self.scorers:
            return np.ones(len(brokers))
        total = np.zeros(len(brokers))
        for place in range(len(self.scorers)):
            total += self.scorers[place].weight * self.score(place, request, brokers, instant)
        return total

    def score(self, place: int, request: LookupRequest, brokers: Candidates, instant: Instant) -> NDArray[np.float64]:
        """Ask one scorer, by its place; return its own scores, shape (n_candidates,)."""
        scorer, slot = self.scorers[place].scorer, len(self.filters) + place
        answer = self._asked(
            scorer.name,
            request,
            instant,
            lambda: scorer.score(self._cuts[slot](request), brokers, instant.views[slot]),
        )
        return np.zeros(len(brokers)) if answer is _FAILED else checked_scores(scorer.name, answer, brokers)

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], instant: Instant
    ) -> NDArray[np.float64]:
        """Ask the selector; return its weights, shape (n_candidates,)."""
        selector = self.selector
        # The margin is told from the same scores afterwards.
        scores.setflags(write=False)
        answer = self._asked(
            selector.name,
            request,
            instant,
            lambda: selector.odds(self._cuts[-1](request), brokers, scores, instant.views[-1]),
        )
        return np.zeros(len(brokers)) if answer is _FAILED else checked_odds(selector.name, answer, brokers)

    def remember(
        self, memory: dict[str, dict[str, Any]], request: LookupRequest, broker: Broker, failures: Failures
    ) -> bool:
        """Let every part that keeps memory note an assignment; tell whether there is one.

        The assignment stands when a part fails here, whatever `on_error` says, unless it says stop.

        Args:
            memory: by `memory_key`, changed in place.

        Raises:
            PolicyError: where a part raises and `on_error` is stop.
        """
        for part, cut in self._keepers:
            kept = memory.setdefault(memory_key(part), {})
            self._told(part, request, failures, partial(part.remember, kept, cut(request), broker))
        return bool(self._keepers)

    def observe(
        self,
        memory: dict[str, dict[str, Any]],
        request: LookupRequest,
        broker: Broker,
        offer: tuple[Candidates | None, Instant],
    ) -> bool:
        """Let every part that observes note an assignment with what was offered; tell whether there is one.

        Args:
            memory: by `memory_key`, changed in place.
            offer: whom the filters left, and the instant the decision was taken at.

        Raises:
            PolicyError: as `remember` does.
        """
        brokers, instant = offer
        if brokers is None:
            return False
        for place, part, cut in self._observers:
            kept, offered = memory.setdefault(memory_key(part), {}), Offer(brokers, instant.views[place])
            self._told(part, request, instant.failures, partial(part.observe, kept, cut(request), broker, offered))
        return bool(self._observers)

    def _told(self, part: Any, request: LookupRequest, failures: Failures, tell: Callable[[], None]) -> None:
        """Tell a part of an assignment, which stands when the part fails."""
        try:
            tell()
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a third party's code may raise anything; on_error decides
            with suppress(_ClosedError):
                self._failed(part.name, request, error, failures)

    @cached_property
    def _observers(self) -> tuple[tuple[int, Any, Callable[[LookupRequest], LookupRequest]], ...]:
        """Return the parts that observe what is offered, with their places and their cuts of a request."""
        named = zip(self.parts, self._cuts, strict=True)
        return tuple((place, part, cut) for place, (part, cut) in enumerate(named) if hasattr(part, "observe"))

    @cached_property
    def _keepers(self) -> tuple[tuple[Any, Callable[[LookupRequest], LookupRequest]], ...]:
        """Return the parts that keep memory, with their cuts of a request."""
        named = zip(self.parts, self._cuts, strict=True)
        return tuple((part, cut) for part, cut in named if hasattr(part, "remember"))

    @cached_property
    def _cuts(self) -> tuple[Callable[[LookupRequest], LookupRequest], ...]:
        named = zip(self.parts, self.part_reads, strict=True)
        return tuple(request_facet(part.name, reads) for part, reads in named)

    def __getstate__(self) -> dict[str, Any]:
        # The cuts are closures, which do not pickle; they are made again where they are needed.
        return {name: value for name, value in self.__dict__.items() if name not in {"_cuts", "_keepers", "_observers"}}

    def _asked(self, part: str, request: LookupRequest, instant: Instant, ask: Callable[[], Any]) -> Any:
        try:
            return listed(ask())
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a third party's code may raise anything; on_error decides
            self._failed(part, request, error, instant.failures)
            return _FAILED

    def _failed(self, part: str, request: LookupRequest, error: BaseException, failures: Failures) -> None:
        what = f"policy {self.name!r}: part {part!r} raised {raised(error)}"
        message = f"{what}; it was asked about {request.topic or request.bundle} {dict(request.properties)}"
        if self.on_error == "stop":
            raise PolicyError(message) from error
        failures.note(message)
        if self.on_error == "fail-closed":
            raise _ClosedError


class Instant:
    """One view prepared for one policy: who is offered, and each part's own cut of the view."""

    __slots__ = ("chosen", "failures", "kept", "offered", "view", "views")

    def __init__(self, policy: Policy, view: ClusterView, failures: Failures | None = None) -> None:
        self.view = view
        index = np.flatnonzero(view.registered)
        index.setflags(write=False)
        self.offered = Candidates(view.brokers, index)
        self.views = [
            view_facet(part.name, reads, view, MappingProxyType(view.memory.get(memory_key(part), {})))
            for part, reads in zip(policy.parts, policy.part_reads, strict=True)
        ]
        self.failures = Failures() if failures is None else failures
        #: what the filters that no assignment can change have left, by what they read of the request
        self.kept: dict[tuple[Hashable, ...], Kept] = {}
        #: what scorers and selector said, by what they read of the request and whom they were asked about
        self.chosen: dict[Hashable, Ballot] = {}


def memory_key(part: object) -> str:
    """Return the name under which a part's memory is kept."""
    return str(getattr(part, "memory_key", getattr(part, "name", "")))


def shared_problems(policies: Iterable[Policy]) -> list[str]:
    """Return why policies cannot be replayed under shared ownership, a sentence each; empty where they can."""
    return [
        f'policy {policy.name!r} cannot be replayed under ownership = "shared": it {reason}'
        for policy in policies
        for reason in _needs(policy)
    ]


def _needs(policy: Policy) -> list[str]:
    needs = []
    if policy.shedder is not None:
        needs.append(f"has a shedder, {policy.shedder.name!r}, and no bundle has an owner to be taken from")
    if policy.is_stateful:
        needs.append("keeps memory between decisions, whose order is not defined")
    readers = [
        part.name for part, reads in zip(policy.parts, policy.part_reads, strict=True) if "view.ownership" in reads
    ]
    if readers:
        needs.append(f"reads view.ownership ({', '.join(readers)}), and nobody owns anything")
    return needs
