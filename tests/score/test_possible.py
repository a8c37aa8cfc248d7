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
_UNEVEN = ("imbalance_max_mean", "imbalance_cv")


def near(policy: str, shares: Sequence[float], **where: Any) -> MetricSums:
    """Write down the share of near lookups by bundle."""
    return ratios(policy, shares, "match_ratio", key="rack", **where)


def bounded(
    parts: Sequence[MetricSums],
    *limits: MetricSums,
    how: Any = None,
    multipliers: Multipliers = MULTIPLIERS,
    **changes: Any,
) -> Possible:
    """Score sums with bounds of one cluster."""
    evenness = dict.fromkeys(_UNEVEN, np.zeros(len(MULTIPLIERS.splits)))
    of_cluster = {"figures": limits, "weight": 3e9, "evenness": evenness, "localities": {}} | changes
    found = scored(parts, how or plan(seeds=SEEDS), bounds=[BoundSums(**of_cluster)], multipliers=multipliers)
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


@pytest.mark.parametrize(("ms", "is_beyond"), [(0.29, True), (0.31, False)])
def test_distances_of_what_a_policy_answers_may_be_the_short_ones(ms: float, *, is_beyond: bool) -> None:
    """Who leaves a tenth of the weight unanswered may do without the farthest 2 ms of each, and no more."""
    farthest = Multipliers.of(3_000.0, 3_000.0 * 1e6, N, 2.0)
    parts = [*answered(), *(sums("stock", [[80, 100]] * N, "network_ms_mean", seed=seed) for seed in SEEDS)]
    parts += [sums("new", [[90 * ms, 90]] * N, "network_ms_mean", seed=seed) for seed in SEEDS]
    # 47 of 100 are possible, 20 of them left out with the unanswered: 27 of 90.
    limit = sums(POSSIBLE, [[47, 100]] * N, "network_ms_mean", seed=0)
    possible = bounded(parts, limit, multipliers=farthest)

    assert {each.policy for each in possible.beyond} == ({"new"} if is_beyond else set())
    assert possible.figures[0].free == pytest.approx(0.47)


@pytest.mark.parametrize(("ms", "is_beyond"), [(0.95, True), (1.05, False)])
def test_few_moves_bound_distances_too(ms: float, *, is_beyond: bool) -> None:
    """In the metric's own unit: without moves half of what could be gained is, which is 1 ms of 2."""
    multipliers = Multipliers.of(3_000.0, 3_000.0 * 1e6, N, 2.0)
    parts = [*answered()]
    for name, distance in (("stock", 1.5), ("new", ms)):
        parts += [sums(name, [[100 * distance, 100]] * N, "network_ms_mean", seed=seed) for seed in SEEDS]
        parts += [moves(name, [0] * N, seed=seed) for seed in SEEDS]
        parts += [ratios(name, [1.0] * N, "imbalance_max_mean", seed=seed) for seed in SEEDS]
    free = np.full(len(multipliers.balance), 3_000.0)
    bound = LocalityBound(free, np.full((len(free), len(multipliers.moves)), 1_500.0), 0 * free)
    even = ratios(POSSIBLE, [1.0] * N, "imbalance_max_mean", seed=0)
    limits = sums(POSSIBLE, [[0, 100]] * N, "network_ms_mean", seed=0), even
    possible = bounded(parts, *limits, multipliers=multipliers, localities={("network_ms_mean", None): bound})

    assert (possible.figures[0].free, possible.figures[0].few) == pytest.approx((0.0, 1.0))
    assert possible.frontiers[0].few == ((1.0, pytest.approx(1.0)),)
    assert {each.policy for each in possible.beyond} == ({"new"} if is_beyond else set())


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
    possible = bounded(parts, *limits, localities={("match_ratio", "rack"): LocalityBound(free, few, 0 * free)})
    beyond = {each.policy for each in possible.beyond}

    assert beyond == ({"stock", "new"} if is_beyond else {"stock"})
    assert possible.figures[0].few == pytest.approx(1_450 / 3_000)
    assert possible.frontiers[0].few[-1][1] == pytest.approx(1_450 / 3_000)
    assert possible.frontiers[0].free[-1][1] == pytest.approx(1.0)


@pytest.mark.parametrize("metric", _UNEVEN)
@pytest.mark.parametrize(("made", "is_beyond"), [(0, True), (2, False)])
def test_balance_is_held_to_what_its_own_moves_allow(metric: str, made: int, *, is_beyond: bool) -> None:
    """Without moves it is 1.5 at least, two of them take off all that is above 1; the incumbent makes none."""
    parts = [*answered()]
    for name, value, count in (("stock", 1.5, 0), ("new", 1.0, made)):
        parts += [ratios(name, [value] * N, of, seed=seed) for of in _UNEVEN for seed in SEEDS]
        parts += [moves(name, [count] + [0] * (N - 1), seed=seed) for seed in SEEDS]
    bound = np.minimum(4.5e9, 3e9 + 2 * MULTIPLIERS.splits)
    possible = bounded(parts, ratios(POSSIBLE, [1.0] * N, metric, seed=0), evenness={metric: bound})

    assert {each.policy for each in possible.beyond} == ({"new"} if is_beyond else set())
    assert possible.figures[0].few == pytest.approx(1.5)


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


def test_few_moves_prove_no_more_of_overload() -> None:
    """Whatever moves, the brokers have as little room."""
    parts = [*answered(), *(moves("stock", [1] * N, seed=seed) for seed in SEEDS)]
    parts += [sums("stock", [[40, 60]] * N, "overload_ratio", seed=seed) for seed in SEEDS]
    possible = bounded(parts, sums(POSSIBLE, [[30, 60]] * N, "overload_ratio", seed=0))

    assert [(best.metric, best.free, best.few) for best in possible.figures] == [("overload_ratio", 0.5, 0.5)]


def test_nothing_is_possible_that_was_not_bounded() -> None:
    """As `evaluation.bounds = false` has it."""
    assert scored(replicates("stock", 0.4), plan("stock", seeds=SEEDS)).possible is None
