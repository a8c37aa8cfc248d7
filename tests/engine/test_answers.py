"""Checks of what parts answer and declare."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from lookup.engine.answers import checked_mask, checked_odds, checked_scores
from lookup.errors import ContractError
from lookup.model.broker import Broker, Candidates, Roster

#: The first and the last of three brokers.
TWO = Candidates(Roster([Broker("b1:1"), Broker("b2:1"), Broker("b3:1")]), np.array([0, 2]))


def _generator() -> Iterator[float]:
    yield from (0.25, 1.0)


@pytest.mark.parametrize("answer", [[0.25, 1], (0.25, True), np.array([0.25, 1.0]), _generator(), [Decimal("0.25"), 1]])
def test_numbers_of_any_kind_are_taken(answer: Any) -> None:
    """Lists, arrays, generators, whole numbers and decimals all become an array of floats."""
    assert checked_scores("s", answer, TWO).tolist() == [0.25, 1.0]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([0.1], r"scores of shape \(1,\) for 2 brokers"),
        ([0.1, 0.2, 0.3], r"scores of shape \(3,\) for 2 brokers"),
        ([[0.1], [0.2]], r"scores of shape \(2, 1\) for 2 brokers"),
        (0.5, "0.5, not scores"),
        (None, "None, not scores"),
        ([0.1, float("nan")], r"score nan for broker 'b3:1'"),
        ([0.1, -0.5], "score -0.5 for broker 'b3:1'"),
        ([1.5, 0.5], "score 1.5 for broker 'b1:1'"),
        ([0.1, None], "score nan for broker 'b3:1'"),
        (["0.1", "0.2"], r"scores .*numbers: \['0.1'\]"),
        ("ab", r"scores .*numbers: \['ab'\]"),
        ([1j, 1.0], r"scores .*numbers: \[1j\]"),
        ([[1.0], [1.0, 2.0]], "scores .*numbers"),
        ({0.1, 0.2}, "scores .*numbers"),
    ],
)
def test_scores_that_break_the_protocol_are_refused(answer: Any, sentence: str) -> None:
    """The sentence names the part, the first wrong number and what would be right."""
    with pytest.raises(ContractError, match=f"part 'mine' answered {sentence}"):
        checked_scores("mine", answer, TWO)


@pytest.mark.parametrize("wrong", [-1e-300, float("nan"), float("inf"), -float("inf")])
def test_odds_are_finite_and_not_negative(wrong: float) -> None:
    """Odds may be greater than 1, but neither negative nor infinite nor no number."""
    assert checked_odds("mine", [0.0, 1e300], TWO).tolist() == [0.0, 1e300]
    with pytest.raises(ContractError, match="for broker 'b3:1'"):
        checked_odds("mine", [1.0, wrong], TWO)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ([True], "gave 1 answers for 2 brokers"),
        ([True, True, False], "gave 3 answers for 2 brokers"),
        ([True, 1], "answered 1, not true or false"),
        ([True, None], "answered None"),
        (["yes", "no"], "answered 'yes'"),
        (np.array([1, 0]), "answered .*1.*, not true or false"),
        ([[True], [True, False]], r"answered \[True\]"),
    ],
)
def test_masks_are_true_or_false(answers: Any, sentence: str) -> None:
    """The sentence names the filter and the answer that is neither."""
    with pytest.raises(ContractError, match=f"filter 'mine' {sentence}"):
        checked_mask("mine", answers, TWO)
