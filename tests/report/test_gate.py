"""Runs judged for a pipeline: budgets, primary metrics, earlier runs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from lookup.errors import SettingsError
from lookup.report.compare import compare_runs
from lookup.report.figures import Results, read_run
from lookup.report.gate import EXCEEDED, Gate, gate_of, junit_xml
from lookup.report.numbers import number_text
from tests.report.results import decided, placed_once, result, scored, varied, with_figure
from tests.report.runs import edit, write_run
from tests.score.cases import SEEDS, moves, plan, ratios, replicated, spread, sums


def _run(**rules: Any) -> Results:
    """Compare `worse`, which moves 10 times more and answers no less, and `twin` with `stock`."""
    counts = {"stock": [30.0] * 40, "worse": [29.0, 31.5] * 20, "twin": [30.0] * 40}
    parts = [moves(policy, of) for policy, of in counts.items()]
    parts += [ratios(policy, spread(0.5, 0.1)) for policy in counts]
    return decided(parts, *counts, **rules)


def _outcomes(gate: Gate) -> dict[tuple[str, str], str]:
    return {(check.policy, check.name): check.outcome for check in gate.checks}


def test_a_certain_regression_beyond_the_budget_fails() -> None:
    """1,200 moves more are beyond 50 of them, and the code is that of budgets."""
    gate = gate_of(result(), {"moves": 50, "answered_ratio": 0.01})

    assert _outcomes(gate) == {
        ("new", "moves"): "failed",
        ("twin", "moves"): "passed",
        ("new", "answered_ratio"): "passed",
        ("twin", "answered_ratio"): "passed",
    }
    assert gate.exit_code == EXCEEDED


@pytest.mark.parametrize(
    ("tolerated", "outcome", "code"), [(0.0, "undecided", 0), (9.0, "undecided", 0), (200.0, "passed", 0)]
)
def test_an_interval_on_both_sides_of_the_budget_is_undecided(tolerated: float, outcome: str, code: int) -> None:
    """It passes, and the check says up to how much the figure may regress; a wide budget holds all of the interval."""
    gate = gate_of(_run(), {"moves": tolerated})

    check = next(check for check in gate.checks if check.policy == "worse")
    assert (check.change, check.outcome, gate.exit_code) == (10.0, outcome, code)
    assert ("may regress" in check.reason) == (outcome == "undecided")


def test_a_required_decision_does_not_pass_what_is_undecided() -> None:
    """The code is that of a missing decision."""
    gate = gate_of(_run(require_decision=True), {"moves": 9.0})

    assert gate.exit_code == 4
    assert gate.headline.endswith("(exit code 4). Undecided: 1 of 2 figures.")


def _unsure(metric: str, key: str | None = None, seeds: tuple[int, ...] = SEEDS) -> Results:
    """Compare two policies whose ratio differs by luck of the placement alone, by some thousandths."""
    shares = {"stock": lambda seed: 0.9 + seed / 1000, "new": lambda seed: 0.903 + (seed * 2 % 5) / 1000}
    parts = [
        ratios(policy, [share(seed)] * 40, metric, key=key, seed=seed)
        for policy, share in shares.items()
        for seed in seeds
    ]
    return scored(parts, plan(seeds=seeds, primary=(metric,)))


@pytest.mark.parametrize(
    ("metric", "key", "tolerated", "outcome", "code"),
    [
        ("answered_ratio", None, 0.0, "undecided", 4),
        ("answered_ratio", None, 0.1, "passed", 0),
        ("match_ratio", "rack", 0.0, "undecided", 0),
        ("match_ratio", "rack", 0.1, "passed", 0),
    ],
)
def test_a_guarded_figure_does_not_pass_undecided(
    metric: str, key: str | None, tolerated: float, outcome: str, code: int
) -> None:
    """That answers are not lost is asked for without a required decision; of locality an open budget passes."""
    found = _unsure(metric, key)
    gate = gate_of(found, {metric: tolerated})

    assert not found.rules.require_decision
    assert [check.outcome for check in gate.checks] == [outcome]
    assert gate.exit_code == code
    assert f"(exit code {code})" in gate.headline


def test_a_guarded_figure_that_cannot_be_judged_does_not_pass() -> None:
    """Silence is no proof that nothing was lost: the waiting of `twin` was not measured."""
    parts = [*(moves(policy, [3] * 40, metric="waiting", key="lock") for policy in ("stock", "new"))]
    parts += [moves(policy, [3] * 40) for policy in ("stock", "new", "twin")]

    gate = gate_of(decided(parts, "stock", "new", "twin"), {"waiting": 5.0})

    assert _outcomes(gate)["twin", "waiting[lock]"] == "not judged"
    assert gate.exit_code == 4


def test_a_failure_comes_before_a_guard_that_is_open() -> None:
    """The code is that of a budget that is exceeded."""
    gate = gate_of(varied(), {"answered_ratio": 0.0, "waiting": 1.0})

    assert _outcomes(gate)["old", "answered_ratio"] == "undecided"
    assert _outcomes(gate)["new", "waiting[lock]"] == "failed"
    assert gate.exit_code == EXCEEDED


@pytest.mark.parametrize(
    ("seeds", "figures", "outcome"),
    [(2, 1, "undecided"), (3, 3, "failed"), (3, 4, "undecided"), (4, 12, "failed"), (4, 13, "undecided")],
)
def test_few_seeds_carry_no_failure(seeds: int, figures: int, outcome: str) -> None:
    """Of n seeds equals come out apart in 4^-n of all runs, however large the difference: of 3 seeds three figures."""
    numbers = tuple(range(1, seeds + 1))
    parts = [
        ratios(policy, spread(mean, 0.1), "match_ratio", key=f"k{number}")
        for policy, mean in (("stock", 0.8), ("new", 0.3))
        for number in range(figures)
    ]
    gate = gate_of(scored(replicated(parts, numbers), plan(seeds=numbers)), {"match_ratio": 0.01})

    assert [check.outcome for check in gate.checks] == [outcome] * figures
    assert gate.exit_code == (EXCEEDED if outcome == "failed" else 0)
    if outcome == "undecided":
        assert len({check.reason for check in gate.checks}) == 1
        assert gate.checks[0].reason.endswith(f" {figures} figure{'s'[: figures - 1]}; {seeds + 1} seeds would")


def test_few_seeds_do_not_open_what_passes() -> None:
    """They keep figures from failing only."""
    parts = [
        ratios(policy, spread(mean, 0.1), "match_ratio", key="k") for policy, mean in (("stock", 0.5), ("new", 0.8))
    ]

    gate = gate_of(scored(replicated(parts, (1, 2)), plan(seeds=(1, 2))), {"match_ratio": 0.01})

    assert [(check.outcome, check.reason) for check in gate.checks] == [("passed", "")]


def test_one_placement_decides_nothing_unless_settings_accept_it() -> None:
    """A difference that another draw of luck may turn does not fail a pipeline."""
    gates = [gate_of(placed_once(accept_placement=accepted), {"moves": 50}) for accepted in (False, True)]

    assert [_outcomes(gate)["new", "moves"] for gate in gates] == ["undecided", "failed"]


@pytest.mark.parametrize("accept", [False, True])
def test_these_hours_decide_nothing(accept: bool) -> None:
    """A difference that drifts fails no pipeline, though settings accept a placement; what is the same passes."""
    gate = gate_of(varied(accept_placement=accept), {"imbalance_max_mean": 0.01})

    assert _outcomes(gate) == {("new", "imbalance_max_mean"): "undecided", ("old", "imbalance_max_mean"): "passed"}
    assert "only in these hours" in gate.checks[0].reason


def test_identical_policies_pass_whatever_they_hold_for() -> None:
    """The same sums are no regression in any placement and at any hour."""
    gates = [gate_of(placed_once(), {"moves": 0.0}), gate_of(varied(), {"imbalance_max_mean": 0.0, "match_ratio": 0.0})]

    checks = [check for gate in gates for check in gate.checks if check.mark == "≡"]
    assert [(check.policy, check.name, check.outcome, check.reason) for check in checks] == [
        ("twin", "moves", "passed", ""),
        ("old", "imbalance_max_mean", "passed", ""),
        ("old", "match_ratio[rack]", "passed", ""),
    ]


def test_a_gap_as_large_as_the_difference_decides_nothing() -> None:
    """What the replay itself may have caused is no regression."""
    gate = gate_of(with_figure(result(), "stock", ("moves", None), gap=5000.0), {"moves": 50})

    assert _outcomes(gate)["new", "moves"] == "undecided"
    assert "fidelity gap" in gate.checks[0].reason


def test_a_gap_that_leaves_a_budget_open_is_named() -> None:
    """The interval alone would be within the budget; the gap is the smallest effect that the log can show."""
    found = _unsure("match_ratio", "rack")
    (figure,) = (row for row in found.verdicts if row.metric == "match_ratio")
    wide = with_figure(found, "stock", ("match_ratio", "rack"), gap=0.4)
    (check,) = gate_of(wide, {"match_ratio:rack": 0.1}).checks

    assert -check.low < check.budget
    assert (check.outcome, figure.gain) == ("undecided", check.change)
    assert f" {number_text(0.4 - check.low)} ratio, the fidelity gap 0.4" in check.reason
    assert check.reason.endswith(" 0.4")


def test_what_has_no_figure_is_not_judged() -> None:
    """`twin` has no imbalance_cv, and silence does not look like consent."""
    gate = gate_of(result(), {"imbalance_cv": 10.0})

    assert _outcomes(gate) == {("new", "imbalance_cv"): "passed", ("twin", "imbalance_cv"): "not judged"}


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("movess", "budget: no metric is named 'movess'"),
        ("network_covered_ratio", "budget: 'network_covered_ratio' "),
        ("match_ratio:rck", "budget: 'match_ratio:rck' "),
    ],
)
def test_a_budget_of_something_else_is_refused(named: str, sentence: str) -> None:
    """Unknown names, metrics without direction, and keys that the run does not have."""
    with pytest.raises(SettingsError) as raised:
        gate_of(result(), {named: 1.0})

    assert str(raised.value.problems[0]).startswith(sentence)


def test_a_budget_needs_a_candidate() -> None:
    """The incumbent alone has nothing to be compared with, and the sentence says what would help."""
    with pytest.raises(SettingsError, match="give against='RUN_DIR'"):
        gate_of(decided([ratios("stock", [0.5] * 40)], "stock"), {"answered_ratio": 0.1})


def test_without_a_budget_primary_metrics_decide() -> None:
    """Worse fails, better and equivalent pass; nothing else is a check."""
    gate = gate_of(result())

    assert _outcomes(gate) == {
        ("new", "moves"): "failed",
        ("new", "answered_ratio"): "passed",
        ("twin", "answered_ratio"): "passed",
        ("twin", "moves"): "passed",
    }
    assert (gate.exit_code, gate.has_budget) == (3, False)


def test_without_a_budget_a_guard_that_is_open_decides() -> None:
    """The code is 4 and the headline names the figure; a loss in these hours only is undecided, with the reason."""
    gate = gate_of(varied())

    assert _outcomes(gate) == {
        ("old", "answered_ratio"): "undecided",
        ("new", "imbalance_max_mean"): "undecided",
        ("new", "answered_ratio"): "passed",
        ("old", "imbalance_max_mean"): "passed",
    }
    reasons = {check.policy: check.reason for check in gate.checks if check.outcome == "undecided"}
    assert "it may be 0.003" in reasons["old"]
    assert "only in these hours" in reasons["new"]
    assert gate.exit_code == 4
    assert "answered_ratio of old (exit code 4)." in gate.headline


def test_a_guard_that_is_kept_passes_without_a_difference() -> None:
    """That nothing is lost is shown by one side of the interval, whether or not something is gained."""
    shares = {"stock": lambda seed: 0.5 + seed / 100, "new": lambda seed: 0.54 + (seed * 2 % 5) / 100}
    parts = [ratios(policy, [share(seed)] * 40, seed=seed) for policy, share in shares.items() for seed in SEEDS]
    found = scored(parts, plan(seeds=SEEDS))
    (row,) = found.verdicts

    assert (row.verdict, row.guard, row.change_low < 0) == ("inconclusive", "kept", True)
    (check,) = gate_of(found).checks
    assert (check.outcome, check.reason, found.exit_code) == ("passed", "", 0)


def _against(folder: Path, before: Results, after: Results, budget: dict[str, float]) -> Gate:
    runs = [read_run(str(write_run(folder / name, scored))) for name, scored in (("a", before), ("b", after))]
    return gate_of(runs[1].results, budget, compare_runs(*runs))


def test_a_run_and_itself_are_within_any_budget(tmp_path: Path) -> None:
    """Of every policy, the incumbent included."""
    gate = _against(tmp_path, result(), result(), {"moves": 0.0, "answered_ratio": 0.0})

    assert {check.policy for check in gate.checks} == {"stock", "new", "twin"}
    assert {check.outcome for check in gate.checks} == {"passed"}


def test_a_guard_is_one_without_a_candidate_too(tmp_path: Path) -> None:
    """Against an earlier run of the incumbent alone, the code is that of the run before it was written down."""
    alone = [
        scored(
            [ratios("stock", [mean + (seed * 2 % 5) / 1000] * 40, seed=seed) for seed in SEEDS],
            plan("stock", seeds=SEEDS),
        )
        for mean in (0.9, 0.901)
    ]
    runs = [read_run(str(write_run(tmp_path / name, of))) for name, of in zip("ab", alone, strict=True)]
    codes = [gate_of(of, {"answered_ratio": 0.0}, compare_runs(*runs)).exit_code for of in (alone[1], runs[1].results)]

    assert codes == [4, 4]


def test_a_regression_since_the_earlier_run_fails(tmp_path: Path) -> None:
    """Of the policy that regressed, by the change and not by its distance from the incumbent."""
    before = decided([ratios(policy, spread(0.9, 0.01)) for policy in ("stock", "new")], "stock", "new")
    after = decided([ratios(p, spread(mean, 0.01)) for p, mean in (("stock", 0.9), ("new", 0.8))], "stock", "new")

    gate = _against(tmp_path, before, after, {"answered_ratio": 0.05})

    assert _outcomes(gate) == {("new", "answered_ratio"): "failed", ("stock", "answered_ratio"): "passed"}
    assert math.isclose(gate.checks[0].change, -0.1, abs_tol=1e-9)


def _drawn(dice: np.random.Generator, loss: float) -> Results:
    """Draw two policies that differ by luck, of which `new` answers less by some share."""
    seeds, parts = tuple(range(1, 8)), []
    shares, weights, rates = dice.uniform(0.3, 0.9, 60), 100 * dice.pareto(2.0, 60) + 50, dice.gamma(2.0, 2.0, 60)
    for policy in ("stock", "new"):
        for seed in seeds:
            answered = np.clip(shares + dice.normal(0, 0.2, 60) - (loss if policy == "new" else 0.0), 0, 1)
            parts.append(sums(policy, np.stack([answered * weights, weights], axis=1), seed=seed))
            parts.append(sums(policy, dice.poisson(rates)[:, None], "moves", seed=seed))
    return scored(parts, plan("stock", "new", seeds=seeds))


def test_chance_fails_few_runs_and_a_planted_regression_does() -> None:
    """Of equals at most one run in twenty, though the budget is 0; of a fifth fewer answers every run."""
    dice = np.random.default_rng(3)
    budget = {"answered_ratio": 0.0, "moves": 0.0}

    equals = [gate_of(_drawn(dice, 0.0), budget).exit_code for _ in range(80)]
    planted = [gate_of(_drawn(dice, 0.2), {"answered_ratio": 0.01}).exit_code for _ in range(10)]

    assert equals.count(EXCEEDED) <= 4
    assert planted == [EXCEEDED] * 10


def test_a_change_of_meaning_is_not_judged(tmp_path: Path) -> None:
    """A budget of moves says nothing about a run that left half an hour out."""
    for name, warmup_s in (("first", 0), ("second", 1800)):
        edit(write_run(tmp_path / name, result()), "manifest.settings.evaluation.warmup_s", warmup_s)
    first, second = (read_run(str(tmp_path / name)) for name in ("first", "second"))

    gate = gate_of(second.results, {"moves": 0.0}, compare_runs(first, second))

    assert set(_outcomes(gate).values()) == {"not judged"}
    assert {check.reason for check in gate.checks} == {"not comparable: warmup_s differs (0, 1800)"}
    assert gate.exit_code == 0


_GATE = gate_of(result(), {"moves": 50, "imbalance_cv": 10})


def test_junit_has_a_case_for_each_check() -> None:
    """Failures and skipped cases are counted, and carry their reasons."""
    root = ET.fromstring(junit_xml(_GATE))

    assert {name: root.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "skipped": "1",
    }
    (failure,), (skipped,) = root.findall(".//failure"), root.findall(".//skipped")
    assert str(failure.get("message")).startswith("failed: it regresses by 1,200 moves")
    assert str(skipped.get("message")).startswith("not judged: ")
    assert [suite.get("name") for suite in root] == ["new", "twin"]


def test_names_with_control_characters_stay_xml() -> None:
    """Keys of figures come from a log, where a property may hold anything."""
    check = replace(_GATE.checks[0], name='match_ratio[\x1b<&"]')

    (case,) = ET.fromstring(junit_xml(replace(_GATE, checks=(check,)))).iter("testcase")

    assert case.get("name") == 'match_ratio[\\x1b<&"]'
