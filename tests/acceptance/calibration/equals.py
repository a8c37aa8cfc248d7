"""What verdicts say of policies that are equal: every `better` and `worse` is false."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import NormalDist

from scipy import special

from lookup.replay.outcome import LOGGED, ReplayOutcome
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Scored, ScoringPlan, score
from lookup.settings.evaluation import EvaluationSection, VerdictSection
from tests.acceptance.calibration.worlds import KINDS, World, group, replayed

__all__ = [
    "METRICS",
    "RULES",
    "SEEDS",
    "Count",
    "Counts",
    "best_of",
    "compared",
    "equals_in",
    "few_seeds_in",
    "is_kept",
    "named",
    "upper_bound",
]

METRICS = tuple(metric() for metric in lookup_register_metrics())
#: Replicates of an evaluation, by default.
SEEDS = len(EvaluationSection(incumbent="").drawn)
#: Rules of verdicts on logs of six hours: blocks of an hour would be too few.
RULES = VerdictSection(block_s=900)


def named(metric: str, key: str | None) -> str:
    """Return the name of a figure, with its key if it has one."""
    return metric if key is None else f"{metric}[{key}]"


@dataclass
class Count:
    """What became of the comparisons of one metric."""

    #: comparisons in which the two policies did not do the same; those of one log count as one together
    made: float = 0.0
    #: called better or worse
    false: float = 0.0
    #: comparisons with a probability, and those whose interval misses the difference of 0
    judged: float = 0.0
    missed: float = 0.0
    #: sum of squared normal deviates, each as improbable as the comparison's t: 1 on average if variances are right
    squares: float = 0.0
    #: comparisons with an interval
    with_interval: int = 0

    @property
    def share(self) -> float:
        """Return the share of false verdicts."""
        return self.false / self.made if self.made else 0.0

    @property
    def mean_square(self) -> float:
        """Return the mean of t squared."""
        return self.squares / self.with_interval if self.with_interval else float("nan")

    def merge(self, other: Count) -> None:
        """Add what another process counted."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass
class Counts:
    """What became of many comparisons of equals."""

    by_metric: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    runs: int = 0
    #: runs that ended with exit code 3, and with 4
    failed: int = 0
    open: int = 0
    #: intervals of no width around a difference
    certain: int = 0

    def add(self, scored: Scored, weight: float = 1.0) -> None:
        """Count the verdicts of one run; the weights of all runs over a log add up to 1."""
        self.runs += 1
        self.failed += scored.exit_code == 3
        self.open += scored.exit_code == 4
        for one in scored.verdicts:
            if one.verdict == "identical":
                continue
            self.certain += one.low == one.high and one.delta != 0
            count = self.by_metric[named(one.metric, one.key)]
            count.made += weight
            count.false += weight * (one.verdict in ("better", "worse"))
            if one.p_value == one.p_value:
                count.with_interval += 1
                count.judged += weight
                count.missed += weight * (one.low > 0 or one.high < 0)
                count.squares += NormalDist().inv_cdf(max(one.p_value, 1e-300) / 2) ** 2

    def merge(self, other: Counts) -> None:
        """Add what another process counted."""
        self.runs += other.runs
        self.failed += other.failed
        self.open += other.open
        self.certain += other.certain
        for name, count in other.by_metric.items():
            self.by_metric[name].merge(count)


def equals_in(
    world: World, kind: str, seeds: Iterable[int], *, pairs: int = 3, size: int = SEEDS
) -> tuple[Counts, Counts]:
    """Compare policies of one kind with each other, over one log for each seed.

    Pairs have no replicate in common, so over one log they differ in luck alone, each in its own.

    Args:
        pairs: over every log.
        size: replicates of each policy.

    Returns:
        What is said if the log does not say which brokers were answered, and what if it does.
    """
    without, with_brokers = Counts(), Counts()
    for seed in seeds:
        outcome = replayed(world, seed, [{**KINDS[kind], "name": kind}], 2 * pairs * size)
        bare = replace(outcome, sums=[part for part in outcome.sums if part.policy != LOGGED], logged_reason="left out")
        for pair in range(pairs):
            places = (kind, 2 * pair), (kind, 2 * pair + 1)
            without.add(compared(bare, *places, size=size), 1 / pairs)
            with_brokers.add(compared(outcome, *places, size=size), 1 / pairs)
    return without, with_brokers


def few_seeds_in(
    world: World, kind: str, seed: int, *, sizes: Sequence[int] = (2, 3, 5, 10), replicates: int = 300
) -> dict[int, Counts]:
    """Compare policies of one kind with so many replicates each, over one log, in as many pairs as there can be."""
    outcome = replayed(world, seed, [{**KINDS[kind], "name": kind}], replicates)
    outcome = replace(outcome, sums=[part for part in outcome.sums if part.policy != LOGGED], logged_reason="left out")
    counts = {size: Counts() for size in sizes}
    for size, count in counts.items():
        pairs = replicates // (2 * size)
        for pair in range(pairs):
            count.add(compared(outcome, (kind, 2 * pair), (kind, 2 * pair + 1), size=size), 1 / pairs)
    return counts


def best_of(world: World, kind: str, seed: int, *, candidates: int = 16) -> Scored:
    """Compare so many policies of one kind with another of that kind, over one log."""
    outcome = replayed(world, seed, [{**KINDS[kind], "name": kind}], (1 + candidates) * SEEDS)
    names = tuple(f"candidate-{place:02}" for place in range(candidates))
    sums = [
        part for place, name in enumerate(("incumbent", *names)) for part in group(outcome, kind, place, SEEDS, name)
    ]
    evaluation = EvaluationSection.model_validate({"incumbent": "incumbent", "seeds": SEEDS, "balance_s": 900})
    plan = ScoringPlan(("incumbent", *names), evaluation, RULES, labels=("rack",))
    return score(replace(outcome, sums=sums, logged_reason="left out", unsalted={}), METRICS, plan)


def compared(
    outcome: ReplayOutcome, incumbent: tuple[str, int], candidate: tuple[str, int], *, size: int = SEEDS
) -> Scored:
    """Score one group of replicates of a policy against a group of another, or of the same."""
    sums = group(outcome, *incumbent, size, "incumbent") + group(outcome, *candidate, size, "candidate")
    sums += [part for part in outcome.sums if part.policy == LOGGED]
    evaluation = EvaluationSection.model_validate({"incumbent": "incumbent", "seeds": size, "balance_s": 900})
    unsalted = {
        name: outcome.unsalted[policy]
        for name, policy in (("incumbent", incumbent[0]), ("candidate", candidate[0]))
        if policy in outcome.unsalted
    }
    found = replace(outcome, sums=sums, unsalted=unsalted)
    return score(found, METRICS, ScoringPlan(("incumbent", "candidate"), evaluation, RULES, labels=("rack",)))


def is_kept(false: float, made: float, *, most: float, upper: float) -> bool | None:
    """Return whether a share is no more than it may be; None if so few logs can say neither.

    Args:
        most: what may be false, a share.
        upper: what its upper bound may be.
    """
    if false <= most * made and upper_bound(false, made) <= upper:
        return True
    # One minus the upper bound of what is right is the lower bound of what is false.
    return False if 1 - upper_bound(made - false, made) > most else None


def upper_bound(false: float, made: float, level: float = 0.05) -> float:
    """Return the one-sided upper bound of a share (Clopper and Pearson, 1934); counts may be weighted."""
    return 1.0 if false >= made else float(special.betaincinv(false + 1, made - false, 1 - level))
