"""A run to report on: every verdict, two clusters, a tenant apart, a log, assumed capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lookup.replay.outcome import LOGGED, InputFacts, MetricSums
from lookup.report.figures import Results, results_of
from lookup.score.rules import Name
from tests.score import cases
from tests.score.cases import SEEDS, moves, plan, ratios, replicated, spread, sums

INPUTS = InputFacts(
    lookups=1_234_567, redirects=0, quarantined=3, clusters=("c", "d"), induced_ratio=0.0123, capacity="assumed"
)


def scored(*arguments: Any, **facts: Any) -> Results:
    """Score sums, as `cases.scored` does, and write them as figures."""
    return results_of(cases.scored(*arguments, **facts))


def decided(*arguments: Any, **rules: Any) -> Results:
    """Score replicates, as `cases.decided` does, and write them as figures."""
    return results_of(cases.decided(*arguments, **rules))


def result(logged: float = 0.501, **changes: Any) -> Results:
    """Compare `stock` with `new` (better, worse and undecided) and `twin`, which is `stock` again.

    Args:
        logged: the answered ratio of the log; that of `stock` is 0.5, and the margin 0.005.
    """
    log = [ratios(LOGGED, spread(logged, 0.1), cluster=cluster, seed=0) for cluster in "cd"]
    how = plan("stock", "new", "twin", seeds=SEEDS, primary=("answered_ratio", "moves"))
    return scored([*replicated(_parts()), *log], how, **({"inputs": INPUTS} | changes))


def placed_once(**rules: Any) -> Results:
    """Compare the same policies by one replicate each."""
    how = plan("stock", "new", "twin", primary=("answered_ratio", "moves"), **rules)
    return scored(_parts(), how, inputs=INPUTS)


def wide(policies: int) -> Results:
    """Compare many policies, which do not fit beside each other."""
    names = [f"policy-{place}" for place in range(policies)]
    return scored([ratios(name, [0.5] * 30) for name in names], plan(*names))


def _parts() -> list[MetricSums]:
    parts = [
        ratios(policy, spread(0.5 + gain, 0.1), cluster=cluster)
        for policy, gain in (("stock", 0.0), ("new", 0.2), ("twin", 0.0))
        for cluster in "cd"
    ]
    parts += [moves(policy, [count] * 40) for policy, count in (("stock", 30), ("new", 60), ("twin", 30))]
    parts += [sums(policy, [[1, 4]] * 40, "network_covered_ratio") for policy in ("stock", "new", "twin")]
    parts += [ratios(policy, spread(0.5, width), "imbalance_cv") for policy, width in (("stock", 0.1), ("new", 0.5))]
    parts.append(ratios("stock", [0.25] * 40, by=(("tenant", "t1"),)))
    return parts


def varied(**rules: Any) -> Results:
    """Compare `stock` with `new` and `old`, so that every kind of verdict, guard and scope occurs.

    `new` keeps answers, is worse in imbalance for these hours only, and better in `match_ratio[zone]` if that were the
    only comparison; in `match_ratio[rack]` clusters disagree on it. Whether `old` keeps answers is open. Of both some
    lookups wait, and moves vary with the placement.
    """
    parts = [replace(part, seed=seed) for seed in SEEDS for part in _varied(seed)]
    how = plan("stock", "new", "old", seeds=SEEDS, **({"primary": ("answered_ratio", "imbalance_max_mean")} | rules))
    return scored(parts, how, inputs=InputFacts(capacity="given"))


def near() -> Results:
    """Compare the same policies with the best of their locality beside them, of which that of `new` is higher."""
    bests = {"stock": 0.5, "new": 0.75, "old": 0.5}
    at_best = {(policy, "match_ratio", "rack"): best for policy, best in bests.items()}
    parts = [replace(part, seed=seed) for seed in SEEDS for part in _varied(seed)]
    return scored(parts, plan("stock", "new", "old", seeds=SEEDS), at_best=at_best)


def _varied(seed: int) -> Iterator[MetricSums]:
    luck = (seed - 3) / 1000
    # Luck of the placement in three figures: of answers that of `old` only is not the incumbent's.
    for policy, answered in (("stock", 0.9 + luck), ("new", 0.95 + luck), ("old", 0.9 - luck)):
        # So many lookups that a handful of them is less than the margin.
        yield sums(policy, [[100_000 * answered, 100_000]] * 40)
    for policy, count in (("stock", 1), ("new", 2), ("old", 3)):
        yield moves(policy, [count] * 40, metric="waiting", key="lock")
    for policy, slope in (("stock", 0.0), ("new", 0.1), ("old", 0.0)):
        hours = [1.5 + slope * (1 + hour / 48) + (hour * 7 % 5) / 1000 for hour in range(48)]
        yield ratios(policy, hours, "imbalance_max_mean")
    for cluster, gain in (("c", 0.1), ("d", -0.2)):
        for policy in ("stock", "new", "old"):
            shares = [0.5 + (gain if policy == "new" else 0.0)] * 40
            yield ratios(policy, shares, "match_ratio", key="rack", cluster=cluster)
    for policy, gains in (("stock", (0.0, 0.0)), ("new", (0.04, -0.02)), ("old", (0.03, -0.03))):
        yield ratios(policy, [0.5 + gain for gain in gains] * 20, "match_ratio", key="zone")
    for policy, count in (("stock", 30), ("new", 30 + (seed * 2 % 5)), ("old", 30 + (seed * 3 % 5))):
        yield moves(policy, [count] * 40)


def with_figure(results: Results, policy: str, name: Name, **columns: Any) -> Results:
    """Change columns of one figure of a policy."""
    chosen = results.pooled[policy, *name]
    rows = [replace(row, **columns) if row is chosen else row for row in results.figures]
    return replace(results, figures=rows)
