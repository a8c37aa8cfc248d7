"""What a batch has shown."""

from __future__ import annotations

import numpy as np
import pytest

from lookup.score.units import Sample
from lookup.tuning.racing import Standing
from lookup.tuning.search import Candidate, TrialBatch
from lookup.tuning.space import Point
from lookup.tuning.trials import shown_of_batch
from tests.tuning.worlds import AIMS, IMBALANCE, MOVED, figure_of


def _standing(value: float) -> Standing:
    figures = {name: figure_of(name, value, -value, 1.0, verdict="worse", guard="kept") for name in (IMBALANCE, MOVED)}
    return Standing(figures, idle="it waits" if value > 2.0 else None)


@pytest.mark.parametrize(("replicates", "has_luck"), [(1, False), (2, True)])
def test_one_replicate_shows_where_candidates_stand_and_nothing_of_luck(replicates: int, *, has_luck: bool) -> None:
    """No width, and none is out, although one is better than the other in everything."""
    batch = TrialBatch("wide", [Candidate(number, Point("", (), {}), "wide") for number in (1, 2)], replicates)
    values = {"today": 2.0, "one": 1.0, "two": 3.0}
    samples = {
        (policy, *name): Sample(np.full(replicates, value))
        for policy, value in values.items()
        for name in (IMBALANCE, MOVED)
    }
    standings = {number: _standing(value) for number, value in enumerate(values.values())}
    shown = shown_of_batch(batch, dict(enumerate(values)), samples, standings, AIMS)

    assert [standing.figures[MOVED].value for standing in shown.standings.values()] == [2.0, 1.0, 3.0]
    assert [standing.idle for standing in shown.standings.values()] == [None, None, "it waits"]
    assert [standing.figures[MOVED].has_interval for standing in shown.standings.values()] == [has_luck] * 3
    assert shown.beaten_by == ({2: 1} if has_luck else {})
