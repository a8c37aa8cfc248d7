"""The load manager: lookups, what is asked again, dice and the view."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.engine.manager import LoadManager
from lookup.model import Assigned, BrokerLookupData, LookupOptions, Reason, Unanswered
from lookup.model.names import INTERNAL_TOPICS
from lookup.testing import broker, cluster, request
from tests.engine.parts import Counting, Keep, Odds, Proposing, manager, owner_of, policy
from tests.engine.trio import BUNDLE, IDS, OTHER, TOPIC, VIEW, broker_of, figures, registered

READ_ONLY = LookupOptions(read_only=True)

# Lookups


def test_the_first_lookup_assigns_and_the_others_share_its_answer() -> None:
    """Of a bundle's lookups only the first asks the policy, whatever the properties of the others."""
    asked = Odds({"b2:1": 1.0})
    made = manager(policy(asked), VIEW)
    first = made.assign(TOPIC, BUNDLE)
    second = made.assign(TOPIC, BUNDLE, LookupOptions(properties={"rack": "z"}))

    assert isinstance(first, Assigned)
    assert first.decision is not None
    assert (broker_of(first), broker_of(second), len(asked.asked)) == ("b2:1", "b2:1", 1)
    assert second == Assigned("b2:1", BrokerLookupData(), None)


def test_a_read_only_lookup_never_assigns() -> None:
    """Unowned it is not answered, owned it is."""
    asked = Odds({"b1:1": 1.0})
    made = manager(policy(asked), VIEW)

    assert made.assign(TOPIC, BUNDLE, READ_ONLY) == Unanswered(Reason.READ_ONLY)
    assert asked.asked == []
    made.assign(TOPIC, BUNDLE)
    assert broker_of(made.assign(TOPIC, BUNDLE, READ_ONLY)) == "b1:1"


@pytest.mark.parametrize("namespace", ["pulsar/{}", "pulsar/east/{}", "sla-monitor/east/{}"])
def test_heartbeat_and_sla_bundles_go_to_the_broker_in_their_name(namespace: str) -> None:
    """No policy is asked, nobody owns the bundle, and a broker that is not registered does not serve it."""
    asked = Odds()
    made = manager(policy(asked), VIEW)
    bundle = f"{namespace.format('b2:1')}/0x00000000_0xffffffff"

    assert broker_of(made.assign(None, bundle)) == "b2:1"
    gone = made.assign(None, f"{namespace.format('gone:1')}/0x00000000_0xffffffff")
    assert gone == Unanswered(Reason.NOT_REGISTERED)
    assert owner_of(made, bundle) is None
    assert (asked.asked, made.take_changes()) == ([], [])


@pytest.mark.parametrize("topic", [*INTERNAL_TOPICS, f"{INTERNAL_TOPICS[0]}-partition-0"])
def test_the_managers_own_topics_go_to_the_leader(topic: str) -> None:
    """They are served by the first registered broker without becoming anybody's bundle."""
    made = manager(policy(Odds({"b3:1": 1.0})), replace(VIEW, registered=registered("b2:1", "b3:1")))

    assert broker_of(made.assign(topic, "pulsar/system/0x00000000_0xffffffff")) == "b2:1"
    assert len(made.ownership) == 0


# Declines


def test_a_declined_lookup_leaves_the_bundle_unowned() -> None:
    """The next lookup with another key is decided in its turn."""
    tested = policy(Keep(answer=lambda brokers: [False] * len(brokers), reads=frozenset({"properties.rack"})))
    made = manager(tested, VIEW)
    answers = [made.assign(TOPIC, BUNDLE, LookupOptions(properties={"rack": rack})) for rack in "aab"]

    decisions = made.take_decisions()
    assert [entry.count for entry in decisions] == [2, 1]
    assert answers == [Unanswered(Reason.NO_CANDIDATES, decisions[place].decision) for place in (0, 0, 1)]
    assert made.ownership.owner(BUNDLE) is None


def test_a_decline_is_not_decided_again_under_one_fingerprint() -> None:
    """It is counted, even after the decisions were taken; another bundle is decided by itself."""
    asked = Odds({}, reads=frozenset({"bundle"}))
    made = manager(policy(asked), VIEW)
    made.assign(TOPIC, BUNDLE)
    [entry] = made.take_decisions()
    made.assign(TOPIC, BUNDLE)
    made.begin_tick(60)
    made.set_load(figures())
    made.assign(TOPIC, BUNDLE)

    assert (entry.count, made.take_decisions(), len(asked.asked)) == (3, [], 1)
    made.assign(TOPIC, OTHER)
    assert len(made.take_decisions()) == 1


@pytest.mark.parametrize(
    ("reads", "again"), [(frozenset(), False), (frozenset({"view.now"}), True), (frozenset({"view.load"}), True)]
)
def test_a_decline_is_decided_again_when_what_it_read_may_have_changed(reads: frozenset[str], again: bool) -> None:
    """In the next tick the odds of a policy that reads load or time are asked for again."""
    made = manager(policy(Odds({}, reads=reads)), VIEW)
    made.assign(TOPIC, BUNDLE)
    made.begin_tick(60)
    made.set_load(figures())
    made.assign(TOPIC, BUNDLE)

    assert [entry.count for entry in made.take_decisions()] == ([1, 1] if again else [2])


def test_a_decline_of_a_policy_that_reads_owners_ends_with_any_change() -> None:
    """Ownership changes within a tick make another fingerprint."""
    made = manager(policy(Odds({}, reads=frozenset({"view.ownership"}))), VIEW)
    made.assign(TOPIC, BUNDLE)
    made.restore({OTHER: "b1:1"})
    made.unload(OTHER)
    made.assign(TOPIC, BUNDLE)

    assert [entry.decision.fingerprint for entry in made.take_decisions()] == ["0/0/0", "0/0/1"]


