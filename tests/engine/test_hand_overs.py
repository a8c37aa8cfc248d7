"""Hand-overs that last: their states, who is answered meanwhile, and that brokers joined by a channel say the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lookup.engine.manager import LoadManager
from lookup.engine.ownership import (
    ASSIGNMENT,
    AT_ONCE,
    RELEASE,
    SPLIT,
    TRANSFER,
    Course,
    HandOver,
    HandOvers,
    OwnershipChange,
    Phase,
)
from lookup.engine.service_unit import ServiceUnitState, state_of
from lookup.errors import StateError
from lookup.model import LookupOptions, Reason, Unanswered
from tests.engine.channel.broker import Channel, Settled
from tests.engine.channel.channels import Channels
from tests.engine.channel.leader import clean_up
from tests.engine.parts import Odds, manager, policy
from tests.engine.trio import BUNDLE, IDS, TOPIC, VIEW, broker_of, registered

STEP = 10
CHILDREN = ("public/default/0x00000000_0x40000000", "public/default/0x40000000_0x80000000")
READ_ONLY = LookupOptions(read_only=True)
_S = ServiceUnitState


def _manager(**options: object) -> LoadManager:
    """Build a manager of three brokers whose policy takes the first there is; nobody owns anything."""
    return manager(policy(Odds({"b1:1": 4.0, "b3:1": 1.0}, frozenset())), VIEW, handover_us=STEP, **options)


def _owned_by_b1(**options: object) -> LoadManager:
    made = _manager(**options)
    made.restore({BUNDLE: "b1:1"})
    made.take_changes()
    return made


# What changes hands, as an administrator or a lookup has it, and the same on a channel.
_Deed = Callable[[LoadManager], object]
_Wish = Callable[[Channel], object]
_CASES: dict[str, tuple[bool, _Deed, _Wish]] = {
    "assignment": (
        False,
        lambda made: made.assign(TOPIC, BUNDLE, ts_us=0),
        lambda channel: channel.assign(BUNDLE, "b1:1", 0),
    ),
    "transfer": (
        True,
        lambda made: made.unload(BUNDLE, "b2:1"),
        lambda channel: channel.unload(BUNDLE, "b2:1", now_ms=0),
    ),
    "release": (True, lambda made: made.unload(BUNDLE), lambda channel: channel.unload(BUNDLE, now_ms=0)),
    "split": (
        True,
        lambda made: made.split(BUNDLE, CHILDREN),
        lambda channel: channel.split(BUNDLE, dict.fromkeys(child.rpartition("/")[2] for child in CHILDREN), now_ms=0),
    ),
}


def _begun(case: str, **options: object) -> LoadManager:
    """Return a manager in which a hand-over has begun at 0."""
    is_owned, deed, _ = _CASES[case]
    made = _owned_by_b1(**options) if is_owned else _manager(**options)
    deed(made)
    return made


def _joined(case: str) -> Channels:
    """Return brokers in whose channel the same has been wished for, and nothing is published yet."""
    is_owned, _, wish = _CASES[case]
    world = Channels(IDS)
    bystander = world.brokers["b3:1"]
    if is_owned:
        bystander.carry_out([bystander.channel.assign(BUNDLE, "b1:1", 0)])
        world.settle()
    bystander.carry_out([wish(bystander.channel)])
    return world


def _step(world: Channels) -> None:
    """Publish one message and let everybody read it."""
    world.publish(next(broker for broker, held in world.brokers.items() if held.outbox))
    for broker in world.brokers:
        world.deliver(broker)


def _told_by_a_channel(case: str) -> list[tuple[ServiceUnitState, str | None]]:
    """Return the states of a bundle on a channel and whom a broker that takes no part answers in each."""
    world, told = _joined(case), []
    bystander = world.brokers["b3:1"].channel
    while world.busy():
        _step(world)
        state = state_of(bystander.records.get(BUNDLE))
        if state is not _S.DELETED and state not in [earlier for earlier, _ in told]:
            answer = bystander.owner(BUNDLE, registered=IDS, now_ms=0)
            assert isinstance(answer, Settled)
            told.append((state, answer.owner))
    return [entry for entry in told if entry[0] is not _S.OWNED or case != "split"]


def _told_by_a_manager(case: str, bundle: str) -> list[tuple[ServiceUnitState, str | None]]:
    """Return the same of a manager, in the middle of every state."""
    made, told = _begun(case), []
    for at in range(STEP // 2, 4 * STEP, STEP):
        answer = broker_of(made.assign(TOPIC, bundle, READ_ONLY, ts_us=at))
        settled = _S.OWNED if answer else _S.FREE
        told.append((made.in_flight(bundle, at) or settled, answer))
    return list(dict.fromkeys(told))


@pytest.mark.parametrize("case", ["assignment", "transfer", "release"])
def test_a_manager_answers_as_the_channel_does(case: str) -> None:
    """State by state a lookup gets what a broker that takes no part in the hand-over would say."""
    assert _told_by_a_manager(case, BUNDLE) == _told_by_a_channel(case)


def test_children_of_a_split_are_answered_for_as_their_parent_is() -> None:
    """While the parent is Splitting its source answers; then the children are Owned by the same broker."""
    told = [_told_by_a_manager("split", child) for child in CHILDREN]

    assert told == [[*_told_by_a_channel("split"), (_S.OWNED, "b1:1")]] * 2


@pytest.mark.parametrize("case", ["assignment", "transfer", "release"])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("lost", ["b1:1", "b2:1", "b3:1"])
def test_a_leader_ends_what_a_lost_broker_takes_part_in(case: str, steps: int, lost: str) -> None:
    """Whose hand-overs end by the loss of whom, and that they end Owned, is as in the channel's clean-up."""
    world = _joined(case)
    for _ in range(min(steps, len(_course(case)))):
        _step(world)
    left = [broker for broker in IDS if broker != lost]
    cleaned = clean_up(world.records(), lost, lambda unit, excluded: "b1:1" if lost != "b1:1" else "b3:1", now_ms=0)
    made = _begun(case, owner_loss="leader")
    made.take_changes()
    made.begin_tick(STEP * min(steps, len(_course(case))) - 1)
    made.set_registry(VIEW.brokers, registered(*left))

    assert bool(cleaned.first) == bool(made.take_changes())
    for message in cleaned.first:
        assert (message.data and message.data.state, message.data and message.data.dst_broker) == (
            made.in_flight(BUNDLE) or _S.OWNED,
            broker_of(made.assign(TOPIC, BUNDLE, READ_ONLY)),
        )


