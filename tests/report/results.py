"""A scored comparison to report on: every verdict, two clusters, a tenant apart, a log, assumed capacity."""

from __future__ import annotations

from typing import Any

from lookup.replay.outcome import LOGGED, MetricSums
from lookup.score.scoring import Scored
from tests.score.cases import moves, plan, ratios, replicated, scored, spread, sums

INPUTS: dict[str, Any] = {
    "lookups": 1_234_567,
    "redirects": 0,
    "quarantined": 3,
    "induced_ratio": 0.0123,
    "capacity": "assumed",
    "imbalance_floor": {"c": 1.02, "d": 1.5},
    "files": ("a.parquet", "b.parquet"),
    "complete": True,
}


def result(logged: float = 0.501, **changes: Any) -> Scored:
    """Compare `stock` with `new` (better, worse and undecided) and `twin`, which is `stock` again.

    Args:
        logged: the answered ratio of the log; that of `stock` is 0.5, and the margin 0.005.
    """
    log = [ratios(LOGGED, spread(logged, 0.1), cluster=cluster, seed=0) for cluster in "cd"]
    how = plan("stock", "new", "twin", seeds=(1, 2), primary=("answered_ratio", "moves"))
    return scored([*replicated(_parts()), *log], how, **({"inputs": INPUTS} | changes))


def placed_once(**rules: Any) -> Scored:
    """Compare the same policies by one replicate each."""
    how = plan("stock", "new", "twin", primary=("answered_ratio", "moves"), **rules)
    return scored(_parts(), how, inputs=INPUTS)


def wide(policies: int) -> Scored:
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
