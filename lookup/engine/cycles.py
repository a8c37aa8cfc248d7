"""Run one cycle of a shedder or a splitter, in which every proposal is judged at once and answered through `send`.

Rules for editing this file: a proposal is judged by the books at that moment, so each accepted proposal changes the
ruling on the next. Loads are never recomputed inside a cycle. A cycle of the modular manager is different. Every bundle
is judged and placed by the owners at its start, and all of them are moved after the last proposal.

The rules for all shedders and splitters are here. They define which bundles may be taken from their owners, which can
be divided, and whether a cycle takes place. Hit counts, cool-downs and limits stay in the part's memory.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from lookup.engine.answers import checked_reads
from lookup.engine.facets import view_facet
from lookup.engine.policy import Instant, Policy
from lookup.errors import ContractError, InvalidNameError, PolicyError
from lookup.hooks.protocols import Part
from lookup.hooks.raised import MOST_ANSWERS, describe_error
from lookup.model.broker import Candidates
from lookup.model.bundles import NamespaceBundle
from lookup.model.decision import (
    CycleLabel,
    CycleOutcome,
    CycleReason,
    Decision,
    Probe,
    Proposal,
    Reason,
    Ruling,
    Shortfall,
    Split,
    Unload,
)
from lookup.model.load import BundleLoad
from lookup.model.names import is_pinned_bundle, is_system_bundle
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.model.view import ClusterView

__all__ = [
    "FAILED", "IDLE_CYCLE", "Books", "Choose", "CycleReport", "Proposer", "Turn", "Unloading", "drive_proposals",
    "run_sheds", "run_splits",
]  # fmt: skip

#: The values that a part yields, and the changes among them. A probe is a proposal, but not a change.
_Proposed = TypeVar("_Proposed")
_Proposed_co = TypeVar("_Proposed_co", covariant=True)
_Change = TypeVar("_Change", Unload, Split)

#: Draws the broker that a bundle goes to, from the policy's odds.
Choose: TypeAlias = Callable[[str], Decision]

_ACCEPTED = Ruling(accepted=True)
_REFUSED = {reason: Ruling(accepted=False, reason=reason) for reason in Reason}
#: The reads that change from one unload to the next.
_VARYING = frozenset({"tenant", "namespace", "bundle", "view.ownership", "view.memory"})
#: The outcome of a cycle whose part raised.
FAILED = CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN)


class Proposer(Part, Protocol[_Proposed_co]):
    """A part that makes proposals, either a shedder or a splitter."""

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[_Proposed_co, Ruling, CycleOutcome]:
        """Yield proposals, each answered by a ruling, and return the outcome."""


@dataclass(frozen=True)
class CycleReport(Generic[_Change]):
    """The result of one cycle."""

    outcome: CycleOutcome
    accepted: tuple[_Change, ...]
    #: how often each reason was given, to proposals and probes alike
    rejected: Mapping[Reason, int]


class Books(ABC, Generic[_Change]):
    """The books of one cycle, which rule on its changes, carry out the accepted ones and count them.

    Args:
        carry_out: called with each change that takes place.
    """

    def __init__(self, carry_out: Callable[[_Change], object]) -> None:
        self._carry_out: Callable[[_Change], object] = carry_out
        #: bundles of the changes that were accepted
        self._changed: set[str] = set()
        self._accepted: list[_Change] = []
        self._rejected: Counter[Reason] = Counter()

    @abstractmethod
    def _judge(self, change: _Change) -> _Change | Reason:
        """Judge a change by the books of this moment. Return it as it takes place, or the first rule it breaks."""

    def ruling(self, change: _Change, *, is_probe: bool = False) -> Ruling:
        """Rule on a change, and have it carried out if it is accepted and not only a probe."""
        judged = self._judge(change)
        if isinstance(judged, Reason):
            self._rejected[judged] += 1
            return _REFUSED[judged]
        if not is_probe:
            # Booked before it is carried out, since the next proposal must be judged by the books as they are then.
            self._changed.add(judged.bundle)
            self._carry_out(judged)
            self._accepted.append(judged)
        return _ACCEPTED

    def report(self, outcome: CycleOutcome) -> CycleReport[_Change]:
        """Close the books with the outcome the part returned."""
        return CycleReport(outcome, tuple(self._accepted), dict(self._rejected))


@dataclass(frozen=True)
class Turn(Generic[_Proposed]):
    """A policy's part whose turn it is to propose, with its view and its memory."""

    role: Literal["shedder", "splitter"]
    part: Proposer[_Proposed]
    policy: Policy
    instant: Instant
    memory: MutableMapping[str, Any]
    #: view for the part in place of the instant's, the same in another unit
    shown: ClusterView | None = None

    def outcome(self, answer: Callable[[_Proposed], Ruling]) -> CycleOutcome:
        """Answer the part's proposals until it ends. Answers before a failure still hold.

        Raises:
            PolicyError: if the part raises and `on_error` is stop.
            ContractError: if it ends without an outcome, or `answer` finds a yielded value that is not a proposal.
        """
        view = self.instant.view if self.shown is None else self.shown
        view = view_facet(self.part.name, checked_reads(self.part), view, self.memory)
        try:
            outcome = drive_proposals(self.part.propose(view, self.memory), answer)
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:
            if isinstance(error, PolicyError) and self.policy.on_error == "stop":
                # For a part that chose a destination, since its sentence contains it.
                raise
            message = f"policy {self.policy.name!r}: {self.role} {self.part.name!r} raised {describe_error(error)}"
            if self.policy.on_error == "stop":
                raise PolicyError(message) from error
            self.instant.failures.note(message)
            return FAILED
        if not isinstance(outcome, CycleOutcome):
            raise ContractError(f"{self.role} {self.part.name!r} ended with {outcome!r}, not a CycleOutcome")
        # The outcome becomes a row of a table, so a wrong one is rejected here, while its author is known.
        raw: Any = outcome
        figures = (raw.average, raw.deviation, raw.modelled_deviation, raw.over, raw.excess)
        # Called in every cycle, so the usual types of figures are checked before an abstract class.
        are_numbers = all(figure is None or isinstance(figure, (float, int, Real)) for figure in figures)
        are_numbers &= raw.short is None or isinstance(raw.short, Shortfall)
        if not are_numbers or not isinstance(raw.label, CycleLabel) or not isinstance(raw.reason, CycleReason):
            right = "a CycleLabel, a CycleReason, numbers or None, and a Shortfall or None would be right"
            raise ContractError(f"{self.role} {self.part.name!r} ended with {outcome!r}; {right}")
        return outcome


