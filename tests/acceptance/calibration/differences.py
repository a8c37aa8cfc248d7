"""What verdicts say of policies that differ: is the difference found, and does its interval hold the true one?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.logs.jobs import InProcess
from lookup.replay.outcome import LOGGED
from lookup.replay.run import replay
from lookup.score.luck import spread
from lookup.score.scoring import Scored, ScoringPlan, score
from lookup.score.series import Series, series_of
from lookup.score.units import Sample, Stratum, layout_of, minus, sample
from lookup.settings import load_evaluation
from tests.acceptance.calibration.equals import METRICS, RULES, SEEDS, compared, named
from tests.acceptance.calibration.worlds import KINDS, World, replayed

__all__ = ["KNOWN", "REPLICATES", "TRUTH", "Coverage", "covered_in", "demo", "elsewhere", "found_in", "widths_in"]

_CONFIG = Path(__file__).parents[3] / "configs" / "evaluation.toml"
#: Replicates from which a true difference is known.
TRUTH = 200
#: Numbers of replicates whose intervals are compared; each divides the largest.
REPLICATES = (2, 3, 5, 10, 15, 30)
#: What is known of the demo's policies against its incumbent: policy, metric, key, verdict.
KNOWN = (
    ("rack-then-load", "match_ratio", "rack", "better"),
    ("rebalance", "match_ratio", "rack", "better"),
    ("stock-modular-5.0", "moves", None, "worse"),
)


def demo(seed: int, replicates: int = SEEDS) -> Scored:
    """Score what the demo compares over another log of its size, as its settings say but for the replicates."""
    with TemporaryDirectory(prefix="calibration-") as folder:
        log = Path(folder) / "log"
        generate(GenerateSettings(seed=seed), log)
        inputs = {f"inputs.{name}": str(log / name) for name in ("lookups", "brokers", "loads", "bundles", "ownership")}
        settings = load_evaluation(_CONFIG, {**inputs, "evaluation.seeds": replicates}, environ={})
        names = {policy for policy, *_ in KNOWN} | {settings.evaluation.incumbent}
        kept = tuple(policy for policy in settings.policies if policy.name in names)
        settings = settings.model_copy(update={"policies": kept})
        outcome = replay(InProcess(), settings, str(Path(folder) / "out"))
        plan = ScoringPlan(
            tuple(policy.name for policy in kept), settings.evaluation, settings.verdict, labels=("rack",)
        )
        return score(outcome, METRICS, plan)


def found_in(seeds: Iterable[int]) -> Counter[str]:
    """Count the logs in which each known difference is found."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        verdicts = {(one.policy, one.metric, one.key): one for one in demo(seed).verdicts}
        for policy, metric, key, word in KNOWN:
            name = named(metric, key)
            counts[f"{policy} {word} in {name}"] += verdicts[policy, metric, key].verdict == word
    return counts


def widths_in(seed: int) -> dict[tuple[str, int], float]:
    """Return half the width of intervals of known differences by how many replicates they rest on, in the demo's size.

    The mean over the groups into which the most replicates can be divided, relative to the difference itself.
    """
    scored = demo(seed, max(REPLICATES))
    samples = {
        (one.series.policy, *one.series.name): one.sample
        for one in scored.estimates
        if one.cluster is None and not one.series.by
    }
    widths: dict[tuple[str, int], float] = {}
    for policy, metric, key, _ in KNOWN:
        candidate, incumbent = (samples[name, metric, key] for name in (policy, scored.plan.evaluation.incumbent))
        if candidate is None or incumbent is None:
            continue
        drawn = minus(candidate, incumbent)
        for size in REPLICATES:
            halves = [spread(group).half_width() for group in _groups(drawn, size)]
            name = named(metric, key)
            widths[f"{policy}, `{name}`", size] = sum(halves) / len(halves) / abs(float(drawn.values.mean()))
    return widths


@dataclass
class Coverage:
    """How many intervals of one metric hold the true difference."""

    made: int = 0
    #: of the intervals for the luck of the placement alone, which is all that replicates of one log can check
    placement: int = 0
    #: of the intervals with all luck, which are wider
    all_luck: int = 0


def covered_in(
    world: World, kinds: tuple[str, str], seeds: Iterable[int], *, truth: int = TRUTH
) -> dict[str, Coverage]:
    """Compare policies of two kinds over some logs, by as many disjoint groups of replicates as there are.

    The true difference on a log is the mean over all its replicates.
    """
    counts: dict[str, Coverage] = defaultdict(Coverage)
    for seed in seeds:
        outcome = replayed(world, seed, [{**KINDS[kind], "name": kind} for kind in kinds], truth)
        series = series_of([part for part in outcome.sums if part.policy != LOGGED], METRICS, kinds)
        layout = layout_of(
            series,
            cell_s=900,
            block_s=RULES.block_s,
            min_events=RULES.min_events,
            min_units=RULES.min_units,
            senders=outcome.senders,
        )
        for name, (incumbent, candidate) in _pairs(series, kinds).items():
            _count(counts[name], minus(sample(candidate, layout), sample(incumbent, layout)))
    return counts


def elsewhere(world: World, kinds: tuple[str, str], seed: int) -> dict[str, tuple[float, float, float]]:
    """Return the difference between policies of two kinds on one log, and its interval, by figure."""
    outcome = replayed(world, seed, [{**KINDS[kind], "name": kind} for kind in kinds], SEEDS)
    scored = compared(outcome, (kinds[0], 0), (kinds[1], 0))
    return {named(one.metric, one.key): (one.delta, one.low, one.high) for one in scored.verdicts if one.low < one.high}


def _pairs(series: Iterable[Series], kinds: tuple[str, str]) -> Mapping[str, tuple[Series, Series]]:
    by_name: dict[str, dict[str, Series]] = defaultdict(dict)
    for one in series:
        if one.metric.better != "info" and one.metric.resample != "none":
            by_name[named(one.metric.name, one.key)][one.policy] = one
    return {name: (held[kinds[0]], held[kinds[1]]) for name, held in by_name.items() if len(held) == len(kinds)}


def _groups(drawn: Sample, size: int) -> Iterator[Sample]:
    """Divide a sample into groups of replicates."""
    for first in range(0, len(drawn.values), size):
        part = slice(first, first + size)
        strata = tuple(_in_replicates(stratum, part) for stratum in drawn.strata or ())
        yield replace(drawn, values=drawn.values[part], strata=strata)


def _in_replicates(stratum: Stratum, part: slice) -> Stratum:
    within = None if stratum.within is None else _in_replicates(stratum.within, part)
    return replace(stratum, parts=stratum.parts[part], within=within)


def _count(coverage: Coverage, drawn: Sample) -> None:
    true = float(drawn.values.mean())
    for group in _groups(drawn, SEEDS):
        away = abs(float(group.values.mean()) - true)
        alone = spread(Sample(group.values))
        if not alone.error:
            continue  # both policies do the same in every replicate
        coverage.made += 1
        coverage.placement += away <= alone.half_width()
        coverage.all_luck += away <= spread(group).half_width()
