"""Verdicts: the rules as a table, what they hold for, what they decide, and how often they err."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lookup.replay.outcome import LOGGED, MetricSums
from lookup.score.verdict import Guard, Span, Verdict, exit_code
from lookup.settings.evaluation import VerdictSection
from tests.score.cases import SEEDS, moves, plan, ratios, scored, spread, sums
from tests.score.pairs import NAN, judged


@pytest.mark.parametrize(
    ("delta", "half", "word"),
    [
        (0.02, 0.01, "better"),
        (-0.02, 0.01, "worse"),
        (0.0, 0.004, "equivalent"),
        (0.003, 0.0015, "equivalent"),
        (-0.003, 0.0015, "equivalent"),
        (0.004, 0.0025, "better"),
        (0.004, 0.005, "inconclusive"),
        (-0.004, 0.005, "inconclusive"),
        (0.0, 0.1, "inconclusive"),
    ],
)
def test_rules(delta: float, half: float, word: str) -> None:
    """Inside the margin is equivalent, else the side of zero decides, else nothing does."""
    verdict = judged(delta, half)

    assert verdict.verdict == word
    assert (verdict.low, verdict.high) == pytest.approx((delta - half, delta + half))


def test_down_is_turned_round() -> None:
    """For a metric that should be low, a lower candidate has a positive difference and is better."""
    verdict = judged(-0.02, 0.01, metric="imbalance_cv")

    assert verdict.verdict == "better"
    assert (verdict.delta, verdict.low, verdict.high) == pytest.approx((0.02, 0.01, 0.03))


@pytest.mark.parametrize(
    ("delta", "half", "gap", "word"),
    [
        (0.02, 0.01, NAN, "better"),
        (0.02, 0.01, 0.0, "better"),
        (0.02, 0.01, 0.0199, "better"),
        (0.02, 0.01, 0.0201, "inconclusive"),
        (-0.02, 0.01, 0.0201, "inconclusive"),
        (0.0, 0.001, 0.0039, "equivalent"),
        (0.0, 0.001, 0.0041, "inconclusive"),
        (-0.002, 0.001, 0.0019, "equivalent"),
        (-0.003, 0.001, 0.0029, "worse"),
    ],
)
def test_the_fidelity_gap_is_the_replay_s_own_error(delta: float, half: float, gap: float, word: str) -> None:
    """Equal is what lies within the margin with the gap added, and no difference up to the gap is one."""
    assert judged(delta, half, gap=gap).verdict == word


class TestIdenticalPolicies:
    """A/A: one policy under two names."""

    def test_every_metric_is_identical(self) -> None:
        """Whatever the metric, whatever the fidelity, and one lost broker is not too few."""
        rows = {"answered_ratio": spread(0.5, 0.4), "imbalance_cv": spread(1.0, 0.5), "network_ms_p95": [0.5]}
        parts = [ratios(policy, shares, metric) for policy in ("stock", "new") for metric, shares in rows.items()]
        parts += [moves(policy, [3, 0] * 20 + [8], causes=["forced"]) for policy in ("stock", "new")]
        parts += [ratios(LOGGED, spread(0.9, 0.1))]

        verdicts = scored(parts, plan(primary=("network_ms_p95",))).verdicts

        assert [verdict.verdict for verdict in verdicts] == ["identical"] * 4
        assert {(verdict.delta, verdict.low, verdict.high, verdict.reason) for verdict in verdicts} == {
            (0.0, 0.0, 0.0, None)
        }
        assert all(math.isnan(verdict.p_value) for verdict in verdicts)

    def test_a_copy_with_one_bundle_and_one_event_is_identical(self) -> None:
        """The same sums everywhere are that, on however little they rest."""
        parts = [moves(policy, [1, 8], causes=["forced"]) for policy in ("stock", "new")]

        (verdict,) = scored(parts).verdicts

        assert (verdict.verdict, verdict.reason) == ("identical", None)
        # Not by `==`: from Python 3.13 on, records with NaN are never equal.
        assert repr(verdict.on_log) == repr(verdict.for_demand) == repr(Span(0.0, 0.0, math.nan))

    def test_the_same_total_in_other_bundles_is_not_identical(self) -> None:
        """Bundles have changed places: policies that do other things are told apart from copies."""
        shares = spread(0.5, 0.4)
        parts = [ratios("stock", shares, "match_ratio"), ratios("new", shares[::-1], "match_ratio")]

        (verdict,) = scored(parts).verdicts

        assert verdict.verdict == "inconclusive"
        assert verdict.delta == pytest.approx(0.0)

    def test_a_cluster_that_one_policy_lacks_is_not_identical(self) -> None:
        """Neither has what the other has only as nothing."""
        parts = [ratios("stock", [0.5] * 30, "match_ratio", cluster=name) for name in "cd"]
        parts.append(ratios("new", [0.5] * 30, "match_ratio"))

        for policies in (("stock", "new"), ("new", "stock")):
            assert scored(parts, plan(*policies)).verdicts[0].verdict == "equivalent"

    @pytest.mark.parametrize("metric", ["moves", "waiting"])
    def test_totals_of_nothing_are_equal(self, metric: str) -> None:
        """No moves, and no waiting lookups, under both policies are the same, not unknown."""
        parts = [ratios(policy, [0.5] * 30) for policy in ("stock", "new")]
        parts += [sums(policy, [[0]] * 30, metric) for policy in ("stock", "new")]

        assert {verdict.metric: verdict.verdict for verdict in scored(parts).verdicts}[metric] == "identical"


def test_the_interval_of_the_difference_covers_the_truth() -> None:
    """In 400 worlds where the candidate gains 0.05 on average, 92 to 98 % of the intervals hold that."""
    rng = np.random.default_rng(5)

    covered = 0
    for _ in range(400):
        before, gains = rng.uniform(0.2, 0.7, 50), rng.normal(0.05, 0.1, 50)
        parts = [ratios("stock", before, "match_ratio"), ratios("new", before + gains, "match_ratio")]
        (verdict,) = scored(parts).verdicts
        covered += verdict.low <= 0.05 <= verdict.high

    assert 368 <= covered <= 392


def test_equal_policies_seldom_come_out_decided() -> None:
    """Of 300 worlds without any difference one in fifty at most has a metric that does; alone one in ten would."""
    rng = np.random.default_rng(8)
    names = ("match_ratio", "imbalance_cv", "load_variation")

    runs = [_equal(rng, names) for _ in range(300)]

    assert np.mean([any(one.verdict in ("better", "worse") for one in run) for run in runs]) <= 0.02
    assert np.mean([any(one.p_value < 0.05 for one in run) for run in runs]) > 0.1


def _equal(rng: np.random.Generator, names: Sequence[str]) -> Sequence[Verdict]:
    """Judge two policies whose replicates and units differ by chance alone."""
    parts = []
    for metric in names:
        units = rng.uniform(0.2, 0.7, 40)
        for policy in ("stock", "new"):
            noise = rng.normal(0, 0.05, (5, 1)) + rng.normal(0, 0.1, 40) + rng.normal(0, 0.05, (5, 40))
            parts += [ratios(policy, units + noise[seed], metric, seed=seed + 1) for seed in range(5)]
    return scored(parts, plan(seeds=SEEDS, primary=names, margin=0.0)).verdicts


def test_clusters_are_pooled() -> None:
    """A gain in one cluster and a loss in a cluster of nine times its traffic is a loss."""
    small = [ratios(policy, [share] * 30, "match_ratio") for policy, share in (("stock", 0.5), ("new", 0.9))]
    large = [
        sums(policy, [[9 * share, 900]] * 30, "match_ratio", cluster="d")
        for policy, share in (("stock", 50), ("new", 40))
    ]

    (verdict,) = scored(small + large).verdicts

    assert verdict.verdict == "worse"


def test_a_cluster_that_one_policy_lacks_is_no_mistake() -> None:
    """A metric may have a key in some clusters only, and under one policy; the difference is that of what there is."""
    parts = [ratios("stock", [0.5] * 30, cluster=name) for name in "cd"] + [ratios("new", [0.6] * 30)]

    (verdict,) = scored(parts).verdicts

    assert (verdict.verdict, verdict.delta) == ("better", pytest.approx(0.1))


def test_the_order_is_that_of_policies_and_metrics() -> None:
    """Candidates as in the settings, metrics as registered; the incumbent has no verdict."""
    names = ("b", "stock", "a")
    parts = [ratios(policy, [0.5] * 30, metric) for metric in ("imbalance_cv", "answered_ratio") for policy in names]

    verdicts = scored(parts, plan("stock", "b", "a")).verdicts

    assert [(one.policy, one.metric) for one in verdicts] == [
        (policy, metric) for policy in ("b", "a") for metric in ("answered_ratio", "imbalance_cv")
    ]


def test_info_has_no_verdict() -> None:
    """A metric without direction is not judged."""
    parts = [ratios(policy, [0.5] * 30, "agreement_ratio") for policy in ("stock", "new")]

    assert scored(parts).verdicts == []


def test_what_neither_policy_has_is_not_judged() -> None:
    """No place, no distance, no verdict."""
    parts = [sums(policy, [[0, 0]] * 30, "network_ms_mean") for policy in ("stock", "new")]

    assert scored(parts).verdicts == []


def written(holds_for: Any = "policy", **words: str) -> list[Verdict]:
    """Write down verdicts by metric; those whose name ends in `_` are not primary."""
    blank = Verdict("new", "stock", "", None, "inconclusive", None, 0.0, 0.0, 0.0, primary=True, holds_for=holds_for)
    return [replace(blank, metric=name, verdict=word, primary=not name.endswith("_")) for name, word in words.items()]


class TestExitCode:
    """3 for worse, 4 for a required decision that is missing, else 0."""

    @pytest.mark.parametrize(
        ("words", "required", "code"),
        [
            ({}, True, 0),
            ({"a": "better", "b": "equivalent", "c": "identical"}, True, 0),
            ({"a": "better", "b": "worse"}, False, 3),
            ({"a": "inconclusive", "b": "worse"}, True, 3),
            ({"a": "inconclusive"}, False, 0),
            ({"a": "inconclusive"}, True, 4),
            ({"a_": "worse"}, False, 0),
            ({"a_": "inconclusive"}, True, 0),
        ],
    )
    def test_of_policies(self, words: dict[str, str], required: bool, code: int) -> None:
        """Worse comes before undecided; metrics that are not primary never decide."""
        assert exit_code(written(**words), VerdictSection(require_decision=required)) == code

    @pytest.mark.parametrize(
        ("words", "required", "accept", "code"),
        [
            ({"a": "worse"}, False, False, 0),
            ({"a": "worse"}, True, False, 4),
            ({"a": "worse"}, True, True, 3),
            ({"a": "better"}, True, False, 4),
            ({"a": "better"}, True, True, 0),
            ({"a": "inconclusive"}, True, True, 4),
            ({"a_": "worse"}, True, False, 0),
        ],
    )
    def test_of_placements(self, words: dict[str, str], required: bool, accept: bool, code: int) -> None:
        """They leave a primary metric open unless the rules accept them."""
        rules = VerdictSection(require_decision=required, accept_placement=accept)

        assert exit_code(written("placement", **words), rules) == code

    @pytest.mark.parametrize(
        ("word", "guard", "primary", "code"),
        [
            ("equivalent", "kept", True, 0),
            ("inconclusive", "kept", True, 0),
            ("inconclusive", "open", True, 4),
            ("worse", "lost", True, 3),
            ("inconclusive", "open", False, 0),
            ("worse", "lost", False, 0),
        ],
    )
    def test_of_guards(self, word: str, guard: Guard, primary: bool, code: int) -> None:
        """That nothing is lost must be shown, whether a decision is required or not."""
        (verdict,) = written(a=word)

        assert exit_code([replace(verdict, guard=guard, primary=primary)], VerdictSection()) == code

    @pytest.mark.parametrize("holds_for", ["placement", "hours"])
    def test_a_loss_that_does_not_decide_is_unguarded_all_the_same(self, holds_for: str) -> None:
        """It does not fail the run as a policy's, and does not pass."""
        (verdict,) = written(holds_for, a="worse")

        assert exit_code([replace(verdict, guard="lost")], VerdictSection()) == 4
        assert exit_code([verdict], VerdictSection()) == 0

    def test_a_policy_that_is_worse_fails_beside_open_placements(self) -> None:
        """What holds for a placement does not hide what holds for a policy."""
        several = [*written("placement", a="better"), *written(b="worse")]

        assert exit_code(several, VerdictSection(require_decision=True)) == 3


