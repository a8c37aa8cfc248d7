"""Service units: states, valid transitions, the record and its JSON, versions."""

from __future__ import annotations

import json

import pytest

from lookup.engine.service_unit import ChannelStorage, ServiceUnitState, ServiceUnitStateData, next_states, state_of
from lookup.errors import ArgumentError, InputError

_S = ServiceUnitState


def test_storages_differ_in_what_follows_init_and_free_only() -> None:
    """A topic is compacted, so its reader may meet any state first; a store's reader sees every record."""
    differing = {
        s for s in _S if next_states(s, ChannelStorage.SYSTEM_TOPIC) != next_states(s, ChannelStorage.METADATA_STORE)
    }

    assert differing == {_S.INIT, _S.FREE}
    assert next_states(_S.INIT, ChannelStorage.SYSTEM_TOPIC) == set(_S) - {_S.INIT}
    assert next_states(_S.INIT, ChannelStorage.METADATA_STORE) == {_S.ASSIGNING}


@pytest.mark.parametrize("storage", ChannelStorage)
def test_no_state_follows_itself(storage: ChannelStorage) -> None:
    """Writing a state twice is never a transition."""
    assert [state for state in _S if state in next_states(state, storage)] == []


@pytest.mark.parametrize("state", sorted(set(_S) - {_S.FREE}))
@pytest.mark.parametrize("blank", [None, "", "  "])
def test_a_record_names_a_broker(state: ServiceUnitState, blank: str | None) -> None:
    """Only Free may name nobody."""
    with pytest.raises(ArgumentError, match=f"in state {state} names no broker"):
        ServiceUnitStateData(state, blank, blank)

    assert ServiceUnitStateData(_S.FREE, blank, blank).state is _S.FREE


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("state", None, "state is None, .*: Init, Free"),
        ("state", "Lost", "state is 'Lost', "),
        ("dstBroker", 1, "dstBroker is 1, not a text"),
        ("force", "no", "force is 'no', "),
        ("versionId", 2**63, "versionId.* 64 bits"),
        ("versionId", -(2**63) - 1, "versionId.* 64 bits"),
        ("splitServiceUnitToDestBroker", [], r"splitServiceUnitToDestBroker is \[\], not an object"),
        ("splitServiceUnitToDestBroker", {"a": 1}, "splitServiceUnitToDestBroker.a is 1, not a text"),
    ],
)
def test_wrong_json_is_refused_by_key(key: str, value: object, sentence: str) -> None:
    """What Pulsar would not have written is named with its key."""
    record = {"state": "Owned", "dstBroker": "b1", key: value}

    with pytest.raises((ArgumentError, InputError), match=sentence):
        ServiceUnitStateData.from_json(json.dumps(record))


def test_no_record_is_init() -> None:
    """Absence is a state of its own."""
    assert state_of(None) is _S.INIT
    assert state_of(ServiceUnitStateData(_S.FREE)) is _S.FREE
