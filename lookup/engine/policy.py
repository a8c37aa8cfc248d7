"""Compose filters, scorers and a selector into a policy, a function from a request and a view to odds.

The module does not draw or remember anything. `manager.py` does both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookup.engine.answers import (
    Failures,
    checked_mask,
    checked_odds,
    checked_reads,
    checked_scores,
    exhaust_generator,
    one_by_one,
)
from lookup.engine.ballots import Ballot, Kept, SecondChoice, tally
from lookup.engine.facets import field_of, fields_in, request_facet, view_facet
from lookup.engine.reporting import Cadence
from lookup.engine.weighing import ResourceWeights
from lookup.errors import ContractError, PolicyError
from lookup.hooks.protocols import Filter, Offer, Scorer, Selector, Shedder, Splitter
from lookup.hooks.raised import describe_error, guard_call
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason
from lookup.model.bundles import NamespacePolicies

__all__ = ["Instant", "OnError", "Policy", "Standing", "WeightedScorer", "memory_key"]

#: Cached answers of filters and scorers for a registry epoch, by the fields they depend on.
Standing: TypeAlias = dict[Hashable, NDArray[Any]]

#: Parts of a view that every assignment may change.
_UNSETTLED: Final = frozenset({"view.ownership", "view.memory"})
#: Parts of a view that may change within a registry epoch.
_CHANGING: Final = _UNSETTLED | {"view.load", "view.now"}
#: The fields on which all requests about the bundles of a namespace agree, apart from the kind of topic.
_OF_NAMESPACE: Final = frozenset({"tenant", "namespace", "domain"})

OnError = Literal["stop", "fail-closed", "skip"]
#: Placeholder for the answer of a part that raised, since a part that answers None breaks its protocol.
_FAILED: Final = object()


@dataclass(frozen=True, slots=True)
class WeightedScorer:
    """A scorer and the weight its scores have in the sum."""

    scorer: Scorer
    weight: float = 1.0


class _ClosedError(Exception):
    """Error for a part that failed under a policy that fails closed. It never leaves this module."""


@dataclass(frozen=True)
class Policy:
    """Filters, scorers, a selector, a shedder and a splitter under the name that reports use."""

    name: str
    selector: Selector
    filters: tuple[Filter, ...] = ()
    scorers: tuple[WeightedScorer, ...] = ()
    shedder: Shedder | None = None
    on_error: OnError = "stop"
    splitter: Splitter | None = None
    #: µs for which an unloaded bundle is not unloaded again (loadBalancerSheddingGracePeriodMinutes, by default 30)
    grace_us: int = 30 * 60 * 1_000_000
    #: µs before the first cycle of the shedder and between two (loadBalancerSheddingIntervalMinutes, by default 1)
    shedding_interval_us: int = 60 * 1_000_000
    #: how brokers publish their load, if that is simulated
    cadence: Cadence = Cadence()
    #: weight of each resource in the usage that parts of the modular manager read
    weights: ResourceWeights = ResourceWeights()
    #: the brokers to ask about if the first choice is no broker or an overloaded one
    second_choice: SecondChoice | None = None
    #: choose where a bundle goes before it is unloaded, and leave it with its owner if that is chosen
    destination_first: bool = False
    #: namespaces whose bundles the shedder does not unload (loadBalancerSheddingExcludedNamespaces)
    excluded_namespaces: frozenset[str] = frozenset()
    #: whether children leave their owner at once, if others may have them (loadBalancerAutoUnloadSplitBundlesEnabled)
    unload_children: bool = False
    #: initial bundles of a namespace without boundaries, None for the evaluation's (defaultNumberOfNamespaceBundles)
    bundles: int | None = None

    @cached_property
    def parts(self) -> tuple[Filter | Scorer | Selector, ...]:
        """The parts that decide, in the order they are asked."""
        return (*self.filters, *(term.scorer for term in self.scorers), self.selector)

    @cached_property
    def reads(self) -> frozenset[str]:
        """Everything the deciding parts declare to read, and the load if there is a second choice."""
        own = frozenset[str]() if self.second_choice is None else frozenset({"view.load"})
        return own.union(*self.part_reads)

    @cached_property
    def asks_origins(self) -> bool:
        """Whether a part, shedder and splitter included, reads where the lookups of bundles come from."""
        cyclic = [checked_reads(part) for part in (self.shedder, self.splitter) if part is not None]
        return "view.load.origins" in self.reads.union(*cyclic)

    @cached_property
    def with_errors_raised(self) -> Policy:
        """The same policy with `on_error = "stop"`, so that a failure of any part raises."""
        return replace(self, on_error="stop")

    def in_use(self, namespaces: NamespacePolicies) -> Policy:
        """Make the same policy without the filters that keep every broker under these rules of namespaces.

        Raises:
            PluginError: if a filter raises.
        """
        indices = list(range(len(self.filters)))
        for index, part in enumerate(self.filters):
            with guard_call(f"filter {part.name!r} raised "):
                is_idle = getattr(part, "is_idle", None)
                if is_idle is not None and is_idle(namespaces):
                    indices.remove(index)
        if len(indices) == len(self.filters):
            return self
        choice = self.second_choice
        if choice is not None:
            choice = replace(choice, filters=sum(index < choice.filters for index in indices))
        return replace(self, filters=tuple(self.filters[index] for index in indices), second_choice=choice)

    @cached_property
    def part_reads(self) -> tuple[frozenset[str], ...]:
        """The declared reads of each of `parts`.

        Raises:
            ContractError: if a part declares an unknown name.
        """
        return tuple(checked_reads(part) for part in self.parts)

    @cached_property
    def request_reads(self) -> tuple[str, ...]:
        """The fields of a request that form its decision key, sorted. `properties` includes single ones."""
        return fields_in(self.reads)

    @cached_property
    def is_stateful(self) -> bool:
        """Whether a part keeps memory between decisions."""
        return "view.memory" in self.reads or bool(self._keepers or self._observers)

    def decision_key(self, request: LookupRequest) -> tuple[Hashable, ...]:
        """Build the key of the fields of a request that its odds depend on, apart from the instant."""
        return tuple([field_of(request, name) for name in self.request_reads])

    def fingerprint(self, epoch_us: int, tick_us: int, changes: int) -> str:
        """Name the instant that the odds depend on.

        Args:
            changes: ownership changes since the tick began.
        """
        # As coarse as the reads allow, for fewer fingerprints and fewer calls of parts.
        if "view.ownership" in self.reads:
            return f"{epoch_us}/{tick_us}/{changes}"
        if self.reads & {"view.load", "view.now", "view.memory"}:
            return f"{epoch_us}/{tick_us}"
        return str(epoch_us)

    def ballot(self, request: LookupRequest, instant: Instant) -> Ballot:
        """Compute the odds of a request over the registered brokers.

        Raises:
            PolicyError: if a part raises and `on_error` is stop.
            ContractError: if a part breaks its protocol.
        """
        choice = self.second_choice
        try:
            kept = self._apply_filters(range(len(self.filters)), request, Kept(instant.offered, {}), instant)
            if choice is None or kept.is_closed:
                return self._compute_ballot(request, instant, kept)
            # The second choice begins with all brokers again, since a filter it leaves out may have rejected the best.
            fewer = partial(self._apply_filters, range(choice.filters), request, Kept(instant.offered, {}), instant)
            among = partial(self._compute_ballot, request, instant)
            return choice.choose(
                kept,
                instant.view,
                among,
                lambda before: self._compute_ballot(
                    request, self._build_second_instant(before, request, instant), fewer()
                ),
            )
        except ContractError as breach:
            raise type(breach)(f"policy {self.name!r}: {breach}") from breach

    def _build_second_instant(self, ballot: Ballot, request: LookupRequest, instant: Instant) -> Instant:
        if not ballot.offers:
            return instant
        memory = copy.deepcopy({key: dict(values) for key, values in instant.view.memory.items()})
        broker = instant.view.brokers[ballot.numbers[0]]
        self.observe(memory, request, broker, ballot.offers, instant, is_assigned=False)
        view = replace(instant.view, memory=MappingProxyType(memory))
        return Instant(self, view, instant.failures, standing=instant.standing)

    def permits_other(self, owner: int, request: LookupRequest, instant: Instant) -> bool:
        """Check whether a broker other than the owner may have a bundle.

        Only the filters that also hold for a second choice are called, or all if there is no second choice.

        Raises:
            PolicyError: if a filter raises and `on_error` is stop.
        """
        # The filters that always hold, which a second choice uses as well.
        lasting = len(self.filters) if self.second_choice is None else self.second_choice.filters
        kept = self._apply_filters(range(lasting), request, Kept(instant.offered, {}), instant)
        return bool((kept.brokers.index != owner).any())

    def _compute_ballot(self, request: LookupRequest, instant: Instant, kept: Kept) -> Ballot:
        if kept.is_closed:
            return Ballot(rejected=kept.rejected, declined=Reason.POLICY_ERROR)
        if not len(kept.brokers):
            return Ballot(rejected=kept.rejected, declined=Reason.NO_CANDIDATES)
        try:
            scores = self.scores(request, kept.brokers, instant)
            odds = self.odds(request, kept.brokers, scores, instant)
        except _ClosedError:
            return Ballot(rejected=kept.rejected, declined=Reason.POLICY_ERROR)
        chosen = tally(kept.brokers, scores, odds, are_scored=bool(self.scorers))
        if self._observers:
            chosen = replace(chosen, offers=(kept.brokers,))
        return chosen.after(kept.rejected) if kept.rejected else chosen

    def _apply_filters(self, indices: Iterable[int], request: LookupRequest, kept: Kept, instant: Instant) -> Kept:
        brokers, rejected, is_unsure, _ = kept
        before = instant.failures.count
        for index in indices:
            # As in Pulsar, a filter is never called without brokers, and reasons stay those of the earlier filters.
            if not len(brokers):
                break
            try:
                mask = self.apply_filter(index, request, brokers, instant)
            except _ClosedError:
                return Kept(brokers, rejected, is_unsure, is_closed=True)
            refused = len(mask) - int(np.count_nonzero(mask))
            if refused:
                reason = self.filters[index].reason
                rejected = {**rejected, reason: rejected.get(reason, 0) + refused}
                brokers = brokers.subset(mask)
        return Kept(brokers, rejected, is_unsure or instant.failures.count > before)

    def _find_cache(
        self, slot: int, request: LookupRequest, brokers: Candidates, instant: Instant
    ) -> tuple[Standing | None, Hashable]:
        """Find the cache of an answer of one of `parts` and its key. There is none if an assignment may change it."""
        fields, lasts = self._cache_rules[slot]
        if fields is None:
            return None, None
        # The bytes of the index name a set of candidates at a fraction of the cost of a tuple of its numbers.
        key = slot, brokers.index.tobytes(), *[field_of(request, name) for name in fields]
        return instant.standing if lasts else instant.answers, key

    @cached_property
    def _cache_rules(self) -> tuple[tuple[tuple[str, ...] | None, bool], ...]:
        return tuple(
            (None if reads & _UNSETTLED else fields_in(reads), not reads & _CHANGING) for reads in self.part_reads
        )

    def apply_filter(
        self, index: int, request: LookupRequest, brokers: Candidates, instant: Instant
    ) -> NDArray[np.bool_]:
        """Call one filter by its index, and return a read-only mask of shape (n_candidates,)."""
        answers, key = self._find_cache(index, request, brokers, instant)
        answer = None if answers is None else answers.get(key)
        if answer is not None:
            return answer
        before = instant.failures.count
        mask = self._call_filter(index, request, brokers, instant)
        # Failures are not cached, so the next request calls the part, and counts, again.
        if answers is not None and instant.failures.count == before:
            answers[key] = _read_only_copy(mask)
        return mask

    def _call_filter(
        self, index: int, request: LookupRequest, brokers: Candidates, instant: Instant
    ) -> NDArray[np.bool_]:
        part, view = self.filters[index], instant.seen_by(index)
        # Outside the `try`, since after a generator's exception `on_error = "skip"` keeps its answers, as Pulsar does.
        answers: list[Any] = []
        try:
            answer = part.admit(self.cuts[index](request), brokers, view)
            if isinstance(answer, np.ndarray) and answer.ndim:
                return checked_mask(part.name, answer, brokers)
            for admitted in one_by_one(part.name, answer, len(brokers)):
                answers.append(admitted)  # noqa: PERF402  answers before it raises must not be lost
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a third party's code may raise anything; on_error decides
            self._record_failure(part.name, request, error, instant.failures)
            answers.extend([True] * (len(brokers) - len(answers)))
        return checked_mask(part.name, answers, brokers)

    def scores(self, request: LookupRequest, brokers: Candidates, instant: Instant) -> NDArray[np.float64]:
        """Compute the weighted sum of the scorers, shape (n_candidates,), all 1.0 without scorers."""
        if not self.scorers:
            return np.ones(len(brokers))
        # Added up in listed order, since another order would round differently and turn ties into preferences.
        total = np.zeros(len(brokers))
        for index in range(len(self.scorers)):
            total += self.scorers[index].weight * self.score(index, request, brokers, instant)
        return total

    def score(self, index: int, request: LookupRequest, brokers: Candidates, instant: Instant) -> NDArray[np.float64]:
        """Call one scorer by its index, and return its own scores, shape (n_candidates,), read-only."""
        scorer, slot = self.scorers[index].scorer, len(self.filters) + index
        answers, key = self._find_cache(slot, request, brokers, instant)
        cached = None if answers is None else answers.get(key)
        if cached is not None:
            return cached
        answer = self._call_part(
            scorer.name,
            request,
            instant,
            lambda: scorer.score(self.cuts[slot](request), brokers, instant.seen_by(slot)),
        )
        if answer is _FAILED:
            return np.zeros(len(brokers))
        scores = checked_scores(scorer.name, answer, brokers)
        if answers is not None:
            answers[key] = _read_only_copy(scores)
        return scores

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], instant: Instant
    ) -> NDArray[np.float64]:
        """Call the selector, and return its weights, shape (n_candidates,)."""
        selector = self.selector
        # The margin is computed from the same scores afterwards, so the selector must not change them.
        scores.setflags(write=False)
        answer = self._call_part(
            selector.name,
            request,
            instant,
            lambda: selector.odds(self.cuts[-1](request), brokers, scores, instant.seen_by(-1)),
        )
        return np.zeros(len(brokers)) if answer is _FAILED else checked_odds(selector.name, answer, brokers)

    def remember(
        self, memory: dict[str, dict[str, Any]], request: LookupRequest, broker: Broker, failures: Failures
    ) -> bool:
        """Let every part that keeps memory note an assignment. Return whether there is such a part.

        The assignment remains if a part fails here, for any `on_error` except stop.

        Args:
            memory: by `memory_key`, changed in place.

        Raises:
            PolicyError: if a part raises and `on_error` is stop.
        """
        for part, facet in self._keepers:
            notes = memory.setdefault(memory_key(part), {})
            self._note(part, request, failures, partial(part.remember, notes, facet(request), broker))
        return bool(self._keepers)

    def observe(
        self,
        memory: dict[str, dict[str, Any]],
        request: LookupRequest,
        broker: Broker,
        offers: Sequence[Candidates],
        instant: Instant,
        *,
        is_assigned: bool,
    ) -> bool:
        """Let every part that observes note a choice and its offer. Return whether there is such a part.

        Args:
            memory: by `memory_key`, changed in place.
            offers: the brokers that the filters left, of each choice in turn, none if no part observes.
            instant: the instant of the decision.
            is_assigned: as in `Offer`.
        """
        for (index, part, facet), offered in product(self._observers, offers):
            # Before its memory is changed, since the offer shows the memory at the decision.
            offer = Offer(offered, instant.seen_by(index), is_assigned)
            notes = memory.setdefault(memory_key(part), {})
            self._note(part, request, instant.failures, partial(part.observe, notes, facet(request), broker, offer))
        return bool(self._observers and offers)

    def _note(self, part: Any, request: LookupRequest, failures: Failures, note: Callable[[], None]) -> None:
        """Let a part note an assignment, which remains if the part fails."""
        try:
            note()
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a third party's code may raise anything; on_error decides
            with suppress(_ClosedError):
                self._record_failure(part.name, request, error, failures)

    @cached_property
    def retaining(self) -> tuple[tuple[Filter, bool], ...]:
        """The filters up to the last that decides whether a bundle may leave its owner.

        Each comes with whether it decides that. Later filters are not called, since they could only cost time or fail.
        """
        opinions = [hasattr(part, "should_unload") for part in self.filters]
        count = len(opinions) - opinions[::-1].index(True) if True in opinions else 0
        return tuple(zip(self.filters[:count], opinions, strict=False))

    @cached_property
    def _observers(self) -> tuple[tuple[int, Any, Callable[[LookupRequest], LookupRequest]], ...]:
        named = zip(self.parts, self.cuts, strict=True)
        return tuple((index, part, facet) for index, (part, facet) in enumerate(named) if hasattr(part, "observe"))

    @cached_property
    def _keepers(self) -> tuple[tuple[Any, Callable[[LookupRequest], LookupRequest]], ...]:
        named = zip(self.parts, self.cuts, strict=True)
        return tuple((part, facet) for part, facet in named if hasattr(part, "remember"))

    @cached_property
    def cuts(self) -> tuple[Callable[[LookupRequest], LookupRequest], ...]:
        """The functions that restrict a request to the fields that each of `parts` may read."""
        named = zip(self.parts, self.part_reads, strict=True)
        return tuple(request_facet(part.name, reads) for part, reads in named)

    def __getstate__(self) -> dict[str, Any]:
        # The cuts are closures, which cannot be pickled. A worker makes them again if needed.
        return {name: value for name, value in self.__dict__.items() if name not in {"cuts", "_keepers", "_observers"}}

    def _call_part(self, part: str, request: LookupRequest, instant: Instant, ask: Callable[[], Any]) -> Any:
        try:
            return exhaust_generator(ask())
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a third party's code may raise anything; on_error decides
            self._record_failure(part, request, error, instant.failures)
            return _FAILED

    def _record_failure(self, part: str, request: LookupRequest, error: BaseException, failures: Failures) -> None:
        problem = f"policy {self.name!r}: part {part!r} raised {describe_error(error)}"
        message = f"{problem}; it was asked about {request.topic or request.bundle} {dict(request.properties)}"
        if self.on_error == "stop":
            raise PolicyError(message) from error
        failures.note(message)
        if self.on_error == "fail-closed":
            raise _ClosedError


class Instant:
    """One view prepared for one policy, with the offered brokers and each part's facet of the view.

    Args:
        standing: answers of the policy's filters and scorers that hold for the registry epoch of the view.
    """

    __slots__ = ("_facets", "_policy", "answers", "failures", "offered", "standing", "view")

    def __init__(
        self, policy: Policy, view: ClusterView, failures: Failures | None = None, *, standing: Standing | None = None
    ) -> None:
        self.view, self._policy = view, policy
        self._facets: list[ClusterView | None] = [None] * len(policy.parts)
        self.standing: Standing = {} if standing is None else standing
        #: the answers that hold for the instant
        self.answers: Standing = {}
        index = np.flatnonzero(view.registered)
        # Parts share the candidates, so a write into their index would move the brokers of other parts.
        index.setflags(write=False)
        self.offered = Candidates(view.brokers, index)
        self.failures = Failures() if failures is None else failures

    def seen_by(self, slot: int) -> ClusterView:
        """Find the view that one of the policy's `parts` may read."""
        facet = self._facets[slot]
        if facet is None:
            part, reads = self._policy.parts[slot], self._policy.part_reads[slot]
            memory = MappingProxyType(self.view.memory.get(memory_key(part), {}))
            facet = self._facets[slot] = view_facet(part.name, reads, self.view, memory)
        return facet


def _read_only_copy(answer: NDArray[Any]) -> NDArray[Any]:
    # A part may use its array again for the next answer.
    copy = answer.copy()
    copy.flags.writeable = False
    return copy


def memory_key(part: object) -> str:
    """Find the name under which a part's memory is kept."""
    return str(getattr(part, "memory_key", getattr(part, "name", "")))
