"""The sentences that readers of reports meet most, word by word; other tests look for the figures and names in them."""

from __future__ import annotations

import pytest

from lookup.report.cards import cards, nothing_told
from lookup.report.gate import gate_of
from lookup.report.wording import alarm, at_best, comparisons, conclusion, outcomes
from lookup.score.scoring import Scored
from tests.report.results import near, placed_once, result, varied, wide


def _card(found: Scored, place: int) -> str:
    return cards(found).items[place].sentence


SENTENCES = [
    (
        _card(result(), 1),
        "Moves twice as many bundles, which decides against it, but answers 20 points more of the lookups.",
    ),
    (
        _card(placed_once(), 0),
        "Only in this placement: answers 20 points more of the lookups; moves twice as many bundles.",
    ),
    (_card(wide(2), 0), "Decides as policy-0, the incumbent, does: on this log they are one policy."),
    (nothing_told(wide(3)), "Every candidate did what policy-0 did, in every bundle and event."),
    (outcomes(result())[0], "new: 1 better, 1 worse, 1 inconclusive; worse on primary moves"),
    (
        outcomes(placed_once())[0],
        "new: 1 better, 1 worse, 1 inconclusive, 2 of these only in this placement; worse on primary moves",
    ),
    (alarm(result()), "Exit code 3: new is worse in moved bundles."),
    (alarm(varied()), "Exit code 4: old is not shown to keep answered lookups."),
    (
        alarm(varied(primary=("match_ratio:zone",), require_decision=True)),
        "Exit code 4: new and old are undecided in same-zone share.",
    ),
    (
        conclusion(varied()),
        (
            "It is not shown that nothing is lost on this log: answered_ratio of old (exit code 4). Undecided: 2 of 4 "
            "primary comparisons."
        ),
    ),
    (at_best(near()), "If owners could move freely, at most 75.0 % could be served from their own rack."),
    (
        next(comparisons(result())),
        (
            "2 comparisons decide the exit code (*), judged together: between equals at most 5% of all runs would call "
            "any of them better or worse, and at most 0.5% worse."
        ),
    ),
    (gate_of(result(), {"moves": 50}).headline, "The budget is exceeded by moves of new (exit code 5)."),
    (gate_of(result(), {"moves": 5000}).headline, "Within the budget: 2 figures (exit code 0)."),
    (gate_of(result(), {"moves": 50}).checks[0].reason, "it regresses by 1,200 moves at least, and 50 are tolerated"),
    (
        gate_of(result(), {"imbalance_cv": 10.0}).headline,
        "No figure exceeds the budget with certainty (exit code 0). Undecided: 1 of 2 figures.",
    ),
]


@pytest.mark.parametrize(("said", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_report_says_it_in_these_words(said: str, sentence: str) -> None:
    """Of a run with every kind of verdict."""
    assert said == sentence