def _course(case: str) -> Course:
    return {"assignment": ASSIGNMENT, "transfer": TRANSFER, "release": RELEASE, "split": SPLIT}[case]


def test_a_split_whose_source_is_lost_ends_with_its_children() -> None:
    """The leader gives every child a new owner, which holds at once."""
    made = _begun("split", owner_loss="leader")
    made.begin_tick(STEP - 1)
    made.set_registry(VIEW.brokers, registered("b2:1", "b3:1"))

    assert [made.ownership.owner(child) for child in CHILDREN] == [2, 2]
    assert [made.in_flight(child) for child in CHILDREN] == [None, None]


def test_without_a_leader_a_lost_broker_leaves_the_bundle_open() -> None:
    """Released or not, the next lookup decides, and its choice is Assigning anew."""
    for case in ("transfer", "release"):
        made = _begun(case)
        made.begin_tick(STEP // 2)
        made.set_registry(VIEW.brokers, registered("b2:1", "b3:1"))

        assert broker_of(made.assign(TOPIC, BUNDLE, READ_ONLY)) is None
        assert broker_of(made.assign(TOPIC, BUNDLE, ts_us=STEP // 2 + 1)) == "b3:1"
        assert made.in_flight(BUNDLE, STEP // 2 + STEP) is _S.ASSIGNING


def test_a_released_bundle_is_decided_when_its_release_has_ended() -> None:
    """A lookup before is unanswered and asks no policy; the first one after makes it choose."""
    made = _begun("release")

    assert made.assign(TOPIC, BUNDLE, ts_us=STEP - 1) == Unanswered(Reason.IN_FLIGHT)
    assert made.take_decisions() == []
    assert broker_of(made.assign(TOPIC, BUNDLE, ts_us=STEP)) == "b1:1"


@pytest.mark.parametrize("case", list(_CASES))
def test_what_is_in_flight_can_be_neither_unloaded_nor_split(case: str) -> None:
    """A sentence names the state and what has to end first; afterwards it is possible again."""
    made, bundle = _begun(case), CHILDREN[0] if case == "split" else BUNDLE
    state = _course(case)[0]
    with pytest.raises(StateError, match=f"bundle {bundle} is {state}, and cannot be unloaded before that has ended"):
        made.unload(bundle)
    with pytest.raises(StateError, match=f"bundle {bundle} is {state}, and cannot be split before that has ended"):
        made.split(bundle, CHILDREN)
    made.begin_tick(STEP * 2)

    assert made.in_flight(bundle) is None
    made.split(bundle, CHILDREN)


def test_changes_say_what_a_bundle_goes_through() -> None:
    """A transfer releases at the old owner and assigns at the new one; both name the source."""
    made = _begun("transfer")
    phases = (Phase(_S.RELEASING, 0, STEP), Phase(_S.ASSIGNING, STEP, 2 * STEP))

    assert made.take_changes() == [
        OwnershipChange(0, BUNDLE, "b1:1", None, "admin"),
        OwnershipChange(0, BUNDLE, "b1:1", "b2:1", "admin", decided=False, hand_over=HandOver(phases, source="b1:1")),
    ]


def test_a_release_that_is_cut_short_is_a_change() -> None:
    """Nobody owned the bundle and nobody does; but who keeps intervals has to know."""
    made = _begun("release")
    made.take_changes()
    made.begin_tick(STEP // 2)
    made.set_registry(VIEW.brokers, registered("b2:1"))

    assert made.take_changes() == [OwnershipChange(STEP // 2, BUNDLE, "b1:1", None, "forced")]


def test_at_once_there_is_nothing_in_flight() -> None:
    """A manager whose hand-overs take no time knows none, and books none."""
    made = manager(policy(Odds({"b1:1": 1.0})), VIEW)
    made.assign(TOPIC, BUNDLE)

    assert made.in_flight(BUNDLE) is None
    assert [change.hand_over for change in made.take_changes()] == [None]


def test_states_hold_to_the_instant_before_their_end() -> None:
    """A hand-over ends when its last state does."""
    held = HandOvers(STEP)
    begun = held.begin("x", TRANSFER, 100, "b1:1")

    assert begun is not None
    assert [begun.state(at) for at in (100, 109, 110, 119, 120)] == [*[_S.RELEASING] * 2, *[_S.ASSIGNING] * 2, None]
    assert (held.given_up_by("b1:1", 119), held.given_up_by("b1:1", 120), held.given_up_by("b2:1", 100)) == (
        ["x"],
        [],
        [],
    )
    assert (held.end("x", 120), held.begin("x", AT_ONCE, 120, "b1:1")) == (None, None)
