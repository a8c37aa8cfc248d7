"""One cycle of a part that proposes: every proposal is judged at once and answered through `send`, until it returns.

Rules for editing this file: a proposal is judged against the books as they are at that moment, so what was accepted
changes what is said to the next; loads are never recomputed inside a cycle.

What may take place at all is judged in `shedding.py` and `splitting.py`, the two kinds of cycles there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, MutableMapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Generic, Literal, Protocol, TypeVar

from lookup.engine.answers import checked_reads
from lookup.engine.facets import view_facet
from lookup.engine.policy import Instant, Policy
from lookup.errors import ContractError, PolicyError
from lookup.hooks.protocols import Part
from lookup.hooks.raised import raised
from lookup.model.decision import CycleLabel, CycleOutcome, CycleReason, Reason, Ruling
from lookup.model.view import ClusterView

__all__ = ["FAILED", "Books", "CycleReport", "Judge", "Proposer", "Turn", "exhausted"]

#: What a part yields, and what of it takes place: a probe is a proposal, but no change.
_Proposed = TypeVar("_Proposed")
_Proposed_co = TypeVar("_Proposed_co", covariant=True)
_Change = TypeVar("_Change")
_Change_contra = TypeVar("_Change_contra", contravariant=True)

_ACCEPTED = Ruling(accepted=True)
#: How a cycle ends whose part raised.
FAILED = CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN)


class Proposer(Part, Protocol[_Proposed_co]):
    """What shedders and splitters have in common."""

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[_Proposed_co, Ruling, CycleOutcome]:
        """Yield proposals, each answered by a ruling; return the outcome."""


class Judge(Protocol[_Change_contra]):
    """Says which changes may take place, by the books of this moment."""

    def objection(self, change: _Change_contra) -> Reason | None:
        """Return the first rule a change breaks; None where it breaks none."""

    def book(self, change: _Change_contra) -> None:
        """Note that an accepted change takes place."""


@dataclass(frozen=True)
class CycleReport(Generic[_Change]):
    """What came of one cycle."""

    outcome: CycleOutcome
    accepted: tuple[_Change, ...]
    #: how often each reason was given, to proposals and probes alike
    rejected: Mapping[Reason, int]


class Books(Generic[_Change]):
    """Rules on one cycle's changes, has those carried out that are accepted, and keeps count."""

    def __init__(self, judge: Judge[_Change], carry_out: Callable[[_Change], object]) -> None:
        self._judge, self._carry_out = judge, carry_out
        self._accepted: list[_Change] = []
        self._rejected: Counter[Reason] = Counter()

    def ruling(self, change: _Change, *, is_probe: bool = False) -> Ruling:
        """Rule on a change, and have it carried out where it is accepted and not only a probe."""
        reason = self._judge.objection(change)
        if reason is not None:
            self._rejected[reason] += 1
            return Ruling(accepted=False, reason=reason)
        if not is_probe:
            self._judge.book(change)
            self._carry_out(change)
            self._accepted.append(change)
        return _ACCEPTED

    def report(self, outcome: CycleOutcome) -> CycleReport[_Change]:
        """Close the books with the outcome the part returned."""
        return CycleReport(outcome, tuple(self._accepted), dict(self._rejected))


@dataclass(frozen=True)
class Turn(Generic[_Proposed]):
    """A policy's part whose turn it is to propose, what it sees and what it remembers."""

    role: Literal["shedder", "splitter"]
    part: Proposer[_Proposed]
    policy: Policy
    instant: Instant
    memory: MutableMapping[str, Any]
    #: what it sees in place of the instant's view, the same in another unit
    shown: ClusterView | None = None

    def outcome(self, answer: Callable[[_Proposed], Ruling]) -> CycleOutcome:
        """Answer the part's proposals until it ends; what was answered before it fails still holds.

        Raises:
            PolicyError: where the part raises and `on_error` is stop.
            ContractError: where it ends without an outcome, or `answer` finds that it yields what is no proposal.
        """
        view = self.instant.view if self.shown is None else self.shown
        view = view_facet(self.part.name, checked_reads(self.part), view, self.memory)
        try:
            outcome = exhausted(self.part.propose(view, self.memory), answer)
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  a third party's code may raise anything; on_error decides
            return self._failed(error)
        if not isinstance(outcome, CycleOutcome):
            raise ContractError(f"{self.role} {self.part.name!r} ended with {outcome!r}, not a CycleOutcome")
        if not _can_be_written(outcome):
            right = "a CycleLabel, a CycleReason and numbers or None would be right"
            raise ContractError(f"{self.role} {self.part.name!r} ended with {outcome!r}; {right}")
        return outcome

    def _failed(self, error: BaseException) -> CycleOutcome:
        part = f"{self.role} {self.part.name!r}"
        message = f"policy {self.policy.name!r}: {part} raised {raised(error)}"
        if self.policy.on_error == "stop":
            raise PolicyError(message) from error
        self.instant.failures.note(message)
        return FAILED


def _can_be_written(outcome: Any) -> bool:
    figures = (outcome.average, outcome.deviation, outcome.modelled_deviation, outcome.over, outcome.excess)
    are_numbers = all(figure is None or isinstance(figure, Real) for figure in figures)
    return are_numbers and isinstance(outcome.label, CycleLabel) and isinstance(outcome.reason, CycleReason)


def exhausted(cycle: Generator[_Proposed, Ruling, CycleOutcome], answer: Callable[[_Proposed], Ruling]) -> CycleOutcome:
    """Answer every proposal until there is none left; return what the cycle ends with, unchecked."""
    try:
        proposal = next(cycle)
        while True:
            proposal = cycle.send(answer(proposal))
    except StopIteration as ended:
        outcome: CycleOutcome = ended.value
        return outcome
