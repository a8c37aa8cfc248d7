"""A short calibration in every run; the whole is `make calibrate`."""

from __future__ import annotations

import numpy as np
import pytest

from lookup.score.verdict import Verdict
from lookup.settings.evaluation import VerdictSection
from tests.acceptance.calibration.demand import Demand, deaf, redrawn, same_luck, two_days
from tests.acceptance.calibration.differences import KNOWN, covered_in, demo
from tests.acceptance.calibration.drift import Drift, drifting
from tests.acceptance.calibration.equals import SEEDS, Counts, compared, equals_in, few_seeds_in
from tests.acceptance.calibration.tenants import Tenants, compared_by_tenants
from tests.acceptance.calibration.worlds import KINDS, World, replayed


def _all(counts: Counts) -> tuple[int, int, float]:
    """Return verdicts, false ones, and the mean of t squared over all metrics."""
    by_metric = counts.by_metric.values()
    judged = sum(count.with_interval for count in by_metric)
    return (
        sum(count.made for count in by_metric),
        sum(count.false for count in by_metric),
        sum(count.squares for count in by_metric) / judged,
    )


# No two kinds share a log: policies with the same dice would be lucky and unlucky together.
@pytest.mark.parametrize(
    ("kind", "logs"), [("dice", (11, 12)), ("plug-in hash", (13, 14)), ("shedder", (15, 16)), ("sticky", (17, 18))]
)
def test_equals_are_seldom_told_apart(kind: str, logs: tuple[int, int]) -> None:
    """Of policies that differ in luck alone at most one verdict in ten is false, and variances are right."""
    without, with_brokers = equals_in(World(), kind, logs)

    made, false, squares = _all(without)
    assert false <= 0.1 * made
    assert 0.4 <= squares <= 1.5
    assert without.failed + with_brokers.failed <= 1


def test_one_replicate_takes_luck_for_merit() -> None:
    """With one placement each, equal hashes are called different in overload, and too often in balance."""
    counts, _ = equals_in(World(), "rendezvous", [1, 2], pairs=10, size=1)

    overload, balance = (counts.by_metric[name] for name in ("overload_ratio", "imbalance_max_mean"))
    assert overload.false > 0.5 * overload.made
    assert balance.false > 0.1 * balance.made
    assert counts.failed == 0  # they hold for one placement only


@pytest.mark.parametrize(
    "selector", ["unsalted-modulo", {"use": "explore", "epsilon": 0.2, "child": "unsalted-modulo"}]
)
def test_a_hash_without_salt_is_judged_by_its_placement_only(selector: object) -> None:
    """Also if dice make its replicates differ: no verdict on it holds for the policy."""
    policies = [{**KINDS["dice"], "name": "dice"}, {**KINDS["shedder"], "name": "hash", "selector": selector}]

    scored = compared(replayed(World(), 1, policies, SEEDS), ("dice", 0), ("hash", 0))

    assert {one.holds_for for one in scored.verdicts if one.verdict != "identical"} == {"placement"}
    assert any(one.verdict in ("better", "worse") for one in scored.verdicts)
    assert scored.exit_code != 3


def test_known_differences_are_found() -> None:
    """The demo's log shows locality gained by racks, balance lost to a hash, and moves of 5.0's defaults."""
    verdicts = {(one.policy, one.metric, one.key): one for one in demo(1).verdicts}

    assert [verdicts[policy, metric, key].verdict for policy, metric, key, _ in KNOWN] == [word for *_, word in KNOWN]


def test_intervals_hold_true_differences() -> None:
    """On a log of sixty replicates, intervals of a default number of them hold the mean of all in 17 of 20 or more."""
    counts = covered_in(World(lookups=8_000), ("dice", "rendezvous"), [1], truth=60).values()

    made = sum(count.made for count in counts)
    assert made > 60
    assert sum(count.placement for count in counts) >= 0.85 * made
    assert all(count.all_luck >= count.placement for count in counts)


