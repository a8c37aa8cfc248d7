"""Puts to the product what others have published about Pulsar's load balancing, and writes `docs/published.md`.

Each question is asked under twenty seeds. The answers are computed first; only then the published figures are read.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from scipy import stats

from lookup.api.simulating import policies_of, read_scenarios
from lookup.engine.plugins import load_plugins
from lookup.model.bundles import bundle_index, equal_boundaries, topic_hash
from lookup.simulation import run_policy
from lookup.simulation.trend import Trend

__all__ = ["PAGE", "STATEMENTS", "answers", "page_with", "table"]

_DOCS = Path(__file__).parents[1] / "docs"
PAGE, STATEMENTS = _DOCS / "published.md", _DOCS / "published.toml"
_SEEDS = range(1, 21)
_Answers = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class _Asked:
    """A figure of a policy in a scenario that ships."""

    scenario: str
    policy: str
    figure: str | Callable[[Trend], float]

    @property
    def command(self) -> str:
        """The command that shows one of the runs."""
        return f"lookup simulate shipped:{self.scenario}"

    def answers(self) -> list[float]:
        """Run the scenario under each seed."""
        (file,) = read_scenarios(f"shipped:{self.scenario}")
        found = []
        for seed in _SEEDS:
            scenario = file.scenario.model_copy(update={"seed": seed})
            # New policies for each run, for parts have memory.
            built = policies_of(replaced(file, scenario=scenario), load_plugins(), lambda sentence: None)
            trend = run_policy(scenario, next(policy for policy in built if policy.name == self.policy))
            asked = self.figure
            found.append(float(asked(trend) if callable(asked) else getattr(trend.figures, asked)))
        return found


@dataclass(frozen=True)
class _Hashed:
    """A figure of topics that are hashed into bundles; one answer for each list of topics."""

    topics: Sequence[Sequence[str]]
    bundles: int
    figure: Callable[[Sequence[int]], float]
    command: str = "bundle_index(topic_hash(topic), equal_boundaries(count))"

    def answers(self) -> list[float]:
        """Hash the topics of each list."""
        boundaries = equal_boundaries(self.bundles)
        places = [[bundle_index(topic_hash(topic), boundaries) for topic in names] for names in self.topics]
        return [self.figure(each) for each in places]


#: Pulsar names the coordinators, so there is one list.
_COORDINATORS = [[f"persistent://pulsar/system/transaction_coordinator_assign-partition-{n}" for n in range(16)]]
_ORDERS = [[f"persistent://public/default/orders-{seed}-{n}" for n in range(1000)] for seed in _SEEDS]


def _passes(trend: Trend) -> float:
    """Count the cycles with unloads after the last broker has come back, in minute 32."""
    return sum(sample.unloads > 0 for sample in trend.samples if sample.minute >= 32)


def _exchanged(trend: Trend) -> float:
    return sum({*move} == {4, 5} for sample in trend.samples for move in sample.moved)


def _fullest(places: Sequence[int]) -> float:
    """Deal 64 bundles to 16 brokers in turn, and compare the topics of the fullest with the mean."""
    topics = [sum(place % 16 == broker for place in places) for broker in range(16)]
    return max(topics) / statistics.mean(topics)


_QUESTIONS: Mapping[str, _Asked | _Hashed] = {
    "coordinators on 16 bundles": _Hashed(_COORDINATORS, 16, lambda places: len({*places})),
    "coordinators on 64 bundles": _Hashed(_COORDINATORS, 64, lambda places: len({*places})),
    "a new broker under 4.2": _Asked("broker-joins", "threshold", "idle"),
    "passes after a rolling restart under 5.0": _Asked("rolling-restart", "avg", _passes),
    "bundles exchanged between the two fullest": _Asked("pip-364-no-candidate", "threshold-and-usage", _exchanged),
    "unloads among unequal machines": _Asked("pip-364-heterogeneous-brokers", "threshold-and-usage", "unloads"),
    "moves from 90 and 10 percent": _Asked("pip-364-over-unloading", "threshold-and-usage", "moves"),
    "usage after a broker has gone": _Asked("pip-364-over-placement", "threshold-and-usage", "usage_peak"),
    "unloads under jitter": _Asked("pip-364-load-jitter", "uniform-and-rate", "unloads"),
    "minutes of overload, a hundred new brokers": _Asked("pip-364-hundred-brokers", "uniform-and-rate", "overloaded"),
    "unloads with even distribution": _Asked("pr-16059-even-distribution", "with-even-distribution", "unloads"),
    "a new broker beside low usage": _Asked("pip-220-new-broker", "threshold", "idle"),
    "balance after five brokers became ten, modular": _Asked("pr-655-scale-out", "modular", "balance"),
    "minutes of unloading after five brokers became ten, extensible": _Asked(
        "pr-655-scale-out", "extensible", lambda trend: trend.figures.last_unload - 10
    ),
    "topics of the fullest of 16 brokers, over the mean": _Hashed(_ORDERS, 64, _fullest),
}


def answers() -> _Answers:
    """Ask every question under each seed."""
    return {question: asked.answers() for question, asked in _QUESTIONS.items()}


def table(found: _Answers, statements: Sequence[Mapping[str, Any]]) -> str:
    """Hold answers against what was published, in a row for each statement."""
    rows = [["stated", "asked", "answer", "the statement holds in", "so it is"], ["---"] * 5]
    for statement in statements:
        values = found[statement["question"]]
        least, most = statement.get("at_least", float("-inf")), statement.get("at_most", float("inf"))
        count = sum(least <= value <= most for value in values)
        ci = stats.binomtest(count, len(values)).proportion_ci()
        share = f"{count} of {len(values)} runs ({100 * ci.low:.0f} to {100 * ci.high:.0f} %)"
        verdict = "reproduced" if ci.low > 0.5 else "contradicted" if ci.high < 0.5 else "open"
        if len(values) == 1:
            share, verdict = "no chance in it", "reproduced" if count else "contradicted"
        span = f"{min(values):.3g} to {max(values):.3g}" if min(values) < max(values) else f"{values[0]:.3g}"
        rows.append([
            f"{statement['said']} ({statement['where']})",
            f"{statement['question']}: `{_QUESTIONS[statement['question']].command}`",
            span,
            share,
            verdict,
        ])  # fmt: skip
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def page_with(page: str, rows: str) -> str:
    """Return the page with another table."""
    begin, end = "<!-- table -->\n", "<!-- end of table -->"
    head, rest = page.split(begin)
    return f"{head}{begin}\n{rows}\n\n{end}{rest.split(end, 1)[1]}"


def main() -> None:
    """Write the table into the page."""
    found = answers()
    statements = tomllib.loads(STATEMENTS.read_text(encoding="utf-8"))["statements"]
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), table(found, statements)), encoding="utf-8")


if __name__ == "__main__":
    main()