# Caching


@pytest.mark.parametrize(
    ("reads", "questions"),
    [
        (frozenset({"bundle"}), 5),
        (frozenset({"view.ownership"}), 5),
        (frozenset({"view.memory"}), 5),
        (frozenset({"view.load"}), 1),
    ],
)
def test_what_may_have_changed_is_asked_again(reads: frozenset[str], questions: int) -> None:
    """Another key, another owner and memory each call for another question."""
    asked = Odds(reads=reads)
    made = manager(policy(asked), VIEW)
    for number in range(5):
        made.assign(TOPIC, f"public/default/{number}")

    assert len(asked.asked) == questions


def test_parts_remember_once_per_assignment() -> None:
    """Hits, declines, unloads and questions are not remembered; the next decision sees what was."""
    made = manager(policy(Counting()), VIEW)
    made.assign(TOPIC, BUNDLE)
    made.assign(TOPIC, BUNDLE)
    made.assign(TOPIC, OTHER, READ_ONLY)
    made.assign(TOPIC, OTHER)
    made.unload(BUNDLE)
    made.decide(request())

    assert made.memory == {"counting": {"count": 2}}
    assert made.view().memory["counting"] == {"count": 2}


def test_what_a_shedder_first_remembers_is_seen_at_once() -> None:
    """A selector that shares its memory sees it in the same tick, also where the view had been looked at before."""
    seen: list[dict[str, Any]] = []

    class Reading(Odds):
        """A selector that keeps what it is shown of the shedder's memory."""

        name = memory_key = "proposing"

        def odds(self, request: Any, brokers: Any, scores: Any, view: Any) -> Any:
            """Look."""
            seen.append(dict(view.memory))
            return scores

    made = manager(policy(Reading(reads=frozenset({"view.memory"})), Proposing()), VIEW)
    made.view()
    made.shed()
    made.assign(TOPIC, BUNDLE)

    assert seen == [{"rulings": []}]


# Dice


@given(st.integers(0, 1000), st.lists(st.integers(0, 20), min_size=1, max_size=30))
@settings(max_examples=30)
def test_a_bundles_draw_depends_on_no_other_bundle(seed: int, order: list[int]) -> None:
    """Whatever is assigned before, a bundle's first owner under a seed is the same."""
    alone = [
        broker_of(manager(policy(Odds()), VIEW, seed=seed).assign(TOPIC, f"public/default/{number}"))
        for number in order
    ]
    made = manager(policy(Odds()), VIEW, seed=seed)

    assert [broker_of(made.assign(TOPIC, f"public/default/{number}")) for number in order] == alone


# The view


def test_the_view_shows_the_moment() -> None:
    """Epoch and tick, figures, owners and capacities stand in it, read-only."""
    made = manager(policy(Odds({"b1:1": 1.0})), cluster(*(broker(one, capacity=5.0) for one in IDS)))
    made.begin_tick(60)
    made.set_load(figures(usage=np.array([0.5, 0.25, 0.0]), demand={"rack": {"a": 1.0}}))
    made.assign(TOPIC, BUNDLE)
    view = made.view()

    assert (view.cluster, view.epoch_us, view.now_us, dict(view.load.demand["rack"])) == ("east", 0, 60, {"a": 1.0})
    assert (view.load.usage.tolist(), view.capacity.tolist()) == ([0.5, 0.25, 0.0], [5.0] * 3)
    assert view.ownership.owner(BUNDLE) == 0
    for column in (view.load.usage, view.load.throughput, view.load.topics, view.capacity, view.registered):
        assert not column.flags.writeable


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=40), st.integers(0, 5))
@settings(max_examples=40)
def test_the_same_seed_is_the_same_run(steps: list[tuple[int, int]], seed: int) -> None:
    """Any sequence of lookups, unloads and registry changes, done twice, gives the same decisions and changes."""
    runs = []
    for _ in range(2):
        made = manager(policy(Odds(reads=frozenset({"view.ownership"}))), VIEW, seed=seed)
        for place, (what, which) in enumerate(steps):
            _step(made, place, what, which)
        runs.append((made.take_decisions(), made.take_changes()))

    assert runs[0] == runs[1]


def _step(made: LoadManager, place: int, what: int, which: int) -> None:
    bundle = f"public/default/{which}"
    if what < 3:
        made.assign(TOPIC, bundle)
    elif what == 3 and made.ownership.owner(bundle) is not None:
        made.unload(bundle)
    elif what > 3:
        made.begin_tick(place)
        made.set_registry(VIEW.brokers, registered(*(one for bit, one in enumerate(IDS) if which >> bit & 1)))


def test_other_system_topics_are_ordinary() -> None:
    """The rest of pulsar/system is assigned by the policy."""
    made = manager(policy(Odds({"b3:1": 1.0})), VIEW)

    answer = made.assign("persistent://pulsar/system/__events", "pulsar/system/0x00000000_0xffffffff")
    assert broker_of(answer) == "b3:1"


def test_two_policies_with_the_same_odds_meet_the_same_luck() -> None:
    """An A/A comparison shows no difference."""
    bundles = [f"public/default/{number}" for number in range(50)]
    first, second = manager(policy(Odds()), VIEW), manager(policy(Odds(dict.fromkeys(IDS, 7.0)), name="other"), VIEW)

    assert [broker_of(first.assign(TOPIC, one)) for one in bundles] == [
        broker_of(second.assign(TOPIC, one)) for one in bundles
    ]
