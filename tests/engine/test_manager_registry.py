"""The load manager's registry: brokers join, leave and are replaced; owners, load and records follow their ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.manager import LoadManager
from lookup.engine.ownership import OwnershipChange
from lookup.errors import ArgumentError
from lookup.model import Assigned, Broker, Reason, Roster, Unanswered
from lookup.testing import broker, cluster
from tests.engine.parts import Odds, manager, policy
from tests.engine.trio import BUNDLE, OTHER, TOPIC, VIEW, figures


def _register(made: LoadManager, *ids: str) -> None:
    """Register these brokers, and leave all others out of the roster."""
    roster = Roster([broker(name) for name in ids])
    made.set_registry(roster, np.ones(len(roster), dtype=np.bool_))


def _owners(made: LoadManager) -> dict[str, str]:
    return {bundle: made.roster[number].id for bundle, number in made.ownership}


def test_a_replaced_broker_loses_its_bundles() -> None:
    """The broker that now has its number does not own them; the record names the lost one, which is in no roster."""
    made = manager(policy(Odds({"a9:1": 1.0})), VIEW)
    made.restore({BUNDLE: "b1:1", OTHER: "b2:1"})
    made.take_changes()
    made.begin_tick(60)
    _register(made, "a9:1", "b2:1", "b3:1")

    assert _owners(made) == {OTHER: "b2:1"}
    made.assign(TOPIC, BUNDLE, ts_us=70)
    assert made.take_changes() == [
        OwnershipChange(60, BUNDLE, "b1:1", None, "forced"),
        OwnershipChange(70, BUNDLE, "b1:1", "a9:1", "forced", decided=True),
    ]


@pytest.mark.parametrize("count", [2, 4])
def test_columns_of_another_length_are_refused(count: int) -> None:
    """The sentence names what is wrong and both numbers, and nothing changes."""
    made = manager(policy(Odds()), VIEW)
    made.restore({BUNDLE: "b1:1"})
    with pytest.raises(ArgumentError, match=f"the registry has {count} values for the 3 brokers"):
        made.set_registry(VIEW.brokers, np.zeros(count, dtype=np.bool_))
    with pytest.raises(ArgumentError, match=f"a load has {count} values for the 3 brokers"):
        made.set_load(figures(usage=np.zeros(count)))

    assert (made.registered.tolist(), _owners(made)) == ([True] * 3, {BUNDLE: "b1:1"})


_NAMES = [f"b{number}:1" for number in range(6)]
_STEP = st.one_of(
    st.tuples(st.just("lookup"), st.integers(0, 7)),
    st.tuples(st.just("unload"), st.integers(0, 7)),
    st.tuples(st.sampled_from(["join", "leave"]), st.sampled_from(_NAMES)),
    st.tuples(st.just("replace"), st.tuples(st.sampled_from(_NAMES), st.sampled_from(_NAMES))),
)


@dataclass
class _Plain:
    """The model: who is registered, and the id of the owner by bundle."""

    registered: set[str] = field(default_factory=set)
    owners: dict[str, str] = field(default_factory=dict)

    def register(self, kind: str, brokers: Any) -> list[str]:
        """Change the registry and return the bundles that lost their owners."""
        gone, come = {"join": ("", brokers), "leave": (brokers, "")}.get(kind) or brokers
        self.registered = (self.registered - {gone} | {come}) - {""}
        lost = [bundle for bundle, owner in self.owners.items() if owner not in self.registered]
        for bundle in lost:
            del self.owners[bundle]
        return lost


@given(st.lists(_STEP, max_size=30), st.booleans(), st.sampled_from(["next-lookup", "leader"]))
def test_owners_by_id_are_those_of_a_plain_dictionary(
    steps: list[tuple[str, Any]], keeps_lost: bool, owner_loss: Literal["next-lookup", "leader"]
) -> None:
    """After any joins, leaves, replacements, unloads and lookups; and whoever reads the changes knows them as well."""
    plain, read, known = _Plain(), dict[str, str](), set[str]()
    made = manager(policy(Odds(reads=frozenset({"view.ownership"}))), cluster(), owner_loss=owner_loss)
    for kind, what in steps:
        bundle = f"a/n{what}/x"
        if kind == "lookup":
            answer = made.assign(None, bundle)
            if isinstance(answer, Assigned):
                assert answer.broker == plain.owners.get(bundle, answer.broker)
                assert answer.broker in plain.registered
                plain.owners[bundle] = answer.broker
            else:
                assert (answer, plain.registered) == (Unanswered(Reason.NO_CANDIDATES), set())
        elif kind == "unload" and bundle in plain.owners:
            made.unload(bundle)
            del plain.owners[bundle]
        elif kind != "unload":
            lost = plain.register(kind, what)
            known |= plain.registered
            roster = Roster([Broker(name) for name in (known if keeps_lost else plain.registered)])
            made.set_registry(roster, np.array([name in plain.registered for name in roster.ids], dtype=np.bool_))
            if owner_loss == "leader" and plain.registered:
                plain.owners |= {bundle: _owners(made)[bundle] for bundle in lost}
                assert set(plain.owners.values()) <= plain.registered
        for change in made.take_changes():
            assert change.source == read.get(change.bundle, change.source)
            read.pop(change.bundle, None)
            if change.broker is not None:
                read[change.bundle] = change.broker
        counts = Counter(plain.owners.values())

        assert _owners(made) == read == plain.owners
        assert made.ownership.bundles().tolist() == [counts[name] for name in made.roster.ids]
