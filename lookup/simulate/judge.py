"""Assertions against trends: what should hold of which policy, what should not, and what is the case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lookup.simulate.scenario import Assertion, Scenario
from lookup.simulate.trend import Figures, Trend

__all__ = ["Finding", "broken", "findings", "limits_text", "number_text"]


@dataclass(frozen=True)
class Finding:
    """What became of one assertion for one policy."""

    assertion: Assertion
    policy: str
    #: what the figure is
    value: float
    #: whether the policy is one of those the assertion must not be true of
    is_unlike: bool
    #: whether it is as it should be
    holds: bool

    @property
    def wanted(self) -> str:
        """Return what should be the case: `moves not at most 3`."""
        return f"{self.assertion.figure} {'not ' * self.is_unlike}{limits_text(self.assertion)}"

    @property
    def failure(self) -> str:
        """Return what is the case instead, and why it should not be."""
        reason = f", because {self.assertion.because}" if self.assertion.because else ""
        should = f"should {'not ' * self.is_unlike}be {limits_text(self.assertion)}"
        return f"policy {self.policy!r}: {self.assertion.figure} is {self.value:g} and {should}{reason}"


def findings(scenario: Scenario, trends: Sequence[Trend]) -> Iterator[Finding]:
    """Yield every assertion for every policy that it speaks of, policy by policy.

    One without `policy` is about all of them but those in `unlike`.
    """
    for trend in trends:
        figures = trend.figures
        for assertion in scenario.assertions:
            is_unlike = trend.policy in assertion.unlike
            if is_unlike or assertion.policy in (None, trend.policy):
                value: Any = getattr(figures, assertion.figure)
                holds = broken(assertion, figures) == is_unlike
                yield Finding(assertion, trend.policy, value, is_unlike, holds)


def broken(assertion: Assertion, figures: Figures) -> bool:
    """Tell whether a figure is not what it should be; one that cannot be computed is not."""
    value: Any = getattr(figures, assertion.figure)
    is_low = assertion.at_least is None or value >= assertion.at_least
    is_high = assertion.at_most is None or value <= assertion.at_most
    return not (is_low and is_high)


def limits_text(assertion: Assertion) -> str:
    """Return the limits of an assertion in words."""
    limits = [("at least", assertion.at_least), ("at most", assertion.at_most)]
    return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


def number_text(value: float) -> str:
    """Return a figure as it is printed: counts whole, all else with three decimals."""
    return str(value) if isinstance(value, int) else f"{value:.3f}"
