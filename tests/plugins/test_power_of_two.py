"""The selector `power-of-two`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.hooks import reads_of
from lookup.testing import cluster
from lookup_policies.power_of_two import PowerOfTwo
from tests.plugins.worlds import shares


def _by_counting(scores: Sequence[float], choices: int) -> dict[str, float]:
    # Every equally likely draw with replacement; tied winners share it, each drawn one or not.
    odds = [0.0] * len(scores)
    for draw in product(range(len(scores)), repeat=choices):
        best = max(scores[place] for place in draw)
        tied = [place for place, score in enumerate(scores) if score == best]
        for place in tied:
            odds[place] += 1 / len(tied) / len(scores) ** choices
    return {f"b{place}": share for place, share in enumerate(odds) if share > 0}


@settings(max_examples=50)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=5), st.integers(1, 4))
def test_the_closed_form_equals_counting_all_draws(scores: list[float], choices: int) -> None:
    """The stated odds are those of drawing, comparing and sharing between tied ones."""
    ids = [f"b{place}" for place in range(len(scores))]
    odds = shares(PowerOfTwo(choices=choices), cluster(*ids), scores=dict(zip(ids, scores, strict=True)))

    assert odds == pytest.approx(_by_counting(scores, choices))


def test_usage_ranks_unknown_brokers_last() -> None:
    """The least used of two drawn wins; one without report loses to everybody, overfull or not."""
    view = cluster("b1", "b2", "b3", usage={"b1": 1.4, "b2": 0.1})

    assert shares(PowerOfTwo(by="usage"), view) == pytest.approx({"b2": 5 / 9, "b1": 3 / 9, "b3": 1 / 9})


def test_bundles_rank_the_emptier_broker_first() -> None:
    """The fewest bundles of two drawn win, and brokers with equally many are tied."""
    view = cluster("b1", "b2", "b3", owned={"t/n/1": "b1"})

    assert shares(PowerOfTwo(by="bundles"), view) == pytest.approx({"b1": 1 / 9, "b2": 4 / 9, "b3": 4 / 9})


@pytest.mark.parametrize(
    ("part", "reads"),
    [
        (PowerOfTwo(), set()),
        (PowerOfTwo(by="usage"), {"view.load"}),
        (PowerOfTwo(by="bundles"), {"view.ownership"}),
    ],
)
def test_it_reads_what_it_ranks_by(part: PowerOfTwo, reads: set[str]) -> None:
    """Ranking by scores leaves decisions as cacheable as the scorers are."""
    assert reads_of(part) == reads
