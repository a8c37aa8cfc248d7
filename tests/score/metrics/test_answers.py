"""Metrics that count answers, by hand."""

from __future__ import annotations

import numpy as np

from lookup.model.batch import ClientClass
from lookup.score.metrics import AgreementRatio, AnsweredRatio
from tests.score.oracle import Happenings, Lookup
from tests.score.worlds import HOUR, batch_of, labelled

ONE, TWO = labelled("one:8080"), labelled("two:8080")
ANYBODY = ClientClass()


def world(*lookups: Lookup) -> Happenings:
    """Put lookups into one cell in which both brokers are registered."""
    return Happenings(lookups, (), {("c", 0): frozenset({ONE.id, TWO.id})}, HOUR)


def test_answered_ratio_counts_lookups_by_bundle() -> None:
    """Two of three lookups of b0 are answered, none of b2; weights do not matter."""
    answered = [Lookup("c", 0, "b0", ONE, ANYBODY, weight=9.0), Lookup("c", 1, "b0", TWO, ANYBODY)]
    lost = [Lookup("c", 2, "b0", None, ANYBODY), Lookup("c", 3, "b2", None, ANYBODY)]

    sums = AnsweredRatio().accumulate(batch_of(world(*answered, *lost), [ONE, TWO]), None)

    assert sums[:3].tolist() == [[2, 3], [0, 0], [0, 1]]
    assert AnsweredRatio().value(sums.sum(axis=0)) == 0.5


def test_answered_ratio_takes_expectations() -> None:
    """Under shared ownership a lookup answered with odds 0.25 counts as a quarter."""
    shares = [Lookup("c", 0, "b0", ONE, ANYBODY, count=0.25), Lookup("c", 0, "b0", None, ANYBODY, count=0.75)]

    sums = AnsweredRatio().accumulate(batch_of(world(*shares), [ONE, TWO]), None)

    assert AnsweredRatio().value(sums.sum(axis=0)) == 0.25


def test_agreement_ratio_is_about_answered_lookups_with_a_logged_broker() -> None:
    """Two of four lookups have an answer and a logged broker; for one of these they are the same."""
    lookups = [
        Lookup("c", 0, "b0", ONE, ANYBODY, logged=ONE.id),
        Lookup("c", 1, "b1", ONE, ANYBODY, logged=TWO.id),
        Lookup("c", 2, "b1", ONE, ANYBODY),
        Lookup("c", 3, "b1", None, ANYBODY, logged=ONE.id),
    ]

    sums = AgreementRatio().accumulate(batch_of(world(*lookups), [ONE, TWO]), None)

    assert sums.sum(axis=0).tolist() == [1, 2]


def test_quotients_of_nothing_are_nan() -> None:
    """Without lookups there is no ratio, and no warning either."""
    assert np.isnan(AnsweredRatio().value(np.zeros((3, 2)))).all()