class TestPrimary:
    """Which verdicts decide the exit code."""

    PARTS = (
        *(ratios(policy, [share] * 30) for policy, share in (("stock", 0.9), ("new", 0.1))),
        *(sums(policy, [[2]] * 30, "moves") for policy in ("stock", "new")),
        *(sums(policy, [[2]] * 30, "moves", key="shed") for policy in ("stock", "new")),
        *(sums(policy, [[1, ms]], "network_ms_p95") for policy, ms in (("stock", 1), ("new", 2))),
    )

    @pytest.mark.parametrize(
        ("primary", "expected"),
        [
            (None, ["answered_ratio"]),
            (("moves",), ["moves", "moves:shed"]),
            (("moves:shed",), ["moves:shed"]),
            (("network_ms_p95",), ["network_ms_p95"]),
            ((), []),
        ],
    )
    def test_selection(self, primary: Any, expected: list[str]) -> None:
        """By default a short list; a name means all its keys."""
        assert _primary(self.PARTS, primary=primary) == expected

    def test_by_default_clients_are_served_near_evenly_and_in_peace(self) -> None:
        """By labels that policies read or settings give: others may be matched or not."""
        parts = [*self.PARTS, *(sums(policy, [[2]] * 30, "moved_weight") for policy in ("stock", "new"))]
        for policy in ("stock", "new"):
            parts += [ratios(policy, [0.5] * 30, "match_ratio", key=key) for key in ("rack", "zone")]
            parts += [ratios(policy, [0.5] * 30, metric) for metric in ("imbalance_max_mean", "imbalance_cv")]

        assert _primary(parts, labels=("rack",)) == [
            "answered_ratio",
            "match_ratio:rack",
            "imbalance_max_mean",
            "moved_weight",
        ]

    def test_what_the_default_list_names_and_nobody_has_is_left_out(self) -> None:
        """No weight may have moved, and a label that no client sends is matched by none."""
        parts = [part for part in self.PARTS if part.metric != "moves"]

        result = scored(parts, replace(plan(require_decision=True, accept_placement=True), labels=("rack",)))

        assert [one.metric for one in result.verdicts if one.primary] == ["answered_ratio"]
        assert result.exit_code == 3

    @pytest.mark.parametrize("named", ["match_ratio", "moves:forced"])
    def test_what_was_not_measured_is_undecided(self, named: str) -> None:
        """A primary metric that could be measured for neither policy must not pass in silence."""
        result = scored(self.PARTS, plan(primary=(named,), require_decision=True))

        undecided = result.verdicts[-1]
        assert (undecided.metric, undecided.key or "") == (*named.split(":"), "")[:2]
        assert undecided.verdict == "inconclusive"
        assert "either policy" in str(undecided.reason)
        assert result.exit_code == 4


def _primary(parts: Sequence[MetricSums], labels: tuple[str, ...] = (), **rules: Any) -> list[str]:
    verdicts = scored(parts, replace(plan(**rules), labels=labels)).verdicts
    return [one.metric + (f":{one.key}" if one.key else "") for one in verdicts if one.primary]
