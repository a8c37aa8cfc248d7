"""One cycle of a splitter: which bundles can be cut, and where.

Limits on how much is split are the splitter's own business; what can be split at all is judged here. How a cycle runs
is in `cycles.py`.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from itertools import pairwise
from typing import Any

from lookup.engine.cycles import Books, CycleReport, Turn
from lookup.engine.hand_overs import InFlight, never
from lookup.engine.policy import Instant, Policy
from lookup.errors import ContractError, InvalidNameError
from lookup.model.bundles import NamespaceBundle
from lookup.model.decision import Reason, Ruling, Split
from lookup.model.view import ClusterView

__all__ = ["run_splits"]


def run_splits(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    carry_out: Callable[[str, Sequence[str]], object],
    *,
    in_flight: InFlight = never,
) -> CycleReport[Split]:
    """Let a policy's splitter propose until it ends, and carry out what is accepted.

    Args:
        carry_out: takes a bundle and its children.
        in_flight: which bundles are being handed over, and so cannot be divided.

    Raises:
        PolicyError: where the splitter raises and `on_error` is stop.
        ContractError: where it yields something else than a split or ends without an outcome.
    """
    splitter = policy.splitter
    if splitter is None:
        raise ContractError(f"policy {policy.name!r} has no splitter")
    books = Books(_SplitJudge(instant.view, in_flight), lambda split: carry_out(split.bundle, split.children))

    def answer(split: Split) -> Ruling:
        """Rule on what the splitter yields."""
        if not isinstance(split, Split):
            raise ContractError(f"splitter {splitter.name!r} proposed {split!r}, not a Split")
        return books.ruling(split)

    return books.report(Turn("splitter", splitter, policy, instant, memory).outcome(answer))


class _SplitJudge:
    """Says which bundles may be divided, by the books of this moment."""

    def __init__(self, view: ClusterView, in_flight: InFlight) -> None:
        self._view, self._in_flight = view, in_flight
        self._divided: set[str] = set()

    def objection(self, split: Split) -> Reason | None:
        """Return the first rule a split breaks; None where it breaks none."""
        # A bundle that was split has no owner any more, so this rule comes before the one on ownership.
        if split.bundle in self._divided:
            return Reason.SPLIT_THIS_CYCLE
        if self._in_flight(split.bundle) is not None:
            return Reason.IN_FLIGHT
        source = self._view.brokers.number(split.source)
        if source is None or self._view.ownership.owner(split.bundle) != source:
            return Reason.NOT_OWNER
        return None if _cuts(split) else Reason.BAD_BOUNDARY

    def book(self, split: Split) -> None:
        """Note that an accepted split takes place: its bundle is no more."""
        self._divided.add(split.bundle)


def _cuts(split: Split) -> bool:
    """Tell whether boundaries ascend strictly inside the bundle (Pulsar: else an illegal argument)."""
    try:
        whole = NamespaceBundle.parse(split.bundle).range
    except InvalidNameError:
        return False
    ends = (whole.lower, *split.boundaries, whole.upper)
    return bool(split.boundaries) and all(lower < upper for lower, upper in pairwise(ends))