def drive_proposals(
    cycle: Generator[_Proposed, Ruling, CycleOutcome], answer: Callable[[_Proposed], Ruling]
) -> CycleOutcome:
    """Answer every proposal of a cycle, and return its final value unchecked."""
    try:
        proposal = next(cycle)
        for _ in range(MOST_ANSWERS):
            proposal = cycle.send(answer(proposal))
        raise OverflowError(f"has more than {MOST_ANSWERS:,} proposals")
    except StopIteration as ended:
        outcome: CycleOutcome = ended.value
        return outcome


#: The report of a cycle without a call of the shedder, since there are fewer than two brokers.
IDLE_CYCLE: CycleReport[Unload] = CycleReport(CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BROKERS), (), {})


@dataclass(frozen=True, slots=True)
class Unloading:
    """Callbacks of unloads into the ownership store."""

    carry_out: Callable[[Unload], object]
    #: draws missing destinations of unloads, in the modular manager's cycle. None leaves them to the next lookup
    choose: Choose | None = None


def run_sheds(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    unloading: Unloading,
    *,
    shown: ClusterView | None = None,
) -> CycleReport[Unload]:
    """Let a policy's shedder propose until it ends, and carry out the accepted proposals.

    The number of brokers does not matter.

    Args:
        shown: the instant's view with load in the shedder's unit, by default unchanged.

    Raises:
        PolicyError: if the shedder raises and `on_error` is stop.
        ContractError: if it yields a value that is not a proposal, or ends without an outcome.
    """
    shedder = policy.shedder
    if shedder is None:
        raise ContractError(f"policy {policy.name!r} has no shedder")
    is_modular = unloading.choose is not None
    books = _ModularBooks(policy, instant, unloading) if is_modular else _UnloadBooks(policy, instant, unloading)

    def answer(proposal: Proposal) -> Ruling:
        """Rule on a proposal of the shedder. A probe is judged but not booked."""
        unload = proposal.unload if isinstance(proposal, Probe) else proposal
        if not isinstance(unload, Unload):
            raise ContractError(f"shedder {shedder.name!r} proposed {proposal!r}, not an Unload or a Probe")
        return books.ruling(unload, is_probe=unload is not proposal)

    if policy.excluded_namespaces and not is_modular:
        # The extensible manager's brokers do not report these bundles, but the modular manager's shedders see them.
        shown = _exclude_namespaces(policy.excluded_namespaces, instant.view if shown is None else shown)
    outcome = Turn("shedder", shedder, policy, instant, memory, shown).outcome(answer)
    books.close(outcome)
    report = books.report(outcome)
    if not is_modular or report.accepted or report.outcome.label is not CycleLabel.SUCCESS:
        return report
    # The shedder does not know that its proposals were dropped.
    return replace(report, outcome=replace(report.outcome, label=CycleLabel.SKIP, reason=CycleReason.NO_BUNDLES))


