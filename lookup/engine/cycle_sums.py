"""Add up the cycles of a policy's shedder, with the reasons that ended them and the causes of inactivity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Self

from lookup.engine.cycles import CycleReport
from lookup.model.decision import CYCLE_WORDS, Shortfall, Unload
from lookup.model.quoting import quantity

__all__ = ["CycleSums"]


@dataclass
class CycleSums:
    """Sums of the cycles of a policy's shedder, with the reasons for moves and for their absence."""

    shedder: str
    cycles: int = 0
    #: cycles by the reason with which they ended
    reasons: Counter[str] = field(default_factory=Counter)
    #: unloads that took place, and proposals and probes that were refused, by reason
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    #: the largest excess of a cycle by the same reasons, absent if the shedder never reports it
    excess: dict[str, float] = field(default_factory=dict)
    #: the cycle with the smallest shortfall by the same reasons, absent if the shedder never reports it
    short: dict[str, Shortfall] = field(default_factory=dict)

    @classmethod
    def of(cls, shedder: str, reports: Iterable[CycleReport[Unload]]) -> Self:
        """Add up the cycles of one run."""
        sums = cls(shedder)
        for report in reports:
            outcome, reason = report.outcome, str(report.outcome.reason)
            sums.cycles += 1
            sums.reasons[reason] += 1
            sums.accepted += len(report.accepted)
            sums.refused.update({str(why): count for why, count in report.rejected.items()})
            # A third party's part may divide by zero, and JSON cannot represent the results.
            if outcome.excess is not None and math.isfinite(outcome.excess):
                sums.excess[reason] = max(float(outcome.excess), sums.excess.get(reason, 0.0))
            if outcome.short is not None and math.isfinite(outcome.short.figure) and math.isfinite(outcome.short.limit):
                sums._keep_nearest(reason, outcome.short)
        return sums

    def document(self) -> dict[str, object]:
        """Convert the sums to a JSON object."""
        tables = {key: dict(sorted(getattr(self, key).items())) for key in ("reasons", "refused", "excess")}
        short = {reason: asdict(shortfall) for reason, shortfall in sorted(self.short.items())}
        return {"shedder": self.shedder, "cycles": self.cycles, "accepted": self.accepted, **tables, "short": short}

    def add(self, other: CycleSums) -> None:
        """Add the cycles of another run."""
        self.cycles += other.cycles
        self.reasons += other.reasons
        self.accepted += other.accepted
        self.refused += other.refused
        for reason, excess in other.excess.items():
            self.excess[reason] = max(excess, self.excess.get(reason, excess))
        for reason, short in other.short.items():
            self._keep_nearest(reason, short)

    @property
    def idleness(self) -> str | None:
        """The reason why a shedder that ran did not unload a bundle, None if it unloaded one or never ran."""
        return None if self.accepted else self.account

    @property
    def account(self) -> str | None:
        """The unloads of a shedder, and the reasons with which its cycles ended, None if it never ran."""
        if not self.cycles:
            return None
        unloaded = quantity(self.accepted, "bundle") if self.accepted else "nothing"
        why = ", ".join(
            f"{words} {count:,}{self._describe_details(reason)}" for reason, words, count in self.rank_reasons()
        )
        return f"the shedder ran {quantity(self.cycles, 'cycle')} and unloaded {unloaded}: {why}"

    def rank_reasons(self) -> list[tuple[str, str, int]]:
        """List reason, its words and its cycles, the most frequent reason first."""
        named = []
        for reason, count in sorted(self.reasons.items(), key=lambda entry: (-entry[1], entry[0])):
            # The reason has two meanings. If no broker was above the tolerated usage, it has the first.
            is_even = reason == "hit-count" and self.excess.get(reason) == 0.0
            named.append((reason, "balanced" if is_even else CYCLE_WORDS.get(reason, reason), count))
        return named

    def _describe_details(self, reason: str) -> str:
        details = [f"at most {self.short[reason]}"] if reason in self.short else []
        if reason == "no-bundles":
            details += [f"{quantity(count, 'proposal')} refused: {why}" for why, count in sorted(self.refused.items())]
        return f" ({'; '.join(details)})" if details else ""

    def _keep_nearest(self, reason: str, short: Shortfall) -> None:
        nearest = self.short.get(reason)
        if nearest is None or short.nearness > nearest.nearness:
            self.short[reason] = short
