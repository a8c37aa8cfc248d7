"""Shares of what is possible: their intervals, what has none, and policies beyond a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lookup.placement.frontier import Multipliers
from lookup.replay.outcome import POSSIBLE, BoundSums, LocalityBound, MetricSums
from lookup.score.possible import Possible, Share
from tests.score.cases import SEEDS, moves, plan, ratios, scored, sums

MULTIPLIERS = Multipliers.of(3_000.0, 3_000.0 * 1e6, 30)
N = 30


def near(policy: str, shares: Sequence[float], **where: Any) -> MetricSums:
    """Write down the share of near lookups by bundle."""
    return ratios(policy, shares, "match_ratio", key="rack", **where)


def bounded(parts: Sequence[MetricSums], *limits: MetricSums, how: Any = None, **changes: Any) -> Possible:
    """Score sums with bounds of one cluster."""
    nothing = np.zeros(len(MULTIPLIERS.splits))
    of_cluster = {"figures": limits, "weight": 3e9, "still": 0.0, "gains": nothing, "localities": {}} | changes
    found = scored(parts, how or plan(seeds=SEEDS), bounds=[BoundSums(**of_cluster)], multipliers=MULTIPLIERS)
    assert found.possible is not None
    return found.possible


def answered(share: float = 1.0) -> list[MetricSums]:
    """Write down that both policies answer so many lookups."""
    return [ratios(policy, [share] * N, seed=seed) for policy in ("stock", "new") for seed in SEEDS]


def replicates(policy: str, mean: float, luck: float = 0.0) -> list[MetricSums]:
    """Write down near lookups in each replicate, which differ by luck of the placement."""
    return [near(policy, [mean + luck * (seed - 3)] * N, seed=seed) for seed in SEEDS]


def share_of(possible: Possible) -> Share:
    """Return the only share."""
    (share,) = possible.shares
    return share


def test_a_share_is_the_part_of_the_way_to_the_bound() -> None:
    """From 0.4 to 0.8 the candidate goes to 0.5."""
    parts = [*answered(), *replicates("stock", 0.4, 0.001), *replicates("new", 0.5, 0.002)]
    possible = bounded(parts, near(POSSIBLE, [0.8] * N, seed=0))
    share = share_of(possible)

    assert share.share == pytest.approx(0.25)
    assert share.low < 0.25 < share.high
    assert possible.figures[0].free == pytest.approx(0.8)
    assert possible.beyond == ()


@pytest.mark.parametrize("lucky", ["stock", "new"])
def test_luck_of_either_policy_is_in_the_interval(lucky: str) -> None:
    """The placement of both has luck, that of the incumbent moves both ends of the way."""
    luck = {"stock": 0.001, "new": 0.001} | {lucky: 0.02}
    parts = [
        *answered(),
        *(part for name, mean in (("stock", 0.4), ("new", 0.5)) for part in replicates(name, mean, luck[name])),
    ]
    share = share_of(bounded(parts, near(POSSIBLE, [0.8] * N, seed=0)))

    # The mean of five replicates varies by 0.02 x sqrt(2.5 / 5), and t with 4 degrees of freedom is 2.78.
    slope = {"new": 1 / 0.4, "stock": (1 - 0.25) / 0.4}[lucky]
    assert (share.high - share.low) / 2 == pytest.approx(2.78 * 0.02 * np.sqrt(0.5) * slope, rel=0.1)


def test_intervals_hold_the_share_as_often_as_they_say() -> None:
    """Over logs whose bundles differ in what each policy, and the best placement, make of them."""
    dice, held = np.random.default_rng(0), 0
    for _ in range(200):
        stock = dice.normal(0.3, 0.05, N)
        new, best = stock + dice.normal(0.1, 0.05, N), stock + dice.normal(0.4, 0.1, N)
        parts = [*answered()]
        for name, shares in (("stock", stock), ("new", new)):
            parts += [near(name, shares + dice.normal(0.0, 0.02), seed=seed) for seed in SEEDS]
        share = share_of(bounded(parts, near(POSSIBLE, best, seed=0)))
        held += share.low <= 0.25 <= share.high

    assert 180 <= held <= 199


def test_bundles_that_gain_what_they_could_tell_a_share_for_certain() -> None:
    """A quarter of the way in every bundle is a quarter whichever bundles come, though the way is longer in some."""
    stock = np.random.default_rng(1).uniform(0.1, 0.5, N)
    parts = [*answered()]
    parts += [
        near(name, of, seed=seed) for name, of in (("stock", stock), ("new", 0.2 + 0.75 * stock)) for seed in SEEDS
    ]
    share = share_of(bounded(parts, near(POSSIBLE, [0.8] * N, seed=0)))

    assert (share.low, share.share, share.high) == pytest.approx((0.25, 0.25, 0.25), abs=1e-6)


def test_nothing_is_to_improve_within_noise() -> None:
    """An incumbent as near to the bound as its luck goes has no scale."""
    parts = [*answered(), *replicates("stock", 0.4, 0.02), *replicates("new", 0.39)]
    share = share_of(bounded(parts, near(POSSIBLE, [0.41] * N, seed=0)))

    assert np.isnan(share.share)
    assert str(share.reason).startswith("nothing to improve")


def test_policies_that_leave_much_unanswered_have_no_share() -> None:
    """A reason stands in its place, and the policies are named."""
    parts = [*answered(0.9), *replicates("stock", 0.4), *replicates("new", 0.5)]
    possible = bounded(parts, near(POSSIBLE, [0.8] * N, seed=0))

    assert possible.unanswered == ("stock", "new")
    assert share_of(possible).reason == "new leaves more than 1% of the lookups unanswered"


def test_the_bound_is_over_what_a_policy_answers() -> None:
    """One that answers only what is near is at its bound, not beyond it."""
    rows = [[80, 80]] * N
    parts = [*answered(), *replicates("stock", 0.4)]
    parts += [sums("new", rows, "match_ratio", key="rack", seed=seed) for seed in SEEDS]

    assert bounded(parts, near(POSSIBLE, [0.8] * N, seed=0)).beyond == ()


def test_a_placement_with_one_draw_of_luck_holds_for_it_only() -> None:
    """As its verdicts do."""
    parts = [*(part for part in answered() if part.seed == 1), near("stock", [0.4] * N), near("new", [0.5] * N)]
    share = share_of(bounded(parts, near(POSSIBLE, [0.8] * N, seed=0), how=plan()))

    assert share.holds_for == "placement"


def test_a_figure_beyond_its_bound_is_found() -> None:
    """Policy, figure and replicate are named."""
    parts = [*answered(), *replicates("stock", 0.4), *replicates("new", 0.8, 0.001)]
    found = bounded(parts, near(POSSIBLE, [0.8] * N, seed=0)).beyond

    assert [(each.policy, each.figures, each.seed) for each in found] == [
        ("new", (("match_ratio", "rack"),), seed) for seed in (4, 5)
    ]


@pytest.mark.parametrize(("made", "is_beyond"), [(0, True), (2, False)])
def test_moves_pay_for_what_few_of_them_could_not_reach(made: int, is_beyond: bool) -> None:
    """Two figures are held against the bound with the policy's own moves."""
    parts = [*answered(), *(part for name in ("stock", "new") for part in replicates(name, 0.5))]
    for name, count in (("stock", 0), ("new", made)):
        parts += [moves(name, [count] + [0] * (N - 1), seed=seed) for seed in SEEDS]
        parts += [ratios(name, [1.0] * N, "imbalance_max_mean", seed=seed) for seed in SEEDS]
    free = np.full(len(MULTIPLIERS.balance), 3_000.0)
    # Without moves 1,450 lookups can be near, and the price of a move is up to a hundred.
    few = np.full((len(free), len(MULTIPLIERS.moves)), 3_000.0)
    few[0, MULTIPLIERS.moves == 100.0] = 1_450.0
    even = ratios(POSSIBLE, [1.0] * N, "imbalance_max_mean", seed=0)
    limits = near(POSSIBLE, [0.8] * N, seed=0), even
    possible = bounded(parts, *limits, localities={"rack": LocalityBound(free, few, 0 * free)})
    beyond = {each.policy for each in possible.beyond}

    assert beyond == ({"stock", "new"} if is_beyond else {"stock"})
    assert possible.figures[0].few == pytest.approx(1_450 / 3_000)
    assert possible.frontiers[0].few[-1][1] == pytest.approx(1_450 / 3_000)
    assert possible.frontiers[0].free[-1][1] == pytest.approx(1.0)


@pytest.mark.parametrize(("served", "is_beyond"), [([100, 100, 100], True), ([99, 100, 100], False)])
def test_overload_is_held_to_its_bound_if_all_is_answered(served: Sequence[float], *, is_beyond: bool) -> None:
    """What has no owner loads no broker; usage is that of lookups before, also of the cell before."""
    parts = [*answered(), *(sums("new", [[one, one] for one in served], "imbalance_max_mean", seed=s) for s in SEEDS)]
    parts += [sums("new", [[0, 60]] * 3, "overload_ratio", seed=seed) for seed in SEEDS]
    limits = [
        sums(POSSIBLE, [[100, 100]] * 3, "imbalance_max_mean", seed=0),
        sums(POSSIBLE, [[0, 60], [30, 60], [0, 60]], "overload_ratio", seed=0),
    ]
    found = {each.figures for each in bounded(parts, *limits).beyond}

    assert found == ({(("overload_ratio", None),)} if is_beyond else set())


def test_nothing_is_possible_that_was_not_bounded() -> None:
    """As `evaluation.bounds = false` has it."""
    assert scored(replicates("stock", 0.4), plan("stock", seeds=SEEDS)).possible is None
