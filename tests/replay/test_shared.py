"""One policy under shared ownership, in small worlds with known outcomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.model.broker import Broker, BrokerLookupData, Roster
from lookup.replay.shared import ExpectedTally, SharedReplay
from lookup.replay.stretches import Stretch, classes_of, count_stretch
from tests.replay.plans import NOON, Planned, lookup, planned, policy
from tests.replay.worlds import MICRO

A, B = '{"rack":"a"}', '{"rack":"b"}'
RACK = {"scorers": [{"use": "property-match", "key": "rack"}], "selector": {"use": "best", "min_score": 1.0}}


def _planned(folder: Path, rows: list[dict[str, Any]], **given: Any) -> Planned:
    section = {"ownership": "shared", **given.pop("evaluation", {})}
    return planned(folder, rows, evaluation=section, **given)


def _replayed(plan: Planned, **parts: Any) -> tuple[SharedReplay, dict[int, float]]:
    replay = plan.shown_to(SharedReplay(plan.cluster, plan.run, policy(**parts), seed=1))
    served: dict[int, float] = {}
    for batch in replay.counted().batches:
        for broker, lookups in zip(batch.served.broker.tolist(), batch.served.lookups.tolist(), strict=True):
            served[broker] = served.get(broker, 0.0) + lookups
    return replay, served


def _rows(replay: SharedReplay) -> list[tuple[int, str, int, float]]:
    return [
        ((ts - NOON) // MICRO, one.key, count, weight)
        for one in replay.decisions
        for ts, count, weight in zip(one.ts_us.tolist(), one.count.tolist(), one.weight.tolist(), strict=True)
    ]


def test_a_key_is_decided_once_per_tick(tmp_path: Path) -> None:
    """One row for each tick and key, with the lookups and weight behind it."""
    rows = [
        lookup(0, properties=A, weight=2.0),
        lookup(1, properties=B),
        lookup(2, properties=A),
        lookup(61, properties=A),
    ]
    replay, _ = _replayed(_planned(tmp_path, rows), **RACK)

    assert sorted(_rows(replay)) == [
        (0, '{"properties.rack": "a"}', 2, 3.0),
        (0, '{"properties.rack": "b"}', 1, 1.0),
        (60, '{"properties.rack": "a"}', 1, 1.0),
    ]


def test_lookups_are_spread_by_their_odds(tmp_path: Path) -> None:
    """Nothing is rolled: two equal brokers serve half of every lookup each; by tenant they are told apart by id."""
    plan = _planned(tmp_path, [lookup(n) for n in range(3)])
    made = policy(selector="random")
    replay = plan.shown_to(SharedReplay(plan.cluster, plan.run, made, seed=1))
    cells = replay.counted().batches[0].cells

    assert cells.served.tolist() == [[1.5, 1.5]]


def test_declined_keys_are_unanswered_and_read_only_has_no_effect(tmp_path: Path) -> None:
    """A client without rack finds no broker with score 1.0; a read-only lookup is answered like any other."""
    rows = [lookup(0, properties="{}"), lookup(1, properties=B, read_only=True)]
    replay, served = _replayed(_planned(tmp_path, rows), **RACK)

    assert served == {-1: 1.0, 1: 1.0}
    assert [one.ballot.declined is None for one in replay.decisions] == [True, False]


def test_nobody_is_asked_where_nobody_is_registered(tmp_path: Path) -> None:
    """Before the first broker comes, lookups are unanswered and nothing is decided."""
    brokers = [{"id": "a:1", "from": "2026-01-01T12:00:10Z"}]
    replay, served = _replayed(_planned(tmp_path, [lookup(0), lookup(20)], brokers=brokers))

    assert (served, len(replay.decisions)) == ({-1: 1.0, 0: 1.0}, 1)


def test_load_is_what_brokers_were_expected_to_serve(tmp_path: Path) -> None:
    """After the first cell usage is known, and the idler broker is preferred from then on."""
    brokers = [{"id": "a:1", "capacity": 1.0, "properties": {"lookup.rack": "a"}}, {"id": "b:1", "capacity": 1.0}]
    rows = [lookup(0, properties=A, weight=30.0), lookup(60, properties="{}")]
    parts = {"scorers": [{"use": "property-match", "key": "rack"}, "headroom"], "selector": "best"}
    replay, _ = _replayed(_planned(tmp_path, rows, brokers=brokers), **parts)

    assert [dict(one.ballot.odds) for one in replay.decisions] == [{"a:1": 1.0}, {"b:1": 1.0}]
    assert replay.decisions[1].ballot.margin == pytest.approx(0.5)


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
    counts = count_stretch(plan.cluster, stretch, classes)
    tally.add(stretch, replace(classes, key=classes.client), counts, ODDS, ROSTER)
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