def _exclude_namespaces(excluded: Collection[str], view: ClusterView) -> ClusterView:
    def is_kept(entry: BundleLoad) -> bool:
        return entry.bundle.rpartition("/")[0] not in excluded

    bundles = [[*filter(is_kept, entries)] for entries in view.load.top_bundles]
    return replace(view, load=replace(view.load, top_bundles=bundles))


class _UnloadBooks(Books[Unload]):
    """Judges which bundles may be taken from their owners, by the books of this moment."""

    def __init__(self, policy: Policy, instant: Instant, unloading: Unloading) -> None:
        super().__init__(unloading.carry_out)
        # In Pulsar a failing filter makes the bundle not transferable, so failures always raise here and are caught.
        self._policy = policy.with_errors_raised
        self._instant, self._unloading = instant, unloading
        #: the brokers left by each of the first filters whose answer is the same throughout the cycle
        self._kept = [instant.offered]
        #: bundles for which the shedder has found a destination that the filters admit
        self._placeable: set[str] = set()

    def close(self, outcome: CycleOutcome) -> None:
        """End the cycle, in which every change has been carried out."""

    def _judge(self, change: Unload) -> Unload | Reason:
        if is_system_bundle(change.bundle):
            return Reason.SYSTEM_NAMESPACE
        if change.bundle.rpartition("/")[0] in self._policy.excluded_namespaces:
            return Reason.EXCLUDED_NAMESPACE
        return self._find_objection(change) or self._check_place(change) or change

    def _find_objection(self, unload: Unload) -> Reason | None:
        view = self._instant.view
        # A bundle moved in this cycle has a new owner or none, so this rule comes before the one on ownership.
        if unload.bundle in self._changed:
            return Reason.MOVED_THIS_CYCLE
        source = view.brokers.number(unload.source)
        if source is None or view.ownership.owner(unload.bundle) != source:
            return Reason.NOT_OWNER
        # Pulsar forgets an unload that is older than the period, so at its very end the bundle is still spared.
        unloaded_us = view.unloaded.get(unload.bundle)
        is_recent = unloaded_us is not None and view.now_us - unloaded_us <= self._policy.grace_us
        return Reason.GRACE_PERIOD if is_recent and not unload.in_exchange else None

    def _check_place(self, unload: Unload) -> Reason | None:
        view = self._instant.view
        if unload.destination is None:
            source = view.brokers.number(unload.source)
            return None if source is None else self._check_leaving(unload.bundle, source)
        number = view.brokers.number(unload.destination)
        if number is None or not view.registered[number] or unload.destination == unload.source:
            return Reason.NOT_REGISTERED
        if not self._admits(unload.bundle, number):
            return Reason.DESTINATION_FILTERED
        self._placeable.add(unload.bundle)
        return None

    def _admits(self, bundle: str, number: int) -> bool:
        request = request_of(None, bundle, LookupOptions())
        brokers = self._instant.offered
        try:
            for index in range(len(self._policy.filters)):
                brokers = brokers.subset(self._policy.apply_filter(index, request, brokers, self._instant))
                if number not in brokers.index:
                    return False
        except ContractError:
            raise
        except PolicyError:
            return False
        return True

    def _check_leaving(self, bundle: str, source: int) -> Reason | None:
        """Ask the filters that have an opinion whether a bundle may leave its owner without a destination.

        Not asked if the shedder has already found a broker that all filters admit.
        """
        policy, brokers = self._policy, self._kept[-1]
        if bundle in self._placeable or not policy.retaining:
            return None
        request = request_of(None, bundle, LookupOptions())
        for index in range(len(self._kept) - 1, len(policy.retaining)):
            part, has_opinion = policy.retaining[index]
            try:
                if has_opinion and not self._may_unload(index, request, source, brokers):
                    return part.reason
                brokers = brokers.subset(policy.apply_filter(index, request, brokers, self._instant))
            except ContractError:
                raise
            except PolicyError:
                return part.reason
            if len(self._kept) == index + 1 and not has_opinion and not policy.part_reads[index] & _VARYING:
                self._kept.append(brokers)
        return None

    def _may_unload(self, index: int, request: LookupRequest, source: int, brokers: Candidates) -> bool:
        part: Any = self._policy.filters[index]
        facet, view = self._policy.cuts[index](request), self._instant.seen_by(index)
        try:
            return bool(part.should_unload(facet, view.brokers[source], brokers, view))
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a third party's code may raise anything
            raise PolicyError(f"filter {part.name!r} raised {describe_error(error)}") from error


