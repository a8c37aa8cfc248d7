"""One cycle of a splitter: it proposes, the engine judges each proposal at once and books what it accepts.

Rules for editing this file: a proposal is judged against the books as they are at that moment; limits on how much is
split are the splitter's own business, what can be split at all is judged here.

Source: `design/architecture.md` section 3; `facts/loadmanager.md` sections 10.1, 10.3, 10.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lookup.engine.answers import checked_reads
from lookup.engine.facets import view_facet
from lookup.engine.policy import Instant, Policy
from lookup.errors import ContractError, InvalidNameError, PolicyError
from lookup.model.bundles import NamespaceBundle
from lookup.model.decision import CycleLabel, CycleOutcome, CycleReason, Reason, Ruling, Split
from lookup.model.view import ClusterView

__all__ = ["SplitReport", "run_splits"]

_ACCEPTED = Ruling(accepted=True)


@dataclass(frozen=True)
class SplitReport:
    """What came of one cycle."""

    outcome: CycleOutcome
    accepted: tuple[Split, ...]
    rejected: Mapping[Reason, int]


class _Cycle:
    """Judges splits by the books of this moment, and keeps count."""

    def __init__(self, view: ClusterView, carry_out: Callable[[str, Sequence[str]], None]) -> None:
        self._view, self._carry_out = view, carry_out
        self.accepted: list[Split] = []
        self.rejected: Counter[Reason] = Counter()

    def answer(self, split: Split) -> Ruling:
        """Rule on a split, and carry it out where it is accepted; the first rule it breaks is the reason."""
        reason = self._objection(split)
        if reason is not None:
            self.rejected[reason] += 1
            return Ruling(accepted=False, reason=reason)
        self._carry_out(split.bundle, split.children)
        self.accepted.append(split)
        return _ACCEPTED

    def _objection(self, split: Split) -> Reason | None:
        # A bundle that was split has no owner any more, so this rule comes before the one on ownership.
        if any(split.bundle == earlier.bundle for earlier in self.accepted):
            return Reason.SPLIT_THIS_CYCLE
        source = self._view.brokers.number(split.source)
        if source is None or self._view.ownership.owner(split.bundle) != source:
            return Reason.NOT_OWNER
        return None if _cuts(split) else Reason.BAD_BOUNDARY


def run_splits(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    carry_out: Callable[[str, Sequence[str]], None],
) -> SplitReport:
    """Let a policy's splitter propose until it ends, and carry out what is accepted.

    Args:
        carry_out: takes a bundle and its children.

    Raises:
        PolicyError: where the splitter raises and `on_error` is stop.
        ContractError: where it yields something else than a split or ends without an outcome.
    """
    splitter = policy.splitter
    if splitter is None:
        raise ContractError(f"policy {policy.name!r} has no splitter")
    cycle = _Cycle(instant.view, carry_out)
    view = view_facet(splitter.name, checked_reads(splitter), instant.view, memory)
    try:
        outcome = _drained(splitter.name, splitter.propose(view, memory), cycle)
    except ContractError:
        raise
    except Exception as error:  # a third party's code may raise anything; on_error decides
        message = f"policy {policy.name!r}: splitter {splitter.name!r} raised {type(error).__name__}: {error}"
        if policy.on_error == "stop":
            raise PolicyError(message) from error
        instant.failures.note(message)
        outcome = CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN)
    if not isinstance(outcome, CycleOutcome):
        raise ContractError(f"splitter {splitter.name!r} ended with {outcome!r}, not a CycleOutcome")
    return SplitReport(outcome, tuple(cycle.accepted), dict(cycle.rejected))


def _drained(name: str, proposals: Generator[Split, Ruling, CycleOutcome], cycle: _Cycle) -> CycleOutcome:
    try:
        split = next(proposals)
        while True:
            if not isinstance(split, Split):
                raise ContractError(f"splitter {name!r} proposed {split!r}, not a Split")
            split = proposals.send(cycle.answer(split))
    except StopIteration as ended:
        outcome: CycleOutcome = ended.value
        return outcome


def _cuts(split: Split) -> bool:
    """Tell whether boundaries ascend strictly inside the bundle (Pulsar: else an illegal argument)."""
    try:
        whole = NamespaceBundle.parse(split.bundle).range
    except InvalidNameError:
        return False
    ends = (whole.lower, *split.boundaries, whole.upper)
    return bool(split.boundaries) and all(lower < upper for lower, upper in pairwise(ends))
