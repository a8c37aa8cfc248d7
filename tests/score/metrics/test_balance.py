"""Imbalance and overload by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lookup.hooks import Metric
from lookup.model.batch import Batch, Cells
from lookup.score.metrics import ImbalanceCv, ImbalanceMaxMean, OverloadRatio
from tests.score.oracle import Happenings
from tests.score.worlds import HOUR, batch_of, labelled


def batch(served: list[list[float]], registered: list[list[bool]] | None = None) -> Batch:
    """Build a batch from what each broker served in each cell."""
    figures = np.array(served)
    mask = np.ones(figures.shape, dtype=bool) if registered is None else np.array(registered)
    cells = Cells(np.arange(len(figures)) * HOUR, figures, mask, None, None)
    brokers = [labelled(f"{number}:8080") for number in range(figures.shape[1])]
    return replace(batch_of(Happenings([], (), {}, HOUR), brokers), cells=cells)


def value(metric: Metric, of: Batch) -> float:
    """Measure a batch."""
    return float(metric.value(metric.accumulate(of, None).sum(axis=0)))


def test_one_cell() -> None:
    """Brokers with 1, 2 and 3: the largest is 1.5 times their mean, the deviation sqrt(2/3) over 2."""
    one = batch([[1.0, 2.0, 3.0]])

    assert value(ImbalanceMaxMean(), one) == 1.5
    assert value(ImbalanceCv(), one) == pytest.approx(math.sqrt(2 / 3) / 2)


def test_cells_count_by_weight() -> None:
    """A perfect cell of weight 30 and one of weight 10 on one broker of two average to 1.25 and 0.25."""
    two = batch([[15.0, 15.0], [10.0, 0.0]])

    assert value(ImbalanceMaxMean(), two) == 1.25
    assert value(ImbalanceCv(), two) == 0.25


def test_only_registered_brokers_count() -> None:
    """A broker that is gone does not make the others look uneven; an idle one that is there does."""
    served = [[4.0, 4.0, 0.0]]

    assert value(ImbalanceMaxMean(), batch(served, [[True, True, False]])) == 1.0
    assert value(ImbalanceMaxMean(), batch(served)) == pytest.approx(1.5)
    assert value(ImbalanceCv(), batch(served, [[True, True, False]])) == 0.0


def test_empty_cells_say_nothing() -> None:
    """Cells without weight or without brokers leave the figures alone."""
    cells = batch([[1.0, 3.0], [0.0, 0.0], [0.0, 0.0]], [[True, True], [True, True], [False, False]])

    assert value(ImbalanceMaxMean(), cells) == 1.5
    assert math.isnan(value(ImbalanceCv(), batch([[0.0, 0.0]])))


def test_overload_is_a_share_of_broker_time() -> None:
    """90 of 180 known seconds of two brokers are overloaded."""
    usage = {"known_s": np.array([[60.0, 60.0], [60.0, 0.0]]), "overloaded_s": np.array([[60.0, 0.0], [30.0, 0.0]])}
    known = batch([[1.0, 1.0], [1.0, 1.0]])
    known = replace(known, cells=replace(known.cells, **usage))

    assert OverloadRatio().keys(known) == (None,)
    assert value(OverloadRatio(), known) == 0.5


def test_overload_needs_capacities() -> None:
    """Where capacities are assumed there is no such figure."""
    assert OverloadRatio().keys(batch([[1.0]])) == ()
