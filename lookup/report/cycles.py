"""Why bundles moved, or did not: what the cycles of each policy's shedder came to, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lookup.replay.quantities import quantity
from lookup.report.numbers import NOTHING, number_text

__all__ = ["ABOUT_CYCLES", "PolicyCycles", "cycles_of", "idle_shedders"]

#: Stands above the tables of the report.
ABOUT_CYCLES = (
    "Every cycle of a policy's shedder ends with a reason and is a row of `cycles/`; here they are pooled over all",
    "clusters and seeds. The excess is how far the farthest broker was above what the shedder tolerates.",
)
#: What reasons of cycles are called.
_REASONS: Mapping[str, str] = {
    "overloaded": "unloaded from overloaded brokers",
    "underloaded": "unloaded to relieve or fill a broker far from the average",
    "hit-count": "balanced, or not for long enough out of balance",
    "no-bundles": "overloaded, but no bundle could be unloaded",
    "too-little": "too little to offload",
    "cool-down": "waiting after the last unload",
    "out-dated-data": "load reports too old",
    "no-load-data": "no load known yet",
    "no-brokers": "fewer than two brokers",
    "admin": "on an administrator's behalf",
    "unknown": "failed",
}


@dataclass(frozen=True, slots=True)
class PolicyCycles:
    """The cycles of one policy's shedder, as `ReplayOutcome.inputs` has them."""

    shedder: str
    cycles: int
    reasons: Mapping[str, int]
    accepted: int
    refused: Mapping[str, int]
    excess: Mapping[str, float]

    @property
    def summary(self) -> str:
        """Return what the shedder did, in a sentence."""
        refused = ", ".join(f"{reason} {count:,}" for reason, count in self.refused.items())
        return (
            f"The shedder `{self.shedder}` ran {quantity(self.cycles, 'cycle')}: "
            f"{quantity(self.accepted, 'unload')} accepted, {sum(self.refused.values()):,} proposals refused"
            f"{f' ({refused})' if refused else ''}."
        )

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Return reason, cycles and largest excess, the most frequent reason first."""
        return [
            (words, f"{count:,}", number_text(self.excess[reason]) if reason in self.excess else NOTHING)
            for reason, words, count in self._named()
        ]

    @property
    def idleness(self) -> str | None:
        """Return why a shedder that ran unloaded nothing; None if it unloaded something or never ran."""
        if self.accepted or not self.cycles:
            return None
        why = ", ".join(f"{words} {count:,}" for _, words, count in self._named())
        return f"the shedder ran {quantity(self.cycles, 'cycle')} and unloaded nothing: {why}"

    def _named(self) -> list[tuple[str, str, int]]:
        ordered = sorted(self.reasons.items(), key=lambda entry: (-entry[1], entry[0]))
        return [(reason, self._words(reason), count) for reason, count in ordered]

    def _words(self, reason: str) -> str:
        # That no broker ever was above what is tolerated leaves one meaning of two.
        is_even = reason == "hit-count" and self.excess.get(reason) == 0.0
        return "balanced" if is_even else _REASONS.get(reason, reason)


def cycles_of(inputs: Mapping[str, Any]) -> dict[str, PolicyCycles]:
    """Return by policy with a shedder what its cycles came to.

    Args:
        inputs: of a scored replay.
    """
    return {policy: PolicyCycles(**sums) for policy, sums in inputs.get("cycles", {}).items()}


def idle_shedders(inputs: Mapping[str, Any]) -> list[str]:
    """Return a line for each policy whose shedder ran and unloaded nothing."""
    idle = {policy: cycles.idleness for policy, cycles in cycles_of(inputs).items()}
    return [f"{policy}: {text}" for policy, text in idle.items() if text is not None]
