"""A short calibration in every run; the whole is `make calibrate`."""

from __future__ import annotations

import pytest

from lookup.settings.evaluation import VerdictSection
from tests.calibration.differences import KNOWN, covered_in, demo
from tests.calibration.equals import SEEDS, Counts, compared, equals_in
from tests.calibration.worlds import KINDS, World, replayed

pytestmark = pytest.mark.timeout(600)


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
    """With one placement each, equal hashes are called different in balance more often than not."""
    counts, _ = equals_in(World(), "rendezvous", [1, 2], pairs=10, size=1)

    balance = counts.by_metric["imbalance_max_mean"]
    assert balance.false > 0.5 * balance.made
    assert counts.failed == 0  # they hold for one placement only


@pytest.mark.parametrize(
    "selector", ["unsalted-modulo", {"use": "explore", "epsilon": 0.2, "child": "unsalted-modulo"}]
)
def test_a_hash_without_salt_is_judged_by_its_placement_only(selector: object) -> None:
    """Also if dice make its replicates differ: no verdict on it holds for the policy."""
    policies = [{**KINDS["dice"], "name": "dice"}, {**KINDS["shedder"], "name": "hash", "selector": selector}]

    scored = compared(replayed(World(), 1, policies, SEEDS), ("dice", 0), ("hash", 0))

    assert {one.holds_for for one in scored.verdicts} == {"placement"}
    assert any(one.verdict in ("better", "worse") for one in scored.verdicts)
    assert scored.exit_code == 0


def test_known_differences_are_found() -> None:
    """The demo's log shows locality gained by racks, and balance gained by moves."""
    verdicts = {(one.policy, one.metric, one.key): one for one in demo(1).verdicts}

    assert [verdicts[policy, metric, key].verdict for policy, metric, key, _ in KNOWN] == [word for *_, word in KNOWN]


def test_intervals_hold_true_differences() -> None:
    """On a log of sixty replicates, intervals of a default number of them hold the mean of all in 17 of 20 or more."""
    counts = covered_in(World(lookups=8_000), ("dice", "rendezvous"), [1], truth=60).values()

    made = sum(count.made for count in counts)
    assert made > 60
    assert sum(count.placement for count in counts) >= 0.85 * made
    assert all(count.all_luck >= count.placement for count in counts)


def test_the_default_rules_are_those_that_were_calibrated() -> None:
    """Seven replicates, five events and twenty units."""
    assert (SEEDS, VerdictSection().min_events, VerdictSection().min_units) == (7, 5, 20)
