"""Spreading counts over brokers by odds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from lookup.model.broker import Broker, BrokerLookupData, Roster
from lookup.replay.expected import ExpectedTally
from lookup.replay.stretches import Stretch, classes_of, count_stretch
from tests.replay.plans import lookup, planned

ROSTER = Roster(
    [Broker(name, BrokerLookupData(properties={"lookup.rack": rack})) for name, rack in zip("abc", "xxy", strict=True)]
)
ODDS = np.array([[0.25, 0.25, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]])


def _tally(folder: Path, *by: str) -> ExpectedTally:
    rows = [
        lookup(0, properties='{"k":"0"}', broker="a:1", weight=2.0),
        lookup(1, properties='{"k":"1"}', broker="a:1"),
    ]
    plan = planned(folder, rows)
    stretch = Stretch(plan.ticks, 0, 0)
    classes = classes_of(plan.cluster, stretch)
    tally = ExpectedTally(1, replace(plan.run, by=by))
    tally.add(stretch, count_stretch(plan.cluster, stretch, classes), (classes.client, classes.client), ODDS, ROSTER)
    return tally


def test_each_broker_serves_its_share(tmp_path: Path) -> None:
    """A key's lookups and weight are divided by its odds; declined ones are nobody's."""
    (groups,) = _tally(tmp_path, "hour").groups.all

    assert dict(zip(groups.broker.tolist(), groups.lookups.tolist(), strict=True)) == {
        0: 0.25,
        1: 0.25,
        2: 0.5,
        -1: 1.0,
    }
    assert groups.weight.tolist() == [0.5e6, 0.5e6, 1e6, 1e6]


def test_brokers_that_look_alike_may_be_counted_as_one(tmp_path: Path) -> None:
    """By class, equal labels are added up under the first broker that has them."""
    (groups,) = _tally(tmp_path).groups.all

    assert dict(zip(groups.broker.tolist(), groups.lookups.tolist(), strict=True)) == {0: 0.5, 2: 0.5, -1: 1.0}


def test_agreement_is_expected_too(tmp_path: Path) -> None:
    """Of a lookup logged at broker a the odds of a agree; a declined one is not answered at all."""
    tally = _tally(tmp_path)

    assert (tally.logged.tolist(), tally.agreed.tolist()) == ([1.0], [0.25])
