"""Lookups that met their bundle in flight, by hand."""

from __future__ import annotations

from dataclasses import replace

from lookup.model.batch import Batch, ClientClass
from lookup.score.metrics import InTransition, InTransitionWeight
from tests.score.oracle import Happenings, Lookup
from tests.score.worlds import HOUR, batch_of, labelled

ONE = labelled("one:8080")


def _batch(*states: str | None) -> Batch:
    """Build a batch of lookups, each of weight 2 and of a bundle of its own, in these states."""
    lookups = [Lookup("c", 0, f"b{place}", ONE, ClientClass(), 2.0, state=state) for place, state in enumerate(states)]
    return batch_of(Happenings(lookups, (), {("c", 0): frozenset({ONE.id})}, HOUR, hands_over=True), [ONE])


def test_lookups_are_counted_by_state_and_bundle() -> None:
    """The keys add up to the whole; what was settled does not count."""
    batch = _batch("Assigning", None, "Releasing", "Assigning", "Splitting")
    keys = InTransition().keys(batch)
    sums = {key: InTransition().accumulate(batch, key) for key in keys}

    assert {key: float(InTransition().value(column.sum(axis=0))) for key, column in sums.items()} == {
        None: 4.0,
        "Assigning": 2.0,
        "Releasing": 1.0,
        "Splitting": 1.0,
    }
    assert sums[None][:, 0].tolist() == [1, 0, 1, 1, 1, 0, 0, 0]


def test_their_weight_is_added_up() -> None:
    """Three lookups of weight 2."""
    sums = InTransitionWeight().accumulate(_batch("Assigning", None, "Releasing", "Splitting"), None)

    assert float(InTransitionWeight().value(sums.sum(axis=0))) == 6.0


def test_nothing_is_said_where_bundles_change_hands_at_once() -> None:
    """Neither figure has a key then, and sums are empty columns."""
    batch = replace(_batch("Assigning"), transitions=None)

    for metric in (InTransition(), InTransitionWeight()):
        assert metric.keys(batch) == ()
        assert metric.accumulate(batch, None).tolist() == [[0.0]] * 8
