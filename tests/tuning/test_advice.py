"""What may be recommended, and how it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lookup.tuning.advice import dynamic_lines, objection, patch, promises, restart_lines
from lookup.tuning.racing import ANSWERED, Standing
from tests.tuning.worlds import AIMS, MOVED, figure_of, standing

_TODAY = standing(2.0, 1.0)


@pytest.mark.parametrize(
    ("candidate", "answer"),
    [
        (standing(1.5, 0.5), None),
        (standing(1.5, 9.0), None),
        (standing(2.0, 0.5, half=0.05), None),
        (standing(2.0, 1.0, half=0.05), "moved_weight inconclusive"),
        (standing(2.0, 0.5, half=0.2), "imbalance_max_mean may be worse"),
        (standing(2.2, 0.5), "imbalance_max_mean may be worse"),
        (standing(2.05, 9.0, half=0.06), "moved_weight worse"),
    ],
)
def test_a_gain_is_recommended_if_nothing_that_counts_is_lost(candidate: Standing, answer: str | None) -> None:
    """An objective may cost a price; a price may cost no objective."""
    for alone in (False, True):
        found = objection(candidate, _TODAY, AIMS, alone=alone)
        assert found is answer or str(answer) in str(found)


def test_limits_hold() -> None:
    """A candidate that moves more than it may is not recommended, and does not go on."""
    aims = replace(AIMS, limits={MOVED: 1.5})

    assert "moved_weight is not within" in str(objection(standing(1.5, 2.0), _TODAY, aims))
    assert objection(standing(1.5, 1.4), _TODAY, aims) is None
    assert (promises(standing(1.5, 2.0), _TODAY, aims), promises(standing(1.5, 1.4), _TODAY, aims)) == (False, True)


@pytest.mark.parametrize("guard", ["open", "lost", None])
def test_lookups_must_be_shown_to_be_answered(guard: str | None) -> None:
    """Whatever else is better."""
    good = standing(1.5, 0.5)
    figures = {**good.figures, ANSWERED: figure_of(ANSWERED, 0.9, -0.1, 0.0, verdict="inconclusive", guard=guard)}

    assert str(objection(Standing(figures), _TODAY, AIMS)).endswith(" lookups unanswered")


def test_what_cannot_act_is_not_recommended() -> None:
    """It looks good because nothing moves."""
    idle = replace(standing(1.5, 0.0), idle="no bytes are known")

    assert str(objection(idle, _TODAY, AIMS)).endswith(": no bytes are known")
    assert not promises(idle, _TODAY, AIMS)


def test_verdicts_count_over_intervals() -> None:
    """Among several comparisons a gain may be luck although its own interval is above 0."""
    lucky = standing(1.5, 0.5, half=0.1)
    figures = {name: replace(figure, verdict="inconclusive") for name, figure in lucky.figures.items()}
    figures[ANSWERED] = lucky.figures[ANSWERED]

    assert str(objection(Standing(figures), _TODAY, AIMS)).count("inconclusive (better ") == 2
    assert objection(Standing(figures), _TODAY, AIMS, alone=True) is None


def test_changes_are_written_as_lines_to_paste() -> None:
    """Old and new value of each key; what takes a restart has no line for a running cluster."""
    changes = {"loadBalancerBrokerThresholdShedderPercentage": 5, "lowerBoundarySheddingEnabled": True}
    today = {"loadBalancerBrokerThresholdShedderPercentage": 10, "lowerBoundarySheddingEnabled": False}

    assert patch(changes, today).splitlines() == [
        "-loadBalancerBrokerThresholdShedderPercentage=10",
        "+loadBalancerBrokerThresholdShedderPercentage=5",
        "-lowerBoundarySheddingEnabled=false",
        "+lowerBoundarySheddingEnabled=true",
    ]
    assert list(dynamic_lines(changes)) == [
        "pulsar-admin brokers update-dynamic-config --config loadBalancerBrokerThresholdShedderPercentage --value 5"
    ]
    assert list(restart_lines(changes)) == ["lowerBoundarySheddingEnabled=true"]
