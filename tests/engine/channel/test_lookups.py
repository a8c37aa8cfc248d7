"""Concurrent lookups of one broker, and the addresses that answer them."""

from __future__ import annotations

import pytest

from lookup.engine.channel.broker import Channel, Settled, Waiting
from lookup.engine.channel.lookups import Assigns, Joined, Selecting, lookup_result
from lookup.engine.channel.service_unit import ServiceUnitState, ServiceUnitStateData
from lookup.errors import NotFoundError, StateError
from lookup.model.broker import AdvertisedListener, BrokerLookupData
from lookup.model.request import LookupOptions, LookupResult

_UNIT = "t/n/0x00000000_0x80000000"
_A, _B = (LookupOptions(properties={"rack": rack}) for rack in "ab")


def _assigns(state: ServiceUnitState | None = None, owner: str = "b1") -> Assigns:
    channel = Channel("b1")
    if state is not None:
        channel.records[_UNIT] = ServiceUnitStateData(state, owner)
    return Assigns(channel)


def test_the_first_lookup_selects_and_others_join() -> None:
    """Options of the others are ignored, per bundle and until the answer is there."""
    assigns = _assigns()
    steps = [assigns.begin(_UNIT, options, registered=("b1",), now_ms=0) for options in (_A, _B)]

    assert steps == [Selecting(_UNIT, _A), Joined(_UNIT)]
    assert assigns.begin("t/n/other", _B, registered=("b1",), now_ms=0) == Selecting("t/n/other", _B)


def test_an_owner_is_the_answer_and_nothing_is_selected() -> None:
    """Counted as skipped."""
    assigns = _assigns(ServiceUnitState.OWNED)

    assert assigns.begin(_UNIT, _A, registered=("b1",), now_ms=0) == Settled(_UNIT, "b1")
    assert (assigns.counters.skip, assigns.counters.success) == (1, 0)


def test_no_candidate_is_no_error() -> None:
    """Everybody is answered with nobody, nothing is counted, and the next lookup selects anew."""
    assigns = _assigns()
    assigns.begin(_UNIT, _A, registered=("b1",), now_ms=0)

    assert assigns.chosen(_UNIT, None, 0) == Settled(_UNIT)
    assert (assigns.counters.success, assigns.counters.failure) == (0, 0)
    assert isinstance(assigns.begin(_UNIT, _B, registered=("b1",), now_ms=0), Selecting)


def test_read_only_lookups_select_nothing() -> None:
    """They see an owner where there is one."""
    read_only = LookupOptions(read_only=True)

    assert _assigns().begin(_UNIT, read_only, registered=("b1",), now_ms=0) == Settled(_UNIT)
    owned = _assigns(ServiceUnitState.OWNED)
    assert owned.begin(_UNIT, read_only, registered=("b1",), now_ms=0) == Settled(_UNIT, "b1")


def test_a_choice_counts_before_it_is_confirmed_and_may_fail() -> None:
    """A success is followed by a failure where the owner is not in the registry."""
    assigns = _assigns()
    assigns.begin(_UNIT, _A, registered=("b1",), now_ms=0)
    assigns.chosen(_UNIT, "b9", 0)

    with pytest.raises(StateError, match="owned by b9, but that broker has not been registered"):
        assigns.end(Settled(_UNIT, "b9"), ("b1",))
    assert (assigns.counters.success, assigns.counters.failure) == (1, 1)


def test_who_survives_is_the_answer() -> None:
    """The owner may differ from the choice."""
    assigns = _assigns()
    assigns.begin(_UNIT, _A, registered=("b1", "b2"), now_ms=0)
    assigns.chosen(_UNIT, "b1", 0)

    assert assigns.end(Settled(_UNIT, "b2"), ("b1", "b2")) == Settled(_UNIT, "b2")


def test_a_wait_that_fails_is_a_failure() -> None:
    """Nobody confirmed in time."""
    assigns = _assigns(ServiceUnitState.ASSIGNING)

    assert assigns.begin(_UNIT, _A, registered=("b1",), now_ms=0) == Waiting(_UNIT)
    assert assigns.begin(_UNIT, _A, registered=("b1",), now_ms=0) == Joined(_UNIT)
    with pytest.raises(StateError, match="nobody confirmed in time"):
        assigns.end(Settled(_UNIT, failed=True), ("b1",))


def test_an_owner_elsewhere_that_is_not_registered_is_refused() -> None:
    """A destination that has not confirmed is answered at once, and checked like any other."""
    with pytest.raises(StateError, match="has not been registered"):
        _assigns(ServiceUnitState.ASSIGNING, "b9").begin(_UNIT, _A, registered=("b1",), now_ms=0)


_DATA = BrokerLookupData(
    web_service_url="http://w",
    web_service_url_tls="https://w",
    pulsar_service_url="pulsar://b",
    pulsar_service_url_tls="pulsar+ssl://b",
    advertised_listeners={"internal": AdvertisedListener(broker_service_url="pulsar://i")},
)


@pytest.mark.parametrize("name", [None, "", " "])
def test_without_listener_the_broker_s_own_addresses(name: str | None) -> None:
    """A blank name is none."""
    told = lookup_result("b1", _DATA, LookupOptions(advertised_listener_name=name))

    assert told == LookupResult("b1", "pulsar://b", "pulsar+ssl://b", "http://w", "https://w")


def test_a_listener_has_its_own_binary_addresses() -> None:
    """One it lacks is absent, not the broker's; web addresses stay."""
    told = lookup_result("b1", _DATA, LookupOptions(advertised_listener_name="internal"))

    assert told == LookupResult("b1", "pulsar://i", None, "http://w", "https://w")


def test_an_unknown_listener_is_an_error() -> None:
    """The sentence names those there are."""
    with pytest.raises(NotFoundError, match="b1 does not have a listener 'outer'; it has internal"):
        lookup_result("b1", _DATA, LookupOptions(advertised_listener_name="outer"))