class _ModularBooks(_UnloadBooks):
    """Judges as ModularLoadManagerImpl.doLoadShedding does (Pulsar 4.2.4), after the shedder's last proposal.

    Its shedders find the spared bundles themselves, and count all other bundles that they name as unloaded. Then each
    bundle is judged and placed on the view of the cycle's start. The unloads appear only in the next reports.
    """

    def __init__(self, policy: Policy, instant: Instant, unloading: Unloading) -> None:
        super().__init__(policy, instant, unloading)
        self._moved: list[Unload] = []
        self._named: dict[str, Unload] = {}

    def ruling(self, change: Unload, *, is_probe: bool = False) -> Ruling:
        reason = Reason.MOVED_THIS_CYCLE if change.bundle in self._named else self._find_objection(change)
        # Bundles of pulsar/system are unloaded as others are (LoadData.getBundleDataForLoadShedding).
        if is_pinned_bundle(change.bundle):
            reason = Reason.SYSTEM_NAMESPACE
        if reason is not None:
            self._rejected[reason] += 1
            return _REFUSED[reason]
        if not is_probe:
            self._named[change.bundle] = change
        return _ACCEPTED

    def close(self, outcome: CycleOutcome) -> None:
        """Judge and place every named bundle, then move them. Nothing happens if the shedder failed."""
        carry_out, self._carry_out = self._carry_out, self._moved.append
        for unload in self._named.values() if outcome is not FAILED else ():
            super().ruling(unload)
        for moved in self._moved:
            carry_out(moved)

    def _judge(self, change: Unload) -> Unload | Reason:
        if change.bundle.rpartition("/")[0] in self._policy.excluded_namespaces:
            return Reason.EXCLUDED_NAMESPACE
        reason = self._check_place(change)
        if reason is not None or change.destination is not None or self._unloading.choose is None:
            return reason or change
        chosen = self._unloading.choose(change.bundle)
        if chosen.broker is None:
            return chosen.declined or Reason.NO_CANDIDATES
        return Reason.OWNER_CHOSEN if chosen.broker == change.source else replace(change, destination=chosen.broker)


def run_splits(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    carry_out: Callable[[str, Sequence[str]], object],
) -> CycleReport[Split]:
    """Let a policy's splitter propose until it ends, and carry out the accepted proposals.

    Raises:
        PolicyError: if the splitter raises and `on_error` is stop.
        ContractError: if it yields a value that is not a split, or ends without an outcome.
    """
    splitter = policy.splitter
    if splitter is None:
        raise ContractError(f"policy {policy.name!r} has no splitter")
    books = _SplitBooks(instant.view, lambda split: carry_out(split.bundle, split.children))

    def answer(split: Split) -> Ruling:
        if not isinstance(split, Split):
            raise ContractError(f"splitter {splitter.name!r} proposed {split!r}, not a Split")
        return books.ruling(split)

    return books.report(Turn("splitter", splitter, policy, instant, memory).outcome(answer))


class _SplitBooks(Books[Split]):
    """Judges which bundles may be divided, by the books of this moment."""

    def __init__(self, view: ClusterView, carry_out: Callable[[Split], object]) -> None:
        super().__init__(carry_out)
        self._view = view

    def _judge(self, change: Split) -> Split | Reason:
        # A bundle that was split has no owner any more, so this rule comes before the one on ownership.
        if change.bundle in self._changed:
            return Reason.SPLIT_THIS_CYCLE
        source = self._view.brokers.number(change.source)
        if source is None or self._view.ownership.owner(change.bundle) != source:
            return Reason.NOT_OWNER
        try:
            whole = NamespaceBundle.parse(change.bundle).range
        except InvalidNameError:
            return Reason.BAD_BOUNDARY
        # Pulsar raises an illegal argument for boundaries that do not ascend strictly inside the bundle.
        ends = (whole.lower, *change.boundaries, whole.upper)
        is_cut = bool(change.boundaries) and all(lower < upper for lower, upper in pairwise(ends))
        return change if is_cut else Reason.BAD_BOUNDARY
