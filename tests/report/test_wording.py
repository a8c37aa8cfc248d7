"""Sentences of the report."""

from __future__ import annotations

import pytest

from lookup.replay.outcome import ReplayOutcome
from lookup.report.wording import MEANINGS, caveats, conclusion, floors, legend, outcomes
from lookup.score.scoring import Plan, score
from lookup.settings.sections import EvaluationSection, VerdictSection
from tests.report.results import INPUTS, result
from tests.score.cases import METRICS, plan, ratios, scored


def test_each_candidate_has_a_sentence() -> None:
    """How many verdicts of each kind, and where it is worse on a primary metric."""
    new, twin = outcomes(result())

    assert new == "new: 1 better, 1 worse, 1 inconclusive; worse on primary moves"
    assert twin == "twin: 2 equivalent, 1 inconclusive"


def test_the_conclusion_says_what_the_exit_code_means() -> None:
    """3 for worse, 4 for undecided, 0 for neither, and the incumbent alone."""
    undecided = scored([ratios(name, [0.5] * 3) for name in ("stock", "new")], plan(require_decision=True))

    assert "exit code 3" in conclusion(result())
    assert "exit code 4" in conclusion(undecided)
    assert conclusion(scored([ratios(name, [0.5] * 3) for name in ("stock", "new")])).startswith(
        "No candidate is worse"
    )
    assert conclusion(scored([], plan("stock"))).startswith("Only the incumbent")


def test_everything_to_be_careful_about_is_said() -> None:
    """Dice, capacity, induced lookups, quarantine, covered share."""
    text = "\n".join(caveats(result()))

    assert "new: dice were rolled with one seed only" in text
    assert "capacity: assumed" in text
    assert "1.23% of the lookups came within 30 s" in text
    assert "3 records could not be used" in text
    assert "about 25.0% of the weight" in text


def test_nothing_to_be_careful_about() -> None:
    """A complete log, given capacities, one seed without dice: no caveats."""
    clean = {"capacity": "given", "induced_ratio": 0.0, "quarantined": 0}
    parts = [ratios(name, [1.0] * 30, metric) for name in ("stock", "(logged)") for metric in ("answered_ratio",)]

    assert caveats(scored(parts, plan("stock"), inputs=clean)) == []


def test_an_unchecked_replay_is_told() -> None:
    """With the reason."""
    unchecked = scored([ratios("stock", [1.0] * 30)], plan("stock"), logged_reason="only 3 % carry a broker")

    (text,) = caveats(unchecked)

    assert text.startswith("Fidelity is unknown: only 3 % carry a broker.")


@pytest.mark.parametrize(("answered", "told"), [([0.0] * 30, True), ([0.0] * 29 + [1.0], False)])
def test_a_cluster_without_answers_is_told(answered: list[float], told: bool) -> None:
    """Policies that answer nobody are alike, which looks like a good result."""
    parts = [ratios("stock", [0.0] * 30), ratios("new", answered), ratios("(logged)", [1.0] * 30)]

    texts = caveats(scored(parts, plan("stock", "new")))

    assert any(text.startswith("No policy answered a single lookup of cluster") for text in texts) is told


@pytest.mark.parametrize(("first_us", "told"), [(1_767_571_200_000, True), (1_767_571_200_000_000, False)])
def test_times_before_there_was_a_log_are_told(first_us: int, told: bool) -> None:
    """Milliseconds that are taken for µs make a day of two minutes in January 1970."""
    sentence = "The log begins in January 1970. Whole numbers in `ts` are taken for µs: are they ms or seconds?"

    assert (sentence in caveats(result(inputs=INPUTS | {"first_us": first_us}))) is told


def test_shared_ownership_is_told() -> None:
    """Nobody owns."""
    how = Plan(("stock",), EvaluationSection(incumbent="stock", ownership="shared"), VerdictSection())

    assert any("Ownership is shared" in text for text in caveats(score(ReplayOutcome([]), METRICS, how)))


@pytest.mark.parametrize(("floor", "expected"), [({"c": 1.02, "d": None}, ["c 1.02"]), (None, [])])
def test_floors(floor: object, expected: list[str]) -> None:
    """One for each cluster that has one."""
    assert floors(result(inputs=INPUTS | {"imbalance_floor": floor})) == expected


def test_every_verdict_is_explained() -> None:
    """In the legend and in the list of meanings."""
    assert all(word in legend() for word in MEANINGS)
