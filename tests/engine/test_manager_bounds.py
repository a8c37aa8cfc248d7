"""A load manager that runs for weeks: what it keeps is bounded, and what is forgotten does no harm."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from lookup.engine.manager import LoadManager
from lookup.engine.ownership import OwnerChange
from lookup.engine.policy import Instant
from lookup.model import LookupOptions, Roster, Unanswered, Unload
from lookup.model.names import is_system_bundle, pinned_broker
from lookup.model.recent import Recent
from lookup.testing import broker, request
from tests.engine.parts import Keep, Odds, Proposing, Score, manager, policy
from tests.engine.trio import IDS, TOPIC, VIEW, broker_of

_READS = frozenset({"bundle"})


@pytest.fixture
def traced() -> Iterator[None]:
    """Count the memory that is allocated."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def _live(made: LoadManager, minutes: range) -> int:
    """Let bundles and brokers come and go that are never seen again; return the bytes in use afterwards."""
    for minute in minutes:
        made.begin_tick(minute * 60)
        last = f"t/n{minute - 1}/x"
        if made.ownership.owner(last) is not None:
            made.unload(last) if minute % 2 else made.split(last, [f"{last}1", f"{last}2"])
        made.assign(TOPIC, f"t/n{minute}/x", LookupOptions(properties={"id": str(minute)}))
        made.view().ownership.bundles_in(f"t/other{minute}")
        if minute % 10 == 0:
            made.set_registry(Roster([broker("b1:1"), broker(f"c{minute}:1")]), np.ones(2, dtype=np.bool_))
        made.take_decisions()
        made.take_changes()
    # These two are kept for the whole process, and bounded by themselves.
    pinned_broker.cache_clear()
    is_system_bundle.cache_clear()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.usefixtures("traced")
def test_memory_stays_the_same_however_long_it_runs() -> None:
    """Namespaces, bundles, keys and brokers that are ever new take no more of it later than at first."""
    tested = policy(
        Keep(answer=lambda brokers: [True] * len(brokers), reads=frozenset({"properties.id"})),
        Score(answer=lambda brokers: [1.0] * len(brokers), reads=_READS),
        Odds(answer=lambda brokers: [1.0] * len(brokers)),
    )
    made = manager(tested, VIEW, handover_us=10, most_bundles=50, most_answers=50)
    before = _live(made, range(1, 500))

    # A single entry for every minute would take at least this much.
    assert _live(made, range(500, 2500)) - before < 2000 * 100


def test_a_bundle_that_is_looked_up_keeps_its_owner() -> None:
    """If there are more owners than the manager may keep, the bundle in use least recently has none, as is recorded."""
    made = manager(policy(Odds({"b1:1": 1.0})), VIEW, most_bundles=2)
    for name in ("a", "b", "a", "c"):
        made.assign(TOPIC, f"t/n/{name}")

    assert [bundle for bundle, _ in made.ownership] == ["t/n/a", "t/n/c"]
    assert made.take_changes()[-2:] == [
        OwnerChange(0, "t/n/c", None, "b1:1", "first", decided=True),
        OwnerChange(0, "t/n/b", "b1:1", None, "forgotten"),
    ]
    assert broker_of(made.assign(TOPIC, "t/n/b")) == "b1:1"


def test_a_decline_that_is_forgotten_is_decided_again() -> None:
    """Of more declines than the manager may keep, the first is."""
    asked = Odds({}, reads=_READS)
    made = manager(policy(asked), VIEW, most_answers=2)
    for name in ("a", "b", "b", "c", "a"):
        assert isinstance(made.assign(TOPIC, f"t/n/{name}"), Unanswered)

    assert [one.bundle[-1] for one in asked.asked] == ["a", "b", "c", "a"]
    assert [entry.count for entry in made.take_decisions()] == [1, 2, 1, 1]


def test_answers_of_an_instant_are_bounded() -> None:
    """Those of filters, and those of scorers and selector."""
    tested = policy(
        Keep(ids=IDS, reads=frozenset({"client"})), Keep(ids=IDS, reads=frozenset({"view.ownership"})), Odds()
    )
    tested = replace(tested, selector=Odds(reads=_READS))
    instant = Instant(tested, VIEW, standing=Recent(2))
    for name in "abcd":
        tested.ballot(replace(request(), client=name, bundle=name), instant)

    assert (len(instant.kept), len(instant.chosen)) == (2, 2)


def test_unloads_are_remembered_of_the_last_bundles() -> None:
    """The view shows of so many bundles when the shedder unloaded them; children of a split count as bundles."""
    names = ("t/n/a", "t/n/b", "t/n/c")
    made = manager(policy(Odds(), Proposing(tuple(Unload(name, "b1:1") for name in names))), VIEW, most_bundles=2)
    for name in names:
        made.restore({name: "b1:1"})
        made.shed()

    assert sorted(made.view().unloaded) == ["t/n/b", "t/n/c"]
    made.split("t/n/c", ["t/n/d", "t/n/e"])
    assert sorted(made.view().unloaded) == ["t/n/d", "t/n/e"]
