"""Brokers joined in memory."""

from __future__ import annotations

from lookup.engine.channel.broker import Settled
from lookup.engine.channel.service_unit import ServiceUnitState
from lookup.testing.channels import Channels

_UNIT = "t/n/0x00000000_0x80000000"


def _owned_by(broker: str) -> Channels:
    world = Channels(["b1", "b2"])
    held = world.brokers[broker]
    held.carry_out([held.channel.assign(_UNIT, broker, 0)])
    world.settle()
    return world


def test_two_that_choose_at_once_get_one_owner() -> None:
    """Both callers are answered with whoever was published first."""
    world = Channels(["b1", "b2"])
    for broker, held in world.brokers.items():
        held.carry_out([held.channel.assign(_UNIT, broker, 0)])
    world.publish("b2")
    world.settle()

    assert [held.settled for held in world.brokers.values()] == [[Settled(_UNIT, "b2")]] * 2
    assert [held.serving for held in world.brokers.values()] == [set(), {_UNIT}]


def test_nothing_happens_but_by_steps() -> None:
    """What is written stays where it is until somebody publishes, and then until somebody reads."""
    world = Channels(["b1", "b2"])
    world.brokers["b1"].carry_out([world.brokers["b1"].channel.assign(_UNIT, "b2", 0)])

    assert world.busy() == [("b1", False)]
    world.publish("b1")
    assert world.busy() == [("b1", True), ("b2", True)]
    world.deliver("b2")
    assert [held.read for held in world.brokers.values()] == [0, 1]


def test_a_broker_that_starts_again_serves_what_it_owned() -> None:
    """It begins with the records as they stand; what it had not published is lost with it."""
    world = _owned_by("b1")
    world.brokers["b1"].carry_out([world.brokers["b1"].channel.unload(_UNIT, now_ms=1)])
    world.stop("b1")
    world.start("b1")
    world.settle()

    assert world.brokers["b1"].serving == {_UNIT}
    assert world.records()[_UNIT].state is ServiceUnitState.OWNED


def test_listeners_hear_of_every_opening_and_closing() -> None:
    """A transfer closes twice at its source: topics first, clients when the new owner serves."""
    world = _owned_by("b1")
    world.brokers["b2"].carry_out([world.brokers["b2"].channel.unload(_UNIT, "b2", now_ms=1)])
    world.settle()

    assert [(held.loads, held.unloads) for held in world.brokers.values()] == [(1, 2), (1, 0)]