@pytest.mark.parametrize("demand", [Demand(zipf=0.8), Demand(top=0.3), Demand(bundles=30, zipf=0.8, clusters=2)])
def test_skewed_demand_is_no_merit(demand: Demand) -> None:
    """Of twelve logs on which equals differ, at most three have a locality that is told apart at 5 %."""
    verdicts = [_locality(demand, seed) for seed in range(12)]

    assert all(verdict.p_value >= 0 for verdict in verdicts)
    assert sum(verdict.p_value < 0.05 for verdict in verdicts) <= 3


def test_one_bundle_with_most_of_the_traffic_is_no_evidence() -> None:
    """It says so, with how many bundles all of them are worth."""
    verdict = _locality(Demand(top=0.6), 1)

    assert verdict.verdict == "inconclusive"
    assert "60 bundles are worth 2." in str(verdict.reason)


def test_tenants_that_live_in_one_rack_are_no_merit() -> None:
    """Of twenty logs whose namespaces have a rack each at most two have a locality that is told apart, none by much."""
    world = Tenants(namespaces=24)
    found = [compared_by_tenants(world, "mirror", seed) for seed in range(20)]

    words = [one.verdicts["match_ratio[rack]"][0] for one in found]
    assert sum(word in ("better", "worse") for word in words) <= 2
    assert sum(one.exit_code == 3 for one in found) <= 1
    assert all(8 <= one.worth <= 24 for one in found)


def test_a_policy_that_goes_by_labels_is_worth_its_locality() -> None:
    """It is better there, and in balance its intervals hold the mean difference in eight of ten logs."""
    found = [compared_by_tenants(Tenants(namespaces=24), "first label", seed).verdicts for seed in range(10)]

    assert all(one["match_ratio[rack]"][0] == "better" for one in found)
    mean = np.mean([one["imbalance_max_mean"][1] for one in found])
    assert sum(one["imbalance_max_mean"][2] <= mean <= one["imbalance_max_mean"][3] for one in found) >= 8


def _locality(demand: Demand, seed: int) -> Verdict:
    return next(verdict for verdict in redrawn(demand, seed).verdicts if verdict.metric == "match_ratio")


def test_a_gate_lets_equals_pass_and_stops_a_namespace_that_is_lost() -> None:
    """One namespace of sixty that is never answered is exit code 3, on every log."""
    assert [[deaf(seed, namespaces).exit_code for seed in (1, 2, 3)] for namespaces in (0, 1)] == [[0] * 3, [3] * 3]


@pytest.mark.parametrize(("drift", "false"), [(Drift("memory", 1, 24), 10), (Drift("wave", 12, 6), 10)])
def test_drift_is_no_merit(drift: Drift, false: int) -> None:
    """Of a hundred differences that drift and are none at most ten are told apart."""
    verdicts = [drifting(drift, seed).verdicts[0].verdict for seed in range(100)]

    assert verdicts.count("better") + verdicts.count("worse") <= false


def test_few_seeds_end_no_run_of_equals() -> None:
    """Two seeds decide nothing, three hardly anything."""
    counts = few_seeds_in(World(lookups=8_000), "plug-in hash", 21, sizes=(2, 3), replicates=60)

    assert (counts[2].runs, counts[3].runs) == (15, 10)
    assert sum(count.false for count in counts[2].by_metric.values()) == 0
    assert counts[2].failed + counts[3].failed == 0


def test_another_day_is_a_second_opinion() -> None:
    """Differences between two hashes repeat with the same seeds, and not with those that a log draws."""
    drawn, same = (
        np.corrcoef(np.array([[day["match_ratio[rack]"] for day in days(seed)] for seed in range(8)]).T)[0, 1]
        for days in (two_days, same_luck)
    )

    assert same > 0.9
    assert drawn < 0.8


def test_the_default_rules_are_those_that_were_calibrated() -> None:
    """Seven replicates, five events and eight units."""
    assert (SEEDS, VerdictSection().min_events, VerdictSection().min_units) == (7, 5, 8)
